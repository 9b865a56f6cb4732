//! Executes the cases of a template baseline and compares. Also part of `cargo xtask baseline`,
//! which replays more of them.

use super::world::{Included, functions, universe};
use serde_json::Value as Json;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_gocompat::template::{
    Budget, Functions, Limits, MissingKey, Options, TemplateSet, execute,
};

const ALWAYS: &str =
    "{{- define \"always\" -}}<{{ with . }}{{ print . | upper }}{{ end }}>{{- end -}}";

/// Output and error text.
fn ours(text: &str, key: MissingKey, j: &Json, functions: &Arc<Functions>) -> (Vec<u8>, String) {
    let mut set = TemplateSet::new("root", functions.clone());
    set.parse("always.tpl", ALWAYS.as_bytes())
        .expect("a fixed template");
    if let Err(e) = set.parse("dir/t.yaml", text.as_bytes()) {
        return (Vec::new(), e.to_string());
    }
    let budget = Budget::new(Limits::default());
    let mut included = Included::new();
    let mut out = Vec::new();
    let options = Options {
        missing_key: key,
        budget: &budget,
        host: &mut included,
    };
    let done = execute(&Arc::new(set), "dir/t.yaml", universe(j), options, &mut out);
    (out, done.err().map(|e| e.to_string()).unwrap_or_default())
}

/// One case: `None` if it agrees, else the class of the difference and both sides.
fn differs(case: &Json, functions: &Arc<Functions>) -> Option<(&'static str, String)> {
    let text = case["t"].as_str().expect("a template");
    let key = match case["k"].as_str() {
        Some("zero") => MissingKey::Zero,
        Some("error") => MissingKey::Error,
        _ => MissingKey::Invalid,
    };
    let (out, error) = ours(text, key, &case["j"], functions);
    let side = |name: &str| {
        let text = case[name].as_str().unwrap_or("");
        if case["x"] == Json::Bool(true) {
            unhex(text)
        } else {
            text.as_bytes().to_vec()
        }
    };
    // Our error texts are UTF-8.
    let (want_out, want_error) = (side("o"), String::from_utf8_lossy(&side("e")).into_owned());
    let class = match (error.is_empty(), want_error.is_empty()) {
        (true, false) => "we succeed, Go fails",
        (false, true) => "we fail, Go succeeds",
        _ if error != want_error => "another error",
        _ if out != want_out => "other output",
        _ => return None,
    };
    let (shown, want_out) = (
        String::from_utf8_lossy(&out),
        String::from_utf8_lossy(&want_out),
    );
    Some((
        class,
        format!(
            "{case}\n   got {shown:?}\n       {error:?}\n  want {want_out:?}\n       {want_error:?}"
        ),
    ))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("a baseline writes hexadecimal"))
        .collect()
}

/// Replays the lines of a baseline: returns their number, and the differences by class.
pub fn replay(baseline: &str) -> (usize, BTreeMap<&'static str, Vec<String>>) {
    let functions = functions();
    let mut classes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    for line in baseline.lines().skip(1) {
        let case: Json = serde_json::from_str(line).expect("a baseline line is JSON");
        count += 1;
        if let Some((class, text)) = differs(&case, &functions) {
            classes.entry(class).or_default().push(text);
        }
    }
    (count, classes)
}
