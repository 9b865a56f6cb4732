//! `app wait`, and the waiting in `app sync`. Main function: [`wait`], which follows an Application
//! until it reaches the requested state.

use super::{
    AppRef, get,
    select::{self, Selected},
    states::{ResourceState, distinct, states, waiting_header},
    watching,
};
use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{self, summary, table, time},
};
use futures::StreamExt as _;
use jiff::Timestamp;
use std::{collections::BTreeMap, time::Duration};
use tiphys_api::{Application, operation::OperationState, rpc::application::ApplicationQuery};
use tiphys_engine::spec;
use tokio::time::{Instant, sleep, timeout_at};

#[derive(clap::Args)]
pub struct WaitCommand {
    /// The applications
    #[arg(required_unless_present = "selector")]
    apps: Vec<String>,
    #[command(flatten)]
    conditions: Conditions,
    /// Wait for apps by label. Supports '=', '==', '!=', in, notin, exists & not exists
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Wait only for specific resources as GROUP:KIND:NAME or !GROUP:KIND:NAME. Fields may be blank
    /// and '*' can be used (can be repeated)
    #[arg(long)]
    resource: Vec<String>,
    /// Time out after this many seconds; 0 waits for ever
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    /// Only wait for an application in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Output format. One of: json|yaml|wide|tree|tree=detailed
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
}

/// What to wait for.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Wait for sync
    #[arg(long)]
    pub sync: bool,
    /// Wait for health
    #[arg(long)]
    pub health: bool,
    /// Wait for pending operations
    #[arg(long)]
    pub operation: bool,
    /// Wait for suspended
    #[arg(long)]
    pub suspended: bool,
    /// Wait for degraded
    #[arg(long)]
    pub degraded: bool,
    /// Wait for delete
    #[arg(long)]
    pub delete: bool,
    /// Wait for hydration operations
    #[arg(long)]
    pub hydrated: bool,
}

impl Conditions {
    /// Without any flag: sync, health and operation.
    fn or_usual(self) -> Self {
        if self == Self::default() {
            Self {
                sync: true,
                health: true,
                operation: true,
                ..self
            }
        } else {
            self
        }
    }

    fn met_by(&self, health: &str, sync: &str, app: &Application) -> bool {
        if self.delete {
            return false;
        }
        let checks_health = self.health || self.suspended || self.degraded;
        let health_is_good = (self.health && health == "Healthy")
            || (self.suspended && health == "Suspended")
            || (self.degraded && health == "Degraded")
            || !checks_health;
        (!self.sync || sync == "Synced")
            && health_is_good
            && (!self.operation || app.operation.is_none())
            && (!self.hydrated || is_hydrated(app))
    }

    fn met(&self, app: &Application, selected: &[Selected]) -> bool {
        let met = match selected {
            [] => self.met_by(&app.status.health.status, &app.status.sync.status, app),
            _ => states(app, selected)
                .iter()
                .all(|s| self.met_by(&s.health, &s.status, app)),
        };
        met && !(self.operation && is_operating(app))
    }
}

fn is_hydrated(app: &Application) -> bool {
    let status = &app.status.source_hydrator;
    let (Some(current), Some(last)) =
        (&status.current_operation, &status.last_successful_operation)
    else {
        return false;
    };
    current.phase == "Hydrated"
        && current.source_hydrator == last.source_hydrator
        && current.dry_sha == last.dry_sha
}

/// An operation is requested, running, or has not been followed by a comparison yet.
fn is_operating(app: &Application) -> bool {
    if app.operation.is_some() {
        return true;
    }
    let Some(state) = &app.status.operation_state else {
        return false;
    };
    let Some(finished) = &state.finished_at else {
        return true;
    };
    let dry_run = state.operation.sync.as_ref().is_some_and(|s| s.dry_run);
    !dry_run
        && app
            .status
            .reconciled_at
            .as_ref()
            .is_none_or(|compared| compared.seconds < finished.seconds)
}

impl WaitCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        get::check_format(&self.output)?;
        let selected = select::parse(&self.resource)?;
        let client = super::super::connect(args).await?;
        let mut names = self.apps.clone();
        if let Some(selector) = self.selector.as_ref().filter(|s| !s.is_empty()) {
            let query = ApplicationQuery {
                selector: Some(selector.clone()),
                ..Default::default()
            };
            names.extend(
                super::list(&client, query)
                    .await?
                    .iter()
                    .map(summary::qualified_name),
            );
        }
        for name in names {
            let app = AppRef::new(&name, self.app_namespace.as_deref());
            let conditions = self.conditions.or_usual();
            let asked = Wait {
                app: &app,
                timeout: self.timeout,
                conditions,
                selected: &selected,
                output: &self.output,
                of_operation: false,
            };
            wait(&client, &asked).await?;
        }
        Ok(())
    }
}

/// An `output` that prints nothing: with many concurrent Applications only a summary is useful.
pub const SILENT: &str = "silent";

/// What to wait for, and how to print it.
pub struct Wait<'a> {
    pub app: &'a AppRef,
    /// Seconds; 0 for ever.
    pub timeout: u64,
    pub conditions: Conditions,
    pub selected: &'a [Selected],
    pub output: &'a str,
    /// An operation was just requested. Its table is shown even if it is over already.
    pub of_operation: bool,
}

/// The Application's final state; empty if it was deleted.
#[derive(Default)]
pub struct Waited {
    pub app: Option<Application>,
    /// The operation when the conditions were met.
    pub operation: Option<OperationState>,
}

/// Follows an Application until the conditions are met.
pub async fn wait(client: &Client, asked: &Wait<'_>) -> Result<Waited, Failure> {
    let url = super::url(client, &asked.app.qualified()).await?;
    let mut follower = Follower {
        client,
        asked,
        url,
        seen: BTreeMap::new(),
        header: true,
        refresh: false,
    };
    let app = super::get(client, asked.app, None).await?;
    if asked.conditions.met(&app, asked.selected) {
        return follower.done(app).await;
    }
    if asked.timeout == 0 {
        return follower.follow(app).await;
    }
    let deadline = Instant::now() + Duration::from_secs(asked.timeout);
    match timeout_at(deadline, follower.follow(app)).await {
        Ok(waited) => waited,
        Err(_) => follower.late().await,
    }
}

struct Follower<'a> {
    client: &'a Client,
    asked: &'a Wait<'a>,
    url: String,
    seen: BTreeMap<String, ResourceState>,
    /// The header of the table has not been printed yet.
    header: bool,
    /// There was an operation, after which the status lags behind.
    refresh: bool,
}

impl Follower<'_> {
    /// Documents must remain parseable by programs: nothing else is printed then.
    fn is_quiet(&self) -> bool {
        matches!(self.asked.output, "json" | "yaml" | SILENT)
    }

    /// Follows it from a state that does not meet the conditions. Each stream is opened before the
    /// state is read, so that nothing between them is missed, a deletion included.
    async fn follow(&mut self, mut app: Application) -> Result<Waited, Failure> {
        loop {
            let version = &app.metadata.resource_version;
            match watching::watch(self.client, self.asked.app, version).await {
                Err(e) if !watching::may_pass(e.code()) => return Err(e.into()),
                Err(_) => {}
                Ok(events) => {
                    if let Some(waited) = self.follow_one(events, &mut app).await? {
                        return Ok(waited);
                    }
                }
            }
            sleep(watching::PAUSE).await;
            // Argo CD's server opens no stream for what does not exist.
            if !self.reads(&mut app).await? {
                return self.deleted();
            }
        }
    }

    /// Reads the state, if the server answers; false: it was deleted.
    async fn reads(&self, app: &mut Application) -> Result<bool, Failure> {
        let project = spec::project_name(app);
        match watching::present(self.client, self.asked.app, project).await {
            Ok(Some(now)) => *app = now,
            Ok(None) => return Ok(false),
            Err(e) if e.status.is_some_and(watching::may_pass) => {}
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    /// Follows it until the stream breaks.
    async fn follow_one(
        &mut self,
        mut events: watching::Events,
        app: &mut Application,
    ) -> Result<Option<Waited>, Failure> {
        if !self.reads(app).await? {
            return self.deleted().map(Some);
        }
        loop {
            if let Some(waited) = self.see(app.clone()).await? {
                return Ok(Some(waited));
            }
            match events.next().await {
                Some(Ok(event)) if event.type_ == "DELETED" => return self.deleted().map(Some),
                Some(Ok(event)) => *app = event.application,
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }

    fn deleted(&self) -> Result<Waited, Failure> {
        let name = self.asked.app.qualified();
        if self.asked.conditions.delete {
            output::print(&format!("Application '{name}' deleted\n"));
            return Ok(Waited::default());
        }
        Err(Failure::error(format!(
            "application '{name}' was deleted while waiting for it"
        )))
    }

    /// Looks at a newer state.
    async fn see(&mut self, app: Application) -> Result<Option<Waited>, Failure> {
        let operation = app.operation.as_ref().and_then(|o| o.sync.as_ref());
        self.refresh |= app.operation.is_some() && !operation.is_some_and(|s| s.dry_run);
        if self.asked.conditions.met(&app, self.asked.selected) {
            return self.done(app).await.map(Some);
        }
        if let Some(message) = self.print_changes(&app) {
            self.final_status(app).await?;
            return Err(Failure::error(message));
        }
        Ok(None)
    }

    /// Prints new rows. Returns a permanent error, if there is one.
    fn print_changes(&mut self, app: &Application) -> Option<String> {
        let mut text = String::new();
        let (now, mut degraded) = (time::stamp(Timestamp::now()), None);
        for state in distinct(app, self.asked.selected) {
            let known = self.seen.entry(state.key());
            let mut changed = matches!(known, std::collections::btree_map::Entry::Vacant(_));
            let known = known.or_insert_with(|| state.clone());
            if self.asked.conditions.health
                && !matches!(known.health.as_str(), "Unknown" | "Degraded")
                && state.health == "Degraded"
            {
                let name = self.asked.app.qualified();
                degraded = Some(format!(
                    "application '{name}' health state has transitioned from {} to Degraded",
                    known.health
                ));
            }
            changed |= known.merge(&state);
            if changed {
                text += &known.waiting_row(&now);
            }
        }
        if !self.is_quiet() && (self.header || !text.is_empty()) {
            let header = if std::mem::take(&mut self.header) {
                waiting_header()
            } else {
                String::new()
            };
            output::print(&table::align(&(header + &text), 5));
        }
        degraded
    }

    async fn done(&mut self, app: Application) -> Result<Waited, Failure> {
        if self.header && self.asked.of_operation {
            self.print_changes(&app);
        }
        let operation = app.status.operation_state.as_deref().cloned();
        Ok(Waited {
            app: Some(self.final_status(app).await?),
            operation,
        })
    }

    async fn final_status(&mut self, mut app: Application) -> Result<Application, Failure> {
        if self.refresh {
            app = super::get(self.client, self.asked.app, Some("normal".into())).await?;
        }
        if self.is_quiet() {
            if self.asked.output != SILENT {
                output::print(&output::document(&app, self.asked.output)?);
            }
            return Ok(app);
        }
        let mut text = format!("\n{}\n", summary::application(&app, &self.url, None));
        if let Some(state) = app
            .status
            .operation_state
            .as_ref()
            .filter(|_| self.asked.conditions.operation)
        {
            text += &summary::operation(state, Timestamp::now());
        }
        text += &get::details(self.client, &app, self.asked.app, self.asked.output).await?;
        if self.asked.conditions.health {
            text += &get::reasons(self.client, &app, self.asked.app).await?;
        }
        output::print(&text);
        Ok(app)
    }

    /// The timeout expired: prints the current state.
    async fn late(&mut self) -> Result<Waited, Failure> {
        if !self.is_quiet() {
            output::print("\nThis is the state of the app after wait timed out:\n");
        }
        self.refresh = false;
        let app = super::get(self.client, self.asked.app, None).await?;
        if !self.is_quiet() {
            output::print("\nThe command timed out waiting for the conditions to be met.\n");
        }
        self.final_status(app).await?;
        let (seconds, name) = (self.asked.timeout, self.asked.app.qualified());
        Err(Failure::error(format!(
            "timed out ({seconds}s) waiting for app {name:?} match desired state"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(value: serde_json::Value) -> Application {
        serde_json::from_value(value).expect("an Application")
    }

    #[test]
    fn operations_that_are_not_over() {
        let finished = |dry_run: bool, compared: &str| {
            json!({"status": {"reconciledAt": compared, "operationState": {
                "operation": {"sync": {"dryRun": dry_run}}, "finishedAt": "2026-01-01T00:00:10Z"}}})
        };
        for (value, expected) in [
            (json!({}), false),
            (json!({"operation": {"sync": {}}}), true),
            (
                json!({"status": {"operationState": {"phase": "Running"}}}),
                true,
            ),
            (finished(false, "2026-01-01T00:00:09Z"), true),
            (finished(false, "2026-01-01T00:00:10Z"), false),
            (finished(true, "2026-01-01T00:00:09Z"), false),
        ] {
            assert_eq!(is_operating(&app(value.clone())), expected, "{value}");
        }
    }

    #[test]
    fn conditions() {
        let healthy = app(
            json!({"status": {"health": {"status": "Healthy"}, "sync": {"status": "OutOfSync"}, "resources": [
                {"kind": "Service", "name": "a", "status": "Synced", "health": {"status": "Healthy"}},
                {"kind": "Service", "name": "b", "status": "OutOfSync"},
            ]}}),
        );
        let met = |c: Conditions, flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|f| (*f).to_owned()).collect();
            c.met(&healthy, &select::parse(&flags).expect("valid flags"))
        };
        let none = Conditions::default();
        assert!(met(
            Conditions {
                health: true,
                ..none
            },
            &[]
        ));
        assert!(!met(Conditions { sync: true, ..none }, &[]));
        assert!(!met(none.or_usual(), &[]));
        assert!(met(none.or_usual(), &[":Service:a"]));
        assert!(!met(none.or_usual(), &[":Service:b"]));
        assert!(met(
            Conditions {
                suspended: true,
                health: true,
                ..none
            },
            &[]
        ));
        assert!(!met(
            Conditions {
                degraded: true,
                ..none
            },
            &[]
        ));
        assert!(!met(
            Conditions {
                delete: true,
                ..none
            },
            &[]
        ));
        assert!(!met(
            Conditions {
                hydrated: true,
                ..none
            },
            &[]
        ));
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        wait: WaitCommand,
    }

    /// Report 16: the state is read first, and what it has already is not waited for.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test reads its cases")]
    fn what_is_there_already() {
        let report = "cases/reports/users/16-wait-already-there/scenarios.json";
        let Some(file) = tiphys_testkit::shared(report) else {
            return;
        };
        let text = std::fs::read_to_string(file).expect("the scenarios");
        let scenarios: Vec<serde_json::Value> = serde_json::from_str(&text).expect("scenarios");
        assert!(scenarios.len() >= 8, "{}", scenarios.len());
        for scenario in scenarios {
            let state = &scenario["state"];
            let value = app(json!({
                "operation": state["operation"],
                "status": {
                    "sync": {"status": state["sync"]},
                    "health": {"status": state["health"]},
                    "operationState": state["operationState"],
                    "reconciledAt": state["reconciledAt"],
                },
            }));
            let args = scenario["args"].as_str().expect("words");
            // The first word is what clap takes for the program's name.
            let words = args.split_whitespace().skip(1);
            let line = <Line as clap::Parser>::try_parse_from(words).expect(args);
            let conditions = line.wait.conditions.or_usual();
            let wanted = scenario["exit"] == 0;
            assert_eq!(conditions.met(&value, &[]), wanted, "{scenario}");
            assert!(wanted || line.wait.timeout > 0, "{scenario}");
        }
    }
}
