//! The steps of a script: each is one function on [`Play`], by the step's first word.
//!
//! A step does what a user's program would: a commit, a request to the API server. An error of the
//! API server is a line of the transcript.

use crate::scripts::{
    notation::{self, fields, merge, words},
    play::Play,
    repository::Files,
    script::Step,
};
use http::Method;
use serde_json::{Value, json};
use std::{path::Path, sync::atomic::Ordering, time::Duration};
use tiphys_apimachinery::patch::difference::{self, Difference};
use tiphys_gocompat::{duration, yaml};
use tokio::time::sleep;

/// The output of a step in addition to its effects.
pub type Said = Result<Vec<String>, String>;

/// How often to check whether a controller noticed something.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(100);

impl Play<'_> {
    pub async fn step(&mut self, step: &Step) -> Said {
        let (other, text) = step.of();
        let app = self.app_of(other);
        if !self.apps.contains(&app) {
            self.apps.push(app.clone());
        }
        let all: Vec<String> = words(text).iter().map(|w| self.filled(w)).collect();
        let (verb, rest) = all.split_first().ok_or("a step has a word")?;
        let body = self.filled(&step.body_text());
        match verb.as_str() {
            "app" => self.app(&step.folder, &app, rest, &body).await,
            "project" => self.project(&step.folder, rest, &body).await,
            "settings" => self.settings("argocd-cm", &body).await,
            "params" => self.settings("argocd-cmd-params-cm", &body).await,
            "commit" => {
                self.push(&step.folder, rest, &body)?;
                self.refresh_all().await
            }
            "push" => self.push(&step.folder, rest, &body),
            "charts" => {
                self.charts(rest)?;
                self.refresh_all().await
            }
            "plugin" => {
                self.plugin(rest, &body)?;
                self.refresh_all().await
            }
            "restart" => {
                self.ground.restart();
                Ok(Vec::new())
            }
            "git" => self.git(rest).await,
            "refresh" => {
                self.refresh(&app, rest.first().map_or("normal", String::as_str))
                    .await
            }
            "sync" => self.sync(&app, rest, &body).await,
            "rollback" => self.rollback(&app, rest).await,
            "terminate" => {
                self.patch_app(
                    &app,
                    &json!({"status": {"operationState": {"phase": "Terminating"}}}),
                )
                .await
            }
            "approve" => self.approve(&app).await,
            "create" => self.create(&step.folder, rest, &body).await,
            "edit" => self.edit(&app, rest, &body).await,
            "delete" => self.delete(&app, rest).await,
            "pass" => self.pass(rest).await,
            "look" => {
                rest.iter()
                    .for_each(|kind| self.note_kind(notation::type_of(kind)));
                Ok(Vec::new())
            }
            "show" => Ok(Vec::new()),
            other => Err(format!("there is no step `{other}`")),
        }
    }

    /// A request whose error is shown.
    async fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Said {
        match self.ground.send(method, path, body).await {
            Ok(_) => Ok(Vec::new()),
            Err(e) => Ok(vec![self.plain(&format!("refused: {e}"))]),
        }
    }

    async fn patch_app(&self, app: &str, patch: &Value) -> Said {
        self.request(Method::PATCH, &self.app_path(app), Some(patch))
            .await
    }

    pub async fn get_app(&self, app: &str) -> Result<Value, String> {
        self.ground
            .find(&self.app_path(app))
            .await
            .ok_or_else(|| format!("there is no Application {app}"))
    }

    /// Creates the Application, or changes its spec.
    async fn app(&mut self, folder: &Path, app: &str, words: &[String], body: &str) -> Said {
        let (words, given) = self.given(folder, words)?;
        let given = given
            .as_ref()
            .and_then(|files| files.first())
            .map(|(_, text)| yaml_of(text))
            .transpose()?;
        let mut patch = json!({});
        // Its name and namespace are the script's own.
        for field in ["annotations", "labels", "finalizers"] {
            if let Some(value) = given
                .as_ref()
                .and_then(|given| given["metadata"].get(field))
            {
                patch["metadata"][field] = value.clone();
            }
        }
        let (places, words): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|w| w.starts_with("in="));
        self.places.extend(
            places
                .iter()
                .map(|word| (app.to_owned(), word[3..].to_owned())),
        );
        let (finalizers, words): (Vec<&String>, Vec<&String>) =
            words.into_iter().partition(|w| w.starts_with("finalizer"));
        merge(
            &mut patch,
            fields(
                "Application",
                &words.into_iter().cloned().collect::<Vec<_>>(),
            )?,
        );
        for word in finalizers {
            let kind = word
                .split_once('=')
                .map(|(_, kind)| format!("/{kind}"))
                .unwrap_or_default();
            patch["metadata"]["finalizers"] =
                json!([format!("resources-finalizer.argocd.argoproj.io{kind}")]);
        }
        let mut spec = given
            .as_ref()
            .map_or(Value::Null, |given| given["spec"].clone());
        match yaml_of(body)? {
            Value::Null => {}
            over => merge(&mut spec, over),
        }
        if let Some(namespace) = spec
            .pointer("/destination/namespace")
            .and_then(Value::as_str)
        {
            self.note_namespace(namespace);
        }
        if !spec.is_null() {
            patch["spec"] = spec;
        }
        if self.get_app(app).await.is_ok() {
            return self.patch_app(app, &patch).await;
        }
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": app},
            "spec": {
                "project": "default", "source": {"repoURL": self.repo.url(), "path": "app", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": self.namespace()},
                "syncPolicy": {"retry": {"limit": 0}}
            }
        });
        if given.is_some() {
            object["spec"] = Value::Null;
        }
        merge(&mut object, patch);
        let path = self.app_path(app);
        let all = path.rsplit_once('/').map_or("", |(all, _)| all);
        self.request(Method::POST, all, Some(&object)).await
    }

    /// Creates the project `$APP`, or changes it.
    async fn project(&self, folder: &Path, words: &[String], body: &str) -> Said {
        let all = format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{}/appprojects",
            self.ground.namespace
        );
        let (_, given) = self.given(folder, words)?;
        let mut spec = match given.as_ref().and_then(|files| files.first()) {
            Some((_, text)) => yaml_of(text)?["spec"].clone(),
            None => json!({}),
        };
        merge(
            &mut spec,
            yaml_of(body).map(|over| if over.is_null() { json!({}) } else { over })?,
        );
        let name = &self.apps[0];
        if self.ground.find(&format!("{all}/{name}")).await.is_some() {
            return self
                .request(
                    Method::PATCH,
                    &format!("{all}/{name}"),
                    Some(&json!({"spec": spec})),
                )
                .await;
        }
        let mut object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": name},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
        merge(&mut object["spec"], spec);
        self.request(Method::POST, &all, Some(&object)).await
    }

    /// Changes a ConfigMap of settings.
    async fn settings(&self, name: &str, body: &str) -> Said {
        let path = format!(
            "/api/v1/namespaces/{}/configmaps/{name}",
            self.ground.namespace
        );
        self.request(Method::PATCH, &path, Some(&json!({"data": yaml_of(body)?})))
            .await
    }

    /// The whole content of the next revision: one object per line, or verbatim between two `---`
    /// lines; `from PATH` adds files from next to the script; `/folder` begins another folder.
    /// Words of the step itself are its first line.
    fn push(&mut self, beside: &Path, first: &[String], body: &str) -> Said {
        let mut files = Files::new();
        let (mut folder, mut raw) = ("app/".to_owned(), None::<(Option<String>, String)>);
        if !first.is_empty() {
            self.add_given(beside, first, &folder, &mut files)?;
        }
        for line in body.lines().chain(["---end"]) {
            let name = format!("{folder}{:02}", files.len());
            match (&mut raw, line) {
                (Some(_), "---" | "---end") => {
                    let (named, text) = raw.take().unwrap_or_default();
                    // A file with a name of its own may contain anything.
                    if named.is_none() {
                        yaml_of(&text).iter().for_each(|object| self.note(object));
                    }
                    files.insert(named.unwrap_or(format!("{name}.yaml")), text);
                }
                (Some((_, text)), line) => *text += &format!("{line}\n"),
                (None, "---") => raw = Some((None, String::new())),
                (None, line) if line.starts_with("--- ") => {
                    raw = Some((Some(line[4..].to_owned()), String::new()))
                }
                (None, "---end") => {}
                (None, line) if line.starts_with('/') => {
                    folder = if &line[1..] == "." {
                        String::new()
                    } else {
                        format!("{}/", &line[1..])
                    };
                }
                (None, line) if line.starts_with("from ") => {
                    self.add_given(beside, &words(line), &folder, &mut files)?
                }
                (None, line) => {
                    let object: Value =
                        serde_json::from_str(&self.filled(&notation::object(line)?.to_string()))
                            .map_err(|e| e.to_string())?;
                    self.note(&object);
                    files.insert(format!("{name}.json"), object.to_string());
                }
            }
        }
        // A folder without manifests still exists.
        files.insert("app/README.md".into(), String::new());
        let write: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let gone: Vec<String> = self
            .repo
            .files()
            .into_iter()
            .filter(|f| !files.contains_key(f))
            .collect();
        self.commits.push(
            self.repo
                .commit(&write, &gone.iter().map(String::as_str).collect::<Vec<_>>()),
        );
        Ok(Vec::new())
    }

    /// Like a webhook after a push.
    pub async fn refresh_all(&self) -> Said {
        for app in &self.apps {
            if self.get_app(app).await.is_ok() {
                self.refresh(app, "normal").await?;
            }
        }
        Ok(Vec::new())
    }

    pub async fn refresh(&self, app: &str, how: &str) -> Said {
        // As Argo CD's server requests it, whether there is anything to hydrate or not.
        let when = jiff::Timestamp::now().to_string();
        let asking = json!({
            "argocd.argoproj.io/refresh": how,
            "argocd.argoproj.io/refresh-timestamp": when,
            "argocd.argoproj.io/hydrate": how,
            "argocd.argoproj.io/hydrate-timestamp": when,
        });
        let patch = json!({"metadata": {"annotations": asking}});
        let said = self.patch_app(app, &patch).await?;
        let asked = |app: &Value| {
            asking
                .as_object()
                .expect("a map")
                .keys()
                .any(|name| app["metadata"]["annotations"].get(name).is_some())
        };
        self.noticed(app, |app| !asked(app)).await;
        Ok(said)
    }

    /// Waits until the controller noticed. If it does not, the transcript shows it.
    async fn noticed(&self, app: &str, is: impl Fn(&Value) -> bool) {
        for _ in 0..LOOKS {
            match self.get_app(app).await {
                Ok(found) if !is(&found) => sleep(PAUSE).await,
                _ => return,
            }
        }
    }

    /// Starts an operation, as the API's own call does.
    async fn operate(&self, app: &str, operation: &Value) -> Said {
        let started = |app: &Value| app.pointer("/status/operationState/startedAt").cloned();
        let stored = self.get_app(app).await?;
        let before = started(&stored);
        // Two operations of one Application never start in the same second.
        let mut after = stored.clone();
        after["operation"] = operation.clone();
        if let Some(status) = after.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("operationState");
        }
        let patch = match difference::between(&stored, &after, || Ok(stored.clone()))
            .map_err(|e| e.to_string())?
        {
            // Whatever is there meanwhile.
            Difference::Merge(_) => {
                json!({"operation": operation, "status": {"operationState": null}})
            }
            Difference::Operations(operations) => operations.into(),
        };
        let said = self.patch_app(app, &patch).await?;
        self.noticed(app, |now| started(now).is_some() && started(now) != before)
            .await;
        Ok(said)
    }

    async fn sync(&self, app: &str, words: &[String], body: &str) -> Said {
        let policy = self.get_app(app).await?["spec"]["syncPolicy"].clone();
        let mut sync = json!({"syncOptions": policy["syncOptions"]});
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "panic" => self.ground.fault.store(true, Ordering::Relaxed),
                "prune" => sync["prune"] = true.into(),
                "dry-run" => sync["dryRun"] = true.into(),
                "force" => sync["syncStrategy"]["hook"]["force"] = true.into(),
                "apply" => sync["syncStrategy"]["apply"] = json!({}),
                "options" => sync["syncOptions"] = value.split(',').collect(),
                "only" => sync["resources"] = value.split(',').map(selected).collect(),
                "revision" => sync["revision"] = self.commit_named(value)?.into(),
                other => return Err(format!("sync has no word `{other}`")),
            }
        }
        let mut operation =
            json!({"initiatedBy": {"username": "test"}, "sync": sync, "retry": policy["retry"]});
        merge(
            &mut operation,
            yaml_of(body).map(|v| if v.is_null() { json!({}) } else { v })?,
        );
        self.operate(app, &operation).await
    }

    pub fn commit_named(&self, number: &str) -> Result<String, String> {
        let at = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        at.and_then(|at| self.commits.get(at))
            .cloned()
            .ok_or_else(|| format!("there is no commit {number}"))
    }

    async fn rollback(&self, app: &str, words: &[String]) -> Said {
        let found = self.get_app(app).await?;
        let id = words
            .first()
            .and_then(|w| w.parse::<i64>().ok())
            .ok_or("rollback needs an id of the history")?;
        let history = found["status"]["history"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let entry = history
            .iter()
            .find(|h| h["id"] == id)
            .ok_or("the history has no such id")?;
        let sync = json!({"revision": entry["revision"], "source": entry["source"], "revisions": entry["revisions"],
            "sources": entry["sources"], "prune": words.iter().any(|w| w == "prune"),
            "syncOptions": found["spec"]["syncPolicy"]["syncOptions"], "syncStrategy": {"apply": {}}});
        self.operate(
            app,
            &json!({"initiatedBy": {"username": "test"}, "sync": sync}),
        )
        .await
    }

    /// Approves what asks for confirmation, from now on.
    async fn approve(&self, app: &str) -> Said {
        let time = (self.ground.now)()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        self.patch_app(
            app,
            &json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": time}}}),
        )
        .await
    }

    /// Creates objects manually: one from words, those of the body, or those of files.
    async fn create(&mut self, folder: &Path, words: &[String], body: &str) -> Said {
        let (words, given) = self.given(folder, words)?;
        let (by, words): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|w| w.starts_with("by="));
        let manager = by.first().map_or("kubectl-create", |w| &w[3..]);
        let texts: Vec<String> = given
            .into_iter()
            .flatten()
            .map(|(_, text)| text)
            .chain([body.to_owned()])
            .collect();
        let mut said = Vec::new();
        for text in &texts {
            for object in objects_of(text)? {
                said.extend(self.create_one(manager, &object).await?);
            }
        }
        if words.is_empty() {
            return Ok(said);
        }
        let line: Vec<String> = words
            .iter()
            .map(|w| {
                if w.contains(' ') {
                    format!("'{w}'")
                } else {
                    (*w).clone()
                }
            })
            .collect();
        let object: Value =
            serde_json::from_str(&self.filled(&notation::object(&line.join(" "))?.to_string()))
                .map_err(|e| e.to_string())?;
        said.extend(self.create_one(manager, &object).await?);
        Ok(said)
    }

    async fn create_one(&mut self, manager: &str, object: &Value) -> Said {
        self.note(object);
        let namespace = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .unwrap_or(self.namespace());
        let (version, kind) = (
            object["apiVersion"].as_str().unwrap_or(""),
            object["kind"].as_str().unwrap_or(""),
        );
        let path = self
            .ground
            .path(version, kind, namespace, "")
            .await
            .ok_or("there is no such kind")?;
        self.request(
            Method::POST,
            &format!("{path}?fieldManager={manager}"),
            Some(object),
        )
        .await
    }

    /// Changes fields of an object manually: those of words, and those of the body.
    async fn edit(&self, app: &str, words: &[String], body: &str) -> Said {
        let (by, words): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|w| w.starts_with("by="));
        let manager = by.first().map_or("kubectl-edit", |w| &w[3..]);
        let (target, words) = words.split_first().ok_or("what is to be edited?")?;
        let (_, kind) = notation::type_of(target.split('/').next().unwrap_or_default());
        let mut patch = fields(
            &kind,
            &words.iter().map(|w| (*w).clone()).collect::<Vec<_>>(),
        )?;
        match yaml_of(body)? {
            Value::Null => {}
            over => merge(&mut patch, over),
        }
        let path = self
            .target_of(app, target)
            .await
            .ok_or("there is no such kind")?;
        self.request(
            Method::PATCH,
            &format!("{path}?fieldManager={manager}"),
            Some(&patch),
        )
        .await
    }

    async fn delete(&self, app: &str, words: &[String]) -> Said {
        let (target, words) = words.split_first().ok_or("what is to be deleted?")?;
        let path = self
            .target_of(app, target)
            .await
            .ok_or("there is no such kind")?;
        let policy = words
            .first()
            .map(|w| json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": w}));
        self.request(Method::DELETE, &path, policy.as_ref()).await
    }

    async fn pass(&self, words: &[String]) -> Said {
        let nanos =
            duration::parse(words.first().ok_or("how long?")?).map_err(|e| e.to_string())?;
        sleep(Duration::from_nanos(
            u64::try_from(nanos).map_err(|e| e.to_string())?,
        ))
        .await;
        Ok(Vec::new())
    }
}

/// `Kind/name` as an operation names it.
fn selected(text: &str) -> Value {
    let (kind, name) = text.split_once('/').unwrap_or((text, ""));
    let (version, kind) = notation::type_of(kind);
    json!({"group": version.split_once('/').map_or("", |(group, _)| group), "kind": kind, "name": name})
}

/// The first document; null for an empty text.
pub fn yaml_of(text: &str) -> Result<Value, String> {
    yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
        .map_err(|e| e.to_string())
}

/// The objects of all documents of a text, and of its lists.
pub fn objects_of(text: &str) -> Result<Vec<Value>, String> {
    let documents =
        yaml::parse_documents(text, &yaml::Limits::default()).map_err(|e| e.to_string())?;
    let items = |value: Value| match value.get("items").and_then(Value::as_array) {
        Some(items)
            if value["kind"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("List")) =>
        {
            items.clone()
        }
        _ => vec![value],
    };
    Ok(documents
        .into_iter()
        .flat_map(|d| items(d.value))
        .filter(|o| o["kind"].is_string() && o["apiVersion"].is_string())
        .collect())
}
