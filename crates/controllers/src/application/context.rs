//! One reconcile of one Application: reads it, decides what is due, does it, and stores the
//! changes.
//!
//! Main type: [`ReconcileContext`]. It holds the stored and the new state of the Application.
//! [`ReconcileContext::store`] writes the difference in one patch, so that a comparison, an
//! operation's progress and the next operation need only one request.

use super::{
    comparing::answered, controller::Controller, error::Error, identity, memo::Memo, status,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{borrow::Cow, sync::Arc};
use tiphys_api::operation::OperationState;
use tiphys_api::{Application, access::without_passwords};
use tiphys_cluster::{
    app_state::AppKey,
    records::{Event, EventTarget, Record},
};
use tiphys_engine::{
    spec,
    sync::PROGRESS_ANNOTATION,
    types::{Condition, ConditionType},
};

/// One reconcile of one Application.
pub struct ReconcileContext<'a> {
    pub controller: &'a Controller,
    pub key: &'a AppKey,
    /// What is remembered about it between reconciles.
    pub memo: &'a mut Memo,
    /// As stored.
    pub record: Arc<Record<Application>>,
    pub before: Arc<Application>,
    /// The new state.
    pub app: Application,
    /// Annotations to write (`None`: to remove) with the next patch.
    pub annotations: Vec<(&'static str, Option<String>)>,
    pub now: Timestamp,
}

impl<'a> ReconcileContext<'a> {
    pub fn new(
        controller: &'a Controller,
        key: &'a AppKey,
        memo: &'a mut Memo,
        record: Arc<Record<Application>>,
    ) -> Result<Self, Error> {
        let before = synced(record.value().map_err(Error::Unreadable)?);
        let app = Application::clone(&before);
        Ok(Self {
            controller,
            key,
            memo,
            record,
            before,
            app,
            annotations: Vec::new(),
            now: controller.now(),
        })
    }

    /// The URL of its cluster; empty if there is no such cluster.
    pub fn server(&self) -> String {
        spec::destination(&self.app.spec.destination, &self.controller.destinations())
            .map(|d| d.server)
            .unwrap_or_default()
    }

    /// Sets an annotation (`None`: removes it) with the next patch.
    pub fn annotate(&mut self, name: &'static str, value: Option<String>) {
        self.annotations.retain(|(other, _)| *other != name);
        self.annotations.push((name, value));
    }

    /// Discards the recorded progress of the operation.
    pub fn forget_progress(&mut self) {
        self.annotate(PROGRESS_ANNOTATION, None);
    }

    /// Stores the changes since the last write, if there are any.
    pub async fn store(&mut self) -> Result<(), Error> {
        status::hide_passwords(&mut self.app.status);
        status::keep_times(&self.before.status, &mut self.app.status);
        let (mut from, mut to) = status::difference(&self.before, &self.app);
        let stored = &self.before.metadata.annotations;
        for (name, value) in self.annotations.drain(..) {
            if stored.get(name) != value.as_ref() {
                set_annotation(&mut from, name, stored.get(name).cloned());
                set_annotation(&mut to, name, value);
            }
        }
        // In one patch with the status: an Application that shows its hooks' revision must always
        // have the finalizers for them.
        if self.app.metadata.finalizers != self.before.metadata.finalizers {
            from["metadata"]["finalizers"] = json!(self.before.metadata.finalizers);
            to["metadata"]["finalizers"] = json!(self.app.metadata.finalizers);
        }
        if self.app.spec != self.before.spec {
            // Based on the stored spec, which may contain unknown fields.
            let stored = self.record.object()?.into_value();
            (from["spec"], to["spec"]) = (stored["spec"].clone(), stored["spec"].clone());
            spec::normalize_document(&mut to["spec"]);
            tracing::info!("Normalized app spec");
        }
        if from == to {
            return Ok(());
        }
        for text in status::events(&self.before.status, &self.app.status) {
            self.event(false, "ResourceUpdated", text);
        }
        match self
            .controller
            .records
            .applications
            .write(&self.record, &from, &to)
            .await
        {
            Err(e) if e.is_too_large() => self.store_too_large(e).await,
            written => {
                let Some(record) = written? else {
                    return Ok(());
                };
                // The server took it: what was read was not stale.
                self.memo.proved = true;
                self.take(record)
            }
        }
    }

    /// Reports that the status is too large to store, and nothing else; an operation that cannot be
    /// recorded ends. Returns the API server's error, so that the next reconcile is delayed with
    /// back-off.
    async fn store_too_large(&mut self, refusal: tiphys_cluster::Error) -> Result<(), Error> {
        let mut app = Application::clone(&self.before);
        let condition = Condition::new(ConditionType::UnknownError, status::TOO_LARGE);
        status::set_conditions(
            &mut app.status,
            &[condition],
            &[ConditionType::UnknownError],
            self.now,
        );
        if app.operation.take().is_some() {
            let state = self.app.status.operation_state.take().unwrap_or_default();
            app.status.operation_state =
                Some(status::without_results(state.into_inner(), self.now).into());
        }
        let (mut from, mut to) = status::difference(&self.before, &app);
        for &name in answered(&self.before) {
            set_annotation(
                &mut from,
                name,
                self.before.metadata.annotations.get(name).cloned(),
            );
            set_annotation(&mut to, name, None);
        }
        self.controller
            .records
            .applications
            .write(&self.record, &from, &to)
            .await?;
        self.memo.running = None;
        Err(refusal.into())
    }

    /// Continues with the server's current state.
    pub fn take(&mut self, record: Arc<Record<Application>>) -> Result<(), Error> {
        self.before = synced(record.value().map_err(Error::Unreadable)?);
        self.app = Application::clone(&self.before);
        self.record = record;
        Ok(())
    }

    /// Records a Kubernetes Event about the Application.
    pub fn event(&self, warning: bool, reason: &'static str, message: String) {
        let message = without_passwords(&message);
        let destination = &self.app.spec.destination;
        let (server, namespace) = (&destination.server, &destination.namespace);
        let type_ = if warning { "Warning" } else { "Normal" };
        tracing::info!(
            reason,
            "type" = type_,
            "dest-server" = server,
            "dest-namespace" = namespace,
            "{message}"
        );
        let target = EventTarget::application(&self.record.meta);
        let event = Event::new(target, reason, message)
            .warning(warning)
            .annotation("dest-server", &destination.server)
            .annotation("dest-namespace", &destination.namespace);
        self.controller.events.record(event);
    }
}

/// An Application whose source is what is synced, if it has a hydrator: in a reconcile it is then
/// like any other.
fn synced(app: Arc<Application>) -> Arc<Application> {
    match spec::synced(&app.spec) {
        Cow::Borrowed(_) => app,
        Cow::Owned(spec) => Arc::new(Application {
            spec: spec.into(),
            ..Application::clone(&app)
        }),
    }
}

/// Sets an annotation in a part of an object; `None`: makes sure the annotations exist without this
/// one.
fn set_annotation(part: &mut Value, name: &str, value: Option<String>) {
    let annotations = &mut part["metadata"]["annotations"];
    match value {
        Some(value) => annotations[name] = value.into(),
        None if annotations.is_null() => *annotations = json!({}),
        None => {}
    }
}

/// The state of the running operation.
pub fn state(ctx: &ReconcileContext<'_>) -> OperationState {
    ctx.app
        .status
        .operation_state
        .as_deref()
        .cloned()
        .unwrap_or_default()
}

/// The same for every reconcile of one attempt, in any process; different for the next attempt.
pub fn operation_id(ctx: &ReconcileContext<'_>) -> String {
    let state = state(ctx);
    let started = state.started_at.map_or(0, |t| t.seconds);
    identity::id(
        &ctx.app.metadata.uid,
        started,
        state.retry_count,
        ctx.app.status.history.last().map(|h| h.id),
    )
}
