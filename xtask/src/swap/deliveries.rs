//! Notifications under the genuine controller and ours: the same changes of Applications lead to
//! the same deliveries, and a swap delivers nothing again. Main function: [`swap`].

use super::{
    World,
    roles::{Maker, Role},
};
use anyhow::{Context, ensure};
use axum::{Router, extract::State};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use tiphys_testkit::{apps_path, namespaced};
use tokio::{net::TcpListener, runtime::Runtime};

const ROLE: Role = Role::Notifications;
const APPLICATIONS: usize = 20;
/// For how long nothing may move.
const QUIET: Duration = Duration::from_secs(3);

type Texts = Arc<Mutex<Vec<String>>>;

/// A service that records what it is told.
struct Hook {
    url: String,
    texts: Texts,
    _runtime: Runtime,
}

impl Hook {
    fn start() -> anyhow::Result<Self> {
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let texts = Texts::default();
        let app = Router::new()
            .fallback(record)
            .with_state(Arc::clone(&texts));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Ok(Self {
            url,
            texts,
            _runtime: runtime,
        })
    }

    /// What was told about a batch, sorted: programs tell in parallel.
    fn told(&self, mark: &str) -> Vec<String> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told: Vec<String> = texts
            .iter()
            .filter(|text| text.contains(mark))
            .map(|text| text.replace(mark, ""))
            .collect();
        told.sort();
        told
    }
}

async fn record(State(texts): State<Texts>, body: String) {
    let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
    texts.push(body);
}

/// Returns how much differs.
///
/// # Errors
/// If a controller does not come to rest, or the genuine one tells nothing.
pub fn swap(world: &mut World, changes: usize) -> anyhow::Result<usize> {
    let hook = Hook::start()?;
    configure(world, &hook.url);
    let rounds = changes.div_ceil(APPLICATIONS);
    world.installation.put(ROLE, Maker::Genuine)?;
    let theirs = play(world, &hook, "-na", rounds)?;
    ensure!(!theirs.is_empty(), "the genuine controller tells nothing");
    println!(
        "{} changes, {} deliveries by the genuine controller",
        rounds * APPLICATIONS,
        theirs.len()
    );
    let before = annotations(world, "-na")?;
    world.installation.put(ROLE, Maker::Ours)?;
    let ours = play(world, &hook, "-nb", rounds)?;
    let mut found = report("the same changes", &theirs, &ours);
    found += report("told again", &theirs, &hook.told("-na"));
    found += report("remembered", &before, &annotations(world, "-na")?);

    let before = annotations(world, "-nb")?;
    world.installation.put(ROLE, Maker::Genuine)?;
    // It works: it tells of others.
    let last = play(world, &hook, "-nc", rounds)?;
    found += report("the same changes once more", &theirs, &last);
    found += report("told again after it was put back", &ours, &hook.told("-nb"));
    let after = annotations(world, "-nb")?;
    found += report("remembered after it was put back", &before, &after);
    world.installation.stop();
    Ok(found)
}

fn configure(world: &World, url: &str) {
    let body = "{{.app.metadata.name}} {{.app.status.health.status}} {{.app.status.sync.revision}}";
    let template = format!("webhook:\n  hook:\n    method: POST\n    body: '{body}'\n");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-notifications-cm"},
        "data": {
            "service.webhook.hook": format!("url: {url}\n"),
            "template.state": template,
            "trigger.on-degraded":
                "- when: app.status.health.status == 'Degraded'\n  send: [state]\n",
            "trigger.on-deployed":
                "- when: app.status.sync.status == 'Synced'\n  oncePer: app.status.sync.revision\n  send: [state]\n",
        },
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-notifications-secret"},
    });
    let (maps, secrets) = ("configmaps", "secrets");
    world.kube.create(&namespaced("v1", "argocd", maps), &map);
    world
        .kube
        .create(&namespaced("v1", "argocd", secrets), &secret);
}

fn name(n: usize, mark: &str) -> String {
    format!("told{n:02}{mark}")
}

/// Creates Applications and changes their states in rounds; what was told.
fn play(world: &World, hook: &Hook, mark: &str, rounds: usize) -> anyhow::Result<Vec<String>> {
    for n in 0..APPLICATIONS {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name(n, mark), "annotations": {
                "notifications.argoproj.io/subscribe.on-degraded.hook": "",
                "notifications.argoproj.io/subscribe.on-deployed.hook": "",
            }},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.test/r", "path": "."},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            },
            // Triggers can be evaluated from the beginning.
            "status": {"sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"}},
        });
        world.kube.create(&apps_path(), &app);
    }
    for round in 0..rounds {
        let status = match round % 3 {
            0 => json!({"health": {"status": "Degraded"}}),
            1 => json!({"health": {"status": "Healthy"}}),
            _ => json!({"sync": {"status": "Synced", "revision": format!("r{round}")}}),
        };
        let before = hook.told(mark).len();
        for n in 0..APPLICATIONS {
            let path = format!("{}/{}", apps_path(), name(n, mark));
            world.kube.patch(&path, &json!({"status": status}));
        }
        // Health tells nothing when it is good.
        let due = if round % 3 == 1 { 0 } else { APPLICATIONS };
        world.wait(&format!("round {round} of {mark} is told"), || {
            let told = hook.told(mark).len() - before;
            ensure!(told >= due, "{told} of {due} deliveries");
            if due == 0 {
                // That it was seen shows in what is no longer remembered.
                let remembered = annotations(world, mark)?;
                let still = remembered.iter().find(|keys| keys.contains("on-degraded"));
                ensure!(still.is_none(), "it is remembered: {still:?}");
            }
            Ok(())
        })?;
        quiet(world, hook, mark)?;
    }
    Ok(hook.told(mark))
}

/// Waits until nothing more is told, and nothing is remembered.
fn quiet(world: &World, hook: &Hook, mark: &str) -> anyhow::Result<()> {
    world.wait("nothing more is told", || {
        let before = (hook.told(mark), annotations(world, mark)?);
        thread::sleep(QUIET);
        let after = (hook.told(mark), annotations(world, mark)?);
        ensure!(before == after, "it goes on");
        Ok(())
    })
}

/// By Application, what the controllers remember of it.
fn annotations(world: &World, mark: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for n in 0..APPLICATIONS {
        let path = format!("{}/{}", apps_path(), name(n, mark));
        let app = world.kube.find(&path).with_context(|| path.clone())?;
        let key = "notified.notifications.argoproj.io";
        let text = app["metadata"]["annotations"][key].as_str();
        let remembered: Value = serde_json::from_str(text.unwrap_or("{}"))?;
        let keys = remembered.as_object().into_iter().flatten();
        let keys: Vec<&String> = keys.map(|(key, _)| key).collect();
        all.push(format!("{}: {keys:?}", name(n, "")));
    }
    Ok(all)
}

/// Prints what is in one of two lists only; how much that is.
fn report(what: &str, before: &[String], after: &[String]) -> usize {
    let mut lines = Vec::new();
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(a), Some(b)) if a == b => {
                old.next();
                new.next();
            }
            (Some(a), b) if b.is_none_or(|b| a < b) => {
                lines.push(format!("only before: {a}"));
                old.next();
            }
            (_, Some(b)) => {
                lines.push(format!("only afterwards: {b}"));
                new.next();
            }
            (Some(_), None) => break,
        }
    }
    println!(
        "{}, {what}: {} lines, {} differences",
        ROLE.name(),
        after.len(),
        lines.len()
    );
    for line in lines.iter().take(200) {
        println!("  {line}");
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::report;

    #[test]
    fn what_is_in_one_list_only_is_counted() {
        let list = |items: &[&str]| {
            items
                .iter()
                .map(|item| (*item).to_owned())
                .collect::<Vec<_>>()
        };
        let both = list(&["a", "b", "b"]);
        assert_eq!(report("x", &both, &both), 0);
        assert_eq!(report("x", &both, &list(&["a", "b"])), 1);
        assert_eq!(report("x", &both, &list(&["a", "b", "b", "b"])), 1);
        assert_eq!(report("x", &both, &list(&["b", "b", "c"])), 2);
        assert_eq!(report("x", &both, &[]), 3);
    }
}
