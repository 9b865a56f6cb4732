//! `generators`, `transformers` and `validators`: the parts of a kustomization that are written as
//! separate objects.
//!
//! Main functions: [`transform`] and [`generate`]. Only built-in kinds are supported; functions
//! that run programs or containers, and plugins that are programs, are refused.

use super::Build;
use super::config::{Config, FieldSpec, of_crds};
use super::fault::{Fault, Res, fail};
use super::kustomization::{GeneratorArgs, HelmChart, HelmGlobals, Image, Patch, Replica};
use super::loader::Loader;
use super::names::{Unknown, normal};
use super::resmap::ResMap;
use super::resource::{Object, Texts};
use super::transform::{self, Affix, Namespace, Subjects};
use super::{helm, patch, replacement, value_add};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::{rc::Rc, sync::Arc};

/// A built-in plugin's kind and configuration.
struct Plugin {
    kind: String,
    config: Map<String, Value>,
    shown: String,
}

fn read(build: &Build<'_>, object: Object) -> Res<Plugin> {
    let id = object.id(&build.tree);
    if !id.gvk.group.is_empty() || id.gvk.version != "builtin" {
        return fail!(
            "external plugins disabled; unable to load external plugin '{}'",
            id.gvk.kind
        );
    }
    let of = match id.gvk.kind.as_str() {
        "ConfigMapGenerator" => "ConfigMapArgs",
        "SecretGenerator" => "SecretArgs",
        "PatchTransformer" => "Patch",
        "HelmChartInflationGenerator" => "HelmChart",
        _ => "Plugin",
    };
    let json = build.tree.json(object.0)?;
    let metadata = json.get("metadata").cloned().unwrap_or_default();
    let globals = normal(json.clone(), "HelmGlobals", Unknown::LeftOut).map_err(Fault::new)?;
    let mut config = match normal(json, of, Unknown::LeftOut).map_err(Fault::new)? {
        Value::Object(config) => config,
        _ => Map::new(),
    };
    config.insert("metadata".to_owned(), metadata);
    if of == "HelmChart"
        && let Value::Object(globals) = globals
    {
        config.extend(globals);
    }
    Ok(Plugin {
        kind: id.gvk.kind.clone(),
        config,
        shown: id.to_string(),
    })
}

impl Plugin {
    fn failing(&self, fault: Fault) -> Fault {
        if fault.is_final() {
            return fault;
        }
        fault.within(format!("plugin {} fails configuration", self.shown))
    }

    /// A field, or its zero value.
    fn field<T: DeserializeOwned + Default>(&self, name: &str) -> Res<T> {
        let Some(value) = self.config.get(name) else {
            return Ok(T::default());
        };
        decoded(value.clone()).map_err(|fault| self.failing(fault))
    }

    fn text(&self, name: &str) -> String {
        match self.config.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(value)) => value.to_string(),
            _ => String::new(),
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.config.get(name) == Some(&Value::Bool(true))
    }

    fn metadata(&self, name: &str) -> String {
        let metadata = self.config.get("metadata");
        let text = metadata.and_then(|metadata| metadata.get(name)?.as_str());
        text.unwrap_or_default().to_owned()
    }

    /// The whole configuration, without the fields common to all objects.
    fn whole<T: DeserializeOwned>(&self) -> Res<T> {
        let mut config = self.config.clone();
        for name in ["apiVersion", "kind", "metadata"] {
            config.remove(name);
        }
        decoded(Value::Object(config)).map_err(|fault| self.failing(fault))
    }

    fn specs(&self) -> Res<Vec<FieldSpec>> {
        self.field("fieldSpecs")
    }

    fn needed_specs(&self) -> Res<Vec<FieldSpec>> {
        if !self.config.contains_key("fieldSpecs") {
            return Err(self.failing(Fault::new("fieldSpecs is not expected to be nil")));
        }
        self.specs()
    }
}

fn decoded<T: DeserializeOwned>(value: Value) -> Res<T> {
    serde_json::from_value(value).map_err(|error| {
        Fault::new(format!(
            "error unmarshaling JSON: while decoding JSON: json: {error}"
        ))
    })
}

pub(super) fn generate<'a>(
    build: &mut Build<'a>,
    loader: &Rc<Loader<'a>>,
    object: Object,
) -> Res<ResMap> {
    let plugin = read(build, object)?;
    let made = match plugin.kind.as_str() {
        "ConfigMapGenerator" | "SecretGenerator" => {
            let mut args: GeneratorArgs = plugin.whole()?;
            if args.name.is_empty() {
                args.name = plugin.metadata("name");
            }
            if args.namespace.is_empty() {
                args.namespace = plugin.metadata("namespace");
            }
            let kind = plugin.kind.trim_end_matches("Generator");
            super::generate::make(build, loader, &args, kind)?
        }
        "HelmChartInflationGenerator" => {
            let (globals, chart) = helm_fields(&plugin)?;
            helm::check(build, &chart).map_err(|fault| plugin.failing(fault))?;
            return helm::inflate(build, loader, &globals, &chart);
        }
        "IAMPolicyGenerator" => service_account(build, &plugin)?,
        kind if is_transformer(kind) => {
            return fail!(
                "failed to load generator: plugin {} not a generator",
                plugin.shown
            );
        }
        _ => return fail!("unable to load builtin {}.builtin.[noGrp]", plugin.kind),
    };
    ResMap::of(&build.tree, vec![made.0])
}

fn helm_fields(plugin: &Plugin) -> Res<(HelmGlobals, HelmChart)> {
    let mut globals = Map::new();
    let mut chart = plugin.config.clone();
    for name in ["apiVersion", "kind", "metadata"] {
        chart.remove(name);
    }
    for name in ["chartHome", "configHome"] {
        globals.extend(chart.remove(name).map(|value| (name.to_owned(), value)));
    }
    Ok((
        decoded(Value::Object(globals))?,
        decoded(Value::Object(chart))?,
    ))
}

/// A service account bound to a cloud provider's account.
fn service_account(build: &mut Build<'_>, plugin: &Plugin) -> Res<Object> {
    let cloud = plugin.text("cloud");
    if cloud != "gke" {
        return fail!("cloud provider {cloud} not supported yet");
    }
    let part = |map: &str, name: &str| {
        let value = plugin
            .config
            .get(map)
            .and_then(|map| map.get(name)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    let account = format!(
        "{}@{}.iam.gserviceaccount.com",
        part("serviceAccount", "name"),
        part("serviceAccount", "projectId")
    );
    let mut metadata = Map::new();
    metadata.insert("name".into(), part("kubernetesService", "name").into());
    let namespace = part("kubernetesService", "namespace");
    if !namespace.is_empty() {
        metadata.insert("namespace".into(), namespace.into());
    }
    metadata.insert(
        "annotations".into(),
        serde_json::json!({ "iam.gke.io/gcp-service-account": account }),
    );
    let made = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
    });
    Ok(Object(build.tree.add_json(&made)))
}

fn is_transformer(kind: &str) -> bool {
    kind.ends_with("Transformer")
}

/// Runs one transformer or validator.
pub(super) fn transform<'a>(
    build: &mut Build<'a>,
    loader: &Rc<Loader<'a>>,
    object: Object,
    map: &mut ResMap,
) -> Res<()> {
    let plugin = read(build, object)?;
    match plugin.kind.as_str() {
        "AnnotationsTransformer" | "LabelTransformer" => {
            let name = if plugin.kind.starts_with('L') {
                "labels"
            } else {
                "annotations"
            };
            let texts: Texts = plugin.field(name)?;
            transform::set_texts(&mut build.tree, map, &texts, &plugin.specs()?)
        }
        "PrefixTransformer" => {
            let specs = plugin.needed_specs()?;
            let text = plugin.text("prefix");
            transform::rename(&mut build.tree, map, Affix::Prefix, &text, &specs)
        }
        "SuffixTransformer" => {
            let specs = plugin.needed_specs()?;
            let text = plugin.text("suffix");
            transform::rename(&mut build.tree, map, Affix::Suffix, &text, &specs)
        }
        "PrefixSuffixTransformer" => {
            let specs = plugin.needed_specs()?;
            for (affix, name) in [(Affix::Prefix, "prefix"), (Affix::Suffix, "suffix")] {
                let text = plugin.text(name);
                transform::rename(&mut build.tree, map, affix, &text, &specs)?;
            }
            Ok(())
        }
        "NamespaceTransformer" => namespace(&plugin)?.apply(&mut build.tree, map),
        "ImageTagTransformer" => {
            let image: Image = plugin.field("imageTag")?;
            transform::set_image(&mut build.tree, map, &image, &plugin.specs()?)
        }
        "ReplicaCountTransformer" => {
            let replica: Replica = plugin.field("replica")?;
            transform::set_replicas(&mut build.tree, map, &replica, &plugin.specs()?)
        }
        "PatchTransformer" => {
            let own: Patch = plugin.whole()?;
            let prepared = patch::prepare(build, loader, &own);
            let prepared = prepared.map_err(|fault| plugin.failing(fault))?;
            patch::apply(build, map, &prepared)
        }
        "PatchJson6902Transformer" => {
            let own = Patch {
                path: plugin.text("path"),
                patch: plugin.text("jsonOp"),
                target: plugin.field("target")?,
                options: None,
            };
            let loaded = patch::load_json(build, loader, &own);
            let loaded = loaded.map_err(|fault| plugin.failing(fault))?;
            patch::apply_json(build, map, &loaded)
        }
        "PatchStrategicMergeTransformer" => strategic(build, loader, &plugin, map),
        "ReplacementTransformer" => {
            let own: Vec<replacement::Replacement> = plugin.field("replacements")?;
            let all = replacement::load(build, loader, &own);
            let all = all.map_err(|fault| plugin.failing(fault))?;
            replacement::apply(build, map, &all)
        }
        "ValueAddTransformer" => value_add::apply(build, loader, &plugin.config, map),
        "HashTransformer" => super::resmap::add_hashes(&mut build.tree, map),
        kind if kind.ends_with("Generator") => {
            fail!("plugin {} not a transformer", plugin.shown)
        }
        _ => fail!("unable to load builtin {}.builtin.[noGrp]", plugin.kind),
    }
}

fn namespace(plugin: &Plugin) -> Res<Namespace> {
    let subjects = match plugin.text("setRoleBindingSubjects").as_str() {
        "" | "defaultOnly" => Subjects::NamedDefault,
        "allServiceAccounts" => Subjects::ServiceAccounts,
        "none" => Subjects::None,
        other => {
            return Err(plugin.failing(Fault::new(format!(
                "invalid value {other:?} for setRoleBindingSubjects: must be one of \"defaultOnly\", \"none\" or \"allServiceAccounts\""
            ))));
        }
    };
    Ok(Namespace {
        name: plugin.metadata("namespace"),
        specs: plugin.specs()?,
        unset_only: plugin.flag("unsetOnly"),
        subjects,
    })
}

fn strategic<'a>(
    build: &mut Build<'a>,
    loader: &Rc<Loader<'a>>,
    plugin: &Plugin,
    map: &mut ResMap,
) -> Res<()> {
    let paths: Vec<String> = plugin.field("paths")?;
    let text = plugin.text("patches");
    if paths.is_empty() && text.is_empty() {
        return Err(plugin.failing(Fault::new("empty file path and empty patch content")));
    }
    let mut patches = Vec::new();
    if !paths.is_empty() {
        let loaded = patch::load_strategic(build, loader, &paths);
        patches.extend(loaded.map_err(|fault| plugin.failing(fault))?);
    }
    if !text.is_empty() {
        patches.extend(patch::objects(build, text.as_bytes())?);
    }
    patch::apply_strategic(build, map, &patches)
}

/// Reads the tables of a file in `configurations`.
pub(super) fn configuration<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    paths: &[String],
) -> Res<Arc<Config>> {
    let mut own = Config::default();
    for path in paths {
        let content = loader.load(build, path)?;
        let read = Config::from_yaml(&content, &build.yaml_limits())?;
        own = own.merge(&read, &build.tree.clock)?;
    }
    if paths.is_empty() {
        return Ok(Config::builtin());
    }
    let builtin = Config::clone(&Config::builtin());
    Ok(Arc::new(builtin.merge(&own, &build.tree.clock)?))
}

/// Reads the definitions in `crds`.
pub(super) fn definitions<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    paths: &[String],
) -> Res<Arc<Config>> {
    let mut config = Config::default();
    for path in paths {
        let content = loader.load(build, path)?;
        let clock = &build.tree.clock;
        let own = of_crds(&content, &build.yaml_limits(), clock).map_err(|fault| {
            fault.within(format!("unable to parse open API definition from '{path}'"))
        })?;
        config = config.merge(&own, clock)?;
    }
    Ok(Arc::new(config))
}

/// The objects in an inline entry; `None` if the entry is a path.
pub(super) fn inline(build: &mut Build<'_>, text: &str) -> Res<Option<Vec<super::tree::Id>>> {
    match patch::objects(build, text.as_bytes()) {
        Ok(objects) => Ok(Some(objects)),
        Err(fault) if fault.is_final() => Err(fault),
        Err(_) => Ok(None),
    }
}
