//! Ops `normalize` and `same_url`: which URLs are the same repository.

use super::{Answers, text, texts};
use crate::conformance::Difference;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::{
    access::{normalize_url, same_repository},
    repo_url::RepoUrl,
};

pub const REFUSED: &str =
    "what is not plainly the address of a repository is refused and has no normal form";
pub const SPELLING: &str =
    "default ports, slashes at the end and doubled ones do not tell repositories apart";
pub const FORM: &str = "the normal form keeps ssh:// and has no escapes";
pub const USER: &str = "only with ssh is the user part of an address";

/// All URLs that the cases of `same_url` are about.
pub fn known(file: &str) -> BTreeSet<String> {
    let cases = file
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    cases
        .filter(|case| case["op"] == "same_url")
        .flat_map(|case| {
            let mut urls = texts(&case, "same_as");
            urls.push(text(&case, "url"));
            urls
        })
        .collect()
}

pub fn normalize(case: &Value) -> Result<(), Difference> {
    let url = text(case, "url");
    let (expected, got) = (text(case, "normalized"), normalize_url(&url));
    let mut answers = Answers::default();
    answers.note("normalized", expected.clone(), got.clone(), || {
        let with_ssh = |url: &str| url.trim_start_matches("ssh://").to_owned();
        let plain = |url: &str| with_ssh(&url.replace("%20", " "));
        if is_refused(&url) {
            Some(REFUSED)
        } else if plain(&expected) == plain(&got) {
            Some(FORM)
        } else if spelled_alike(&plain(&expected), &plain(&got)) {
            Some(SPELLING)
        } else {
            (without_user(&expected) == got).then_some(USER)
        }
    });
    answers.verdict()
}

pub fn same(case: &Value, known: &BTreeSet<String>) -> Result<(), Difference> {
    let (url, same_as) = (text(case, "url"), texts(case, "same_as"));
    let mut answers = Answers::default();
    for other in known {
        let got = same_repository(&url, other);
        answers.note(other, same_as.contains(other), got, || {
            if is_refused(&url) || is_refused(other) {
                return Some(REFUSED);
            }
            (got && spelled_alike(&url, other)).then_some(SPELLING)
        });
    }
    answers.verdict()
}

fn is_refused(url: &str) -> bool {
    RepoUrl::parse(url).is_err()
}

/// Whether two URLs are equal but for what [`SPELLING`] names.
fn spelled_alike(a: &str, b: &str) -> bool {
    let plain = |url: &str| {
        let url = url.to_lowercase();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
        let port = if scheme == "https" { ":443/" } else { ":22/" };
        let segments = rest.replacen(port, "/", 1);
        let segments = segments.split('/').filter(|s| !s.is_empty());
        let path = segments.collect::<Vec<_>>().join("/");
        format!("{scheme}://{}", path.trim_end_matches(".git"))
    };
    plain(a) == plain(b)
}

fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
            format!("{scheme}://{rest}")
        }
        None => url.to_owned(),
    }
}
