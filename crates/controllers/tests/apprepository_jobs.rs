//! AppRepositories as CronJobs and Jobs: what goes without its finalizer, what belongs to others, and
//! which namespaces count. Nothing runs the Jobs here.

use crate::apprepository_cluster;
use http::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tiphys_catalog::apprepository::{Options as JobOptions, cron_job_name};
use tiphys_cluster::{
    Cluster,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::apprepository::jobs::{self, JobsOptions};
use tiphys_embedded_kube::EmbeddedKube;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/kubeapps/cronjobs";
const JOBS: &str = "/apis/batch/v1/namespaces/kubeapps/jobs";
const PATIENCE: Duration = Duration::from_secs(60);

fn repositories(namespace: &str) -> String {
    format!("/apis/kubeapps.com/v1alpha1/namespaces/{namespace}/apprepositories")
}

struct World {
    _kube: EmbeddedKube,
    cluster: Cluster,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

impl World {
    async fn start() -> Self {
        let (kube, cluster) = apprepository_cluster::start(&["kubeapps", "team"]).await;
        Self {
            cluster,
            _kube: kube,
            running: None,
        }
    }

    fn run(&mut self, all_namespaces: bool) {
        let options = JobOptions {
            all_namespaces,
            ..JobOptions::default()
        };
        let stop = CancellationToken::new();
        let cluster = self.cluster.clone();
        let run = jobs::run(cluster, JobsOptions::new(options), None, stop.clone());
        self.running = Some((tokio::spawn(run), stop));
    }

    async fn stop(&mut self) {
        let (task, stop) = self.running.take().expect("it runs");
        stop.cancel();
        task.await.expect("it ends in order");
    }

    async fn create(&self, path: &str, object: &Value) {
        apprepository_cluster::create(&self.cluster, path, object).await;
    }

    async fn create_repository(&self, namespace: &str, name: &str) {
        let object = json!({
            "apiVersion": "kubeapps.com/v1alpha1", "kind": "AppRepository",
            "metadata": {"name": name},
            "spec": {"type": "helm", "url": "http://127.0.0.1:9/charts"},
        });
        self.create(&repositories(namespace), &object).await;
    }

    async fn patch(&self, path: &str, patch: Value) {
        let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch.to_string());
        self.cluster.http().send(&call).await.expect(path);
    }

    async fn delete(&self, path: &str) {
        let call = Call::new(Method::DELETE, path).with_body(JSON, "{}");
        self.cluster.http().send(&call).await.expect(path);
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let list: Value = self
            .cluster
            .http()
            .json(&Call::get(path))
            .await
            .expect(path);
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let all = self.list(path).await;
        let name = |object: Value| object["metadata"]["name"].as_str().map(str::to_owned);
        all.into_iter().filter_map(name).collect()
    }

    /// Of syncs, or of those that remove rows.
    async fn jobs(&self, command: &str) -> Vec<Value> {
        let mut all = self.list(JOBS).await;
        all.retain(|job| {
            let args = &job["spec"]["template"]["spec"]["containers"][0]["args"];
            args.as_array()
                .is_some_and(|args| args.contains(&command.into()))
        });
        all
    }

    async fn complete(&self, job: &Value) {
        if job["status"]["completionTime"].is_string() {
            return;
        }
        let name = job["metadata"]["name"].as_str().expect("a name");
        let now = jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        let condition = |form: &str| json!({"type": form, "status": "True", "lastProbeTime": now, "lastTransitionTime": now});
        let status = json!({"startTime": now, "completionTime": now, "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
        let path = format!("{JOBS}/{name}/status");
        self.patch(&path, json!({"status": status})).await;
    }

    async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let began = Instant::now();
        while !is_so().await {
            assert!(began.elapsed() < PATIENCE, "{what}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_synced(&self, namespace: &str, name: &str) {
        let cron_job = cron_job_name(namespace, name);
        self.until("a CronJob and a Job", async || {
            let syncs = self.jobs("sync").await;
            let prefix = format!("{cron_job}-");
            self.names(CRON_JOBS).await.contains(&cron_job)
                && syncs
                    .iter()
                    .any(|job| job["metadata"]["generateName"] == *prefix)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_go_although_somebody_took_the_finalizer_off() {
    let mut world = World::start().await;
    world.run(true);
    world.create_repository("team", "charts").await;
    world.until_synced("team", "charts").await;
    let path = format!("{}/charts", repositories("team"));
    // Its sync never ends, so that the finalizer stays.
    world.delete(&path).await;
    world
        .until("no CronJob", async || {
            world.names(CRON_JOBS).await.is_empty()
        })
        .await;
    world
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
    assert!(world.names(&repositories("team")).await.is_empty());
    assert!(
        world.jobs("delete").await.is_empty(),
        "the sync would bring rows back"
    );
    for job in world.jobs("sync").await {
        world.complete(&job).await;
    }
    world
        .until("a cleanup", async || !world.jobs("delete").await.is_empty())
        .await;
    let args = &world.jobs("delete").await[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    let args = args.to_string();
    assert!(
        args.contains("\"charts\"") && args.contains("--namespace=team"),
        "{args}"
    );

    // One that goes as it should has one cleanup, and its removal none.
    world.create_repository("kubeapps", "orderly").await;
    world.until_synced("kubeapps", "orderly").await;
    for job in world.jobs("sync").await {
        world.complete(&job).await;
    }
    world
        .delete(&format!("{}/orderly", repositories("kubeapps")))
        .await;
    world
        .until("its cleanup", async || {
            world.jobs("delete").await.len() == 2
        })
        .await;
    for job in world.jobs("delete").await {
        world.complete(&job).await;
    }
    world
        .until("it goes", async || {
            world.names(&repositories("kubeapps")).await.is_empty()
        })
        .await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(world.jobs("delete").await.len(), 2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_go_of_what_went_while_nobody_looked() {
    let mut world = World::start().await;
    world.run(true);
    for (namespace, name) in [("team", "gone"), ("kubeapps", "stays")] {
        world.create_repository(namespace, name).await;
        world.until_synced(namespace, name).await;
    }
    world.stop().await;
    for job in world.jobs("sync").await {
        world.complete(&job).await;
    }
    let path = format!("{}/gone", repositories("team"));
    world
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
    world.delete(&path).await;
    // Who may look at one namespace only takes no other's for gone.
    world.run(false);
    world.create_repository("kubeapps", "later").await;
    world.until_synced("kubeapps", "later").await;
    assert!(world.jobs("delete").await.is_empty());
    assert_eq!(world.names(CRON_JOBS).await.len(), 3);
    world.stop().await;

    world.run(true);
    let left = [("kubeapps", "later"), ("kubeapps", "stays")].map(|(n, r)| cron_job_name(n, r));
    world
        .until("two CronJobs", async || {
            world.names(CRON_JOBS).await == left
        })
        .await;
    world
        .until("a cleanup", async || world.jobs("delete").await.len() == 1)
        .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_own_namespace_counts_unless_all_do() {
    let mut world = World::start().await;
    world.run(false);
    world.create_repository("team", "theirs").await;
    world.create_repository("kubeapps", "ours").await;
    world.until_synced("kubeapps", "ours").await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(
        world.names(CRON_JOBS).await,
        [cron_job_name("kubeapps", "ours")]
    );
    world.stop().await;
    world.run(true);
    world.until_synced("team", "theirs").await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cron_job_of_somebody_else_is_not_touched() {
    let mut world = World::start().await;
    let name = cron_job_name("kubeapps", "charts");
    let pod =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}});
    let foreign = json!({"metadata": {"name": name}, "spec": {"schedule": "0 0 1 1 *",
        "jobTemplate": {"spec": {"template": pod}}}});
    world.create(CRON_JOBS, &foreign).await;
    let before = world.list(CRON_JOBS).await;
    world.run(true);
    world.create_repository("kubeapps", "charts").await;
    let events = "/api/v1/namespaces/kubeapps/events";
    let message = format!("Resource {name:?} already exists and is not managed by AppRepository");
    world
        .until("an Event", async || {
            let events = world.list(events).await;
            let is_it = |e: &Value| e["reason"] == "ErrResourceExists" && e["message"] == *message;
            events.iter().any(|e| e["type"] == "Warning" && is_it(e))
        })
        .await;
    assert_eq!(world.list(CRON_JOBS).await, before);
    assert!(world.jobs("sync").await.is_empty());

    world
        .delete(&format!("{}/charts", repositories("kubeapps")))
        .await;
    world
        .until("a cleanup", async || world.jobs("delete").await.len() == 1)
        .await;
    world.complete(&world.jobs("delete").await[0]).await;
    world
        .until("it goes", async || {
            world.names(&repositories("kubeapps")).await.is_empty()
        })
        .await;
    assert_eq!(world.list(CRON_JOBS).await, before);
    world.stop().await;
}

/// Report 10: a restart is no reason to read all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_reads_only_what_changed_meanwhile() {
    let mut world = World::start().await;
    world.run(true);
    for name in ["same", "changed", "asked"] {
        world.create_repository("kubeapps", name).await;
        world.until_synced("kubeapps", name).await;
    }
    let all = repositories("kubeapps");
    world
        .until("their status", async || {
            let all = world.list(&all).await;
            let is_told = |one: &Value| one["status"]["observedGeneration"].is_i64();
            all.len() == 3 && all.iter().all(is_told)
        })
        .await;
    world.stop().await;
    let jobs = world.jobs("sync").await.len();
    let other = json!({"spec": {"url": "http://127.0.0.1:9/other"}});
    world.patch(&format!("{all}/changed"), other).await;
    let again = json!({"spec": {"resyncRequests": 1}});
    world.patch(&format!("{all}/asked"), again).await;
    world.create_repository("kubeapps", "new").await;
    world.run(true);
    world
        .until("three Jobs", async || {
            world.jobs("sync").await.len() == jobs + 3
        })
        .await;
    sleep(Duration::from_millis(500)).await;
    let of = async |name: &str| {
        let prefix = format!("{}-", cron_job_name("kubeapps", name));
        let syncs = world.jobs("sync").await;
        let of_it = syncs
            .iter()
            .filter(|job| job["metadata"]["generateName"] == *prefix);
        of_it.count()
    };
    assert_eq!(of("same").await, 1);
    assert_eq!(of("new").await, 1);
    assert_eq!([of("changed").await, of("asked").await], [2, 2]);
    world.stop().await;
}

/// A Job says only that it failed: why is what its pod said, which is gone by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_says_why_a_job_failed() {
    let mut world = World::start().await;
    world.run(false);
    world.create_repository("kubeapps", "good").await;
    world.until_synced("kubeapps", "good").await;
    let jobs = world.jobs("sync").await;
    let name = jobs[0]["metadata"]["name"].as_str().expect("a name");
    let pods = "/api/v1/namespaces/kubeapps/pods";
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
    });
    let accounts = "/api/v1/namespaces/kubeapps/serviceaccounts";
    world.create(accounts, &account).await;
    let container = json!({"name": "sync", "image": "tiphys"});
    for (pod, job, said) in [
        ("of-it", name, "Error: 404 Not Found"),
        ("of-another", "other", "Error: of another"),
    ] {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod, "labels": {"job-name": job}},
            "spec": {"restartPolicy": "OnFailure", "containers": [container]},
        });
        world.create(pods, &object).await;
        let end = json!({
            "exitCode": 1, "message": said, "reason": "Error",
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z",
        });
        let status = json!({"phase": "Running", "containerStatuses": [{
            "name": "sync", "image": "tiphys", "imageID": "", "ready": false, "restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": end},
        }]});
        let path = format!("{pods}/{pod}/status");
        world.patch(&path, json!({"status": status})).await;
    }
    let repository = repositories("kubeapps");
    let told = async |wanted: &str| {
        let is_told = async || {
            let all = world.list(&repository).await;
            all[0]["status"]["lastError"] == *wanted
        };
        world.until(wanted, is_told).await;
    };
    // Nothing else happens to the Job.
    told(&format!("Job {name}: 404 Not Found")).await;
    world.delete(&format!("{pods}/of-it")).await;
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let condition = |form: &str| json!({"type": form, "status": "True", "message": "no more attempts", "lastProbeTime": now, "lastTransitionTime": now});
    let status = json!({"startTime": now, "failed": 1,
        "conditions": [condition("FailureTarget"), condition("Failed")]});
    let path = format!("{JOBS}/{name}/status");
    world.patch(&path, json!({"status": status})).await;
    told(&format!("Job {name}: no more attempts: 404 Not Found")).await;
    let all = world.list(&repository).await;
    let conditions = all[0]["status"]["conditions"]
        .as_array()
        .expect("conditions");
    let mut conditions = conditions.iter();
    assert!(conditions.any(|c| c["type"] == "Stalled" && c["reason"] == "JobFailed"));
    world.stop().await;
}
