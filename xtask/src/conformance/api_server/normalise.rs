//! Replaces what differs from run to run by the placeholders of the recorded answers. Main type:
//! [`Normaliser`].

use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Times that fixtures name, by their beginnings.
const KEPT: [&str; 8] = [
    "2006-01", "2026-01", "2025-12", "1970-01", "2026-08", "0001-01", "2100-01", "2099",
];
/// Fields with an object as text.
const EMBEDDED: [&str; 5] = [
    "manifest",
    "liveState",
    "targetState",
    "predictedLiveState",
    "normalizedLiveState",
];

const ABSENT: &str = "<absent>";

pub struct Normaliser {
    /// Texts of this run, with the placeholders of the fixtures.
    pub known: Vec<(String, String)>,
    /// Tokens by name.
    pub tokens: BTreeMap<String, String>,
    token: Regex,
    time: Regex,
    rules: Vec<(Regex, &'static str)>,
    uid: Regex,
    unix: Regex,
    version: Regex,
}

impl Normaliser {
    pub fn new(tokens: BTreeMap<String, String>) -> anyhow::Result<Self> {
        let rules = [
            (r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}", "<BCRYPT>"),
            (r"\b([a-z-]+)\.[0-9a-f]{16}\b", "$1.<RAND>"),
            (r"127\.0\.0\.1:[345]\d{4}\b", "127.0.0.1:<PORT>"),
            (
                r#"/(?:tmp|dev/shm)/_?[A-Za-z0-9_.-]*(?:\d{5,}|<UID>)[^\s"':,]*"#,
                "<TEMP>",
            ),
            (r"\b\d+(?:\.\d+)?(?:µs|ms)\b", "<DURATION>"),
            (r"kube-api-access-[a-z0-9]{5}\b", "kube-api-access-<RAND>"),
        ];
        let rules = rules.map(|(pattern, to)| Ok((Regex::new(pattern)?, to)));
        Ok(Self {
            known: Vec::new(),
            tokens,
            token: Regex::new(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")?,
            time: Regex::new(
                r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d| [+-]\d{4} UTC)?",
            )?,
            rules: rules.into_iter().collect::<anyhow::Result<_>>()?,
            uid: Regex::new(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")?,
            unix: Regex::new(r"\b1[789]\d{8}\b")?,
            version: Regex::new(r#"(resourceVersion\\?"?: ?\\?"?)(\d+)"#)?,
        })
    }

    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (found, placeholder) in self.known.iter().filter(|(found, _)| !found.is_empty()) {
            text = text.replace(found, placeholder);
        }
        let token = |found: &Captures| {
            let named = self.tokens.iter().find(|(_, token)| **token == found[0]);
            named.map_or_else(
                || "<TOKEN>".to_owned(),
                |(name, _)| format!("<TOKEN:{name}>"),
            )
        };
        let text = self.token.replace_all(&text, token);
        let text = self.uid.replace_all(&text, |found: &Captures| {
            let is_fixture = ["11111111-", "00000000-"]
                .iter()
                .any(|p| found[0].starts_with(p));
            (if is_fixture { &found[0] } else { "<UID>" }).to_owned()
        });
        let text = self.time.replace_all(&text, |found: &Captures| {
            let is_kept = KEPT.iter().any(|beginning| found[0].starts_with(beginning));
            (if is_kept { &found[0] } else { "<TIME>" }).to_owned()
        });
        let text = self.unix.replace_all(&text, |found: &Captures| {
            let is_fixture = found[0].starts_with("1767225");
            (if is_fixture { &found[0] } else { "<UNIXTIME>" }).to_owned()
        });
        let text = self.version.replace_all(&text, |found: &Captures| {
            let version = match &found[2] {
                fixed @ ("100" | "101" | "102") => fixed,
                _ => "<RV>",
            };
            format!("{}{version}", &found[1])
        });
        let rules = self.rules.iter();
        rules.fold(text.into_owned(), |text, (rule, to)| {
            rule.replace_all(&text, *to).into_owned()
        })
    }

    pub fn value(&self, value: &Value) -> Value {
        self.field(value, "")
    }

    fn field(&self, value: &Value, name: &str) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, v)| {
                    let placeholder = match (name.as_str(), v) {
                        ("resourceVersion", Value::String(s))
                            if !["100", "101", "102", "0", ""].contains(&s.as_str()) =>
                        {
                            Some("<RV>")
                        }
                        ("generation" | "observedGeneration", Value::Number(_)) => {
                            Some("<GENERATION>")
                        }
                        ("managedFields", _) => Some("<MANAGEDFIELDS>"),
                        _ => None,
                    };
                    let v = placeholder.map_or_else(|| self.field(v, name), Value::from);
                    (self.text(name), v)
                });
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.iter().map(|item| self.field(item, "")).collect(),
            Value::String(text) => self.string(text, name).into(),
            Value::Number(n) => match n.as_i64() {
                Some(1_770_000_001..2_000_000_000) => "<UNIXTIME>".into(),
                _ => value.clone(),
            },
            other => other.clone(),
        }
    }

    fn string(&self, text: &str, name: &str) -> String {
        if EMBEDDED.contains(&name)
            && text.len() > 20
            && text.starts_with(['{', '['])
            && let Ok(embedded) = serde_json::from_str::<Value>(text)
        {
            return format!("json:{}", self.value(&embedded));
        }
        self.text(text)
    }

    /// The value of a header in the recorded form.
    pub fn header(&self, name: &str, value: &str) -> String {
        match name {
            "last-modified" | "expires"
                if !value.starts_with("Thu, 01 Jan 1970") && value != "0" =>
            {
                "<HTTPTIME>".into()
            }
            "etag" => "<ETAG>".into(),
            "set-cookie" => {
                let (pair, rest) = value.split_once(';').unwrap_or((value, ""));
                let (cookie, content) = pair.split_once('=').unwrap_or((pair, ""));
                let is_ours = cookie.starts_with("argocd.");
                // Ours has one for each sign-in, which is removed with it.
                let (cookie, rest) = match cookie.strip_prefix("argocd.oauthstate.") {
                    Some(_) => ("argocd.oauthstate", rest.replace(" Max-Age=0;", "")),
                    None => (cookie, rest.to_owned()),
                };
                let parts = content
                    .split_once(':')
                    .filter(|(n, _)| n.parse::<u8>().is_ok());
                let rest = match rest.split_once("Expires=") {
                    Some((before, after)) => {
                        let after = after.split_once(';').map_or("", |(_, after)| after);
                        format!("{before}Expires=<HTTPTIME>;{after}")
                    }
                    None => rest,
                };
                let content = match content {
                    _ if parts.is_some() => {
                        let (count, part) = parts.unwrap_or_default();
                        format!("{count}:<{} CHARACTERS>", part.len())
                    }
                    "" => String::new(),
                    token if token.contains("eyJ") || !is_ours => self.text(token),
                    _ => "<VALUE>".into(),
                };
                format!("{cookie}={content};{rest}")
            }
            _ => self.text(value),
        }
    }
}

/// Lists sorted by their text, where the recorded order means nothing.
pub fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, v)| (name.clone(), ordered(v)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(ordered).collect();
            items.sort_by_key(Value::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

/// How an answer differs from the recorded one, at most a few places.
pub fn differences(want: &Value, got: &Value, at: &str, found: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(w), Value::Object(g)) => {
            let absent = Value::from(ABSENT);
            let more = g.keys().filter(|key| !w.contains_key(*key));
            let keys = w.keys().chain(more);
            // We keep none of these in memory, and no client shows them.
            for key in keys.filter(|key| *key != "managedFields") {
                let (w, g) = (w.get(key).unwrap_or(&absent), g.get(key).unwrap_or(&absent));
                differences(w, g, &format!("{at}/{key}"), found);
            }
        }
        (Value::Array(w), Value::Array(g)) if w.len() == g.len() => {
            for (number, (w, g)) in w.iter().zip(g).enumerate() {
                differences(w, g, &format!("{at}/{number}"), found);
            }
        }
        (Value::String(w), Value::String(g)) if same_text(w, g) => {}
        // Go has two kinds of empty lists, and optional fields that it writes all the same.
        (Value::Null, Value::Array(items)) if items.is_empty() => {}
        (Value::Null, Value::String(absent)) if absent == ABSENT => {}
        _ if want == got => {}
        _ => {
            let (want, got) = apart(&want.to_string(), &got.to_string());
            found.push(format!("{at}: wanted {want}, got {got}"));
        }
    }
}

fn same_text(want: &str, got: &str) -> bool {
    let one_of = || {
        let inner = want.strip_prefix('<')?.strip_suffix('>')?;
        inner
            .contains(" OR ")
            .then(|| inner.split(" OR ").any(|text| text == got))
    };
    let parsed = |text: &str| serde_json::from_str::<Value>(text.strip_prefix("json:")?).ok();
    want == got
        || one_of().unwrap_or(false)
        || parsed(want).is_some_and(|w| parsed(got).is_some_and(|g| w == g))
}

/// Two texts from a little before the place where they part.
fn apart(want: &str, got: &str) -> (String, String) {
    const SAME: usize = 60;
    let same = want.chars().zip(got.chars()).take_while(|(w, g)| w == g);
    let skipped = same.count().saturating_sub(SAME);
    let shown = |text: &str| {
        let mut rest = text.chars().skip(skipped);
        let part: String = rest.by_ref().take(180).collect();
        let before = if skipped > 0 { "…" } else { "" };
        let after = if rest.next().is_some() { "…" } else { "" };
        format!("{before}{part}{after}")
    };
    (shown(want), shown(got))
}
