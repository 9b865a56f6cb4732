//! The catalogue of a server on the command line, and of the program under the name of Argo CD's
//! server.

use crate::scenarios::{
    admin::Plane,
    catalog::{Repositories, publish, signed_in},
    dropin::Named,
    server::end,
    world::program,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::{
    Api, Ended, Options, PATIENCE, Tiphys,
    charts::{FileServer, plain_chart},
    eventually, free_port, namespaced, output_of,
    postgres::{Postgres, USER},
};

/// Two charts; the second has no archive, and another has no version.
const INDEX: &str = r#"apiVersion: v1
entries:
  web:
  - name: web
    version: 1.1.0
    appVersion: "9"
    created: "2026-01-01T00:00:00Z"
    description: Serves pages
    home: https://example.com/web
    keywords: [http, pages]
    maintainers: [{name: Ann, email: ann@example.com}]
    sources: [https://git.example.com/web]
    annotations: {category: Servers}
    urls: [web-1.1.0.tgz]
  - name: web
    version: 1.0.0
    urls: [web-1.0.0.tgz]
  old:
  - name: old
    version: 0.1.0
    deprecated: true
    urls: [old-0.1.0.tgz]
  broken:
  - name: broken
"#;

/// What prints the same of a server and of its database.
const SAME: &[&[&str]] = &[
    &["search"],
    &["search", "-o", "json"],
    &["search", "-o", "yaml"],
    &["search", "-o", "wide"],
    &["search", "-o", "name"],
    &["search", "-o", "xml"],
    &["search", "PAGES"],
    &["search", "nothing"],
    &["search", "--facets"],
    &["search", "--limit", "1"],
    &["search", "--namespace", "charts", "-o", "name"],
    &["search", "--namespace", "nowhere", "-o", "json"],
    &["search", "--repo", "good", "--keyword", "http"],
    &["search", "--category", "Servers", "-o", "wide"],
    &["show", "good/web"],
    &["show", "charts/good/web", "-o", "json"],
    &["show", "other/web", "-o", "yaml"],
    &["show", "good/web", "--version", "1.0.0", "-o", "wide"],
    &["show", "good/web", "-o", "name"],
    &["show", "good/web", "--readme"],
    &["show", "old"],
    &["show", "old", "-o", "json"],
    // Why not is the same, too.
    &["show", "old", "--readme"],
    &["show", "web"],
    &["show", "nothing"],
    &["show", "nowhere/web"],
    &["versions", "good/web"],
    &["versions", "good/web", "-o", "json"],
    &["versions", "good/web", "-o", "yaml"],
    &["versions", "good/web", "-o", "wide"],
    &["versions", "good/web", "-o", "name"],
    &["values", "good/web"],
    &["values", "good/web", "--version", "1.0.0"],
    &["values", "good/web", "--schema"],
    &["values", "good/web", "--file", "values-production"],
    &["values", "good/web", "--file", "values-none"],
    &["values", "old"],
    &["repos", "list", "-o", "json"],
    &["repos", "list", "-o", "yaml"],
    &["repos", "list", "-o", "name"],
    &["problems"],
    &["problems", "charts/good", "-o", "json"],
    &["problems", "-o", "name"],
];

/// A user with a config file, and a folder for data of their own.
struct User {
    home: TempDir,
    config: String,
}

impl User {
    fn new(config: impl Into<String>) -> Self {
        Self {
            home: TempDir::new().expect("a folder"),
            config: config.into(),
        }
    }

    fn run(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(program());
        command.arg("catalog").args(words);
        command.args(["--config", &self.config]);
        command.env("XDG_DATA_HOME", self.home.path());
        for name in ["ARGOCD_SERVER", "ARGOCD_OPTS", "ARGOCD_AUTH_TOKEN"] {
            command.env_remove(name);
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: said(&text(&output.stderr)),
        }
    }

    #[track_caller]
    fn says(&self, words: &[&str]) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        ended.stdout
    }

    #[track_caller]
    fn fails(&self, words: &[&str]) -> String {
        let ended = self.run(words);
        assert_ne!(ended.code, Some(0), "{words:?}: {ended:?}");
        ended.stderr
    }

    /// The catalogue of their machine.
    fn own(&self) -> PathBuf {
        self.home.path().join("tiphys/catalog.db")
    }
}

/// Messages without their form and their time.
fn said(lines: &str) -> String {
    let message = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(line)) => line["msg"].as_str().unwrap_or_default().to_owned() + "\n",
        _ => format!("{line}\n"),
    };
    lines.lines().map(message).collect()
}

fn charts(server: &FileServer) {
    for version in ["1.0.0", "1.1.0"] {
        let readme = format!("# web {version}\n");
        let files = [
            ("README.md", &*readme),
            ("values-production.yaml", "colour: black\n"),
            ("values.schema.json", r#"{"type": "object"}"#),
        ];
        let path = format!("/good/web-{version}.tgz");
        server.serve(&path, plain_chart("web", version, &files));
    }
    server.serve("/good/index.yaml", INDEX);
    publish(server, "/other", "web", &["3.0.0"]);
}

#[test]
fn the_server_that_one_is_logged_in_to_is_asked() {
    let server = FileServer::start();
    charts(&server);
    let (mut tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    kube.namespace("charts");
    let repositories = Repositories::new(&kube, &tiphys, "charts");
    let hourly = json!({"interval": "1h"});
    for name in ["good", "other"] {
        repositories.create(name, &format!("{}/{name}", server.url()), &hourly);
    }
    repositories.until("good", "Ready", |status| status["charts"] == 2);
    repositories.until("other", "Ready", |status| status["charts"] == 1);
    drop(tiphys.login());
    let user = User::new(signed_in(&tiphys, &repositories));
    is_the_same(&user, &repositories.data);
    changes(&user, &repositories, &server.url());

    publish(&server, "/other", "web", &["3.0.0", "3.1.0"]);
    assert_eq!(
        user.says(&["sync", "other"]),
        "charts/other: the server will read it (`tiphys catalog repos list` shows the result)\n"
    );
    repositories.until("other", "Ready", |status| status["versions"] == 2);
    assert!(!user.own().exists(), "nothing of this machine was asked");
    chosen(&user, &tiphys.url);
}

/// Both answer alike, word for word.
fn is_the_same(user: &User, data: &str) {
    let compare = |words: &[&str]| {
        let there = user.run(words);
        let here = user.run(&[words, &["--data", data]].concat());
        assert_eq!(there.stdout, here.stdout, "{words:?}");
        assert_eq!(there.stderr, here.stderr, "{words:?}");
        assert_eq!(there.code, here.code, "{words:?}");
        there
    };
    for words in SAME.iter().copied() {
        compare(words);
    }
    let first = compare(&["search", "--limit", "1", "-o", "json"]).stdout;
    let first: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(first["total"], 3, "{first}");
    let next = first["next"].as_str().expect("two more");
    compare(&["search", "--limit", "1", "--after", next]);
    let listed = user.says(&["repos", "list", "-o", "wide"]);
    let first = listed.lines().nth(1).expect("a repository");
    assert!(
        first.starts_with("charts/good ") && first.contains("Ready"),
        "{listed}"
    );
    let why = user.fails(&["versions", "web"]);
    assert!(why.contains("charts/good/web, charts/other/web"), "{why}");
}

/// Repositories that a server gets and loses.
fn changes(user: &User, repositories: &Repositories<'_>, url: &str) {
    let url = format!("{url}/other");
    let added = user.says(&["repos", "add", "added", &url]);
    assert_eq!(added, "Repository \"added\" added\n");
    let object = namespaced("kubeapps.com/v1alpha1", "argocd", "apprepositories") + "/added";
    eventually(PATIENCE, "it is read", || {
        match repositories.kube.find(&object) {
            Some(found) if found["status"]["status"] == "Ready" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let listed = user.says(&["repos", "list", "-o", "name"]);
    assert_eq!(listed, "argocd/added\ncharts/good\ncharts/other\n");
    let refused = user.fails(&["repos", "rm", "added"]);
    assert!(refused.contains("but argocd/added: name"), "{refused}");
    let remove = ["repos", "rm", "argocd/added", "--prompts-enabled"];
    let asked = user.run(&remove);
    assert_eq!(asked.code, Some(20), "nobody answers: {asked:?}");
    let question = "Are you sure you want to remove repository 'argocd/added'";
    assert!(asked.stdout.starts_with(question), "{asked:?}");
    let listed = user.says(&["repos", "list", "-o", "name"]);
    assert!(listed.contains("argocd/added\n"), "{listed}");
    let removed = user.says(&[&remove[..], &["-y"]].concat());
    assert_eq!(removed, "Repository \"argocd/added\" removed\n");
    eventually(PATIENCE, "it is gone", || {
        let listed = user.says(&["repos", "list", "-o", "name"]);
        match listed.contains("added") {
            true => Err(listed),
            false => Ok(()),
        }
    });
    let refused = user.fails(&["repos", "add", "x", &url, "--pass-credentials"]);
    assert!(
        refused.contains("--pass-credentials") && refused.contains("--local"),
        "{refused}"
    );
    let refused = user.fails(&["repos", "rm", "nothing"]);
    assert!(refused.contains("no repository \"nothing\""), "{refused}");

    // What the command line put into the server's database is not the server's to change.
    repositories.catalog(&["repos", "add", "mine", &url]);
    let refused = user.fails(&["repos", "rm", "mine"]);
    assert!(refused.contains("repos rm mine --local"), "{refused}");
    let refused = user.run(&["sync", "mine"]);
    assert_eq!(refused.code, Some(20), "{refused:?}");
    assert!(refused.stdout.starts_with("mine: "), "{refused:?}");
    assert!(refused.stdout.contains("sync mine --local"), "{refused:?}");
    repositories.catalog(&["repos", "rm", "mine"]);
}

/// Who is asked: the server of the config file or of a flag, or this machine.
fn chosen(user: &User, url: &str) {
    assert_eq!(user.says(&["search", "-o", "name", "--local"]), "");
    assert!(user.own().exists());
    let found = user.says(&["search", "-o", "name"]);
    assert!(found.contains("charts/good/web"), "{found}");
    let nobody = User::new(user.config.clone() + "-none");
    assert_eq!(nobody.says(&["search", "-o", "name"]), "");
    assert!(nobody.own().exists());
    let config = fs::read_to_string(&user.config).expect("a config");
    let token = config
        .lines()
        .find_map(|line| line.split_once("auth-token: "));
    let token = token.expect("a session").1.trim();
    let address = url.trim_start_matches("http://");
    let of_server = ["--server", address, "--plaintext", "--auth-token", token];
    let words = [&["search", "-o", "name"], &of_server[..]].concat();
    assert_eq!(nobody.says(&words), found);
    // That a context is not there does not mean that this machine is meant.
    let lost = ["search", "--argocd-context", "nowhere"];
    let refused = user.fails(&lost);
    assert!(refused.contains("nowhere"), "{refused}");
    assert_eq!(
        user.says(&[&lost[..], &["--local", "-o", "name"]].concat()),
        ""
    );
}

/// From a chart of the server to a release, its next version and back, without data of this machine.
#[test]
fn a_chart_of_the_server_is_installed_upgraded_and_rolled_back() {
    let server = FileServer::start();
    publish(&server, "/charts", "web", &["1.0.0"]);
    let (mut tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    kube.namespace("charts");
    let repositories = Repositories::new(&kube, &tiphys, "charts");
    let hourly = json!({"interval": "1h"});
    repositories.create("good", &format!("{}/charts", server.url()), &hourly);
    repositories.until("good", "Ready", |status| status["charts"] == 1);
    drop(tiphys.login());
    let user = User::new(signed_in(&tiphys, &repositories));
    installs(&user, &kube);

    publish(&server, "/charts", "web", &["1.0.0", "1.1.0"]);
    user.says(&["sync", "charts/good"]);
    repositories.until("good", "Ready", |status| status["versions"] == 2);
    let updates = user.says(&["updates", "-o", "json"]);
    let updates: Value = serde_json::from_str(&updates).expect("JSON");
    let wanted = json!([{
        "application": "argocd/shop", "chart": "charts/good/web",
        "version": "1.0.0", "newest": "1.1.0",
    }]);
    assert_eq!(updates, wanted);
    let elsewhere = ["updates", "-N", "nowhere", "-o", "json"];
    assert_eq!(user.says(&elsewhere).trim(), "[]");

    let preview = user.says(&["upgrade", "shop", "--dry-run"]);
    for part in ["1.0.0 -> 1.1.0\n", "-  version: 1.0.0", "+  version: 1.1.0"] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    let upgraded = user.says(&["upgrade", "shop", "--yes"]);
    let end = "application 'shop' upgraded to 1.1.0\n";
    assert!(upgraded.ends_with(end), "{upgraded}");
    runs(&kube, "1.1.0");
    let preview = user.says(&["rollback", "shop", "--preview"]);
    for part in ["< targetRevision: 1.1.0", "+  version: 1.0.0"] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    let back = user.says(&["rollback", "shop", "--yes"]);
    let end = "application 'shop' rolled back to 1.0.0\n";
    assert!(back.ends_with(end), "{back}");
    runs(&kube, "1.0.0");
    let applications = namespaced("argoproj.io/v1alpha1", "argocd", "applications");
    let app = kube.find(&format!("{applications}/shop"));
    let app = app.expect("the Application");
    for (key, wanted) in [("version", "1.0.0"), ("repository", "charts/good")] {
        let key = format!("catalog.tiphys.dev/{key}");
        assert_eq!(app["metadata"]["annotations"][&key], wanted, "{app}");
    }
    let colour = &app["spec"]["source"]["helm"]["valuesObject"]["colour"];
    assert_eq!(colour, "blue", "{app}");

    // The server decides what its projects permit.
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    let narrow = json!({"spec": {"sourceRepos": ["https://elsewhere.example/*"]}});
    kube.patch(&format!("{projects}/default"), &narrow);
    eventually(PATIENCE, "the project refuses it", || {
        let ended = user.run(&["install", "web", "other", "--create"]);
        match ended.code {
            Some(0) => Err("it was created".to_owned()),
            _ if ended.stderr.contains("is not permitted in project") => Ok(()),
            _ => Err(ended.stderr),
        }
    });
    assert!(!user.own().exists(), "nothing of this machine was asked");
    let refused = user.fails(&["install", "web", "--diff", "--local"]);
    assert!(refused.contains("--diff needs a server"), "{refused}");
}

/// Waits until this version is in the cluster.
fn runs(kube: &Api, version: &str) {
    let path = namespaced("v1", "shop", "configmaps") + "/shop-web";
    eventually(PATIENCE, &format!("{version} runs"), || {
        match kube.find(&path) {
            Some(map) if map["data"]["version"] == version => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

fn installs(user: &User, kube: &Api) {
    let install = |colour: &str, more: &[&str]| {
        let colour = format!("colour={colour}");
        user.says(&[&["install", "web", "shop", "--set", &colour], more].concat())
    };
    let manifests = install("blue", &["--preview"]);
    for part in ["name: shop-web", "colour: blue"] {
        assert!(manifests.contains(part), "{part}: {manifests}");
    }
    assert_eq!(install("blue", &["--dry-run"]), manifests);
    let difference = install("blue", &["--diff"]);
    let added = "=== ConfigMap shop/shop-web (added)\n";
    assert!(difference.starts_with(added), "{difference}");
    let printed = install("blue", &[]);
    assert!(!printed.contains("\nstatus:"), "{printed}");
    for part in [
        "catalog.tiphys.dev/repository: charts/good",
        "catalog.tiphys.dev/version: 1.0.0",
        "targetRevision: 1.0.0",
        "colour: blue",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let created = install("blue", &["--auto-sync", "--create"]);
    assert_eq!(created, "application 'shop' created\n");
    runs(kube, "1.0.0");
    let difference = install("green", &["--diff"]);
    for part in [
        "=== ConfigMap shop/shop-web (changed)\n",
        "-  colour: blue\n",
        "+  colour: green\n",
    ] {
        assert!(difference.contains(part), "{part}: {difference}");
    }
    assert_eq!(install("blue", &["--diff"]), "Nothing would change.\n");
    let unknown = user.fails(&["install", "web", "--version", "9.9.9"]);
    assert!(unknown.contains("has no version"), "{unknown}");
}

/// The program under the name of Argo CD's server.
struct Role {
    named: Named,
    plane: Plane,
    address: String,
}

impl Role {
    fn start(kubeconfig: &Path, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let named = Named::called("argocd-server");
        let port = free_port().to_string();
        let own = [
            "-n",
            "argocd",
            "--insecure",
            "--redis",
            "",
            "--metrics-port",
            "0",
            "--port",
            &port,
        ];
        let plane = named.start(kubeconfig, &[&own[..], words].concat(), variables);
        Self {
            named,
            plane,
            address: format!("127.0.0.1:{port}"),
        }
    }

    /// Somebody who is logged in to it.
    fn user(&self, password: &str) -> User {
        let user = User::new("");
        let config = user.home.path().join("config").display().to_string();
        let login = ["login", &self.address, "--plaintext", "--username", "admin"];
        let more = ["--password", password, "--config", &config];
        eventually(PATIENCE, "admin can log in", || {
            match output_of(&program(), &[&login[..], &more].concat()) {
                Ended { code: Some(0), .. } => Ok(()),
                ended => Err(format!("{ended:?}\n{}", self.named.said())),
            }
        });
        User { config, ..user }
    }
}

/// A cluster whose AppRepositories nobody reads but the role, with what it is started with.
fn reads(words: &[&str], variables: &[(&str, &str)], refuses_without: bool) {
    let server = FileServer::start();
    publish(&server, "/good", "web", &["1.0.0"]);
    let (mut tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        arguments: ["--catalog", "off"].map(Into::into).to_vec(),
        ..Options::default()
    });
    drop(tiphys.login());
    let password = tiphys.password().expect("it is shown");
    let kubeconfig = tiphys.kubeconfig().expect("it has one").to_owned();
    kube.namespace("team");
    let repositories = Repositories::new(&kube, &tiphys, "team");
    repositories.create("good", &format!("{}/good", server.url()), &json!({}));

    if refuses_without {
        let role = Role::start(&kubeconfig, &[], &[]);
        let refused = role.user(&password).fails(&["search"]);
        for part in ["no chart catalogue here", "tiphys server", "--catalog-file"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        end(role.plane, &|| role.named.said());

        // Without the database of the catalogue, everything else is served.
        let nowhere = format!("127.0.0.1:{}", free_port());
        let words = ["--catalog-database-url", &*nowhere];
        let role = Role::start(&kubeconfig, &words, &[]);
        drop(role.user(&password));
        let log = || role.named.said();
        eventually(PATIENCE, "it says what it waits for", || {
            match log().contains("the catalogue's database cannot be used") {
                true => Ok(()),
                false => Err(log()),
            }
        });
        end(role.plane, &log);
    }
    let role = Role::start(&kubeconfig, words, variables);
    let user = role.user(&password);
    let log = || role.named.said();
    eventually(PATIENCE, "its charts are found", || {
        match user.run(&["search", "-o", "name"]) {
            Ended {
                code: Some(0),
                stdout,
                ..
            } if stdout == "team/good/web\n" => Ok(()),
            // Its database may not be open yet.
            ended => Err(format!("{ended:?}{}", log())),
        }
    });
    let status = repositories.until("good", "Ready", |_| true);
    assert_eq!(status["charts"], 1, "{status}");
    assert_eq!(user.says(&["show", "web", "--readme"]), "# web 1.0.0\n");
    publish(&server, "/good", "web", &["1.0.0", "1.1.0"]);
    user.says(&["sync"]);
    repositories.until("good", "Ready", |status| status["versions"] == 2);
    assert_eq!(
        user.says(&["versions", "web", "-o", "name"]),
        "1.1.0\n1.0.0\n"
    );
    installs_from(&user, &kube, &format!("{}/good", server.url()));
    end(role.plane, &log);
}

/// What the role offers for the charts of its database, for somebody who has none.
fn installs_from(user: &User, kube: &Api, url: &str) {
    let version = ["--version", "1.0.0"];
    let install = ["install", "team/good/web", "shop", "--preview"];
    let manifests = user.says(&[&install[..], &version].concat());
    assert!(manifests.contains("version: 1.0.0"), "{manifests}");
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop"},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "chart": "web", "targetRevision": "1.0.0"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        },
    });
    let applications = namespaced("argoproj.io/v1alpha1", "argocd", "applications");
    kube.create(&applications, &application);
    eventually(PATIENCE, "its update is found", || {
        let updates = user.says(&["updates", "-o", "json"]);
        let updates: Value = serde_json::from_str(&updates).expect("JSON");
        match updates[0]["newest"] == "1.1.0" {
            true => Ok(()),
            false => Err(updates.to_string()),
        }
    });
    let upgrade = user.says(&["upgrade", "shop", "--preview"]);
    assert!(upgrade.contains("+  version: 1.1.0"), "{upgrade}");
    let never = user.fails(&["rollback", "shop", "--preview"]);
    assert!(never.contains("never had another version"), "{never}");
    assert!(!user.own().exists(), "nothing of this machine was asked");
}

#[test]
fn argo_cds_server_has_a_catalogue_in_a_file() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("charts.db");
    let file = file.to_str().expect("a plain name");
    reads(&["--catalog-file", file], &[], true);
}

#[test]
fn argo_cds_server_has_a_catalogue_in_postgresql() {
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    let address = format!("127.0.0.1:{}", postgres.port());
    let database = postgres.database();
    let words = [
        "--catalog-database-user",
        USER,
        "--catalog-database-name",
        &database,
    ];
    let variables = [("TIPHYS_CATALOG_DATABASE_URL", &*address)];
    reads(&words, &variables, false);
}
