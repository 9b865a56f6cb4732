//! What is said of a dry commit: in `hydrator.metadata`, and in the message of the hydrated commit.
//!
//! Main type: [`Metadata`]; main function: [`commit_message`].

use super::files;
use crate::RepoError;
use serde::Serialize;
use serde_json::json;
use tiphys_api::{
    access::without_passwords,
    repository::{RevisionMetadata, RevisionReference},
};

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
        let body = body.lines().filter(|line| !is_reference(line));
        found.body = body.flat_map(|line| [line, "\n"]).collect();
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
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// A trailer that is one of the references, and not part of the text.
fn is_reference(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("Argocd-reference-commit-") else {
        return false;
    };
    let key = rest.split_once(": ").map_or("", |(key, _)| key);
    matches!(
        key,
        "repourl" | "author" | "date" | "subject" | "body" | "sha"
    )
}

/// The message of a hydrated commit, from a template whose `.metadata` is the dry commit.
pub fn commit_message(
    template: &str,
    (url, dry_sha): (&str, &str),
    commit: Option<&RevisionMetadata>,
) -> Result<String, RepoError> {
    let metadata = Metadata::new(url, dry_sha, commit);
    let data = json!({"metadata": metadata});
    files::render("commit-template", template, &data)
}

/// A message as `git commit` leaves it: no blanks at the ends of lines, no empty lines at either
/// end, and never two of them together.
pub(crate) fn cleaned(message: &str) -> Result<String, RepoError> {
    let mut out = String::new();
    let mut gap = false;
    for line in message.lines().map(str::trim_end) {
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
        assert!(said("{{ .metadata", "x").is_err_and(|e| e.contains("commit-template:1")));
    }

    #[test]
    fn messages_are_cleaned() {
        for (message, expected) in [("a", "a\n"), ("\n\na  \n\n\n\nb\n\n", "a\n\nb\n")] {
            assert_eq!(
                cleaned(message).ok().as_deref(),
                Some(expected),
                "{message:?}"
            );
        }
        assert!(cleaned(" \n").is_err());
    }
}
