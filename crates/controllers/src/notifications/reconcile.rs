//! One evaluation of one Application.

use super::controller::{Changed, Controller, lock};
use super::lookup::Repositories;
use crate::runtime::{Held, Turn};
use jiff::tz::TimeZone;
use rand::RngCore as _;
use serde_json::{Value, json};
use std::{rc::Rc, sync::Arc, time::Duration};
use tiphys_apimachinery::Object;
use tiphys_cluster::{app_state::AppKey, records::Record};
use tiphys_gocompat::{expr::Clock, sprig::Random};
use tiphys_notify::{
    Config, Delivery, Destination, Destinations, Event, Ledger, NOTIFIED, Outcome, Subject,
    destinations, evaluate, is_outdated,
    send::{World, deliver},
};
use tokio::runtime::Handle;

/// Longest time between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(900);

/// The delay after this many evaluations with a failed delivery.
fn pause(failures: u32) -> Duration {
    Duration::from_secs(1)
        .saturating_mul(1 << failures.min(10))
        .min(LONGEST_PAUSE)
}

impl Controller {
    pub async fn reconcile(self: &Arc<Self>, key: &AppKey) {
        let Turn::Ours(held) = self.turn() else {
            return;
        };
        let (mut is_evaluated, mut failed) = (false, false);
        for config in self.configs_of(&key.namespace) {
            let Some(work) = self.work(key, &config) else {
                continue;
            };
            let (controller, runtime) = (self.clone(), Handle::current());
            let held = held.clone();
            let evaluation = tokio::task::spawn_blocking(move || {
                controller.evaluate(&config, work, &runtime, held)
            });
            is_evaluated = true;
            failed |= evaluation.await.unwrap_or_else(|error| {
                tracing::error!(application = key.name, %error, "notifications: a panic");
                true
            });
        }
        if is_evaluated {
            self.again(key, failed);
        }
    }

    /// What is to be evaluated; `None` if nobody is told of the Application, or its status is too
    /// old to judge by.
    fn work(&self, key: &AppKey, config: &Config) -> Option<Work> {
        let records = &self.dependencies.records;
        let record = records.applications.get(&key.namespace, &key.name)?;
        let app = record.object().map(Object::into_value).ok()?;
        let name = app["spec"]["project"]
            .as_str()
            .filter(|name| !name.is_empty());
        let project = records
            .projects
            .get(&records.namespace, name.unwrap_or("default"))
            .and_then(|project| project.object().map(Object::into_value).ok());
        // A project's subscriptions are with the control plane's services. Those of a namespace would
        // tell them once more.
        let subscribed = project
            .as_ref()
            .filter(|_| config.key_namespace().is_none());
        let all = destinations(config, &app, subscribed);
        if all.is_empty() || is_outdated(&app) {
            return None;
        }
        let annotation = app["metadata"]["annotations"][NOTIFIED].as_str();
        let unsaved = lock(&self.memos)
            .get(key)
            .and_then(|memo| memo.unsaved.clone());
        let ledger = unsaved.unwrap_or_else(|| Ledger::parse(annotation.unwrap_or_default()));
        Some(Work {
            key: key.clone(),
            stored: annotation.map(str::to_owned),
            app,
            project,
            destinations: all,
            ledger,
        })
    }

    /// Evaluates, and writes the annotation; true if a delivery, or that, has failed.
    fn evaluate(&self, config: &Config, work: Work, runtime: &Handle, held: Held) -> bool {
        let dependencies = &self.dependencies;
        let subject = Subject {
            config,
            app: &work.app,
            project: work.project.as_ref(),
            lookup: Rc::new(Repositories {
                sources: dependencies.sources.clone(),
                runtime: runtime.clone(),
            }),
            clock: Clock {
                now: (dependencies.clock)(),
                zone: TimeZone::try_system().unwrap_or(TimeZone::UTC),
            },
        };
        let mut ledger = work.ledger;
        let mut sending = Sending {
            controller: self,
            subject: &subject,
            key: &work.key,
            runtime,
            held,
            stored: work.stored,
            unwritten: false,
        };
        let events = evaluate(&subject, &work.destinations, &mut ledger, &mut sending);
        sending.store(&ledger);
        let mut failed = sending.unwritten;
        for event in &events {
            failed |= matches!(event, Event::Failed { .. });
            dependencies.metrics.happened(event);
            told(&work.key, event);
        }
        failed
    }

    /// Evaluates the Application again later if something has failed.
    fn again(&self, key: &AppKey, failed: bool) {
        let mut memos = lock(&self.memos);
        if !failed {
            if let Some(memo) = memos.get_mut(key) {
                memo.failures = 0;
            }
            return;
        }
        let memo = memos.entry(key.clone()).or_default();
        let delay = pause(memo.failures);
        memo.failures = memo.failures.saturating_add(1);
        drop(memos);
        self.queue.visit_after(key, Changed, Some(delay));
    }
}

/// An Application with what its evaluation needs.
struct Work {
    key: AppKey,
    app: Value,
    project: Option<Value>,
    destinations: Destinations,
    /// The annotation as it is stored.
    stored: Option<String>,
    ledger: Ledger,
}

/// Delivers, and writes the annotation after each delivery.
struct Sending<'s> {
    controller: &'s Controller,
    subject: &'s Subject<'s>,
    key: &'s AppKey,
    runtime: &'s Handle,
    /// The permission to write.
    held: Held,
    stored: Option<String>,
    /// Whether the last write has failed.
    unwritten: bool,
}

impl Delivery for Sending<'_> {
    fn deliver(&mut self, to: &Destination, templates: &[String]) -> Outcome {
        // Without the lease, another replica may be sending.
        if !self.controller.turn().is_ours() {
            return Outcome::Failed("another replica sends now".into());
        }
        let mut threads = lock(&self.controller.threads).clone();
        let link = &self.controller.dependencies.link;
        let end = self.controller.shutdown.clone();
        let is_ours = || self.controller.turn().is_ours();
        let mut transport = link.waiting_until(self.runtime.clone(), end, is_ours);
        let mut world = World {
            transport: &mut transport,
            threads: &mut threads,
            now: self.subject.clock.now,
            random: &mut |bytes| rand::rng().fill_bytes(bytes),
        };
        let random: Random = Box::new(|bytes| rand::rng().fill_bytes(bytes));
        let outcome = deliver(self.subject, templates, to, random, &mut world);
        lock(&self.controller.threads).merge(threads);
        outcome
    }

    fn evaluated(&mut self, trigger: &str, triggered: bool) {
        let metrics = &self.controller.dependencies.metrics;
        metrics.evaluated(trigger, triggered);
    }

    fn remember(&mut self, ledger: &Ledger) {
        self.store(ledger);
    }
}

impl Sending<'_> {
    /// Writes the annotation if it is another one. What can not be written is remembered, so that
    /// it is not sent again.
    fn store(&mut self, ledger: &Ledger) {
        let annotation = ledger.annotation();
        if annotation == self.stored && !self.unwritten {
            return;
        }
        let patch = json!({"metadata": {"annotations": {NOTIFIED: annotation}}});
        let applications = &self.controller.dependencies.records.applications;
        let write = applications.merge_patch(&self.key.namespace, &self.key.name, &patch);
        let written = self.runtime.block_on(self.held.scope(write));
        let mut memos = lock(&self.controller.memos);
        let memo = memos.entry(self.key.clone()).or_default();
        match written {
            Ok(record) => {
                memo.unsaved = None;
                memo.written = version(&record);
                self.unwritten = false;
                self.stored = annotation;
            }
            Err(error) if applications.is_gone(&error, &self.key.namespace, &self.key.name) => {
                self.unwritten = false;
            }
            Err(error) => {
                memo.unsaved = Some(ledger.clone());
                self.unwritten = true;
                tracing::warn!(
                    application = self.key.name,
                    %error,
                    "what was notified can not be written yet"
                );
            }
        }
    }
}

fn version<T>(record: &Record<T>) -> String {
    record.meta.resource_version.clone()
}

fn told(key: &AppKey, event: &Event) {
    let (namespace, application) = (&key.namespace, &key.name);
    match event {
        Event::Sent { trigger, to } => tracing::info!(
            namespace,
            application,
            trigger,
            service = to.service,
            "notification sent"
        ),
        Event::Failed {
            trigger,
            to,
            problem,
        } => tracing::warn!(
            namespace,
            application,
            trigger,
            service = to.service,
            problem,
            "notification not sent"
        ),
        Event::Trigger { trigger, problem } => {
            tracing::warn!(
                namespace,
                application,
                trigger,
                problem,
                "trigger does not work"
            );
        }
        Event::Condition { trigger, problem } => {
            tracing::debug!(
                namespace,
                application,
                trigger,
                problem,
                "condition without a value"
            );
        }
        Event::Already { .. } => {}
    }
}
