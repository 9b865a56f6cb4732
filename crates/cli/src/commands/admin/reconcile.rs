//! `admin app get-reconcile-results` and `diff-reconcile-results`: what comparisons of all
//! Applications found, in a file, and how two such files differ. Main types: [`GetResults`] and
//! [`DiffResults`].

use crate::{
    client::Failure,
    commands::{app::difference, apply::HintedError},
    kubectl::kube::KubeArgs,
    output,
};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, time::Duration};
use tiphys_api::{
    Application,
    constants::{IN_CLUSTER, REFRESH},
    status::{ApplicationCondition, SyncStatus},
};
use tiphys_cluster::{
    apply,
    request::{Call, Http, MERGE_PATCH},
};
use tiphys_gocompat::yaml;
use tokio::time::{Instant, sleep};

/// How long the controller may take to compare an Application again.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// Reconcile all applications and stores reconciliation summary in the specified file
#[derive(clap::Args)]
pub struct GetResults {
    /// The file to write
    path: String,
    /// Label selector
    #[arg(
        long = "l",
        value_name = "SELECTOR",
        default_value = "",
        hide_default_value = true
    )]
    selector: String,
    /// Output format (yaml|json)
    #[arg(long = "o", value_name = "FORMAT", default_value = "yaml")]
    format: String,
    /// Let the controller compare the Applications again first
    #[arg(long)]
    refresh: bool,
    /// (no effect: the controller knows its repo-server)
    #[arg(long, hide = true)]
    repo_server: Option<String>,
    /// (no effect: the controller's options decide)
    #[arg(long, hide = true)]
    ignore_normalizer_jq_execution_timeout: Option<String>,
    /// Refused: an annotation of the Application decides
    #[arg(long, hide = true)]
    server_side_diff: Option<bool>,
    #[command(flatten)]
    kube: KubeArgs,
}

/// Compare results of two reconciliations and print diff
#[derive(clap::Args)]
pub struct DiffResults {
    /// The earlier results
    first: String,
    /// The later results
    second: String,
}

/// What is known of one Application.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Found {
    name: String,
    health: String,
    sync: Option<SyncStatus>,
    /// A nil slice of Go where there are none.
    conditions: Option<Vec<ApplicationCondition>>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Results {
    applications: Option<Vec<Found>>,
}

impl Results {
    fn of(apps: Vec<Application>) -> Self {
        let found = apps.into_iter().map(|app| Found {
            name: app.metadata.name.clone(),
            health: app.status.health.status.clone(),
            sync: Some(app.status.sync.clone()),
            conditions: Some(app.status.conditions.clone()).filter(|c| !c.is_empty()),
        });
        Self {
            applications: Some(found.collect::<Vec<_>>()).filter(|apps| !apps.is_empty()),
        }
    }

    fn text(&self, format: &str) -> Result<String, Failure> {
        match format {
            "yaml" => output::yaml(self),
            "json" => serde_json::to_string(self)
                .map(|text| output::escape_html(&text))
                .map_err(|e| Failure::error(format!("error marshalling json: {e}"))),
            other => Err(Failure::error(format!("format {other} is not supported"))),
        }
    }

    fn read(path: &str) -> Result<Self, Failure> {
        let bytes = fs::read(path).map_err(|e| Failure::file(path, &e))?;
        let failed = |e: String| Failure::error(format!("{path}: {e}"));
        let documents = yaml::parse_documents(&bytes, &yaml::Limits::default());
        let first = documents
            .map_err(|e| failed(e.to_string()))?
            .into_iter()
            .next();
        first.map_or_else(
            || Ok(Self::default()),
            |document| serde_json::from_value(document.value).map_err(|e| failed(e.to_string())),
        )
    }

    /// By name.
    fn by_name(self) -> Result<BTreeMap<String, Value>, Failure> {
        let apps = self.applications.unwrap_or_default().into_iter();
        apps.map(|app| {
            let value = serde_json::to_value(&app).map_err(|e| Failure::error(e.to_string()))?;
            Ok((app.name, value))
        })
        .collect()
    }
}

impl GetResults {
    pub async fn run(self) -> Result<(), Failure> {
        if self.server_side_diff == Some(true) {
            return Err(Failure::error("--server-side-diff is not supported").with_hint(
                "the annotation argocd.argoproj.io/compare-options: ServerSideDiff=true asks for it",
            ));
        }
        let target = super::connect(&self.kube)
            .await
            .map_err(|e| super::failed(&e))?;
        let namespace = super::backup::namespace(&self.kube, &target);
        let place = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications");
        let http = target.discovery.cluster().http();
        let mut apps = self.applications(http, &place).await?;
        if self.refresh {
            refresh(http, &place, &mut apps).await?;
        }
        let text = Results::of(apps).text(&self.format)?;
        fs::write(&self.path, text).map_err(|e| Failure::file(&self.path, &e))
    }

    async fn applications(&self, http: &Http, place: &str) -> Result<Vec<Application>, Failure> {
        let call = match self.selector.as_str() {
            "" => Call::get(place),
            selector => Call::get(place).query("labelSelector", selector),
        };
        let list: Value = http.json(&call).await.map_err(not_listed)?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let read = |item| serde_json::from_value(item).map_err(|e| Failure::error(e.to_string()));
        items.into_iter().map(read).collect()
    }
}

fn reason(e: tiphys_cluster::Error) -> String {
    super::failed(&HintedError::from(apply::Failure::from(e))).message
}

fn not_listed(e: tiphys_cluster::Error) -> Failure {
    Failure::error(format!("error listing namespaced apps: {}", reason(e)))
}

/// Asks for comparisons, one cluster after another, and waits for them.
async fn refresh(http: &Http, place: &str, apps: &mut [Application]) -> Result<(), Failure> {
    let server = |app: &Application| match &app.spec.destination {
        destination if !destination.server.is_empty() => destination.server.clone(),
        destination if !destination.name.is_empty() => destination.name.clone(),
        _ => IN_CLUSTER.to_owned(),
    };
    apps.sort_by_key(server);
    let mut shown = String::new();
    for app in apps {
        let server = server(app);
        if server != shown {
            output::print(&format!("Reconciling apps of {server}\n"));
            shown = server;
        }
        output::print(&format!("{}\n", app.metadata.name));
        *app = compared(http, &format!("{place}/{}", app.metadata.name)).await?;
    }
    Ok(())
}

/// The Application at `path` after a comparison: the controller removes the annotation then.
async fn compared(http: &Http, path: &str) -> Result<Application, Failure> {
    let failed = |e| Failure::error(format!("error comparing app states: {}", reason(e)));
    let body = json!({"metadata": {"annotations": {REFRESH: "normal"}}}).to_string();
    let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, body);
    let mut app: Application = http.json(&call).await.map_err(failed)?;
    let end = Instant::now() + PATIENCE;
    while app.metadata.annotations.contains_key(REFRESH) {
        if Instant::now() > end {
            let name = &app.metadata.name;
            return Err(
                Failure::error(format!("no controller compares {name}")).with_hint(
                    "is a controller running? Without --refresh its last results are read",
                ),
            );
        }
        sleep(PAUSE).await;
        app = http.json(&Call::get(path)).await.map_err(failed)?;
    }
    Ok(app)
}

impl DiffResults {
    pub fn run(&self) -> Result<(), Failure> {
        let first = Results::read(&self.first)?;
        let second = Results::read(&self.second)?;
        output::print(&differences(first, second)?);
        Ok(())
    }
}

/// Each Application's name, and what differs.
fn differences(first: Results, second: Results) -> Result<String, Failure> {
    let (first, mut second) = (first.by_name()?, second.by_name()?);
    let mut pairs: BTreeMap<String, (Value, Value)> = BTreeMap::new();
    for (name, old) in first {
        let new = second.remove(&name).unwrap_or_default();
        pairs.insert(name, (old, new));
    }
    pairs.extend(
        second
            .into_iter()
            .map(|(name, new)| (name, (Value::Null, new))),
    );
    let mut text = String::new();
    for (name, (old, new)) in pairs {
        text.push_str(&format!("{name}\n{}", difference(&old, &new)?));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str, health: &str) -> Application {
        let value = json!({"metadata": {"name": name}, "status": {
            "health": {"status": health}, "sync": {"status": "Synced", "revision": "abc"}}});
        serde_json::from_value(value).expect("an Application")
    }

    #[test]
    fn results_are_written_and_compared() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
        let (one, two) = (path("one"), path("two"));
        let before = Results::of(vec![app("a", "Healthy"), app("gone", "Healthy")]);
        let after = Results::of(vec![app("a", "Degraded"), app("new", "Missing")]);
        fs::write(&one, before.text("yaml").expect("YAML")).expect("written");
        fs::write(&two, after.text("json").expect("JSON")).expect("written");
        let read = |path| Results::read(path).expect("it can be read");
        let text = differences(read(&one), read(&two)).expect("they can be compared");
        assert!(text.starts_with("a\n2c2\n< health: Healthy\n---\n> health: Degraded\ngone\n"));
        assert!(
            text.contains("new\n0a1,") && text.contains("> name: new\n"),
            "{text}"
        );
        let same = differences(read(&one), read(&one)).expect("they can be compared");
        assert_eq!(same, "a\ngone\n");
    }

    #[test]
    fn nothing_is_null_and_formats_are_known() {
        let none = Results::of(Vec::new());
        assert_eq!(none.text("yaml").expect("YAML"), "applications: null\n");
        assert_eq!(none.text("json").expect("JSON"), "{\"applications\":null}");
        let refused = none.text("wide").map_err(|e| (e.code, e.message));
        assert_eq!(
            refused,
            Err((20, "format wide is not supported".to_owned()))
        );
        let missing = Results::read("/nowhere/a").err().map(|e| e.message);
        assert_eq!(
            missing.as_deref(),
            Some("open /nowhere/a: no such file or directory")
        );
    }
}
