//! One rule of a role: what it allows, whether it covers another rule, and how it is printed. Main
//! type: [`Rule`], a plain value.

use super::attributes::{Attributes, quoted};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub names: Vec<String>,
    pub urls: Vec<String>,
}

/// The fields of a `PolicyRule` in JSON.
const FIELDS: [&str; 5] = [
    "verbs",
    "apiGroups",
    "resources",
    "resourceNames",
    "nonResourceURLs",
];

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|w| w == word)
}

fn any(list: &[String], word: &str) -> bool {
    list.iter().any(|w| w == "*" || w == word)
}

fn url_matches(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

impl Rule {
    pub fn from_json(value: &Value) -> Self {
        let words = |field: &str| -> Vec<String> {
            let list = value.get(field).and_then(Value::as_array);
            list.map(|l| {
                l.iter()
                    .filter_map(|w| w.as_str().map(str::to_owned))
                    .collect()
            })
            .unwrap_or_default()
        };
        let [verbs, groups, resources, names, urls] = FIELDS.map(words);
        Self {
            verbs,
            groups,
            resources,
            names,
            urls,
        }
    }

    /// The rules of a role object, or of `rules` alone.
    pub fn list(value: Option<&Value>) -> Vec<Self> {
        value
            .and_then(Value::as_array)
            .map(|l| l.iter().map(Self::from_json).collect())
            .unwrap_or_default()
    }

    pub fn to_json(&self) -> Value {
        let lists = [
            &self.verbs,
            &self.groups,
            &self.resources,
            &self.names,
            &self.urls,
        ];
        let pairs = FIELDS
            .iter()
            .zip(lists)
            .filter(|(field, list)| !list.is_empty() || **field == "verbs");
        Value::Object(
            pairs
                .map(|(field, list)| ((*field).to_owned(), json!(list)))
                .collect::<Map<_, _>>(),
        )
    }

    pub fn allows(&self, asked: &Attributes) -> bool {
        if !any(&self.verbs, &asked.verb) {
            return false;
        }
        if !asked.is_resource {
            return self
                .urls
                .iter()
                .any(|u| u == "*" || url_matches(u, &asked.path));
        }
        any(&self.groups, &asked.group)
            && (self.names.is_empty() || has(&self.names, &asked.name))
            && self
                .resources
                .iter()
                .any(|r| resource_matches(r, &asked.resource, &asked.subresource))
    }

    /// Whether this rule alone covers `part`, a broken-down rule.
    fn covers(&self, part: &Self) -> bool {
        let all = |own: &[String], asked: &[String], star: bool| {
            (star && has(own, "*")) || asked.iter().all(|a| has(own, a))
        };
        let resource = |path: &String| {
            any(&self.resources, path)
                || path
                    .split_once('/')
                    .is_some_and(|(_, sub)| has(&self.resources, &format!("*/{sub}")))
        };
        let names = self.names.is_empty()
            || (!part.names.is_empty() && all(&self.names, &part.names, false));
        all(&self.verbs, &part.verbs, true)
            && all(&self.groups, &part.groups, true)
            && part.resources.iter().all(resource)
            && names
            && part
                .urls
                .iter()
                .all(|p| self.urls.iter().any(|own| url_matches(own, p)))
    }

    /// Rules with one verb, one resource and at most one name each.
    fn parts(&self) -> Vec<Self> {
        let one = |w: &String| vec![w.clone()];
        let names: Vec<Vec<String>> = if self.names.is_empty() {
            vec![Vec::new()]
        } else {
            self.names.iter().map(one).collect()
        };
        let mut parts = Vec::new();
        for (group, resource) in self
            .groups
            .iter()
            .flat_map(|g| self.resources.iter().map(move |r| (g, r)))
        {
            for (verb, names) in self
                .verbs
                .iter()
                .flat_map(|v| names.iter().map(move |n| (v, n)))
            {
                let (verbs, groups, resources) = (one(verb), one(group), one(resource));
                parts.push(Self {
                    verbs,
                    groups,
                    resources,
                    names: names.clone(),
                    urls: Vec::new(),
                });
            }
        }
        for (url, verb) in self
            .urls
            .iter()
            .flat_map(|u| self.verbs.iter().map(move |v| (u, v)))
        {
            parts.push(Self {
                verbs: one(verb),
                urls: one(url),
                ..Self::default()
            });
        }
        parts
    }

    /// The form in which errors show a rule.
    fn compact(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown = fields
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", quoted_list(list)));
        format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }
}

/// As Go's `%q` prints a list of texts.
pub fn quoted_list(list: &[String]) -> String {
    format!(
        "[{}]",
        list.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
    )
}

fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    rule.split_once('/')
        .is_some_and(|(r, sub)| (r == resource || r == "*") && sub == subresource)
}

/// The permissions in `wanted` that `held` does not cover: one line per resource, sorted. Empty if
/// all are covered.
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let parts = wanted
        .iter()
        .flat_map(Rule::parts)
        .filter(|part| !held.iter().any(|rule| rule.covers(part)));
    let mut lines: Vec<Rule> = Vec::new();
    for part in parts {
        // Verbs of one resource (and name) are shown together.
        let same = |r: &&mut Rule| {
            part.urls.is_empty()
                && (&r.groups, &r.resources, &r.names, &r.urls)
                    == (&part.groups, &part.resources, &part.names, &part.urls)
        };
        match lines.iter_mut().find(same) {
            Some(line) => line.verbs.extend(part.verbs),
            None => lines.push(part),
        }
    }
    let shown: BTreeSet<String> = lines.iter().map(Rule::compact).collect();
    shown.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> Rule {
        let words = |s: &str| {
            s.split_whitespace()
                .map(|w| w.trim_matches('"').to_owned())
                .collect()
        };
        Rule {
            verbs: words(verbs),
            groups: words(groups),
            resources: words(resources),
            names: words(names),
            urls: Vec::new(),
        }
    }

    fn asks(verb: &str, group: &str, resource: &str, name: &str) -> Attributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let own = str::to_owned;
        Attributes {
            is_resource: true,
            verb: own(verb),
            group: own(group),
            resource: own(resource),
            subresource: own(subresource),
            name: own(name),
            ..Attributes::default()
        }
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        let pods = rule("get list", "\"\"", "pods", "");
        assert!(
            pods.allows(&asks("get", "", "pods", "x"))
                && !pods.allows(&asks("get", "", "pods/log", "x"))
        );
        assert!(
            !pods.allows(&asks("get", "apps", "pods", "x"))
                && !pods.allows(&asks("delete", "", "pods", "x"))
        );
        assert!(rule("*", "*", "*", "").allows(&asks("x", "y", "z/w", "")));
        assert!(rule("get", "*", "*/scale", "").allows(&asks(
            "get",
            "apps",
            "deployments/scale",
            ""
        )));
        assert!(!rule("get", "*", "*/scale", "").allows(&asks(
            "get",
            "apps",
            "deployments/status",
            ""
        )));
        let named = rule("get list", "\"\"", "pods", "a b");
        assert!(
            named.allows(&asks("list", "", "pods", "b"))
                && !named.allows(&asks("list", "", "pods", ""))
        );
        let url = Rule {
            verbs: vec!["get".into()],
            urls: vec!["/logs*".into()],
            ..Rule::default()
        };
        let path = |p: &str| Attributes {
            verb: "get".into(),
            path: p.into(),
            ..Attributes::default()
        };
        assert!(url.allows(&path("/logs/x")) && !url.allows(&path("/log")));
    }

    #[test]
    fn what_is_missing_is_listed_by_resource() {
        let held = [
            rule("get", "\"\"", "pods", ""),
            rule("*", "apps", "*/scale", ""),
        ];
        assert!(
            missing(
                &held,
                &[
                    rule("get", "\"\"", "pods", "a"),
                    rule("get patch", "apps", "deployments/scale", "")
                ]
            )
            .is_empty()
        );
        let wanted = [
            rule("get list watch", "\"\"", "pods secrets", ""),
            rule("get", "apps", "deployments", "x"),
        ];
        assert_eq!(
            missing(&held, &wanted),
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}"#,
                r#"{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["x"], Verbs:["get"]}"#,
            ]
        );
    }
}
