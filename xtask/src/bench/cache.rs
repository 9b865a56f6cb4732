//! The live cache: a cluster full of unmanaged objects. How long until the cache is synced, and
//! what that costs.

use super::{CacheArgs, Output, fleet, process};
use anyhow::ensure;
use serde_json::{Value, json};
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};
use tiphys_testkit::{Api, ControlPlane, Options, Repo, Tiphys, apps_path, namespaced};

const NAMESPACE: &str = "cache";
const PATIENCE: Duration = Duration::from_secs(600);
/// How long to wait until unused memory is returned to the system.
const REST: Duration = Duration::from_secs(5);
/// Upstream Argo CD with 20,000 pods, measured on another day: bytes per pod, peak MiB.
const REFERENCE: (f64, f64) = (4400.0, 400.0);

/// The program with one Application, so that it watches the cluster.
struct Known {
    seconds: f64,
    cpu: f64,
    resident: f64,
    peak: f64,
}

pub fn run(root: &Path, args: &CacheArgs) -> anyhow::Result<()> {
    let program = super::program(root, args.program.as_deref())?;
    let control_plane = args
        .kubeconfig
        .is_none()
        .then(|| ControlPlane::api_server(root, false));
    let kubeconfig = args
        .kubeconfig
        .clone()
        .or_else(|| control_plane.as_ref().map(|c| c.kubeconfig.clone()));
    let repo = fleet::repository(1);
    let options = Options {
        program,
        ephemeral: true,
        kubeconfig,
        ..Options::default()
    };
    let kube = Api::kubeconfig(options.kubeconfig.as_deref().expect("one of the two"))
        .map_err(anyhow::Error::msg)?;
    ensure!(
        there(&kube)? == 0,
        "the cluster has pods in namespace {NAMESPACE}: what it takes without them cannot be measured"
    );
    let empty = known(&options, &repo)?;
    fill(&kube, args)?;
    let full = known(&options, &repo)?;
    show(args, &empty, &full);
    Ok(())
}

fn fill(kube: &Api, args: &CacheArgs) -> anyhow::Result<()> {
    kube.namespace(NAMESPACE);
    // Without the controllers nothing creates what a pod needs.
    let _ = kube.post(
        &namespaced("v1", NAMESPACE, "serviceaccounts"),
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
    );
    let pods = namespaced("v1", NAMESPACE, "pods");
    let began = Instant::now();
    fleet::each_of(args.pods, |number| {
        let answer = fleet::answered(kube.post(&pods, &pod(number, args.bytes)))?;
        ensure!(
            answer.status == 201,
            "pod {number}: {} {}",
            answer.status,
            answer.body
        );
        Ok(())
    })?;
    eprintln!(
        "{} pods are there after {:.0} s",
        args.pods,
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

fn there(kube: &Api) -> anyhow::Result<u64> {
    let list =
        fleet::answered(kube.get(&format!("{}?limit=1", namespaced("v1", NAMESPACE, "pods"))))?
            .body;
    Ok(list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0)
        + list["items"].as_array().map_or(0, |i| i.len() as u64))
}

/// Roughly this many bytes as JSON; the part that varies is environment variables.
fn pod(number: usize, bytes: usize) -> Value {
    let value = |i: usize| {
        format!(
            "{:016x}",
            (number + 1) * (i + 3) * 2_654_435_761 % 0xffff_ffff
        )
    };
    let env: Vec<Value> = (0..bytes.saturating_sub(1200) / 60)
        .map(|i| json!({"name": format!("SETTING_{i:03}"), "value": value(i)}))
        .collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{number:06}"), "labels": {"app": format!("web-{}", number / 3)}}, "spec": {
        "automountServiceAccountToken": false, "nodeName": "", "schedulingGates": [{"name": "example.org/never"}],
        "containers": [{"name": "web", "image": "registry.example.org/web:v1", "env": env}]}})
}

fn known(options: &Options, repo: &Repo) -> anyhow::Result<Known> {
    let (tiphys, kube) = Tiphys::ready(options);
    kube.namespace(fleet::NAMESPACE);
    thread::sleep(REST);
    let (cpu, began) = (process::cpu_seconds(tiphys.id())?, Instant::now());
    fleet::create(&kube, 0, &repo.url(), &json!({"limit": 5}))?;
    fleet::all_well(&kube, 1, PATIENCE)?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu = process::cpu_seconds(tiphys.id())? - cpu;
    thread::sleep(REST);
    let known = Known {
        seconds,
        cpu,
        resident: process::resident_mebibytes(tiphys.id())?,
        peak: process::peak_mebibytes(tiphys.id())?,
    };
    kube.delete(&format!("{}/fleet-0000", apps_path()));
    kube.delete(&format!(
        "{}/cm-0000",
        namespaced("v1", fleet::NAMESPACE, "configmaps")
    ));
    tiphys.interrupt();
    Ok(known)
}

fn show(args: &CacheArgs, empty: &Known, full: &Known) {
    let bytes = (full.resident - empty.resident) * 1_048_576.0 / args.pods as f64;
    if args.output == Output::Json {
        let (seconds, cpu, resident, peak) = (full.seconds, full.cpu, full.resident, full.peak);
        println!(
            "{}",
            json!({"pods": args.pods, "bytes_each": args.bytes, "bytes_an_object": bytes.round(), "ready_s": seconds, "cpu_s": cpu, "resident_mib": resident, "peak_mib": peak,
                "empty_ready_s": empty.seconds, "empty_resident_mib": empty.resident, "empty_peak_mib": empty.peak})
        );
        return;
    }
    println!(
        "a cluster with {} pods of {} bytes that nobody manages, real API server",
        args.pods, args.bytes
    );
    println!(
        "  an object   {bytes:8.0} bytes   (the reference with 20,000, measured another day: {:.0})",
        REFERENCE.0
    );
    println!(
        "  ready after {:8.2} s with {:.2} CPU-s   (without pods {:.2} s)",
        full.seconds, full.cpu, empty.seconds
    );
    println!(
        "  memory      {:8.1} MiB, {:.1} at the peak   (without pods {:.1} and {:.1}; the reference {:.0} at the peak)",
        full.resident, full.peak, empty.resident, empty.peak, REFERENCE.1
    );
}
