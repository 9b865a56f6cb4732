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
use tiphys_gocompat::{
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
        known.insert(
            "cluster".into(),
            json!({"name": app.spec.destination.name, "server": app.spec.destination.server}),
        );
    }
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
        let document = document
            .map_err(|e| ApiError::plain(format!("failed to read {key} of argocd-cm: {e}")))?;
        let links: Option<Vec<Link>> = serde_json::from_value(document)
            .map_err(|e| ApiError::plain(format!("failed to read {key} of argocd-cm: {e}")))?;
        let (data, budget) = (
            template::Value::from_data(&Value::Object(known)),
            Budget::new(LIMITS),
        );
        let made = links.unwrap_or_default().into_iter().filter_map(|link| {
            let title = link.title.clone();
            make(link, &data, &budget)
                .inspect_err(|why| tracing::warn!(key, title, "a link was left out: {why}"))
                .ok()
        });
        Ok(LinksResponse {
            items: made.collect(),
        })
    })
    .await
}

fn make(link: Link, data: &template::Value, budget: &Budget) -> Result<LinkInfo, String> {
    const NAME: &str = "deep-link";
    if link.condition.is_some() {
        return Err("`if` is not supported yet".to_owned());
    }
    let mut functions = Functions::builtins();
    functions.extend(sprig::functions::<Sources>());
    let mut set = TemplateSet::new(NAME, Arc::new(functions));
    set.parse(NAME, link.url.as_bytes())
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
    let url = String::from_utf8_lossy(&url).into_owned();
    Ok(LinkInfo {
        title: link.title,
        url,
        description: link.description,
        icon_class: link.icon_class,
    })
}
