//! What does not count when two Applications are compared. Main type: [`Ignored`]; main function:
//! [`specs_equivalent`].

use serde_json::Value as Json;
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSetResourceIgnoreDifferences;
use tiphys_api::constants::API_VERSION;
use tiphys_apimachinery::Object;
use tiphys_engine::diff;
use tiphys_engine::spec;
use tiphys_engine::types::{IgnoreRule, IgnoreStatus};

/// Fields of Applications that keep their live value.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    rules: Vec<IgnoreRule>,
    /// Why nothing can be compared: a jq expression cannot be parsed.
    pub(crate) fault: Option<String>,
}

impl Ignored {
    pub fn new(rules: &[ApplicationSetResourceIgnoreDifferences]) -> Self {
        let rules: Vec<IgnoreRule> = rules
            .iter()
            .map(|rule| IgnoreRule {
                group: "argoproj.io".into(),
                kind: "Application".into(),
                name: rule.name.clone(),
                namespace: String::new(),
                json_pointers: rule.json_pointers.clone(),
                jq_path_expressions: rule.jq_path_expressions.clone(),
                managed_fields_managers: Vec::new(),
            })
            .collect();
        let fault = diff::check_rules(&rules).err();
        Self { rules, fault }
    }

    /// The Application in normal form, without the ignored fields. Without rules only the spec is
    /// brought into normal form.
    ///
    /// # Errors
    /// The message of a jq expression that cannot be parsed, or of an Application that cannot be
    /// converted.
    pub fn strip(&self, app: &Application) -> Result<Application, String> {
        if let Some(fault) = &self.fault {
            return Err(failed(fault));
        }
        if self.rules.is_empty() {
            return Ok(app.clone());
        }
        // Two that cannot be converted are not equal for that.
        let json = serde_json::to_value(app).map_err(failed)?;
        let mut object = Object::from_value(json).map_err(failed)?;
        object.0.insert("apiVersion".into(), API_VERSION.into());
        object.0.insert("kind".into(), "Application".into());
        let options = diff::Options {
            ignore: &self.rules,
            ignore_status: IgnoreStatus::None,
            ignore_aggregated_roles: false,
            server_side_apply: false,
            customizations: None,
            spending: None,
        };
        diff::remove_ignored(&mut object, &options);
        let mut stripped: Application =
            serde_json::from_value(Json::Object(object.0)).map_err(failed)?;
        spec::normalize(&mut stripped.spec);
        stripped.api_version.clone_from(&app.api_version);
        stripped.kind.clone_from(&app.kind);
        Ok(stripped)
    }
}

fn failed(why: impl std::fmt::Display) -> String {
    format!("failed to apply ignore differences: {why}")
}

/// Whether two specs differ only in ignored fields and in form.
///
/// # Errors
/// The message of a jq expression that cannot be parsed.
pub fn specs_equivalent(
    live: &Application,
    desired: &Application,
    ignored: &Ignored,
) -> Result<bool, String> {
    let normal = |app: &Application| {
        let mut app = app.clone();
        spec::normalize(&mut app.spec);
        ignored.strip(&app).map(|app| app.spec)
    };
    Ok(*normal(live)? == *normal(desired)?)
}
