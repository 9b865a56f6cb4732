//! What is right in every scenario, for those where kubeapps is wrong. Main type: [`Model`].
//!
//! An AppRepository that is there has its finalizer, the specification that was written, and a
//! CronJob; since it changed last, exactly one Job with the CronJob's template was made. One that
//! was deleted is gone with its CronJob, and a Job has removed its rows since. Of two that share a
//! name, one is told so.

use super::{
    stored::strip,
    wire::Write,
    world::{SECRET, World},
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_catalog::apprepository::{cleanup_prefix, cron_job_name, schedule};

/// Namespace and name.
type Id = (String, String);

#[derive(Default)]
pub struct Model {
    /// The specifications as they were written.
    specs: BTreeMap<Id, Value>,
    deleted: BTreeSet<Id>,
    /// Those of which a change makes a Job in this step.
    changed: BTreeSet<Id>,
    /// Jobs that were made in earlier steps, by the beginning of their names.
    made: BTreeMap<String, usize>,
    warnings: usize,
    is_stopped: bool,
}

impl Model {
    pub fn act(&mut self, action: &Value, refused: &Value) {
        self.changed.clear();
        let Some(words) = action.as_array() else {
            return;
        };
        let text = |at: usize| words.get(at).and_then(Value::as_str).unwrap_or_default();
        let id = (text(1).to_owned(), text(2).to_owned());
        match text(0) {
            "create" => {
                for object in words.iter().filter(|word| word["kind"] == "AppRepository") {
                    let of = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                    let name = of("name");
                    if refused.to_string().contains(&format!("\\\"{name}\\\"")) {
                        continue;
                    }
                    let id = (of("namespace").to_owned(), name.to_owned());
                    self.specs.insert(id.clone(), object["spec"].clone());
                    self.deleted.remove(&id);
                    self.changed.insert(id);
                }
            }
            "patch" => {
                if let Some(spec) = self.specs.get_mut(&id) {
                    let before = spec.clone();
                    merge(spec, &words[3]["spec"]);
                    if *spec != before {
                        self.changed.insert(id);
                    }
                }
            }
            "delete" => {
                self.specs.remove(&id);
                self.deleted.insert(id);
            }
            // Its AppRepository makes it again, and reads.
            "delete-cronjob" => {
                let owner = |id: &&Id| cron_job_name(&id.0, &id.1) == text(2);
                let owner = self.specs.keys().find(owner).cloned();
                self.changed.extend(owner);
            }
            "stop" => self.is_stopped = true,
            // kubeapps reads everything when it starts.
            "start" => {
                self.is_stopped = false;
                self.changed.extend(self.specs.keys().cloned());
            }
            _ => {}
        }
    }

    pub fn remember(&mut self, writes: &[Write]) {
        for write in accepted(writes, "POST", "/jobs") {
            *self.made.entry(prefix(write).to_owned()).or_default() += 1;
        }
        self.warnings += warnings(writes);
    }

    pub fn check(&self, world: &World, stored: &Value) -> Result<(), String> {
        if self.is_stopped {
            return Ok(());
        }
        let writes = world.writes();
        for ((namespace, name), spec) in &self.specs {
            let id = (namespace.clone(), name.clone());
            let at = |why: String| format!("{namespace}/{name}: {why}");
            let is_changed = self.changed.contains(&id);
            self.check_one(world, (&id, spec), stored, (&writes, is_changed))
                .map_err(at)?;
        }
        for (namespace, name) in &self.deleted {
            let at = |why: &str| Err(format!("{namespace}/{name}: {why}"));
            if find(&stored["apprepositories"], namespace, name).is_some() {
                return at("it is still there");
            }
            let cron_job = cron_job_name(namespace, name);
            let is_shared = self
                .specs
                .keys()
                .any(|id| cron_job_name(&id.0, &id.1) == cron_job);
            if !is_shared
                && find(&stored["cronjobs"], &world.options.namespace, &cron_job).is_some()
            {
                return at("its CronJob is still there");
            }
            let begin = cleanup_prefix(namespace, name);
            let now = accepted(&writes, "POST", "/jobs").filter(|write| prefix(write) == begin);
            if self.made.get(&begin).copied().unwrap_or_default() + now.count() == 0 {
                return at("nothing removed its rows");
            }
            check_cleanups(&writes, &begin)?;
        }
        Ok(())
    }

    fn check_one(
        &self,
        world: &World,
        ((namespace, name), spec): (&Id, &Value),
        stored: &Value,
        (writes, is_changed): (&[Write], bool),
    ) -> Result<(), String> {
        let found = find(&stored["apprepositories"], namespace, name).ok_or("it is not there")?;
        let cron_job = cron_job_name(namespace, name);
        let others = self
            .specs
            .keys()
            .filter(|id| cron_job_name(&id.0, &id.1) == cron_job);
        if others.count() > 1 {
            return self.check_shared(writes);
        }
        let (mut wanted, mut got) = (spec.clone(), found["spec"].clone());
        strip(&mut wanted);
        strip(&mut got);
        if wanted != got {
            return Err(format!("its specification is {got}, not {wanted}"));
        }
        let finalizers = found["metadata"]["finalizers"].to_string();
        if !finalizers.contains("apprepo-cleanup-finalizer") {
            return Err("it has no finalizer".to_owned());
        }
        let cron_job = find(&stored["cronjobs"], &world.options.namespace, &cron_job)
            .ok_or("it has no CronJob")?;
        let schedule = schedule(
            spec["interval"].as_str().unwrap_or_default(),
            &world.options.crontab,
        );
        if cron_job["spec"]["schedule"] != schedule.crontab.as_str() {
            return Err(format!("its schedule is {}", cron_job["spec"]["schedule"]));
        }
        if is_changed && schedule.warning.is_some() && self.warnings + warnings(writes) == 0 {
            return Err("nothing was said about its interval".to_owned());
        }
        let begin = format!(
            "{}-",
            cron_job["metadata"]["name"].as_str().unwrap_or_default()
        );
        let made: Vec<&Write> = accepted(writes, "POST", "/jobs")
            .filter(|write| prefix(write) == begin)
            .collect();
        if made.len() != usize::from(is_changed) {
            return Err(format!("{} Jobs were made", made.len()));
        }
        for write in made {
            check_job(world, write, writes)?;
        }
        check_secret(world, (namespace, name), spec, stored)
    }

    fn check_shared(&self, writes: &[Write]) -> Result<(), String> {
        if self.warnings + warnings(writes) == 0 {
            return Err("nobody is told that the names are the same".to_owned());
        }
        Ok(())
    }
}

/// A Job is one of its CronJob, says nothing twice, and has labels and annotations as they are
/// wanted.
fn check_job(world: &World, job: &Write, writes: &[Write]) -> Result<(), String> {
    let owner = prefix(job).trim_end_matches('-').to_owned();
    let template = writes.iter().rev().find(|write| {
        write.status < 400
            && write.body["kind"] == "CronJob"
            && write.body["metadata"]["name"] == owner.as_str()
    });
    let template = template.map(|write| &write.body["spec"]["jobTemplate"]["spec"]);
    if template.is_some_and(|template| *template != job.body["spec"]) {
        return Err("the Job is not as its CronJob has it".to_owned());
    }
    let container = &job.body["spec"]["template"]["spec"]["containers"][0];
    for list in ["env", "volumeMounts"] {
        let names = container[list].as_array().into_iter().flatten();
        let names: Vec<String> = names.map(|one| one["name"].to_string()).collect();
        if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
            return Err(format!("{list} has something twice: {names:?}"));
        }
    }
    let metadata = &job.body["metadata"];
    for (field, wanted) in [
        ("labels", &world.options.labels),
        ("annotations", &world.options.annotations),
    ] {
        let found = metadata
            .get(field)
            .cloned()
            .unwrap_or_else(|| Map::new().into());
        if found != serde_json::json!(wanted) {
            return Err(format!("the {field} of the Job are {found}"));
        }
    }
    Ok(())
}

/// A cleanup needs no credentials of the repository.
fn check_cleanups(writes: &[Write], begin: &str) -> Result<(), String> {
    for write in accepted(writes, "POST", "/jobs").filter(|write| prefix(write) == begin) {
        let pod = &write.body["spec"]["template"]["spec"];
        let text = pod["containers"][0]["env"].to_string();
        let credentials = ["AUTHORIZATION_HEADER", "DOCKER_CONFIG_JSON"];
        if credentials.iter().any(|name| text.contains(name)) || pod.get("volumes").is_some() {
            return Err("a cleanup asks for credentials".to_owned());
        }
    }
    Ok(())
}

/// Secrets of another namespace are copied, with the keys that are read.
fn check_secret(
    world: &World,
    (namespace, name): (&str, &str),
    spec: &Value,
    stored: &Value,
) -> Result<(), String> {
    let keys = ["header", "customCA"].map(|field| &spec["auth"][field]["secretKeyRef"]["key"]);
    let keys: Vec<&str> = keys.into_iter().filter_map(Value::as_str).collect();
    if namespace == world.options.namespace || keys.is_empty() {
        return Ok(());
    }
    let copy = format!("{namespace}-apprepo-{name}");
    let secret = find(&stored["secrets"], &world.options.namespace, &copy);
    let secret = secret.ok_or_else(|| format!("there is no Secret {copy}"))?;
    match keys.iter().all(|key| secret["data"][key] == SECRET) {
        true => Ok(()),
        false => Err(format!("Secret {copy} lacks one of {keys:?}")),
    }
}

fn accepted<'a>(
    writes: &'a [Write],
    verb: &'static str,
    end: &'static str,
) -> impl Iterator<Item = &'a Write> {
    writes
        .iter()
        .filter(move |write| write.status < 400 && write.verb == verb && write.path.ends_with(end))
}

fn warnings(writes: &[Write]) -> usize {
    let events = accepted(writes, "POST", "/events");
    events
        .filter(|write| write.body["type"] == "Warning")
        .count()
}

fn prefix(write: &Write) -> &str {
    write.body["metadata"]["generateName"]
        .as_str()
        .unwrap_or_default()
}

fn find<'a>(list: &'a Value, namespace: &str, name: &str) -> Option<&'a Value> {
    let mut list = list.as_array().into_iter().flatten();
    list.find(|one| one["metadata"]["namespace"] == namespace && one["metadata"]["name"] == name)
}

/// A JSON merge patch.
fn merge(value: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Map::new().into();
    }
    for (field, patch) in patch {
        match patch {
            Value::Null => {
                value.as_object_mut().and_then(|map| map.remove(field));
            }
            patch => merge(&mut value[field], patch),
        }
    }
}
