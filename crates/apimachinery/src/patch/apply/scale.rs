//! Ownership of the number of replicas: converts managedFields from an object to its Scale, and
//! back.
//!
//! Main functions: [`to_scale`], [`to_object`]. They follow the API server exactly. It treats the
//! updaters of a Scale as different from those of the object, so a write of the Scale takes the
//! field from them, and their time is lost.

use super::fieldset::FieldSet;
use super::managers::{self, Managers, Owned};
use super::path::PathElement;
use serde_json::Value;
use std::collections::BTreeMap;

const SCALE_VERSION: &str = "autoscaling/v1";

/// By `apiVersion`: the path of the number of replicas; None if that version has no Scale.
pub type ReplicaPaths = BTreeMap<String, Option<Vec<PathElement>>>;

/// A dotted path of fields.
pub fn fields_path(text: &str) -> Vec<PathElement> {
    text.trim_start_matches('.')
        .split('.')
        .map(|field| PathElement::Field(field.to_owned()))
        .collect()
}

fn only(path: &[PathElement]) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}

/// The Scale's managedFields, derived from those of the object.
pub fn to_scale(
    managed_fields: Option<&Value>,
    paths: &ReplicaPaths,
) -> Result<Option<Value>, String> {
    let mut of_scale = Managers::new();
    for (identity, owned) in managers::read(managed_fields)? {
        let path = paths.get(&owned.api_version).and_then(Option::as_ref);
        if path.is_some_and(|path| owned.fields.contains(path)) {
            let owned = Owned {
                fields: only(&fields_path("spec.replicas")),
                api_version: SCALE_VERSION.to_owned(),
                time: owned.time,
            };
            of_scale.insert(identity, owned);
        }
    }
    Ok(managers::write(of_scale))
}

/// The object's managedFields after a write of its Scale, whose managedFields are `of_scale`;
/// `api_version` is the request's.
pub fn to_object(
    managed_fields: Option<&Value>,
    of_scale: Option<&Value>,
    api_version: &str,
    paths: &ReplicaPaths,
) -> Result<Option<Value>, String> {
    let before = managers::read(managed_fields)?;
    let mut of_scale = managers::read(of_scale)?;
    let mut after = Managers::new();
    for (identity, owned) in &before {
        let Some(path) = paths.get(&owned.api_version) else {
            continue;
        };
        let mut owned = owned.clone();
        if let Some(path) = path.as_ref().filter(|path| owned.fields.contains(path))
            && of_scale.remove(identity).is_none()
        {
            owned.fields.subtract(&only(path));
        }
        after.insert(identity.clone(), owned);
    }
    let own = paths.get(api_version).and_then(Option::as_ref);
    for (identity, owned) in of_scale {
        if let Some(path) = own.filter(|_| owned.fields.contains(&fields_path("spec.replicas"))) {
            let time = before.get(&identity).and_then(|owned| owned.time.clone());
            after.insert(
                identity,
                Owned {
                    fields: only(path),
                    api_version: api_version.to_owned(),
                    time,
                },
            );
        }
    }
    Ok(managers::write(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manager: &str, version: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": version, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn read(made: Result<Option<Value>, String>) -> Option<Value> {
        made.expect("managers that can be read")
    }

    #[test]
    fn a_scale_takes_the_field_from_its_updaters() {
        let paths =
            ReplicaPaths::from([("apps/v1".to_owned(), Some(fields_path("spec.replicas")))]);
        let both = json!({"f:spec": {"f:paused": {}, "f:replicas": {}}});
        let object = json!([entry("a", "apps/v1", "2026-01-01T00:00:00Z", &both)]);
        let scale = read(to_scale(Some(&object), &paths)).expect("somebody owns the field");
        assert_eq!(
            scale,
            json!([entry(
                "a",
                SCALE_VERSION,
                "2026-01-01T00:00:00Z",
                &json!({"f:spec": {"f:replicas": {}}})
            )])
        );
        let once = read(to_object(Some(&object), Some(&scale), "apps/v1", &paths));
        let mut taken = entry("a", "apps/v1", "", &json!({"f:spec": {"f:replicas": {}}}));
        taken.as_object_mut().expect("a map").remove("time");
        let rest = entry(
            "a",
            "apps/v1",
            "2026-01-01T00:00:00Z",
            &json!({"f:spec": {"f:paused": {}}}),
        );
        assert_eq!(once, Some(json!([taken, rest])));
        // Both now have the same name, so the first is lost.
        let scale = read(to_scale(once.as_ref(), &paths));
        assert_eq!(
            (
                scale.clone(),
                read(to_object(once.as_ref(), scale.as_ref(), "apps/v1", &paths))
            ),
            (None, Some(json!([rest])))
        );
    }

    #[test]
    fn owners_in_versions_that_are_gone_are_dropped() {
        let paths = ReplicaPaths::from([("a/v2".to_owned(), None)]);
        let fields = json!({"f:spec": {"f:replicas": {}}});
        let (gone, other) = (
            entry("a", "a/v1", "t", &fields),
            entry("b", "a/v2", "t", &fields),
        );
        let object = json!([gone, other]);
        assert_eq!(to_scale(Some(&object), &paths), Ok(None));
        assert_eq!(
            to_object(Some(&object), None, "a/v2", &paths),
            Ok(Some(json!([other])))
        );
    }
}
