//! Executes the effects of a sync; the only code that writes to a cluster for one.
//!
//! Main type: [`Executor`]. It executes effects as they are and reports the API server's answers;
//! the engine decides what follows. What it wrote is in the cache before it returns.

mod absent;
mod apply;
mod remove;
mod replace;

use crate::{
    cache::LiveCache,
    discovery::{Discovery, Kind},
    error::Error,
    request::{Call, JSON},
};
use futures::{StreamExt, stream};
use http::Method;
use std::{sync::Arc, time::Duration};
use tiphys_api::constants;
use tiphys_apimachinery::{Gvk, Object, ResourceKey};
use tiphys_engine::diff;
use tiphys_engine::sync::{
    Effect, Outcome, Refused, Step,
    effect::{ApplyMode, EffectErr, EffectOk, Write},
    missing::not_found,
};
use tiphys_engine::types::KindInfo;
use tokio::time::{Instant, sleep};

/// Concurrent effects of one sync.
const PARALLEL: usize = 24;
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait until a kind created by this sync is served, and the polling interval.
const SERVED: Duration = Duration::from_secs(5);
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Writes to one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    discovery: Discovery,
    /// Writes are added to it, and it saves reads.
    cache: Option<LiveCache>,
    manager: Arc<str>,
    dry_run: bool,
    /// The user to impersonate; empty: none.
    impersonate: Option<Arc<str>>,
    observer: Option<RequestObserver>,
}

/// Called for every request of an executor that got a response, with its HTTP status.
pub type RequestObserver = Arc<dyn Fn(&Call, u16) + Send + Sync>;

impl Executor {
    pub fn new(cache: LiveCache) -> Self {
        Self {
            discovery: cache.discovery().clone(),
            cache: Some(cache),
            manager: constants::FIELD_MANAGER.into(),
            dry_run: false,
            impersonate: None,
            observer: None,
        }
    }

    /// Without a cache every write reads first.
    pub fn without_cache(discovery: Discovery) -> Self {
        Self {
            discovery,
            cache: None,
            manager: constants::FIELD_MANAGER.into(),
            dry_run: false,
            impersonate: None,
            observer: None,
        }
    }

    /// The same, with the server's dry run (`dryRun=All`).
    pub fn server_dry_run(&self) -> Self {
        Self {
            dry_run: true,
            ..self.clone()
        }
    }

    /// The same, impersonating `user`, such as `system:serviceaccount:<namespace>:<name>`.
    pub fn as_user(&self, user: &str) -> Self {
        Self {
            impersonate: Some(user.into()),
            ..self.clone()
        }
    }

    /// The same, with an observer of its requests.
    pub fn witnessed(&self, observer: RequestObserver) -> Self {
        Self {
            observer: Some(observer),
            ..self.clone()
        }
    }

    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Executes one effect; `index` is its index in the decision.
    pub async fn run(&self, index: usize, effect: &Effect) -> Outcome {
        let result = match effect {
            Effect::DryRun(write) => self.check(write).await,
            Effect::Apply(write) | Effect::RunHook(write) => self.write(write).await,
            Effect::Prune {
                step,
                uid,
                propagation,
            }
            | Effect::DeleteHook {
                step,
                uid,
                propagation,
            } => self.delete(step, uid, propagation.as_str()).await,
            Effect::RemoveFinalizer {
                step,
                uid,
                finalizer,
            } => self.remove_finalizer(step, uid, finalizer).await,
            Effect::MigrateManagers { step, uid, manager } => {
                self.migrate_managers(step, uid, manager).await
            }
            Effect::Read { step } => self.read(step).await,
        };
        // A write that returns "not found" misses its namespace, not its object.
        let writes = matches!(
            effect,
            Effect::DryRun(_) | Effect::Apply(_) | Effect::RunHook(_)
        );
        let about = match effect {
            Effect::DryRun(write) | Effect::Apply(write) | Effect::RunHook(write) => {
                write.step.target.as_deref()
            }
            _ => None,
        };
        let result = match result {
            Ok(done) => Ok(done),
            Err(e) => {
                let not_found = !writes && self.says_gone(&e, &effect.step().key).await;
                let message = message_of(e);
                Err(EffectErr {
                    not_found,
                    message: match about {
                        Some(object) => diff::shown_message(&message, object),
                        None => message,
                    },
                })
            }
        };
        tracing::debug!(%effect, error = result.as_ref().err().map(|e| &*e.message), "done");
        Outcome {
            effect: index,
            result,
        }
    }

    /// Creates an object that must not exist yet, if it is permitted in the scope of its kind.
    pub async fn create(&self, object: &Object, refused: &Refused) -> Result<Object, Error> {
        let kind = self.kind(&object.gvk(), &object.key()).await?;
        check_permitted(refused, &kind)?;
        Job {
            executor: self,
            kind,
            target: Arc::new(object.clone()),
            force: false,
        }
        .create(&self.manager)
        .await
    }

    /// The live object as a server-side apply would leave it, by the API server's dry run.
    pub async fn predict(&self, desired: &Object) -> Result<Object, Error> {
        let executor = self.server_dry_run();
        let kind = executor.kind(&desired.gvk(), &desired.key()).await?;
        let job = Job {
            executor: &executor,
            kind,
            target: Arc::new(desired.clone()),
            force: false,
        };
        let done = job.apply_server_side().await?;
        done.live
            .ok_or_else(|| invalid(&desired.key(), "the API server answered without the object"))
    }

    /// The same for several objects concurrently; results in the same order.
    pub async fn predict_all(&self, desired: &[&Object]) -> Vec<Result<Object, String>> {
        let told = async |object: &Object| {
            self.predict(object)
                .await
                .map_err(|e| diff::shown_message(&message_of(e), object))
        };
        let runs: Vec<_> = desired.iter().map(|object| told(object)).collect();
        stream::iter(runs).buffered(PARALLEL).collect().await
    }

    /// Executes one group of effects concurrently; `first` is the index of the first of them.
    pub async fn run_batch(&self, first: usize, effects: &[Effect]) -> Vec<Outcome> {
        // Collected, because the future of a closure over borrowed effects could not be spawned.
        let runs: Vec<_> = effects
            .iter()
            .enumerate()
            .map(|(i, effect)| self.run(first + i, effect))
            .collect();
        let mut outcomes: Vec<Outcome> = stream::iter(runs)
            .buffer_unordered(PARALLEL)
            .collect()
            .await;
        outcomes.sort_by_key(|o| o.effect);
        outcomes
    }

    /// Executes all groups of a decision, one after another; after a crash, a prefix of them is
    /// done.
    pub async fn run_all(&self, decision: &tiphys_engine::sync::Decision) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(decision.effects.len());
        for (first, effects) in decision.batches() {
            outcomes.extend(self.run_batch(first, effects).await);
        }
        outcomes
    }

    /// The target, with its kind as the cluster serves it, if it is permitted in that scope.
    async fn target(&self, step: &Step) -> Result<(Arc<Object>, Arc<Kind>), Error> {
        let mut target = step.target.clone().ok_or_else(|| Error::Invalid {
            key: step.key.to_string(),
            problem: "the plan does not have the object to be written; make it again".into(),
        })?;
        let kind = self.permitted_kind(step).await?;
        if !kind.namespaced && !target.namespace().is_empty() {
            // Planned while its scope was not known.
            Arc::make_mut(&mut target).set_namespace("");
        }
        Ok((target, kind))
    }

    /// The kind of a step that changes an object. The request is made in the scope of this very
    /// kind, so no other one can be meant when permission is checked.
    async fn permitted_kind(&self, step: &Step) -> Result<Arc<Kind>, Error> {
        let kind = self.kind(&step.gvk, &step.key).await?;
        check_permitted(&step.refused, &kind)?;
        Ok(kind)
    }

    async fn kind(&self, gvk: &Gvk, key: &ResourceKey) -> Result<Arc<Kind>, Error> {
        match self.discovery.resolve(gvk).await {
            Err(Error::UnknownKind { .. }) => {
                let installed = self.discovery.kinds().installed(&gvk.group_kind());
                let problem = not_found(gvk, &key.namespace, &key.name, installed.as_ref());
                Err(Error::Invalid {
                    key: key.to_string(),
                    problem,
                })
            }
            result => result,
        }
    }

    /// Checks that the object is well-formed, of a kind that the cluster has and, if there is a
    /// live object, can be patched.
    async fn check(&self, write: &Write) -> Result<EffectOk, Error> {
        let (target, kind) = self.target(&write.step).await?;
        target.check_identity().map_err(|e| Error::Invalid {
            key: write.step.key.to_string(),
            problem: e.to_string(),
        })?;
        let verb = match write.mode {
            ApplyMode::Replace | ApplyMode::Update => "replaced",
            ApplyMode::Create => "created",
            ApplyMode::ClientSide | ApplyMode::ServerSide => {
                let job = Job {
                    executor: self,
                    kind: kind.clone(),
                    target: target.clone(),
                    force: write.force,
                };
                job.check_name()?;
                job.client_dry_run().await?
            }
        };
        Ok(EffectOk {
            live: None,
            message: format!("{} {verb} (dry run)", kind.print_name(name_of(&target))),
        })
    }

    /// Waits for a kind whose CRD was just created: an API server lists it a moment after it is
    /// established.
    async fn await_kind(&self, gvk: &Gvk) {
        let deadline = Instant::now() + SERVED;
        while self.discovery.resolve(gvk).await.is_err() && Instant::now() < deadline {
            sleep(ASK_AGAIN).await;
        }
    }

    async fn write(&self, write: &Write) -> Result<EffectOk, Error> {
        // Without a dry run, because its kind did not exist when the sync was planned.
        if write.step.skip_dry_run {
            self.await_kind(&write.step.gvk).await;
        }
        let (target, kind) = self.target(&write.step).await?;
        let _running =
            command(write.mode).map(|name| self.discovery.cluster().http().traffic().command(name));
        let job = Job {
            executor: self,
            kind,
            target,
            force: write.force,
        };
        if matches!(write.mode, ApplyMode::ClientSide | ApplyMode::ServerSide) {
            job.check_name()?;
        }
        match write.mode {
            ApplyMode::ClientSide => job.apply_client_side().await,
            ApplyMode::ServerSide => job.apply_server_side().await,
            ApplyMode::Replace if write.force => job.recreate("replaced").await,
            ApplyMode::Replace => job.replace().await,
            ApplyMode::Create => job
                .create("kubectl-create")
                .await
                .map(|live| job.done(live, "created")),
            ApplyMode::Update => job.update().await,
        }
    }

    async fn read(&self, step: &Step) -> Result<EffectOk, Error> {
        let kind = self.kind(&step.gvk, &step.key).await?;
        let live = self.get(&kind, &step.key.namespace, &step.key.name).await?;
        Ok(EffectOk {
            live: Some(live),
            message: String::new(),
        })
    }

    /// Reads the object from the server and adds it to the cache.
    async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Object, Error> {
        if name.is_empty() {
            // An empty name would list the collection.
            let key = ResourceKey::new(&kind.gvk.group, &kind.gvk.kind, namespace, "");
            return Err(Error::Invalid {
                key: key.to_string(),
                problem: NAMELESS.into(),
            });
        }
        let object = self
            .send(Call::get(kind.object_path(namespace, name)))
            .await?;
        self.observe(&object);
        Ok(object)
    }

    async fn send(&self, mut call: Call) -> Result<Object, Error> {
        if self.dry_run && call.method != Method::GET {
            call = call.query("dryRun", "All");
        }
        call.impersonate.clone_from(&self.impersonate);
        let call = call.timeout(WRITE_TIMEOUT);
        let answer = self.discovery.cluster().http().json(&call).await;
        if let Some(observer) = &self.observer {
            let code = match &answer {
                Ok(_) if call.method == Method::POST => Some(201),
                Ok(_) => Some(200),
                Err(e) => Error::code(e),
            };
            code.iter().for_each(|code| observer(&call, *code));
        }
        answer
    }

    fn observe(&self, object: &Object) {
        if let (Some(cache), false) = (&self.cache, self.dry_run) {
            cache.observe(object);
        }
    }

    /// Like [`Self::observe`], for the answer to a write.
    async fn observe_written(&self, object: &Object) {
        if let (Some(cache), false) = (&self.cache, self.dry_run) {
            cache.observe_written(object).await;
        }
    }

    fn observe_deleted(&self, key: &ResourceKey, uid: &str) {
        if let (Some(cache), false) = (&self.cache, self.dry_run) {
            cache.observe_deleted(key, uid);
        }
    }
}

/// A project may permit an object in one scope and not in the other. The plan may be older than the
/// kind, or than its definition, so it does not know which scope that is.
fn check_permitted(refused: &Refused, kind: &Kind) -> Result<(), Error> {
    match refused.at(kind.namespaced) {
        Some(why) => Err(Error::NotPermitted(why.to_owned())),
        None => Ok(()),
    }
}

/// client-go's error for an object without a name.
const NAMELESS: &str = "resource name may not be empty";

/// The name of the kubectl command.
fn command(mode: ApplyMode) -> Option<&'static str> {
    match mode {
        ApplyMode::ClientSide | ApplyMode::ServerSide => Some("apply"),
        ApplyMode::Replace => Some("replace"),
        ApplyMode::Create => Some("create"),
        ApplyMode::Update => None,
    }
}

/// The message of an invalid object without its key, which the result contains anyway.
fn message_of(error: Error) -> String {
    match error {
        Error::Invalid { problem, .. } => problem,
        other => other.to_string(),
    }
}

/// The name, or the `generateName` prefix.
fn name_of(object: &Object) -> &str {
    if object.name().is_empty() {
        object.generate_name()
    } else {
        object.name()
    }
}

/// One object being written.
struct Job<'a> {
    executor: &'a Executor,
    kind: Arc<Kind>,
    target: Arc<Object>,
    force: bool,
}

impl Job<'_> {
    fn namespace(&self) -> &str {
        if self.kind.namespaced {
            self.target.namespace()
        } else {
            ""
        }
    }

    fn key(&self) -> ResourceKey {
        ResourceKey {
            namespace: self.namespace().to_owned(),
            ..self.target.key()
        }
    }

    fn path(&self) -> String {
        self.kind.object_path(self.namespace(), self.target.name())
    }

    async fn get(&self) -> Result<Object, Error> {
        self.executor
            .get(&self.kind, self.namespace(), self.target.name())
            .await
    }

    async fn send(&self, call: Call) -> Result<Object, Error> {
        let object = self.executor.send(call).await?;
        self.executor.observe_written(&object).await;
        Ok(object)
    }

    async fn post(&self, object: &Object, manager: &str) -> Result<Object, Error> {
        let call = Call::new(Method::POST, self.kind.collection_path(self.namespace()));
        self.send(
            call.query("fieldManager", manager)
                .with_body(JSON, bytes_of(object)?),
        )
        .await
    }

    async fn create(&self, manager: &str) -> Result<Object, Error> {
        self.post(&self.target, manager).await
    }

    /// `deployment.apps/web created`
    fn done(&self, live: Object, verb: &str) -> EffectOk {
        let suffix = if self.executor.dry_run {
            " (server dry run)"
        } else {
            ""
        };
        EffectOk {
            message: format!("{} {verb}{suffix}", self.kind.print_name(live.name())),
            live: Some(live),
        }
    }
}

fn bytes_of(object: &Object) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(object).map_err(|e| Error::Invalid {
        key: object.key().to_string(),
        problem: e.to_string(),
    })
}

pub(super) fn invalid(key: &ResourceKey, problem: impl std::fmt::Display) -> Error {
    Error::Invalid {
        key: key.to_string(),
        problem: problem.to_string(),
    }
}
