//! Replicas of a Deployment that share its shards through Argo CD's ConfigMap, on the embedded API
//! server in paused time.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_cluster::{
    Cluster,
    leases::{
        DURATION, LeaseOptions, Leases,
        dynamic::{DynamicOptions, follow},
    },
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MAP: &str = "/api/v1/namespaces/default/configmaps/argocd-app-controller-shard-cm";
const HEARTBEAT: Duration = Duration::from_secs(10);

struct Ground {
    cluster: Cluster,
    kube: EmbeddedKube,
    began: (Instant, Timestamp),
}

/// A replica; it runs as long as this value exists.
struct Replica(watch::Receiver<Arc<Leases>>);

impl Ground {
    async fn new(replicas: usize) -> Self {
        let kube = EmbeddedKube::start(Options {
            controllers: false,
            ..Options::default()
        })
        .await
        .expect("the embedded server starts");
        let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc")
            .await
            .expect("it answers");
        let container = json!({"name": "c", "image": "i"});
        let labels = json!({"app": "c"});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "controller"}, "spec": spec});
        let call = Call::new(Method::POST, DEPLOYMENTS).with_body(JSON, deployment.to_string());
        cluster.http().json::<Value>(&call).await.expect("created");
        Self {
            cluster,
            kube,
            began: (Instant::now(), Timestamp::now()),
        }
    }

    async fn follow(&self, name: &str, deployment: &str) -> Result<Replica, tiphys_cluster::Error> {
        let (began, holder) = (self.began, name.to_owned());
        let leases = move |count: usize, shard: Option<usize>| LeaseOptions {
            namespace: "default".to_owned(),
            group: "test".to_owned(),
            identity: holder.clone(),
            count,
            partition: format!("{count}.legacy"),
            preferred: shard,
            pinned: true,
            duration: DURATION,
            clock: Arc::new(move || {
                began.1 + SignedDuration::try_from(began.0.elapsed()).expect("a short time")
            }),
            balance: None,
        };
        let options = DynamicOptions {
            deployment: deployment.to_owned(),
            name: name.to_owned(),
            configured: None,
            heartbeat: HEARTBEAT,
            leases: Arc::new(leases),
        };
        follow(&self.cluster, options).await.map(Replica)
    }

    async fn replica(&self, name: &str) -> Replica {
        self.follow(name, "controller")
            .await
            .unwrap_or_else(|e| panic!("{e}"))
    }

    async fn scale(&self, replicas: usize) {
        let patch = json!({"spec": {"replicas": replicas}}).to_string();
        let call = Call::new(Method::PATCH, format!("{DEPLOYMENTS}/controller"))
            .with_body(MERGE_PATCH, patch);
        self.cluster
            .http()
            .json::<Value>(&call)
            .await
            .expect("scaled");
    }

    /// The claimants of the shards.
    async fn claimed(&self) -> Vec<String> {
        let map: Value = self
            .cluster
            .http()
            .json(&Call::get(MAP))
            .await
            .expect("it is there");
        let entries: Value = serde_json::from_str(
            map["data"]["shardControllerMapping"]
                .as_str()
                .expect("text"),
        )
        .expect("JSON");
        entries
            .as_array()
            .expect("a list")
            .iter()
            .map(|e| e["ControllerName"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

impl Replica {
    /// The shards it holds, and their total number.
    fn holds(&self) -> (Vec<usize>, usize) {
        let leases = self.0.borrow().clone();
        (
            (0..leases.count())
                .filter(|shard| leases.fence(*shard).is_some())
                .collect(),
            leases.count(),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn c99_replicas_share_what_the_deployment_has_and_what_it_comes_to_have() {
    let ground = Ground::new(2).await;
    let (one, two) = (ground.replica("one").await, ground.replica("two").await);
    let third = ground.replica("three").await;
    sleep(2 * HEARTBEAT).await;
    assert_eq!(ground.claimed().await, ["one", "two"]);
    assert_eq!(
        (one.holds(), two.holds(), third.holds()),
        ((vec![0], 2), (vec![1], 2), (vec![], 2)),
        "the third waits"
    );

    ground.scale(3).await;
    sleep(6 * HEARTBEAT).await;
    assert_eq!(ground.claimed().await, ["one", "two", "three"]);
    assert_eq!(
        (one.holds(), two.holds(), third.holds()),
        ((vec![0], 3), (vec![1], 3), (vec![2], 3))
    );

    // A dead replica is replaced after three missed heartbeats, once its lease has expired.
    two.0.borrow().clone().release().await;
    drop(two);
    let next = ground.replica("next").await;
    assert_eq!(next.holds(), (vec![], 3));
    sleep(6 * HEARTBEAT).await;
    assert_eq!(
        (ground.claimed().await, next.holds()),
        (
            vec!["one".to_owned(), "next".into(), "three".into()],
            (vec![1], 3)
        )
    );

    ground.scale(1).await;
    sleep(6 * HEARTBEAT).await;
    let holders = [&one, &third, &next].map(|r| r.holds().0.len());
    assert_eq!(
        (holders.iter().sum::<usize>(), ground.claimed().await.len()),
        (1, 1),
        "one does it all: {holders:?}"
    );
    ground.kube.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_argo_cd_keeps_its_shard() {
    let ground = Ground::new(2).await;
    let time = (Timestamp::now() + SignedDuration::from_secs(3600))
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let entries = json!([{"ShardNumber": 0, "ControllerName": "genuine", "HeartbeatTime": time}, {"ShardNumber": 1, "ControllerName": "", "HeartbeatTime": null}]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-app-controller-shard-cm"}, "data": {"shardControllerMapping": entries.to_string()}});
    let call = Call::new(Method::POST, "/api/v1/namespaces/default/configmaps")
        .with_body(JSON, map.to_string());
    ground
        .cluster
        .http()
        .json::<Value>(&call)
        .await
        .expect("created");
    let ours = ground.replica("ours").await;
    sleep(6 * HEARTBEAT).await;
    assert_eq!(
        (ground.claimed().await, ours.holds()),
        (vec!["genuine".to_owned(), "ours".into()], (vec![1], 2))
    );
    let error = ground
        .follow("ours", "nobody")
        .await
        .err()
        .expect("there is no such Deployment");
    assert!(error.is_not_found(), "{error}");
    ground.kube.shutdown().await;
}
