//! The verbs of `appset` on a `tiphys up`: what a set would do is shown, mass deletions wait for a
//! confirmation, and what was deleted can be restored.

use super::world::program;
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::{Api, Ended, Options, PATIENCE, Tiphys, apps_path, eventually, output_of};

struct Session {
    _tiphys: Tiphys,
    kube: Api,
    folder: TempDir,
}

impl Session {
    fn start() -> Self {
        let (mut tiphys, kube) = Tiphys::ready(&Options {
            program: program(),
            ..Options::default()
        });
        tiphys.login().expect("the password is shown");
        let said = tiphys.stdout();
        let password = said
            .lines()
            .find_map(|line| {
                line.split_once("admin / ")
                    .map(|(_, p)| p.trim().to_owned())
            })
            .expect("a login");
        let address = tiphys.url.trim_start_matches("http://").to_owned();
        let session = Self {
            _tiphys: tiphys,
            kube,
            folder: TempDir::new().expect("a folder"),
        };
        let words = ["login", &address, "--plaintext", "--username", "admin"];
        session.runs(&[&words[..], &["--password", &password]].concat());
        session
    }

    fn ends(&self, words: &[&str]) -> Ended {
        let config = self.folder.path().join("config").display().to_string();
        output_of(&program(), &[words, &["--config", &config]].concat())
    }

    /// Runs a command that succeeds; what it prints.
    fn runs(&self, words: &[&str]) -> String {
        let ended = self.ends(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        ended.stdout
    }

    /// The file of a set with this many Applications.
    fn file(&self, count: usize, path: &str) -> String {
        let elements: Vec<Value> = (0..count).map(|n| json!({"n": n.to_string()})).collect();
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "fleet"},
            "spec": {
                "generators": [{"list": {"elements": elements}}],
                "template": {
                    "metadata": {"name": "fleet-{{n}}", "finalizers": []},
                    "spec": {
                        "project": "default",
                        "source": {"repoURL": "https://127.0.0.1:1/r", "path": path, "targetRevision": "HEAD"},
                        "destination": {"server": "https://kubernetes.default.svc", "namespace": "x"},
                    },
                },
                "syncPolicy": {"preserveResourcesOnDeletion": true},
            },
        });
        let file = self.folder.path().join("set.yaml");
        fs::write(&file, set.to_string()).expect("it is written");
        file.display().to_string()
    }

    fn applications(&self) -> usize {
        self.kube.list(&apps_path()).len()
    }
}

#[test]
fn a_set_is_planned_confirmed_and_restored() {
    let session = Session::start();
    let file = session.file(12, "a");
    let planned = session.ends(&["appset", "plan", &file, "-o", "name"]);
    assert_eq!(planned.code, Some(1), "{planned:?}");
    assert!(
        planned
            .stdout
            .starts_with("create fleet-0\ncreate fleet-1\n"),
        "{planned:?}"
    );
    let created = session.ends(&["appset", "create", &file, "--wait"]);
    assert_eq!(created.code, Some(0), "{created:?}");
    assert!(
        created
            .stderr
            .contains("ApplicationSet 'fleet' resources are up to date"),
        "{created:?}"
    );
    assert_eq!(session.applications(), 12);
    let planned = session.runs(&["appset", "plan", "fleet"]);
    assert_eq!(
        planned,
        "ApplicationSet 'argocd/fleet': 0 to create, 0 to update, 0 to delete, 0 held\n"
    );
    a_lost_plan_is_an_error(&session);

    // A change of fields, with the difference.
    let file = session.file(11, "b");
    let planned = session.ends(&["appset", "plan", &file]);
    assert_eq!(planned.code, Some(1), "{planned:?}");
    for part in [
        "update  fleet-0\n",
        "delete  fleet-9\n",
        "===== fleet-0 ======\n",
        "<     path: a\n",
        ">     path: b\n",
        "0 to create, 11 to update, 1 to delete, 0 held\n",
    ] {
        let part = part.replace("fleet-9", "fleet-11");
        assert!(planned.stdout.contains(&part), "{part}: {planned:?}");
    }
    let quiet = ["appset", "plan", &file, "-o", "json", "--exit-code=false"];
    let report: Value = serde_json::from_str(&session.runs(&quiet)).expect("JSON");
    assert_eq!(report["delete"], json!(["fleet-11"]));
    assert_eq!(
        report["update"][0]["patch"],
        json!({"spec": {"source": {"path": "b"}}})
    );
    let code = session
        .ends(&["appset", "plan", &file, "--diff-exit-code", "7"])
        .code;
    assert_eq!(code, Some(7));

    // Most of the fleet is lost: nobody deletes it unasked.
    let file = session.file(1, "a");
    let planned = session.ends(&["appset", "plan", &file]);
    let message = "Skipping deletion of Applications: the set would delete 11 of 12 (";
    for part in ["held    fleet-5\n", message, "0 to delete, 11 held\n"] {
        assert!(planned.stdout.contains(part), "{part}: {planned:?}");
    }
    let held = session.ends(&["appset", "create", &file, "--upsert", "--wait"]);
    assert_eq!(held.code, Some(20), "{held:?}");
    assert!(held.stderr.contains(message), "{held:?}");
    assert_eq!(session.applications(), 12);
    session.runs(&["appset", "confirm-deletion", "fleet"]);
    eventually(PATIENCE, "they are deleted", || {
        match session.applications() {
            1 => Ok(()),
            count => Err(format!("{count} Applications")),
        }
    });

    // They can be restored.
    let listed = session.runs(&["appset", "restore", "fleet"]);
    assert_eq!(listed.lines().count(), 12, "{listed}");
    let none = session.ends(&["appset", "restore", "fleet", "other"]);
    assert_eq!(none.code, Some(20), "{none:?}");
    let restored = session.runs(&["appset", "restore", "fleet", "fleet-3"]);
    assert_eq!(restored, "application 'fleet-3' restored\n");
    let app = session.kube.find(&format!("{}/fleet-3", apps_path()));
    assert_eq!(app.expect("it is there")["spec"]["source"]["path"], "a");

    // The flag approves in one go.
    session.runs(&[
        "appset",
        "create",
        &session.file(12, "a"),
        "--upsert",
        "--wait",
    ]);
    assert_eq!(session.applications(), 12);
    let file = session.file(0, "a");
    session.runs(&["appset", "create", &file, "--upsert", "--allow-deletions"]);
    assert_eq!(session.applications(), 0);
    session.runs(&["appset", "delete", "fleet", "--yes", "--wait"]);
    let gone = session.ends(&["appset", "plan", "fleet"]);
    assert_eq!(gone.code, Some(20), "{gone:?}");
    the_set_is_restored(&session);
}

/// A plan that cannot be written is not taken for one with changes.
fn a_lost_plan_is_an_error(session: &Session) {
    let full = fs::File::options().write(true).open("/dev/full");
    let lost = Command::new(program())
        .args(["appset", "plan", "fleet", "--config"])
        .arg(session.folder.path().join("config"))
        .stdin(Stdio::null())
        .stdout(full.expect("Linux has it"))
        .output()
        .expect("it starts");
    let error = String::from_utf8_lossy(&lost.stderr);
    assert_eq!(lost.status.code(), Some(20), "{error}");
    assert!(error.contains("write /dev/stdout: "), "{error}");
}

/// With what it kept.
fn the_set_is_restored(session: &Session) {
    eventually(PATIENCE, "it is kept", || {
        let listed = session.ends(&["appset", "restore", "fleet"]);
        match listed.code == Some(0) && listed.stdout.contains("fleet-3 ") {
            true => Ok(()),
            false => Err(format!("{listed:?}")),
        }
    });
    let restored = session.runs(&["appset", "restore", "fleet", "--all"]);
    assert!(
        restored.contains("application 'fleet-3' restored\n"),
        "{restored}"
    );
    assert!(restored.ends_with("fleet' restored\n"), "{restored}");
    assert_eq!(session.applications(), 12);
    let again = session.ends(&["appset", "restore", "fleet", "--set-only"]);
    assert_eq!(again.code, Some(20), "{again:?}");
    assert!(again.stderr.contains("exists"), "{again:?}");
}
