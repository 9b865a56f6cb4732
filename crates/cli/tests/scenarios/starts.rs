//! What `tiphys up` does once it starts: what it prints, waits for and leaves behind.

use crate::scenarios::{
    startup::{once, shown},
    world::program,
};
use serde_json::json;
use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
};
use tempfile::TempDir;
use tiphys_testkit::{Ended, Options, PATIENCE, Repo, Tiphys, eventually, namespaced, output_of};

#[test]
fn a_used_folder_starts_again() {
    let folder = TempDir::new().expect("a folder");
    for start in ["first", "second"] {
        let ended = output_of(
            &program(),
            &[
                "up",
                "--once",
                "--port",
                "0",
                "--timeout",
                "120",
                "--data",
                shown(folder.path()),
            ],
        );
        assert_eq!(ended.code, Some(0), "the {start} start: {ended:?}");
    }
}

/// A Git server that never responds, and an Application that therefore stays Unknown.
fn waiting(more: &[&str], ephemeral: bool) -> (TcpListener, Tiphys) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/r.git", silent.local_addr().expect("bound"));
    let arguments = [&["--repo", &url, "--path", "stays"], more]
        .concat()
        .into_iter()
        .map(Into::into)
        .collect();
    let tiphys = Tiphys::start(&Options {
        program: program(),
        ephemeral,
        examples: true,
        arguments,
        ..Options::default()
    });
    eventually(PATIENCE, "the Application is shown", || {
        tiphys
            .stdout()
            .contains("stays:")
            .then_some(())
            .ok_or_else(|| tiphys.stdout())
    });
    (silent, tiphys)
}

#[test]
fn a_signal_ends_once_and_says_what_was_not_reached() {
    for (code, end) in [
        (130, Tiphys::interrupt as fn(Tiphys) -> Ended),
        (143, Tiphys::terminate),
    ] {
        let (_silent, tiphys) = waiting(&["--once"], false);
        let ended = end(tiphys);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(
            ended
                .stderr
                .contains("before everything was Synced and Healthy")
                && ended.stderr.contains("stays:"),
            "{ended:?}"
        );
        assert!(
            !ended.stdout.contains("all Synced and Healthy"),
            "{ended:?}"
        );
    }
}

#[test]
fn either_signal_removes_the_temporary_folder() {
    for end in [Tiphys::interrupt as fn(Tiphys) -> Ended, Tiphys::terminate] {
        let (_silent, tiphys) = waiting(&[], true);
        let line = tiphys
            .stdout()
            .lines()
            .find_map(|l| l.split_once("KUBECONFIG=").map(|(_, path)| path.to_owned()))
            .expect("it is printed");
        let folder = Path::new(&line).parent().expect("a folder").to_owned();
        assert!(folder.is_dir(), "{}", folder.display());
        let ended = end(tiphys);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!folder.exists(), "{} is left behind", folder.display());
    }
}

#[test]
fn addresses_and_login_are_printed_before_anything_is_deployed_and_at_every_start() {
    let folder = TempDir::new().expect("a folder");
    let mut logins = Vec::new();
    for _ in 0..2 {
        let arguments = ["--repo", "file:///nowhere/r.git", "--path", "broken"]
            .map(Into::into)
            .to_vec();
        let options = Options {
            program: program(),
            data: Some(folder.path().to_owned()),
            examples: true,
            arguments,
            ..Options::default()
        };
        let tiphys = Tiphys::start(&options);
        let out = eventually(PATIENCE, "the Application is shown", || {
            let out = tiphys.stdout();
            if out.contains("broken:") {
                Ok(out)
            } else {
                Err(out)
            }
        });
        let place = |word: &str| {
            out.find(word)
                .unwrap_or_else(|| panic!("`{word}` is missing: {out}"))
        };
        for word in [
            tiphys.url.as_str(),
            "admin / ",
            "export KUBECONFIG=",
            " login ",
        ] {
            assert!(place(word) < place("broken:"), "{out}");
        }
        let called = program();
        assert!(
            out.contains(&format!("  {} app list", called.display())),
            "as the program was called: {out}"
        );
        logins.push(
            out.lines()
                .find(|l| l.contains("admin / "))
                .expect("a login")
                .to_owned(),
        );
        assert_eq!(tiphys.interrupt().code, Some(0));
    }
    assert_eq!(logins[0], logins[1], "the password is still the first one");
}

#[test]
fn children_of_an_application_are_waited_for() {
    let child = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: child, namespace: argocd}\nspec:\n  project: default\n  \
                 source: {repoURL: REPO, path: child, targetRevision: HEAD}\n  destination: {server: \"https://kubernetes.default.svc\", \
                 namespace: default}\n  syncPolicy: {automated: {}}\n";
    let repo = Repo::with(&[(
        "child/cm.yaml",
        crate::scenarios::world::config_map("a", "1").as_str(),
    )]);
    repo.commit(
        &[(
            "root/child.yaml",
            child.replace("REPO", &repo.url()).as_str(),
        )],
        &[],
    );
    let ended = once(&[
        "--repo",
        &repo.url(),
        "--path",
        "root",
        "--namespace",
        "argocd",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("child: Synced Healthy Succeeded"),
        "{ended:?}"
    );
}

#[test]
fn a_folder_is_a_repository_without_dot_or_slash() {
    let top = TempDir::new().expect("a folder");
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .current_dir(top.path().join("r1"))
            .args(arguments)
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    fs::create_dir(top.path().join("r1")).expect("a folder");
    fs::write(
        top.path().join("r1/cm.yaml"),
        crate::scenarios::world::config_map("a", "1"),
    )
    .expect("a file");
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&[
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.test",
        "commit",
        "--quiet",
        "-m",
        "first",
    ]);
    let up = |repo: &str| {
        let arguments = ["up", "--ephemeral", "--once", "--port", "0", "--repo", repo];
        Command::new(program())
            .current_dir(top.path())
            .args(arguments)
            .output()
            .expect("it runs")
    };
    let (there, missing) = (up("r1"), up("r2"));
    assert_eq!(there.status.code(), Some(0), "{there:?}");
    assert!(
        String::from_utf8_lossy(&missing.stderr).contains("--repo r2: there is no such folder"),
        "{missing:?}"
    );
}

#[test]
fn a_real_definition_takes_the_place_of_a_placeholder_and_objects_stay() {
    let widget = |name: &str| json!({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, "spec": {"size": 3}});
    let repo = Repo::with(&[("app/widget.yaml", widget("of-git").to_string().as_str())]);
    let arguments = ["--repo", &repo.url(), "--path", "app"]
        .map(Into::into)
        .to_vec();
    let (_tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        examples: true,
        arguments,
        ..Options::default()
    });
    let placeholder = "/apis/example.test/v1/namespaces/default/widgets";
    eventually(PATIENCE, "the placeholder serves", || {
        kube.find(&format!("{placeholder}/of-git"))
            .ok_or_else(|| "no object".to_owned())
    });
    kube.create(placeholder, &widget("by-hand"));
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    // Another plural than the guessed one.
    kube.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgetz.example.test"},
            "spec": {"group": "example.test", "scope": "Namespaced", "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgetz", "singular": "widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}
        }),
    );
    for name in ["by-hand", "of-git"] {
        let object = eventually(PATIENCE, "the real definition has the objects", || {
            kube.find(&format!(
                "/apis/example.test/v1/namespaces/default/widgetz/{name}"
            ))
            .ok_or_else(|| name.to_owned())
        });
        assert_eq!(object["spec"]["size"], 3);
    }
    assert!(
        kube.find("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test")
            .is_none(),
        "the placeholder is gone"
    );
}

#[test]
fn what_is_installed_can_be_deleted_without_the_applications() {
    let (tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    let kubeconfig = shown(tiphys.kubeconfig().expect("a data folder")).to_owned();
    let spec = json!({"project": "default", "source": {"repoURL": "https://example.test/r", "path": "."}, "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"}});
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "kept"}, "spec": spec});
    kube.create(&tiphys_testkit::apps_path(), &app);
    let installed = output_of(&program(), &["install", "--kubeconfig", &kubeconfig]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let printed = output_of(&program(), &["install", "--print", "--without-crds"]);
    let documents = tiphys_gocompat::yaml::parse_documents(
        &printed.stdout,
        &tiphys_gocompat::yaml::Limits::default(),
    )
    .expect("YAML");
    assert!(documents.len() >= 6, "{printed:?}");
    for document in documents {
        let object = document.value;
        let name = object["metadata"]["name"].as_str().expect("a name");
        let collection = match object["kind"].as_str().expect("a kind") {
            "ServiceAccount" => namespaced("v1", "argocd", "serviceaccounts"),
            "Service" => namespaced("v1", "argocd", "services"),
            "Deployment" => namespaced("apps/v1", "argocd", "deployments"),
            "NetworkPolicy" => namespaced("networking.k8s.io/v1", "argocd", "networkpolicies"),
            "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
            "ClusterRoleBinding" => {
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".to_owned()
            }
            other => panic!("deleting a {other} deletes Applications"),
        };
        assert!(
            kube.find(&format!("{collection}/{name}")).is_some(),
            "{name} was installed"
        );
        kube.delete(&format!("{collection}/{name}"));
    }
    let kept = kube
        .find(&format!("{}/kept", tiphys_testkit::apps_path()))
        .expect("the Application is there");
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
    let whole = output_of(&program(), &["install", "--print"]);
    assert!(
        whole
            .stdout
            .starts_with("# To uninstall, do not `kubectl delete` this file"),
        "{whole:?}"
    );
}

#[test]
fn the_first_password_is_found_where_up_runs() {
    let home = TempDir::new().expect("a folder");
    let data = Some(home.path().join("tiphys"));
    let tiphys = Tiphys::start(&Options {
        program: program(),
        data,
        ..Options::default()
    });
    let line = eventually(PATIENCE, "the login is printed", || {
        let out = tiphys.stdout();
        out.lines()
            .find_map(|l| {
                l.split_once("admin / ")
                    .map(|(_, password)| password.trim().to_owned())
            })
            .ok_or(out)
    });
    let asked = Command::new(program())
        .args(["admin", "initial-password"])
        .env("XDG_DATA_HOME", home.path())
        .env("HOME", home.path())
        .env_remove("KUBECONFIG")
        .output()
        .expect("it runs");
    let out = String::from_utf8_lossy(&asked.stdout);
    assert_eq!(out.lines().next(), Some(line.as_str()), "{asked:?}");
    assert!(
        String::from_utf8_lossy(&asked.stderr).contains("tiphys up"),
        "{asked:?}"
    );
}

#[test]
fn applications_of_a_selector_are_synced_together_and_all_to_their_end() {
    let repo = Repo::with(&[(
        "app/cm.yaml",
        crate::scenarios::world::config_map("a", "1").as_str(),
    )]);
    let (tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    for n in 0..6 {
        let source = json!({"repoURL": repo.url(), "path": if n == 0 { "absent" } else { "app" }, "targetRevision": "HEAD"});
        let destination =
            json!({"server": "https://kubernetes.default.svc", "namespace": format!("n-{n}")});
        let spec = json!({"project": "default", "source": source, "destination": destination, "syncPolicy": {"syncOptions": ["CreateNamespace=true"]}});
        let metadata = json!({"name": format!("app-{n}"), "labels": {"team": "a"}});
        kube.create(
            &tiphys_testkit::apps_path(),
            &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}),
        );
    }
    let password = tiphys
        .stdout()
        .lines()
        .find_map(|l| l.split_once("admin / ").map(|(_, p)| p.trim().to_owned()))
        .expect("a login");
    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("config");
    let run = |arguments: &[&str]| {
        output_of(
            &program(),
            &[arguments, &["--config", shown(&config)]].concat(),
        )
    };
    let address = tiphys.url.trim_start_matches("http://");
    let login = run(&[
        "login",
        address,
        "--plaintext",
        "--username",
        "admin",
        "--password",
        &password,
    ]);
    assert_eq!(login.code, Some(0), "{login:?}");
    let synced = run(&["app", "sync", "-l", "team=a", "--timeout", "100"]);
    assert_eq!(synced.code, Some(1), "{synced:?}");
    assert!(
        synced
            .stdout
            .contains("6 applications: 5 succeeded, 1 failed"),
        "{synced:?}"
    );
    assert!(
        synced
            .stdout
            .lines()
            .filter(|l| l.starts_with("argocd/app-") && l.contains("Succeeded"))
            .count()
            == 5,
        "{synced:?}"
    );
}

#[test]
fn the_temporary_folder_of_repositories_goes_with_the_process() {
    let (tiphys, _kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    let temporary = TempDir::new().expect("a folder");
    let kubeconfig = shown(tiphys.kubeconfig().expect("a data folder")).to_owned();
    let port = tiphys_testkit::free_port().to_string();
    let mut child = Command::new(program())
        .args([
            "control-plane",
            "--insecure",
            "--address",
            "127.0.0.1",
            "--port",
            &port,
            "--api-metrics-port",
            "0",
            "--notifications-metrics-port",
            "0",
            "--metrics-port",
            "0",
            "--kubeconfig",
            &kubeconfig,
        ])
        .env("TMPDIR", temporary.path())
        .spawn()
        .expect("it starts");
    let folders = || {
        fs::read_dir(temporary.path())
            .expect("a folder")
            .filter_map(Result::ok)
            .map(|e| e.file_name())
            .collect::<Vec<_>>()
    };
    eventually(PATIENCE, "the folder is made", || {
        if folders().is_empty() {
            Err("none".to_owned())
        } else {
            Ok(())
        }
    });
    // It handles signals once it serves.
    let api = tiphys_testkit::Api::plain(&format!("http://127.0.0.1:{port}"));
    eventually(PATIENCE, "it serves", || {
        api.get("/api/version").map_err(|e| e.0).and_then(|a| {
            if a.status == 200 {
                Ok(())
            } else {
                Err(a.status.to_string())
            }
        })
    });
    let done = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .expect("kill is installed");
    assert!(done.success());
    let ended = eventually(PATIENCE, "it ends", || {
        child
            .try_wait()
            .expect("our child")
            .ok_or_else(|| "it runs".to_owned())
    });
    assert!(ended.success(), "{ended:?}");
    assert!(folders().is_empty(), "{:?} is left behind", folders());
}

/// The first answer to a request without TLS, as far as there is one.
fn plain_answer(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket has a timeout");
    let request = format!("GET /api/version HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut answer = [0; 64];
    let _ = stream.write_all(request.as_bytes());
    let read = stream.read(&mut answer).unwrap_or_default();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[test]
fn with_tls_what_is_printed_works_and_nothing_is_served_without() {
    let tiphys = Tiphys::start(&Options {
        program: program(),
        arguments: vec!["--tls".into()],
        ..Options::default()
    });
    let address = tiphys.url.trim_start_matches("http://").to_owned();
    let hint = format!("login {address} --insecure --username admin");
    let out = eventually(PATIENCE, "the introduction is printed", || {
        let out = tiphys.stdout();
        let is_whole = out.contains("Ctrl-C stops.");
        if is_whole { Ok(out) } else { Err(out) }
    });
    assert!(out.contains(&format!("https://{address}")), "{out}");
    assert!(
        !out.contains("--plaintext") && !out.contains("http://"),
        "{out}"
    );
    let after = |before: &str| {
        let line = out.lines().find_map(|line| line.split_once(before));
        line.unwrap_or_else(|| panic!("`{before}` is missing: {out}"))
            .1
    };
    let password = after("admin / ").split_whitespace().next();
    let password = password.expect("the first start prints it");
    assert_eq!(after(&hint).trim(), "", "{out}");

    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("config");
    let run = |words: &str, more: &[&str]| {
        let words: Vec<&str> = words.split_whitespace().collect();
        output_of(
            &program(),
            &[&words[..], more, &["--config", shown(&config)]].concat(),
        )
    };
    let who = ["--password", password];
    for other in [
        format!("login {address} --username admin"),
        format!("login {address} --plaintext --username admin"),
    ] {
        let refused = run(&other, &who);
        assert_ne!(refused.code, Some(0), "{other}: {refused:?}");
        assert!(!refused.stderr.contains(password), "{refused:?}");
    }
    let login = run(&hint, &who);
    assert_eq!(login.code, Some(0), "{login:?}");
    let list = run("app list", &[]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let plain = plain_answer(&address);
    assert!(!plain.starts_with("HTTP/1.1 200"), "{plain}");
    assert_eq!(tiphys.interrupt().code, Some(0));
}

/// The flags for a server that is asked would only hide the others.
#[test]
fn help_shows_what_means_something() {
    for (command, own) in [("up", "--loglevel"), ("kustomize build", "--enable-helm")] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = output_of(&program(), &words).stdout;
        assert!(help.contains(own), "{help}");
        assert!(
            !help.contains("--grpc-web") && !help.contains("--auth-token"),
            "{help}"
        );
    }
}
