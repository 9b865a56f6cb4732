//! Rules for templates and their output.

use super::names;
use super::{Linter, Severity, deprecated};
use crate::FileKind;
use crate::helm::chart::{Chart, Decoder};
use crate::helm::engine::ParsedTemplates;
use crate::helm::{Capabilities, HelmError, RenderOptions, values};
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_gocompat::text::quote;
use tiphys_gocompat::yaml::{self, Duplicates};

const FOLDER: &str = "templates/";

/// Rendered files by name.
type Rendered = BTreeMap<String, String>;

/// The fields of a document that the rules check.
#[derive(Default)]
struct Head {
    api_version: String,
    kind: String,
    name: String,
}

impl Linter<'_> {
    pub(super) fn templates(&mut self) -> Result<(), HelmError> {
        match self.kind("templates")? {
            Some(FileKind::Dir) => {}
            None => {
                self.rule(
                    Severity::Warning,
                    FOLDER,
                    Err("directory does not exist".to_owned()),
                );
                return Ok(());
            }
            Some(_) => {
                self.rule(Severity::Error, FOLDER, Err("not a directory".to_owned()));
                return Ok(());
            }
        }
        let rendered = self.load().and_then(|chart| self.rendered(chart));
        match rendered {
            Ok(Some((chart, files))) => self.all(&chart, &files),
            // Errors in dependencies and values are reported by other rules.
            Ok(None) => {}
            Err(why) => drop(self.rule(Severity::Error, FOLDER, Err(why))),
        }
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        if let Some(version) = &self.options.kube_version {
            capabilities.kube_version = version.clone();
        }
        capabilities
    }

    fn rendered(&mut self, mut chart: Chart) -> Result<Option<(Chart, Rendered)>, String> {
        let mut options = RenderOptions::new(self.options.sources.clone());
        options.release.name = "test-release".to_owned();
        options
            .release
            .namespace
            .clone_from(&self.options.namespace);
        options.capabilities = self.capabilities();
        options.lint = true;
        if values::prepare(&mut chart, self.user, self.limits, &mut self.warnings).is_err() {
            return Ok(None);
        }
        let Ok((values, warnings)) = values::coalesce(&chart, self.user, self.limits) else {
            return Ok(None);
        };
        self.warnings.extend(warnings);
        // Helm's linter coalesces the values twice: defaults that null removed come back, and the
        // schemas see them.
        let (values, warnings) =
            values::coalesce(&chart, &values, self.limits).map_err(|e| e.to_string())?;
        self.warnings.extend(warnings);
        if !self.options.skip_schema_validation {
            let warnings =
                values::check_schemas(&chart, &values, self.limits).map_err(|e| e.to_string())?;
            // The rule for values.yaml has already reported some of them.
            let new: Vec<String> = warnings
                .into_iter()
                .filter(|warning| !self.warnings.contains(warning))
                .collect();
            self.warnings.extend(new);
        }
        let files =
            ParsedTemplates::default().render(&chart, &values, &options, &self.limits.templates);
        let (files, warnings) = files.map_err(|e| e.to_string())?;
        self.warnings.extend(warnings);
        Ok(Some((chart, files)))
    }

    fn all(&mut self, chart: &Chart, files: &Rendered) {
        for template in &chart.templates {
            let base = template.name.rsplit('/').next().unwrap_or_default();
            let extension = base.rfind('.').map_or("", |at| &base[at..]);
            let known = [".yaml", ".yml", ".tpl", ".txt"].contains(&extension);
            let wrong = format!(
                "file extension '{extension}' not valid. Valid extensions are .yaml, .yml, .tpl, or .txt"
            );
            self.rule(
                Severity::Error,
                &template.name,
                if known { Ok(()) } else { Err(wrong) },
            );
            if !matches!(extension.to_lowercase().as_str(), ".yaml" | ".yml") {
                continue;
            }
            let text = files
                .get(&format!("{}/{}", chart.name(), template.name))
                .map_or("", String::as_str);
            if !text.trim().is_empty() && !self.file(&template.name, text) {
                return;
            }
        }
    }

    /// Checks one rendered file; false if it cannot be read, which stops the rules.
    fn file(&mut self, name: &str, text: &str) -> bool {
        let first = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let indented = first.starts_with([' ', '\t']);
        let why = format!(
            "document starts with an illegal indent: {}, which may cause parsing problems",
            quote(first)
        );
        self.rule(
            Severity::Warning,
            name,
            if indented { Err(why) } else { Ok(()) },
        );
        for document in documents(text) {
            let document = match document {
                Ok(document) => document,
                Err(why) => {
                    self.rule(
                        Severity::Error,
                        name,
                        Err(format!("unable to parse YAML: {why}")),
                    );
                    return false;
                }
            };
            let head = match self.head(document) {
                Ok(Some(head)) => head,
                Ok(None) => continue,
                Err(why) => {
                    self.unreadable(
                        name,
                        document.as_bytes(),
                        true,
                        format!("unable to parse YAML: {why}"),
                    );
                    return false;
                }
            };
            self.rule(
                Severity::Warning,
                name,
                names::object(&head.kind, &head.name),
            );
            let kube = self.capabilities().kube_version;
            self.rule(
                Severity::Warning,
                name,
                deprecated::check(&head.api_version, &head.kind, &kube),
            );
            let selects = text.contains("matchLabels") || text.contains("matchExpressions");
            let workload = matches!(
                head.kind.as_str(),
                "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet"
            );
            let why = format!(
                "a {} must contain matchLabels or matchExpressions, and {} does not",
                head.kind,
                quote(&head.name)
            );
            self.rule(
                Severity::Error,
                name,
                if workload && !selects {
                    Err(why)
                } else {
                    Ok(())
                },
            );
            if head.kind == "List" {
                let kept = self.keeps_in_list(document);
                let why = "annotation 'helm.sh/resource-policy' within List objects are ignored"
                    .to_owned();
                self.rule(Severity::Error, name, if kept { Err(why) } else { Ok(()) });
            }
        }
        true
    }

    fn document(&self, text: &str) -> Result<Value, String> {
        yaml::parse_document(text, &self.limits.yaml, Duplicates::LastWins)
            .map_err(|e| e.json_text())
    }

    fn head(&self, text: &str) -> Result<Option<Head>, String> {
        let document = self.document(text)?;
        if document.is_null() {
            return Ok(None);
        }
        let mut head = Head::default();
        Decoder::run(
            "rules.k8sYamlStruct",
            &document,
            |d, key, value| match key {
                "apiversion" => d.text("apiVersion", value, &mut head.api_version),
                "kind" => d.text("Kind", value, &mut head.kind),
                "metadata" => {
                    d.inner(
                        "Metadata",
                        "rules.k8sYamlMetadata",
                        value,
                        |d, key, value| match key {
                            "name" => d.text("Name", value, &mut head.name),
                            "namespace" => d.text("Namespace", value, &mut String::new()),
                            _ => {}
                        },
                    );
                }
                _ => {}
            },
        )?;
        Ok(Some(head))
    }

    fn keeps_in_list(&self, text: &str) -> bool {
        let document = self.document(text).unwrap_or_default();
        let items = document["items"].as_array().into_iter().flatten();
        items.into_iter().any(|item| {
            item["metadata"]["annotations"]
                .get("helm.sh/resource-policy")
                .is_some()
        })
    }
}

/// The documents as Kubernetes' decoder splits them: nothing is trimmed, and a separator must be
/// alone on its line. A separator followed by other text is an error and ends the documents.
pub(super) fn documents(text: &str) -> Vec<Result<&str, String>> {
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("---").map(str::trim) {
            if !rest.is_empty() && !rest.starts_with('#') {
                found.push(Err(format!("invalid Yaml document separator: {rest}")));
                return found;
            }
            if at > start {
                found.push(Ok(&text[start..at]));
                start = at + line.len();
            }
        }
        at += line.len();
    }
    found.push(Ok(&text[start.min(at)..]));
    found
}
