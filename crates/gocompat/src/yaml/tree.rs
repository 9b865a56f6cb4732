//! YAML nodes as go-yaml v3 keeps them: with the order of keys, with tags, and knowing what was
//! quoted.
//!
//! Main functions: [`first_node`], [`resolve_v3`] and [`style_v3`]. For tools that change a document
//! node by node. An alias is a copy of what it stands for; merge keys are left as they are.

use super::copies::Copies;
use super::cursor::Mark;
use super::grammar::{self, Event, Handler, Properties};
use super::resolve;
use super::scan::Fault;
use super::times::rfc3339;
use super::{Limits, YamlError, blocks, emit};
use std::collections::HashMap;

/// What a plain scalar means to go-yaml v3, which knows no `yes` and no `off`.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// As Go prints it: RFC 3339.
    Time(String),
    Text,
}

impl Plain {
    /// The short tag.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Time(_) => "!!timestamp",
            Self::Text => "!!str",
        }
    }
}

/// The meaning of a scalar without quotes and without a tag.
pub fn resolve_v3(text: &str) -> Plain {
    use resolve::Scalar;
    match resolve::plain(text) {
        Scalar::Null => Plain::Null,
        Scalar::Bool(_) if !matches!(text.len(), 4 | 5) => Plain::Text,
        Scalar::Bool(value) => Plain::Bool(value),
        Scalar::Int(value) => Plain::Int(value),
        Scalar::Uint(value) => Plain::Uint(value),
        Scalar::Float(value) => Plain::Float(value),
        Scalar::Timestamp(text) => Plain::Time(rfc3339(text)),
        Scalar::Str(_) => Plain::Text,
    }
}

/// Whether a plain scalar is something else than a string to YAML 1.1.
pub fn is_not_text_v2(text: &str) -> bool {
    use resolve::Scalar;
    !text.is_empty()
        && !text.contains('\n')
        && !matches!(resolve::plain(text), Scalar::Str(_) | Scalar::Timestamp(_))
        || looks_like_collection(text)
}

/// What go-yaml reads as a list or a map although it was meant as a text.
fn looks_like_collection(text: &str) -> bool {
    if text.contains('\n') || !text.contains([':', '-', '[', '{', '#', '~']) {
        return false;
    }
    let limits = Limits::default();
    match super::parse_document(text, &limits, super::Duplicates::LastWins) {
        Ok(value) => !value.is_string(),
        Err(_) => false,
    }
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

/// How go-yaml v3 writes a text of which nobody said how.
pub fn style_v3(text: &str) -> Style {
    emit::style_v3(text)
}

/// What is left of a text that is printed as a folded block and read again: lines in front of
/// indented ones get an empty line each.
pub fn refolded(text: &str) -> String {
    if !text.contains('\n') || emit::style_v3(text) != Style::Literal {
        return text.to_owned();
    }
    let block = format!("a: {}", blocks::folded(text));
    let read = first_node(&block, &mut Limits::default());
    let Ok(Some(Node {
        content: Content::Map(entries),
        ..
    })) = read
    else {
        return text.to_owned();
    };
    match entries.into_iter().next() {
        Some((
            _,
            Node {
                content: Content::Scalar(text),
                ..
            },
        )) => text,
        _ => text.to_owned(),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Short (`!!str`); never empty.
    pub tag: String,
    /// The tag stands in the text.
    pub tagged: bool,
    /// A scalar in quotes, or in a block.
    pub quoted: bool,
    /// It is a block whose lines are folded.
    pub folded: bool,
    pub content: Content,
}

/// Reads the first document of a text; `None` if there is none. What the document costs is taken
/// from `budget.nodes` and `budget.copied_bytes`.
pub fn first_node(text: &str, budget: &mut Limits) -> Result<Option<Node>, YamlError> {
    let mut builder = Builder {
        limits: *budget,
        copies: Copies::new(budget.copied_bytes),
        ..Builder::default()
    };
    grammar::first_document(text, budget, &mut builder)?;
    budget.nodes = budget.nodes.saturating_sub(builder.count);
    budget.copied_bytes = budget.copied_bytes.saturating_sub(builder.copies.used);
    Ok(builder.root)
}

#[derive(Default)]
struct Builder<'t> {
    limits: Limits,
    open: Vec<Open<'t>>,
    /// `None`: still open.
    anchors: HashMap<&'t str, Option<Anchored>>,
    count: usize,
    aliased: usize,
    copies: Copies,
    root: Option<Node>,
}

/// A finished node that aliases can stand for.
struct Anchored {
    node: Node,
    /// The number of nodes in it.
    count: usize,
    bytes: usize,
}

struct Open<'t> {
    anchor: Option<&'t str>,
    tag: Option<String>,
    map: bool,
    items: Vec<Node>,
    count_before: usize,
}

impl<'t> Handler<'t> for Builder<'t> {
    fn event(&mut self, event: Event<'t>, at: Mark) -> Result<(), YamlError> {
        self.count += 1;
        match event {
            Event::Scalar {
                text,
                properties,
                implicit,
                folded,
            } => {
                let mut node = scalar(text.into_owned(), &properties, implicit);
                node.folded = folded;
                if let Some(name) = properties.anchor {
                    let anchored = Anchored {
                        node: node.clone(),
                        count: 1,
                        bytes: memory(&node),
                    };
                    self.anchors.insert(name, Some(anchored));
                }
                self.put(node);
            }
            Event::List(properties) => self.begin(properties, false),
            Event::Map(properties) => self.begin(properties, true),
            Event::End => self.end(at)?,
            Event::Alias(name) => self.alias(name, at)?,
        }
        if self.count > self.limits.nodes {
            let most = self.limits.nodes;
            return Err(error(at, format!("the input has more than {most} values")));
        }
        Ok(())
    }

    fn located(&self, fault: &Fault) -> YamlError {
        let mut error = error(fault.at, fault.problem);
        let line = fault.at.line + usize::from(fault.of_scanner && fault.at.line > 0);
        error.go_line = u32::try_from(line).unwrap_or(u32::MAX);
        error
    }
}

fn error(at: Mark, message: impl Into<String>) -> YamlError {
    YamlError::at(at.line + 1, at.column + 1, message)
}

fn scalar(text: String, properties: &Properties<'_>, implicit: bool) -> Node {
    let named = properties.tag.as_deref().filter(|tag| *tag != "!");
    let quoted = properties.tag.is_none() && !implicit;
    let tag = match named {
        Some(tag) => tag,
        None if quoted => "!!str",
        None if text == "<<" => "!!merge",
        None => resolve_v3(&text).tag(),
    };
    Node {
        tag: tag.to_owned(),
        tagged: named.is_some(),
        quoted,
        folded: false,
        content: Content::Scalar(text),
    }
}

impl<'t> Builder<'t> {
    fn begin(&mut self, properties: Properties<'t>, map: bool) {
        if let Some(name) = properties.anchor {
            self.anchors.insert(name, None);
        }
        self.open.push(Open {
            anchor: properties.anchor,
            tag: properties.tag.filter(|tag| tag != "!"),
            map,
            items: Vec::new(),
            count_before: self.count - 1,
        });
    }

    fn end(&mut self, at: Mark) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let tagged = open.tag.is_some();
        let default = if open.map { "!!map" } else { "!!seq" };
        let content = if open.map {
            let mut entries = Vec::with_capacity(open.items.len() / 2);
            let mut items = open.items.into_iter();
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                entries.push((key, value));
            }
            Content::Map(entries)
        } else {
            Content::List(open.items)
        };
        let node = Node {
            tag: open.tag.unwrap_or_else(|| default.to_owned()),
            tagged,
            quoted: false,
            folded: false,
            content,
        };
        if let Some(name) = open.anchor {
            let bytes = memory(&node);
            self.copies.take(bytes, at, 0)?;
            let anchored = Anchored {
                node: node.clone(),
                count: self.count - open.count_before,
                bytes,
            };
            self.anchors.insert(name, Some(anchored));
        }
        self.put(node);
        Ok(())
    }

    fn alias(&mut self, name: &str, at: Mark) -> Result<(), YamlError> {
        let Some(known) = self.anchors.get(name) else {
            return Err(error(at, format!("unknown anchor '{name}' referenced")));
        };
        let Some(anchored) = known else {
            return Err(error(at, format!("anchor '{name}' value contains itself")));
        };
        self.count += anchored.count;
        self.aliased += anchored.count;
        if self.aliased > self.limits.aliases {
            return Err(error(at, "document contains excessive aliasing"));
        }
        if self.open.len() + depth(&anchored.node) > self.limits.depth {
            let mut error = error(at, "");
            error.too_deep(self.limits.depth);
            return Err(error);
        }
        self.copies.take(anchored.bytes, at, 0)?;
        let node = anchored.node.clone();
        self.put(node);
        Ok(())
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.root = Some(node),
        }
    }
}

/// The memory of a node, about.
fn memory(node: &Node) -> usize {
    let content = match &node.content {
        Content::Scalar(text) => text.len(),
        Content::List(items) => items.iter().map(memory).sum(),
        Content::Map(entries) => entries
            .iter()
            .map(|(key, value)| memory(key) + memory(value))
            .sum(),
    };
    size_of::<Node>() + node.tag.len() + content
}

fn depth(node: &Node) -> usize {
    match &node.content {
        Content::Scalar(_) => 0,
        Content::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Content::Map(entries) => {
            let values = entries.iter().flat_map(|(key, value)| [key, value]);
            1 + values.map(depth).max().unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_mean_what_they_mean_to_go_yaml_v3() {
        for (text, want) in [
            ("yes", Plain::Text),
            ("off", Plain::Text),
            ("y", Plain::Text),
            ("True", Plain::Bool(true)),
            ("0644", Plain::Int(420)),
            ("1e3", Plain::Float(1000.0)),
            ("1_000", Plain::Int(1000)),
            ("~", Plain::Null),
            ("", Plain::Null),
            ("2001-01-01", Plain::Time("2001-01-01T00:00:00Z".into())),
            (
                "2001-1-2T3:4:5.600+02:00",
                Plain::Time("2001-01-02T03:04:05.6+02:00".into()),
            ),
            (
                "12345678901234567890",
                Plain::Uint(12_345_678_901_234_567_890),
            ),
        ] {
            assert_eq!(resolve_v3(text), want, "{text}");
        }
    }

    #[test]
    fn folded_texts_change_as_they_do_in_go() {
        for (text, want) in [
            ("a b", "a b"),
            ("a\nb\n", "a\nb\n"),
            ("a(\n  b\n)", "a(\n\n  b\n)"),
            ("a\n\nb", "a\n\nb"),
            (" a\nb", " a\nb"),
        ] {
            assert_eq!(refolded(text), want, "{text:?}");
        }
    }

    #[test]
    fn nodes_keep_order_tags_and_quotes() {
        let text = "b: &x {p: '1'}\na: *x\n<<: !foo z\n";
        let node = first_node(text, &mut Limits::default())
            .expect("right")
            .expect("right");
        let Content::Map(entries) = node.content else {
            panic!("no map");
        };
        let keys: Vec<_> = entries
            .iter()
            .map(|(k, v)| (&k.tag[..], &v.tag[..]))
            .collect();
        assert_eq!(
            keys,
            [("!!str", "!!map"), ("!!str", "!!map"), ("!!merge", "!foo")]
        );
        assert_eq!(entries[0].1, entries[1].1);
        assert!(
            first_node("# nothing\n", &mut Limits::default())
                .expect("right")
                .is_none()
        );
        assert!(first_node("a: &x [*x]\n", &mut Limits::default()).is_err());
    }
}
