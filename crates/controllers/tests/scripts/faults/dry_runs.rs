//! How often the API server is asked for a dry run.

use super::stage::{Stage, stage};
use crate::scripts::wire::Plan;

fn asked(stage: &Stage<'_>) -> usize {
    stage
        .wire
        .writes()
        .iter()
        .filter(|write| write.is_dry_run && write.what.contains("/configmaps/"))
        .count()
}

/// The result for an unchanged pair is reused until a hard refresh is requested.
#[test]
fn c29_only_a_hard_refresh_asks_again_what_differs() {
    stage(Plan::default(), async |stage| {
        stage.play("commit\n  configmap one\n  configmap two").await;
        stage.play("app annotation:argocd.argoproj.io/compare-options=ServerSideDiff=true\nsync\nrefresh").await;
        let before = asked(stage);
        stage.play("refresh\nrefresh\npass 300s").await;
        assert_eq!(asked(stage), before, "nothing has changed");
        stage.play("refresh hard").await;
        assert_eq!(asked(stage), before + 2);
        stage.play("edit configmap/one k=v").await;
        assert_eq!(asked(stage), before + 3, "one has changed");
    });
}

/// A hard timeout discards all results; the normal one renews the comparison without dry runs of
/// unchanged pairs.
#[test]
fn c76_only_the_hard_timeout_asks_again_what_differs() {
    stage(Plan::default(), async |stage| {
        stage
            .play("settings\n  timeout.reconciliation: 30s\n  timeout.reconciliation.jitter: 0s")
            .await;
        stage.play("commit\n  configmap one\n  configmap two").await;
        stage.play("app annotation:argocd.argoproj.io/compare-options=ServerSideDiff=true\nsync\nrefresh").await;
        let (before, reconciled) = (
            asked(stage),
            stage.first().await["status"]["reconciledAt"].clone(),
        );
        stage.play("pass 100s").await;
        assert_ne!(
            stage.first().await["status"]["reconciledAt"],
            reconciled,
            "it was compared again"
        );
        assert_eq!(asked(stage), before, "a normal refresh");
        stage
            .play("settings\n  timeout.reconciliation: 0s\n  timeout.hard.reconciliation: 120s")
            .await;
        let before = asked(stage);
        stage.play("pass 40s").await;
        assert_eq!(asked(stage), before, "not yet");
        stage.play("pass 90s").await;
        assert_eq!(asked(stage), before + 2, "a hard refresh");
    });
}
