//! CustomResourceDefinitions, rules and custom objects, compared with the answers of kube-apiserver
//! 1.36.3 (`custom.json`).

use crate::server::support::{post, send, start};
use axum::Router;
use serde_json::{Value, json};
use tiphys_embedded_kube::Data;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn answers() -> Value {
    serde_json::from_str(include_str!("custom.json")).expect("the answers are JSON")
}

fn definition(plural: &str, kind: &str, schema: &Value) -> Value {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.crd.example.com")}, "spec": {"group": "crd.example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind}, "versions": [version]}})
}

/// The causes of a refusal as lines, sorted; nothing for success.
fn causes((code, answer): &(u16, Value)) -> Vec<String> {
    match code {
        201 => Vec::new(),
        400 => vec![format!("400 {}", answer["message"].as_str().unwrap_or(""))],
        _ => {
            let line = |c: &Value| {
                format!(
                    "{}: {}",
                    c["field"].as_str().unwrap_or(""),
                    c["message"].as_str().unwrap_or("")
                )
            };
            let mut lines: Vec<String> = answer["details"]["causes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(line)
                .collect();
            lines.sort();
            lines
        }
    }
}

fn strings(list: &[Value]) -> Vec<String> {
    list.iter()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect()
}

/// Says how many were compared, and fails with all that differ.
fn report(compared: usize, differences: &[String]) {
    println!(
        "{} of {compared} answers are equal",
        compared - differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

async fn dry_run(router: &Router, definition: &Value) -> Vec<String> {
    causes(&post(router, &format!("{DEFINITIONS}?dryRun=All"), definition).await)
}

#[tokio::test]
async fn definitions_get_the_answers_of_a_real_server() {
    let kube = start(Data::Memory).await;
    let (answers, mut compared, mut differences) = (answers(), 0, Vec::new());
    for case in answers["definitions"].as_array().into_iter().flatten() {
        let mut definition = definition("things", "Thing", &case["schema"]);
        if let Some(whole) = case["crd"].as_object() {
            definition["metadata"] = whole["metadata"].clone();
            definition["spec"] = whole["spec"].clone();
        }
        let (found, wanted) = (
            dry_run(&kube.router(), &definition).await,
            strings(case["causes"].as_array().expect("a list")),
        );
        compared += 1;
        if found != wanted {
            differences.push(format!("{case}\n  real {wanted:?}\n  here {found:?}"));
        }
    }
    report(compared, &differences);
    kube.shutdown().await;
}

#[tokio::test]
async fn rules_are_compiled_with_the_words_of_a_real_server() {
    let kube = start(Data::Memory).await;
    let (answers, mut compared, mut differences) = (answers(), 0, Vec::new());
    for case in answers["rules"].as_array().into_iter().flatten() {
        let case = strings(case.as_array().expect("a list"));
        let (rule, wanted) = case.split_first().expect("a rule");
        let mut spec = answers["schema"].clone();
        spec["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found = dry_run(&kube.router(), &definition("things", "Thing", &schema)).await;
        let tail = |line: &String| match line.split_once("\"OptionalOldSelf\":null}: ") {
            Some((_, tail)) => tail.to_owned(),
            None => line
                .split_once(": ")
                .map_or_else(|| line.clone(), |(_, tail)| tail.to_owned()),
        };
        let found: Vec<String> = found.iter().map(tail).collect();
        compared += 1;
        if found != wanted {
            differences.push(format!("{rule}\n  real {wanted:?}\n  here {found:?}"));
        }
    }
    report(compared, &differences);
    kube.shutdown().await;
}

#[tokio::test]
async fn objects_get_the_answers_of_a_real_server() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let (answers, mut compared, mut differences) = (answers(), 0, Vec::new());
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": answers["fields"]}}});
    let mut whole = definition("alls", "All", &schema);
    whole["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.i", "statusReplicasPath": ".status.n",
        "labelSelectorPath": ".spec.s"}});
    assert_eq!(post(&router, DEFINITIONS, &whole).await.0, 201);
    for case in answers["values"].as_array().into_iter().flatten() {
        let case = case.as_array().expect("a list");
        let spec = json!({case[0].as_str().unwrap_or(""): case[1]});
        let object = json!({"apiVersion": "crd.example.com/v1", "kind": "All", "metadata": {"name": "a"}, "spec": spec});
        let found = causes(
            &post(
                &router,
                "/apis/crd.example.com/v1/namespaces/default/alls?dryRun=All",
                &object,
            )
            .await,
        );
        let wanted = strings(&case[2..]);
        compared += 1;
        if found != wanted {
            differences.push(format!("{spec}\n  real {wanted:?}\n  here {found:?}"));
        }
    }
    report(compared, &differences);
    kube.shutdown().await;
}

#[tokio::test]
async fn names_are_accepted_once_and_freed_by_a_delete() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let condition = |definition: &Value, kind: &str| {
        let all = definition["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let found = all
            .iter()
            .find(|c| c["type"] == kind)
            .cloned()
            .unwrap_or(Value::Null);
        format!(
            "{} {}",
            found["status"].as_str().unwrap_or("-"),
            found["reason"].as_str().unwrap_or("-")
        )
    };
    let created = post(&router, DEFINITIONS, &definition("ones", "Same", &schema)).await;
    assert_eq!(
        (created.0, &created.1["status"]["conditions"]),
        (201, &Value::Null)
    );
    assert_eq!(
        post(&router, DEFINITIONS, &definition("twos", "Same", &schema))
            .await
            .0,
        201
    );
    let get = async |name: &str| {
        send(
            &router,
            "GET",
            &format!("{DEFINITIONS}/{name}.crd.example.com"),
            "application/json",
            &Value::Null,
        )
        .await
    };
    let (one, two) = (get("ones").await.1, get("twos").await.1);
    assert_eq!(condition(&one, "Established"), "True InitialNamesAccepted");
    assert_eq!(condition(&two, "NamesAccepted"), "False ListKindConflict");
    assert_eq!(condition(&two, "Established"), "False NotAccepted");
    // Another group may have the names, even if its own name ends these definitions' names.
    let mut outer = definition("ones", "Same", &schema);
    outer["metadata"]["name"] = "ones.example.com".into();
    outer["spec"]["group"] = "example.com".into();
    assert_eq!(post(&router, DEFINITIONS, &outer).await.0, 201);
    let path_of_outer = format!("{DEFINITIONS}/ones.example.com");
    let outer = send(
        &router,
        "GET",
        &path_of_outer,
        "application/json",
        &Value::Null,
    )
    .await;
    assert_eq!(
        condition(&outer.1, "Established"),
        "True InitialNamesAccepted"
    );
    let path = "/apis/crd.example.com/v1/namespaces/default/ones";
    let object =
        json!({"apiVersion": "crd.example.com/v1", "kind": "Same", "metadata": {"name": "a"}});
    assert_eq!(post(&router, path, &object).await.0, 201);
    let deleted = send(
        &router,
        "DELETE",
        &format!("{DEFINITIONS}/ones.crd.example.com"),
        "application/json",
        &Value::Null,
    )
    .await;
    assert_eq!(
        (deleted.0, condition(&deleted.1, "Terminating").as_str()),
        (200, "True InstanceDeletionPending")
    );
    for _ in 0..200 {
        if condition(&get("twos").await.1, "Established") == "True InitialNamesAccepted" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(get("ones").await.0, 404);
    assert_eq!(
        condition(&get("twos").await.1, "Established"),
        "True InitialNamesAccepted"
    );
    kube.shutdown().await;
}

#[test]
fn schemas_that_are_hostile_come_to_an_end() {
    let nested = |n: usize| {
        format!(
            "{}{{\"type\":\"string\"}}{}",
            "{\"type\":\"object\",\"properties\":{\"a\":".repeat(n),
            "}}".repeat(n)
        )
    };
    let rule = "lists.range(100000).all(a, lists.range(100000).all(b, a + b >= 0))";
    let with_rule = json!({"schema": {"type": "object", "x-kubernetes-validations": [{"rule": rule}]}, "value": {}}).to_string();
    let pattern = json!({"schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "((a{1000}){1000}){1000}"}}},
        "value": {"a": "a"}});
    for bytes in [
        nested(2_000),
        format!("{{\"schema\":{},\"value\":{{}}}}", nested(60)),
        with_rule,
        pattern.to_string(),
        "{".into(),
    ] {
        // It matters that there is an answer, not which.
        let _ = tiphys_embedded_kube::try_schema(bytes.as_bytes());
    }
    let good = br#"{"schema": {"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}}, "value": {"a": 4}}"#;
    let said = tiphys_embedded_kube::try_schema(good);
    assert_eq!(
        said,
        Err("a: Invalid value: 4: a in body should be less than or equal to 3".into())
    );
}
