//! [`ClusterLive`]: the state that the controller publishes, and live objects of the destination
//! clusters.

use super::{
    of_cluster,
    published::{InProcess, Published, Trees},
};
use crate::{
    ApiError, Code,
    ports::{
        ClusterVersions, DiffPair, Live, LiveRef, LogOptions, NewToken, Propagation, SecretRecord,
        Shell,
    },
};
use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use bytes::BytesMut;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_api::{
    Application,
    cluster::{ClusterInfo, ConnectionState},
    resource::{ApplicationTree, ResourceDiff},
    rpc::{application::LogEntry, events::EventList},
};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_cluster::{
    AppKey, AppStates, Kind, Records,
    clusters::{Clusters, LiveCluster},
    connect::{Cluster, ClusterSecret},
    manager::{self, TokenOwner},
    records::Impersonation,
    request::{
        Call, IMPERSONATE_USER, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, encode,
        push_query,
    },
    streams,
};
use tiphys_engine::{
    diff, marks,
    spec::{self, Destination},
    types::Diff,
};
use tiphys_rpc::heavy;

/// Who owns what users change through the API; without a name it would be `unknown`.
const FIELD_MANAGER: &str = "argocd-server";
/// The option by which a Server-Side Diff includes what mutating webhooks change.
const INCLUDE_WEBHOOKS: &str = "IncludeMutationWebhook=true";
/// Longer log lines are truncated.
const MAX_LINE: usize = 256 * 1024;

pub struct ClusterLive {
    records: Records,
    clusters: Clusters,
    published: Arc<dyn Published>,
}

impl ClusterLive {
    /// The controller in this process publishes these states.
    pub fn new(records: Records, clusters: Clusters, states: AppStates) -> Self {
        let published = InProcess {
            states,
            clusters: clusters.clone(),
        };
        Self::reading(records, clusters, Arc::new(published))
    }

    /// The controller publishes there.
    pub fn reading(records: Records, clusters: Clusters, published: Arc<dyn Published>) -> Self {
        Self {
            records,
            clusters,
            published,
        }
    }

    /// Connects to the cluster that a Secret describes.
    async fn connect(&self, cluster: &SecretRecord) -> Result<Cluster, ApiError> {
        let secret = ClusterSecret::from_secret(&object_of(cluster)).map_err(of_cluster)?;
        self.clusters.connect(&secret).await.map_err(failed)
    }

    async fn cluster_of(&self, app: &Application) -> Result<Arc<LiveCluster>, ApiError> {
        let opened = self.clusters.get(&self.destination(app)?).await;
        opened.map_err(|why| {
            ApiError::new(Code::Unavailable, why)
                .context("error getting application cluster config")
        })
    }

    /// The Application's cluster, with the user that its project impersonates.
    async fn hand(&self, app: &Application) -> Result<Hand, ApiError> {
        let cluster = self.cluster_of(app).await?;
        let project = spec::project_name(app);
        let project = self
            .records
            .project(project)
            .ok_or_else(|| ApiError::invalid(format!("there is no project {project:?}")))?;
        let user = self
            .records
            .impersonated(app, &project, &cluster.destination.server)
            .map_err(|e| {
                let why = match e {
                    Impersonation::Underivable(why) => {
                        format!("error deriving service account to impersonate: {why}")
                    }
                    missing => missing.to_string(),
                };
                ApiError::plain(why).context("error getting application cluster config")
            })?;
        Ok(Hand {
            cluster,
            user: user.map(Into::into),
        })
    }

    async fn located(
        &self,
        app: &Application,
        object: &LiveRef,
    ) -> Result<(Hand, Arc<Kind>), ApiError> {
        let hand = self.hand(app).await?;
        let kind = hand
            .cluster
            .cache
            .discovery()
            .resolve(&gvk(object))
            .await
            .map_err(of_cluster)?;
        Ok((hand, kind))
    }
}

/// A cluster and the user to impersonate there; our own identity if empty.
struct Hand {
    cluster: Arc<LiveCluster>,
    user: Option<Arc<str>>,
}

impl Hand {
    async fn json(&self, mut call: Call) -> Result<Value, tiphys_cluster::Error> {
        call.impersonate.clone_from(&self.user);
        self.cluster
            .cache
            .discovery()
            .cluster()
            .http()
            .json(&call)
            .await
    }
}

fn gvk(object: &LiveRef) -> Gvk {
    Gvk::new(&object.group, &object.version, &object.kind)
}

fn key(app: &Application) -> AppKey {
    AppKey::new(&app.metadata.namespace, &app.metadata.name)
}

#[async_trait]
impl Live for ClusterLive {
    async fn managed_resources(
        &self,
        app: &Application,
    ) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        self.published.managed(&key(app)).await
    }

    async fn tree(&self, app: &Application) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        self.published.tree(&key(app)).await
    }

    fn watch_tree(&self, app: &Application) -> Trees {
        self.published.watch_tree(&key(app))
    }

    async fn facts(&self, app: &Application) -> Result<ClusterVersions, ApiError> {
        let cluster = self.cluster_of(app).await?;
        let kube_version = cluster
            .cache
            .discovery()
            .cluster()
            .version()
            .git_version
            .clone();
        Ok(ClusterVersions {
            kube_version,
            api_versions: cluster.cache.kinds().api_versions(),
        })
    }

    fn destination(&self, app: &Application) -> Result<Destination, ApiError> {
        spec::destination(&app.spec.destination, &self.records.settings().destinations)
            .map_err(ApiError::plain)
    }

    async fn get(&self, app: &Application, object: &LiveRef) -> Result<Value, ApiError> {
        let hand = self.hand(app).await?;
        if hand.user.is_some() {
            // The impersonated user may not be allowed to see what is in the cache.
            let kind = hand
                .cluster
                .cache
                .discovery()
                .resolve(&gvk(object))
                .await
                .map_err(of_cluster)?;
            let call = Call::get(kind.object_path(&object.namespace, &object.name));
            return hand.json(call).await.map_err(of_cluster);
        }
        let found = hand
            .cluster
            .cache
            .get_as(&gvk(object), &object.namespace, &object.name)
            .await
            .map_err(of_cluster)?;
        if let Some(found) = found {
            return Ok(found.into_value());
        }
        let kind = hand.cluster.cache.discovery().resolve(&gvk(object)).await;
        let kind = kind.map_err(of_cluster)?;
        let what = match kind.gvk.group.as_str() {
            "" => kind.resource.clone(),
            group => format!("{}.{group}", kind.resource),
        };
        Err(ApiError::not_found(format!(
            "{what} {:?} not found",
            object.name
        )))
    }

    async fn is_namespaced(&self, app: &Application, object: &LiveRef) -> Result<bool, ApiError> {
        let hand = self.hand(app).await?;
        let kind = hand.cluster.cache.discovery().resolve(&gvk(object)).await;
        Ok(kind.map_err(of_cluster)?.namespaced)
    }

    async fn delete(
        &self,
        app: &Application,
        object: &LiveRef,
        how: Propagation,
    ) -> Result<(), ApiError> {
        let (hand, kind) = self.located(app, object).await?;
        let (policy, grace) = match how {
            Propagation::Foreground => ("Foreground", None),
            Propagation::Background => ("Background", None),
            Propagation::Force => ("Background", Some(0)),
            Propagation::Orphan => ("Orphan", None),
        };
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(seconds) = grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        let call = Call::new(
            Method::DELETE,
            kind.object_path(&object.namespace, &object.name),
        )
        .with_body(JSON, options.to_string());
        hand.json(call).await.map_err(of_cluster)?;
        Ok(())
    }

    async fn patch(
        &self,
        app: &Application,
        object: &LiveRef,
        patch: &str,
        patch_type: &str,
    ) -> Result<Value, ApiError> {
        let content_type = match patch_type {
            JSON_PATCH => JSON_PATCH,
            MERGE_PATCH => MERGE_PATCH,
            STRATEGIC_MERGE_PATCH => STRATEGIC_MERGE_PATCH,
            other => {
                tracing::debug!(type = other, "a patch of an unknown type is refused");
                return Err(ApiError::plain("415: Unsupported Media Type"));
            }
        };
        let (hand, kind) = self.located(app, object).await?;
        let call = Call::new(
            Method::PATCH,
            kind.object_path(&object.namespace, &object.name),
        )
        .query("fieldManager", FIELD_MANAGER)
        .with_body(content_type, patch.to_owned());
        hand.json(call).await.map_err(of_cluster)
    }

    async fn patch_status(
        &self,
        app: &Application,
        object: &LiveRef,
        patch: &Value,
    ) -> Result<bool, ApiError> {
        let (hand, kind) = self.located(app, object).await?;
        let path = format!(
            "{}/status",
            kind.object_path(&object.namespace, &object.name)
        );
        let call = Call::new(Method::PATCH, path)
            .query("fieldManager", FIELD_MANAGER)
            .with_body(MERGE_PATCH, patch.to_string());
        match hand.json(call).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(of_cluster(error)),
        }
    }

    async fn create(
        &self,
        app: &Application,
        object: &Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let new =
            Object::from_value(object.clone()).map_err(|e| ApiError::invalid(e.to_string()))?;
        let hand = self.hand(app).await?;
        let kind = hand
            .cluster
            .cache
            .discovery()
            .resolve(&new.gvk())
            .await
            .map_err(of_cluster)?;
        let call = Call::new(Method::POST, kind.collection_path(new.namespace()))
            .query("fieldManager", FIELD_MANAGER)
            .with_body(JSON, object.to_string());
        let call = if dry_run {
            call.query("dryRun", "All")
        } else {
            call
        };
        hand.json(call).await.map_err(of_cluster)?;
        Ok(())
    }

    async fn server_side_diff(
        &self,
        app: &Application,
        pairs: Vec<DiffPair>,
    ) -> Result<Vec<Diff>, ApiError> {
        let hand = self.hand(app).await?;
        let rules = self.records.compare_rules(app).map_err(ApiError::plain)?;
        let annotations = &app.metadata.annotations;
        let include_webhooks = annotations
            .get(marks::COMPARE_OPTIONS)
            .is_some_and(|all| all.split(',').any(|o| o.trim() == INCLUDE_WEBHOOKS));
        let executor = match &hand.user {
            Some(user) => hand.cluster.executor.as_user(user),
            None => hand.cluster.executor.clone(),
        };
        let asked: Vec<&Object> = pairs
            .iter()
            .filter(|pair| pair.live.is_some())
            .filter_map(|pair| pair.target.as_ref())
            .collect();
        let answers = executor.predict_all(&asked).await;
        heavy::run(move || {
            let (options, mut answers) = (diff::Options::from(&rules), answers.into_iter());
            let difference = |pair: DiffPair| {
                let (Some(target), Some(live)) = (&pair.target, &pair.live) else {
                    return Ok(diff::diff(pair.target.as_ref(), pair.live.as_ref(), &options));
                };
                let predicted = answers.next().unwrap_or_else(|| Err(String::new()));
                predicted
                    .map_err(|why| {
                        let (kind, name) = (target.kind(), target.name());
                        format!("error running server side apply in dryrun mode for resource {kind}/{name}: {why}")
                    })
                    .and_then(|predicted| {
                        diff::server_side(target, live, &predicted, include_webhooks, &options)
                    })
                    .map_err(|why| ApiError::plain(why).context("error performing state diffs"))
            };
            pairs.into_iter().map(difference).collect()
        })
        .await
    }

    async fn events(
        &self,
        app: &Application,
        namespace: &str,
        field_selector: &str,
    ) -> Result<EventList, ApiError> {
        let hand = self.hand(app).await?;
        super::events(
            hand.cluster.cache.discovery().cluster(),
            hand.user,
            namespace,
            field_selector,
        )
        .await
    }

    async fn logs(
        &self,
        app: &Application,
        pod: &LiveRef,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogEntry, ApiError>>, ApiError> {
        let hand = self.hand(app).await?;
        let mut query = String::from("timestamps=true");
        let text = |flag: bool| {
            if flag {
                "true".to_owned()
            } else {
                String::new()
            }
        };
        let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
        for (name, value) in [
            ("container", options.container.clone()),
            ("follow", text(options.follow)),
            ("previous", text(options.previous)),
            ("sinceSeconds", number(options.since_seconds)),
            (
                "sinceTime",
                options
                    .since_time
                    .map(|t| t.to_string())
                    .unwrap_or_default(),
            ),
            ("tailLines", number(options.tail_lines)),
        ] {
            if !value.is_empty() {
                push_query(&mut query, name, &value);
            }
        }
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?{query}",
            encode(&pod.namespace),
            encode(&pod.name)
        );
        let request = hand
            .user
            .iter()
            .fold(Request::get(path), |r, user| {
                r.header(IMPERSONATE_USER, &**user)
            })
            .body(kube::client::Body::empty())
            .map_err(|e| ApiError::internal(e.to_string()))?;
        let failed = |e: &dyn std::fmt::Display| ApiError::new(Code::Unavailable, e.to_string());
        let response = hand
            .cluster
            .cache
            .discovery()
            .cluster()
            .client()
            .send(request)
            .await
            .map_err(|e| failed(&e))?;
        let (status, body) = (response.status(), response.into_body());
        if !status.is_success() {
            let bytes = body.collect().await.map_err(|e| failed(&e))?.to_bytes();
            let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            return Err(failed(&said["message"].as_str().unwrap_or(status.as_str())));
        }
        let chunks = body
            .into_data_stream()
            .map_err(|e| std::io::Error::other(e.to_string()))
            .boxed();
        Ok(lines(chunks, pod.name.clone()))
    }

    async fn shell(
        &self,
        app: &Application,
        pod: &LiveRef,
        container: &str,
        command: &str,
    ) -> Result<Shell, ApiError> {
        let hand = self.hand(app).await?;
        let cluster = hand.cluster.cache.discovery().cluster();
        let at = (pod.namespace.as_str(), pod.name.as_str(), container);
        streams::shell(cluster, at, command, hand.user.as_deref())
            .await
            .map_err(|e| ApiError::new(Code::Unavailable, e.to_string()))
    }

    fn destinations(&self) -> Vec<Destination> {
        self.records.settings().destinations.to_vec()
    }

    async fn info(&self, server: &str) -> Option<ClusterInfo> {
        // A list of clusters is worth more than an error.
        let unknown = |e: ApiError| {
            Some(ClusterInfo {
                connection_state: ConnectionState {
                    status: "Unknown".into(),
                    message: e.message,
                    attempted_at: Some(Timestamp::now().into()),
                },
                ..ClusterInfo::default()
            })
        };
        self.published.cluster(server).await.unwrap_or_else(unknown)
    }

    async fn probe(&self, cluster: &SecretRecord) -> Result<String, ApiError> {
        Ok(self.connect(cluster).await?.version().plain())
    }

    async fn renew_token(&self, cluster: &SecretRecord, token: &str) -> Result<NewToken, ApiError> {
        // Before the connection: it may be the token that does not work any more.
        let owner = TokenOwner::of(token)
            .map_err(|e| failed(e).context("failed to parse service account token"))?;
        let connected = self.connect(cluster).await?;
        let (secret, token) = manager::renew(connected.http(), &owner)
            .await
            .map_err(|e| failed(e).context("failed to generate new cluster manager secret"))?;
        Ok(NewToken { secret, token })
    }

    async fn retire_token(
        &self,
        cluster: &SecretRecord,
        token: &str,
        new: &NewToken,
    ) -> Result<(), ApiError> {
        let owner = TokenOwner::of(token).map_err(failed)?;
        let connected = self.connect(cluster).await?;
        manager::retire(connected.http(), &owner, &new.secret)
            .await
            .map_err(|e| failed(e).context("failed to rotate service account secrets"))
    }
}

fn object_of(secret: &SecretRecord) -> Object {
    let gvk = Gvk::new("", "v1", "Secret");
    let mut object = Object::skeleton(&gvk, "", &secret.name);
    let data: Map<String, Value> = secret
        .data
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(value).into()))
        .collect();
    object.0.insert("data".to_owned(), data.into());
    object
}

fn failed(e: impl std::fmt::Display) -> ApiError {
    ApiError::plain(e.to_string())
}

/// Lines of a log with `timestamps=true`, each with its time.
fn lines(
    chunks: BoxStream<'static, Result<bytes::Bytes, std::io::Error>>,
    pod: String,
) -> BoxStream<'static, Result<LogEntry, ApiError>> {
    futures::stream::unfold(
        (chunks, BytesMut::new(), false),
        move |(mut chunks, mut buffer, mut ended)| {
            let pod = pod.clone();
            async move {
                loop {
                    if let Some(end) = buffer.iter().position(|b| *b == b'\n') {
                        let line = buffer.split_to(end + 1);
                        return Some((Ok(entry(&line[..end], &pod)), (chunks, buffer, ended)));
                    }
                    if buffer.len() > MAX_LINE || (ended && !buffer.is_empty()) {
                        let line = buffer.split();
                        return Some((Ok(entry(&line, &pod)), (chunks, buffer, ended)));
                    }
                    if ended {
                        return None;
                    }
                    match chunks.next().await {
                        Some(Ok(chunk)) => buffer.extend_from_slice(&chunk),
                        Some(Err(e)) => {
                            let e = ApiError::new(
                                Code::Unavailable,
                                format!("the log of {pod} broke off: {e}"),
                            );
                            return Some((Err(e), (chunks, BytesMut::new(), true)));
                        }
                        None => ended = true,
                    }
                }
            }
        },
    )
    .boxed()
}

fn entry(line: &[u8], pod: &str) -> LogEntry {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\r');
    let timed = line
        .split_once(' ')
        .and_then(|(time, rest)| Some((time, time.parse::<Timestamp>().ok()?, rest)));
    let (time_text, time, content) = match timed {
        Some((text, time, rest)) => (text.to_owned(), time, rest),
        None => {
            let now = Timestamp::now();
            (now.to_string(), now, line)
        }
    };
    LogEntry {
        content: content.to_owned(),
        time_stamp: time.into(),
        last: false,
        time_stamp_str: time_text,
        pod_name: pod.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_log_comes_in_lines_whatever_the_chunks() {
        let chunks = [
            "2026-01-02T03:04:05.678Z one\n2026-01-02T03:0",
            "4:06Z two\nno time",
            "",
        ];
        let chunks = futures::stream::iter(chunks.map(|c| Ok(bytes::Bytes::from(c)))).boxed();
        let read: Vec<_> = lines(chunks, "p".into())
            .map(|l| l.expect("a line"))
            .collect()
            .await;
        assert_eq!(
            read.iter().map(|l| l.content.as_str()).collect::<Vec<_>>(),
            ["one", "two", "no time"]
        );
        assert_eq!(read[0].time_stamp_str, "2026-01-02T03:04:05.678Z");
    }
}
