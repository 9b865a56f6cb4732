//! `admin import`. Main type: [`Import`].

use super::{Backup, Part, Place};
use crate::{
    client::{Failure, reason},
    commands::{apply::HintedError, prompt},
    kubectl::failure::Trouble,
    output::{self, log},
};
use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, io::Read as _};
use tiphys_apimachinery::{Object, patch::last_applied};
use tiphys_cluster::{
    Error, apply,
    request::{Call, JSON},
};
use tiphys_gocompat::{duration, yaml};

/// How often a conflicting write is retried with --override-on-conflict.
const ATTEMPTS: usize = 5;
const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Import Argo CD data from stdin (specify `-') or a file
///
/// What the backup has and the cluster lacks is created, what differs is replaced. What only the
/// cluster has stays, unless --prune.
#[derive(clap::Args)]
pub struct Import {
    /// File that `admin export` wrote; `-` is standard input
    source: String,
    /// Print what will be performed
    #[arg(long)]
    dry_run: bool,
    /// Prune secrets, applications and projects which do not appear in the backup
    #[arg(long)]
    prune: bool,
    /// Do not update the tracking annotation if the resource is already tracked
    #[arg(long)]
    ignore_tracking: bool,
    /// Override the resource on conflict when updating resources
    #[arg(long)]
    override_on_conflict: bool,
    /// Verbose output (versus only changed output)
    #[arg(long)]
    verbose: bool,
    /// Stop any existing operations
    #[arg(long)]
    stop_operation: bool,
    /// Ask before each object that is pruned
    #[arg(long)]
    prompts_enabled: bool,
    /// Leave resources with this label alone
    #[arg(long, value_name = "KEY=VALUE")]
    skip_resources_with_label: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Import {
    pub async fn run(self) -> Result<(), Failure> {
        let done = self.all().await;
        done.map_err(|e| super::super::failed(&e))
    }

    async fn all(&self) -> Result<(), HintedError> {
        // Before anything is changed: an invalid document leaves the cluster untouched.
        let objects = self.read()?;
        let target = super::super::connect(&self.place.kube).await?;
        let backup = Backup::new(&target, &self.place).await;
        let backup = backup.map_err(apply::Failure::from)?;
        let began = Timestamp::now();
        output::print(&format!("import process started {}\n", backup.namespace));
        let mut live = BTreeMap::new();
        for part in Part::ALL {
            match backup.live(part).await.map_err(apply::Failure::from)? {
                Some(objects) => {
                    live.extend(objects.into_iter().map(|o| (key(part, &o), (part, o))))
                }
                None => log::warn(
                    "argoproj.io/ApplicationSet: the cluster does not have them, or does not show them to you",
                ),
            }
        }
        for (part, mut object) in objects {
            if object.namespace().is_empty() {
                object.set_namespace(&backup.namespace);
            }
            let found = live.remove(&key(part, &object)).map(|(_, live)| live);
            self.one(&backup, part, object, found)
                .await
                .map_err(apply::Failure::from)?;
        }
        for (part, object) in live.into_values() {
            self.left_over(&backup, part, object).await?;
        }
        let (now, namespace) = (Timestamp::now(), &backup.namespace);
        let took = duration::to_string(
            i64::try_from(now.duration_since(began).as_nanos()).unwrap_or(i64::MAX),
        );
        let now = now.round(jiff::Unit::Second).unwrap_or(now);
        output::print(&format!(
            "Import process completed successfully in namespace {namespace} at {now}, duration: {took}\n"
        ));
        Ok(())
    }

    /// The objects of the backup.
    fn read(&self) -> Result<Vec<(Part, Object)>, Trouble> {
        let mut text = String::new();
        let read = match self.source.as_str() {
            "-" => std::io::stdin().read_to_string(&mut text),
            path => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
        };
        read.map_err(|e| Trouble::text(format!("open {}: {}", self.source, reason(&e))))?;
        let limits = yaml::Limits {
            bytes: 1 << 30,
            nodes: 50_000_000,
            documents: 1_000_000,
            ..yaml::Limits::default()
        };
        let documents = yaml::parse_documents(&text, &limits)
            .map_err(|e| Trouble::text(format!("{}: {e}", self.source)))?;
        let mut objects = Vec::new();
        for (number, document) in documents
            .into_iter()
            .filter(|d| !d.value.is_null())
            .enumerate()
        {
            let wrong = |problem: String| {
                Trouble::text(format!(
                    "{}: document {}: {problem}",
                    self.source,
                    number + 1
                ))
            };
            let object = Object::from_value(document.value).map_err(|e| wrong(e.to_string()))?;
            let part = Part::of(&object).ok_or_else(|| {
                wrong(format!(
                    "{} {} is nothing that a backup contains: remove it",
                    object.api_version(),
                    object.kind()
                ))
            })?;
            if object.name().is_empty() {
                return Err(wrong(format!("{} has no metadata.name", object.kind())));
            }
            objects.push((part, object));
        }
        Ok(objects)
    }

    /// Creates or replaces an object, unless it is up to date.
    async fn one(
        &self,
        backup: &Backup<'_>,
        part: Part,
        mut object: Object,
        live: Option<Object>,
    ) -> Result<(), Error> {
        let (name, namespace) = (object.name().to_owned(), object.namespace().to_owned());
        let told = format!("{}/{} {name}", part.group(), part.kind());
        if self.is_left_alone(&object) {
            output::print(&format!("Skipping {told} in namespace {namespace}\n"));
            return Ok(());
        }
        if matches!(part, Part::Application | Part::ApplicationSet)
            && !backup.takes(part, &namespace)
        {
            return Ok(());
        }
        let suffix = if self.dry_run { " (dry run)" } else { "" };
        let Some(live) = live else {
            let call = call(Method::POST, part.path(&namespace), &object);
            if self.does(backup, &told, &call).await? {
                output::print(&format!(
                    "{told} in namespace {namespace} created{suffix}\n"
                ));
            }
            return Ok(());
        };
        if self.ignore_tracking {
            keep_tracking(&mut object, &live);
        }
        let stops =
            self.stop_operation && part == Part::Application && live.0.contains_key("operation");
        if is_same(part, &object, &live) && !stops {
            if self.verbose {
                output::print(&format!("{told} unchanged{suffix}\n"));
            }
            return Ok(());
        }
        if self
            .replace(
                backup,
                part,
                &told,
                replaced(part, &object, &live, self.stop_operation),
            )
            .await?
        {
            output::print(&format!(
                "{told} in namespace {namespace} updated{suffix}\n"
            ));
        }
        Ok(())
    }

    /// Replaces the live object; returns whether it was done.
    async fn replace(
        &self,
        backup: &Backup<'_>,
        part: Part,
        told: &str,
        mut object: Object,
    ) -> Result<bool, Error> {
        let path = part.object_path(object.namespace(), object.name());
        let mut attempts = if self.override_on_conflict {
            ATTEMPTS
        } else {
            0
        };
        loop {
            match self
                .does(backup, told, &call(Method::PUT, path.clone(), &object))
                .await
            {
                Err(e) if e.code() == Some(409) => {
                    output::print(&format!(
                        "Failed to update {told} in namespace {}: {e}\n",
                        object.namespace()
                    ));
                    if attempts == 0 {
                        return Err(e);
                    }
                    attempts -= 1;
                    let live: Object = backup
                        .target
                        .discovery
                        .cluster()
                        .http()
                        .json(&Call::get(path.clone()))
                        .await?;
                    object
                        .metadata_mut()
                        .insert("resourceVersion".into(), live.resource_version().into());
                }
                done => return done,
            }
        }
    }

    /// Objects in the cluster that the backup does not contain.
    async fn left_over(
        &self,
        backup: &Backup<'_>,
        part: Part,
        mut live: Object,
    ) -> Result<(), HintedError> {
        let told = format!("{}/{} {}", part.group(), part.kind(), live.name());
        if self.is_left_alone(&live) {
            output::print(&format!(
                "Skipping pruning of {told} in namespace {}\n",
                live.namespace()
            ));
            return Ok(());
        }
        // The settings themselves are never deleted: nothing works without them.
        if !self.prune || part == Part::ConfigMap {
            output::print(&format!("{told} needs pruning\n"));
            return Ok(());
        }
        if !self.dry_run {
            let question = format!("Are you sure you want to prune {told} ?");
            if self.prompts_enabled
                && !prompt::proceed(&question).map_err(|e| Trouble::text(e.message))?
            {
                output::print(&format!("The command to prune {told} was cancelled.\n"));
                return Ok(());
            }
            // Only the Application is deleted; its resources stay.
            if part == Part::Application && !live.finalizers().is_empty() {
                live.set_finalizers(Vec::new());
                self.replace(backup, part, &told, live.clone())
                    .await
                    .map_err(apply::Failure::from)?;
            }
        }
        let call = Call::new(
            Method::DELETE,
            part.object_path(live.namespace(), live.name()),
        );
        if self
            .does(backup, &told, &call)
            .await
            .map_err(apply::Failure::from)?
        {
            output::print(&format!(
                "{told} pruned{}\n",
                if self.dry_run { " (dry run)" } else { "" }
            ));
        }
        Ok(())
    }

    /// Sends a call, unless this is a dry run. `false`: it is forbidden, or the object does not
    /// exist; the import continues.
    async fn does(&self, backup: &Backup<'_>, told: &str, call: &Call) -> Result<bool, Error> {
        if self.dry_run {
            return Ok(true);
        }
        match backup.target.discovery.cluster().http().send(call).await {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() || e.code() == Some(403) => {
                log::warn(&format!("{told}: {e}"));
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    fn is_left_alone(&self, object: &Object) -> bool {
        let label = self
            .skip_resources_with_label
            .as_deref()
            .and_then(|text| text.split_once('='));
        label.is_some_and(|(key, value)| {
            !key.is_empty() && !value.is_empty() && object.label(key) == Some(value)
        })
    }
}

fn key(part: Part, object: &Object) -> (&'static str, String, String) {
    (
        part.kind(),
        object.namespace().to_owned(),
        object.name().to_owned(),
    )
}

fn call(method: Method, path: String, object: &Object) -> Call {
    Call::new(method, path).with_body(JSON, Value::Object(object.0.clone()).to_string())
}

/// The top-level fields that a backup replaces.
fn contents(part: Part) -> &'static [&'static str] {
    match part {
        Part::ConfigMap | Part::Secret => &["data"],
        Part::AppProject | Part::ApplicationSet => &["spec"],
        Part::Application => &["spec", "status"],
    }
}

/// Whether nothing would change. The time of an Application's last reconciliation is ignored.
fn is_same(part: Part, object: &Object, live: &Object) -> bool {
    let without_times = |o: &Object, field: &str| {
        let mut map =
            o.0.get(field)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
        if field == "status" {
            map.remove("reconciledAt");
            map.remove("observedAt");
        }
        map
    };
    let marks = |o: &Object| {
        let mut annotations = o.annotations();
        annotations.remove(last_applied::ANNOTATION);
        (o.labels(), annotations, o.finalizers())
    };
    marks(object) == marks(live)
        && contents(part)
            .iter()
            .all(|field| without_times(object, field) == without_times(live, field))
}

/// The live object with the fields from the backup.
fn replaced(part: Part, object: &Object, live: &Object, stop: bool) -> Object {
    let mut new = live.clone();
    let metadata: &mut Map<String, Value> = new.metadata_mut();
    for field in ["labels", "annotations", "finalizers"] {
        match object.metadata(field) {
            Some(value) => metadata.insert(field.into(), value.clone()),
            None => metadata.remove(field),
        };
    }
    for field in contents(part) {
        match object.0.get(*field) {
            Some(value) => new.0.insert((*field).into(), value.clone()),
            // A backup may lack what the controller writes.
            None if *field == "status" => None,
            None => new.0.remove(*field),
        };
    }
    if stop && part == Part::Application {
        new.0.remove("operation");
    }
    new
}

/// Keeps the tracking metadata that an object has in this cluster.
fn keep_tracking(object: &mut Object, live: &Object) {
    if let (Some(id), true) = (
        live.annotation(TRACKING),
        object.annotation(TRACKING).is_some(),
    ) {
        object.set_annotation(TRACKING, id);
    }
    if let (Some(name), true) = (live.label(INSTANCE), object.label(INSTANCE).is_some()) {
        object.set_label(INSTANCE, name);
    }
}
