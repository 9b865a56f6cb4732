//! Paths in replacements, which may match many fields and lead into JSON or YAML stored in a
//! string.
//!
//! Main functions: [`match_path`] and [`set_structured`].

use super::edit_nodes::{atoi, is_index, is_list_index, part_kind, split_index};
use super::fault::{Fault, Res, fail};
use super::tree::{DEEPEST, Id, Kind, Node, Tag, Tree};
use tiphys_gocompat::document::Document;
use tiphys_gocompat::json;
use tiphys_gocompat::regex::Regex;
use tiphys_gocompat::yaml::{self, Limits, tree::Style, tree::first_node};

/// All fields that match a path. With a kind, missing fields are created.
pub(super) fn match_path(
    tree: &mut Tree,
    id: Id,
    path: &[String],
    create: Kind,
    limits: &Limits,
) -> Res<Vec<Id>> {
    tree.clock.spend(1)?;
    let Some((part, rest)) = path.split_first() else {
        return Ok(vec![id]);
    };
    short(path, limits)?;
    if is_index(part) {
        return at_index(tree, id, part, rest, create, limits);
    }
    if is_list_index(part) {
        return matching(tree, id, part, rest, create, limits);
    }
    if part == "*" {
        tree.expect(id, Kind::List)?;
        let mut found = Vec::new();
        for element in tree.elements(id) {
            found.extend(match_path(tree, element, rest, create, limits)?);
        }
        return Ok(found);
    }
    let field = match tree.get(id, part)? {
        Some(field) => field,
        None if create == Kind::None => return Ok(Vec::new()),
        None => {
            let next = rest.first().map_or("", String::as_str);
            let field = tree.empty(part_kind(next, create));
            tree.set_field(id, part, Some(field))?;
            field
        }
    };
    if tree.kind(field) == Kind::Scalar && !rest.is_empty() {
        let inner = parse(tree, field, limits)?;
        return match_path(tree, inner, rest, create, limits);
    }
    match_path(tree, field, rest, create, limits)
}

/// Fails for a path that no document is deep enough for.
fn short(path: &[String], limits: &Limits) -> Res<()> {
    if path.len() > limits.depth {
        return fail!("the path of a replacement is longer than {}", limits.depth);
    }
    Ok(())
}

fn at_index(
    tree: &mut Tree,
    list: Id,
    part: &str,
    rest: &[String],
    create: Kind,
    limits: &Limits,
) -> Res<Vec<Id>> {
    tree.expect(list, Kind::List)?;
    let index = atoi(part).and_then(|index| usize::try_from(index).ok());
    let index = index.unwrap_or(usize::MAX);
    let count = tree.elements(list).len();
    if count == index && create != Kind::None {
        let next = rest.first().map_or("", String::as_str);
        let element = tree.empty(part_kind(next, create));
        tree.at_mut(list).content.push(element);
    }
    let Some(element) = tree.elements(list).get(index).copied() else {
        return fail!("index {part} specified but only {count} elements found");
    };
    match_path(tree, element, rest, create, limits)
}

/// `[name=expression]` matches elements with such a field, `[=expression]` the elements themselves.
fn matching(
    tree: &mut Tree,
    list: Id,
    part: &str,
    rest: &[String],
    create: Kind,
    limits: &Limits,
) -> Res<Vec<Id>> {
    let (name, expression) = split_index(part)?;
    let regex = Regex::new(expression).map_err(Fault::new)?;
    // Try again after creating an element.
    for attempt in 0..2 {
        tree.expect(list, Kind::List)?;
        let mut found = Vec::new();
        for element in tree.elements(list) {
            // Expressions may take long.
            tree.clock.look()?;
            if name.is_empty() {
                if regex.is_match(&printed(tree, element)) {
                    found.push(element);
                }
                continue;
            }
            let Some(value) = tree.field(element, name) else {
                continue;
            };
            if regex.is_match(&printed(tree, value)) {
                found.extend(match_path(tree, element, rest, create, limits)?);
            }
        }
        if create == Kind::None || !found.is_empty() || attempt == 1 {
            return Ok(found);
        }
        let element = tree.element(name, expression);
        tree.at_mut(list).content.push(element);
    }
    Ok(Vec::new())
}

/// A node as YAML, for matching against expressions.
fn printed(tree: &Tree, id: Id) -> String {
    let node = tree.at(id);
    match node.kind {
        Kind::Scalar if node.style == Style::Plain => node.text.trim().to_owned(),
        Kind::Scalar => json::quote(&node.text),
        _ => print(tree, id).trim().to_owned(),
    }
}

/// Parses the document in a string.
fn parse(tree: &mut Tree, field: Id, limits: &Limits) -> Res<Id> {
    let text = tree.text(field).to_owned();
    let mut budget = *limits;
    match first_node(&text, &mut budget) {
        Ok(Some(node)) => Ok(tree.read(&node)),
        Ok(None) => Ok(tree.empty(Kind::None)),
        Err(error) => fail!("yaml: {}", error.go_text()),
    }
}

/// Writes into a document stored in a string along the path; fails if there is none.
pub(super) fn set_structured(
    tree: &mut Tree,
    root: Id,
    value: Id,
    path: &[String],
    create: Kind,
    limits: &Limits,
) -> Res<()> {
    short(path, limits)?;
    // The document is only in its text again in the end.
    let mark = tree.mark();
    let mut found = None;
    for end in 1..path.len() {
        if let Ok(Some(field)) = tree.lookup(root, &path[..end])
            && tree.kind(field) == Kind::Scalar
            && let Ok(inner) = parse(tree, field, limits)
        {
            found = Some((field, inner, &path[end..]));
            break;
        }
    }
    let Some((field, inner, rest)) = found else {
        return fail!("no structured data found in path");
    };
    let targets = match_path(tree, inner, rest, create, limits)?;
    if targets.is_empty() {
        return fail!("unable to find field in structured data");
    }
    for target in targets {
        if tree.kind(target) == Kind::Scalar {
            let text = tree.text(value).to_owned();
            tree.set_text(target, text)?;
        } else {
            tree.assign(target, value);
        }
    }
    let before = tree.text(field).to_owned();
    let text = match before.trim_start().chars().next() {
        None => return fail!("there is nothing to write into"),
        Some('{' | '[') => {
            let value = tree.json_value(inner)?;
            if before.contains('\n') && before.contains("  ") {
                json::to_string_pretty(&value, "  ")
            } else {
                json::to_string(&value)
            }
        }
        Some(_) => print(tree, inner).trim().to_owned(),
    };
    tree.release(&mark);
    tree.set_text(field, text)
}

/// Prints a node as YAML, keeping the order of keys. Comments are lost.
fn print(tree: &Tree, id: Id) -> String {
    let mut out = String::new();
    print_at(tree, id, 0, &mut out);
    out
}

fn print_at(tree: &Tree, id: Id, indent: usize, out: &mut String) {
    if indent > 2 * DEEPEST {
        return;
    }
    let node = tree.at(id);
    match node.kind {
        Kind::Map if !node.content.is_empty() => {
            for (index, (key, value)) in tree.entries(id).enumerate() {
                if index > 0 {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str(scalar(tree.at(key), 0).trim_end());
                out.push(':');
                print_value(tree, value, indent, out);
            }
        }
        Kind::List if !node.content.is_empty() => {
            for (index, element) in node.content.iter().enumerate() {
                if index > 0 {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str("- ");
                print_at(tree, *element, indent + 2, out);
            }
        }
        Kind::Map => out.push_str("{}\n"),
        Kind::List => out.push_str("[]\n"),
        Kind::Scalar => out.push_str(&scalar(node, indent)),
        Kind::None => out.push('\n'),
    }
}

fn print_value(tree: &Tree, value: Id, indent: usize, out: &mut String) {
    let node = tree.at(value);
    let nested = |by: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&" ".repeat(indent + by));
        print_at(tree, value, indent + by, out);
    };
    match node.kind {
        Kind::Map if !node.content.is_empty() => nested(2, out),
        Kind::List if !node.content.is_empty() => nested(0, out),
        _ => {
            out.push(' ');
            print_at(tree, value, indent + 2, out);
        }
    }
}

/// Prints a scalar and a line break; further lines are indented.
fn scalar(node: &Node, indent: usize) -> String {
    let text = match (node.style, &node.tag) {
        (Style::Double, _) => format!("{}\n", json::quote(&node.text)),
        (Style::Plain, tag) if *tag != Tag::Str && !node.text.contains('\n') => {
            format!("{}\n", node.text)
        }
        _ => yaml::to_string_v3(&Document::Text(node.text.clone())),
    };
    let lines = text.lines().enumerate().map(|(index, line)| {
        // A printed block is already indented by two.
        let by = indent.saturating_sub(2);
        if index == 0 || line.is_empty() {
            line.to_owned()
        } else {
            format!("{}{line}", " ".repeat(by))
        }
    });
    let mut text: String = lines.collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}
