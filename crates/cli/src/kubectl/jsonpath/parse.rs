//! The syntax of kubectl's JSONPath templates. Main function: [`parse`].

use tiphys_gocompat::{template::format::quote, text};

/// A part of a template, or a step in an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// The steps of an action in braces.
    List(Vec<Node>),
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Field(String),
    /// `*` as a field.
    Wildcard,
    /// `..`
    Recursive,
    Slice(Slice),
    /// `[0,2]`
    Union(Vec<Vec<Node>>),
    Filter(Filter),
    /// `range` and `end`.
    Word(String),
}

/// `[start:end:step]`; `[2]` is `[2:3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub step: Option<i64>,
    /// The end follows from the start, which may be the last element.
    pub derived: bool,
}

/// `[?(left operator right)]`; without an operator: elements that have the left side.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub left: Vec<Node>,
    pub comparison: Option<(String, Vec<Node>)>,
}

const OPERATOR: [char; 4] = ['!', '<', '>', '='];

/// Parses a template: texts, and actions in braces.
pub fn parse(template: &str) -> Result<Vec<Node>, String> {
    let mut parser = Parser {
        input: template.chars().collect(),
        at: 0,
    };
    let mut nodes = Vec::new();
    loop {
        let start = parser.at;
        while parser.peek().is_some_and(|c| c != '{') {
            parser.at += 1;
        }
        if parser.at > start {
            nodes.push(Node::Text(parser.since(start)));
        }
        if parser.take().is_none() {
            return Ok(nodes);
        }
        nodes.push(Node::List(parser.action()?));
    }
}

/// The steps of an action without its braces. A filter ends at the first parenthesis, and brackets
/// at the first bracket, so actions are never nested deeply.
fn action(text: &str) -> Result<Vec<Node>, String> {
    let nodes = parse(&format!("{{{text}}}"))?;
    match nodes.into_iter().next() {
        Some(Node::List(steps)) => Ok(steps),
        _ => Ok(Vec::new()),
    }
}

struct Parser {
    input: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn since(&self, start: usize) -> String {
        self.input[start..self.at].iter().collect()
    }

    fn skip(&mut self, words: &str) -> bool {
        let rest = &self.input[self.at..];
        let found =
            words.chars().count() <= rest.len() && words.chars().zip(rest).all(|(a, b)| a == *b);
        if found {
            self.at += words.chars().count();
        }
        found
    }

    /// Up to and with the closing brace; the opening one was read.
    fn action(&mut self) -> Result<Vec<Node>, String> {
        let mut steps = Vec::new();
        loop {
            if self.skip("}") {
                return Ok(steps);
            }
            if self.skip("[?(") {
                steps.push(Node::Filter(self.filter()?));
                continue;
            }
            if self.skip("..") {
                if matches!(steps.last(), Some(Node::Recursive)) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                steps.push(Node::Recursive);
                if self.peek().is_some_and(is_alphanumeric) {
                    steps.push(self.field());
                }
                continue;
            }
            let start = self.at;
            match self.take() {
                None | Some('\n' | '\r') => return Err("unclosed action".to_owned()),
                // The current object, which is where an action starts.
                Some(' ' | '@' | '$') => {}
                Some('[') => self.brackets(&mut steps)?,
                Some(quote @ ('"' | '\'')) => steps.push(self.quoted(start, quote)?),
                Some('.') => steps.push(self.field()),
                Some(c) if c == '+' || c == '-' || c.is_numeric() => {
                    steps.push(self.number(start)?);
                }
                Some(c) if is_alphanumeric(c) => steps.push(self.word(start)),
                Some(c) => {
                    return Err(format!(
                        "unrecognized character in action: U+{:04X} {}",
                        u32::from(c),
                        text::quote_rune(c)
                    ));
                }
            }
        }
    }

    fn word(&mut self, start: usize) -> Node {
        while self.peek().is_some_and(|c| !is_terminator(c)) {
            self.at += 1;
        }
        match self.since(start).as_str() {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            word => Node::Word(word.to_owned()),
        }
    }

    fn number(&mut self, start: usize) -> Result<Node, String> {
        while self.peek().is_some_and(|c| c == '.' || c.is_numeric()) {
            self.at += 1;
        }
        let text = self.since(start);
        if let Ok(number) = text.parse() {
            return Ok(Node::Int(number));
        }
        text.parse()
            .map(Node::Float)
            .map_err(|_| format!("cannot parse number {text}"))
    }

    /// A field, whose point was read; a backslash takes away a character's meaning.
    fn field(&mut self) -> Node {
        let start = self.at;
        while let Some(c) = self.peek() {
            if c == '\\' {
                self.at = (self.at + 2).min(self.input.len());
            } else if is_terminator(c) {
                break;
            } else {
                self.at += 1;
            }
        }
        match self.since(start).as_str() {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<Node, String> {
        loop {
            match self.take() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some(c) if c == quote && self.input[self.at - 2] != '\\' => break,
                Some(_) => {}
            }
        }
        let literal = self.since(start);
        unquoted(&literal)
            .map(Node::Text)
            .ok_or_else(|| format!("unquote string {literal} error invalid syntax"))
    }

    /// An index, a slice, a key in quotes, or several of them.
    fn brackets(&mut self, steps: &mut Vec<Node>) -> Result<(), String> {
        let start = self.at;
        loop {
            match self.take() {
                None | Some('\n') => return Err("unterminated array".to_owned()),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let text: String = self.input[start..self.at - 1].iter().collect();
        let text = if text == "*" { ":" } else { text.as_str() };
        if text.contains(',') {
            let each = text
                .split(',')
                .map(|part| action(&format!("[{}]", part.trim_matches(' '))));
            steps.push(Node::Union(each.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            steps.extend(action(&format!(".{key}"))?);
            return Ok(());
        }
        steps.push(Node::Slice(slice(text)?));
        Ok(())
    }

    /// The rest of a filter, after `[?(`.
    fn filter(&mut self) -> Result<Filter, String> {
        let start = self.at;
        let mut quote = None;
        let mut closed = false;
        loop {
            match self.take() {
                None | Some('\n') => return Err("unterminated filter".to_owned()),
                Some(c @ ('"' | '\'')) => match quote {
                    None => quote = Some(c),
                    Some(opening) if opening == c && self.input[self.at - 2] != '\\' => {
                        closed = true;
                    }
                    Some(_) => {}
                },
                Some(')') if quote.is_some() == closed => break,
                Some(_) => {}
            }
        }
        let text: String = self.input[start..self.at - 1].iter().collect();
        if self.take() != Some(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let Some((left, operator, right)) = comparison(&text) else {
            return Ok(Filter {
                left: action(&text)?,
                comparison: None,
            });
        };
        Ok(Filter {
            left: action(left)?,
            comparison: Some((operator.to_owned(), action(right)?)),
        })
    }
}

/// Left side, operator and right side; none of them is empty.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.find(OPERATOR).filter(|at| *at > 0)?;
    let (left, rest) = text.split_at(at);
    let length = rest
        .find(|c: char| !OPERATOR.contains(&c))
        .unwrap_or(rest.len() - 1);
    let (operator, right) = rest.split_at(length);
    (!operator.is_empty() && !right.is_empty()).then_some((left, operator, right))
}

fn slice(text: &str) -> Result<Slice, String> {
    let invalid = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let digits = |part: &&str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        digits.chars().all(|c| c.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(digits) {
        return Err(invalid());
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => part
            .parse::<i64>()
            .map(Some)
            .map_err(|_| format!("array index {part} is not a number")),
    };
    let (start, step) = (number(0)?, number(2)?);
    let derived = parts.len() == 1;
    let end = if derived {
        Some(start.unwrap_or(0).saturating_add(1))
    } else {
        number(1)?
    };
    Ok(Slice {
        start,
        end,
        step,
        derived,
    })
}

/// The text of a literal in double or single quotes.
fn unquoted(literal: &str) -> Option<String> {
    let mark = literal.chars().next()?;
    let inner = literal.strip_prefix(mark)?.strip_suffix(mark)?;
    if !inner.contains(['\\', mark]) {
        return Some(inner.to_owned());
    }
    // Go's rules know double quotes: the two change roles.
    let bytes = if mark == '"' {
        quote::unquote(literal.as_bytes())?
    } else {
        let mut swapped = String::from('"');
        let mut escaped = false;
        for c in inner.chars() {
            match c {
                '"' if escaped => return None,
                '"' => swapped.push_str("\\\""),
                '\'' if escaped => {
                    // The backslash was written already.
                    swapped.pop();
                    swapped.push('\'');
                }
                '\'' => return None,
                c => swapped.push(c),
            }
            escaped = c == '\\' && !escaped;
        }
        swapped.push('"');
        quote::unquote(swapped.as_bytes())?
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_terminator(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_reference() {
        for (template, error) in [
            ("{.a", "unclosed action"),
            ("{.a[0}", "unterminated array"),
            ("{.a[x]}", "invalid array index x"),
            ("{.a[-]}", "array index - is not a number"),
            ("{.a[?(@.b}", "unterminated filter"),
            ("{.a[?(@.b)}", "unclosed array expect ]"),
            ("{\"a}", "unterminated quoted string"),
            ("{....b}", "invalid multiple recursive descent"),
            ("{~}", "unrecognized character in action: U+007E '~'"),
            ("{1.2.3}", "cannot parse number 1.2.3"),
        ] {
            assert_eq!(parse(template), Err(error.to_owned()), "{template}");
        }
    }

    #[test]
    fn literals_are_unquoted() {
        for (literal, text) in [
            (r#""a\tb""#, Some("a\tb")),
            (r"'a\nb'", Some("a\nb")),
            (r#"'say "x"'"#, Some("say \"x\"")),
            (r#"'say "x"\n'"#, Some("say \"x\"\n")),
            (r"'it\'s'", Some("it's")),
            (r"'a\\'", Some("a\\")),
            (r#"'a\"'"#, None),
            (r#""\q""#, None),
        ] {
            assert_eq!(unquoted(literal).as_deref(), text, "{literal}");
        }
    }
}
