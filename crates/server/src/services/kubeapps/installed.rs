//! What is installed: the Applications of charts, as kubeapps shows releases. Main functions:
//! [`installed`], [`installed_detail`] and [`installed_resources`].
//!
//! The namespace of a package is the one that it is installed to, and its identifier the name of
//! the Application.

use super::{CLUSTER, icon_url, plugin, reference, version_of};
use crate::{
    ApiError, Code,
    access::{Authorized, Get, Guard, find, read_charts},
    state::State,
};
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{
    Application,
    constants::IN_CLUSTER,
    rpc::kubeapps::{
        Context, InstalledDetail, InstalledDetailResponse, InstalledPackageRequest,
        InstalledRequest, InstalledResponse, InstalledStatus, InstalledSummary, PackageAppVersion,
        Reference, ResourceRef, ResourceRefsResponse, VersionReference,
    },
};
use tiphys_catalog::release::{Chosen, Origin, applied};

/// The largest page.
const MOST: usize = 500;
/// The name of the cluster of the control plane as a destination.
const OURS: &str = "in-cluster";

/// The states of an installed package, as numbers of kubeapps.
const INSTALLED: i32 = 1;
const FAILED: i32 = 3;
const PENDING: i32 = 4;

pub async fn installed(
    state: Arc<State>,
    guard: Guard,
    q: InstalledRequest,
) -> Result<InstalledResponse, ApiError> {
    let context = q.context.unwrap_or_default();
    let page = q.pagination_options.unwrap_or_default();
    let size = usize::try_from(page.page_size).ok();
    let size = size
        .filter(|size| *size > 0)
        .map_or(MOST, |size| size.min(MOST));
    let after = match &*page.page_token {
        "" => None,
        token => {
            let wrong = || ApiError::invalid(format!("{token:?} is no page token"));
            Some(token.split_once('/').ok_or_else(wrong)?)
        }
    };
    state.reach.ready().await;
    // Sorted by namespace and name.
    let is_wanted = |app: &Application| {
        let of = &app.metadata;
        let is_next = after.is_none_or(|after| (&*of.namespace, &*of.name) > after);
        is_next && is_in(app, &context) && !Chosen::all(app).is_empty()
    };
    let (mut apps, _) = state.reach.apps(&guard, is_wanted);
    let has_more = apps.len() > size;
    apps.truncate(size);
    let last = apps.last().filter(|_| has_more);
    let next = last.map(|app| format!("{}/{}", app.metadata.namespace, app.metadata.name));
    let mut summaries = Vec::with_capacity(apps.len());
    for app in &apps {
        // An Application with several charts is one package: that of the first.
        let Some(chosen) = Chosen::all(app).into_iter().next() else {
            continue;
        };
        let known = state.reach.chart_of(app, chosen.source).await?;
        summaries.push(summary(&chosen, known.as_ref().map(|known| &known.origin)));
    }
    Ok(InstalledResponse {
        installed_package_summaries: summaries,
        next_page_token: next.unwrap_or_default(),
    })
}

/// One package. What the caller may not see looks like what is not there.
pub async fn installed_detail(
    state: Arc<State>,
    guard: Guard,
    q: InstalledPackageRequest,
) -> Result<InstalledDetailResponse, ApiError> {
    let app = package(&state, &guard, q.installed_package_ref).await?;
    let chosen = Chosen::all(&app).into_iter().next();
    let chosen = chosen.ok_or_else(ApiError::denied)?;
    let known = state.reach.chart_of(&app, chosen.source).await?;
    let origin = known.as_ref().map(|known| &known.origin);
    let summary = summary(&chosen, origin);
    let available = origin.map(|origin| reference(&origin.repo.namespace, &origin.chart.id));
    let source = chosen.source.clone();
    let values = read_charts(move || applied(&source)).await?;
    let detail = InstalledDetail {
        installed_package_ref: summary.installed_package_ref,
        pkg_version_reference: summary.pkg_version_reference,
        name: summary.name,
        current_version: summary.current_version,
        values_applied: Value::Object(values).to_string(),
        status: summary.status,
        available_package_ref: available,
        latest_version: summary.latest_version,
        ..InstalledDetail::default()
    };
    Ok(InstalledDetailResponse {
        installed_package_detail: Some(detail),
    })
}

/// The resources of one package, as the last comparison found them.
pub async fn installed_resources(
    state: Arc<State>,
    guard: Guard,
    q: InstalledPackageRequest,
) -> Result<ResourceRefsResponse, ApiError> {
    let app = package(&state, &guard, q.installed_package_ref).await?;
    let resources = app.status.resources.iter().map(|of| ResourceRef {
        api_version: match &*of.group {
            "" => of.version.clone(),
            group => format!("{group}/{}", of.version),
        },
        kind: of.kind.clone(),
        name: of.name.clone(),
        namespace: of.namespace.clone(),
    });
    Ok(ResourceRefsResponse {
        context: Some(context(&app)),
        resource_refs: resources.collect(),
    })
}

/// The Application of a package, as it is now.
async fn package(
    state: &State,
    guard: &Guard,
    wanted: Option<Reference>,
) -> Result<Authorized<Application, Get>, ApiError> {
    let wanted = wanted.unwrap_or_default();
    let (context, name) = (wanted.context.unwrap_or_default(), wanted.identifier);
    state.reach.ready().await;
    // Those of other namespaces may have the same name, and be installed elsewhere.
    let ours = &state.options.namespace;
    let is_other = |app: &Application| app.metadata.name == name && app.metadata.namespace != *ours;
    let (others, _) = state.reach.apps(guard, is_other);
    let mut places = vec![ours.clone()];
    places.extend(others.iter().map(|app| app.metadata.namespace.clone()));
    for place in places {
        match find::<Get>(&state.reach, guard, Some(&place), &name, None).await {
            Ok((app, _)) if is_in(&app, &context) && !Chosen::all(&app).is_empty() => {
                return Ok(app);
            }
            Ok(_) => {}
            Err(e) if e.code == Code::PermissionDenied => {}
            Err(e) => return Err(e),
        }
    }
    Err(ApiError::denied())
}

fn context(app: &Application) -> Context {
    Context {
        cluster: cluster(app).to_owned(),
        namespace: app.spec.destination.namespace.clone(),
    }
}

/// The cluster that an Application is deployed to, as packages name it.
fn cluster(app: &Application) -> &str {
    let of = &app.spec.destination;
    match (of.name.as_str(), of.server.as_str()) {
        (OURS, _) | ("", IN_CLUSTER) => CLUSTER,
        ("", server) => server,
        (name, _) => name,
    }
}

fn is_in(app: &Application, context: &Context) -> bool {
    let is = |asked: &str, has: &str| asked.is_empty() || asked == has;
    is(&context.cluster, cluster(app)) && is(&context.namespace, &app.spec.destination.namespace)
}

/// `origin`: its chart, where the catalogue has it.
fn summary(chosen: &Chosen<'_>, origin: Option<&Origin>) -> InstalledSummary {
    let app = chosen.app;
    let version = chosen.version().unwrap_or_default();
    let known = origin.and_then(|origin| origin.installed(version));
    let newest = origin.and_then(|origin| origin.version(&origin.newer(version)?));
    let only_its_number = || PackageAppVersion {
        pkg_version: version.to_owned(),
        ..PackageAppVersion::default()
    };
    let chart = origin.map(|origin| &origin.chart);
    let icon = chart.and_then(|chart| chart.raw_icon.as_deref());
    InstalledSummary {
        installed_package_ref: Some(Reference {
            context: Some(context(app)),
            identifier: app.metadata.name.clone(),
            plugin: Some(plugin()),
        }),
        name: app.metadata.name.clone(),
        pkg_version_reference: Some(VersionReference {
            version: chosen.source.target_revision.clone(),
        }),
        current_version: Some(known.map_or_else(only_its_number, version_of)),
        icon_url: icon_url(icon.unwrap_or_default()),
        pkg_display_name: chart
            .map_or(&chosen.source.chart, |chart| &chart.name)
            .clone(),
        short_description: chart.map_or(String::new(), |chart| chart.description.clone()),
        latest_version: newest.or(known).map(version_of),
        status: Some(status(app)),
        ..InstalledSummary::default()
    }
}

fn status(app: &Application) -> InstalledStatus {
    let (sync, health) = (&*app.status.sync.status, &*app.status.health.status);
    let operation = app.status.operation_state.as_ref();
    let phase = operation.map_or("", |operation| &*operation.phase);
    let is_going = app.metadata.deletion_timestamp.is_some();
    let reason = match (sync, health) {
        _ if is_going => PENDING,
        ("Synced", "Healthy") => INSTALLED,
        (_, "Degraded") => FAILED,
        _ if matches!(phase, "Failed" | "Error") => FAILED,
        _ => PENDING,
    };
    let words = [sync, health].into_iter().filter(|word| !word.is_empty());
    InstalledStatus {
        ready: reason == INSTALLED,
        reason,
        user_reason: words.collect::<Vec<_>>().join(", "),
    }
}
