//! Nothing is deleted because of one list of a host. Main type: [`AskedTwice`].
//!
//! Hosts number the pages of their lists. An element that moves to an earlier page between two
//! questions is on none of the answers, and nobody can see that a list lacks it. So before a set
//! deletes an Application, its hosts are asked once more.

use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::Failure;
use tiphys_sources::{Answers, Remembered};

/// When the hosts are asked again whose answers differ.
pub(super) const SOON: Duration = Duration::from_secs(3);

/// What a set generates by its hosts' second answers.
pub(super) struct AskedTwice {
    pub remembered: Arc<Remembered>,
    /// What one of the two answers gave.
    applications: Vec<Application>,
    /// Whether the second answer lacks something that the first one had.
    pub is_disputed: bool,
}

impl AskedTwice {
    /// `None`: no host was asked, or all answered the same again.
    pub async fn of(
        answers: &Answers,
        set: &Arc<ApplicationSet>,
        first: &Arc<Remembered>,
    ) -> Option<Self> {
        if !first.asked_hosts() {
            return None;
        }
        let second = answers.generate_again(set, true, Some(first)).await;
        if Arc::ptr_eq(&second, first) {
            return None;
        }
        let mut applications = second.generated.applications.clone();
        let names: BTreeSet<&str> = second
            .generated
            .applications
            .iter()
            .map(|app| app.metadata.name.as_str())
            .collect();
        let only_first = first.generated.applications.iter();
        let only_first: Vec<_> = only_first
            .filter(|app| !names.contains(app.metadata.name.as_str()))
            .cloned()
            .collect();
        let is_disputed = !only_first.is_empty();
        if is_disputed {
            tracing::warn!(
                applicationset = set.metadata.name,
                applications = only_first.len(),
                "a host's second list lacks what the first one had; nothing of it is deleted yet"
            );
        }
        applications.extend(only_first);
        Some(Self {
            is_disputed,
            applications,
            remembered: second,
        })
    }

    /// What is wanted: only what both answers lack is not. A failure is no answer.
    pub fn desired(&self) -> Result<&[Application], &Failure> {
        match &self.remembered.generated.failure {
            Some(failure) => Err(failure),
            None => Ok(&self.applications),
        }
    }
}
