//! Patches of all kinds.
//!
//! Main functions: [`apply`] for `patches`, [`apply_strategic`] and [`apply_json`] for the two
//! older fields.

use super::Build;
use super::configured::{self, shown_entry};
use super::fault::{Fault, HIDDEN, Res, fail, hidden};
use super::kustomization::Patch;
use super::loader::Loader;
use super::resmap::{ResMap, objects_of};
use super::resource::{ALLOW_KIND_CHANGE, ALLOW_NAME_CHANGE, Object, Texts};
use super::selector::Selector;
use super::tree::Id;
use serde_json::Value;
use tiphys_apimachinery::patch;
use tiphys_gocompat::yaml::{Duplicates, parse_document};

/// Parses the objects in a text.
pub(super) fn objects(build: &mut Build<'_>, text: &[u8]) -> Res<Vec<Id>> {
    let limits = build.yaml_limits();
    let roots = super::read::documents(&mut build.tree, text, &limits)?;
    let objects = objects_of(&mut build.tree, roots, &limits)?;
    let kinds: Vec<_> = objects
        .iter()
        .map(|id| Object(*id).gvk(&build.tree))
        .collect();
    build.saw(kinds);
    Ok(objects)
}

/// The result of reading a text that may be either kind of patch.
enum Read {
    Strategic(Vec<Id>),
    Json(Value),
}

fn shown(own: &Patch) -> String {
    configured::text(&configured::patch_fields(own))
}

/// A patch ready to be applied.
pub(super) struct Prepared {
    read: Read,
    target: Option<Selector>,
    source: String,
}

pub(super) fn prepare<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    own: &Patch,
) -> Res<Prepared> {
    let inline = own.patch.trim();
    let (text, source) = match (inline.is_empty(), own.path.is_empty()) {
        (true, true) => return fail!("must specify one of patch and path in\n{}", shown(own)),
        (false, false) => {
            return fail!(
                "patch and path can't be set at the same time\n{}",
                shown(own)
            );
        }
        (false, true) => (inline.as_bytes().to_vec(), format!("[patch: {HIDDEN}]")),
        (true, false) => {
            let content = loader.load(build, &own.path).map_err(|fault| {
                fault.within(format!(
                    "failed to get the patch file from path({})",
                    own.path
                ))
            })?;
            (content, format!("[path: {:?}]", own.path))
        }
    };
    let strategic = objects(build, &text);
    let json = json_patch(build, &text);
    let operations = |json: &Res<Value>| {
        let list = json.as_ref().ok().and_then(Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    let read = match (strategic, json) {
        (Err(fault), _) if fault.is_final() => return Err(fault),
        (Ok(objects), json) if !objects.is_empty() && operations(&json) => {
            return fail!("illegally qualifies as both an SM and JSON patch: {source}");
        }
        (Ok(objects), _) => Read::Strategic(objects),
        (Err(_), Ok(json)) => Read::Json(json),
        (Err(_), Err(_)) => {
            return fail!("unable to parse SM or JSON patch from {source}");
        }
    };
    if let (Read::Strategic(objects), Some(options)) = (&read, &own.options) {
        for id in objects {
            let object = Object(*id);
            if options.allow_name_change {
                object.enable(&mut build.tree, ALLOW_NAME_CHANGE)?;
            }
            if options.allow_kind_change {
                object.enable(&mut build.tree, ALLOW_KIND_CHANGE)?;
            }
        }
    }
    Ok(Prepared {
        read,
        target: own.target.clone(),
        source,
    })
}

pub(super) fn apply(build: &mut Build<'_>, map: &mut ResMap, own: &Prepared) -> Res<()> {
    build.tree.clock.look()?;
    match &own.read {
        Read::Json(operations) => {
            let Some(target) = &own.target else {
                return fail!("must specify a target for JSON patch {}", own.source);
            };
            let selected = map.select(&build.tree, target)?;
            for index in selected {
                if let Some(object) = map.list[index].object() {
                    object.remember_id(&mut build.tree)?;
                    apply_operations(build, object, operations)?;
                }
            }
            Ok(())
        }
        Read::Strategic(patches) => match &own.target {
            Some(target) => {
                let [patch] = patches.as_slice() else {
                    if patches.is_empty() {
                        return Ok(());
                    }
                    return fail!(
                        "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target` field: {}",
                        own.source
                    );
                };
                let selected = map.select(&build.tree, target)?;
                let schema = build.schema();
                map.patch(&mut build.tree, &schema, &selected, Object(*patch))
            }
            None => {
                for patch in patches {
                    let patch = Object(*patch);
                    let id = patch.original_id(&build.tree)?;
                    let index = map.patched_by(&build.tree, &id).map_err(|fault| {
                        fault.within(format!(
                            "no resource matches strategic merge patch \"{id}\""
                        ))
                    })?;
                    let schema = build.schema();
                    map.list[index].patch(&mut build.tree, &schema, patch)?;
                }
                Ok(())
            }
        },
    }
}

/// `patchesStrategicMerge`: each entry is either a patch or the path of one.
pub(super) fn load_strategic<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    entries: &[String],
) -> Res<Vec<Id>> {
    let mut patches = Vec::new();
    for entry in entries {
        let read = match objects(build, entry.as_bytes()) {
            Err(fault) if !fault.is_final() => {
                let content = match loader.load(build, entry) {
                    // It would name the text of a patch as a file that is not there.
                    Err(other) if !other.is_final() && shown_entry(entry) != entry => {
                        return Err(fault);
                    }
                    content => content?,
                };
                objects(build, &content).map_err(|fault| in_file(fault, entry))?
            }
            read => read?,
        };
        patches.extend(read);
    }
    if patches.is_empty() {
        let shown: Vec<&str> = entries.iter().map(|entry| shown_entry(entry)).collect();
        return fail!(
            "patch appears to be empty; files=[{}], Patch=",
            shown.join(" ")
        );
    }
    Ok(patches)
}

pub(super) fn apply_strategic(build: &mut Build<'_>, map: &mut ResMap, patches: &[Id]) -> Res<()> {
    for patch in patches {
        build.tree.clock.look()?;
        let patch = Object(*patch);
        let id = patch.original_id(&build.tree)?;
        let index = map.patched_by(&build.tree, &id)?;
        let schema = build.schema();
        map.patch(&mut build.tree, &schema, &[index], patch)?;
    }
    Ok(())
}

/// `patchesJson6902`.
pub(super) fn load_json<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    own: &Patch,
) -> Res<(Selector, Value)> {
    let Some(target) = own.target.clone().filter(|target| !target.name.is_empty()) else {
        return fail!("must specify the target name");
    };
    let text = match (own.path.is_empty(), own.patch.is_empty()) {
        (true, true) => return fail!("empty file path and empty jsonOp"),
        (false, false) => return fail!("must specify a file path or jsonOp, not both"),
        (true, false) => own.patch.clone().into_bytes(),
        (false, true) => loader.load(build, &own.path)?,
    };
    if text.is_empty() {
        return fail!("patch file '{}' empty seems to be empty", own.path);
    }
    let operations =
        json_patch(build, &text).map_err(|fault| fault.within(format!("decoding {HIDDEN}")))?;
    if operations.as_array().is_none_or(Vec::is_empty) {
        return fail!(
            "patch appears to be empty; file={}, JsonOp={}",
            own.path,
            hidden(&own.patch)
        );
    }
    Ok((target, operations))
}

pub(super) fn apply_json(
    build: &mut Build<'_>,
    map: &ResMap,
    (target, operations): &(Selector, Value),
) -> Res<()> {
    build.tree.clock.look()?;
    for index in map.select(&build.tree, target)? {
        if let Some(object) = map.list[index].object() {
            apply_operations(build, object, operations)?;
        }
    }
    Ok(())
}

/// Reads the operations of a JSON patch, in JSON or YAML.
fn json_patch(build: &Build<'_>, text: &[u8]) -> Res<Value> {
    if text.is_empty() {
        return fail!("empty json patch operations");
    }
    let value: Value = if text.first() == Some(&b'[') {
        match serde_json::from_slice(text) {
            Ok(value) => value,
            Err(error) => return fail!("{error}"),
        }
    } else {
        parse_document(text, &build.yaml_limits(), Duplicates::LastWins)
            .map_err(|error| Fault::new(error.json_text()))?
    };
    let operations = |list: &Vec<Value>| list.iter().all(|o| o.is_object() || o.is_null());
    match &value {
        Value::Null => Ok(Value::Array(Vec::new())),
        Value::Array(list) if operations(list) => Ok(value),
        other => fail!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
            tiphys_gocompat::json::kind(other)
        ),
    }
}

fn apply_operations(build: &mut Build<'_>, object: Object, operations: &Value) -> Res<()> {
    let tree = &mut build.tree;
    let kept = |name: &String| {
        name.starts_with("internal.config.kubernetes.io/")
            || [
                "config.kubernetes.io/path",
                "config.kubernetes.io/index",
                "config.k8s.io/id",
            ]
            .contains(&name.as_str())
    };
    let mut internal: Texts = object.annotations(tree);
    internal.retain(|name, _| kept(name));
    let mut json = tree.json(object.0)?;
    patch::json::apply_in_place(&mut json, operations)
        .map_err(|error| Fault::new(error.to_string()))?;
    if !json.is_object() {
        let kind = tiphys_gocompat::json::kind(&json);
        return fail!(
            "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        );
    }
    let new = tree.add_json(&json);
    tree.assign(object.0, new);
    tree.check()?;
    let mut annotations = object.annotations(tree);
    annotations.extend(internal);
    object.set_annotations(tree, &annotations)
}

/// Adds the file name to errors about malformed text.
pub(super) fn in_file(fault: Fault, path: &str) -> Fault {
    match fault.cause {
        super::fault::Cause::Malformed => Fault {
            text: format!("{} in File: {path}", fault.text),
            ..fault
        },
        _ => fault,
    }
}
