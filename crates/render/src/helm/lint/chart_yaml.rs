//! Rules for Chart.yaml.

use super::names::{is_email, is_request_url, is_url};
use super::{Linter, Severity};
use crate::FileKind;
use crate::helm::HelmError;
use crate::helm::chart::Metadata;
use serde_json::Value;
use tiphys_gocompat::semver::{Constraints, Version};
use tiphys_gocompat::text::quote;

const FILE: &str = "Chart.yaml";

impl Linter<'_> {
    pub(super) fn about(&mut self) -> Result<(), HelmError> {
        let folder = matches!(self.kind(FILE)?, Some(FileKind::Dir));
        let is_file = if folder {
            Err("should be a file, not a directory".to_owned())
        } else {
            Ok(())
        };
        self.rule(Severity::Error, FILE, is_file);
        let text = self.read(FILE)?.unwrap_or_default();
        let (about, document) = match Metadata::parse(&text, self.limits) {
            Ok(about) => about,
            Err(why) => {
                self.unreadable(FILE, &text, false, format!("unable to parse YAML\n\t{why}"));
                return Ok(());
            }
        };
        let strict = Metadata::check_strictly(&text, self.limits);
        self.rule(
            Severity::Warning,
            FILE,
            strict.map_err(|why| format!("failed to strictly parse chart metadata file\n\t{why}")),
        );
        for (severity, result) in [
            (Severity::Error, name(&about)),
            (Severity::Error, api_version(&about)),
            (Severity::Error, is_text(&document, "version")),
            (Severity::Error, version(&about)),
            (Severity::Error, is_text(&document, "appVersion")),
            (Severity::Error, maintainers(&about)),
            (Severity::Error, sources(&about)),
            (
                Severity::Info,
                when(!about.icon.is_empty(), || "icon is recommended".to_owned()),
            ),
            (
                Severity::Error,
                when(about.icon.is_empty() || is_request_url(&about.icon), || {
                    format!("invalid icon URL '{}'", about.icon)
                }),
            ),
            (
                Severity::Error,
                only_in_v2(
                    &about,
                    !about.kind.is_empty(),
                    "chart type is not valid in apiVersion",
                    "It is",
                ),
            ),
            (
                Severity::Error,
                only_in_v2(
                    &about,
                    about
                        .dependencies
                        .as_ref()
                        .is_some_and(|list| !list.is_empty()),
                    "dependencies are not valid in the Chart file with apiVersion",
                    "They are",
                ),
            ),
            (
                Severity::Warning,
                when(Version::parse_strict(&about.version).is_ok(), || {
                    format!("version '{}' is not a valid SemVerV2", about.version)
                }),
            ),
        ] {
            self.rule(severity, FILE, result);
        }
        Ok(())
    }
}

fn when(fine: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if fine { Ok(()) } else { Err(why()) }
}

fn name(about: &Metadata) -> Result<(), String> {
    when(!about.name.is_empty(), || "name is required".to_owned())?;
    let base = about
        .name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    when(base == about.name, || {
        format!("chart name {} is invalid", quote(&about.name))
    })
}

fn api_version(about: &Metadata) -> Result<(), String> {
    match about.api_version.as_str() {
        "v1" | "v2" => Ok(()),
        "" => Err("apiVersion is required. The value must be either \"v1\" or \"v2\"".to_owned()),
        other => Err(format!(
            "apiVersion '{other}' is not valid. The value must be either \"v1\" or \"v2\""
        )),
    }
}

fn is_text(document: &Value, key: &str) -> Result<(), String> {
    let kind = match document.get(key) {
        None | Some(Value::String(_)) => return Ok(()),
        Some(Value::Null) => "<nil>",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "float64",
        Some(Value::Array(_)) => "[]interface {}",
        Some(Value::Object(_)) => "map[string]interface {}",
    };
    Err(format!(
        "{key} should be of type string but it's of type {kind}"
    ))
}

fn version(about: &Metadata) -> Result<(), String> {
    when(!about.version.is_empty(), || {
        "version is required".to_owned()
    })?;
    let Ok(version) = Version::parse(&about.version) else {
        return Err(format!("version '{}' is not a valid SemVer", about.version));
    };
    let least = Constraints::parse(">0.0.0-0").map_err(|e| e.to_string())?;
    least
        .validate(&version)
        .map_err(|why| format!("version {}", why.first().map_or("", String::as_str)))
}

fn maintainers(about: &Metadata) -> Result<(), String> {
    when(!about.has_null_maintainer(), || {
        "a maintainer entry is empty".to_owned()
    })?;
    for person in &about.maintainers {
        when(!person.name.is_empty(), || {
            "each maintainer requires a name".to_owned()
        })?;
        let told = |what: &str, value: &str| {
            format!("invalid {what} '{value}' for maintainer '{}'", person.name)
        };
        when(person.email.is_empty() || is_email(&person.email), || {
            told("email", &person.email)
        })?;
        when(
            !person.email.is_empty() || person.url.is_empty() || is_url(&person.url),
            || told("url", &person.url),
        )?;
    }
    Ok(())
}

fn sources(about: &Metadata) -> Result<(), String> {
    let wrong = about.sources.iter().find(|source| !is_request_url(source));
    wrong.map_or(Ok(()), |source| {
        Err(format!("invalid source URL '{source}'"))
    })
}

fn only_in_v2(about: &Metadata, there: bool, what: &str, they: &str) -> Result<(), String> {
    when(!there || about.api_version == "v2", || {
        format!(
            "{what} '{}'. {they} valid in apiVersion 'v2'",
            about.api_version
        )
    })
}
