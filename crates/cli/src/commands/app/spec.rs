//! The flags that describe an Application, which `app create` and `app set` share. Main type:
//! [`AppOptions`].

use super::{
    hydrator::HydratorOptions,
    source::{SourceOptions, add_parameter},
};
use crate::client::Failure;
use tiphys_api::{
    Application,
    application::{ApplicationSpec, SyncPolicy, SyncPolicyAutomated},
    operation::{Backoff, RetryStrategy},
};
use tiphys_gocompat::duration::{self, DurationError};

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct AppOptions {
    #[command(flatten)]
    source: SourceOptions,
    /// (no effect: the environment of an application of ksonnet)
    #[arg(long, hide = true)]
    env: Option<String>,
    /// Name of the source from the list of sources of the app
    #[arg(long)]
    pub source_name: Option<String>,
    /// Application project name
    #[arg(long)]
    project: Option<String>,
    /// K8s cluster URL (e.g. https://kubernetes.default.svc)
    #[arg(long)]
    dest_server: Option<String>,
    /// K8s cluster Name (e.g. minikube)
    #[arg(long)]
    dest_name: Option<String>,
    /// K8s target namespace
    #[arg(long)]
    dest_namespace: Option<String>,
    /// Set a parameter override (e.g. -p image=example/guestbook:latest)
    #[arg(long, short = 'p')]
    parameter: Vec<String>,
    /// How many items to keep in revision history
    #[arg(long)]
    revision_history_limit: Option<i64>,
    /// Set the sync policy (one of: manual (aliases of manual: none), automated (aliases of
    /// automated: auto, automatic))
    #[arg(long)]
    sync_policy: Option<String>,
    /// Add or remove a sync option, e.g add `Prune=false`. Remove using `!` prefix, e.g.
    /// `!Prune=false`
    #[arg(long)]
    sync_option: Vec<String>,
    /// Set automatic pruning for automated sync policy
    #[arg(long)]
    auto_prune: Option<bool>,
    /// Set self healing for automated sync policy
    #[arg(long)]
    self_heal: Option<bool>,
    /// Set allow zero live resources for automated sync policy
    #[arg(long)]
    allow_empty: Option<bool>,
    /// Max number of allowed sync retries
    #[arg(long, allow_negative_numbers = true)]
    sync_retry_limit: Option<i64>,
    /// Sync retry backoff base duration. Input needs to be a duration (e.g. 2m, 1h) [default: 5s]
    #[arg(long, value_parser = go_duration)]
    sync_retry_backoff_duration: Option<String>,
    /// Max sync retry backoff duration. Input needs to be a duration (e.g. 2m, 1h) [default: 3m0s]
    #[arg(long, value_parser = go_duration)]
    sync_retry_backoff_max_duration: Option<String>,
    /// Factor multiplies the base duration after each failed sync retry [default: 2]
    #[arg(long)]
    sync_retry_backoff_factor: Option<i64>,
    /// Use the latest revision on retry instead of the initial one
    #[arg(long)]
    sync_retry_refresh: Option<bool>,
    /// Validation of repo and cluster [default: true]
    #[arg(long)]
    pub validate: Option<bool>,
    #[command(flatten)]
    hydrator: HydratorOptions,
}

/// The value of a flag that is a Go duration.
pub fn go_duration(text: &str) -> Result<String, DurationError> {
    duration::parse(text).map(|_| text.to_owned())
}

/// A Go duration, in Go's form.
pub fn normal_duration(flag: &str, text: &str) -> Result<String, Failure> {
    let nanos = duration::parse(text)
        .map_err(|e| Failure::fatal(format!("invalid argument {text:?} for {flag:?} flag: {e}")))?;
    Ok(duration::to_string(nanos))
}

impl AppOptions {
    /// Whether no flag would change an Application.
    pub fn is_empty(&self) -> bool {
        *self
            == Self {
                source_name: self.source_name.clone(),
                ..Default::default()
            }
    }

    /// Fetches what flags name by URL; to be called before the options are applied.
    pub async fn download(&mut self) -> Result<(), Failure> {
        self.source.download().await
    }

    /// Changes the source at `position` of an Application with several, or its only one, and the
    /// rest of the spec.
    pub fn apply(&self, app: &mut Application, position: Option<usize>) -> Result<(), Failure> {
        if self.hydrator == HydratorOptions::default() {
            self.apply_source(app, position)?;
        } else {
            let hydrator = app.spec.source_hydrator.get_or_insert_default();
            self.hydrator.apply(hydrator);
        }
        self.apply_destination(&mut app.spec);
        self.apply_policy(&mut app.spec)
    }

    /// Changes only the source.
    pub fn apply_source(
        &self,
        app: &mut Application,
        position: Option<usize>,
    ) -> Result<(), Failure> {
        let several = app.spec.source_hydrator.is_none() && !app.spec.sources.is_empty();
        let source = match position.filter(|_| several) {
            Some(at) => app.spec.sources.get_mut(at),
            None if several => app.spec.sources.first_mut(),
            None => None,
        };
        let source = match source {
            Some(source) => source,
            None => app.spec.source.get_or_insert_default(),
        };
        self.source.apply(source)?;
        if let Some(name) = &self.source_name {
            source.name.clone_from(name);
        }
        if !self.parameter.is_empty() {
            let is_helm = source.helm.is_some()
                || (source.kustomize.is_none()
                    && source.directory.is_none()
                    && source.plugin.is_none());
            let known = app.status.source_type.as_str();
            if !is_helm || !(known.is_empty() || known == "Helm" || source.helm.is_some()) {
                return Err(Failure::fatal(
                    "Parameters can only be set against Helm applications",
                ));
            }
            for text in &self.parameter {
                add_parameter(source.helm.get_or_insert_default(), text, false)?;
            }
        }
        Ok(())
    }

    fn apply_destination(&self, spec: &mut ApplicationSpec) {
        let fields = [
            (&mut spec.destination.name, &self.dest_name),
            (&mut spec.destination.server, &self.dest_server),
            (&mut spec.destination.namespace, &self.dest_namespace),
            (&mut spec.project, &self.project),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        if let Some(limit) = self.revision_history_limit {
            spec.revision_history_limit = Some(limit);
        }
    }

    fn apply_policy(&self, spec: &mut ApplicationSpec) -> Result<(), Failure> {
        let had_policy = spec.sync_policy.is_some();
        let mut policy = spec.sync_policy.take().unwrap_or_default();
        match self.sync_policy.as_deref() {
            None => {}
            Some("none" | "manual") => policy.automated = None,
            Some("automated" | "automatic" | "auto") => {
                policy.automated = Some(SyncPolicyAutomated::default())
            }
            Some(other) => return Err(Failure::fatal(format!("Invalid sync-policy: {other}"))),
        }
        for option in &self.sync_option {
            match option.strip_prefix('!') {
                Some(option) => policy.sync_options.retain(|o| o != option),
                None if policy.sync_options.contains(option) => {}
                None => policy.sync_options.push(option.clone()),
            }
        }
        self.apply_retry(&mut policy)?;
        if self
            .auto_prune
            .or(self.self_heal)
            .or(self.allow_empty)
            .is_some()
        {
            // These have an effect only with an automated policy.
            let automated = policy.automated.get_or_insert_with(|| SyncPolicyAutomated {
                enabled: Some(false),
                ..Default::default()
            });
            automated.prune = self.auto_prune.or(automated.prune);
            automated.self_heal = self.self_heal.or(automated.self_heal);
            automated.allow_empty = self.allow_empty.or(automated.allow_empty);
        }
        let is_empty = policy == SyncPolicy::default();
        let was_changed = self.sync_policy.is_some() || !self.sync_option.is_empty();
        spec.sync_policy = Some(policy).filter(|_| !is_empty || (had_policy && !was_changed));
        Ok(())
    }

    fn apply_retry(&self, policy: &mut SyncPolicy) -> Result<(), Failure> {
        match self.sync_retry_limit {
            None => {}
            Some(0) => policy.retry = None,
            Some(limit) if limit > 0 => {
                let text = |flag, given: &Option<String>, default: &str| {
                    normal_duration(flag, given.as_deref().unwrap_or(default))
                };
                policy.retry = Some(RetryStrategy {
                    limit,
                    backoff: Some(Backoff {
                        duration: text(
                            "--sync-retry-backoff-duration",
                            &self.sync_retry_backoff_duration,
                            "5s",
                        )?,
                        max_duration: text(
                            "--sync-retry-backoff-max-duration",
                            &self.sync_retry_backoff_max_duration,
                            "3m",
                        )?,
                        factor: Some(self.sync_retry_backoff_factor.unwrap_or(2)),
                    }),
                    refresh: self.sync_retry_refresh.unwrap_or(false),
                });
            }
            Some(limit) => {
                return Err(Failure::fatal(format!(
                    "Invalid sync-retry-limit [{limit}]"
                )));
            }
        }
        if let Some(refresh) = self.sync_retry_refresh {
            policy.retry.get_or_insert_default().refresh = refresh;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(change: impl FnOnce(&mut AppOptions)) -> AppOptions {
        let mut options = AppOptions::default();
        change(&mut options);
        options
    }

    #[test]
    fn policies() {
        let mut app = Application::default();
        let apply = |app: &mut Application, o: &AppOptions| o.apply(app, None).expect("valid");
        apply(&mut app, &options(|o| o.auto_prune = Some(true)));
        let automated = app
            .spec
            .sync_policy
            .clone()
            .and_then(|p| p.automated)
            .expect("it was asked for");
        assert_eq!(
            (automated.prune, automated.enabled),
            (Some(true), Some(false)),
            "pruning alone automates nothing"
        );

        apply(
            &mut app,
            &options(|o| (o.sync_policy, o.self_heal) = (Some("auto".into()), Some(true))),
        );
        let automated = app
            .spec
            .sync_policy
            .clone()
            .and_then(|p| p.automated)
            .expect("it was asked for");
        assert_eq!(
            (automated.prune, automated.self_heal, automated.enabled),
            (None, Some(true), None)
        );

        apply(
            &mut app,
            &options(|o| {
                o.sync_option = vec![
                    "Prune=false".into(),
                    "CreateNamespace=true".into(),
                    "!Prune=false".into(),
                ]
            }),
        );
        assert_eq!(
            app.spec
                .sync_policy
                .as_ref()
                .map(|p| p.sync_options.clone()),
            Some(vec!["CreateNamespace=true".to_owned()])
        );

        apply(
            &mut app,
            &options(|o| {
                (o.sync_policy, o.sync_option) =
                    (Some("none".into()), vec!["!CreateNamespace=true".into()])
            }),
        );
        assert_eq!(app.spec.sync_policy, None);
        let message = options(|o| o.sync_policy = Some("x".into()))
            .apply(&mut app, None)
            .err()
            .map(|e| e.message);
        assert_eq!(message.as_deref(), Some("Invalid sync-policy: x"));
    }

    #[test]
    fn retries() {
        let mut app = Application::default();
        let o = options(|o| {
            (o.sync_retry_limit, o.sync_retry_backoff_duration) = (Some(3), Some("90s".into()))
        });
        o.apply(&mut app, None).expect("valid");
        let retry = app
            .spec
            .sync_policy
            .clone()
            .and_then(|p| p.retry)
            .expect("it was asked for");
        let backoff = retry.backoff.expect("there are defaults");
        assert_eq!(
            (
                retry.limit,
                backoff.duration.as_str(),
                backoff.max_duration.as_str(),
                backoff.factor
            ),
            (3, "1m30s", "3m0s", Some(2))
        );
    }

    #[test]
    fn parameters_are_helms() {
        let o = options(|o| o.parameter = vec!["a=b".into()]);
        let mut app = Application::default();
        o.apply(&mut app, None).expect("nothing says otherwise");
        assert!(
            app.spec
                .source
                .clone()
                .and_then(|s| s.helm)
                .is_some_and(|h| h.parameters.len() == 1)
        );
        app.spec.source = None;
        app.status.source_type = "Directory".into();
        assert!(o.apply(&mut app, None).is_err());
    }

    #[test]
    fn a_name_of_a_source_changes_nothing() {
        assert!(options(|o| o.source_name = Some("a".into())).is_empty());
        assert!(!options(|o| o.project = Some("a".into())).is_empty());
    }

    #[test]
    fn a_new_source_gets_its_name() {
        let mut app = Application::default();
        let o = options(|o| o.source_name = Some("web".into()));
        o.apply(&mut app, None).expect("nothing says otherwise");
        let name = app.spec.source.as_ref().map(|source| source.name.clone());
        assert_eq!(name, Some("web".to_owned()));
    }
}
