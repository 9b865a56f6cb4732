//! Server-side apply: who owns which field, and what an applied configuration makes of a live object.
//!
//! Main functions: [`apply`] and [`track_update`]. They do what structured-merge-diff and the API server's field managers do. They
//! know nothing of requests, admission or storage; the caller gives the time. One difference: managers of other versions of a kind
//! are compared without conversion.

mod compare;
mod error;
pub mod fieldset;
mod managers;
mod merge;
pub mod path;
mod types;

use crate::{object::Object, patch::last_applied, schema::TypeRef};
pub use compare::Comparison;
pub use error::{ApplyError, Conflict};

use compare::{compare, fields_of, follow_schema, with_named_parents};
use fieldset::{FieldSet, path_text};
use managers::{Identity, Managers, Operation, Owned};
use path::PathElement;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use types::Ty;

/// Who owns what was there before the first apply, when nobody was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Whose change this is, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplyOptions<'a> {
    /// `fieldManager` of the request.
    pub manager: &'a str,
    /// Take over fields that others own with another value.
    pub force: bool,
    /// RFC 3339 in UTC, whole seconds.
    pub now: &'a str,
    /// Of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// Such as `status`; empty for the object itself.
    pub subresource: &'a str,
    /// Dotted paths that this endpoint does not write, so nobody comes to own them through it: `["status"]` for a kind with a
    /// status subresource, `["spec", "metadata.labels"]` or the like for the subresource itself.
    pub reset_fields: &'a [&'a str],
}

/// Applies `config` over `live` for one manager. Without a type, maps merge and lists are replaced.
///
/// When nothing but ownership can have changed, the times of managedFields stay, so the result may equal `live`.
pub fn apply(live: Option<&Object>, config: &Object, options: &ApplyOptions<'_>, ty: Option<TypeRef<'_>>) -> Result<Object, ApplyError> {
    if config.api_version() != options.api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {}, expected: {}",
            config.api_version(),
            options.api_version
        )));
    }
    if config.metadata("managedFields").is_some_and(|m| !m.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    let ty = Ty::new(ty);
    check_types(config, ty)?;
    let known = live.and_then(|l| l.metadata("managedFields"));
    let mut owners = managers::read(known).map_err(|e| ApplyError::Invalid(format!("failed to decode managed fields: {e}")))?;
    let live = live.map(without_managed_fields);
    let empty = Object::default();
    let live = live.as_ref().unwrap_or(&empty);
    if owners.is_empty() {
        let before = ApplyOptions { manager: BEFORE_FIRST_APPLY, ..*options };
        record_update(&Map::new(), &live.0, &mut owners, &before, ty).map_err(|e| internal(config, "typed live object", &e))?;
    }
    let for_retry = (options.manager == "kubectl" && !options.force).then(|| owners.clone());
    let (mut merged, owners) = match (apply_owned(live, config, owners, options, ty), for_retry) {
        (Err(ApplyError::Conflicts(conflicts)), Some(owners)) => {
            let left = not_from_last_applied(live, conflicts, options, ty);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            apply_owned(live, config, owners, &ApplyOptions { force: true, ..*options }, ty)?
        }
        (other, _) => other?,
    };
    if options.manager == "kubectl" && merged.annotation(last_applied::ANNOTATION).is_some_and(|a| !a.is_empty()) {
        // kubectl may go back to client-side apply.
        let mut text = last_applied::text(config);
        if config.metadata("annotations").is_none() {
            text = text.replacen("\"annotations\":{},", "", 1);
        }
        merged.set_annotation(last_applied::ANNOTATION, &text);
    }
    set_managed_fields(&mut merged, owners);
    Ok(merged)
}

/// Writes into `after` which fields its manager changed against `before` (create, update or another kind of patch).
///
/// What `after` carries in managedFields is believed as the API server does: an empty list or entry resets them, none at all
/// means those of `before`. An object that was not tracked before stays so.
pub fn track_update(before: Option<&Object>, after: &mut Object, options: &ApplyOptions<'_>, ty: Option<TypeRef<'_>>) {
    let sent = after.metadata_mut().remove("managedFields");
    let kept = || managers::read(before.and_then(|b| b.metadata("managedFields"))).unwrap_or_default();
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
    let empty = Map::new();
    // Values that do not fit their type leave the object without owners, as on the API server.
    if record_update(before.map_or(&empty, |b| &b.0), &after.0, &mut owners, options, Ty::new(ty)).is_ok() {
        managers::cap_updaters(&mut owners);
        set_managed_fields(after, owners);
    }
}

/// Which fields differ between two objects, managedFields apart. The error names a list that cannot be compared by key.
pub fn difference(old: &Object, new: &Object, ty: Option<TypeRef<'_>>) -> Result<Comparison, String> {
    compare(&old.0, &new.0, Ty::new(ty))
}

/// The fields that a manager owns who applies this object.
pub fn fields(object: &Object, ty: Option<TypeRef<'_>>) -> FieldSet {
    let mut fields = fields_of(&object.0, Ty::new(ty));
    fields.subtract(&UNOWNED);
    fields
}

/// The object without the fields in `remove`. What loses its last field is gone, too.
pub fn without_fields(object: &Object, remove: &FieldSet, ty: Option<TypeRef<'_>>) -> Object {
    let mut kept = merge::map_without(&object.0, remove, Ty::new(ty));
    merge::drop_nulls(&mut kept, None, Some(&object.0));
    Object(kept)
}

fn is_reset(list: &[Value]) -> bool {
    match list {
        [] => true,
        [Value::Object(entry)] => entry.is_empty(),
        _ => false,
    }
}

fn without_managed_fields(object: &Object) -> Object {
    let mut copy = Object(Map::new());
    for (key, value) in &object.0 {
        let value = match value {
            Value::Object(metadata) if key == "metadata" => {
                Value::Object(metadata.iter().filter(|(k, _)| *k != "managedFields").map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            other => other.clone(),
        };
        copy.0.insert(key.clone(), value);
    }
    copy
}

fn set_managed_fields(object: &mut Object, owners: Managers) {
    match managers::write(owners) {
        Some(list) => object.metadata_mut().insert("managedFields".into(), list),
        None => object.metadata_mut().remove("managedFields"),
    };
}

fn described(object: &Object) -> String {
    format!("{}/{}; {}", object.namespace(), object.name(), object.gvk())
}

fn internal(object: &Object, what: &str, error: &str) -> ApplyError {
    ApplyError::Invalid(format!("failed to create {what} ({}): {error}", described(object)))
}

fn check_types(config: &Object, ty: Ty<'_>) -> Result<(), ApplyError> {
    let mut errors = Vec::new();
    for (key, value) in &config.0 {
        // One field at a time: the object itself is a map without being wrapped into a value.
        if let Ty::Known(known) = ty
            && known.field(key).is_none()
        {
            errors.push(format!(".{key}: field not declared in schema"));
            break;
        }
        errors.extend(types::validate(value, ty.field(key)).into_iter().map(|e| {
            let joined = if e.starts_with(['.', '[']) { "" } else { ": " };
            format!(".{key}{joined}{e}")
        }));
    }
    match &errors[..] {
        [] => Ok(()),
        [one] => Err(internal(config, "typed patch object", one)),
        many => Err(internal(config, "typed patch object", &format!("errors:\n  {}", many.join("\n  ")))),
    }
}

/// What nobody owns: the object's identity and what only the server writes.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::default();
    let server =
        ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion"];
    for field in ["apiVersion", "kind", "metadata"] {
        set.insert(&[PathElement::Field(field.into())]);
    }
    for field in server {
        set.insert(&[PathElement::Field("metadata".into()), PathElement::Field(field.into())]);
    }
    set
});

fn reset_set(options: &ApplyOptions<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    for path in options.reset_fields {
        let path: Vec<PathElement> = path.split('.').map(|f| PathElement::Field(f.to_owned())).collect();
        set.insert(&path);
    }
    set
}

fn compare_for(old: &Map<String, Value>, new: &Map<String, Value>, options: &ApplyOptions<'_>, ty: Ty<'_>) -> Result<Comparison, String> {
    let mut found = compare(old, new, ty)?;
    if !options.reset_fields.is_empty() {
        let reset = reset_set(options);
        found.added.subtract_recursively(&reset);
        found.modified.subtract_recursively(&reset);
        found.removed.subtract_recursively(&reset);
    }
    Ok(found)
}

/// Everyone loses what the update changed or removed; the updater gains what it changed or added.
fn record_update(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    owners: &mut Managers,
    options: &ApplyOptions<'_>,
    ty: Ty<'_>,
) -> Result<(), String> {
    let found = compare_for(old, new, options, ty)?;
    let mut touched = found.modified;
    touched.extend(found.added);
    for owned in owners.values_mut() {
        follow_schema(&mut owned.fields, ty);
        owned.fields.subtract(&touched);
        owned.fields.subtract(&found.removed);
    }
    owners.retain(|_, owned| !owned.fields.is_empty());
    touched.subtract(&UNOWNED);
    if touched.is_empty() {
        return Ok(());
    }
    let identity = Identity::new(options.manager, Operation::Update, options.api_version, options.subresource);
    let entry = owners.entry(identity).or_insert_with(|| Owned { fields: FieldSet::default(), api_version: String::new(), time: None });
    entry.fields.extend(touched);
    entry.api_version = options.api_version.to_owned();
    entry.time = Some(options.now.to_owned());
    Ok(())
}

/// One try at applying: the merged object without managedFields, and who owns what then.
fn apply_owned(
    live: &Object,
    config: &Object,
    mut owners: Managers,
    options: &ApplyOptions<'_>,
    ty: Ty<'_>,
) -> Result<(Object, Managers), ApplyError> {
    for owned in owners.values_mut() {
        follow_schema(&mut owned.fields, ty);
    }
    let mut merged = live.0.clone();
    for (key, value) in &config.0 {
        let value = match merged.get(key) {
            Some(old) => merge::merge(old, value, ty.field(key)).map_err(|e| internal(config, "merged object", &format!(".{key}{e}")))?,
            None => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    let mut fields = fields_of(&config.0, ty);
    if !options.reset_fields.is_empty() {
        fields.subtract_recursively(&reset_set(options));
    }
    let identity = Identity::new(options.manager, Operation::Apply, "", options.subresource);
    let last = owners.remove(&identity);
    let owned = Owned { fields, api_version: options.api_version.to_owned(), time: last.as_ref().and_then(|l| l.time.clone()) };
    owners.insert(identity.clone(), owned);
    let pruned = last.is_some();
    if let Some(last) = last {
        merged = prune(merged, &last.fields, &owners, ty);
    }
    let mut merged = Object(merged);
    let changed = !path::equal_maps(&live.0, &merged.0);
    if changed {
        let found = compare_for(&live.0, &merged.0, options, ty).map_err(|e| internal(config, "comparison", &e))?;
        let mut touched = found.modified;
        touched.extend(found.added);
        if !options.force {
            refuse_conflicts(&owners, &identity, &touched)?;
        }
        for (_, owned) in owners.iter_mut().filter(|(other, _)| **other != identity) {
            owned.fields.subtract(&touched);
            owned.fields.subtract(&found.removed);
        }
    }
    if pruned {
        merge::drop_nulls(&mut merged.0, Some(&config.0), Some(&live.0));
    }
    if let Some(own) = owners.get_mut(&identity) {
        own.fields.subtract(&UNOWNED);
        if changed {
            own.time = Some(options.now.to_owned());
        }
    }
    owners.retain(|_, owned| !owned.fields.is_empty());
    Ok((merged, owners))
}

fn refuse_conflicts(owners: &Managers, own: &Identity, touched: &FieldSet) -> Result<(), ApplyError> {
    let mut conflicts = Vec::new();
    for (identity, owned) in owners.iter().filter(|(other, _)| *other != own) {
        for path in owned.fields.intersection(touched).paths() {
            conflicts.push(Conflict {
                manager: identity.manager.clone(),
                operation: identity.operation.as_str().to_owned(),
                api_version: owned.api_version.clone(),
                subresource: identity.subresource.clone(),
                field: path_text(&path),
            });
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(ApplyError::Conflicts(conflicts)) }
}

/// Removes what this manager applied last time, applies no longer, and nobody else owns.
fn prune(merged: Map<String, Value>, last: &FieldSet, owners: &Managers, ty: Ty<'_>) -> Map<String, Value> {
    let mut owned = FieldSet::default();
    for other in owners.values() {
        owned.extend(other.fields.clone());
    }
    if last.difference(&owned).is_empty() {
        return merged;
    }
    let named = |set: &FieldSet| with_named_parents(set, ty);
    let all = named(&fields_of(&merged, ty));
    let last = named(last);
    // Without all that was applied last, then with what has an owner, then with what nobody ever owned.
    let kept = named(&fields_of(&merge::map_without(&merged, &last, ty), ty));
    let ownerless = all.difference(&kept.union(&named(&owned)));
    let with_owned = merge::map_without(&merged, &ownerless, ty);
    let kept = named(&fields_of(&with_owned, ty));
    merge::map_without(&merged, &all.difference(&kept).intersection(&last), ty)
}

/// Moving from client-side to server-side apply is no conflict: what kubectl's annotation says was applied, and still is so, may
/// be taken over. Returns the other conflicts.
fn not_from_last_applied(live: &Object, conflicts: Vec<Conflict>, options: &ApplyOptions<'_>, ty: Ty<'_>) -> Vec<Conflict> {
    let Ok(Some(Value::Object(last))) = last_applied::read(live) else { return conflicts };
    if last.get("apiVersion").and_then(Value::as_str) != Some(options.api_version) {
        return conflicts;
    }
    let Ok(found) = compare(&last, &live.0, ty) else { return conflicts };
    let mut allowed = fields_of(&last, ty);
    allowed.subtract(&found.modified);
    allowed.subtract(&found.added);
    allowed.subtract(&found.removed);
    let allowed: Vec<String> = allowed.paths().iter().map(|p| path_text(p)).collect();
    conflicts.into_iter().filter(|c| !allowed.contains(&c.field)).collect()
}

#[cfg(test)]
mod tests;
