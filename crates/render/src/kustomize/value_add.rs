//! The transformer that writes one value to many fields; a kustomization has no field for it.
//!
//! Main function: [`apply`].

use super::Build;
use super::edit_nodes::split_path;
use super::fault::{Fault, Res, fail};
use super::loader::Loader;
use super::names::{Unknown, normal};
use super::resmap::ResMap;
use super::selector::Selector;
use super::transform::{Namespace, Subjects};
use super::tree::{Kind, Tag};
use serde::Deserialize;
use serde_json::{Map, Value};
use tiphys_gocompat::yaml::{Duplicates, parse_document};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Target {
    selector: Option<Selector>,
    field_path: String,
    file_path_position: i64,
}

pub(super) fn apply<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    config: &Map<String, Value>,
    map: &ResMap,
) -> Res<()> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let value = match text("value").trim() {
        "" => loader.base_name(),
        value => value,
    };
    let read = |list: Option<&Value>| -> Res<Vec<Target>> {
        let list = list.cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        serde_json::from_value(list).map_err(|error| Fault::new(format!("json: {error}")))
    };
    let mut targets = read(config.get("targets"))?;
    let file = text("targetFilePath");
    if !file.is_empty() {
        let content = loader.load(build, file)?;
        let document = parse_document(content, &build.yaml_limits(), Duplicates::LastWins)
            .map_err(|error| Fault::new(error.json_text()))?;
        let document = normal(document, "Plugin", Unknown::LeftOut).map_err(Fault::new)?;
        targets.extend(read(document.get("targets"))?);
    }
    if targets.is_empty() {
        return fail!("must specify at least one target");
    }
    for target in &targets {
        if target.field_path.is_empty() {
            return fail!("fieldPath cannot be empty");
        }
        let position = target.file_path_position;
        if position < 0 {
            return fail!("value of FilePathPosition ({position}) cannot be negative");
        }
    }
    for target in &targets {
        let selected = match &target.selector {
            Some(selector) => map.select(&build.tree, selector)?,
            None => (0..map.list.len()).collect(),
        };
        for index in selected {
            build.tree.clock.spend(1)?;
            let Some(object) = map.list[index].object() else {
                continue;
            };
            if target.field_path == "metadata/namespace" {
                let namespace = Namespace {
                    name: value.to_owned(),
                    specs: Vec::new(),
                    unset_only: false,
                    subjects: Subjects::NamedDefault,
                };
                namespace.apply_to(&mut build.tree, object)?;
                continue;
            }
            let path = split_path(&target.field_path, '/');
            let tree = &mut build.tree;
            let Some(field) = tree.lookup_or_create(object.0, &path, Kind::Scalar)? else {
                continue;
            };
            tree.expect(field, Kind::Scalar)?;
            let new = match usize::try_from(target.file_path_position) {
                Ok(position) if position > 0 => inserted(tree.text(field), position - 1, value),
                _ => value.to_owned(),
            };
            tree.set_scalar_text(field, &new, Tag::Open)?;
        }
    }
    Ok(())
}

/// Inserts a part into a path at an index, or at the end if the path is shorter.
fn inserted(path: &str, at: usize, part: &str) -> String {
    let (root, rest) = match path.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", path),
    };
    let mut parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(at.min(parts.len()), part);
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::inserted;

    #[test]
    fn parts_are_put_into_paths() {
        for (path, at, want) in [
            ("", 0, "PEACH"),
            ("/", 3, "/PEACH"),
            ("pie", 0, "PEACH/pie"),
            ("/raw", 9, "/raw/PEACH"),
            ("a/nice/warm/pie", 3, "a/nice/warm/PEACH/pie"),
        ] {
            assert_eq!(inserted(path, at, "PEACH"), want);
        }
    }
}
