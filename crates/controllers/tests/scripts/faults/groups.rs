//! Writes of one kind are concurrent, and those of the next kind follow when all of them are done.

use super::stage::stage;
use crate::scripts::wire::{Plan, Write};
use std::time::Duration;

const SLOW: Duration = Duration::from_secs(2);

#[test]
fn s37_a_kind_begins_when_the_one_before_it_is_done() {
    let slow = ["/serviceaccounts", "/configmaps"]
        .map(|part| (part.to_owned(), SLOW))
        .to_vec();
    stage(
        Plan {
            slow,
            ..Plan::default()
        },
        async |stage| {
            stage.play("commit\n  configmap one\n  configmap two\n  service last\n  serviceaccount robot\napp\nsync\npass 30s").await;
            let kind = |write: &Write| {
                ["serviceaccounts", "configmaps", "services"]
                    .into_iter()
                    .find(|k| write.what.ends_with(&format!("/{k}")))
            };
            let writes: Vec<Write> = stage
                .wire
                .writes()
                .into_iter()
                .filter(|w| !w.is_dry_run && kind(w).is_some())
                .collect();
            let kinds: Vec<_> = writes.iter().filter_map(kind).collect();
            assert_eq!(
                kinds,
                ["serviceaccounts", "configmaps", "configmaps", "services"]
            );
            assert!(
                writes[1].at >= writes[0].at + SLOW,
                "the next kind was sent too early"
            );
            assert!(
                writes[2].at < writes[1].at + SLOW,
                "one of a kind waited for another"
            );
        },
    );
}
