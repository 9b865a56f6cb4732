//! Report 22: an API below a path.

use super::{StandIn, case, read, run};
use crate::scenarios::{
    admin::Plane,
    world::{World, program},
};
use serde_json::json;
use std::{
    fs,
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::{Api, PATIENCE, eventually, free_port, namespaced, output_of};

/// The rows of a table, without its header.
fn rows(table: &str) -> Vec<(&str, &str)> {
    let rows = table.lines().skip(1).map(|row| row.split_once('\t'));
    let rows: Vec<_> = rows.collect::<Option<_>>().expect("two columns");
    assert!(!rows.is_empty(), "{table}");
    rows
}

#[test]
fn the_command_line_asks_below_it() {
    let Some(case) = case("22-root-path") else {
        return;
    };
    let server = StandIn::start();
    let table = read(&case.join("requests.tsv"));
    for (flags, wanted) in rows(&table) {
        let mut words = vec!["app", "list", "--plaintext", "--server", &server.address];
        words.extend(flags.split(' '));
        // What comes of it is no list.
        let _ = run(&words, &[]);
        let asked = server.asked();
        let of_list = asked.iter().filter(|(_, path, _)| path.ends_with("/List"));
        let of_list: Vec<(&str, &str)> =
            of_list.map(|(kind, path, _)| (&**kind, &**path)).collect();
        assert_eq!(of_list, [("application/grpc-web+proto", wanted)], "{flags}");
    }
}

/// The repository of the table.
const URL: &str = "https://git.example.test/acme/a.git";

/// One that is given with slashes is the same one. What is asked by hand, and what the page and the
/// command line do there.
#[test]
fn the_server_answers_below_it() {
    let Some(case) = case("22-root-path") else {
        return;
    };
    let Some(world) = World::embedded("root_path") else {
        return;
    };
    let labels = json!({"argocd.argoproj.io/secret-type": "repository"});
    world.kube.create(
        &namespaced("v1", "argocd", "secrets"),
        &json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "labels": labels}, "stringData": {"url": URL}
        }),
    );
    let table = read(&case.join("rest.tsv"));
    for given in ["argocd", "/argocd/"] {
        let (port, folder) = (free_port().to_string(), TempDir::new().expect("a folder"));
        let log = folder.path().join("log");
        let plane = Command::new(program())
            .args([
                "server",
                "-n",
                "argocd",
                "--insecure",
                "--metrics-port",
                "0",
                "--redis",
                "",
            ])
            .args(["--port", &port, "--rootpath", given, "--kubeconfig"])
            .arg(world.kubeconfig())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("a file"))
            .spawn();
        let _plane = Plane(plane.expect("it starts"));
        let address = format!("127.0.0.1:{port}");
        let api = Api::plain(&format!("http://{address}"));
        eventually(PATIENCE, "the server is ready", || {
            let answer = api.get("/healthz").map_err(|e| e.0)?;
            let said = || fs::read_to_string(&log).unwrap_or_default();
            answer.is_success().then_some(()).ok_or_else(said)
        });
        let page = |path: &str| {
            let answer = api.get(path).expect("an answer");
            assert_eq!(answer.status, 200, "{path}");
            answer.body.as_str().expect("a page").to_owned()
        };
        for path in ["/argocd", "/argocd/"] {
            let page = page(path);
            // Ours names what it loads from the top; Argo CD's has a `base`.
            assert!(page.contains(r#"src="/argocd/assets/"#), "{page}");
            assert!(page.contains(r#"content="/argocd""#), "{page}");
        }

        let password = world.tiphys.password().expect("it is shown");
        let config = folder.path().join("config").to_string_lossy().into_owned();
        let user =
            |words: &[&str]| output_of(&program(), &[words, &["--config", &config]].concat());
        let does = |words: &[&str]| {
            let ended = user(words);
            assert_eq!(ended.code, Some(0), "{given}: {words:?}: {ended:?}");
            ended.stdout
        };
        let as_admin = [
            "--plaintext",
            "--username",
            "admin",
            "--password",
            &password,
        ];
        let login = ["login", &address, "--grpc-web-root-path", given];
        does(&[&login[..], &as_admin].concat());
        assert!(does(&["repo", "list"]).contains(URL));

        does(&["relogin", "--password", &password]);
        let kept = read(config.as_ref());
        let token = kept
            .lines()
            .find_map(|line| line.split_once("auth-token: "));
        let api = api.with_token(token.expect("a session").1.trim());
        for (path, status) in rows(&table) {
            let answer = api.get(path).expect("an answer");
            assert_eq!(answer.status.to_string(), status, "{given}: {path}");
        }
        does(&["logout", &format!("{address}/argocd")]);
        // Not only the command line forgot the session.
        let listed = api.get("/argocd/api/v1/repositories").expect("an answer");
        assert_eq!(listed.status, 401, "{}", listed.body);
    }
}
