//! Loops: what is changed back again and again is synced at most five times in half a minute, then ever more rarely, and a condition says so.

use super::{
    side_by_side, some,
    stage::{Stage, conditions, stage},
};
use crate::wire::Plan;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Syncs that a first half minute may see: the pauses between them are 0, 2, 6 and 18 seconds.
const FEW: usize = 5;
const FIRST: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(600);
/// How soon somebody changes it back.
const OPPONENT: Duration = Duration::from_millis(500);

/// Its name; what is in Git, beside a map `bystander`; what somebody does again and again.
struct Case(&'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    Case("a value that is changed back", "configmap a k=v", &["edit configmap/a data.k=w"]),
    Case("a key that is taken away", "configmap a k=v", &["edit configmap/a data.k=null"]),
    Case("an object that is deleted", "configmap a k=v", &["delete configmap/a"]),
    Case("a secret that is rotated", "secret a k=dg==", &["edit secret/a data.k=dw=="]),
    Case("an autoscaler", "deployment web replicas=2", &["edit deployment/web spec.replicas=3"]),
    Case("an image that is updated", "deployment web", &["edit deployment/web image=v9"]),
    Case("a deployment that is deleted", "deployment web", &["delete deployment/web"]),
    Case("a label that is taken away", "configmap a label:team=x", &["edit configmap/a label:team=y"]),
    Case("an annotation", "configmap a annotation:example.org/n=1", &["edit configmap/a annotation:example.org/n=2"]),
    Case("a service", "service web", &["edit service/web spec.selector.app=other"]),
    Case("a role", "role a", &["delete role/a"]),
    Case("two objects", "configmap a k=v\n  configmap b k=v", &["edit configmap/a data.k=w", "edit configmap/b data.k=w"]),
    Case("one after the other", "configmap a k=v\n  configmap b k=v", &["delete configmap/a", "delete configmap/b"]),
    Case("with waves", "configmap a k=v wave=1\n  configmap b wave=2", &["edit configmap/a data.k=w"]),
    Case("with a hook", "configmap a k=v\n  job after hook=PostSync delete=HookSucceeded", &["edit configmap/a data.k=w"]),
    Case("a stateful set", "statefulset db replicas=1", &["edit statefulset/db spec.replicas=2"]),
    Case("a daemon set", "daemonset agent", &["edit daemonset/agent image=v9"]),
    Case("a cron job", "cronjob nightly", &["edit cronjob/nightly spec.schedule='1 1 1 1 *'"]),
    Case("a quota", "quota most", &["edit quota/most spec.hard.pods='1'"]),
    Case("a service account", "serviceaccount robot", &["delete serviceaccount/robot"]),
];

/// Syncs of the Application's whole life.
fn syncs(stage: &Stage) -> usize {
    stage.wire.started()
}

/// Somebody changes it back until this moment, whenever it was changed.
async fn fight(stage: &mut Stage<'_>, deeds: &[&str], until: Instant) {
    while Instant::now() < until {
        for deed in deeds {
            stage.act(deed).await;
        }
        sleep(OPPONENT).await;
    }
}

async fn gives_up(stage: &mut Stage<'_>, case: &Case) -> Result<(), String> {
    let Case(name, objects, deeds) = case;
    let policy = "app\n  syncPolicy: {automated: {prune: true, selfHeal: true}}";
    stage.play(&format!("commit\n  configmap bystander\n  {objects}\n{policy}\npass 30s")).await;
    let begun = syncs(stage);
    fight(stage, deeds, Instant::now() + FIRST).await;
    let first = syncs(stage) - begun;
    if !(1..=FEW).contains(&first) {
        return Err(format!("{name}: {first} syncs in the first {FIRST:?}"));
    }
    fight(stage, deeds, Instant::now() + LONG).await;
    let second = syncs(stage) - begun - first;
    // Every 162 seconds, and then every 300.
    if second > FEW {
        return Err(format!("{name}: {second} more syncs in {LONG:?}"));
    }
    let told = conditions(&stage.first().await, "SyncError");
    if !matches!(told.as_slice(), [one] if one.contains("self-heal")) {
        return Err(format!("{name}: nothing is said of it: {told:?}"));
    }
    // A new revision is another matter.
    let before = syncs(stage);
    stage.play(&format!("commit\n  configmap bystander new=yes\n  {objects}\npass 10s")).await;
    let told = conditions(&stage.first().await, "SyncError");
    if syncs(stage) == before || !told.is_empty() {
        return Err(format!("{name}: a new revision began {} syncs; said: {told:?}", syncs(stage) - before));
    }
    Ok(())
}

#[test]
fn whoever_changes_it_back_is_not_fought_for_ever() {
    let cases = some(CASES, 1, |case| case.0);
    let wrong = side_by_side(&cases, |case| stage(Plan::default(), async |s| gives_up(s, case).await).err().into_iter().collect());
    println!("loops: {} cases of {}", cases.len(), CASES.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
