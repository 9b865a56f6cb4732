//! A few seconds of fuzzing for every target, concurrently, and inputs nested far beyond every
//! limit; `cargo xtask fuzz --seconds 600` runs longer.
//!
//! Each commit begins with other inputs. `TIPHYS_SEED` is the seed in place of the commit's; a
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
fn mutated(target: &str, seconds: &str) {
    let seed = first_seed().to_string();
    println!("{target}: TIPHYS_SEED={seed}");
    run(&[target, "--seconds", seconds, "--seed", &seed]);
}

macro_rules! targets {
    ($($name:ident $target:literal $seconds:literal)*) => {$(
        mod $name {
            #[test]
            fn mutated() {
                super::mutated($target, $seconds);
            }

            #[test]
            fn nested() {
                super::run(&[$target, "--nested", "100000"]);
            }
        }
    )*};
}

targets! {
    json "json" "3"
    json_patch "json-patch" "3"
    strategic_merge "strategic-merge" "3"
    fields_v1 "fields-v1" "3"
    crd_schema "crd-schema" "3"
    template "template" "3"
    chart "chart" "3"
    pgp "pgp" "3"
    strvals "strvals" "1"
    yaml "yaml" "2"
    jq "jq" "2"
    lua "lua" "2"
    selector "selector" "1"
    values_schema "values-schema" "2"
    toml "toml" "1"
    query "query" "1"
    kube_body "kube-body" "2"
    expr "expr" "2"
    jsonnet "jsonnet" "2"
    tree "tree" "1"
    kustomization "kustomization" "3"
    plugin_frames "plugin-frames" "3"
}

/// What nests in a message is limited by its length in base64.
#[test]
fn grpc() {
    mutated("grpc", "1");
}

/// The content of archives is tested by `chart`.
#[test]
fn chart_archive() {
    mutated("chart-archive", "2");
}

/// What is nested is tested by `yaml`.
#[test]
fn index() {
    mutated("index", "2");
}

/// What is nested in manifests and configurations of registries is tested by `json`.
#[test]
fn oci_manifest() {
    mutated("oci-manifest", "2");
}

/// The content of archives is tested by `chart`.
#[test]
fn oci_layer() {
    mutated("oci-layer", "2");
}

#[test]
fn oci_challenge() {
    mutated("oci-challenge", "1");
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
