//! `catalog install`: from a chart to an Application.

use super::{
    better, called,
    commit::{Change, CommitArgs},
    failed, is_ours,
    read::Opened,
};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{
        connect,
        helm::{sources, values::ValueArgs},
    },
    output,
};
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{
    Application,
    constants::IN_CLUSTER,
    rpc::{
        application::ApplicationCreateRequest,
        catalog::{ChartRequest, InstallRequest, InstallResponse},
    },
};
use tiphys_catalog::{
    CatalogError, RepoSpec, Store,
    model::{Chart, ChartVersion},
    release::{Origin, digest_of, install::Install as Wanted, schema},
};
use tiphys_render::helm::{
    HelmError, Limits, ParsedChart, PrintOptions, RenderOptions, chart::Chart as HelmChart,
    check_installable, values::Values,
};

/// Make an Application of a chart
///
/// The chart is fetched and must be the one that the catalogue knows; the values must fit its
/// schema, and it must render. Then the Application is printed, committed to Git with --commit-to,
/// or created with --create.
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
    #[arg(long, conflicts_with_all = ["create", "commit_to"])]
    preview: bool,
    /// Create the Application, in the control plane that you are logged in to
    #[arg(long, conflicts_with = "commit_to")]
    create: bool,
    #[command(flatten)]
    git: CommitArgs,
}

impl Install {
    pub async fn run(self, store: Arc<Store>, args: &ConnectArgs) -> Result<(), Failure> {
        let opened = Opened::new(&store, &self.chart)?;
        let origin = Origin::new(&store, opened.id.clone(), opened.chart.clone());
        let origin = origin.map_err(failed)?;
        let wanted = self.version.as_deref();
        let known = wanted.and_then(|wanted| origin.installed(wanted));
        let version = known.map_or_else(|| opened.version(wanted), Ok)?;
        let is_ours = is_ours(&store, &opened.id)?;
        let values = self.values.read(&Limits::default());
        let values = values.map_err(|e| Failure::error(e.to_string()))?;
        let named = (opened.chart.name.clone(), version.version.clone());
        let (manifests, application, notes) =
            match self.fetch(Arc::clone(&store), &opened, version).await {
                Ok(archive) => {
                    let manifests = self.rendered(&archive, &opened.chart, &values);
                    let (manifests, unknown) = manifests.map_err(|e| {
                        let (name, version) = (&opened.chart.name, &version.version);
                        Failure::error(format!("{name} {version} cannot be installed: {e}"))
                    })?;
                    let digest = digest_of(&version.digest, &archive);
                    let repository = called(&opened.id);
                    let install = self.wanted(values);
                    let mut application =
                        install.application(&origin, &repository, version, &digest);
                    let notes = unknown.iter().map(|reference| schema::note(reference));
                    let notes: Vec<String> = notes.collect();
                    if !notes.is_empty() {
                        // Else nobody could render it.
                        application["spec"]["source"]["helm"]["skipSchemaValidation"] = true.into();
                    }
                    (manifests, application, notes)
                }
                // The credentials of a cluster's repositories are in the cluster.
                Err(CatalogError::Repo(e)) if !is_ours => {
                    let asked = self.by_control_plane(&opened, version, &values, args);
                    asked.await.map_err(|why| better(why, e.into()))?
                }
                Err(e) => return Err(failed(e)),
            };
        for note in &notes {
            eprintln!("note: {note}");
        }
        if self.preview {
            output::print(&manifests);
            return Ok(());
        }
        if self.create || self.git.commit_to.is_some() {
            // Its defaults: an upgrade compares with them when no repository has them any more.
            origin.keep(&store, &named.1).map_err(failed)?;
        }
        if let Some(url) = &self.git.commit_to {
            return self.committed(url, &application, &named).await;
        }
        if !self.create {
            output::print(&output::yaml(&application)?);
            return Ok(());
        }
        self.created(&application, args).await
    }

    async fn committed(
        &self,
        url: &str,
        application: &Value,
        (chart, version): &(String, String),
    ) -> Result<(), Failure> {
        let change = Change {
            application,
            version,
            title: format!("Install {chart} {version}"),
            text: format!(
                "Application {} of project {} installs chart {chart} {version} to namespace {}.",
                application["metadata"]["name"].as_str().unwrap_or_default(),
                self.project,
                application["spec"]["destination"]["namespace"]
                    .as_str()
                    .unwrap_or_default()
            ),
        };
        self.git.install(url, &change).await
    }

    /// The manifests, the Application and what is worth to know, from the control plane that one is
    /// logged in to.
    async fn by_control_plane(
        &self,
        opened: &Opened,
        version: &ChartVersion,
        values: &Values,
        args: &ConnectArgs,
    ) -> Result<(String, Value, Vec<String>), Failure> {
        let client = connect(args).await?;
        let request = InstallRequest {
            chart: ChartRequest {
                namespace: opened.id.namespace.clone(),
                repository: opened.id.name.clone(),
                path: opened.chart.path(),
                version: version.version.clone(),
            },
            name: self.release(&opened.chart).to_owned(),
            project: self.project.clone(),
            dest_server: self.dest_server.clone(),
            dest_namespace: self.namespace(&opened.chart).to_owned(),
            values: tiphys_gocompat::yaml::to_string(&values.clone().into()),
            auto_sync: self.auto_sync,
        };
        let preview: InstallResponse = client
            .unary("/catalog.CatalogService/PreviewInstall", request)
            .await?;
        let application = serde_json::to_value(&preview.application)
            .map_err(|e| Failure::error(e.to_string()))?;
        Ok((preview.manifests, application, preview.notes))
    }

    async fn fetch(
        &self,
        store: Arc<Store>,
        opened: &Opened,
        version: &ChartVersion,
    ) -> Result<Vec<u8>, CatalogError> {
        let status = store.repo(&opened.id)?.unwrap_or_default();
        let visitor = RepoSpec::visitor(store, &status, &opened.chart.repo)?;
        visitor.archive(&opened.chart, version).await
    }

    fn release<'a>(&'a self, chart: &'a Chart) -> &'a str {
        self.name.as_deref().unwrap_or(&chart.name)
    }

    fn namespace<'a>(&'a self, chart: &'a Chart) -> &'a str {
        let given = self.dest_namespace.as_deref();
        given.unwrap_or_else(|| self.release(chart))
    }

    /// The manifests, and what the chart's schema refers to elsewhere.
    fn rendered(
        &self,
        archive: &[u8],
        chart: &Chart,
        values: &Values,
    ) -> Result<(String, Vec<String>), HelmError> {
        let limits = Limits::default();
        let mut loaded = HelmChart::from_archive(archive, &limits)?.chart;
        let unknown = schema::cut(&mut loaded);
        check_installable(&loaded)?;
        let mut options = RenderOptions::new(Arc::new(sources));
        self.release(chart).clone_into(&mut options.release.name);
        self.namespace(chart)
            .clone_into(&mut options.release.namespace);
        let rendered = ParsedChart::new(loaded).render(values, &options, &limits)?;
        let manifests = rendered.print(&PrintOptions {
            include_crds: true,
            ..PrintOptions::default()
        })?;
        Ok((manifests, unknown))
    }

    fn wanted(&self, values: Values) -> Wanted {
        Wanted {
            name: self.name.clone().unwrap_or_default(),
            project: self.project.clone(),
            dest_server: self.dest_server.clone(),
            dest_namespace: self.dest_namespace.clone().unwrap_or_default(),
            values,
            auto_sync: self.auto_sync,
        }
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
