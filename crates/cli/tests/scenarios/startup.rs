//! What keeps the program from starting: a message that names the thing and the fix, and an exit code that is not 0.

use crate::world::program;
use serde_json::json;
use std::{fs, net::TcpListener, path::Path};
use tempfile::TempDir;
use tiphys_testkit::{Options, Repo, Tiphys, namespaced, output_of};

/// Runs `tiphys up` with arguments; it must fail and say all of `words`.
#[track_caller]
fn fails(arguments: &[&str], words: &[&str]) {
    let ended = output_of(&program(), &[&["up"], arguments].concat());
    assert!(ended.code.is_some_and(|c| c != 0), "it must fail: {ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "`{word}` is missing: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

const QUIET: [&str; 3] = ["--bare", "--once", "--ephemeral"];

fn shown(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    fails(&[&QUIET[..], &["--port", &port]].concat(), &[&port, "--port"]);
    fails(&[&QUIET[..], &["--port", "0", "--kube-port", &port]].concat(), &[&port, "--kube-port"]);
}

#[test]
fn a_newer_or_damaged_or_busy_data_folder_is_named_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let options = Options { program: program(), data: Some(path.to_owned()), ..Options::default() };
    let arguments = ["--bare", "--once", "--port", "0", "--data", shown(path)];
    let (tiphys, kube) = Tiphys::ready(&options);
    let maps = namespaced("v1", "default", "configmaps");
    kube.create(&maps, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}));
    fails(&arguments, &[shown(path), "in use"]);
    assert!(kube.find(&format!("{maps}/kept")).is_some(), "the first goes on");
    let ended = tiphys.interrupt();
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let (format, store) = (path.join("kube/format"), path.join("kube/objects.redb"));
    let (good_format, good_store) = (fs::read(&format).expect("a file"), fs::read(&store).expect("a file"));
    fs::write(&format, "99\n").expect("a file");
    fails(&arguments, &[shown(path), "newer version", "format 99"]);
    fs::write(&format, &good_format).expect("a file");
    fs::write(&store, b"not a database").expect("a file");
    fails(&arguments, &[shown(path), "damaged"]);
    assert_eq!(fs::read(&store).expect("a file"), b"not a database", "what may still be saved is not overwritten");
    fs::write(&store, &good_store[..good_store.len() / 2]).expect("a file");
    fails(&arguments, &[shown(path)]);

    fs::write(&store, &good_store).expect("a file");
    let (_tiphys, kube) = Tiphys::ready(&options);
    assert!(kube.find(&format!("{maps}/kept")).is_some(), "nothing was lost");
}

#[test]
fn a_data_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fails(&["--bare", "--once", "--port", "0", "--data", shown(&file.path().join("data"))], &[shown(file.path()), "--data"]);
}

#[test]
fn a_kubeconfig_that_does_not_work_is_named() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let with = |text: &str, words: &[&str], more: &[&str]| {
        fs::write(&path, text).expect("a file");
        let arguments = [&["--bare", "--once", "--ephemeral", "--port", "0", "--kubeconfig", shown(&path)][..], more].concat();
        fails(&arguments, &[&[shown(&path)], words].concat());
    };
    fails(&["--bare", "--once", "--ephemeral", "--port", "0", "--kubeconfig", "/nowhere/config"], &["/nowhere/config"]);
    with("this is: [not YAML", &[], &[]);
    let good = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n";
    with(good, &["https://127.0.0.1:1"], &[]);
    with(good, &["other"], &["--context", "other"]);
}

#[test]
fn once_says_what_is_not_well() {
    let repo = Repo::with(&[("app/cm.yaml", crate::world::config_map("a", "1").as_str())]);
    let url = repo.url();
    let arguments = |timeout, path| ["--ephemeral", "--once", "--port", "0", "--repo", &url, "--timeout", timeout, "--path", path];
    fails(&arguments("5", "absent"), &["absent: app path does not exist"]);
    let ended = output_of(&program(), &[&["up"], &arguments("120", "app")[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_used_folder_starts_again() {
    let folder = TempDir::new().expect("a folder");
    for start in ["first", "second"] {
        let ended = output_of(&program(), &["up", "--once", "--port", "0", "--timeout", "120", "--data", shown(folder.path())]);
        assert_eq!(ended.code, Some(0), "the {start} start: {ended:?}");
    }
}
