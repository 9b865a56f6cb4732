//! Differences between the desired and the live object.
//!
//! Main function: [`diff`]. It predicts what the live object would look like after an apply and
//! compares that with the live object, so what others added (defaults, other controllers' fields)
//! is not a difference. It must not know of Applications.

mod allocated;
mod defaults;
mod ignore;
mod jq;
mod kinds;
mod known_types;
mod left_behind;
mod managers;
mod respect;
mod server_side;
mod structured;
mod why;

use crate::{
    base::{Diff, IgnoreRule, IgnoreStatus},
    customize::Customizations,
    marks,
    normalize::{self, unstored},
    remarshal,
    rules::CompareRules,
    spending::Spending,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::{
    Object,
    patch::{PatchError, apply, json_merge, keyed, last_applied, strategic, three_way},
    schema::TypeRef,
};

pub use ignore::{check as check_rules, remove_ignored};
pub use kinds::type_of;
pub use left_behind::{applied_server_side, orphaned_keys};
pub use normalize::secret::{
    fold_string_data, has_mask, hidden_annotations, mask as mask_secret, shown, shown_message,
};
pub use respect::respecting;
pub use server_side::server_side;
pub use structured::{MANAGER, structured};
pub use why::{Owner, Reason, why};

const SERVER_SIDE_APPLY: &str = "ServerSideApply=true";

/// Which differences are ignored, and how objects are applied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    pub ignore: &'a [IgnoreRule],
    pub ignore_status: IgnoreStatus,
    pub ignore_aggregated_roles: bool,
    /// Objects are applied server-side; an object's annotation can request it too.
    pub server_side_apply: bool,
    /// For fields of custom resources that have a built-in Kubernetes type.
    pub customizations: Option<&'a Customizations>,
    /// The budget shared by users' expressions. If it was exceeded, the difference is meaningless:
    /// see [`Spending::take_refusal`].
    pub spending: Option<&'a Spending>,
}

impl<'a> From<&'a CompareRules> for Options<'a> {
    fn from(rules: &'a CompareRules) -> Self {
        Self {
            ignore: &rules.ignore_differences,
            ignore_status: rules.ignore_status,
            ignore_aggregated_roles: rules.ignore_aggregated_roles,
            server_side_apply: rules.sync_options.iter().any(|o| o == SERVER_SIDE_APPLY),
            customizations: Some(&rules.customizations),
            spending: None,
        }
    }
}

/// The difference of a pair. A desired object without a live one is entirely new (modified); a live
/// one without a desired one would be deleted, which does not count as modified.
pub fn diff(desired: Option<&Object>, live: Option<&Object>, options: &Options<'_>) -> Diff {
    let (mut desired, mut live) = (desired.map(typed_form), live.map(typed_form));
    if let (Some(desired), Some(live)) = (&mut desired, &mut live) {
        ignore::trusted_managers(desired, live, options);
    }
    for object in desired.iter_mut().chain(live.iter_mut()) {
        for_comparison(object, options);
    }
    match (desired, live) {
        (None, None) => Diff::default(),
        (None, Some(live)) => Diff {
            modified: false,
            normalized_live: Arc::new(live.into_value()),
            predicted_live: Arc::default(),
        },
        (Some(desired), None) => Diff {
            modified: true,
            normalized_live: Arc::default(),
            predicted_live: Arc::new(desired.into_value()),
        },
        (Some(desired), Some(live)) => pair(&desired, &live, options),
    }
}

/// The object as Go would encode it, if its kind is typed.
fn typed_form(object: &Object) -> Object {
    let value = Value::Object(object.0.clone());
    let written = type_of(&object.gvk()).and_then(|ty| remarshal::remarshal(&value, ty));
    Object::from_value(written.unwrap_or(value)).unwrap_or_default()
}

fn for_comparison(object: &mut Object, options: &Options<'_>) {
    normalize::object::normalize(object, options.ignore_aggregated_roles);
    ignore::remove_ignored(object, options);
    known_types::rewrite(object, options.customizations);
}

fn pair(desired: &Object, live: &Object, options: &Options<'_>) -> Diff {
    if is_applied_server_side(desired, options)
        && let Ok(diff) = structured(desired, live, MANAGER)
    {
        let predicted = Object::from_value(Value::clone(&diff.predicted_live)).unwrap_or_default();
        let without = left_behind::removed(desired, live, predicted.clone(), options);
        return if without == predicted {
            diff
        } else {
            result(Value::Object(live.0.clone()), without.into_value())
        };
    }
    let diff = client_side(desired, live, options);
    let left = left_behind::applied_server_side(desired, live);
    if left.is_empty() {
        return diff;
    }
    let predicted = Object::from_value(Value::clone(&diff.predicted_live)).unwrap_or_default();
    result(
        Value::clone(&diff.normalized_live),
        apply::without_fields(&predicted, &left, type_of(&live.gvk())).into_value(),
    )
}

/// Predicts kubectl's client-side apply.
fn client_side(desired: &Object, live: &Object, options: &Options<'_>) -> Diff {
    if let Some(original) = applied_before(live, options)
        && let Ok(diff) = three_way(&original, desired, live)
    {
        return diff;
    }
    // A two-way diff: nothing is treated as removed.
    three_way(desired, desired, live).unwrap_or_else(|_| {
        as_json(desired, desired, live).unwrap_or_else(|_| replaced(desired, live))
    })
}

/// As in the sync: the object's own option takes precedence over the Application's.
fn is_applied_server_side(desired: &Object, options: &Options<'_>) -> bool {
    let own = |option| marks::has_option(desired, marks::SYNC_OPTIONS, option);
    !own("ServerSideApply=false") && (options.server_side_apply || own(SERVER_SIDE_APPLY))
}

/// The last applied object, in the same form as the object that it is compared with. Otherwise an
/// empty map that only it contains would count as removed.
fn applied_before(live: &Object, options: &Options<'_>) -> Option<Object> {
    let original = last_applied::read(live)
        .ok()
        .flatten()
        .and_then(|v| Object::from_value(v).ok())?;
    let mut original = typed_form(&original);
    for_comparison(&mut original, options);
    Some(original)
}

/// The prediction from the last applied, the desired and the live object.
pub fn three_way(original: &Object, desired: &Object, live: &Object) -> Result<Diff, PatchError> {
    let gvk = original.gvk();
    let Some(ty) = type_of(&gvk) else {
        return as_json(original, desired, live);
    };
    let (original, desired) = (without_namespace(original), without_namespace(desired));
    let mut live = Value::Object(live.0.clone());
    let compared = with_claims_as_applied(&gvk.kind, &original, &live);
    let current = compared.as_ref().unwrap_or(&live);
    let mut patch = three_way::create(&original, &desired, current, Some(ty), true)?;
    keyed::complete(&mut patch, &original, &desired, current, ty)?;
    let mut predicted = strategic::apply(&live, &patch, ty)?;
    for object in [&mut predicted, &mut live] {
        fill_in(object, ty);
    }
    Ok(result(live, predicted))
}

fn fill_in(object: &mut Value, ty: TypeRef<'_>) {
    if remarshal::is_readable(object, ty) {
        defaults::apply(object, ty);
    }
}

fn as_json(original: &Object, desired: &Object, live: &Object) -> Result<Diff, PatchError> {
    let (original, desired) = (without_namespace(original), without_namespace(desired));
    let live = Value::Object(live.0.clone());
    let compared = remarshal::remove_unnamed(&original, &live);
    let patch = json_merge::create_three_way(&original, &desired, &compared)?;
    let predicted = json_merge::apply(&live, &patch)?;
    Ok(result(live, predicted))
}

/// Fallback if no patch can be computed: the desired object replaces the live one.
fn replaced(desired: &Object, live: &Object) -> Diff {
    result(
        Value::Object(live.0.clone()),
        Value::Object(desired.0.clone()),
    )
}

fn result(live: Value, predicted: Value) -> Diff {
    let modified = live != predicted && {
        let gvk = Object::from_value(live.clone()).unwrap_or_default().gvk();
        unstored::canonical(&live, &gvk) != unstored::canonical(&predicted, &gvk)
    };
    let live = Arc::new(live);
    // Most pairs are unmodified: they share one document.
    let predicted = if modified {
        Arc::new(predicted)
    } else {
        live.clone()
    };
    Diff {
        modified,
        normalized_live: live,
        predicted_live: predicted,
    }
}

/// A live object always has its namespace, a desired one not always; and no annotations may be
/// written as a missing or an empty map.
fn without_namespace(object: &Object) -> Value {
    let mut object = object.clone();
    if object.0.get("metadata").is_some_and(Value::is_object) {
        let metadata = object.metadata_mut();
        metadata.remove("namespace");
        if metadata
            .get("annotations")
            .is_some_and(|a| a.is_null() || *a == json!({}))
        {
            metadata.remove("annotations");
        }
    }
    object.into_value()
}

/// The volume claim templates of a StatefulSet get defaults that depend on the cluster, so only the
/// applied fields are compared.
fn with_claims_as_applied(kind: &str, original: &Value, live: &Value) -> Option<Value> {
    const CLAIMS: &str = "/spec/volumeClaimTemplates";
    let applied = original
        .pointer(CLAIMS)
        .filter(|_| kind == "StatefulSet")
        .filter(|v| v.is_array())?;
    let mut live = live.clone();
    let claims = live.pointer_mut(CLAIMS).filter(|v| v.is_array())?;
    *claims = remarshal::remove_unnamed(applied, claims);
    Some(live)
}

/// The object as the comparison sees it, for tests of single steps.
#[doc(hidden)]
pub mod steps {
    use super::{Object, Options};

    pub fn remarshal(object: &Object) -> Object {
        super::typed_form(object)
    }

    /// The object with the API server's defaults, if it can be decoded.
    pub fn with_defaults(object: &Object) -> Object {
        let mut value = object.clone().into_value();
        if let Some(ty) = super::type_of(&object.gvk()) {
            super::fill_in(&mut value, ty);
        }
        Object::from_value(value).unwrap_or_default()
    }

    pub fn normalize(object: &mut Object, options: &Options<'_>) {
        super::for_comparison(object, options);
    }

    pub fn normalize_secret(object: &mut Object) {
        super::normalize::secret::normalize(object);
    }

    /// The server-side difference for a live object that is not normalized first.
    pub fn server_side(
        live: &Object,
        predicted: &Object,
        include_webhooks: bool,
        options: &Options<'_>,
    ) -> Result<crate::base::Diff, String> {
        super::server_side::as_written(None, live, predicted, include_webhooks, options)
    }

    pub fn two_way(desired: Option<&Object>, live: Option<&Object>) -> crate::base::Diff {
        match (desired, live) {
            (Some(desired), Some(live)) => {
                super::three_way(desired, desired, live).unwrap_or_default()
            }
            _ => super::diff(
                desired,
                live,
                &Options {
                    ignore_status: crate::base::IgnoreStatus::None,
                    ..Options::default()
                },
            ),
        }
    }
}
