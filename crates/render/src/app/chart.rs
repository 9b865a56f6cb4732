//! `spec.source.helm`: the options, the values in Argo CD's order of precedence, and the objects
//! that a chart renders to.
//!
//! Main type: [`HelmOptions`]; main function: [`render`].

use super::{
    Environment, RenderParams, SourceSet,
    value_files::{self, Named, Place},
};
use crate::{
    Budget, EvaluateJsonnet, InProcess, RenderError, Rendered, SourceFiles, SourceKind,
    helm::{
        Capabilities, Deadline, HelmError, KubeVersion, Limits, ParsedChart, PrintOptions, Release,
        RenderOptions,
        chart::Chart,
        dependencies,
        values::{Settings, Values, missing_dependencies, user_values},
    },
    manifest::objects_of_template,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tiphys_api::source::{ApplicationSource, ApplicationSourceHelm, HelmParameter};
use tiphys_gocompat::{sprig, yaml};

/// Provides loaded charts, and what their templates take from outside: randomness and time. Decides
/// where Jsonnet is evaluated.
pub trait Charts {
    /// The chart of a folder.
    ///
    /// # Errors
    /// Helm's error for the chart.
    fn chart(
        &self,
        files: &dyn SourceFiles,
        folder: &str,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        Ok(Arc::new(ParsedChart::new(
            Chart::from_folder(files, folder, limits)?.chart,
        )))
    }

    /// The chart of a source, with the dependencies that are not in its `charts/` folder.
    ///
    /// # Errors
    /// [`HelmError::Need`] names those that must be fetched; else Helm's error.
    fn complete_chart(
        &self,
        sources: &SourceSet<'_>,
        folder: &str,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let chart = self.chart(sources.files, folder, limits)?;
        if missing_dependencies(chart.chart()).is_empty() {
            return Ok(chart);
        }
        self.completed(sources, folder, &chart, limits)
    }

    /// A chart that lacks dependencies, with them.
    ///
    /// # Errors
    /// Those of [`Charts::complete_chart`].
    fn completed(
        &self,
        sources: &SourceSet<'_>,
        folder: &str,
        chart: &ParsedChart,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let (own, fetched) = (chart.chart().clone(), &sources.fetched);
        let chart = dependencies::complete(own, sources.files, folder, fetched, limits)?;
        Ok(Arc::new(ParsedChart::new(chart)))
    }

    /// Randomness and the clock for one render.
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync>;

    /// When the render must be finished.
    fn deadline(&self) -> Option<Deadline> {
        None
    }

    fn jsonnet(&self) -> &dyn EvaluateJsonnet {
        &InProcess
    }
}

/// Everything that a chart's objects depend on besides files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HelmOptions {
    pub release: String,
    pub namespace: String,
    pub kube_version: String,
    pub api_versions: Arc<[String]>,
    pub value_files: Vec<Named>,
    pub ignore_missing_value_files: bool,
    /// `values` or `valuesObject`, as YAML.
    pub values: String,
    /// Lines for `--set` and `--set-string`.
    pub set: Vec<String>,
    pub set_string: Vec<String>,
    pub set_file: Vec<(String, Named)>,
    pub skip_crds: bool,
    pub skip_tests: bool,
    pub skip_schema_validation: bool,
    pub schemes: Vec<String>,
}

/// The options of a source whose overrides have been merged.
pub(super) fn options(
    sources: &SourceSet<'_>,
    source: &ApplicationSource,
    params: &RenderParams,
) -> Result<HelmOptions, RenderError> {
    let helm = source.helm.clone().unwrap_or_default();
    if !matches!(helm.version.as_str(), "" | "v3" | "v4") {
        let version = &helm.version;
        return Err(RenderError::Source(format!(
            "error initializing helm app object: failed to create new helm command: helm version '{version}' is not supported"
        )));
    }
    let environment = Environment::new(&params.app, &params.source);
    // The instance name of an Application outside the control plane's namespace is prefixed with
    // its namespace. The prefix is not part of the Helm release name.
    let app = params
        .app
        .name
        .split_once('_')
        .map_or(params.app.name.as_str(), |(_, name)| name);
    let or = |own: &str, other: &str| {
        if own.is_empty() {
            other.to_owned()
        } else {
            own.to_owned()
        }
    };
    let cluster_facts = &params.cluster_facts;
    let lines = |force_string: bool| {
        set_lines(&helm.parameters, force_string, |value| {
            environment.expand(value)
        })
    };
    let named = |raw: &String| Named::new(raw, &environment, sources);
    Ok(HelmOptions {
        release: or(&helm.release_name, app),
        namespace: or(&helm.namespace, &params.app.namespace),
        kube_version: or(&helm.kube_version, &cluster_facts.kube_version),
        api_versions: if helm.api_versions.is_empty() {
            cluster_facts.api_versions.clone()
        } else {
            helm.api_versions.clone().into()
        },
        value_files: helm
            .value_files
            .iter()
            .map(named)
            .collect::<Result<_, _>>()?,
        ignore_missing_value_files: helm.ignore_missing_value_files,
        values: values_text(&helm),
        set: lines(false),
        set_string: lines(true),
        set_file: helm
            .file_parameters
            .iter()
            .map(|p| Ok((p.name.clone(), named(&p.path)?)))
            .collect::<Result<_, RenderError>>()?,
        skip_crds: helm.skip_crds,
        skip_tests: helm.skip_tests,
        skip_schema_validation: helm.skip_schema_validation,
        schemes: cluster_facts.value_file_schemes.clone(),
    })
}

/// `valuesObject` if set, else `values`.
fn values_text(helm: &ApplicationSourceHelm) -> String {
    match &helm.values_object {
        Some(object) if !object.raw.is_empty() => yaml::to_string(&object.value()),
        _ => helm.values.clone(),
    }
}

/// The parameters that are texts, or the others, in the form that `--set` takes. If a name occurs
/// more than once, the last one wins. `expand`: what becomes of a value before.
pub fn set_lines(
    parameters: &[HelmParameter],
    force_string: bool,
    expand: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for p in parameters.iter().filter(|p| p.force_string == force_string) {
        let line = format!("{}={}", p.name, without_commas(&expand(&p.value)));
        match lines.iter_mut().find(|(name, _)| *name == p.name) {
            Some((_, existing)) => *existing = line,
            None => lines.push((&p.name, line)),
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Commas separate values in Helm, so commas inside a value are escaped, unless the value is a list
/// in braces or they are escaped already.
fn without_commas(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    let mut out = String::with_capacity(value.len());
    let mut before = None;
    for c in value.chars() {
        if c == ',' && before != Some('\\') {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

fn failed(e: HelmError) -> RenderError {
    if let HelmError::Need(needed) = e {
        return RenderError::Need(needed);
    }
    RenderError::Source(format!(
        "failed to execute helm template command: Error: {}",
        e.to_string().trim_end()
    ))
}

/// The user's values: files in order, then `values`, then parameters.
fn values(
    sources: &SourceSet<'_>,
    folder: &str,
    options: &HelmOptions,
    limits: &Limits,
) -> Result<Values, RenderError> {
    let set_file = options.set_file.iter().map(|(_, named)| named);
    let named = options.value_files.iter().chain(set_file);
    value_files::expect(sources, folder, named, &options.schemes);
    let places = value_files::resolve(
        sources,
        folder,
        &options.value_files,
        &options.schemes,
        options.ignore_missing_value_files,
    )?;
    let read = |place: Place| match place.read(sources) {
        Ok(content) => Ok((place.path, content)),
        Err(e) => Err(failed(HelmError::chart(e))),
    };
    let mut settings = Settings {
        files: places.into_iter().map(read).collect::<Result<_, _>>()?,
        ..Settings::default()
    };
    if !options.values.is_empty() {
        settings.files.push((
            "<temp file with values from source.helm.values/valuesObject>".to_owned(),
            options.values.clone().into_bytes(),
        ));
    }
    settings.set.clone_from(&options.set);
    settings.set_string.clone_from(&options.set_string);
    let mut places: Vec<Place> = Vec::new();
    for (name, named) in &options.set_file {
        let unresolved = |why: String| {
            let (what, inner) = match named.reference {
                Some(_) => ("set-file path", "error resolving value file path: "),
                None => ("helm value file path", ""),
            };
            RenderError::Source(format!("error resolving {what}: {inner}{why}"))
        };
        let place = named.place(folder, &options.schemes).map_err(unresolved)?;
        settings.set_file.push(format!("{name}={}", places.len()));
        places.push(place);
    }
    value_files::need(sources, &places)?;
    let read = |number: &str| {
        let place = number
            .parse()
            .ok()
            .and_then(|n: usize| places.get(n))
            .ok_or_else(|| format!("open {number}: no such file or directory"))?;
        let content = place.read(sources)?;
        String::from_utf8(content).map_err(|_| format!("{} is not UTF-8", place.path))
    };
    user_values(&settings, &read, limits).map_err(failed)
}

/// The objects of a chart: those of crds/, of its templates, and its hooks.
pub(crate) fn render(
    sources: &SourceSet<'_>,
    folder: &str,
    options: &HelmOptions,
    charts: &dyn Charts,
    budget: &Budget,
) -> Result<Rendered, RenderError> {
    let limits = Limits::default();
    let mut capabilities = Capabilities::default();
    if !options.kube_version.is_empty() {
        let unreadable = |e| {
            RenderError::Source(format!(
                "could not parse kubernetes version {}: {e}",
                options.kube_version
            ))
        };
        let version = KubeVersion::parse(&options.kube_version).map_err(unreadable)?;
        // Without the suffix that vendors add to the version (`-gke.100`), which charts do not
        // expect.
        capabilities.kube_version = KubeVersion {
            version: version.normalized.clone(),
            ..version
        };
    }
    capabilities
        .api_versions
        .extend(options.api_versions.iter().cloned());
    let user = values(sources, folder, options, &limits)?;
    let chart = charts
        .complete_chart(sources, folder, &limits)
        .map_err(failed)?;
    let namespace = if options.namespace.is_empty() {
        Release::default().namespace
    } else {
        options.namespace.clone()
    };
    let render = RenderOptions {
        release: Release {
            name: options.release.clone(),
            namespace,
            ..Release::default()
        },
        capabilities,
        skip_schema_validation: options.skip_schema_validation,
        deadline: charts.deadline(),
        ..RenderOptions::new(charts.sources())
    };
    let mut made = chart.render(&user, &render, &limits).map_err(failed)?;
    let mut rendered = Rendered {
        kind: SourceKind::Helm,
        warnings: std::mem::take(&mut made.warnings),
        ..Rendered::default()
    };
    let unsatisfied = dependencies::unsatisfied(chart.chart());
    rendered.warnings.extend(unsatisfied);
    let crds = made
        .crds
        .iter()
        .filter(|_| !options.skip_crds)
        .map(|(path, file)| (path, String::from_utf8_lossy(&file.data)));
    let manifests = made
        .manifests
        .iter()
        .map(|m| (&m.source, m.text.as_str().into()));
    let wanted = PrintOptions {
        skip_tests: options.skip_tests,
        ..PrintOptions::default()
    };
    let hooks = made
        .shown_hooks(&wanted)
        .map(|h| (&h.source, h.text.as_str().into()));
    for (template, text) in crds.chain(manifests).chain(hooks) {
        let (objects, errors) = objects_of_template(template, text.as_bytes(), budget);
        rendered.objects.extend(objects);
        rendered.errors.extend(errors);
        if rendered.objects.len() > budget.objects {
            return Err(RenderError::OverBudget {
                what: "the number of objects".to_owned(),
                limit: budget.objects as u64,
            });
        }
    }
    Ok(rendered)
}
