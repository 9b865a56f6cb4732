//! What is installed: the Applications of charts, as kubeapps lists releases. Main function:
//! [`installed`].
//!
//! The namespace of a package is the one that it is installed to, and its identifier the name of
//! the Application.

use super::{CLUSTER, icon_url, plugin, version_of};
use crate::{ApiError, access::Guard, server::State};
use std::sync::Arc;
use tiphys_api::{
    Application,
    constants::IN_CLUSTER,
    rpc::kubeapps::{
        Context, InstalledRequest, InstalledResponse, InstalledStatus, InstalledSummary,
        PackageAppVersion, Reference, VersionReference,
    },
};
use tiphys_catalog::release::{Chosen, Origin};

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
    let (mut apps, _) = state.reach.apps(&guard);
    apps.retain(|app| {
        let of = &app.metadata;
        let is_next = after.is_none_or(|after| (&*of.namespace, &*of.name) > after);
        is_next && is_in(app, &context) && !Chosen::all(app).is_empty()
    });
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
            context: Some(Context {
                cluster: cluster(app).to_owned(),
                namespace: app.spec.destination.namespace.clone(),
            }),
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
