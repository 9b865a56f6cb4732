//! Placeholders: CRDs for kinds that manifests use and nothing defines, so that users can try their
//! repositories without the operators.
//!
//! Main function: [`run`]. A placeholder accepts any content, is labelled, and its objects count as
//! healthy, because no controller handles them. When the real CRD is created, with any scope or
//! plural, it replaces the placeholder, and the objects stay.

mod guess;

use anyhow::Context;
use guess::{Missing, PLACEHOLDER};
use http::Method;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_cluster::{
    AppKey, AppStates, Cluster, Discovery, Error, Records,
    request::{Call, MERGE_PATCH},
};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// In addition to every change of an Application.
const TICK: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_millis(50);

/// Runs until stopped. `tell` receives lines for the terminal.
pub async fn run(
    records: Records,
    states: AppStates,
    tell: UnboundedSender<String>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let discovery = Discovery::new(records.cluster.clone()).await?;
    let mut maker = Maker {
        records,
        states,
        discovery,
        tell,
        saved: BTreeMap::new(),
        settled: BTreeSet::new(),
        has_placeholders: true,
    };
    let mut changes = maker.records.applications.changes();
    loop {
        if let Err(error) = maker.look().await {
            // The next iteration retries.
            tracing::warn!(error = format!("{error:#}"), "placeholder definitions");
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            // Applications change in bursts; one iteration is enough for a burst.
            _ = changes.recv() => tokio::time::sleep(SETTLE).await,
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

struct Maker {
    records: Records,
    states: AppStates,
    discovery: Discovery,
    tell: UnboundedSender<String>,
    /// Objects of removed placeholders, until the real CRD serves them; by group and kind.
    saved: BTreeMap<(String, String), Vec<Object>>,
    /// Kinds that are known to have a real CRD.
    settled: BTreeSet<(String, String)>,
    has_placeholders: bool,
}

impl Maker {
    fn cluster(&self) -> &Cluster {
        &self.records.cluster
    }

    fn say(&self, text: String) {
        // There may be no receiver any more.
        let _ = self.tell.send(text);
    }

    async fn look(&mut self) -> anyhow::Result<()> {
        let found = self.used();
        if !self.has_placeholders
            && self.saved.is_empty()
            && found.kinds.keys().all(|kind| self.settled.contains(kind))
        {
            return Ok(());
        }
        let definitions: Vec<Value> = {
            let list: Value = self.cluster().http().json(&Call::get(CRDS)).await?;
            list["items"].as_array().cloned().unwrap_or_default()
        };
        self.has_placeholders = definitions.iter().any(guess::is_placeholder);
        self.make_room(&found, &definitions).await?;
        self.bring_back().await?;
        for (kind, missing) in &found.kinds {
            match definitions.iter().find(|d| missing.is_defined_by(d)) {
                Some(definition) if guess::is_placeholder(definition) => {}
                Some(_) => drop(self.settled.insert(kind.clone())),
                None if found.brings(missing) => {}
                // Built-in kinds, in this or another version, get no placeholder.
                None => match self.discovery.resolve(&missing.gvk).await {
                    Err(Error::UnknownKind { .. }) => {
                        self.define(missing).await?;
                        self.has_placeholders = true;
                    }
                    known => {
                        known?;
                        self.settled.insert(kind.clone());
                    }
                },
            }
        }
        Ok(())
    }

    /// The kinds that the Applications use. Manifests are read only for Applications with unknown
    /// kinds.
    fn used(&self) -> guess::Used {
        let mut used = guess::Used::default();
        for record in self.records.applications.list() {
            let Ok(app) = record.value() else { continue };
            let mut unsettled = false;
            for r in &app.status.resources {
                let gvk = Gvk {
                    group: r.group.clone(),
                    version: r.version.clone(),
                    kind: r.kind.clone(),
                };
                let matters = used.add(&gvk, &r.name);
                unsettled |= matters && !self.settled.contains(&(r.group.clone(), r.kind.clone()));
            }
            if !unsettled {
                continue;
            }
            let key = AppKey::new(&record.meta.namespace, &record.meta.name);
            for resource in self
                .states
                .get(&key)
                .map(|s| s.managed())
                .unwrap_or_default()
            {
                if let Ok(manifest) = serde_json::from_str::<Value>(&resource.target_state) {
                    used.read(&manifest, &app.spec.destination.namespace);
                }
            }
        }
        used
    }

    async fn define(&self, missing: &Missing) -> anyhow::Result<()> {
        let call = Call::new(Method::POST, CRDS).with_body(
            "application/json",
            serde_json::to_vec(&missing.definition())?,
        );
        match self.cluster().http().json::<Value>(&call).await {
            Ok(_) => {}
            Err(e) if e.is_already_exists() => return Ok(()),
            Err(e) => return Err(e).with_context(|| format!("placeholder {}", missing.name())),
        }
        self.note_health(missing, true).await?;
        let scope = if missing.is_namespaced() {
            "namespaced"
        } else {
            "cluster-wide"
        };
        self.say(format!(
            "placeholder definition for {} ({}, {scope}): nobody defined this kind; --strict-kinds refuses it",
            missing.gvk.kind,
            missing.gvk.api_version()
        ));
        Ok(())
    }

    /// Objects of a placeholder have no controller, so they are always healthy. A user's
    /// customization of the kind stays.
    async fn note_health(&self, missing: &Missing, placeholder: bool) -> anyhow::Result<()> {
        let path = format!(
            "/api/v1/namespaces/{}/configmaps/argocd-cm",
            self.records.namespace
        );
        let key = format!(
            "resource.customizations.health.{}_{}",
            missing.gvk.group, missing.gvk.kind
        );
        let found: Value = self.cluster().http().json(&Call::get(&path)).await?;
        let known = found["data"][&key].as_str();
        let value = match (placeholder, known) {
            (true, None) => Value::from(guess::HEALTH),
            (false, Some(guess::HEALTH)) => Value::Null,
            _ => return Ok(()),
        };
        self.patch(path, &json!({"data": {key: value}})).await
    }

    async fn patch(&self, path: String, patch: &Value) -> anyhow::Result<()> {
        let call =
            Call::new(Method::PATCH, path).with_body(MERGE_PATCH, serde_json::to_vec(patch)?);
        self.cluster().http().send(&call).await?;
        Ok(())
    }

    /// Replaces placeholders by the real CRDs.
    async fn make_room(&mut self, used: &guess::Used, definitions: &[Value]) -> anyhow::Result<()> {
        for placeholder in definitions.iter().filter(|d| guess::is_placeholder(d)) {
            let Some(missing) = Missing::of_definition(placeholder) else {
                continue;
            };
            let name = placeholder["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{CRDS}/{name}");
            if !guess::is_untouched(placeholder) {
                // It was applied over the placeholder with the same name and scope, so the objects
                // stay.
                self.patch(path, &json!({"metadata": {"labels": {PLACEHOLDER: null}}}))
                    .await?;
                self.note_health(&missing, false).await?;
                self.say(format!(
                    "the placeholder definition for {} was replaced by the real one",
                    missing.gvk.kind
                ));
                continue;
            }
            let other =
                |d: &&Value| d["metadata"]["name"] != name && guess::same_kind(d, placeholder);
            let wanted = used
                .definitions
                .iter()
                .find(|d| guess::same_kind(d, placeholder));
            let in_the_way = definitions.iter().any(|d| other(&d))
                || wanted.is_some_and(|d| guess::cannot_be_applied_over(d, placeholder));
            if !in_the_way {
                if let Some(version) = used.version_lacking(placeholder) {
                    self.add_version(path, placeholder, &version).await?;
                }
                continue;
            }
            let objects = self.objects(placeholder).await?;
            self.saved.insert(
                (missing.gvk.group.clone(), missing.gvk.kind.clone()),
                objects,
            );
            match self
                .cluster()
                .http()
                .send(&Call::new(Method::DELETE, path))
                .await
            {
                Err(e) if !e.is_not_found() => return Err(e.into()),
                _ => {}
            }
            self.note_health(&missing, false).await?;
            self.say(format!(
                "the placeholder definition for {} makes room for the real one",
                missing.gvk.kind
            ));
        }
        Ok(())
    }

    async fn add_version(
        &self,
        path: String,
        placeholder: &Value,
        version: &str,
    ) -> anyhow::Result<()> {
        let mut versions = placeholder["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        versions.push(guess::version(version, false));
        self.patch(path, &json!({"spec": {"versions": versions}}))
            .await
    }

    async fn objects(&self, placeholder: &Value) -> anyhow::Result<Vec<Object>> {
        let [group, version, plural] =
            ["/spec/group", "/spec/versions/0/name", "/spec/names/plural"].map(|p| {
                placeholder
                    .pointer(p)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            });
        match self
            .cluster()
            .http()
            .json::<Value>(&Call::get(format!("/apis/{group}/{version}/{plural}")))
            .await
        {
            Ok(list) => {
                let items = list["items"].as_array().cloned().unwrap_or_default();
                Ok(items
                    .into_iter()
                    .filter_map(|item| Object::from_value(item).ok())
                    .collect())
            }
            Err(e) if e.is_not_found() => Ok(Vec::new()),
            Err(e) => Err(e.into()),
        }
    }

    /// Recreates saved objects as soon as the real CRD is served.
    async fn bring_back(&mut self) -> anyhow::Result<()> {
        let waiting: Vec<(String, String)> = self.saved.keys().cloned().collect();
        for key in waiting {
            let Some(object) = self.saved.get(&key).and_then(|objects| objects.first()) else {
                self.saved.remove(&key);
                continue;
            };
            let gvk = object.gvk();
            self.discovery.refresh().await?;
            let kind = match self.discovery.resolve(&gvk).await {
                Ok(kind) => kind,
                Err(Error::UnknownKind { .. }) => continue,
                Err(e) => return Err(e.into()),
            };
            // The placeholder itself may still be served.
            let definition: Result<Value, Error> = self
                .cluster()
                .http()
                .json(&Call::get(format!(
                    "{CRDS}/{}.{}",
                    kind.resource, gvk.group
                )))
                .await;
            if definition.is_ok_and(|d| guess::is_placeholder(&d)) {
                continue;
            }
            for mut object in self.saved.remove(&key).unwrap_or_default() {
                let Some(namespace) = guess::place(&mut object, kind.namespaced) else {
                    continue;
                };
                let body = serde_json::to_vec(&object)?;
                let call = Call::new(Method::POST, kind.collection_path(&namespace))
                    .with_body("application/json", body);
                match self.cluster().http().json::<Value>(&call).await {
                    Ok(_) => {}
                    Err(e) if e.is_already_exists() => {}
                    // The real CRD may reject what the placeholder accepted; the Application that
                    // contains the object reports it.
                    Err(e) => self.say(format!(
                        "{} {} is not kept: {e}",
                        object.kind(),
                        object.name()
                    )),
                }
            }
        }
        Ok(())
    }
}
