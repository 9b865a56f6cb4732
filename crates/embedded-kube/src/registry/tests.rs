//! How writes of definitions change the catalog.

use super::Registry;
use crate::base::WriteOptions;
use crate::catalog::CRD_TABLE;
use crate::store::Memory;
use serde_json::json;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

fn definition(n: usize, group: &str) -> Object {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("widget{n}s.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": format!("widget{n}s"), "singular": format!("widget{n}"), "kind": format!("Widget{n}"), "listKind": format!("Widget{n}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        }
    }))
    .expect("a map")
}

/// The cost of a write must not grow with the number of unrelated definitions.
#[test]
fn a_write_of_a_definition_reads_no_other_one() {
    let registry =
        Registry::open(Arc::new(Memory), Arc::new(jiff::Timestamp::now)).expect("memory opens");
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let options = WriteOptions::manager("test");
    for n in 0..40 {
        let group = if n % 2 == 0 {
            "one.example.com"
        } else {
            "example.com"
        };
        registry
            .create(&gvr, "", definition(n, group), &options)
            .expect("it is created");
        let catalog = registry.catalog();
        assert!(
            catalog.read <= 1,
            "{} definitions were read for the {n}th",
            catalog.read
        );
        assert!(
            catalog
                .resource(group, "v1", &format!("widget{n}s"))
                .is_some(),
            "the {n}th is served"
        );
    }
    let before = registry.catalog();
    registry
        .delete(
            &gvr,
            "",
            "widget7s.example.com",
            &crate::base::DeleteOptions::default(),
        )
        .expect("it is deleted");
    let after = registry.catalog();
    assert!(after.read <= 1, "{} definitions were read", after.read);
    let others = before
        .order
        .iter()
        .filter(|r| r.custom.is_some() && r.resource != "widget7s");
    assert!(
        others.clone().count() == 39 && others.clone().all(|r| after.serves(r)),
        "the others are the same ones"
    );
}

/// A definition that waits for a name is found without reading the others, and gets the name when
/// it becomes free.
#[test]
fn a_definition_that_waits_for_a_name_gets_it() {
    let registry =
        Registry::open(Arc::new(Memory), Arc::new(jiff::Timestamp::now)).expect("memory opens");
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let options = WriteOptions::manager("test");
    let mut same_kind = definition(2, "example.com");
    for field in ["kind", "listKind"] {
        let name = if field == "kind" {
            "Widget1"
        } else {
            "Widget1List"
        };
        same_kind.0["spec"]["names"][field] = name.into();
    }
    registry
        .create(&gvr, "", definition(1, "example.com"), &options)
        .expect("it is created");
    registry
        .create(&gvr, "", same_kind, &options)
        .expect("it is created");
    let served = |plural: &str| {
        registry
            .catalog()
            .resource("example.com", "v1", plural)
            .is_some()
    };
    assert_eq!((served("widget1s"), served("widget2s")), (true, false));
    let name = "widget1s.example.com";
    registry
        .delete(&gvr, "", name, &crate::base::DeleteOptions::default())
        .expect("it is deleted");
    let stored = registry
        .catalog()
        .stored_in(CRD_TABLE)
        .cloned()
        .expect("definitions are served");
    // No controller removes the objects of the definition in this test.
    let free = |object: &mut Object| object.set_finalizers(Vec::new());
    if let Ok(current) = registry.get_stored(&stored, "", name) {
        let mut object = (*current.object()).clone();
        free(&mut object);
        registry
            .update(&gvr, "", object, &options)
            .expect("it is updated");
    }
    assert_eq!((served("widget1s"), served("widget2s")), (false, true));
}
