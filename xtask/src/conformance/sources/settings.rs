//! Ops `generate_paths`, `envsubst`, `get_repository`, `resource_overrides` and `resource_filter`:
//! annotations and settings that concern sources and kinds.

use super::{Answers, list, never, text, texts, typed};
use crate::conformance::Difference;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tiphys_api::{repo_url::RepoUrl, resource::OverrideIgnoreDiff, source::ApplicationSource};
use tiphys_apimachinery::{GroupKind, Object};
use tiphys_cluster::Settings;
use tiphys_engine::{
    customize::{self, Customization},
    generate_paths as paths, permit,
    types::IgnoreStatus,
};
use tiphys_gocompat::yaml;
use tiphys_render::{AppFacts, Environment};

pub fn generate_paths(case: &Value) -> Result<(), Difference> {
    let whole = paths::whole(&text(case, "annotation"), &text(case, "source_path"));
    let mut answers = Answers::default();
    answers.note("paths", texts(case, "refresh_paths"), whole.clone(), never);
    for question in list(case, "questions") {
        let changed = texts(question, "changed");
        let got = paths::touched(&whole, &changed);
        answers.note(
            format!("{changed:?}"),
            question["refresh"] == true,
            got,
            never,
        );
    }
    answers.verdict()
}

/// The recorded variables besides Argo CD's own are empty or not asked for.
pub fn substitute(case: &Value) -> Result<(), Difference> {
    let variable = |name: &str| {
        let found = list(case, "env").find(|v| v["name"] == name);
        found.map(|v| text(v, "value")).unwrap_or_default()
    };
    let app = AppFacts {
        name: variable("ARGOCD_APP_NAME"),
        namespace: variable("ARGOCD_APP_NAMESPACE"),
        revision: variable("ARGOCD_APP_REVISION"),
        ..AppFacts::default()
    };
    let source = ApplicationSource {
        path: variable("ARGOCD_APP_SOURCE_PATH"),
        ..ApplicationSource::default()
    };
    let environment = Environment::new(&app, &source);
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let written = text(question, "in");
        let got = environment.expand(&written);
        answers.note(&written, text(question, "out"), got, never);
    }
    answers.verdict()
}

pub fn repository(case: &Value) -> Result<(), Difference> {
    let mut settings = Settings::default();
    for secret in list(case, "secrets") {
        let data = secret["data"].as_object().into_iter().flatten();
        let data: Map<String, Value> = data
            .filter_map(|(key, value)| Some((key.clone(), STANDARD.encode(value.as_str()?).into())))
            .collect();
        let labels = json!({"argocd.argoproj.io/secret-type": secret["secret_type"]});
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret["name"], "namespace": "argocd", "labels": labels},
            "data": data,
        });
        let secret = Object::from_value(secret).map_err(|e| e.to_string())?;
        settings.add_secret(&secret)?;
    }
    let mut answers = Answers::default();
    for question in list(case, "questions") {
        let (url, project) = (text(question, "url"), text(question, "project"));
        let known = settings.known_repository(&url, &project);
        let mut got = serde_json::to_value(known).map_err(|e| e.to_string())?;
        got["connectionState"] = Value::Null;
        let expected = without_empty(&question["repository"]);
        let got = without_empty(&got);
        answers.note(
            format!("{url} in {project:?}"),
            expected.to_string(),
            got.to_string(),
            || is_only_begun(case, &url).then_some(SEGMENTS),
        );
    }
    answers.verdict()
}

pub const SEGMENTS: &str =
    "a credential template is for whole segments of a path; in Argo CD, for how a text begins";

/// Whether a template's text is how the URL begins, but not its host and path.
fn is_only_begun(case: &Value, url: &str) -> bool {
    let begins = |template: &String| url.to_lowercase().starts_with(&template.to_lowercase());
    let covers = |template: &String| {
        let both = (RepoUrl::parse(url), RepoUrl::parse(template));
        matches!(both, (Ok(url), Ok(template)) if url.under(&template).is_some())
    };
    list(case, "secrets")
        .filter(|secret| secret["secret_type"] == "repo-creds")
        .map(|secret| text(&secret["data"], "url"))
        .any(|template| begins(&template) && !covers(&template))
}

/// What is empty may be left out.
fn without_empty(repository: &Value) -> Value {
    let empty = [Value::Null, json!(""), json!(false), json!(0), json!({})];
    let fields = repository.as_object().into_iter().flatten();
    let kept = fields.filter(|(_, value)| !empty.contains(value));
    Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect())
}

fn config(case: &Value) -> BTreeMap<String, String> {
    let texts = case["argocd_cm"].as_object().into_iter().flatten();
    texts
        .filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned())))
        .collect()
}

pub fn filter(case: &Value) -> Result<(), Difference> {
    let settings = Settings::of_config(config(case));
    let rules = settings.config.exclusions().and_then(|exclusions| {
        let inclusions = settings.config.inclusions()?;
        Ok((exclusions, inclusions))
    });
    let mut answers = Answers::default();
    let fails = !case["error"].is_null();
    answers.note("error", fails, rules.is_err(), never);
    if let Ok((exclusions, inclusions)) = rules {
        for question in list(case, "questions") {
            let kind = GroupKind::new(&text(question, "group"), &text(question, "kind"));
            let cluster = text(question, "cluster");
            let got = permit::excluded(&exclusions, &inclusions, &kind, &cluster);
            answers.note(
                format!("{kind:?} on {cluster}"),
                question["excluded"] == true,
                got,
                never,
            );
        }
    }
    answers.verdict()
}

pub const REPORTED: &str =
    "a key that cannot be read is reported, and the others apply; in Argo CD none applies";

/// Compares `overrides`. What is ignored in updates is compared by its effects, in the engine's
/// tests.
pub fn overrides(case: &Value) -> Result<(), Difference> {
    let config = config(case);
    let (customizations, problems) = customize::read(&config, || jiff::Timestamp::UNIX_EPOCH);
    let mut answers = Answers::default();
    if !case["overrides_error"].is_null() {
        let refused = "an error".to_owned();
        answers.note("error", refused, problems.join(", "), || {
            (!problems.is_empty()).then_some(REPORTED)
        });
        return answers.verdict();
    }
    answers.note("problems", String::new(), problems.join(", "), never);
    let mut ours: BTreeMap<String, Customization> = customizations
        .kinds()
        .map(|(kind, customization)| (kind.clone(), customization.clone()))
        .collect();
    let with_status = match Settings::of_config(config).config.ignore_status() {
        IgnoreStatus::All => Some("*/*"),
        IgnoreStatus::Crd => Some("apiextensions.k8s.io/CustomResourceDefinition"),
        IgnoreStatus::None => None,
    };
    if let Some(kind) = with_status {
        let of_kind = ours.entry(kind.to_owned()).or_default();
        let status = "/status".to_owned();
        of_kind.ignore_differences.json_pointers.push(status);
    }
    let mut theirs = BTreeMap::new();
    for (kind, recorded) in case["overrides"].as_object().into_iter().flatten() {
        theirs.insert(kind.clone(), customization(recorded)?);
    }
    answers.note("overrides", theirs, ours, never);
    answers.verdict()
}

/// An entry as Argo CD writes it.
fn customization(recorded: &Value) -> Result<Customization, String> {
    let ignored = |key: &str| -> Result<OverrideIgnoreDiff, String> {
        let document = yaml::parse_documents(text(recorded, key), &yaml::Limits::default())
            .map_err(|e| e.to_string())?
            .into_iter()
            .next();
        document.map_or_else(|| Ok(OverrideIgnoreDiff::default()), |d| typed(&d.value))
    };
    let fields = &recorded["knownTypeFields"];
    Ok(Customization {
        health: text(recorded, "health.lua"),
        open_libs: recorded["health.lua.useOpenLibs"] == true,
        actions: text(recorded, "actions"),
        ignore_differences: ignored("ignoreDifferences")?,
        ignore_resource_updates: ignored("ignoreResourceUpdates")?,
        known_type_fields: if fields.is_null() {
            Vec::new()
        } else {
            typed(fields)?
        },
    })
}
