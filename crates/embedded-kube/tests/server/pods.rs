//! Answers of a real API server 1.36.3 about pods and workloads with one mistake each.
//!
//! `answers.json` holds an object of each kind, changes of one field each, and the real server's
//! answer to each result.

use serde_json::Value;
use tiphys_apimachinery::{Gvr, Object};
use tiphys_embedded_kube::registry::WriteOptions;
use tiphys_embedded_kube::{EmbeddedKube, Options};

const NAMESPACE: &str = "default";

/// Sets the value at a path, or removes it.
fn change(mut at: &mut Value, path: &[Value], value: Option<&Value>) {
    let (last, parents) = path.split_last().expect("a path");
    for step in parents {
        at = match step {
            Value::Number(n) => &mut at[n.as_u64().expect("an index") as usize],
            name => &mut at[name.as_str().expect("a field")],
        };
    }
    match (last, value) {
        (Value::Number(n), Some(value)) => {
            at[n.as_u64().expect("an index") as usize] = value.clone()
        }
        (Value::Number(n), None) => drop(
            at.as_array_mut()
                .expect("a list")
                .remove(n.as_u64().expect("an index") as usize),
        ),
        (name, Some(value)) => at[name.as_str().expect("a field")] = value.clone(),
        (name, None) => drop(
            at.as_object_mut()
                .expect("a map")
                .remove(name.as_str().expect("a field")),
        ),
    }
}

/// Code, causes and warnings as the file has them.
fn answer(kube: &EmbeddedKube, resource: &Value, object: Value) -> Value {
    let word = |i: usize| resource[i].as_str().expect("a word");
    let options = WriteOptions {
        dry_run: true,
        ..WriteOptions::manager("test")
    };
    let object = Object::from_value(object).expect("an object");
    match kube.registry().create(
        &Gvr::new(word(0), "v1", word(1)),
        NAMESPACE,
        object,
        &options,
    ) {
        Ok(written) => serde_json::json!({"code": 201, "warnings": written.warnings}),
        Err(status) => {
            let status = status.to_json();
            match status["details"]["causes"].as_array() {
                Some(causes) => serde_json::json!({"code": status["code"], "causes": causes}),
                None => serde_json::json!({"code": status["code"], "message": status["message"]}),
            }
        }
    }
}

#[tokio::test]
async fn almost_right_pods_and_workloads_get_the_real_servers_answer() {
    let kube = EmbeddedKube::start(Options {
        controllers: false,
        ..Options::default()
    })
    .await
    .expect("it starts");
    let account = serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let account = Object::from_value(account).expect("an object");
    kube.registry()
        .create(
            &Gvr::new("", "v1", "serviceaccounts"),
            NAMESPACE,
            account,
            &WriteOptions::manager("test"),
        )
        .expect("made");
    let all: Value = serde_json::from_str(include_str!("answers.json")).expect("the file is JSON");
    let mut wrong = Vec::new();
    let cases = all["cases"].as_array().expect("cases");
    for case in cases {
        let kind = &all["kinds"][case["kind"].as_str().expect("a kind")];
        let mut object = kind["object"].clone();
        change(
            &mut object,
            case["path"].as_array().expect("a path"),
            case.get("value"),
        );
        let found = answer(&kube, &kind["resource"], object);
        if found != case["answer"] {
            wrong.push(format!(
                "{}\n  real: {}\n  ours: {found}",
                case["path"], case["answer"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} answers differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    kube.shutdown().await;
}
