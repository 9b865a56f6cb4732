//! The ApplicationSets that an event concerns: they are asked to look again. Main function:
//! [`refresh`].

use super::{concern::same_repository, payload::Event, payload::Push, payload::revision};
use crate::{ports::IsFollowed, state::State};
use futures::StreamExt as _;
use regex::Regex;
use std::sync::Arc;
use tiphys_api::{ApplicationSet, application_set::generators::GitGenerator};
use tiphys_appset::Followed;

/// Sets that are looked at, at a time: to find out what one follows, clusters and repositories may
/// have to be asked.
const CONCURRENT: usize = 8;

/// Requests that all sets are refreshed which an event concerns.
pub async fn refresh(state: &State, event: &Event) {
    let Some(is_followed) = followed(event) else {
        return;
    };
    let sets = state.reach.sets_for_webhook();
    futures::stream::iter(sets)
        .for_each_concurrent(CONCURRENT, |set| one(state, set, Arc::clone(&is_followed)))
        .await;
}

async fn one(state: &State, set: Arc<ApplicationSet>, is_followed: IsFollowed) {
    if !state.reach.follows_for_webhook(&set, is_followed).await {
        return;
    }
    let (namespace, name) = (&set.metadata.namespace, &set.metadata.name);
    match state.reach.refresh_set_for_webhook(&set).await {
        Ok(()) => tracing::info!(
            applicationset = name.as_str(),
            "appset-namespace" = namespace.as_str(),
            "refresh ApplicationSet {namespace}/{name} from webhook"
        ),
        Err(e) => tracing::warn!(
            applicationset = name.as_str(),
            "appset-namespace" = namespace.as_str(),
            "Failed to refresh ApplicationSet '{name}' for controller reprocessing: {e}"
        ),
    }
}

/// Which generators follow what has changed; `None`: none can.
fn followed(event: &Event) -> Option<IsFollowed> {
    match event {
        Event::Push(push) => {
            let pushed = Pushed::new(push);
            Some(Arc::new(move |generator| match generator {
                Followed::Git(git) => pushed.concerns(git),
                Followed::PullRequests(_) => false,
                Followed::Plugin => true,
            }))
        }
        Event::Pull(pull) => {
            let pull = pull.clone();
            Some(Arc::new(move |generator| match generator {
                Followed::Git(_) => false,
                Followed::PullRequests(pulls) => pull.concerns(pulls),
                Followed::Plugin => true,
            }))
        }
        Event::Registry(_) => None,
    }
}

/// A push, prepared for matching against generators.
struct Pushed {
    urls: Vec<Regex>,
    revisions: Vec<String>,
    head: bool,
}

impl Pushed {
    fn new(push: &Push) -> Self {
        let urls = push.urls.iter().filter_map(|url| same_repository(url));
        Self {
            urls: urls.collect(),
            revisions: push.revisions.clone(),
            head: push.head,
        }
    }

    fn concerns(&self, git: &GitGenerator) -> bool {
        let short = revision(&git.revision);
        let moved = match short.as_str() {
            "" | "HEAD" => self.head,
            _ => {
                let mut revisions = self.revisions.iter();
                revisions.any(|pushed| *pushed == short || *pushed == git.revision)
            }
        };
        moved && self.urls.iter().any(|url| url.is_match(&git.repo_url))
    }
}
