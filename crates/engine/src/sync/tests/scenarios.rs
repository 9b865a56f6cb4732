//! Named syncs of every sort; `crash` kills each of them at every point.
//!
//! A scenario also states its expected result, because a result that is the same every time could
//! still be wrong.

use super::sim::{NS, Sim, hook_job, make, options, wave, widget_crd, with};
use crate::{
    sync::{
        Decision, NamespaceMetadata,
        OperationPhase::{self, Failed, Succeeded},
        ResourceSelector, hook,
    },
    types::HealthStatus::{Degraded, Healthy, Progressing},
};
use serde_json::json;
use tiphys_apimachinery::Object;

/// What a user does on seeing this decision; true: the operation continues although it ended.
pub type User = fn(&mut Sim, &Decision) -> bool;

/// Name, initial state, user, expected end, and how often each object is deleted.
pub type Scenario = (
    &'static str,
    fn() -> Sim,
    User,
    OperationPhase,
    &'static str,
);

pub const SCENARIOS: &[Scenario] = &[
    (
        "one Deployment",
        || Sim::new(vec![make("Deployment", "web")]),
        nobody,
        Succeeded,
        "",
    ),
    ("nothing to do", || Sim::new(vec![]), nobody, Succeeded, ""),
    (
        "everything at once",
        rich,
        nobody,
        Succeeded,
        "old 1, old-2 1, both 1, post 2, pre-2 1",
    ),
    (
        "everything, failing late",
        failing,
        nobody,
        Failed,
        "old 1, old-2 1, mid 1",
    ),
    (
        "everything, an apply refused",
        refused,
        nobody,
        Failed,
        "old 1, old-2 1, mid 1",
    ),
    ("many of a kind", many, nobody, Succeeded, ""),
    ("waves", waves, nobody, Succeeded, ""),
    (
        "a wave that becomes unwell",
        || waves().healthy("w1", &[Progressing, Degraded]),
        nobody,
        Failed,
        "",
    ),
    ("hooks of all phases", || hooks(""), nobody, Succeeded, ""),
    (
        "hooks deleted before creation",
        || left_over(hooks("BeforeHookCreation")),
        nobody,
        Succeeded,
        "post 1, pre 1, sync 1",
    ),
    (
        "hooks deleted on success",
        || hooks("HookSucceeded"),
        nobody,
        Succeeded,
        "post 1, pre 1, pre-later 1, sync 1",
    ),
    (
        "hooks deleted on failure",
        || hooks("HookFailed").healthy("post", &[Progressing, Degraded]),
        nobody,
        Failed,
        "fail 1, post 1, pre 1, pre-later 1, sync 1",
    ),
    (
        "hooks with every policy",
        || left_over(hooks("BeforeHookCreation,HookSucceeded,HookFailed")),
        nobody,
        Succeeded,
        "post 2, pre 2, pre-later 1, sync 2",
    ),
    (
        "old hooks that go slowly",
        slow_hooks,
        nobody,
        Succeeded,
        "post 1, pre 1, sync 1",
    ),
    (
        "hooks without names",
        unnamed,
        nobody,
        Succeeded,
        "run-abcdef0-sync-1714557600 1",
    ),
    ("a hook of two phases", two_phases, nobody, Succeeded, "j 1"),
    ("Helm hooks", helm_hooks, nobody, Succeeded, "migrate 2"),
    (
        "a resource that becomes a hook",
        || becomes_hook(""),
        nobody,
        Succeeded,
        "other 1, j 1",
    ),
    (
        "a resource that becomes a hook deleted on success",
        || becomes_hook("HookSucceeded"),
        nobody,
        Succeeded,
        "other 1, j 2",
    ),
    (
        "a hook that becomes a resource",
        becomes_resource,
        nobody,
        Succeeded,
        "",
    ),
    (
        "prune",
        || pruning(&[]),
        nobody,
        Succeeded,
        "old0 1, old1 1, old2 1",
    ),
    (
        "prune not asked for",
        || not_asked(pruning(&[])),
        nobody,
        Succeeded,
        "",
    ),
    (
        "prune in reverse waves",
        || pruning(&[3, 2, 1]),
        nobody,
        Succeeded,
        "old0 1, old1 1, old2 1",
    ),
    (
        "PruneLast",
        || pruning(&[0, 1]).sync_options(&["PruneLast=true"]),
        nobody,
        Succeeded,
        "old0 1, old1 1",
    ),
    (
        "Prune=confirm",
        || pruning(&[0, 1]).sync_options(&["Prune=confirm"]),
        confirms,
        Succeeded,
        "old0 1, old1 1",
    ),
    (
        "slow deletions",
        slow_prunes,
        nobody,
        Succeeded,
        "old0 1, old1 1, old2 1",
    ),
    (
        "a prune refused",
        || pruning(&[0, 1]).error("prune old0", "no"),
        nobody,
        Failed,
        "old1 1",
    ),
    ("a CRD with its resource", crd, nobody, Succeeded, ""),
    ("CreateNamespace", create_namespace, nobody, Succeeded, ""),
    (
        "managed namespace metadata",
        managed_namespace,
        nobody,
        Succeeded,
        "",
    ),
    (
        "the namespace is a target",
        || Sim::new(vec![make("Namespace", NS), wave(make("Pod", "p"), 1)]),
        nobody,
        Succeeded,
        "",
    ),
    ("Replace", replace, nobody, Succeeded, ""),
    ("Force", || immutable("Force=true"), nobody, Succeeded, ""),
    (
        "an immutable field",
        || immutable("Force=false"),
        nobody,
        Failed,
        "",
    ),
    ("ServerSideApply", server_side, nobody, Succeeded, ""),
    (
        "ApplyOutOfSyncOnly",
        out_of_sync_only,
        nobody,
        Succeeded,
        "old 1",
    ),
    (
        "SyncFail hooks",
        || sync_fail("HookSucceeded").error("apply c", "no"),
        nobody,
        Failed,
        "",
    ),
    (
        "SyncFail hooks that fail",
        || {
            sync_fail("HookFailed")
                .error("apply c", "no")
                .healthy("fail", &[Degraded])
        },
        nobody,
        Failed,
        "beside 1, fail 1",
    ),
    (
        "a SyncFail hook refused",
        || {
            sync_fail("")
                .error("apply c", "no")
                .error("run hook fail", "no")
        },
        nobody,
        Failed,
        "",
    ),
    (
        "a failing hook",
        || hooks("").healthy("pre", &[Progressing, Degraded]),
        nobody,
        Failed,
        "",
    ),
    (
        "a hook refused",
        || hooks("").error("run hook pre", "no"),
        nobody,
        Failed,
        "",
    ),
    (
        "a failing apply",
        || waves().error("apply w0", "no"),
        nobody,
        Failed,
        "",
    ),
    (
        "a retry",
        || hooks("HookSucceeded").error("apply c", "no"),
        retries,
        Succeeded,
        "fail 1, post 1, pre 1, pre-later 1, sync 1",
    ),
    (
        "a retry after a failed hook",
        || hooks("").healthy("sync", &[Progressing, Degraded]),
        retries,
        Succeeded,
        "pre 1, pre-later 1, sync 1",
    ),
    (
        "terminate",
        || hooks("").healthy("sync", &[Progressing]),
        terminates,
        Failed,
        "sync 1",
    ),
    (
        "terminate with HookFailed",
        || hooks("HookFailed").healthy("sync", &[Progressing]),
        terminates,
        Failed,
        "sync 1",
    ),
    (
        "terminate when the last hook completes",
        || hooks("HookFailed").healthy("sync", &[Progressing]),
        completes,
        Failed,
        "sync 1",
    ),
    (
        "a wave that takes too long",
        || limited(waves().healthy("w1", &[Progressing])),
        nobody,
        Failed,
        "",
    ),
    (
        "a hook that takes too long",
        || limited(hooks("HookSucceeded").healthy("sync", &[Progressing])),
        nobody,
        Failed,
        "sync 1",
    ),
    (
        "a SyncFail hook that takes too long",
        sync_fail_too_long,
        nobody,
        Failed,
        "fail 1",
    ),
    (
        "an old hook that does not go",
        || stuck(left_over(hooks("")), "pre"),
        nobody,
        Failed,
        "pre 1",
    ),
    (
        "a prune that takes too long",
        || stuck(pruning(&[0, 1]), "old1"),
        nobody,
        Failed,
        "old1 1",
    ),
    (
        "a newer revision between waves",
        || waves().healthy("w1", &[Progressing]),
        supersedes,
        Failed,
        "",
    ),
    (
        "a newer revision beside a hook",
        || hooks("").healthy("sync", &[Progressing, Progressing, Healthy]),
        supersedes,
        Failed,
        "",
    ),
    (
        "a newer revision with hooks of every policy",
        || hooks("HookSucceeded,HookFailed").healthy("sync", &[Progressing, Progressing, Healthy]),
        supersedes,
        Failed,
        "pre 1, pre-later 1, sync 1",
    ),
    ("selective sync", selective, nobody, Succeeded, "old 1"),
    ("strategy apply", strategy_apply, nobody, Succeeded, "old 1"),
    ("a dry run", dry_run, nobody, Succeeded, ""),
    (
        "a resource that is not permitted",
        not_permitted,
        nobody,
        Failed,
        "",
    ),
];

pub fn nobody(_: &mut Sim, _: &Decision) -> bool {
    false
}

fn confirms(sim: &mut Sim, decision: &Decision) -> bool {
    sim.request.prune_confirmed |= decision
        .message
        .starts_with("waiting for pruning confirmation");
    false
}

fn terminates(sim: &mut Sim, _: &Decision) -> bool {
    sim.request.terminate |= sim.live("Job", "sync").is_some();
    false
}

/// Terminates, and then the running hook completes before the sync sees it.
fn completes(sim: &mut Sim, decision: &Decision) -> bool {
    if decision.effects.is_empty() && sim.live("Job", "sync").is_some() {
        sim.request.terminate = true;
        sim.health.insert("sync".into(), vec![Healthy]);
    }
    false
}

/// A newer revision becomes available while the sync waits.
fn supersedes(sim: &mut Sim, _: &Decision) -> bool {
    if sim.live("Deployment", "w1").is_some() || sim.live("Job", "sync").is_some() {
        sim.request.superseded_by = Some("fedcba9".into());
    }
    false
}

/// Retries once, after the cause has been fixed.
fn retries(sim: &mut Sim, decision: &Decision) -> bool {
    let again = decision.phase == Failed && sim.request.operation_id != "op-2";
    if again {
        sim.errors.clear();
        sim.health.clear();
        sim.retry("op-2");
    }
    again
}

/// A sync with every feature.
pub fn rich() -> Sim {
    let mut sim = Sim::new(vec![
        make("Namespace", NS),
        hook_job("pre", "PreSync", ""),
        wave(hook_job("pre-2", "PreSync", "HookSucceeded"), 1),
        make("ConfigMap", "a"),
        widget_crd(),
        make("Widget", "w"),
        wave(make("Deployment", "b"), 1),
        wave(make("Deployment", "c"), 2),
        wave(hook_job("mid", "Sync", "HookFailed"), 2),
        options(wave(make("ConfigMap", "d"), 3), "Replace=true"),
        hook_job("both", "PreSync,PostSync", ""),
        hook_job("post", "PostSync", "BeforeHookCreation,HookSucceeded"),
        hook_job("fail", "SyncFail", ""),
    ])
    .existing(make("ConfigMap", "old"))
    .existing(wave(make("Secret", "old-2"), 2))
    .existing(wave(make("ConfigMap", "d"), 3))
    .healthy("pre", &[Progressing, Healthy])
    .healthy("b", &[Progressing, Healthy])
    .healthy("post", &[Progressing, Progressing, Healthy]);
    sim.put(held(hook_job(
        "post",
        "PostSync",
        "BeforeHookCreation,HookSucceeded",
    )));
    sim.unknown_kinds.insert("Widget".into());
    sim.slow_deletions.insert("old-2".into(), 1);
    sim
}

/// The same, failing late.
pub fn failing() -> Sim {
    rich()
        .healthy("c", &[Progressing, Degraded])
        .healthy("fail", &[Progressing, Healthy])
}

pub fn refused() -> Sim {
    rich()
        .error("apply c", "no")
        .healthy("mid", &[Progressing, Healthy])
}

/// A hook left over from an earlier sync that never finished.
fn held(mut hook: Object) -> Object {
    hook.set_finalizers(vec![hook::HOOK_FINALIZER.into()]);
    hook
}

fn many() -> Sim {
    let of = |kind: &'static str| {
        (0..6).map(move |i| make(kind, &format!("{}-{i}", kind.to_lowercase())))
    };
    Sim::new(
        ["ConfigMap", "Secret", "Service", "Deployment"]
            .into_iter()
            .flat_map(of)
            .collect(),
    )
}

fn waves() -> Sim {
    let wanted = [-1, 0, 1, 2, 7].map(|n| wave(make("Deployment", &format!("w{n}")), n));
    Sim::new(
        wanted
            .into_iter()
            .chain([wave(make("ConfigMap", "with-w1"), 1)])
            .collect(),
    )
    .healthy("w0", &[Progressing, Healthy])
    .healthy("w1", &[Progressing, Progressing, Healthy])
}

fn hooks(policies: &str) -> Sim {
    Sim::new(vec![
        hook_job("pre", "PreSync", policies),
        wave(hook_job("pre-later", "PreSync", policies), 2),
        make("ConfigMap", "c"),
        hook_job("sync", "Sync", policies),
        hook_job("post", "PostSync", policies),
        hook_job("fail", "SyncFail", policies),
    ])
    .healthy("pre", &[Progressing, Healthy])
    .healthy("sync", &[Progressing, Healthy])
}

/// With the hooks of the previous sync still in the cluster, one of them without our finalizer and
/// one with it.
fn left_over(mut sim: Sim) -> Sim {
    sim.put(hook_job("pre", "PreSync", ""));
    sim.put(held(hook_job("sync", "Sync", "")));
    sim.put(held(hook_job("post", "PostSync", "")));
    sim
}

fn slow_hooks() -> Sim {
    let mut sim = left_over(hooks("BeforeHookCreation"));
    sim.slow_deletions
        .extend([("pre".to_owned(), 2), ("post".to_owned(), 1)]);
    sim
}

fn unnamed() -> Sim {
    let unnamed = |types, policies| {
        let mut o = hook_job("", types, policies);
        o.metadata_mut()
            .insert("generateName".into(), "run-".into());
        o
    };
    Sim::new(vec![
        unnamed("PreSync", ""),
        make("ConfigMap", "c"),
        unnamed("Sync", "HookSucceeded"),
        unnamed("PostSync", ""),
    ])
}

fn two_phases() -> Sim {
    Sim::new(vec![
        hook_job("j", "PreSync,PostSync", ""),
        make("ConfigMap", "c"),
    ])
}

fn helm_hooks() -> Sim {
    let helm = |name, hook, policy| {
        let annotations = [
            ("helm.sh/hook", hook),
            ("helm.sh/hook-delete-policy", policy),
            ("helm.sh/hook-weight", "-5"),
        ];
        with(make("Job", name), &annotations)
    };
    let wanted = vec![
        helm(
            "migrate",
            "pre-install,pre-upgrade",
            "before-hook-creation,hook-succeeded",
        ),
        helm("smoke", "post-install,post-upgrade", "hook-failed"),
        helm("never", "test", ""),
        make("Deployment", "web"),
    ];
    Sim::new(wanted)
        .existing(helm("migrate", "pre-upgrade", ""))
        .healthy("migrate", &[Progressing, Healthy])
}

fn becomes_hook(policies: &str) -> Sim {
    Sim::new(vec![
        hook_job("j", "PreSync", policies),
        make("ConfigMap", "c"),
    ])
    .existing(make("Job", "j"))
    .existing(make("ConfigMap", "other"))
    .healthy("j", &[Progressing, Healthy])
}

fn becomes_resource() -> Sim {
    Sim::new(vec![make("Job", "j"), wave(make("ConfigMap", "c"), 1)])
        .existing(held(hook_job("j", "PreSync", "")))
}

/// A new resource, and one to prune in each of these waves (or three in wave 0).
fn pruning(waves: &[i64]) -> Sim {
    let waves = if waves.is_empty() { &[0, 0, 0] } else { waves };
    let old = waves
        .iter()
        .enumerate()
        .map(|(i, n)| wave(make("ConfigMap", &format!("old{i}")), *n));
    old.fold(
        Sim::new(vec![
            make("ConfigMap", "new"),
            wave(make("Deployment", "last"), 1),
        ]),
        Sim::existing,
    )
    .existing(options(make("Secret", "kept"), "Prune=false"))
}

fn not_asked(mut sim: Sim) -> Sim {
    sim.request.prune = false;
    sim
}

fn slow_prunes() -> Sim {
    let mut sim = pruning(&[0, 1, 2]);
    sim.slow_deletions
        .extend([("old0".to_owned(), 2), ("old2".to_owned(), 1)]);
    sim
}

fn crd() -> Sim {
    let mut sim = Sim::new(vec![
        widget_crd(),
        make("Widget", "w"),
        wave(make("Widget", "early"), -3),
        make("ConfigMap", "c"),
    ]);
    sim.unknown_kinds.insert("Widget".into());
    sim
}

fn create_namespace() -> Sim {
    Sim::new(vec![
        make("Deployment", "web"),
        hook_job("pre", "PreSync", ""),
    ])
    .sync_options(&["CreateNamespace=true"])
}

fn managed_namespace() -> Sim {
    let mut sim = create_namespace().existing(make("Namespace", NS));
    let labels = [("team".to_owned(), "a".to_owned())].into();
    sim.request.namespace_metadata = Some(NamespaceMetadata {
        labels,
        ..NamespaceMetadata::default()
    });
    sim
}

fn replace() -> Sim {
    let replaced = |o| options(o, "Replace=true");
    Sim::new(vec![
        replaced(make("ConfigMap", "there")),
        replaced(make("ConfigMap", "missing")),
        replaced(widget_crd()),
        wave(make("Pod", "later"), 1),
    ])
    .existing(make("ConfigMap", "there"))
    .existing(widget_crd())
}

fn immutable(option: &str) -> Sim {
    let secret = |data| {
        let mut o = options(make("Secret", "fixed"), option);
        o.0.insert("data".into(), json!({"key": data}));
        o
    };
    let mut sim =
        Sim::new(vec![secret("bmV3"), wave(make("Deployment", "web"), 1)]).existing(secret("b2xk"));
    sim.immutable.insert("fixed".into());
    sim
}

fn server_side() -> Sim {
    let mut owned = make("ConfigMap", "owned");
    let fields = json!([{"manager": "kubectl-client-side-apply", "operation": "Update"}]);
    owned.metadata_mut().insert("managedFields".into(), fields);
    Sim::new(vec![
        make("ConfigMap", "owned"),
        make("ConfigMap", "new"),
        wave(make("Deployment", "web"), 1),
    ])
    .existing(owned)
    .sync_options(&["ServerSideApply=true"])
}

fn out_of_sync_only() -> Sim {
    let mut sim = waves()
        .existing(make("Deployment", "w0"))
        .existing(make("Deployment", "w1"))
        .existing(make("ConfigMap", "old"));
    sim.modified.insert("w0".into(), false);
    sim.sync_options(&["ApplyOutOfSyncOnly=true"])
}

fn sync_fail(policies: &str) -> Sim {
    Sim::new(vec![
        make("ConfigMap", "c"),
        make("ConfigMap", "d"),
        hook_job("beside", "Sync", policies),
        hook_job("fail", "SyncFail", policies),
        wave(hook_job("fail-2", "SyncFail", ""), 1),
    ])
    .healthy("beside", &[Progressing, Healthy])
    .healthy("fail", &[Progressing, Healthy])
}

/// No wave may be waited for longer than half a minute.
fn limited(mut sim: Sim) -> Sim {
    sim.request.wave_timeout_secs = 30;
    sim
}

/// This object is never removed after its deletion.
fn stuck(mut sim: Sim, name: &str) -> Sim {
    sim.slow_deletions.insert(name.into(), usize::MAX);
    limited(sim)
}

fn sync_fail_too_long() -> Sim {
    limited(
        sync_fail("")
            .error("apply c", "no")
            .healthy("fail", &[Progressing]),
    )
}

fn selective() -> Sim {
    let mut sim = hooks("")
        .existing(make("ConfigMap", "old"))
        .existing(make("ConfigMap", "other"));
    let pick = |name: &str| ResourceSelector {
        kind: "ConfigMap".into(),
        name: name.into(),
        ..ResourceSelector::default()
    };
    sim.request.resources = vec![pick("c"), pick("old")];
    sim
}

fn strategy_apply() -> Sim {
    let mut sim = hooks("").existing(make("ConfigMap", "old"));
    sim.request.strategy_apply = true;
    sim
}

fn dry_run() -> Sim {
    let mut sim = pruning(&[]);
    sim.request.dry_run = true;
    sim
}

fn not_permitted() -> Sim {
    let mut sim = hooks("");
    sim.not_permitted.insert("c".into());
    sim
}
