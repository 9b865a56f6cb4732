//! The type of a source and its settable parameters, for `GetAppDetails`.
//!
//! Main function: [`details`].

use super::{
    Charts, Environment, Recognised, RenderParams, SourceSet, kustomize, recognise, value_files,
};
use crate::{
    Budget, FileKind, RenderError, SourceFiles, SourceKind, files::join, helm::Limits, plugin,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_api::{rpc::repository::ParameterAnnouncement, source::ApplicationSource};
use tiphys_gocompat::{json, text, yaml};

/// How deep values files are searched for.
const MAX_DEPTH: usize = 50;

/// The type of a source and its details.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub kind: SourceKind,
    pub helm: Option<HelmDetails>,
    /// The images that a kustomization uses, sorted.
    pub images: Vec<String>,
    /// What a plugin takes.
    pub parameters: Vec<ParameterAnnouncement>,
}

/// A chart as `GetAppDetails` reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HelmDetails {
    /// Files that look like values files, relative to the chart.
    pub value_files: Vec<String>,
    /// The text of `values.yaml`.
    pub values: String,
    /// The parameters and their values: the chart's defaults, overridden by the selected values
    /// files.
    pub parameters: BTreeMap<String, String>,
}

/// `charts` and `budget` are for kustomizations, which must be built to find their images.
pub fn details(
    sources: &SourceSet<'_>,
    params: &RenderParams,
    charts: &dyn Charts,
    budget: &Budget,
) -> Result<Details, RenderError> {
    let Recognised {
        folder,
        source,
        kind,
        plugin,
    } = recognise(sources, params)?;
    let helm = match kind {
        SourceKind::Helm => Some(helm(
            sources,
            &folder,
            &source,
            &params.cluster_facts.value_file_schemes,
        )?),
        _ => None,
    };
    let images = match kind {
        SourceKind::Kustomize => {
            let options = kustomize::options(&source, params)?;
            let rendered = kustomize::render(sources, &folder, &options, charts, budget)?;
            kustomize::images(&rendered)
        }
        _ => Vec::new(),
    };
    let parameters = match kind {
        SourceKind::Plugin => {
            let options = plugin::options(&source, plugin, params)?;
            plugin::parameters(sources, &folder, &options)?
        }
        _ => Vec::new(),
    };
    Ok(Details {
        kind,
        helm,
        images,
        parameters,
    })
}

fn helm(
    sources: &SourceSet<'_>,
    folder: &str,
    source: &ApplicationSource,
    schemes: &[String],
) -> Result<HelmDetails, RenderError> {
    let helm = source.helm.clone().unwrap_or_default();
    let mut value_files = Vec::new();
    look_for_values(sources.files, folder, "", 0, &mut value_files)?;
    let values = sources
        .files
        .read(&join(folder, "values.yaml"))?
        .unwrap_or_default();
    let named = helm
        .value_files
        .iter()
        .map(|raw| value_files::Named::new(raw, &Environment::default(), sources));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let places = value_files::resolve(
        sources,
        folder,
        &named,
        schemes,
        helm.ignore_missing_value_files,
    );
    let places = places.map_err(|e| match e {
        RenderError::Need(_) => e,
        e => RenderError::Source(format!("failed to resolve value files: {e}")),
    })?;
    let mut parameters = BTreeMap::new();
    let mut add = |content: &[u8]| -> Result<(), RenderError> {
        let unreadable = |e: String| RenderError::Source(format!("failed to parse values: {e}"));
        let parsed =
            yaml::parse_document(content, &Limits::default().yaml, yaml::Duplicates::LastWins);
        match parsed.map_err(|e| unreadable(e.to_string()))? {
            Value::Null => {}
            values @ Value::Object(_) => flatten(&values, "", &mut parameters),
            other => {
                return Err(unreadable(format!(
                    "a map is wanted, not a {}",
                    json::kind(&other)
                )));
            }
        }
        Ok(())
    };
    add(&values)?;
    for place in places {
        // A missing file adds nothing.
        add(&place.read(sources).unwrap_or_default())?;
    }
    let values = String::from_utf8_lossy(&values).into_owned();
    Ok(HelmDetails {
        value_files,
        values,
        parameters,
    })
}

/// Files that have `values` in their name, ordered by path.
fn look_for_values(
    files: &dyn SourceFiles,
    full: &str,
    relative: &str,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), RenderError> {
    if depth > MAX_DEPTH {
        return Err(RenderError::OverBudget {
            what: format!("the folder depth at {full:?}"),
            limit: MAX_DEPTH as u64,
        });
    }
    for entry in files.list(full)?.unwrap_or_default() {
        let relative = join(relative, &entry.name);
        if entry.kind == FileKind::Dir {
            look_for_values(files, &join(full, &entry.name), &relative, depth + 1, found)?;
        } else {
            let extension = entry
                .name
                .rsplit_once('.')
                .map_or(String::new(), |(_, e)| e.to_ascii_lowercase());
            if entry.name.contains("values") && matches!(extension.as_str(), "yaml" | "yml") {
                found.push(relative);
            }
        }
    }
    Ok(())
}

/// Names such as `a.b[0].c` and their values, as Go prints them.
fn flatten(value: &Value, name: &str, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                flatten(value, &name, into);
            }
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(i, item)| flatten(item, &format!("{name}[{i}]"), into)),
        Value::Null => drop(into.insert(name.to_owned(), "<nil>".to_owned())),
        Value::Bool(b) => drop(into.insert(name.to_owned(), b.to_string())),
        Value::Number(n) => drop(into.insert(
            name.to_owned(),
            n.as_f64().map_or_else(|| n.to_string(), text::float),
        )),
        Value::String(s) => drop(into.insert(name.to_owned(), s.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryFiles;
    use std::sync::Arc;
    use tiphys_api::source::ApplicationSourceHelm;
    use tiphys_gocompat::sprig;

    struct NoCharts;

    impl Charts for NoCharts {
        fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
            unreachable!("no chart is rendered")
        }
    }

    fn found_in(files: &MemoryFiles, params: &RenderParams) -> Result<Details, RenderError> {
        details(
            &SourceSet::new(files),
            params,
            &NoCharts,
            &Budget::default(),
        )
    }

    #[test]
    fn what_can_be_set_is_told() {
        let files = MemoryFiles::new([
            (
                "app/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\n",
            ),
            (
                "app/values.yaml",
                "image:\n  tag: \"1\"\nports: [80, {name: x}]\nbig: 1000000000000000000000000\nempty: {}\nnone: null\nlast: yes\n",
            ),
            ("app/values-prod.yaml", "image: {tag: \"2\"}\n"),
            ("app/charts/sub/values.yml", "a: 1\n"),
            ("app/templates/values.txt", ""),
        ]);
        let helm = ApplicationSourceHelm {
            value_files: vec!["values-prod.yaml".into(), "missing.yaml".into()],
            ..Default::default()
        };
        let source = ApplicationSource {
            path: "app".into(),
            helm: Some(helm.into()),
            ..Default::default()
        };
        let params = RenderParams {
            source,
            ..RenderParams::default()
        };
        let found = found_in(&files, &params)
            .expect("details")
            .helm
            .expect("a chart");
        assert_eq!(
            found.value_files,
            ["charts/sub/values.yml", "values-prod.yaml", "values.yaml"]
        );
        let parameters: Vec<String> = found
            .parameters
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(
            parameters,
            [
                "big=1e+24",
                "image.tag=2",
                "last=true",
                "none=<nil>",
                "ports[0]=80",
                "ports[1].name=x"
            ]
        );
    }

    #[test]
    fn what_is_no_chart_has_only_a_type() {
        let files = MemoryFiles::new([("app/a.yaml", "")]);
        let params = RenderParams {
            source: ApplicationSource {
                path: "app".into(),
                ..Default::default()
            },
            ..RenderParams::default()
        };
        assert_eq!(
            found_in(&files, &params),
            Ok(Details {
                kind: SourceKind::Directory,
                ..Details::default()
            })
        );
    }
}
