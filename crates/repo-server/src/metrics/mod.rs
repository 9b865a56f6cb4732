//! What Prometheus is told, by Argo CD's names.
//!
//! Main types: [`GitMetrics`], the contacts with servers, [`CommitMetrics`] and [`Pending`]. Clients
//! name repositories and revisions, so there are only so many of them as labels.

mod registries;
mod waits;

use registries::Registries;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_repo::{Contact, ContactKind};
use tiphys_rpc::counts::{Counts, escaped, family};
use waits::Waits;

/// Values of labels; what comes later counts under [`OTHER`].
const MAX_SERIES: usize = 5_000;
const OTHER: &str = "other";
/// Seconds.
const BUCKETS: [f64; 8] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0];

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The labels, or those of everything else.
fn limited<const N: usize, T>(known: &BTreeMap<[String; N], T>, labels: [&str; N]) -> [String; N] {
    let labels = labels.map(str::to_owned);
    if known.len() < MAX_SERIES || known.contains_key(&labels) {
        labels
    } else {
        std::array::from_fn(|_| OTHER.to_owned())
    }
}

fn count<const N: usize>(counts: &mut Counts<N>, labels: [&str; N]) {
    let labels = limited(counts, labels);
    *counts.entry(labels).or_default() += 1;
}

#[derive(Default)]
struct Durations {
    /// Those of each bucket alone.
    within: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

/// By labels.
type Histogram = BTreeMap<[String; 2], Durations>;

fn observe(histogram: &mut Histogram, labels: [&str; 2], took: Duration) {
    let labels = limited(histogram, labels);
    let durations = histogram.entry(labels).or_default();
    let seconds = took.as_secs_f64();
    durations.count += 1;
    durations.seconds += seconds;
    if let Some(at) = BUCKETS.iter().position(|bucket| seconds <= *bucket) {
        durations.within[at] += 1;
    }
}

#[derive(Default)]
struct Git {
    requests: Counts<2>,
    durations: Histogram,
    failed_fetches: Counts<2>,
    failed_look_ups: Counts<2>,
}

impl Git {
    fn add(&mut self, kind: &str, contact: &Contact<'_>) {
        let labels = [contact.repository, kind];
        count(&mut self.requests, labels);
        observe(&mut self.durations, labels, contact.took);
        if contact.is_failed {
            let labels = [contact.repository, contact.revision];
            match contact.kind {
                ContactKind::LsRemote => count(&mut self.failed_look_ups, labels),
                ContactKind::Fetch => count(&mut self.failed_fetches, labels),
                ContactKind::Push | ContactKind::Registry(_) => {}
            }
        }
    }
}

#[derive(Default)]
struct Contacts {
    git: Mutex<Git>,
    registries: Mutex<Registries>,
    waits: Mutex<Waits>,
}

/// The contacts with Git servers and registries since the process started, and how long renders
/// waited for their turn. Clones count together.
#[derive(Clone, Default)]
pub struct GitMetrics(Arc<Contacts>);

impl GitMetrics {
    pub fn add(&self, contact: &Contact<'_>) {
        let kind = match contact.kind {
            ContactKind::LsRemote => "ls-remote",
            ContactKind::Fetch => "fetch",
            ContactKind::Push => "push",
            ContactKind::Registry(request) => {
                return lock(&self.0.registries).add(request, contact);
            }
        };
        lock(&self.0.git).add(kind, contact);
    }

    /// A render that waited so long, whether or not its turn came.
    pub fn waited(&self, took: Duration) {
        lock(&self.0.waits).add(took);
    }

    /// In Prometheus text format.
    pub fn text(&self) -> String {
        let git = lock(&self.0.git);
        let mut out = String::new();
        for (name, help, second, counts) in [
            (
                "argocd_git_request_total",
                "Number of git requests performed by repo server",
                "request_type",
                &git.requests,
            ),
            (
                "argocd_git_fetch_fail_total",
                "Number of git fetch requests failures by repo server",
                "revision",
                &git.failed_fetches,
            ),
            (
                "argocd_git_lsremote_fail_total",
                "Number of git ls-remote requests failures by repo server",
                "revision",
                &git.failed_look_ups,
            ),
        ] {
            let labels = ["repo", second];
            family(&mut out, (name, "counter"), help, &labels, counts);
        }
        let name = "argocd_git_request_duration_seconds";
        histogram(&mut out, (name, GIT_HELP), "request_type", &git.durations);
        lock(&self.0.registries).write(&mut out);
        lock(&self.0.waits).write(&mut out);
        out
    }

    /// The same of a commit server, which has names of its own.
    pub fn text_of_commits(&self) -> String {
        let git = lock(&self.0.git);
        let mut out = String::new();
        family(
            &mut out,
            ("argocd_commitserver_git_request_total", "counter"),
            "Number of git requests performed by repo server",
            &["repo", "request_type"],
            &git.requests,
        );
        let name = "argocd_commitserver_git_request_duration_seconds";
        histogram(&mut out, (name, GIT_HELP), "request_type", &git.durations);
        out
    }
}

const GIT_HELP: &str = "Git requests duration seconds.";

/// The commits that were asked for since the process started.
#[derive(Default)]
pub(crate) struct CommitMetrics(Mutex<(Counts<2>, Histogram)>);

impl CommitMetrics {
    /// `repository`: without credentials.
    pub fn add(&self, repository: &str, is_failed: bool, took: Duration) {
        let (counts, durations) = &mut *lock(&self.0);
        let outcome = if is_failed { "failure" } else { "success" };
        count(counts, [repository, outcome]);
        observe(durations, [repository, outcome], took);
    }

    pub fn write(&self, out: &mut String) {
        let (counts, durations) = &*lock(&self.0);
        family(
            out,
            ("argocd_commitserver_commit_request_total", "counter"),
            "Number of commit requests performed handled",
            &["repo", "response_type"],
            counts,
        );
        let name = "argocd_commitserver_commit_request_duration_seconds";
        let help = "Commit request duration seconds.";
        histogram(out, (name, help), "response_type", durations);
    }
}

fn histogram(out: &mut String, (name, help): (&str, &str), second: &str, durations: &Histogram) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
    for ([repo, kind], durations) in durations {
        let labels = format!("repo=\"{}\",{second}=\"{kind}\"", escaped(repo));
        let mut sum = 0;
        for (bucket, within) in BUCKETS.iter().zip(durations.within) {
            sum += within;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bucket}\"}} {sum}");
        }
        let Durations { count, seconds, .. } = durations;
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    }
}

/// The calls that are being answered, by repository.
#[derive(Clone, Default)]
pub(crate) struct Pending(Arc<Mutex<Counts<1>>>);

/// A call that is being answered until this value goes.
pub(crate) struct PendingCall {
    pending: Pending,
    labels: [String; 1],
}

impl Pending {
    /// `repository`: without credentials.
    pub fn begin(&self, repository: &str) -> PendingCall {
        let mut counts = lock(&self.0);
        let labels = limited(&counts, [repository]);
        *counts.entry(labels.clone()).or_default() += 1;
        PendingCall {
            pending: self.clone(),
            labels,
        }
    }

    pub fn write(&self, out: &mut String) {
        let name = "argocd_repo_pending_request_total";
        let help = "Number of pending requests requiring repository lock";
        family(out, (name, "gauge"), help, &["repo"], &lock(&self.0));
    }

    /// The same of a commit server.
    pub fn write_of_commits(&self, out: &mut String) {
        let name = "argocd_commitserver_commit_pending_request_total";
        let help = "Number of pending commit requests";
        family(out, (name, "gauge"), help, &["repo"], &lock(&self.0));
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.pending.0).get_mut(&self.labels) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contacts_are_counted() {
        let metrics = GitMetrics::default();
        let contact = Contact {
            repository: "https://git.example.com/a\"b",
            kind: ContactKind::LsRemote,
            revision: "",
            took: Duration::from_millis(300),
            is_failed: false,
        };
        metrics.add(&contact);
        metrics.add(&Contact {
            kind: ContactKind::Fetch,
            revision: "abc",
            took: Duration::from_secs(30),
            is_failed: true,
            ..contact
        });
        let text = metrics.text();
        let repo = r#"repo="https://git.example.com/a\"b""#;
        for line in [
            format!("argocd_git_request_total{{{repo},request_type=\"ls-remote\"}} 1"),
            format!("argocd_git_request_total{{{repo},request_type=\"fetch\"}} 1"),
            format!("argocd_git_fetch_fail_total{{{repo},revision=\"abc\"}} 1"),
            format!(
                "argocd_git_request_duration_seconds_bucket{{{repo},request_type=\"ls-remote\",le=\"0.25\"}} 0"
            ),
            format!(
                "argocd_git_request_duration_seconds_bucket{{{repo},request_type=\"ls-remote\",le=\"0.5\"}} 1"
            ),
            format!(
                "argocd_git_request_duration_seconds_bucket{{{repo},request_type=\"fetch\",le=\"20\"}} 0"
            ),
            format!(
                "argocd_git_request_duration_seconds_bucket{{{repo},request_type=\"fetch\",le=\"+Inf\"}} 1"
            ),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn commits_are_counted_under_names_of_their_own() {
        let (git, commits, pending) = (
            GitMetrics::default(),
            CommitMetrics::default(),
            Pending::default(),
        );
        git.add(&Contact {
            repository: "r",
            kind: ContactKind::Push,
            revision: "",
            took: Duration::from_millis(300),
            is_failed: true,
        });
        commits.add("r", false, Duration::from_secs(3));
        commits.add("r", true, Duration::from_millis(1));
        let call = pending.begin("r");
        let mut text = git.text_of_commits();
        commits.write(&mut text);
        pending.write_of_commits(&mut text);
        drop(call);
        for line in [
            r#"git_request_total{repo="r",request_type="push"} 1"#,
            r#"git_request_duration_seconds_bucket{repo="r",request_type="push",le="0.5"} 1"#,
            r#"commit_request_total{repo="r",response_type="success"} 1"#,
            r#"commit_request_total{repo="r",response_type="failure"} 1"#,
            r#"commit_request_duration_seconds_bucket{repo="r",response_type="success",le="2"} 0"#,
            r#"commit_request_duration_seconds_bucket{repo="r",response_type="success",le="4"} 1"#,
            r#"commit_request_duration_seconds_count{repo="r",response_type="failure"} 1"#,
            r#"commit_pending_request_total{repo="r"} 1"#,
        ] {
            let line = format!("argocd_commitserver_{line}");
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            !text.contains("argocd_git_") && !text.contains("argocd_repo_"),
            "{text}"
        );
    }

    #[test]
    fn clients_make_only_so_many_series() {
        let pending = Pending::default();
        let all: Vec<PendingCall> = (0..MAX_SERIES + 10)
            .map(|n| pending.begin(&n.to_string()))
            .collect();
        assert_eq!(lock(&pending.0).len(), MAX_SERIES + 1);
        let mut text = String::new();
        pending.write(&mut text);
        assert!(text.contains("argocd_repo_pending_request_total{repo=\"other\"} 10\n"));
        drop(all);
        assert!(lock(&pending.0).values().all(|count| *count == 0));
    }
}
