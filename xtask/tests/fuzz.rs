//! A few seconds of fuzzing for every target, concurrently, and inputs nested far beyond every
//! limit; `cargo xtask fuzz --seconds 600` runs longer.
//!
//! Each commit begins with other inputs, and a commit has the same ones on every machine: their
//! number is fixed, not the time. `TIPHYS_SEED` is the seed in place of the commit's; a
//! failure says how its input alone is repeated.

use std::process::Command;
use tiphys_testkit::first_seed;

fn run(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("fuzz")
        .args(args)
        .output()
        .expect("xtask runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    println!("{text}");
}

/// Mutated inputs, which the checked-out commit decides.
fn mutated(target: &str, inputs: u64) {
    let seed = first_seed().to_string();
    println!("{target}: TIPHYS_SEED={seed}");
    run(&[target, "--inputs", &inputs.to_string(), "--seed", &seed]);
}

macro_rules! targets {
    ($($name:ident $target:literal $inputs:literal)*) => {$(
        mod $name {
            #[test]
            fn mutated() {
                super::mutated($target, $inputs);
            }

            #[test]
            fn nested() {
                super::run(&[$target, "--nested", "100000"]);
            }
        }
    )*};
}

targets! {
    json "json" 9000
    json_patch "json-patch" 10_000
    strategic_merge "strategic-merge" 7500
    fields_v1 "fields-v1" 8000
    crd_schema "crd-schema" 10_000
    template "template" 18_000
    chart "chart" 3500
    pgp "pgp" 600
    strvals "strvals" 500
    yaml "yaml" 5000
    jq "jq" 14_000
    lua "lua" 18_000
    selector "selector" 2500
    values_schema "values-schema" 4000
    toml "toml" 11_000
    query "query" 4200
    kube_body "kube-body" 50
    expr "expr" 3700
    jsonnet "jsonnet" 80_000
    tree "tree" 3200
    kustomization "kustomization" 1700
    plugin_frames "plugin-frames" 280
    worker_frames "worker-frames" 800
}

/// What nests in a message is limited by its length in base64.
#[test]
fn grpc() {
    mutated("grpc", 16_000);
}

/// The content of archives is tested by `chart`.
#[test]
fn chart_archive() {
    mutated("chart-archive", 6000);
}

/// What is nested is tested by `yaml`.
#[test]
fn index() {
    mutated("index", 10_000);
}

/// What is nested in manifests and configurations of registries is tested by `json`.
#[test]
fn oci_manifest() {
    mutated("oci-manifest", 13_000);
}

/// The content of archives is tested by `chart`.
#[test]
fn oci_layer() {
    mutated("oci-layer", 7500);
}

#[test]
fn oci_challenge() {
    mutated("oci-challenge", 4000);
}

/// Every target is run by one of these tests.
#[test]
fn no_target_is_forgotten() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["fuzz", "no-such-target"])
        .output()
        .expect("xtask runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let known = text.split_once("there are ").expect("a list of them").1;
    let known = known.lines().next().expect("a line");
    for target in known.split(", ") {
        let is_run = include_str!("fuzz.rs").contains(&format!("\"{target}\""));
        assert!(is_run, "{target} is not run");
    }
}
