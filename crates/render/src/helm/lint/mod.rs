//! Helm's linter: the same rules, severities and messages.
//!
//! Main function: [`lint`]; main type: [`Finding`]. [`chart_yaml`] checks Chart.yaml,
//! [`templates`] the rendered output, [`names`] names and URLs, [`deprecated`] API versions.

mod chart_yaml;
mod deprecated;
mod names;
mod templates;

use super::chart::{Chart, parse_values};
use super::values::{Values, over_defaults, single_schema};
use super::{HelmError, KubeVersion, Limits, Place, Sources};
use crate::files::join;
use crate::{FileKind, SourceFiles};
use std::fmt;
use std::sync::Arc;
use tiphys_gocompat::yaml::{self, Duplicates};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// What a rule found. Its text is Helm's: `[WARNING] templates/a.yaml: why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// The path inside the chart, or the chart's.
    pub path: String,
    pub message: String,
    /// The location, if the file is not valid YAML.
    pub place: Option<Box<Place>>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Info => "INFO",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
        };
        write!(f, "[{severity}] {}: {}", self.path, self.message)
    }
}

/// The options of a lint run.
#[derive(Clone)]
pub struct LintOptions {
    pub namespace: String,
    /// None: the version that Helm is built for.
    pub kube_version: Option<KubeVersion>,
    pub skip_schema_validation: bool,
    /// The chart's name in messages.
    pub shown: String,
    pub sources: Arc<dyn Fn() -> Sources + Send + Sync>,
}

struct Linter<'a> {
    files: &'a dyn SourceFiles,
    folder: &'a str,
    user: &'a Values,
    options: &'a LintOptions,
    limits: &'a Limits,
    findings: Vec<Finding>,
    warnings: Vec<String>,
}

/// The result of linting a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linted {
    pub findings: Vec<Finding>,
    /// Warnings that Helm logs in addition to the findings.
    pub warnings: Vec<String>,
}

/// Lints the chart in a folder with the user's values. An error means that the chart cannot be read
/// at all.
pub fn lint(
    files: &dyn SourceFiles,
    folder: &str,
    user: &Values,
    options: &LintOptions,
    limits: &Limits,
) -> Result<Linted, HelmError> {
    let mut linter = Linter {
        files,
        folder,
        user,
        options,
        limits,
        findings: Vec::new(),
        warnings: Vec::new(),
    };
    linter.about()?;
    linter.values()?;
    linter.templates()?;
    linter.dependencies();
    linter.crds()?;
    Ok(Linted {
        findings: linter.findings,
        warnings: linter.warnings,
    })
}

/// The items of a list, joined as Go does.
fn listed(names: &[&str]) -> String {
    names.join(",")
}

impl Linter<'_> {
    /// Records a finding for an error; true if there is none.
    fn rule(&mut self, severity: Severity, path: &str, result: Result<(), String>) -> bool {
        let fine = result.is_ok();
        self.findings.extend(result.err().map(|message| Finding {
            severity,
            path: path.to_owned(),
            message,
            place: None,
        }));
        fine
    }

    /// Records that a file, or a template's output, cannot be read, with the location if it is not
    /// valid YAML.
    fn unreadable(&mut self, path: &str, text: &[u8], made: bool, message: String) {
        let place = Place::broken(path, text, made, self.limits);
        self.findings.push(Finding {
            severity: Severity::Error,
            path: path.to_owned(),
            message,
            place,
        });
    }

    fn kind(&self, name: &str) -> Result<Option<FileKind>, HelmError> {
        Ok(self.files.kind(&join(self.folder, name))?)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, HelmError> {
        Ok(self.files.read(&join(self.folder, name))?)
    }

    /// Loads the chart as a render does.
    fn load(&mut self) -> Result<Chart, String> {
        let loaded =
            Chart::from_folder(self.files, self.folder, self.limits).map_err(|e| e.to_string())?;
        self.warnings.extend(loaded.warnings);
        Ok(loaded.chart)
    }

    fn values(&mut self) -> Result<(), HelmError> {
        const FILE: &str = "values.yaml";
        let Some(text) = self.read(FILE)? else {
            self.rule(Severity::Info, FILE, Err("file does not exist".to_owned()));
            return Ok(());
        };
        let schema = self
            .read("values.schema.json")?
            .filter(|schema| !schema.is_empty() && !self.options.skip_schema_validation);
        let unreadable = |e: HelmError| {
            let text = e.to_string();
            let text = text
                .strip_prefix("cannot unmarshal yaml document: ")
                .unwrap_or(&text);
            // Here Helm reads into a type of its own.
            match text.strip_suffix("map[string]interface {}") {
                Some(start) => format!("unable to parse YAML: {start}common.Values"),
                None => format!("unable to parse YAML: {text}"),
            }
        };
        let result = parse_values(&text, self.limits)
            .map_err(unreadable)
            .and_then(|defaults| {
                let (values, warnings) =
                    over_defaults(self.user, &defaults, self.limits).map_err(|e| e.to_string())?;
                self.warnings.extend(warnings);
                let Some(schema) = schema else { return Ok(()) };
                single_schema(&schema, &values, self.limits, &mut self.warnings)
                    .map_err(|e| e.to_string())?
                    .map_or(Ok(()), Err)
            });
        if let Err(message) = result {
            self.unreadable(FILE, &text, false, message);
        }
        Ok(())
    }

    fn dependencies(&mut self) {
        let chart = match self.load() {
            Ok(chart) => chart,
            Err(why) => {
                self.rule(
                    Severity::Error,
                    "",
                    Err(format!("unable to load chart\n\t{why}")),
                );
                return;
            }
        };
        let wanted: Vec<_> = chart.metadata.dependencies.iter().flatten().collect();
        let there: Vec<&str> = chart.dependencies.iter().map(Chart::name).collect();
        let unknown: Vec<&str> = there
            .iter()
            .copied()
            .filter(|name| !wanted.iter().any(|d| d.name == *name))
            .collect();
        let missing: Vec<&str> = wanted
            .iter()
            .map(|d| d.name.as_str())
            .filter(|name| !there.contains(name))
            .collect();
        let shown = self.options.shown.clone();
        let told = |names: &[&str], what: &str| {
            if names.is_empty() {
                Ok(())
            } else {
                Err(format!("{what}: {}", listed(names)))
            }
        };
        self.rule(
            Severity::Error,
            &shown,
            told(&unknown, "chart metadata is missing these dependencies"),
        );
        self.rule(
            Severity::Warning,
            &shown,
            told(&missing, "chart directory is missing these dependencies"),
        );
    }

    fn crds(&mut self) -> Result<(), HelmError> {
        const FOLDER: &str = "crds/";
        match self.kind("crds")? {
            None => return Ok(()),
            Some(FileKind::Dir) => {}
            Some(_) => {
                self.rule(Severity::Error, FOLDER, Err("not a directory".to_owned()));
                return Ok(());
            }
        }
        let chart = match self.load() {
            Ok(chart) => chart,
            Err(why) => {
                self.rule(Severity::Error, FOLDER, Err(why));
                return Ok(());
            }
        };
        for (_, file) in chart.crds() {
            for document in templates::documents(&String::from_utf8_lossy(&file.data)) {
                let document = match document {
                    Ok(document) => document,
                    Err(why) => {
                        self.rule(
                            Severity::Error,
                            &file.name,
                            Err(format!("unable to parse YAML: {why}")),
                        );
                        return Ok(());
                    }
                };
                let parsed =
                    yaml::parse_document(document, &self.limits.yaml, Duplicates::LastWins);
                let told = |e: yaml::YamlError| format!("unable to parse YAML: {}", e.json_text());
                let document = match parsed {
                    Ok(document) if document.is_null() => continue,
                    Ok(document) => document,
                    Err(e) => {
                        self.unreadable(&file.name, document.as_bytes(), false, told(e));
                        return Ok(());
                    }
                };
                let group = document["apiVersion"]
                    .as_str()
                    .unwrap_or_default()
                    .starts_with("apiextensions.k8s.io");
                let kind = document["kind"] == "CustomResourceDefinition";
                let when = |fine: bool, why: &str| if fine { Ok(()) } else { Err(why.to_owned()) };
                self.rule(
                    Severity::Error,
                    &file.name,
                    when(group, "apiVersion is not in 'apiextensions.k8s.io'"),
                );
                self.rule(
                    Severity::Error,
                    &file.name,
                    when(kind, "object kind is not 'CustomResourceDefinition'"),
                );
            }
        }
        Ok(())
    }
}
