//! Alertmanager: an alert to each of its replicas.

use super::http::{Request, exchange, failed};
use super::{Sent, World, config, upstream};
use crate::{Notification, Service};
use serde_json::{Value as Json, json};
use std::time::Duration;

pub(super) fn send(service: &Service, notification: &Notification, world: &mut World<'_>) -> Sent {
    let Some(part) = notification.part("alertmanager") else {
        return config("notification alertmanager no config");
    };
    let of = |name: &str| part.get(name).cloned().unwrap_or_default();
    let alert = json!([{
        "labels": of("labels"),
        "annotations": of("annotations"),
        "generatorURL": web_url(part.text("generatorURL")),
        "startsAt": world.now.to_string(),
    }]);
    let given = |name: &str, default: &'static str| match service.text(name) {
        "" => default.to_owned(),
        own => own.to_owned(),
    };
    let local = json!(["127.0.0.1:9093"]);
    let targets = match service.get("targets").as_array() {
        Some(targets) if !targets.is_empty() => targets,
        _ => local.as_array().unwrap_or(const { &Vec::new() }),
    };
    let timeout = match service.integer("timeout") {
        0 => 3,
        own => own,
    };
    let mut problem = String::from("there is no target");
    let mut received = false;
    for target in targets.iter().filter_map(Json::as_str) {
        let url = format!(
            "{}://{target}{}",
            given("scheme", "http"),
            given("apiPath", PATH)
        );
        let mut request = Request::post(url)
            .json(&alert)
            .insecure(service.flag("insecureSkipVerify"));
        request.timeout = Duration::from_secs(u64::try_from(timeout).unwrap_or(3));
        if let [Json::String(user), Json::String(password)] = service
            .get("basicAuth")
            .as_array()
            .map_or(&[][..], Vec::as_slice)
        {
            request = request.basic(user, password);
        } else if !service.text("bearerToken").is_empty() {
            request = request.bearer(service.text("bearerToken"));
        }
        match exchange(world.transport, &request) {
            Ok(answer) if answer.status == 200 => received = true,
            Ok(answer) => problem = failed(&request, &answer),
            Err(error) => problem = error.to_string(),
        }
    }
    if received {
        return Ok(());
    }
    upstream(format!(
        "no events were successfully received by alertmanager: {problem}"
    ))
}

const PATH: &str = "/api/v2/alerts";

/// `git@host:path` as a URL of the web.
fn web_url(url: &str) -> String {
    match url.strip_prefix("git@") {
        Some(rest) => format!("https://{}", rest.replacen(':', "/", 1)),
        None => url.to_owned(),
    }
}
