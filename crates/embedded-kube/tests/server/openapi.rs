//! Custom kinds in OpenAPI documents, compared with a real server's (`openapi.json`, without the
//! descriptions of the fields that every object has).

use crate::server::support::{get, post, start};
use serde_json::Value;
use tiphys_embedded_kube::Data;

/// Removes the real server's descriptions of lists, which are not reproduced.
fn without_words(mut schema: Value) -> Value {
    if let Some(map) = schema
        .pointer_mut("/properties/items")
        .and_then(Value::as_object_mut)
    {
        map.remove("description");
    }
    schema
}

#[tokio::test]
async fn custom_kinds_are_published_as_by_the_real_server() {
    let recorded: Value =
        serde_json::from_str(include_str!("openapi.json")).expect("the answers are JSON");
    let kube = start(Data::Memory).await;
    let router = kube.router();
    for definition in recorded["definitions"].as_array().expect("definitions") {
        let (code, answer) = post(
            &router,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition,
        )
        .await;
        assert_eq!(code, 201, "{answer}");
    }
    let (_, v2) = get(&router, "/openapi/v2").await;
    let (_, v3) = get(&router, "/openapi/v3/apis/openapi.example.com/v1").await;
    for (version, found) in [
        ("v2", &v2["definitions"]),
        ("v3", &v3["components"]["schemas"]),
    ] {
        let expected = recorded[version].as_object().expect("schemas");
        assert_eq!(expected.len(), 6);
        for (name, schema) in expected {
            let fields = schema["properties"]["spec"]["properties"].as_object();
            for (field, wanted) in fields.into_iter().flatten() {
                assert_eq!(
                    &found[name]["properties"]["spec"]["properties"][field], wanted,
                    "{version} {name} {field}"
                );
            }
            assert_eq!(
                without_words(found[name].clone()),
                without_words(schema.clone()),
                "{version} {name}"
            );
        }
    }
}
