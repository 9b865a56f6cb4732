//! Plays a script in an environment and records the result. Main type: [`Play`]; the steps
//! themselves are in `steps`.

use crate::scripts::{
    charts::ChartRepository,
    ground::Ground,
    notation,
    plugins::PluginServers,
    recorded,
    script::{Script, Step},
    transcript::{self, Section, Transcript},
};
use http::Method;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
    time::Duration,
};
use tiphys_testkit::Repo;
use tokio::time::{Instant, sleep};

/// How long a step may take on a real control plane until its transcript is the expected one.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(400);
/// The result of a step with another controller is recorded when nothing has changed for this long.
const STILL: Duration = Duration::from_secs(15);

/// `$MINUTE`, `$MINUTE+2`.
static MINUTE: LazyLock<regex::Regex> =
    LazyLock::new(|| regex::Regex::new(r"\$MINUTE(?:\+(\d+))?").expect("a valid expression"));

/// A script being played.
pub struct Play<'a> {
    pub ground: &'a Ground,
    pub repo: Repo,
    /// The script's chart repository, once it has one.
    pub charts: Option<ChartRepository>,
    pub plugins: PluginServers,
    /// The values of `$APP`, `$NS`, ….
    names: Vec<(&'static str, String)>,
    pub commits: Vec<String>,
    /// `apiVersion` and `kind` of the objects in the script.
    kinds: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
    /// Names of the script's own Applications; steps refer to the first one.
    pub apps: Vec<String>,
    /// The namespaces of Applications outside the control plane's.
    pub places: BTreeMap<String, String>,
}

/// Plays a script; `id` is part of every name that could clash. Returns the script with the
/// resulting transcript. On a real control plane it ends with the first step whose result differs.
pub async fn run(ground: &Ground, script: &Script, id: &str) -> Script {
    let mut play = Play::new(ground, id);
    play.begin().await;
    let (mut played, mut transcript) = (script.clone(), Transcript::default());
    transcript.keep(play.look().await);
    for (step, result) in script.steps.iter().zip(&mut played.steps) {
        let said = play.done(script, step).await;
        let (deadline, mut seen, mut since) =
            (Instant::now() + PATIENCE, Vec::new(), Instant::now());
        loop {
            let sections = play.look().await;
            result.expected = [
                said.clone(),
                play.shown(step).await,
                transcript.news(&sections),
            ]
            .concat();
            // Before there is an Application there is nothing to wait for.
            if result.expected.is_empty() && !sections[0].1[0].ends_with("is gone") {
                result.expected.push("nothing changes".into());
            }
            let right = match ground.is_external {
                true => recorded::are_alike(&result.expected, &step.expected),
                false => result.expected == step.expected,
            };
            if seen != result.expected {
                (seen, since) = (result.expected.clone(), Instant::now());
            }
            let still = ground.is_external && since.elapsed() > STILL;
            if right || still || !ground.is_real() || Instant::now() > deadline {
                transcript.keep(sections);
                break;
            }
            sleep(POLL).await;
        }
        if ground.is_real() && !ground.is_external && result.expected != step.expected {
            break;
        }
    }
    play.end().await;
    played
}

/// Plays a script and returns the state after each step, when idle. For an embedded environment.
pub async fn states(ground: &Ground, script: &Script) -> Vec<Vec<Section>> {
    let mut play = Play::begun(ground).await;
    let mut states = Vec::new();
    for step in &script.steps {
        play.done(script, step).await;
        states.push(play.look().await);
    }
    states
}

impl<'a> Play<'a> {
    fn new(ground: &'a Ground, id: &str) -> Self {
        let (app, namespace, repo) = (format!("app-{id}"), format!("ns-{id}"), Repo::new());
        let folder = repo.url().trim_start_matches("file://").to_owned();
        let names = [
            ("$APP", &*app),
            ("$NS", &*namespace),
            ("$ARGOCD", &*ground.namespace),
            ("$REPO", &*repo.url()),
            ("$GIT", &*folder),
        ];
        let names = names.map(|(name, value)| (name, value.to_owned())).to_vec();
        let kinds = [("v1".to_owned(), "Namespace".to_owned())].into();
        Self {
            ground,
            repo,
            charts: None,
            plugins: PluginServers::default(),
            names,
            commits: Vec::new(),
            kinds,
            namespaces: [namespace].into(),
            apps: vec![app],
            places: BTreeMap::new(),
        }
    }

    /// Sets the value of a name such as `$CHARTS`.
    pub fn name(&mut self, name: &'static str, value: String) {
        self.names.retain(|(known, _)| *known != name);
        self.names.push((name, value));
    }

    /// In an embedded environment, which no other script shares.
    pub async fn begun(ground: &'a Ground) -> Self {
        Self::begun_as(ground, "x0y0").await
    }

    /// Like [`Self::begun`], in an environment that others share: their ids differ.
    pub async fn begun_as(ground: &'a Ground, id: &str) -> Self {
        let mut play = Self::new(ground, id);
        play.begin().await;
        play
    }

    /// Performs a step and waits until idle; returns its output.
    pub async fn done(&mut self, script: &Script, step: &Step) -> Vec<String> {
        let said = self
            .step(step)
            .await
            .unwrap_or_else(|problem| panic!("{}: `{}`: {problem}", script.name, step.text));
        self.ground.settle().await;
        said
    }

    pub fn namespace(&self) -> &str {
        &self.names[1].1
    }

    /// The text with every variable replaced.
    pub fn filled(&self, text: &str) -> String {
        let text = self
            .names
            .iter()
            .fold(text.to_owned(), |text, (name, value)| {
                text.replace(name, value)
            });
        MINUTE
            .replace_all(&text, |found: &regex::Captures| {
                self.minute(found.get(1).map_or("", |m| m.as_str()))
            })
            .into_owned()
    }

    /// The schedule of the current minute, or of a later one.
    fn minute(&self, later: &str) -> String {
        let at = (self.ground.now)() + Duration::from_secs(60 * later.parse().unwrap_or(0));
        at.strftime("%-M %-H * * *").to_string()
    }

    /// The name of an Application: the script's own, or another one by the end of its name.
    pub fn app_of(&mut self, other: Option<&str>) -> String {
        let name = other.map_or_else(
            || self.apps[0].clone(),
            |other| format!("{}-{other}", self.apps[0]),
        );
        if !self.apps.contains(&name) {
            self.apps.push(name.clone());
        }
        name
    }

    fn plain_names(&self) -> Vec<(String, String)> {
        let numbered = self.commits.iter().enumerate().map(|(i, sha)| (i + 1, sha));
        let long = numbered
            .clone()
            .map(|(n, sha)| (sha.clone(), format!("commit {n}")));
        let short = numbered.map(|(n, sha)| (sha[..7].to_owned(), format!("<{n}>")));
        long.chain(short)
            .chain(
                self.names
                    .iter()
                    .map(|(name, value)| (value.clone(), (*name).to_owned())),
            )
            .collect()
    }

    pub fn plain(&self, text: &str) -> String {
        transcript::plain(text, &self.plain_names())
    }

    /// Records the kind and namespace of an object.
    pub fn note(&mut self, object: &Value) {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (version, kind, mut namespace) = (
            text("/apiVersion"),
            text("/kind"),
            text("/metadata/namespace"),
        );
        if kind == "Application" {
            namespace = text("/spec/destination/namespace");
        }
        if object.pointer("/spec/volumeClaimTemplates").is_some() {
            self.kinds
                .insert(("v1".into(), "PersistentVolumeClaim".into()));
        }
        self.kinds.insert((version, kind));
        if !namespace.is_empty() && namespace != self.ground.namespace {
            self.namespaces.insert(namespace);
        }
    }

    pub fn note_kind(&mut self, (version, kind): (String, String)) {
        self.kinds.insert((self.filled(&version), kind));
    }

    pub fn note_namespace(&mut self, namespace: &str) {
        self.namespaces.insert(namespace.to_owned());
    }

    /// The namespace of an Application.
    pub fn place(&self, name: &str) -> &str {
        self.places.get(name).unwrap_or(&self.ground.namespace)
    }

    pub fn app_path(&self, name: &str) -> String {
        format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{}/applications/{name}",
            self.place(name)
        )
    }

    async fn begin(&mut self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
        self.ground
            .send(Method::POST, "/api/v1/namespaces", Some(&namespace))
            .await
            .expect("the namespace is new");
        // No Pod can be created before its service account.
        let account = format!(
            "/api/v1/namespaces/{}/serviceaccounts/default",
            self.namespace()
        );
        while self.ground.find(&account).await.is_none() {
            sleep(POLL).await;
        }
    }

    /// Removes the script's objects from a shared cluster.
    pub async fn end(&self) {
        if !self.ground.is_real() {
            return;
        }
        // Someone else may remove it concurrently.
        let places = self.places.values().chain([&self.ground.namespace]);
        for place in places {
            let all = format!("/apis/argoproj.io/v1alpha1/namespaces/{place}/applications");
            for app in self
                .ground
                .find(&all)
                .await
                .iter()
                .flat_map(|l| l["items"].as_array().cloned().unwrap_or_default())
            {
                let name = app["metadata"]["name"].as_str().unwrap_or_default();
                if name.starts_with(&self.apps[0]) {
                    let path = format!("{all}/{name}");
                    let _ = self
                        .ground
                        .send(
                            Method::PATCH,
                            &path,
                            Some(&json!({"metadata": {"finalizers": null}})),
                        )
                        .await;
                    let _ = self.ground.send(Method::DELETE, &path, None).await;
                }
            }
        }
        for (version, kind) in &self.kinds {
            for object in self.objects_of(version, kind).await {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                if let Some(path) = self.ground.path(version, kind, namespace, name).await {
                    if object["metadata"]["finalizers"].is_array() {
                        let _ = self
                            .ground
                            .send(
                                Method::PATCH,
                                &path,
                                Some(&json!({"metadata": {"finalizers": null}})),
                            )
                            .await;
                    }
                    let _ = self.ground.send(Method::DELETE, &path, None).await;
                }
            }
        }
        let project = self.project_path();
        let _ = self
            .ground
            .send(
                Method::PATCH,
                &project,
                Some(&json!({"metadata": {"finalizers": null}})),
            )
            .await;
        let _ = self.ground.send(Method::DELETE, &project, None).await;
    }

    /// The objects of a kind that belong to the script.
    async fn objects_of(&self, version: &str, kind: &str) -> Vec<Value> {
        let mut places: Vec<String> = self.namespaces.iter().cloned().collect();
        match kind {
            "Application" | "AppProject" => places = vec![self.ground.namespace.clone()],
            _ if !self.ground.is_namespaced(version, kind).await => places = vec![String::new()],
            _ => {}
        }
        let mut objects = Vec::new();
        for place in places {
            let Some(path) = self.ground.path(version, kind, &place, "").await else {
                continue;
            };
            let Some(mut found) = self.ground.find(&path).await else {
                continue;
            };
            let items = found["items"]
                .as_array_mut()
                .map(std::mem::take)
                .unwrap_or_default();
            let ours = |o: &Value| {
                self.is_ours(o, kind, place.is_empty() || place == self.ground.namespace)
            };
            objects.extend(items.into_iter().filter(ours).map(|mut o| {
                (o["apiVersion"], o["kind"]) = (version.into(), kind.into());
                o
            }));
        }
        objects
    }

    /// Whether to show an object: it was created on purpose, and not by another script.
    fn is_ours(&self, object: &Value, kind: &str, shared: bool) -> bool {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let made = name == "kube-root-ca.crt" || (kind == "ServiceAccount" && name == "default");
        let owned = object["metadata"]["ownerReferences"]
            .as_array()
            .is_some_and(|o| o.iter().any(|o| o["controller"] == true));
        let own = kind == "Application" && self.apps.iter().any(|a| a == name);
        let named = [&self.apps[0], self.namespace()]
            .iter()
            .any(|part| name.contains(*part));
        !made && !owned && !own && (!shared || named)
    }

    /// Everything to show.
    async fn look(&self) -> Vec<Section> {
        let names = self.plain_names();
        let mut sections = Vec::new();
        for (number, name) in self.apps.iter().enumerate() {
            let mut app = self.ground.find(&self.app_path(name)).await;
            app.iter_mut()
                .for_each(|app| self.ground.add_health(self.place(name), name, app));
            let app = app.map(|app| transcript::plain_value(&app, &names));
            let title = if number == 0 {
                String::new()
            } else {
                format!("{}: ", name[self.apps[0].len() + 1..].to_owned())
            };
            sections.extend(
                app.as_ref()
                    .and_then(|app| transcript::operation(app, &title, "$NS")),
            );
            sections.push(transcript::application(app.as_ref(), &title, "$NS"));
        }
        let mut objects = Vec::new();
        for (version, kind) in &self.kinds {
            objects.extend(
                self.objects_of(version, kind)
                    .await
                    .iter()
                    .map(|o| transcript::plain_value(o, &names)),
            );
        }
        sections.push(transcript::cluster(&objects, "$NS"));
        sections
    }

    /// What a step requests to be shown in addition.
    async fn shown(&self, step: &Step) -> Vec<String> {
        let (other, text) = step.of();
        let app = other.map_or_else(
            || self.apps[0].clone(),
            |other| format!("{}-{other}", self.apps[0]),
        );
        let words = notation::words(text);
        match words
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            ["show", "history"] => {
                let app = self
                    .ground
                    .find(&self.app_path(&app))
                    .await
                    .unwrap_or_default();
                let history = app["status"]["history"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                history
                    .iter()
                    .map(|h| {
                        self.plain(&format!(
                            "history {}: {}",
                            h["id"],
                            transcript::revision_of(h)
                        ))
                    })
                    .collect()
            }
            ["show", "events"] => self.events(&app).await,
            ["show", target, fields @ ..] => {
                let object = match self.target_of(&app, target).await {
                    Some(path) => self.ground.find(&path).await,
                    None => None,
                };
                let line = |field: &&str| {
                    self.plain(&format!(
                        "{target} {field}: {}",
                        field_of(object.as_ref(), field)
                    ))
                };
                fields.iter().map(line).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The Events of an Application, in order of arrival.
    async fn events(&self, app: &str) -> Vec<String> {
        let list = self
            .ground
            .find(&format!("/api/v1/namespaces/{}/events", self.place(app)))
            .await
            .unwrap_or_default();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let ours = items.iter().filter(|e| e["involvedObject"]["name"] == app);
        let text = |e: &Value, field: &str| e[field].as_str().unwrap_or_default().to_owned();
        ours.map(|e| {
            self.plain(&format!(
                "{} {}: {}",
                text(e, "type"),
                text(e, "reason"),
                text(e, "message")
            ))
        })
        .collect()
    }

    fn project_path(&self) -> String {
        format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{}/appprojects/{}",
            self.ground.namespace, self.apps[0]
        )
    }

    /// The path of `kind/name` or `kind/namespace/name`; `app` is the script's own Application,
    /// `project` its project.
    pub async fn target(&self, target: &str) -> Option<String> {
        self.target_of(&self.apps[0], target).await
    }

    /// The same in a step about this Application.
    pub async fn target_of(&self, app: &str, target: &str) -> Option<String> {
        match target {
            "app" => return Some(self.app_path(app)),
            "project" => return Some(self.project_path()),
            _ => {}
        }
        let target = self.filled(target);
        let parts: Vec<&str> = target.split('/').collect();
        let (kind, namespace, name) = match parts.as_slice() {
            [kind, name] => (*kind, self.namespace(), *name),
            [kind, namespace, name] => (*kind, *namespace, *name),
            _ => return None,
        };
        let (version, kind) = notation::type_of(kind);
        let namespace = if kind == "Application" {
            &self.ground.namespace
        } else {
            namespace
        };
        self.ground
            .path(&self.filled(&version), &kind, namespace, name)
            .await
    }
}

/// A field as text. `managers` lists the managers of its fields.
fn field_of(object: Option<&Value>, field: &str) -> String {
    let Some(object) = object else {
        return "there is no such object".into();
    };
    if field == "managers" {
        let entries = object["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let name = |e: &Value| {
            format!(
                "{} {}",
                e["manager"].as_str().unwrap_or(""),
                e["operation"].as_str().unwrap_or("")
            )
        };
        let names: BTreeSet<String> = entries
            .iter()
            .filter(|e| e["subresource"].is_null())
            .map(name)
            .collect();
        return names.into_iter().collect::<Vec<_>>().join(", ");
    }
    // A name with dots can be selected by a JSON pointer.
    let pointer = if field.starts_with('/') {
        field.to_owned()
    } else {
        format!("/{}", field.replace('.', "/"))
    };
    match object.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "none".into(),
    }
}
