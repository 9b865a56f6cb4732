//! What Prometheus is told, by Argo CD's names.
//!
//! Main types: [`GitMetrics`], the contacts with Git servers, and [`Pending`]. Clients name
//! repositories and revisions, so there are only so many of them as labels.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tiphys_repo::{Contact, ContactKind};
use tiphys_rpc::counts::{Counts, escaped, family};

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

#[derive(Default)]
struct Git {
    requests: Counts<2>,
    durations: BTreeMap<[String; 2], Durations>,
    failed_fetches: Counts<2>,
    failed_look_ups: Counts<2>,
}

/// The contacts with Git servers since the process started. Clones count together.
#[derive(Clone, Default)]
pub struct GitMetrics(Arc<Mutex<Git>>);

impl GitMetrics {
    pub fn add(&self, contact: &Contact<'_>) {
        let mut git = lock(&self.0);
        let kind = match contact.kind {
            ContactKind::LsRemote => "ls-remote",
            ContactKind::Fetch => "fetch",
            ContactKind::Push => "push",
        };
        let labels = [contact.repository, kind];
        count(&mut git.requests, labels);
        if contact.is_failed {
            let labels = [contact.repository, contact.revision];
            match contact.kind {
                ContactKind::LsRemote => count(&mut git.failed_look_ups, labels),
                ContactKind::Fetch => count(&mut git.failed_fetches, labels),
                ContactKind::Push => {}
            }
        }
        let labels = limited(&git.durations, labels);
        let durations = git.durations.entry(labels).or_default();
        let seconds = contact.took.as_secs_f64();
        durations.count += 1;
        durations.seconds += seconds;
        if let Some(at) = BUCKETS.iter().position(|bucket| seconds <= *bucket) {
            durations.within[at] += 1;
        }
    }

    /// In Prometheus text format.
    pub fn text(&self) -> String {
        let git = lock(&self.0);
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
        histogram(&mut out, &git.durations);
        out
    }
}

fn histogram(out: &mut String, durations: &BTreeMap<[String; 2], Durations>) {
    let name = "argocd_git_request_duration_seconds";
    let _ = writeln!(
        out,
        "# HELP {name} Git requests duration seconds.\n# TYPE {name} histogram"
    );
    for ([repo, kind], durations) in durations {
        let labels = format!("repo=\"{}\",request_type=\"{kind}\"", escaped(repo));
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
        family(
            out,
            ("argocd_repo_pending_request_total", "gauge"),
            "Number of pending requests requiring repository lock",
            &["repo"],
            &lock(&self.0),
        );
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
    use std::time::Duration;

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
