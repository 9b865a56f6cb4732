//! Plays a script against a server. Main function: [`play`]; main type: [`Transcript`].

use super::generate::samples;
use super::script::{Script, Step, Watch, fill};
use super::server::{RawReply, Request, Server, Stream};
use crate::api::TransportError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// The response to a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    pub status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Text that is not JSON is a string.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// The events of a drained watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
}

/// The status for a response that never came because the server dropped the request while
/// processing it.
pub const BROKEN: u16 = 599;

/// The responses of one server, one per step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub namespace: String,
    pub replies: Vec<Reply>,
}

/// How long to wait for delayed effects.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A watch that was silent for this long has no more events.
    pub quiet: Duration,
    /// How long to wait for as many events as the other server sent.
    pub events: Duration,
    /// How long a step is repeated.
    pub until: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(40),
            events: Duration::from_millis(1500),
            until: Duration::from_secs(8),
        }
    }
}

/// Runs all steps; `other` are another server's responses, which determine how many events to wait
/// for.
///
/// # Errors
/// If the server does not respond.
pub fn play(
    server: &dyn Server,
    script: &Script,
    namespace: &str,
    other: Option<&Transcript>,
    patience: Patience,
) -> Result<Transcript, TransportError> {
    let mut player = Player {
        server,
        namespace,
        replies: Vec::new(),
        streams: BTreeMap::new(),
        touched: BTreeSet::new(),
    };
    player.make_namespace()?;
    let mut outcome = Ok(());
    for (index, step) in script.steps.iter().enumerate() {
        let expected = other
            .and_then(|t| t.replies.get(index))
            .map(|r| r.events.len());
        match player.step(index, step, expected, patience) {
            Ok(reply) => player.replies.push(reply),
            Err(error) => {
                outcome = Err(TransportError(format!(
                    "step {index}, {}: {}",
                    step.title(),
                    error.0
                )));
                break;
            }
        }
    }
    let cleaned = player.clean_up();
    outcome.and(cleaned)?;
    Ok(Transcript {
        namespace: namespace.to_owned(),
        replies: player.replies,
    })
}

struct Player<'a> {
    server: &'a dyn Server,
    namespace: &'a str,
    replies: Vec<Reply>,
    streams: BTreeMap<usize, Stream>,
    /// Collections and cluster-scoped objects that the script may have created.
    touched: BTreeSet<String>,
}

impl Player<'_> {
    fn make_namespace(&self) -> Result<(), TransportError> {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let reply = self.server.send(&plain(
            "POST",
            "/api/v1/namespaces",
            Some(object.to_string()),
        ))?;
        if reply.status == 201 || reply.status == 409 {
            return Ok(());
        }
        Err(TransportError(format!(
            "namespace {}: {} {}",
            self.namespace, reply.status, reply.body
        )))
    }

    /// The value of a placeholder; `none` if it does not exist.
    fn value(&self, name: &str) -> String {
        match name {
            "ns" => return self.namespace.to_owned(),
            "ip" => return own_address(self.namespace),
            _ => {}
        }
        let mut words = name.split('.');
        let reply = words
            .next()
            .and_then(|n| n.parse::<usize>().ok())
            .and_then(|n| self.replies.get(n));
        let value = reply.and_then(|r| {
            words.try_fold(&r.body, |value, word| match word.parse::<usize>() {
                Ok(index) if value.is_array() => value.get(index),
                _ => value.get(word),
            })
        });
        match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "none".to_owned(),
            Some(other) => other.to_string(),
        }
    }

    fn request(&self, step: &Step) -> Request {
        let fill = |text: &str| fill(text, &|name| self.value(name));
        let query = fill(&step.query);
        let target = if query.is_empty() {
            fill(&step.path)
        } else {
            format!("{}?{query}", fill(&step.path))
        };
        let method = if step.watch.is_some() {
            "GET".to_owned()
        } else {
            step.method.clone()
        };
        let content_type = match (&step.content_type, step.body.is_some()) {
            (given, true) if given.is_empty() => "application/json".to_owned(),
            (given, _) => given.clone(),
        };
        Request {
            method,
            target,
            accept: step.accept.clone(),
            content_type,
            body: step.payload().map(|b| fill(&b)),
        }
    }

    fn step(
        &mut self,
        index: usize,
        step: &Step,
        expected: Option<usize>,
        patience: Patience,
    ) -> Result<Reply, TransportError> {
        match step.watch {
            Some(Watch::Start) => {
                let (raw, stream) = self.server.open(&self.request(step))?;
                if let Some(stream) = stream {
                    self.streams.insert(index, stream);
                }
                Ok(reply(raw))
            }
            Some(Watch::Drain(of)) => Ok(Reply {
                events: self.drain(of, expected, patience),
                ..Reply::default()
            }),
            None => {
                let request = self.request(step);
                self.remember(step, &request);
                self.ask(&request, step.until, patience)
            }
        }
    }

    fn ask(
        &self,
        request: &Request,
        until: Option<u16>,
        patience: Patience,
    ) -> Result<Reply, TransportError> {
        let deadline = Instant::now() + patience.until;
        loop {
            let raw = match self.server.send(request) {
                // Not even started.
                Err(error) if error.0.contains("refused stream") && Instant::now() < deadline => {
                    continue;
                }
                Err(error) if error.0.contains("stream error received") => {
                    return Ok(Reply {
                        status: BROKEN,
                        body: error.0.into(),
                        ..Reply::default()
                    });
                }
                other => other?,
            };
            if until.is_none_or(|status| status == raw.status) || Instant::now() > deadline {
                return Ok(reply(raw));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn drain(&self, of: usize, expected: Option<usize>, patience: Patience) -> Vec<Value> {
        let Some(stream) = self.streams.get(&of) else {
            return Vec::new();
        };
        let deadline = Instant::now() + patience.events;
        let mut events = Vec::new();
        loop {
            let waiting = expected.is_some_and(|n| events.len() < n);
            let wait = if waiting {
                deadline
                    .saturating_duration_since(Instant::now())
                    .max(patience.quiet)
            } else {
                patience.quiet
            };
            match stream.next(wait) {
                Some(line) => {
                    events.push(serde_json::from_str(&line).unwrap_or(Value::String(line)))
                }
                None => return events,
            }
        }
    }

    fn remember(&mut self, step: &Step, request: &Request) {
        let path = request.target.split('?').next().unwrap_or_default();
        let words: Vec<&str> = path.trim_matches('/').split('/').collect();
        let prefix = if words.first() == Some(&"api") { 2 } else { 3 };
        if !matches!(step.method.as_str(), "POST" | "PUT" | "PATCH") || words.len() <= prefix {
            return;
        }
        let inside = words[prefix] == "namespaces" && words.len() > prefix + 2;
        let length = if inside { prefix + 3 } else { prefix + 1 };
        let collection = format!("/{}", words[..length].join("/"));
        if inside {
            self.touched.insert(collection);
            return;
        }
        let name = match words.get(length) {
            Some(name) => Some((*name).to_owned()),
            None => step
                .body
                .as_ref()
                .and_then(|b| b.pointer("/metadata/name"))
                .and_then(Value::as_str)
                .map(str::to_owned),
        };
        let name = name.map(|n| fill(&n, &|placeholder| self.value(placeholder)));
        // Objects that belong to no script are left alone.
        if let Some(name) =
            name.filter(|n| n.contains(self.namespace) || *n == own_address(self.namespace))
        {
            self.touched.insert(format!("{collection}/{name}"));
        }
    }

    /// Removes what the script left, so that thousands of scripts do not fill a server.
    fn clean_up(&self) -> Result<(), TransportError> {
        let own = format!("/api/v1/namespaces/{}", self.namespace);
        let now = "?gracePeriodSeconds=0&propagationPolicy=Background";
        for path in self.touched.iter().filter(|p| **p != own) {
            let reply = self
                .server
                .send(&plain("DELETE", &format!("{path}{now}"), None))?;
            if reply.status >= 300 {
                continue;
            }
            let left = self.server.send(&plain("GET", path, None))?;
            let left: Value = serde_json::from_str(&left.body).unwrap_or_default();
            let single = left.get("metadata").and_then(|m| m.get("uid")).is_some();
            let objects = if single {
                vec![left]
            } else {
                left["items"].as_array().cloned().unwrap_or_default()
            };
            for object in objects {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let path = if single {
                    path.clone()
                } else {
                    format!("{path}/{name}")
                };
                let mut patch = plain(
                    "PATCH",
                    &path,
                    Some(json!({"metadata": {"finalizers": null}}).to_string()),
                );
                patch.content_type = "application/merge-patch+json".to_owned();
                self.server.send(&patch)?;
                self.server
                    .send(&plain("DELETE", &format!("{path}{now}"), None))?;
            }
        }
        self.server.send(&plain("DELETE", &own, None))?;
        let finalize = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}, "spec": {}});
        self.server.send(&plain(
            "PUT",
            &format!("{own}/finalize"),
            Some(finalize.to_string()),
        ))?;
        Ok(())
    }
}

/// An address that no other script uses, from the documentation's network.
pub fn own_address(namespace: &str) -> String {
    // FNV-1a
    let hash = namespace.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("2001:db8::{:x}:{:x}", (hash >> 16) | 1, (hash & 0xffff) | 1)
}

/// Makes sure that the scripts' custom kinds are served.
///
/// # Errors
/// If the server refuses them, or does not serve them in time.
pub fn install(server: &dyn Server) -> Result<(), String> {
    let send = |method: &str, target: &str, body: Option<String>| {
        server.send(&plain(method, target, body)).map_err(|e| e.0)
    };
    for definition in samples::definitions() {
        let reply = send(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            Some(definition.to_string()),
        )?;
        if !matches!(reply.status, 201 | 409) {
            return Err(format!("{} {}", reply.status, reply.body));
        }
        let plural = definition["spec"]["names"]["plural"]
            .as_str()
            .unwrap_or_default();
        for version in definition["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let path = format!(
                "/apis/diff.example.com/{}/{plural}",
                version["name"].as_str().unwrap_or_default()
            );
            let deadline = Instant::now() + Duration::from_secs(30);
            while send("GET", &path, None)?.status != 200 {
                if Instant::now() > deadline {
                    return Err(format!("{path} is not served"));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    Ok(())
}

fn plain(method: &str, target: &str, body: Option<String>) -> Request {
    let content_type = "application/json".to_owned();
    Request {
        method: method.to_owned(),
        target: target.to_owned(),
        accept: String::new(),
        content_type,
        body,
    }
}

fn reply(raw: RawReply) -> Reply {
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in raw.headers {
        headers.entry(name).or_default().push(value);
    }
    let body = serde_json::from_str(&raw.body).unwrap_or(if raw.body.is_empty() {
        Value::Null
    } else {
        Value::String(raw.body)
    });
    Reply {
        status: raw.status,
        headers,
        body,
        events: Vec::new(),
    }
}
