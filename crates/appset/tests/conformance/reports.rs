//! What people reported about ApplicationSets (`../shared/cases/reports/sets`), with the right
//! answers: those that generating and planning alone decide.

use crate::suite::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tiphys_api::meta::Time;
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::reconcile::{Change, Done, Existing, Plan, Settings, plan};
use tiphys_appset::{Generated, Reason};
use tiphys_engine::spec::in_cluster;
use tiphys_gocompat::yaml;

/// The folder of a report; `None`: the cases are not here, and the test is skipped.
pub fn report(name: &str) -> Option<PathBuf> {
    tiphys_testkit::shared(&format!("cases/reports/sets/{name}"))
}

pub fn read(folder: &Path, file: &str) -> Value {
    let text = fs::read_to_string(folder.join(file)).expect(file);
    yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins).expect(file)
}

pub fn set(folder: &Path, file: &str) -> ApplicationSet {
    serde_json::from_value(read(folder, file)).expect("an ApplicationSet")
}

/// The files below a folder, by path.
fn tree(root: &Path) -> serde_json::Map<String, Value> {
    let mut files = serde_json::Map::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(root)
                    .expect("below it")
                    .display()
                    .to_string();
                files.insert(name, fs::read_to_string(&path).expect("text").into());
            }
        }
    }
    files
}

/// The world with these files in every repository of a set.
fn with_files(set: &ApplicationSet, files: serde_json::Map<String, Value>) -> Value {
    let spec = serde_json::to_value(&set.spec).expect("JSON");
    let mut repos = serde_json::Map::new();
    let files = Value::Object(files);
    collect(&spec, &mut |url, revision| {
        repos.insert(url.to_owned(), json!({"revisions": {revision: files}}));
    });
    json!({"repos": repos, "projects": [
        {"metadata": {"name": "default"}}, {"metadata": {"name": "platform"}},
    ]})
}

fn collect(json: &Value, found: &mut dyn FnMut(&str, &str)) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => {
            if let (Some(Value::String(url)), Some(Value::String(revision))) =
                (map.get("repoURL"), map.get("revision"))
            {
                found(url, revision);
            }
            map.values().for_each(|value| collect(value, found));
        }
        _ => {}
    }
}

pub fn generate(world: &Value, set: &ApplicationSet) -> Generated {
    World::new(world).generate(set)
}

/// What a set does to existing Applications, with one cluster and the projects that cases use.
pub fn planned(set: &ApplicationSet, generated: &Generated, live: &[Application]) -> Plan {
    let outcome: Result<&[Application], _> = match &generated.failure {
        Some(failure) => Err(failure),
        None => Ok(&generated.applications),
    };
    let projects = BTreeSet::from(["default".to_owned(), "examples".to_owned()]);
    let clusters = [in_cluster()];
    let existing = Existing {
        applications: live,
        projects: &projects,
        clusters: &clusters,
        local_names: &[],
        broken_clusters: &[],
    };
    plan(
        set,
        outcome,
        &existing,
        &Settings::default(),
        Time::default(),
    )
}

fn names(generated: &Generated) -> Vec<&str> {
    let apps = generated.applications.iter();
    let mut names: Vec<&str> = apps.map(|app| app.metadata.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// The Applications of a case, as the set would make them but for their targetRevision.
fn live(folder: &Path, set: &ApplicationSet, wanted: &Generated) -> Vec<Application> {
    let owner = json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "name": set.metadata.name, "controller": true, "blockOwnerDeletion": true,
    }]);
    let described = read(folder, "applications.yaml");
    let described = described.as_array().into_iter().flatten();
    let made = described.map(|described| {
        let mut apps = wanted.applications.iter();
        let app = apps.find(|app| described["name"] == *app.metadata.name);
        let mut app = app.expect("it is generated").clone();
        app.metadata.owner_references = serde_json::from_value(owner.clone()).expect("an owner");
        let source = app.spec.source.as_mut().expect("a source");
        let revision = described["source"]["targetRevision"].as_str();
        source.target_revision = revision.expect("a text").to_owned();
        app
    });
    made.collect()
}

/// The types of the conditions of a plan, with what they say.
fn conditions(plan: &Plan) -> Vec<(&str, &str)> {
    let conditions = plan.status.conditions.iter();
    conditions
        .map(|c| (c.type_.as_str(), c.status.as_str()))
        .collect()
}

#[test]
fn a_generator_that_fails_stops_those_beside_it() {
    let Some(folder) = report("01-git-outage") else {
        return;
    };
    let mut own = set(&folder, "appset.yaml");
    let well = with_files(&own, tree(&folder.join("tree")));
    let wanted = generate(&well, &own);
    assert_eq!(wanted.failure, None);
    let all = ["ops-a", "ops-b", "ops-c", "site-d"];
    assert_eq!(names(&wanted), all);
    let live = live(&folder, &own, &wanted);
    assert_eq!(live.len(), 3);

    // An error is not asked about sooner than after three minutes, nor later, whatever the set says.
    let away = json!({});
    for seconds in [20, 3600] {
        let git = own.spec.generators[1].git.as_mut();
        git.expect("git").requeue_after_seconds = Some(seconds);
        let failed = planned(&own, &generate(&away, &own), &live);
        assert!(
            failed.writes.is_empty() && failed.deletes.is_empty(),
            "{failed:?}"
        );
        assert_eq!(failed.requeue_after, Some(Duration::from_secs(180)));
        assert_eq!(
            conditions(&failed),
            [
                ("ErrorOccurred", "True"),
                ("ParametersGenerated", "False"),
                ("ResourcesUpToDate", "False")
            ]
        );
        let error = &failed.status.conditions[0];
        assert_eq!(error.reason, "ApplicationGenerationFromParamsError");
        own.status = failed.status;
    }

    let mut plan = planned(&own, &wanted, &live);
    let written: Vec<&str> = plan.writes.iter().map(Change::name).collect();
    assert_eq!((written, plan.deletes.len()), (all.to_vec(), 0));
    for write in &plan.writes {
        let (Change::Create(app) | Change::Update { after: app, .. }) = write else {
            panic!("{write:?}");
        };
        let source = app.spec.source.as_ref().expect("a source");
        assert_eq!(source.target_revision, "v2", "{}", app.metadata.name);
    }
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(3600)));
    let (done, settings) = (Done::Completely, Settings::default());
    plan.status = plan.conclude(&own, &done, &[], &settings, Time::default());
    assert!(conditions(&plan).contains(&("ErrorOccurred", "False")));
}

#[test]
fn a_failure_of_a_second_generator_is_no_empty_answer() {
    let Some(folder) = report("02-matrix-second-fails") else {
        return;
    };
    let set = set(&folder, "appset.yaml");
    let mut files = tree(&folder.join("tree"));
    let first = generate(&with_files(&set, files.clone()), &set);
    assert_eq!(first.failure, None);
    assert_eq!(names(&first), ["acceptance-jobs", "acceptance-web"]);

    let config = "applications/jobs/appconfig.yaml";
    let broken = fs::read_to_string(folder.join("broken.yaml")).expect("a file");
    files.insert(config.to_owned(), broken.into());
    let failed = generate(&with_files(&set, files.clone()), &set);
    let failure = failed.failure.expect("it fails");
    assert_eq!(failure.reason, Reason::Generator);
    assert!(failure.to_string().contains(config), "{failure}");

    files.remove(config);
    let gone = generate(&with_files(&set, files), &set);
    assert_eq!(gone.failure, None, "that a file is not there is an answer");
    assert_eq!(names(&gone), ["acceptance-web"]);
}

#[test]
fn a_selector_behind_clusters_sees_labels_and_values() {
    let Some(folder) = report("06-post-selector-go") else {
        return;
    };
    let world = json!({"clusters": read(&folder, "clusters.yaml")});
    let expected = read(&folder, "expected.yaml");
    for (file, wanted) in [
        ("appset-a.yaml", &expected["a"]),
        ("appset-b.yaml", &expected["b"]),
        ("appset-c.yaml", &expected["c"]),
    ] {
        let generated = generate(&world, &set(&folder, file));
        assert_eq!(json!(names(&generated)), *wanted, "{file}");
    }
}

#[test]
fn values_of_a_second_generator_use_what_is_known() {
    let Some(folder) = report("07-values-across-generators") else {
        return;
    };
    let expected = read(&folder, "expected.yaml");
    let run = |set: &ApplicationSet| {
        let mut world = with_files(set, tree(&folder.join("tree")));
        world["clusters"] = read(&folder, "clusters.yaml");
        generate(&world, set)
    };
    let whole = run(&set(&folder, "appset.yaml"));
    assert_eq!(whole.failure, None);
    let app = &whole.applications[0].metadata;
    let wanted = &expected["appset"][0];
    assert_eq!(json!(app.name), wanted["name"]);
    for (key, value) in wanted["annotations"].as_object().expect("a map") {
        assert_eq!(json!(app.annotations.get(key)), *value, "{key}");
    }
}

#[test]
fn numbers_and_booleans_are_printed_as_go_does() {
    let Some(folder) = report("50-numbers-and-booleans") else {
        return;
    };
    let world = json!({});
    assert!(
        generate(&world, &set(&folder, "fast.yaml"))
            .failure
            .is_some()
    );
    let generated = generate(&world, &set(&folder, "go.yaml"));
    assert_eq!(generated.failure, None);
    let wanted = &read(&folder, "expected.yaml")["go"][0];
    let app = &generated.applications[0];
    for (key, value) in wanted["annotations"].as_object().expect("a map") {
        assert_eq!(json!(app.metadata.annotations.get(key)), *value, "{key}");
    }
    let spec = serde_json::to_value(&app.spec).expect("JSON");
    assert_eq!(
        spec["source"]["helm"]["valuesObject"],
        wanted["valuesObject"]
    );
    assert_eq!(spec["syncPolicy"], wanted["syncPolicy"]);
}

#[test]
fn one_bad_element_keeps_what_exists() {
    let Some(folder) = report("28-one-bad-app") else {
        return;
    };
    let expected = read(&folder, "expected.yaml");
    for file in ["render", "validate", "dup", "empty"] {
        let set = set(&folder, &format!("{file}.yaml"));
        let generated = generate(&json!({}), &set);
        let projects = BTreeSet::from(["default".to_owned()]);
        let existing = Existing {
            applications: &[],
            projects: &projects,
            clusters: &[in_cluster()],
            local_names: &[],
            broken_clusters: &[],
        };
        let outcome: Result<&[Application], _> = match &generated.failure {
            Some(failure) => Err(failure),
            None => Ok(&generated.applications),
        };
        let now = Time::default();
        let plan = plan(&set, outcome, &existing, &Settings::default(), now);
        let created: Vec<&str> = plan.writes.iter().map(|change| change.name()).collect();
        assert_eq!(json!(created), expected[file]["created"], "{file}");
        let error = plan
            .status
            .conditions
            .iter()
            .find(|c| c.type_ == "ErrorOccurred");
        let reason = error.map(|error| error.reason.as_str());
        assert_eq!(json!(reason), expected[file]["reason"], "{file}");
        assert!(plan.deletes.is_empty(), "{file}");
    }
}
