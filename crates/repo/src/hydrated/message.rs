//! What is said of a dry commit: in `hydrator.metadata`, and in the message of the hydrated commit.
//!
//! Main type: [`Metadata`]; main function: [`commit_message`].

use super::files::{self, Fault};
use crate::{RepoError, trailers};
use serde::Serialize;
use serde_json::json;
use tiphys_api::{
    access::without_passwords,
    repository::{RevisionMetadata, RevisionReference},
};
use tiphys_gocompat::template;

/// What git takes for blanks.
const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// What Argo CD writes into `hydrator.metadata`; what is empty is left out.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Metadata {
    #[serde(rename = "repoURL", skip_serializing_if = "String::is_empty")]
    pub repo_url: String,
    #[serde(rename = "drySha", skip_serializing_if = "String::is_empty")]
    pub dry_sha: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub author: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<RevisionReference>,
}

impl Metadata {
    /// Of a dry commit.
    pub fn new(url: &str, dry_sha: &str, commit: Option<&RevisionMetadata>) -> Self {
        let mut found = Self::of_folder(url, dry_sha, &[]);
        let Some(commit) = commit else {
            return found;
        };
        let (subject, body) = match commit.message.split_once("\n\n") {
            Some((subject, body)) => (subject, body),
            None => (commit.message.as_str(), ""),
        };
        found.body = trailers::parted(body).1;
        subject.clone_into(&mut found.subject);
        found.author.clone_from(&commit.author);
        found.references.clone_from(&commit.references);
        if let Some(date) = commit.date {
            let date = date.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ");
            found.date = date.to_string();
        }
        found
    }

    /// Of one folder.
    pub fn of_folder(url: &str, dry_sha: &str, commands: &[String]) -> Self {
        Self {
            repo_url: without_passwords(url),
            dry_sha: dry_sha.to_owned(),
            commands: commands.to_vec(),
            ..Self::default()
        }
    }

    /// As a file.
    pub fn file(&self) -> Vec<u8> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        // What Go's encoder escapes even without HTML.
        let text = text.replace('\u{2028}', "\\u2028");
        (text.replace('\u{2029}', "\\u2029") + "\n").into_bytes()
    }
}

/// The message of a hydrated commit, from a template whose `.metadata` is the dry commit.
pub fn commit_message(
    text: &str,
    (url, dry_sha): (&str, &str),
    commit: Option<&RevisionMetadata>,
) -> Result<String, RepoError> {
    let metadata = Metadata::new(url, dry_sha, commit);
    let data = template::Value::from_json(&json!({"metadata": metadata}));
    files::render("commit-template", text, data).map_err(|fault| {
        RepoError::Unsupported(match fault {
            Fault::Parse(e) => format!("failed to parse template {text}: {e}"),
            Fault::Execute(e) => format!("failed to execute go template {text}: {e}"),
        })
    })
}

/// A message as `git commit` leaves it: no blanks at the ends of lines, no empty lines at either
/// end, and never two of them together.
pub(crate) fn cleaned(message: &str) -> Result<String, RepoError> {
    let mut out = String::new();
    let mut gap = false;
    for line in message.lines().map(|line| line.trim_end_matches(BLANKS)) {
        if line.is_empty() {
            gap = !out.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            out.push('\n');
        }
        out.push_str(line);
        out.push('\n');
    }
    if out.is_empty() {
        let reason = "failed to commit and push: the commit message is empty";
        return Err(RepoError::Unsupported(reason.to_owned()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_api::meta::Time;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

    fn commit(message: &str) -> RevisionMetadata {
        RevisionMetadata {
            author: "Ann <ann@example.com>".to_owned(),
            date: Some(Time {
                seconds: 1_700_000_000,
                nanos: 0,
            }),
            message: message.to_owned(),
            ..RevisionMetadata::default()
        }
    }

    #[test]
    fn metadata_are_those_of_the_dry_commit() {
        let message = "Scale\n\nMore of them.\nArgocd-reference-commit-sha: abcdef";
        let found = Metadata::new("https://me:pw@git.example/r", SHA, Some(&commit(message)));
        let text = String::from_utf8(found.file()).expect("text");
        assert_eq!(
            text,
            format!(
                "{{\n  \"repoURL\": \"https://git.example/r\",\n  \"drySha\": \"{SHA}\",\n  \
                 \"author\": \"Ann <ann@example.com>\",\n  \"date\": \"2023-11-14T22:13:20Z\",\n  \
                 \"subject\": \"Scale\",\n  \"body\": \"More of them.\\n\"\n}}\n"
            )
        );
    }

    #[test]
    fn metadata_are_json_as_go_writes_it() {
        let found = Metadata::new("r", "", Some(&commit("<a> & b\u{2028}\n\nb\u{2029}")));
        let text = String::from_utf8(found.file()).expect("text");
        for part in ["\"<a> & b\\u2028\"", "\"b\\u2029\\n\""] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_reference_that_is_not_valid_stays_in_the_text() {
        const KEY: &str = "Argocd-reference-commit-sha";
        let message = format!("S\n\nB\n{KEY}: XYZ\n{KEY}: abcde");
        let found = Metadata::new("r", "", Some(&commit(&message)));
        assert_eq!(found.body, format!("B\n{KEY}: XYZ\n"));
    }

    #[test]
    fn templates_see_the_metadata() {
        let said = |template: &str, message: &str| {
            let dry = ("https://git.example/r", SHA);
            let text = commit_message(template, dry, Some(&commit(message)));
            text.map_err(|e| e.to_string())
        };
        let short = "{{ .metadata.drySha | trunc 7 }}: {{ .metadata.subject }}";
        assert_eq!(said(short, "Scale"), Ok("0123456: Scale".to_owned()));
        assert_eq!(
            said("{{ if .metadata.body }}b{{ else }}none{{ end }}", "Scale"),
            Ok("none".to_owned())
        );
        assert!(said("{{ env \"HOME\" }}", "x").is_err());
        assert_eq!(
            said("{{ nope }}", "x"),
            Err(
                "failed to parse template {{ nope }}: template: commit-template:1: function \
                 \"nope\" not defined"
                    .to_owned()
            )
        );
        let failed = said("{{ fail \"no\" }}", "x").expect_err("it fails");
        assert!(
            failed.starts_with(
                "failed to execute go template {{ fail \"no\" }}: template: commit-template:1:3: "
            ),
            "{failed}"
        );
    }

    #[test]
    fn messages_are_cleaned() {
        for (message, expected) in [
            ("a", "a\n"),
            ("\n\na  \n\n\n\nb\n\n", "a\n\nb\n"),
            ("a\r\n \t\r\nb\u{b}\u{a0}", "a\n\nb\u{b}\u{a0}\n"),
        ] {
            assert_eq!(
                cleaned(message).ok().as_deref(),
                Some(expected),
                "{message:?}"
            );
        }
        assert!(cleaned(" \n").is_err());
    }
}
