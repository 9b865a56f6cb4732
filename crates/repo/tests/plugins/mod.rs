//! Plugins: this crate's client and the server of `tiphys-cmp`, over unix sockets, with commands of
//! `sh`. Servers that answer wrongly or not at all are in `hostile`.

mod hostile;

use crate::local::{cm, commit, git, write};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tiphys_cmp::{Config, ReceiveLimits, Server, ServerOptions};
use tiphys_repo::{
    ClusterFacts, ManifestRequest, Manifests, PluginSettings, RepoAccess, RepoError, RepoOptions,
    Repos, Secret, SourceKind, ask_pass,
};
use tokio::task::JoinHandle;

const HEAD: &str = "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\n";
/// Prints a ConfigMap whose data are what the shell makes of `$1`.
const PRINT: &str = r#"printf '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"v": "%s"}}\n'"#;

/// A repository, a folder of sockets, and those who serve plugins on them.
pub struct World {
    pub dir: tempfile::TempDir,
    serving: Vec<JoinHandle<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

impl World {
    /// With `app/a.yaml` in its repository.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let world = Self {
            dir,
            serving: Vec::new(),
        };
        std::fs::create_dir(world.sockets()).expect("made");
        std::fs::create_dir(world.repository()).expect("made");
        git(&world.repository(), &["init", "-q"]);
        world.commit(&[("app/a.yaml", &cm("plain", "1"))]);
        world
    }

    pub fn repository(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    fn sockets(&self) -> PathBuf {
        self.dir.path().join("sockets")
    }

    fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            write(&self.repository(), path, text);
        }
        commit(&self.repository(), "more")
    }

    fn head(&self) -> String {
        git(&self.repository(), &["rev-parse", "HEAD"])
    }

    fn options(&self) -> RepoOptions {
        RepoOptions {
            render_timeout: Duration::from_secs(20),
            plugins: PluginSettings {
                dir: Some(self.sockets()),
                exclude: vec!["left-out".into(), "app/*.bin".into()],
                ask_pass: self.dir.path().join("ask-pass.sock"),
                ..PluginSettings::default()
            },
            ..RepoOptions::default()
        }
    }

    pub fn repos(&self) -> Repos {
        Repos::with_options(self.dir.path().join("cache"), self.options())
    }

    /// Serves a plugin with the fields of its `spec`.
    async fn serve(&mut self, name: &str, spec: &str) -> JoinHandle<()> {
        let indented = spec.replace('\n', "\n  ");
        let text = format!("{HEAD}metadata: {{name: {name}}}\nspec:\n  {indented}\n");
        self.serve_text(name, &text).await
    }

    /// The same for all of its `plugin.yaml`.
    async fn serve_text(&mut self, name: &str, text: &str) -> JoinHandle<()> {
        let folder = self.dir.path().join(format!("config-{name}"));
        write(&folder, "plugin.yaml", text);
        let options = ServerOptions {
            config: Config::read(&folder).expect("a plugin.yaml"),
            sockets: self.sockets(),
            work: self.dir.path().join(format!("work-{name}")),
            limits: ReceiveLimits::default(),
            max_message: 1 << 20,
        };
        let server = Arc::new(Server::new(options).expect("a server"));
        let socket = server.socket();
        let serving = tokio::spawn(async move {
            let _ = server.serve(std::future::pending()).await;
        });
        while tokio::net::UnixStream::connect(&socket).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        serving
    }

    pub async fn plugin_text(&mut self, name: &str, text: &str) {
        let serving = self.serve_text(name, text).await;
        self.serving.push(serving);
    }

    pub async fn plugin(&mut self, name: &str, spec: &str) {
        let serving = self.serve(name, spec).await;
        self.serving.push(serving);
    }

    pub fn request(&self, source: Value) -> ManifestRequest {
        let mut source = source;
        source["repoURL"] = json!("https://git.example.com/r");
        source["path"] = json!(source["path"].as_str().unwrap_or("app"));
        ManifestRequest {
            access: RepoAccess::public(self.repository().to_str().expect("UTF-8")),
            source: serde_json::from_value(source).expect("a source"),
            sha: self.head(),
            app_name: "web".into(),
            namespace: "shop".into(),
            project: "p".into(),
            cluster_facts: ClusterFacts {
                kube_version: "v1.36.3".into(),
                ..ClusterFacts::default()
            },
            ..ManifestRequest::default()
        }
    }

    pub async fn render(&self, source: Value) -> Result<Arc<Manifests>, RepoError> {
        self.repos().manifests(self.request(source)).await
    }
}

/// `Kind: name=v,…` of what was rendered, or the error.
fn told(outcome: &Result<Arc<Manifests>, RepoError>) -> String {
    match outcome {
        Err(e) => e.to_string(),
        Ok(manifests) => {
            assert_eq!(*manifests.errors, []);
            let one = |object: &Arc<_>| {
                let object = tiphys_apimachinery::Kept::object(object);
                let value = &object.0["data"]["v"];
                format!("{}={}", object.name(), value.as_str().unwrap_or_default())
            };
            let all: Vec<String> = manifests.objects.iter().map(one).collect();
            format!("{}: {}", manifests.source_type, all.join(","))
        }
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn what_a_plugin_prints_is_what_is_deployed() {
    let mut world = World::new();
    let spec = format!(
        "version: v1\ninit: {{command: [sh, -c, 'echo from-init > made-by-init']}}\ngenerate:\n  command: [sh, -c]\n  args:\n    - |\n      {PRINT} \"$(cat made-by-init) $ARGOCD_ENV_FOO $PARAM_A_B ${{ARGOCD_ENV_EMPTY+set}} $KUBE_VERSION $ARGOCD_APP_NAMESPACE $(basename $PWD)\"\n      echo ---\n      cat a.yaml"
    );
    world.plugin("p", &spec).await;
    let source = json!({"plugin": {
        "name": "p-v1",
        "env": [{"name": "FOO", "value": "$ARGOCD_APP_NAME"}, {"name": "EMPTY", "value": ""}],
        "parameters": [{"name": "a.b", "string": "text"}],
    }});
    let outcome = world.render(source).await;
    assert_eq!(
        told(&outcome),
        "Plugin: made=from-init web text set 1.36.3 shop app,plain=1"
    );
}

#[tokio::test]
async fn an_answer_is_remembered_by_all_that_led_to_it() {
    let mut world = World::new();
    let log = world.dir.path().join("runs");
    let spec = format!(
        "generate: {{command: [sh, -c, \"echo run >> {}; cat *.yaml\"]}}",
        log.display()
    );
    let serving = world.serve("p", &spec).await;
    let (repos, source) = (world.repos(), json!({"plugin": {"name": "p"}}));
    let runs = async |request: ManifestRequest, what: &str| {
        repos.manifests(request).await.expect(what);
        lines(&log)
    };
    assert_eq!(runs(world.request(source.clone()), "first").await, 1);
    assert_eq!(runs(world.request(source.clone()), "again").await, 1);
    let hard = ManifestRequest {
        no_cache: true,
        ..world.request(source.clone())
    };
    assert_eq!(runs(hard, "hard").await, 2);
    let other = json!({"plugin": {"name": "p", "env": [{"name": "A", "value": "b"}]}});
    assert_eq!(runs(world.request(other), "other variables").await, 3);
    world.commit(&[("elsewhere/b.yaml", "")]);
    assert_eq!(runs(world.request(source.clone()), "other files").await, 4);

    // What starts on the same socket may be another version of the plugin.
    serving.abort();
    let _ = serving.await;
    world.plugin("p", &spec).await;
    assert_eq!(runs(world.request(source), "another server").await, 5);
}

/// What becomes of a source without a type, with a plugin that looks for it like this.
#[tokio::test]
async fn discovery() {
    let found = "Plugin: made=x";
    for (discover, want) in [
        ("{fileName: a.yaml}", found),
        ("{fileName: './*.yaml'}", found),
        ("{fileName: b.yaml}", "Directory: plain=1"),
        ("{find: {glob: '**/c.txt'}}", found),
        ("{find: {glob: '**/d.txt'}}", "Directory: plain=1"),
        ("{find: {command: [sh, -c, find . -name c.txt]}}", found),
        ("{find: {command: [sh, -c, echo $ARGOCD_APP_NAME]}}", found),
        ("{find: {command: [sh, -c, 'true']}}", "Directory: plain=1"),
        // Its author wrote it so that it fails where nothing is found.
        (
            "{find: {command: [grep, -q, nothing, a.yaml]}}",
            "Directory: plain=1",
        ),
        ("{find: {command: [no-such-program]}}", "Directory: plain=1"),
        ("{}", "Directory: plain=1"),
    ] {
        let mut world = World::new();
        world.commit(&[("app/sub/c.txt", "c")]);
        let generate = format!(
            "generate:\n  command: [sh, -c, '{}']",
            doubled(&format!("{PRINT} x"))
        );
        let spec = format!("{generate}\ndiscover: {discover}");
        world.plugin("finder", &spec).await;
        assert_eq!(told(&world.render(json!({})).await), want, "{discover}");
    }
}

#[tokio::test]
async fn a_plugin_comes_before_the_tools_of_a_folder() {
    for file in ["Chart.yaml", "kustomization.yaml"] {
        let mut world = World::new();
        world.commit(&[(&format!("app/{file}"), "name: c\nversion: 1.0.0\n")]);
        let generate = format!(
            "generate:\n  command: [sh, -c, '{}']",
            doubled(&format!("{PRINT} x"))
        );
        let spec = format!("{generate}\ndiscover: {{fileName: {file}}}");
        world.plugin("finder", &spec).await;
        let outcome = world.render(json!({})).await;
        assert_eq!(told(&outcome), "Plugin: made=x", "{file}");
    }
}

/// In a YAML text with single quotes.
fn doubled(text: &str) -> String {
    text.replace('\'', "''")
}

#[tokio::test]
async fn a_plugin_that_is_not_for_a_source_is_named() {
    let mut world = World::new();
    let generate = "generate: {command: [cat, a.yaml]}";
    let failing = "discover: {find: {command: [sh, -c, 'echo why >&2; exit 3']}}";
    world
        .plugin(
            "other",
            &format!("{generate}\ndiscover: {{fileName: none}}"),
        )
        .await;
    world
        .plugin("broken", &format!("{generate}\n{failing}"))
        .await;
    let (dir, wrapped) = (
        world.sockets(),
        "CMP processing failed for application \"web\": ",
    );
    let named = |name: &str| {
        format!(
            "{wrapped}could not find cmp-server plugin with name \"{name}\" supporting the given repository"
        )
    };
    for (plugin, want) in [
        (json!({"name": "other"}), named("other")),
        (
            json!({"name": "gone"}),
            format!(
                "{}: error dialing to cmp-server for plugin gone.sock: dial unix {}/gone.sock: connect: no such file or directory",
                named("gone"),
                dir.display()
            ),
        ),
        (
            json!({"name": "../x"}),
            format!(
                "{}: invalid socket file path, \"../x.sock\" is outside plugin socket dir \"{}\"",
                named("../x"),
                dir.display()
            ),
        ),
        (
            json!({"name": "broken"}),
            format!(
                "{}: error checking repository support for plugin broken.sock: rpc error: code = Unknown desc = match repository error: error running find command: `sh -c \"echo why >&2; exit 3\"` failed exit status 3: why",
                named("broken")
            ),
        ),
        (
            json!({"env": [{"name": "A", "value": "b"}]}),
            format!(
                "{wrapped}could not find plugin supporting the given repository: error checking repository support for plugin broken.sock: rpc error: code = Unknown desc = match repository error: error running find command: `sh -c \"echo why >&2; exit 3\"` failed exit status 3: why"
            ),
        ),
    ] {
        let outcome = world.render(json!({"plugin": plugin.clone()})).await;
        assert_eq!(told(&outcome), want, "{plugin}");
    }

    // Without the folder there are no plugins, and without a folder nobody is asked.
    let mut options = world.options();
    options.plugins.dir = Some("/nowhere".into());
    let repos = Repos::with_options(world.dir.path().join("cache"), options.clone());
    let outcome = repos.manifests(world.request(json!({"plugin": {}}))).await;
    assert_eq!(
        told(&outcome),
        format!(
            "{wrapped}failed to list all plugins in dir: open /nowhere: no such file or directory"
        )
    );
    assert_eq!(
        told(&repos.manifests(world.request(json!({}))).await),
        "Directory: plain=1"
    );
    assert_eq!(repos.plugins().expect("none"), [""; 0]);
    options.plugins.dir = None;
    let repos = Repos::with_options(world.dir.path().join("cache"), options);
    let outcome = repos
        .manifests(world.request(json!({"plugin": {"name": "other"}})))
        .await;
    assert!(
        told(&outcome).contains("are not asked here"),
        "{}",
        told(&outcome)
    );
    assert_eq!(world.repos().plugins().expect("two"), ["broken", "other"]);
}

#[tokio::test]
async fn the_files_arrive_as_they_are() {
    let mut world = World::new();
    let long = format!("app/{}/file.txt", "long".repeat(60));
    world.commit(&[
        ("app/run.sh", "#!/bin/sh\necho from-script\n"),
        ("app/left.bin", "no"),
        ("left-out/x", "no"),
        ("top.txt", "top"),
        (&long, "in a long path"),
        ("app/sub/d.txt", "linked"),
    ]);
    std::os::unix::fs::symlink("sub/d.txt", world.repository().join("app/link")).expect("linked");
    std::os::unix::fs::symlink("app/sub", world.repository().join("folder")).expect("linked");
    git(&world.repository(), &["add", "-A"]);
    git(
        &world.repository(),
        &["update-index", "--chmod=+x", "app/run.sh"],
    );
    git(&world.repository(), &["commit", "-q", "-m", "modes"]);
    let script = format!(
        "{PRINT} \"$(cat link) $(cat ../folder/d.txt) $(cat ../top.txt) $(cat long*/file.txt) $(ls left.bin ../left-out 2>/dev/null) $({{ ./run.sh || echo not to be run; }} 2>/dev/null)\""
    );
    let spec = format!(
        "generate:\n  command:\n  - sh\n  - -c\n  - '{}'",
        doubled(&script)
    );
    world.plugin("plain", &spec).await;
    world
        .plugin("modes", &format!("{spec}\npreserveFileMode: true"))
        .await;
    for (name, want) in [("plain", "not to be run"), ("modes", "from-script")] {
        let outcome = world.render(json!({"plugin": {"name": name}})).await;
        assert_eq!(
            told(&outcome),
            format!("Plugin: made=linked linked top in a long path  {want}")
        );
    }

    std::os::unix::fs::symlink("../../etc/passwd", world.repository().join("app/out"))
        .expect("linked");
    commit(&world.repository(), "a link that leads out");
    let outcome = world.render(json!({"plugin": {"name": "plain"}})).await;
    let refused = |path: &str| {
        format!(
            "CMP processing failed for application \"web\": repository contains out-of-bounds symlinks. file: {path}"
        )
    };
    assert_eq!(told(&outcome), refused("app/out"));

    // As it is written it stays inside.
    let linked = |target: &str, path: &str| {
        std::os::unix::fs::symlink(target, world.repository().join(path)).expect("linked");
    };
    std::fs::remove_file(world.repository().join("app/out")).expect("it is there");
    linked("../..", "app/sub/up");
    linked("up/../passwd", "app/sub/through");
    commit(&world.repository(), "a link that leads out through another");
    let outcome = world.render(json!({"plugin": {"name": "plain"}})).await;
    assert_eq!(told(&outcome), refused("app/sub/through"));
}

#[tokio::test]
async fn parameters_are_announced() {
    let mut world = World::new();
    let spec = "generate: {command: [cat, a.yaml]}
parameters:
  static: [{name: fixed, title: Fixed, required: true, itemType: number, string: '1'}]
  dynamic: {command: [sh, -c, 'echo \"[{\\\"name\\\": \\\"from-$ARGOCD_APP_NAME\\\", \\\"collectionType\\\": \\\"map\\\", \\\"map\\\": {\\\"k\\\": \\\"v\\\"}}]\"']}";
    world.plugin("p", spec).await;
    let details = async |name: &str| {
        let request = world.request(json!({"plugin": {"name": name}}));
        world.repos().details(request).await
    };
    let found = details("p").await.expect("details");
    assert_eq!(found.kind, SourceKind::Plugin);
    let names: Vec<&str> = found.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["from-web", "fixed"]);
    assert_eq!(found.parameters[0].map["k"], "v");
    assert_eq!(
        (
            found.parameters[1].required,
            found.parameters[1].string.as_str()
        ),
        (true, "1")
    );

    let broken = "generate: {command: [cat]}\nparameters: {dynamic: {command: [echo, no JSON]}}";
    world.plugin("broken", broken).await;
    let world = &world;
    let request = world.request(json!({"plugin": {"name": "broken"}}));
    let e = world
        .repos()
        .details(request)
        .await
        .expect_err("no JSON")
        .to_string();
    assert!(
        e.starts_with("failed to populate plugin app details: failed to get parameter announcement: rpc error: code = Unknown desc = get parameters announcement error: error unmarshaling dynamic parameter output"),
        "{e}"
    );
}

/// A plugin gets what it needs to use the repository only if it asks for it, and only while it
/// works.
#[tokio::test]
async fn credentials_are_lent() {
    let mut world = World::new();
    let (seen, go) = (world.dir.path().join("seen"), world.dir.path().join("go"));
    let script = format!(
        "env | grep -E \"GIT_|ASKPASS|ASK_PASS\" | grep -v CAINFO | sort > {seen}.new; mv {seen}.new {seen}; while [ ! -e {go} ]; do sleep 0.02; done; cat a.yaml",
        seen = seen.display(),
        go = go.display()
    );
    let spec = format!("generate:\n  command: [sh, -c, '{script}']");
    world
        .plugin("with", &format!("{spec}\nprovideGitCreds: true"))
        .await;
    world.plugin("without", &spec).await;
    let with = |access: RepoAccess, name: &str| ManifestRequest {
        access,
        ..world.request(json!({"plugin": {"name": name}}))
    };
    let public = world.request(json!({})).access;
    let login = RepoAccess {
        username: "u".into(),
        password: Secret::new("hunter2"),
        insecure: true,
        ..public.clone()
    };
    let key = RepoAccess {
        ssh_private_key: Secret::new("-----BEGIN KEY-----"),
        known_hosts: "h ssh-ed25519 AAAA".into(),
        ..public.clone()
    };
    for (access, name) in [
        (login.clone(), "with"),
        (key, "with"),
        (login, "without"),
        (public, "with"),
    ] {
        let _ = std::fs::remove_file(&go);
        let _ = std::fs::remove_file(&seen);
        let (repos, by_ssh) = (world.repos(), !access.ssh_private_key.is_empty());
        let has_login = !access.password.is_empty() && name == "with";
        let request = with(access, name);
        let rendering = tokio::spawn({
            let repos = repos.clone();
            async move { repos.manifests(request).await }
        });
        while !seen.exists() {
            assert!(
                !rendering.is_finished(),
                "{:?}",
                rendering.await.map(|r| told(&r))
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let text = std::fs::read_to_string(&seen).expect("read");
        let value = |name: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap_or_default().to_owned()
        };
        assert!(!text.contains("hunter2"), "{text}");
        let (socket, nonce) = (
            value("ARGOCD_ASK_PASS_SOCK"),
            value("ARGOCD_GIT_ASKPASS_NONCE"),
        );
        let ask = async |prompt: &str| ask_pass(Path::new(&socket), &nonce, prompt).await;
        let mut file = None;
        if has_login {
            assert_eq!(value("GIT_ASKPASS"), "argocd");
            assert_eq!(value("GIT_SSL_NO_VERIFY"), "true");
            assert_eq!(ask("Username for 'https://h': ").await.as_deref(), Ok("u"));
            assert_eq!(
                ask("Password for 'https://h': ").await.as_deref(),
                Ok("hunter2")
            );
            let e = ask("Age").await.expect_err("no such thing");
            assert_eq!(e, "unknown credential type 'Age'");
            let e = ask_pass(Path::new(&socket), "guessed", "Password").await;
            assert_eq!(
                e.expect_err("nobody's"),
                "rpc error: code = NotFound desc = unknown nonce"
            );
        } else if by_ssh {
            let command = value("GIT_SSH_COMMAND");
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(words[..2], ["ssh", "-i"], "{command}");
            let found = std::fs::read_to_string(words[2]).expect("the key");
            assert_eq!(found, "-----BEGIN KEY-----\n");
            file = Some(PathBuf::from(words[2]));
        } else {
            assert_eq!(text, "", "{name}");
        }
        std::fs::write(&go, "").expect("written");
        let outcome = rendering.await.expect("no panic");
        assert_eq!(told(&outcome), "Plugin: plain=1");
        if has_login {
            let e = ask("Password").await.expect_err("it is over");
            assert_eq!(e, "rpc error: code = NotFound desc = unknown nonce");
        }
        assert!(file.is_none_or(|file| !file.exists()));
    }
}
