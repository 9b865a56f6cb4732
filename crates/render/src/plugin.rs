//! Sources that a plugin renders: what it is asked, with which variables, and the objects in what it
//! answers.
//!
//! Main types: [`PluginQuestion`] and [`PluginAnswer`]. Whoever renders asks the plugin's server, as
//! a render needs it ([`crate::RenderError::Need`]); this module must not know where that is.

use crate::{
    Budget, Environment, ManifestError, RenderError, RenderParams, Rendered, SourceKind, SourceRef,
    SourceSet,
    helm::KubeVersion,
    manifest::{objects_of_template, objects_of_values},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};
use tiphys_api::{
    rpc::repository::ParameterAnnouncement,
    source::{ApplicationSource, ApplicationSourcePlugin, ApplicationSourcePluginParameter},
};
use tiphys_apimachinery::Object;
use tiphys_gocompat::json;

/// What a plugin is asked about the files of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PluginTask {
    /// Whether one is for these files.
    Detect,
    /// The manifests.
    Generate,
    /// The parameters that it takes.
    Announce,
}

/// A question to a plugin's server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PluginQuestion {
    /// As an Application names it: `name` or `name-version`. Empty: the first one that is for these
    /// files.
    pub plugin: String,
    /// The Application's folder.
    pub folder: String,
    /// Variables for its commands; of two with one name, the later one counts.
    pub env: Vec<(String, String)>,
    pub task: PluginTask,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PluginAnswer {
    /// The name of the plugin that is for these files, if there is one.
    Detected(Option<String>),
    /// Documents in YAML or JSON, and a digest that is equal for equal documents.
    Generated {
        manifests: Arc<[String]>,
        digest: [u8; 32],
    },
    Announced(Vec<ParameterAnnouncement>),
}

/// The servers of plugins, as far as a render sees them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plugins<'a> {
    /// Whether somebody can be asked.
    pub is_open: bool,
    /// Whether there is a plugin at all. If not, only sources that name one ask for it.
    pub is_any: bool,
    /// What earlier renders of the same needed.
    pub answers: Option<&'a BTreeMap<PluginQuestion, Arc<PluginAnswer>>>,
}

impl<'a> Plugins<'a> {
    fn answer(&self, question: &PluginQuestion) -> Result<&'a PluginAnswer, RenderError> {
        let found = self.answers.and_then(|answers| answers.get(question));
        let needed = || RenderError::Need(vec![SourceRef::Plugin(Box::new(question.clone()))]);
        found.map(Arc::as_ref).ok_or_else(needed)
    }
}

/// All that the manifests depend on besides files and the plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PluginOptions {
    /// Empty: the first one that is for the files.
    pub plugin: String,
    /// The Application's instance name.
    pub app: String,
    pub env: Vec<(String, String)>,
}

/// The plugin that says by itself that a source without a type is for it.
pub(crate) fn detect(
    sources: &SourceSet<'_>,
    folder: &str,
    source: &ApplicationSource,
    params: &RenderParams,
) -> Result<Option<String>, RenderError> {
    if !sources.plugins.is_any {
        return Ok(None);
    }
    let question = PluginQuestion {
        plugin: String::new(),
        folder: folder.to_owned(),
        env: variables(source, params)?,
        task: PluginTask::Detect,
    };
    match sources.plugins.answer(&question)? {
        PluginAnswer::Detected(name) => Ok(name.clone()),
        other => Err(unexpected(other)),
    }
}

/// The options of a source whose overrides have been merged.
pub(crate) fn options(
    source: &ApplicationSource,
    detected: Option<String>,
    params: &RenderParams,
) -> Result<PluginOptions, RenderError> {
    let named = || source.plugin.as_ref().map(|plugin| plugin.name.clone());
    Ok(PluginOptions {
        plugin: detected.or_else(named).unwrap_or_default(),
        app: params.app.name.clone(),
        env: variables(source, params)?,
    })
}

pub(crate) fn render(
    sources: &SourceSet<'_>,
    folder: &str,
    options: &PluginOptions,
    budget: &Budget,
) -> Result<Rendered, RenderError> {
    let answer = ask(sources, folder, options, PluginTask::Generate)?;
    let PluginAnswer::Generated { manifests, .. } = answer else {
        return Err(unexpected(answer));
    };
    let mut rendered = Rendered {
        kind: SourceKind::Plugin,
        ..Rendered::default()
    };
    for text in manifests.iter() {
        let (objects, errors) = objects(text, budget);
        if let Some(e) = errors.into_iter().next() {
            // Half of what a plugin made is never used.
            return Err(RenderError::Source(format!(
                "CMP processing failed for application {:?}: failed to convert CMP manifests to unstructured objects: {e}",
                options.app
            )));
        }
        rendered.objects.extend(objects);
        if rendered.objects.len() > budget.objects {
            return Err(RenderError::OverBudget {
                what: "the number of objects".to_owned(),
                limit: budget.objects as u64,
            });
        }
    }
    Ok(rendered)
}

/// The parameters that a plugin takes.
pub(crate) fn parameters(
    sources: &SourceSet<'_>,
    folder: &str,
    options: &PluginOptions,
) -> Result<Vec<ParameterAnnouncement>, RenderError> {
    match ask(sources, folder, options, PluginTask::Announce)? {
        PluginAnswer::Announced(parameters) => Ok(parameters.clone()),
        other => Err(unexpected(other)),
    }
}

fn ask<'a>(
    sources: &SourceSet<'a>,
    folder: &str,
    options: &PluginOptions,
    task: PluginTask,
) -> Result<&'a PluginAnswer, RenderError> {
    if !sources.plugins.is_open {
        let shown = if folder.is_empty() { "." } else { folder };
        return Err(RenderError::Source(format!(
            "{shown}: {} sources are rendered by servers of plugins, which are not asked here",
            SourceKind::Plugin
        )));
    }
    sources.plugins.answer(&PluginQuestion {
        plugin: options.plugin.clone(),
        folder: folder.to_owned(),
        env: options.env.clone(),
        task,
    })
}

fn unexpected(answer: &PluginAnswer) -> RenderError {
    let what = match answer {
        PluginAnswer::Detected(_) => "a name",
        PluginAnswer::Generated { .. } => "manifests",
        PluginAnswer::Announced(_) => "parameters",
    };
    RenderError::Source(format!("a plugin was asked for something else than {what}"))
}

/// A plugin's server splits documents already; other ones may not.
fn objects(text: &str, budget: &Budget) -> (Vec<Object>, Vec<ManifestError>) {
    const WHERE: &str = "the plugin's output";
    let is_json = text.trim_start().starts_with('{');
    match serde_json::from_str::<Value>(text) {
        Ok(value) if is_json => objects_of_values(WHERE, vec![value]),
        _ => objects_of_template(WHERE, text.as_bytes(), budget),
    }
}

/// The variables of the Application, of the cluster, and those that its author sets.
fn variables(
    source: &ApplicationSource,
    params: &RenderParams,
) -> Result<Vec<(String, String)>, RenderError> {
    let facts = &params.cluster_facts;
    let mut environment = Environment::new(&params.app, source);
    environment.add("KUBE_VERSION", version(&facts.kube_version)?);
    environment.add("KUBE_API_VERSIONS", facts.api_versions.join(","));
    let mut all = environment.pairs();
    if let Some(plugin) = &source.plugin {
        for entry in &plugin.env {
            let value = environment.expand(&entry.value);
            all.push((format!("ARGOCD_ENV_{}", entry.name), value));
        }
        all.extend(of_parameters(plugin));
    }
    Ok(all)
}

/// The numbers of a version, without what vendors add to it.
fn version(text: &str) -> Result<String, RenderError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let unreadable =
        |e| RenderError::Source(format!("could not parse kubernetes version {text}: {e}"));
    let version = KubeVersion::parse(text).map_err(unreadable)?.normalized;
    Ok(version.strip_prefix('v').unwrap_or(&version).to_owned())
}

fn of_parameters(plugin: &ApplicationSourcePlugin) -> Vec<(String, String)> {
    let json = match plugin.parameters.as_slice() {
        // As Go prints a list that is not there.
        [] => Value::Null,
        all => all.iter().map(as_json).collect(),
    };
    let mut variables = vec![("ARGOCD_APP_PARAMETERS".to_owned(), json::to_string(&json))];
    for parameter in &plugin.parameters {
        let name = format!("PARAM_{}", escaped(&parameter.name));
        if let Some(text) = &parameter.string {
            variables.push((name.clone(), text.clone()));
        }
        for (key, value) in parameter.map.iter().flat_map(|map| &map.map) {
            variables.push((format!("{name}_{}", escaped(key)), value.clone()));
        }
        for (index, value) in parameter.array.iter().flat_map(|a| &a.array).enumerate() {
            variables.push((format!("{name}_{index}"), value.clone()));
        }
    }
    variables
}

/// Only the fields that are there, in the order of their names.
fn as_json(parameter: &ApplicationSourcePluginParameter) -> Value {
    let array = parameter.array.as_ref().map(|array| json!(array.array));
    let map = parameter.map.as_ref().map(|map| json!(map.map));
    let fields = [
        ("array", array),
        ("map", map),
        ("name", Some(json!(parameter.name))),
        ("string", parameter.string.as_ref().map(|text| json!(text))),
    ];
    let present = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let mut upper = c.to_uppercase();
        let c = match (upper.next(), upper.next()) {
            (Some(upper), None) => upper,
            _ => c,
        };
        let allowed = c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let _ = out.write_char(if allowed { c } else { '_' });
    }
    out
}

#[cfg(test)]
#[path = "plugin_tests.rs"]
mod tests;
