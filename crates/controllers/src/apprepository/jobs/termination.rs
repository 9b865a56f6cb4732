//! What the pods of a Job said when an attempt failed: a Job itself tells only that it failed, and
//! its pods are gone by then.
//!
//! Main function: [`message`].

use super::{Value, object};
use tiphys_cluster::{
    Cluster,
    request::{Call, encode},
};

/// Characters that are shown.
const SHOWN: usize = 1_000;

/// Empty if nothing is known: pods are gone, may not be read, or said nothing.
pub(super) async fn message(cluster: &Cluster, job: &Value) -> String {
    let of = |field: &str| job["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (encode(of("namespace")), encode(of("name")));
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let mut call = Call::get(path);
    call.query = format!("labelSelector=job-name%3D{name}");
    match cluster.http().json::<Value>(&call).await {
        Ok(pods) => last(&pods),
        Err(error) => {
            tracing::debug!(job = of("name"), %error, "what its pods said is not known");
            String::new()
        }
    }
}

/// What the container that failed last has said.
fn last(pods: &Value) -> String {
    let all = pods["items"].as_array().into_iter().flatten();
    let containers = all.filter_map(|pod| pod["status"]["containerStatuses"].as_array());
    let ended = containers.flatten().flat_map(|container| {
        ["/state/terminated", "/lastState/terminated"].map(|place| container.pointer(place))
    });
    let failed = ended.flatten().filter(|end| end["exitCode"] != 0);
    let said = failed.filter_map(|end| {
        let said = end["message"].as_str()?.trim();
        let said = said.strip_prefix("Error: ").unwrap_or(said);
        (!said.is_empty()).then(|| (object::time(end, "/finishedAt"), said))
    });
    let (_, said) = said.max_by_key(|(at, _)| *at).unwrap_or_default();
    said.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_container_that_failed_last_counts() {
        let ended = |at: &str, code: i64, said: &str| json!({"terminated": {"finishedAt": at, "exitCode": code, "message": said}});
        let container = |state: Value, before: Value| json!({"state": state, "lastState": before});
        let pod = |containers: Value| json!({"status": {"containerStatuses": containers}});
        let (one, two, three) = (
            "2026-01-01T00:00:01Z",
            "2026-01-01T00:00:02Z",
            "2026-01-01T00:00:03Z",
        );
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        for (pods, wanted) in [
            (json!([]), ""),
            (json!([pod(json!([]))]), ""),
            (json!([{"status": {}}]), ""),
            (
                json!([pod(json!([container(
                    ended(one, 1, "Error: a\n"),
                    json!({})
                )]))]),
                "a",
            ),
            // As long as it is tried again.
            (
                json!([pod(json!([container(waits, ended(one, 1, "b"))]))]),
                "b",
            ),
            // One that succeeded has nothing to say about a failure.
            (
                json!([pod(json!([container(
                    ended(three, 0, "fine"),
                    ended(one, 1, "c")
                )]))]),
                "c",
            ),
            (
                json!([
                    pod(json!([container(ended(two, 1, "later"), json!({}))])),
                    pod(json!([container(ended(one, 1, "sooner"), json!({}))])),
                    pod(json!([container(ended(three, 1, " "), json!({}))])),
                ]),
                "later",
            ),
        ] {
            assert_eq!(last(&json!({"items": pods})), wanted, "{pods}");
        }
        let long = "x".repeat(5_000);
        let pods = json!({"items": [pod(json!([container(ended(one, 1, &long), json!({}))]))]});
        assert_eq!(last(&pods).len(), SHOWN);
    }
}
