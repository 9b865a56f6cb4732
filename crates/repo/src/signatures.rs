//! Who signed a revision of a repository.
//!
//! Main type: [`Signature`]. Which signatures are demanded is decided elsewhere.

use crate::{
    RepoAccess, RepoError, Repos, Since,
    git::{NoAnswer, Question, Signature, Tag},
    ground::blocking,
    revision::{annotated_tag, shortened},
};
use std::sync::Arc;
use tiphys_signatures::Keyring;

/// What is asked about a revision.
#[derive(Clone)]
pub struct SignatureQuestion {
    /// The commit, a full SHA.
    pub sha: String,
    /// The revision that was resolved to it: the name of an annotated tag is checked in place of its
    /// commit.
    pub named: String,
    pub tag_prefix: String,
    /// Also everything before the commit.
    pub deep: bool,
    pub keyring: Arc<Keyring>,
    /// Which signatures are as they should be.
    pub permits: Arc<dyn Fn(&Signature) -> bool + Send + Sync>,
    /// Seconds since 1970.
    pub now: i64,
}

impl Repos {
    /// The signatures of a revision.
    ///
    /// # Errors
    /// They are not known: then the revision must not be used where they are demanded.
    pub async fn signatures(
        &self,
        access: &RepoAccess,
        question: SignatureQuestion,
    ) -> Result<crate::Signatures, RepoError> {
        let entry = self.entry(access)?;
        let (mut store, id) = entry.commit(&question.sha).await?;
        let unknown = || RepoError::RevisionNotFound {
            revision: shortened(&question.sha),
        };
        let tag = {
            let refs = entry.refs(Since::Recently).await?;
            let found = annotated_tag(&refs, &question.named, &question.tag_prefix);
            // A tag that has moved meanwhile says nothing of this commit.
            let commit = id.commit.to_string();
            let found = found.filter(|(_, r)| r.sha == commit);
            found.and_then(|(name, r)| Some((name.to_owned(), r.tag.clone()?)))
        };
        let tag = match tag {
            Some((name, sha)) => {
                (store, _) = entry.commit(&sha).await?;
                let id = gix::ObjectId::from_hex(sha.as_bytes()).map_err(|_| unknown())?;
                Some(Tag { name, id })
            }
            None => None,
        };
        let question = Arc::new(question);
        for fetched in [false, true] {
            let (of, tag, question) = (store.clone(), tag.clone(), Arc::clone(&question));
            let answer = blocking(move || {
                let answer = of.signatures(&Question {
                    commit: id.commit,
                    tag,
                    deep: question.deep,
                    keyring: &question.keyring,
                    permits: &*question.permits,
                    now: question.now,
                });
                match answer {
                    Ok(found) => Ok(Some(found)),
                    Err(NoAnswer::History) => Ok(None),
                    Err(NoAnswer::Failed(e)) => Err(e),
                }
            });
            if let Some(found) = answer.await? {
                return Ok(found);
            }
            if !fetched {
                entry.fetch_history().await?;
                (store, _) = entry.commit(&id.commit.to_string()).await?;
            }
        }
        Err(RepoError::Corrupt {
            url: access_url(access),
            reason: format!("the history of {} is not complete", id.commit),
        })
    }
}

fn access_url(access: &RepoAccess) -> String {
    tiphys_api::access::shown_url(&access.url)
}
