//! Whether the commit of a source is signed as its project demands.
//!
//! Main functions: [`Sources::integrity`], [`Sources::signed`]. Without an answer nothing is permitted:
//! a missing project, an unreadable policy and a repository that cannot be read are errors.

use crate::{SourceRequest, Sources, TreeRequest};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tiphys_api::{
    AppProject,
    project::{SourceIntegrity, SourceIntegrityCheckResult},
    repository::{Repository, RevisionMetadata},
};
use tiphys_engine::integrity::{self, Demand, Signed};
use tiphys_repo::{Manifests, RepoAccess, RepoError, Signature, SignatureQuestion, Signatures};
use tiphys_signatures::Keyring;

/// The keyring of the settings, read once.
#[derive(Clone, Default)]
pub struct Keys(Arc<Mutex<Option<Read>>>);

type Read = (BTreeMap<String, String>, Arc<Keyring>);

impl Keys {
    fn get(&self, texts: &BTreeMap<String, String>, now: i64) -> Arc<Keyring> {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, keyring)) = &*read
            && known == texts
        {
            return Arc::clone(keyring);
        }
        let (keyring, faults) = Keyring::new(texts, now);
        for fault in faults {
            tracing::warn!("a key of argocd-gpg-keys-cm is not used: {fault}");
        }
        let keyring = Arc::new(keyring);
        *read = Some((texts.clone(), Arc::clone(&keyring)));
        keyring
    }
}

/// What the answer about an Application's sources depends on, besides the sources.
#[derive(Clone, Default)]
pub struct SignatureTrust {
    demanded: Option<SourceIntegrity>,
    keyring: Option<Arc<Keyring>>,
}

impl PartialEq for SignatureTrust {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.keyring, &other.keyring) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same && self.demanded == other.demanded
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

impl Sources {
    /// What is demanded in a project, and the keys that are known.
    pub fn trust(&self, project: &str) -> SignatureTrust {
        let project = (self.project)(project);
        let demanded = project
            .as_ref()
            .and_then(|p| integrity::effective(p).map(Cow::into_owned));
        let keyring = demanded.as_ref().map(|_| self.keyring());
        SignatureTrust { demanded, keyring }
    }

    fn keyring(&self) -> Arc<Keyring> {
        self.keys.get(&(self.settings)().gpg_keys, now())
    }

    /// What the check of a rendered source found; None: nothing is demanded of it. `named`: the
    /// revision that `request.revision` was resolved from.
    ///
    /// # Errors
    /// There is no answer, and so the source must not be used.
    pub async fn integrity(
        &self,
        request: &SourceRequest,
        named: &str,
        manifests: &Manifests,
    ) -> Result<Option<SourceIntegrityCheckResult>, RepoError> {
        let name = &request.app.project;
        let project =
            (self.project)(name).ok_or_else(|| RepoError::NoProject { name: name.clone() })?;
        if !integrity::is_git(&request.source) {
            return Ok(None);
        }
        let Some(demand) = self.demand(&project, &request.source.repo_url)? else {
            return Ok(None);
        };
        if self.is_remote() {
            return Ok(Some(told(&project, &demand, manifests)));
        }
        let repository = Repository {
            repo: request.source.repo_url.clone(),
            ..request.repository.clone()
        };
        let access = self.access(&repository, name)?;
        let tag_prefix = request.source.tag_prefix.as_str();
        let revision = (manifests.revision.as_str(), named, tag_prefix);
        let found = self.signatures(&access, &demand, revision).await?;
        Ok(Some(integrity::result(problems(&demand, &found))))
    }

    fn demand(&self, project: &AppProject, url: &str) -> Result<Option<Demand>, RepoError> {
        if !self.repos.verifies() {
            return Ok(None);
        }
        let Some(demanded) = integrity::effective(project) else {
            return Ok(None);
        };
        integrity::policy(&demanded, url).map_err(RepoError::Unsupported)
    }

    async fn signatures(
        &self,
        access: &RepoAccess,
        demand: &Demand,
        (sha, named, tag_prefix): (&str, &str, &str),
    ) -> Result<Signatures, RepoError> {
        let permitted = demand.clone();
        let question = SignatureQuestion {
            sha: sha.to_owned(),
            named: named.to_owned(),
            tag_prefix: tag_prefix.to_owned(),
            deep: demand.deep,
            keyring: self.keyring(),
            permits: Arc::new(move |signature| {
                integrity::problems(&permitted, &[signed(signature)]).is_empty()
            }),
            now: now(),
        };
        self.repos.signatures(access, question).await
    }

    /// Fails if the commit of a tree is not signed as its project demands.
    pub(crate) async fn insist(
        &self,
        access: &RepoAccess,
        request: &TreeRequest,
        sha: &str,
    ) -> Result<(), RepoError> {
        let name = &request.project;
        let project =
            (self.project)(name).ok_or_else(|| RepoError::NoProject { name: name.clone() })?;
        let Some(demand) = self.demand(&project, &request.repo_url)? else {
            return Ok(());
        };
        let named = request.revision.as_str();
        let found = self.signatures(access, &demand, (sha, named, "")).await?;
        let result = integrity::result(problems(&demand, &found));
        match integrity::fault(&result, None) {
            Some(fault) => Err(RepoError::Unsupported(fault)),
            None => Ok(()),
        }
    }

    /// Adds to the metadata of a commit what its project demands of it, if it demands something.
    pub async fn signed(
        &self,
        metadata: RevisionMetadata,
        project: &AppProject,
        repository: &Repository,
        sha: &str,
    ) -> Result<RevisionMetadata, RepoError> {
        let Some(demand) = self.demand(project, &repository.repo)? else {
            return Ok(metadata);
        };
        let access = self.access(repository, &repository.project)?;
        let found = self.signatures(&access, &demand, (sha, sha, "")).await?;
        Ok(RevisionMetadata {
            signature_info: integrity::description(&demand, sha, &signed(&found.first)),
            source_integrity_result: Some(integrity::result(problems(&demand, &found))),
            ..metadata
        })
    }
}

fn problems(demand: &Demand, found: &Signatures) -> Vec<String> {
    let refused: Vec<Signed> = found.refused.iter().map(signed).collect();
    integrity::problems(demand, &refused)
}

fn signed(signature: &Signature) -> Signed {
    Signed::new(&signature.revision, &signature.author, &signature.check)
}

/// What a repo-server found. One that is older than `sourceIntegrity` tells what git printed, which
/// answers for `signatureKeys`.
fn told(
    project: &AppProject,
    demand: &Demand,
    manifests: &Manifests,
) -> SourceIntegrityCheckResult {
    let told = &manifests.told;
    if let Some(result) = told.integrity.as_ref().filter(|r| !r.checks.is_empty()) {
        return result.clone();
    }
    let declared = project.spec.source_integrity.as_ref();
    if declared.is_none_or(|declared| declared.git.is_none()) {
        let fault = integrity::by_output(demand, &manifests.revision, &told.verify_result);
        return integrity::legacy_result(fault.into_iter().collect());
    }
    integrity::result(vec![format!(
        "Failed verifying revision {}: the repo-server does not know sourceIntegrity",
        manifests.revision
    )])
}
