//! Webhooks: any request to any URL.

use super::http::{Request, exchange, failed, host};
use super::slack::is_web_url;
use super::{Sent, World, config, upstream};
use crate::{Destination, Notification, Service};
use std::time::Duration;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    // A file of a Secret may end with a line break.
    let mut url = service.text("url").trim().to_owned();
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
            if OF_TRANSPORT
                .iter()
                .any(|own| own.eq_ignore_ascii_case(&name))
            {
                continue;
            }
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
    match mistake(service, &request) {
        Some(mistake) => config(mistake),
        None => attempts(service, &request, world),
    }
}

/// Why no attempt can succeed.
fn mistake(service: &Service, request: &Request) -> Option<String> {
    if !is_web_url(service.text("url").trim()) {
        return Some("url is not a URL of HTTP".into());
    }
    if !is_token(&request.method) {
        return Some(format!("{:?} is not a method", request.method));
    }
    let is_text = |value: &str| value.chars().all(|c| c == '\t' || !c.is_ascii_control());
    let mut headers = request.headers.iter();
    let (name, _) = headers.find(|(name, value)| !is_token(name) || !is_text(value))?;
    Some(format!("the header {name:?} has a bad name or value"))
}

/// Whether it may be a method, or the name of a header.
fn is_token(text: &str) -> bool {
    let is_mark = |c: char| "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || is_mark(c))
}

/// Headers that follow from URL and body. As in Argo CD the configuration cannot set them: a wrong
/// length would leave the server waiting.
const OF_TRANSPORT: [&str; 4] = ["Host", "Content-Length", "Transfer-Encoding", "Trailer"];
/// Longest time between two attempts, whoever asks for it: other messages wait meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Longest time between the first attempt and the last one, but for the attempts themselves, whose
/// time the transport knows.
const LONGEST_WAITS: Duration = Duration::from_secs(300);

/// Whether another attempt may have another result.
fn is_passing(status: u16) -> bool {
    status == 429 || status >= 500 && status != 501
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
    let mut waited = Duration::ZERO;
    for attempt in 0..=retries {
        let (last, asked) = match exchange(world.transport, request) {
            Ok(response) if response.is_success() => return Ok(()),
            Ok(response) if !is_passing(response.status) => {
                return upstream(failed(request, &response));
            }
            Ok(response) => {
                let asked = response.retry_after;
                let asked = asked.filter(|_| matches!(response.status, 429 | 503));
                (failed(request, &response), asked)
            }
            Err(error) => (error.to_string(), None),
        };
        let exponent = u32::try_from(attempt).unwrap_or(0);
        let own = least.saturating_mul(1 << exponent).min(most);
        let pause = asked.map_or(own, |asked| asked.max(least));
        let pause = pause.min(LONGEST_WAIT);
        let is_late = waited + pause > LONGEST_WAITS;
        if attempt < retries && !is_late {
            world.transport.wait(pause);
            waited += pause;
        }
        if attempt == retries || is_late || world.transport.is_over() {
            return upstream(format!(
                "{} {} giving up after {} attempt(s): {last}",
                request.method,
                host(&request.url),
                attempt + 1
            ));
        }
    }
    Ok(())
}
