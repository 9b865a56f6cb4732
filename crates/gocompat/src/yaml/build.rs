//! Builds one JSON value from parser events: anchors, merge keys, tags and limits.

use super::copies::{Copies, memory};
use super::cursor::Mark;
use super::everyday;
use super::grammar::{self, Event, Handler};
use super::resolve::{self, Scalar};
use super::scan::Fault;
use super::{Chunk, Duplicates, Kind, Limits, YamlError, words};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Builds the first document of a chunk. Returns it with the line of the input where its content
/// starts.
pub(super) fn document(
    chunk: &Chunk<'_>,
    budget: &mut Limits,
    duplicates: Duplicates,
) -> Result<(Value, usize), YamlError> {
    let Some(found) = everyday::read(&chunk.text, budget, duplicates) else {
        return scanned(chunk, budget, duplicates);
    };
    budget.nodes = budget.nodes.saturating_sub(found.nodes);
    Ok((found.value, chunk.line.saturating_sub(1) + found.first_line))
}

/// The same with the full grammar.
pub(super) fn scanned(
    chunk: &Chunk<'_>,
    budget: &mut Limits,
    duplicates: Duplicates,
) -> Result<(Value, usize), YamlError> {
    let mut builder = Builder::new(chunk.line.saturating_sub(1), *budget, duplicates);
    let read = grammar::first_document(&chunk.text, budget, &mut builder);
    // Also after an error: callers go on with the next document.
    budget.copied_bytes = budget.copied_bytes.saturating_sub(builder.copies.used);
    read?;
    if let Some(error) = builder
        .error
        .take()
        .or_else(|| builder.twice())
        .or(builder.not_json)
    {
        return Err(error);
    }
    budget.nodes = budget.nodes.saturating_sub(builder.decoded);
    Ok((builder.root, builder.first_line.unwrap_or(chunk.line)))
}

/// A collection being filled.
struct Frame {
    anchor: Option<usize>,
    /// The number of nodes counted in the whole input before this collection.
    decoded_before: usize,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Value>),
    Map {
        entries: Map<String, Value>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String),
    Merge,
}

/// A finished node with what is needed to repeat it for an alias.
enum Anchored {
    Scalar {
        text: String,
        tag: Option<String>,
        implicit: bool,
    },
    Collection {
        value: Value,
        nodes: usize,
        bytes: usize,
    },
}

/// An error lists at most so many duplicate keys,
const LISTED_KEYS: usize = 100;
/// and none after so many bytes of their messages.
const LISTED_BYTES: usize = 64 << 10;

struct Builder<'t> {
    offset: usize,
    limits: Limits,
    duplicates: Duplicates,
    stack: Vec<Frame>,
    /// The latest anchor of each name, which may still be open.
    names: HashMap<&'t str, usize>,
    anchors: Vec<Option<Rc<Anchored>>>,
    decoded: usize,
    aliased: usize,
    copies: Copies,
    first_line: Option<usize>,
    root: Value,
    /// The first error in a value; a grammar error anywhere takes precedence.
    error: Option<YamlError>,
    /// Duplicate keys: reported if there is no other error.
    twice: Vec<YamlError>,
    /// The number of those that are not listed.
    more_twice: usize,
    /// The first value that YAML permits and JSON does not, which is reported after all other
    /// errors.
    not_json: Option<YamlError>,
}

impl<'t> Handler<'t> for Builder<'t> {
    fn event(&mut self, event: Event<'t>, at: Mark) -> Result<(), YamlError> {
        let anchor = match &event {
            Event::Scalar { properties, .. } | Event::List(properties) | Event::Map(properties) => {
                properties.anchor
            }
            Event::Alias(name) if !self.names.contains_key(name) => {
                return Err(self.error(at, format!("unknown anchor '{name}' referenced")));
            }
            Event::Alias(_) | Event::End => None,
        };
        let anchor = anchor.map(|name| {
            self.anchors.push(None);
            self.names.insert(name, self.anchors.len() - 1);
            self.anchors.len() - 1
        });
        if self.error.is_none() {
            self.error = self.build(event, anchor, at).err();
        }
        Ok(())
    }

    fn located(&self, fault: &Fault) -> YamlError {
        // A missing end is reported better at the position where it should have begun.
        let begins = matches!(
            fault.problem,
            "found unexpected end of stream" | "could not find expected ':'"
        );
        let mut error = self.error(if begins { fault.context } else { fault.at }, fault.problem);
        let line = fault.at.line + usize::from(fault.of_scanner && fault.at.line > 0);
        error.go_line = u32::try_from(line).unwrap_or(u32::MAX);
        error
    }
}

impl Builder<'_> {
    fn new(offset: usize, limits: Limits, duplicates: Duplicates) -> Self {
        Self {
            offset,
            limits,
            duplicates,
            stack: Vec::new(),
            names: HashMap::new(),
            anchors: Vec::new(),
            decoded: 0,
            aliased: 0,
            copies: Copies::new(limits.copied_bytes),
            first_line: None,
            root: Value::Null,
            error: None,
            twice: Vec::new(),
            more_twice: 0,
            not_json: None,
        }
    }

    fn error(&self, at: Mark, message: impl Into<String>) -> YamlError {
        YamlError::at(at.line + 1 + self.offset, at.column + 1, message)
    }

    fn build(
        &mut self,
        event: Event<'_>,
        anchor: Option<usize>,
        at: Mark,
    ) -> Result<(), YamlError> {
        match event {
            Event::Scalar {
                text,
                properties,
                implicit,
                ..
            } => {
                self.start_node(at)?;
                let tag = properties.tag;
                if let Some(anchor) = anchor {
                    // A tag of few characters can have a long prefix.
                    let bytes = tag.as_ref().map_or(0, String::len);
                    self.copies.take(bytes, at, self.offset)?;
                    self.anchors[anchor] = Some(Rc::new(Anchored::Scalar {
                        text: text.clone().into_owned(),
                        tag: tag.clone(),
                        implicit,
                    }));
                }
                if self.wants_key() {
                    let key = self.key(&text, tag.as_deref(), implicit, at)?;
                    return self.set_key(key, at);
                }
                let value = if self.wants_maps() {
                    Value::Null
                } else {
                    self.scalar(&text, tag.as_deref(), implicit, at)?
                };
                self.finish(value, at)
            }
            Event::List(_) => self.open(anchor, FrameKind::List(Vec::new()), at),
            Event::Map(_) => self.open(
                anchor,
                FrameKind::Map {
                    entries: Map::new(),
                    key: None,
                },
                at,
            ),
            Event::End => {
                let frame = self
                    .stack
                    .pop()
                    .ok_or_else(|| self.error(at, "a collection ends that never began"))?;
                let value = match frame.kind {
                    FrameKind::List(items) => Value::Array(items),
                    FrameKind::Map { entries, .. } => Value::Object(entries),
                };
                if let Some(anchor) = frame.anchor {
                    let nodes = self.decoded - frame.decoded_before;
                    let bytes = memory(&value);
                    self.copies.take(bytes, at, self.offset)?;
                    self.anchors[anchor] = Some(Rc::new(Anchored::Collection {
                        value: value.clone(),
                        nodes,
                        bytes,
                    }));
                }
                self.finish(value, at)
            }
            Event::Alias(name) => self.alias(name, at),
        }
    }

    fn start_node(&mut self, at: Mark) -> Result<(), YamlError> {
        self.first_line.get_or_insert(at.line + 1 + self.offset);
        self.decoded += 1;
        if self.decoded > self.limits.nodes {
            return Err(self.error(
                at,
                format!("the input has more than {} values", self.limits.nodes),
            ));
        }
        Ok(())
    }

    fn open(&mut self, anchor: Option<usize>, kind: FrameKind, at: Mark) -> Result<(), YamlError> {
        self.start_node(at)?;
        self.stack.push(Frame {
            anchor,
            decoded_before: self.decoded - 1,
            kind,
        });
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                kind: FrameKind::Map { key: None, .. },
                ..
            })
        )
    }

    /// After a merge key, where scalars are not even resolved.
    fn wants_maps(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                kind: FrameKind::Map {
                    key: Some(Key::Merge),
                    ..
                },
                ..
            })
        )
    }

    /// Adds a finished value to the open collection; outside of all it is the root.
    fn finish(&mut self, value: Value, at: Mark) -> Result<(), YamlError> {
        let strict = self.duplicates == Duplicates::Refuse;
        let (key, entries) = match self.stack.last_mut().map(|f| &mut f.kind) {
            None => {
                self.root = value;
                return Ok(());
            }
            Some(FrameKind::List(items)) => {
                items.push(value);
                return Ok(());
            }
            Some(FrameKind::Map { entries, key }) => (key.take(), entries),
        };
        let twice = match key {
            None => {
                return Err(
                    self.error(at, format!("invalid map key: {}", words::go_syntax(&value)))
                );
            }
            Some(Key::Merge) => {
                merge(entries, value, strict).map_err(|message| self.error(at, message))?
            }
            Some(Key::Name(name)) if strict && entries.contains_key(&name) => Some(name),
            Some(Key::Name(name)) => {
                entries.insert(name, value);
                None
            }
        };
        if let Some(name) = twice {
            self.note_twice(&name, at);
        }
        Ok(())
    }

    fn note_twice(&mut self, key: &str, at: Mark) {
        let bytes: usize = self.twice.iter().map(|error| error.message.len()).sum();
        if self.twice.len() >= LISTED_KEYS || bytes > LISTED_BYTES {
            self.more_twice += 1;
            return;
        }
        let error = self.error(at, format!("key \"{key}\" already set in map"));
        self.twice.push(error);
    }

    /// The error for the first duplicate key, with the others on separate lines.
    fn twice(&mut self) -> Option<YamlError> {
        let mut all = std::mem::take(&mut self.twice).into_iter();
        let mut first = all.next()?;
        first.kind = Kind::RepeatedKey;
        all.for_each(|other| {
            first
                .message
                .push_str(&format!("\n  line {}: {}", other.line, other.message))
        });
        if self.more_twice > 0 {
            let more = self.more_twice;
            first
                .message
                .push_str(&format!("\n  and {more} more keys already set in map"));
        }
        Some(first)
    }

    fn set_key(&mut self, new: Key, at: Mark) -> Result<(), YamlError> {
        match self.stack.last_mut().map(|f| &mut f.kind) {
            Some(FrameKind::Map { key, .. }) => {
                *key = Some(new);
                Ok(())
            }
            _ => Err(self.error(at, "a map key outside of a map")),
        }
    }

    fn alias(&mut self, name: &str, at: Mark) -> Result<(), YamlError> {
        self.start_node(at)?;
        let Some(anchored) = self
            .names
            .get(name)
            .and_then(|id| self.anchors[*id].clone())
        else {
            return Err(self.error(at, format!("anchor '{name}' value contains itself")));
        };
        let (nodes, depth, bytes) = match &*anchored {
            Anchored::Scalar { text, .. } => (1, 0, text.len()),
            Anchored::Collection {
                value,
                nodes,
                bytes,
            } => (*nodes, depth_of(value), *bytes),
        };
        // go-yaml's guard against documents that consist mostly of aliases, and our own hard limit.
        let (decoded, aliased) = (self.decoded + nodes, self.aliased + nodes);
        #[allow(clippy::cast_precision_loss)] // a ratio of counters far below 2^52
        let ratio = aliased as f64 / decoded as f64;
        let excessive = aliased > 100 && decoded > 1000 && ratio > allowed_alias_ratio(decoded);
        if excessive || aliased > self.limits.aliases || decoded > self.limits.nodes {
            return Err(self.error(at, "document contains excessive aliasing"));
        }
        if self.stack.len() + depth > self.limits.depth {
            let mut error = self.error(at, "");
            error.too_deep(self.limits.depth);
            return Err(error);
        }
        self.copies.take(bytes, at, self.offset)?;
        let (value, key) = match &*anchored {
            Anchored::Scalar {
                text,
                tag,
                implicit,
            } if self.wants_key() => match self.key(text, tag.as_deref(), *implicit, at)? {
                // Only a literal `<<` merges.
                Key::Merge => (Value::Null, Some(Key::Name(text.clone()))),
                key => (Value::Null, Some(key)),
            },
            Anchored::Scalar { .. } if self.wants_maps() => (Value::Null, None),
            Anchored::Scalar {
                text,
                tag,
                implicit,
            } => (self.scalar(text, tag.as_deref(), *implicit, at)?, None),
            Anchored::Collection { value, .. } => (value.clone(), None),
        };
        (self.decoded, self.aliased) = (decoded, aliased);
        match key {
            Some(key) => self.set_key(key, at),
            None => self.finish(value, at),
        }
    }

    fn not_json(&mut self, at: Mark, message: String) {
        let mut error = self.error(at, message);
        error.kind = Kind::NotJson;
        self.not_json.get_or_insert(error);
    }

    fn scalar(
        &mut self,
        text: &str,
        tag: Option<&str>,
        implicit: bool,
        at: Mark,
    ) -> Result<Value, YamlError> {
        match self.resolve(text, tag, implicit, at)? {
            Resolved::Owned(text) => Ok(Value::String(text)),
            Resolved::Scalar(scalar) => match scalar {
                Scalar::Null => Ok(Value::Null),
                Scalar::Bool(b) => Ok(Value::Bool(b)),
                Scalar::Int(i) => Ok(i.into()),
                Scalar::Uint(u) => Ok(u.into()),
                Scalar::Float(f) => Ok(json_number(f).unwrap_or_else(|| {
                    self.not_json(at, format!("json: unsupported value: {}", unsupported(f)));
                    Value::Null
                })),
                Scalar::Timestamp(s) | Scalar::Str(s) => Ok(Value::String(s.to_owned())),
            },
        }
    }

    fn key(
        &mut self,
        text: &str,
        tag: Option<&str>,
        implicit: bool,
        at: Mark,
    ) -> Result<Key, YamlError> {
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
                Scalar::Null | Scalar::Uint(_) => {
                    let kind = if scalar == Scalar::Null {
                        "null"
                    } else {
                        "uint64"
                    };
                    self.not_json(at, format!("unsupported map key of type: {kind}"));
                    text.to_owned()
                }
            },
        }))
    }

    /// go-yaml's `resolve` with an explicit tag.
    fn resolve<'s>(
        &self,
        text: &'s str,
        tag: Option<&str>,
        implicit: bool,
        at: Mark,
    ) -> Result<Resolved<'s>, YamlError> {
        let Some(tag) = tag else {
            return Ok(Resolved::Scalar(if implicit {
                resolve::plain(text)
            } else {
                Scalar::Str(text)
            }));
        };
        let fail =
            |found: &str| Err(self.error(at, format!("cannot decode {found} `{text}` as a {tag}")));
        // Only an untagged scalar or one with that tag may be a time.
        let scalar = match resolve::plain(text) {
            Scalar::Timestamp(text) if tag != "!!timestamp" => Scalar::Str(text),
            scalar => scalar,
        };
        match (tag, scalar) {
            ("!!str", _) => Ok(Resolved::Scalar(Scalar::Str(text))),
            ("!!binary", _) => match base64(text) {
                Some(bytes) => Ok(Resolved::Owned(
                    String::from_utf8_lossy(&bytes).into_owned(),
                )),
                None => Err(self.error(at, "!!binary value contains invalid base64 data")),
            },
            ("!!float", Scalar::Int(i)) => {
                #[allow(clippy::cast_precision_loss)] // what the tag asks for
                let float = i as f64;
                Ok(Resolved::Scalar(Scalar::Float(float)))
            }
            ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp", scalar)
                if scalar.tag() == tag =>
            {
                Ok(Resolved::Scalar(scalar))
            }
            ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp", scalar) => {
                fail(scalar.tag())
            }
            // With any other tag it stays text.
            _ => Ok(Resolved::Scalar(Scalar::Str(text))),
        }
    }
}

enum Resolved<'t> {
    Scalar(Scalar<'t>),
    Owned(String),
}

/// Later keys override merged ones, and merged ones override earlier keys; in a list of maps the
/// first map wins. Returns a duplicate key if that matters.
fn merge(
    entries: &mut Map<String, Value>,
    value: Value,
    strict: bool,
) -> Result<Option<String>, &'static str> {
    let maps = match value {
        Value::Array(items) => items.into_iter().rev().collect(),
        single => vec![single],
    };
    let mut twice = None;
    for map in maps {
        let Value::Object(map) = map else {
            return Err("map merge requires map or sequence of maps as the value");
        };
        if strict && twice.is_none() {
            twice = map.keys().find(|key| entries.contains_key(*key)).cloned();
        }
        entries.extend(map);
    }
    Ok(twice)
}

/// The share of a document that may come from aliases: 99 % of a small one, 10 % of a very large
/// one.
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

/// The number that Go prints for a float in JSON: integers below 1e21 have no fraction.
pub(super) fn json_number(float: f64) -> Option<Value> {
    if float.fract() == 0.0
        && float.abs() < 1e19
        && let Ok(whole) = format!("{float}").parse::<i64>()
    {
        return Some(whole.into());
    }
    Number::from_f64(float).map(Value::Number)
}

/// A float that JSON cannot represent, as Go prints it.
fn unsupported(float: f64) -> &'static str {
    if float.is_nan() {
        "NaN"
    } else if float > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
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
    let clean: Vec<u8> = text
        .bytes()
        .filter(|b| !matches!(b, b'\n' | b'\r'))
        .collect();
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
