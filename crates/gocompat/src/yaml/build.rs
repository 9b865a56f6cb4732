//! From parser events to one JSON value: anchors, merge keys, tags and limits.

use super::everyday;
use super::repair::repair;
use super::resolve::{self, Scalar};
use super::{Chunk, Duplicates, Limits, YamlError};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::HashMap;

const YAML_TAGS: &str = "tag:yaml.org,2002:";

/// Builds the first document of a chunk. Returns it with the line of the input where its content starts.
pub(super) fn document(chunk: &Chunk<'_>, budget: &mut Limits, duplicates: Duplicates) -> Result<(Value, usize), YamlError> {
    let Some(found) = everyday::read(&chunk.text, budget, duplicates) else { return scanned(chunk, budget, duplicates) };
    budget.nodes = budget.nodes.saturating_sub(found.nodes);
    Ok((found.value, chunk.line.saturating_sub(1) + found.first_line))
}

/// The same by the whole grammar.
pub(super) fn scanned(chunk: &Chunk<'_>, budget: &mut Limits, duplicates: Duplicates) -> Result<(Value, usize), YamlError> {
    let mut text = Cow::Borrowed(chunk.text.as_ref());
    let mut reread = 0;
    loop {
        let mut builder = Builder::new(chunk.line.saturating_sub(1), &text, *budget, duplicates);
        match builder.run(&text) {
            Ok(root) => {
                budget.nodes = budget.nodes.saturating_sub(builder.decoded);
                return Ok((root, builder.first_line.unwrap_or(chunk.line)));
            }
            Err(Failed::Yaml(e)) => return Err(e),
            Err(Failed::Scan(e)) => {
                reread += text.len();
                match repair(&text, &e).filter(|_| reread < REREAD_BYTES) {
                    Some(changed) => text = Cow::Owned(changed),
                    None => return Err(builder.error(*e.marker(), e.info())),
                }
            }
        }
    }
}

/// Bytes that may be scanned again because of repairs.
const REREAD_BYTES: usize = 16 << 20;

enum Failed {
    Yaml(YamlError),
    Scan(ScanError),
}

impl From<YamlError> for Failed {
    fn from(e: YamlError) -> Self {
        Self::Yaml(e)
    }
}

impl From<ScanError> for Failed {
    fn from(e: ScanError) -> Self {
        Self::Scan(e)
    }
}

/// A collection that is being filled.
struct Frame {
    anchor: usize,
    /// Nodes of the whole input that were counted before this collection.
    decoded_before: usize,
    /// Written with brackets; only known in a document with tabs, where it matters.
    flow: bool,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Value>),
    Map { entries: Map<String, Value>, key: Option<Key> },
}

enum Key {
    Name(String),
    Merge,
}

/// A finished node with what is needed to repeat it through an alias.
struct Anchored {
    value: Value,
    nodes: usize,
    scalar: Option<(String, Option<String>, bool)>,
}

struct Builder<'t> {
    offset: usize,
    limits: Limits,
    duplicates: Duplicates,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchored>,
    decoded: usize,
    aliased: usize,
    first_line: Option<usize>,
    /// The lines of the text, when it has a tab anywhere.
    tabbed: Vec<&'t str>,
    /// Length in characters of a text that does not end with a line break.
    unfinished: Option<usize>,
}

impl<'t> Builder<'t> {
    fn new(offset: usize, text: &'t str, limits: Limits, duplicates: Duplicates) -> Self {
        Self {
            offset,
            limits,
            duplicates,
            stack: Vec::new(),
            anchors: HashMap::new(),
            decoded: 0,
            aliased: 0,
            first_line: None,
            unfinished: (!text.ends_with('\n')).then(|| text.chars().count()),
            tabbed: if text.contains('\t') { text.split('\n').collect() } else { Vec::new() },
        }
    }

    fn run(&mut self, text: &str) -> Result<Value, Failed> {
        let mut root = Value::Null;
        for event in Parser::new_from_str(text) {
            let (mut event, span) = event?;
            if matches!(event, Event::DocumentEnd | Event::StreamEnd) {
                break;
            }
            // The scanner ends a block scalar with a line break even when the text has none; go-yaml does not.
            if let Event::Scalar(value, ScalarStyle::Literal | ScalarStyle::Folded, ..) = &mut event
                && self.unfinished.is_some_and(|end| span.end.index() >= end)
                && let Some(cut) = value.strip_suffix('\n')
            {
                *value = Cow::Owned(cut.to_owned());
            }
            if let Some(value) = self.event(event, span.start)? {
                root = value;
            }
        }
        Ok(root)
    }

    /// The text of the line before a place, when the document has tabs.
    fn before(&self, at: Marker) -> Option<(&'t str, &'t str)> {
        let line = self.tabbed.get(at.line().checked_sub(1)?)?;
        let split = line.char_indices().nth(at.col()).map_or(line.len(), |(i, _)| i);
        line.split_at_checked(split)
    }
    fn error(&self, at: Marker, message: impl Into<String>) -> YamlError {
        YamlError::at(at.line() + self.offset, at.col() + 1, message)
    }

    /// Handles one event; a finished root node is returned.
    fn event(&mut self, event: Event<'_>, at: Marker) -> Result<Option<Value>, YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.start_node(at)?;
                let tag = tag.map(|t| tag_name(&t));
                let implicit = style == ScalarStyle::Plain && tag.is_none();
                if self.wants_key() {
                    let key = self.key(&text, tag.as_deref(), implicit, at)?;
                    self.remember_scalar(anchor, &text, tag, implicit, at)?;
                    self.set_key(key, at)?;
                    return Ok(None);
                }
                let value = self.scalar(&text, tag.as_deref(), implicit, at)?;
                self.remember_scalar(anchor, &text, tag, implicit, at)?;
                self.finish(value, at)
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, FrameKind::List(Vec::new()), at),
            Event::MappingStart(anchor, _) => self.open(anchor, FrameKind::Map { entries: Map::new(), key: None }, at),
            Event::SequenceEnd | Event::MappingEnd => {
                let frame = self.stack.pop().ok_or_else(|| self.error(at, "a collection ends that never began"))?;
                let value = match frame.kind {
                    FrameKind::List(items) => Value::Array(items),
                    FrameKind::Map { entries, .. } => Value::Object(entries),
                };
                if frame.anchor > 0 {
                    let nodes = self.decoded - frame.decoded_before;
                    self.anchors.insert(frame.anchor, Anchored { value: value.clone(), nodes, scalar: None });
                }
                self.finish(value, at)
            }
            Event::Alias(id) => self.alias(id, at),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => Ok(None),
        }
    }

    fn start_node(&mut self, at: Marker) -> Result<(), YamlError> {
        self.first_line.get_or_insert(at.line() + self.offset);
        if let Some((before, _)) = self.before(at)
            && before.contains('\t')
            && before.chars().all(|c| matches!(c, ' ' | '\t' | '-' | '?'))
            && !self.stack.last().is_some_and(|f| f.flow)
        {
            return Err(self.error(at, "found a tab that cannot be used for indentation"));
        }
        self.decoded += 1;
        if self.decoded > self.limits.nodes {
            return Err(self.error(at, format!("the input has more than {} values", self.limits.nodes)));
        }
        Ok(())
    }

    fn open(&mut self, anchor: usize, kind: FrameKind, at: Marker) -> Result<Option<Value>, YamlError> {
        self.start_node(at)?;
        if self.wants_key() {
            return Err(self.error(at, "invalid map key: a map or a list cannot be a key"));
        }
        if self.stack.len() >= self.limits.depth {
            return Err(self.error(at, format!("exceeded max depth of {}", self.limits.depth)));
        }
        let flow = self.before(at).is_some_and(|(_, rest)| rest.starts_with(['[', '{']));
        self.stack.push(Frame { anchor, decoded_before: self.decoded - 1, flow, kind });
        Ok(None)
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { kind: FrameKind::Map { key: None, .. }, .. }))
    }

    /// Puts a finished value into the collection that is open, or hands back the root.
    fn finish(&mut self, value: Value, at: Marker) -> Result<Option<Value>, YamlError> {
        let strict = self.duplicates == Duplicates::Refuse;
        let problem = match self.stack.last_mut().map(|f| &mut f.kind) {
            None => return Ok(Some(value)),
            Some(FrameKind::List(items)) => {
                items.push(value);
                None
            }
            Some(FrameKind::Map { entries, key }) => match key.take() {
                None => Some("invalid map key: a map or a list cannot be a key".to_owned()),
                Some(Key::Merge) => merge(entries, value, strict).err(),
                Some(Key::Name(name)) if strict && entries.contains_key(&name) => Some(format!("key \"{name}\" already set in map")),
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                    None
                }
            },
        };
        problem.map_or(Ok(None), |message| Err(self.error(at, message)))
    }

    fn set_key(&mut self, new: Key, at: Marker) -> Result<(), YamlError> {
        match self.stack.last_mut().map(|f| &mut f.kind) {
            Some(FrameKind::Map { key, .. }) => {
                *key = Some(new);
                Ok(())
            }
            _ => Err(self.error(at, "a map key outside of a map")),
        }
    }

    fn alias(&mut self, id: usize, at: Marker) -> Result<Option<Value>, YamlError> {
        self.start_node(at)?;
        let wants_key = self.wants_key();
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(self.error(at, "an anchor's value contains itself"));
        };
        let (nodes, value) = (anchored.nodes, &anchored.value);
        // go-yaml's guard against documents that are mostly aliases, and a hard limit of our own.
        let (decoded, aliased) = (self.decoded + nodes, self.aliased + nodes);
        #[allow(clippy::cast_precision_loss)] // a ratio of counters far below 2^52
        let ratio = aliased as f64 / decoded as f64;
        let excessive = aliased > 100 && decoded > 1000 && ratio > allowed_alias_ratio(decoded);
        if excessive || aliased > self.limits.aliases || decoded > self.limits.nodes {
            return Err(self.error(at, "document contains excessive aliasing"));
        }
        if self.stack.len() + depth_of(value) > self.limits.depth {
            return Err(self.error(at, format!("exceeded max depth of {}", self.limits.depth)));
        }
        if wants_key {
            let Some((text, tag, implicit)) = anchored.scalar.clone() else {
                return Err(self.error(at, "invalid map key: a map or a list cannot be a key"));
            };
            let key = match self.key(&text, tag.as_deref(), implicit, at)? {
                Key::Merge => Key::Name(text), // only a literal `<<` merges
                name => name,
            };
            (self.decoded, self.aliased) = (decoded, aliased);
            self.set_key(key, at)?;
            return Ok(None);
        }
        let value = value.clone();
        (self.decoded, self.aliased) = (decoded, aliased);
        self.finish(value, at)
    }

    fn remember_scalar(&mut self, anchor: usize, text: &str, tag: Option<String>, implicit: bool, at: Marker) -> Result<(), YamlError> {
        if anchor > 0 {
            let value = self.scalar(text, tag.as_deref(), implicit, at)?;
            self.anchors.insert(anchor, Anchored { value, nodes: 1, scalar: Some((text.to_owned(), tag, implicit)) });
        }
        Ok(())
    }

    fn scalar(&self, text: &str, tag: Option<&str>, implicit: bool, at: Marker) -> Result<Value, YamlError> {
        match self.resolve(text, tag, implicit, at)? {
            Resolved::Owned(text) => Ok(Value::String(text)),
            Resolved::Scalar(scalar) => match scalar {
                Scalar::Null => Ok(Value::Null),
                Scalar::Bool(b) => Ok(Value::Bool(b)),
                Scalar::Int(i) => Ok(i.into()),
                Scalar::Uint(u) => Ok(u.into()),
                Scalar::Float(f) => json_number(f).ok_or_else(|| self.error(at, format!("json: unsupported value: {text}"))),
                Scalar::Timestamp(s) | Scalar::Str(s) => Ok(Value::String(s.to_owned())),
            },
        }
    }

    fn key(&self, text: &str, tag: Option<&str>, implicit: bool, at: Marker) -> Result<Key, YamlError> {
        if text == "<<" && (implicit || tag == Some("!!merge")) {
            return Ok(Key::Merge);
        }
        Ok(Key::Name(match self.resolve(text, tag, implicit, at)? {
            Resolved::Owned(text) => text,
            Resolved::Scalar(scalar) => match scalar {
                Scalar::Str(s) | Scalar::Timestamp(s) => s.to_owned(),
                Scalar::Bool(b) => b.to_string(),
                Scalar::Int(i) => i.to_string(),
                Scalar::Float(f) => float_key(f),
                Scalar::Null => return Err(self.error(at, "unsupported map key of type: null")),
                Scalar::Uint(_) => return Err(self.error(at, "unsupported map key of type: uint64")),
            },
        }))
    }

    /// go-yaml's `resolve` with an explicit tag.
    fn resolve<'s>(&self, text: &'s str, tag: Option<&str>, implicit: bool, at: Marker) -> Result<Resolved<'s>, YamlError> {
        let Some(tag) = tag else {
            return Ok(Resolved::Scalar(if implicit { resolve::plain(text) } else { Scalar::Str(text) }));
        };
        let fail = |found: &str| Err(self.error(at, format!("cannot decode {found} `{text}` as a {tag}")));
        let scalar = resolve::plain(text);
        match (tag, scalar) {
            ("!!str", _) => Ok(Resolved::Scalar(Scalar::Str(text))),
            ("!!binary", _) => match base64(text) {
                Some(bytes) => Ok(Resolved::Owned(String::from_utf8_lossy(&bytes).into_owned())),
                None => Err(self.error(at, "!!binary value contains invalid base64 data")),
            },
            ("!!float", Scalar::Int(i)) => {
                #[allow(clippy::cast_precision_loss)] // what the tag asks for
                let float = i as f64;
                Ok(Resolved::Scalar(Scalar::Float(float)))
            }
            ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp", scalar) if scalar.tag() == tag => Ok(Resolved::Scalar(scalar)),
            ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp", scalar) => fail(scalar.tag()),
            // Any other tag keeps the text.
            _ => Ok(Resolved::Scalar(Scalar::Str(text))),
        }
    }
}

enum Resolved<'t> {
    Scalar(Scalar<'t>),
    Owned(String),
}

fn tag_name(tag: &Tag) -> String {
    match tag.handle.strip_prefix(YAML_TAGS) {
        Some(rest) => format!("!!{rest}{}", tag.suffix),
        None => match (tag.handle.as_str(), tag.suffix.strip_prefix(YAML_TAGS)) {
            ("", Some(suffix)) => format!("!!{suffix}"),
            _ => format!("{}{}", tag.handle, tag.suffix),
        },
    }
}

/// Later keys win over merged ones and merged ones over earlier keys; in a list of maps the first map wins.
fn merge(entries: &mut Map<String, Value>, value: Value, strict: bool) -> Result<(), String> {
    let maps = match value {
        Value::Array(items) => items.into_iter().rev().collect(),
        single => vec![single],
    };
    for map in maps {
        let Value::Object(map) = map else {
            return Err("map merge requires map or sequence of maps as the value".to_owned());
        };
        if let Some(key) = map.keys().find(|key| strict && entries.contains_key(*key)) {
            return Err(format!("key \"{key}\" already set in map"));
        }
        entries.extend(map);
    }
    Ok(())
}

/// The share of a document that may come from aliases: 99 % of a small one, 10 % of a very large one.
fn allowed_alias_ratio(decoded: usize) -> f64 {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    #[allow(clippy::cast_precision_loss)] // a counter far below 2^52
    let decoded = decoded as f64;
    if decoded <= LOW {
        0.99
    } else if decoded >= HIGH {
        0.10
    } else {
        0.99 - 0.89 * ((decoded - LOW) / (HIGH - LOW))
    }
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// The number that Go prints for a float in JSON: whole numbers below 1e21 come out without a fraction.
pub(super) fn json_number(float: f64) -> Option<Value> {
    if float.fract() == 0.0
        && float.abs() < 1e19
        && let Ok(whole) = format!("{float}").parse::<i64>()
    {
        return Some(whole.into());
    }
    Number::from_f64(float).map(Value::Number)
}

/// Go's FormatFloat(f, 'g', -1, 32).
fn float_key(float: f64) -> String {
    #[allow(clippy::cast_possible_truncation)] // Go prints keys with single precision
    let float = float as f32;
    if float.is_nan() {
        return ".nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    super::emit::go_shortest(&format!("{float:e}"))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let clean: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !clean.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(clean.len() / 4 * 3);
    let groups = clean.len() / 4;
    for (index, group) in clean.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 != groups) {
            return None;
        }
        let mut bits = 0u32;
        for byte in group.iter().take(4 - padding) {
            bits = bits << 6 | u32::from(sextet(*byte)?);
        }
        bits <<= 6 * padding;
        let [_, bytes @ ..] = bits.to_be_bytes();
        out.extend(bytes.iter().take(3 - padding));
    }
    Some(out)
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
