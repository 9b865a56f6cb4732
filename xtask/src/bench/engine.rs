//! The engine alone: comparing, planning and assessing many objects, without any cluster.
//!
//! A build with the feature `count-allocations` counts allocations, too; nothing else runs then, so the
//! figures of a step include only its own work.

use super::{
    EngineArgs, Output,
    allocator::{Counted, counting},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_apimachinery::{GroupKind, Kept, Object, ResourceKey};
use tiphys_engine::{
    compare::compare,
    health,
    sync::{Observed, Progress, SyncRequest, next, plan},
    track,
    types::{CompareRules, Comparison, Desired, DryRuns, KindInfo, SyncStatus, Tracking},
};

const NAMESPACE: &str = "bench";

/// The best result for one step.
struct Figures {
    step: &'static str,
    objects: usize,
    time: Duration,
    counted: Option<Counted>,
}

/// Every kind is namespaced.
struct Kinds;

impl KindInfo for Kinds {
    fn is_namespaced(&self, _: &GroupKind) -> Option<bool> {
        Some(true)
    }
}

pub fn run(args: &EngineArgs) -> anyhow::Result<()> {
    let mut figures = comparisons(args);
    figures.extend(plans(args));
    figures.push(judgements(args));
    show(&figures, args.output);
    Ok(())
}

/// The best of several runs; the input of a run is created before it and not measured.
fn measure<I, O>(
    args: &EngineArgs,
    step: &'static str,
    objects: usize,
    input: impl Fn() -> I,
    work: impl Fn(I) -> O,
) -> Figures {
    let once = || {
        let input = input();
        let ((output, time), counted) = counting(|| {
            let start = Instant::now();
            let output = black_box(work(input));
            (output, start.elapsed())
        });
        drop(output);
        Figures {
            step,
            objects,
            time,
            counted,
        }
    };
    (0..args.rounds)
        .map(|_| once())
        .min_by_key(|f| f.time)
        .expect("there is at least one round")
}

fn comparisons(args: &EngineArgs) -> Vec<Figures> {
    let (rules, n) = (rules(), args.pairs);
    let desired: Vec<Object> = (0..n).map(|i| manifest(i, 0)).collect();
    // Compressed, as in a cache.
    let kept = |object: Object| {
        let (key, kept) = (object.key(), Kept::from(object));
        kept.rest();
        (key, Arc::new(kept))
    };
    let live: BTreeMap<ResourceKey, Arc<Kept>> =
        desired.iter().map(|d| kept(as_live(d, &rules))).collect();
    // One in a hundred differs in Git.
    let changed: Vec<Object> = (0..n)
        .map(|i| manifest(i, usize::from(i % 100 == 7)))
        .collect();
    // One in a hundred differs in the cluster.
    let mut drifted = live.clone();
    for object in drifted.values_mut().step_by(100) {
        let mut newer = Object::clone(&object.object());
        newer
            .metadata_mut()
            .insert("resourceVersion".into(), "4712".into());
        *object = kept(newer).1;
    }
    let run = |desired: Desired, live, previous| {
        compare(desired, live, &rules, &Kinds, previous, &DryRuns::new())
    };
    let shared = Desired::from(desired.clone());
    let first = run(shared.clone(), &live, None);
    first.rest();
    assert_eq!(first.sync, SyncStatus::Synced, "the pairs are alike");
    let anew = |objects: &[Object]| Desired::from(objects.to_vec());
    vec![
        measure(
            args,
            "compare, unchanged, first time",
            n,
            || shared.clone(),
            |d| run(d, &live, None),
        ),
        measure(
            args,
            "compare, unchanged, again",
            n,
            || shared.clone(),
            |d| run(d, &live, Some(&first)),
        ),
        measure(
            args,
            "compare, unchanged, rendered anew",
            n,
            || anew(&desired),
            |d| run(d, &live, Some(&first)),
        ),
        measure(
            args,
            "compare, 1 % changed in Git, rendered anew",
            n,
            || anew(&changed),
            |d| run(d, &live, Some(&first)),
        ),
        measure(
            args,
            "compare, 1 % changed in the cluster",
            n,
            || shared.clone(),
            |d| run(d, &drifted, Some(&first)),
        ),
        measure(
            args,
            "(clone the pairs' desired objects)",
            n,
            || (),
            |()| desired.clone(),
        ),
        measure(
            args,
            "(compare the pairs' desired objects with ==)",
            n,
            || desired.clone(),
            |d| d == desired,
        ),
    ]
}

fn plans(args: &EngineArgs) -> Vec<Figures> {
    let (rules, n) = (rules(), args.tasks);
    let wanted: Vec<Object> = (0..n).map(|i| waved(manifest(i, 0), i % 5)).collect();
    let comparison: Comparison = compare(
        wanted.into(),
        &BTreeMap::new(),
        &rules,
        &Kinds,
        None,
        &DryRuns::new(),
    );
    let request = SyncRequest {
        operation_id: "bench".into(),
        dest_namespace: NAMESPACE.into(),
        prune: true,
        ..SyncRequest::default()
    };
    let made = plan(&comparison, &request, &Kinds);
    assert_eq!(made.steps().count(), n, "every object is a task");
    let observed = Observed {
        live: &|_| None,
        health: &|object| Ok(health::of(object).into()),
    };
    let progress = Progress::new("bench");
    let decide = |()| next(&made, observed, &progress, &request, request.started_at);
    vec![
        measure(
            args,
            "plan, all missing, five waves",
            n,
            || (),
            |()| plan(&comparison, &request, &Kinds),
        ),
        measure(
            args,
            "next, at the beginning (dry run of all)",
            n,
            || (),
            decide,
        ),
    ]
}

fn judgements(args: &EngineArgs) -> Figures {
    let rules = rules();
    let objects: Vec<Object> = (0..args.judged)
        .map(|i| with_status(as_live(&manifest(i, 0), &rules)))
        .collect();
    measure(
        args,
        "health, mixed kinds",
        args.judged,
        || (),
        |()| objects.iter().filter_map(health::of).count(),
    )
}

fn rules() -> CompareRules {
    CompareRules::new(
        Tracking::annotation("bench"),
        "argocd",
        "bench",
        "https://kubernetes.default.svc",
        NAMESPACE,
    )
}

/// One of five kinds, as users write them.
fn manifest(number: usize, version: usize) -> Object {
    let name = format!("object-{number:05}");
    let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": {"app": name, "team": format!("team-{}", number % 17)}});
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
        "name": "main", "image": format!("registry.example/app:{number}.{version}"), "ports": [{"containerPort": 8080, "name": "http"}],
        "env": (0..6).map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("{}", number * i)})).collect::<Vec<_>>(),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}}}]}});
    let object = |api_version: &str, kind: &str, more: Value| {
        let mut o = Object::from_value(
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}),
        )
        .expect("a map");
        o.0.extend(more.as_object().cloned().unwrap_or_default());
        o
    };
    match number % 5 {
        0 => object(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}}),
        ),
        1 => object(
            "v1",
            "Service",
            json!({"spec": {"selector": {"app": name}, "ports": [{"port": 80 + version, "targetPort": "http"}]}}),
        ),
        2 => object(
            "v1",
            "ConfigMap",
            json!({"data": {"settings": format!("number = {number}\nversion = {version}\n").repeat(60)}}),
        ),
        3 => object(
            "v1",
            "Secret",
            json!({"type": "Opaque", "stringData": {"password": format!("secret-{number}-{version}")}}),
        ),
        _ => object(
            "example.com/v1",
            "Widget",
            json!({"spec": {"size": number, "version": version, "parts": ["a", "b", "c"]}}),
        ),
    }
}

fn waved(mut object: Object, wave: usize) -> Object {
    object.set_annotation("argocd.argoproj.io/sync-wave", &wave.to_string());
    object
}

/// As the cluster has it after a sync.
fn as_live(manifest: &Object, rules: &CompareRules) -> Object {
    let mut live = manifest.clone();
    track::set(&mut live, &rules.tracking, NAMESPACE);
    if let Some(Value::Object(plain)) = live.0.remove("stringData") {
        let encoded = plain
            .into_iter()
            .map(|(k, v)| (k, STANDARD.encode(v.as_str().unwrap_or_default()).into()))
            .collect();
        live.0.insert("data".into(), Value::Object(encoded));
    }
    let uid = format!("uid-{}", live.name());
    let metadata = live.metadata_mut();
    metadata.insert("uid".into(), uid.into());
    metadata.insert("resourceVersion".into(), "4711".into());
    metadata.insert("creationTimestamp".into(), "2026-01-01T00:00:00Z".into());
    live
}

fn with_status(mut live: Object) -> Object {
    live.metadata_mut().insert("generation".into(), 1.into());
    let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]});
    live.0.insert("status".into(), status);
    live
}

fn show(figures: &[Figures], output: Output) {
    if let Output::Json = output {
        let rows = figures.iter().map(|f| {
            json!({"step": f.step, "objects": f.objects, "seconds": f.time.as_secs_f64(),
                "allocations": f.counted.map(|c| c.allocations), "bytes": f.counted.map(|c| c.bytes)})
        });
        println!("{}", Value::Array(rows.collect()));
        return;
    }
    println!(
        "{:<46} {:>8} {:>10} {:>11} {:>12} {:>11}",
        "", "objects", "ms", "µs/object", "allocs/obj", "bytes/obj"
    );
    for f in figures {
        let each = |total: fn(&Counted) -> usize, digits: usize| match &f.counted {
            Some(counted) => format!(
                "{:.digits$}",
                total(counted) as f64 / f.objects.max(1) as f64
            ),
            None => "-".to_owned(),
        };
        let micros = f.time.as_secs_f64() * 1e6 / f.objects.max(1) as f64;
        let ms = f.time.as_secs_f64() * 1e3;
        println!(
            "{:<46} {:>8} {ms:>10.2} {micros:>11.2} {:>12} {:>11}",
            f.step,
            f.objects,
            each(|c| c.allocations, 1),
            each(|c| c.bytes, 0)
        );
    }
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    println!("{build} build, best of the rounds");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_measured() {
        let args = EngineArgs {
            pairs: 200,
            tasks: 50,
            judged: 20,
            rounds: 1,
            output: Output::Json,
        };
        let mut figures = comparisons(&args);
        figures.extend(plans(&args));
        figures.push(judgements(&args));
        assert!(
            figures
                .iter()
                .all(|f| f.time > Duration::ZERO && f.objects > 0)
        );
    }
}
