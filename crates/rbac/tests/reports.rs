//! What people reported about policies (`../shared/cases/reports/users`), with the right answers.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_api::AppProject;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};
use tiphys_rbac::{Problem, Projects, Rbac, Request, Settings, check};

/// `None`: the cases are not here, and the test is skipped.
fn reports() -> Option<PathBuf> {
    tiphys_testkit::shared("cases/reports/users")
}

#[derive(Deserialize)]
struct Asked {
    request: [String; 3],
    /// Or "either": both are right.
    allow: Value,
    subject: Option<String>,
    claims: Option<Map<String, Value>>,
}

#[derive(Default)]
struct Known(BTreeMap<String, Arc<AppProject>>);

impl Projects for Known {
    fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.0.get(name).map(Arc::clone)
    }
}

fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split("\n---")
        .map(|document| {
            let document = yaml::parse_document(document, &Limits::default(), Duplicates::LastWins);
            document.expect("YAML")
        })
        .filter(|document| !document.is_null())
        .collect()
}

fn settings(folder: &Path) -> Settings {
    let documents = documents(&folder.join("argocd-rbac-cm.yaml"));
    let data = documents.first().map(|map| map["data"].clone());
    let data = data.map(|data| serde_json::from_value(data).expect("texts"));
    Settings::new(&data.unwrap_or_default()).expect("settings")
}

fn projects(folder: &Path) -> Known {
    let mut documents = documents(&folder.join("projects.yaml"));
    if let Some(Value::Array(items)) = documents.first().map(|list| list["items"].clone()) {
        documents = items;
    }
    let projects = documents.into_iter().map(|document| {
        let project: AppProject = serde_json::from_value(document).expect("a project");
        (project.metadata.name.clone(), Arc::new(project))
    });
    Known(projects.collect())
}

/// The folders below one that have questions.
fn asked(root: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            asked(&path, into);
        } else if path.ends_with("questions.json") {
            into.push(root.to_owned());
        }
    }
}

#[test]
fn policies_answer_as_people_may_expect() {
    let Some(reports) = reports() else { return };
    let mut folders = Vec::new();
    asked(&reports, &mut folders);
    let mut wrong = Vec::new();
    let mut count = 0;
    for folder in &folders {
        // A policy that cannot be loaded refuses everything.
        let rbac = Rbac::new(true, settings(folder)).ok();
        let projects = projects(folder);
        let text = fs::read(folder.join("questions.json")).expect("questions");
        let questions: Vec<Asked> = serde_json::from_slice(&text).expect("questions");
        for Asked {
            request,
            allow,
            subject,
            claims,
        } in questions
        {
            let Some(wanted) = allow.as_bool() else {
                assert_eq!(allow, "either", "{}", folder.display());
                continue;
            };
            let [resource, action, object] = &request;
            let request = Request {
                resource,
                action,
                object,
            };
            let got = rbac.as_ref().is_some_and(|rbac| match &subject {
                Some(subject) => rbac.permits_subject(subject, request),
                None => rbac.permits(&projects, claims.as_ref(), request),
            });
            count += 1;
            if got != wanted {
                wrong.push(format!(
                    "{}: {request:?} of {subject:?} {claims:?}: {got}",
                    folder.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        folders.len() >= 9 && count >= 70,
        "{} {count}",
        folders.len()
    );
}

/// Report 09: a string is one group, and what is no group makes no session invalid.
#[test]
fn groups_are_texts_alone_or_in_a_list() {
    let Some(reports) = reports() else { return };
    let folder = reports.join("09-groups-claim-as-string");
    let read = |name: &str| -> Map<String, Value> {
        let text = fs::read(folder.join(name)).expect(name);
        serde_json::from_slice(&text).expect(name)
    };
    let (claims, expected) = (read("claims.json"), read("expected.json"));
    let rbac = Rbac::new(true, settings(&folder)).expect("a policy");
    assert!(claims.len() >= 9, "{}", claims.len());
    for (name, claims) in &claims {
        let wanted = &expected[name];
        assert_eq!(wanted["session"], "valid");
        let claims = claims.as_object().expect("claims");
        let may = |action: &'static str| {
            let request = Request {
                resource: "applications",
                action,
                object: "a/b",
            };
            rbac.permits(&Known::default(), Some(claims), request)
        };
        assert_eq!(
            Value::from(may("get")),
            wanted["applications get a/b"],
            "{name}"
        );
        // The number 7 is no group, although the policy has one of this name.
        assert!(!may("delete"), "{name}");
    }
}

#[test]
fn what_people_missed_in_their_policies_is_found() {
    let Some(reports) = reports() else { return };
    let problems = |folder: &str| {
        let findings = check(&settings(&reports.join(folder))).expect("a policy");
        let all = findings.into_iter().map(|finding| finding.problem);
        all.collect::<Vec<_>>()
    };
    let reaches = |role: &str| Problem::DenyReachesAdmin {
        role: role.to_owned(),
    };
    let broken = problems("04-deny-reaches-admin/broken");
    assert_eq!(broken, [reaches("role:readonly")]);
    assert_eq!(problems("04-deny-reaches-admin/fixed"), []);
    let blank = Problem::NoPermissions {
        role: "role: admin".to_owned(),
        nearest: Some("role:admin".to_owned()),
    };
    assert_eq!(problems("06-blank-in-role-name"), [blank]);
    let encoded = Problem::DexSubject {
        subject: "CgVhbGljZRIGZ2l0bGFi".to_owned(),
        user: "alice".to_owned(),
    };
    assert_eq!(problems("14-dex-user-id"), [encoded]);
}
