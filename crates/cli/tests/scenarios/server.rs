//! The program under the name of Argo CD's server, beside a controller, a repo-server and a Redis:
//! what the command line of users needs of it.

use crate::scenarios::{
    admin::{Plane, as_somebody, get},
    dropin::{Named, installation, remove},
    world::{World, program},
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tiphys_testkit::{
    Ended, PATIENCE, Repo, eventually, free_port, namespaced, output_of,
    redis::{Redis, Serving},
};

const CONTROLLER: &str = "argocd-application-controller";
const SERVER: &str = "argocd-server";
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: web, image: "example.test/web:1"}]}
"#;

/// The three roles and what they need.
struct Installation {
    place: String,
    redis: Redis,
    redis_server: Serving,
    renderer: u16,
    kubeconfig: PathBuf,
    folder: tempfile::TempDir,
    api: u16,
}

/// What the roles of Argo CD's controller and server have in addition to those of the installation.
fn permit(world: &World, place: &str) {
    let group = "rbac.authorization.k8s.io/v1";
    let path = format!("{}/{CONTROLLER}", namespaced(group, place, "roles"));
    let role = world.kube.find(&path).expect("a role");
    let mut rules = role["rules"].as_array().cloned().expect("rules");
    rules.push(json!({
        "apiGroups": [""], "resources": ["secrets", "configmaps"],
        "verbs": ["create", "update", "patch", "delete"],
    }));
    world.kube.patch(&path, &json!({"rules": rules}));
    let path = format!("/apis/{group}/clusterroles/{place}");
    let role = world.kube.find(&path).expect("a role");
    let mut rules = role["rules"].as_array().cloned().expect("rules");
    rules.push(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}));
    world.kube.patch(&path, &json!({"rules": rules}));
}

/// A repo-server that may read repositories of this machine.
fn renderer(port: u16) -> Plane {
    let words = ["repo-server", "--allow-file-repositories", "--disable-tls"];
    let mut command = Command::new(program());
    command.args(words).args(["--metrics-port", "0"]);
    command.args(["--port", &port.to_string()]);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    Plane(quiet.stderr(Stdio::null()).spawn().expect("it starts"))
}

impl Installation {
    fn new(world: &World) -> Self {
        let place = format!("server-{}", world.namespace);
        let token = installation(world, &place);
        permit(world, &place);
        let folder = tempfile::TempDir::new().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        as_somebody(&world.kubeconfig(), &token, &kubeconfig);
        let redis = Redis::default();
        Self {
            place,
            redis_server: redis.serve(0),
            redis,
            renderer: free_port(),
            kubeconfig,
            folder,
            api: free_port(),
        }
    }

    fn controller(&self, named: &Named) -> Plane {
        let address = format!("localhost:{}", self.renderer);
        let redis = self.redis_server.address.to_string();
        let words = ["-n", &self.place, "--metrics-port", "0", "--redis", &redis];
        let of_renderer = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER";
        let plain = format!("{of_renderer}_PLAINTEXT");
        let variables = [(of_renderer, &*address), (&*plain, "true")];
        named.start(&self.kubeconfig, &words, &variables)
    }

    fn server(&self, named: &Named, metrics: u16, redis: &str) -> Plane {
        let (port, metrics) = (self.api.to_string(), metrics.to_string());
        let address = format!("localhost:{}", self.renderer);
        let words = [
            "-n",
            &self.place,
            "--port",
            &port,
            "--metrics-port",
            &metrics,
        ];
        named.start(
            &self.kubeconfig,
            &[&words[..], &["--redis", redis]].concat(),
            &[
                ("ARGOCD_SERVER_INSECURE", "true"),
                ("ARGOCD_SERVER_REPO_SERVER", &address),
                ("ARGOCD_SERVER_REPO_SERVER_PLAINTEXT", "true"),
                ("ARGOCD_SERVER_X_FRAME_OPTIONS", "deny"),
                ("ARGOCD_SERVER_WEBHOOK_PARALLELISM_LIMIT", "5"),
            ],
        )
    }

    /// A command of a user who is not in the cluster.
    fn user(&self, words: &[&str]) -> Ended {
        let config = self.folder.path().join("config");
        let config = config.to_str().expect("a plain name");
        output_of(&program(), &[words, &["--config", config]].concat())
    }

    #[track_caller]
    fn says(&self, words: &[&str], log: &dyn Fn() -> String) -> String {
        let ended = self.user(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}\n{}", log());
        ended.stdout
    }

    fn log_in(&self, log: &dyn Fn() -> String) {
        let (place, config) = (&self.place, self.kubeconfig.to_str().expect("a plain name"));
        let asked = [
            "admin",
            "initial-password",
            "-n",
            place,
            "--kubeconfig",
            config,
        ];
        let password = eventually(PATIENCE, "there is a password", || {
            let ended = output_of(&program(), &asked);
            let first = ended.stdout.lines().next().map(str::to_owned);
            first.ok_or_else(|| format!("{ended:?}\n{}", log()))
        });
        let server = format!("localhost:{}", self.api);
        let words = [
            "login",
            &server,
            "--plaintext",
            "--username",
            "admin",
            "--password",
        ];
        eventually(PATIENCE, "admin can log in", || {
            match self.user(&[&words[..], &[&password]].concat()) {
                Ended { code: Some(0), .. } => Ok(()),
                ended => Err(format!("{ended:?}\n{}", log())),
            }
        });
    }

    /// The session that the command line keeps.
    fn token(&self) -> String {
        let path = self.folder.path().join("config");
        let text = std::fs::read_to_string(path).expect("a config");
        let line = text
            .lines()
            .find_map(|line| line.split_once("auth-token: "));
        line.expect("a session").1.trim().to_owned()
    }
}

pub fn end(mut plane: Plane, log: &dyn Fn() -> String) {
    let killed = Command::new("kill").arg(plane.0.id().to_string()).status();
    assert!(killed.expect("kill is installed").success());
    assert_eq!(
        plane.0.wait().expect("it ends").code(),
        Some(0),
        "{}",
        log()
    );
}

/// The server has no controller in its process, and sees what another one publishes.
pub fn the_servers_place_is_taken(world: &mut World) {
    let own = Installation::new(world);
    let (controller, server) = (Named::called(CONTROLLER), Named::called(SERVER));
    let log = || format!("{}\n{}", controller.said(), server.said());
    let _renderer = renderer(own.renderer);
    let running = own.controller(&controller);
    let metrics = free_port();
    let redis = own.redis_server.address.to_string();
    let serving = own.server(&server, metrics, &redis);
    own.log_in(&log);

    let repo = Repo::with(&[("web/pod.yaml", POD)]);
    let mut app = world.application("web", &repo.url(), "web", &json!(null));
    app["metadata"]["finalizers"] = json!(null);
    app["spec"]["destination"]["namespace"] = json!(own.place);
    app["spec"]["syncPolicy"] = json!(null);
    let apps = namespaced("argoproj.io/v1alpha1", &own.place, "applications");
    world.kube.create(&apps, &app);
    own.says(
        &["app", "wait", "web", "--timeout", "60", "--operation"],
        &log,
    );
    own.says(&["app", "sync", "web", "--timeout", "60"], &log);
    own.says(&["app", "wait", "web", "--timeout", "60", "--health"], &log);
    assert!(
        own.says(&["app", "list", "-o", "name"], &log)
            .contains("/web")
    );
    let shown = own.says(&["app", "get", "web"], &log);
    assert!(shown.contains("Pod") && shown.contains("Synced"), "{shown}");
    let tree = own.says(&["app", "get", "web", "-o", "tree"], &log);
    assert!(tree.contains("Pod/web"), "{tree}");
    let lines = own.says(&["app", "logs", "web"], &log);
    assert!(!lines.is_empty(), "the Pod's log: {}", log());
    let resources = own.says(&["app", "resources", "web"], &log);
    assert!(resources.contains("web"), "{resources}");
    assert_eq!(own.user(&["app", "diff", "web"]).code, Some(0), "{}", log());
    // Controllers write what they know of clusters every ten seconds.
    eventually(PATIENCE, "the cluster is known", || {
        let clusters = own.says(&["cluster", "list"], &log);
        clusters
            .contains("Successful")
            .then_some(())
            .ok_or(clusters)
    });
    assert!(get(metrics, "/metrics").contains("grpc_server_handled_total"));
    assert!(get(own.api, "/").contains("x-frame-options: deny"));
    let unused = "\"names\":\"webhook-parallelism-limit\"";
    assert_eq!(server.said().matches(unused).count(), 1, "{}", log());

    sessions_end_in_redis(&own, &log);
    end(serving, &log);
    without_redis(&own, &log, &server);
    end(running, &log);
    remove(world, &own.place);
}

/// A session that has ended here is told in Redis to genuine servers; one that ended there has ended
/// here.
fn sessions_end_in_redis(own: &Installation, log: &dyn Fn() -> String) {
    let token = own.token();
    let server = format!("localhost:{}", own.api);
    own.says(&["logout", &server], log);
    let ended = own
        .redis
        .kept()
        .values
        .keys()
        .any(|key| key.starts_with("revoked-token|"));
    assert!(ended, "{}", log());
    let refused = own.user(&["app", "list", "--auth-token", &token]);
    assert!(
        refused.code != Some(0) && refused.stderr.contains("revoked"),
        "{refused:?}"
    );
}

/// What needs the controller's state says so, and the rest works.
fn without_redis(own: &Installation, log: &dyn Fn() -> String, named: &Named) {
    let serving = own.server(named, 0, "");
    own.log_in(log);
    assert!(
        own.says(&["app", "list", "-o", "name"], log)
            .contains("/web")
    );
    let ended = own.user(&["app", "resources", "web"]);
    let says_why = ended.stderr.contains("this server has no Redis");
    assert!(ended.code != Some(0) && says_why, "{ended:?}");
    end(serving, log);
}

/// The role is also one of our own commands.
#[test]
fn help_names_the_flags_of_argo_cds() {
    let ended = output_of(Path::new(&program()), &["argocd-server", "--help"]);
    for line in [
        "--repo-server string (default argocd-repo-server:8081) [$ARGOCD_SERVER_REPO_SERVER]",
        "--staticassets string (default /shared/app) [$ARGOCD_SERVER_STATIC_ASSETS]",
        "--enable-proxy-extension [$ARGOCD_SERVER_ENABLE_PROXY_EXTENSION]",
        "--catalog-file string [$TIPHYS_CATALOG_FILE]",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let ended = output_of(Path::new(&program()), &["server", "--help"]);
    assert!(ended.stdout.contains("--disable-auth"), "{ended:?}");
}
