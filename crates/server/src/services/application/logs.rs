//! PodLogs: log lines of the pods that belong to a resource of the Application.

use super::live::tree_of;
use crate::{
    ApiError,
    access::{Followed, Guard},
    ports::{LiveRef, LogOptions},
    state::State,
};
use futures::{
    StreamExt as _,
    stream::{BoxStream, Peekable},
};
use jiff::{Timestamp, tz::TimeZone};
use std::{collections::BTreeSet, pin::Pin, sync::Arc, task::Poll, time::Duration};
use tiphys_api::{
    meta::Time,
    resource::{ApplicationTree, ResourceNode, ResourceRef},
    rpc::application::{ApplicationPodLogsQuery, LogEntry},
};
use tiphys_gocompat::sprig::Moment;
use tokio::time::Instant;

const MAX_PODS: usize = 10;
/// How long a line waits for earlier ones of other pods.
const PATIENCE: Duration = Duration::from_millis(100);

/// How often it is checked whether the logs may still be read.
const RECHECK: Duration = Duration::from_secs(5);

type Lines = BoxStream<'static, Result<LogEntry, ApiError>>;

/// A time in RFC 3339; what is wrong with another text is said in Go's words.
fn until_time(text: &str) -> Result<Timestamp, ApiError> {
    const LAYOUT: &str = "2006-01-02T15:04:05.999999999Z07:00";
    text.parse().map_err(|e: jiff::Error| {
        let why = Moment::parse(LAYOUT, text, &TimeZone::UTC).err();
        let why = why.unwrap_or_else(|| e.to_string());
        ApiError::plain(format!("invalid untilTime parameter value: {why}"))
    })
}

pub async fn pod_logs(
    state: Arc<State>,
    guard: Guard,
    mut q: ApplicationPodLogsQuery,
) -> Result<BoxStream<'static, Result<LogEntry, ApiError>>, ApiError> {
    if let Some(pod) = q.pod_name.take().filter(|p| !p.is_empty()) {
        (q.kind, q.resource_name) = (Some("Pod".into()), Some(pod));
    }
    let until = match q.until_time.as_deref().filter(|t| !t.is_empty()) {
        None => None,
        Some(text) => Some(until_time(text)?),
    };
    let (reach, place) = (state.reach.clone(), q.app_namespace.clone());
    let followed = Followed::new(reach, guard, place, q.name.clone(), q.project.clone());
    let (app, project) = followed.find().await?;
    let logs = followed.guard.logs(&app)?;
    let tree = tree_of(&state, &app, &project)
        .await
        .map_err(|e| e.context("error getting app resource tree"))?;
    let pods = pods(&tree, &q);
    if pods.is_empty() {
        // The project may no longer permit any pods: the stream ends without a message.
        return Ok(futures::stream::empty().boxed());
    }
    let settings = state.settings.fresh().await?;
    let limit = settings
        .value("server.maxPodLogsToRender")
        .parse()
        .unwrap_or(MAX_PODS);
    if pods.len() > limit {
        return Err(ApiError::invalid(
            "max pods to view logs are reached. Please provide more granular query",
        ));
    }
    let options = LogOptions {
        container: q.container.clone().unwrap_or_default(),
        follow: q.follow.unwrap_or(false),
        previous: q.previous.unwrap_or(false),
        since_seconds: q.since_seconds.filter(|s| *s > 0),
        since_time: q.since_time.as_ref().map(|t| t.timestamp()),
        tail_lines: q.tail_lines.filter(|n| *n > 0),
    };
    let mut streams = Vec::new();
    for pod in pods {
        // If a pod's log cannot be read, its error is sent in place of the lines.
        let lines = match state.reach.live(&logs).logs(&pod, &options).await {
            Ok(lines) => lines,
            Err(e) => futures::stream::iter([Ok(failure(e.message))]).boxed(),
        };
        streams.push(lines);
    }
    let filter = Filter::new(&q);
    let lines = in_order(streams).filter(move |line| {
        std::future::ready(line.as_ref().map_or(true, |l| filter.matches(&l.content)))
    });
    Ok(ended(while_permitted(followed, lines.boxed()), until))
}

/// The lines until they end, or the permission is withdrawn: a log that is followed may go on for
/// days.
fn while_permitted(followed: Followed, lines: Lines) -> Lines {
    let clock = tokio::time::interval_at(Instant::now() + RECHECK, RECHECK);
    futures::stream::unfold(Some((followed, lines, clock)), |whole| async {
        let (followed, mut lines, mut clock) = whole?;
        loop {
            tokio::select! {
                line = lines.next() => return Some((line?, Some((followed, lines, clock)))),
                _ = clock.tick() => if let Err(refused) = still_permitted(&followed).await {
                    return Some((Err(refused), None));
                },
            }
        }
    })
    .boxed()
}

async fn still_permitted(followed: &Followed) -> Result<(), ApiError> {
    let (app, _) = followed.again().await?;
    followed.guard.logs(&app).map(drop)
}

/// The lines up to this time, with the mark of the last message.
fn ended(lines: Lines, until: Option<Timestamp>) -> Lines {
    futures::stream::unfold(Some(lines), move |lines| async move {
        let mut lines = lines?;
        match lines.next().await {
            None => {
                let last = LogEntry {
                    last: true,
                    ..entry("", String::new())
                };
                Some((Ok(last), None))
            }
            Some(Ok(line)) if until.is_some_and(|until| time_of(&line) > until) => {
                Some((Ok(LogEntry { last: true, ..line }), None))
            }
            // After an error there is no last line.
            Some(Err(e)) => Some((Err(e), None)),
            Some(line) => Some((line, Some(lines))),
        }
    })
    .boxed()
}

/// Exact, where the message's time has whole seconds.
fn time_of(line: &LogEntry) -> Timestamp {
    let exact = line.time_stamp_str.parse();
    exact.unwrap_or_else(|_| line.time_stamp.timestamp())
}

fn entry(pod: &str, content: String) -> LogEntry {
    let now = Timestamp::now();
    LogEntry {
        content,
        time_stamp: now.into(),
        last: false,
        time_stamp_str: now.to_string(),
        pod_name: pod.to_owned(),
    }
}

/// What is shown in place of a log that cannot be read: of no pod and no time, as in Argo CD.
fn failure(content: String) -> LogEntry {
    LogEntry {
        content,
        time_stamp: Time::default(),
        last: false,
        time_stamp_str: "0001-01-01T00:00:00Z".to_owned(),
        pod_name: String::new(),
    }
}

/// Lines of several pods in the order of their times, as far as all of them have arrived: one that
/// is later than the others by [`PATIENCE`] is not waited for.
fn in_order(pods: Vec<Lines>) -> Lines {
    let pods: Vec<_> = pods.into_iter().map(|lines| lines.peekable()).collect();
    futures::stream::unfold(pods, |mut pods| async move {
        let next = first(&mut pods).await?;
        let line = pods.get_mut(next)?.next().await?;
        Some((line, pods))
    })
    .boxed()
}

/// Which pod has the next line; `None` if all logs have ended.
async fn first(pods: &mut Vec<Peekable<Lines>>) -> Option<usize> {
    let mut deadline = None;
    loop {
        let waker = std::future::poll_fn(|context| {
            let mut found: Option<(usize, Option<Timestamp>)> = None;
            let mut waiting = false;
            pods.retain_mut(|lines| {
                !matches!(Pin::new(lines).poll_peek(context), Poll::Ready(None))
            });
            for (n, lines) in pods.iter_mut().enumerate() {
                match Pin::new(lines).poll_peek(context) {
                    Poll::Pending => waiting = true,
                    Poll::Ready(None) => {}
                    Poll::Ready(Some(line)) => {
                        // Errors are not held back.
                        let time = line.as_ref().ok().map(time_of);
                        if found.is_none_or(|(_, earliest)| time < earliest) {
                            found = Some((n, time));
                        }
                    }
                }
            }
            let is_over = deadline.is_some_and(|at| tokio::time::Instant::now() >= at);
            match found {
                None if pods.is_empty() => Poll::Ready(Next::Ended),
                None => Poll::Pending,
                Some((n, _)) if !waiting || is_over => Poll::Ready(Next::Pod(n)),
                Some(_) if deadline.is_none() => Poll::Ready(Next::Wait),
                Some(_) => Poll::Pending,
            }
        });
        let next = match deadline {
            None => waker.await,
            Some(at) => tokio::time::timeout_at(at, waker)
                .await
                .unwrap_or(Next::Wait),
        };
        match next {
            Next::Ended => return None,
            Next::Pod(n) => return Some(n),
            Next::Wait if deadline.is_none() => {
                deadline = Some(tokio::time::Instant::now() + PATIENCE);
            }
            Next::Wait => {}
        }
    }
}

/// What is known of the next line.
enum Next {
    Ended,
    Pod(usize),
    /// One is there, and others may be earlier.
    Wait,
}

/// The pods in the tree below the resources selected by the query.
fn pods(tree: &ApplicationTree, q: &ApplicationPodLogsQuery) -> Vec<LiveRef> {
    let is = |asked: &Option<String>, have: &str| {
        asked.as_deref().is_none_or(|a| a.is_empty() || a == have)
    };
    let meant = |r: &ResourceRef| {
        is(&q.kind, &r.kind)
            && is(&q.group, &r.group)
            && is(&q.resource_name, &r.name)
            && is(&q.namespace, &r.namespace)
    };
    let mut inside: BTreeSet<&str> = BTreeSet::new();
    // Each pass descends one level; trees are shallow.
    loop {
        let before = inside.len();
        let below = |n: &ResourceNode| {
            meant(&n.resource_ref)
                || n.parent_refs
                    .iter()
                    .any(|p| inside.contains(p.uid.as_str()))
        };
        let found: Vec<&str> = tree
            .nodes
            .iter()
            .filter(|n| below(n))
            .map(|n| n.resource_ref.uid.as_str())
            // What was not found has none: it is nobody's parent, and need not be this
            // Application's.
            .filter(|uid| !uid.is_empty())
            .collect();
        inside.extend(found);
        if inside.len() == before {
            break;
        }
    }
    let pods = tree
        .nodes
        .iter()
        .map(|n| &n.resource_ref)
        .filter(|r| r.kind == "Pod" && r.group.is_empty() && inside.contains(r.uid.as_str()));
    pods.map(|r| LiveRef {
        group: String::new(),
        version: "v1".into(),
        kind: "Pod".into(),
        namespace: r.namespace.clone(),
        name: r.name.clone(),
    })
    .collect()
}

/// Selects lines that contain a text or, with a leading `!`, lines that don't.
struct Filter {
    text: String,
    inverse: bool,
    match_case: bool,
}

impl Filter {
    fn new(q: &ApplicationPodLogsQuery) -> Self {
        let text = q.filter.as_deref().unwrap_or_default();
        let (text, inverse) = text
            .strip_prefix('!')
            .map_or((text, false), |rest| (rest, true));
        let match_case = q.match_case.unwrap_or(false);
        Self {
            text: if match_case {
                text.to_owned()
            } else {
                text.to_lowercase()
            },
            inverse,
            match_case,
        }
    }

    fn matches(&self, line: &str) -> bool {
        let contains = if self.match_case {
            line.contains(&self.text)
        } else {
            line.to_lowercase().contains(&self.text)
        };
        self.text.is_empty() || contains != self.inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt as _;
    use prost::Message as _;
    use serde_json::json;

    fn line(pod: &str, second: i64) -> Result<LogEntry, ApiError> {
        let time = Timestamp::from_second(second).expect("a time");
        Ok(LogEntry {
            time_stamp: time.into(),
            time_stamp_str: time.to_string(),
            ..entry(pod, format!("{pod}{second}"))
        })
    }

    #[test]
    fn a_time_that_is_none_is_told_in_gos_words() {
        assert!(until_time("2026-01-02T03:04:05Z").is_ok());
        let e = until_time("bad").expect_err("it is no time");
        assert_eq!(
            e.message,
            "invalid untilTime parameter value: parsing time \"bad\" as \
             \"2006-01-02T15:04:05.999999999Z07:00\": cannot parse \"bad\" as \"2006\""
        );
    }

    /// A client of Go refuses a message that lacks a field, and reads the page's JSON as Go has it.
    #[test]
    fn a_log_that_cannot_be_read_has_every_field() {
        let shown = failure("no such container".into());
        let sent = shown.encode_to_vec();
        // Field 2, with nothing in it.
        assert!(sent.windows(2).any(|two| two == [0x12, 0]), "{sent:?}");
        let shown = serde_json::to_value(shown).expect("JSON");
        assert_eq!(shown["timeStamp"], serde_json::Value::Null);
        let shown = serde_json::to_value(entry("web", String::new())).expect("JSON");
        assert!(shown["timeStamp"].is_string(), "{shown}");
    }

    #[tokio::test(start_paused = true)]
    async fn lines_of_several_pods_are_in_order() {
        let ready = |lines: Vec<_>| futures::stream::iter(lines).boxed();
        let until = Timestamp::from_second(5).expect("a time");
        let late = futures::stream::once(async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            line("c", 2)
        });
        let pods = || {
            vec![
                ready(vec![line("a", 1), line("a", 3), line("a", 6)]),
                ready(vec![line("b", 2), line("b", 4), line("b", 7)]),
            ]
        };
        let contents = |lines: Lines| async {
            let all: Vec<LogEntry> = lines.try_collect().await.expect("no error");
            all.into_iter()
                .map(|l| (l.content, l.last))
                .collect::<Vec<_>>()
        };
        let said = |words: &[&str]| -> Vec<(String, bool)> {
            let count = words.len();
            let word = |(n, w): (usize, &&str)| ((*w).to_owned(), n + 1 == count);
            words.iter().enumerate().map(word).collect()
        };
        assert_eq!(
            contents(ended(in_order(pods()), None)).await,
            said(&["a1", "b2", "a3", "b4", "a6", "b7", ""])
        );
        assert_eq!(
            contents(ended(in_order(pods()), Some(until))).await,
            said(&["a1", "b2", "a3", "b4", "a6"])
        );
        // A silent pod does not hold back the others.
        let mut pods = pods();
        pods.push(late.boxed());
        assert_eq!(
            contents(ended(in_order(pods), None)).await,
            said(&["a1", "b2", "a3", "b4", "a6", "b7", "c2", ""])
        );
        let failing = vec![ready(vec![line("a", 1), Err(ApiError::denied())])];
        let all: Vec<_> = ended(in_order(failing), None).collect().await;
        assert_eq!(
            (all.len(), all[0].is_ok(), all[1].is_ok()),
            (2, true, false)
        );
    }

    #[test]
    fn pods_below_a_resource() {
        let tree: ApplicationTree = serde_json::from_value(json!({"nodes": [
            {"kind": "Deployment", "group": "apps", "name": "web", "uid": "1"},
            {"kind": "ReplicaSet", "group": "apps", "name": "web-1", "uid": "2", "parentRefs": [{"uid": "1"}]},
            {"kind": "Pod", "name": "web-1-a", "uid": "3", "parentRefs": [{"uid": "2"}]},
            {"kind": "Pod", "name": "other", "uid": "4"},
            {"kind": "Job", "group": "batch", "name": "unfound"},
            {"kind": "Pod", "name": "nobodys", "parentRefs": [{"uid": ""}]},
            {"kind": "Pod", "name": "unfound", "uid": ""},
            {"kind": "Pod", "name": "below", "uid": "5", "parentRefs": [{"uid": ""}]}
        ]}))
        .expect("a tree");
        let named = |q: serde_json::Value| {
            pods(&tree, &serde_json::from_value(q).expect("a query"))
                .into_iter()
                .map(|p| p.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            named(json!({"kind": "Deployment", "group": "apps", "resourceName": "web"})),
            ["web-1-a"]
        );
        assert_eq!(
            named(json!({"kind": "Pod", "resourceName": "other"})),
            ["other"]
        );
        assert_eq!(named(json!({})), ["web-1-a", "other", "below"]);
        // Without a uid, nothing is known to be there, or below something.
        for kind in ["Job", "Pod"] {
            let q = json!({"kind": kind, "resourceName": "unfound"});
            assert!(named(q).is_empty(), "{kind}");
        }
    }

    #[test]
    fn filters() {
        for (filter, case, line, want) in [
            ("", false, "x", true),
            ("err", false, "An ERROR", true),
            ("err", true, "An ERROR", false),
            ("!err", false, "An ERROR", false),
        ] {
            let q = ApplicationPodLogsQuery {
                filter: Some(filter.into()),
                match_case: Some(case),
                ..Default::default()
            };
            assert_eq!(Filter::new(&q).matches(line), want, "{filter} {line}");
        }
    }
}
