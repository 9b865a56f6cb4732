//! What a set generated, so that the same answers need not be made into Applications again. Main
//! type: [`Remembered`].

use crate::answered::Answered;
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use tiphys_api::ApplicationSet;
use tiphys_appset::{Generated, Need};

/// What a set generated, with the answers that led to it.
pub struct Remembered {
    pub(crate) set: Arc<ApplicationSet>,
    pub(crate) answers: HashMap<Need, Answered>,
    pub(crate) is_repeatable: bool,
    pub generated: Generated,
}

impl Remembered {
    /// Whether a host of Git was asked for a list.
    pub fn asked_hosts(&self) -> bool {
        self.answers.keys().any(|need| need.provider().is_some())
    }

    /// Whether the same answers lead to the same Applications again.
    pub(crate) fn is_of(&self, set: &ApplicationSet) -> bool {
        let (own, other) = (&self.set.metadata, &set.metadata);
        self.is_repeatable
            && (&own.namespace, &own.name) == (&other.namespace, &other.name)
            && self.set.spec == set.spec
    }
}

/// Whether the templates of a set use neither time nor chance: none of the words that could be such a
/// function occurs in it.
pub(crate) fn is_repeatable(set: &ApplicationSet) -> bool {
    const WORDS: [&str; 10] = [
        "now",
        "ago",
        "date",
        "shuffle",
        "bcrypt",
        "htpasswd",
        "encryptAES",
        "dateInZone",
        "htmlDate",
        "htmlDateInZone",
    ];
    const BEGINNINGS: [&str; 7] = [
        "rand",
        "uuid",
        "date_",
        "genPrivateKey",
        "genCA",
        "genSelf",
        "genSigned",
    ];
    fn tells(text: &str) -> bool {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| {
            WORDS.contains(&word) || BEGINNINGS.iter().any(|start| word.starts_with(start))
        })
    }
    fn any(json: &Value) -> bool {
        match json {
            Value::String(text) => tells(text),
            Value::Array(items) => items.iter().any(any),
            Value::Object(fields) => fields.iter().any(|(key, value)| tells(key) || any(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    serde_json::to_value(&set.spec).is_ok_and(|spec| !any(&spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn time_and_chance_are_not_repeated() {
        for (template, expected) in [
            ("{{.name}}", true),
            ("known-{{.cargo}}-update", true),
            ("validate=false", true),
            ("generated {{.name | upper}}", true),
            ("{{now}}", false),
            ("{{\nnow | date \"2006\"}}", false),
            ("{{- now -}}", false),
            ("{{ago .x}}", false),
            ("{{randAlphaNum 5}}", false),
            ("{{uuidv4}}", false),
            ("{{(genCA \"x\" 1).Cert}}", false),
            ("{{shuffle .name}}", false),
            ("{{date_in_zone \"2006\" .x \"UTC\"}}", false),
        ] {
            let set = json!({"spec": {"generators": [], "template": {
                "metadata": {"name": template},
                "spec": {"project": "default", "destination": {}},
            }}});
            let set: ApplicationSet = serde_json::from_value(set).expect("a set");
            assert_eq!(is_repeatable(&set), expected, "{template}");
        }
        // Also in the other texts of a set, and as keys.
        for spec in [
            json!({"templatePatch": "a: {{now}}"}),
            json!({"generators": [{"list": {"elements": [], "elementsYaml": "{{uuidv4}}"}}]}),
            json!({"generators": [{"list": {"elements": [{"{{randInt 1 9}}": "x"}]}}]}),
        ] {
            let mut set = json!({"spec": {"generators": [], "template": {
                "metadata": {"name": "x"}, "spec": {"project": "default", "destination": {}},
            }}});
            let fields = spec.as_object().cloned().unwrap_or_default();
            set["spec"].as_object_mut().expect("a map").extend(fields);
            let set: ApplicationSet = serde_json::from_value(set).expect("a set");
            assert!(!is_repeatable(&set), "{spec}");
        }
    }
}
