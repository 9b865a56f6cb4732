//! `helmCharts`: charts in folders of the repository or from chart repositories, rendered by our
//! own Helm implementation.
//!
//! Main function: [`inflate`].

use super::Build;
use super::fault::{Fault, Res, fail};
use super::kustomization::{HelmChart, HelmGlobals};
use super::loader::Loader;
use super::merge::merge;
use super::repospec::clean;
use super::resmap::ResMap;
use super::resource::{HELM_GENERATED, Object};
use crate::helm::{
    Capabilities, HelmError, KubeVersion, Limits, ParsedChart, PrintOptions, Release,
    RenderOptions,
    chart::{Chart, archive_files},
    release_name,
    values::{Settings, user_values},
};
use crate::{FileKind, SourceFiles, SourceRef};
use std::sync::Arc;
use tiphys_gocompat::yaml;

/// A chart and its default values.
struct Found {
    chart: Arc<ParsedChart>,
    values: Option<Vec<u8>>,
}

/// Renders the objects of a chart that was checked.
pub(super) fn inflate<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    globals: &HelmGlobals,
    own: &HelmChart,
) -> Res<ResMap> {
    let limits = Limits::default();
    let mut settings = Settings::default();
    // These files are read before the chart.
    let mut more = Vec::new();
    for path in &own.additional_values_files {
        let content = loader
            .load(build, path)
            .map_err(|fault| fault.within("could not load additionalValuesFile"))?;
        more.push((path.clone(), content));
    }
    let found = find(build, loader, globals, own, &limits)?;
    let values = values(build, loader, own, found.values)?;
    settings
        .files
        .push((format!("{}-kustomize-values.yaml", own.name), values));
    settings.files.extend(more);
    let no_file = |path: &str| Err(format!("open {path}: no such file or directory"));
    let user = user_values(&settings, &no_file, &limits).map_err(failed)?;
    let options = options(build, own)?;
    let rendered = found
        .chart
        .render(&user, &options, &limits)
        .map_err(failed)?;
    let print = PrintOptions {
        include_crds: own.include_crds,
        no_hooks: own.skip_hooks,
        skip_tests: own.skip_tests,
        ..PrintOptions::default()
    };
    build.warnings.extend(rendered.warnings.iter().cloned());
    let text = rendered.print(&print).map_err(failed)?;
    let objects = super::patch::objects(build, text.as_bytes())?;
    let map = ResMap::of(&build.tree, objects)?;
    for (_, object) in map.objects() {
        let object: Object = object;
        object.annotate(&mut build.tree, HELM_GENERATED, "true")?;
    }
    Ok(map)
}

/// What kustomize looks at before it does anything.
pub(super) fn check(build: &Build<'_>, own: &HelmChart) -> Res<()> {
    if !build.options.enable_helm {
        return fail!("must specify --enable-helm");
    }
    if own.name.is_empty() {
        return fail!("chart name cannot be empty");
    }
    if !matches!(
        own.values_merge.as_str(),
        "" | "merge" | "override" | "replace"
    ) {
        return fail!("valuesMerge must be one of [merge override replace]");
    }
    Ok(())
}

fn failed(error: HelmError) -> Fault {
    match error {
        HelmError::OverBudget { what, limit } => {
            crate::RenderError::OverBudget { what, limit }.into()
        }
        error => Fault::new(format!("Error: {}", error.to_string().trim_end())),
    }
}

/// Finds the chart in the charts folder or in its repository.
fn find<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    globals: &HelmGlobals,
    own: &HelmChart,
    limits: &Limits,
) -> Res<Found> {
    if let Some(folder) = local_folder(loader, globals, own)? {
        let files = loader.files();
        let chart = build.charts.chart(files, &folder, limits).map_err(failed)?;
        let values = if own.values_file.is_empty() {
            let path = format!("{folder}/values.yaml");
            if !build.options.unrestricted && !is_below(loader, &folder) {
                return fail!(
                    "security; file '/{path}' is not in or below '{}'",
                    loader.shown()
                );
            }
            files.read(&path)?
        } else {
            None
        };
        return Ok(Found { chart, values });
    }
    if own.repo.is_empty() {
        return fail!("no repo specified for pull, no chart found at ''");
    }
    let files = build.fetched(&reference(own))?;
    if let Some(archive) = files.read(SourceRef::FILE)? {
        let chart = Chart::from_archive(&archive, limits).map_err(failed)?.chart;
        let inner = archive_files(&archive, limits).map_err(failed)?;
        return Ok(Found {
            chart: Arc::new(ParsedChart::new(chart)),
            values: inner.read("values.yaml")?,
        });
    }
    // Unpacked, with or without the archive's top folder.
    let folder = match files.kind("Chart.yaml")? {
        Some(_) => "",
        None => own.name.as_str(),
    };
    let chart = build.charts.chart(files, folder, limits).map_err(failed)?;
    let values = files.read(&crate::files::join(folder, "values.yaml"))?;
    Ok(Found { chart, values })
}

/// The chart in its repository.
pub(super) fn reference(own: &HelmChart) -> SourceRef {
    SourceRef::Chart {
        repository: own.repo.trim_end_matches('/').to_owned(),
        name: own.name.clone(),
        version: own.version.clone(),
    }
}

/// The chart's folder in the tree, if it exists.
pub(super) fn local_folder(
    loader: &Loader<'_>,
    globals: &HelmGlobals,
    own: &HelmChart,
) -> Res<Option<String>> {
    let home = if globals.chart_home.is_empty() {
        "charts"
    } else {
        &globals.chart_home
    };
    let home = if own.version.is_empty() || own.repo.is_empty() {
        home.to_owned()
    } else {
        format!("{home}/{}-{}", own.name, own.version)
    };
    let Some(folder) = loader.path(&format!("{home}/{}", own.name)) else {
        return Ok(None);
    };
    let is_folder = loader.files().kind(&folder)? == Some(FileKind::Dir);
    Ok(is_folder.then_some(folder))
}

fn is_below(loader: &Loader<'_>, folder: &str) -> bool {
    let root = loader.shown();
    let root = root.trim_end_matches('/');
    clean(&format!("/{folder}"))
        .strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The values file, either the chart's own or another one, merged with the values in the
/// kustomization.
fn values<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
    own: &HelmChart,
    of_chart: Option<Vec<u8>>,
) -> Res<Vec<u8>> {
    let inline = &own.values_inline;
    if !inline.is_empty() && own.values_merge == "replace" {
        let text = yaml::to_string(&inline.clone().into());
        return Ok(text.into_bytes());
    }
    let file = if own.values_file.is_empty() {
        let missing = || {
            let path = format!("{}/values.yaml", own.name);
            Fault::new(format!(
                "evalsymlink failure on '{path}' : lstat {path}: no such file or directory"
            ))
        };
        of_chart.ok_or_else(missing)?
    } else {
        loader.load(build, &own.values_file)?
    };
    if inline.is_empty() {
        return Ok(file);
    }
    let limits = build.yaml_limits();
    let tree = &mut build.tree;
    let roots = super::read::documents(tree, &file, &limits)
        .map_err(|fault| fault.within("could not parse values file into rnode"))?;
    let Some(chart) = roots.first().copied() else {
        return fail!("could not parse values file into rnode: EOF");
    };
    let inline = tree.add_json(&inline.clone().into());
    let (patch, under) = if own.values_merge == "merge" {
        (chart, inline)
    } else {
        (inline, chart)
    };
    let schema = super::schema::builtin();
    let merged = merge(tree, &schema, patch, under)
        .map_err(|fault| fault.within("could not merge values"))?;
    match merged {
        Some(id) => Ok(yaml::to_string(&tree.json(id)?).into_bytes()),
        None => Ok(Vec::new()),
    }
}

fn options(build: &Build<'_>, own: &HelmChart) -> Res<RenderOptions> {
    let mut capabilities = Capabilities::default();
    let kube_version = if own.kube_version.is_empty() {
        &build.options.kube_version
    } else {
        &own.kube_version
    };
    if !kube_version.is_empty() {
        let version = KubeVersion::parse(kube_version).map_err(|error| {
            Fault::new(format!(
                "Error: invalid kube version '{kube_version}': {error}"
            ))
        })?;
        capabilities.kube_version = version;
    }
    let api_versions = if own.api_versions.is_empty() {
        &build.options.api_versions[..]
    } else {
        &own.api_versions
    };
    capabilities
        .api_versions
        .extend(api_versions.iter().cloned());
    let name = match (&*own.release_name, &*own.name_template) {
        ("", "") => {
            let sources = (build.charts.sources())();
            format!("{}-{}", own.name, sources.now.as_second())
        }
        ("", template) => release_name(template, (build.charts.sources())()).map_err(failed)?,
        (name, "") => name.to_owned(),
        _ => return fail!("Error: cannot set --name-template and also specify a name"),
    };
    let mut release = Release {
        name,
        ..Release::default()
    };
    if !own.namespace.is_empty() {
        release.namespace.clone_from(&own.namespace);
    }
    Ok(RenderOptions {
        release,
        capabilities,
        deadline: build.tree.clock.deadline(),
        ..RenderOptions::new(build.charts.sources())
    })
}
