//! What an Application says about itself where Argo CD is silent: why it is OutOfSync after a
//! successful sync, and which kinds its tree may lack.

use super::stage::{Stage, conditions, stage};
use crate::scripts::wire::Plan;
use serde_json::Value;

const WARNING: &str = "OutOfSyncWarning";

/// The explanation of the first Application.
async fn explanation(stage: &Stage<'_>) -> Vec<String> {
    conditions(&stage.first().await, WARNING)
}

fn still_differs(reason: &str) -> Vec<String> {
    vec![format!(
        "The last sync succeeded, but 1 resource still differs from Git: {reason}"
    )]
}

/// Changes the color of every ConfigMap on its way to the API server.
const RED: &str = r#"create
  apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicy
  metadata: {name: red-$APP}
  spec:
    failurePolicy: Fail
    reinvocationPolicy: Never
    matchConstraints:
      namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
      resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
    mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{data: {'color': 'red'}}"}
  ---
  apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicyBinding
  metadata: {name: red-$APP}
  spec: {policyName: red-$APP}
pass 10s
"#;

#[test]
fn what_is_changed_on_the_way_to_the_api_server_is_named_until_it_is_as_in_git() {
    stage(Plan::default(), async |stage| {
        stage.play(RED).await;
        stage
            .play("commit\n  configmap settings color=blue\napp\nsync")
            .await;
        let app = stage.first().await;
        assert_eq!(
            (
                &app["status"]["sync"]["status"],
                &app["status"]["operationState"]["phase"]
            ),
            (&"OutOfSync".into(), &"Succeeded".into()),
            "{}",
            app["status"]
        );
        let by_server = "probably by the API server or an admission webhook";
        let reason = format!("ConfigMap/settings: .data.color is changed, {by_server}");
        assert_eq!(explanation(stage).await, still_differs(&reason));
        // It is the same condition as long as it is true.
        stage.play("refresh\npass 10m\nrefresh").await;
        let later = stage.first().await;
        assert_eq!(
            later["status"]["conditions"], app["status"]["conditions"],
            "{}",
            later["status"]
        );
        stage
            .play("delete MutatingAdmissionPolicyBinding.v1.admissionregistration.k8s.io/red-$APP\npass 10s\nsync")
            .await;
        let synced = stage.first().await;
        assert_eq!(
            (
                &synced["status"]["sync"]["status"],
                synced["status"].get("conditions")
            ),
            (&"Synced".into(), None),
            "{}",
            synced["status"]
        );
    });
}

#[test]
fn a_field_that_the_kind_does_not_have_is_named() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  deployment web spec.colour=blue options=Validate=false\napp\nsync")
            .await;
        let told = explanation(stage).await;
        assert!(
            matches!(told.as_slice(), [one] if one.contains("Deployment/web: .spec.colour ")),
            "{told:?}"
        );
    });
}

#[test]
fn who_changed_it_is_named_and_no_value_is() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  secret safe k=Q0FOQVJZLUE=\napp\nsync")
            .await;
        assert_eq!(explanation(stage).await, Vec::<String>::new());
        stage
            .play("edit secret/safe data.k=Q0FOQVJZLUI= by=tuner\nrefresh")
            .await;
        let told = explanation(stage).await;
        assert_eq!(
            told,
            still_differs("Secret/safe: .data.k is owned by tuner")
        );
        // A sync that is about something else does not explain it.
        stage
            .play("commit\n  secret safe k=Q0FOQVJZLUE= l=Q0FOQVJZLUM=\nrefresh")
            .await;
        assert_eq!(explanation(stage).await, Vec::<String>::new());
    });
}

#[test]
fn what_was_not_pruned_or_left_out_is_named() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  configmap one\n  configmap two\napp\nsync\ncommit\n  configmap one\nsync")
            .await;
        let reason = "ConfigMap/two: it is not in Git, and was ignored (requires pruning)";
        assert_eq!(explanation(stage).await, still_differs(reason));
        stage
            .play("commit\n  configmap one k=v\n  configmap three\nsync only=ConfigMap/one prune")
            .await;
        let told = explanation(stage).await;
        let left_out = "ConfigMap/three: the sync was limited to other resources; \
                        ConfigMap/two: it is not in Git, and the sync was limited to other resources";
        assert!(
            matches!(told.as_slice(), [one] if one.ends_with(left_out)),
            "{told:?}"
        );
    });
}

#[test]
fn many_resources_are_counted() {
    stage(Plan::default(), async |stage| {
        let names = ["a", "b", "c", "d", "e"];
        let all: String = names
            .iter()
            .map(|name| format!("\n  configmap {name} k=v"))
            .collect();
        stage.play(&format!("commit{all}\napp\nsync")).await;
        let deleted: String = names
            .iter()
            .map(|name| format!("delete configmap/{name}\n"))
            .collect();
        stage.play(&format!("{deleted}refresh")).await;
        let gone = "it was applied, and is no longer in the cluster";
        let expected = format!(
            "The last sync succeeded, but 5 resources still differ from Git: \
             ConfigMap/a: {gone}; ConfigMap/b: {gone}; ConfigMap/c: {gone}; and 2 more"
        );
        assert_eq!(explanation(stage).await, [expected]);
    });
}

/// The kinds that the first Application's tree may lack, with the reasons.
fn unreadable(stage: &Stage<'_>) -> Vec<(String, String)> {
    let (place, name) = (&stage.play.ground.namespace, &stage.play.apps[0]);
    let tree = stage.play.ground.tree(place, name).expect("a tree");
    let kinds = tree.unreadable_kinds.iter();
    kinds
        .map(|kind| (kind.kind.clone(), kind.message.clone()))
        .collect()
}

#[test]
fn a_process_that_never_read_a_kind_shows_what_is_known() {
    let refusal = (
        "GET /api/v1/configmaps".to_owned(),
        403,
        "configmaps is forbidden".to_owned(),
    );
    stage(Plan::default(), async |stage| {
        let objects = "commit\n  configmap settings\n  deployment web\n  secret moved\n  \
                       secret own\napp\nsync\npass 30s";
        stage.play(objects).await;
        let synced = stage.first().await["status"]["sync"]["status"].clone();
        assert_eq!(synced, Value::from("Synced"));
        let mark = "annotation:argocd.argoproj.io/tracking-id=other:/Secret:$NS/moved";
        stage.play(&format!("edit secret/moved {mark}")).await;
        stage.wire.plan(|plan| plan.refusals.push(refusal));
        stage.play("restart\npass 1m").await;
        let status = stage.first().await["status"].clone();
        assert_eq!(status["sync"]["status"], Value::from("Unknown"), "{status}");
        let known = status["resources"].as_array().expect("a list");
        assert!(known.iter().any(|r| r["name"] == "moved"), "{status}");
        let found = unreadable(stage);
        assert!(
            matches!(found.as_slice(), [(kind, why)] if kind == "ConfigMap" && why.contains("configmaps is forbidden")),
            "{found:?}"
        );
        let (place, name) = (&stage.play.ground.namespace, &stage.play.apps[0]);
        let tree = stage.play.ground.tree(place, name).expect("a tree");
        let nodes = tree.nodes.iter();
        let shown: Vec<(&str, bool, bool)> = nodes
            .map(|node| {
                let reference = &node.resource_ref;
                let is_found = !reference.uid.is_empty();
                (reference.kind.as_str(), is_found, node.health.is_some())
            })
            .collect();
        assert!(shown.contains(&("ConfigMap", false, false)), "{shown:?}");
        assert!(shown.contains(&("Deployment", true, true)), "{shown:?}");
        // With what the Deployment owns.
        assert!(shown.iter().any(|(kind, ..)| *kind == "Pod"), "{shown:?}");
        // What another Application tracks is not shown.
        let secrets = tree
            .nodes
            .iter()
            .filter(|n| n.resource_ref.kind == "Secret");
        let secrets: Vec<&str> = secrets.map(|n| n.resource_ref.name.as_str()).collect();
        assert_eq!(secrets, ["own"]);
    });
}

#[test]
fn a_tree_says_which_kinds_could_not_be_read() {
    let web = "commit\n  deployment web\napp\nsync\npass 30s";
    let refused = Plan {
        refusals: vec![(
            "GET /api/v1/pods".to_owned(),
            403,
            "pods is forbidden".to_owned(),
        )],
        ..Plan::default()
    };
    stage(refused, async |stage| {
        stage.play(web).await;
        let found = unreadable(stage);
        assert!(
            matches!(found.as_slice(), [(kind, why)] if kind == "Pod" && why.contains("pods is forbidden")),
            "{found:?}"
        );
        let status = stage.first().await["status"]["sync"]["status"].clone();
        assert_eq!(status, Value::from("Synced"), "it has no Pod of its own");
    });
    stage(Plan::default(), async |stage| {
        stage.play(web).await;
        let found = unreadable(stage);
        assert!(found.is_empty(), "{found:?}");
    });
}
