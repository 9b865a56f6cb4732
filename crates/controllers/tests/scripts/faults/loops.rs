//! Loops: a change that is reverted again and again is synced at most five times in half a minute,
//! then with increasing delay, and a condition reports it.

use super::{
    cases, side_by_side,
    stage::{Stage, conditions, stage},
};
use crate::scripts::wire::Plan;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Syncs expected in the first half minute: the delays between them are 0, 2, 6 and 18 seconds.
const FEW: usize = 5;
const FIRST: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(600);
/// How soon someone reverts it, at first and later, when syncs are minutes apart.
const SOON: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_secs(3);

/// Its name; the content of Git in addition to a ConfigMap `bystander`; what someone does
/// repeatedly.
struct Case(&'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    Case(
        "a value that is changed back",
        "configmap a k=v",
        &["edit configmap/a data.k=w"],
    ),
    Case(
        "a key that is taken away",
        "configmap a k=v",
        &["edit configmap/a data.k=null"],
    ),
    Case(
        "an object that is deleted",
        "configmap a k=v",
        &["delete configmap/a"],
    ),
    Case(
        "a secret that is rotated",
        "secret a k=dg==",
        &["edit secret/a data.k=dw=="],
    ),
    Case(
        "an autoscaler",
        "deployment web replicas=2",
        &["edit deployment/web spec.replicas=3"],
    ),
    Case(
        "an image that is updated",
        "deployment web",
        &["edit deployment/web image=v9"],
    ),
    Case(
        "a deployment that is deleted",
        "deployment web",
        &["delete deployment/web"],
    ),
    Case(
        "a label that is taken away",
        "configmap a label:team=x",
        &["edit configmap/a label:team=y"],
    ),
    Case(
        "an annotation",
        "configmap a annotation:example.org/n=1",
        &["edit configmap/a annotation:example.org/n=2"],
    ),
    Case(
        "a service",
        "service web",
        &["edit service/web spec.selector.app=other"],
    ),
    Case("a role", "role a", &["delete role/a"]),
    Case(
        "two objects",
        "configmap a k=v\n  configmap b k=v",
        &["edit configmap/a data.k=w", "edit configmap/b data.k=w"],
    ),
    Case(
        "one after the other",
        "configmap a k=v\n  configmap b k=v",
        &["delete configmap/a", "delete configmap/b"],
    ),
    Case(
        "with waves",
        "configmap a k=v wave=1\n  configmap b wave=2",
        &["edit configmap/a data.k=w"],
    ),
    Case(
        "with a hook",
        "configmap a k=v\n  job after hook=PostSync delete=HookSucceeded",
        &["edit configmap/a data.k=w"],
    ),
    Case(
        "a stateful set",
        "statefulset db replicas=1",
        &["edit statefulset/db spec.replicas=2"],
    ),
    Case(
        "a daemon set",
        "daemonset agent",
        &["edit daemonset/agent image=v9"],
    ),
    Case(
        "a cron job",
        "cronjob nightly",
        &["edit cronjob/nightly spec.schedule='1 1 1 1 *'"],
    ),
    Case(
        "a quota",
        "quota most",
        &["edit quota/most spec.hard.pods='1'"],
    ),
    Case(
        "a service account",
        "serviceaccount robot",
        &["delete serviceaccount/robot"],
    ),
];

/// The number of syncs of the Application so far.
fn syncs(stage: &Stage) -> usize {
    stage.wire.started()
}

/// Someone reverts every sync until this time.
async fn fight(stage: &mut Stage<'_>, deeds: &[&str], pause: Duration, until: Instant) {
    while Instant::now() < until {
        for deed in deeds {
            stage.act(deed).await;
        }
        sleep(pause).await;
    }
}

async fn gives_up(
    stage: &mut Stage<'_>,
    case: &Case,
    policy: &str,
    expected: &str,
) -> Result<(), String> {
    let Case(name, objects, deeds) = case;
    let policy = format!("app\n  syncPolicy: {{automated: {policy}}}");
    stage
        .play(&format!(
            "commit\n  configmap bystander\n  {objects}\n{policy}\npass 30s"
        ))
        .await;
    let begun = syncs(stage);
    fight(stage, deeds, SOON, Instant::now() + FIRST).await;
    let first = syncs(stage) - begun;
    if !(1..=FEW).contains(&first) {
        return Err(format!("{name}: {first} syncs in the first {FIRST:?}"));
    }
    fight(stage, deeds, LATER, Instant::now() + LONG).await;
    let second = syncs(stage) - begun - first;
    // Every 162 seconds, and then every 300.
    if second > FEW {
        return Err(format!("{name}: {second} more syncs in {LONG:?}"));
    }
    let told = conditions(&stage.first().await, "SyncError");
    if !matches!(told.as_slice(), [one] if one.contains(expected)) {
        return Err(format!("{name}: nothing is said of it: {told:?}"));
    }
    // A new revision is synced immediately.
    let before = syncs(stage);
    stage
        .play(&format!(
            "commit\n  configmap bystander new=yes\n  {objects}\npass 10s"
        ))
        .await;
    let told = conditions(&stage.first().await, "SyncError");
    if syncs(stage) == before || !told.is_empty() {
        return Err(format!(
            "{name}: a new revision began {} syncs; said: {told:?}",
            syncs(stage) - before
        ));
    }
    Ok(())
}

#[test]
fn whoever_changes_it_back_is_not_fought_for_ever() {
    let cases = cases(CASES, |case| case.0);
    let healed = async |s: &mut Stage<'_>, case| {
        gives_up(s, case, "{prune: true, selfHeal: true}", "self-heal").await
    };
    let wrong = side_by_side(&cases, |case| {
        stage(Plan::default(), async |s| healed(s, case).await)
            .err()
            .into_iter()
            .collect()
    });
    println!("loops: {} cases of {}", cases.len(), CASES.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Whatever makes the controller consider a sync untried: here someone changes the status.
const FORGOTTEN: &[&str] = &[
    "edit app status.operationState.syncResult.revision=another",
    "edit configmap/a data.k=w",
];

#[test]
fn the_same_automatic_sync_is_not_repeated_for_ever_without_self_heal_either() {
    let case = Case("a result that is changed", "configmap a k=v", FORGOTTEN);
    let told = "was started";
    let gave_up = stage(Plan::default(), async |s| {
        gives_up(s, &case, "{}", told).await
    });
    assert_eq!(gave_up, Ok(()));
}

#[test]
fn a_new_process_knows_how_often_the_same_automatic_sync_was_started() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  configmap a k=v\napp\n  syncPolicy: {automated: {}}\npass 30s")
            .await;
        fight(stage, FORGOTTEN, SOON, Instant::now() + FIRST).await;
        let (before, told) = (syncs(stage), conditions(&stage.first().await, "SyncError"));
        assert!(
            before > 2 && matches!(told.as_slice(), [one] if one.contains("was started")),
            "{before} syncs: {told:?}"
        );
        stage.play("restart").await;
        // A process that counted anew would start three in this time.
        let until = Instant::now() + Duration::from_secs(15);
        fight(stage, FORGOTTEN, SOON, until).await;
        assert_eq!(
            syncs(stage),
            before,
            "{:?}",
            stage.written("/applications/")
        );
        assert_eq!(conditions(&stage.first().await, "SyncError"), told);
    });
}

/// Patches of Applications.
fn patches(stage: &Stage) -> usize {
    stage
        .written("PATCH ")
        .iter()
        .filter(|write| write.contains("/applications/"))
        .count()
}

#[test]
fn a_specification_is_written_back_in_its_normal_form_once() {
    stage(Plan::default(), async |stage| {
        let empty = "{project: '', syncPolicy: {retry: null, syncOptions: []}, source: {directory: {recurse: false}, helm: {valueFiles: []}}}";
        stage
            .play(&format!("commit\n  configmap one\napp\n  {empty}"))
            .await;
        let spec = stage.first().await["spec"].clone();
        let parts = [
            spec.get("syncPolicy"),
            spec["source"].get("directory"),
            spec["source"].get("helm"),
        ];
        assert_eq!(
            (&spec["project"], parts),
            (&"default".into(), [None; 3]),
            "{spec}"
        );
        assert_eq!(
            patches(stage),
            1,
            "together with what was compared: {:?}",
            stage.written("")
        );
        // Shorter than the time between two refreshes.
        stage.play("pass 1m").await;
        assert_eq!(
            patches(stage),
            1,
            "nothing calls for another: {:?}",
            stage.written("")
        );
        stage.play("refresh").await;
        assert_eq!(
            patches(stage),
            2,
            "it takes the request away: {:?}",
            stage.written("")
        );
        // If something else is wrong it stays as written.
        stage.play("app\n  {project: '', syncPolicy: {}, destination: {server: 'https://nowhere.example.org'}}\nrefresh").await;
        let spec = stage.first().await["spec"].clone();
        assert_eq!(
            (&spec["project"], &spec["syncPolicy"]),
            (&"".into(), &serde_json::json!({}))
        );
    });
}

/// The parent does not consider it a change that it would have to revert.
#[test]
fn a_parent_leaves_its_child_in_normal_form() {
    stage(Plan::default(), async |stage| {
        let source =
            "{repoURL: $REPO, path: child, targetRevision: HEAD, directory: {recurse: false}}";
        let destination = "{server: 'https://kubernetes.default.svc', namespace: $NS}";
        let spec = format!(
            "{{project: '', syncPolicy: {{}}, source: {source}, destination: {destination}}}"
        );
        let child = format!(
            "  ---\n  apiVersion: argoproj.io/v1alpha1\n  kind: Application\n  metadata: {{name: $APP-child, namespace: $ARGOCD}}\n  spec: {spec}\n  ---"
        );
        let policy = "syncPolicy: {automated: {selfHeal: true}}";
        stage
            .play(&format!(
                "commit\n{child}\n  /child\n  configmap one\napp\n  {policy}\npass 10m"
            ))
            .await;
        let (parent, path) = (stage.first().await, format!("{}-child", stage.play.apps[0]));
        let child = stage.app(&path).await;
        assert_eq!(
            (&child["spec"]["project"], child["spec"].get("syncPolicy")),
            (&"default".into(), None),
            "{child}"
        );
        assert_eq!(
            parent["status"]["sync"]["status"], "Synced",
            "{}",
            parent["status"]
        );
        assert_eq!(
            stage.wire.started(),
            1,
            "it was synced again: {:?}",
            stage.written("/applications/")
        );
    });
}

/// Its comparison expires every two or three minutes and is written then, and not because that was
/// written.
#[test]
fn what_cannot_be_compared_is_written_when_it_expires() {
    stage(Plan::default(), async |stage| {
        let elsewhere = "sourceRepos: ['https://elsewhere.example.org/*']";
        stage
            .play(&format!(
                "commit\n  configmap one\nproject\n  {elsewhere}\napp\n  project: $APP"
            ))
            .await;
        let before = patches(stage);
        stage.play("pass 20m").await;
        let app = stage.first().await;
        assert_eq!(
            conditions(&app, "InvalidSpecError").len(),
            1,
            "{}",
            app["status"]
        );
        let written = patches(stage) - before;
        assert!((5..=10).contains(&written), "{written}");
    });
}
