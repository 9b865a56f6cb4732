//! Invalid objects of built-in kinds, compared with the answers of a real API server in
//! `kinds.txt`. That file describes its own format.

use crate::server::support::{post, send};
use serde_json::{Value, json};
use tiphys_embedded_kube::{EmbeddedKube, Options};

const TABLE: &str = include_str!("kinds.txt");
const JSON: &str = "application/json";

/// The object with another value at the pointer, or without one.
fn changed(object: &Value, pointer: &str, value: &str) -> Value {
    let mut object = object.clone();
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    let last = last.replace("~1", "/").replace("~0", "~");
    let value = (value != "-").then(|| serde_json::from_str(value).expect("a value"));
    match (object.pointer_mut(parent).expect("the parent"), value) {
        (Value::Object(map), Some(value)) => drop(map.insert(last, value)),
        (Value::Object(map), None) => drop(map.remove(&last)),
        (Value::Array(list), Some(value)) => list[last.parse::<usize>().expect("an index")] = value,
        (other, _) => panic!("{pointer} in {other}"),
    }
    object
}

#[tokio::test]
async fn refusals_are_those_of_a_real_api_server() {
    let options = Options {
        controllers: false,
        ..Options::default()
    };
    let kube = EmbeddedKube::start(options)
        .await
        .expect("the server starts");
    let router = kube.router();
    post(
        &router,
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "kinds"}}),
    )
    .await;
    let (mut path, mut object, mut answer) = ("", Value::Null, (0, Value::Null));
    let (mut asked, mut wrong, mut count) = ("", Vec::new(), 0);
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let (mark, rest) = line.split_once(' ').expect("a mark");
        let (first, second) = rest.split_once(' ').expect("two parts");
        match mark {
            "@" => {
                path = first;
                object = serde_json::from_str(second).expect("an object");
                let (code, created) = post(&router, path, &object).await;
                assert_eq!(code, 201, "{path} {created}");
                object["metadata"]["resourceVersion"] =
                    created["metadata"]["resourceVersion"].clone();
            }
            "=" => {
                count += 1;
                let wanted: Value = serde_json::from_str(second).expect("a message");
                if (first, &wanted) != (answer.0.to_string().as_str(), &answer.1["message"]) {
                    wrong.push(format!(
                        "{path} {asked}\n  wanted {first} {wanted}\n  got {} {}",
                        answer.0, answer.1["message"]
                    ));
                }
            }
            operation => {
                asked = line;
                let mut sent = changed(&object, first, second);
                let name = object["metadata"]["name"].as_str().expect("a name");
                answer = if operation == "u" {
                    send(
                        &router,
                        "PUT",
                        &format!("{path}/{name}?dryRun=All"),
                        JSON,
                        &sent,
                    )
                    .await
                } else {
                    sent["metadata"]
                        .as_object_mut()
                        .expect("metadata")
                        .remove("resourceVersion");
                    post(&router, &format!("{path}?dryRun=All"), &sent).await
                };
            }
        }
    }
    assert!(count > 300, "{count} cases");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    kube.shutdown().await;
}
