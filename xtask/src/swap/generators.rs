//! The specifications of the sets that are compared: what public repositories use most, in both
//! kinds of templates. Main function: [`spec`].

use serde_json::{Value, json};
use tiphys_gocompat::yaml;

/// How many kinds of sets are written here.
const OWN_KINDS: usize = 12;
/// How many there are of the shapes of public repositories, and which.
const SHAPES: usize = 12;
const SHAPES_FILE: &str = include_str!("shapes.yaml");
/// How many policies each kind is combined with.
const POLICIES: usize = 5;

/// The files of the sets' repository.
pub const FILES: &[(&str, &str)] = &[
    ("apps/api/deploy.yaml", "{}"),
    ("apps/db/deploy.yaml", "{}"),
    ("apps/Web_Front/deploy.yaml", "{}"),
    (
        "config/dev.json",
        r#"{"env": {"name": "dev", "size": 1}, "server": "https://kubernetes.default.svc"}"#,
    ),
    (
        "config/prod.json",
        r#"{"env": {"name": "prod", "size": 3}, "server": "https://east.example.test"}"#,
    ),
    (
        "lists/all.yaml",
        "- {team: a, items: [{k: one}, {k: two}]}\n- {team: b, items: [{k: three}]}\n",
    ),
    (
        "more/a/b/list.json",
        r#"[{"team": "c", "items": [{"k": "four"}]}]"#,
    ),
    ("sizes/large.yaml", "size: {name: large, cpu: 1.5}\n"),
    ("sizes/small.yaml", "size: {name: small, cpu: 1}\n"),
    ("teams/blue/secret/values.yaml", "{}"),
    ("teams/blue/web/values.yaml", "{}"),
    ("teams/green/api.v2/values.yaml", "{}"),
    ("teams/green/job/values.yaml", "{}"),
];

const LOCAL: &str = "https://kubernetes.default.svc";

/// The Secret of a cluster that nobody reaches.
pub fn cluster(name: &str) -> Value {
    let env = if name == "lab" { "test" } else { "prod" };
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": format!("cluster-{name}"), "annotations": {"example.com/zone": "z1"},
            "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": env},
        },
        "stringData": {
            "name": name, "server": format!("https://{name}.example.test"), "config": "{}",
        },
    })
}

/// What the Applications of a set are made of.
struct Template<'t> {
    name: String,
    url: &'t str,
    path: &'t str,
    server: &'t str,
}

impl Template<'_> {
    fn json(&self) -> Value {
        json!({
            "metadata": {"name": self.name, "labels": {"made": "by-set"}},
            "spec": {
                "project": "default",
                "source": {"repoURL": self.url, "targetRevision": "HEAD", "path": self.path},
                "destination": {"server": self.server, "namespace": "default"},
            },
        })
    }
}

/// The specification of set number `n`, which has this name; there are 24 kinds, each with five
/// policies.
pub fn spec(n: usize, set: &str, url: &str) -> Value {
    let kinds = OWN_KINDS + SHAPES;
    let mut spec = of_kind(n % kinds, set, url);
    match n / kinds % POLICIES {
        0 => {}
        1 => spec["syncPolicy"] = json!({"preserveResourcesOnDeletion": true}),
        2 => spec["syncPolicy"] = json!({"applicationsSync": "create-update"}),
        3 => {
            spec["syncPolicy"] = json!({"applicationsSync": "create-delete"});
            spec["preservedFields"] = json!({"annotations": ["kept"], "labels": ["kept"]});
        }
        _ => {
            let ignored = json!([{"jsonPointers": ["/spec/source/targetRevision"]}]);
            spec["ignoreApplicationDifferences"] = ignored;
            // Which is without effect where progressive syncs are not enabled.
            let step = json!({"matchExpressions": [
                {"key": "env", "operator": "In", "values": ["test"]},
            ]});
            spec["strategy"] = json!({"type": "RollingSync", "rollingSync": {"steps": [step]}});
        }
    }
    spec
}

fn of_kind(kind: usize, set: &str, url: &str) -> Value {
    match kind {
        0..=5 => of_one(kind, set, url),
        6..=11 => of_several(kind, set, url),
        _ => of_public(kind - OWN_KINDS, set, url),
    }
}

/// A shape of public repositories.
fn of_public(number: usize, set: &str, url: &str) -> Value {
    let text = SHAPES_FILE.replace("$set", set).replace("$url", url);
    let shapes = yaml::parse_documents(text, &yaml::Limits::default()).unwrap_or_default();
    let shape = shapes.into_iter().nth(number);
    shape.expect("a test reads the file").value
}

/// One generator.
fn of_one(kind: usize, set: &str, url: &str) -> Value {
    let template = |name: &str, path: &str, server: &str| {
        let name = format!("{set}-{name}");
        Template {
            name,
            url,
            path,
            server,
        }
        .json()
    };
    let git = |what: &str, items: Value| json!([{"git": {"repoURL": url, "revision": "HEAD", what: items}}]);
    match kind {
        0 => json!({
            "generators": [{"list": {"elements": [{"k": "one"}, {"k": "two"}]}}],
            "template": template("{{k}}", "apps/{{k}}", LOCAL),
        }),
        1 => json!({
            "goTemplate": true, "goTemplateOptions": ["missingkey=error"],
            "generators": [{"list": {"elements": [{"k": "One", "n": 7}, {"k": "Two", "n": 8.5}]}}],
            "template": template(
                "{{ .k | lower }}", "apps/{{ printf \"%v-%s\" .n (sha256sum .k | trunc 8) }}", LOCAL,
            ),
        }),
        2 => json!({
            "generators": git("directories", json!([{"path": "apps/*"}])),
            "template": template("{{path.basenameNormalized}}", "{{path}}", LOCAL),
        }),
        3 => json!({
            "goTemplate": true,
            "generators": git(
                "directories", json!([{"path": "apps/*"}, {"path": "apps/db", "exclude": true}]),
            ),
            "template": template("{{.path.basenameNormalized}}", "{{.path.path}}", LOCAL),
        }),
        4 => json!({
            "generators": git("files", json!([{"path": "config/*.json"}])),
            "template": template("{{env.name}}", "apps/{{env.size}}", "{{server}}"),
        }),
        _ => json!({
            "goTemplate": true,
            "generators": git("files", json!([{"path": "lists/*.yaml"}])),
            "template": template("{{.team}}", "{{.path.path}}/{{.path.filename}}", LOCAL),
        }),
    }
}

/// Clusters, and generators of generators.
fn of_several(kind: usize, set: &str, url: &str) -> Value {
    let template = |name: &str, path: &str, server: &str| {
        let name = format!("{set}-{name}");
        Template {
            name,
            url,
            path,
            server,
        }
        .json()
    };
    let prod = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}});
    let files = json!({"git": {
        "repoURL": url, "revision": "HEAD", "files": [{"path": "config/*.json"}],
    }});
    let folders = json!({"git": {
        "repoURL": url, "revision": "HEAD", "directories": [{"path": "apps/*"}],
    }});
    match kind {
        6 => json!({
            "generators": [{"clusters": {
                "selector": {"matchLabels": {"env": "prod"}}, "values": {"zone": "of-{{name}}"},
            }}],
            "template": template("{{name}}", "apps/{{values.zone}}", "{{server}}"),
        }),
        7 => json!({
            "goTemplate": true,
            "generators": [{"clusters": {"selector": {"matchExpressions": [
                {"key": "env", "operator": "In", "values": ["prod", "test"]},
            ]}}}],
            "template": template(
                "{{.nameNormalized}}", "apps/{{ index .metadata.labels \"env\" }}", "{{.server}}",
            ),
        }),
        8 => json!({
            "goTemplate": true,
            "generators": [{"matrix": {"generators": [folders, prod]}}],
            "template": template(
                "{{.name}}-{{.path.basenameNormalized}}", "{{.path.path}}", "{{.server}}",
            ),
        }),
        9 => json!({
            "generators": [{"merge": {"mergeKeys": ["name"], "generators": [
                {"clusters": {
                    "selector": {"matchLabels": {"env": "prod"}}, "values": {"size": "small"},
                }},
                {"list": {"elements": [{"name": "east", "values.size": "large"}]}},
            ]}}],
            "template": template("{{name}}", "apps/{{values.size}}", "{{server}}"),
        }),
        10 => json!({
            "goTemplate": true,
            "generators": [{"matrix": {"generators": [prod, {"list": {"elements": [
                {"stage": "blue", "auto": true}, {"stage": "green", "auto": false},
            ]}}]}}],
            "template": template("{{.name}}-{{.stage}}", "apps/{{.stage}}", "{{.server}}"),
            "templatePatch": "spec:\n{{- if .auto }}\n  syncPolicy:\n    automated: {prune: true}\n{{- end }}\n  source:\n    helm:\n      valueFiles: ['{{.stage}}.yaml']\n",
        }),
        _ => json!({
            "goTemplate": true,
            "generators": [{
                "matrix": {"generators": [files, {"list": {
                    "elementsYaml": "- {count: '{{ .env.size }}'}\n- {count: '0'}\n",
                }}]},
                "selector": {"matchExpressions": [
                    {"key": "count", "operator": "NotIn", "values": ["1"]},
                ]},
            }],
            "template": template("{{.env.name}}-{{.count}}", "apps/{{.count}}", "{{.server}}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_set_can_be_read_and_kinds_and_policies_are_combined() {
        let all = (OWN_KINDS + SHAPES) * POLICIES;
        let specs: BTreeSet<String> = (0..all)
            .map(|n| {
                let spec = spec(n, "s", "https://example.test/r");
                let set = json!({"metadata": {"name": "s"}, "spec": spec});
                let set: tiphys_api::ApplicationSet =
                    serde_json::from_value(set).expect("a set of the API");
                assert!(set.spec.generators.iter().all(tiphys_appset::has_generator));
                assert!(!spec.to_string().contains("$set"));
                spec.to_string()
            })
            .collect();
        assert_eq!(specs.len(), all);
    }

    #[test]
    fn the_file_of_shapes_has_as_many_as_are_said() {
        let shapes = yaml::parse_documents(SHAPES_FILE, &yaml::Limits::default());
        assert_eq!(shapes.expect("YAML").len(), SHAPES);
    }

    /// YAML reads the key `n` as false, and a set that uses it has Applications of one name.
    #[test]
    fn keys_in_yaml_are_texts_of_yaml_1_1() {
        let spec = of_several(11, "s", "https://example.test/r");
        let list = &spec["generators"][0]["matrix"]["generators"][1]["list"];
        let text = list["elementsYaml"].as_str().expect("a text");
        let elements =
            yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::Refuse);
        assert_eq!(elements.expect("YAML")[1], json!({"count": "0"}));
    }
}
