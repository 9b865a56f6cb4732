//! `tiphys admin notifications` on files.

use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Command,
    sync::mpsc,
    thread,
};
use tempfile::TempDir;

const CONFIG: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-notifications-cm}
data:
  trigger.on-failed: |
    - when: app.status.operationState?.phase in ['Error', 'Failed']
      oncePer: app.metadata.name
      send: [failed]
    - when: app.nope.x
      send: [failed]
  trigger.broken: "- when: \"not a == 'b'\""
  template.failed: |
    message: "{{.app.metadata.name}} failed: {{.app.status.operationState.message}}"
    email: {subject: Bad news}
  template.quiet: |
    message: ""
    slack: {groupingKey: k}
"#;
const APP: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop}
status: {operationState: {phase: Failed, message: boom}}
"#;

/// The exit code, what is printed, and the messages.
fn run(folder: &TempDir, args: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["admin", "notifications"])
        .args(args.split(' '))
        .args(["--config-map", "cm.yaml", "--secret", ":empty"])
        .current_dir(folder)
        // No cluster of somebody's.
        .env("KUBECONFIG", folder.path().join("none"))
        .output()
        .expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("cm.yaml"), CONFIG).expect("written");
    fs::write(folder.path().join("app.yaml"), APP).expect("written");
    folder
}

#[test]
fn triggers_and_templates_are_tried() {
    let folder = folder();
    let conditions = "\
CONDITION                                                RESULT
app.status.operationState?.phase in ['Error', 'Failed']  true
app.nope.x                                               false
";
    let triggers = "\
NAME       TEMPLATE  CONDITION
on-failed  failed    app.status.operationState?.phase in ['Error', 'Failed']
           failed    app.nope.x
";
    let templates = "\
NAME    PREVIEW
failed  {{.app.metadata.name}} failed: {{.app.status.operationState.message}}
quiet   {\"slack\":{\"groupingKey\":\"k\"}}
";
    let notification = "email:\n  subject: Bad news\nmessage: 'shop failed: boom'\n";
    for (args, code, printed, told) in [
        (
            "trigger run on-failed app.yaml",
            0,
            conditions,
            "when: cannot fetch x from <nil>",
        ),
        ("trigger get", 0, triggers, "trigger.broken: when: "),
        ("trigger get on-failed -o name", 0, "on-failed\n", ""),
        ("template get", 0, templates, ""),
        ("template get failed -o name", 0, "failed\n", ""),
        ("template notify failed app.yaml", 0, notification, ""),
        (
            "trigger run none app.yaml",
            20,
            "",
            "trigger with name 'none' does not exist (found broken, on-failed)",
        ),
        (
            "trigger run broken app.yaml",
            20,
            "",
            "mismatched types bool and string",
        ),
        (
            "template notify failed app.yaml --recipient slack:x",
            20,
            "",
            "notification service 'slack' is not supported",
        ),
    ] {
        let (ended, out, err) = run(&folder, args);
        assert_eq!(out, printed, "{args}: {err}");
        assert!(err.contains(told), "{args}: {err}");
        assert_eq!(ended == 0, code == 0, "{args}: {ended}");
    }
    let (_, out, _) = run(&folder, "trigger get on-failed -o json");
    let read: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        read["on-failed"][1],
        json!({"when": "app.nope.x", "send": ["failed"]})
    );
}

#[test]
fn the_catalogue_is_a_configuration() {
    let folder = folder();
    let output = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["admin", "notifications", "catalog"])
        .output()
        .expect("it starts");
    fs::write(folder.path().join("cm.yaml"), output.stdout).expect("written");
    let (code, out, err) = run(&folder, "trigger get -o name");
    assert_eq!((code, out.lines().count()), (0, 8), "{err}");
    let (code, out, err) = run(&folder, "template notify app-sync-failed app.yaml");
    assert!(
        code == 0 && out.contains("shop could not be synced: boom"),
        "{out}{err}"
    );
    assert_eq!(err, "");
}

#[test]
fn messages_of_one_command_are_one_thread() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, receiver) = mpsc::channel();
    // It ends with the test, whatever it is asked.
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let (mut text, mut part) = (String::new(), vec![0; 8192]);
            while !text.ends_with("token=t") {
                let read = stream.read(&mut part).expect("a request");
                assert!(read > 0, "the request ends too early: {text}");
                text.push_str(&String::from_utf8_lossy(&part[..read]));
            }
            sender.send(text).expect("the test goes on");
            let body = r#"{"ok": true, "channel": "C1", "ts": "1.2"}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).expect("sent");
        }
    });
    let folder = folder();
    let service = format!("  service.slack: '{{token: t, apiURL: \"http://{address}/\"}}'\n");
    fs::write(folder.path().join("cm.yaml"), format!("{CONFIG}{service}")).expect("written");
    let args = "template notify quiet app.yaml --recipient slack:x --recipient slack:x";
    let (ended, _, err) = run(&folder, args);
    assert_eq!(ended, 0, "{err}");
    let asked: Vec<String> = receiver.try_iter().collect();
    let threads: Vec<bool> = asked
        .iter()
        .map(|text| text.contains("thread_ts=1.2&"))
        .collect();
    assert_eq!(threads, [false, true], "{asked:?}");
}
