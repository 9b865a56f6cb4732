//! Ten seconds of fuzzing for every target, side by side; `cargo xtask fuzz --seconds 600` takes longer.

use std::process::Command;

fn fuzz(target: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["fuzz", target, "--seconds", "10"]).output().expect("xtask runs");
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
