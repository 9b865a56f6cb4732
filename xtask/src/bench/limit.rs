//! The API server's own limit: the writes that a task requires, as plain requests without any
//! controller.
//!
//! Anything else that a controller requests (further states of an operation, Events, dry runs) is
//! its own choice, and so counts against it.

use super::{Output, fleet};
use anyhow::ensure;
use serde_json::{Value, json};
use std::time::Instant;
use tiphys_testkit::{Api, apps_path, namespaced};

/// Seconds to create the same number of Applications and their objects again, with the status of
/// the first ones.
pub fn fleet(kube: &Api, apps: usize, url: &str) -> anyhow::Result<f64> {
    let status =
        fleet::answered(kube.get(&format!("{}/fleet-0000", apps_path())))?.body["status"].take();
    let start = Instant::now();
    fleet::each_of(apps, |number| {
        let number = apps + number;
        fleet::create(kube, number, url, &json!({"limit": 5}))?;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("cm-{number:04}")},
            "data": {"settings": fleet::config_map(number)}});
        let answer =
            fleet::answered(kube.post(&namespaced("v1", fleet::NAMESPACE, "configmaps"), &object))?;
        ensure!(
            answer.status == 201,
            "cm-{number:04}: {} {}",
            answer.status,
            answer.body
        );
        patch(kube, number, &json!({"status": status}))
    })?;
    Ok(start.elapsed().as_secs_f64())
}

/// Seconds until each Application was refreshed and has another revision in its status.
pub fn storm(kube: &Api, apps: usize) -> anyhow::Result<f64> {
    let refresh = |value: Value| json!({"annotations": {"argocd.argoproj.io/refresh": value}});
    let told = json!({"metadata": refresh("normal".into())});
    let looked = json!({"metadata": refresh(Value::Null), "status": {"reconciledAt": "2026-01-01T00:00:00Z", "sync": {"revision": "f".repeat(40)}}});
    let start = Instant::now();
    fleet::each_of(apps, |number| {
        patch(kube, number, &told)?;
        patch(kube, number, &looked)
    })?;
    Ok(start.elapsed().as_secs_f64())
}

fn patch(kube: &Api, number: usize, patch: &Value) -> anyhow::Result<()> {
    let answer = fleet::answered(kube.merge(&format!("{}/fleet-{number:04}", apps_path()), patch))?;
    ensure!(
        answer.status == 200,
        "fleet-{number:04}: {} {}",
        answer.status,
        answer.body
    );
    Ok(())
}

/// `walls`: how long each controller took.
pub fn show<'a>(seconds: f64, walls: impl Iterator<Item = (&'a str, f64)>, output: Output) {
    if output == Output::Json {
        println!("{}", json!({"name": "api-server-alone", "wall_s": seconds}));
        return;
    }
    let shares: Vec<String> = walls
        .map(|(name, wall)| format!("{name} {:.0} %", 100.0 * seconds / wall))
        .collect();
    println!(
        "  the writes that it takes, as bare requests: {seconds:.2} s; of what the API server allows: {}",
        shares.join(", ")
    );
}
