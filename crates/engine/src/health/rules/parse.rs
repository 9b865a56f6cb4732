//! Parses rule files: their lines and blocks.
//!
//! Main function: [`parse`]. A file contains `kind GROUP/KIND, …` blocks and `rules NAME` blocks
//! that kinds can `use`; blocks are indented. The content of a line is parsed by [`super::expr`].

use super::{
    expr::{Names, Reader},
    syntax::{Expr, Statement},
};
use crate::types::HealthStatus;
use std::collections::BTreeMap;

/// An error in a rule file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}: {why}")]
pub struct RuleError {
    pub file: String,
    pub line: usize,
    pub why: String,
}

/// The rules of one or more kinds.
#[derive(Debug)]
pub struct KindRules {
    /// Group and kind; `*` in them matches any text.
    pub kinds: Vec<(String, String)>,
    pub rules: Vec<Statement>,
}

/// A line, with the lines of its block.
#[derive(Debug)]
pub struct Line<'t> {
    number: usize,
    text: String,
    indent: usize,
    block: Vec<Line<'t>>,
    file: &'t str,
}

/// `rules` blocks by name.
pub type Shared<'t> = BTreeMap<String, Vec<Line<'t>>>;

/// Parses one file. Its kinds can use its own `rules` blocks and the `common` ones.
pub fn parse(file: &str, text: &str, common: &Shared) -> Result<Vec<KindRules>, RuleError> {
    let mut own = Shared::new();
    let mut found = Vec::new();
    for line in blocks(file, text)? {
        if let Some(name) = line.text.strip_prefix("rules ") {
            own.insert(name.trim().to_owned(), line.block);
        } else if let Some(names) = line.text.strip_prefix("kind ") {
            let mut parser = Parser {
                shared: [&own, common],
                names: Names::default(),
                uses: 0,
            };
            let kinds =
                kinds_of(names).ok_or_else(|| line.wrong("expected `kind GROUP/KIND, KIND, …`"))?;
            found.push(KindRules {
                kinds,
                rules: parser.block(&line.block)?,
            });
        } else {
            return Err(line.wrong("expected `kind GROUP/KIND` or `rules NAME`"));
        }
    }
    Ok(found)
}

/// The `rules` blocks of a file that contains nothing else.
pub fn shared<'t>(file: &'t str, text: &str) -> Result<Shared<'t>, RuleError> {
    blocks(file, text)?
        .into_iter()
        .map(|line| match line.text.strip_prefix("rules ") {
            Some(name) => Ok((name.trim().to_owned(), line.block)),
            None => Err(line.wrong("expected `rules NAME`")),
        })
        .collect()
}

/// A kind without a group has that of the kind before it.
fn kinds_of(text: &str) -> Option<Vec<(String, String)>> {
    let mut group = None;
    text.split(',')
        .map(|name| {
            let kind = match name.trim().split_once('/') {
                Some((of, kind)) => {
                    group = Some(of);
                    kind
                }
                None => name.trim(),
            };
            (!kind.is_empty()).then_some((group?.to_owned(), kind.to_owned()))
        })
        .collect()
}

/// Nests lines below the line that they belong to. `#` starts a comment line.
fn blocks<'t>(file: &'t str, text: &str) -> Result<Vec<Line<'t>>, RuleError> {
    let mut open: Vec<Line> = vec![Line {
        number: 0,
        text: String::new(),
        indent: 0,
        block: Vec::new(),
        file,
    }];
    for (at, raw) in text.lines().enumerate() {
        let content = raw.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indent = raw.len() - raw.trim_start_matches(' ').len() + 1;
        let line = Line {
            number: at + 1,
            text: content.to_owned(),
            indent,
            block: Vec::new(),
            file,
        };
        if raw.starts_with('\t') {
            return Err(line.wrong("indent with spaces"));
        }
        close(&mut open, indent);
        open.push(line);
    }
    close(&mut open, 1);
    Ok(open.pop().map_or_else(Vec::new, |top| top.block))
}

/// Closes the blocks that a line of this indentation is not part of.
fn close(open: &mut Vec<Line>, indent: usize) {
    while open.last().is_some_and(|line| line.indent >= indent) {
        let Some(done) = open.pop() else { return };
        if let Some(parent) = open.last_mut() {
            parent.block.push(done);
        }
    }
}

impl Line<'_> {
    fn wrong(&self, why: impl Into<String>) -> RuleError {
        RuleError {
            file: self.file.to_owned(),
            line: self.number,
            why: why.into(),
        }
    }

    /// The line joined with its continuation lines.
    fn joined(&self) -> String {
        self.block.iter().fold(self.text.clone(), |text, more| {
            format!("{text} {}", more.joined())
        })
    }
}

/// Deeper than any file needs; catches a block that uses itself.
const MAX_USES: usize = 8;

struct Parser<'s, 't> {
    shared: [&'s Shared<'t>; 2],
    names: Names,
    uses: usize,
}

impl Parser<'_, '_> {
    fn block(&mut self, lines: &[Line]) -> Result<Vec<Statement>, RuleError> {
        let outer = self.names.len();
        let mut statements = Vec::new();
        for line in lines {
            self.statement(line, &mut statements)?;
        }
        self.names.truncate(outer);
        Ok(statements)
    }

    fn statement(&mut self, line: &Line, into: &mut Vec<Statement>) -> Result<(), RuleError> {
        let (word, rest) = line.text.split_once(' ').unwrap_or((&line.text, ""));
        match word {
            "use" => return self.shared(line, rest.trim(), into),
            "if" => {
                let when = self.read(line, rest, |reader| reader.expr())?;
                into.push(Statement::If {
                    when,
                    body: self.block(&line.block)?,
                });
            }
            "each" => {
                let (list, name) = self.read(line, rest, |reader| {
                    Ok((reader.expr()?, reader.name_after("as")?))
                })?;
                let named = name.is_some();
                let outer = self.names.len();
                self.names.extend(name);
                self.names.items += 1;
                let body = self.block(&line.block)?;
                self.names.items -= 1;
                self.names.truncate(outer);
                into.push(Statement::Each { list, named, body });
            }
            "let" => {
                let text = line.joined();
                let rest = text.strip_prefix("let ").unwrap_or(&text);
                let (name, value) = rest
                    .split_once('=')
                    .ok_or_else(|| line.wrong("expected `let NAME = VALUE`"))?;
                let value = self.read(line, value, |reader| reader.expr())?;
                self.names.extend(Some(name.trim().to_owned()));
                into.push(Statement::Let(value));
            }
            _ => into.push(self.verdict(line)?),
        }
        Ok(())
    }

    /// The statements of a `rules` block, as if they were written here.
    fn shared(
        &mut self,
        line: &Line,
        name: &str,
        into: &mut Vec<Statement>,
    ) -> Result<(), RuleError> {
        let block = self
            .shared
            .iter()
            .find_map(|shared| shared.get(name))
            .ok_or_else(|| line.wrong(format!("there is no `rules {name}` above")))?;
        if self.uses == MAX_USES {
            return Err(line.wrong(format!("`rules {name}` use themselves")));
        }
        self.uses += 1;
        for line in block {
            self.statement(line, into)?;
        }
        self.uses -= 1;
        Ok(())
    }

    fn verdict(&mut self, line: &Line) -> Result<Statement, RuleError> {
        let text = line.joined();
        let end = text.find([' ', ':']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let status = match word {
            "Healthy" => HealthStatus::Healthy,
            "Progressing" => HealthStatus::Progressing,
            "Degraded" => HealthStatus::Degraded,
            "Suspended" => HealthStatus::Suspended,
            "Missing" => HealthStatus::Missing,
            "Unknown" => HealthStatus::Unknown,
            _ => {
                return Err(line.wrong(format!(
                    "`{word}` is neither a status nor one of let, each, if, use"
                )));
            }
        };
        let (when, message) = self.read(line, rest, |reader| {
            let when = if reader.word("if") {
                Some(reader.expr()?)
            } else {
                None
            };
            let message: Option<Expr> = if reader.mark(":") {
                Some(reader.expr()?)
            } else {
                None
            };
            Ok((when, message))
        })?;
        Ok(Statement::Verdict {
            status,
            when,
            message,
        })
    }

    /// Parses all of a text.
    fn read<T>(
        &mut self,
        line: &Line,
        text: &str,
        what: impl FnOnce(&mut Reader) -> Result<T, String>,
    ) -> Result<T, RuleError> {
        let mut reader = Reader::new(text, &mut self.names);
        let found = what(&mut reader).and_then(|found| reader.end().map(|()| found));
        found.map_err(|why| line.wrong(why))
    }
}
