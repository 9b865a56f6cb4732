//! The nodes of all documents of a build, and the basic operations on them.
//!
//! Main types: [`Tree`], which owns the nodes, and [`Id`], which refers to one. kustomize changes
//! nodes through pointers and lets several fields share a node: a label set by a transformer is the
//! same node in the selector and in the template, and changing one changes all. That is why nodes
//! are referred to by id here, too. Nodes are not freed before the build ends; their number is
//! limited.

use super::clock::Clock;
use super::fault::{Fault, Res, fail};
use tiphys_gocompat::yaml::tree::{self, Content, Style};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Id(u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Neither; a node that has only a tag.
    None,
    Scalar,
    List,
    Map,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Tag {
    /// Determined by the text.
    #[default]
    Open,
    Str,
    Int,
    Float,
    Bool,
    Null,
    Map,
    List,
    Merge,
    Other(Box<str>),
}

impl Tag {
    fn named(name: &str) -> Self {
        match name {
            "!!str" => Self::Str,
            "!!int" => Self::Int,
            "!!float" => Self::Float,
            "!!bool" => Self::Bool,
            "!!null" => Self::Null,
            "!!map" => Self::Map,
            "!!seq" => Self::List,
            "!!merge" => Self::Merge,
            other => Self::Other(other.into()),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Open => "",
            Self::Str => "!!str",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Bool => "!!bool",
            Self::Null => "!!null",
            Self::Map => "!!map",
            Self::List => "!!seq",
            Self::Merge => "!!merge",
            Self::Other(name) => name,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub tag: Tag,
    /// Whether the tag is explicit.
    pub tagged: bool,
    pub style: Style,
    pub text: String,
    /// Elements, or alternating keys and values.
    pub content: Vec<Id>,
}

impl Node {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            tag: Tag::Open,
            tagged: false,
            style: Style::Plain,
            text: String::new(),
            content: Vec::new(),
        }
    }

    pub fn scalar(text: impl Into<String>, tag: Tag) -> Self {
        Self {
            tag,
            text: text.into(),
            ..Self::new(Kind::Scalar)
        }
    }
}

/// Maximum nesting depth: replacements can nest values in each other endlessly.
pub(super) const DEEPEST: usize = 500;

/// See [`Tree::mark`].
pub(super) struct Mark {
    parts: usize,
    nodes: usize,
    held: usize,
}

/// Nodes that are allocated together: a list that grows as a whole needs three times its size.
const PART: usize = 1 << 14;

pub(super) struct Tree {
    parts: Vec<Vec<Node>>,
    /// Bytes of memory, about.
    held: usize,
    most: usize,
    /// Whether something was nested too deeply to be copied.
    too_deep: bool,
    /// The time of the build.
    pub clock: Clock,
}

impl Tree {
    pub fn new(most: usize, clock: Clock) -> Self {
        Self {
            parts: vec![Vec::new()],
            held: 0,
            most,
            too_deep: false,
            clock,
        }
    }

    /// Fails if the nodes need too much memory, or if the time is over. Nodes beyond the limit are
    /// dropped until this is called.
    pub fn check(&self) -> Res<()> {
        if self.too_deep {
            return Err(too_deep());
        }
        self.room(0)?;
        self.clock.look()
    }

    /// Fails if so many bytes more would be too many.
    pub fn room(&self, bytes: usize) -> Res<()> {
        match self.held.saturating_add(bytes) < self.most {
            true => Ok(()),
            false => Err(Fault::over_budget("the memory of all values", self.most)),
        }
    }

    /// Replaces the text of a node.
    pub fn set_text(&mut self, id: Id, text: String) -> Res<()> {
        self.room(text.len())?;
        self.held += text.len();
        self.held = self.held.saturating_sub(self.at(id).text.len());
        self.at_mut(id).text = text;
        Ok(())
    }

    pub fn add(&mut self, node: Node) -> Id {
        self.held += size_of::<Node>() + node.text.len() + node.content.len() * size_of::<Id>();
        let part = self.parts.len() - 1;
        let nodes = &mut self.parts[part];
        let id = Id(u32::try_from(part * PART + nodes.len()).unwrap_or(u32::MAX));
        nodes.push(node);
        if nodes.len() == PART {
            self.parts.push(Vec::new());
        }
        id
    }

    /// Where nodes are added now.
    pub fn mark(&self) -> Mark {
        Mark {
            parts: self.parts.len(),
            nodes: self.parts.last().map_or(0, Vec::len),
            held: self.held,
        }
    }

    /// Forgets the nodes that were added since. Nothing may refer to them.
    pub fn release(&mut self, mark: &Mark) {
        self.parts.truncate(mark.parts);
        if let Some(last) = self.parts.last_mut() {
            last.truncate(mark.nodes);
        }
        self.held = mark.held;
    }

    pub fn scalar(&mut self, text: impl Into<String>, tag: Tag) -> Id {
        self.add(Node::scalar(text, tag))
    }

    pub fn empty(&mut self, kind: Kind) -> Id {
        self.add(Node::new(kind))
    }

    pub fn at(&self, id: Id) -> &Node {
        &self.parts[id.0 as usize / PART][id.0 as usize % PART]
    }

    pub fn at_mut(&mut self, id: Id) -> &mut Node {
        &mut self.parts[id.0 as usize / PART][id.0 as usize % PART]
    }

    /// Copies a node to another one; both then share their content.
    pub fn assign(&mut self, to: Id, from: Id) {
        if to != from {
            let node = self.at(from).clone();
            self.held += node.text.len() + node.content.len() * size_of::<Id>();
            *self.at_mut(to) = node;
        }
    }

    pub fn copy(&mut self, id: Id) -> Id {
        self.copy_at(id, 0)
    }

    fn copy_at(&mut self, id: Id, depth: usize) -> Id {
        self.too_deep |= depth > DEEPEST;
        if self.held >= self.most || self.too_deep {
            return self.add(Node::new(Kind::None));
        }
        let mut node = self.at(id).clone();
        for child in &mut node.content {
            *child = self.copy_at(*child, depth + 1);
        }
        self.add(node)
    }

    /// Adds a parsed node.
    pub fn read(&mut self, node: &tree::Node) -> Id {
        let style = match (node.folded, node.quoted) {
            (true, _) => Style::Folded,
            (false, true) => Style::Double,
            (false, false) => Style::Plain,
        };
        let mut own = Node {
            tag: Tag::named(&node.tag),
            tagged: node.tagged,
            style,
            ..Node::new(Kind::Scalar)
        };
        match &node.content {
            Content::Scalar(text) => own.text.clone_from(text),
            Content::List(items) => {
                own.kind = Kind::List;
                own.content = items.iter().map(|item| self.read(item)).collect();
            }
            Content::Map(entries) => {
                own.kind = Kind::Map;
                for (key, value) in entries {
                    let entry = [self.read(key), self.read(value)];
                    own.content.extend(entry);
                }
            }
        }
        self.add(own)
    }

    pub fn kind(&self, id: Id) -> Kind {
        self.at(id).kind
    }

    pub fn text(&self, id: Id) -> &str {
        &self.at(id).text
    }

    pub fn is_null(&self, id: Id) -> bool {
        self.at(id).tag == Tag::Null
    }

    /// Whether the node is null, an empty map or list, or missing; an empty string does not count.
    pub fn is_empty(&self, id: Id) -> bool {
        let node = self.at(id);
        node.tag == Tag::Null
            || node.content.is_empty() && matches!(node.kind, Kind::Map | Kind::List)
            || node.kind == Kind::None && node.tag == Tag::Open && node.text.is_empty()
    }

    pub fn is_empty_map(&self, id: Id) -> bool {
        self.is_null(id) || self.kind(id) == Kind::Map && self.at(id).content.is_empty()
    }

    /// Whether the node is a scalar tagged as a string or untagged.
    pub fn is_text(&self, id: Id) -> bool {
        let node = self.at(id);
        node.kind == Kind::Scalar && matches!(node.tag, Tag::Str | Tag::Open)
    }

    /// Fails unless the node is null or of this kind.
    pub fn expect(&self, id: Id, kind: Kind) -> Res<()> {
        let found = self.kind(id);
        if self.is_null(id) || found == kind {
            return Ok(());
        }
        let shown = self.shown(id);
        fail!(
            "wrong node kind: expected {} but got {}: node contents:\n{shown}",
            kind_name(kind),
            kind_name(found)
        )
    }

    /// The keys and values of a map.
    pub fn entries(&self, id: Id) -> impl Iterator<Item = (Id, Id)> + '_ {
        let node = self.at(id);
        let content = if node.kind == Kind::Map {
            node.content.as_slice()
        } else {
            &[]
        };
        content.chunks_exact(2).map(|entry| (entry[0], entry[1]))
    }

    pub fn elements(&self, id: Id) -> Vec<Id> {
        let node = self.at(id);
        if node.kind == Kind::List {
            node.content.clone()
        } else {
            Vec::new()
        }
    }

    /// The first entry with this key.
    pub fn entry(&self, id: Id, name: &str) -> Option<(Id, Id)> {
        self.entries(id).find(|(key, _)| self.text(*key) == name)
    }

    pub fn field(&self, id: Id, name: &str) -> Option<Id> {
        self.entry(id, name).map(|(_, value)| value)
    }

    pub fn field_text(&self, id: Id, name: &str) -> &str {
        let value = self.field(id, name).filter(|value| !self.is_null(*value));
        value.map_or("", |value| self.text(value))
    }
}

pub(super) fn too_deep() -> Fault {
    Fault::over_budget("the nesting of values", DEEPEST)
}

pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::None => "",
        Kind::Scalar => "ScalarNode",
        Kind::List => "SequenceNode",
        Kind::Map => "MappingNode",
    }
}
