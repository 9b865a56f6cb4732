//! The connection between a controller and its API server, which injects faults. Main types:
//! [`Wire`] and [`Plan`].
//!
//! A controller that dies here dies like with `kill -9`: requests sent before may have been
//! executed, their responses are never seen, and nothing it does afterwards arrives anywhere.

mod answer;
mod gate;
mod held;
mod plan;

use answer::{cut, refusal, status, streamed, whole, without_kinds};
use bytes::{Bytes, BytesMut};
pub use gate::Gate;
use held::Held;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
pub use plan::{Errors, Fate, Moment, Plan};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};
use tiphys_cluster::{
    Cluster, ConnectOptions, Source,
    connect::{Client, in_process},
};
use tiphys_embedded_kube::EmbeddedKube;
use tokio::{
    sync::{Notify, mpsc},
    time::{Duration, Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceExt};

const SERVER: &str = "https://kubernetes.default.svc";

/// The outcome of a write.
#[derive(Clone, Debug)]
pub struct Write {
    pub what: String,
    pub code: u16,
    pub at: Instant,
    /// The API server was only asked for a dry run.
    pub is_dry_run: bool,
}

#[derive(Default)]
struct State {
    plan: Plan,
    events: usize,
    writes: Vec<Write>,
    /// For each hook, by name and operation: the uids with which it was created.
    hooks: BTreeMap<(String, String), BTreeSet<String>>,
    /// For each Application the start times of its operations.
    started: BTreeSet<(String, String)>,
    /// The first response to each list in each process.
    lists: BTreeMap<(usize, String), Bytes>,
    /// Lists that this process has requested.
    listed: BTreeSet<String>,
    faults: BTreeMap<&'static str, usize>,
}

/// The API server behind a wire.
#[derive(Clone)]
pub enum Server {
    Embedded(Arc<EmbeddedKube>),
    /// The one of this kubeconfig; each process has connections of its own.
    Real(PathBuf),
}

impl From<Arc<EmbeddedKube>> for Server {
    fn from(kube: Arc<EmbeddedKube>) -> Self {
        Self::Embedded(kube)
    }
}

/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Wire {
    state: Arc<Mutex<State>>,
    /// Which process is alive.
    process: Arc<AtomicUsize>,
    died: Arc<Notify>,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Wire {
    pub fn new(plan: Plan) -> Self {
        let wire = Self::default();
        wire.state().plan = plan;
        wire
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    /// Changes which faults are injected from now on.
    pub fn plan<R>(&self, change: impl FnOnce(&mut Plan) -> R) -> R {
        change(&mut self.state().plan)
    }

    pub fn writes(&self) -> Vec<Write> {
        self.state().writes.clone()
    }

    pub fn events(&self) -> usize {
        self.state().events
    }

    /// Changes whenever a process starts or dies.
    pub fn process(&self) -> usize {
        self.process.load(Ordering::Relaxed)
    }

    /// How often each kind of fault was injected.
    pub fn faults(&self) -> BTreeMap<&'static str, usize> {
        self.state().faults.clone()
    }

    /// How many operations started, counted by start time.
    pub fn started(&self) -> usize {
        self.state().started.len()
    }

    /// Hooks that were created more than once for one operation.
    pub fn repeated_hooks(&self) -> Vec<String> {
        let hooks = &self.state().hooks;
        hooks
            .iter()
            .filter(|(_, uids)| uids.len() > 1)
            .map(|((name, id), uids)| format!("{name} of {id}: {uids:?}"))
            .collect()
    }

    /// The API server as a new process sees it; the previous one is dead.
    pub fn service(
        &self,
        kube: &EmbeddedKube,
    ) -> impl tower::Service<
        Request<Body>,
        Response = Answer,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static {
        let (begun, router) = (self.begin(), kube.router());
        tower::service_fn(move |request| {
            let (line, router) = (begun.clone(), router.clone());
            async move {
                Ok(line
                    .carry(
                        |r| async { router.oneshot(r).await.expect("it cannot fail") },
                        request,
                    )
                    .await)
            }
        })
    }

    /// The connection of a new process; the previous one is dead.
    fn begin(&self) -> Line {
        let process = self.process.fetch_add(1, Ordering::Relaxed) + 1;
        let mut state = self.state();
        state.listed.clear();
        // Only the lists of the previous process are ever seen again.
        state.lists.retain(|(of, _), _| *of + 2 >= process);
        drop(state);
        Line {
            wire: self.clone(),
            process,
        }
    }

    /// A real API server as a new process sees it; the previous one is dead. Watches have a
    /// connection of their own: one carries a limited number of requests at a time.
    fn in_front_of(
        &self,
        requests: Client,
        watches: Client,
    ) -> impl tower::Service<
        Request<Body>,
        Response = Answer,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static {
        let begun = self.begin();
        tower::service_fn(move |request: Request<Body>| {
            let is_watch = request
                .uri()
                .query()
                .is_some_and(|q| q.contains("watch=true"));
            let client = if is_watch {
                watches.clone()
            } else {
                requests.clone()
            };
            let line = begun.clone();
            let send = async move |request| match client.send(request).await {
                Ok(answer) => answer.map(|body| body.map_err(BoxError::from).boxed_unsync()),
                Err(error) => {
                    let body = Full::from(error.to_string()).map_err(|e| match e {});
                    let mut answer = Response::new(body.boxed_unsync());
                    *answer.status_mut() = StatusCode::BAD_GATEWAY;
                    answer
                }
            };
            async move { Ok(line.carry(send, request).await) }
        })
    }

    /// Kills the process immediately.
    pub fn kill(&self) {
        self.process.fetch_add(1, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Returns when a process has died.
    async fn died(&self) {
        self.died.notified().await;
    }

    /// The server as a new process sees it, if it answers.
    async fn connected(self, server: Server) -> Option<Cluster> {
        let (client, server) = match server {
            Server::Embedded(kube) => (in_process(self.service(&kube)), SERVER.to_owned()),
            Server::Real(file) => {
                let options = || ConnectOptions::kubeconfig(Some(file.clone()), None);
                let requests = Cluster::connect(options()).await.ok()?;
                let watches = Cluster::connect(options()).await.ok()?;
                let service = self.in_front_of(requests.client(), watches.client());
                (in_process(service), requests.server().to_owned())
            }
        };
        let options = ConnectOptions::new(Source::Client { client, server });
        Cluster::connect(options).await.ok()
    }

    /// Runs a process behind this wire until `stop`, and the next one whenever one dies here, after
    /// a pause of `down`.
    pub async fn supervise<F>(
        self,
        server: impl Into<Server>,
        (stop, down): (CancellationToken, Duration),
        process: impl Fn(Cluster) -> F + Clone + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let server = server.into();
        while !stop.is_cancelled() {
            let connected = self.clone().connected(server.clone());
            let process = process.clone();
            let mut running = tokio::spawn(async move {
                // Without a server it ends, too.
                if let Some(cluster) = connected.await {
                    process(cluster).await;
                }
            });
            tokio::select! {
                ended = &mut running => ended.expect("the controller ends in order"),
                () = self.died() => running.abort(),
            }
            sleep(down).await;
        }
    }
}

/// The connection of one process.
#[derive(Clone)]
struct Line {
    wire: Wire,
    process: usize,
}

/// What happens to a request.
enum Fault {
    None,
    Death(Moment),
    Refused(u16, String, bool),
    /// It never arrives, and there is no response.
    Lost,
    /// It is executed, but there is no response.
    Silent,
    /// It is executed, and the response breaks off.
    Cut,
}

impl Line {
    async fn carry<F, B>(
        self,
        send: impl FnOnce(Request<Body>) -> F,
        request: Request<Body>,
    ) -> Answer
    where
        F: Future<Output = Response<B>>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.alive().await;
        let method = request.method().clone();
        let (path, query) = (
            request.uri().path().to_owned(),
            request.uri().query().unwrap_or_default().to_owned(),
        );
        let what = format!("{method} {path}");
        let slow = self
            .wire
            .state()
            .plan
            .slow
            .iter()
            .find(|(part, _)| what.contains(part.as_str()))
            .map(|(_, time)| *time);
        if let Some(time) = slow {
            sleep(time).await;
        }
        if let Some(gate) = self.gate(&what) {
            gate.pass().await;
        }
        let watches = query.contains("watch=true");
        let list =
            (method == Method::GET && query.contains("limit=")).then(|| format!("{path}?{query}"));
        if let Some(old) = list.as_ref().and_then(|list| self.old_list(list)) {
            return whole(StatusCode::OK, old);
        }
        let is_dry_run = query.contains("dryRun=");
        let size = request.body().size_hint().lower();
        let fault = self.fault(&method, &path, watches, size);
        match &fault {
            Fault::Death(Moment::Before) => return self.die().await,
            Fault::Refused(code, message, wait) => {
                let answer = refusal(*code, message, *wait);
                if method != Method::GET {
                    self.note(&what, is_dry_run, answer.status(), &[]);
                }
                return answer;
            }
            Fault::Lost => std::future::pending().await,
            _ => {}
        }
        let (parts, body) = send(request).await.into_parts();
        if watches && parts.status.is_success() {
            let (sender, receiver) = mpsc::unbounded_channel();
            tokio::spawn(self.relay(body.map_err(Into::into).boxed_unsync(), sender));
            return Response::from_parts(parts, streamed(receiver));
        }
        let bytes = body
            .map_err(Into::into)
            .boxed_unsync()
            .collect()
            .await
            .map(|b| b.to_bytes())
            .unwrap_or_default();
        if method != Method::GET {
            self.note(&what, is_dry_run, parts.status, &bytes);
        }
        let stale = self.wire.state().plan.stale;
        let bytes = match stale.filter(|_| path == "/apis") {
            Some(groups) => without_kinds(&bytes, groups),
            None => bytes,
        };
        if let Some(list) = list.filter(|_| parts.status.is_success()) {
            self.wire
                .state()
                .lists
                .entry((self.process, list))
                .or_insert_with(|| bytes.clone());
        }
        match fault {
            Fault::Death(_) => self.die().await,
            Fault::Silent => std::future::pending().await,
            Fault::Cut => cut(parts.status, &bytes),
            _ => whole(parts.status, bytes),
        }
    }

    /// What a request waits for.
    fn gate(&self, what: &str) -> Option<Gate> {
        let state = self.wire.state();
        let mut gates = state.plan.gates.iter();
        let found = gates.find(|(part, _)| is_meant(what, part));
        found.map(|(_, gate)| gate.clone())
    }

    /// Waits forever if the process is dead.
    async fn alive(&self) {
        if !self.is_alive() {
            std::future::pending().await
        }
    }

    fn is_alive(&self) -> bool {
        self.wire.process.load(Ordering::Relaxed) == self.process
    }

    async fn die(&self) -> Answer {
        self.wire.kill();
        std::future::pending().await
    }

    fn old_list(&self, list: &str) -> Option<Bytes> {
        let mut state = self.wire.state();
        if !state.plan.old_lists.is_some_and(|part| list.contains(part))
            || !state.listed.insert(list.to_owned())
        {
            return None;
        }
        // A process uses two numbers: one alive, one dead.
        let old = self
            .process
            .checked_sub(2)
            .and_then(|before| state.lists.get(&(before, list.to_owned())).cloned());
        if old.is_some() {
            *state.faults.entry("old list").or_default() += 1;
        }
        old
    }

    fn fault(&self, method: &Method, path: &str, watches: bool, size: u64) -> Fault {
        let mut state = self.wire.state();
        let write = (method != Method::GET).then_some(state.writes.len());
        let what = format!("{method} {path}");
        let is_meant = |part: &str| is_meant(&what, part);
        if let Some((_, code, message)) = state
            .plan
            .refusals
            .iter()
            .find(|(part, ..)| is_meant(part))
            .cloned()
        {
            return Fault::Refused(code, message, false);
        }
        if state
            .plan
            .largest
            .is_some_and(|largest| size > largest as u64)
        {
            return Fault::Refused(
                413,
                "Request entity too large: limit is 3145728".into(),
                false,
            );
        }
        let Plan {
            deaths,
            errors,
            conflict,
            ..
        } = &mut state.plan;
        let fault = if write.is_some() && *conflict == write {
            *conflict = None;
            (
                "409",
                Fault::Refused(409, "the object has been modified".into(), false),
            )
        } else if let Some(at) =
            write.and_then(|number| deaths.iter().position(|(at, _)| *at <= number))
        {
            ("death", Fault::Death(deaths.swap_remove(at).1))
        } else {
            let drawn = errors.as_mut().and_then(|errors| {
                (errors.rng.below(100) < errors.percent).then(|| errors.draw(watches))
            });
            let Some(drawn) = drawn else {
                return Fault::None;
            };
            drawn
        };
        *state.faults.entry(fault.0).or_default() += 1;
        if matches!(fault.1, Fault::Death(Moment::Before)) {
            state.writes.push(Write {
                what,
                code: 0,
                at: Instant::now(),
                is_dry_run: false,
            });
        }
        fault.1
    }

    fn note(&self, what: &str, is_dry_run: bool, status: StatusCode, body: &[u8]) {
        let mut state = self.wire.state();
        state.writes.push(Write {
            what: what.to_owned(),
            code: status.as_u16(),
            at: Instant::now(),
            is_dry_run,
        });
        if is_dry_run || !status.is_success() {
            return;
        }
        let Ok(object) = serde_json::from_slice::<Value>(body) else {
            return;
        };
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if let (Some(name), Some(started)) = (
            text("/metadata/name"),
            text("/status/operationState/startedAt"),
        ) {
            state.started.insert((name, started));
        }
        if status != StatusCode::CREATED {
            return;
        }
        if let (Some(id), Some(name), Some(uid)) = (
            text("/metadata/annotations/tiphys.dev~1operation-id"),
            text("/metadata/name"),
            text("/metadata/uid"),
        ) {
            state.hooks.entry((name, id)).or_default().insert(uid);
        }
    }

    /// Forwards the events of a watch, each with its fate.
    async fn relay(
        self,
        mut body: UnsyncBoxBody<Bytes, BoxError>,
        out: mpsc::UnboundedSender<Result<Bytes, BoxError>>,
    ) {
        let (mut buffer, mut held) = (BytesMut::new(), Held::default());
        loop {
            let due = held.due();
            tokio::select! {
                () = out.closed() => return,
                () = async { sleep_until(due.expect("only then")).await }, if due.is_some() => {}
                frame = body.frame() => match frame {
                    Some(Ok(frame)) => buffer.extend_from_slice(&frame.into_data().unwrap_or_default()),
                    _ => return,
                },
            }
            if !self.is_alive() {
                // Its connection ends with the process.
                return;
            }
            while let Some(end) = buffer.iter().position(|b| *b == b'\n') {
                let line = buffer.split_to(end + 1).freeze();
                if self.is_lost(&line) {
                    continue;
                }
                match self.fate(&line) {
                    Some(Fate::Dropped) => {
                        let gone = json!({"type": "ERROR", "object": status(410, "Expired", "too old resource version")});
                        let _ = out.send(Ok(Bytes::from(format!("{gone}\n"))));
                        return;
                    }
                    Some(Fate::Broken) => {
                        let _ = out.send(Ok(line.slice(..line.len() / 2)));
                        let _ = out.send(Err("the connection is cut".into()));
                        return;
                    }
                    Some(Fate::Merged) => held.merges(line),
                    None => held.put(line),
                }
            }
            let lag = self.wire.state().plan.lag;
            held.released(lag)
                .into_iter()
                .for_each(|line| drop(out.send(Ok(line))));
        }
    }

    /// Whether an event is never told, and the watch goes on.
    fn is_lost(&self, line: &[u8]) -> bool {
        let Some(name) = self.wire.state().plan.lost_deletion else {
            return false;
        };
        let event: Value = serde_json::from_slice(line).unwrap_or_default();
        event["type"] == "DELETED" && event["object"]["metadata"]["name"] == name
    }

    fn fate(&self, line: &[u8]) -> Option<Fate> {
        if line.starts_with(br#"{"type":"BOOKMARK""#) || line.starts_with(br#"{"type":"ERROR""#) {
            return None;
        }
        let mut state = self.wire.state();
        let number = state.events;
        state.events += 1;
        let (_, fate) = state.plan.event.filter(|(at, _)| *at == number)?;
        let name = match fate {
            Fate::Dropped => "event dropped",
            Fate::Merged => "event merged",
            Fate::Broken => "event broken",
        };
        *state.faults.entry(name).or_default() += 1;
        Some(fate)
    }
}

/// Whether a request is the one that a part of `METHOD path` (with `$`: its end) names.
fn is_meant(what: &str, part: &str) -> bool {
    part.strip_suffix('$')
        .map_or_else(|| what.contains(part), |end| what.ends_with(end))
}

impl Errors {
    fn draw(&mut self, watches: bool) -> (&'static str, Fault) {
        match self.rng.below(if watches { 5 } else { 8 }) {
            0 => (
                "500",
                Fault::Refused(500, "the store is away".into(), false),
            ),
            1 => ("503", Fault::Refused(503, "nobody answers".into(), false)),
            2 => ("429", Fault::Refused(429, "slow down".into(), true)),
            3 => (
                "409",
                Fault::Refused(409, "the object has been modified".into(), false),
            ),
            4 => ("lost", Fault::Lost),
            5 => ("silent", Fault::Silent),
            _ => ("cut", Fault::Cut),
        }
    }
}
