//! The parser: from tokens to instructions in one pass over the actions; expressions are kept as a
//! tree for error texts.
//!
//! Main function: [`parse`]. Tokens are read at the same points as in Go's parser, because the line
//! in an error message is that of the last token read.

use super::code::Template;
use super::compile::{Branch, Builder};
use super::error::{Error, ErrorKind};
use super::format::quote::{quote, unquote};
use super::function::Functions;
use super::lex::{Keyword, Kind, Lexer, Token};
use super::node::{Id, Node, Nodes};
use super::value::Str;
use std::{mem, sync::Arc};

mod expression;

/// Nested actions, and nested parentheses.
const DEPTH: usize = 200;
/// Maximum length of a template.
const LONGEST: usize = 64 << 20;

/// Parses a text into the template with its name and those it defines.
pub(super) fn parse(
    name: &str,
    text: &[u8],
    functions: &Functions,
) -> Result<Vec<Arc<Template>>, Error> {
    if text.len() > LONGEST {
        return Err(Error::limit(format!(
            "template: {name}: larger than {LONGEST} bytes"
        )));
    }
    let mut lexer = Lexer::new(text);
    lexer.break_word = !functions.contains("break");
    lexer.continue_word = !functions.contains("continue");
    let mut parser = Parser {
        lexer,
        functions,
        nodes: Nodes::new(name, text),
        unit: Unit::new(name.to_owned()),
        done: Vec::new(),
        depth: 0,
    };
    parser.top()?;
    let top = mem::replace(&mut parser.unit, Unit::new(String::new()));
    parser.finish(top)?;
    if parser.done.iter().any(|unit| unit.builder.overflows()) {
        return Err(Error::limit(format!(
            "template: {name}: a template has too many variables"
        )));
    }
    let nodes = Arc::new(parser.nodes);
    Ok(parser
        .done
        .into_iter()
        .map(|unit| Arc::new(unit.builder.template(unit.name, nodes.clone())))
        .collect())
}

/// The state of one template; enclosing ones wait.
struct Unit {
    name: String,
    builder: Builder,
    /// Variable names that are visible here; they stay until the end of a block, even where they
    /// have no value.
    visible: Vec<Vec<u8>>,
    tokens: [Token; 3],
    peeked: usize,
    action_line: usize,
    range_depth: usize,
}

impl Unit {
    fn new(name: String) -> Self {
        let none = || Token {
            kind: Kind::Eof,
            pos: 0,
            end: 0,
            line: 0,
        };
        Self {
            name,
            builder: Builder::default(),
            visible: vec![b"$".to_vec()],
            tokens: [none(), none(), none()],
            peeked: 0,
            action_line: 0,
            range_depth: 0,
        }
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    functions: &'t Functions,
    nodes: Nodes,
    unit: Unit,
    done: Vec<Unit>,
    depth: usize,
}

type Parsed<T> = Result<T, Error>;

/// How a list of actions ends.
enum End {
    End,
    /// `else`, and the keyword after it if that begins another `if` or `with`.
    Else,
}

impl End {
    fn words(&self) -> &'static str {
        match self {
            End::End => "{{end}}",
            End::Else => "{{else}}",
        }
    }
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        if self.unit.peeked > 0 {
            self.unit.peeked -= 1;
        } else {
            self.unit.tokens[0] = self.lexer.next_token();
        }
        self.unit.tokens[self.unit.peeked]
    }

    fn backup(&mut self) {
        self.unit.peeked += 1;
    }

    fn backup2(&mut self, first: Token) {
        self.unit.tokens[1] = first;
        self.unit.peeked = 2;
    }

    fn backup3(&mut self, first: Token, second: Token) {
        self.unit.tokens[1] = second;
        self.unit.tokens[2] = first;
        self.unit.peeked = 3;
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.backup();
        token
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn text(&self, token: &Token) -> &[u8] {
        &self.nodes.text[token.pos..token.end]
    }

    fn error<T>(&self, why: impl AsRef<str>) -> Parsed<T> {
        let text = format!(
            "template: {}:{}: {}",
            self.nodes.file,
            self.unit.tokens[0].line,
            why.as_ref()
        );
        Err(Error::new(ErrorKind::Parse, text))
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        if token.kind != Kind::Error {
            return self.error(format!("unexpected {} in {context}", self.describe(token)));
        }
        let mut extra = String::new();
        if self.unit.action_line != 0 && self.unit.action_line != token.line {
            let words = if self.lexer.error.ends_with(" action") {
                ""
            } else {
                " in action"
            };
            extra = format!(
                "{words} started at {}:{}",
                self.nodes.file, self.unit.action_line
            );
        }
        self.error(format!("{}{extra}", self.lexer.error))
    }

    /// A token in error texts.
    fn describe(&self, token: &Token) -> String {
        match token.kind {
            Kind::Eof => "EOF".into(),
            Kind::Error => self.lexer.error.clone(),
            Kind::Keyword(_) | Kind::Dot | Kind::Nil => {
                format!("<{}>", String::from_utf8_lossy(self.text(token)))
            }
            _ => {
                let text = self.text(token);
                let cut: usize = super::unicode::runes(text)
                    .take(10)
                    .map(|(_, width)| width)
                    .sum();
                let quoted = quote(
                    &text[..if text.len() > 10 { cut } else { text.len() }],
                    false,
                );
                let dots = if text.len() > 10 { "..." } else { "" };
                format!("{}{dots}", String::from_utf8_lossy(&quoted))
            }
        }
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.kind != kind {
            self.unexpected(&token, context)
        } else {
            Ok(token)
        }
    }

    /// Runs the parser one nesting level deeper.
    fn nested<T>(&mut self, why: &str, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            return self.error(why);
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// The whole text.
    fn top(&mut self) -> Parsed<()> {
        loop {
            let token = self.peek();
            if token.kind == Kind::Eof {
                return Ok(());
            }
            if token.kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.backup2(delim);
            }
            if let Some(end) = self.text_or_action()? {
                return self.error(format!("unexpected {}", end.words()));
            }
        }
    }

    /// `{{define "name"}} … {{end}}`, after the keyword.
    fn definition(&mut self) -> Parsed<()> {
        let outer = mem::replace(&mut self.unit, Unit::new(String::new()));
        let token = self.next_non_space();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(&token, "define clause");
        }
        self.unit.name = self.literal(&token)?;
        self.expect(Kind::RightDelim, "define clause")?;
        let end = self.items()?;
        if !matches!(end, End::End) {
            return self.error(format!("unexpected {} in define clause", end.words()));
        }
        let unit = mem::replace(&mut self.unit, outer);
        self.finish(unit)
    }

    /// Adds a template; a blank one does not replace another of that name, and two others are not
    /// permitted.
    fn finish(&mut self, unit: Unit) -> Parsed<()> {
        match self.done.iter_mut().find(|other| other.name == unit.name) {
            None => self.done.push(unit),
            Some(other) if other.builder.blank => *other = unit,
            Some(_) if unit.builder.blank => {}
            Some(_) => {
                let name = super::format::quote::quoted(&unit.name);
                let line = unit.tokens[0].line;
                let text = format!(
                    "template: {}:{line}: template: multiple definition of template {name}",
                    self.nodes.file
                );
                return Err(Error::new(ErrorKind::Parse, text));
            }
        }
        Ok(())
    }

    fn literal(&mut self, token: &Token) -> Parsed<String> {
        match unquote(self.text(token)) {
            Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            None => self.error("invalid syntax"),
        }
    }

    /// Actions until `end` or `else`.
    fn items(&mut self) -> Parsed<End> {
        self.nested("actions are nested too deeply", |p| {
            while p.peek_non_space().kind != Kind::Eof {
                if let Some(end) = p.text_or_action()? {
                    return Ok(end);
                }
            }
            p.error("unexpected EOF")
        })
    }

    fn text_or_action(&mut self) -> Parsed<Option<End>> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => {
                let blank = self.text(&token).trim_ascii().is_empty();
                self.unit.builder.text(token.pos, token.end, blank);
                Ok(None)
            }
            Kind::LeftDelim => {
                self.unit.action_line = token.line;
                let done = self.action();
                self.unit.action_line = 0;
                done
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Option<End>> {
        let token = self.next_non_space();
        if token.kind == Kind::Keyword(Keyword::End) {
            self.expect(Kind::RightDelim, "end")?;
            return Ok(Some(End::End));
        }
        if token.kind == Kind::Keyword(Keyword::Else) {
            let next = self.peek_non_space();
            if !matches!(next.kind, Kind::Keyword(Keyword::If | Keyword::With)) {
                self.expect(Kind::RightDelim, "else")?;
            }
            return Ok(Some(End::Else));
        }
        self.unit.builder.blank = false;
        match token.kind {
            Kind::Keyword(Keyword::Block) => self.block()?,
            Kind::Keyword(Keyword::Break) => self.leave("break")?,
            Kind::Keyword(Keyword::Continue) => self.leave("continue")?,
            Kind::Keyword(Keyword::If) => self.control("if")?,
            Kind::Keyword(Keyword::With) => self.control("with")?,
            Kind::Keyword(Keyword::Range) => self.control("range")?,
            Kind::Keyword(Keyword::Template) => self.template_call()?,
            _ => {
                self.backup();
                let pipe = self.pipeline("command", Kind::RightDelim)?;
                self.unit.builder.action(&self.nodes, self.functions, pipe);
            }
        }
        Ok(None)
    }

    fn leave(&mut self, word: &str) -> Parsed<()> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(&token, &format!("{{{{{word}}}}}"));
        }
        if self.unit.range_depth == 0 {
            return self.error(format!("{{{{{word}}}}} outside {{{{range}}}}"));
        }
        self.unit.builder.leave(word == "break");
        Ok(())
    }

    /// `if`, `with` or `range`, after the keyword. A chain of `else if` is a loop here.
    fn control(&mut self, word: &'static str) -> Parsed<()> {
        let mut open: Vec<(usize, Branch)> = Vec::new();
        loop {
            let visible = self.unit.visible.len();
            let pipe = self.pipeline(word, Kind::RightDelim)?;
            let mut branch = self
                .unit
                .builder
                .open(word, &self.nodes, self.functions, pipe);
            self.unit.range_depth += usize::from(word == "range");
            let end = self.items()?;
            self.unit.range_depth -= usize::from(word == "range");
            self.unit.builder.end_of_body(&mut branch);
            let mut more = false;
            if matches!(end, End::Else) {
                let next = self.peek().kind;
                more = (word == "if" && next == Kind::Keyword(Keyword::If))
                    || (word == "with" && next == Kind::Keyword(Keyword::With));
                if more {
                    self.next();
                } else {
                    let end = self.items()?;
                    if !matches!(end, End::End) {
                        return self.error(format!("expected end; found {}", end.words()));
                    }
                }
            }
            open.push((visible, branch));
            if !more {
                break;
            }
        }
        for (visible, branch) in open.into_iter().rev() {
            self.unit.builder.close(branch);
            self.unit.visible.truncate(visible);
        }
        Ok(())
    }

    /// `{{block "name" pipeline}} … {{end}}`: a definition together with its call.
    fn block(&mut self) -> Parsed<()> {
        let token = self.next_non_space();
        let name = self.template_name(&token, "block clause")?;
        let pipe = self.pipeline("block clause", Kind::RightDelim)?;
        let outer = mem::replace(&mut self.unit, Unit::new(name.clone()));
        let end = self.items()?;
        let unit = mem::replace(&mut self.unit, outer);
        if !matches!(end, End::End) {
            return self.error(format!("unexpected {} in block clause", end.words()));
        }
        self.finish(unit)?;
        self.call(&token, &name, Some(pipe));
        Ok(())
    }

    fn template_call(&mut self) -> Parsed<()> {
        let token = self.next_non_space();
        let name = self.template_name(&token, "template clause")?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline("template clause", Kind::RightDelim)?);
        }
        self.call(&token, &name, pipe);
        Ok(())
    }

    fn call(&mut self, token: &Token, name: &str, pipe: Option<Id>) {
        let node = self.nodes.add(
            token.pos,
            Node::Template {
                name: Str::from(name),
                pipe,
            },
        );
        self.unit
            .builder
            .call(&self.nodes, self.functions, node, pipe);
    }

    fn template_name(&mut self, token: &Token, context: &str) -> Parsed<String> {
        match token.kind {
            Kind::String | Kind::RawString => self.literal(token),
            _ => self.unexpected(token, context),
        }
    }
}
