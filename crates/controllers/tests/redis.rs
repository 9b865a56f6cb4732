//! Writing to Redis and reading, against a small server that speaks its protocol: keys and values,
//! notifications, and what happens while it is down.

use futures::StreamExt as _;
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff},
};
use tiphys_cluster::{AppKey, AppStates};
use tiphys_controllers::{
    metrics::RedisRequests,
    redis::{Format, Known, Login, Place, Reader, Sentinels, Server, Store, follow},
};
use tiphys_testkit::redis::Redis;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

async fn until(redis: &Redis, what: &str, is: impl Fn(&Redis) -> bool) {
    let wait = async {
        while !is(redis) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), wait)
        .await
        .unwrap_or_else(|_| panic!("{what}: {:?}", redis.kept().asked));
}

const MANAGED: &str = "app|managed-resources|team_web|1.8.3.gz";
const TREE: &str = "app|resources-tree|team_web|1.8.3.gz";
const CLUSTER: &str = "cluster|info|https://c|1.8.3.gz";

fn start(address: SocketAddr, states: &AppStates) -> JoinHandle<()> {
    start_at(Server::At(address.to_string()), states)
}

fn place(server: Server) -> Place {
    let login = Login {
        username: String::new(),
        password: "secret".into(),
    };
    Place {
        server,
        db: 2,
        login,
        tls: None,
        format: Format::default(),
    }
}

fn start_at(server: Server, states: &AppStates) -> JoinHandle<()> {
    let place = place(server);
    let clusters = || {
        vec![(
            "https://c".to_owned(),
            ClusterInfo {
                server_version: "1.36".into(),
                ..Default::default()
            },
        )]
    };
    let known = Known {
        states: states.clone(),
        namespace: "argocd".into(),
        // Another replica has taken it over.
        is_there: Box::new(|app| app.name == "moved"),
        clusters: Box::new(clusters),
    };
    tokio::spawn(follow(place, known, RedisRequests::default()))
}

fn tree(health: &str) -> ApplicationTree {
    serde_json::from_value(
        json!({"nodes": [{"kind": "Pod", "name": "p", "health": {"status": health}}]}),
    )
    .expect("a tree")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_is_in_redis_and_goes_with_its_application() {
    let (redis, states, app) = (
        Redis::default(),
        AppStates::new(),
        AppKey::new("team", "web"),
    );
    let server = redis.serve(0);
    let address = server.address;
    let diff = ResourceDiff {
        kind: "ConfigMap".into(),
        name: "a".into(),
        ..Default::default()
    };
    states.publish(&app, std::slice::from_ref(&diff), tree("Progressing"));
    let _writer = start(address, &states);
    until(&redis, "what was there before", |r| {
        r.json(TREE).is_some() && r.json(CLUSTER).is_some()
    })
    .await;
    assert_eq!(redis.json(MANAGED).expect("written")[0]["name"], "a");
    assert_eq!(redis.json(TREE).expect("written")["shardsCount"], 1);
    assert_eq!(
        redis.json(CLUSTER).expect("written")["serverVersion"],
        "1.36"
    );
    {
        let kept = redis.kept();
        assert_eq!(
            (kept.seconds[TREE].as_str(), kept.seconds[CLUSTER].as_str()),
            ("3600", "600")
        );
        assert_eq!(
            kept.asked,
            [
                "AUTH secret",
                "SELECT 2",
                "PUBLISH app|managed-resources|team_web|1.8.3"
            ]
        );
    }
    states.publish_tree(&app, tree("Healthy"));
    until(&redis, "a new tree", |r| {
        r.json(TREE)
            .is_some_and(|t| t["nodes"][0]["health"]["status"] == "Healthy")
    })
    .await;
    assert_eq!(
        redis.kept().sets[MANAGED],
        1,
        "what has not changed is not written again"
    );
    redis.kept().values.clear();
    states.publish_tree(&app, tree("Healthy"));
    until(&redis, "all of it after somebody emptied it", |r| {
        r.json(MANAGED).is_some() && r.json(TREE).is_some()
    })
    .await;
    let moved = AppKey::new("argocd", "moved");
    states.publish(&moved, &[], tree("Healthy"));
    until(&redis, "another Application", |r| {
        r.json("app|resources-tree|moved|1.8.3.gz").is_some()
    })
    .await;
    states.remove(&moved);
    states.remove(&app);
    until(&redis, "nothing of what is gone", |r| {
        r.json(TREE).is_none() && r.json(MANAGED).is_none()
    })
    .await;
    assert!(
        redis.json("app|resources-tree|moved|1.8.3.gz").is_some(),
        "what another replica writes stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_redis_was_away_all_is_written_anew_and_nobody_has_waited() {
    let (redis, states, app) = (
        Redis::default(),
        AppStates::new(),
        AppKey::new("team", "web"),
    );
    let server = redis.serve(0);
    let address = server.address;
    let _writer = start(address, &states);
    states.publish(&app, &[], tree("Progressing"));
    until(&redis, "the first tree", |r| r.json(TREE).is_some()).await;
    drop(server);
    redis.kept().values.clear();
    // Publishing is never blocked.
    for _ in 0..100 {
        states.publish_tree(&app, tree("Degraded"));
    }
    sleep(Duration::from_millis(300)).await;
    assert!(redis.json(TREE).is_none());
    let _server = redis.serve(address.port());
    until(&redis, "all that there is", |r| {
        r.json(MANAGED).is_some() && r.json(TREE).is_some() && r.json(CLUSTER).is_some()
    })
    .await;
    assert_eq!(
        redis.json(TREE).expect("written")["nodes"][0]["health"]["status"],
        "Degraded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_say_which_redis_is_the_master() {
    let (states, app) = (AppStates::new(), AppKey::new("team", "web"));
    states.publish(&app, &[], tree("Healthy"));
    let (first, second, third) = (Redis::default(), Redis::default(), Redis::default());
    let first_server = first.serve(0);
    let (sentinel, ignorant) = (Redis::default(), Redis::default());
    let master = |address| sentinel.kept().master = Some(address);
    master(first_server.address);
    let (known, unknown) = (sentinel.serve(0), ignorant.serve(0));
    let login = Login {
        username: "watcher".into(),
        password: "other".into(),
    };
    // One is down, one does not know the master.
    let addresses = vec![
        "127.0.0.1:1".to_owned(),
        unknown.address.to_string(),
        known.address.to_string(),
    ];
    let _writer = start_at(
        Server::Known(Sentinels {
            addresses,
            master: "main".into(),
            login,
        }),
        &states,
    );
    until(&first, "it is in the master", |r| r.json(TREE).is_some()).await;
    assert_eq!(first.kept().asked[..2], ["AUTH secret", "SELECT 2"]);
    assert!(
        sentinel
            .kept()
            .asked
            .iter()
            .all(|asked| asked == "AUTH watcher other"),
        "nothing else is told to sentinels"
    );

    // The master dies, and another takes over.
    let second_server = second.serve(0);
    master(second_server.address);
    drop(first_server);
    until(&second, "it is in the second", |r| r.json(TREE).is_some()).await;
    // The master is disconnected only from its sentinels.
    let third_server = third.serve(0);
    master(third_server.address);
    until(&third, "it is in the third", |r| {
        r.json(TREE).is_some() && r.json(CLUSTER).is_some()
    })
    .await;
}

fn large(health: &str) -> ApplicationTree {
    let node =
        |n: usize| json!({"kind": "Pod", "name": format!("p{n:03}"), "health": {"status": health}});
    let nodes: Vec<_> = (0..250).map(node).collect();
    serde_json::from_value(json!({"nodes": nodes})).expect("a tree")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_controller_writes_is_read_and_changes_are_seen() {
    let (redis, states) = (Redis::default(), AppStates::new());
    let (app, server) = (AppKey::new("team", "web"), redis.serve(0));
    let reader = Reader::start(place(Server::At(server.address.to_string())));
    assert!(reader.tree("team_web").await.expect("it answers").is_none());
    assert!(
        reader
            .managed("team_web")
            .await
            .expect("it answers")
            .is_none()
    );
    reader.connected().await;
    let mut trees = reader.watch_tree("team_web");
    let mut next = async || {
        let next = timeout(Duration::from_secs(60), trees.next()).await;
        let tree = next.expect("in time").expect("one more").expect("readable");
        let health = tree.nodes[0].health.clone().expect("a health").status;
        (tree.nodes.len(), health)
    };
    let diff = ResourceDiff {
        kind: "ConfigMap".into(),
        name: "a".into(),
        ..Default::default()
    };
    states.publish(&app, std::slice::from_ref(&diff), large("Progressing"));
    let _writer = start(server.address, &states);
    assert_eq!(next().await, (250, "Progressing".to_owned()));
    assert_eq!(
        reader.managed("team_web").await.expect("it answers"),
        Some(vec![diff])
    );
    let info = reader.cluster("https://c").await.expect("it answers");
    assert_eq!(info.expect("written").server_version, "1.36");
    states.publish_tree(&app, large("Healthy"));
    // The same tree may come twice.
    let healthy = (250, "Healthy".to_owned());
    while next().await != healthy {}
    // A piece that has expired is an error, not a smaller tree.
    redis
        .kept()
        .values
        .remove("app|resources-tree|team_web|1|1.8.3.gz");
    let error = reader
        .tree("team_web")
        .await
        .expect_err("a piece is missing");
    assert!(error.to_string().contains("piece 1"), "{error}");
    redis
        .kept()
        .values
        .insert(TREE.to_owned(), b"no gzip".to_vec());
    assert!(reader.tree("team_web").await.is_err());
    drop(server);
    assert!(reader.tree("team_web").await.is_err(), "Redis is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_on_all_servers() {
    let redis = Redis::default();
    let server = redis.serve(0);
    let key = |id: &str| format!("revoked-token|{id}");
    redis.kept().values.insert(key("before"), Vec::new());
    let at = || place(Server::At(server.address.to_string()));
    let (one, other) = (Reader::start(at()), Reader::start(at()));
    tokio::join!(one.connected(), other.connected());
    assert!(one.is_revoked("before") && !one.is_revoked("now"));
    one.revoke("now", 300).await.expect("it answers");
    until(&redis, "the other one knows", |_| other.is_revoked("now")).await;
    assert!(one.is_revoked("now"));
    assert_eq!(redis.kept().seconds[&key("now")], "300");
    drop(server);
    assert!(one.revoke("later", 1).await.is_err());
    assert!(one.is_revoked("later"), "here it has ended in any case");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_repo_servers_share() {
    let redis = Redis::default();
    let server = redis.serve(0);
    let place = Place {
        server: Server::At(server.address.to_string()),
        db: 0,
        login: Login::default(),
        tls: None,
        format: Format::default(),
    };
    let (one, other) = (
        Store::new(place.clone(), RedisRequests::default()),
        Store::new(place, RedisRequests::default()),
    );
    assert_eq!(one.get("mfst|a").await, None);
    let keep = Duration::from_secs(7);
    one.put("mfst|a", br#"{"a":1}"#.to_vec(), keep).await;
    assert_eq!(redis.json("mfst|a|1.8.3.gz"), Some(json!({"a": 1})));
    assert_eq!(redis.kept().seconds["mfst|a|1.8.3.gz"], "7");
    let found = other.get("mfst|a").await;
    assert_eq!(found.as_deref(), Some(&br#"{"a":1}"#[..]));
    // What is not compressed has been written by nobody who counts.
    let broken = ("mfst|b|1.8.3.gz".to_owned(), b"{}".to_vec());
    redis.kept().values.extend([broken]);
    assert_eq!(other.get("mfst|b").await, None);
    assert!(other.get("mfst|a").await.is_some(), "the connection stays");
    drop(server);
    assert_eq!(one.get("mfst|a").await, None, "nobody waits");
    one.put("mfst|c", b"1".to_vec(), keep).await;
    assert_eq!(redis.json("mfst|c|1.8.3.gz"), None);
}
