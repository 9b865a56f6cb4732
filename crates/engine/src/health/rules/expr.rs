//! Parses the content of a line of a rule: conditions, values, messages.
//!
//! Main type: [`Reader`], a recursive-descent parser. It knows the defined names, so that a
//! misspelt one is an error in the rule and not a value that is always missing.

use super::syntax::{Comparison, Expr, Function, ListFunction};

/// What a rule may refer to besides the object.
#[derive(Default)]
pub struct Names {
    names: Vec<String>,
    /// Nesting depth of loops over lists.
    pub items: usize,
}

impl Names {
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn truncate(&mut self, to: usize) {
        self.names.truncate(to);
    }

    pub fn extend(&mut self, name: Option<String>) {
        self.names.extend(name);
    }

    /// The most recent definition of this name.
    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|known| known == name)
    }
}

pub struct Reader<'t> {
    rest: &'t str,
    names: &'t mut Names,
    depth: usize,
}

type Read<T> = Result<T, String>;

/// Deeper nesting than any rule needs.
const MAX_DEPTH: usize = 64;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Different),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl<'t> Reader<'t> {
    pub fn new(text: &'t str, names: &'t mut Names) -> Self {
        Self {
            rest: text.trim(),
            names,
            depth: 0,
        }
    }

    /// Fails if text remains.
    pub fn end(&self) -> Read<()> {
        if self.rest.trim().is_empty() {
            Ok(())
        } else {
            Err(format!("unexpected `{}`", self.rest.trim()))
        }
    }

    pub fn expr(&mut self) -> Read<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("nested too deeply".into());
        }
        let mut left = self.conjunction()?;
        while self.word("or") {
            left = Expr::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conjunction(&mut self) -> Read<Expr> {
        let mut left = self.negation()?;
        while self.word("and") {
            left = Expr::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Read<Expr> {
        let mut nots = 0;
        while self.word("not") {
            nots += 1;
        }
        let expr = self.comparison()?;
        Ok((0..nots).fold(expr, |expr, _| Expr::Not(Box::new(expr))))
    }

    fn comparison(&mut self) -> Read<Expr> {
        let left = self.sum()?;
        for (mark, how) in COMPARISONS {
            if self.mark(mark) {
                return Ok(Expr::Compare(how, Box::new(left), Box::new(self.sum()?)));
            }
        }
        if !self.word("in") {
            return Ok(left);
        }
        self.expect("(")?;
        Ok(Expr::In(Box::new(left), self.arguments()?))
    }

    fn sum(&mut self) -> Read<Expr> {
        let mut left = self.primary()?;
        loop {
            if self.mark("+ ") {
                left = Expr::Add(Box::new(left), Box::new(self.primary()?));
            } else if self.mark("- ") {
                left = Expr::Subtract(Box::new(left), Box::new(self.primary()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn primary(&mut self) -> Read<Expr> {
        self.rest = self.rest.trim_start();
        let first = self
            .rest
            .chars()
            .next()
            .ok_or("something is missing at the end")?;
        match first {
            '"' | '\'' => {
                let text = self.quoted(first)?;
                match text {
                    Expr::Text(kind) if self.word("is") => self.condition(kind),
                    text => Ok(text),
                }
            }
            '(' => {
                self.expect("(")?;
                let inner = self.expr()?;
                self.expect(")")?;
                self.path(inner)
            }
            '0'..='9' => {
                let end = self
                    .rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(self.rest.len());
                let number = self.take(end).parse().map_err(|_| "not a number")?;
                Ok(Expr::Number(number))
            }
            '.' => self.item(),
            _ => self.named(),
        }
    }

    /// `.` or `.field`.
    fn item(&mut self) -> Read<Expr> {
        if self.names.items == 0 {
            return Err("there is no item here for `.` to mean".into());
        }
        if self.rest[1..].starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return self.path(Expr::Item);
        }
        self.take(1);
        self.path(Expr::Item)
    }

    fn named(&mut self) -> Read<Expr> {
        let name = self
            .identifier()
            .ok_or_else(|| format!("unexpected `{}`", self.rest))?
            .to_owned();
        if self.word("is") {
            return self.condition(name);
        }
        if self.rest.starts_with('(') {
            self.take(1);
            let value = self.function(&name)?;
            return self.path(value);
        }
        let start = match name.as_str() {
            "null" => return Ok(Expr::Null),
            "true" | "false" => return Ok(Expr::Bool(name == "true")),
            "index" if self.names.items > 0 => return Ok(Expr::Index),
            "conditions" => conditions(),
            "apiVersion" | "kind" | "metadata" | "spec" | "status" => Expr::Root(name),
            _ => Expr::Name(
                self.names
                    .find(&name)
                    .ok_or_else(|| format!("`{name}` is not known here"))?,
            ),
        };
        self.path(start)
    }

    /// Any number of `.field` and `["field"]`.
    fn path(&mut self, mut of: Expr) -> Read<Expr> {
        loop {
            if self.rest.starts_with('.') {
                self.take(1);
                let name = self
                    .identifier()
                    .ok_or("a field name must follow the dot")?;
                of = field(of, name);
            } else if self.rest.starts_with("[\"") {
                self.take(1);
                let Expr::Text(name) = self.quoted('"')? else {
                    return Err("a field name has no holes".into());
                };
                self.expect("]")?;
                of = field(of, &name);
            } else {
                return Ok(of);
            }
        }
    }

    /// Parses what follows `TYPE is`: a status, `not` a status, or `present`. It tests the current
    /// item, or outside of a loop any of the object's conditions.
    fn condition(&mut self, kind: String) -> Read<Expr> {
        let negated = self.word("not");
        let status = self
            .identifier()
            .ok_or("expected a condition's status, or `present`")?
            .to_owned();
        let kind = equal(field(Expr::Item, "type"), Expr::Text(kind));
        let test = match (negated, status.as_str()) {
            (false, "present") => kind,
            (true, "present") => return Err("say `not TYPE is present`".into()),
            _ => {
                let how = if negated {
                    Comparison::Different
                } else {
                    Comparison::Equal
                };
                let status = Expr::Compare(
                    how,
                    Box::new(field(Expr::Item, "status")),
                    Box::new(Expr::Text(status)),
                );
                Expr::And(Box::new(kind), Box::new(status))
            }
        };
        if self.names.items > 0 {
            return Ok(test);
        }
        let (list, each) = (Box::new(conditions()), Some(Box::new(test)));
        Ok(Expr::OverList {
            what: ListFunction::Any,
            list,
            each,
            separator: None,
        })
    }

    fn function(&mut self, name: &str) -> Read<Expr> {
        if let Some(what) = ListFunction::named(name) {
            let list = Box::new(self.expr()?);
            self.names.items += 1;
            let each = if self.mark(",") {
                Some(Box::new(self.expr()?))
            } else {
                None
            };
            self.names.items -= 1;
            let separator = if self.mark(",") {
                Some(Box::new(self.expr()?))
            } else {
                None
            };
            self.expect(")")?;
            return Ok(Expr::OverList {
                what,
                list,
                each,
                separator,
            });
        }
        let (function, wanted) =
            Function::named(name).ok_or_else(|| format!("there is no function `{name}`"))?;
        let arguments = self.arguments()?;
        if arguments.len() != wanted {
            return Err(format!(
                "`{name}` takes {wanted} values, not {}",
                arguments.len()
            ));
        }
        Ok(Expr::Call(function, arguments))
    }

    /// Values up to the closing parenthesis.
    fn arguments(&mut self) -> Read<Vec<Expr>> {
        let mut values = vec![self.expr()?];
        while self.mark(",") {
            values.push(self.expr()?);
        }
        self.expect(")")?;
        Ok(values)
    }

    /// A quoted text, with `{expressions}`, `
    /// ` for a newline, and `\` to escape a quote or brace.
    fn quoted(&mut self, quote: char) -> Read<Expr> {
        self.take(1);
        let mut parts = Vec::new();
        let mut text = String::new();
        loop {
            let next = self.rest.chars().next().ok_or("a quote is not closed")?;
            self.take(next.len_utf8());
            match next {
                _ if next == quote => break,
                '\\' => {
                    let meant = self.rest.chars().next().ok_or("a quote is not closed")?;
                    self.take(meant.len_utf8());
                    text.push(if meant == 'n' { '\n' } else { meant });
                }
                '{' => {
                    if !text.is_empty() {
                        parts.push(Expr::Text(std::mem::take(&mut text)));
                    }
                    parts.push(self.expr()?);
                    self.rest = self
                        .rest
                        .trim_start()
                        .strip_prefix('}')
                        .ok_or("a hole is not closed with `}`")?;
                }
                other => text.push(other),
            }
        }
        if parts.is_empty() {
            return Ok(Expr::Text(text));
        }
        if !text.is_empty() {
            parts.push(Expr::Text(text));
        }
        Ok(Expr::Template(parts))
    }

    /// A name after this keyword, if the keyword is next.
    pub fn name_after(&mut self, word: &str) -> Read<Option<String>> {
        if !self.word(word) {
            return Ok(None);
        }
        self.identifier()
            .map(|name| Some(name.to_owned()))
            .ok_or_else(|| format!("a name must follow `{word}`"))
    }

    fn identifier(&mut self) -> Option<&'t str> {
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let name = self.take(end);
        self.rest = if self.rest.starts_with(' ') {
            self.rest.trim_start()
        } else {
            self.rest
        };
        (!name.is_empty()).then_some(name)
    }

    /// Consumes a whole word if it is next.
    pub fn word(&mut self, word: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(word) else {
            return false;
        };
        let whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if whole {
            self.rest = rest.trim_start();
        }
        whole
    }

    pub fn mark(&mut self, mark: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(mark) else {
            return false;
        };
        self.rest = rest.trim_start();
        true
    }

    fn expect(&mut self, mark: &str) -> Read<()> {
        if self.mark(mark) {
            Ok(())
        } else {
            Err(format!("expected `{mark}` at `{}`", self.rest))
        }
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}

fn field(of: Expr, name: &str) -> Expr {
    Expr::Field(Box::new(of), name.to_owned())
}

fn conditions() -> Expr {
    field(Expr::Root("status".to_owned()), "conditions")
}

fn equal(a: Expr, b: Expr) -> Expr {
    Expr::Compare(Comparison::Equal, Box::new(a), Box::new(b))
}
