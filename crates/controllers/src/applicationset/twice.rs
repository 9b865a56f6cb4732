//! Nothing is deleted because of one list of a host. Main function: [`keep`].
//!
//! Hosts number the pages of their lists. An element that moves to an earlier page between two
//! questions is on none of the answers, and nobody can see that a list lacks it. So before a set
//! deletes an Application, its hosts are asked once more.

use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::reconcile::Plan;
use tiphys_sources::{Answers, Remembered};

/// When the hosts are asked again whose answers differ.
const SOON: Duration = Duration::from_secs(10);
/// The same if they did not answer the second time.
const LATER: Duration = Duration::from_secs(180);

/// What is kept although the plan deletes it.
pub(super) struct Kept {
    pub names: BTreeSet<String>,
    /// Why a host did not answer the second time.
    pub failure: Option<String>,
    /// When the hosts are asked again.
    pub again: Duration,
}

/// What the hosts' second answers say about the deletions of a plan. `None`: no host was asked, or
/// the second answers lack the same.
pub(super) async fn keep(
    answers: &Answers,
    set: &Arc<ApplicationSet>,
    first: &Arc<Remembered>,
    (plan, existing): (&Plan, &[Arc<Application>]),
) -> Option<Kept> {
    let leaves = |name: &str| {
        existing
            .iter()
            .any(|app| app.metadata.name == name && app.metadata.deletion_timestamp.is_some())
    };
    let deletes = plan.deletes.iter().map(|delete| delete.name());
    let deletes: BTreeSet<&str> = deletes.filter(|name| !leaves(name)).collect();
    if deletes.is_empty() || !first.asked_hosts() {
        return None;
    }
    let second = answers.generate_again(set, true, Some(first)).await;
    if Arc::ptr_eq(&second, first) {
        return None;
    }
    if let Some(failure) = &second.generated.failure {
        tracing::warn!(
            applicationset = set.metadata.name,
            error = %failure.error,
            "Nothing is deleted: the hosts did not answer a second time"
        );
        return Some(Kept {
            names: deletes.into_iter().map(str::to_owned).collect(),
            failure: Some(format!(
                "nothing is deleted before its generators answered twice, and the second time: {}",
                failure.error
            )),
            again: LATER,
        });
    }
    let named = second.generated.applications.iter();
    let named: BTreeSet<&str> = named.map(|app| app.metadata.name.as_str()).collect();
    let names: BTreeSet<String> = deletes
        .intersection(&named)
        .map(|name| (*name).to_owned())
        .collect();
    if names.is_empty() {
        return None;
    }
    tracing::warn!(
        applicationset = set.metadata.name,
        applications = names.len(),
        "Not deleted: only one of two lists of a host lacks them"
    );
    Some(Kept {
        names,
        failure: None,
        again: SOON,
    })
}
