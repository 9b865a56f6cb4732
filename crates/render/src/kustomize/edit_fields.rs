//! How the steps of [`super::edit`] change single fields of a kustomization.

use super::fault::{Res, fail};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(super) fn list_at<'m>(own: &'m mut Map<String, Value>, name: &str) -> &'m mut Vec<Value> {
    let list = own
        .entry(name.to_owned())
        .or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    match list {
        Value::Array(list) => list,
        _ => unreachable!("it has just been made one"),
    }
}

pub(super) fn map_at<'m>(
    own: &'m mut Map<String, Value>,
    name: &str,
) -> &'m mut Map<String, Value> {
    let map = own
        .entry(name.to_owned())
        .or_insert_with(|| Value::Object(Map::new()));
    if !map.is_object() {
        *map = Value::Object(Map::new());
    }
    match map {
        Value::Object(map) => map,
        _ => unreachable!("it has just been made one"),
    }
}

/// Parses the pairs as the command does: the first colon ends a name, and quotes around a value are
/// removed.
pub(super) fn parsed(
    texts: &BTreeMap<String, String>,
    what: &str,
) -> Res<BTreeMap<String, String>> {
    let mut pairs = BTreeMap::new();
    for (name, text) in texts {
        let whole = format!("{name}:{text}");
        let (name, text) = whole.split_once(':').unwrap_or((&whole, ""));
        if name.is_empty() {
            return fail!("invalid {what}: '{whole}' (need k:v pair where v may be quoted)");
        }
        let inner = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        pairs.insert(name.to_owned(), inner.unwrap_or(text).to_owned());
    }
    Ok(pairs)
}

pub(super) fn add_texts(
    map: &mut Map<String, Value>,
    texts: &BTreeMap<String, String>,
    force: bool,
    what: &str,
) -> Res<()> {
    for (name, text) in texts {
        if map.contains_key(name) && !force {
            return fail!("{what} {name} already in kustomization file. Use --force to override.");
        }
        map.insert(name.clone(), text.as_str().into());
    }
    Ok(())
}

/// Adds to the first entry of `labels` for the same fields, or to a new one.
pub(super) fn add_labels(
    own: &mut Map<String, Value>,
    texts: &BTreeMap<String, String>,
    force: bool,
    templates: bool,
) -> Res<()> {
    let entries = list_at(own, "labels");
    let is = |entry: &Value, name: &str| entry.get(name) == Some(&Value::Bool(true));
    let at = entries.iter().position(|entry| {
        !is(entry, "includeSelectors") && is(entry, "includeTemplates") == templates
    });
    let at = at.unwrap_or_else(|| {
        entries.push(if templates {
            json!({ "includeTemplates": true })
        } else {
            json!({})
        });
        entries.len() - 1
    });
    match entries.get_mut(at) {
        Some(Value::Object(entry)) => add_texts(map_at(entry, "pairs"), texts, force, "label"),
        _ => fail!("labels must be a list of maps"),
    }
}

pub(super) fn set_replicas(own: &mut Map<String, Value>, replicas: &[String]) -> Res<()> {
    let mut all = BTreeMap::new();
    for replica in replicas {
        let parts: Vec<&str> = replica.split('=').collect();
        let count = match parts.as_slice() {
            [name, count] => count.parse::<i64>().ok().map(|count| (*name, count)),
            _ => None,
        };
        let Some((name, count)) = count else {
            return fail!("invalid format of replica, use the following format: <name>=<count>");
        };
        all.insert(name.to_owned(), json!({ "name": name, "count": count }));
    }
    let list = list_at(own, "replicas");
    for replica in std::mem::take(list) {
        let name = replica
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        all.entry(name.to_owned()).or_insert(replica);
    }
    list.extend(all.into_values());
    Ok(())
}

/// Parses an image argument; `*` stands for the value in the file.
fn image_of(argument: &str) -> Res<[String; 4]> {
    let (key, value) = match argument.split_once('=') {
        Some((key, value)) => (key, value),
        None => ("", argument),
    };
    let (name, tag, digest) = super::transform::split_image(value);
    if name == argument {
        return fail!(
            "invalid format of image, use one of the following options:\n- <image>=<newimage>:<newtag>\n- <image>=<newimage>@<digest>\n- <image>=<newimage>:<newtag>@<digest>\n- <image>=<newimage>\n- <image>:<newtag>\n- <image>:<newtag>@<digest>\n- <image>@<digest>"
        );
    }
    let (name, new_name) = if key.is_empty() {
        (name, "")
    } else {
        (key, name)
    };
    Ok([name, new_name, tag, digest].map(str::to_owned))
}

const IMAGE_FIELDS: [&str; 4] = ["name", "newName", "newTag", "digest"];

pub(super) fn set_images(own: &mut Map<String, Value>, images: &[String]) -> Res<()> {
    let mut new = BTreeMap::new();
    for image in images {
        let image = image_of(image)?;
        new.insert(image[0].clone(), image);
    }
    let old_names = own.remove("imageTags");
    let list = list_at(own, "images");
    let mut before = std::mem::take(list);
    if let Some(Value::Array(more)) = old_names {
        before.extend(more);
    }
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    for image in before {
        let text = |name| image.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        match new.get_mut(&name) {
            Some(new) => {
                for (new, field) in new.iter_mut().zip(IMAGE_FIELDS).skip(1) {
                    if new == "*" {
                        text(field).clone_into(new);
                    }
                }
            }
            None => {
                all.insert(name, image);
            }
        }
    }
    for (name, image) in new {
        let fields = image.into_iter().zip(IMAGE_FIELDS);
        let fields = fields.filter(|(text, _)| !text.is_empty() && text != "*");
        let image: Map<_, _> = fields
            .map(|(text, field)| (field.to_owned(), text.into()))
            .collect();
        all.insert(name, Value::Object(image));
    }
    list.extend(all.into_values());
    Ok(())
}
