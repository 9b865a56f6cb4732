//! The summary of one Application that `app get`, `app wait` and `app sync` print.

use super::{table, time};
use jiff::Timestamp;
use std::borrow::Cow;
use tiphys_api::{
    Application, operation::OperationState, rpc::application::ApplicationSyncWindowsResponse,
    source::ApplicationSource,
};
use tiphys_engine::spec;

fn line(label: &str, value: &str) -> String {
    format!("{label:<20}{value}\n")
}

/// `namespace/name`.
pub fn qualified_name(app: &Application) -> String {
    let m = &app.metadata;
    if m.namespace.is_empty() {
        m.name.clone()
    } else {
        format!("{}/{}", m.namespace, m.name)
    }
}

/// The destination cluster, by URL or else by name.
pub fn server(app: &Application) -> &str {
    let destination = &app.spec.destination;
    if destination.server.is_empty() {
        &destination.name
    } else {
        &destination.server
    }
}

/// The first source; for a hydrated Application the one it is synced from.
pub fn source(app: &Application) -> ApplicationSource {
    let first = spec::sources(&app.spec).into_iter().next();
    first.map(Cow::into_owned).unwrap_or_default()
}

pub fn has_many_sources(app: &Application) -> bool {
    spec::has_several(&app.spec)
}

pub fn is_automated(app: &Application) -> bool {
    let automated = app
        .spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref());
    automated.is_some_and(|a| a.enabled.unwrap_or(true))
}

pub fn prunes(app: &Application) -> bool {
    let automated = app
        .spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref());
    automated.and_then(|a| a.prune).unwrap_or(false)
}

fn source_lines(source: &ApplicationSource) -> String {
    let mut out = line("- Repo:", &source.repo_url) + &line("  Target:", &source.target_revision);
    if !source.path.is_empty() {
        out += &line("  Path:", &source.path);
    }
    if !source.ref_.is_empty() {
        out += &line("  Ref:", &source.ref_);
    }
    if let Some(helm) = source.helm.as_ref().filter(|h| !h.value_files.is_empty()) {
        out += &line("  Helm Values:", &helm.value_files.join(","));
    }
    if let Some(kustomize) = source
        .kustomize
        .as_ref()
        .filter(|k| !k.name_prefix.is_empty())
    {
        out += &line("  Name Prefix:", &kustomize.name_prefix);
    }
    out
}

fn windows_lines(windows: Option<&ApplicationSyncWindowsResponse>) -> String {
    let Some(w) = windows.filter(|w| !w.assigned_windows.is_empty()) else {
        return line("SyncWindow:", "Sync Allowed");
    };
    let allows = |list: &[tiphys_api::rpc::application::ApplicationSyncWindow]| {
        list.iter().filter(|w| w.kind == "allow").count()
    };
    let denied = w.active_windows.iter().any(|w| w.kind == "deny");
    let waiting = allows(&w.active_windows) == 0 && allows(&w.assigned_windows) > 0;
    let status = match (denied || waiting, w.can_sync) {
        (false, _) => "Sync Allowed",
        (true, true) => "Manual Allowed",
        (true, false) => "Sync Denied",
    };
    let assigned: Vec<String> = w
        .assigned_windows
        .iter()
        .map(|w| format!("{}:{}:{}", w.kind, w.schedule, w.duration))
        .collect();
    line("SyncWindow:", status) + &line("Assigned Windows:", &assigned.join(","))
}

/// A commit by its hash, complete or shortened.
fn is_commit(revision: &str) -> bool {
    revision.len() >= 7 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

fn sync_status(app: &Application) -> String {
    let status = &app.status.sync;
    let target = source(app).target_revision;
    let mut text = match status.status.as_str() {
        "Synced" => format!("Synced to {target}"),
        "OutOfSync" => format!("OutOfSync from {target}"),
        other => other.to_owned(),
    };
    if !is_commit(&target)
        && status.revision.len() > 7
        && let Some(short) = status.revision.get(..7)
    {
        text += &format!(" ({short})");
    }
    text
}

fn sources_lines(app: &Application) -> String {
    if has_many_sources(app) {
        let sources = app.spec.sources.iter().map(source_lines);
        format!("Sources:\n{}", sources.collect::<String>())
    } else {
        format!("Source:\n{}", source_lines(&source(app)))
    }
}

/// The template of an ApplicationSet.
pub fn template(app: &Application, name: &str, health: &str) -> String {
    let mut out = line("Name:", name);
    out += &line("Project:", spec::project_name(app));
    out += &line("Server:", server(app));
    out += &line("Namespace:", &app.spec.destination.namespace);
    out += &line("Health Status:", health);
    out += &sources_lines(app);
    let policy = match (is_automated(app), prunes(app)) {
        (false, _) => "<none>",
        (true, false) => "Automated",
        (true, true) => "Automated (Prune)",
    };
    out + &line("SyncPolicy:", policy)
}

pub fn application(
    app: &Application,
    url: &str,
    windows: Option<&ApplicationSyncWindowsResponse>,
) -> String {
    let mut out = line("Name:", &qualified_name(app));
    out += &line("Project:", spec::project_name(app));
    out += &line("Server:", server(app));
    out += &line("Namespace:", &app.spec.destination.namespace);
    out += &line("URL:", url);
    out += &sources_lines(app);
    out += &windows_lines(windows);
    let policy = match (is_automated(app), prunes(app)) {
        (false, _) => "Manual",
        (true, false) => "Automated",
        (true, true) => "Automated (Prune)",
    };
    out += &line("Sync Policy:", policy);
    out += &line("Sync Status:", &sync_status(app));
    out += &line("Health Status:", &app.status.health.status);
    out + &hydrator_lines(app)
}

/// What the source is rendered from, and how that went. Argo CD's CLI shows nothing of it.
fn hydrator_lines(app: &Application) -> String {
    let Some(hydrator) = &app.spec.source_hydrator else {
        return String::new();
    };
    let to = spec::hydrate_to(hydrator);
    let mut out = format!("Hydrator:\n{}", source_lines(&spec::dry_source(hydrator)));
    out += &line("  Branch:", &to.target_revision);
    let Some(operation) = &app.status.source_hydrator.current_operation else {
        return out + &line("  Phase:", "");
    };
    out += &line("  Phase:", &operation.phase);
    if !operation.message.is_empty() {
        out += &line("  Message:", &operation.message);
    }
    let shas = [
        ("  Dry Commit:", &operation.dry_sha),
        ("  Hydrated Commit:", &operation.hydrated_sha),
    ];
    for (label, sha) in shas.into_iter().filter(|(_, sha)| !sha.is_empty()) {
        out += &line(label, sha);
    }
    out
}

pub fn conditions(app: &Application) -> String {
    let rows = app.status.conditions.iter().map(|c| {
        vec![
            c.type_.clone(),
            c.message.clone(),
            time::text(c.last_transition_time.as_ref()),
        ]
    });
    table::table(&["CONDITION", "MESSAGE", "LAST TRANSITION"], rows)
}

pub fn operation(state: &OperationState, now: Timestamp) -> String {
    let mut out = String::new();
    if let Some(result) = &state.sync_result {
        out += &line("Operation:", "Sync");
        let many = !result.sources.is_empty() && !result.revisions.is_empty();
        out += &line(
            "Sync Revision:",
            &if many {
                result.revisions.join(", ")
            } else {
                result.revision.clone()
            },
        );
    }
    let (start, end) = (state.started_at.as_ref(), state.finished_at.as_ref());
    out += &line("Phase:", &state.phase);
    out += &line("Start:", &time::text(start));
    out += &line("Finished:", &time::text(end));
    out += &line("Duration:", &time::duration(start, end, now));
    if !state.message.is_empty() {
        out += &line("Message:", &state.message);
    }
    out
}

/// Helm parameters, for `--show-params`.
pub fn parameters(source: &ApplicationSource) -> String {
    const LONGEST: usize = 80;
    let shorten = |text: &str| {
        if text.chars().count() <= LONGEST {
            return text.to_owned();
        }
        text.chars().take(LONGEST - 3).collect::<String>() + "..."
    };
    let Some(helm) = &source.helm else {
        return String::new();
    };
    let rows = helm
        .parameters
        .iter()
        .map(|p| vec![p.name.clone(), shorten(&p.value)]);
    format!("\n\n{}", table::table(&["NAME", "VALUE"], rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_api::rpc::application::ApplicationSyncWindow;

    fn app() -> Application {
        serde_json::from_value(json!({
            "metadata": {"name": "guestbook", "namespace": "argocd"},
            "spec": {
                "source": {"repoURL": "https://example.com/r.git", "path": "guestbook", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "demo"},
                "syncPolicy": {"automated": {"prune": true}},
            },
            "status": {"sync": {"status": "Synced", "revision": "0123456789abcdef"}, "health": {"status": "Healthy"}},
        }))
        .expect("an Application")
    }

    #[test]
    fn the_block_of_an_application() {
        let expected = "\
Name:               argocd/guestbook
Project:            default
Server:             https://kubernetes.default.svc
Namespace:          demo
URL:                https://localhost/applications/guestbook
Source:
- Repo:             https://example.com/r.git
  Target:           HEAD
  Path:             guestbook
SyncWindow:         Sync Allowed
Sync Policy:        Automated (Prune)
Sync Status:        Synced to HEAD (0123456)
Health Status:      Healthy
";
        assert_eq!(
            application(&app(), "https://localhost/applications/guestbook", None),
            expected
        );
    }

    #[test]
    fn a_hydrator_is_told_of() {
        let mut app = app();
        app.spec.source = None;
        let hydrator = json!({
            "drySource": {"repoURL": "https://example.com/r.git", "path": "src", "targetRevision": "main"},
            "syncSource": {"targetBranch": "env/dev", "path": "apps/web"},
            "hydrateTo": {"targetBranch": "env/next"},
        });
        app.spec.source_hydrator = serde_json::from_value(hydrator).expect("a hydrator");
        let operation =
            json!({"phase": "Failed", "message": "Failed to hydrate: no", "drySHA": "0123"});
        app.status.source_hydrator.current_operation =
            serde_json::from_value(operation).expect("an operation");
        let expected = "\
Hydrator:
- Repo:             https://example.com/r.git
  Target:           main
  Path:             src
  Branch:           env/next
  Phase:            Failed
  Message:          Failed to hydrate: no
  Dry Commit:       0123
";
        assert_eq!(hydrator_lines(&app), expected);
        let text = application(&app, "https://localhost/applications/guestbook", None);
        assert!(
            text.contains("Sync Status:        Synced to env/dev (0123456)\n"),
            "{text}"
        );
        assert!(text.contains("- Repo:             https://example.com/r.git\n  Target:           env/dev\n  Path:             apps/web\n"), "{text}");
    }

    #[test]
    fn a_revision_that_is_a_commit_is_not_repeated() {
        let mut app = app();
        if let Some(source) = &mut app.spec.source {
            source.target_revision = "0123456789".into();
        }
        assert_eq!(sync_status(&app), "Synced to 0123456789");
    }

    #[test]
    fn windows() {
        let window = |kind: &str| ApplicationSyncWindow {
            kind: kind.into(),
            schedule: "* * * * *".into(),
            duration: "1h".into(),
            ..Default::default()
        };
        let text = |active: &[&str], assigned: &[&str], can_sync| {
            let list = |kinds: &[&str]| kinds.iter().map(|k| window(k)).collect();
            let w = ApplicationSyncWindowsResponse {
                active_windows: list(active),
                assigned_windows: list(assigned),
                can_sync,
            };
            windows_lines(Some(&w)).lines().next().unwrap_or_default()[20..].to_owned()
        };
        assert_eq!(text(&[], &[], true), "Sync Allowed");
        assert_eq!(text(&["allow"], &["allow"], true), "Sync Allowed");
        assert_eq!(text(&["deny"], &["deny"], false), "Sync Denied");
        assert_eq!(text(&[], &["allow"], true), "Manual Allowed");
        assert_eq!(text(&[], &["deny"], true), "Sync Allowed");
    }

    #[test]
    fn an_operation_that_has_not_ended() {
        let state = OperationState {
            phase: "Running".into(),
            started_at: Some(Timestamp::UNIX_EPOCH.into()),
            ..Default::default()
        };
        let now = Timestamp::from_second(5).expect("a time");
        let text = operation(&state, now);
        assert!(
            text.contains("Finished:           <nil>\nDuration:           5s\n"),
            "{text}"
        );
        assert!(!text.contains("Operation:"), "{text}");
    }
}
