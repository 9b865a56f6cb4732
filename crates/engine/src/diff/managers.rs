//! Fields owned by trusted managers (`managedFieldsManagers`).
//!
//! Main function: [`hand_over`].

use serde_json::Value;
use tiphys_apimachinery::{
    Object,
    patch::apply::{fieldset::FieldSet, path::PathElement},
};

/// Removes every field from both objects that one of the managers owns and whose values differ. A
/// field that only one of the objects has stays, because the manager did not cause that difference.
pub fn hand_over(desired: &mut Object, live: &mut Object, managers: &[&String]) {
    let entries = live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let trusted = |entry: &&Value| {
        entry
            .get("manager")
            .and_then(Value::as_str)
            .is_some_and(|m| managers.iter().any(|t| *t == m))
    };
    let sets = entries
        .iter()
        .filter(trusted)
        .filter_map(|entry| FieldSet::from_json(entry.get("fieldsV1")?).ok());
    let mut owned = FieldSet::default();
    sets.for_each(|set| owned.extend(set));
    if owned.is_empty() {
        return;
    }
    let (mut desired_value, mut live_value) = (
        Value::Object(desired.0.clone()),
        Value::Object(live.0.clone()),
    );
    // From the end, so that removing a list element does not move those still to be removed.
    for path in owned.paths().into_iter().rev() {
        let both = find(&mut desired_value, &path).zip(find(&mut live_value, &path));
        let differs = both.is_some_and(|(d, l)| *d != *l && !(d.is_object() && l.is_object()));
        if differs {
            remove(&mut desired_value, &path);
            remove(&mut live_value, &path);
        }
    }
    for (object, value) in [(desired, desired_value), (live, live_value)] {
        *object = Object::from_value(value).expect("removing fields leaves a map");
    }
}

fn find<'a>(value: &'a mut Value, path: &[PathElement]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, step)
}

fn step<'a>(value: &'a mut Value, element: &PathElement) -> Option<&'a mut Value> {
    match element {
        PathElement::Field(name) => value.get_mut(name),
        _ => {
            let list = value.as_array_mut()?;
            let index = element.position(list)?;
            list.get_mut(index)
        }
    }
}

fn remove(value: &mut Value, path: &[PathElement]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    match find(value, parents) {
        Some(Value::Object(map)) => {
            if let PathElement::Field(name) = last {
                map.remove(name);
            }
        }
        Some(Value::Array(list)) => {
            if let Some(index) = last.position(list) {
                list.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::hand_over;
    use serde_json::{Value, json};
    use tiphys_apimachinery::Object;

    #[test]
    fn only_changed_fields_of_trusted_managers_go() {
        let object = |spec: Value| {
            let fields = json!({"f:spec": {"f:replicas": {}, "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}, "f:paused": {}}});
            Object::from_value(json!({"metadata": {"managedFields": [{"manager": "scaler", "fieldsV1": fields}]}, "spec": spec}))
                .expect("a map")
        };
        let wanted = json!({"replicas": 1, "containers": [{"name": "b"}, {"name": "a", "image": "x:1"}], "other": 1});
        let there = json!({"replicas": 5, "containers": [{"name": "a", "image": "x:2"}, {"name": "b"}], "paused": true, "other": 2});
        let (mut desired, mut live) = (object(wanted.clone()), object(there.clone()));
        hand_over(&mut desired, &mut live, &[&"nobody".to_owned()]);
        assert_eq!((&desired.0["spec"], &live.0["spec"]), (&wanted, &there));
        hand_over(&mut desired, &mut live, &[&"scaler".to_owned()]);
        assert_eq!(
            desired.0["spec"],
            json!({"containers": [{"name": "b"}, {"name": "a"}], "other": 1})
        );
        assert_eq!(
            live.0["spec"],
            json!({"containers": [{"name": "a"}, {"name": "b"}], "paused": true, "other": 2})
        );
    }
}
