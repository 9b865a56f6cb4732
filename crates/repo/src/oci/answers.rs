//! What registries say of tags, how long that serves, and to whom.
//!
//! Main functions: [`Oci::list`] and [`Oci::digest`]. What a registry gave is served without another
//! answer only while it accepted the credentials last.

use super::{
    Key, Oci, TAG_TTL,
    address::{is_tag, version_of},
    place_key, refusal_key,
    registry::Place,
    unpacked_key,
};
use crate::{RepoError, Since, refusals};
use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

impl Oci {
    pub(super) async fn list(
        &self,
        place: &Place<'_>,
        since: Since,
    ) -> Result<Arc<Vec<String>>, RepoError> {
        let key = place_key(place, "");
        let _one = self.busy.wait(&(key.0, format!("{} tags", key.1))).await;
        self.learn(place).await;
        self.refusals.learn(&list_key(place)).await;
        if let Some(list) = self.known_list(place, since) {
            return Ok(list);
        }
        let (asked, clock) = (Instant::now(), SystemTime::now());
        let name = self.known.name("tags", &key.0, &key.1);
        let answer = self.registry.tags(place).await;
        let verdict = refusals::verdict(&answer);
        self.refusals.hear(&list_key(place), verdict).await;
        // An account may be permitted to pull what it names, and not to list what there is.
        self.hear(place, verdict.filter(|is_refused| !is_refused))
            .await;
        let (asked, list) = match answer {
            Ok(tags) => {
                let list: Vec<String> = tags.iter().map(|tag| version_of(tag)).collect();
                let list = Arc::new(list);
                self.known.keep(name, clock, Arc::clone(&list)).await;
                (asked, list)
            }
            Err(e) => {
                let since = match self.refusals.is_accepted(&list_key(place)) {
                    true => self.of_others(place, since),
                    false => Since::now(),
                };
                let before = self.known.instead_of(e, name, since, TAG_TTL).await;
                let (asked, list) = before?;
                (asked, Arc::new(list))
            }
        };
        self.lists.insert(key, (asked, Arc::clone(&list)));
        Ok(list)
    }

    pub(super) fn known_list(&self, place: &Place<'_>, since: Since) -> Option<Arc<Vec<String>>> {
        if self.is_refused(place) || self.refusals.has(&list_key(place)) {
            return None;
        }
        let (asked, list) = self.lists.get(&place_key(place, ""))?;
        is_new(asked, since).then_some(list)
    }

    /// What a tag names now. That there is none is not remembered: it may be pushed next.
    pub(super) async fn digest(
        &self,
        place: &Place<'_>,
        tag: &str,
        since: Since,
    ) -> Result<Option<String>, RepoError> {
        if !is_tag(tag) {
            return Ok(None);
        }
        let key = place_key(place, tag);
        let _one = self.busy.wait(&(key.0, format!("{} digest", key.1))).await;
        self.learn(place).await;
        if let Some(digest) = self.known_digest(place, tag, since) {
            return Ok(Some(digest));
        }
        let (asked, clock) = (Instant::now(), SystemTime::now());
        let name = self.known.name("tag", &key.0, &key.1);
        let (asked, digest) = match self.ask_digest(place, tag).await {
            Ok(Some(digest)) => {
                let kept = Arc::new(digest.clone());
                self.known.keep(name, clock, kept).await;
                (asked, digest)
            }
            Ok(None) => {
                self.digests.invalidate(&key);
                self.known.forget(name).await;
                return Ok(None);
            }
            Err(e) => {
                let since = self.of_others(place, since);
                let before = self.known.instead_of(e, name, since, TAG_TTL).await;
                before?
            }
        };
        self.digests.insert(key, (asked, digest.clone()));
        Ok(Some(digest))
    }

    pub(super) fn known_digest(
        &self,
        place: &Place<'_>,
        tag: &str,
        since: Since,
    ) -> Option<String> {
        if self.is_refused(place) {
            return None;
        }
        let (asked, digest) = self.digests.get(&place_key(place, tag))?;
        is_new(asked, since).then_some(digest)
    }

    pub(super) async fn ask_digest(
        &self,
        place: &Place<'_>,
        tag: &str,
    ) -> Result<Option<String>, RepoError> {
        let answer = self.registry.digest(place, tag).await;
        // Some registries say of everything that they do not give that it is not there.
        if !matches!(answer, Ok(None)) {
            self.hear(place, refusals::verdict(&answer)).await;
        }
        answer
    }

    pub(super) async fn hear(&self, place: &Place<'_>, verdict: Option<bool>) {
        self.refusals.hear(&refusal_key(place), verdict).await;
    }

    /// Learns whether an earlier process was accepted: before anything of it may be served.
    pub(super) async fn learn(&self, place: &Place<'_>) {
        self.refusals.learn(&refusal_key(place)).await;
    }

    /// Whether the registry refused the credentials when it was asked last.
    pub(super) fn is_refused(&self, place: &Place<'_>) -> bool {
        self.refusals.has(&refusal_key(place))
    }

    /// Whether what was there before may be served without an answer of the registry.
    pub(super) fn may_stand_in(&self, place: &Place<'_>, since: Since) -> bool {
        since == Since::Recently && self.refusals.is_accepted(&refusal_key(place))
    }

    /// Whether the registry has to be asked for an artifact that may be here.
    pub(super) async fn is_to_ask(
        &self,
        place: &Place<'_>,
        digest: &str,
        since: Since,
    ) -> Result<bool, RepoError> {
        if self.may_stand_in(place, since) {
            return Ok(false);
        }
        if since != Since::Recently || self.is_refused(place) {
            return Ok(true);
        }
        // What is not here is asked for anyway.
        let key = unpacked_key("oci source", place, digest);
        let kept = self.unpacked.kept(key).await?;
        Ok(kept.is_some())
    }

    /// How recent an answer to another process must be that stands in: none does unless the registry
    /// accepted the credentials last.
    fn of_others(&self, place: &Place<'_>, since: Since) -> Since {
        if self.refusals.is_accepted(&refusal_key(place)) {
            since
        } else {
            Since::now()
        }
    }
}

fn is_new(asked: Instant, since: Since) -> bool {
    match since {
        Since::Recently => asked.elapsed() < TAG_TTL,
        Since::At(time) => asked >= time,
    }
}

/// No repository has a space in its name.
fn list_key(place: &Place<'_>) -> Key {
    let (fingerprint, repository) = refusal_key(place);
    (fingerprint, format!("{repository} tags"))
}
