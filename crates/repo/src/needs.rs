//! Additional repositories that renders need: where they are fetched from, with which credentials,
//! and how many there may be.
//!
//! Main type: [`Fetched`], which grows until nothing more is needed.

use crate::{RepoAccess, RepoError, manifests::Commit, url::refuse};
use std::collections::BTreeMap;
use tiphys_api::repo_url::{Form, RepoUrl};
use tiphys_render::{RenderError, SourceRef};

/// Maximum number of references in one render. Bases may refer to further bases, in repositories
/// that other people can write to.
const MAX_NEEDS: usize = 200;

/// The commits fetched for a render, or the errors: a reference needed by an earlier commit may be
/// gone, and its error matters only if it is still needed.
#[derive(Clone, Default)]
pub(crate) struct Fetched(BTreeMap<SourceRef, Result<Commit, RepoError>>);

impl Fetched {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn commits(&self) -> impl Iterator<Item = (&SourceRef, &Commit)> {
        let there = self.0.iter();
        there.filter_map(|(needed, found)| Some((needed, found.as_ref().ok()?)))
    }

    /// The references that have not been tried yet.
    pub fn missing(&self, known: &[SourceRef]) -> Vec<SourceRef> {
        let untried = known.iter().filter(|needed| !self.0.contains_key(needed));
        untried.cloned().collect()
    }

    /// The references to fetch for a render that still needs these.
    ///
    /// # Errors
    /// A reference could not be fetched, or there are too many.
    pub fn next(&self, needed: Vec<SourceRef>) -> Result<Vec<SourceRef>, RepoError> {
        for needed in &needed {
            match self.0.get(needed) {
                Some(Err(e)) => return Err(e.clone()),
                // A renderer that requests the same reference again would never finish.
                Some(Ok(_)) => {
                    return Err(RepoError::Internal(format!("{needed} was needed twice")));
                }
                None => {}
            }
        }
        if self.0.len() + needed.len() > MAX_NEEDS {
            return Err(RenderError::OverBudget {
                what: "what is fetched for one source".to_owned(),
                limit: MAX_NEEDS as u64,
            }
            .into());
        }
        Ok(needed)
    }

    pub fn with(
        &self,
        found: impl IntoIterator<Item = (SourceRef, Result<Commit, RepoError>)>,
    ) -> Self {
        let mut all = self.0.clone();
        all.extend(found);
        Self(all)
    }
}

/// The repository of a reference and its revision. The source's credentials are used only for the
/// server they belong to: the author of a base must not decide who receives them.
pub(crate) fn repository<'a>(
    needed: &'a SourceRef,
    source: &RepoAccess,
) -> Result<(RepoAccess, &'a str), RepoError> {
    let SourceRef::Git { url, revision } = needed else {
        return Err(RepoError::Unsupported(format!(
            "{needed}: only Git repositories can be fetched for a render yet"
        )));
    };
    let parsed = RepoUrl::parse(url).map_err(|e| refuse(url, &e.to_string()))?;
    if !matches!(
        parsed.form,
        Form::Https | Form::Http | Form::Ssh | Form::Scp
    ) {
        // A repository must not refer to files on the machine that renders it.
        return Err(refuse(
            url,
            "only https, http and ssh repositories can be fetched for a render",
        ));
    }
    let credentials = if RepoUrl::parse(&source.url).is_ok_and(|own| is_same_server(&own, &parsed))
    {
        source.clone()
    } else {
        RepoAccess {
            known_hosts: source.known_hosts.clone(),
            project: source.project.clone(),
            ..RepoAccess::default()
        }
    };
    let access = RepoAccess {
        url: url.clone(),
        ..credentials
    };
    Ok((access, revision))
}

fn is_same_server(a: &RepoUrl, b: &RepoUrl) -> bool {
    let by_ssh = |url: &RepoUrl| matches!(url.form, Form::Ssh | Form::Scp);
    (&a.host, a.port) == (&b.host, b.port) && (a.form == b.form || by_ssh(a) && by_ssh(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn git(url: &str) -> SourceRef {
        SourceRef::Git {
            url: url.to_owned(),
            revision: "v1".to_owned(),
        }
    }

    #[test]
    fn credentials_stay_with_their_server() {
        let source = |url: &str| RepoAccess {
            url: url.to_owned(),
            password: Secret::new("hunter2"),
            known_hosts: "keys".to_owned(),
            project: "p".to_owned(),
            ..RepoAccess::default()
        };
        for (own, base, given) in [
            (
                "https://git.example.com/a",
                "https://git.example.com/b",
                true,
            ),
            (
                "https://git.example.com/a",
                "https://GIT.example.com:443/b",
                true,
            ),
            (
                "https://git.example.com/a",
                "https://git.example.com.evil.org/b",
                false,
            ),
            (
                "https://git.example.com/a",
                "https://git.example.com@evil.org/b",
                false,
            ),
            (
                "https://git.example.com/a",
                "https://git.example.com:8443/b",
                false,
            ),
            (
                "https://git.example.com/a",
                "http://git.example.com/b",
                false,
            ),
            ("https://git.example.com/a", "git@git.example.com:b", false),
            ("git@git.example.com:a", "ssh://git@git.example.com/b", true),
            ("/srv/a.git", "https://git.example.com/b", false),
        ] {
            let needed = git(base);
            let (access, revision) = repository(&needed, &source(own)).expect("it can be fetched");
            let has = !access.password.expose().is_empty();
            assert_eq!((has, access.url.as_str()), (given, base), "{own}");
            let common = (
                revision,
                access.known_hosts.as_str(),
                access.project.as_str(),
            );
            assert_eq!(common, ("v1", "keys", "p"));
        }
    }

    #[test]
    fn files_of_this_machine_are_never_fetched() {
        for url in [
            "/etc",
            "file:///srv/b.git",
            "file://localhost/srv",
            "../b",
            "oci://h/b",
            "ftp://h/b",
            "",
        ] {
            let needed = git(url);
            let refused = repository(&needed, &RepoAccess::public("/srv/a.git"));
            assert!(matches!(refused, Err(RepoError::BadUrl { .. })), "{url}");
        }
    }

    #[test]
    fn a_failed_fetch_matters_where_it_is_needed() {
        let (gone, other) = (git("https://h/gone"), git("https://h/other"));
        let failed = RepoError::NotFound {
            url: "https://h/gone".to_owned(),
        };
        let fetched = Fetched::default().with([(gone.clone(), Err(failed))]);
        assert_eq!(
            fetched.missing(&[gone.clone(), other.clone()]),
            std::slice::from_ref(&other)
        );
        assert_eq!(fetched.commits().count(), 0);
        assert_eq!(
            fetched.next(vec![other.clone()]).expect("it is new"),
            std::slice::from_ref(&other)
        );
        let again = fetched
            .next(vec![other, gone])
            .expect_err("it cannot be had");
        assert_eq!(again.to_string(), "repository not found: https://h/gone");
    }

    #[test]
    fn needs_are_limited() {
        let many = (0..=MAX_NEEDS)
            .map(|i| git(&format!("https://h/{i}")))
            .collect();
        let refused = Fetched::default().next(many).expect_err("too many");
        assert_eq!(
            refused.to_string(),
            "what is fetched for one source exceeds the limit of 200"
        );
    }
}
