//! `replacements`: copies a value of one object to fields of others.
//!
//! Main types: [`Replacement`]; main function: [`apply`].

use super::Build;
use super::edit_nodes::split_field_path;
use super::fault::{Fault, Res, fail};
use super::ids::{DEFAULT_NAMESPACE, Gvk, ResId};
use super::loader::Loader;
use super::names::{Unknown, normal};
use super::path_match::{match_path, set_structured};
use super::resmap::ResMap;
use super::resource::Object;
use super::selector::{Compiled, Selector};
use super::tree::{Id, Kind, Tag, Tree};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiphys_gocompat::yaml::{Duplicates, parse_document};

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Replacement {
    pub path: String,
    source: Option<Source>,
    targets: Option<Vec<Target>>,
    pub source_value: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct Source {
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
    field_path: String,
    options: Option<Options>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct Target {
    select: Option<Selector>,
    reject: Vec<Selector>,
    field_paths: Vec<String>,
    options: Option<Options>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
struct Options {
    delimiter: String,
    index: i64,
    encoding: String,
    create: bool,
}

const DEFAULT_PATH: &str = "metadata.name";

/// Reads replacements, including those in separate files.
pub(super) fn load<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    own: &[Replacement],
) -> Res<Vec<Replacement>> {
    let mut all = Vec::new();
    for replacement in own {
        if replacement.path.is_empty() {
            all.push(Replacement {
                targets: replacement.targets.clone().filter(|t| !t.is_empty()),
                ..replacement.clone()
            });
            continue;
        }
        let has_targets = replacement.targets.as_ref().is_some_and(|t| !t.is_empty());
        if replacement.source.is_some() || has_targets {
            return fail!("cannot specify both path and inline replacement");
        }
        let content = loader.load(build, &replacement.path)?;
        let value = parse_document(content, &build.yaml_limits(), Duplicates::LastWins)
            .map_err(|error| Fault::new(error.json_text()))?;
        let value = match value {
            value @ Value::Array(_) => value,
            value @ Value::Object(_) => Value::Array(vec![value]),
            other => {
                return fail!(
                    "unsupported replacement type encountered within replacement path: {}",
                    tiphys_gocompat::json::kind(&other)
                );
            }
        };
        let value = normal(value, "Replacement", Unknown::LeftOut).map_err(Fault::new)?;
        let read: Result<Vec<Replacement>, _> = serde_json::from_value(value);
        all.extend(read.map_err(|error| Fault::new(format!("json: {error}")))?);
    }
    Ok(all)
}

pub(super) fn apply(build: &mut Build<'_>, map: &ResMap, all: &[Replacement]) -> Res<()> {
    let limits = build.yaml_limits();
    let tree = &mut build.tree;
    for replacement in all {
        tree.clock.look()?;
        let Some(targets) = &replacement.targets else {
            return fail!("replacements must specify a source and at least one target");
        };
        let value = match (&replacement.source_value, &replacement.source) {
            (None, None) => {
                return fail!("replacements must specify a source and at least one target");
            }
            (Some(_), Some(_)) => {
                return fail!("value and resource selectors are mutually exclusive");
            }
            (Some(text), None) => tree.scalar(text, Tag::Open),
            (None, Some(source)) => source.value(tree, map)?,
        };
        for target in targets {
            target.write(tree, map, value, &limits)?;
        }
        tree.check()?;
    }
    Ok(())
}

/// The current and previous ids of an object.
fn ids(tree: &Tree, object: Object) -> Res<Vec<ResId>> {
    tree.clock.spend(1)?;
    let mut ids = vec![object.id(tree)];
    ids.extend(object.previous_ids(tree)?);
    Ok(ids)
}

impl Source {
    fn matches(&self, id: &ResId) -> bool {
        let or_default = |namespace: &str| match namespace {
            "" => DEFAULT_NAMESPACE.to_owned(),
            other => other.to_owned(),
        };
        let gvk = Gvk::new(&self.group, &self.version, &self.kind);
        (self.name.is_empty() || self.name == id.name)
            && (self.namespace.is_empty()
                || or_default(&self.namespace) == or_default(&id.namespace))
            && id.gvk.is_selected(&gvk)
    }

    fn id(&self) -> ResId {
        ResId {
            gvk: Gvk::new(&self.group, &self.version, &self.kind),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
        }
    }

    fn shown(&self) -> String {
        let mut parts = vec![self.id().to_string()];
        if !self.field_path.is_empty() {
            parts.push(self.field_path.clone());
        }
        if let Some(options) = &self.options
            && (!options.delimiter.is_empty() || options.create)
        {
            parts.push(format!(
                "{}({}), create={}",
                options.delimiter, options.index, options.create
            ));
        }
        parts.join(":")
    }

    fn value(&self, tree: &mut Tree, map: &ResMap) -> Res<Id> {
        let mut found = None;
        for (_, object) in map.objects() {
            if ids(tree, object)?.iter().any(|id| self.matches(id)) {
                if found.is_some() {
                    return fail!("multiple matches for selector {}", self.shown());
                }
                found = Some(object);
            }
        }
        let Some(object) = found else {
            return fail!("nothing selected by {}", self.shown());
        };
        let path = if self.field_path.is_empty() {
            DEFAULT_PATH
        } else {
            &self.field_path
        };
        let value = tree
            .lookup(object.0, &split_field_path(path))
            .map_err(|fault| fault.within("error looking up replacement source"))?;
        let Some(value) = value.filter(|id| !tree.is_empty(*id)) else {
            return fail!(
                "fieldPath `{path}` is missing for replacement source {}",
                self.id()
            );
        };
        let Some(options) = self.options.as_ref().filter(|o| !o.delimiter.is_empty()) else {
            return Ok(value);
        };
        if tree.kind(value) != Kind::Scalar {
            return fail!("delimiter option can only be used with scalar nodes");
        }
        let text = tree.text(value).to_owned();
        let index = usize::try_from(options.index).ok();
        let Some(part) = index.and_then(|index| text.split(&options.delimiter).nth(index)) else {
            return fail!(
                "options.index {} is out of bounds for value {text}",
                options.index
            );
        };
        let copy = tree.copy(value);
        part.clone_into(&mut tree.at_mut(copy).text);
        Ok(copy)
    }
}

impl Target {
    fn write(
        &self,
        tree: &mut Tree,
        map: &ResMap,
        value: Id,
        limits: &tiphys_gocompat::yaml::Limits,
    ) -> Res<()> {
        let Some(select) = &self.select else {
            return fail!("target must specify resources to select");
        };
        let creating = |fault: Fault| fault.within("error creating target selector");
        let wanted = select.compile().map_err(creating)?;
        let mut rejected = Vec::new();
        for reject in &self.reject {
            tree.clock.look()?;
            rejected.push((reject, reject.compile().map_err(creating)?));
        }
        let fits = |compiled: &Compiled, id: &ResId| {
            compiled.is_kind(&id.gvk)
                && compiled.is_name(&id.name)
                && compiled.is_namespace(&id.namespace)
        };
        for (_, object) in map.objects() {
            // Expressions may take long.
            tree.clock.look()?;
            if !self.is_selected_by_texts(tree, object, select)? {
                continue;
            }
            let ids = ids(tree, object)?;
            let is_rejected = rejected.iter().any(|(selector, compiled)| {
                !selector.is_empty_id() && ids.iter().any(|id| fits(compiled, id))
            });
            if !is_rejected && ids.iter().any(|id| fits(&wanted, id)) {
                self.write_to(tree, object, value, limits)?;
            }
        }
        Ok(())
    }

    fn is_selected_by_texts(&self, tree: &Tree, object: Object, select: &Selector) -> Res<bool> {
        let fits = |selector: &Selector| -> Res<bool> {
            Ok(
                object.matches_annotations(tree, &selector.annotation_selector)?
                    && object.matches_labels(tree, &selector.label_selector)?,
            )
        };
        if !fits(select)? {
            return Ok(false);
        }
        for reject in &self.reject {
            let by_texts =
                !reject.annotation_selector.is_empty() || !reject.label_selector.is_empty();
            if by_texts && fits(reject)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write_to(
        &self,
        tree: &mut Tree,
        object: Object,
        value: Id,
        limits: &tiphys_gocompat::yaml::Limits,
    ) -> Res<()> {
        let default = [DEFAULT_PATH.to_owned()];
        let paths = if self.field_paths.is_empty() {
            &default[..]
        } else {
            &self.field_paths
        };
        let create = match &self.options {
            Some(options) if options.create => tree.kind(value),
            _ => Kind::None,
        };
        for path in paths {
            tree.clock.look()?;
            let parts = split_field_path(path);
            if set_structured(tree, object.0, value, &parts, create, limits).is_ok() {
                continue;
            }
            let or_create = if create == Kind::None {
                ""
            } else {
                " or create"
            };
            let missing = format!("unable to find{or_create} field {path:?} in replacement target");
            let fields = match_path(tree, object.0, &parts, create, limits)
                .map_err(|fault| fault.within(&missing))?;
            if fields.is_empty() {
                return Err(Fault::new(missing));
            }
            for field in fields {
                self.set(tree, field, value)?;
            }
        }
        Ok(())
    }

    fn set(&self, tree: &mut Tree, field: Id, value: Id) -> Res<()> {
        tree.clock.spend(1)?;
        let value = tree.copy(value);
        if let Some(options) = self.options.as_ref().filter(|o| !o.delimiter.is_empty()) {
            if tree.kind(field) != Kind::Scalar {
                return fail!("delimiter option can only be used with scalar nodes");
            }
            let new = if tree.is_null(value) {
                ""
            } else {
                tree.text(value)
            };
            let before = tree.text(field);
            let count = before.matches(options.delimiter.as_str()).count() + 2;
            tree.room(before.len() + new.len() + count * size_of::<&str>())?;
            let mut parts: Vec<&str> = before.split(&options.delimiter).collect();
            match usize::try_from(options.index) {
                Err(_) => parts.insert(0, new),
                Ok(index) => match parts.get_mut(index) {
                    Some(part) => *part = new,
                    None => parts.push(new),
                },
            }
            let joined = parts.join(&options.delimiter);
            tree.set_text(value, joined)?;
        }
        if tree.kind(field) == Kind::Scalar {
            let text = tree.text(value).to_owned();
            tree.set_text(field, text)?;
        } else {
            tree.assign(field, value);
        }
        Ok(())
    }
}
