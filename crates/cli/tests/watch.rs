//! `app list -w` and `app get -w`: what changes is printed, through a proxy that cuts silent streams,
//! until Ctrl-C.

use crate::{
    idle_streams::{Proxy, Session},
    scenarios::world::{World, app_path, config_map},
};
use serde_json::{Deserializer, Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread,
};
use tiphys_testkit::{PATIENCE, Repo, eventually};

/// A command that goes on, and what it has printed so far.
struct Watch {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Watch {
    fn start(session: &Session<'_>, words: &[&str]) -> Self {
        let mut child = session.start(words);
        let mut out = child.stdout.take().expect("a pipe");
        let said = Arc::new(Mutex::new(String::new()));
        let hear = Arc::clone(&said);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                hear.lock().expect("no panic").push_str(&text);
            }
        });
        Self { child, said }
    }

    fn said(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    /// Waits until it has printed this.
    #[track_caller]
    fn until(&self, text: &str) {
        eventually(PATIENCE, &format!("{text:?} is printed"), || {
            let said = self.said();
            if said.contains(text) {
                Ok(())
            } else {
                Err(said)
            }
        });
    }

    /// Waits until it ends: its exit code, and what it wrote to standard error.
    #[track_caller]
    fn ended(&mut self) -> (Option<i32>, String) {
        let code = eventually(PATIENCE, "the command ends", || {
            let ended = self.child.try_wait().expect("it is our child");
            ended
                .map(|status| status.code())
                .ok_or_else(|| "it runs".to_owned())
        });
        let mut errors = String::new();
        let mut pipe = self.child.stderr.take().expect("a pipe");
        pipe.read_to_string(&mut errors).expect("text");
        (code, errors)
    }

    /// Ctrl-C.
    #[track_caller]
    fn interrupt(&mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("kill is installed").success());
        self.ended()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cells below a header, without those of other rows.
fn column(table: &str, name: &str) -> Vec<String> {
    let header = table.lines().next().unwrap_or_default();
    let at = header.split_whitespace().position(|cell| cell == name);
    let at = at.unwrap_or_else(|| panic!("no {name}: {table}"));
    let cell = |line: &str| line.split_whitespace().nth(at).map(str::to_owned);
    table.lines().skip(1).filter_map(cell).collect()
}

#[test]
fn what_changes_is_printed_until_ctrl_c() {
    let Some(world) = World::embedded("watch") else {
        return;
    };
    let repo = Repo::with(&[("web/settings.yaml", config_map("settings", "one").as_str())]);
    world.deploy("web", &repo.url(), "web", &Value::Null);
    world.until("web", "OutOfSync", |app| {
        app["status"]["sync"]["status"] == "OutOfSync"
    });
    let proxy = Proxy::start(world.tiphys.url.trim_start_matches("http://"));
    let session = Session::new(&world, &proxy, "session");
    let list = ["app", "list", "--watch", "-o"];
    let mut table = Watch::start(&session, &["app", "list", "-w"]);
    let mut documents = Watch::start(&session, &[&list[..], &["json"]].concat());
    let mut one = Watch::start(&session, &["app", "get", "web", "-w", "--grpc-web"]);
    let mut left = Watch {
        child: session.start(&[&list[..], &["name"]].concat()),
        said: Arc::default(),
    };
    for watch in [&table, &documents, &one] {
        watch.until("OutOfSync");
    }
    // Somebody who reads only the first line, as `head -1` does.
    let mut first = String::new();
    let pipe = left.child.stdout.take().expect("a pipe");
    let read = BufReader::new(pipe).read_line(&mut first);
    read.expect("a line");
    assert_eq!(first, "argocd/web\n");

    // Streams have been cut since, and others were opened.
    proxy.until_more(12);
    world.sync("web", &json!({"syncOptions": ["CreateNamespace=true"]}));
    table.until("  Synced");
    documents.until("\"Synced\"");
    one.until("TIMESTAMP");
    one.until("ConfigMap");
    let (code, errors) = left.ended();
    assert_eq!(code, Some(0), "nobody reads it any more: {errors}");

    // It is deleted while nobody can look.
    proxy.close();
    world.kube.delete(&app_path("web"));
    eventually(PATIENCE, "web is gone", || {
        world
            .get_app("web")
            .map_or(Ok(()), |app| Err(app.to_string()))
    });
    proxy.reopen();
    table.until("Deleted");
    documents.until("deletionTimestamp");
    // There is nothing left to look at.
    let (code, errors) = one.ended();
    assert_eq!(code, Some(0), "{errors}");
    one.until("Application 'argocd/web' deleted\n");

    for watch in [&mut table, &mut documents] {
        let (code, errors) = watch.interrupt();
        assert_eq!(code, Some(0), "{errors}");
    }
    let said = table.said();
    let mut states = column(&said, "STATUS");
    states.dedup();
    assert_eq!(states, ["OutOfSync", "Synced", "Deleted"], "{said}");
    assert_eq!(said.matches("NAME ").count(), 1, "one header: {said}");
    let said = documents.said();
    let read = Deserializer::from_str(&said).into_iter::<Value>();
    let read: Vec<Value> = read.collect::<Result<_, _>>().expect("documents");
    assert!(read.len() >= 3, "{said}");
    for app in &read {
        assert_eq!(app["kind"], "Application");
        assert_eq!(app["metadata"]["name"], "web");
    }
    let is_deleted = |app: &Value| app["metadata"]["deletionTimestamp"].is_string();
    assert!(!is_deleted(&read[0]));
    assert!(read.last().is_some_and(is_deleted), "{said}");
}

/// Nothing changes here, so nothing is printed that could fail: only Linux tells that nobody reads.
#[cfg(target_os = "linux")]
#[test]
fn a_watch_that_nobody_reads_ends_at_once() {
    let Some(world) = World::embedded("watch-unread") else {
        return;
    };
    let proxy = Proxy::start(world.tiphys.url.trim_start_matches("http://"));
    let session = Session::new(&world, &proxy, "session");
    let mut watch = Watch {
        child: session.start(&["app", "list", "-w"]),
        said: Arc::default(),
    };
    let mut header = String::new();
    let pipe = watch.child.stdout.take().expect("a pipe");
    let read = BufReader::new(pipe).read_line(&mut header);
    read.expect("a line");
    assert!(header.starts_with("NAME "), "{header}");
    let (code, errors) = watch.ended();
    assert_eq!(code, Some(0), "{errors}");
}
