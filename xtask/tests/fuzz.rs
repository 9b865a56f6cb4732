//! Some seconds of fuzzing for every target, side by side; `cargo xtask fuzz --seconds 600` takes longer.

use std::process::Command;

fn fuzz(target: &str) {
    fuzz_for(target, "10");
}

fn fuzz_for(target: &str, seconds: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["fuzz", target, "--seconds", seconds]).output().expect("xtask runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    println!("{text}");
}

#[test]
fn json() {
    fuzz("json");
}

#[test]
fn json_patch() {
    fuzz("json-patch");
}

#[test]
fn strategic_merge() {
    fuzz("strategic-merge");
}

#[test]
fn fields_v1() {
    fuzz("fields-v1");
}

#[test]
fn crd_schema() {
    fuzz("crd-schema");
}

#[test]
fn template() {
    fuzz("template");
}

#[test]
fn chart_archive() {
    fuzz_for("chart-archive", "3");
}

#[test]
fn chart() {
    fuzz_for("chart", "4");
}

#[test]
fn strvals() {
    fuzz_for("strvals", "3");
}

#[test]
fn yaml() {
    fuzz_for("yaml", "3");
}
