//! Ops `max_version`, `resolve` and `sha`: what a target revision stands for.

use super::{Answers, list, never, text, texts};
use crate::conformance::Difference;
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_repo::{
    revision::{Reference, is_abbreviated_sha, is_full_sha, resolve_target},
    versions::{VersionError, pick_tag},
};

pub const SHORT: &str = "a name such as heads/main is found under refs/, as git finds it";
const NO_CONSTRAINT: &str = "failed to determine semver constraint: ";

pub fn max_version(case: &Value) -> Result<(), Difference> {
    let (tags, prefix) = (texts(case, "tags"), text(case, "tag_prefix"));
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let revision = text(question, "revision");
        let expected = match question["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(text(question, "version")),
        };
        // Helm's version of the library quotes the revision.
        let got = pick_tag(&revision, &tags, &prefix).map_err(|e| match e {
            VersionError::NoConstraint(_) if prefix.is_empty() => {
                format!("{NO_CONSTRAINT}improper constraint: {revision}")
            }
            other => other.to_string(),
        });
        answers.note(format!("{revision:?}"), expected, got, never);
    }
    answers.verdict()
}

pub fn resolve(case: &Value) -> Result<(), Difference> {
    let (revision, prefix) = (text(case, "revision"), text(case, "tag_prefix"));
    let got = resolve_target(&references(case), &revision, &prefix).map_err(|e| e.to_string());
    let any_of = texts(case, "sha_any_of");
    let expected = match case["error"].as_str() {
        // What follows is Argo CD's error type, or our reason.
        Some(error) => Err(error.trim_end_matches(": revision not found").to_owned()),
        None if any_of.is_empty() => Ok(text(case, "sha")),
        None => got
            .clone()
            .ok()
            .filter(|sha| any_of.contains(sha))
            .map_or_else(|| Ok(any_of.join(" or ")), Ok),
    };
    let mut answers = Answers::default();
    let said = match (&expected, &got) {
        (Err(expected), Err(got)) if got.starts_with(expected) => Err(expected.clone()),
        _ => got.clone(),
    };
    answers.note("the commit", expected, said, || {
        let named = references(case)
            .into_iter()
            .find(|r| r.name == format!("refs/{revision}"));
        (named.map(|r| r.sha) == got.ok()).then_some(SHORT)
    });
    answers.verdict()
}

/// The refs as a remote lists them, with annotated tags at their commits.
fn references(case: &Value) -> Vec<Reference> {
    let mut refs: BTreeMap<&str, &str> = BTreeMap::new();
    let listed = case["refs"].as_object().into_iter().flatten();
    let listed = listed.filter_map(|(name, sha)| Some((name.as_str(), sha.as_str()?)));
    for (name, sha) in listed {
        match name.strip_suffix("^{}") {
            Some(tag) => drop(refs.insert(tag, sha)),
            None => drop(refs.entry(name).or_insert(sha)),
        }
    }
    let head = case["head"].as_str().unwrap_or_default();
    if let Some(sha) = refs.get(head).copied() {
        refs.insert("HEAD", sha);
    }
    let reference = |(name, sha): (&str, &str)| Reference {
        name: name.to_owned(),
        sha: sha.to_owned(),
        target: (name == "HEAD").then(|| head.to_owned()),
        tag: None,
    };
    refs.into_iter().map(reference).collect()
}

pub fn sha(case: &Value) -> Result<(), Difference> {
    let revision = text(case, "revision");
    let mut answers = Answers::default();
    for (key, got) in [
        ("is_commit_sha", is_full_sha(&revision)),
        ("is_truncated_commit_sha", is_abbreviated_sha(&revision)),
    ] {
        answers.note(key, case[key] == true, got, never);
    }
    answers.verdict()
}
