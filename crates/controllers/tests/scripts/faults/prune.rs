//! Prune safety: whatever goes wrong with Git, manifests, settings or the cluster, nothing is
//! deleted.
//!
//! Each case is an Application with automated sync, prune and self-heal, to which something bad
//! happens; it is then refreshed, synced manually with prune, and left alone for some minutes. Its
//! previous resources exist at the end, and not a single deletion was sent.

use super::{
    cases, side_by_side,
    stage::{Stage, stage},
};
use crate::scripts::wire::{Moment, Plan};

/// The beginning of every case: objects of several kinds, two of them in place of a chart's or
/// another source's.
const BEGIN: &str = "commit
  configmap one
  configmap two
  secret three
  deployment four
  crd widgets
  Widget five
app
  syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [SkipDryRunOnMissingResource=true]}
pass 10s
";

const KEPT: [&str; 5] = [
    "configmap/one",
    "configmap/two",
    "secret/three",
    "deployment/four",
    "Widget/five",
];

/// A case: its name, what happens, in the notation of scripts, and the change on the wire.
struct Case(&'static str, &'static str, fn(&Stage));

const NOTHING: fn(&Stage) = |_| {};

/// Restarts the controller with these refusals.
fn restarted(stage: &Stage, refusals: &[(&str, u16, &str)]) {
    let writes = stage.wire.writes().len();
    let refusals = refusals
        .iter()
        .map(|(what, code, text)| ((*what).to_owned(), *code, (*text).to_owned()))
        .collect();
    stage
        .wire
        .plan(|plan| (plan.refusals, plan.deaths) = (refusals, vec![(writes, Moment::Before)]));
}

const CASES: &[Case] = &[
    // Manifests.
    Case(
        "broken YAML",
        "commit\n  configmap one\n  ---\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: [\n  ---",
        NOTHING,
    ),
    Case("nothing at all", "commit\n", NOTHING),
    Case(
        "nothing but one of many",
        "app\n  syncPolicy: {syncOptions: [SkipDryRunOnMissingResource=true, PruneLimit=2]}\ncommit\n  configmap one",
        NOTHING,
    ),
    Case(
        "broken JSON",
        "commit\n  configmap one\n  --- app/x.json\n  {\"apiVersion\":\n  ---",
        NOTHING,
    ),
    Case(
        "too many aliases",
        "commit\n  ---\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n  f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n  g: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n  ---",
        NOTHING,
    ),
    Case(
        "a folder that is gone",
        "app\n  source: {path: nowhere}",
        NOTHING,
    ),
    Case(
        "a chart that cannot be read",
        "commit\n  --- app/Chart.yaml\n  name: [\n  ---\n  --- app/templates/a.yaml\n  kind: ConfigMap\n  ---",
        NOTHING,
    ),
    Case(
        "a template that fails",
        "commit\n  --- app/Chart.yaml\n  {apiVersion: v2, name: c, version: 1.0.0}\n  ---\n  --- app/templates/a.yaml\n  {{ fail \"no\" }}\n  ---",
        NOTHING,
    ),
    Case(
        "a chart that renders nothing",
        "commit\n  --- app/Chart.yaml\n  {apiVersion: v2, name: c, version: 1.0.0}\n  ---\n  --- app/templates/a.yaml\n  {{ if .Values.never }}{{ end }}\n  ---",
        NOTHING,
    ),
    Case(
        "a dependency that cannot be had",
        "commit\n  --- app/Chart.yaml\n  {apiVersion: v2, name: c, version: 1.0.0, dependencies: [{name: d, version: 1.0.0, repository: \"http://127.0.0.1:1\"}]}\n  ---\n  --- app/templates/a.yaml\n  ---\n",
        NOTHING,
    ),
    Case(
        "values that are not there",
        "commit\n  --- app/Chart.yaml\n  {apiVersion: v2, name: c, version: 1.0.0}\n  ---\n  --- app/templates/a.yaml\n  ---\napp\n  source: {helm: {valueFiles: [missing.yaml]}}",
        NOTHING,
    ),
    Case(
        "a kustomization that cannot be read",
        "commit\n  --- app/kustomization.yaml\n  resources: {\n  ---",
        NOTHING,
    ),
    Case(
        "a kustomization without its base",
        "commit\n  --- app/kustomization.yaml\n  resources: [../base]\n  ---",
        NOTHING,
    ),
    Case(
        "a remote base that cannot be had",
        "commit\n  --- app/kustomization.yaml\n  resources: [\"http://127.0.0.1:1/base?ref=main\"]\n  ---",
        NOTHING,
    ),
    Case(
        "a program in Jsonnet that fails",
        "commit\n  --- app/a.jsonnet\n  error 'no'\n  ---",
        NOTHING,
    ),
    Case(
        "a plugin that nobody has",
        "app\n  source: {plugin: {name: nobody-has-it}}",
        NOTHING,
    ),
    // Git.
    Case(
        "a branch that is gone",
        "app\n  source: {targetRevision: gone}",
        NOTHING,
    ),
    Case(
        "a repository that is gone",
        "app\n  source: {repoURL: \"file:///nowhere/at/all\"}",
        NOTHING,
    ),
    Case(
        "a repository that does not answer",
        "app\n  source: {repoURL: \"http://127.0.0.1:1/repo.git\"}",
        NOTHING,
    ),
    Case(
        "one of two sources",
        "app\n  source: null\n  sources: [{repoURL: $REPO, path: other}, {repoURL: \"file:///nowhere\", path: app}]",
        NOTHING,
    ),
    Case(
        "the reference of a source",
        "app\n  source: null\n  sources: [{repoURL: $REPO, path: app, helm: {valueFiles: [$values/a.yaml]}}, {repoURL: \"file:///nowhere\", ref: values}]",
        NOTHING,
    ),
    // Settings.
    Case("a project that is gone", "app\n  project: nobody", NOTHING),
    Case(
        "a project that forbids the repository",
        "project\n  sourceRepos: [https://elsewhere.example]\napp\n  project: $APP",
        NOTHING,
    ),
    Case(
        "a cluster that nobody knows",
        "app\n  destination: {server: \"https://10.0.0.1\"}",
        NOTHING,
    ),
    Case(
        "a cluster by a name that nobody knows",
        "app\n  destination: {server: null, name: nobody}",
        NOTHING,
    ),
    Case(
        "another way of tracking",
        "settings\n  application.resourceTrackingMethod: label",
        NOTHING,
    ),
    Case(
        "another label",
        "settings\n  application.instanceLabelKey: example.org/other\n  application.resourceTrackingMethod: annotation+label",
        NOTHING,
    ),
    // The cluster, part of which is not visible to a restarted controller.
    Case("a kind that cannot be listed", "", |s| {
        restarted(
            s,
            &[(
                "GET /api/v1/configmaps",
                500,
                "the conversion webhook is away",
            )],
        )
    }),
    Case("all kinds forbidden", "", |s| {
        restarted(
            s,
            &[
                ("GET /api/v1/configmaps", 403, "no"),
                ("GET /api/v1/secrets", 403, "no"),
                ("GET /apis/apps/v1/deployments", 403, "no"),
            ],
        )
    }),
    Case("a kind whose webhook is broken", "", |s| {
        restarted(
            s,
            &[(
                "/widgets",
                500,
                "conversion webhook failed: connection refused",
            )],
        )
    }),
    Case("a group that is not served", "", |s| {
        restarted(s, &[("GET /apis", 503, "nobody answers")])
    }),
    Case("an API server that refuses all", "", |s| {
        restarted(s, &[("/", 401, "Unauthorized")])
    }),
    Case("one that answers nothing in time", "", |s| {
        restarted(s, &[("GET /api", 504, "timeout")])
    }),
    // Tracking metadata.
    Case(
        "a mark copied to something else",
        "create configmap stranger annotation:argocd.argoproj.io/tracking-id=$APP:/ConfigMap:$NS/one",
        NOTHING,
    ),
];

async fn survives(stage: &mut Stage<'_>, case: &Case) -> Result<(), String> {
    let Case(name, happens, inject) = case;
    stage.play(BEGIN).await;
    let state = stage.first().await["status"]["sync"]["status"].clone();
    if state != "Synced" {
        return Err(format!("{name}: it does not even begin: {state}"));
    }
    let before = stage.wire.writes().len();
    inject(stage);
    stage.play(happens).await;
    stage.play("refresh hard\npass 3m").await;
    // A manual sync with prune does prune if Git is really empty, so those cases skip it; it must
    // not if the content is unavailable.
    if !name.contains("nothing") || name.contains("nothing in time") {
        stage.play("sync prune\npass 1m\nrefresh").await;
    }
    let deleted: Vec<String> = stage
        .wire
        .writes()
        .split_off(before)
        .into_iter()
        .map(|w| w.what)
        .filter(|w| w.starts_with("DELETE "))
        .collect();
    if !deleted.is_empty() {
        return Err(format!("{name}: {deleted:?}"));
    }
    for object in KEPT {
        let path = stage
            .play
            .target(object)
            .await
            .ok_or_else(|| format!("{name}: {object} has no kind any more"))?;
        if stage.play.ground.find(&path).await.is_none() {
            return Err(format!("{name}: {object} is gone"));
        }
    }
    Ok(())
}

#[test]
fn nothing_is_deleted_whatever_goes_wrong() {
    let cases = cases(CASES, |case| case.0);
    let wrong = side_by_side(&cases, |case| {
        stage(Plan::default(), async |s| survives(s, case).await)
            .err()
            .into_iter()
            .collect()
    });
    println!("prune safety: {} cases of {}", cases.len(), CASES.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
