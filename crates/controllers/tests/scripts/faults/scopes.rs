//! A definition that someone else brings while a sync waits: the kind gets a scope that the project
//! does not permit, or the one that it does.

use super::stage::stage;
use crate::scripts::wire::Plan;
use serde_json::Value;

const SCRIPT: &str = "
commit
  job before sleep=25 hook=PreSync
  Gizmo small-$APP options=SkipDryRunOnMissingResource=true
project
  PERMITTED
app
  project: $APP
sync
create crd gizmos spec.scope=SCOPE
pass 1m
";

const NAMESPACED_ONLY: &str = "clusterResourceWhitelist: []";
const CLUSTER_WIDE_ONLY: &str = "{clusterResourceWhitelist: [{group: '*', kind: '*'}], \
     namespaceResourceBlacklist: [{group: $APP.example.org, kind: '*'}]}";

#[test]
fn s25_a_definition_that_comes_during_a_sync() {
    for (permitted, scope, made) in [
        (NAMESPACED_ONLY, "Cluster", false),
        (NAMESPACED_ONLY, "Namespaced", true),
        (CLUSTER_WIDE_ONLY, "Namespaced", false),
        (CLUSTER_WIDE_ONLY, "Cluster", true),
    ] {
        stage(Plan::default(), async |stage| {
            let script = SCRIPT
                .replace("PERMITTED", permitted)
                .replace("SCOPE", scope);
            stage.play(&script).await;
            let name = &stage.play.apps[0];
            let app = stage.first().await;
            let state = &app["status"]["operationState"];
            let phase = if made { "Succeeded" } else { "Failed" };
            assert_eq!(state["phase"], phase, "{scope}: {state}");
            if !made {
                let why =
                    format!("resource {name}.example.org:Gizmo is not permitted in project {name}");
                assert_eq!(
                    state["message"],
                    format!("one or more objects failed to apply, reason: {why}")
                );
            }
            let path = format!("/apis/{name}.example.org/v1/gizmos");
            let found = stage.play.ground.find(&path).await.unwrap_or_default();
            let gizmos = found["items"].as_array().map_or(0, Vec::len);
            assert_eq!(gizmos, usize::from(made), "{scope}: {found}");
            let results = state["syncResult"]["resources"].as_array();
            let told = results.into_iter().flatten().find(|r| r["kind"] == "Gizmo");
            let status = told.map(|told| &told["status"]);
            let expected = Value::from(if made { "Synced" } else { "SyncFailed" });
            assert_eq!(status, Some(&expected), "{scope}: {state}");
        });
    }
}
