//! `rundex` and `gendexcfg`, with a script in Dex's place.

use crate::scenarios::{
    dropin::Named,
    world::{World, program},
};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use tiphys_gocompat::yaml;
use tiphys_testkit::{PATIENCE, eventually, namespaced};

/// Notes its calls, its configuration and its end. It ends with its parent, too, so that a failed
/// test leaves nothing running.
const DEX: &str = "#!/usr/bin/env bash
at=$(dirname \"$0\")
trap 'echo stop >> \"$at/calls\"; exit 0' TERM
cat \"$2\" > \"$at/seen\"
env > \"$at/environment\"
echo $$ > \"$at/pid\"
echo \"$1 $2\" >> \"$at/calls\"
while kill -0 $PPID 2> /dev/null; do sleep 0.1; done
";
const SETTINGS: &str = "
connectors:
- {type: github, id: gh, name: GitHub, config: {clientID: a, clientSecret: $dex.secret}}
- {type: ldap, id: ldap, name: LDAP, config: {host: ldap.example.com, bindPW: $corp:password}}
";

/// The folder of the script.
struct Dex {
    folder: TempDir,
}

impl Dex {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("dex");
        fs::write(&path, DEX).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits until it was called and ended in this order.
    fn until(&self, expected: &[&str], named: &Named) {
        let file = self.path("dex.yaml");
        let lines = expected.iter().map(|line| match *line {
            "start" => format!("serve {}\n", file.display()),
            other => format!("{other}\n"),
        });
        let expected: String = lines.collect();
        eventually(PATIENCE, "dex is called", || {
            let calls = self.read("calls");
            match calls == expected {
                true => Ok(()),
                false => Err(format!("{calls:?}, not {expected:?}\n{}", named.said())),
            }
        });
    }

    /// A field of the configuration that it was started with.
    fn seen(&self, pointer: &str) -> Value {
        value(&self.read("seen"), pointer)
    }
}

fn value(text: &str, pointer: &str) -> Value {
    let limits = yaml::Limits::default();
    let read = yaml::parse_document(text, &limits, yaml::Duplicates::Refuse).expect("YAML");
    read.pointer(pointer).cloned().unwrap_or_default()
}

fn until_said(named: &Named, text: &str) {
    eventually(PATIENCE, text, || {
        let said = named.said();
        match said.contains(text) {
            true => Ok(()),
            false => Err(said),
        }
    });
}

/// What `tiphys dex gendexcfg` prints.
fn generate(kubeconfig: &Path, place: &str, words: &[&str]) -> String {
    let output = Command::new(program())
        .args(["dex", "gendexcfg", "--disable-tls", "-n", place])
        .args(words)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("hush"), "{errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// An installation whose argocd-cm has an address only.
fn install(world: &World, place: &str) {
    world.kube.namespace(place);
    let labels = json!({"app.kubernetes.io/part-of": "argocd"});
    for (name, values) in [
        (
            "argocd-secret",
            json!({"server.secretkey": "key", "dex.secret": "hush-1"}),
        ),
        ("corp", json!({"password": "hush-$"})),
    ] {
        world.kube.create(
            &namespaced("v1", place, "secrets"),
            &json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": name, "labels": labels}, "stringData": values}),
        );
    }
    world.kube.create(
        &namespaced("v1", place, "configmaps"),
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"},
            "data": {"url": "https://cd.example.com"}}),
    );
}

pub fn dex_runs_with_what_the_settings_say(world: &mut World) {
    let place = format!("dex-{}", world.namespace);
    install(world, &place);
    let map = format!("{}/argocd-cm", namespaced("v1", &place, "configmaps"));
    let secret = format!("{}/argocd-secret", namespaced("v1", &place, "secrets"));
    let settings = |dex: Value| {
        world
            .kube
            .patch(&map, &json!({"data": {"dex.config": dex}}));
    };
    let (dex, named) = (Dex::new(), Named::called("argocd-dex"));
    let folder = dex.folder.path().to_str().expect("plain").to_owned();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let words = ["rundex", "--config-dir", &folder, "-n", &place];
    let variables = [
        ("PATH", path.as_str()),
        ("ARGOCD_DEX_SERVER_DISABLE_TLS", "true"),
    ];
    let kubeconfig = world.kubeconfig();
    let mut role = named.start(&kubeconfig, &words, &variables);
    until_said(&named, "dex is not configured");

    settings(json!(SETTINGS));
    dex.until(&["start"], &named);
    for (pointer, expected) in [
        ("/issuer", "https://cd.example.com/api/dex"),
        ("/web/http", "0.0.0.0:5556"),
        ("/connectors/0/config/clientSecret", "hush-1"),
        ("/connectors/1/config/bindPW", "hush-$$"),
    ] {
        assert_eq!(dex.seen(pointer), expected, "{pointer}");
    }
    // What Dex makes of `$$`.
    let environment = dex.read("environment");
    assert!(environment.lines().any(|line| line == "$=$"));
    let file = dex.path("dex.yaml");
    let mode = fs::metadata(&file).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let out = dex.path("written.yaml");
    let printed = generate(&kubeconfig, &place, &["-o", out.to_str().expect("plain")]);
    assert_eq!(printed, "");
    assert_eq!(dex.read("written.yaml"), dex.read("seen"));
    let mode = fs::metadata(&out).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let shown = generate(&kubeconfig, &place, &[]);
    assert!(!shown.contains("hush"), "{shown}");
    let field = "/connectors/1/config/bindPW";
    assert_eq!(value(&shown, field), "******");

    world
        .kube
        .patch(&secret, &json!({"stringData": {"dex.secret": "hush-2"}}));
    dex.until(&["start", "stop", "start"], &named);
    assert_eq!(dex.seen("/connectors/0/config/clientSecret"), "hush-2");

    // Settings that cannot be used change nothing.
    let pid = dex.read("pid");
    let refusals = || named.said().matches("connectors must be a list").count();
    settings(json!("connectors: {}"));
    // The second attempt begins after the first has ended.
    eventually(
        PATIENCE,
        "the settings are refused again",
        || match refusals() {
            0 | 1 => Err(named.said()),
            _ => Ok(()),
        },
    );
    dex.until(&["start", "stop", "start"], &named);
    assert_eq!(dex.read("pid"), pid);
    settings(json!(SETTINGS));

    // It is started again when it ends by itself.
    let kill = |signal: &str, id: &str| {
        let status = Command::new("kill").args([signal, id]).status();
        assert!(status.expect("kill is installed").success());
    };
    kill("-KILL", dex.read("pid").trim());
    dex.until(&["start", "stop", "start", "start"], &named);

    settings(Value::Null);
    dex.until(&["start", "stop", "start", "start", "stop"], &named);
    settings(json!(SETTINGS));
    let again = ["start", "stop", "start", "start", "stop", "start"];
    dex.until(&again, &named);
    kill("-TERM", &role.0.id().to_string());
    let code = role.0.wait().expect("it ends").code();
    assert_eq!(code, Some(0), "{}", named.said());
    let all = [&again[..], &["stop"]].concat();
    dex.until(&all, &named);
    let said = named.said();
    assert!(!said.contains("hush"), "{said}");
    world.kube.delete(&format!("/api/v1/namespaces/{place}"));
}
