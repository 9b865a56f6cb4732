//! AppRepositories: their charts are found, and gone with them.

use crate::scenarios::world::{World, program, text};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use tiphys_testkit::{
    Api, Options, PATIENCE, Repo, Tiphys,
    charts::{Answer, FileServer, basic, index, plain_chart},
    eventually, namespaced, output_of,
};

const GROUP: &str = "kubeapps.com/v1alpha1";

/// Publishes these versions of a chart below a path.
pub fn publish(server: &FileServer, path: &str, chart: &str, versions: &[&str]) {
    let mut entries = Vec::new();
    for version in versions {
        let readme = format!("# {chart} {version}\n");
        let archive = plain_chart(chart, version, &[("README.md", &readme)]);
        let file = format!("{chart}-{version}.tgz");
        server.serve(&format!("{path}/{file}"), archive);
        entries.push((*version, file));
    }
    let entries: Vec<_> = entries
        .iter()
        .map(|(version, file)| (chart, *version, file.as_str(), ""))
        .collect();
    server.serve(&format!("{path}/index.yaml"), index(&entries).as_str());
}

pub struct Repositories<'a> {
    pub kube: &'a Api,
    path: String,
    pub data: String,
}

impl<'a> Repositories<'a> {
    pub fn new(kube: &'a Api, tiphys: &Tiphys, namespace: &str) -> Self {
        Self {
            kube,
            path: namespaced(GROUP, namespace, "apprepositories"),
            data: tiphys.data().expect("a folder").display().to_string(),
        }
    }

    pub fn create(&self, name: &str, url: &str, more: &Value) {
        let mut object = json!({
            "apiVersion": GROUP, "kind": "AppRepository", "metadata": {"name": name},
            "spec": {"type": "helm", "url": url},
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        self.kube.create(&self.path, &object);
    }

    fn find(&self, name: &str) -> Option<Value> {
        self.kube.find(&format!("{}/{name}", self.path))
    }

    /// Waits for the state of one, in its own words.
    pub fn until(&self, name: &str, word: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(PATIENCE, &format!("{name} is {word}"), || {
            let found = self.find(name).ok_or("it is not there")?;
            let status = &found["status"];
            if status["status"] == word && is(status) {
                Ok(status.clone())
            } else {
                Err(status.to_string())
            }
        })
    }

    /// Asks for a sync.
    fn resync(&self, name: &str, number: u64) {
        let patch = json!({"spec": {"resyncRequests": number}});
        self.kube.patch(&format!("{}/{name}", self.path), &patch);
    }

    fn delete(&self, name: &str) {
        self.kube.delete(&format!("{}/{name}", self.path));
        eventually(PATIENCE, &format!("{name} is gone"), || {
            self.find(name)
                .map_or(Ok(()), |found| Err(found.to_string()))
        });
    }

    pub fn catalog(&self, words: &[&str]) -> String {
        let words = [&["catalog"], words, &["--data", &self.data]].concat();
        let ended = output_of(&program(), &words);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
        ended.stdout
    }

    /// What a command says that fails.
    fn fails(&self, words: &[&str]) -> String {
        let words = [&["catalog"], words, &["--data", &self.data]].concat();
        let ended = output_of(&program(), &words);
        assert_ne!(ended.code, Some(0), "{words:?}: {}", ended.stdout);
        ended.stderr
    }

    /// The charts that a search finds, by name.
    fn search(&self, word: &str) -> Vec<String> {
        let found = self.catalog(&["search", word, "-o", "name"]);
        found.lines().map(str::to_owned).collect()
    }
}

fn condition(status: &Value, name: &str) -> (String, String) {
    let list = status["conditions"].as_array().into_iter().flatten();
    let found = list.clone().find(|condition| condition["type"] == name);
    let found = found.cloned().unwrap_or_default();
    (text(&found, "/status"), text(&found, "/message"))
}

pub fn chart_repositories_are_read_and_removed(world: &mut World) {
    let server = FileServer::start();
    publish(&server, "/good", "web", &["1.0.0"]);
    publish(&server, "/private", "vault", &["3.0.0"]);
    let private = Answer {
        only_for: Some(("ann", "hunter2")),
        ..index(&[("vault", "3.0.0", "vault-3.0.0.tgz", "")])
            .as_str()
            .into()
    };
    server.serve("/private/index.yaml", private);
    let namespace = world.namespace.clone();
    world.kube.namespace(&namespace);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"},
        "stringData": {"header": basic("ann", "hunter2")},
    });
    world
        .kube
        .create(&namespaced("v1", &namespace, "secrets"), &secret);
    let repositories = Repositories::new(&world.kube, &world.tiphys, &namespace);
    let url = server.url();
    repositories.create("good", &format!("{url}/good"), &json!({"interval": "1h"}));
    repositories.create("absent", &format!("{url}/absent"), &json!({}));
    let header = json!({"header": {"secretKeyRef": {"name": "creds", "key": "header"}}});
    let auth = json!({"auth": header});
    repositories.create("private", &format!("{url}/private"), &auth);

    let status = repositories.until("good", "Ready", |status| status["charts"] == 1);
    assert_eq!(condition(&status, "Ready").0, "True");
    assert_eq!(condition(&status, "Syncing").0, "False");
    assert!(status["nextSyncTime"].is_string() && status["lastSyncTime"].is_string());
    repositories.until("private", "Ready", |status| status["charts"] == 1);
    let status = repositories.until("absent", "Stalled", |_| true);
    let (stalled, why) = condition(&status, "Stalled");
    assert_eq!(stalled, "True");
    assert!(
        why.contains("404") && why.contains("/absent/index.yaml"),
        "{why}"
    );
    assert_eq!(text(&status, "/lastError"), why);

    let web = format!("{namespace}/good/web");
    assert_eq!(repositories.search("web"), [web.as_str()]);
    assert_eq!(
        repositories.search("vault"),
        [format!("{namespace}/private/vault")]
    );
    let readme = repositories.catalog(&["show", &web, "--readme"]);
    assert_eq!(readme, "# web 1.0.0\n");
    let shown = format!(
        "{:?}{}{}",
        repositories.find("private"),
        world.tiphys.stderr(),
        repositories.catalog(&["repos", "list", "-o", "wide"]),
    );
    assert!(!shown.contains("hunter2"), "{shown}");

    // Both are read again on demand; the second has recovered.
    publish(&server, "/good", "web", &["1.0.0", "1.1.0"]);
    publish(&server, "/absent", "late", &["0.1.0"]);
    repositories.resync("good", 1);
    repositories.resync("absent", 7);
    repositories.until("good", "Ready", |status| status["versions"] == 2);
    let status = repositories.until("absent", "Ready", |status| status["charts"] == 1);
    assert!(status.get("lastError").is_none(), "{status}");
    assert_eq!(repositories.search("late").len(), 1);

    repositories.delete("good");
    assert!(repositories.search("web").is_empty());
    assert_eq!(repositories.search("late").len(), 1, "the others stay");
    // The next one with the same name is read as a new one.
    repositories.create("good", &format!("{url}/good"), &json!({"interval": "1h"}));
    repositories.until("good", "Ready", |status| status["charts"] == 1);
    assert_eq!(repositories.search("web"), [web]);
    for name in ["good", "absent", "private"] {
        repositories.delete(name);
    }
    assert!(repositories.search("").is_empty());
}

/// What kubeapps' own controller and syncer do, in a cluster whose pods are simulated.
#[test]
fn an_apprepository_becomes_jobs_whose_pods_read_it() {
    let server = FileServer::start();
    publish(&server, "/good", "web", &["1.0.0"]);
    let options = Options {
        program: program(),
        arguments: ["--catalog", "jobs"].map(Into::into).to_vec(),
        ..Options::default()
    };
    let (tiphys, kube) = Tiphys::ready(&options);
    kube.namespace("team-a");
    let repositories = Repositories::new(&kube, &tiphys, "team-a");
    repositories.create("good", &format!("{}/good", server.url()), &json!({}));
    repositories.create("absent", &format!("{}/absent", server.url()), &json!({}));
    repositories.until("good", "Ready", |_| true);
    assert_eq!(repositories.search("web"), ["team-a/good/web"]);
    let jobs = || kube.list(&namespaced("batch/v1", "argocd", "jobs"));
    let begins = |name: &str| {
        let all = jobs().into_iter();
        let fits = all.filter(|job| text(job, "/metadata/generateName") == name);
        fits.collect::<Vec<Value>>()
    };
    let sync = begins("apprepo-team-a-sync-good-");
    assert_eq!(sync.len(), 1);
    assert_eq!(sync[0]["status"]["succeeded"], 1, "{}", sync[0]["status"]);
    let cron_jobs = namespaced("batch/v1", "argocd", "cronjobs");
    assert_eq!(kube.list(&cron_jobs).len(), 2);
    // A pod that fails is started again, and says why.
    let pods = || kube.list(&namespaced("v1", "argocd", "pods"));
    eventually(PATIENCE, "the other one fails", || {
        let all = pods().into_iter();
        let mut failed = all.filter(|pod| {
            let said = pod["metadata"]["annotations"]["sim.tiphys.dev/said"].as_str();
            said.is_some_and(|said| said.contains("404"))
        });
        let found = failed.next().map(drop);
        found.ok_or_else(|| "none does".to_owned())
    });
    // A second sync is one more Job.
    publish(&server, "/good", "web", &["1.0.0", "1.1.0"]);
    repositories.resync("good", 1);
    eventually(PATIENCE, "the new version", || {
        let versions = repositories.catalog(&["versions", "web", "-o", "name"]);
        match versions.lines().count() {
            2 => Ok(()),
            _ => Err(versions),
        }
    });
    repositories.delete("good");
    assert!(repositories.search("web").is_empty());
    let cleanup = begins("apprepo-team-a-cleanup-good-");
    assert_eq!(cleanup.len(), 1);
    repositories.delete("absent");
    assert!(kube.list(&cron_jobs).is_empty());
}

/// A process that is killed in the end.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// kubeapps' controller, ours, on a real cluster, where nothing reads the repositories.
pub fn jobs_are_made_for_chart_repositories(world: &mut World) {
    let namespace = world.namespace.clone();
    let other = format!("{namespace}-other");
    world.kube.namespace(&namespace);
    world.kube.namespace(&other);
    // Of several, one makes Jobs.
    let start = || {
        let mut command = Command::new(program());
        command.arg("apprepository-controller");
        command
            .arg(format!("--kubeconfig={}", world.kubeconfig().display()))
            .args(["--namespace", &namespace])
            .arg("--repo-sync-image=registry.example.org/tiphys:v1")
            .args([
                "--repo-sync-cmd=asset-syncer",
                "--custom-labels=team=charts",
            ])
            .stdout(Stdio::null());
        Process(command.spawn().expect("it starts"))
    };
    let controllers = [start(), start()];
    let spec = json!({"interval": "90m", "syncJobPodTemplate": {"spec": {"containers": [
        {"name": "x", "resources": {"limits": {"memory": "64Mi"}}},
    ]}}});
    for place in [&namespace, &other] {
        let repositories = Repositories::new(&world.kube, &world.tiphys, place);
        repositories.create("good", "https://charts.example.org", &spec);
        repositories.until("good", "Ready", |status| status["nextSyncTime"].is_string());
        let found = repositories.find("good").expect("it is there");
        let container = &found["spec"]["syncJobPodTemplate"]["spec"]["containers"][0];
        assert!(container.get("image").is_none(), "{container}");
    }
    let cron_jobs = namespaced("batch/v1", &namespace, "cronjobs");
    let found = world.kube.list(&cron_jobs);
    let schedules: Vec<String> = found
        .iter()
        .map(|job| text(job, "/spec/schedule"))
        .collect();
    assert_eq!(schedules, ["0 */2 * * *", "0 */2 * * *"]);
    assert!(
        found
            .iter()
            .all(|job| text(job, "/metadata/labels/team") == "charts")
    );
    let jobs = || world.kube.list(&namespaced("batch/v1", &namespace, "jobs"));
    let is_sync = |job: &&Value| text(job, "/metadata/generateName").contains("-sync-");
    assert_eq!(jobs().iter().filter(is_sync).count(), 2, "one for each");
    // Another one goes on.
    drop(controllers);
    let _controller = start();
    // A CronJob that somebody deletes is made again.
    let name = text(&found[0], "/metadata/name");
    let uid = text(&found[0], "/metadata/uid");
    world.kube.delete(&format!("{cron_jobs}/{name}"));
    eventually(PATIENCE, "the CronJob is made again", || {
        match world.kube.find(&format!("{cron_jobs}/{name}")) {
            Some(found) if text(&found, "/metadata/uid") != uid => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    for place in [&namespace, &other] {
        Repositories::new(&world.kube, &world.tiphys, place).delete("good");
    }
    let left = || world.kube.list(&cron_jobs).len();
    eventually(PATIENCE, "the CronJobs are gone", || match left() {
        0 => Ok(()),
        left => Err(format!("{left} are left")),
    });
    let jobs = jobs();
    let is_cleanup = |job: &&Value| text(job, "/metadata/generateName").contains("-cleanup-");
    let cleanups: Vec<&Value> = jobs.iter().filter(is_cleanup).collect();
    assert_eq!(cleanups.len(), 2);
    assert!(cleanups.iter().all(|job| job["status"]["succeeded"] == 1));
    // A real cluster is used by the next scenario, too.
    let _ = world
        .kube
        .send("DELETE", &format!("/api/v1/namespaces/{other}"), "", None);
}

/// From a search to a running release, and to its next version.
#[test]
fn a_chart_becomes_an_application() {
    let server = FileServer::start();
    let schema = r#"{"properties": {"colour": {"type": "string"}}}"#;
    let archive = plain_chart("web", "1.0.0", &[("values.schema.json", schema)]);
    server.serve("/charts/web-1.0.0.tgz", archive.clone());
    let entries = |digest| index(&[("web", "1.0.0", "web-1.0.0.tgz", digest)]);
    server.serve("/charts/index.yaml", entries("").as_str());
    let (mut tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    kube.namespace("charts");
    let repositories = Repositories::new(&kube, &tiphys, "charts");
    repositories.create("good", &format!("{}/charts", server.url()), &json!({}));
    repositories.until("good", "Ready", |status| status["charts"] == 1);

    let refused = repositories.fails(&["install", "web", "shop", "--set", "colour=1"]);
    assert!(
        refused.contains("cannot be installed") && refused.contains("colour"),
        "{refused}"
    );
    let blue = ["install", "web", "shop", "--set-string", "colour=blue"];
    let preview = repositories.catalog(&[&blue[..], &["--preview"]].concat());
    assert!(
        preview.contains("name: shop-web") && preview.contains("blue"),
        "{preview}"
    );
    let printed = repositories.catalog(&[&blue[..], &["--auto-sync"]].concat());
    assert!(
        printed.contains("catalog.tiphys.dev/repository: charts/good"),
        "{printed}"
    );

    let deploy = Repo::with(&[("README.md", "what runs\n")]);
    committed(&repositories, &deploy, &blue);

    let api = tiphys.login();
    let api = api.expect("the embedded cluster's password is shown");
    added_through_the_api(&api, &kube, &repositories, &server.url());
    let config = signed_in(&tiphys, &repositories);
    let connect = ["--config", config.as_str()];
    let more = ["--auto-sync", "--create", connect[0], connect[1]];
    let created = repositories.catalog(&[&blue[..], &more].concat());
    assert_eq!(created, "application 'shop' created\n");
    let colour = |wanted: &str| {
        let path = namespaced("v1", "shop", "configmaps") + "/shop-web";
        eventually(PATIENCE, "the release", || match kube.find(&path) {
            Some(map) if map["data"]["version"] == wanted => Ok(map["data"]["colour"].clone()),
            other => Err(format!("{other:?}")),
        })
    };
    assert_eq!(colour("1.0.0"), "blue");
    let updates = || repositories.catalog(&["updates", "-o", "json", connect[0], connect[1]]);
    assert_eq!(updates().trim(), "[]");

    publish(&server, "/charts", "web", &["1.0.0", "1.1.0", "2.0.0-rc.1"]);
    repositories.resync("good", 1);
    repositories.until("good", "Ready", |status| status["versions"] == 3);
    let found: Value = serde_json::from_str(&updates()).expect("a list");
    let wanted = json!([{
        "application": "argocd/shop", "chart": "charts/good/web",
        "version": "1.0.0", "newest": "1.1.0",
    }]);
    assert_eq!(found, wanted);

    upgrade_committed(&repositories, &deploy, &connect);
    upgrades_and_back(&repositories, &kube, &connect);

    // What was replaced since it was shown is not installed.
    let digest = "ab".repeat(32);
    server.serve("/charts/index.yaml", entries(&digest).as_str());
    repositories.resync("good", 2);
    repositories.until("good", "Ready", |status| status["versions"] == 1);
    let refused = repositories.fails(&blue);
    assert!(refused.contains("digest differs"), "{refused}");
}

/// Repositories that the page adds and removes, beside one of the command line.
fn added_through_the_api(api: &Api, kube: &Api, repositories: &Repositories<'_>, url: &str) {
    const ALL: &str = "/api/v1/catalog/repositories";
    let object = format!(
        "{}/added",
        namespaced("kubeapps.com/v1alpha1", "argocd", "apprepositories")
    );
    let secret = namespaced("v1", "argocd", "secrets") + "/apprepo-added";
    let add =
        json!({"name": "added", "url": format!("{url}/charts"), "username": "u", "password": "p"});
    let added = api.post(ALL, &add).expect("it answers");
    assert_eq!(added.status, 200, "{}", added.body);
    let again = api.post(ALL, &add).expect("it answers");
    assert_eq!(again.status, 409, "{}", again.body);
    eventually(PATIENCE, "it is read", || match kube.find(&object) {
        Some(found) if found["status"]["charts"] == 1 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(kube.find(&secret).is_some());
    let remove = |name: &str| {
        let removed = api.send(
            "DELETE",
            &format!("{ALL}/{name}"),
            "application/json",
            Some(&json!({})),
        );
        removed.expect("it answers")
    };
    assert_eq!(remove("argocd/added").status, 200);
    eventually(PATIENCE, "it is gone with its Secret", || {
        match (kube.find(&object), kube.find(&secret)) {
            (None, None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });

    repositories.catalog(&["repos", "add", "mine", &format!("{url}/charts")]);
    let refused = remove("default/mine");
    assert_eq!(refused.status, 400, "{}", refused.body);
    let why = refused.body["message"].as_str().expect("a text");
    assert!(why.contains("catalog repos rm mine"), "{why}");
    repositories.catalog(&["repos", "rm", "mine"]);
}

/// The next version with a conflict, decided, and the way back.
/// A release as a commit in a branch of its own.
fn committed(repositories: &Repositories<'_>, deploy: &Repo, install: &[&str]) {
    let url = deploy.url();
    let to = ["--commit-to", &url, "--path", "apps/shop.yaml"];
    let said = repositories.catalog(&[install, &to].concat());
    let (first, rest) = said.split_once('\n').expect("lines");
    assert!(
        first.starts_with("branch 'catalog/shop-1.0.0' has commit "),
        "{said}"
    );
    assert!(
        rest.starts_with("\nInstall web 1.0.0\n\nApplication shop "),
        "{said}"
    );
    let file = deploy.git(&["show", "catalog/shop-1.0.0:apps/shop.yaml"]);
    assert!(!file.contains("\nstatus:"), "{file}");
    for part in ["kind: Application", "targetRevision: 1.0.0", "colour: blue"] {
        assert!(file.contains(part), "{part}: {file}");
    }
    let refused = repositories.fails(&[install, &to].concat());
    assert!(refused.contains("the repository has a branch"), "{refused}");
    let onto = ["--base", "catalog/shop-1.0.0", "--branch", "other"];
    let refused = repositories.fails(&[install, &to, &onto].concat());
    assert!(
        refused.contains("the repository has such a file"),
        "{refused}"
    );
}

/// The same for an upgrade: of the Application only its source changes.
fn upgrade_committed(repositories: &Repositories<'_>, deploy: &Repo, connect: &[&str]) {
    let url = deploy.url();
    let upgrade = [
        "upgrade",
        "shop",
        "--commit-to",
        &url,
        "--path",
        "apps/shop.yaml",
    ];
    let base = ["--base", "catalog/shop-1.0.0"];
    let said = repositories.catalog(&[&upgrade[..], &base, connect].concat());
    assert!(
        said.contains("Upgrade shop from 1.0.0 to 1.1.0\n\n1.0.0 -> 1.1.0\n"),
        "{said}"
    );
    let changed = [
        "diff",
        "--unified=0",
        "catalog/shop-1.0.0",
        "catalog/shop-1.1.0",
    ];
    let changed = deploy.git(&changed);
    let lines = changed.lines().filter(|line| line.starts_with('+'));
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("+++")).collect();
    assert!(lines.len() <= 3, "{changed}");
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with("targetRevision: 1.1.0")),
        "{changed}"
    );
}

fn upgrades_and_back(repositories: &Repositories<'_>, kube: &Api, connect: &[&str]) {
    let application = namespaced("argoproj.io/v1alpha1", "argocd", "applications") + "/shop";
    let at = |wanted: &str| {
        let path = namespaced("v1", "shop", "configmaps") + "/shop-web";
        eventually(PATIENCE, &format!("version {wanted} runs"), || {
            match kube.find(&path) {
                Some(map) if map["data"]["version"] == wanted => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        kube.find(&application).expect("the Application")
    };
    let preview = ["upgrade", "shop", "--preview"];
    let shown = repositories.catalog(&[&preview, connect].concat());
    for line in [
        "1.0.0 -> 1.1.0",
        "=== ConfigMap",
        "-  version: 1.0.0",
        "+  version: 1.1.0",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // Nobody answers the question.
    let refused = repositories.fails(&[&["upgrade", "shop"], connect].concat());
    assert!(refused.contains("EOF"), "{refused}");
    assert_eq!(at("1.0.0")["spec"]["source"]["targetRevision"], "1.0.0");
    let done = repositories.catalog(&[&["upgrade", "shop", "--yes"], connect].concat());
    assert!(
        done.ends_with("application 'shop' upgraded to 1.1.0\n"),
        "{done}"
    );
    let upgraded = at("1.1.0");
    let annotations = &upgraded["metadata"]["annotations"];
    assert_eq!(annotations["catalog.tiphys.dev/version"], "1.1.0");
    let digest = annotations["catalog.tiphys.dev/digest"].as_str();
    assert_eq!(digest.map(str::len), Some(64), "{annotations}");
    assert_eq!(
        upgraded["spec"]["source"]["helm"]["valuesObject"]["colour"],
        "blue"
    );
    let none = repositories.fails(&[&["upgrade", "shop", "--yes"], connect].concat());
    assert!(none.contains("no version of web after 1.1.0"), "{none}");

    let back = repositories.catalog(&[&["rollback", "shop", "--yes"], connect].concat());
    assert!(
        back.ends_with("application 'shop' rolled back to 1.0.0\n"),
        "{back}"
    );
    let annotations = &at("1.0.0")["metadata"]["annotations"];
    assert_eq!(annotations["catalog.tiphys.dev/version"], "1.0.0");
    let unknown = ["rollback", "shop", "--to", "0.1.0"];
    let unknown = repositories.fails(&[&unknown, connect].concat());
    assert!(unknown.contains("never had version"), "{unknown}");
}

/// Logs the command line in; the file of its session.
pub fn signed_in(tiphys: &Tiphys, repositories: &Repositories<'_>) -> String {
    let password = tiphys.password().expect("it is shown");
    let config = repositories.data.clone() + "/argocd.yaml";
    let address = tiphys.url.trim_start_matches("http://");
    let login = ["login", address, "--plaintext", "--username", "admin"];
    let more = ["--password", &password, "--config", &config];
    let ended = output_of(&program(), &[&login[..], &more].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    config
}

/// The credentials of an AppRepository stay in the control plane, and go to its host alone.
#[test]
fn a_private_chart_is_installed_by_the_control_plane() {
    let (server, other) = (FileServer::start(), FileServer::start());
    let private = |body: Vec<u8>| Answer {
        only_for: Some(("ann", "hunter2")),
        ..body.into()
    };
    let near = plain_chart("near", "1.0.0", &[]);
    other.serve("/far-1.0.0.tgz", plain_chart("far", "1.0.0", &[]));
    let elsewhere = format!("{}/far-1.0.0.tgz", other.url());
    let listed = index(&[
        ("near", "1.0.0", "near-1.0.0.tgz", ""),
        ("far", "1.0.0", &elsewhere, ""),
    ]);
    server.serve("/charts/index.yaml", private(listed.into_bytes()));
    server.serve("/charts/near-1.0.0.tgz", private(near));
    let (mut tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    kube.namespace("team");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"},
        "stringData": {"header": basic("ann", "hunter2")},
    });
    kube.create(&namespaced("v1", "team", "secrets"), &secret);
    let repositories = Repositories::new(&kube, &tiphys, "team");
    let header = json!({"header": {"secretKeyRef": {"name": "creds", "key": "header"}}});
    let url = format!("{}/charts", server.url());
    repositories.create("private", &url, &json!({"auth": header}));
    repositories.until("private", "Ready", |status| status["charts"] == 2);

    // Without the control plane there are no credentials.
    let nowhere = repositories.data.clone() + "/none.yaml";
    let alone = ["install", "near", "--preview", "--config", &nowhere];
    let refused = repositories.fails(&alone);
    assert!(refused.contains("authentication required"), "{refused}");
    let api = tiphys.login().expect("the password is shown");
    let config = signed_in(&tiphys, &repositories);
    let preview = ["install", "near", "shop", "--preview", "--config", &config];
    let preview = repositories.catalog(&preview);
    assert!(preview.contains("name: shop-near"), "{preview}");
    let printed = repositories.catalog(&["install", "near", "shop", "--config", &config]);
    assert!(!printed.contains("\nstatus:"), "{printed}");
    assert!(
        printed.contains("catalog.tiphys.dev/repository: team/private"),
        "{printed}"
    );

    other.received();
    let chart = json!({"namespace": "team", "repository": "private", "path": "far"});
    let request = json!({"chart": chart});
    let answer = api.post("/api/v1/catalog/install", &request);
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let received = other.received();
    assert!(!received.is_empty());
    assert!(
        received
            .iter()
            .all(|request| request.authorization.is_empty())
    );
    let said = format!("{}{}{}", answer.body, tiphys.stdout(), tiphys.stderr());
    assert!(!said.contains("hunter2"), "{said}");

    // Projects decide what may be installed.
    let path = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects") + "/default";
    let patch = json!({"spec": {"sourceRepos": ["https://elsewhere.example/*"]}});
    kube.patch(&path, &patch);
    eventually(PATIENCE, "the project refuses it", || {
        let create = ["install", "near", "shop", "--create", "--config", &config];
        let words = [&["catalog"], &create[..], &["--data", &repositories.data]].concat();
        let ended = output_of(&program(), &words);
        match ended.code {
            Some(0) => Err(ended.stdout),
            _ if ended.stderr.contains("is not permitted in project") => Ok(()),
            _ => Err(ended.stderr),
        }
    });
}
