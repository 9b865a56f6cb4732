//! The three-way patch of one object: the kind of patch for its type, and its content.
//!
//! Main types: [`Types`], which finds the type of every kind, and [`ThreeWay`]. Shared with the
//! sync of Applications.

use crate::{
    discovery::{Discovery, Kind},
    request::{Call, MERGE_PATCH, STRATEGIC_MERGE_PATCH},
};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use tiphys_apimachinery::{
    Gvk, Object,
    patch::{PatchError, json_merge, keyed, last_applied, strategic, three_way},
    schema::{self, KUBERNETES_VERSION, Schema, TypeRef},
};
use tiphys_engine::diff;

/// The three documents of a patch.
pub(crate) struct ThreeWay {
    pub original: Value,
    pub modified: Value,
    pub current: Value,
}

impl ThreeWay {
    /// `modified` is the desired object with its last-applied annotation.
    pub fn new(live: &Object, modified: &Object) -> Result<Self, PatchError> {
        let original = last_applied::read(live)?.unwrap_or(Value::Null);
        Ok(Self {
            original,
            modified: modified.clone().into_value(),
            current: live.clone().into_value(),
        })
    }

    /// The patch; `None` if there is nothing to change. Kinds without a type get a JSON merge
    /// patch.
    pub fn patch(
        &self,
        ty: Option<TypeRef<'_>>,
        overwrite: bool,
    ) -> Result<Option<Value>, PatchError> {
        let patch =
            three_way::create(&self.original, &self.modified, &self.current, ty, overwrite)?;
        if ty.is_none() {
            three_way::check_identity_unchanged(&patch)?;
        }
        Ok(patch
            .as_object()
            .is_some_and(|p| !p.is_empty())
            .then_some(patch))
    }

    /// The patch for a sync, after which every desired list item exists, even where kubectl's patch
    /// cannot distinguish items.
    pub fn keyed_patch(&self, ty: Option<TypeRef<'_>>) -> Result<Option<Value>, PatchError> {
        let mut patch = match self.patch(ty, true)? {
            Some(patch) => patch,
            None if ty.is_none() => return Ok(None),
            None => Value::Object(Default::default()),
        };
        if let Some(ty) = ty {
            keyed::complete(
                &mut patch,
                &self.original,
                &self.modified,
                &self.current,
                ty,
            )?;
        }
        Ok(patch
            .as_object()
            .is_some_and(|p| !p.is_empty())
            .then_some(patch))
    }

    /// Converts what was applied through a Secret's `stringData` to `data`, so that keys that are
    /// no longer desired are removed there.
    pub fn fold_string_data(&mut self) {
        let original = Object::from_value(self.original.clone()).unwrap_or_default();
        if original.kind() == "Secret"
            && original.group().is_empty()
            && original.0.contains_key("stringData")
        {
            let mut folded = original;
            diff::fold_string_data(&mut folded);
            self.original = folded.into_value();
        }
    }

    /// The result that the server would compute from the patch.
    pub fn apply_locally(
        &self,
        patch: &Value,
        ty: Option<TypeRef<'_>>,
    ) -> Result<Value, PatchError> {
        match ty {
            Some(ty) => strategic::apply(&self.current, patch, ty),
            None => json_merge::apply(&self.current, patch),
        }
    }
}

/// The content type of a patch for this type.
pub(crate) fn content_type(ty: Option<TypeRef<'_>>) -> &'static str {
    if ty.is_some() {
        STRATEGIC_MERGE_PATCH
    } else {
        MERGE_PATCH
    }
}

/// The source of a kind's type.
#[derive(Clone)]
pub(super) enum TypeSource {
    BuiltIn,
    /// The cluster's own OpenAPI document.
    Published(Arc<Schema>),
    /// No strategic merge patch is possible.
    Unknown,
}

impl TypeSource {
    pub fn type_of(&self, gvk: &Gvk) -> Option<TypeRef<'_>> {
        match self {
            Self::BuiltIn => schema::builtin().type_for(gvk),
            Self::Published(schema) => schema.type_for(gvk),
            Self::Unknown => None,
        }
    }
}

/// Finds types, and reads every OpenAPI document only once.
#[derive(Default)]
pub(super) struct Types {
    /// By group and version: the schema, and the kinds that accept strategic merge patches.
    published: tokio::sync::Mutex<HashMap<String, Option<Arc<Published>>>>,
}

struct Published {
    schema: Arc<Schema>,
    strategic: Vec<Gvk>,
}

impl Types {
    /// Built-in types of our own Kubernetes version are compiled in; those of other versions and of
    /// aggregated API servers are read from the cluster.
    pub async fn of(&self, discovery: &Discovery, kind: &Kind, published: bool) -> TypeSource {
        let built_in = schema::builtin().type_for(&kind.gvk).is_some()
            && schema::find_resource(&kind.gvk).is_some();
        let version = discovery.cluster().version().short();
        if built_in && (version.len() < 2 || KUBERNETES_VERSION.starts_with(&format!("{version}.")))
        {
            return TypeSource::BuiltIn;
        }
        if !published {
            return if built_in {
                TypeSource::BuiltIn
            } else {
                TypeSource::Unknown
            };
        }
        match self.published(discovery, &kind.gvk).await {
            Some(found) if found.strategic.contains(&kind.gvk) => {
                TypeSource::Published(found.schema.clone())
            }
            Some(_) => TypeSource::Unknown,
            None if built_in => TypeSource::BuiltIn,
            None => TypeSource::Unknown,
        }
    }

    async fn published(&self, discovery: &Discovery, gvk: &Gvk) -> Option<Arc<Published>> {
        let mut known = self.published.lock().await;
        let group_version = gvk.api_version();
        if let Some(found) = known.get(&group_version) {
            return found.clone();
        }
        let root = if gvk.group.is_empty() { "api" } else { "apis" };
        let call = Call::get(format!("/openapi/v3/{root}/{group_version}"));
        let document: Option<Value> = discovery.cluster().http().json(&call).await.ok();
        let found = document.and_then(|d| {
            let strategic = strategic_kinds(&d);
            // The schema is large, so it is read only for a kind that needs it.
            let schema = if strategic.is_empty() {
                Schema::default()
            } else {
                Schema::from_openapi_v3(&d).ok()?
            };
            Some(Arc::new(Published {
                schema: Arc::new(schema),
                strategic,
            }))
        });
        known.insert(group_version, found.clone());
        found
    }
}

/// The kinds whose PATCH accepts a strategic merge patch.
fn strategic_kinds(document: &Value) -> Vec<Gvk> {
    let paths = document.get("paths").and_then(Value::as_object);
    let patches = paths
        .into_iter()
        .flatten()
        .filter_map(|(_, path)| path.get("patch"));
    patches
        .filter(|patch| {
            patch
                .get("requestBody")
                .and_then(|b| b.get("content")?.get(STRATEGIC_MERGE_PATCH))
                .is_some()
        })
        .filter_map(|patch| {
            let gvk = patch.get("x-kubernetes-group-version-kind")?;
            let text = |field: &str| gvk.get(field).and_then(Value::as_str).unwrap_or_default();
            Some(Gvk::new(text("group"), text("version"), text("kind")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_kinds_that_say_so_take_strategic_merge_patches() {
        let patch = |kind: &str, types: &[&str]| {
            let content: serde_json::Map<_, _> =
                types.iter().map(|t| ((*t).to_owned(), json!({}))).collect();
            json!({"patch": {"requestBody": {"content": content},
                "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": kind}}})
        };
        let document = json!({"paths": {
            "/a/{name}": patch("A", &[MERGE_PATCH, STRATEGIC_MERGE_PATCH]),
            "/b/{name}": patch("B", &[MERGE_PATCH]),
            "/b": {"get": {}},
        }});
        assert_eq!(strategic_kinds(&document), [Gvk::new("g", "v1", "A")]);
    }
}
