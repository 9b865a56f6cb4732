//! Clusters described by Secrets, on an embedded API server that is its own destination: when a
//! connection is kept, and when it is replaced.

use crate::common;

use common::{DEFINITIONS, definitions};
use http::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_cluster::{
    Cluster, Records, RecordsOptions,
    clusters::{Clusters, LiveCluster, OpenError},
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_embedded_kube::{
    EmbeddedKube, Options,
    auth::{TokenUser, UserInfo},
};
use tiphys_engine::spec::Destination;
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, timeout},
};

const TOKEN: &str = "a-token-of-the-test";
/// Another token, and its user.
const READER: &str = "reader";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/argocd/secrets";
const PATIENCE: Duration = Duration::from_secs(30);

struct Ground {
    _kube: EmbeddedKube,
    own: Cluster,
    clusters: Clusters,
    destination: Destination,
}

impl Ground {
    async fn new() -> Self {
        let reader = TokenUser {
            token: READER.to_owned(),
            info: UserInfo::new(READER, &[]),
        };
        let options = Options {
            admin_token: Some(TOKEN.to_owned()),
            users: vec![reader],
            ..Options::default()
        };
        let kube = EmbeddedKube::start(options).await.expect("it starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = format!(
            "https://127.0.0.1:{}",
            listener.local_addr().expect("bound").port()
        );
        kube.serve(listener);
        let own = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc")
            .await
            .expect("it answers");
        for crd in definitions() {
            create(&own, DEFINITIONS, &crd).await;
        }
        create(
            &own,
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}),
        )
        .await;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "labels": {"app.kubernetes.io/part-of": "argocd"}}});
        create(&own, "/api/v1/namespaces/argocd/configmaps", &map).await;
        let data = json!({"name": "other", "server": server, "config": config(TOKEN)});
        let metadata =
            json!({"name": "other", "labels": {"argocd.argoproj.io/secret-type": "cluster"}});
        create(&own, SECRETS, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})).await;
        let records = Records::start(own.clone(), RecordsOptions::new("argocd"));
        records.wait_ready().await.expect("the records can be read");
        let clusters = Clusters::new(own.clone(), records);
        Self {
            _kube: kube,
            own,
            clusters,
            destination: Destination {
                server,
                name: "other".into(),
                ..Destination::default()
            },
        }
    }

    async fn patch(&self, path: &str, patch: &Value) {
        let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch.to_string());
        self.own.http().send(&call).await.expect("patched");
    }

    async fn secret(&self, patch: &Value) {
        self.patch(&format!("{SECRETS}/other"), patch).await;
    }

    async fn get(&self) -> Arc<LiveCluster> {
        self.clusters
            .get(&self.destination)
            .await
            .expect("it is open")
    }

    /// Waits until there is no such cluster: no Secret has its URL, or its token is wrong.
    async fn is_none(&self) {
        let gone = async {
            while self.clusters.get(&self.destination).await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, gone).await.expect("it is noticed");
    }

    /// The connection that replaces this one.
    async fn after(&self, old: &Arc<LiveCluster>) -> Arc<LiveCluster> {
        let began = Instant::now();
        loop {
            if let Ok(now) = self.clusters.get(&self.destination).await
                && !Arc::ptr_eq(&now, old)
            {
                timeout(PATIENCE, old.closed())
                    .await
                    .expect("who follows the old one is told");
                return now;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "the old connection is still in use"
            );
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn config(token: &str) -> String {
    json!({"bearerToken": token, "tlsClientConfig": {"insecure": true}}).to_string()
}

async fn create(cluster: &Cluster, path: &str, object: &Value) {
    let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
    cluster
        .http()
        .json::<Value>(&call)
        .await
        .unwrap_or_else(|e| panic!("{path}: {e}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn c102_what_a_secret_says_of_the_connection_makes_it_anew() {
    let ground = Ground::new().await;
    let first = ground.get().await;
    assert!(
        Arc::ptr_eq(&first, &ground.get().await),
        "one connection serves all"
    );

    // Changes that the connection does not depend on; a later change proves that the settings have
    // arrived.
    ground.secret(&json!({"metadata": {"labels": {"team": "a"}}, "stringData": {"project": "default", "name": "renamed"}})).await;
    sleep(Duration::from_millis(500)).await;
    assert!(
        Arc::ptr_eq(&first, &ground.get().await),
        "labels, project and name do not matter"
    );

    ground
        .secret(&json!({"stringData": {"namespaces": "default"}}))
        .await;
    let second = ground.after(&first).await;
    ground
        .secret(&json!({"stringData": {"clusterResources": "true"}}))
        .await;
    let second = ground.after(&second).await;

    ground
        .secret(&json!({"stringData": {"config": config("another")}}))
        .await;
    ground.is_none().await;
    assert!(timeout(PATIENCE, second.closed()).await.is_ok());

    // It is retried immediately once it is fixed, not after the delay that follows a failure.
    ground
        .secret(&json!({"stringData": {"config": config(TOKEN)}}))
        .await;
    let third = ground.after(&second).await;

    ground
        .patch(
            "/api/v1/namespaces/argocd/configmaps/argocd-cm",
            &json!({"data": {"resource.exclusions": "- kinds: [Pod]\n"}}),
        )
        .await;
    ground.after(&third).await;

    // Another URL, and back; then the Secret is deleted.
    let last = ground.get().await;
    ground
        .secret(&json!({"stringData": {"server": "https://127.0.0.1:1"}}))
        .await;
    ground.is_none().await;
    assert!(timeout(PATIENCE, last.closed()).await.is_ok());
    ground
        .secret(&json!({"stringData": {"server": ground.destination.server}}))
        .await;
    ground.after(&last).await;
    let delete = Call::new(Method::DELETE, format!("{SECRETS}/other"));
    ground.own.http().send(&delete).await.expect("deleted");
    ground.is_none().await;
    let refused = ground.clusters.get(&ground.destination).await;
    let refused = refused.err().expect("there is no Secret");
    assert!(matches!(&refused, OpenError::NoSecret(_)), "{refused}");
    let server = &ground.destination.server;
    assert_eq!(
        refused.to_string(),
        format!("cluster {server} has no Secret")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_says_which_kinds_are_missing_from_resource_trees() {
    let ground = Ground::new().await;
    let message = |cluster: &LiveCluster| {
        cluster
            .info(jiff::Timestamp::now())
            .connection_state
            .message
    };
    let first = ground.get().await;
    assert_eq!(message(&first), "", "all can be read");
    let rule = json!({"apiGroups": [""], "resources": ["*"], "verbs": ["*"]});
    let api = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": READER}, "rules": [rule]});
    create(&ground.own, &format!("{ROLES}/clusterroles"), &role).await;
    let subject = json!({"apiGroup": api, "kind": "User", "name": READER});
    let role = json!({"apiGroup": api, "kind": "ClusterRole", "name": READER});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": READER}, "subjects": [subject], "roleRef": role});
    create(
        &ground.own,
        &format!("{ROLES}/clusterrolebindings"),
        &binding,
    )
    .await;
    ground
        .secret(&json!({"stringData": {"config": config(READER)}}))
        .await;
    let second = ground.after(&first).await;
    let text = message(&second);
    assert!(
        text.starts_with("Resource trees are incomplete: failed to load state of resource "),
        "{text}"
    );
    assert!(
        text.contains("forbidden") && text.contains(" more"),
        "{text}"
    );
    let info = second.info(jiff::Timestamp::now());
    assert_eq!(
        info.connection_state.status, "Successful",
        "what can be read can be deployed"
    );
}

#[tokio::test]
async fn a_secret_of_the_clusters_own_gives_it_a_name_and_no_credentials() {
    let ground = Ground::new().await;
    let own = "https://kubernetes.default.svc";
    let destination = Destination {
        server: own.into(),
        name: "in-cluster".into(),
        ..Destination::default()
    };
    let before = ground
        .clusters
        .get(&destination)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    let data = json!({"name": "in-cluster", "server": own, "namespaces": "default", "config": "{\"tlsClientConfig\":{\"insecure\":false}}"});
    let metadata = json!({"name": "own", "labels": {"argocd.argoproj.io/secret-type": "cluster"}});
    create(
        &ground.own,
        SECRETS,
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}),
    )
    .await;
    let began = Instant::now();
    loop {
        let now = ground
            .clusters
            .get(&destination)
            .await
            .unwrap_or_else(|e| panic!("{e}"));
        if !Arc::ptr_eq(&now, &before) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "the Secret is not seen");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_asks_for_it_gets_the_version_of_its_cluster() {
    let ground = Ground::new().await;
    let first = ground.get().await;
    let labels = async || {
        let call = Call::get(format!("{SECRETS}/other"));
        let secret: Value = ground.own.http().json(&call).await.expect("readable");
        secret["metadata"]["labels"].clone()
    };
    let version = "argocd.argoproj.io/kubernetes-version";
    let request = json!({"argocd.argoproj.io/auto-label-cluster-info": "true"});
    ground
        .secret(&json!({"metadata": {"labels": request}}))
        .await;
    let began = Instant::now();
    while labels().await[version].is_null() {
        assert!(began.elapsed() < PATIENCE, "there is no label");
        // The Secret is looked at when the cluster is needed.
        ground.get().await;
        sleep(Duration::from_millis(20)).await;
    }
    let known = first.info(jiff::Timestamp::now()).server_version;
    assert_eq!(labels().await[version], known.as_str());
    assert_eq!(labels().await["argocd.argoproj.io/secret-type"], "cluster");
    // A label is no reason to connect again.
    assert!(Arc::ptr_eq(&first, &ground.get().await));
}
