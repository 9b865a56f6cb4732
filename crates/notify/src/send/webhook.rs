//! Webhooks: any request to any URL.

use super::http::{Request, exchange, failed, host};
use super::{Sent, World, upstream};
use crate::{Destination, Notification, Service};
use std::time::Duration;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let mut url = service.text("url").to_owned();
    let (mut method, mut body) = ("GET", notification.message.as_str());
    let own = notification.part("webhook");
    if let Some(own) = own.and_then(|webhooks| webhooks.part(&to.service)) {
        body = own.text("body");
        if !own.text("method").is_empty() {
            method = own.text("method");
        }
        let path = own.text("path");
        if !path.is_empty() {
            let (front, path) = (url.trim_end_matches('/'), path.trim_start_matches('/'));
            url = format!("{front}/{path}");
        }
    }
    let mut request = Request::new(method, url)
        .body(body)
        .insecure(service.flag("insecureSkipVerify"));
    let texts = |value: &serde_json::Value| -> Option<(String, String)> {
        Some((value[0].as_str()?.to_owned(), value[1].as_str()?.to_owned()))
    };
    for header in service.get("headers").as_array().into_iter().flatten() {
        if let Some((name, value)) = texts(header) {
            request
                .headers
                .retain(|(own, _)| !own.eq_ignore_ascii_case(&name));
            request = request.header(&name, value);
        }
    }
    if let Some((user, password)) = texts(service.get("basicAuth")) {
        request
            .headers
            .retain(|(own, _)| !own.eq_ignore_ascii_case("Authorization"));
        request = request.basic(&user, &password);
    }
    attempts(service, &request, world)
}

/// Tries again after errors of the server and of the connection.
fn attempts(service: &Service, request: &Request, world: &mut World<'_>) -> Sent {
    let given = |name: &str, default: i64| match service.integer(name) {
        0 => default,
        given => given,
    };
    let retries = given("retryMax", 3).clamp(0, 20);
    let second = 1_000_000_000;
    let nanos = |n: i64| Duration::from_nanos(u64::try_from(n).unwrap_or(0));
    let (least, most) = (
        nanos(given("retryWaitMin", second)),
        nanos(given("retryWaitMax", 5 * second)),
    );
    for attempt in 0..=retries {
        let last = match exchange(world.transport, request) {
            Ok(response) if response.is_success() => return Ok(()),
            Ok(response) if response.status < 500 && response.status != 429 => {
                return upstream(failed(request, &response));
            }
            Ok(response) => failed(request, &response),
            Err(error) => error.to_string(),
        };
        if attempt == retries {
            return upstream(format!(
                "{} {} giving up after {} attempt(s): {last}",
                request.method,
                host(&request.url),
                retries + 1
            ));
        }
        let exponent = u32::try_from(attempt).unwrap_or(0);
        world
            .transport
            .wait(least.saturating_mul(1 << exponent).min(most));
    }
    Ok(())
}
