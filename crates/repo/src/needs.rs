//! Additional repositories that renders need: where they are fetched from, with which credentials,
//! and how many there may be.
//!
//! Main type: [`Fetched`], which grows until nothing more is needed.

use crate::{
    ManifestRequest, RepoAccess, RepoError,
    git::Commit,
    http::{OF_CLOUD, is_host_of_cloud},
    url::refuse,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    access::shown_url,
    repo_url::{Form, RepoUrl, UrlFault},
};
use tiphys_render::{PluginAnswer, PluginQuestion, RenderError, SourceRef};

/// Maximum number of references in one render. Bases may refer to further bases, in repositories
/// that other people can write to.
const MAX_NEEDS: usize = 200;

/// What a reference leads to.
#[derive(Clone)]
pub(crate) enum Got {
    Files(Box<Commit>),
    Answer(Arc<PluginAnswer>),
}

/// What was fetched for a render, or the errors: a reference needed by an earlier commit may be
/// gone, and its error matters only if it is still needed.
#[derive(Clone, Default)]
pub(crate) struct Fetched(BTreeMap<SourceRef, Result<Got, RepoError>>);

impl Fetched {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn commits(&self) -> impl Iterator<Item = (&SourceRef, &Commit)> {
        self.0.iter().filter_map(|(needed, found)| match found {
            Ok(Got::Files(commit)) => Some((needed, commit.as_ref())),
            _ => None,
        })
    }

    pub fn failure(&self, needed: &SourceRef) -> Option<&RepoError> {
        self.0.get(needed)?.as_ref().err()
    }

    /// What plugins answered.
    pub fn answers(&self) -> BTreeMap<PluginQuestion, Arc<PluginAnswer>> {
        let answer = |(needed, found): (&SourceRef, &Result<Got, RepoError>)| match (needed, found)
        {
            (SourceRef::Plugin(question), Ok(Got::Answer(answer))) => {
                Some(((**question).clone(), Arc::clone(answer)))
            }
            _ => None,
        };
        self.0.iter().filter_map(answer).collect()
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
        for one in &needed {
            match self.0.get(one) {
                Some(Err(e)) => return Err(self.with_all_denied(e.clone(), &needed)),
                // A renderer that requests the same reference again would never finish.
                Some(Ok(_)) => {
                    return Err(RepoError::Internal(format!("{one} was needed twice")));
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

    /// An error of a chart repository that the project does not permit names all of these.
    fn with_all_denied(&self, mut error: RepoError, needed: &[SourceRef]) -> RepoError {
        if let RepoError::NotPermitted {
            url,
            is_chart: true,
            ..
        } = &mut error
        {
            let mut all: Vec<&str> = Vec::new();
            for one in needed {
                if let Some(Err(RepoError::NotPermitted {
                    url,
                    is_chart: true,
                    ..
                })) = self.0.get(one)
                    && !all.contains(&url.as_str())
                {
                    all.push(url);
                }
            }
            *url = all.join(", ");
        }
        error
    }

    pub fn with(
        &self,
        found: impl IntoIterator<Item = (SourceRef, Result<Got, RepoError>)>,
    ) -> Self {
        let mut all = self.0.clone();
        all.extend(found);
        Self(all)
    }
}

/// A repository that a render needs besides its own, as its author names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherRepository<'a> {
    Url(&'a str),
    /// A chart repository by the name it has in the settings: `@name` or `alias:name`.
    Named(&'a str),
}

/// How another repository may be reached.
#[derive(Clone, Debug)]
pub struct Reach {
    pub access: RepoAccess,
    /// Whether the project permits it. If not, it is asked without credentials, and the error says
    /// so.
    pub permitted: bool,
}

type Finder = dyn Fn(OtherRepository<'_>) -> Result<Reach, RepoError> + Send + Sync;

/// Finds the credentials for other repositories. Without one, only the source's own are known.
///
/// It is about how something is reached, not what: two requests that differ only in it have the same
/// result.
#[derive(Clone, Default)]
pub struct Others(Option<Arc<Finder>>);

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Others")
    }
}

impl PartialEq for Others {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Others {
    pub fn new(
        find: impl Fn(OtherRepository<'_>) -> Result<Reach, RepoError> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(find)))
    }

    fn reach(&self, wanted: OtherRepository<'_>, source: &RepoAccess) -> Result<Reach, RepoError> {
        let found = match (&self.0, wanted) {
            (Some(find), _) => find(wanted)?,
            (None, OtherRepository::Url(url)) => Reach {
                access: RepoAccess {
                    url: url.to_owned(),
                    known_hosts: source.known_hosts.clone(),
                    project: source.project.clone(),
                    ..RepoAccess::default()
                },
                permitted: true,
            },
            (None, OtherRepository::Named(name)) => {
                return Err(RepoError::Unsupported(format!(
                    "no repository definition for {name}: repositories have no names here"
                )));
            }
        };
        Ok(found)
    }
}

/// The repository that a base is in.
pub(crate) fn repository(url: &str, request: &ManifestRequest) -> Result<Reach, RepoError> {
    let kinds = [Form::Https, Form::Http, Form::Ssh, Form::Scp];
    // A repository must not refer to files on the machine that renders it.
    let why = "only https, http and ssh repositories can be fetched for a render";
    other(OtherRepository::Url(url), request, &kinds, why)
}

/// The repository that a chart is in.
pub(crate) fn chart_repository(url: &str, request: &ManifestRequest) -> Result<Reach, RepoError> {
    let why = "only https, http and oci chart repositories can be fetched for a render";
    let named = url.strip_prefix('@').or_else(|| url.strip_prefix("alias:"));
    let wanted = named.map_or(OtherRepository::Url(url), OtherRepository::Named);
    let kinds = [Form::Https, Form::Http, Form::Oci];
    other(wanted, request, &kinds, why)
}

/// The host that a file of the web is on: with the authorities that are trusted for it, but without
/// credentials, which neither kustomize nor Helm send for a file.
pub(crate) fn web(url: &str, request: &ManifestRequest) -> Result<RepoAccess, RepoError> {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    let why = "only https and http files can be fetched for a render";
    let wanted = OtherRepository::Url(plain);
    let reach = other(wanted, request, &[Form::Https, Form::Http], why)?;
    Ok(RepoAccess {
        ca_data: reach.access.ca_data,
        insecure: reach.access.insecure,
        proxy: reach.access.proxy,
        no_proxy: reach.access.no_proxy,
        project: request.project.clone(),
        ..RepoAccess::public(plain)
    })
}

/// If nothing is known about a repository, the source's own credentials serve for the server they
/// belong to: the author of a base must not decide who receives them.
fn other(
    wanted: OtherRepository<'_>,
    request: &ManifestRequest,
    kinds: &[Form],
    why: &str,
) -> Result<Reach, RepoError> {
    let check = |parsed: Result<RepoUrl, UrlFault>, url: &str| {
        let parsed = parsed.map_err(|e| refuse(url, &e.to_string()))?;
        if is_host_of_cloud(&parsed.host) {
            return Err(refuse(url, OF_CLOUD));
        }
        if kinds.contains(&parsed.form) {
            Ok(parsed)
        } else {
            Err(refuse(url, why))
        }
    };
    // Before anything is looked up for it, and as its author wrote it.
    if let OtherRepository::Url(url) = wanted {
        check(RepoUrl::parse(url), url)?;
    }
    let source = &request.access;
    let mut reach = request.others.reach(wanted, source)?;
    let parsed = check(server_of(&reach.access.url), &reach.access.url)?;
    let own = if request.source.chart.is_empty() {
        RepoUrl::parse(&source.url)
    } else {
        server_of(&source.url)
    };
    let is_of_source = || own.is_ok_and(|own| is_same_server(&own, &parsed));
    if reach.permitted && !reach.access.has_credentials() && is_of_source() {
        reach.access = RepoAccess {
            url: reach.access.url,
            ..source.clone()
        };
    }
    Ok(reach)
}

/// Says of a failure that nothing but public access was tried.
pub(crate) fn unless_permitted(
    e: RepoError,
    reach: &Reach,
    project: &str,
    is_chart: bool,
) -> RepoError {
    // Unreachable, too: what its Secret says about TLS was not used either.
    let may_be_why = matches!(
        e,
        RepoError::AuthFailed { .. }
            | RepoError::NotFound { .. }
            | RepoError::Status { .. }
            | RepoError::Unreachable { .. }
    );
    if reach.permitted || !may_be_why {
        return e;
    }
    let url = shown_url(&reach.access.url);
    RepoError::NotPermitted {
        // As a Helm repository's Secret names a registry.
        url: if is_chart {
            url.trim_start_matches("oci://")
        } else {
            &url
        }
        .to_owned(),
        is_chart,
        project: project.to_owned(),
        cause: e.to_string(),
    }
}

/// Settings have registries of charts without a scheme.
fn server_of(url: &str) -> Result<RepoUrl, UrlFault> {
    let is_registry = !url.contains("://") && !url.starts_with('/') && !url.contains('@');
    if is_registry {
        RepoUrl::parse(&format!("oci://{url}"))
    } else {
        RepoUrl::parse(url)
    }
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
            submodules: true,
        }
    }

    #[test]
    fn credentials_stay_with_their_server() {
        let source = |url: &str| ManifestRequest {
            access: RepoAccess {
                url: url.to_owned(),
                password: Secret::new("hunter2"),
                known_hosts: "keys".to_owned(),
                project: "p".to_owned(),
                ..RepoAccess::default()
            },
            ..ManifestRequest::default()
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
            let access = repository(base, &source(own))
                .expect("it can be fetched")
                .access;
            let has = !access.password.expose().is_empty();
            assert_eq!((has, access.url.as_str()), (given, base), "{own}");
            let common = (access.known_hosts.as_str(), access.project.as_str());
            assert_eq!(common, ("keys", "p"));
        }
    }

    #[test]
    fn files_of_this_machine_are_never_fetched() {
        for url in [
            "/etc",
            "file:///srv/b.git",
            "file://localhost/srv",
            "../b",
            "h/b",
            "ftp://h/b",
            "",
        ] {
            let source = ManifestRequest {
                access: RepoAccess::public("/srv/a.git"),
                ..ManifestRequest::default()
            };
            for refused in [repository(url, &source), chart_repository(url, &source)] {
                assert!(matches!(refused, Err(RepoError::BadUrl { .. })), "{url}");
            }
        }
    }

    #[test]
    fn charts_of_the_same_registry_have_the_credentials_of_the_source() {
        for (own, chart, repository, given) in [
            ("h:5000/charts", "web", "oci://h:5000/libs", true),
            ("h:5000", "web", "oci://h:5000/libs", true),
            ("h/charts", "web", "oci://H:443/libs", true),
            ("oci://h/web", "", "oci://h/libs", true),
            ("h/charts", "web", "oci://h.evil.org/libs", false),
            ("h/charts", "web", "https://h/libs", false),
            ("https://h/charts", "web", "oci://h/libs", false),
        ] {
            let mut request = ManifestRequest {
                access: RepoAccess {
                    url: own.to_owned(),
                    password: Secret::new("hunter2"),
                    ..RepoAccess::default()
                },
                ..ManifestRequest::default()
            };
            request.source.chart = chart.to_owned();
            let reach = chart_repository(repository, &request).expect("it can be fetched");
            let has = !reach.access.password.is_empty();
            assert_eq!(
                (has, reach.access.url.as_str()),
                (given, repository),
                "{own}"
            );
            let base = super::repository("oci://h/b", &request);
            base.expect_err("a base is in a Git repository");
        }
    }

    #[test]
    fn a_repository_that_the_project_does_not_permit_gets_no_credentials() {
        let request = ManifestRequest {
            access: RepoAccess {
                url: "https://h/own".to_owned(),
                password: Secret::new("hunter2"),
                ..RepoAccess::default()
            },
            others: Others::new(|wanted| {
                let OtherRepository::Url(url) = wanted else {
                    return Ok(Reach {
                        access: RepoAccess::public("https://h/by-name"),
                        permitted: true,
                    });
                };
                Ok(Reach {
                    access: RepoAccess::public(url),
                    permitted: url == "https://h/permitted",
                })
            }),
            ..ManifestRequest::default()
        };
        let password = |reach: &Reach| reach.access.password.expose().to_owned();
        let permitted = repository("https://h/permitted", &request).expect("it can be reached");
        assert_eq!(password(&permitted), "hunter2");
        let other = repository("https://h/other", &request).expect("it can be reached");
        assert_eq!(password(&other), "");
        let named = chart_repository("@charts", &request).expect("it has a name");
        assert_eq!(named.access.url, "https://h/by-name");

        let refused = || RepoError::AuthFailed {
            url: "https://h/other".to_owned(),
            hint: "",
        };
        assert_eq!(
            unless_permitted(refused(), &other, "p", false).to_string(),
            "repository https://h/other is not permitted in project 'p' and asked without credentials: \
             authentication required: repository https://h/other refused the credentials"
        );
        let kept = unless_permitted(refused(), &permitted, "p", false);
        assert!(matches!(kept, RepoError::AuthFailed { .. }));
    }

    #[test]
    fn all_chart_repositories_that_are_not_permitted_are_named() {
        let denied = |url: &str| {
            Err(RepoError::NotPermitted {
                url: url.to_owned(),
                is_chart: true,
                project: "p".to_owned(),
                cause: "refused".to_owned(),
            })
        };
        let needed = ["https://h/a", "https://h/b", "https://h/c", "https://h/d"].map(git);
        let fetched = Fetched::default().with([
            (needed[0].clone(), denied("https://h/a")),
            (needed[1].clone(), denied("https://h/b")),
            (needed[2].clone(), denied("https://h/a")),
        ]);
        let told = fetched
            .next(needed.to_vec())
            .expect_err("denied")
            .to_string();
        assert_eq!(
            told,
            "helm repos https://h/a, https://h/b are not permitted in project 'p' and asked without \
             credentials: refused"
        );
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
