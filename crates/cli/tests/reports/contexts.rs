//! Report 25: contexts, and the file that has them.

use super::{StandIn, TOKEN, case, document, read, run, text};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Output};
use tempfile::TempDir;

/// The values of a field in the list of a document, sorted.
fn names(document: &Value, list: &str, field: &str) -> Vec<String> {
    let all = document[list].as_array().cloned().unwrap_or_default();
    let of = |one: &Value| one[field].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = all.iter().map(of).collect();
    names.sort();
    names
}

fn strings(list: &Value) -> Option<Vec<String>> {
    let all = list.as_array()?.iter();
    Some(
        all.map(|s| s.as_str().expect("a text").to_owned())
            .collect(),
    )
}

/// The servers of the case's configuration.
const HOSTS: [&str; 2] = ["cd.example.test", "cd2.example.test"];

fn write(config: &Path, content: &str, mode: u32) {
    let _ = fs::remove_file(config);
    fs::write(config, content).expect("a file");
    fs::set_permissions(config, fs::Permissions::from_mode(mode)).expect("its mode");
}

/// Makes the configuration that a step begins with. `near`: the case's own, with servers that answer.
fn give(given: &str, config: &Path, [original, near]: [&str; 2], is_asked: bool) {
    let at = config.to_str().expect("UTF-8");
    match given {
        "result of the previous step" => {}
        "an empty file" => write(config, "", 0o600),
        "config cut after 150 bytes" => write(config, &original[..150], 0o600),
        "config, mode 0644" => write(config, original, 0o644),
        "config with current-context: red" => {
            let red = original.replace("current-context: blue", "current-context: red");
            write(config, &red, 0o600);
        }
        "config without the server cd2.example.test" => {
            let without = original.replace("- {server: cd2.example.test}\n", "");
            write(config, &without, 0o600);
        }
        "config, then --delete other" => {
            write(config, original, 0o600);
            let gone = run(&["context", "--delete", "other", "--config", at], &[]);
            assert!(gone.status.success(), "{gone:?}");
        }
        given if given.starts_with("config") => {
            write(config, if is_asked { near } else { original }, 0o600);
        }
        other => panic!("{other} is unknown"),
    }
}

/// Compares what a command says, and how it ends.
fn says(step: &Value, output: &Output, what: &str) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let all = format!("{what}: {output:?}");
    match step["exit"].as_i64() {
        Some(wanted) => assert_eq!(output.status.code(), i32::try_from(wanted).ok(), "{all}"),
        None if step["exit"].is_null() => assert!(output.status.success(), "{all}"),
        None => assert!(!output.status.success(), "{all}"),
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(wanted) = step["stdout"].as_str() {
        assert!(squeezed(&out).contains(&squeezed(wanted)), "{all}");
    }
    for key in ["stderr", "warns"] {
        if let Some(wanted) = step[key].as_str() {
            assert!(err.contains(wanted), "{key} {wanted}: {all}");
        }
    }
    if let Some(wanted) = strings(&step["lists"]) {
        let rows = out.lines().skip(1);
        let rows = rows.map(|row| row.trim_start_matches('*').trim());
        let mut names: Vec<&str> = rows
            .filter_map(|row| row.split_whitespace().next())
            .collect();
        names.sort_unstable();
        assert_eq!(names, wanted, "{all}");
    }
}

/// Compares the configuration that a command left.
fn left(step: &Value, config: &Path, what: &str) {
    if ["contexts", "servers", "users", "current"]
        .iter()
        .all(|key| step[*key].is_null())
    {
        return;
    }
    let after = document(&read(config));
    for (key, field) in [
        ("contexts", "name"),
        ("servers", "server"),
        ("users", "name"),
    ] {
        if let Some(wanted) = strings(&step[key]) {
            assert_eq!(names(&after, key, field), wanted, "{key}: {what}");
        }
    }
    if let Some(wanted) = step["current"].as_str() {
        let current = after["current-context"].as_str().unwrap_or_default();
        assert_eq!(current, wanted, "{what}");
    }
}

/// What is removed, repaired, refused, and asked.
#[test]
fn steps() {
    let Some(case) = case("25-local-config") else {
        return;
    };
    let [first, second] = [StandIn::start(), StandIn::start()];
    let original = read(&case.join("config"));
    let near = original
        .replace(
            "{server: cd.example.test,",
            "{server: cd.example.test, plain-text: true,",
        )
        .replace(
            "{server: cd2.example.test}",
            "{server: cd2.example.test, plain-text: true}",
        )
        .replace(HOSTS[0], &first.address)
        .replace(HOSTS[1], &second.address)
        // Whose token it is says who signs in again.
        .replace("token-b", TOKEN)
        .replace("token-o", TOKEN);
    let steps: Vec<Value> = serde_json::from_str(&read(&case.join("steps.json"))).expect("JSON");
    assert_eq!(steps.len(), 14);
    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("config");
    let at = config.to_str().expect("UTF-8").to_owned();
    for (number, step) in steps.iter().enumerate() {
        let given = step["given"].as_str().expect("a text");
        let what = format!("{number}: {given}: {}", step["args"]);
        let asks = step["asks"].as_str();
        give(given, &config, [&original, &near], asks.is_some());
        let before = fs::read(&config).expect("the file");
        let mut words = strings(&step["args"]).expect("words");
        words.extend(["--config".to_owned(), at.clone()]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&words, &[]);
        says(step, &output, &what);
        if step["file"] == "unchanged" {
            assert_eq!(fs::read(&config).expect("the file"), before, "{what}");
            continue;
        }
        left(step, &config, &format!("{what}: {output:?}"));
        if let Some(asks) = asks {
            let (asked, other) = match asks.starts_with(HOSTS[1]) {
                true => (second.asked(), first.asked()),
                false => (first.asked(), second.asked()),
            };
            assert!(other.is_empty(), "{what}: {other:?}");
            let first = asked.first();
            let (kind, path, _) = first.unwrap_or_else(|| panic!("{what}: nobody is asked"));
            let below = if asks.contains("/team") { "/team" } else { "" };
            assert_eq!(
                kind.contains("grpc-web"),
                asks.contains("gRPC-Web"),
                "{what}"
            );
            assert_eq!(
                path,
                &format!("{below}/session.SessionService/Create"),
                "{what}"
            );
        }
    }
}

/// Of report 25, too: logins at the same time lose nothing of each other, and a link stays one.
#[test]
fn logins_side_by_side() {
    let server = StandIn::start();
    let folder = TempDir::new().expect("a folder");
    let (file, config) = (folder.path().join("file"), folder.path().join("config"));
    write(&file, "", 0o600);
    std::os::unix::fs::symlink(&file, &config).expect("a link");
    let at = config.to_str().expect("UTF-8");
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (name, address) = (format!("ci-{number}"), &server.address);
            scope.spawn(move || {
                let words = [
                    "login",
                    address,
                    "--name",
                    &name,
                    "--config",
                    at,
                    "--plaintext",
                    "--grpc-web",
                    "--username",
                    "admin",
                    "--password",
                    "x",
                ];
                let output = run(&words, &[]);
                assert!(output.status.success(), "{output:?}");
            });
        }
    });
    let after = document(&read(&file));
    assert_eq!(names(&after, "contexts", "name").len(), 20);
    assert_eq!(names(&after, "users", "name").len(), 20);
    assert!(
        fs::symlink_metadata(&config)
            .expect("the link")
            .is_symlink()
    );
}
