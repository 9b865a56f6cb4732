//! Report 10 of the catalogue: many repositories, restarts, long sleeps and replicas.

use crate::apprepository_cluster;
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tiphys_catalog::Store;
use tiphys_cluster::{
    Cluster,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::{
    apprepository::in_process::{self, InProcessOptions},
    metrics::charts::ChartMetrics,
};
use tiphys_embedded_kube::EmbeddedKube;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

const REPOSITORIES: &str = "/apis/kubeapps.com/v1alpha1/namespaces/kubeapps/apprepositories";
const COUNT: usize = 120;
const HOSTS: usize = 3;
const CONCURRENCY: usize = 4;
const PER_HOST: usize = 2;
const PATIENCE: Duration = Duration::from_secs(120);

/// What was asked of all hosts.
#[derive(Default)]
struct Asked {
    running: AtomicUsize,
    most: AtomicUsize,
    /// Path, and whether the body was sent.
    requests: Mutex<Vec<(String, bool)>>,
}

/// Answers indexes slowly. The index of a path never changes.
struct Host {
    port: u16,
    most: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Host {
    fn start(asked: &Arc<Asked>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of loopback");
        let port = listener.local_addr().expect("an address").port();
        let (running, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let stop = Arc::<AtomicBool>::default();
        let (asked, of_thread, stopped) = (Arc::clone(asked), Arc::clone(&most), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Relaxed) {
                    return;
                }
                let asked = Arc::clone(&asked);
                let (running, most) = (Arc::clone(&running), Arc::clone(&of_thread));
                std::thread::spawn(move || {
                    most.fetch_max(running.fetch_add(1, Relaxed) + 1, Relaxed);
                    answer(&asked, &stream);
                    running.fetch_sub(1, Relaxed);
                });
            }
        });
        Self { port, most, stop }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn answer(asked: &Asked, mut stream: &TcpStream) {
    let now = asked.running.fetch_add(1, Relaxed) + 1;
    asked.most.fetch_max(now, Relaxed);
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let is_known = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .any(|line| line.eq_ignore_ascii_case("if-none-match: \"one\""));
    std::thread::sleep(Duration::from_millis(20));
    // An entry without an address: there is nothing more to read.
    let index = "apiVersion: v1\nentries:\n  web:\n  - name: web\n    version: 1.0.0\n";
    let (status, body) = if is_known {
        ("304 x", "")
    } else {
        ("200 x", index)
    };
    asked.running.fetch_sub(1, Relaxed);
    asked
        .requests
        .lock()
        .expect("no panic")
        .push((path, !is_known));
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nETag: \"one\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

struct World {
    kube: EmbeddedKube,
    cluster: Cluster,
    store: Arc<Store>,
    asked: Arc<Asked>,
    hosts: Vec<Host>,
    /// Seconds by which the clock is ahead.
    ahead: Arc<AtomicI64>,
    metrics: ChartMetrics,
    running: Vec<(JoinHandle<()>, CancellationToken)>,
}

impl World {
    async fn start() -> Self {
        let (kube, cluster) = apprepository_cluster::start(&["kubeapps"]).await;
        let asked = Arc::<Asked>::default();
        Self {
            cluster,
            kube,
            store: Arc::new(Store::in_memory().expect("a database")),
            hosts: (0..HOSTS).map(|_| Host::start(&asked)).collect(),
            asked,
            ahead: Arc::default(),
            metrics: ChartMetrics::default(),
            running: Vec::new(),
        }
    }

    async fn create_repositories(&self) {
        for i in 0..COUNT {
            let port = self.hosts[i % HOSTS].port;
            let object = json!({
                "apiVersion": "kubeapps.com/v1alpha1", "kind": "AppRepository",
                "metadata": {"name": format!("r-{i:03}")},
                "spec": {"type": "helm", "url": format!("http://127.0.0.1:{port}/{i:03}"), "interval": "10m"},
            });
            apprepository_cluster::create(&self.cluster, REPOSITORIES, &object).await;
        }
    }

    /// How many syncs of this repository the metrics count with this result.
    fn syncs(&self, name: &str, result: &str) -> Option<String> {
        let labels = format!("{{namespace=\"kubeapps\",name=\"{name}\",result=\"{result}\"}}");
        let start = format!("tiphys_catalog_syncs_total{labels} ");
        let text = self.metrics.text().expect("metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map(str::to_owned)
    }

    /// One more process.
    fn run(&mut self, holder: &str) {
        let (stop, ahead) = (CancellationToken::new(), Arc::clone(&self.ahead));
        let clock = move || {
            let ahead = Duration::from_secs(ahead.load(Relaxed).unsigned_abs());
            jiff::Timestamp::now() + ahead
        };
        let options = InProcessOptions {
            concurrency: CONCURRENCY,
            per_host: PER_HOST,
            clock: Arc::new(clock),
            metrics: self.metrics.clone(),
            ..InProcessOptions::new(Arc::clone(&self.store), holder)
        };
        let run = in_process::run(self.cluster.clone(), options, stop.clone());
        self.running.push((tokio::spawn(run), stop));
    }

    async fn stop(&mut self) {
        for (task, stop) in self.running.drain(..) {
            stop.cancel();
            task.await.expect("it ends in order");
        }
    }

    async fn repositories(&self) -> Vec<Value> {
        let list = self.cluster.http().json(&Call::get(REPOSITORIES)).await;
        let list: Value = list.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until so many repositories are as wanted.
    async fn until(&self, count: usize, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let began = std::time::Instant::now();
        loop {
            let mut found = self.repositories().await;
            let last = found.last().cloned();
            found.retain(&is_wanted);
            if found.len() >= count {
                return found;
            }
            let so_far = found.len();
            assert!(began.elapsed() < PATIENCE, "{so_far} of {count}: {last:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn requests(&self) -> Vec<(String, bool)> {
        let mut requests = std::mem::take(&mut *self.asked.requests.lock().expect("no panic"));
        requests.sort();
        requests
    }
}

fn is_ready(repository: &Value) -> bool {
    repository["status"]["status"] == "Ready"
}

fn path(repository: &Value) -> String {
    let url = repository["spec"]["url"].as_str().expect("a URL");
    let (_, path) = url.rsplit_once('/').expect("a path");
    format!("/{path}/index.yaml")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_repositories() {
    let report = "cases/reports/catalogue/10-hundred-repositories/expected.json";
    let Some(file) = tiphys_testkit::shared(report) else {
        return;
    };
    let expected = std::fs::read_to_string(file).expect("the answers");
    let expected: Value = serde_json::from_str(&expected).expect("JSON");
    let wanted = |name: &str| expected[name].as_u64().expect(name);
    let mut world = World::start().await;
    world.create_repositories().await;

    // A restart in the middle: those that were read are not read again.
    world.run("one");
    let done = world.until(COUNT / 3, is_ready).await;
    world.stop().await;
    world.run("two");
    world.until(COUNT, is_ready).await;
    assert!(world.asked.most.load(Relaxed) <= CONCURRENCY);
    for host in &world.hosts {
        assert!(host.most.load(Relaxed) <= PER_HOST);
    }
    let requests = world.requests();
    for repository in &done {
        let path = path(repository);
        let times = requests.iter().filter(|(asked, _)| *asked == path).count();
        assert_eq!(times, 1, "{path}");
    }

    let name = done[0]["metadata"]["name"].as_str().expect("a name");
    assert_eq!(world.syncs(name, "changed").as_deref(), Some("1"));

    // Another restart within the interval: nothing but what is asked for.
    world.stop().await;
    world.run("three");
    let call = Call::new(http::Method::PATCH, format!("{REPOSITORIES}/r-007")).with_body(
        MERGE_PATCH,
        json!({"spec": {"resyncRequests": 1}}).to_string(),
    );
    world.cluster.http().send(&call).await.expect("patched");
    let is_resynced = |repository: &Value| {
        is_ready(repository) && repository["status"]["observedResyncRequests"] == 1
    };
    world.until(1, is_resynced).await;
    sleep(Duration::from_millis(300)).await;
    let (asked, others) = (world.requests(), "syncs_after_restart_within_interval");
    assert_eq!(asked.len() as u64 - 1, wanted(others), "{asked:?}");

    // Ten days later, with two processes: each is asked once, and nothing is sent.
    world.stop().await;
    world.ahead.store(10 * 24 * 3600, Relaxed);
    let since = (jiff::Timestamp::now() + Duration::from_secs(9 * 24 * 3600)).to_string();
    world.run("four");
    world.run("five");
    let is_later = |repository: &Value| {
        let at = repository["status"]["lastSyncTime"].as_str();
        is_ready(repository) && at.is_some_and(|at| at > since.as_str())
    };
    world.until(COUNT, is_later).await;
    sleep(Duration::from_millis(300)).await;
    let requests = world.requests();
    assert_eq!(requests.len() as u64, wanted("syncs_after_10_days"));
    assert_eq!(
        requests.len() as u64,
        wanted("conditional_requests_when_unchanged")
    );
    assert_eq!(world.syncs("r-000", "unchanged").as_deref(), Some("1"));
    let bodies = requests.iter().filter(|(_, is_sent)| *is_sent).count();
    assert_eq!(bodies as u64, wanted("bodies_when_unchanged"));
    let mut paths: Vec<&str> = requests.iter().map(|(path, _)| path.as_str()).collect();
    paths.dedup();
    assert_eq!(paths.len(), COUNT, "each once");

    // One that is deleted in the middle of its sync leaves nothing.
    let names = world.store.repos().expect("the database");
    assert_eq!(names.len(), COUNT);
    let gone = format!("{REPOSITORIES}/r-008");
    let resync = json!({"spec": {"resyncRequests": 1}}).to_string();
    let call = Call::new(http::Method::PATCH, &gone).with_body(MERGE_PATCH, resync);
    world.cluster.http().send(&call).await.expect("patched");
    let call = Call::new(http::Method::DELETE, &gone).with_body(JSON, "{}");
    world.cluster.http().send(&call).await.expect("deleted");
    let began = std::time::Instant::now();
    while world.repositories().await.len() == COUNT {
        assert!(began.elapsed() < PATIENCE, "it is deleted");
        sleep(Duration::from_millis(20)).await;
    }
    world.stop().await;
    let left = world.store.repos().expect("the database");
    assert_eq!(left.len(), COUNT - 1);
    assert!(left.iter().all(|status| status.id.name != "r-008"));
    let text = world.metrics.text().expect("metrics");
    assert!(text.contains("r-009") && !text.contains("r-008"), "{text}");
    drop(world.kube);
}
