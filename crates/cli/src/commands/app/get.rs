//! `app get`.

use super::{
    AppRef, Refresh,
    follow::{Scope, follow},
    source_position, states, views,
};
use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{self, summary},
};
use jiff::Timestamp;
use std::time::Duration;
use tiphys_api::{
    Application,
    resource::ApplicationTree,
    rpc::application::{
        ApplicationSyncWindowsQuery, ApplicationSyncWindowsResponse, ResourcesQuery,
    },
};
use tiphys_engine::tree::why;
use tonic::Code;

#[derive(clap::Args)]
pub struct Get {
    /// The application
    app: String,
    /// Output format. One of: json|yaml|wide|tree|tree=detailed
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    /// Time out after this many seconds; the application is then shown as it is, without a refresh
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    /// Show application operation
    #[arg(long)]
    show_operation: bool,
    /// Show application parameters and overrides
    #[arg(long)]
    show_params: bool,
    #[command(flatten)]
    refresh: Refresh,
    /// Only get application from namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Position of the source from the list of sources of the app. Counting starts at 1
    #[arg(long)]
    source_position: Option<i64>,
    /// Name of the source from the list of sources of the app
    #[arg(long)]
    source_name: Option<String>,
    /// Go on and print what changes, until Ctrl-C or until the application is deleted: a row for
    /// each resource, or a document for each change
    #[arg(long, short)]
    watch: bool,
}

/// Output formats for an Application; checked before any request.
pub fn check_format(format: &str) -> Result<(), Failure> {
    if matches!(
        format,
        "" | "json" | "yaml" | "wide" | "tree" | "tree=detailed"
    ) {
        Ok(())
    } else {
        Err(output::unknown_format(format))
    }
}

/// The text below the summary.
pub async fn details(
    client: &Client,
    app: &Application,
    app_ref: &AppRef,
    format: &str,
) -> Result<String, Failure> {
    match format {
        "tree" | "tree=detailed" => {
            let query = ResourcesQuery {
                application_name: app_ref.name.clone(),
                app_namespace: app_ref.namespace(),
                ..Default::default()
            };
            let nodes: ApplicationTree = client
                .unary("/application.ApplicationService/ResourceTree", query)
                .await?;
            let unreadable = states::unreadable(&nodes);
            if nodes.nodes.is_empty() {
                return Ok(unreadable);
            }
            Ok(format!(
                "\n{}{unreadable}",
                states::tree(
                    app,
                    &nodes,
                    format == "tree=detailed",
                    Timestamp::now().as_second()
                )
            ))
        }
        _ if app.status.resources.is_empty() => Ok(String::new()),
        _ => Ok(format!("\n{}", states::rows(app))),
    }
}

/// Why resources are not Healthy, from the objects that they own; empty if all are.
pub async fn reasons(
    client: &Client,
    app: &Application,
    app_ref: &AppRef,
) -> Result<String, Failure> {
    if !matches!(
        app.status.health.status.as_str(),
        "Progressing" | "Degraded"
    ) {
        return Ok(String::new());
    }
    let query = ResourcesQuery {
        application_name: app_ref.name.clone(),
        app_namespace: app_ref.namespace(),
        ..Default::default()
    };
    let tree: ApplicationTree = match client
        .unary("/application.ApplicationService/ResourceTree", query)
        .await
    {
        Ok(tree) => tree,
        // Another server may not provide it; the requested output has been shown.
        Err(e)
            if matches!(
                e.code(),
                Code::Unimplemented | Code::PermissionDenied | Code::NotFound
            ) =>
        {
            return Ok(String::new());
        }
        Err(e) => return Err(e.into()),
    };
    let lines: String = why::lines(&tree.nodes)
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    Ok(if lines.is_empty() {
        lines
    } else {
        format!("\nNot healthy:\n{lines}")
    })
}

impl Get {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        check_format(&self.output)?;
        if self.watch && self.output.starts_with("tree") {
            return Err(Failure::error(
                "--watch prints rows or documents, not trees: use -o wide, json or yaml with it",
            ));
        }
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let app = self.fetch(&client, &app_ref).await?;
        let is_document = matches!(self.output.as_str(), "json" | "yaml");
        if !self.watch || !is_document {
            let text = match is_document {
                true => output::document(&app, &self.output)?,
                false => self.text(&client, &app, &app_ref).await?,
            };
            output::print(&text);
        }
        if !self.watch {
            return Ok(());
        }
        let (scope, seen) = (Scope::One(&app_ref), vec![app]);
        if is_document {
            let mut documents = views::Documents::new(&self.output);
            return follow(&client, scope, seen, String::new(), &mut documents).await;
        }
        let mut resources = views::Resources::default();
        follow(&client, scope, seen, String::new(), &mut resources).await
    }

    /// What is printed of an Application, other than as a document.
    async fn text(
        &self,
        client: &Client,
        app: &Application,
        app_ref: &AppRef,
    ) -> Result<String, Failure> {
        let source = match self.show_params
            || self.source_position.is_some()
            || self.source_name.is_some()
        {
            true => source_position(app, self.source_position, self.source_name.as_deref())?,
            false => None,
        };
        let url = super::url(client, &app.metadata.name).await?;
        let windows = windows(client, app_ref).await?;
        let mut text = summary::application(app, &url, windows.as_ref());
        if !app.status.conditions.is_empty() {
            text += &format!("\n{}\n", summary::conditions(app));
        }
        if let Some(state) = app
            .status
            .operation_state
            .as_ref()
            .filter(|_| self.show_operation)
        {
            text += &format!("\n{}", summary::operation(state, Timestamp::now()));
        }
        if self.show_params {
            let shown = source
                .and_then(|at| app.spec.sources.get(at).cloned())
                .unwrap_or_else(|| summary::source(app));
            text += &summary::parameters(&shown);
        }
        text += &details(client, app, app_ref, &self.output).await?;
        text += &reasons(client, app, app_ref).await?;
        Ok(text)
    }

    async fn fetch(&self, client: &Client, app_ref: &AppRef) -> Result<Application, Failure> {
        let asked = super::get(client, app_ref, self.refresh.kind());
        if self.timeout == 0 {
            return asked.await;
        }
        match tokio::time::timeout(Duration::from_secs(self.timeout), asked).await {
            Ok(app) => app,
            Err(_) => super::get(client, app_ref, None).await,
        }
    }
}

/// None if the server does not support sync windows.
async fn windows(
    client: &Client,
    app: &AppRef,
) -> Result<Option<ApplicationSyncWindowsResponse>, Failure> {
    let query = ApplicationSyncWindowsQuery {
        name: app.name.clone(),
        app_namespace: app.namespace(),
        project: None,
    };
    match client
        .unary(
            "/application.ApplicationService/GetApplicationSyncWindows",
            query,
        )
        .await
    {
        Ok(windows) => Ok(Some(windows)),
        Err(e) if e.code() == Code::Unimplemented => Ok(None),
        Err(e) => Err(e.into()),
    }
}
