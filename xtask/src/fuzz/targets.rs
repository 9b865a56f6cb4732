//! The fuzz targets: a name, seeds, and the invariants for every input. A panic, an endless loop or
//! too much memory is a failure as well.

use super::{helm, inputs, kustomize, outside, plugin, signed, worker};
use crate::parity::template::world;
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::{
    Gvk, Object,
    object::holds_null,
    patch::{
        apply::{self, ApplyOptions, fieldset::FieldSet},
        json, json_merge, last_applied, migrate, strategic, three_way,
    },
    schema::{self, Schema, TypeRef, crd},
};
use tiphys_gocompat::{
    template::{Budget, Limits, MissingKey, Options, TemplateSet, execute},
    yaml,
};

pub struct Target {
    pub name: &'static str,
    /// One seed per line.
    pub seeds: &'static str,
    pub run: fn(&[u8]) -> Result<(), String>,
}

pub static ALL: [Target; 29] = [
    Target {
        name: "json",
        seeds: include_str!("seeds/json.txt"),
        run: run_json,
    },
    Target {
        name: "json-patch",
        seeds: include_str!("seeds/json-patch.txt"),
        run: run_json_patch,
    },
    Target {
        name: "strategic-merge",
        seeds: include_str!("seeds/strategic-merge.txt"),
        run: run_strategic,
    },
    Target {
        name: "fields-v1",
        seeds: include_str!("seeds/fields-v1.txt"),
        run: run_fields,
    },
    Target {
        name: "crd-schema",
        seeds: include_str!("seeds/crd-schema.txt"),
        run: run_crd,
    },
    Target {
        name: "template",
        seeds: include_str!("seeds/template.txt"),
        run: run_template,
    },
    Target {
        name: "chart-archive",
        seeds: include_str!("seeds/chart-archive.txt"),
        run: helm::run_archive,
    },
    Target {
        name: "chart",
        seeds: include_str!("seeds/chart.txt"),
        run: helm::run_chart,
    },
    Target {
        name: "index",
        seeds: include_str!("seeds/index.txt"),
        run: run_index,
    },
    Target {
        name: "oci-manifest",
        seeds: include_str!("seeds/oci-manifest.txt"),
        run: tiphys_repo::read_manifest,
    },
    Target {
        name: "oci-layer",
        seeds: include_str!("seeds/chart-archive.txt"),
        run: helm::run_layer,
    },
    Target {
        name: "oci-challenge",
        seeds: include_str!("seeds/oci-challenge.txt"),
        run: tiphys_repo::read_challenge,
    },
    Target {
        name: "pgp",
        seeds: include_str!("seeds/pgp.txt"),
        run: signed::run,
    },
    Target {
        name: "strvals",
        seeds: include_str!("seeds/strvals.txt"),
        run: helm::run_strvals,
    },
    Target {
        name: "yaml",
        seeds: include_str!("seeds/yaml.txt"),
        run: helm::run_yaml,
    },
    Target {
        name: "jq",
        seeds: include_str!("seeds/jq.txt"),
        run: inputs::run_jq,
    },
    Target {
        name: "lua",
        seeds: include_str!("seeds/lua.txt"),
        run: inputs::run_lua,
    },
    Target {
        name: "selector",
        seeds: include_str!("seeds/selector.txt"),
        run: inputs::run_selector,
    },
    Target {
        name: "values-schema",
        seeds: include_str!("seeds/values-schema.txt"),
        run: inputs::run_values_schema,
    },
    Target {
        name: "toml",
        seeds: include_str!("seeds/toml.txt"),
        run: inputs::run_toml,
    },
    Target {
        name: "query",
        seeds: include_str!("seeds/query.txt"),
        run: inputs::run_query,
    },
    Target {
        name: "kube-body",
        seeds: include_str!("seeds/kube-body.txt"),
        run: inputs::run_kube,
    },
    Target {
        name: "expr",
        seeds: include_str!("seeds/expr.txt"),
        run: outside::run_expr,
    },
    Target {
        name: "jsonnet",
        seeds: include_str!("seeds/jsonnet.txt"),
        run: outside::run_jsonnet,
    },
    Target {
        name: "grpc",
        seeds: include_str!("seeds/grpc.txt"),
        run: outside::run_grpc,
    },
    Target {
        name: "tree",
        seeds: include_str!("seeds/tree.txt"),
        run: outside::run_tree,
    },
    Target {
        name: "kustomization",
        seeds: include_str!("seeds/kustomization.txt"),
        run: kustomize::run,
    },
    Target {
        name: "plugin-frames",
        seeds: include_str!("seeds/plugin-frames.txt"),
        run: plugin::run,
    },
    Target {
        name: "worker-frames",
        seeds: include_str!("seeds/worker-frames.txt"),
        run: worker::run,
    },
];

pub fn holds(condition: bool, what: &str) -> Result<(), String> {
    if condition {
        Ok(())
    } else {
        Err(format!("does not hold: {what}"))
    }
}

/// Seeds are lines, so `|` is the end of one.
fn run_index(input: &[u8]) -> Result<(), String> {
    let text: Vec<u8> = input
        .iter()
        .map(|byte| if *byte == b'|' { b'\n' } else { *byte })
        .collect();
    tiphys_repo::read_index(&text)
}

/// The parts of an input that is a list; None if it is not JSON, which is fine.
fn parts<const N: usize>(input: &[u8]) -> Option<[Value; N]> {
    let list: Vec<Value> = serde_json::from_slice(input).ok()?;
    list.try_into().ok()
}

/// Parsed as JSON, as YAML, and as an object.
fn run_json(input: &[u8]) -> Result<(), String> {
    // Its errors are not failures; it only has to end.
    let _ = yaml::parse_documents(input, &yaml::Limits::default());
    let Ok(value) = serde_json::from_slice::<Value>(input) else {
        return Ok(());
    };
    holds(
        serde_json::from_str::<Value>(&value.to_string()).is_ok_and(|again| again == value),
        "JSON is read as it was written",
    )?;
    let Ok(mut object) = Object::from_value(value) else {
        return Ok(());
    };
    let _ = (
        object.name().len(),
        object.labels(),
        object.annotations(),
        object.finalizers(),
        object.gvk(),
        object.deletion_timestamp(),
    );
    last_applied::write(&mut object);
    let _ = last_applied::read(&object);
    Ok(())
}

/// `[document, JSON patch, merge patch]`
fn run_json_patch(input: &[u8]) -> Result<(), String> {
    let Some([doc, operations, merge]) = parts(input) else {
        return Ok(());
    };
    let _ = json::apply(&doc, &operations);
    let _ = json_merge::create_three_way(&operations, &merge, &doc);
    if let Ok(merged) = json_merge::apply(&doc, &merge)
        && doc.is_object()
    {
        // The reference keeps nulls in a list that replaces a map, and drops them in one that
        // replaces a list.
        let again = || json_merge::apply(&merged, &merge) == Ok(merged.clone());
        holds(
            holds_null(&merge) || again(),
            "a merge patch changes nothing the second time",
        )?;
        if let (false, Ok(patch)) = (
            holds_null(&merged),
            json_merge::create_two_way(&doc, &merged),
        ) {
            holds(
                json_merge::apply(&doc, &patch) == Ok(merged),
                "the patch makes what it was made from",
            )?;
        }
    }
    let _ = three_way::explain(&operations, &merge, &doc, None);
    Ok(())
}

fn deployment() -> TypeRef<'static> {
    schema::builtin()
        .type_for(&Gvk::new("apps", "v1", "Deployment"))
        .expect("it is built in")
}

/// `[original, modified, current]`, each a document or a patch
fn run_strategic(input: &[u8]) -> Result<(), String> {
    let Some([original, modified, current]) = parts(input) else {
        return Ok(());
    };
    let ty = deployment();
    let _ = strategic::apply(&current, &modified, ty);
    let _ = strategic::sort_merge_lists(&current, ty);
    if let Ok(patch) = strategic::create_two_way(&original, &modified, ty) {
        let _ = strategic::apply(&original, &patch, ty);
    }
    for overwrite in [true, false] {
        if let Ok(patch) = three_way::create(&original, &modified, &current, Some(ty), overwrite) {
            let _ = three_way::check_identity_unchanged(&patch);
            let _ = strategic::apply(&current, &patch, ty);
        }
    }
    let _ = three_way::explain(&original, &modified, &current, Some(ty));
    Ok(())
}

/// `[fieldsV1, live object, configuration]`
fn run_fields(input: &[u8]) -> Result<(), String> {
    let Some([fields, live, config]) = parts(input) else {
        return Ok(());
    };
    if let Ok(set) = FieldSet::from_json(&fields) {
        holds(
            FieldSet::from_json(&set.to_json()).as_ref() == Ok(&set),
            "a set is read as it was written",
        )?;
        holds(
            set.difference(&set).is_empty()
                && set.union(&set) == set
                && set.intersection(&set) == set,
            "the laws of sets",
        )?;
        holds(
            set.paths().iter().all(|path| set.contains(path)),
            "a set contains its paths",
        )?;
    }
    let (Ok(mut live), Ok(config)) = (Object::from_value(live), Object::from_value(config)) else {
        return Ok(());
    };
    if let Some(entry) = live
        .metadata_mut()
        .get_mut("managedFields")
        .and_then(|m| m.get_mut(0))
        .and_then(Value::as_object_mut)
    {
        entry.insert("fieldsV1".into(), fields);
    }
    for (ty, manager) in [(Some(deployment()), "kubectl"), (None, "a")] {
        for force in [false, true] {
            let options = ApplyOptions {
                manager,
                force,
                now: "2026-01-01T00:00:00Z",
                api_version: "apps/v1",
                ..ApplyOptions::default()
            };
            if let Ok(applied) = apply::apply(Some(&live), &config, &options, ty) {
                let again = apply::apply(Some(&applied), &config, &options, ty);
                holds(again.is_ok(), "what was applied can be applied again")?;
            }
            let mut after = config.clone();
            apply::track_update(Some(&live), &mut after, &options, ty);
        }
    }
    let clients = migrate::owners(&live, "Update", &migrate::last_applied_field());
    let _ = migrate::json_patch(&live, &clients, "kubectl", "");
    Ok(())
}

/// `[schema, custom resource]`
fn run_crd(input: &[u8]) -> Result<(), String> {
    let Some([document, value]) = parts(input) else {
        return Ok(());
    };
    let _ = Schema::from_openapi_v3(&document);
    let Ok(schema) = crd::from_structural(&document) else {
        return Ok(());
    };
    let root = schema.root().ok_or("a schema without a root")?;
    let mut pruned = value.clone();
    schema::prune(&mut pruned, root);
    let once = pruned.clone();
    schema::prune(&mut pruned, root);
    holds(once == pruned, "pruning changes nothing the second time")?;
    schema::apply_defaults(&mut pruned, root);
    if let Ok(object) = Object::from_value(value) {
        let options = ApplyOptions {
            manager: "m",
            now: "2026-01-01T00:00:00Z",
            api_version: object.api_version(),
            ..ApplyOptions::default()
        };
        let _ = apply::apply(None, &object, &options, Some(root));
    }
    Ok(())
}

/// A template, parsed and executed with functions and values of every kind, with a small budget.
fn run_template(input: &[u8]) -> Result<(), String> {
    let limits = Limits {
        steps: 100_000,
        output: 1 << 20,
        memory: 8 << 20,
    };
    let mut set = TemplateSet::new("root", world::functions());
    let Ok(()) = set.parse("t", input) else {
        return Ok(());
    };
    let budget = Budget::new(limits);
    let mut out = Vec::new();
    let options = Options {
        missing_key: MissingKey::Zero,
        budget: &budget,
        host: &mut world::Included::new(),
    };
    // An error is a valid result, too, and has a location.
    if let Err(error) = execute(
        &Arc::new(set),
        "t",
        world::universe(&Value::Null),
        options,
        &mut out,
    ) {
        holds(
            error.to_string().starts_with("template: "),
            "an error names its template",
        )?;
    }
    holds(out.len() <= 1 << 20, "the output stays below its limit")
}
