//! Replaces what a server generates in a transcript. Main function: [`normalise`].
//!
//! Uids, object revisions, allocated addresses and ports are replaced by the place where they were
//! first seen, so that "the same as there" is still compared; times, list revisions, continue
//! tokens and ages become one word each. What the script itself sent stays unchanged.

use super::{
    play::{Reply, Transcript, own_address},
    quoted::{key, managers_in_order},
    script::Script,
};
use regex::{Captures, Regex};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|[+-]\d\d:?\d\d))?( UTC)?")
});
static TOKEN_VOLUME: LazyLock<Regex> = LazyLock::new(|| pattern(r"kube-api-access-[a-z0-9]{5}"));
static GENERATED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bgen-[bcdfghjklmnpqrstvwxz2456789]{5}\b"));
/// An age, or the number of a pod's restarts with the age of the last one.
static AGE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(\d+ \()?\d+[smhdy](?:\d+[smhd])?( ago\))?$"));
static OWN_GROUP: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(diff-[0-9a-f]{5}-\d{5}|\{ns\})\.example\.(com|org)$"));
/// A revision in a text that mentions one: any other number may equal one by chance.
static TOLD_REVISION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)((?:resource ?version|current)[^0-9,{}\[\]]{0,40}?\b)(\d+)\b(?:( \()(\d+)\))?")
});
/// The object that holds an allocated address, as an error names it.
static KEPT_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"IPAddress\.networking\.k8s\.io "([0-9.]+)""#));
/// A node port in a Table's cell, and in an error.
static SHOWN_PORTS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        pattern(r"(:)(\d{5})(/(?:TCP|UDP|SCTP))"),
        pattern(r#"(odePort(?:: Duplicate value: |\\*":))(\d{5})(\b)"#),
    ]
});
/// The revision in a completely quoted object, which no response may have contained.
static QUOTED_REVISION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(\\"resourceVersion\\":\\")(\d+)"#));
static TWICE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(Duplicate value: |duplicate nodePort: \{[A-Z]+ )(\d{5})(\}?)$"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of ours")
}

/// The replies with placeholders for what no two servers agree on.
pub fn normalise(script: &Script, transcript: &Transcript) -> Vec<Reply> {
    let sent = serde_json::to_string(script)
        .unwrap_or_default()
        .replace("${ns}", &transcript.namespace)
        .replace("${ip}", &own_address(&transcript.namespace));
    let mut seen = Seen {
        sent,
        namespace: &transcript.namespace,
        ..Seen::default()
    };
    for (index, reply) in transcript.replies.iter().enumerate() {
        seen.collect(&reply.body, &mut vec![index.to_string()]);
        for (n, event) in without_chance(&reply.events).enumerate() {
            seen.collect(event, &mut vec![index.to_string(), n.to_string()]);
        }
        let base = script.steps.get(index).and_then(|step| {
            step.body
                .as_ref()?
                .pointer("/metadata/generateName")?
                .as_str()
        });
        seen.collect_refused(
            &reply.body,
            &base
                .unwrap_or_default()
                .replace("${ns}", &transcript.namespace),
            index,
        );
    }
    let one = |reply: &Reply| Reply {
        status: reply.status,
        headers: reply
            .headers
            .iter()
            .map(|(k, v)| (k.clone(), v.iter().map(|t| seen.text(t)).collect()))
            .collect(),
        body: seen.value(&reply.body, false),
        events: seen
            .in_order(without_chance(&reply.events))
            .into_iter()
            .map(|e| seen.value(e, false))
            .collect(),
    };
    transcript.replies.iter().map(one).collect()
}

/// The events that do not depend on chance. A CRD's finalizer may find that its kind is not listed
/// yet, and retry: only the first attempt counts.
fn without_chance(events: &[Value]) -> impl Iterator<Item = &Value> {
    let mut cleaned = HashSet::new();
    events.iter().filter(move |event| {
        let conditions = event
            .pointer("/object/status/conditions")
            .and_then(Value::as_array);
        let cleaning = conditions
            .and_then(|list| list.iter().find(|c| c["type"] == "Terminating"))
            .map_or("", |c| c["reason"].as_str().unwrap_or_default());
        let uid = event
            .pointer("/object/metadata/uid")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let again = event["type"] == "MODIFIED"
            && (cleaning == "InstanceDeletionFailed"
                || (cleaning == "InstanceDeletionInProgress" && !cleaned.insert(uid)));
        !again && !is_periodic(event)
    })
}

/// A periodic bookmark, as opposed to the one that ends the initial events.
pub(super) fn is_periodic(event: &Value) -> bool {
    let marks_the_end = event.to_string().contains("k8s.io/initial-events-end");
    event["type"] == "BOOKMARK" && !marks_the_end
}

/// The name of a listed object, or of one in an event or a row of a Table.
fn name(value: &Value) -> Option<&str> {
    ["/metadata/name", "/object/metadata/name"]
        .iter()
        .find_map(|at| value.pointer(at)?.as_str())
}

fn namespace(value: &Value) -> Option<&str> {
    ["/metadata/namespace", "/object/metadata/namespace"]
        .iter()
        .find_map(|at| value.pointer(at)?.as_str())
}

/// In the order of steps: their numbers have no leading zeros.
fn first_seen<'a>(made_up: Option<(&str, &'a str)>) -> (usize, &'a str) {
    let place = made_up.map_or("", |(_, place)| place);
    (
        place.chars().take_while(char::is_ascii_digit).count(),
        place,
    )
}

/// Generated values and their placeholders.
#[derive(Default)]
struct Seen<'a> {
    sent: String,
    namespace: &'a str,
    uids: BTreeMap<String, String>,
    revisions: BTreeMap<String, String>,
    addresses: BTreeMap<String, String>,
    ports: BTreeMap<i64, String>,
    names: BTreeMap<String, String>,
}

impl Seen<'_> {
    fn collect(&mut self, value: &Value, at: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::Object(metadata)) = map.get("metadata") {
                    self.collect_metadata(metadata, at);
                }
                for (key, inner) in map {
                    at.push(key.clone());
                    self.collect_field(key, inner, at);
                    self.collect(inner, at);
                    at.pop();
                }
            }
            Value::Array(list) => {
                for (index, inner) in list.iter().enumerate() {
                    at.push(index.to_string());
                    self.collect(inner, at);
                    at.pop();
                }
            }
            Value::String(text) => {
                for found in UUID.find_iter(text) {
                    let place = format!("{{uid@{}}}", at.join("/"));
                    self.uids.entry(found.as_str().to_owned()).or_insert(place);
                }
                self.collect_shown(text, at);
            }
            _ => {}
        }
    }

    /// Allocated values in a Table's cell or in an error.
    fn collect_shown(&mut self, text: &str, at: &[String]) {
        let place = at.join("/");
        if at.iter().any(|word| word == "cells") {
            self.address(text, &place);
        }
        for found in KEPT_ADDRESS.captures_iter(text) {
            self.address(&found[1], &place);
        }
        for (n, found) in SHOWN_PORTS
            .iter()
            .flat_map(|shown| shown.captures_iter(text))
            .enumerate()
        {
            self.port(&found[2], &format!("{place}/{n}"));
        }
    }

    fn port(&mut self, port: &str, place: &str) {
        if let (false, Ok(number)) = (self.sent.contains(port), port.parse()) {
            self.ports
                .entry(number)
                .or_insert_with(|| format!("{{port@{place}}}"));
        }
    }

    fn collect_metadata(&mut self, metadata: &serde_json::Map<String, Value>, at: &[String]) {
        let text = |key: &str| {
            metadata
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if !text("uid").is_empty() && !text("resourceVersion").is_empty() {
            let place = format!("{{rv@{}}}", at.join("/"));
            self.revisions
                .entry(text("resourceVersion").to_owned())
                .or_insert(place);
        }
        let (base, name) = (text("generateName"), text("name"));
        if !base.is_empty() && name.len() >= 5 && !self.sent.contains(name) {
            let place = format!("{{{}+{}@{}}}", &name[..name.len() - 5], 5, at.join("/"))
                .replace(self.namespace, "{ns}");
            self.names.entry(name.to_owned()).or_insert(place);
        }
    }

    /// The name that an object was given before it was refused.
    fn collect_refused(&mut self, status: &Value, base: &str, step: usize) {
        let name = status
            .pointer("/details/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let made_up = name.strip_prefix(base).is_some_and(|end| end.len() == 5);
        if !base.is_empty() && made_up && !self.sent.contains(name) {
            let place = format!("{{{base}+5@{step}}}").replace(self.namespace, "{ns}");
            self.names.entry(name.to_owned()).or_insert(place);
        }
    }

    fn collect_field(&mut self, key: &str, value: &Value, at: &[String]) {
        let place = at.join("/");
        match (key, value) {
            ("clusterIP", Value::String(ip)) => self.address(ip, &place),
            ("clusterIPs", Value::Array(list)) => list
                .iter()
                .filter_map(Value::as_str)
                .for_each(|ip| self.address(ip, &place)),
            ("nodePort" | "healthCheckNodePort", Value::Number(port))
                if port.as_i64() != Some(0) =>
            {
                self.port(&port.to_string(), &place)
            }
            ("message", Value::String(text)) => {
                if let Some(port) = TWICE.captures(text) {
                    self.port(&port[2], &place);
                }
            }
            _ => {}
        }
    }

    fn address(&mut self, ip: &str, place: &str) {
        // A prefix of a network that was sent is not an address that was sent.
        let sent = self.sent.match_indices(ip).any(|(at, _)| {
            !self.sent[at + ip.len()..].starts_with(|c: char| c.is_ascii_digit() || c == '/')
        });
        if ip.parse::<std::net::IpAddr>().is_ok() && !sent {
            self.addresses
                .entry(ip.to_owned())
                .or_insert_with(|| format!("{{ip@{place}}}"));
        }
    }

    /// `in_table` is true below a Table's cells.
    fn value(&self, value: &Value, in_table: bool) -> Value {
        match value {
            Value::Object(map) => {
                let has_uid = map.get("uid").is_some();
                let one = |(k, v): (&String, &Value)| {
                    let v = match (k.as_str(), v) {
                        ("resourceVersion", Value::String(rv)) => self.revision(rv, has_uid),
                        ("continue", Value::String(_)) => "{continue}".into(),
                        ("token", Value::String(t)) if t.starts_with("ey") => "{token}".into(),
                        ("serverAddress", Value::String(_)) => "{address}".into(),
                        ("nodePort" | "healthCheckNodePort", Value::Number(n)) => {
                            let place = n.as_i64().and_then(|n| self.ports.get(&n));
                            place.map_or_else(|| v.clone(), |p| p.as_str().into())
                        }
                        ("managedFields", Value::Array(list)) => self.managers(list, in_table),
                        _ => self.value(v, in_table || k == "cells"),
                    };
                    (self.text(k), v)
                };
                let mut out: serde_json::Map<String, Value> = map.iter().map(one).collect();
                let groups = match map.get("kind").and_then(Value::as_str) {
                    Some("APIGroupDiscoveryList") => Some(("items", "/metadata/name")),
                    Some("APIGroupList") => Some(("groups", "/name")),
                    _ => None,
                };
                if let Some((Value::Array(list), name)) =
                    groups.and_then(|(field, name)| Some((out.get_mut(field)?, name)))
                {
                    // Other scripts have kinds of their own, which come and go.
                    list.retain(|group| {
                        !OWN_GROUP
                            .is_match(group.pointer(name).and_then(Value::as_str).unwrap_or(""))
                    });
                }
                for rules in ["resourceRules", "nonResourceRules"] {
                    // The rules of a user are in the order of a cache.
                    if let (true, Some(Value::Array(list))) =
                        (map.contains_key("incomplete"), out.get_mut(rules))
                    {
                        list.sort_by_key(Value::to_string);
                    }
                }
                if let Some(Value::Array(list)) = out.get_mut("resources") {
                    // Discovery lists custom kinds in the order of a Go map.
                    list.sort_by_key(|r| r["name"].as_str().unwrap_or_default().to_owned());
                }
                Value::Object(out)
            }
            Value::Array(list) => Value::Array(
                self.listed(list)
                    .into_iter()
                    .map(|v| self.value(v, in_table))
                    .collect(),
            ),
            Value::String(text) if in_table && AGE.is_match(text) => {
                AGE.replace(text, "${1}{age}${2}").into()
            }
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }

    /// For a listed object with a generated name: its prefix (empty for a uid), and where it was
    /// first seen.
    fn made_up(&self, value: &Value) -> Option<(&str, &str)> {
        let name = name(value)?;
        match self.uids.get(name) {
            Some(place) => Some(("", place)),
            None => self.names.get(name)?.split_once('@'),
        }
    }

    /// Objects with generated names are sorted by these. Those with the same prefix that are
    /// adjacent and in the right order are put into the order in which they were first seen.
    fn in_order<'v>(&self, list: impl Iterator<Item = &'v Value>) -> Vec<&'v Value> {
        let mut list: Vec<&Value> = list.collect();
        let base = |value: &Value| self.made_up(value).map(|(base, _)| base);
        for run in list.chunk_by_mut(|a, b| base(a).is_some() && base(a) == base(b)) {
            if run.is_sorted_by_key(|value| name(value)) {
                run.sort_by_key(|value| first_seen(self.made_up(value)));
            }
        }
        list
    }

    /// The same in a list that is sorted as a whole, where a generated name can come before or
    /// after the others.
    fn listed<'v>(&self, list: &'v [Value]) -> Vec<&'v Value> {
        let place = |value: &&'v Value| (namespace(value), name(value));
        let mut list: Vec<&Value> = list.iter().collect();
        if !list.iter().any(|value| self.made_up(value).is_some()) || !list.is_sorted_by_key(place)
        {
            return self.in_order(list.into_iter());
        }
        list.sort_by_key(|value| {
            let made_up = self.made_up(value);
            (
                namespace(value),
                made_up.map_or(name(value), |(base, _)| Some(base)),
                first_seen(made_up),
            )
        });
        list
    }

    /// Managers are ordered by time, which changes if a second ended between two writes. A list
    /// that is not in the correct order stays unchanged.
    fn managers(&self, list: &[Value], in_table: bool) -> Value {
        let mut out: Vec<Value> = list
            .iter()
            .map(|entry| self.value(entry, in_table))
            .collect();
        if list.is_sorted_by_key(|entry| key(entry, "time")) {
            out.sort_by_key(|entry| key(entry, ""));
        }
        out.into()
    }

    fn revision(&self, rv: &str, of_object: bool) -> Value {
        match self.revisions.get(rv) {
            Some(place) if of_object => place.as_str().into(),
            _ if rv.is_empty() => rv.into(),
            _ => "{rv of a list}".into(),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut out = managers_in_order(text);
        for (name, place) in &self.names {
            out = out.replace(name, place);
        }
        for (address, place) in &self.addresses {
            if out.contains(address.as_str()) {
                out = replace_token(&out, address, place);
            }
        }
        let out = out
            .replace(self.namespace, "{ns}")
            .replace(&own_address(self.namespace), "{ip}");
        let place = |port: &str| port.parse().ok().and_then(|n: i64| self.ports.get(&n));
        let shown = |c: &Captures<'_>| {
            place(&c[2]).map_or_else(|| c[0].to_owned(), |p| format!("{}{p}{}", &c[1], &c[3]))
        };
        let out = TWICE.replace(&out, shown);
        let out = SHOWN_PORTS.iter().fold(out.into_owned(), |out, pattern| {
            pattern.replace_all(&out, shown).into_owned()
        });
        let out = UUID.replace_all(&out, |c: &Captures<'_>| {
            self.uids
                .get(&c[0])
                .cloned()
                .unwrap_or_else(|| c[0].to_owned())
        });
        let out = TIME.replace_all(&out, |c: &Captures<'_>| {
            let digits = c.get(1).map_or(0, |m| m.as_str().len());
            let date = c[0].replacen(' ', "T", 1);
            let known = date.get(..19).is_some_and(|d| self.sent.contains(d));
            if known {
                c[0].to_owned()
            } else {
                format!("{{now.{digits}}}")
            }
        });
        let out = TOKEN_VOLUME.replace_all(&out, "kube-api-access-{5}");
        // An error contains a generated name that never occurs again.
        let out = GENERATED.replace_all(&out, "gen-{5}");
        let lower = out.to_ascii_lowercase();
        if !lower.contains("resource version") && !lower.contains("resourceversion") {
            return out.into_owned();
        }
        let never_told = |c: &Captures<'_>| {
            let known = self.revisions.contains_key(&c[2]) || self.sent.contains(&c[2]);
            if known {
                c[0].to_owned()
            } else {
                format!("{}{{rv}}", &c[1])
            }
        };
        let out = QUOTED_REVISION.replace_all(&out, never_told);
        let of_a_list = ["too large", "too old", "in the precondition"]
            .iter()
            .any(|words| lower.contains(words));
        let number = |number: &str| match self.revisions.get(number) {
            Some(place) => place.clone(),
            None if of_a_list && !self.sent.contains(number) => "{rv of a list}".to_owned(),
            None => number.to_owned(),
        };
        let told = |c: &Captures<'_>| {
            let oldest = c
                .get(4)
                .map(|m| format!("{}{})", &c[3], number(m.as_str())))
                .unwrap_or_default();
            format!("{}{}{oldest}", &c[1], number(&c[2]))
        };
        TOLD_REVISION.replace_all(&out, told).into_owned()
    }
}

/// Replaces an address, but not a prefix of a longer one.
fn replace_token(text: &str, token: &str, with: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(token) {
        let end = at + token.len();
        out.push_str(&rest[..at]);
        // Nor the address of a network.
        let longer = rest[end..].starts_with(|c: char| c.is_ascii_digit() || c == '/');
        out.push_str(if longer { token } else { with });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
