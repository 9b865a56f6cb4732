//! What would be installed or upgraded. Nothing is written here: Create and Update of
//! application.ApplicationService write what these calls return.

use crate::{
    ApiError,
    access::{Get, Guard, find, read_charts, refused},
    server::State,
    services::application::{project_of, validate::validate_and_normalize},
};
use std::sync::Arc;
use tiphys_api::{
    Application,
    rpc::catalog::{
        InstallRequest, InstallResponse, ListRequest, Update, UpdateList, UpgradeRequest,
        UpgradeResponse,
    },
};
use tiphys_catalog::{
    RepoId,
    model::ChartVersion,
    release::{
        Chosen, Facts, Origin,
        install::Install,
        merge::Prefer,
        parse_values,
        upgrade::{self, Wanted},
    },
};

/// A version, or the newest one.
pub(crate) fn version_of<'a>(
    origin: &'a Origin,
    wanted: &str,
) -> Result<&'a ChartVersion, ApiError> {
    let found = match wanted {
        "" => origin.chart.versions.first(),
        wanted => origin.installed(wanted),
    };
    found.ok_or_else(|| {
        let name = &origin.chart.name;
        ApiError::not_found(format!("chart {name:?} has no version {wanted:?}"))
    })
}

fn called(id: &RepoId) -> String {
    format!("{}/{}", id.namespace, id.name)
}

pub async fn install(
    state: Arc<State>,
    guard: Guard,
    q: InstallRequest,
) -> Result<InstallResponse, ApiError> {
    let id = RepoId::new(&q.chart.namespace, &q.chart.repository);
    let known = state.reach.chart(&guard, &id, &q.chart.path).await?;
    let install = Install {
        name: q.name,
        project: q.project,
        dest_server: q.dest_server,
        dest_namespace: q.dest_namespace,
        values: parse_values(&q.values, "the values").map_err(refused)?,
        auto_sync: q.auto_sync,
    };
    let version = version_of(&known.origin, &q.chart.version)?;
    // Asked before anything is fetched for it.
    let planned = install.application(&known.origin, "", version, "");
    let planned: Application =
        serde_json::from_value(planned).map_err(|e| ApiError::internal(e.to_string()))?;
    let planned = guard.create(planned)?;
    let project = project_of(&state, &planned).await?;
    validate_and_normalize(&state, planned, &project, false).await?;
    let visitor = state.reach.visitor(&known).await?;
    let repository = called(&known.origin.repo);
    let previewed = install.preview(&visitor, &known.origin, (&repository, version));
    let preview = previewed.await.map_err(refused)?;
    Ok(InstallResponse {
        application: preview.application,
        manifests: preview.manifests.text(),
        notes: preview.notes,
    })
}

pub async fn updates(
    state: Arc<State>,
    guard: Guard,
    _: ListRequest,
) -> Result<UpdateList, ApiError> {
    state.reach.ready().await;
    let (apps, _) = state.reach.apps(&guard);
    let mut items = Vec::new();
    for app in &apps {
        for chosen in Chosen::all(app) {
            let Some(version) = chosen.version() else {
                continue;
            };
            let named = |chart: String, newest: String| Update {
                namespace: app.metadata.namespace.clone(),
                application: app.metadata.name.clone(),
                chart,
                version: version.to_owned(),
                origin_gone: newest.is_empty(),
                newest,
            };
            let Some(known) = state.reach.chart_of(app, chosen.source).await? else {
                let gone = chosen.came_from();
                items.extend(gone.map(|chart| named(chart, String::new())));
                continue;
            };
            // Its defaults, while the catalogue has them: the next upgrade compares with them.
            let installed = version.to_owned();
            let keeping = read_charts(move || {
                known.origin.keep(&known.store, &installed)?;
                Ok(known)
            });
            let known = keeping.await?;
            let origin = &known.origin;
            if let Some(newest) = origin.newer(version) {
                let chart = format!("{}/{}", called(&origin.repo), origin.chart.path());
                items.push(named(chart, newest));
            }
        }
    }
    Ok(UpdateList { items })
}

pub async fn upgrade(
    state: Arc<State>,
    guard: Guard,
    q: UpgradeRequest,
) -> Result<UpgradeResponse, ApiError> {
    let namespace = Some(&*q.app_namespace).filter(|namespace| !namespace.is_empty());
    let (app, _) = find::<Get>(&state, &guard, namespace, &q.name, None).await?;
    let position = usize::try_from(q.source_position).ok().filter(|at| *at > 0);
    let chosen = Chosen::one(&app, position).map_err(refused)?;
    let known = state.reach.chart_of(&app, chosen.source).await?;
    let known = known.ok_or_else(|| refused(chosen.unknown()))?;
    let prefer = match &*q.prefer {
        "" | "ours" => Prefer::Ours,
        "theirs" => Prefer::Theirs,
        other => {
            return Err(ApiError::invalid(format!(
                "{other:?} is not ours or theirs"
            )));
        }
    };
    let wanted = Wanted {
        source: chosen.source.clone(),
        installed: chosen.version().unwrap_or_default().to_owned(),
        digest: chosen.digest(),
        version: Some(q.version).filter(|version| !version.is_empty()),
        prefer,
        decided: parse_values(&q.values, "the values").map_err(refused)?,
        facts: Facts {
            now: jiff::Timestamp::now(),
            ..chosen.facts()
        },
    };
    let visitor = state.reach.visitor(&known).await?;
    let origin = &known.origin;
    let plan = upgrade::plan(Arc::clone(&known.store), &visitor, origin, wanted);
    let plan = plan.await.map_err(refused)?;
    Ok(plan.response(&chosen, origin, &called(&origin.repo)))
}
