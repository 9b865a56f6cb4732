//! Parses the text of a file into documents.
//!
//! Main function: [`documents`]. Documents are split at lines starting with `---` before parsing;
//! aliases and merge keys are expanded.

use super::fault::{Cause, Fault, Res, fail};
use super::tree::{Id, Kind, Tag, Tree};
use std::borrow::Cow;
use tiphys_gocompat::yaml::{Limits, YamlError, decode_text, tree::first_node};

/// All non-empty documents of a text. A text that is a single `kind: List` yields its items.
pub(super) fn documents(tree: &mut Tree, bytes: &[u8], limits: &Limits) -> Res<Vec<Id>> {
    let text = decode_text(bytes, limits).map_err(|error| malformed(&error))?;
    let text = if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        text
    };
    let chunks = chunks(&text, limits)?;
    let mut budget = *limits;
    let mut found = Vec::new();
    for chunk in &chunks {
        tree.clock.spend(1 + chunk.len() / 256)?;
        let node = first_node(chunk, &mut budget).map_err(|error| malformed(&error))?;
        let Some(node) = node else { continue };
        let id = tree.read(&node);
        if tree.is_null(id) {
            continue;
        }
        let items = items(tree, id).filter(|_| chunks.len() == 1);
        match items {
            Some(items) => found.extend(items),
            None => found.push(id),
        }
    }
    tree.check()?;
    for id in &found {
        merge_keys(tree, *id)?;
    }
    Ok(found)
}

fn malformed(error: &YamlError) -> Fault {
    Fault {
        text: format!("MalformedYAMLError: yaml: {}", error.go_text()),
        cause: Cause::Malformed,
    }
}

/// The items of a list object.
fn items(tree: &Tree, id: Id) -> Option<Vec<Id>> {
    let kind = tree.field_text(id, "kind");
    if kind != "List" && kind != "ResourceList" {
        return None;
    }
    match tree.field(id, "items") {
        Some(items) => Some(tree.elements(items)),
        None => tree.field(id, "functionConfig").map(|_| Vec::new()),
    }
}

fn chunks<'t>(text: &'t str, limits: &Limits) -> Res<Vec<&'t str>> {
    let mut chunks = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(at) = text[from..].find("\n---").map(|at| at + from) {
        // A separator needs its own line, and includes the line break after it.
        let Some(end) = text[at + 4..].find('\n').map(|end| at + 4 + end) else {
            break;
        };
        let rest = text[at + 4..end].trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            return fail!("invalid document separator: {}", text[at..end].trim());
        }
        chunks.push(&text[start..=at]);
        (start, from) = (end + 1, end + 1);
        if chunks.len() > limits.documents {
            return Err(Fault::over_budget(
                "the number of documents",
                limits.documents,
            ));
        }
    }
    chunks.push(&text[start..]);
    Ok(chunks)
}

/// Expands the merge keys of a map and of everything below it.
fn merge_keys(tree: &mut Tree, id: Id) -> Res<()> {
    tree.clock.spend(1)?;
    if tree.kind(id) == Kind::Map {
        let merges: Vec<_> = tree
            .entries(id)
            .filter(|(key, _)| tree.at(*key).tag == Tag::Merge)
            .collect();
        if let [(_, value), more @ ..] = merges.as_slice() {
            if !more.is_empty() {
                return fail!("duplicate merge key");
            }
            let mut sources = merge_sources(tree, *value)?;
            tree.clear(id, "<<")?;
            sources.push(id);
            merge_all(tree, id, &sources)?;
        }
    }
    for child in tree.at(id).content.clone() {
        merge_keys(tree, child)?;
    }
    Ok(())
}

/// The maps of a merge key, in ascending precedence.
fn merge_sources(tree: &Tree, value: Id) -> Res<Vec<Id>> {
    match tree.kind(value) {
        Kind::Map => Ok(vec![value]),
        Kind::List => {
            let mut sources = Vec::new();
            for item in tree.elements(value) {
                if tree.kind(item) == Kind::List {
                    return fail!("invalid map merge: received a nested sequence");
                }
                sources.splice(0..0, merge_sources(tree, item)?);
            }
            Ok(sources)
        }
        _ => fail!("map merge requires map or sequence of maps as the value"),
    }
}

/// The map starts with its own keys; then each source sets its keys.
fn merge_all(tree: &mut Tree, id: Id, sources: &[Id]) -> Res<()> {
    let target = tree.copy(id);
    for source in sources {
        let source = tree.copy(*source);
        let entries: Vec<_> = tree.entries(source).collect();
        for (key, value) in entries {
            tree.clock.spend(1 + tree.at(target).content.len() / 16)?;
            let name = tree.text(key).to_owned();
            let at = tree
                .entries(target)
                .position(|(key, _)| tree.text(key) == name);
            let content = &mut tree.at_mut(target).content;
            match at {
                Some(at) => content[2 * at..2 * at + 2].copy_from_slice(&[key, value]),
                None => content.extend([key, value]),
            }
        }
    }
    tree.assign(id, target);
    tree.check()
}
