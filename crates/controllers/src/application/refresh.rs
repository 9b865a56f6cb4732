//! Decides whether an Application must be compared again, and how thoroughly.
//!
//! Main type: [`Level`]. Pure: the Application, the reasons and the time are arguments.

use crate::runtime::Merge;
use jiff::{SignedDuration, Timestamp};
use std::{fmt, time::Instant};
use tiphys_api::{Application, constants};
use tiphys_repo::Since;

/// How thorough a comparison is. Ordered: a higher level includes the lower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only the resource tree changed.
    #[default]
    Tree = 0,
    /// With the manifests of the last comparison.
    Recent = 1,
    /// With the manifests of the newest revision; its look-up may be a few seconds old.
    Latest = 2,
    /// With the manifests of the newest revision, looked up now.
    ForceResolve = 3,
}

/// Why a key is in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// Compare at least this thoroughly; `None`: only check whether anything is due.
    pub level: Option<Level>,
}

impl Reason {
    pub const RECONCILE: Self = Self { level: None };

    pub const fn at(level: Level) -> Self {
        Self { level: Some(level) }
    }
}

impl Merge for Reason {
    fn merge(&mut self, other: Self) {
        self.level = self.level.max(other.level);
    }
}

/// The reason for a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// The annotation `argocd.argoproj.io/refresh`.
    Annotation {
        hard: bool,
    },
    /// The reason that came with its key from the queue.
    #[default]
    Queue,
    SourceDiffers,
    DestinationDiffers,
    IgnoreDifferencesDiffers,
    NamespaceMetadataDiffers,
    NeverReconciled,
    Expired,
    /// `timeout.hard.reconciliation` has passed.
    HardExpired,
    /// The process has just started: readers have neither a tree nor differences.
    NothingKnown,
    OperationEnded,
    Deletion,
}

impl Cause {
    /// Someone requested it: it is made during an operation as well.
    pub fn is_requested(self) -> bool {
        matches!(self, Self::Annotation { .. } | Self::Queue)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Annotation { hard: true } => "hard refresh requested",
            Self::Annotation { hard: false } => "normal refresh requested",
            Self::Queue => "controller refresh requested",
            Self::SourceDiffers => "spec.source differs",
            Self::DestinationDiffers => "spec.destination differs",
            Self::IgnoreDifferencesDiffers => "spec.ignoreDifferences differs",
            Self::NamespaceMetadataDiffers => "spec.syncPolicy.managedNamespaceMetadata differs",
            Self::NeverReconciled => "never reconciled",
            Self::Expired => "comparison expired",
            Self::HardExpired => "hard comparison expired",
            Self::NothingKnown => "nothing is known yet",
            Self::OperationEnded => "the operation ended",
            Self::Deletion => "its resources are being deleted",
        })
    }
}

/// A comparison to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refresh {
    pub level: Level,
    /// No cached result may be used.
    pub hard: bool,
    /// The Application's record requires it: a look-up after the record arrived is recent enough.
    pub by_record: bool,
    pub cause: Cause,
}

impl Refresh {
    /// Whether known revisions are looked up again.
    pub fn resolves(&self) -> bool {
        self.hard || self.level >= Level::ForceResolve
    }

    /// How old the look-up of a revision may be. `seen`: when the record arrived.
    pub fn since(&self, seen: Instant) -> Since {
        match (self.resolves(), self.by_record) {
            (false, _) => Since::Recently,
            (true, true) => Since::At(seen),
            (true, false) => Since::now(),
        }
    }
}

/// How long a comparison stays valid.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    /// `timeout.reconciliation` with this Application's share of the jitter; zero: never expires.
    pub soft: SignedDuration,
    /// `timeout.hard.reconciliation`; zero: never expires.
    pub hard: SignedDuration,
}

/// The comparison that is due, if any.
pub fn needed(
    app: &Application,
    reason: Reason,
    expiry: Expiry,
    now: Timestamp,
) -> Option<Refresh> {
    let refresh = |level, hard, cause| {
        Some(Refresh {
            level,
            hard,
            cause,
            by_record: level == Level::ForceResolve,
        })
    };
    if let Some(kind) = app.metadata.annotations.get(constants::REFRESH) {
        let hard = kind == "hard";
        return refresh(Level::ForceResolve, hard, Cause::Annotation { hard });
    }
    let compared = &app.status.sync.compared_to;
    if app.status.reconciled_at.is_some() && !compared.is_of(&app.spec) {
        return refresh(Level::ForceResolve, false, Cause::SourceDiffers);
    }
    let Some(reconciled) = app.status.reconciled_at else {
        return refresh(Level::Latest, false, Cause::NeverReconciled);
    };
    let age = now.duration_since(reconciled.timestamp());
    if !expiry.hard.is_zero() && age > expiry.hard {
        return refresh(Level::Latest, true, Cause::HardExpired);
    }
    if !expiry.soft.is_zero() && age > expiry.soft {
        return refresh(Level::Latest, false, Cause::Expired);
    }
    if app.spec.destination != compared.destination {
        return refresh(Level::Latest, false, Cause::DestinationDiffers);
    }
    if app.spec.ignore_differences != compared.ignore_differences {
        return refresh(Level::Latest, false, Cause::IgnoreDifferencesDiffers);
    }
    let wanted = app
        .spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.managed_namespace_metadata.as_ref());
    let synced = app
        .status
        .operation_state
        .as_ref()
        .and_then(|s| s.sync_result.as_ref())
        .map(|r| r.managed_namespace_metadata.as_ref());
    if synced.is_some_and(|synced| synced != wanted)
        && reason.level.is_none_or(|l| l < Level::Latest)
        && wanted.is_some()
    {
        return refresh(Level::Latest, false, Cause::NamespaceMetadataDiffers);
    }
    // Not triggered by the record, which may be old.
    reason.level.map(|level| Refresh {
        level,
        cause: Cause::Queue,
        ..Refresh::default()
    })
}

/// When to reconcile again if nothing happens.
pub fn next_expiry(
    app: &Application,
    expiry: Expiry,
    now: Timestamp,
) -> Option<std::time::Duration> {
    let reconciled = app.status.reconciled_at?.timestamp();
    [expiry.soft, expiry.hard]
        .into_iter()
        .filter(|e| !e.is_zero())
        .map(|e| (e - now.duration_since(reconciled)).max(SignedDuration::from_secs(1)))
        .min()
        .and_then(|d| d.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const EXPIRY: Expiry = Expiry {
        soft: SignedDuration::from_secs(120),
        hard: SignedDuration::ZERO,
    };

    fn app(change: serde_json::Value) -> Application {
        let mut app = json!({
            "metadata": {"name": "a"},
            "spec": {"project": "default", "source": {"repoURL": "r", "path": "p"}, "destination": {"server": "s"}},
            "status": {"reconciledAt": "2026-01-01T00:00:00Z", "sync": {"status": "Synced", "comparedTo": {"source": {"repoURL": "r", "path": "p"}, "destination": {"server": "s"}}}}
        });
        app = tiphys_apimachinery::patch::json_merge::apply(&app, &change).expect("maps");
        serde_json::from_value(app).expect("an Application")
    }

    #[test]
    fn c74_c75_c76_c77_each_reason_has_its_level() {
        let soon: Timestamp = "2026-01-01T00:00:10Z".parse().expect("a time");
        let late: Timestamp = "2026-01-01T00:03:00Z".parse().expect("a time");
        for (change, reason, now, expected) in [
            (json!({}), Reason::RECONCILE, soon, None),
            (
                json!({}),
                Reason::at(Level::Recent),
                soon,
                Some((Level::Recent, false)),
            ),
            (
                json!({}),
                Reason::RECONCILE,
                late,
                Some((Level::Latest, false)),
            ),
            (
                json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
                Reason::RECONCILE,
                soon,
                Some((Level::ForceResolve, false)),
            ),
            (
                json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}),
                Reason::RECONCILE,
                soon,
                Some((Level::ForceResolve, true)),
            ),
            (
                json!({"spec": {"source": {"path": "q"}}}),
                Reason::RECONCILE,
                soon,
                Some((Level::ForceResolve, false)),
            ),
            (
                json!({"spec": {"destination": {"server": "t"}}}),
                Reason::RECONCILE,
                soon,
                Some((Level::Latest, false)),
            ),
            (
                json!({"spec": {"ignoreDifferences": [{"kind": "A"}]}}),
                Reason::RECONCILE,
                soon,
                Some((Level::Latest, false)),
            ),
            (
                json!({"status": {"reconciledAt": null}}),
                Reason::RECONCILE,
                soon,
                Some((Level::Latest, false)),
            ),
        ] {
            let found =
                needed(&app(change.clone()), reason, EXPIRY, now).map(|r| (r.level, r.hard));
            assert_eq!(found, expected, "{change}");
        }
    }

    #[test]
    fn what_a_record_calls_for_is_looked_up_after_it_came() {
        let seen = Instant::now();
        let asked = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        let now = "2026-01-01T00:00:10Z".parse().expect("a time");
        let due = |change, reason| needed(&app(change), reason, EXPIRY, now).expect("due");
        assert_eq!(due(asked, Reason::RECONCILE).since(seen), Since::At(seen));
        assert_eq!(
            due(json!({}), Reason::at(Level::Latest)).since(seen),
            Since::Recently
        );
        // Not triggered by a record but by a clock, or the end of an operation.
        let reason = needed(
            &app(json!({})),
            Reason::at(Level::ForceResolve),
            EXPIRY,
            now,
        )
        .expect("due");
        for refresh in [
            Refresh {
                hard: true,
                ..Refresh::default()
            },
            reason,
        ] {
            assert!(
                matches!(refresh.since(seen), Since::At(at) if at >= seen),
                "{refresh:?}"
            );
        }
    }

    #[test]
    fn metadata_of_the_namespace_that_was_not_synced_is_a_reason() {
        let blue = json!({"labels": {"color": "blue"}});
        let red = json!({"labels": {"color": "red"}});
        let because = |wanted: &serde_json::Value, result: serde_json::Value, reason| {
            let state = json!({"phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z", "operation": {}, "syncResult": result});
            let change = json!({"spec": {"syncPolicy": {"managedNamespaceMetadata": wanted}}, "status": {"operationState": state}});
            needed(
                &app(change),
                reason,
                EXPIRY,
                "2026-01-01T00:00:10Z".parse().expect("a time"),
            )
            .map(|r| (r.level, r.cause.to_string()))
        };
        let synced = |metadata: &serde_json::Value| json!({"revision": "r", "managedNamespaceMetadata": metadata});
        let differs = Some((
            Level::Latest,
            "spec.syncPolicy.managedNamespaceMetadata differs".to_owned(),
        ));
        assert_eq!(because(&blue, synced(&red), Reason::RECONCILE), differs);
        assert_eq!(
            because(&blue, synced(&json!(null)), Reason::at(Level::Recent)),
            differs
        );
        assert_eq!(because(&blue, synced(&blue), Reason::RECONCILE), None);
        assert_eq!(
            because(&json!(null), synced(&red), Reason::RECONCILE),
            None,
            "nothing is wanted any more"
        );
        assert_eq!(
            because(&blue, json!(null), Reason::RECONCILE),
            None,
            "it was never synced"
        );
        for level in [Level::Latest, Level::ForceResolve] {
            let asked = Some((level, "controller refresh requested".to_owned()));
            assert_eq!(
                because(&blue, synced(&red), Reason::at(level)),
                asked,
                "that does as much"
            );
        }
    }

    #[test]
    fn c76_a_timeout_of_zero_never_expires() {
        let far: Timestamp = "2027-01-01T00:00:00Z".parse().expect("a time");
        let never = Expiry {
            soft: SignedDuration::ZERO,
            hard: SignedDuration::ZERO,
        };
        assert_eq!(needed(&app(json!({})), Reason::RECONCILE, never, far), None);
        assert_eq!(next_expiry(&app(json!({})), never, far), None);
        let due = needed(
            &app(json!({"status": {"reconciledAt": null}})),
            Reason::RECONCILE,
            never,
            far,
        )
        .map(|r| (r.level, r.hard));
        assert_eq!(due, Some((Level::Latest, false)), "it was never compared");
    }

    #[test]
    fn c76_each_timeout_has_its_refresh() {
        let after = |secs: i64, soft: i64, hard: i64| {
            let expiry = Expiry {
                soft: SignedDuration::from_secs(soft),
                hard: SignedDuration::from_secs(hard),
            };
            let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
            needed(
                &app(json!({})),
                Reason::RECONCILE,
                expiry,
                now + SignedDuration::from_secs(secs),
            )
            .map(|r| (r.level, r.hard))
        };
        let (none, soft, hard) = (
            None,
            Some((Level::Latest, false)),
            Some((Level::Latest, true)),
        );
        assert_eq!([120, 121].map(|secs| after(secs, 120, 0)), [none, soft]);
        assert_eq!(
            [100, 101, 150].map(|secs| after(secs, 120, 100)),
            [none, hard, hard],
            "of both the hard one"
        );
        assert_eq!(
            [100, 101, 1000].map(|secs| after(secs, 0, 100)),
            [none, hard, hard]
        );
    }
}
