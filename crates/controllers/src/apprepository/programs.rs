//! Runs the Jobs of AppRepositories where pods are only simulated: the command `asset-syncer` of a
//! container runs in this process, on this process' database.
//!
//! Main function: [`run`]. The simulator waits for commands that it knows as [`PROGRAMS`]; how they
//! ended is written into annotations of the pod. A pod whose process ended with this one is run
//! again by the next.

use super::{Key, collection::Collection, object};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tiphys_catalog::{
    Store,
    asset_syncer::{self, CA_FILE, Surroundings},
};
use tiphys_cluster::{Cluster, Error, request::encode};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The names of the command: ours, and that of kubeapps' default.
pub const PROGRAMS: [&str; 2] = ["asset-syncer", "chart-repo"];
/// How the program has ended: the restarts before, and the exit code.
const ENDED: &str = "sim.tiphys.dev/ended";
const SAID: &str = "sim.tiphys.dev/said";

/// What is running, by pod.
type Running = Arc<Mutex<HashMap<Key, (String, CancellationToken)>>>;

fn lock(running: &Running) -> MutexGuard<'_, HashMap<Key, (String, CancellationToken)>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until stopped.
pub async fn run(cluster: Cluster, store: Arc<Store>, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    let running = Running::default();
    let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let known = Arc::clone(&running);
    let path = "/api/v1/pods";
    let _pods =
        Collection::follow_some(&cluster, (path, is_due), &mut tasks, &stop, move |change| {
            let run = change.now.map(run_of);
            let mut known = lock(&known);
            if let Some((before, ends)) = known.get(change.key)
                && run.as_ref() != Some(before)
            {
                ends.cancel();
                known.remove(change.key);
            }
            if let (Some(run), Some(pod)) = (run, change.now)
                && !known.contains_key(change.key)
            {
                let ends = CancellationToken::new();
                known.insert(change.key.clone(), (run, ends.clone()));
                // It is received as long as anything runs.
                let _ = begin.send((change.key.clone(), pod.clone(), ends));
            }
        });
    let mut runs = JoinSet::new();
    loop {
        let (key, pod, ends) = tokio::select! {
            () = stop.cancelled() => break,
            Some(begun) = begun.recv() => begun,
            Some(_) = runs.join_next() => continue,
        };
        let (cluster, store) = (cluster.clone(), Arc::clone(&store));
        runs.spawn(async move {
            tokio::select! {
                () = ends.cancelled() => {}
                () = run_one(&cluster, store, &key, &pod) => {}
            }
        });
    }
    drop(runs);
    while tasks.join_next().await.is_some() {}
}

/// Which run of its container a pod is at.
fn run_of(pod: &Value) -> String {
    format!(
        "{}:{}",
        pod["metadata"]["uid"].as_str().unwrap_or_default(),
        restarts(pod)
    )
}

fn restarts(pod: &Value) -> i64 {
    let count = pod.pointer("/status/containerStatuses/0/restartCount");
    count.and_then(Value::as_i64).unwrap_or(0)
}

/// Whether a program of the pod is to be running.
fn is_due(pod: &Value) -> bool {
    let is_running = pod
        .pointer("/status/containerStatuses/0/state/running")
        .is_some();
    let is_deleted = pod["metadata"]["deletionTimestamp"] != Value::Null;
    let ended = pod["metadata"]["annotations"][ENDED].as_str();
    let ended = ended.and_then(|text| text.split_once(':'));
    let has_ended = ended.is_some_and(|(run, _)| run.parse() == Ok(restarts(pod)));
    let command = pod.pointer("/spec/containers/0/command/0");
    let command = command.and_then(Value::as_str).unwrap_or_default();
    let name = command.rsplit('/').next().unwrap_or_default();
    is_running && !is_deleted && !has_ended && PROGRAMS.contains(&name)
}

async fn run_one(cluster: &Cluster, store: Arc<Store>, key: &Key, pod: &Value) {
    let (code, said) = match surroundings(cluster, store, key, pod).await {
        Ok(surroundings) => {
            let words = texts(&pod["spec"]["containers"][0]["args"]);
            match asset_syncer::run(&words, &surroundings).await {
                Ok(said) => (0, said),
                Err(e) => (1, format!("Error: {e}")),
            }
        }
        Err(e) => (1, format!("Error: {e}")),
    };
    let annotations = json!({ENDED: format!("{}:{code}", restarts(pod)), SAID: said});
    let patch = json!({"metadata": {"annotations": annotations}});
    let (namespace, name) = (encode(&key.namespace), encode(&key.name));
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    match object::patch(cluster, &path, &patch).await {
        // The pod is gone.
        Err(e) if e.is_not_found() => {}
        Err(error) => {
            let name = &key.name;
            tracing::warn!(name, %error, "the end of a Job's pod could not be written");
        }
        Ok(_) => {}
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

/// What the program finds around it: of the environment and the volumes only what it reads.
async fn surroundings(
    cluster: &Cluster,
    store: Arc<Store>,
    key: &Key,
    pod: &Value,
) -> Result<Surroundings, Error> {
    let container = &pod["spec"]["containers"][0];
    let mut surroundings = Surroundings {
        store: Some(store),
        holder: format!("pod-{}", run_of(pod)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Surroundings::default()
    };
    for variable in container["env"].as_array().into_iter().flatten() {
        let into = match variable["name"].as_str() {
            Some("AUTHORIZATION_HEADER") => &mut surroundings.authorization,
            Some("DOCKER_CONFIG_JSON") => &mut surroundings.docker_config,
            _ => continue,
        };
        let reference = &variable["valueFrom"]["secretKeyRef"];
        let value = match variable["value"].as_str() {
            Some(value) => value.to_owned(),
            None => secret(cluster, key, &reference["name"], &reference["key"]).await?,
        };
        *into = value.into();
    }
    if let Some((name, item)) = authorities(pod) {
        surroundings.authorities = Some(secret(cluster, key, name, item).await?);
    }
    Ok(surroundings)
}

/// The Secret and the key that are mounted where the program looks for authorities.
fn authorities(pod: &Value) -> Option<(&Value, &Value)> {
    let (folder, file) = CA_FILE.rsplit_once('/')?;
    let mounts = pod.pointer("/spec/containers/0/volumeMounts")?.as_array()?;
    let mount = mounts.iter().find(|mount| mount["mountPath"] == folder)?;
    let volumes = pod.pointer("/spec/volumes")?.as_array()?;
    let volume = volumes
        .iter()
        .find(|volume| volume["name"] == mount["name"])?;
    let items = volume["secret"]["items"].as_array()?;
    let item = items.iter().find(|item| item["path"] == file)?;
    Some((&volume["secret"]["secretName"], &item["key"]))
}

async fn secret(cluster: &Cluster, pod: &Key, name: &Value, key: &Value) -> Result<String, Error> {
    let (name, key) = (
        name.as_str().unwrap_or_default(),
        key.as_str().unwrap_or_default(),
    );
    let invalid = |problem: &str| Error::Invalid {
        key: format!("Secret {name:?} of namespace {:?}", pod.namespace),
        problem: problem.to_owned(),
    };
    let found = object::get(cluster, &object::secret(&pod.namespace, name)).await?;
    let found = found.ok_or_else(|| invalid("it does not exist"))?;
    let value = found["data"][key].as_str();
    let value = value.ok_or_else(|| invalid(&format!("it has no key {key:?}")))?;
    let bytes = STANDARD.decode(value);
    let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| invalid("its value is no text"))
}
