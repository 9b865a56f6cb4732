//! AppRepositories that are made and removed through the API: what is written, and what an attempt
//! leaves that fails or dies.

use crate::apprepository_cluster::{create, start};
use serde_json::{Value, json};
use tiphys_catalog::{CatalogError, RepoId, apprepository::NewRepository};
use tiphys_cluster::{Cluster, request::Call};
use tiphys_controllers::apprepository::in_process::{self, InProcessError};

const REPOSITORY: &str = "/apis/kubeapps.com/v1alpha1/namespaces/argocd/apprepositories/team";
const SECRETS: &str = "/api/v1/namespaces/argocd/secrets";

fn wanted(password: &str) -> NewRepository {
    NewRepository {
        id: RepoId::new("argocd", "team"),
        url: "http://127.0.0.1:9/charts".to_owned(),
        username: "u".to_owned(),
        password: password.into(),
        ..NewRepository::default()
    }
}

async fn get(cluster: &Cluster, path: &str) -> Option<Value> {
    match cluster.http().json(&Call::get(path)).await {
        Ok(found) => Some(found),
        Err(e) if e.is_not_found() => None,
        Err(e) => panic!("{path}: {e}"),
    }
}

/// What the Secret says, decoded.
async fn header(cluster: &Cluster) -> Option<String> {
    let secret = get(cluster, &format!("{SECRETS}/apprepo-team")).await?;
    secret["data"]["authorizationHeader"]
        .as_str()
        .map(str::to_owned)
}

fn exists(made: Result<(), InProcessError>) -> String {
    match made {
        Err(InProcessError::Catalog(CatalogError::Exists(what))) => what,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_goes_with_its_repository() {
    let (_kube, cluster) = start(&["argocd"]).await;
    // A definition is served a moment after it was created.
    let other = json!({"apiVersion": "kubeapps.com/v1alpha1", "kind": "AppRepository",
        "metadata": {"name": "other"}, "spec": {"type": "helm", "url": "http://127.0.0.1:9/x"}});
    let all = REPOSITORY.trim_end_matches("/team");
    create(&cluster, all, &other).await;

    in_process::create(&cluster, &wanted("first"))
        .await
        .expect("made");
    let made = get(&cluster, REPOSITORY).await.expect("it is there");
    let reference = &made["spec"]["auth"]["header"]["secretKeyRef"];
    assert_eq!(
        *reference,
        json!({"name": "apprepo-team", "key": "authorizationHeader"})
    );
    let secret = get(&cluster, &format!("{SECRETS}/apprepo-team")).await;
    let owners = secret.expect("it is there")["metadata"]["ownerReferences"].clone();
    assert_eq!(owners[0]["uid"], made["metadata"]["uid"]);
    let first = header(&cluster).await.expect("a header");

    // Another one of the same name changes nothing.
    let what = exists(in_process::create(&cluster, &wanted("second")).await);
    assert_eq!(what, "AppRepository argocd/team");
    assert_eq!(header(&cluster).await, Some(first));

    let id = RepoId::new("argocd", "team");
    in_process::delete(&cluster, &id).await.expect("deleted");
    assert!(get(&cluster, REPOSITORY).await.is_none());
    let gone = in_process::delete(&cluster, &id).await;
    assert!(matches!(
        gone,
        Err(InProcessError::Catalog(CatalogError::NotFound(_)))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_somebody_else_is_not_touched() {
    let (_kube, cluster) = start(&["argocd"]).await;
    let secret = |annotation: &str| {
        json!({"metadata": {"name": "apprepo-team", "annotations": {annotation: "team"}},
            "stringData": {"authorizationHeader": "theirs"}})
    };
    create(&cluster, SECRETS, &secret("example.com/a")).await;
    let before = header(&cluster).await;
    let what = exists(in_process::create(&cluster, &wanted("p")).await);
    assert_eq!(what, "Secret argocd/apprepo-team");
    assert_eq!(header(&cluster).await, before);
    assert!(get(&cluster, REPOSITORY).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_attempt_left_that_died_is_taken_over() {
    let (_kube, cluster) = start(&["argocd"]).await;
    let left = json!({"metadata": {"name": "apprepo-team",
        "annotations": {"catalog.tiphys.dev/repository": "team"}},
        "stringData": {"authorizationHeader": "old"}});
    create(&cluster, SECRETS, &left).await;
    let old = header(&cluster).await;
    in_process::create(&cluster, &wanted("new"))
        .await
        .expect("made");
    assert_ne!(header(&cluster).await, old);
    assert!(get(&cluster, REPOSITORY).await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_that_is_refused_leaves_no_secret() {
    // Without the definition there is nowhere to write it to.
    let (_kube, cluster) = start(&["argocd"]).await;
    let nowhere = NewRepository {
        id: RepoId::new("gone", "team"),
        ..wanted("p")
    };
    let refused = in_process::create(&cluster, &nowhere).await;
    assert!(
        matches!(refused, Err(InProcessError::Cluster(_))),
        "{refused:?}"
    );
    let left = get(&cluster, "/api/v1/namespaces/gone/secrets/apprepo-team").await;
    assert!(left.is_none());
}
