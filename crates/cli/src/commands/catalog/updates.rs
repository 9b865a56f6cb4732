//! `catalog updates`: Applications whose chart has a newer version.

use super::{Catalogue, NAMESPACE, called, failed, server::Server};
use crate::{
    client::{ConnectArgs, Failure},
    commands::app,
    output::{
        self,
        sort::{Field, SortBy},
        summary, table,
    },
};
use serde::Serialize;
use tiphys_api::{
    Application,
    rpc::{
        application::ApplicationQuery,
        catalog::{self as rpc, ListRequest, UpdateList},
    },
};
use tiphys_catalog::{
    Store,
    release::{Chosen, Origin},
};

const LIST: &str = "/catalog.CatalogService/ListUpdates";

/// List the Applications whose chart has a newer version in the catalogue
///
/// Whoever made the Application: its source says where the chart is from. Prereleases count only
/// for those that have one. Those that were installed from a repository that is gone are listed,
/// too.
#[derive(clap::Args)]
pub struct Updates {
    /// Only applications in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Output format. One of: json|yaml|name
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    output: String,
    #[command(flatten)]
    sort_by: SortBy,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    application: String,
    chart: String,
    /// The version that is installed, or asked for.
    version: String,
    /// Empty if the origin is gone.
    newest: String,
    /// Its repository is no longer in the catalogue, or not at that address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    origin_gone: bool,
}

const FIELDS: &[Field<Update>] = &[
    ("application", |update| update.application.as_str().into()),
    ("chart", |update| update.chart.as_str().into()),
    ("version", |update| update.version.as_str().into()),
    ("newest", |update| update.newest.as_str().into()),
];

impl Updates {
    pub async fn run(self, catalogue: &Catalogue, args: &ConnectArgs) -> Result<(), Failure> {
        let mut updates = match catalogue {
            Catalogue::Of(server) => self.asked(server).await?,
            Catalogue::Here(store) => {
                let client = catalogue.control_plane(args).await?;
                let query = ApplicationQuery {
                    app_namespace: Some(self.app_namespace.clone().unwrap_or_default()),
                    ..Default::default()
                };
                let mut updates = Vec::new();
                for application in app::list(&client, query).await? {
                    updates.extend(of(&application, store)?);
                }
                updates
            }
        };
        self.sort_by.sort(&mut updates, FIELDS)?;
        output::print(&match self.output.as_str() {
            "json" | "yaml" => output::document(&updates, &self.output)?,
            "name" => updates
                .iter()
                .map(|update| format!("{}\n", update.application))
                .collect(),
            "" => table::table(
                &["APPLICATION", "CHART", "VERSION", "NEWEST"],
                updates.iter().map(|update| {
                    let Update {
                        application,
                        chart,
                        version,
                        newest,
                        origin_gone,
                    } = update;
                    let newest = match origin_gone {
                        true => "(origin gone)".to_owned(),
                        false => newest.clone(),
                    };
                    vec![application.clone(), chart.clone(), version.clone(), newest]
                }),
            ),
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }

    /// From the server's catalogue.
    async fn asked(&self, server: &Server) -> Result<Vec<Update>, Failure> {
        let list: UpdateList = server.ask(LIST, ListRequest {}).await?;
        let wanted = self.app_namespace.as_deref().unwrap_or_default();
        let items = list.items.into_iter();
        let items = items.filter(|item| wanted.is_empty() || item.namespace == wanted);
        Ok(items.map(told).collect())
    }
}

fn told(update: rpc::Update) -> Update {
    // As other commands call what is in the namespace of the command line.
    let short = update.chart.strip_prefix(&format!("{NAMESPACE}/"));
    Update {
        application: match update.namespace.as_str() {
            "" => update.application,
            namespace => format!("{namespace}/{}", update.application),
        },
        chart: short.unwrap_or(&update.chart).to_owned(),
        version: update.version,
        newest: update.newest,
        origin_gone: update.origin_gone,
    }
}

/// The updates of an Application's sources.
fn of(application: &Application, store: &Store) -> Result<Vec<Update>, Failure> {
    let mut updates = Vec::new();
    for chosen in Chosen::all(application) {
        let Some(version) = chosen.version() else {
            continue;
        };
        let named = |chart: String, newest: String| Update {
            application: summary::qualified_name(application),
            chart,
            version: version.to_owned(),
            origin_gone: newest.is_empty(),
            newest,
        };
        let Some(origin) = Origin::of(store, chosen.source).map_err(failed)? else {
            let gone = chosen.came_from();
            updates.extend(gone.map(|chart| named(chart, String::new())));
            continue;
        };
        origin.keep(store, version).map_err(failed)?;
        if let Some(newest) = origin.newer(version) {
            let chart = format!("{}/{}", called(&origin.repo), origin.chart.name);
            updates.push(named(chart, newest));
        }
    }
    Ok(updates)
}
