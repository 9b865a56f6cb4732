//! `app sync`.

use super::{
    AppRef,
    diff::{self, Batches, Judge, Target},
    get,
    local::Local,
    manifests::{Revisions, render},
    pairs, select,
    spec::{go_duration, normal_duration},
    wait::{self, Conditions, Wait},
};
use crate::{
    client::{Client, ConnectArgs, Failure, exit},
    commands::prompt,
    output::{self, summary, table},
};
use futures::{StreamExt as _, stream};
use std::path::PathBuf;
use tiphys_api::{
    Application,
    constants::SHOW_PLAN,
    operation::{
        Backoff, Info, RetryStrategy, SyncOperationResource, SyncStrategy, SyncStrategyApply,
        SyncStrategyHook,
    },
    rpc::application::{ApplicationQuery, ApplicationSyncRequest, SyncOptions},
};
use tiphys_apimachinery::Object;

/// How many of the selected Applications are synced concurrently.
const AT_ONCE: usize = 20;

#[derive(clap::Args)]
pub struct Sync {
    /// The applications
    #[arg(required_unless_present_any = ["selector", "project"])]
    apps: Vec<String>,
    /// Preview apply without affecting cluster
    #[arg(long)]
    dry_run: bool,
    /// Dry run that says what a sync would do in which order, what waits for what, and what is
    /// blocked and why
    #[arg(long)]
    plan: bool,
    /// Allow deleting unexpected resources
    #[arg(long)]
    prune: bool,
    /// Sync to a specific revision. Preserves parameter overrides
    #[arg(long)]
    revision: Option<String>,
    /// Sync only specific resources as GROUP:KIND:NAME or !GROUP:KIND:NAME. Fields may be blank and
    /// '*' can be used (can be repeated)
    #[arg(long)]
    resource: Vec<String>,
    /// Sync apps that match this label. Supports '=', '==', '!=', in, notin, exists & not exists
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Sync only specific resources with a label (can be repeated)
    #[arg(long)]
    label: Vec<String>,
    /// Sync apps that belong to the specified projects (can be repeated)
    #[arg(long)]
    project: Vec<String>,
    /// Time out after this many seconds; 0 waits for ever
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    #[command(flatten)]
    how: How,
    /// Do not wait for application to sync before continuing
    #[arg(long = "async")]
    async_: bool,
    /// Path to a local directory with the manifests to sync. When this flag is present no git
    /// queries will be made
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// Path to the repository root. Used together with --local allows setting the repository root
    #[arg(long, value_name = "DIR", default_value = "/")]
    local_repo_root: PathBuf,
    /// Set ignore normalizer JQ execution timeout (no effect: the server's setting counts)
    #[arg(long, default_value = "1s")]
    ignore_normalizer_jq_execution_timeout: String,
    /// A list of key-value pairs during sync process. These infos will be persisted in app (can be
    /// repeated)
    #[arg(long)]
    info: Vec<String>,
    /// Assume yes as answer for all user queries or prompts
    #[arg(long = "assumeYes")]
    assume_yes: bool,
    /// Preview difference against the target and live state before syncing app and wait for user
    /// confirmation
    #[arg(long)]
    preview_changes: bool,
    #[command(flatten)]
    batches: Batches,
    /// Output format. One of: json|yaml|wide|tree|tree=detailed
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    /// Only sync an application in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    #[command(flatten)]
    revisions: Revisions,
}

/// How the sync is done.
#[derive(clap::Args, Clone, Default)]
struct How {
    /// Sync strategy (one of: apply|hook)
    #[arg(long)]
    strategy: Option<String>,
    /// Use a force apply
    #[arg(long)]
    force: bool,
    /// Use a kubectl create/replace instead apply
    #[arg(long)]
    replace: bool,
    /// Use server-side apply while syncing the application
    #[arg(long)]
    server_side: bool,
    /// Sync only out-of-sync resources
    #[arg(long)]
    apply_out_of_sync_only: bool,
    /// Max number of allowed sync retries
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    retry_limit: i64,
    /// Use the latest revision on retry instead of the initial one
    #[arg(long)]
    retry_refresh: bool,
    /// Retry backoff base duration. Input needs to be a duration (e.g. 2m, 1h)
    #[arg(long, default_value = "5s", value_parser = go_duration)]
    retry_backoff_duration: String,
    /// Max retry backoff duration. Input needs to be a duration (e.g. 2m, 1h)
    #[arg(long, default_value = "3m0s", value_parser = go_duration)]
    retry_backoff_max_duration: String,
    /// Factor multiplies the base duration after each failed retry
    #[arg(long, default_value_t = 2)]
    retry_backoff_factor: i64,
}

impl How {
    fn strategy(&self) -> Result<SyncStrategy, Failure> {
        let apply = SyncStrategyApply { force: self.force };
        match self.strategy.as_deref() {
            Some("apply") => Ok(SyncStrategy {
                apply: Some(apply),
                hook: None,
            }),
            None | Some("" | "hook") => Ok(SyncStrategy {
                apply: None,
                hook: Some(SyncStrategyHook {
                    sync_strategy_apply: apply,
                }),
            }),
            Some(other) => Err(Failure::fatal(format!("Unknown sync strategy: '{other}'"))),
        }
    }

    fn options(&self) -> Option<SyncOptions> {
        let all = [
            (self.replace, "Replace=true"),
            (self.server_side, "ServerSideApply=true"),
            (self.apply_out_of_sync_only, "ApplyOutOfSyncOnly=true"),
        ];
        let items: Vec<String> = all
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, option)| option.to_owned())
            .collect();
        (!items.is_empty()).then_some(SyncOptions { items })
    }

    fn retry(&self) -> Result<Option<RetryStrategy>, Failure> {
        if self.retry_limit == 0 {
            return Ok(None);
        }
        let backoff = Backoff {
            duration: normal_duration("--retry-backoff-duration", &self.retry_backoff_duration)?,
            max_duration: normal_duration(
                "--retry-backoff-max-duration",
                &self.retry_backoff_max_duration,
            )?,
            factor: Some(self.retry_backoff_factor),
        };
        Ok(Some(RetryStrategy {
            limit: self.retry_limit,
            backoff: Some(backoff),
            refresh: self.retry_refresh,
        }))
    }
}

impl Sync {
    /// Flags that exclude each other; checked before any request.
    fn check(&self) -> Result<(), Failure> {
        get::check_format(&self.output)?;
        self.how.strategy()?;
        self.how.retry()?;
        self.revisions
            .check()
            .map_err(|e| e.with_code(exit::FAILED))?;
        if self.apps.len() > 1 && self.selector.as_deref().is_some_and(|s| !s.is_empty()) {
            return Err(Failure::fatal(
                "Cannot use selector option when application name(s) passed as argument(s)",
            ));
        }
        let r = &self.revisions;
        let several =
            !r.revisions.is_empty() || !r.source_positions.is_empty() || !r.source_names.is_empty();
        if several && self.apps.len() != 1 {
            let message = "Cannot use --revisions and --source-positions options when 0 or more than 1 application names are passed as argument(s)";
            return Err(Failure::fatal(message));
        }
        Ok(())
    }

    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        self.check()?;
        self.batches.check()?;
        let client = super::super::connect(args).await?;
        if let [name] = self.apps.as_slice() {
            let app = AppRef::new(name, self.app_namespace.as_deref());
            self.revisions.resolve(&client, &app).await?;
        }
        let names = self.names(&client).await?;
        if names.len() > 1
            && names.len() > self.apps.len()
            && !self.preview_changes
            && self.output == "wide"
        {
            return self.sync_many(&client, names).await;
        }
        for name in names {
            let app = AppRef::new(&name, self.app_namespace.as_deref());
            let waited = self.sync(&client, &app, &self.output).await?;
            self.judge(waited.as_ref())?;
        }
        Ok(())
    }

    /// Syncs the Applications found by selector or project, several concurrently, each to its end
    /// whatever happens to the others, and prints a summary.
    async fn sync_many(&self, client: &Client, names: Vec<String>) -> Result<(), Failure> {
        let outcomes: Vec<Outcome> = stream::iter(names)
            .map(|name| async {
                let app = AppRef::new(&name, self.app_namespace.as_deref());
                let synced = self.sync(client, &app, wait::SILENT).await;
                let judged = synced
                    .as_ref()
                    .map_or_else(|e| Err(e.clone()), |waited| self.judge(waited.as_ref()));
                Outcome {
                    name,
                    waited: synced.ok().flatten(),
                    failure: judged.err(),
                }
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let failed = outcomes.iter().filter(|o| o.failure.is_some()).count();
        output::print(&table::table(
            &["NAME", "SYNC", "HEALTH", "PHASE", "MESSAGE"],
            outcomes.iter().map(Outcome::row),
        ));
        output::print(&format!(
            "\n{} applications: {} succeeded, {failed} failed\n",
            outcomes.len(),
            outcomes.len() - failed
        ));
        if failed == 0 {
            Ok(())
        } else {
            Err(Failure::fatal(format!(
                "{failed} of {} applications failed to sync",
                outcomes.len()
            )))
        }
    }

    /// Whether a sync that was waited for succeeded.
    fn judge(&self, waited: Option<&wait::Waited>) -> Result<(), Failure> {
        let whole = self.resource.is_empty() && self.label.is_empty();
        waited
            .filter(|_| !self.is_dry_run())
            .map_or(Ok(()), |waited| verdict(waited, whole))
    }

    async fn names(&self, client: &Client) -> Result<Vec<String>, Failure> {
        let selector = self.selector.clone().unwrap_or_default();
        let mut names = self.apps.clone();
        if selector.is_empty() && self.project.is_empty() {
            return Ok(names);
        }
        let query = ApplicationQuery {
            selector: Some(selector.clone()),
            app_namespace: Some(self.app_namespace.clone().unwrap_or_default()),
            projects: self.project.clone(),
            ..Default::default()
        };
        let found = super::list(client, query).await?;
        if found.is_empty() {
            let mut message = "No matching apps found for filter:".to_owned();
            if !selector.is_empty() {
                message += &format!(" selector {selector}");
            }
            if !self.project.is_empty() {
                message += &format!(" projects [{}]", self.project.join(" "));
            }
            return Err(Failure::fatal(message));
        }
        names.extend(found.iter().map(summary::qualified_name));
        Ok(names)
    }

    /// The result; None without waiting.
    async fn sync(
        &self,
        client: &Client,
        app_ref: &AppRef,
        output: &str,
    ) -> Result<Option<wait::Waited>, Failure> {
        let flags = self.resource_flags(client, app_ref).await?;
        let selected = select::parse(&flags)?;
        let app = super::get(client, app_ref, None).await?;
        let revision = self.revision.clone().unwrap_or_default();
        if summary::has_many_sources(&app) && !revision.is_empty() {
            let message = "argocd cli does not work on multi-source app with --revision flag. Use --revisions and --source-positions instead.";
            return Err(Failure::fatal(message));
        }
        if summary::has_many_sources(&app) && self.local.is_some() {
            let message = "argocd cli does not work on multi-source app with --local flag";
            return Err(Failure::fatal(message));
        }
        let resources = select::of(&app, &selected);
        if !flags.is_empty() && resources.is_empty() {
            return Err(Failure::fatal(format!(
                "No matching app resources found for resource filter: {}",
                flags.join(", ")
            )));
        }
        let manifests = self.manifests(client, &app).await?;
        if self.preview_changes && !self.is_confirmed(client, &app, app_ref).await? {
            return Ok(None);
        }
        let request = ApplicationSyncRequest {
            manifests,
            ..self.request(app_ref, revision, resources)?
        };
        let _: Application = client
            .unary("/application.ApplicationService/Sync", request)
            .await?;
        if self.async_ {
            return Ok(None);
        }
        let conditions = Conditions {
            operation: true,
            ..Default::default()
        };
        let asked = Wait {
            of_operation: true,
            app: app_ref,
            timeout: self.timeout,
            conditions,
            selected: &selected,
            output,
        };
        Ok(Some(wait::wait(client, &asked).await?))
    }

    /// The manifests of the local folder, if there is one.
    async fn manifests(&self, client: &Client, app: &Application) -> Result<Vec<String>, Failure> {
        let Some(local) = self.local() else {
            return Ok(Vec::new());
        };
        let sync_policy = app.spec.sync_policy.as_ref();
        let automated = sync_policy.and_then(|policy| policy.automated.as_ref());
        if automated.is_some_and(|a| a.enabled != Some(false)) && !self.is_dry_run() {
            return Err(Failure::fatal(
                "Cannot use local sync when Automatic Sync Policy is enabled except with --dry-run",
            ));
        }
        let tracking = diff::tracking(app, &super::settings(client).await?);
        let objects = local.all(client, app, &tracking).await?;
        let text = |object: Object| object.into_value().to_string();
        Ok(objects.into_iter().map(text).collect())
    }

    fn local(&self) -> Option<Local<'_>> {
        self.local.as_deref().map(|folder| Local {
            folder,
            root: &self.local_repo_root,
        })
    }

    /// The `--resource` flags, and one for each resource with one of the labels.
    async fn resource_flags(&self, client: &Client, app: &AppRef) -> Result<Vec<String>, Failure> {
        let mut flags = self.resource.clone();
        let labels = pairs(&self.label)?;
        if labels.is_empty() {
            return Ok(flags);
        }
        let objects = render(
            client,
            app,
            self.revision.as_deref().unwrap_or_default(),
            &self.revisions,
            false,
        )
        .await;
        let objects = objects.map_err(|e| e.with_code(exit::FAILED))?;
        output::print(&format!("The name of the app is  {}\n", app.name));
        for object in objects
            .into_iter()
            .filter_map(|o| Object::from_value(o).ok())
        {
            if labels
                .iter()
                .any(|(key, value)| object.label(key) == Some(value))
            {
                flags.push(format!(
                    "{}:{}:{}",
                    object.group(),
                    object.kind(),
                    object.name()
                ));
            }
        }
        if flags.is_empty() {
            return Err(Failure::fatal(format!(
                "No matching resources found for labels: [{}]",
                self.label.join(" ")
            )));
        }
        Ok(flags)
    }

    /// Shows what would change. False if nothing would, or if the user declines.
    async fn is_confirmed(
        &self,
        client: &Client,
        app: &Application,
        app_ref: &AppRef,
    ) -> Result<bool, Failure> {
        let name = app_ref.qualified();
        output::print(&format!(
            "====== Previewing differences between live and desired state of application {name} ======\n"
        ));
        let revision = self.revision.as_deref().unwrap_or_default();
        let target = match self.local() {
            Some(local) => Target::Local(local),
            None => Target::of(Some(revision), &self.revisions),
        };
        if !diff::print(
            client,
            app,
            app_ref,
            &target,
            Judge::of(app, self.batches),
            false,
        )
        .await?
        {
            output::print("====== No Differences found ======\n");
            return Ok(false);
        }
        let question = format!(
            "Please review changes to application {name} shown above. Do you want to continue the sync process? (y/n): "
        );
        if self.assume_yes || prompt::proceed(&question)? {
            Ok(true)
        } else {
            Err(Failure::exit(exit::DONE))
        }
    }

    fn is_dry_run(&self) -> bool {
        self.dry_run || self.plan
    }

    fn request(
        &self,
        app: &AppRef,
        revision: String,
        resources: Vec<SyncOperationResource>,
    ) -> Result<ApplicationSyncRequest, Failure> {
        Ok(ApplicationSyncRequest {
            name: app.name.clone(),
            app_namespace: app.namespace(),
            revision: Some(revision),
            dry_run: Some(self.is_dry_run()),
            prune: Some(self.prune),
            strategy: Some(self.how.strategy()?),
            resources,
            infos: pairs(&self.info)?
                .into_iter()
                .chain(self.plan.then(|| (SHOW_PLAN.to_owned(), "true".to_owned())))
                .map(|(name, value)| Info { name, value })
                .collect(),
            retry_strategy: self.how.retry()?,
            sync_options: self.how.options(),
            revisions: self.revisions.revisions.clone(),
            source_positions: self.revisions.source_positions.clone(),
            ..Default::default()
        })
    }
}

/// The result of one of several syncs.
struct Outcome {
    name: String,
    waited: Option<wait::Waited>,
    failure: Option<Failure>,
}

impl Outcome {
    fn row(&self) -> Vec<String> {
        let app = self.waited.as_ref().and_then(|w| w.app.as_ref());
        let operation = self.waited.as_ref().and_then(|w| w.operation.as_ref());
        let (sync, health) = app.map_or(("", ""), |a| {
            (
                a.status.sync.status.as_str(),
                a.status.health.status.as_str(),
            )
        });
        let phase = operation.map_or("", |o| o.phase.as_str());
        let message = match (&self.failure, operation) {
            (Some(failure), Some(o)) if o.phase != "Succeeded" && !o.message.is_empty() => {
                format!("{}: {}", failure.message, o.message)
            }
            (Some(failure), _) => failure.message.clone(),
            (None, Some(o)) => o.message.clone(),
            (None, None) => "started".to_owned(),
        };
        [
            self.name.as_str(),
            sync,
            health,
            phase,
            message.lines().next().unwrap_or_default(),
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

/// Whether the sync succeeded.
fn verdict(waited: &wait::Waited, whole: bool) -> Result<(), Failure> {
    let Some(operation) = &waited.operation else {
        return Ok(());
    };
    if operation.phase != "Succeeded" {
        return Err(Failure::fatal(format!(
            "Operation has completed with phase: {}",
            operation.phase
        )));
    }
    let is_synced = waited
        .app
        .as_ref()
        .is_some_and(|a| a.status.sync.status == "Synced");
    let results = operation.sync_result.iter().flat_map(|r| &r.resources);
    let kept = results.filter(|r| r.status == "PruneSkipped").count();
    if whole && !is_synced && kept > 0 {
        return Err(Failure::fatal(format!("{kept} resources require pruning")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        sync: Sync,
    }

    fn parse(words: &[&str]) -> Sync {
        Program::parse_from([&["sync"], words].concat()).sync
    }

    #[test]
    fn the_request_has_what_the_flags_say() {
        let sync = parse(&[
            "a",
            "--prune",
            "--revision",
            "main",
            "--info",
            "why=test",
            "--replace",
            "--server-side",
            "--retry-limit",
            "2",
            "--strategy",
            "apply",
            "--force",
        ]);
        sync.check().expect("they go together");
        let r = sync
            .request(&AppRef::new("ns/a", None), "main".into(), Vec::new())
            .expect("valid");
        assert_eq!(
            (
                r.name.as_str(),
                r.app_namespace.as_deref(),
                r.prune,
                r.dry_run
            ),
            ("a", Some("ns"), Some(true), Some(false))
        );
        assert_eq!(
            r.sync_options.map(|o| o.items),
            Some(vec![
                "Replace=true".to_owned(),
                "ServerSideApply=true".into()
            ])
        );
        assert_eq!(
            r.strategy.and_then(|s| s.apply).map(|a| a.force),
            Some(true)
        );
        assert_eq!(
            r.retry_strategy
                .and_then(|r| r.backoff)
                .map(|b| b.max_duration),
            Some("3m0s".to_owned())
        );
        assert_eq!(
            r.infos,
            [Info {
                name: "why".into(),
                value: "test".into()
            }]
        );
        let planned = parse(&["a", "--plan"])
            .request(&AppRef::new("a", None), String::new(), Vec::new())
            .expect("valid");
        assert_eq!(
            (planned.dry_run, planned.infos),
            (
                Some(true),
                vec![Info {
                    name: SHOW_PLAN.into(),
                    value: "true".into()
                }]
            )
        );
        let plain = parse(&["a"])
            .request(&AppRef::new("a", None), String::new(), Vec::new())
            .expect("valid");
        assert!(
            plain.sync_options.is_none()
                && plain.retry_strategy.is_none()
                && plain.strategy.is_some_and(|s| s.hook.is_some())
        );
    }

    #[test]
    fn what_does_not_go_together() {
        for words in [
            &["a", "b", "-l", "x=y"][..],
            &["a", "b", "--revisions", "r", "--source-positions", "1"],
            &["a", "--revisions", "r", "--source-positions", "1,2"],
            &["a", "--strategy", "x"],
            &["a", "-o", "xml"],
        ] {
            assert!(parse(words).check().is_err(), "{words:?}");
        }
        let soon = ["sync", "a", "--retry-backoff-duration", "soon"];
        assert!(Program::try_parse_from(soon).is_err(), "no duration");
    }

    #[test]
    fn verdicts() {
        let waited = |phase: &str, sync: &str| {
            let value = json!({"status": {"sync": {"status": sync}, "operationState": {"phase": phase, "syncResult": {"resources": [
                {"status": "PruneSkipped"}, {"status": "Synced"}]}}}});
            let app: Application = serde_json::from_value(value).expect("an Application");
            wait::Waited {
                operation: app.status.operation_state.as_deref().cloned(),
                app: Some(app),
            }
        };
        let message =
            |w: &wait::Waited, whole| verdict(w, whole).err().map(|e| (e.code, e.message));
        assert_eq!(
            message(&waited("Failed", "Synced"), true),
            Some((1, "Operation has completed with phase: Failed".into()))
        );
        assert_eq!(
            message(&waited("Succeeded", "OutOfSync"), true),
            Some((1, "1 resources require pruning".into()))
        );
        assert_eq!(message(&waited("Succeeded", "OutOfSync"), false), None);
        assert_eq!(message(&waited("Succeeded", "Synced"), true), None);
    }
}
