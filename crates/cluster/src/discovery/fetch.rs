//! Discovers a cluster's kinds: one aggregated response if the server supports it, else group by
//! group.
//!
//! Main function: [`fetch`]. A group that fails keeps its previously known kinds, with the error.

use super::{
    ALL_GROUPS, Kind, Kinds,
    wire::{GroupDiscovery, OldGroup, ResourceList, RootAnswer},
};
use crate::{connect::Cluster, error::Error, request::Call};
use futures::{StreamExt, stream};
use std::time::Duration;
use tiphys_apimachinery::Gvr;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const FETCHES: usize = 16;
/// How often a request is tried that is refused as unauthorized: a token that was just renewed may
/// not be known to every server yet.
const UNAUTHORIZED_ATTEMPTS: u32 = 5;
const UNAUTHORIZED_WAIT: Duration = Duration::from_millis(10);

/// One request to `/api` and one to `/apis`: aggregated if the server supports it, else group by
/// group.
pub(super) async fn fetch(cluster: &Cluster, old: &Kinds) -> Result<Kinds, Error> {
    let (core, groups) = tokio::join!(
        fetch_root(cluster, "/api", old),
        fetch_root(cluster, "/apis", old)
    );
    let mut failures = Vec::new();
    let mut all = match core {
        Ok((kinds, bad)) => {
            failures.extend(bad);
            kinds
        }
        // Without the core group nothing works, so its error is the result.
        Err(e) => return Err(e),
    };
    match groups {
        Ok((kinds, bad)) => {
            all.extend(kinds);
            failures.extend(bad);
        }
        Err(e) => {
            failures.push((ALL_GROUPS.to_owned(), e.to_string()));
            all.extend(
                old.all()
                    .iter()
                    .filter(|k| !k.gvk.group.is_empty())
                    .map(|k| Kind::clone(k)),
            );
        }
    }
    Ok(Kinds::new(all, failures))
}

/// Sends a request, again if it is refused as unauthorized; any other error is final.
async fn ask(cluster: &Cluster, call: &Call) -> Result<bytes::Bytes, Error> {
    let mut wait = UNAUTHORIZED_WAIT;
    for _ in 1..UNAUTHORIZED_ATTEMPTS {
        match cluster.http().send(call).await {
            Err(e) if e.code() == Some(401) => tokio::time::sleep(wait).await,
            answer => return answer,
        }
        wait *= 5;
    }
    cluster.http().send(call).await
}

type Found = (Vec<Kind>, Vec<(String, String)>);

async fn fetch_root(cluster: &Cluster, root: &'static str, old: &Kinds) -> Result<Found, Error> {
    let body = ask(cluster, &Call::get(root).accept(AGGREGATED)).await?;
    let answer: RootAnswer =
        serde_json::from_slice(&body).map_err(|e| Error::decode(format!("GET {root}"), e))?;
    match answer.kind.as_str() {
        "APIGroupDiscoveryList" => Ok(read_aggregated(answer.items, old)),
        "APIVersions" => {
            fetch_versions(
                cluster,
                vec![(
                    String::new(),
                    answer.versions.into_iter().map(|v| v.name()).collect(),
                )],
                old,
            )
            .await
        }
        "APIGroupList" => {
            fetch_versions(
                cluster,
                answer.groups.into_iter().map(OldGroup::ordered).collect(),
                old,
            )
            .await
        }
        other => Err(Error::decode(
            format!("GET {root}"),
            format!("unexpected kind {other:?}"),
        )),
    }
}

fn read_aggregated(items: Vec<GroupDiscovery>, old: &Kinds) -> Found {
    let (mut kinds, mut failures) = (Vec::new(), Vec::new());
    for group in items {
        let name = group.metadata.name;
        let stale = group.versions.iter().any(|v| v.freshness == "Stale");
        if stale {
            failures.push((
                name.clone(),
                "the aggregated API server does not answer".to_owned(),
            ));
        }
        let before = kinds.len();
        for version in group.versions {
            kinds.extend(
                version
                    .resources
                    .into_iter()
                    .filter_map(|r| r.into_kind(&name, &version.version)),
            );
        }
        if stale && kinds.len() == before {
            kinds.extend(old.group(&name));
        }
    }
    (kinds, failures)
}

/// The older protocol: one request per group and version.
async fn fetch_versions(
    cluster: &Cluster,
    groups: Vec<(String, Vec<String>)>,
    old: &Kinds,
) -> Result<Found, Error> {
    let wanted: Vec<(String, String)> = groups
        .into_iter()
        .flat_map(|(g, versions)| versions.into_iter().map(move |v| (g.clone(), v)))
        .collect();
    let fetches = wanted.into_iter().map(|(group, version)| async move {
        let path = Gvr::new(&group, &version, "").root_path();
        let answer = ask(cluster, &Call::get(path.clone())).await;
        let decode = |e| Error::decode(format!("GET {path}"), e);
        (
            (group, version),
            answer.and_then(|body| serde_json::from_slice::<ResourceList>(&body).map_err(decode)),
        )
    });
    // The stream keeps the order, which is the order of preference.
    let answers: Vec<_> = stream::iter(fetches).buffered(FETCHES).collect().await;
    let (mut kinds, mut failures) = (Vec::new(), Vec::new());
    for ((group, version), answer) in answers {
        match answer {
            Ok(list) => kinds.extend(list.into_kinds(&group, &version)),
            Err(e) => {
                failures.push((
                    if group.is_empty() {
                        version.clone()
                    } else {
                        format!("{group}/{version}")
                    },
                    e.to_string(),
                ));
                kinds.extend(old.group(&group).filter(|k| k.gvk.version == version));
            }
        }
    }
    if kinds.is_empty() && !failures.is_empty() {
        let (what, reason) = failures.remove(0);
        return Err(Error::transport(format!("discovery of {what}"), reason));
    }
    Ok((kinds, failures))
}
