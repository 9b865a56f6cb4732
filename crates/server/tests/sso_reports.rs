//! What people reported about permissions of groups (`../shared/cases/reports/users`), asked of the
//! API with tokens of a provider.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use crate::sso::{Provider, as_user};
use http::Method;
use serde_json::{Value, json};
use std::fs;
use tiphys_gocompat::yaml;

/// Report 03: applications in any namespace have one name for every resource, and `can-i` has it, too.
#[tokio::test]
async fn one_name_for_every_resource() {
    let Some(case) = tiphys_testkit::shared("cases/reports/users/03-exec-any-namespace") else {
        return;
    };
    let read = |file: &str| fs::read_to_string(case.join(file)).expect(file);
    let provider = Provider::start().await;
    let world = provider.world("", &[]).await;
    let limits = yaml::Limits::default();
    for project in yaml::parse_documents(read("projects.yaml"), &limits).expect("YAML") {
        let body = json!({"project": project.value});
        let (status, reply) = world
            .rest(Method::POST, "/api/v1/projects", Some(body))
            .await;
        assert_eq!(status, 200, "{reply}");
    }
    let token = provider.sign(json!({"groups": ["north-admins"]}));
    let rows: Vec<Value> = serde_json::from_str(&read("can-i.json")).expect("JSON");
    assert!(!rows.is_empty());
    for row in rows {
        let (status, reply) = as_user(&world, &token, row["get"].as_str().expect("a path")).await;
        assert_eq!((status, &reply["value"]), (200, &row["value"]), "{row}");
    }
}
