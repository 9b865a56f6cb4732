//! YAML as parsed and printed by `sigs.k8s.io/yaml`.
//!
//! Main functions: [`parse_documents`], [`parse_document`], [`to_string`] and [`marshal`];
//! [`to_string_v3`] is the output of go-yaml v3 alone. The grammar, the resolution of numbers,
//! booleans and strings, merge keys, the errors and the output follow go-yaml v2, because that is
//! what every Kubernetes tool uses. `everyday` parses most documents; others go from `scan` through
//! `grammar` to `build`. It must not know the content of documents. [`tree`]
//! has nodes that know how they were written, for callers that change documents.

mod blocks;
mod build;
mod copies;
mod cursor;
mod emit;
mod everyday;
mod grammar;
mod resolve;
mod scalars;
mod scan;
mod split;
mod tags;
mod times;
pub mod tree;
mod words;

pub use emit::{
    marshal, shortest_float, to_string, to_string_v3, to_string_v3_wide, to_string_within,
};
pub use split::{Chunk, decode_text, split_documents};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// The limits for one input. Exceeding a limit is an error, never a truncated result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Size of the whole input in bytes.
    pub bytes: usize,
    /// Nesting of maps and lists.
    pub depth: usize,
    /// Scalars, maps and lists in one input, including those created by aliases.
    pub nodes: usize,
    /// Nodes created by aliases in one document.
    pub aliases: usize,
    /// About the memory that anchors and aliases of one input may take, in bytes.
    pub copied_bytes: usize,
    /// Documents in one input.
    pub documents: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            depth: 200,
            nodes: 4_000_000,
            aliases: 400_000,
            copied_bytes: 64 << 20,
            documents: 20_000,
        }
    }
}

/// How to handle duplicate keys in a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// The last one wins, as in `yaml.Unmarshal`.
    #[default]
    LastWins,
    /// Refused, as in `yaml.UnmarshalStrict`.
    Refuse,
}

/// Where and why a text is not YAML. Lines and columns count from 1; 0 means the whole input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(*.line, *.column))]
pub struct YamlError {
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// The line that go-yaml reports; 0 if it reports none.
    go_line: u32,
    kind: Kind,
}

/// The kinds of errors that callers or the wording distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    /// A map has a key twice. go-yaml goes on to the end then and reports all of them.
    RepeatedKey,
    /// Valid YAML that JSON cannot represent, which go-yaml itself does not report.
    NotJson,
    /// Nested deeper than [`Limits::depth`], which differs from go-yaml's limit.
    TooDeep,
}

impl YamlError {
    /// Whether the only fault is that maps have keys twice, which [`Duplicates::LastWins`] permits.
    pub fn is_repeated_key(&self) -> bool {
        self.kind == Kind::RepeatedKey
    }

    /// Whether it is valid YAML that JSON cannot represent.
    pub fn is_not_json(&self) -> bool {
        self.kind == Kind::NotJson
    }

    /// Whether it exceeds [`Limits::depth`].
    pub fn is_too_deep(&self) -> bool {
        self.kind == Kind::TooDeep
    }

    fn too_deep(&mut self, limit: usize) {
        self.kind = Kind::TooDeep;
        self.message = format!("exceeded max depth of {limit}");
    }

    pub(crate) fn at(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            column,
            message: message.into(),
            go_line: 0,
            kind: Kind::Other,
        }
    }
}

fn place(line: usize, column: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!("line {line}, column {column}: ")
    }
}

/// One document and the line of the input where its text begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    pub line: usize,
}

/// Parses every document of a stream, up to the first invalid one. An empty document is `null`.
///
/// The stream is split at lines that start with `---` before anything is parsed, as in Kubernetes.
pub fn parse_documents(
    input: impl AsRef<[u8]>,
    limits: &Limits,
) -> Result<Vec<Document>, YamlError> {
    let text = decode_text(input.as_ref(), limits)?;
    let mut budget = *limits;
    let mut documents = Vec::new();
    for chunk in split_documents(&text, limits)? {
        let value = parse_chunk(&chunk?, &mut budget, Duplicates::LastWins)?;
        documents.push(Document {
            value: value.0,
            line: value.1,
        });
    }
    Ok(documents)
}

/// Parses the first document of a text, as `yaml.Unmarshal` does.
pub fn parse_document(
    input: impl AsRef<[u8]>,
    limits: &Limits,
    duplicates: Duplicates,
) -> Result<Value, YamlError> {
    let text = decode_text(input.as_ref(), limits)?;
    let mut budget = *limits;
    let chunk = Chunk {
        text: Cow::Borrowed(&text),
        line: 1,
    };
    parse_chunk(&chunk, &mut budget, duplicates).map(|(value, _)| value)
}

/// Parses the first document of a text as [`parse_document`] does, for a caller that needs only the
/// entries with these names of its map, whatever the case of their letters: others may be missing.
/// What anchors and aliases copy is subtracted from `budget.copied_bytes`, also after an error.
pub fn parse_entries(
    input: impl AsRef<[u8]>,
    budget: &mut Limits,
    names: &[&str],
) -> Result<Value, YamlError> {
    let text = decode_text(input.as_ref(), budget)?;
    if let Some(found) = everyday::skim(&text, budget, names) {
        return Ok(found);
    }
    let mut own = *budget;
    let chunk = Chunk {
        text: Cow::Borrowed(&text),
        line: 1,
    };
    let scanned = build::scanned(&chunk, &mut own, Duplicates::LastWins);
    budget.copied_bytes = own.copied_bytes;
    scanned.map(|(value, _)| value)
}

/// Parses one chunk of [`split_documents`] and subtracts its cost from `budget.nodes` and
/// `budget.copied_bytes`. Returns the value and its first line.
pub fn parse_chunk(
    chunk: &Chunk<'_>,
    budget: &mut Limits,
    duplicates: Duplicates,
) -> Result<(Value, usize), YamlError> {
    build::document(chunk, budget, duplicates)
}
