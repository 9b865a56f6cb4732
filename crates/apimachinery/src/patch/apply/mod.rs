//! Server-side apply: field ownership, and the result of applying a configuration to a live object.
//!
//! Main functions: [`apply`] and [`track_update`]. They follow structured-merge-diff and the API
//! server's field managers. They know nothing of requests, admission or storage; the caller
//! provides the time, and [`Versions`] if a kind has several.

mod compare;
mod error;
pub mod fieldset;
mod managers;
mod merge;
pub mod path;
mod print;
pub mod scale;
mod types;
mod update;
mod versions;

use crate::gvk::{Gvk, split_api_version};
use crate::{object::Object, patch::last_applied, schema::TypeRef};
pub use compare::Comparison;
pub use error::{ApplyError, Conflict};
pub use versions::Versions;

use compare::{compare, fields_of};
use fieldset::{FieldSet, path_text};
use managers::Managers;
use path::PathElement;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use types::Ty;
use update::{apply_owned, record_update};
use versions::Views;

/// The manager of fields that existed before the first apply, when ownership was not tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager that makes the change, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplyOptions<'a> {
    /// `fieldManager` of the request.
    pub manager: &'a str,
    /// Take over fields that others own with a different value.
    pub force: bool,
    /// RFC 3339 in UTC, whole seconds.
    pub now: &'a str,
    /// Of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind in the request; None if it is the applied object's.
    pub kind: Option<&'a str>,
    /// Such as `status`; empty for the object itself.
    pub subresource: &'a str,
    /// Dotted paths that this endpoint does not write, so that no one acquires them through it:
    /// `["status"]` for a kind with a status subresource, `["spec", "metadata.labels"]` or the like
    /// for the subresource itself.
    pub reset_fields: &'a [&'a str],
}

impl ApplyOptions<'_> {
    fn stamp(&self, owned: &mut managers::Owned) {
        owned.time = Some(self.now.to_owned());
    }
}

/// Applies `config` to `live` for one manager. Without a type, maps are merged and lists are
/// replaced.
///
/// If at most the ownership changes, the times in managedFields stay, so the result may equal
/// `live`.
pub fn apply(
    live: Option<&Object>,
    config: &Object,
    options: &ApplyOptions<'_>,
    ty: Option<TypeRef<'_>>,
) -> Result<Object, ApplyError> {
    apply_in(live, config, options, ty, None)
}

/// The same for a kind with several versions; `live` and `config` are in the request's version.
pub fn apply_in(
    live: Option<&Object>,
    config: &Object,
    options: &ApplyOptions<'_>,
    ty: Option<TypeRef<'_>>,
    versions: Option<&dyn Versions>,
) -> Result<Object, ApplyError> {
    let same_version =
        split_api_version(config.api_version()) == split_api_version(options.api_version);
    if !same_version || options.kind.is_some_and(|kind| kind != config.kind()) {
        return Err(ApplyError::BadRequest(format!(
            "invalid object type: {}",
            told_kind(config)
        )));
    }
    let ty = Ty::new(ty);
    let views = Views {
        version: options.api_version,
        ty,
        versions,
    };
    let known = live.and_then(|l| l.metadata("managedFields"));
    let mut owners = managers::read(known)
        .map_err(|e| ApplyError::Invalid(format!("failed to decode managed fields: {e}")))?;
    let live = live.map(Object::without_managers);
    let (is_new, empty) = (live.is_none(), Object::default());
    let live = live.as_ref().unwrap_or(&empty);
    let misfits = types::misfits(&live.0, ty);
    if owners.is_empty() && !is_new {
        if !misfits.is_empty() {
            return Err(unreadable_live(live, &misfits));
        }
        let before = ApplyOptions {
            manager: BEFORE_FIRST_APPLY,
            ..*options
        };
        record_update(&views.nothing(), &live.0, &mut owners, &before, &views).map_err(|e| {
            match &types::misfits(&live.0, ty)[..] {
                [] => internal(config, "typed live object", &e),
                misfits => unreadable_live(live, misfits),
            }
        })?;
    }
    if managers::are_readable(config.metadata("managedFields")) {
        return Err(ApplyError::BadRequest(
            "metadata.managedFields must be nil".into(),
        ));
    }
    check_types(config, ty)?;
    if !misfits.is_empty() {
        return Err(internal(live, "typed live object", &listed(&misfits)));
    }
    let for_retry = (options.manager == "kubectl" && !options.force).then(|| owners.clone());
    let (mut merged, owners) = match (
        apply_owned(live, config, owners, options, &views),
        for_retry,
    ) {
        (Err(ApplyError::Conflicts(conflicts)), Some(owners)) => {
            let left = not_from_last_applied(live, conflicts, options, ty);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            apply_owned(
                live,
                config,
                owners,
                &ApplyOptions {
                    force: true,
                    ..*options
                },
                &views,
            )?
        }
        (other, _) => other?,
    };
    if options.manager == "kubectl"
        && merged
            .annotation(last_applied::ANNOTATION)
            .is_some_and(|a| !a.is_empty())
    {
        // kubectl may switch back to client-side apply.
        let mut text = last_applied::text(config);
        if !config.metadata("annotations").is_some_and(Value::is_object) {
            text = text.replacen("\"annotations\":{},", "", 1);
        }
        last_applied::put(&mut merged, &text);
    }
    set_managed_fields(&mut merged, owners);
    // Whatever spelling the configuration uses.
    merged
        .0
        .insert("apiVersion".into(), options.api_version.into());
    Ok(merged)
}

/// Records in `after` which fields the manager changed compared to `before` (by a create, update or
/// another kind of patch).
///
/// managedFields in `after` are treated as in the API server: an empty list or entry resets them, a
/// missing list means those of `before`. An untracked object stays untracked.
pub fn track_update(
    before: Option<&Object>,
    after: &mut Object,
    options: &ApplyOptions<'_>,
    ty: Option<TypeRef<'_>>,
) {
    track_update_in(before, after, options, ty, None);
}

/// The same for a kind with several versions; both objects are in the request's version.
pub fn track_update_in(
    before: Option<&Object>,
    after: &mut Object,
    options: &ApplyOptions<'_>,
    ty: Option<TypeRef<'_>>,
    versions: Option<&dyn Versions>,
) {
    let sent = after.metadata_mut().remove("managedFields");
    let kept =
        || managers::read(before.and_then(|b| b.metadata("managedFields"))).unwrap_or_default();
    let mut owners = match &sent {
        _ if !options.subresource.is_empty() => kept(),
        Some(Value::Array(list)) if is_reset(list) => Managers::new(),
        sent => match managers::read(sent.as_ref()) {
            Ok(owners) if !owners.is_empty() => owners,
            _ => kept(),
        },
    };
    if owners.is_empty() && before.is_some() {
        return;
    }
    let views = Views {
        version: options.api_version,
        ty: Ty::new(ty),
        versions,
    };
    let nothing = if before.is_none() {
        views.nothing()
    } else {
        Map::new()
    };
    let before = before.map_or(&nothing, |b| &b.0);
    // If the object does not match its type, or cannot be converted to a manager's version, the
    // changed fields are unknown: it loses all its owners.
    let known = [&after.0, before]
        .into_iter()
        .all(|object| views.ty.is_built_in() || types::misfits(object, views.ty).is_empty());
    if known && record_update(before, &after.0, &mut owners, options, &views).is_ok() {
        managers::cap_updaters(&mut owners);
        set_managed_fields(after, owners);
    }
}

/// The fields that differ between two objects, except managedFields. The error names a list that
/// cannot be compared by key.
pub fn difference(
    old: &Object,
    new: &Object,
    ty: Option<TypeRef<'_>>,
) -> Result<Comparison, String> {
    compare(&old.0, &new.0, Ty::new(ty))
}

/// All fields, including those that cannot be owned.
pub fn all_fields(object: &Object, ty: Option<TypeRef<'_>>) -> FieldSet {
    fields_of(&object.0, Ty::new(ty))
}

/// The fields that a manager owns after applying this object.
pub fn fields(object: &Object, ty: Option<TypeRef<'_>>) -> FieldSet {
    let mut fields = all_fields(object, ty);
    fields.subtract(&UNOWNED);
    fields
}

/// The object without the fields in `remove`. A map that loses its last field is removed too.
pub fn without_fields(object: &Object, remove: &FieldSet, ty: Option<TypeRef<'_>>) -> Object {
    let mut kept = merge::map_without(&object.0, remove, Ty::new(ty));
    merge::drop_nulls(&mut kept, None, Some(&object.0));
    Object(kept)
}

/// `over` merged into `base`: maps and keyed lists are merged, everything else is replaced.
pub fn merged(base: &Object, over: &Object, ty: Option<TypeRef<'_>>) -> Result<Object, String> {
    let value = |o: &Object| Value::Object(o.0.clone());
    let merged = merge::merge(&value(base), &value(over), Ty::new(ty))?;
    Ok(Object::from_value(merged).unwrap_or_default())
}

/// Whether a write reduces the number of these managedFields although it changes nothing else.
pub fn merges_managers(managed_fields: &[Value]) -> bool {
    managers::are_too_many(managed_fields)
}

fn is_reset(list: &[Value]) -> bool {
    match list {
        [] => true,
        [Value::Object(entry)] => entry.is_empty(),
        _ => false,
    }
}

fn set_managed_fields(object: &mut Object, owners: Managers) {
    match managers::write(owners) {
        Some(list) => object.metadata_mut().insert("managedFields".into(), list),
        None => object.metadata_mut().remove("managedFields"),
    };
}

/// A version with two slashes is invalid, and makes the kind unknown, too.
fn told_kind(object: &Object) -> Gvk {
    if object.api_version().matches('/').count() > 1 {
        Gvk::default()
    } else {
        object.gvk()
    }
}

fn described(object: &Object) -> String {
    format!("{}/{}; {}", object.namespace(), object.name(), object.gvk())
}

fn internal(object: &Object, what: &str, error: &str) -> ApplyError {
    ApplyError::Invalid(format!(
        "failed to create {what} ({}): {error}",
        described(object)
    ))
}

/// Why the fields of a live object cannot be determined, with the message of a server that needs
/// them for ownership.
fn unreadable_live(live: &Object, misfits: &[String]) -> ApplyError {
    let (of, why) = (described(live), listed(misfits));
    ApplyError::Invalid(format!(
        "failed to create manager for existing fields: failed to convert new object ({of}) to smd typed: {why}"
    ))
}

fn check_types(config: &Object, ty: Ty<'_>) -> Result<(), ApplyError> {
    match types::validate_fields(&config.0, ty) {
        errors if errors.is_empty() => Ok(()),
        errors => Err(internal(config, "typed patch object", &listed(&errors))),
    }
}

/// Joins several errors.
fn listed(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

/// Fields that cannot be owned: the object's identity and what only the server writes.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::default();
    let server = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    for field in ["apiVersion", "kind", "metadata"] {
        set.insert(&[PathElement::Field(field.into())]);
    }
    for field in server {
        set.insert(&[
            PathElement::Field("metadata".into()),
            PathElement::Field(field.into()),
        ]);
    }
    set
});

/// Switching from client-side to server-side apply is not a conflict: fields in kubectl's
/// last-applied annotation that are unchanged since may be taken over. Returns the remaining
/// conflicts.
fn not_from_last_applied(
    live: &Object,
    conflicts: Vec<Conflict>,
    options: &ApplyOptions<'_>,
    ty: Ty<'_>,
) -> Vec<Conflict> {
    let Ok(Some(Value::Object(last))) = last_applied::read(live) else {
        return conflicts;
    };
    let says = |field: &str| last.get(field).and_then(Value::as_str);
    let other =
        says("apiVersion") != Some(options.api_version) || says("kind") != Some(live.kind());
    // If either object does not match the type, nothing can be concluded from it.
    if other
        || [&last, &live.0]
            .into_iter()
            .any(|object| !types::validate_fields(object, ty).is_empty())
    {
        return conflicts;
    }
    let Ok(found) = compare(&last, &live.0, ty) else {
        return conflicts;
    };
    let mut allowed = fields_of(&last, ty);
    allowed.subtract(&found.modified);
    allowed.subtract(&found.added);
    allowed.subtract(&found.removed);
    let allowed: Vec<String> = allowed.paths().iter().map(|p| path_text(p)).collect();
    conflicts
        .into_iter()
        .filter(|c| !allowed.contains(&c.field))
        .collect()
}

#[cfg(test)]
mod tests;
