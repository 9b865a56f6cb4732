//! What would be installed or upgraded. Nothing is written here: Create and Update of
//! application.ApplicationService write what these calls return.

use super::changes::changes;
use crate::{
    ApiError,
    access::{Get, Guard, find, read_charts, refused},
    services::application::validate::validate_and_normalize,
    state::State,
};
use std::sync::Arc;
use tiphys_api::{
    Application,
    rpc::catalog::{
        InstallRequest, InstallResponse, ListRequest, RollbackRequest, RollbackResponse, Update,
        UpdateList, UpgradeRequest, UpgradeResponse,
    },
    source::ApplicationSource,
};
use tiphys_catalog::{
    RepoId,
    model::ChartVersion,
    release::{
        Chosen, Facts, Origin,
        install::Install,
        merge::Prefer,
        parse_values, rollback,
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
    let project = state.reach.project_of(&planned).await?;
    let planned = validate_and_normalize(&state, planned, &project, false).await?;
    // What is in the cluster is for those who may see the Application.
    let seen = match q.compare {
        true => Some(guard.also::<Get, _, _>(&planned)?),
        false => None,
    };
    let visitor = state.reach.visitor(&known).await?;
    let repository = called(&known.origin.repo);
    let previewed = install.preview(&visitor, &known.origin, (&repository, version));
    let preview = previewed.await.map_err(refused)?;
    let (mut notes, mut difference) = (preview.notes, None);
    if let Some(seen) = &seen {
        match changes(&state, (seen, &project), preview.objects).await {
            Ok(found) => {
                notes.extend(found.notes);
                difference = Some(found.difference);
            }
            Err(e) => notes.push(format!("what it would change is not known: {e}")),
        }
    }
    // Its defaults: an upgrade compares with them when no repository has them any more.
    let installed = version.version.clone();
    read_charts(move || known.origin.keep(&known.store, &installed)).await?;
    Ok(InstallResponse {
        application: preview.application,
        manifests: preview.manifests.text(),
        notes,
        compared: difference.is_some(),
        difference: difference.unwrap_or_default(),
    })
}

pub async fn updates(
    state: Arc<State>,
    guard: Guard,
    _: ListRequest,
) -> Result<UpdateList, ApiError> {
    state.reach.ready().await;
    let (apps, _) = state.reach.apps(&guard, |_| true);
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
    let (app, _) = find::<Get>(&state.reach, &guard, namespace, &q.name, None).await?;
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

pub async fn rollback(
    state: Arc<State>,
    guard: Guard,
    q: RollbackRequest,
) -> Result<RollbackResponse, ApiError> {
    let namespace = Some(&*q.app_namespace).filter(|namespace| !namespace.is_empty());
    let (app, _) = find::<Get>(&state.reach, &guard, namespace, &q.name, None).await?;
    let position = usize::try_from(q.source_position).ok().filter(|at| *at > 0);
    let chosen = Chosen::one(&app, position).map_err(refused)?;
    let wanted = Some(&*q.version).filter(|version| !version.is_empty());
    let before = rollback::before(&chosen, wanted).map_err(refused)?;
    let from = chosen.version().unwrap_or_default().to_owned();
    let to = before.target_revision.clone();
    let known = state.reach.chart_of(&app, &before).await?;
    let (mut notes, mut difference) = (Vec::new(), None);
    let application = match &known {
        // The source of its history is enough to go back.
        None => {
            let why = chosen.unknown();
            notes.push(format!("{why}, so manifests are not compared"));
            chosen.replaced(before, None)
        }
        Some(known) => {
            let origin = &known.origin;
            let now = ApplicationSource {
                target_revision: from.clone(),
                ..chosen.source.clone()
            };
            match state.reach.visitor(known).await {
                Ok(visitor) => {
                    let sources = [now, before.clone()];
                    let facts = chosen.facts();
                    let compared = rollback::compared(&visitor, origin, sources, &facts);
                    (difference, notes) = compared.await;
                }
                Err(e) => notes.push(format!("manifests are not compared: {e}")),
            }
            let version = origin.installed(&to);
            let digest = version.map_or(String::new(), |version| version.digest.clone());
            let of = (origin, called(&origin.repo), digest);
            chosen.replaced(before, Some(&of))
        }
    };
    Ok(RollbackResponse {
        application,
        from,
        to,
        notes,
        compared: difference.is_some(),
        difference: difference.unwrap_or_default(),
    })
}
