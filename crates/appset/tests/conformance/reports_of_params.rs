//! What people reported about parameters, names and patches of ApplicationSets
//! (`../shared/cases/reports/sets`), with the right answers.

use crate::reports::{generate, planned, read, report, set};
use crate::suite::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use tiphys_api::Application;
use tiphys_appset::Generated;
use tiphys_appset::reconcile::{Change, Plan};

/// The reason of the condition ErrorOccurred.
fn error(plan: &Plan) -> Option<&str> {
    let mut conditions = plan.status.conditions.iter();
    let error = conditions.find(|c| c.type_ == "ErrorOccurred" && c.status == "True");
    error.map(|error| error.reason.as_str())
}

fn spec(app: &Application) -> Value {
    serde_json::to_value(&app.spec).expect("JSON")
}

fn find<'g>(generated: &'g Generated, name: &Value) -> &'g Application {
    let mut apps = generated.applications.iter();
    apps.find(|app| json!(app.metadata.name) == *name)
        .expect("it is generated")
}

#[test]
fn a_patch_that_empties_a_spec_changes_nothing() {
    let Some(folder) = report("05-patch-empties-spec") else {
        return;
    };
    let expected = read(&folder, "expected.yaml");
    let own = set(&folder, "appset.yaml");
    let generated = generate(&json!({}), &own);
    assert_eq!(generated.failure, None);
    let (dev, prd) = (&expected["a"][0], &expected["a"][1]);
    assert_eq!(spec(find(&generated, &dev["name"])), dev["spec"]);
    let emptied = spec(find(&generated, &prd["name"]));
    let left = json!({"project": emptied["project"], "destination": emptied["destination"]});
    assert_eq!(
        (left, &emptied["source"]),
        (prd["spec"].clone(), &Value::Null)
    );

    // The live one stays as it is.
    let mut live = find(&generated, &dev["name"]).clone();
    live.metadata.name = "prd-guest".to_owned();
    live.metadata.namespace = "argocd".to_owned();
    live.metadata.owner_references = serde_json::from_value(json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "guest",
        "uid": own.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    }]))
    .expect("an owner");
    let plan = planned(&own, &generated, &[live]);
    let written: Vec<&str> = plan.writes.iter().map(Change::name).collect();
    assert_eq!((written, plan.deletes.len()), (vec!["dev-guest"], 0));
    assert_eq!(error(&plan), Some("ApplicationValidationError"));

    // With `if` outside of `spec:` it is the plain template.
    let mut moved = own.clone();
    let patch = moved.spec.template_patch.as_mut().expect("a patch");
    *patch = patch.replace("spec:\n{{- if .autoSync }}", "{{- if .autoSync }}\nspec:");
    let generated = generate(&json!({}), &moved);
    let plain = spec(find(&generated, &prd["name"]));
    assert_eq!(plain["source"]["path"], "base");
    assert_eq!(
        plain["syncPolicy"],
        json!({"syncOptions": ["CreateNamespace=true"]})
    );

    let generated = generate(&json!({}), &set(&folder, "appset-sources.yaml"));
    let wanted = &expected["b"][0];
    assert_eq!(
        spec(find(&generated, &wanted["name"]))["sources"],
        wanted["sources"]
    );
}

#[test]
fn every_value_of_a_decision_is_a_text() {
    let Some(folder) = report("21-decision-nonstring") else {
        return;
    };
    let text = fs::read_to_string(folder.join("clusters.yaml")).expect("a file");
    assert!(text.contains("name: \"7\""), "the name is a text");
    let world = json!({
        "clusters": read(&folder, "clusters.yaml"),
        "configmaps": {"duck": read(&folder, "configmap.yaml")["data"]},
        "decision": {"plural": "placements", "resources": [read(&folder, "decision.yaml")]},
    });
    let generated = generate(&world, &set(&folder, "appset.yaml"));
    assert_eq!(generated.failure, None);
    let mut made: Vec<Value> = generated
        .applications
        .iter()
        .map(|app| json!({"name": app.metadata.name, "annotations": app.metadata.annotations}))
        .collect();
    made.sort_by_key(|app| app["name"].to_string());
    assert_eq!(json!(made), read(&folder, "expected.yaml"));
}

#[test]
fn long_branches_have_slugs_that_end_at_words() {
    let Some(folder) = report("49-long-branch-names") else {
        return;
    };
    let expected = read(&folder, "expected.yaml");
    let answers = read(&folder, "exchanges.json");
    let pulls = answers[0]["body"].as_array().into_iter().flatten();
    let pulls = pulls.map(|pull| {
        json!({
            "number": pull["number"], "title": pull["title"], "branch": pull["head"]["ref"],
            "target_branch": pull["base"]["ref"], "head_sha": pull["head"]["sha"],
            "author": pull["user"]["login"], "labels": pull["labels"],
        })
    });
    let world = json!({"pull_requests": {"list": Value::from_iter(pulls)}});
    // The limit of one call must not be that of the next: in any order.
    for files in [
        ["slugify", "names", "numbered"],
        ["numbered", "names", "slugify"],
    ] {
        for file in files {
            let set = set(&folder, &format!("{file}.yaml"));
            let generated = World::new(&world).generate(&set);
            assert_eq!(generated.failure, None, "{file}");
            let plan = planned(&set, &generated, &[]);
            let created: BTreeSet<&str> = plan.writes.iter().map(Change::name).collect();
            match file {
                "names" => {
                    let wanted = &expected["names"];
                    assert_eq!(json!(created), wanted["created"]);
                    assert_eq!(error(&plan), Some("ApplicationValidationError"));
                    let invalid = wanted["invalid"].as_str().expect("a name");
                    let told = format!("{:?}", plan.status.conditions);
                    assert!(told.contains(invalid), "{told}");
                }
                "numbered" => {
                    assert_eq!(error(&plan), None);
                    for wanted in expected["numbered"].as_array().expect("a list") {
                        let app = find(&generated, &wanted["name"]);
                        assert_eq!(json!(app.metadata.annotations), wanted["annotations"]);
                        assert_eq!(app.metadata.labels.len(), 0, "of the set's name");
                    }
                    assert_eq!(created.len(), 4);
                }
                _ => {
                    let wanted: BTreeSet<&str> = expected["slugify"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .collect();
                    assert_eq!(created, wanted);
                }
            }
        }
    }
}
