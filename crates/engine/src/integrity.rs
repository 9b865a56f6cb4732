//! What a project demands of the signatures of its sources, and what of it is not met, with Argo CD's
//! texts.
//!
//! Main functions: [`policy`], [`problems`]. How signatures are checked is not known here. Where it is
//! unclear what is demanded, nothing is permitted.

use std::{borrow::Cow, collections::BTreeSet};
use tiphys_api::{
    AppProject,
    project::{
        SourceIntegrity, SourceIntegrityCheckResult, SourceIntegrityCheckResultItem,
        SourceIntegrityGit, SourceIntegrityGitPolicy, SourceIntegrityGitPolicyGPG,
        SourceIntegrityGitPolicyRepo,
    },
    repo_url::{RepoUrl, canonical_pattern},
    source::ApplicationSource,
};
use tiphys_gocompat::glob::Glob;
use tiphys_signatures::{Check, Verdict};

/// The name of the only check.
const CHECK: &str = "GIT/GPG";
/// Problems that are told of one source.
const MAX_PROBLEMS: usize = 10;
/// Lines of git's output that are read.
const MAX_LINES: usize = 40;
/// Of local manifests in a project that demands signatures.
pub const NO_LOCAL_MANIFESTS: &str = "Cannot use local manifests when source integrity is enforced";

/// A checked signature of a commit or a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The SHA of the commit, or the name of the tag.
    pub revision: String,
    /// `Name <email>`.
    pub author: String,
    /// Whether the signature is one of the text, by a key that may be used.
    pub is_good: bool,
    pub is_signed: bool,
    /// The key is known to the installation.
    pub has_key: bool,
    /// Such as `signed with expired key`.
    pub verdict: String,
    /// The id of the key, or the fingerprint of an ssh key; empty if there is none.
    pub key: String,
    /// Such as `RSA`.
    pub cipher: String,
}

impl Signed {
    pub fn new(revision: &str, author: &str, check: &Check) -> Self {
        Self {
            revision: revision.to_owned(),
            author: author.to_owned(),
            is_good: check.verdict == Verdict::Good,
            is_signed: check.verdict != Verdict::Unsigned,
            has_key: check.verdict != Verdict::MissingKey,
            verdict: check.verdict.to_string(),
            key: check.key.clone(),
            cipher: check.cipher.to_owned(),
        }
    }
}

/// What a project demands, with the deprecated `signatureKeys` as a policy for every repository.
pub fn effective(project: &AppProject) -> Option<Cow<'_, SourceIntegrity>> {
    let declared = project.spec.source_integrity.as_ref();
    let keys: Vec<String> = project
        .spec
        .signature_keys
        .iter()
        .map(|key| key.key_id.clone().unwrap_or_default())
        .collect();
    if keys.is_empty() || declared.is_some_and(|declared| declared.git.is_some()) {
        return declared.map(Cow::Borrowed);
    }
    let policy = SourceIntegrityGitPolicy {
        repos: vec![SourceIntegrityGitPolicyRepo {
            url: "*".to_owned(),
        }],
        gpg: Some(SourceIntegrityGitPolicyGPG {
            mode: "head".to_owned(),
            keys,
        }),
    };
    Some(Cow::Owned(SourceIntegrity {
        git: Some(SourceIntegrityGit {
            policies: vec![policy],
        }),
    }))
}

/// What is demanded of a repository's commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Also of every commit before it.
    pub deep: bool,
    /// The ids, fingerprints or ssh fingerprints of the permitted keys.
    pub keys: Vec<String>,
}

/// What is demanded of the commits of a repository; None: nothing.
///
/// # Errors
/// It is unclear what is demanded: then nothing of the repository may be used.
pub fn policy(integrity: &SourceIntegrity, url: &str) -> Result<Option<Demand>, String> {
    let policies = integrity.git.iter().flat_map(|git| &git.policies);
    let matching: Vec<_> = policies.filter(|policy| applies(policy, url)).collect();
    let policy = match matching.as_slice() {
        [] => return Ok(None),
        [one] => one,
        several => {
            return Err(format!(
                "multiple ({}) git source integrity policies found for repo URL: {url}",
                several.len()
            ));
        }
    };
    let Some(gpg) = &policy.gpg else {
        return Ok(None);
    };
    let deep = match gpg.mode.as_str() {
        "none" => return Ok(None),
        "head" => false,
        "strict" => true,
        unknown => {
            return Err(format!(
                "unknown GPG mode {unknown:?} configured for GIT source integrity"
            ));
        }
    };
    Ok(Some(Demand {
        deep,
        keys: gpg.keys.clone(),
    }))
}

/// Whether a policy is for a repository: some pattern matches it, and no `!pattern`. A URL counts as
/// written and in its normal form, so that another spelling does not lead out of a policy; only the
/// normal form leads out by a `!pattern`.
fn applies(policy: &SourceIntegrityGitPolicy, url: &str) -> bool {
    let canonical = RepoUrl::parse(url).map(|url| url.canonical());
    let matches = |pattern: &str, url: &str| {
        let glob = Glob::new(pattern, &[]).ok();
        glob.map(|glob| glob.matches(url))
    };
    let mut included = false;
    for pattern in policy.repos.iter().map(|repo| repo.url.as_str()) {
        let normal = |pattern: &str| {
            let url = canonical.as_deref().ok()?;
            matches(&canonical_pattern(pattern), url)
        };
        match pattern.strip_prefix('!') {
            Some(pattern) if normal(pattern) == Some(true) => return false,
            Some(_) => {}
            // A pattern that cannot be read must not take a repository out of the policy.
            None => {
                included |= matches(pattern, url).unwrap_or(true) || normal(pattern) == Some(true);
            }
        }
    }
    included
}

/// Whether something is demanded of one of the sources.
pub fn has_criteria<'a>(
    project: &AppProject,
    sources: impl IntoIterator<Item = &'a ApplicationSource>,
) -> bool {
    let Some(integrity) = effective(project) else {
        return false;
    };
    sources
        .into_iter()
        .any(|source| is_git(source) && !matches!(policy(&integrity, &source.repo_url), Ok(None)))
}

/// Charts and artifacts of registries have no commits.
pub fn is_git(source: &ApplicationSource) -> bool {
    source.chart.is_empty() && !source.repo_url.starts_with("oci://")
}

/// What is not met, at most ten problems; those of one key are told once.
pub fn problems(demand: &Demand, signatures: &[Signed]) -> Vec<String> {
    let mut told = BTreeSet::new();
    let mut problems = Vec::new();
    for signed in signatures {
        let Some(problem) = problem(demand, signed) else {
            continue;
        };
        let is_commit =
            signed.revision.len() == 40 && signed.revision.bytes().all(|b| b.is_ascii_hexdigit());
        if !signed.key.is_empty() && is_commit && !told.insert(&signed.key) {
            continue;
        }
        problems.push(problem);
        if problems.len() == MAX_PROBLEMS {
            break;
        }
    }
    problems
}

fn problem(demand: &Demand, signed: &Signed) -> Option<String> {
    let Signed {
        revision,
        author,
        key,
        ..
    } = signed;
    let what = if !signed.is_good {
        signed.verdict.as_str()
    } else if demand.keys.iter().any(|allowed| is_key(allowed, key)) {
        return None;
    } else {
        "signed with unallowed key"
    };
    Some(format!(
        "Failed verifying revision {revision} by '{author}': {what} (key_id={key})"
    ))
}

/// Whether a permitted key, by its id or its fingerprint, is this one. Ids are hexadecimal, in capitals
/// as gpg prints them.
fn is_key(allowed: &str, key: &str) -> bool {
    if allowed.starts_with("SHA256:") {
        return allowed == key;
    }
    key_id(allowed) == Some(key)
}

/// The id of a key that is given by its id or its fingerprint.
fn key_id(text: &str) -> Option<&str> {
    let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    match text.len() {
        40 if is_hex => text.get(24..),
        16 if is_hex => Some(text),
        _ => None,
    }
}

/// The result of the check of a source.
pub fn result(problems: Vec<String>) -> SourceIntegrityCheckResult {
    SourceIntegrityCheckResult {
        checks: vec![SourceIntegrityCheckResultItem {
            name: Some(CHECK.to_owned()),
            problems,
        }],
    }
}

/// The same, of the deprecated check, which has no name.
pub fn legacy_result(problems: Vec<String>) -> SourceIntegrityCheckResult {
    let mut result = result(problems);
    for check in &mut result.checks {
        check.name = None;
    }
    result
}

/// The text of a condition for a result, if it found problems. `source`: how the source is called, if
/// there are several.
pub fn fault(result: &SourceIntegrityCheckResult, source: Option<&str>) -> Option<String> {
    let lines: Vec<String> = result
        .checks
        .iter()
        .flat_map(|check| {
            let parts = [check.name.as_deref(), source];
            check.problems.iter().map(move |problem| {
                let before = parts.into_iter().flatten();
                let all: Vec<&str> = before.chain([problem.as_str()]).collect();
                all.join(": ")
            })
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// How one of several sources is called in conditions.
pub fn source_name(source: &ApplicationSource, index: usize, of: usize) -> String {
    if source.name.is_empty() {
        format!("source {} of {of}", index + 1)
    } else {
        format!("source {}", source.name)
    }
}

/// The deprecated text about the signature of a revision.
pub fn description(demand: &Demand, revision: &str, first: &Signed) -> String {
    let Signed { cipher, key, .. } = first;
    let is_allowed = demand.keys.iter().any(|allowed| is_key(allowed, key));
    if !first.is_signed {
        return format!(
            "Target revision {revision} in Git is not signed, but a signature is required"
        );
    }
    if !first.has_key {
        return format!(
            "Found signature made with {cipher} key {key}, but verification result was invalid: 'gpg: Can't check signature: No public key'"
        );
    }
    if first.verdict == "bad signature" {
        return format!(
            "Could not verify commit signature on revision '{revision}', check logs for more information."
        );
    }
    if !is_allowed {
        return format!(
            "Found good signature made with {cipher} key {key}, but this key is not allowed in AppProject"
        );
    }
    let word = if first.is_good { "Good" } else { "Invalid" };
    format!("{word} signature from {} key {key}", first.author)
}

/// What is wrong with a commit according to what git printed about its signature.
pub fn by_output(demand: &Demand, revision: &str, output: &str) -> Option<String> {
    if output.is_empty() {
        return Some(format!(
            "Target revision {revision} in Git is not signed, but a signature is required"
        ));
    }
    let unclear = || {
        Some(format!(
            "Could not verify commit signature on revision '{revision}', check logs for more information."
        ))
    };
    let mut lines = output.lines().take(MAX_LINES);
    if !lines.any(|line| line.starts_with("gpg: Signature made ")) {
        return unclear();
    }
    // gpg:                using RSA key 4AEE18F83AFDEB23
    let used = lines.next().and_then(|line| {
        let mut words = line.strip_prefix("gpg:")?.split_whitespace();
        let fixed = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_used = fixed.0 == "using" && fixed.2 == "key" && words.next().is_none();
        is_used.then_some((fixed.1, key_id(fixed.3)?))
    });
    let Some((cipher, key)) = used else {
        return unclear();
    };
    let is_more = |line: &&str| {
        let rest = line.strip_prefix("gpg:").unwrap_or_default();
        rest.starts_with(' ') && rest.trim_start().starts_with("issuer ")
    };
    let Some(state) = lines.find(|line| !is_more(line)) else {
        return unclear();
    };
    let invalid = |why: &str| {
        Some(format!(
            "Found signature made with {cipher} key {key}, but verification result was invalid: '{why}'"
        ))
    };
    if state.starts_with("gpg: Can't check signature: ") {
        return invalid(state);
    }
    let word = state.strip_prefix("gpg: ").and_then(|rest| {
        let (word, rest) = rest.split_once(" signature from \"")?;
        let has_trust = rest.ends_with(']') && rest.contains("\" [");
        (has_trust && word.bytes().all(|b| b.is_ascii_alphabetic())).then_some(word)
    });
    match word.map(str::to_lowercase).as_deref() {
        Some("good") if demand.keys.iter().any(|allowed| is_key(allowed, key)) => None,
        Some("good") => Some(format!(
            "Found good signature made with {cipher} key {key}, but this key is not allowed in AppProject"
        )),
        Some("bad") | None => unclear(),
        Some(_) => invalid("Success verifying the commit signature."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const KEY: &str = "4AEE18F83AFDEB23";
    const SHA: &str = "53e28ff20cc530b9ada2173fbbd64d48338583ba";

    fn project(spec: &Value) -> AppProject {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project")
    }

    fn git(policies: &Value) -> SourceIntegrity {
        serde_json::from_value(json!({"git": {"policies": policies}})).expect("integrity")
    }

    fn signed(verdict: &str, key: &str) -> Signed {
        Signed {
            revision: SHA.to_owned(),
            author: "May <may@example.org>".to_owned(),
            is_good: verdict == "signed",
            is_signed: verdict != "unsigned",
            has_key: verdict != "signed with key not in keyring",
            verdict: verdict.to_owned(),
            key: key.to_owned(),
            cipher: "RSA".to_owned(),
        }
    }

    #[test]
    fn signature_keys_are_a_policy_for_every_repository() {
        let keys = json!([{"keyID": KEY}]);
        let demand = |spec: &Value| {
            let project = project(spec);
            let effective = effective(&project)?;
            policy(&effective, "https://h/r").expect("a policy")
        };
        let head = Demand {
            deep: false,
            keys: vec![KEY.to_owned()],
        };
        assert_eq!(demand(&json!({"signatureKeys": keys})), Some(head.clone()));
        assert_eq!(
            demand(&json!({"signatureKeys": keys, "sourceIntegrity": {}})),
            Some(head)
        );
        // The newer field takes precedence.
        let none = json!({"git": {"policies": []}});
        assert_eq!(
            demand(&json!({"signatureKeys": keys, "sourceIntegrity": none})),
            None
        );
        assert_eq!(demand(&json!({})), None);
    }

    #[test]
    fn policies_are_for_the_repositories_that_they_name() {
        let gpg = json!({"mode": "strict", "keys": []});
        let of = |repos: &[&str], url: &str| {
            let repos: Vec<_> = repos.iter().map(|url| json!({"url": url})).collect();
            policy(&git(&json!([{"repos": repos, "gpg": gpg}])), url)
        };
        for (repos, url, applies) in [
            (&["*"][..], "https://h/a/b", true),
            (&["https://h/*"], "https://h/a/b", true),
            (&["https://h/*"], "https://i/a", false),
            (&["*", "!https://h/*"], "https://h/a", false),
            (&["!https://h/*", "*"], "https://h/a", false),
            (&["!https://h/*"], "https://i/a", false),
            (&[], "https://h/a", false),
            // Unreadable: it counts as for every repository, and excludes none.
            (&["[a"], "https://h/a", true),
            (&["*", "![a"], "https://h/a", true),
            // Another spelling is the same repository.
            (&["https://h/org/*"], "https://u@H:443/org/a.git", true),
            (&["git@h:org/*"], "ssh://git@h/org/a", true),
            (&["*", "!https://h/org/a.git"], "https://H/org/a", false),
            (&["*", "!https://h/public/*"], "https://h@i/public/a", true),
        ] {
            let found = of(repos, url).expect("a policy");
            assert_eq!(found.is_some(), applies, "{repos:?} {url}");
            assert!(found.is_none_or(|demand| demand.deep));
        }
        let two = json!([
            {"repos": [{"url": "*"}], "gpg": {"mode": "none"}},
            {"repos": [{"url": "https://*"}], "gpg": {"mode": "none"}},
        ]);
        assert_eq!(
            policy(&git(&two), "https://h/r"),
            Err(
                "multiple (2) git source integrity policies found for repo URL: https://h/r".into()
            )
        );
        let unknown = json!([{"repos": [{"url": "*"}], "gpg": {"mode": "Head"}}]);
        assert_eq!(
            policy(&git(&unknown), "https://h/r"),
            Err("unknown GPG mode \"Head\" configured for GIT source integrity".into())
        );
        let without = json!([{"repos": [{"url": "*"}]}, {"repos": [{"url": "x"}]}]);
        assert_eq!(policy(&git(&without), "https://h/r"), Ok(None));
    }

    #[test]
    fn every_other_signature_than_a_good_one_by_a_permitted_key_is_a_problem() {
        let demand = |keys: &[&str]| Demand {
            deep: false,
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        let fingerprint = format!("{}{KEY}", "0".repeat(24));
        let ssh = format!("SHA256:{}", "a".repeat(43));
        for (keys, verdict, key, expected) in [
            (&[KEY][..], "signed", KEY, None),
            (&["x", &fingerprint], "signed", KEY, None),
            (&[&ssh], "signed", &ssh, None),
            (
                &[KEY],
                "signed",
                "0000000000000000",
                Some("signed with unallowed key"),
            ),
            (&[], "signed", KEY, Some("signed with unallowed key")),
            (
                &["3AFDEB23"],
                "signed",
                KEY,
                Some("signed with unallowed key"),
            ),
            (
                &["", "not a key"],
                "signed",
                "",
                Some("signed with unallowed key"),
            ),
            (
                &["SHA256:"],
                "signed",
                &ssh,
                Some("signed with unallowed key"),
            ),
            (&[KEY], "unsigned", "", Some("unsigned")),
            (&[KEY], "bad signature", KEY, Some("bad signature")),
            (
                &[KEY],
                "signed with revoked key",
                KEY,
                Some("signed with revoked key"),
            ),
        ] {
            let found = problems(&demand(keys), &[signed(verdict, key)]);
            let expected = expected.map(|what| {
                format!("Failed verifying revision {SHA} by 'May <may@example.org>': {what} (key_id={key})")
            });
            assert_eq!(found, Vec::from_iter(expected), "{keys:?} {verdict}");
        }
        let many: Vec<_> = (0..30).map(|_| signed("unsigned", "")).collect();
        assert_eq!(problems(&demand(&[]), &many).len(), 10);
        let one_key: Vec<_> = (0..30).map(|_| signed("signed", KEY)).collect();
        assert_eq!(problems(&demand(&[]), &one_key).len(), 1);
        let tag = Signed {
            revision: "v1".to_owned(),
            ..signed("signed", KEY)
        };
        assert_eq!(
            problems(&demand(&[]), &[tag, signed("signed", KEY)]).len(),
            2
        );
    }

    #[test]
    fn the_output_of_git_is_read_as_argo_cd_does() {
        let demand = Demand {
            deep: false,
            keys: vec![KEY.to_owned()],
        };
        let made = "gpg: Signature made Wed Feb 26 23:22:34 2020 CET\n";
        let by = |key: &str, state: &str| {
            format!("{made}gpg:                using RSA key {key}\n{state}\n")
        };
        let good = "gpg: Good signature from \"GitHub <noreply@github.com>\" [ultimate]";
        let issuer = format!("gpg:                issuer \"x@y\"\n{good}");
        let unclear =
            "Could not verify commit signature on revision 'abc', check logs for more information.";
        let missing = "gpg: Can't check signature: No public key";
        let invalid = format!(
            "Found signature made with RSA key {KEY}, but verification result was invalid: '{missing}'"
        );
        let other = "Found good signature made with RSA key 0000000000000000, but this key is not allowed in AppProject";
        for (output, expected) in [
            (by(KEY, good), None),
            (by(KEY, &issuer), None),
            (by(&format!("{}{KEY}", "A".repeat(24)), good), None),
            (by("0000000000000000", good), Some(other)),
            (by(KEY, missing), Some(invalid.as_str())),
            (by(KEY, &good.replace("Good", "BAD")), Some(unclear)),
            (by(KEY, "gpg: something else"), Some(unclear)),
            (by("ABC", good), Some(unclear)),
            (made.to_owned(), Some(unclear)),
            ("gpg: nothing\n".repeat(50) + &by(KEY, good), Some(unclear)),
            (good.to_owned(), Some(unclear)),
            (
                String::new(),
                Some("Target revision abc in Git is not signed, but a signature is required"),
            ),
        ] {
            assert_eq!(
                by_output(&demand, "abc", &output).as_deref(),
                expected,
                "{output}"
            );
        }
        let result = legacy_result(vec!["a".to_owned()]);
        assert_eq!(fault(&result, None).as_deref(), Some("a"));
    }

    #[test]
    fn faults_name_the_source() {
        let result = result(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(
            fault(&result, None).as_deref(),
            Some("GIT/GPG: a\nGIT/GPG: b")
        );
        let source = ApplicationSource::default();
        let name = source_name(&source, 1, 2);
        assert_eq!(
            fault(&result, Some(&name)).as_deref(),
            Some("GIT/GPG: source 2 of 2: a\nGIT/GPG: source 2 of 2: b")
        );
        assert_eq!(fault(&super::result(Vec::new()), Some(&name)), None);
    }

    #[test]
    fn local_manifests_are_of_no_use_where_signatures_are_demanded() {
        let project = project(&json!({"signatureKeys": [{"keyID": KEY}]}));
        let source = |url: &str, chart: &str| ApplicationSource {
            repo_url: url.to_owned(),
            chart: chart.to_owned(),
            ..ApplicationSource::default()
        };
        assert!(has_criteria(&project, &[source("https://h/r", "")]));
        assert!(!has_criteria(&project, &[source("oci://h/r", "")]));
        assert!(!has_criteria(&project, &[source("https://h/r", "web")]));
        assert!(!has_criteria(
            &AppProject::default(),
            &[source("https://h/r", "")]
        ));
    }
}
