//! `catalog install`: from a chart to an Application.

use super::{called, failed, read::Opened};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{
        connect,
        helm::{sources, values::ValueArgs},
    },
    output,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::{
    Application,
    constants::{API_VERSION, IN_CLUSTER},
    rpc::application::ApplicationCreateRequest,
};
use tiphys_catalog::{
    RepoSpec, Store,
    model::{Chart, ChartVersion},
    release::{address, annotations},
};
use tiphys_render::helm::{
    HelmError, Limits, ParsedChart, PrintOptions, RenderOptions, chart::Chart as HelmChart,
    check_installable, values::Values,
};

/// Make an Application of a chart
///
/// The chart is fetched and must be the one that the catalogue knows; the values must fit its
/// schema, and it must render. Then the Application is printed, as it would be committed to Git, or
/// created with --create.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Install {
    /// Name of the chart, or REPOSITORY/NAME
    chart: String,
    /// Name of the Application [default: the chart's name]
    name: Option<String>,
    /// Version [default: the newest]
    #[arg(long)]
    version: Option<String>,
    #[command(flatten)]
    values: ValueArgs,
    /// Project of the Application
    #[arg(long, default_value = "default")]
    project: String,
    /// Cluster to install to
    #[arg(long, value_name = "URL", default_value = IN_CLUSTER)]
    dest_server: String,
    /// Namespace to install to; it is created if it is missing [default: the Application's name]
    #[arg(long, value_name = "NAMESPACE")]
    dest_namespace: Option<String>,
    /// Sync the Application as soon as it is there
    #[arg(long)]
    auto_sync: bool,
    /// Print the manifests that it would apply instead
    #[arg(long, conflicts_with = "create")]
    preview: bool,
    /// Create the Application, in the control plane that you are logged in to
    #[arg(long)]
    create: bool,
}

impl Install {
    pub async fn run(self, store: Arc<Store>, args: &ConnectArgs) -> Result<(), Failure> {
        let opened = Opened::new(&store, &self.chart)?;
        let version = opened.version(self.version.as_deref())?;
        let is_registry = store.is_registry(&opened.id).map_err(failed)?;
        let archive = self.fetch(store, &opened, version).await?;
        let values = self.values.read(&Limits::default());
        let values = values.map_err(|e| Failure::error(e.to_string()))?;
        let manifests = self.rendered(&archive, &opened.chart, &values);
        let manifests = manifests.map_err(|e| {
            let (name, version) = (&opened.chart.name, &version.version);
            Failure::error(format!("{name} {version} cannot be installed: {e}"))
        })?;
        if self.preview {
            output::print(&manifests);
            return Ok(());
        }
        let application = self.application((&opened, is_registry), version, &values);
        if !self.create {
            output::print(&output::yaml(&application)?);
            return Ok(());
        }
        self.created(&application, args).await
    }

    async fn fetch(
        &self,
        store: Arc<Store>,
        opened: &Opened,
        version: &ChartVersion,
    ) -> Result<Vec<u8>, Failure> {
        let status = store.repo(&opened.id).map_err(failed)?;
        let status = status.unwrap_or_default();
        let visitor = RepoSpec::visitor(store, &status, &opened.chart.repo).map_err(failed)?;
        visitor
            .archive(&opened.chart, version)
            .await
            .map_err(failed)
    }

    fn release<'a>(&'a self, chart: &'a Chart) -> &'a str {
        self.name.as_deref().unwrap_or(&chart.name)
    }

    fn namespace<'a>(&'a self, chart: &'a Chart) -> &'a str {
        let given = self.dest_namespace.as_deref();
        given.unwrap_or_else(|| self.release(chart))
    }

    fn rendered(
        &self,
        archive: &[u8],
        chart: &Chart,
        values: &Values,
    ) -> Result<String, HelmError> {
        let limits = Limits::default();
        let loaded = HelmChart::from_archive(archive, &limits)?.chart;
        check_installable(&loaded)?;
        let mut options = RenderOptions::new(Arc::new(sources));
        self.release(chart).clone_into(&mut options.release.name);
        self.namespace(chart)
            .clone_into(&mut options.release.namespace);
        let rendered = ParsedChart::new(loaded).render(values, &options, &limits)?;
        rendered.print(&PrintOptions {
            include_crds: true,
            ..PrintOptions::default()
        })
    }

    fn application(
        &self,
        (opened, is_registry): (&Opened, bool),
        version: &ChartVersion,
        values: &Values,
    ) -> Value {
        let chart = &opened.chart;
        let mut helm = json!({"releaseName": self.release(chart)});
        if !values.is_empty() {
            helm["valuesObject"] = values.clone().into();
        }
        let (url, name) = address(chart, is_registry);
        let mut policy = json!({"syncOptions": ["CreateNamespace=true"]});
        if self.auto_sync {
            policy["automated"] = json!({});
        }
        let repository = called(&opened.id);
        let digest = &version.digest;
        let mut annotations = annotations(&repository, &chart.name, &version.version, digest);
        annotations.retain(|_, value| !value.is_empty());
        json!({
            "apiVersion": API_VERSION,
            "kind": "Application",
            "metadata": {"name": self.release(chart), "annotations": annotations},
            "spec": {
                "project": self.project,
                "source": {
                    "repoURL": url,
                    "chart": name,
                    "targetRevision": version.version,
                    "helm": helm,
                },
                "destination": {
                    "server": self.dest_server,
                    "namespace": self.namespace(chart),
                },
                "syncPolicy": policy,
            },
        })
    }

    /// Whether the project permits it is decided there.
    async fn created(&self, application: &Value, args: &ConnectArgs) -> Result<(), Failure> {
        let application: Application = serde_json::from_value(application.clone())
            .map_err(|e| Failure::error(e.to_string()))?;
        let client = connect(args).await?;
        let request = ApplicationCreateRequest {
            application,
            upsert: Some(false),
            validate: Some(true),
        };
        let created: Application = client
            .unary("/application.ApplicationService/Create", request)
            .await?;
        let name = &created.metadata.name;
        output::print(&format!("application '{name}' created\n"));
        Ok(())
    }
}
