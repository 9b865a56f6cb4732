//! The log of a pod: selects and formats its lines, and follows it until the container ends.
//!
//! Main function: [`get`]. The lines come from the log source.

use super::Call;
use super::negotiate::{self, Form};
use crate::registry::Registry;
use crate::sim::Log;
use crate::status::{Cause, Status};
use axum::body::{Body, Bytes};
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use jiff::{SignedDuration, Timestamp};
use std::{convert::Infallible, time::Duration};
use tiphys_apimachinery::Object;
use tiphys_kube_schema::gotypes::read_time;

/// How often a followed log is checked for new lines.
const PAUSE: Duration = Duration::from_millis(200);

/// The options of the request.
struct PodLogOptions {
    container: String,
    previous: bool,
    timestamps: bool,
    since: Option<Timestamp>,
    tail: Option<usize>,
    limit: Option<usize>,
}

impl PodLogOptions {
    fn read(call: &Call<'_>) -> Result<Self, Status> {
        let seconds = call.query.number("sinceSeconds")?;
        let time = match call.query.get("sinceTime").filter(|text| *text != "null") {
            Some(text) => read_time(text)
                .map_err(Status::bad_request)?
                .and_then(|t| t.parse().ok()),
            None => None,
        };
        let (tail, limit) = (
            call.query.number("tailLines")?,
            call.query.number("limitBytes")?,
        );
        let causes = problems(call, seconds, (tail, limit));
        if !causes.is_empty() {
            return Err(Status::invalid("", "PodLogOptions", call.name(), causes));
        }
        let now = call.registry().now();
        let size = |number: Option<i64>| number.and_then(|n| usize::try_from(n).ok());
        Ok(Self {
            container: call.query.get("container").unwrap_or("").to_owned(),
            previous: call.query.flag("previous"),
            timestamps: call.query.flag("timestamps"),
            since: seconds
                .map(|s| {
                    now.saturating_sub(SignedDuration::from_secs(s))
                        .unwrap_or(Timestamp::MIN)
                })
                .or(time),
            tail: size(tail),
            limit: size(limit),
        })
    }

    fn line(&self, time: Timestamp, text: &str) -> String {
        if self.timestamps {
            format!("{time:.9} {text}\n")
        } else {
            format!("{text}\n")
        }
    }

    /// The requested lines, and the total number of lines.
    fn text(&self, log: &Log) -> (String, usize) {
        let from = self
            .tail
            .map_or(0, |tail| log.lines.len().saturating_sub(tail));
        let wanted = log.lines[from..]
            .iter()
            .filter(|(time, _)| self.since.is_none_or(|since| *time >= since));
        let mut text: String = wanted.map(|(time, line)| self.line(*time, line)).collect();
        if let Some(limit) = self.limit {
            text.truncate(text.floor_char_boundary(limit));
        }
        (text, log.lines.len())
    }
}

/// Validates the options.
fn problems(
    call: &Call<'_>,
    seconds: Option<i64>,
    (tail, limit): (Option<i64>, Option<i64>),
) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut invalid = |field: &str, value: i64, detail: &str| {
        causes.push(Cause::invalid(field, &value.into(), detail))
    };
    if let Some(lines) = tail.filter(|n| *n < 0) {
        invalid("tailLines", lines, "must be greater than or equal to 0");
    }
    if let Some(bytes) = limit.filter(|n| *n < 1) {
        invalid("limitBytes", bytes, "must be greater than 0");
    }
    match seconds {
        // The field path of an error without a field is an empty list.
        Some(_) if call.query.has("sinceTime") => {
            causes.push(Cause::forbidden(
                "[]",
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            ));
        }
        Some(seconds) if seconds < 1 => invalid("sinceSeconds", seconds, "must be greater than 0"),
        _ => {}
    }
    if call.query.has("stream") {
        causes.push(Cause::forbidden("stream", "may not be specified"));
    }
    causes
}

/// `GET pods/NAME/log`.
pub fn get(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let wanted = PodLogOptions::read(call)?;
    let pod = call
        .registry()
        .get_stored(&call.resource, &call.namespace, call.name())?
        .object();
    let read = call.shared.logs.clone();
    let log = read(
        &pod,
        &wanted.container,
        wanted.previous,
        call.registry().now(),
    )
    .map_err(Status::bad_request)?;
    if pod.str_at("/spec/nodeName").is_empty() {
        match call.form()? {
            Form::Metadata => {
                return Err(Status::new(
                    500,
                    "",
                    "object does not implement the Object interfaces",
                ));
            }
            Form::MetadataList => return Err(negotiate::no_list("rest.LocationStreamer")),
            _ => {}
        }
        // There is no kubelet to ask.
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let (text, seen) = wanted.text(&log);
    let follows = call.query.flag("follow") && !wanted.previous;
    let body = if !follows || log.ended {
        Body::from(text)
    } else {
        follow(call, &pod, wanted, text, seen)
    };
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

/// A followed log: its container, and how much of it has been sent.
struct Followed {
    registry: Registry,
    read: super::LogSource,
    resource: std::sync::Arc<crate::catalog::Resource>,
    namespace: String,
    name: String,
    uid: String,
    wanted: PodLogOptions,
    seen: usize,
    left: Option<usize>,
}

impl Followed {
    /// The added lines; `None` once there will be no more.
    fn more(&mut self) -> Option<String> {
        let pod = self
            .registry
            .get_stored(&self.resource, &self.namespace, &self.name)
            .ok()?
            .object();
        if pod.uid() != self.uid || self.left == Some(0) {
            return None;
        }
        let log = (self.read)(&pod, &self.wanted.container, false, self.registry.now()).ok()?;
        // The log of a restarted container starts over.
        let from = if log.lines.len() < self.seen {
            0
        } else {
            self.seen
        };
        let mut text: String = log.lines[from..]
            .iter()
            .map(|(time, line)| self.wanted.line(*time, line))
            .collect();
        self.seen = log.lines.len();
        if let Some(left) = &mut self.left {
            text.truncate(text.floor_char_boundary(*left));
            *left -= text.len();
        }
        if text.is_empty() && log.ended {
            None
        } else {
            Some(text)
        }
    }
}

fn follow(call: &Call<'_>, pod: &Object, wanted: PodLogOptions, text: String, seen: usize) -> Body {
    let followed = Followed {
        registry: call.registry().clone(),
        read: call.shared.logs.clone(),
        resource: call.resource.clone(),
        namespace: call.namespace.clone(),
        name: call.name().to_owned(),
        uid: pod.uid().to_owned(),
        left: wanted.limit.map(|limit| limit.saturating_sub(text.len())),
        wanted,
        seen,
    };
    let stream =
        futures::stream::unfold((followed, Some(text)), |(mut followed, first)| async move {
            let text = match first {
                Some(text) => text,
                None => loop {
                    tokio::time::sleep(PAUSE).await;
                    match followed.more()? {
                        text if text.is_empty() => {}
                        text => break text,
                    }
                },
            };
            Some((Ok::<_, Infallible>(Bytes::from(text)), (followed, None)))
        });
    Body::from_stream(stream)
}
