//! Whether revisions are signed as a request demands. The answer is part of the response: what
//! follows from it is decided by whoever asked.

use crate::{errors::of_repo, server::Server, trust::now};
use std::sync::Arc;
use tiphys_api::project::{SourceIntegrity, SourceIntegrityCheckResult};
use tiphys_engine::integrity::{self, Signed};
use tiphys_repo::{RepoAccess, Signature, SignatureQuestion};
use tiphys_rpc::{ApiError, Code};

/// A commit, and how it was asked for.
pub(crate) struct Revision<'a> {
    pub sha: &'a str,
    /// The revision that was resolved to it.
    pub named: &'a str,
    pub tag_prefix: &'a str,
}

/// What is known about a commit of which something is demanded.
pub(crate) struct Answer {
    pub result: SourceIntegrityCheckResult,
    /// One line for people.
    pub description: String,
}

impl Server {
    /// Checks a commit; None: nothing is demanded of it. `is_old`: a signature is demanded in the way
    /// of Argo CD before 3.6, too.
    ///
    /// # Errors
    /// There is no answer, and so the commit must not be used.
    pub(crate) async fn check(
        &self,
        access: &RepoAccess,
        (demanded, is_old): (Option<&SourceIntegrity>, bool),
        revision: Revision<'_>,
    ) -> Result<Option<Answer>, ApiError> {
        if !self.repos.verifies() {
            return Ok(None);
        }
        let Some(demanded) = demanded else {
            return if is_old {
                let text = "signatures are verified only for clients that send sourceIntegrity, as those of Argo CD 3.6 do";
                Err(ApiError::new(Code::Unimplemented, text))
            } else {
                Ok(None)
            };
        };
        let demand = integrity::policy(demanded, &access.url).map_err(ApiError::plain)?;
        let Some(demand) = demand else {
            return Ok(None);
        };
        let permitted = demand.clone();
        let question = SignatureQuestion {
            sha: revision.sha.to_owned(),
            named: revision.named.to_owned(),
            tag_prefix: revision.tag_prefix.to_owned(),
            deep: demand.deep,
            keyring: self.trust.keyring().await?,
            permits: Arc::new(move |signature| {
                integrity::problems(&permitted, &[signed(signature)]).is_empty()
            }),
            now: now(),
        };
        let found = self.repos.signatures(access, question).await;
        let found = found.map_err(of_repo)?;
        let refused: Vec<Signed> = found.refused.iter().map(signed).collect();
        Ok(Some(Answer {
            result: integrity::result(integrity::problems(&demand, &refused)),
            description: integrity::description(&demand, revision.sha, &signed(&found.first)),
        }))
    }

    /// The same, for content that is handed out: what is not signed as demanded is refused.
    pub(crate) async fn insist(
        &self,
        access: &RepoAccess,
        demanded: (Option<&SourceIntegrity>, bool),
        revision: Revision<'_>,
    ) -> Result<(), ApiError> {
        let answer = self.check(access, demanded, revision).await?;
        let fault = answer.and_then(|answer| integrity::fault(&answer.result, None));
        fault.map_or(Ok(()), |fault| Err(ApiError::plain(fault)))
    }
}

fn signed(signature: &Signature) -> Signed {
    Signed::new(&signature.revision, &signature.author, &signature.check)
}
