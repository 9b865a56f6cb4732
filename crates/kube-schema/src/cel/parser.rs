//! Parses expressions. Main function: [`parse`]. Macros are in [`super::macros`].

use super::ast::{Expr, Field, Kind, Literal};
use super::lexer::{self, Issue, Token};
use super::macros;

/// Deeper nesting is rejected.
const MAX_DEPTH: usize = 120;
/// Longer sources are rejected; a definition is smaller anyway.
const MAX_SOURCE: usize = 100_000;
/// Names that variables must not have.
pub const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// The tokens that may begin an operand, in the order of the grammar; the marked ones are allowed
/// only where something ends or is optional.
const OPERAND: [(&str, bool); 19] = [
    ("'['", false),
    ("']'", true),
    ("'{'", false),
    ("'}'", true),
    ("'('", false),
    ("')'", true),
    ("'.'", false),
    ("','", true),
    ("'-'", false),
    ("'!'", false),
    ("'?'", true),
    ("'true'", false),
    ("'false'", false),
    ("'null'", false),
    ("NUM_FLOAT", false),
    ("NUM_INT", false),
    ("NUM_UINT", false),
    ("STRING", false),
    ("BYTES, IDENTIFIER", false),
];

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    issues: Vec<Issue>,
}

/// Parsing cannot continue; the issue has been recorded.
pub struct Stop;

type Parsed<T = Expr> = Result<T, Stop>;

/// The expression, or all syntax errors in the text.
pub fn parse(source: &[char]) -> Result<Expr, Vec<Issue>> {
    if source.len() > MAX_SOURCE {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {MAX_SOURCE}",
            source.len()
        );
        return Err(vec![Issue { at: 0, message }]);
    }
    let (tokens, issues) = lexer::tokens(source);
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        issues,
    };
    let expr = parser.expr();
    if let Ok(expr) = expr {
        if parser.peek().kind != lexer::Kind::End {
            let token = parser.peek().clone();
            // A superfluous token is distinguished from a wrong one.
            let last = parser
                .tokens
                .get(parser.at + 1)
                .is_none_or(|t| t.kind == lexer::Kind::End);
            let word = if last { "extraneous" } else { "mismatched" };
            parser.issues.push(Issue {
                at: token.at,
                message: format!(
                    "Syntax error: {word} input '{}' expecting <EOF>",
                    token.text
                ),
            });
        }
        if parser.issues.is_empty() {
            return Ok(expr);
        }
    }
    parser.issues.sort_by_key(|issue| issue.at);
    Err(parser.issues)
}

/// Binary operators by precedence, lowest first.
const LEVELS: &[&[(&str, &str)]] = &[
    &[("||", "_||_")],
    &[("&&", "_&&_")],
    &[
        ("==", "_==_"),
        ("!=", "_!=_"),
        ("<=", "_<=_"),
        (">=", "_>=_"),
        ("<", "_<_"),
        (">", "_>_"),
        ("in", "@in"),
    ],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn at_end(&self) -> bool {
        self.peek().kind == lexer::Kind::End
    }

    fn is(&self, op: &str) -> bool {
        matches!(self.peek().kind, lexer::Kind::Op(o) if o == op)
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn take(&mut self, op: &str) -> Option<usize> {
        if self.is(op) {
            Some(self.advance().at)
        } else {
            None
        }
    }

    fn fail<T>(&mut self, at: usize, message: String) -> Parsed<T> {
        self.issues.push(Issue { at, message });
        Err(Stop)
    }

    /// The error that an operand, or one of `others`, is expected.
    fn expected_operand<T>(&mut self, others: &[&str]) -> Parsed<T> {
        let words: Vec<&str> = OPERAND
            .iter()
            .filter(|(word, marked)| !marked || others.contains(word))
            .map(|(word, _)| *word)
            .collect();
        self.expected_one(&format!("expecting {{{}}}", words.join(", ")), true)
    }

    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        self.expected_one(what, false)
    }

    fn expected_one<T>(&mut self, what: &str, operand: bool) -> Parsed<T> {
        let token = self.peek().clone();
        let begins = |t: &Token| match t.kind {
            lexer::Kind::Op(op) => matches!(op, "[" | "{" | "(" | "." | "-" | "!"),
            lexer::Kind::End | lexer::Kind::Escaped => false,
            _ => true,
        };
        let before = self
            .at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .map(|t| t.kind.clone());
        let alone = token.kind == lexer::Kind::End && before == Some(lexer::Kind::Op("!"));
        if token.kind == lexer::Kind::End
            && before == Some(lexer::Kind::Op("-"))
            && self.tokens.len() == 2
        {
            // A number could follow as well.
            self.issues.push(Issue {
                at: token.at,
                message: "Syntax error: no viable alternative at input '-'".into(),
            });
        }
        let extra = operand && (alone || self.tokens.get(self.at + 1).is_some_and(begins));
        let word = if extra { "extraneous" } else { "mismatched" };
        self.fail(
            token.at,
            format!("Syntax error: {word} input '{}' {what}", token.text),
        )
    }

    /// The error for a missing operand. Parsing continues after a superfluous token, and before an
    /// operator as if there were an operand.
    fn no_operand(&mut self) -> Parsed {
        let token = self.peek().clone();
        let stop = self.expected_operand(&[]);
        let extra = self
            .issues
            .last()
            .is_some_and(|issue| issue.message.starts_with("Syntax error: extraneous"));
        match token.kind {
            lexer::Kind::Op(_) if extra => {
                self.advance();
                self.unary()
            }
            lexer::Kind::Op(op)
                if LEVELS
                    .iter()
                    .copied()
                    .flatten()
                    .any(|(known, _)| *known == op) =>
            {
                Ok(Expr::ident(token.at, ""))
            }
            _ => stop,
        }
    }

    fn need(&mut self, op: &str) -> Parsed<usize> {
        match self.take(op) {
            Some(at) => Ok(at),
            // No token is assumed to be missing if the text could not end after it.
            None if self.at_end() && op != ":" => {
                let at = self.peek().at;
                self.fail(at, format!("Syntax error: missing '{op}' at '<EOF>'"))
            }
            None => self.expected(&format!("expecting '{op}'")),
        }
    }

    fn expr(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(
                0,
                format!("expression recursion limit exceeded: {MAX_DEPTH}"),
            );
        }
        let condition = self.binary(0)?;
        let result = match self.take("?") {
            None => condition,
            Some(at) => {
                let yes = self.binary(0)?;
                self.need(":")?;
                let no = self.expr()?;
                Expr::call(at, "_?_:_", vec![condition, yes, no])
            }
        };
        self.depth -= 1;
        Ok(result)
    }

    fn binary(&mut self, level: usize) -> Parsed {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        // A chain is a loop here, but later a deep tree.
        let mut links = 0;
        while let Some((op, name)) = operators.iter().find(|(op, _)| self.is(op)) {
            let at = self.take(op).unwrap_or(0);
            let right = self.binary(level + 1)?;
            left = Expr::call(at, name, vec![left, right]);
            links += 1;
            if links > MAX_DEPTH * 2 {
                return self.fail(
                    at,
                    format!("expression recursion limit exceeded: {}", MAX_DEPTH * 2),
                );
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        for (op, name) in [("!", "!_"), ("-", "-_")] {
            let Some(at) = self.take(op) else { continue };
            let mut times = 1;
            while self.take(op).is_some() {
                times += 1;
            }
            if op == "-"
                && times == 1
                && let lexer::Kind::Literal(Literal::Whole(n)) = self.peek().kind.clone()
            {
                self.advance();
                let literal = Expr::new(at, Kind::Literal(Literal::Int((n as i64).wrapping_neg())));
                return self.members(literal);
            }
            if op == "-"
                && times == 1
                && let lexer::Kind::Literal(Literal::Double(f)) = self.peek().kind.clone()
            {
                self.advance();
                return self.members(Expr::new(at, Kind::Literal(Literal::Double(-f))));
            }
            let operand = self.member()?;
            return Ok(if times % 2 == 1 {
                Expr::call(at, name, vec![operand])
            } else {
                operand
            });
        }
        self.member()
    }

    fn member(&mut self) -> Parsed {
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut expr: Expr) -> Parsed {
        let mut links = 0;
        loop {
            links += 1;
            if links > MAX_DEPTH {
                return self.fail(
                    expr.at,
                    format!("expression recursion limit exceeded: {MAX_DEPTH}"),
                );
            }
            if let Some(at) = self.take(".") {
                let optional = self.take("?").is_some();
                let name = self.field_name(optional)?;
                if !optional && let Some(open) = self.take("(") {
                    let args = self.arguments(")")?;
                    expr = self.method(open, expr, name, args)?;
                } else {
                    expr = Expr::new(
                        at,
                        Kind::Select {
                            operand: Box::new(expr),
                            field: name,
                            optional,
                            test: false,
                        },
                    );
                }
            } else if let Some(at) = self.take("[") {
                let optional = self.take("?").is_some();
                if !optional && self.at_end() {
                    return self.expected_operand(&["'?'"]);
                }
                let index = self.expr()?;
                self.need("]")?;
                expr = Expr::call(
                    at,
                    if optional { "_[?_]" } else { "_[_]" },
                    vec![expr, index],
                );
            } else if self.is("{")
                && expr
                    .qualified()
                    .is_some_and(|n| n.chars().any(|c| c.is_ascii_uppercase()) || n.contains('.'))
            {
                let name = expr.qualified().unwrap_or_default();
                let open = self.need("{")?;
                expr = self.fields(open, name)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn fields(&mut self, open: usize, name: String) -> Parsed {
        let mut fields = Vec::new();
        while !self.is("}") {
            let optional = self.take("?").is_some();
            if self.at_end() {
                let others = if optional { "" } else { "'}', ',', '?', " };
                return self.expected(&format!("expecting {{{others}IDENTIFIER, ESC_IDENTIFIER}}"));
            }
            let name = self.identifier()?;
            let at = self.need(":")?;
            fields.push(Field {
                name,
                at,
                value: self.expr()?,
                optional,
            });
            if self.take(",").is_some() {
                if self.at_end() {
                    break;
                }
            } else if !self.is("}") {
                return self.expected("expecting {'}', ','}");
            }
        }
        self.need("}")?;
        Ok(Expr::new(open, Kind::Struct(name, fields)))
    }

    fn identifier(&mut self) -> Parsed<String> {
        match self.peek().kind.clone() {
            lexer::Kind::Ident(name) => {
                self.advance();
                Ok(name)
            }
            lexer::Kind::Op("in") => {
                let at = self.peek().at;
                self.fail(
                    at,
                    "Syntax error: no viable alternative at input '.in'".into(),
                )
            }
            _ => self.expected("expecting IDENTIFIER"),
        }
    }

    /// The name after a dot: a field or a function, which the real parser distinguishes by the next
    /// token.
    fn field_name(&mut self, optional: bool) -> Parsed<String> {
        let token = self.peek().clone();
        match token.kind {
            lexer::Kind::Ident(_) | lexer::Kind::Op("in") => self.identifier(),
            lexer::Kind::Escaped => self.fail(token.at, "unsupported syntax: '`'".into()),
            _ if optional => {
                let message = format!(
                    "Syntax error: mismatched input '{}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}",
                    token.text
                );
                self.issues.push(Issue {
                    at: token.at,
                    message,
                });
                self.fail(token.at, "unsupported ident kind".into())
            }
            kind => {
                let text = if kind == lexer::Kind::End {
                    ""
                } else {
                    &token.text
                };
                self.fail(
                    token.at,
                    format!("Syntax error: no viable alternative at input '.{text}'"),
                )
            }
        }
    }

    fn arguments(&mut self, end: &str) -> Parsed<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(end).is_some() {
            return Ok(args);
        }
        if self.at_end() {
            return self.expected_operand(&["')'"]);
        }
        loop {
            args.push(self.expr()?);
            if self.take(",").is_none() {
                break;
            }
        }
        self.need(end)?;
        Ok(args)
    }

    fn expand(
        &mut self,
        found: Option<Result<Expr, Issue>>,
        otherwise: impl FnOnce() -> Expr,
    ) -> Parsed {
        match found {
            None => Ok(otherwise()),
            Some(Ok(expr)) => Ok(expr),
            Some(Err(issue)) => self.fail(issue.at, issue.message),
        }
    }

    fn method(&mut self, open: usize, target: Expr, name: String, args: Vec<Expr>) -> Parsed {
        let expanded = macros::method(open, &target, &name, &args);
        self.expand(expanded, || {
            Expr::new(
                open,
                Kind::Call {
                    function: name,
                    target: Some(Box::new(target)),
                    args,
                },
            )
        })
    }

    fn primary(&mut self) -> Parsed {
        let token = self.peek().clone();
        match token.kind {
            lexer::Kind::Literal(literal) => {
                self.advance();
                let literal = match literal {
                    Literal::Whole(n) => match i64::try_from(n) {
                        Ok(n) => Literal::Int(n),
                        Err(_) => return self.fail(token.at, "invalid int literal".into()),
                    },
                    other => other,
                };
                Ok(Expr::new(token.at, Kind::Literal(literal)))
            }
            lexer::Kind::Ident(name) => {
                self.advance();
                self.named(token.at, name)
            }
            lexer::Kind::Op(".") => {
                self.advance();
                let name = self.identifier()?;
                self.named(token.at + 1, name)
            }
            lexer::Kind::Op("(") => {
                self.advance();
                let inner = self.expr()?;
                self.need(")")?;
                Ok(inner)
            }
            lexer::Kind::Op("[") => {
                self.advance();
                self.list(token.at)
            }
            lexer::Kind::Op("{") => {
                self.advance();
                self.map(token.at)
            }
            _ => self.no_operand(),
        }
    }

    fn named(&mut self, at: usize, name: String) -> Parsed {
        if let Some(open) = self.take("(") {
            let args = self.arguments(")")?;
            let expanded = macros::function(open, &name, &args);
            return self.expand(expanded, || Expr::call(open, &name, args));
        }
        if RESERVED.contains(&name.as_str()) {
            return self.fail(at, format!("reserved identifier: {name}"));
        }
        Ok(Expr::ident(at, &name))
    }

    fn list(&mut self, at: usize) -> Parsed {
        let mut items = Vec::new();
        if self.at_end() {
            return self.expected_operand(&["']'", "','", "'?'"]);
        }
        while !self.is("]") {
            let optional = self.take("?").is_some();
            items.push((self.expr()?, optional));
            if self.take(",").is_none() || self.at_end() {
                break;
            }
        }
        self.need("]")?;
        Ok(Expr::new(at, Kind::List(items)))
    }

    fn map(&mut self, at: usize) -> Parsed {
        let mut entries = Vec::new();
        if self.at_end() {
            return self.expected_operand(&["'}'", "','", "'?'"]);
        }
        while !self.is("}") {
            let optional = self.take("?").is_some();
            let key = self.expr()?;
            self.need(":")?;
            entries.push((key, self.expr()?, optional));
            if self.take(",").is_none() || self.at_end() {
                break;
            }
        }
        self.need("}")?;
        Ok(Expr::new(at, Kind::Map(entries)))
    }
}
