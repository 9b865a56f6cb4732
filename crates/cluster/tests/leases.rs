//! Leases on the embedded API server, in paused time: replicas that die, are disconnected, resume
//! late, come back and use different partitions.

use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_cluster::{
    Cluster, Error,
    leases::{Balance, DURATION, LeaseOptions, Leases, Loads, Weights},
    request::{Call, JSON},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tokio::{
    sync::watch::Sender,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// A replica with its own connection that can be cut: its requests then wait, and continue when the
/// connection is restored.
struct Replica {
    name: String,
    cluster: Cluster,
    leases: Arc<Leases>,
    cut: Sender<bool>,
}

struct Ground {
    kube: EmbeddedKube,
    /// How many objects were to be created.
    posts: Arc<AtomicUsize>,
}

impl Ground {
    async fn new() -> Self {
        let options = Options {
            controllers: false,
            ..Options::default()
        };
        Self {
            kube: EmbeddedKube::start(options)
                .await
                .expect("the embedded server starts"),
            posts: Arc::default(),
        }
    }

    async fn wired(&self) -> (Cluster, Sender<bool>) {
        let (cut, state) = tokio::sync::watch::channel(false);
        let (router, posts) = (self.kube.router(), Arc::clone(&self.posts));
        let service = tower::service_fn(move |request: Request<Body>| {
            if request.method() == Method::POST {
                posts.fetch_add(1, Ordering::Relaxed);
            }
            let (router, mut state) = (router.clone(), state.clone());
            async move {
                let _ = state.wait_for(|cut| !cut).await;
                router.oneshot(request).await
            }
        });
        (
            Cluster::connect_in_process(service, "https://kubernetes.default.svc")
                .await
                .expect("it answers"),
            cut,
        )
    }

    async fn replica(
        &self,
        name: &str,
        count: usize,
        change: impl FnOnce(&mut LeaseOptions),
    ) -> Replica {
        let (cluster, cut) = self.wired().await;
        let mut options = LeaseOptions {
            namespace: "default".to_owned(),
            group: "test".to_owned(),
            identity: name.to_owned(),
            count,
            partition: format!("{count}.legacy"),
            preferred: None,
            pinned: false,
            duration: DURATION,
            clock: Arc::new(Timestamp::now),
            balance: None,
        };
        change(&mut options);
        Replica {
            name: name.to_owned(),
            leases: Arc::new(Leases::start(&cluster, options)),
            cluster,
            cut,
        }
    }
}

impl Replica {
    fn holds(&self) -> Vec<usize> {
        (0..self.leases.count())
            .filter(|shard| self.leases.fence(*shard).is_some())
            .collect()
    }

    /// Waits until it holds these; returns how long that took.
    async fn until(&self, wanted: &[usize]) -> Duration {
        let began = Instant::now();
        let reached = async {
            while self.holds() != wanted {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(120), reached)
            .await
            .unwrap_or_else(|_| panic!("{} holds {:?}, not {wanted:?}", self.name, self.holds()));
        began.elapsed()
    }

    async fn create(&self, name: &str) -> Result<(), Error> {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        self.cluster
            .http()
            .send(&Call::new(Method::POST, MAPS).with_body(JSON, map.to_string()))
            .await
            .map(drop)
    }
}

/// Checks constantly that no shard is held twice; unless `share` is set, also that only one replica
/// has any.
fn watch(replicas: &[&Replica], share: bool) -> JoinHandle<()> {
    let replicas: Vec<(String, Weak<Leases>)> = replicas
        .iter()
        .map(|r| (r.name.clone(), Arc::downgrade(&r.leases)))
        .collect();
    tokio::spawn(async move {
        loop {
            let held = replicas
                .iter()
                .filter_map(|(name, leases)| Some((name, leases.upgrade()?)));
            let held = held.flat_map(|(name, l)| {
                (0..l.count())
                    .filter(move |n| l.fence(*n).is_some())
                    .map(move |n| (n, name))
            });
            let mut seen = BTreeMap::new();
            for (shard, name) in held {
                let before = seen.insert(if share { shard } else { 0 }, name);
                assert!(
                    before.is_none_or(|b| b == name),
                    "{shard} is held by {before:?} and {name}"
                );
            }
            sleep(Duration::from_millis(5)).await;
        }
    })
}

/// Fails if a violation was seen.
async fn at_ease(observer: JoinHandle<()>) {
    observer.abort();
    if let Err(e) = observer.await
        && e.is_panic()
    {
        std::panic::resume_unwind(e.into_panic());
    }
}

const NONE: [usize; 0] = [];
const PLAIN: fn(&mut LeaseOptions) = |_| {};

fn secs(least: u64, most: u64) -> std::ops::RangeInclusive<Duration> {
    Duration::from_secs(least)..=Duration::from_secs(most)
}

#[tokio::test(start_paused = true)]
async fn c99_a_free_lease_is_taken_at_once_and_given_back_at_the_end() {
    let ground = Ground::new().await;
    let one = ground.replica("one", 1, PLAIN).await;
    assert!(one.until(&[0]).await < Duration::from_millis(50));
    let two = ground.replica("two", 1, PLAIN).await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(
        (one.holds(), two.holds()),
        (vec![0], vec![]),
        "it is renewed"
    );
    let lease: Value = one
        .cluster
        .http()
        .json(&Call::get(format!("{LEASES}/test-0")))
        .await
        .expect("it is there");
    assert_eq!(lease["spec"]["holderIdentity"], "one");
    one.leases.release().await;
    assert_eq!(one.holds(), NONE);
    assert!(
        two.until(&[0]).await < Duration::from_secs(3),
        "nobody waits for a lease that was given back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_missing_is_tried_less_and_less_often_and_used_when_it_is_there() {
    let ground = Ground::new().await;
    let elsewhere = |o: &mut LeaseOptions| "later".clone_into(&mut o.namespace);
    let one = ground.replica("one", 1, elsewhere).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(one.holds(), NONE);
    let tries = ground.posts.load(Ordering::Relaxed);
    assert!((3..=20).contains(&tries), "{tries} tries in a minute");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}});
    let call = Call::new(Method::POST, "/api/v1/namespaces");
    let call = call.with_body(JSON, namespace.to_string());
    let created = one.cluster.http().send(&call).await;
    created.expect("the namespace is created");
    let took = one.until(&[0]).await;
    assert!(took <= DURATION + Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn c99_a_holder_that_died_is_followed_within_the_lease_time_whatever_the_clocks_say() {
    let ground = Ground::new().await;
    let ahead = |hours: i64| {
        move |o: &mut LeaseOptions| {
            o.clock = Arc::new(move || Timestamp::now() + SignedDuration::from_hours(hours))
        }
    };
    let one = ground.replica("one", 1, ahead(-5)).await;
    one.until(&[0]).await;
    let two = ground.replica("two", 1, ahead(5)).await;
    let observer = watch(&[&one, &two], true);
    sleep(Duration::from_secs(60)).await;
    assert_eq!((one.holds(), two.holds()), (vec![0], vec![]));
    drop(one);
    let took = two.until(&[0]).await;
    assert!(secs(12, 18).contains(&took), "{took:?}");
    let three = ground.replica("three", 1, ahead(-5)).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!((two.holds(), three.holds()), (vec![0], vec![]));
    at_ease(observer).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cut_off_writes_no_more_before_another_does_not_even_late() {
    let ground = Ground::new().await;
    let one = ground.replica("one", 1, PLAIN).await;
    one.until(&[0]).await;
    let two = ground.replica("two", 1, PLAIN).await;
    let observer = watch(&[&one, &two], true);
    let fence = one.leases.fence(0).expect("it holds it");
    fence
        .clone()
        .scope(one.create("early"))
        .await
        .expect("it may");
    one.cut.send_replace(true);
    let began = Instant::now();
    // In flight when the lease ends: it is cancelled, and does not arrive when the connection is
    // restored.
    let late = fence
        .clone()
        .scope(one.create("late"))
        .await
        .expect_err("it may not");
    assert!(matches!(late, Error::Fenced { .. }), "{late}");
    assert!(
        secs(7, 10).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(two.holds(), NONE, "it is a while before another takes it");
    two.until(&[0]).await;
    assert!(
        secs(12, 18).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
    one.cut.send_replace(false);
    let read = Call::get(format!("{MAPS}/early"));
    assert!(
        fence
            .clone()
            .scope(one.cluster.http().send(&read))
            .await
            .is_ok(),
        "it may read"
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        (one.holds(), two.holds()),
        (vec![], vec![0]),
        "who lost it does not take it back"
    );
    let late = one
        .cluster
        .http()
        .send(&Call::get(format!("{MAPS}/late")))
        .await
        .expect_err("it was not sent");
    assert!(late.is_not_found(), "{late}");
    drop(two);
    one.until(&[0]).await;
    assert!(
        !fence.is_open(),
        "what was begun under the lost lease has gaps"
    );
    assert!(matches!(
        fence.scope(one.create("later")).await,
        Err(Error::Fenced { .. })
    ));
    at_ease(observer).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_cut_loses_nothing() {
    let ground = Ground::new().await;
    let one = ground.replica("one", 1, PLAIN).await;
    one.until(&[0]).await;
    let two = ground.replica("two", 1, PLAIN).await;
    let fence = one.leases.fence(0).expect("it holds it");
    for _ in 0..5 {
        one.cut.send_replace(true);
        sleep(Duration::from_secs(4)).await;
        one.cut.send_replace(false);
        sleep(Duration::from_secs(6)).await;
    }
    assert!(fence.is_open());
    assert_eq!(two.holds(), NONE);
}

#[tokio::test(start_paused = true)]
async fn shards_are_shared_and_none_is_left() {
    let ground = Ground::new().await;
    let one = ground.replica("one", 3, PLAIN).await;
    one.until(&[0]).await;
    let two = ground.replica("two", 3, |o| o.preferred = Some(2)).await;
    assert!(two.until(&[2]).await < Duration::from_secs(1));
    sleep(Duration::from_secs(12)).await;
    assert_eq!(
        (one.holds(), two.holds()),
        (vec![0], vec![2]),
        "the third one has time to come"
    );
    sleep(Duration::from_secs(12)).await;
    assert_eq!(
        one.holds().len() + two.holds().len(),
        3,
        "but not longer than a lease lasts"
    );
    let three = ground.replica("three", 3, PLAIN).await;
    let observer = watch(&[&one, &two, &three], true);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(
        [&one, &two, &three].map(|r| r.holds().len()),
        [1; 3],
        "it asked who had two"
    );
    drop(two);
    sleep(Duration::from_secs(25)).await;
    assert_eq!(
        [one.holds(), three.holds()].concat().len(),
        3,
        "the others have what it had"
    );
    at_ease(observer).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_told_its_shard_takes_no_other() {
    let ground = Ground::new().await;
    let configured =
        |shard| move |o: &mut LeaseOptions| (o.preferred, o.pinned) = (Some(shard), true);
    let one = ground.replica("one", 2, configured(1)).await;
    one.until(&[1]).await;
    let same = ground.replica("same", 2, configured(1)).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!((one.holds(), same.holds()), (vec![1], vec![]));
}

#[tokio::test(start_paused = true)]
async fn two_divisions_are_never_in_force_together() {
    let ground = Ground::new().await;
    let (one, two) = tokio::join!(
        ground.replica("one", 2, |o| o.preferred = Some(1)),
        ground.replica("two", 3, PLAIN)
    );
    let observer = watch(&[&one, &two], false);
    sleep(Duration::from_secs(120)).await;
    let (first, other) = if one.holds().is_empty() {
        (two, one)
    } else {
        (one, two)
    };
    assert_eq!(
        first.holds().len(),
        first.leases.count(),
        "one of them has all"
    );
    assert_eq!(other.holds(), NONE);
    first.cut.send_replace(true);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        other.holds().len(),
        other.leases.count(),
        "the other has all when it is gone"
    );
    first.cut.send_replace(false);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(first.holds(), NONE);
    at_ease(observer).await;
}

#[tokio::test(start_paused = true)]
async fn weights_go_by_what_shards_cost_and_all_have_the_same() {
    let ground = Ground::new().await;
    let loads: Vec<Arc<Loads>> = (0..2).map(|_| Arc::default()).collect();
    let balanced = |n: usize| {
        let balance = Some(Balance {
            loads: loads[n].clone(),
            every: Duration::from_secs(60),
        });
        move |options: &mut LeaseOptions| options.balance = balance
    };
    let (one, two) = (
        ground.replica("one", 2, balanced(0)).await,
        ground.replica("two", 2, balanced(1)).await,
    );
    one.until(&[0]).await;
    two.until(&[1]).await;
    assert_eq!(
        (one.leases.weights(), two.leases.weights()),
        (Weights::equal(2), Weights::equal(2))
    );
    // The second shard has nine times the load of the first.
    for _ in 0..30 {
        loads[0].add(0, Duration::from_secs(1));
        loads[1].add(1, Duration::from_secs(9));
        sleep(Duration::from_secs(10)).await;
    }
    let configured = one.leases.weights();
    assert_eq!(configured, two.leases.weights());
    let numbers: Vec<f64> = configured
        .to_string()
        .split(' ')
        .map(|w| w.parse().expect("a number"))
        .collect();
    assert!(numbers[0] > 1.5 && numbers[1] < 0.5, "{configured}");
    // The weights outlive the replica that wrote them; one that does not balance has none.
    one.leases.release().await;
    two.until(&[0, 1]).await;
    let third = ground.replica("three", 2, PLAIN).await;
    sleep(Duration::from_secs(5)).await;
    assert_ne!(two.leases.weights(), Weights::equal(2));
    assert_eq!(third.leases.weights(), Weights::equal(2));
    ground.kube.shutdown().await;
}
