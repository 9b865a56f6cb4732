//! PodLogs: log lines of the pods that belong to a resource of the Application.

use super::live::tree_of;
use crate::{
    ApiError,
    access::{Get, Guard, find},
    ports::{LiveRef, LogOptions},
    server::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{
    resource::{ApplicationTree, ResourceNode, ResourceRef},
    rpc::application::{ApplicationPodLogsQuery, LogEntry},
};

const MAX_PODS: usize = 10;

pub async fn pod_logs(
    state: Arc<State>,
    guard: Guard,
    mut q: ApplicationPodLogsQuery,
) -> Result<BoxStream<'static, Result<LogEntry, ApiError>>, ApiError> {
    if let Some(pod) = q.pod_name.take().filter(|p| !p.is_empty()) {
        (q.kind, q.resource_name) = (Some("Pod".into()), Some(pod));
    }
    let (app, project) = find::<Get>(
        &state,
        &guard,
        q.app_namespace.as_deref(),
        &q.name,
        q.project.as_deref(),
    )
    .await?;
    let logs = guard.logs(&app)?;
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
        tail_lines: q.tail_lines.filter(|n| *n > 0),
    };
    let mut streams = Vec::new();
    for pod in pods {
        let name = pod.name.clone();
        // If a pod's log cannot be read, its error is sent in place of the lines.
        let lines = match state.reach.live(&logs).logs(&pod, &options).await {
            Ok(lines) => lines,
            Err(e) => futures::stream::iter([Ok(entry(&name, e.message))]).boxed(),
        };
        streams.push(lines);
    }
    let filter = Filter::new(&q);
    let lines = futures::stream::select_all(streams).filter(move |line| {
        std::future::ready(line.as_ref().map_or(true, |l| filter.matches(&l.content)))
    });
    let last = futures::stream::once(async {
        Ok(LogEntry {
            last: true,
            ..entry("", String::new())
        })
    });
    Ok(lines.chain(last).boxed())
}

fn entry(pod: &str, content: String) -> LogEntry {
    let now = Timestamp::now();
    LogEntry {
        content,
        time_stamp: Some(now.into()),
        last: false,
        time_stamp_str: now.to_string(),
        pod_name: pod.to_owned(),
    }
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
    use serde_json::json;

    #[test]
    fn pods_below_a_resource() {
        let tree: ApplicationTree = serde_json::from_value(json!({"nodes": [
            {"kind": "Deployment", "group": "apps", "name": "web", "uid": "1"},
            {"kind": "ReplicaSet", "group": "apps", "name": "web-1", "uid": "2", "parentRefs": [{"uid": "1"}]},
            {"kind": "Pod", "name": "web-1-a", "uid": "3", "parentRefs": [{"uid": "2"}]},
            {"kind": "Pod", "name": "other", "uid": "4"}
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
        assert_eq!(named(json!({})), ["web-1-a", "other"]);
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
