//! `catalog install`: from a chart to an Application.

use super::{
    Catalogue, better, called,
    commit::{Change, CommitArgs},
    failed, is_ours,
    read::Opened,
    server::Server,
};
use crate::{
    client::{Client, ConnectArgs, Failure},
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
    release::{ANNOTATION, Origin, digest_of, install::Install as Wanted, schema},
};
use tiphys_render::helm::{
    HelmError, Limits, ParsedChart, PrintOptions, RenderOptions, chart::Chart as HelmChart,
    check_installable, values::Values,
};

const PREVIEW: &str = "/catalog.CatalogService/PreviewInstall";

/// Make an Application of a chart
///
/// The chart is fetched and must be the one that the catalogue knows; the values must fit its
/// schema, and it must render. A server fetches and renders the charts of its catalogue itself.
/// Then the Application is printed, committed to Git with --commit-to, or created with --create.
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
    #[arg(long, visible_alias = "dry-run", conflicts_with_all = ["create", "commit_to"])]
    preview: bool,
    /// Print what it would change in the cluster instead, as a server's catalogue knows it
    #[arg(long, conflicts_with_all = ["preview", "create", "commit_to"])]
    diff: bool,
    /// Create the Application, in the control plane that you are logged in to
    #[arg(long, conflicts_with = "commit_to")]
    create: bool,
    #[command(flatten)]
    git: CommitArgs,
}

/// What would be installed, whoever has prepared it.
struct Prepared {
    application: Value,
    manifests: String,
    /// What is worth to know.
    notes: Vec<String>,
    chart: String,
    version: String,
    /// What would change in the cluster; `None`: that was not asked, or is not known.
    difference: Option<String>,
}

impl Install {
    pub async fn run(self, of: &Catalogue, args: &ConnectArgs) -> Result<(), Failure> {
        let values = self.values.read(&Limits::default());
        let values = values.map_err(|e| Failure::error(e.to_string()))?;
        let prepared = match of {
            Catalogue::Of(server) => self.there(server, &values).await?,
            Catalogue::Here(_) if self.diff => {
                return Err(Failure::error(
                    "--diff needs a server with a catalogue: that of this machine does not know \
                     what is in the cluster",
                ));
            }
            Catalogue::Here(store) => self.here(store, values, args).await?,
        };
        for note in &prepared.notes {
            eprintln!("note: {note}");
        }
        if self.diff {
            let unknown = || Failure::error("the manifests could not be compared with the cluster");
            let difference = prepared.difference.ok_or_else(unknown)?;
            output::print(match difference.as_str() {
                "" => "Nothing would change.\n",
                difference => difference,
            });
            return Ok(());
        }
        if self.preview {
            output::print(&prepared.manifests);
            return Ok(());
        }
        if let Some(url) = &self.git.commit_to {
            return self.committed(url, &prepared).await;
        }
        if !self.create {
            output::print(&output::yaml(&prepared.application)?);
            return Ok(());
        }
        let client = of.control_plane(args).await?;
        created(&client, &prepared.application).await
    }

    /// By a server, which fetches and renders the chart of its catalogue.
    async fn there(&self, server: &Server, values: &Values) -> Result<Prepared, Failure> {
        let chart = server.place(&self.chart, self.version.as_deref()).await?;
        let request = InstallRequest {
            compare: self.diff,
            ..self.request(chart, values)
        };
        prepared(server.ask(PREVIEW, request).await?)
    }

    /// From a database of this machine, or by the control plane, where it has the credentials.
    async fn here(
        &self,
        store: &Arc<Store>,
        values: Values,
        args: &ConnectArgs,
    ) -> Result<Prepared, Failure> {
        let opened = Opened::new(store, &self.chart)?;
        let origin = Origin::new(store, opened.id.clone(), opened.chart.clone());
        let origin = origin.map_err(failed)?;
        let wanted = self.version.as_deref();
        let known = wanted.and_then(|wanted| origin.installed(wanted));
        let version = known.map_or_else(|| opened.version(wanted), Ok)?;
        let is_ours = is_ours(store, &opened.id)?;
        let prepared = match self.fetch(Arc::clone(store), &opened, version).await {
            Ok(archive) => self.rendered_here(&archive, &origin, version, values)?,
            // The credentials of a cluster's repositories are in the cluster.
            Err(CatalogError::Repo(e)) if !is_ours => {
                let asked = self.by_control_plane(&opened, version, &values, args);
                asked.await.map_err(|why| better(why, e.into()))?
            }
            Err(e) => return Err(failed(e)),
        };
        if self.create || self.git.commit_to.is_some() {
            // Its defaults: an upgrade compares with them when no repository has them any more.
            origin.keep(store, &version.version).map_err(failed)?;
        }
        Ok(prepared)
    }

    fn rendered_here(
        &self,
        archive: &[u8],
        origin: &Origin,
        version: &ChartVersion,
        values: Values,
    ) -> Result<Prepared, Failure> {
        let manifests = self.rendered(archive, &origin.chart, &values);
        let (manifests, unknown) = manifests.map_err(|e| {
            let (name, version) = (&origin.chart.name, &version.version);
            Failure::error(format!("{name} {version} cannot be installed: {e}"))
        })?;
        let digest = digest_of(&version.digest, archive);
        let repository = called(&origin.repo);
        let install = self.wanted(values);
        let mut application = install.application(origin, &repository, version, &digest);
        let notes = unknown.iter().map(|reference| schema::note(reference));
        let notes: Vec<String> = notes.collect();
        if !notes.is_empty() {
            // Else nobody could render it.
            application["spec"]["source"]["helm"]["skipSchemaValidation"] = true.into();
        }
        Ok(Prepared {
            application,
            manifests,
            notes,
            chart: origin.chart.name.clone(),
            version: version.version.clone(),
            difference: None,
        })
    }

    async fn committed(&self, url: &str, prepared: &Prepared) -> Result<(), Failure> {
        let Prepared {
            application,
            chart,
            version,
            ..
        } = prepared;
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

    /// The same from the control plane that one is logged in to.
    async fn by_control_plane(
        &self,
        opened: &Opened,
        version: &ChartVersion,
        values: &Values,
        args: &ConnectArgs,
    ) -> Result<Prepared, Failure> {
        let client = connect(args).await?;
        let chart = ChartRequest {
            namespace: opened.id.namespace.clone(),
            repository: opened.id.name.clone(),
            path: opened.chart.path(),
            version: version.version.clone(),
        };
        prepared(client.unary(PREVIEW, self.request(chart, values)).await?)
    }

    /// What a control plane is asked to prepare.
    fn request(&self, chart: ChartRequest, values: &Values) -> InstallRequest {
        InstallRequest {
            chart,
            name: self.name.clone().unwrap_or_default(),
            project: self.project.clone(),
            dest_server: self.dest_server.clone(),
            dest_namespace: self.dest_namespace.clone().unwrap_or_default(),
            values: tiphys_gocompat::yaml::to_string(&values.clone().into()),
            auto_sync: self.auto_sync,
            compare: false,
        }
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
}

/// What a control plane has prepared.
fn prepared(preview: InstallResponse) -> Result<Prepared, Failure> {
    let InstallResponse {
        application,
        manifests,
        notes,
        difference,
        compared,
    } = preview;
    let noted = |key: &str| {
        let known = &application.metadata.annotations;
        let found = known.get(&format!("{ANNOTATION}/{key}"));
        found.cloned().unwrap_or_default()
    };
    let (chart, version) = (noted("chart"), noted("version"));
    let application = serde_json::to_value(&application);
    let mut application = application.map_err(|e| Failure::error(e.to_string()))?;
    // It has none yet, and an empty one has no place in a file.
    if let Value::Object(fields) = &mut application {
        fields.remove("status");
    }
    Ok(Prepared {
        application,
        manifests,
        notes,
        chart,
        version,
        difference: compared.then_some(difference),
    })
}

/// Whether the project permits it is decided there.
async fn created(client: &Client, application: &Value) -> Result<(), Failure> {
    let application: Application =
        serde_json::from_value(application.clone()).map_err(|e| Failure::error(e.to_string()))?;
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
