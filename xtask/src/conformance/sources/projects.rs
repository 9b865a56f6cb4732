//! Ops `source_permitted`, `destination_permitted`, `kind_permitted` and
//! `app_namespace_permitted`: what a project permits.

use super::{Answers, list, never, text, texts, typed, urls::REFUSED};
use crate::conformance::Difference;
use serde_json::{Value, json};
use tiphys_api::{AppProject, repo_url::RepoUrl};
use tiphys_apimachinery::GroupKind;
use tiphys_engine::{
    permit,
    spec::{self, Destination},
    types::{CompareRules, ProjectRules, Tracking},
};

const PROJECT: &str = "p";
const SERVER: &str = "https://kubernetes.default.svc";

pub const DENIALS: &str = "a list permits what a rule without ! names and no rule with ! denies";

fn project(spec: &Value) -> Result<AppProject, String> {
    typed(&json!({"metadata": {"name": PROJECT}, "spec": spec}))
}

pub fn source(case: &Value) -> Result<(), Difference> {
    let project = project(&json!({"sourceRepos": case["sourceRepos"]}))?;
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let url = text(question, "repoURL");
        let got = spec::source_permitted(&project, &url);
        answers.note(&url, question["permitted"] == true, got, || match got {
            true => None,
            false if RepoUrl::parse(&url).is_err() => Some(REFUSED),
            false => denies(&texts(case, "sourceRepos")).then_some(DENIALS),
        });
    }
    answers.verdict()
}

fn denies(rules: &[String]) -> bool {
    rules.iter().any(|rule| rule.starts_with('!'))
}

pub fn destination(case: &Value) -> Result<(), Difference> {
    let project = project(&json!({
        "destinations": case["destinations"],
        "permitOnlyProjectScopedClusters": case["permitOnlyProjectScopedClusters"],
    }))?;
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let (server, name) = (text(question, "server"), text(question, "cluster"));
        let namespace = text(question, "namespace");
        let own = list(case, "project_clusters").any(|c| c["server"] == server.as_str());
        let cluster = Destination {
            server,
            name,
            project: if own { PROJECT } else { "" }.to_owned(),
        };
        let rules = spec::project_rules_for(&project, &cluster);
        let got = permit::destination(&rules, &cluster.server, &cluster.name, &namespace);
        answers.note(
            format!("{namespace} on {} ({})", cluster.server, cluster.name),
            question["permitted"] == true,
            got,
            || denies(&rules_of(case)).then_some(DENIALS),
        );
    }
    answers.verdict()
}

/// All fields of all destinations.
fn rules_of(case: &Value) -> Vec<String> {
    list(case, "destinations")
        .filter_map(Value::as_object)
        .flat_map(|rule| rule.values().filter_map(Value::as_str))
        .map(str::to_owned)
        .collect()
}

pub fn kind(case: &Value) -> Result<(), Difference> {
    let mut spec = case["spec"].clone();
    spec["destinations"] = case["destinations"].clone();
    let project: ProjectRules = spec::project_rules(&project(&spec)?);
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let (group, kind) = (text(question, "group"), text(question, "kind"));
        let (name, namespaced) = (text(question, "name"), question["namespaced"] == true);
        let shown = format!("{group}/{kind} {name}, namespaced: {namespaced}");
        let got = permit::kind(&project, &GroupKind::new(&group, &kind), &name, namespaced);
        answers.note(&shown, question["kind_permitted"] == true, got, never);
        let rules = CompareRules {
            project: project.clone(),
            ..CompareRules::new(Tracking::annotation("a"), "argocd", "a", SERVER, "app")
        };
        for (key, namespace) in [
            ("resource_permitted_in_app", "app"),
            ("resource_permitted_in_other", "other"),
        ] {
            let Some(expected) = question[key].as_bool() else {
                continue;
            };
            let namespace = if namespaced { namespace } else { "" };
            let got = permit::resource(&rules, &group, &kind, namespace, &name);
            answers.note(format!("{shown} in {namespace}"), expected, got, never);
        }
    }
    answers.verdict()
}

pub fn app_namespace(case: &Value) -> Result<(), Difference> {
    let project = project(&json!({"sourceNamespaces": case["sourceNamespaces"]}))?;
    let control = text(case, "controller_namespace");
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let namespace = text(question, "namespace");
        // Requests may leave it out; an object has one.
        let asked = if namespace.is_empty() {
            &control
        } else {
            &namespace
        };
        let got = spec::namespace_permitted(&project, asked, &control);
        answers.note(&namespace, question["permitted"] == true, got, never);
    }
    answers.verdict()
}
