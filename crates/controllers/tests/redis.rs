//! Writing to Redis, against a small server that speaks its protocol: keys and values,
//! notifications, and what happens while it is down.

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::Read as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff},
};
use tiphys_cluster::{AppKey, AppStates};
use tiphys_controllers::{
    metrics::RedisRequests,
    redis::{Format, Known, Login, Place, Sentinels, Server, Store, follow},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The content of a server, and the commands it received.
#[derive(Default)]
struct Kept {
    values: BTreeMap<String, Vec<u8>>,
    seconds: BTreeMap<String, String>,
    /// Every command except those that set or remove values, and how often each key was set.
    asked: Vec<String>,
    sets: BTreeMap<String, usize>,
    /// As a sentinel: the master that it knows.
    master: Option<SocketAddr>,
}

#[derive(Clone, Default)]
struct Redis(Arc<Mutex<Kept>>);

impl Redis {
    /// Serves on this port, or on any; ends with the task.
    async fn serve(&self, port: u16) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("a port");
        let (address, redis) = (listener.local_addr().expect("an address"), self.clone());
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(redis.clone().talk(stream));
            }
        });
        (address, task)
    }

    async fn talk(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let count = number(&mut stream).await?;
            let mut words = Vec::new();
            for _ in 0..count {
                let mut word = vec![0; number(&mut stream).await? + 2];
                stream.read_exact(&mut word).await.ok()?;
                word.truncate(word.len() - 2);
                words.push(word);
            }
            let answer = match words.as_slice() {
                [verb, key] if verb.eq_ignore_ascii_case(b"get") => self.value(key),
                _ => self.answer(&words).into_bytes(),
            };
            stream.get_mut().write_all(&answer).await.ok()?;
        }
    }

    /// The answer to GET.
    fn value(&self, key: &[u8]) -> Vec<u8> {
        let kept = self.0.lock().expect("no panic");
        match kept.values.get(&*String::from_utf8_lossy(key)) {
            Some(value) => {
                let size = format!("${}\r\n", value.len()).into_bytes();
                [size.as_slice(), value, b"\r\n"].concat()
            }
            None => b"$-1\r\n".to_vec(),
        }
    }

    fn answer(&self, words: &[Vec<u8>]) -> String {
        let text = |n: usize| String::from_utf8_lossy(&words[n]).into_owned();
        let mut kept = self.0.lock().expect("no panic");
        let answer = match text(0).to_uppercase().as_str() {
            "SENTINEL" if text(2) != "main" => "*-1\r\n",
            "SENTINEL" => {
                let Some(master) = kept.master else {
                    return "*-1\r\n".to_owned();
                };
                let (host, port) = (master.ip().to_string(), master.port().to_string());
                return format!(
                    "*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n",
                    host.len(),
                    port.len()
                );
            }
            "SETEX" => {
                kept.values.insert(text(1), words[3].clone());
                kept.seconds.insert(text(1), text(2));
                *kept.sets.entry(text(1)).or_default() += 1;
                "+OK\r\n"
            }
            "DEL" => {
                kept.values.remove(&text(1));
                ":1\r\n"
            }
            "EXPIRE" if kept.values.contains_key(&text(1)) => ":1\r\n",
            "EXPIRE" => ":0\r\n",
            "PUBLISH" => {
                kept.asked.push(format!("PUBLISH {}", text(1)));
                ":0\r\n"
            }
            _ => {
                let all: Vec<String> = (0..words.len()).map(text).collect();
                kept.asked.push(all.join(" "));
                "+OK\r\n"
            }
        };
        answer.to_owned()
    }

    fn json(&self, key: &str) -> Option<Value> {
        let kept = self.0.lock().expect("no panic");
        let mut text = String::new();
        GzDecoder::new(kept.values.get(key)?.as_slice())
            .read_to_string(&mut text)
            .expect("gzip");
        serde_json::from_str(&text).ok()
    }

    async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is(self) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), wait)
            .await
            .unwrap_or_else(|_| panic!("{what}: {:?}", self.0.lock().expect("no panic").asked));
    }
}

/// The number of a line such as `*3` or `$5`.
async fn number(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
    line.trim_end().get(1..)?.parse().ok()
}

const MANAGED: &str = "app|managed-resources|team_web|1.8.3.gz";
const TREE: &str = "app|resources-tree|team_web|1.8.3.gz";
const CLUSTER: &str = "cluster|info|https://c|1.8.3.gz";

fn start(address: SocketAddr, states: &AppStates) -> JoinHandle<()> {
    start_at(Server::At(address.to_string()), states)
}

fn start_at(server: Server, states: &AppStates) -> JoinHandle<()> {
    let login = Login {
        username: String::new(),
        password: "secret".into(),
    };
    let place = Place {
        server,
        db: 2,
        login,
        tls: None,
        format: Format::default(),
    };
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
    let (address, _server) = redis.serve(0).await;
    let diff = ResourceDiff {
        kind: "ConfigMap".into(),
        name: "a".into(),
        ..Default::default()
    };
    states.publish(&app, std::slice::from_ref(&diff), tree("Progressing"));
    let _writer = start(address, &states);
    redis
        .until("what was there before", |r| {
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
        let kept = redis.0.lock().expect("no panic");
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
    redis
        .until("a new tree", |r| {
            r.json(TREE)
                .is_some_and(|t| t["nodes"][0]["health"]["status"] == "Healthy")
        })
        .await;
    assert_eq!(
        redis.0.lock().expect("no panic").sets[MANAGED],
        1,
        "what has not changed is not written again"
    );
    redis.0.lock().expect("no panic").values.clear();
    states.publish_tree(&app, tree("Healthy"));
    redis
        .until("all of it after somebody emptied it", |r| {
            r.json(MANAGED).is_some() && r.json(TREE).is_some()
        })
        .await;
    let moved = AppKey::new("argocd", "moved");
    states.publish(&moved, &[], tree("Healthy"));
    redis
        .until("another Application", |r| {
            r.json("app|resources-tree|moved|1.8.3.gz").is_some()
        })
        .await;
    states.remove(&moved);
    states.remove(&app);
    redis
        .until("nothing of what is gone", |r| {
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
    let (address, server) = redis.serve(0).await;
    let _writer = start(address, &states);
    states.publish(&app, &[], tree("Progressing"));
    redis
        .until("the first tree", |r| r.json(TREE).is_some())
        .await;
    server.abort();
    let _ = server.await;
    redis.0.lock().expect("no panic").values.clear();
    // Publishing is never blocked.
    for _ in 0..100 {
        states.publish_tree(&app, tree("Degraded"));
    }
    sleep(Duration::from_millis(300)).await;
    assert!(redis.json(TREE).is_none());
    let (_, _server) = redis.serve(address.port()).await;
    redis
        .until("all that there is", |r| {
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
    let (first_address, first_server) = first.serve(0).await;
    let (sentinel, ignorant) = (Redis::default(), Redis::default());
    let master = |address| sentinel.0.lock().expect("no panic").master = Some(address);
    master(first_address);
    let (known, _sentinel) = sentinel.serve(0).await;
    let (unknown, _ignorant) = ignorant.serve(0).await;
    let login = Login {
        username: "watcher".into(),
        password: "other".into(),
    };
    // One is down, one does not know the master.
    let addresses = vec![
        "127.0.0.1:1".to_owned(),
        unknown.to_string(),
        known.to_string(),
    ];
    let _writer = start_at(
        Server::Known(Sentinels {
            addresses,
            master: "main".into(),
            login,
        }),
        &states,
    );
    first
        .until("it is in the master", |r| r.json(TREE).is_some())
        .await;
    assert_eq!(
        first.0.lock().expect("no panic").asked[..2],
        ["AUTH secret", "SELECT 2"]
    );
    assert!(
        sentinel
            .0
            .lock()
            .expect("no panic")
            .asked
            .iter()
            .all(|asked| asked == "AUTH watcher other"),
        "nothing else is told to sentinels"
    );

    // The master dies, and another takes over.
    let (second_address, _second_server) = second.serve(0).await;
    master(second_address);
    first_server.abort();
    second
        .until("it is in the second", |r| r.json(TREE).is_some())
        .await;
    // The master is disconnected only from its sentinels.
    let (third_address, _third_server) = third.serve(0).await;
    master(third_address);
    third
        .until("it is in the third", |r| {
            r.json(TREE).is_some() && r.json(CLUSTER).is_some()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_repo_servers_share() {
    let redis = Redis::default();
    let (address, server) = redis.serve(0).await;
    let place = Place {
        server: Server::At(address.to_string()),
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
    assert_eq!(
        redis.0.lock().expect("no panic").seconds["mfst|a|1.8.3.gz"],
        "7"
    );
    let found = other.get("mfst|a").await;
    assert_eq!(found.as_deref(), Some(&br#"{"a":1}"#[..]));
    // What is not compressed has been written by nobody who counts.
    let broken = ("mfst|b|1.8.3.gz".to_owned(), b"{}".to_vec());
    redis.0.lock().expect("no panic").values.extend([broken]);
    assert_eq!(other.get("mfst|b").await, None);
    assert!(other.get("mfst|a").await.is_some(), "the connection stays");
    server.abort();
    let _ = server.await;
    assert_eq!(one.get("mfst|a").await, None, "nobody waits");
    one.put("mfst|c", b"1".to_vec(), keep).await;
    assert_eq!(redis.json("mfst|c|1.8.3.gz"), None);
}
