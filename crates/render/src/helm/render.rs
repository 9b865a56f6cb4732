//! Renders a chart, values and a release to manifests, as `helm template` does.
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
    /// Do not check the values against their schemas.
    pub skip_schema_validation: bool,
    /// Fail when a template uses a missing key.
    pub strict: bool,
    /// `required` and `fail` do not fail.
    pub lint: bool,
    /// Randomness and time; called once per render.
    pub sources: Arc<dyn Fn() -> Sources + Send + Sync>,
    pub deadline: Option<Deadline>,
}

impl RenderOptions {
    /// The options of a plain `helm template`.
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

/// A chart and its templates, which are parsed on first use. It can be shared between threads.
pub struct ParsedChart {
    chart: Chart,
    templates: ParsedTemplates,
    /// Prepared for the values of the last render, because the next one usually has the same.
    prepared: Mutex<Option<Arc<Prepared>>>,
}

/// A chart with a user's values: the part that does not depend on the release or the cluster.
struct Prepared {
    /// As JSON, in which 0 and -0 differ.
    user: String,
    limits: Limits,
    /// Without the disabled subcharts.
    chart: Chart,
    /// The coalesced values of all charts.
    values: Values,
    warnings: Vec<String>,
    /// Set when the values passed the schema checks, to Helm's warnings from them.
    agreed: OnceLock<Vec<String>>,
}

/// The result of rendering a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedChart {
    /// In install order.
    pub manifests: Vec<Manifest>,
    /// Ordered by kind, as Helm prints them, and by file within a kind.
    pub hooks: Vec<Hook>,
    /// The files in crds/, with the path that Helm prints.
    pub crds: Vec<(String, File)>,
    /// The chart's own NOTES.txt.
    pub notes: Option<String>,
    pub warnings: Vec<String>,
}

/// Which parts of a render are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    pub include_crds: bool,
    pub no_hooks: bool,
    pub skip_tests: bool,
    /// Patterns of template paths, without the chart's name. Print only the output of templates
    /// that match.
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

/// Helm's checks before it renders a chart: its API version is known, it is not a library chart and
/// its dependencies are present.
pub fn check_installable(chart: &Chart) -> Result<(), HelmError> {
    check_kind(chart)?;
    check_dependencies(chart)
}

fn check_kind(chart: &Chart) -> Result<(), HelmError> {
    match chart.metadata.api_version.as_str() {
        "v1" | "v2" | "" => {}
        // An API version that Helm can load but does not install.
        "v3" => return Err(HelmError::chart("invalid chart apiVersion")),
        _ => return Err(HelmError::chart("unsupported chart version")),
    }
    if !matches!(chart.metadata.kind.as_str(), "" | "application") {
        return Err(HelmError::chart(format!(
            "{} charts are not installable",
            chart.metadata.kind
        )));
    }
    Ok(())
}

fn check_dependencies(chart: &Chart) -> Result<(), HelmError> {
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

    /// Parses templates until `is_over`, the last first: for another thread while a render, which
    /// parses them from the first on, is under way. The render tells what is wrong with them.
    pub fn parse_ahead(&self, is_over: &dyn Fn() -> bool) {
        self.templates.parse_ahead(&self.chart, is_over);
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

    /// Like `render`; Helm's warnings are added to `warnings` even if it fails.
    pub fn render_telling(
        &self,
        user: &Values,
        options: &RenderOptions,
        limits: &Limits,
        warnings: &mut Vec<String>,
    ) -> Result<RenderedChart, HelmError> {
        check_kind(&self.chart)?;
        if self.chart.metadata.deprecated {
            warnings.push("this chart is deprecated".to_owned());
        }
        check_dependencies(&self.chart)?;
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
        let deadline = options.deadline.as_ref();
        let (manifests, hooks) = manifests::sort(&files, &limits.yaml, deadline, warnings)?;
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
        values::prepare(&mut chart, user, limits, warnings).map_err(failed)?;
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

/// Removes every NOTES.txt and returns the chart's own.
fn notes(chart: &Chart, files: &mut BTreeMap<String, String>) -> Option<String> {
    let own = files
        .get(&format!("{}/templates/{NOTES}", chart.name()))
        .cloned();
    files.retain(|name, _| !name.ends_with(NOTES));
    own
}

impl RenderedChart {
    /// The selected hooks: all, all except tests, or none.
    pub fn shown_hooks(&self, options: &PrintOptions) -> impl Iterator<Item = &Hook> {
        let (no_hooks, skip_tests) = (options.no_hooks, options.skip_tests);
        self.hooks
            .iter()
            .filter(move |hook| !(no_hooks || (skip_tests && hook.events.contains(&"test"))))
    }

    /// The output of `helm template`.
    pub fn print(&self, options: &PrintOptions) -> Result<String, HelmError> {
        let mut text = String::new();
        if options.include_crds {
            self.crds.iter().for_each(|(path, file)| {
                add_document(&mut text, path, &String::from_utf8_lossy(&file.data));
            });
        }
        self.manifests
            .iter()
            .for_each(|m| add_document(&mut text, &m.source, &m.text));
        let mut text = format!("{}\n", text.trim());
        self.shown_hooks(options)
            .for_each(|hook| add_document(&mut text, &hook.source, &hook.text));
        if options.show_only.is_empty() {
            Ok(text)
        } else {
            only(&text, &options.show_only)
        }
    }
}

/// A manifest as Helm prints and writes it: below a comment with its template's path.
pub fn document(source: &str, text: &str) -> String {
    let mut out = String::new();
    add_document(&mut out, source, text);
    out
}

fn add_document(out: &mut String, source: &str, text: &str) {
    const MARK: &str = "---\n# Source: ";
    out.reserve(MARK.len() + source.len() + text.len() + 2);
    for part in [MARK, source, "\n", text, "\n"] {
        out.push_str(part);
    }
}

/// The documents whose templates match, in the order of the patterns.
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

/// The template path in the document's comment, without the chart's name.
fn template_of(document: &str) -> Option<&str> {
    document.match_indices("# Source: ").find_map(|(at, mark)| {
        let line = document[at + mark.len()..].lines().next()?;
        let (chart, template) = line.split_once('/')?;
        (!chart.is_empty() && !template.is_empty()).then_some(template)
    })
}
