//! A chart, values and a release become manifests, as `helm template` makes them.
//!
//! Main functions: [`render_chart`] and [`ParsedChart::render`], which parses templates only once;
//! main type: [`RenderedChart`].

use super::capabilities::Capabilities;
use super::chart::{Chart, File};
use super::engine::ParsedTemplates;
use super::manifests::{self, Hook, Manifest};
use super::release::Release;
use super::values::{self, Values};
use super::{HelmError, Limits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tiphys_gocompat::path_match;
use tiphys_gocompat::semver::{Constraints, Version};
use tiphys_gocompat::{sprig::Sources, template::Deadline};

const NOTES: &str = "NOTES.txt";

/// How a chart is rendered.
#[derive(Clone)]
pub struct RenderOptions {
    pub release: Release,
    pub capabilities: Capabilities,
    /// Values are taken as they are.
    pub skip_schema_validation: bool,
    /// A key that a template asks for and that is not there is an error.
    pub strict: bool,
    /// `required` and `fail` do not fail.
    pub lint: bool,
    /// Where chance and time come from; asked once for each render.
    pub sources: Arc<dyn Fn() -> Sources + Send + Sync>,
    pub deadline: Option<Deadline>,
}

impl RenderOptions {
    /// What `helm template` does without options.
    pub fn new(sources: Arc<dyn Fn() -> Sources + Send + Sync>) -> Self {
        Self {
            release: Release::default(),
            capabilities: Capabilities::default(),
            skip_schema_validation: false,
            strict: false,
            lint: false,
            sources,
            deadline: None,
        }
    }
}

/// A chart and its templates, parsed when they are needed first. It can be shared.
pub struct ParsedChart {
    chart: Chart,
    templates: ParsedTemplates,
    /// For the values of the last render, which the next one most often has, too.
    prepared: Mutex<Option<Arc<Prepared>>>,
}

/// A chart with a user's values: what does not depend on the release or the cluster.
struct Prepared {
    /// As JSON, where what is equal is the same: 0 and -0 are not.
    user: String,
    limits: Limits,
    /// Without the subcharts that are off.
    chart: Chart,
    /// Those of all charts.
    values: Values,
    warnings: Vec<String>,
    /// Set when the schemas have been found to agree; what Helm warned of then.
    agreed: OnceLock<Vec<String>>,
}

/// What came of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedChart {
    /// In install order.
    pub manifests: Vec<Manifest>,
    /// By kind, as Helm prints them; each kind by file.
    pub hooks: Vec<Hook>,
    /// The files in crds/, with the path that Helm prints.
    pub crds: Vec<(String, File)>,
    /// The chart's own NOTES.txt.
    pub notes: Option<String>,
    pub warnings: Vec<String>,
}

/// What of it is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    pub include_crds: bool,
    pub no_hooks: bool,
    pub skip_tests: bool,
    /// Only what comes from these templates; patterns, without the chart's name.
    pub show_only: Vec<String>,
}

/// Renders a chart once.
pub fn render_chart(
    chart: Chart,
    user: &Values,
    options: &RenderOptions,
    limits: &Limits,
) -> Result<RenderedChart, HelmError> {
    ParsedChart::new(chart).render(user, options, limits)
}

/// What Helm asks of a chart before it renders it: that its form is known, that it is no library
/// and that its dependencies are there.
pub fn check_installable(chart: &Chart) -> Result<(), HelmError> {
    match chart.metadata.api_version.as_str() {
        "v1" | "v2" | "" => {}
        // A form that Helm can load, and does not install.
        "v3" => return Err(HelmError::chart("invalid chart apiVersion")),
        _ => return Err(HelmError::chart("unsupported chart version")),
    }
    if !matches!(chart.metadata.kind.as_str(), "" | "application") {
        return Err(HelmError::chart(format!(
            "{} charts are not installable",
            chart.metadata.kind
        )));
    }
    let missing: Vec<String> = values::missing_dependencies(chart)
        .into_iter()
        .map(|d| d.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(HelmError::chart(format!(
        "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing \
         dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        missing.join(", ")
    )))
}

impl ParsedChart {
    pub fn new(chart: Chart) -> Self {
        Self {
            chart,
            templates: ParsedTemplates::default(),
            prepared: Mutex::default(),
        }
    }

    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Renders the chart with the user's values.
    pub fn render(
        &self,
        user: &Values,
        options: &RenderOptions,
        limits: &Limits,
    ) -> Result<RenderedChart, HelmError> {
        let mut warnings = Vec::new();
        let rendered = self.render_telling(user, options, limits, &mut warnings)?;
        Ok(RenderedChart {
            warnings,
            ..rendered
        })
    }

    /// The same; what Helm warns of is in `warnings`, also when it fails in the end.
    pub fn render_telling(
        &self,
        user: &Values,
        options: &RenderOptions,
        limits: &Limits,
        warnings: &mut Vec<String>,
    ) -> Result<RenderedChart, HelmError> {
        check_installable(&self.chart)?;
        if self.chart.metadata.deprecated {
            warnings.push("this chart is deprecated".to_owned());
        }
        options.release.check()?;
        let prepared = self.prepared(user, limits, warnings)?;
        let Prepared { chart, values, .. } = &*prepared;
        if !options.skip_schema_validation {
            let known = prepared.agreed.get().cloned();
            let told = known.map_or_else(|| values::check_schemas(chart, values, limits), Ok)?;
            warnings.extend_from_slice(prepared.agreed.get_or_init(|| told));
        }
        check_kube_version(chart, options)?;
        let (mut files, more) = self
            .templates
            .render(chart, values, options, &limits.templates)?;
        warnings.extend(more);
        let notes = notes(chart, &mut files);
        let (manifests, hooks) = manifests::sort(&files, &limits.yaml, warnings)?;
        let crds = chart
            .crds()
            .into_iter()
            .map(|(path, file)| (path, file.clone()))
            .collect();
        Ok(RenderedChart {
            manifests,
            hooks,
            crds,
            notes,
            warnings: Vec::new(),
        })
    }
}

impl ParsedChart {
    fn prepared(
        &self,
        user: &Values,
        limits: &Limits,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<Prepared>, HelmError> {
        let text = serde_json::to_string(user).expect("values have text for keys");
        let known = self
            .prepared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(known) = known.filter(|known| known.user == text && known.limits == *limits) {
            warnings.extend_from_slice(&known.warnings);
            return Ok(known);
        }
        let before = warnings.len();
        let mut chart = self.chart.clone();
        let failed = |e: HelmError| e.within("chart dependencies processing failed");
        warnings.extend(values::prepare(&mut chart, user, limits).map_err(failed)?);
        let (values, more) = values::coalesce(&chart, user, limits)?;
        warnings.extend(more);
        warnings.extend(values::forgotten_nulls(&chart, user));
        let warnings = warnings[before..].to_vec();
        let made = Arc::new(Prepared {
            user: text,
            limits: *limits,
            chart,
            values,
            warnings,
            agreed: OnceLock::new(),
        });
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.clone());
        Ok(made)
    }
}

fn check_kube_version(chart: &Chart, options: &RenderOptions) -> Result<(), HelmError> {
    let (wanted, there) = (
        &chart.metadata.kube_version,
        &options.capabilities.kube_version,
    );
    let fits = || match (
        Version::parse(&there.normalized),
        Constraints::parse(wanted),
    ) {
        (Ok(version), Ok(constraints)) => constraints.check(&version),
        _ => false,
    };
    if wanted.is_empty() || fits() {
        return Ok(());
    }
    Err(HelmError::template(format!(
        "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {}",
        there.version
    )))
}

/// Takes every NOTES.txt away and returns the chart's own.
fn notes(chart: &Chart, files: &mut BTreeMap<String, String>) -> Option<String> {
    let own = files
        .get(&format!("{}/templates/{NOTES}", chart.name()))
        .cloned();
    files.retain(|name, _| !name.ends_with(NOTES));
    own
}

impl RenderedChart {
    /// The hooks that are wanted: all, all but tests, or none.
    pub fn shown_hooks(&self, options: &PrintOptions) -> impl Iterator<Item = &Hook> {
        let (no_hooks, skip_tests) = (options.no_hooks, options.skip_tests);
        self.hooks
            .iter()
            .filter(move |hook| !(no_hooks || (skip_tests && hook.events.contains(&"test"))))
    }

    /// The text that `helm template` prints.
    pub fn print(&self, options: &PrintOptions) -> Result<String, HelmError> {
        let mut text = String::new();
        if options.include_crds {
            self.crds.iter().for_each(|(path, file)| {
                text.push_str(&document(path, &String::from_utf8_lossy(&file.data)))
            });
        }
        self.manifests
            .iter()
            .for_each(|m| text.push_str(&document(&m.source, &m.text)));
        let mut text = format!("{}\n", text.trim());
        self.shown_hooks(options)
            .for_each(|hook| text.push_str(&document(&hook.source, &hook.text)));
        if options.show_only.is_empty() {
            Ok(text)
        } else {
            only(&text, &options.show_only)
        }
    }
}

/// A manifest as Helm prints it and writes it to files: below the template that it comes from.
pub fn document(source: &str, text: &str) -> String {
    format!("---\n# Source: {source}\n{text}\n")
}

/// The documents whose templates match, pattern by pattern.
fn only(text: &str, patterns: &[String]) -> Result<String, HelmError> {
    let mut out = String::new();
    for pattern in patterns {
        let mut found = manifests::split(text)
            .filter(|document| {
                template_of(document)
                    .is_some_and(|name| path_match::matches(pattern, name).unwrap_or(false))
            })
            .peekable();
        if found.peek().is_none() {
            return Err(HelmError::chart(format!(
                "could not find template {pattern} in chart"
            )));
        }
        found.for_each(|document| out.push_str(&format!("---\n{document}\n")));
    }
    Ok(out)
}

/// The template that the comment of a document names, without the chart's name.
fn template_of(document: &str) -> Option<&str> {
    document.match_indices("# Source: ").find_map(|(at, mark)| {
        let line = document[at + mark.len()..].lines().next()?;
        let (chart, template) = line.split_once('/')?;
        (!chart.is_empty() && !template.is_empty()).then_some(template)
    })
}
