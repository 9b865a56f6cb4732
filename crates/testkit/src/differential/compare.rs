//! Differences between two transcripts of one script. Main function: [`differences`]; main type:
//! [`Difference`].

use super::{
    play::{BROKEN, Reply},
    rules::Rule,
    script::{Script, Step, Watch},
};
use regex::Regex;
use serde_json::Value;
use std::{collections::BTreeSet, sync::LazyLock};

static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|'[^']*'"#).expect("a pattern of ours"));
static VOLUME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(template\.spec\.volumes)\[\d+\]").expect("a pattern of ours"));
static DIGITS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d+").expect("a pattern of ours"));

/// The first difference in the responses to one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub step: usize,
    /// The resource in the path, with its subresource: `deployments/scale`.
    pub kind: String,
    /// `create`, `merge patch`, `list`, ...
    pub verb: &'static str,
    /// `status`, `header.warning`, `events`, or a field of the body, list indexes as `*`.
    pub at: String,
    pub expected: String,
    pub found: String,
    /// A generalized description, which is the same for differences that probably have one cause,
    /// whatever the kind.
    pub word: String,
    /// Kind, verb and `word`.
    pub signature: String,
    /// A rule says that it is intended.
    pub explained: bool,
}

/// Compares normalized replies. After a difference in a write, later ones in the same collection
/// are consequences and are left out. A difference that a rule explains is marked, and everything
/// else is still compared.
pub fn differences(
    script: &Script,
    rules: &[Rule],
    expected: &[Reply],
    found: &[Reply],
) -> Vec<Difference> {
    let mut out = Vec::new();
    let mut tainted: BTreeSet<String> = BTreeSet::new();
    for (index, step) in script.steps.iter().enumerate() {
        let subject = match step.watch {
            Some(Watch::Drain(of)) => script.steps.get(of).unwrap_or(step),
            _ => step,
        };
        let collection = collection(&subject.path);
        let (Some(want), Some(got)) = (expected.get(index), found.get(index)) else {
            break;
        };
        if tainted.contains(&collection) {
            continue;
        }
        let (kind, verb) = (kind(&subject.path), verb(step));
        let (want, got) = (
            &claims_in_any_order(&kind, want),
            &claims_in_any_order(&kind, got),
        );
        let mut meant = Meant {
            rules,
            kind: &kind,
            verb,
            seen: Vec::new(),
        };
        let unexplained = if meant.breaks(step, want, got) {
            None
        } else {
            first(want, got, &mut meant)
        };
        for (of, (at, expected, found, word)) in meant.seen {
            let signature = format!("{} {}: {word}", of.kind, of.verb);
            out.push(Difference {
                step: index,
                kind: of.kind.clone(),
                verb,
                at,
                expected,
                found,
                word,
                signature,
                explained: true,
            });
        }
        let Some((at, expected, found, word)) = unexplained else {
            continue;
        };
        let signature = format!("{kind} {verb}: {word}");
        out.push(Difference {
            step: index,
            kind,
            verb,
            at,
            expected,
            found,
            word,
            signature,
            explained: false,
        });
        if want.status < 400 || got.status < 400 {
            tainted.insert(collection);
        }
    }
    out
}

/// The volumes of a StatefulSet's claims come before its own in the order of a Go map.
fn claims_in_any_order(kind: &str, reply: &Reply) -> Reply {
    let mut reply = reply.clone();
    if kind == "statefulsets" && reply.status == 422 {
        reply.body = serde_json::from_str(&VOLUME.replace_all(&reply.body.to_string(), "$1[*]"))
            .unwrap_or(reply.body);
    }
    reply
}

fn lists_null(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(|item| item.is_null() || lists_null(item)),
        Value::Object(map) => map.values().any(lists_null),
        _ => false,
    }
}

/// Whether an element of a list has a list or a map as its merge key.
fn has_parts_for_key(value: &Value) -> bool {
    const KEYS: [&str; 9] = [
        "containerPort",
        "devicePath",
        "ip",
        "mountPath",
        "name",
        "port",
        "topologyKey",
        "type",
        "uid",
    ];
    let has_parts = |value: &Value| value.is_array() || value.is_object();
    match value {
        Value::Array(list) => list
            .iter()
            .any(|item| KEYS.iter().any(|key| has_parts(&item[*key])) || has_parts_for_key(item)),
        Value::Object(map) => map.values().any(has_parts_for_key),
        _ => false,
    }
}

type Found = (String, String, String, String);

/// The rules, and which of them were needed for one response.
struct Meant<'r> {
    rules: &'r [Rule],
    kind: &'r str,
    verb: &'static str,
    seen: Vec<(&'r Rule, Found)>,
}

impl<'r> Meant<'r> {
    fn explains(&mut self, at: &str, want: &Value, got: &Value) -> bool {
        let (want, got) = (brief(want), brief(got));
        let rule = self
            .rules
            .iter()
            .find(|r| r.explains(self.kind, self.verb, at, &want, &got));
        self.note(rule, at, want, got)
    }

    fn note(&mut self, rule: Option<&'r Rule>, at: &str, want: String, got: String) -> bool {
        self.seen
            .extend(rule.map(|rule| (rule, (at.to_owned(), want, got, format!("{at} is meant")))));
        rule.is_some()
    }

    /// The real server's library for JSON patches crashes when it compares a list element with
    /// null, the one for strategic patches when it compares merge keys that are lists or maps.
    fn breaks(&mut self, step: &Step, want: &Reply, got: &Reply) -> bool {
        let compares = |operation: &Value| {
            operation["op"] == "test" && operation.get("value").is_some_and(lists_null)
        };
        let operations = step
            .body
            .as_ref()
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let cause = match self.verb {
            "json patch" => operations.iter().any(compares),
            "strategic patch" => step.body.as_ref().is_some_and(has_parts_for_key),
            _ => false,
        };
        if want.status != BROKEN || got.status != 422 || !cause {
            return false;
        }
        let rule = self
            .rules
            .iter()
            .find(|r| r.verb == self.verb && r.at == "connection");
        self.note(rule, "connection", BROKEN.to_string(), brief(&got.body))
    }

    /// Removes the descriptions of columns from two Tables if the real server's is a sentence and
    /// ours is the column's name.
    fn columns(&mut self, want: &mut Value, got: &mut Value) {
        let rule = self.rules.iter().find(|r| r.kind == "Table");
        for pointer in ["/columnDefinitions", "/object/columnDefinitions"] {
            let (Some(Value::Array(a)), Some(Value::Array(b))) =
                (want.pointer_mut(pointer), got.pointer_mut(pointer))
            else {
                continue;
            };
            for (x, y) in a
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .zip(b.iter_mut().filter_map(Value::as_object_mut))
            {
                let is_text = x
                    .get("description")
                    .and_then(Value::as_str)
                    .is_some_and(|text| text.contains(' '));
                let differ = x.get("description") != y.get("description");
                if is_text && differ && y.get("description") == y.get("name") {
                    let (text, name) = (x.remove("description"), y.remove("description"));
                    self.note(
                        rule,
                        "columnDefinitions.*.description",
                        brief(&text.unwrap_or_default()),
                        brief(&name.unwrap_or_default()),
                    );
                }
            }
        }
    }
}

fn first(want: &Reply, got: &Reply, meant: &mut Meant<'_>) -> Option<Found> {
    if want.status != got.status {
        let (side, refusal) = if want.status >= 400 {
            ("", &want.body)
        } else {
            (" ours:", &got.body)
        };
        let word = format!(
            "{} became {};{side} {}",
            want.status,
            got.status,
            reason_of(refusal)
        );
        let show = |r: &Reply| format!("{} {}", r.status, brief(&r.body));
        return Some(("status".into(), show(want), show(got), word));
    }
    causes(want, got)
        .or_else(|| body(want, got, meant))
        .or_else(|| headers(want, got))
        .or_else(|| events(want, got, meant))
}

/// Errors are compared cause by cause, so that each missing one is reported.
fn causes(want: &Reply, got: &Reply) -> Option<Found> {
    let list = |r: &Reply| {
        r.body
            .pointer("/details/causes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (mut a, mut b) = (list(want), list(got));
    // Fields that are maps are validated in the order of a Go map.
    let key = |cause: &Value| cause.to_string();
    if a.len() == b.len() {
        a.sort_by_key(key);
        b.sort_by_key(key);
    }
    let index = (0..a.len().max(b.len())).find(|i| a.get(*i) != b.get(*i))?;
    let word = |list: &[Value]| {
        list.get(index)
            .map_or_else(|| "nothing".to_owned(), cause_text)
    };
    let show = |list: &[Value]| {
        list.get(index)
            .map_or_else(|| "nothing".to_owned(), Value::to_string)
    };
    Some((
        "details.causes".into(),
        show(&a),
        show(&b),
        format!("cause `{}` became `{}`", word(&a), word(&b)),
    ))
}

fn body(want: &Reply, got: &Reply, meant: &mut Meant<'_>) -> Option<Found> {
    let message = |r: &Reply| {
        r.body
            .get("message")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let letters = |text: Option<String>| {
        let mut letters: Vec<char> = text.unwrap_or_default().chars().collect();
        letters.sort_unstable();
        letters
    };
    let causes = want.body.pointer("/details/causes").is_some();
    if want.status >= 400 && causes && letters(message(want)) == letters(message(got)) {
        // The same causes in another order.
        return None;
    }
    if want.status >= 400 && message(want) != message(got) {
        if message(want).map(one_of_a_map) == message(got).map(one_of_a_map) {
            return None;
        }
        let (a, b) = (
            message(want).unwrap_or_else(|| brief(&want.body)),
            message(got).unwrap_or_else(|| brief(&got.body)),
        );
        let word = format!("message `{}` became `{}`", general(&a), general(&b));
        return Some(("message".into(), a, b, word));
    }
    let (mut a, mut b) = (want.body.clone(), got.body.clone());
    meant.columns(&mut a, &mut b);
    walk(&a, &b, "", meant)
}

/// If several fields are unknown, an error names the first in the order of a Go map; all errors of
/// a typed object are listed in that order.
fn one_of_a_map(message: String) -> String {
    const UNDECLARED: &str = ": field not declared in schema";
    let (head, list) = message
        .split_once("Kind=")
        .and_then(|(_, rest)| rest.split_once("): "))
        .unwrap_or(("", &message));
    if head.is_empty() && !list.ends_with(UNDECLARED) {
        return message;
    }
    let lines: Vec<&str> = list
        .trim_start_matches("errors:\n")
        .lines()
        .map(str::trim)
        .collect();
    let parent = |line: &str| {
        line.strip_suffix(UNDECLARED)
            .and_then(|path| path.rsplit_once('.'))
            .map(|(parent, _)| format!("{parent}."))
    };
    let all: BTreeSet<String> = lines.iter().filter_map(|line| parent(line)).collect();
    let parents: Vec<&String> = all
        .iter()
        .filter(|one| {
            !all.iter()
                .any(|other| *one != other && one.starts_with(other.as_str()))
        })
        .collect();
    // Other errors in a map with an unknown field are reported only if they are found first.
    let others = lines
        .into_iter()
        .filter(|line| {
            !parents
                .iter()
                .any(|parent| line.starts_with(parent.as_str()))
        })
        .map(str::to_owned);
    let told: BTreeSet<String> = others
        .chain(
            parents
                .iter()
                .map(|parent| format!("{parent}*{UNDECLARED}")),
        )
        .collect();
    format!(
        "{head}: {}",
        told.into_iter().collect::<Vec<_>>().join("\n")
    )
}

fn headers(want: &Reply, got: &Reply) -> Option<Found> {
    let names: BTreeSet<&String> = want.headers.keys().chain(got.headers.keys()).collect();
    names.into_iter().find_map(|name| {
        let none = Vec::new();
        let (a, b) = (
            want.headers.get(name).unwrap_or(&none),
            got.headers.get(name).unwrap_or(&none),
        );
        let index = (0..a.len().max(b.len())).find(|i| a.get(*i) != b.get(*i))?;
        let show = |list: &[String]| {
            list.get(index)
                .cloned()
                .unwrap_or_else(|| "nothing".to_owned())
        };
        let word = format!(
            "header {name} `{}` became `{}`",
            general(&show(a)),
            general(&show(b))
        );
        Some((format!("header.{name}"), show(a), show(b), word))
    })
}

fn events(want: &Reply, got: &Reply, meant: &mut Meant<'_>) -> Option<Found> {
    let (mut a, mut b) = (want.events.clone(), got.events.clone());
    a.iter_mut()
        .zip(&mut b)
        .for_each(|(x, y)| meant.columns(x, y));
    let index = (0..a.len().max(b.len())).find(|i| a.get(*i) != b.get(*i))?;
    match (a.get(index), b.get(index)) {
        (Some(x), Some(y)) if x["type"] == y["type"] => walk(x, y, "events.*", meant),
        (x, y) => {
            let kind = |e: Option<&Value>| {
                e.map_or("nothing", |e| e["type"].as_str().unwrap_or("no event"))
                    .to_owned()
            };
            let show = |e: Option<&Value>| e.map_or_else(|| "nothing".to_owned(), brief);
            Some((
                "events".into(),
                show(x),
                show(y),
                format!("event {} became {}", kind(x), kind(y)),
            ))
        }
    }
}

/// The first field, in order, that differs.
fn walk(want: &Value, got: &Value, at: &str, meant: &mut Meant<'_>) -> Option<Found> {
    match (want, got) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| {
                let at = if at.is_empty() {
                    key.clone()
                } else {
                    format!("{at}.{key}")
                };
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => walk(x, y, &at, meant),
                    (Some(x), None) => Some((
                        at.clone(),
                        brief(x),
                        "nothing".into(),
                        format!("{at} is missing"),
                    )),
                    (None, Some(y)) => Some((
                        at.clone(),
                        "nothing".into(),
                        brief(y),
                        format!("{at} is too much"),
                    )),
                    (None, None) => None,
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let (a, b) = (by_manager(at, a), by_manager(at, b));
            let at = format!("{at}.*");
            (0..a.len().max(b.len())).find_map(|index| match (a.get(index), b.get(index)) {
                (Some(x), Some(y)) => walk(x, y, &at, meant),
                (Some(x), None) => Some((
                    at.clone(),
                    brief(x),
                    "nothing".into(),
                    format!("{at}: an entry is missing"),
                )),
                (None, y) => Some((
                    at.clone(),
                    "nothing".into(),
                    y.map(brief).unwrap_or_default(),
                    format!("{at}: an entry is too much"),
                )),
            })
        }
        (a, b) if a == b || meant.explains(at, a, b) => None,
        (a, b) => {
            let (x, y) = (brief(a), brief(b));
            let word = format!("{at} `{}` became `{}`", general(&x), general(&y));
            Some((at.to_owned(), x, y, word))
        }
    }
}

/// The managers of an object are ordered by time, so it matters whether a second passed between two
/// writes.
fn by_manager(at: &str, list: &[Value]) -> Vec<Value> {
    let mut list = list.to_vec();
    if at.ends_with("managedFields") {
        let key = |entry: &Value| {
            ["operation", "manager", "apiVersion", "subresource"]
                .map(|field| entry[field].to_string())
        };
        list.sort_by_key(key);
    }
    list
}

fn reason_of(body: &Value) -> String {
    match body.pointer("/details/causes/0") {
        Some(cause) => cause_text(cause),
        None => general(
            body.get("message")
                .and_then(Value::as_str)
                .unwrap_or(&brief(body)),
        ),
    }
}

fn cause_text(cause: &Value) -> String {
    let text = |key: &str| cause[key].as_str().unwrap_or_default();
    general(&format!("{}: {}", text("field"), text("message")))
}

/// A text without what differs from one object to the next.
fn general(text: &str) -> String {
    let out = QUOTED.replace_all(text, "\"…\"");
    let out = DIGITS.replace_all(&out, "N");
    let mut short: String = out.chars().take(160).collect();
    if short.len() < out.len() {
        short.push('…');
    }
    short
}

fn brief(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut short: String = text.chars().take(1500).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The segments of a path beginning with the resource.
fn resource_words(path: &str) -> Vec<&str> {
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    let prefix = match words.first() {
        Some(&"api") => 2,
        Some(&"apis") => 3,
        _ => return words,
    };
    match words.get(prefix) {
        Some(&"namespaces")
            if words.len() > prefix + 2 && !matches!(words[prefix + 2], "status" | "finalize") =>
        {
            words[prefix + 2..].to_vec()
        }
        Some(_) => words[prefix..].to_vec(),
        None => words,
    }
}

fn collection(path: &str) -> String {
    resource_words(path)
        .first()
        .copied()
        .unwrap_or_default()
        .to_owned()
}

/// The collection that a path belongs to, with the subresource.
pub fn kind(path: &str) -> String {
    let words = resource_words(path);
    if !path.starts_with("/api/") && !path.starts_with("/apis/")
        || words.first().is_some_and(|w| w.starts_with("api"))
    {
        return path.to_owned();
    }
    match words.as_slice() {
        [resource, _, sub, ..] => format!("{resource}/{sub}"),
        [resource, ..] => (*resource).to_owned(),
        [] => path.to_owned(),
    }
}

/// Kubernetes' verb for a step.
pub fn verb(step: &Step) -> &'static str {
    let document = kind(&step.path).starts_with('/');
    let named = document || resource_words(&step.path).len() > 1;
    match (step.method.as_str(), step.watch) {
        (_, Some(_)) => "watch",
        ("GET", _) if named => "get",
        ("GET", _) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => match step.content_type.as_str() {
            "application/json-patch+json" => "json patch",
            "application/merge-patch+json" => "merge patch",
            "application/strategic-merge-patch+json" => "strategic patch",
            _ => "apply",
        },
        ("DELETE", _) if named => "delete",
        ("DELETE", _) => "deletecollection",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(method: &str, path: &str) -> Step {
        Step {
            method: method.into(),
            path: path.into(),
            ..Step::default()
        }
    }

    #[test]
    fn a_difference_names_kind_verb_and_field_and_silences_what_follows_from_it() {
        let path = "/apis/apps/v1/namespaces/${ns}/deployments";
        let script = Script {
            steps: vec![step("POST", path), step("GET", path)],
            ..Script::default()
        };
        let reply = |n: u8| Reply {
            status: 200,
            body: json!({"spec": {"list": [{"a": n}]}}),
            ..Reply::default()
        };
        let found = differences(&script, &[], &[reply(1), reply(1)], &[reply(2), reply(3)]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].kind.as_str(), found[0].verb, found[0].at.as_str()),
            ("deployments", "create", "spec.list.*.a")
        );
        assert!(differences(&script, &[], &[reply(1), reply(1)], &[reply(1), reply(1)]).is_empty());
    }

    #[test]
    fn what_is_listed_in_the_order_of_a_map_may_stand_in_any() {
        let list = |lines: [&str; 2]| {
            one_of_a_map(format!(
                "failed (a; Kind=X): errors:\n  {}\n  {}",
                lines[0], lines[1]
            ))
        };
        assert_eq!(
            list([".a: wrong", ".b: wrong"]),
            list([".b: wrong", ".a: wrong"])
        );
        assert_ne!(
            list([".a: wrong", ".b: wrong"]),
            list([".a: wrong", ".c: wrong"])
        );
        let undeclared = |path: &str| one_of_a_map(format!("{path}: field not declared in schema"));
        assert_eq!(undeclared(".spec.a"), undeclared(".spec.b"));
        assert_ne!(undeclared(".spec.a"), undeclared(".status.a"));
    }

    #[test]
    fn paths_name_their_kind() {
        for (path, wanted) in [
            ("/api/v1/namespaces/${ns}/pods/p/status", "pods/status"),
            ("/api/v1/namespaces/${ns}", "namespaces"),
            ("/api/v1/namespaces/${ns}/finalize", "namespaces/finalize"),
            ("/apis/apps/v1/deployments", "deployments"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/version", "/version"),
        ] {
            assert_eq!(kind(path), wanted, "{path}");
        }
    }
}
