//! What an Application is compared by.

use super::Records;
use crate::AppKey;
use tiphys_api::Application;
use tiphys_engine::{
    marks, spec,
    types::{CompareRules, NamespaceMetadata, ServerSideDiff},
};

impl Records {
    /// The rules of an Application's comparison, from its specification, its project and the
    /// settings.
    ///
    /// # Errors
    /// Its destination is unknown, or a setting cannot be read.
    pub fn compare_rules(&self, app: &Application) -> Result<CompareRules, String> {
        let settings = self.settings();
        let destination = spec::destination(&app.spec.destination, &settings.destinations)?;
        let key = AppKey::new(&app.metadata.namespace, &app.metadata.name);
        let tracking = settings.tracking(&key.instance(&self.namespace));
        let mut rules = CompareRules::new(
            tracking,
            &app.metadata.namespace,
            &app.metadata.name,
            &destination.server,
            &app.spec.destination.namespace,
        );
        rules.app_uid.clone_from(&app.metadata.uid);
        rules.dest_name.clone_from(&destination.name);
        if let Some(project) = self.project(spec::project_name(app)) {
            rules.project = spec::project_rules_for(&project, &destination);
        }
        rules.customizations = settings.customizations.clone();
        rules.ignore_differences = app
            .spec
            .ignore_differences
            .iter()
            .map(Into::into)
            .chain(rules.customizations.ignore_rules())
            .collect();
        rules.exclusions = settings.config.exclusions()?;
        rules.inclusions = settings.config.inclusions()?;
        rules.ignore_status = settings.config.ignore_status();
        rules.ignore_aggregated_roles = settings.config.ignore_aggregated_roles();
        rules.server_side_diff =
            server_side_diff(app, settings.param("controller.diff.server.side") == "true");
        let policy = app.spec.sync_policy.as_ref();
        rules.sync_options = policy.map(|p| p.sync_options.clone()).unwrap_or_default();
        rules.managed_namespace = policy
            .and_then(|p| p.managed_namespace_metadata.as_ref())
            .map(|wanted| {
                let synced = app
                    .status
                    .operation_state
                    .as_ref()
                    .and_then(|s| s.sync_result.as_ref())
                    .and_then(|r| r.managed_namespace_metadata.as_ref());
                NamespaceMetadata {
                    labels: wanted.labels.clone(),
                    annotations: wanted.annotations.clone(),
                    changed: synced != Some(wanted),
                }
            });
        Ok(rules)
    }
}

/// Whether to use Server-Side Diff: the Application's own option takes precedence over the
/// installation's.
fn server_side_diff(app: &Application, by_default: bool) -> Option<ServerSideDiff> {
    let options = app
        .metadata
        .annotations
        .get(marks::COMPARE_OPTIONS)
        .map_or("", String::as_str);
    let has = |option: &str| options.split(',').any(|o| o.trim() == option);
    let wanted = (by_default || has("ServerSideDiff=true")) && !has("ServerSideDiff=false");
    wanted.then(|| ServerSideDiff {
        include_webhooks: has("IncludeMutationWebhook=true"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c27_an_applications_own_word_on_server_side_differences_counts_first() {
        let asked = |by_default: bool, options: &str| {
            let mut app = Application::default();
            app.metadata
                .annotations
                .insert(marks::COMPARE_OPTIONS.to_owned(), options.to_owned());
            server_side_diff(&app, by_default).map(|how| how.include_webhooks)
        };
        for (by_default, options, expected) in [
            (false, "", None),
            (false, "ServerSideDiff=true", Some(false)),
            (
                false,
                "ServerSideDiff=true, IncludeMutationWebhook=true",
                Some(true),
            ),
            (false, "IncludeMutationWebhook=true", None),
            (true, "", Some(false)),
            (true, "IncludeMutationWebhook=true", Some(true)),
            (true, "IgnoreExtraneous,ServerSideDiff=false", None),
        ] {
            assert_eq!(
                asked(by_default, options),
                expected,
                "{by_default} {options}"
            );
        }
    }
}
