//! The values of charts in Applications, as they are written through the API.

use super::APPS;
use crate::common::{World, app};
use http::Method;
use serde_json::{Value, json};
use tiphys_server::ports::Store as _;

/// An Application with these values in its source, or in the second of two.
fn with_values(values: &Value, in_several: bool) -> Value {
    let mut wanted = app("a");
    let mut source = wanted["spec"]["source"].clone();
    source["helm"] = json!({"valuesObject": values});
    if in_several {
        let plain = wanted["spec"]["source"].take();
        wanted["spec"]["sources"] = json!([plain, source]);
        wanted["spec"]
            .as_object_mut()
            .expect("a spec")
            .remove("source");
    } else {
        wanted["spec"]["source"] = source;
    }
    wanted
}

/// A null takes a default out of the chart's values, so it must not get lost, as in a merge patch.
#[tokio::test]
async fn a_null_in_values_is_kept() {
    let first = json!({"a": null, "b": {"c": null, "d": [null, {"e": null}]}});
    let second = json!({"a": null, "b": {"c": null, "f": null}, "g": 1});
    let third = json!({"b": null, "g": null});
    let fourth = json!({"b": 1, "h": {"i": null}});
    for (in_several, at) in [
        (false, "/source/helm/valuesObject"),
        (true, "/sources/1/helm/valuesObject"),
    ] {
        let world = World::start().await;
        let whole = |values: &Value| with_values(values, in_several);
        let operation =
            json!([{"op": "replace", "path": format!("/spec{at}"), "value": fourth}]).to_string();
        for (method, path, body, values) in [
            (Method::POST, APPS.to_owned(), whole(&first), &first),
            // Nothing is different.
            (Method::POST, APPS.into(), whole(&first), &first),
            (
                Method::POST,
                format!("{APPS}?upsert=true"),
                whole(&second),
                &second,
            ),
            (Method::PUT, format!("{APPS}/a"), whole(&third), &third),
            (
                Method::PUT,
                format!("{APPS}/a/spec"),
                whole(&first)["spec"].clone(),
                &first,
            ),
            (
                Method::PATCH,
                format!("{APPS}/a"),
                json!({"patchType": "json", "patch": operation}),
                &fourth,
            ),
        ] {
            let what = format!("{method} {path} {in_several}");
            let (status, reply) = world.rest(method, &path, Some(body)).await;
            assert_eq!(status, 200, "{what}: {reply}");
            // An update of the specification is answered with one.
            let spec = reply.get("spec").unwrap_or(&reply);
            assert_eq!(spec.pointer(at), Some(values), "{what}");
            let stored = world.store.get_app("argocd", "a").await.expect("stored");
            let stored = serde_json::to_value(&stored.spec).expect("JSON");
            assert_eq!(stored.pointer(at), Some(values), "{what}");
            let (_, read) = world.rest(Method::GET, &format!("{APPS}/a"), None).await;
            assert_eq!(read["spec"].pointer(at), Some(values), "{what}");
        }
        // A null that is all that differs.
        let (status, refused) = world
            .rest(Method::POST, APPS, Some(whole(&json!({"b": 1}))))
            .await;
        assert_eq!(status, 400, "{refused}");
    }
}
