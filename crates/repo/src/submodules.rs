//! Fetches the submodules of a commit, with the credentials that the settings have for each of them,
//! and makes one tree of all.
//!
//! Main type: [`Submodules`], which remembers the commits that have some.

use crate::{
    ManifestRequest, RepoAccess, RepoError, Repos,
    git::{self, Commit, CommitId, Found, GitFiles, Submodule},
    ground::blocking,
    needs,
};
use futures::future::{BoxFuture, FutureExt as _, join_all};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use tiphys_api::access::shown_url;

/// Submodules in each other.
const MAX_DEPTH: usize = 10;
/// Submodules of one commit, with theirs.
const MAX_COUNT: usize = 100;
/// Commits that are remembered.
const MAX_KNOWN: u64 = 256;

/// The credentials of the repository, and the tree of its commit.
type Key = ([u8; 32], gix::ObjectId);

/// The commits that have submodules.
pub(crate) struct Submodules {
    known: moka::sync::Cache<Key, Arc<Known>>,
}

impl Default for Submodules {
    fn default() -> Self {
        Self {
            known: moka::sync::Cache::new(MAX_KNOWN),
        }
    }
}

struct Known {
    whole: Commit,
    /// The URLs of the submodules, with the credentials that they were fetched with.
    fetched: Vec<(String, [u8; 32])>,
}

impl Known {
    /// Whether it would be fetched with the same credentials now, none of its repositories has
    /// refused them since, and it is still there.
    fn is_good(&self, repos: &Repos, request: &ManifestRequest) -> bool {
        let same = |(url, fingerprint): &(String, [u8; 32])| {
            needs::repository(url, request).is_ok_and(|reach| {
                let entry = repos.entry(&reach.access);
                reach.access.fingerprint() == *fingerprint && entry.is_ok_and(|e| e.is_proved())
            })
        };
        let whole = &self.whole.0;
        whole.is_there() && !whole.is_damaged() && self.fetched.iter().all(same)
    }
}

impl Submodules {
    /// What is remembered of this tree, at a commit that has it.
    fn at(
        &self,
        key: &Key,
        commit: gix::ObjectId,
        (repos, request): (&Repos, &ManifestRequest),
    ) -> Option<Commit> {
        let known = self.known.get(key)?;
        if !known.is_good(repos, request) {
            return None;
        }
        let (store, id) = known.whole.clone();
        Some((store, CommitId { commit, ..id }))
    }

    /// The commit with its submodules, if all of it is in memory.
    pub fn in_memory(
        &self,
        commit: Commit,
        access: &RepoAccess,
        within: (&Repos, &ManifestRequest),
    ) -> Option<Commit> {
        if has_none(&commit) {
            return Some(commit);
        }
        let key = (access.fingerprint(), commit.1.tree);
        self.at(&key, commit.1.commit, within)
    }
}

/// Whether there is no `.gitmodules`, as far as that is in memory.
fn has_none((store, id): &Commit) -> bool {
    GitFiles::are(store, id.tree, &[(git::MODULES.to_owned(), Found::Missing)])
}

/// What one commit with all its submodules takes.
struct Walk<'a> {
    repos: &'a Repos,
    request: &'a ManifestRequest,
    count: AtomicUsize,
    fetched: Mutex<Vec<(String, [u8; 32])>>,
}

impl Walk<'_> {
    /// `url`: of the repository that the commit is in. `within`: the path of that repository.
    fn whole<'b>(
        &'b self,
        commit: Commit,
        url: &'b str,
        within: &'b str,
        depth: usize,
    ) -> BoxFuture<'b, Result<Commit, RepoError>> {
        async move {
            if has_none(&commit) {
                return Ok(commit);
            }
            let (store, tree) = (commit.0.clone(), commit.1.tree);
            let submodules = blocking(move || git::submodules(&store, tree)).await?;
            if submodules.is_empty() {
                return Ok(commit);
            }
            let count = self.count.fetch_add(submodules.len(), Ordering::Relaxed);
            let excess = match (depth, count + submodules.len()) {
                (MAX_DEPTH.., _) => Some(format!("more than {MAX_DEPTH} submodules in each other")),
                (_, count) if count > MAX_COUNT => {
                    Some(format!("more than {MAX_COUNT} submodules"))
                }
                _ => None,
            };
            if let Some(excess) = excess {
                let url = shown_url(&self.request.access.url);
                return Err(RepoError::OverLimit { url, excess });
            }
            let parts = submodules.iter().map(|s| self.part(s, url, within, depth));
            let parts: Result<Vec<_>, _> = join_all(parts).await.into_iter().collect();
            let parts = parts?;
            blocking(move || git::compose(&commit, &parts)).await
        }
        .boxed()
    }

    async fn part(
        &self,
        submodule: &Submodule,
        parent: &str,
        within: &str,
        depth: usize,
    ) -> Result<(String, Commit), RepoError> {
        let path = if within.is_empty() {
            submodule.path.clone()
        } else {
            format!("{within}/{}", submodule.path)
        };
        let found = async {
            let url = git::absolute(&submodule.url, parent)?;
            let reach = needs::repository(&url, self.request)?;
            let access = &reach.access;
            let fetch = async {
                let entry = self.repos.entry(access)?;
                entry.commit(&submodule.sha.to_string()).await
            };
            let commit = fetch.await;
            let commit = commit
                .map_err(|e| needs::unless_permitted(e, &reach, &self.request.project, false))?;
            self.fetched
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((url.clone(), access.fingerprint()));
            self.whole(commit, &url, &path, depth + 1).await
        };
        match found.await {
            Ok(commit) => Ok((submodule.path.clone(), commit)),
            // What is wrong further inside says so itself.
            Err(e @ (RepoError::Submodule { .. } | RepoError::OverLimit { .. })) => Err(e),
            Err(cause) => Err(RepoError::Submodule {
                path,
                cause: Box::new(cause),
            }),
        }
    }
}

impl Repos {
    /// The commit with its submodules, fetched if they are missing.
    pub(crate) async fn with_submodules(
        &self,
        commit: Commit,
        access: &RepoAccess,
        request: &ManifestRequest,
    ) -> Result<Commit, RepoError> {
        let Some(submodules) = self.submodules(request).filter(|_| !has_none(&commit)) else {
            return Ok(commit);
        };
        let key = (access.fingerprint(), commit.1.tree);
        if let Some(known) = submodules.at(&key, commit.1.commit, (self, request)) {
            return Ok(known);
        }
        let walk = Walk {
            repos: self,
            request,
            count: AtomicUsize::new(0),
            fetched: Mutex::default(),
        };
        let whole = walk.whole(commit, &access.url, "", 0).await?;
        let fetched = walk
            .fetched
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let known = Known {
            whole: whole.clone(),
            fetched,
        };
        submodules.known.insert(key, Arc::new(known));
        Ok(whole)
    }
}
