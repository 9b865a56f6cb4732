//! What a process that knows no manifests, such as one that was started during a deletion, can say
//! of resources that another process compared: that they are gone. Main function: [`mark_gone`].

use super::set_health;
use jiff::Timestamp;
use tiphys_api::{Application, status::ResourceStatus};
use tiphys_apimachinery::ResourceKey;
use tiphys_engine::types::{HealthStatus as HealthCode, SyncStatus};

/// Marks the listed resources that are gone, as a comparison would; what Git does not want either
/// is no longer listed. The rest stays as it was compared.
pub fn mark_gone(app: &mut Application, is_there: impl Fn(&ResourceKey) -> bool, now: Timestamp) {
    let gone =
        |r: &ResourceStatus| !is_there(&ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name));
    let is_told =
        |r: &ResourceStatus| r.status == SyncStatus::OutOfSync.as_str() && !r.requires_pruning;
    // What could not be compared stays unknown. Writing would copy the shared status.
    let is_known = app.status.sync.status != SyncStatus::Unknown.as_str();
    let news = |r: &ResourceStatus| gone(r) && (r.hook || !is_told(r));
    if !(is_known && app.status.resources.iter().any(news)) {
        return;
    }
    let status = &mut *app.status;
    status
        .resources
        .retain(|r| !(gone(r) && (r.hook || r.requires_pruning)));
    let mut any_live = false;
    for row in &mut status.resources {
        if !gone(row) {
            any_live |= !row.hook;
            continue;
        }
        row.status = SyncStatus::OutOfSync.to_string();
        if let Some(health) = &mut row.health {
            health.status = HealthCode::Missing.to_string();
            health.message.clear();
        }
        status.sync.status = SyncStatus::OutOfSync.to_string();
    }
    let any_wanted = status.resources.iter().any(|row| !row.hook);
    if any_wanted && !any_live {
        set_health(status, HealthCode::Missing, "", now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app() -> Application {
        let row = |name: &str, more: serde_json::Value| {
            let mut row = json!({"kind": "ConfigMap", "namespace": "n", "name": name, "version": "v1",
                "status": "Synced", "health": {"status": "Healthy"}});
            let fields = more.as_object().expect("a map").clone();
            row.as_object_mut().expect("a map").extend(fields);
            row
        };
        let app = json!({"metadata": {"name": "a"}, "spec": {}, "status": {
            "sync": {"status": "Synced"},
            "health": {"status": "Healthy", "message": "said before"},
            "resources": [
                row("first", json!({})),
                row("second", json!({})),
                row("hook", json!({"hook": true, "status": ""})),
                row("extra", json!({"requiresPruning": true, "status": "OutOfSync"})),
            ],
        }});
        serde_json::from_value(app).expect("an Application")
    }

    /// The rows, and the state of the whole, when only these are there.
    fn shown(there: &[&str]) -> (Vec<String>, String) {
        shown_of(app(), there)
    }

    fn shown_of(mut app: Application, there: &[&str]) -> (Vec<String>, String) {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        mark_gone(&mut app, |key| there.contains(&key.name.as_str()), now);
        let row = |r: &ResourceStatus| {
            let health = r.health.as_ref().map_or("", |h| &h.status);
            format!("{} {} {health}", r.name, r.status)
        };
        let (status, rows) = (&app.status, app.status.resources.iter().map(row).collect());
        let whole = format!("{} {}", status.sync.status, status.health.status);
        (rows, whole)
    }

    #[test]
    fn what_is_gone_is_marked_and_what_git_does_not_want_is_no_longer_listed() {
        let all = ["first", "second", "hook", "extra"];
        let (rows, whole) = shown(&all);
        assert_eq!(rows.len(), 4);
        assert_eq!(whole, "Synced Healthy");

        let (rows, whole) = shown(&["second"]);
        assert_eq!(rows, ["first OutOfSync Missing", "second Synced Healthy"]);
        assert_eq!(whole, "OutOfSync Healthy", "as a comparison judges it");

        let (rows, whole) = shown(&["hook", "extra"]);
        assert_eq!(
            rows,
            [
                "first OutOfSync Missing",
                "second OutOfSync Missing",
                "hook  Healthy",
                "extra OutOfSync Healthy"
            ]
        );
        assert_eq!(
            whole, "OutOfSync Healthy",
            "what is to be pruned is still there"
        );

        let (_, whole) = shown(&[]);
        assert_eq!(whole, "OutOfSync Missing");

        let mut unknown = app();
        unknown.status.sync.status = SyncStatus::Unknown.to_string();
        let (rows, whole) = shown_of(unknown, &[]);
        assert_eq!((rows.len(), &*whole), (4, "Unknown Healthy"));
    }
}
