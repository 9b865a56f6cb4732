//! One reconcile of one set. Main function: [`Controller::reconcile`].

use super::{
    Controller, REFRESH, REFRESH_TIMESTAMP, Reason,
    events::Told,
    execute::{Carried, by_metadata},
    memory::{Last, Memory, Settled},
    twice,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tiphys_api::{
    Application, ApplicationSet,
    application_set::ApplicationSetStatus,
    constants::{self, DELETED_APPLICATIONS},
};
use tiphys_apimachinery::{Object, patch::json_merge};
use tiphys_appset::{
    reconcile::{
        Change, Condition, Deletion, Done, Existing, Next, Settings, owner_of, plan, plan_deletion,
        set_conditions,
    },
    requeue_after, rolling,
    tombstone::Written,
};
use tiphys_cluster::{AppKey, Error};
use tiphys_engine::spec::{BrokenCluster, Destination};
use tiphys_sources::Remembered;

/// What a set sees of the cluster.
struct Seen {
    applications: Vec<Arc<Application>>,
    projects: BTreeSet<String>,
    clusters: Arc<[Destination]>,
    local_names: Arc<[String]>,
    broken_clusters: Vec<BrokenCluster>,
}

impl Seen {
    fn settled(
        &self,
        set: &Arc<ApplicationSet>,
        generated: &Arc<Remembered>,
        settings: &Settings,
    ) -> Settled {
        Settled {
            set: Arc::clone(set),
            generated: Arc::clone(generated),
            applications: self.applications.clone(),
            projects: self.projects.clone(),
            clusters: Arc::clone(&self.clusters),
            settings: settings.clone(),
        }
    }

    /// In the form that plans are made of.
    fn copies(&self) -> Copies<'_> {
        let applications = self.applications.iter();
        Copies {
            applications: applications.map(|app| (**app).clone()).collect(),
            seen: self,
        }
    }
}

struct Copies<'s> {
    applications: Vec<Application>,
    seen: &'s Seen,
}

impl Copies<'_> {
    fn existing(&self) -> Existing<'_> {
        Existing {
            applications: &self.applications,
            projects: &self.seen.projects,
            clusters: &self.seen.clusters,
            local_names: &self.seen.local_names,
            broken_clusters: &self.seen.broken_clusters,
        }
    }
}

impl Controller {
    /// Returns when the set is to be reconciled again by time.
    pub(super) async fn reconcile(
        &self,
        key: &AppKey,
        reason: Reason,
    ) -> Result<Option<Duration>, Error> {
        let Some(record) = self.sets.get(&key.namespace, &key.name) else {
            self.keep_gone(key, None).await?;
            self.remember(key, None);
            return Ok(None);
        };
        // All namespaces are watched if one pattern has wildcards.
        let (namespace, records) = (&key.namespace, &self.records);
        if !records.permits(namespace) || !records.lists(&self.namespaces, namespace) {
            return Ok(None);
        }
        let set = match record.value() {
            Ok(set) => set,
            Err(problem) => return self.unreadable(key, &problem).await,
        };
        self.keep_gone(key, Some(&*set)).await?;
        let settings = self.settings.of_reconcile(&self.records.settings());
        if set.metadata.deletion_timestamp.is_some() {
            let seen = self.seen(&key.namespace)?;
            self.keep_going(&set, &settings).await?;
            let deletion = self.next_of_deletion(&set, &seen, &settings).await?;
            return self.delete(&set, deletion).await;
        }
        self.keep_for_reverse_deletion(&set, &settings).await?;
        let memory = self.memory(key);
        let requested = set.metadata.annotations.contains_key(REFRESH);
        let answered = requested.then(|| record.meta.resource_version.clone());
        let refresh = requested && memory.answered != answered;
        let is_fresh = reason.is_fresh || refresh;
        let answered = answered.filter(|_| self.settings.dry_run);
        let before = memory.generated.as_ref();
        let remembered = self.answers.generate_again(&set, is_fresh, before).await;
        // Answers take time: what exists is looked at after them.
        let seen = self.seen(&key.namespace)?;
        let now = seen.settled(&set, &remembered, &settings);
        let generated = Some(Arc::clone(&remembered));
        if memory
            .settled
            .as_ref()
            .is_some_and(|before| before.is_as(&now))
        {
            if refresh {
                self.answer_refresh(&set).await?;
            }
            let memory = Memory {
                generated,
                answered,
                last: memory.last.or_else(|| Some(self.last(&set, None))),
                ..memory
            };
            self.remember(key, Some(memory));
            return Ok(requeue_after(&set, settings.requeue));
        }
        let outcome = match &remembered.generated.failure {
            Some(failure) => Err(failure),
            None => Ok(remembered.generated.applications.as_slice()),
        };
        let copies = seen.copies();
        let mut plan = plan(&set, outcome, &copies.existing(), &settings, self.now());
        let planned = (&plan, seen.applications.as_slice());
        let kept = twice::keep(&self.answers, &set, &remembered, planned).await;
        if let Some(kept) = &kept {
            plan.keep(&set, &kept.names, &copies.existing(), &settings, self.now());
        }
        if let Some(held) = &plan.held {
            self.warn_of_held(&set, held);
        }
        let Carried { done, again: late } = match plan.ends {
            true => Carried::default(),
            false => self.carry_out(&set, &plan).await,
        };
        let last = self.last(&set, plan.tombstones.as_ref());
        let owned: Vec<&Application> = last.owned.iter().map(Arc::as_ref).collect();
        let kept_by = kept.as_ref().and_then(|kept| kept.failure.clone());
        let said = match (&done, kept_by) {
            (Done::Completely, Some(failure)) => &Done::NotDeleted(failure),
            _ => &done,
        };
        let status = plan.conclude(&set, said, &owned, &settings, self.now());
        self.write_status(&set, &status).await?;
        let is_idle = plan.is_idle() && kept.is_none() && set.status == status && now.is_timeless();
        let settled = is_idle.then(|| Arc::new(now));
        let memory = Memory {
            generated,
            settled,
            answered,
            last: Some(last),
        };
        self.remember(key, Some(memory));
        failed(key, done)?;
        // Also by a failure. Where the request stays, the next one changes nothing, and so nobody
        // hears of it.
        if refresh {
            self.answer_refresh(&set).await?;
        }
        let again = kept.map(|kept| kept.again);
        let times = [plan.requeue_after, again, late];
        Ok(times.into_iter().flatten().min())
    }

    /// Takes the request for a refresh away that the reconcile of this set has answered. One that
    /// came meanwhile stays: what it is about may not have been looked at.
    async fn answer_refresh(&self, set: &ApplicationSet) -> Result<(), Error> {
        if self.settings.dry_run {
            return Ok(());
        }
        let seen = [REFRESH, REFRESH_TIMESTAMP].map(|name| set.metadata.annotations.get(name));
        let answer = |object: &mut Object| -> Result<bool, Error> {
            let now = [REFRESH, REFRESH_TIMESTAMP].map(|name| object.annotation(name));
            if now != seen.map(|value| value.map(String::as_str)) {
                return Ok(false);
            }
            let Some(Value::Object(annotations)) = object.metadata_mut().get_mut("annotations")
            else {
                return Ok(false);
            };
            annotations.remove(REFRESH);
            annotations.remove(REFRESH_TIMESTAMP);
            Ok(true)
        };
        let (namespace, name) = (&set.metadata.namespace, &set.metadata.name);
        match self.sets.modify(namespace, name, answer).await {
            Err(e) if self.sets.is_gone(&e, namespace, name) => Ok(()),
            answered => answered.map(drop),
        }
    }

    /// Says in the status that the specification does not have the form of one, such as a template
    /// of a generator, which the definition leaves open.
    async fn unreadable(&self, key: &AppKey, problem: &str) -> Result<Option<Duration>, Error> {
        let mut status = ApplicationSetStatus::default();
        let error = Condition::error("ErrorOccurred", problem);
        let none = ApplicationSet::default();
        set_conditions(&mut status, &none, vec![error], false, self.now());
        let patch = json!({"status": {"conditions": status.conditions, "health": status.health}});
        let known = self.sets.get(&key.namespace, &key.name);
        let before = known.and_then(|record| record.object().ok());
        let said = before.as_ref().and_then(|set| {
            set.0
                .get("status")?
                .pointer("/conditions/0/message")?
                .as_str()
        });
        if said != Some(problem) && !self.settings.dry_run {
            let (namespace, name) = (&key.namespace, &key.name);
            self.sets
                .merge_patch_status(namespace, name, &patch)
                .await?;
        }
        Ok(None)
    }

    /// The state of the cluster, if it is known.
    fn seen(&self, namespace: &str) -> Result<Seen, Error> {
        let records = &self.records;
        if let Some(problem) = records.problem() {
            return Err(unknown(problem));
        }
        let mut applications = Vec::new();
        for record in records.applications.list() {
            if record.meta.namespace == namespace {
                let app = record.value();
                applications.push(app.or_else(|_| by_metadata(&record).map(Arc::new))?);
            }
        }
        let settings = records.settings();
        Ok(Seen {
            applications,
            projects: records
                .projects
                .list()
                .iter()
                .map(|p| p.meta.name.clone())
                .collect(),
            clusters: settings.destinations.clone(),
            local_names: settings.local_names.clone(),
            broken_clusters: settings.broken_clusters.clone(),
        })
    }

    /// What a reconcile leaves; the set has what was written to it meanwhile.
    fn last(&self, set: &Arc<ApplicationSet>, tombstones: Option<&Written>) -> Arc<Last> {
        let record = self.sets.get(&set.metadata.namespace, &set.metadata.name);
        let now = record.and_then(|record| record.value().ok());
        let now = now.filter(|now| now.metadata.uid == set.metadata.uid);
        // A set that went meanwhile has kept what this reconcile deleted.
        let gone = || {
            let mut gone = ApplicationSet::clone(set);
            if let Some(value) = tombstones.and_then(|written| written.value.clone()) {
                let annotations = &mut gone.metadata.annotations;
                annotations.insert(DELETED_APPLICATIONS.to_owned(), value);
            }
            Arc::new(gone)
        };
        Arc::new(Last {
            set: now.unwrap_or_else(gone),
            owned: self.owned(set),
        })
    }

    /// The Applications of a set now.
    pub(super) fn owned(&self, set: &ApplicationSet) -> Vec<Arc<Application>> {
        let records = self.records.applications.list();
        let values = records
            .iter()
            .filter(|r| r.meta.namespace == set.metadata.namespace);
        values
            .filter_map(|record| record.value().ok())
            .filter(|app| {
                owner_of(app).is_some_and(|owner| {
                    owner.kind == "ApplicationSet" && owner.name == set.metadata.name
                })
            })
            .collect()
    }

    async fn write_status(
        &self,
        set: &ApplicationSet,
        status: &ApplicationSetStatus,
    ) -> Result<(), Error> {
        if set.status == *status || self.settings.dry_run {
            return Ok(());
        }
        let json = |status: &ApplicationSetStatus| json!({"status": status});
        let patch = json_merge::create_two_way(&json(&set.status), &json(status))
            .map_err(|e| unknown(e.to_string()))?;
        let (namespace, name) = (&set.metadata.namespace, &set.metadata.name);
        match self.sets.merge_patch_status(namespace, name, &patch).await {
            Err(e) if self.sets.is_gone(&e, namespace, name) => Ok(()),
            result => result.map(drop),
        }
    }

    /// A set that deletes its Applications in order must outlive them.
    async fn keep_for_reverse_deletion(
        &self,
        set: &ApplicationSet,
        settings: &Settings,
    ) -> Result<(), Error> {
        let finalizers = &set.metadata.finalizers;
        let has = finalizers
            .iter()
            .any(|f| f == constants::RESOURCES_FINALIZER);
        let is_due = settings.progressive_syncs && rolling::is_reversed(set) && !has;
        if !is_due || self.settings.dry_run {
            return Ok(());
        }
        let mut finalizers = finalizers.clone();
        finalizers.push(constants::RESOURCES_FINALIZER.to_owned());
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let (namespace, name) = (&set.metadata.namespace, &set.metadata.name);
        self.sets
            .merge_patch(namespace, name, &patch)
            .await
            .map(drop)
    }

    /// What a set that is being deleted does next. The API server is asked for an Application that
    /// does not go: a watch that never told of its end would have the set wait for ever.
    async fn next_of_deletion(
        &self,
        set: &ApplicationSet,
        seen: &Seen,
        settings: &Settings,
    ) -> Result<Deletion, Error> {
        let deletion = plan_deletion(set, &seen.copies().existing(), settings, self.now());
        let Next::Stuck(name) = &deletion.next else {
            return Ok(deletion);
        };
        let namespace = &set.metadata.namespace;
        self.records.applications.fetch(namespace, name).await?;
        let seen = self.seen(namespace)?;
        let copies = seen.copies();
        let existing = copies.existing();
        Ok(plan_deletion(set, &existing, settings, self.now()))
    }

    /// One step of a deletion.
    async fn delete(
        &self,
        set: &ApplicationSet,
        deletion: Deletion,
    ) -> Result<Option<Duration>, Error> {
        if self.settings.dry_run {
            return Ok(None);
        }
        let namespace = &set.metadata.namespace;
        for name in &deletion.release {
            self.disown(set, name).await?;
        }
        match deletion.next {
            Next::Wait(after) => Ok(Some(after)),
            Next::Stuck(name) => Err(unknown(format!(
                "application {name} has not been deleted in over 2 minutes"
            ))),
            Next::Delete { name, after } => {
                let change = Change::Delete {
                    name,
                    release: false,
                };
                self.apply(set, &change, &Told::default()).await?;
                Ok(Some(after))
            }
            Next::Finish => {
                let finalizers = &set.metadata.finalizers;
                let kept: Vec<&String> = finalizers
                    .iter()
                    .filter(|finalizer| *finalizer != constants::RESOURCES_FINALIZER)
                    .collect();
                if kept.len() < finalizers.len() {
                    let patch = json!({"metadata": {"finalizers": kept}});
                    self.sets
                        .merge_patch(namespace, &set.metadata.name, &patch)
                        .await?;
                }
                Ok(None)
            }
        }
    }
}

/// The error of a plan that was not carried out completely.
fn failed(key: &AppKey, done: Done) -> Result<(), Error> {
    match done {
        Done::WriteFailed(problem) | Done::DeleteFailed(problem) => Err(Error::Invalid {
            key: format!("{}/{}", key.namespace, key.name),
            problem,
        }),
        Done::Completely | Done::NotDeleted(_) => Ok(()),
    }
}

fn unknown(problem: String) -> Error {
    Error::Invalid {
        key: "ApplicationSet".to_owned(),
        problem,
    }
}
