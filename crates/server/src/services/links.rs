//! Deep links: `application.links`, `resource.links` and `project.links` of argocd-cm. Main
//! function: [`of`].

use crate::{ApiError, settings::Settings};
use jiff::{Timestamp, tz::TimeZone};
use rand::RngCore as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_api::{
    AppProject, Application,
    rpc::application::{LinkInfo, LinksResponse},
};
use tiphys_engine::spec::Destination;
use tiphys_gocompat::{
    expr::{self, Clock, Program},
    sprig::{self, Sources},
    template::{self, Budget, Functions, MissingKey, Options, TemplateSet, execute},
    yaml,
};
use tiphys_rpc::heavy;

const MANAGED_BY_URL: &str = "argocd.argoproj.io/managed-by-url";
/// Limits for all links of one reply together.
const LIMITS: template::Limits = template::Limits {
    steps: 1_000_000,
    output: 1 << 20,
    memory: 16 << 20,
};

#[derive(Deserialize)]
struct Link {
    #[serde(default)]
    url: String,
    #[serde(default)]
    title: String,
    description: Option<String>,
    #[serde(rename = "icon.class")]
    icon_class: Option<String>,
    #[serde(rename = "if")]
    condition: Option<String>,
}

/// The variables available to link templates.
pub fn known(
    app: Option<&Application>,
    project: Option<&AppProject>,
    cluster: Option<Destination>,
    resource: Option<Value>,
) -> Map<String, Value> {
    let mut known = Map::new();
    if let Some(app) = app {
        let value = serde_json::to_value(app).unwrap_or_default();
        known.insert("app".into(), value.clone());
        known.insert("application".into(), value);
        // The author of an Application must not be able to make a link run a script.
        let url = app
            .metadata
            .annotations
            .get(MANAGED_BY_URL)
            .filter(|url| url.starts_with("https://") || url.starts_with("http://"));
        known.extend(url.map(|url| ("managedByURL".to_owned(), json!(url))));
    }
    known.extend(cluster.map(|cluster| {
        let Destination { server, name, .. } = cluster;
        (
            "cluster".to_owned(),
            json!({"name": name, "server": server}),
        )
    }));
    known.extend(project.map(|project| {
        (
            "project".to_owned(),
            serde_json::to_value(project).unwrap_or_default(),
        )
    }));
    known.extend(resource.map(|resource| ("resource".to_owned(), resource)));
    known
}

/// The links configured under a key; links that cannot be rendered are omitted and logged.
pub async fn of(
    settings: &Settings,
    key: &'static str,
    known: Map<String, Value>,
) -> Result<LinksResponse, ApiError> {
    let text = settings.value(key).to_owned();
    if text.is_empty() {
        return Ok(LinksResponse::default());
    }
    heavy::run(move || {
        let document =
            yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::Refuse);
        let kind = key.strip_suffix(".links").unwrap_or(key);
        let unread = |why: String| {
            let doing = format!("failed to read {kind} deep links from configmap");
            ApiError::plain(format!("{doing}: error unmarshalling deep links {why}"))
        };
        let document =
            document.map_err(|e| unread(format!("error converting YAML to JSON: yaml: {e}")))?;
        let links: Option<Vec<Link>> =
            serde_json::from_value(document).map_err(|e| unread(e.to_string()))?;
        let known = Value::Object(known);
        let (data, budget) = (template::Value::from_data(&known), Budget::new(LIMITS));
        let names = expr::Value::from_data(&known);
        let items = links.unwrap_or_default().into_iter().filter_map(|link| {
            let title = link.title.clone();
            made(link, (&data, &names), &budget)
                .inspect_err(|why| tracing::warn!(key, title, "a link was left out: {why}"))
                .ok()
                .flatten()
        });
        Ok(LinksResponse {
            items: items.collect(),
        })
    })
    .await
}

/// Why there is no link, for the log.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("failed to evaluate link condition '{0}': {1}")]
    Condition(String, expr::ExprError),
    #[error("link condition '{0}' evaluated to non-boolean value")]
    NotBoolean(String),
    #[error("failed to evaluate link template '{0}': {1}")]
    Template(String, String),
}

/// Whether the condition of a link holds; it has the names that templates have.
fn holds(condition: &str, names: &expr::Value) -> Result<bool, LinkError> {
    let failed = |e| LinkError::Condition(condition.to_owned(), e);
    let clock = Clock {
        now: Timestamp::now(),
        zone: TimeZone::UTC,
    };
    let program = Program::compile(condition).map_err(failed)?;
    match program.run(names, &clock, expr::Limits::default()) {
        Ok(expr::Value::Bool(holds)) => Ok(holds),
        Ok(_) => Err(LinkError::NotBoolean(condition.to_owned())),
        Err(e) => Err(failed(e)),
    }
}

/// The link, unless its condition does not hold.
fn made(
    link: Link,
    (data, names): (&template::Value, &expr::Value),
    budget: &Budget,
) -> Result<Option<LinkInfo>, LinkError> {
    if let Some(condition) = &link.condition
        && !holds(condition, names)?
    {
        return Ok(None);
    }
    let url = filled(&link.url, data, budget);
    let url = url.map_err(|why| LinkError::Template(link.url, why))?;
    Ok(Some(LinkInfo {
        title: link.title,
        url,
        description: link.description,
        icon_class: link.icon_class,
    }))
}

/// A template with its values.
fn filled(text: &str, data: &template::Value, budget: &Budget) -> Result<String, String> {
    const NAME: &str = "deep-link";
    let mut functions = Functions::builtins();
    functions.extend(sprig::functions::<Sources>());
    let mut set = TemplateSet::new(NAME, Arc::new(functions));
    set.parse(NAME, text.as_bytes())
        .map_err(|e| e.to_string())?;
    let random = Box::new(|bytes: &mut [u8]| rand::rng().fill_bytes(bytes));
    let mut sources = Sources {
        random,
        now: Timestamp::now(),
        zone: || TimeZone::UTC,
    };
    let options = Options {
        missing_key: MissingKey::Invalid,
        budget,
        host: &mut sources,
    };
    let mut url = Vec::new();
    execute(&Arc::new(set), NAME, data.clone(), options, &mut url).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&url).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_the_names_of_templates() {
        let names = expr::Value::from_data(&json!({
            "application": {"spec": {"project": "team-a"}},
            "resource": {"kind": "Pod"},
        }));
        for (condition, want) in [
            ("application.spec.project == \"team-a\"", Some(true)),
            ("resource.kind == \"Service\"", Some(false)),
            ("resource.kind in [\"Pod\", \"Service\"]", Some(true)),
            ("1", None),
            ("(", None),
        ] {
            assert_eq!(holds(condition, &names).ok(), want, "{condition}");
        }
    }
}
