//! From files to a chart: dispatches files by name and loads the subcharts.
//!
//! Main functions: [`chart`] and [`parse_values`].

use super::metadata::decode_lock;
use super::{Chart, File, Loaded, Metadata, Meter, archive};
use crate::helm::{HelmError, Limits};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tiphys_gocompat::json;
use tiphys_gocompat::yaml::{self, Duplicates};

pub(super) fn chart(files: Vec<File>, limits: &Limits, meter: Meter) -> Result<Loaded, HelmError> {
    let mut loader = Loader {
        limits,
        meter,
        warnings: Vec::new(),
    };
    let chart = loader.chart(files, 0)?;
    Ok(Loaded {
        chart,
        warnings: loader.warnings,
    })
}

struct Loader<'a> {
    limits: &'a Limits,
    meter: Meter,
    warnings: Vec<String>,
}

impl Loader<'_> {
    fn chart(&mut self, files: Vec<File>, depth: usize) -> Result<Chart, HelmError> {
        if depth > self.limits.depth {
            return Err(HelmError::over(
                "the number of charts inside each other",
                self.limits.depth,
            ));
        }
        let mut chart = Chart::default();
        let mut described = false;
        for file in files.iter().filter(|file| file.name == "Chart.yaml") {
            let failed = |e: HelmError| e.within("cannot load Chart.yaml");
            let document = document(file, self.limits).map_err(failed)?;
            chart
                .metadata
                .decode(&document)
                .map_err(HelmError::Chart)
                .map_err(failed)?;
            if chart.metadata.api_version.is_empty() {
                chart.metadata.api_version = "v1".to_owned();
            }
            described = true;
        }
        let mut subcharts: BTreeMap<String, Vec<File>> = BTreeMap::new();
        for file in files {
            match file.name.strip_prefix("charts/") {
                Some(rest) if !file.name.ends_with(".prov") => {
                    let folder = rest.split('/').next().unwrap_or(rest).to_owned();
                    subcharts.entry(folder).or_default().push(File {
                        name: rest.to_owned(),
                        data: file.data,
                    });
                }
                _ => described |= self.file(&mut chart, file)?,
            }
        }
        if !described {
            return Err(HelmError::chart("Chart.yaml file is missing"));
        }
        chart.metadata.validate().map_err(HelmError::Chart)?;
        for (name, files) in subcharts
            .into_iter()
            .filter(|(name, _)| !name.starts_with(['_', '.']))
        {
            let dependency = self.subchart(chart.name(), &name, files, depth)?;
            chart.dependencies.push(dependency);
        }
        Ok(chart)
    }

    /// Adds a file that belongs to no subchart. True if it describes a chart, as Chart.yaml and
    /// requirements.yaml do.
    fn file(&mut self, chart: &mut Chart, file: File) -> Result<bool, HelmError> {
        let failed = |e: HelmError, name: &str| e.within(&format!("cannot load {name}"));
        match file.name.as_str() {
            "Chart.yaml" => {}
            "values.yaml" => {
                chart.values = Arc::new(
                    parse_values(&file.data, self.limits).map_err(|e| failed(e, &file.name))?,
                )
            }
            "values.schema.json" => chart.schema = Some(file.data),
            "Chart.lock" => chart.lock = self.lock(&file).map_err(|e| failed(e, &file.name))?,
            "requirements.lock" => {
                chart.lock = self.lock(&file).map_err(|e| failed(e, &file.name))?;
                let hint = "Dependency locking is handled in Chart.lock since apiVersion \"v2\". We recommend migrating to Chart.lock.";
                self.old_file(chart, file, hint);
                return Ok(true);
            }
            "requirements.yaml" => {
                let document = document(&file, self.limits).map_err(|e| failed(e, &file.name))?;
                let decoded = chart.metadata.decode(&document).map_err(HelmError::Chart);
                decoded.map_err(|e| failed(e, &file.name))?;
                let hint = "Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.";
                self.old_file(chart, file, hint);
                return Ok(true);
            }
            name if name.starts_with("templates/") => chart.templates.push(file),
            _ => chart.files.push(file),
        }
        Ok(false)
    }

    /// A file that only charts of API version v1 should have.
    fn old_file(&mut self, chart: &mut Chart, file: File, hint: &str) {
        let Metadata { api_version, .. } = &chart.metadata;
        if api_version == "v1" {
            chart.files.push(file);
        } else {
            self.warnings.push(format!("Warning: {hint}"));
        }
    }

    fn lock(&self, file: &File) -> Result<Option<super::Lock>, HelmError> {
        let lock = decode_lock(&document(file, self.limits)?);
        lock.map(Some).map_err(HelmError::Chart)
    }

    fn subchart(
        &mut self,
        parent: &str,
        name: &str,
        files: Vec<File>,
        depth: usize,
    ) -> Result<Chart, HelmError> {
        let failed =
            |e: HelmError| e.within(&format!("error unpacking subchart {name} in {parent}"));
        if name.ends_with(".tgz") {
            let first = &files[0];
            if first.name != name {
                let got = &first.name;
                return Err(HelmError::chart(format!(
                    "error unpacking subchart tar in {parent}: expected {name}, got {got}"
                )));
            }
            let files =
                archive::files(&first.data, self.limits, &mut self.meter).map_err(failed)?;
            return self.chart(files, depth + 1).map_err(failed);
        }
        let inner = files.into_iter().filter_map(|file| {
            Some(File {
                name: file.name.split_once('/')?.1.to_owned(),
                data: file.data,
            })
        });
        self.chart(inner.collect(), depth + 1).map_err(failed)
    }
}

fn document(file: &File, limits: &Limits) -> Result<Value, HelmError> {
    let parsed = yaml::parse_document(&file.data, &limits.yaml, Duplicates::LastWins);
    parsed.map_err(|e| HelmError::chart(e.json_text()))
}

/// The documents of a values file merged, numbers as floats.
pub fn parse_values(data: &[u8], limits: &Limits) -> Result<Map<String, Value>, HelmError> {
    let unreadable = |e: yaml::YamlError| {
        HelmError::chart(format!("cannot unmarshal yaml document: {}", e.json_text()))
    };
    let mut values = Map::new();
    for document in yaml::parse_documents(data, &limits.yaml).map_err(unreadable)? {
        match document.value {
            Value::Null => {}
            Value::Object(mut map) => {
                map.values_mut().for_each(to_floats);
                if values.is_empty() {
                    values = map;
                } else {
                    merge_maps(&mut values, map);
                }
            }
            other => {
                let kind = json::kind(&other);
                return Err(HelmError::chart(format!(
                    "cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
                )));
            }
        }
    }
    Ok(values)
}

/// Go decodes every number of a document as a float.
pub fn floats(mut value: Value) -> Value {
    to_floats(&mut value);
    value
}

fn to_floats(value: &mut Value) {
    match value {
        Value::Number(n) => {
            if let Some(float) = n.as_f64().and_then(Number::from_f64) {
                *n = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(to_floats),
        Value::Object(map) => map.values_mut().for_each(to_floats),
        _ => {}
    }
}

/// Merges `from` into `into`, overwriting; maps on both sides are merged.
pub fn merge_maps(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_maps(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
