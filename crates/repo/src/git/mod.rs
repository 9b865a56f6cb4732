//! Everything that touches gix: nothing outside of this module knows it.
//!
//! [`Store`] is an opened object database, [`GitFiles`] the tree of one commit as [`tiphys_render::SourceFiles`]. All functions block.

mod error;
mod fetch;
mod http;
mod ssh;
mod tree;
mod write;

pub(crate) use fetch::{Remote, remove_stale_locks};
pub(crate) use tree::{Found, GitFiles};
pub(crate) use write::{commit_files, init_bare};

use crate::{RepoError, revision::Reference};
use gix::bstr::ByteSlice;
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tiphys_api::repository::RevisionMetadata;

/// An opened repository, shared between threads.
#[derive(Clone)]
pub(crate) struct Store {
    repo: gix::ThreadSafeRepository,
    /// For messages.
    url: String,
    trees: tree::Trees,
    /// The commit that was found last: after a push everybody asks for the same one.
    last: Arc<Mutex<Option<CommitId>>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A commit that is in the object database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitId {
    pub commit: gix::ObjectId,
    pub tree: gix::ObjectId,
}

impl Store {
    /// Opens a repository (bare or not) without reading any configuration but its own, and without its hooks.
    pub fn open(path: &Path, url: &str) -> Result<Self, RepoError> {
        if !path.exists() {
            return Err(RepoError::NotFound { url: url.to_owned() });
        }
        let repo = gix::open::Options::isolated()
            .open(path)
            .map_err(|e| RepoError::Corrupt { url: url.to_owned(), reason: format!("not a git repository: {}", error::text(&e)) })?;
        Ok(Self { repo, url: url.to_owned(), trees: tree::no_trees(), last: Arc::default() })
    }

    pub(super) fn local(&self) -> gix::Repository {
        let mut repo = self.repo.to_thread_local();
        repo.object_cache_size_if_unset(4 << 20);
        repo
    }

    fn corrupt(&self, e: &gix::Error) -> RepoError {
        RepoError::Corrupt { url: self.url.clone(), reason: error::text(e) }
    }

    /// All refs of a local repository, as `ls-remote` would list them; `HEAD` first.
    pub fn references(&self) -> Result<Vec<Reference>, RepoError> {
        let repo = self.local();
        let mut out = Vec::new();
        let platform = repo.references().map_err(|e| self.corrupt(&e))?;
        for reference in platform.all().map_err(|e| self.corrupt(&e))? {
            // A ref that cannot be read or leads nowhere is as good as absent, as for `git ls-remote`.
            let Ok(mut reference) = reference else { continue };
            let name = reference.name().as_bstr().to_string();
            // Only a tag may be an object that stands for a commit.
            let sha = match reference.target().try_id() {
                Some(id) if !name.starts_with("refs/tags/") && repo.has_object(id) => id.to_string(),
                _ => match reference.peel_to_id() {
                    Ok(id) => id.to_string(),
                    Err(_) => continue,
                },
            };
            out.push(Reference { name, sha, target: None });
        }
        let head = repo.head().map_err(|e| self.corrupt(&e))?;
        let target = head.referent_name().map(|n| n.as_bstr().to_string());
        let known = target.as_ref().and_then(|target| out.iter().find(|r| r.name == *target)).map(|r| r.sha.clone());
        if let Some(sha) = known.or_else(|| repo.head_id().ok().map(|id| id.to_string())) {
            out.insert(0, Reference { name: "HEAD".to_owned(), sha, target });
        }
        Ok(out)
    }

    /// A commit by its full SHA, when it was the last one that somebody asked for.
    pub fn last(&self, sha: &str) -> Option<CommitId> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|id| gix::ObjectId::from_hex(sha.as_bytes()).is_ok_and(|sha| sha == id.commit))
    }

    /// The commit of a full or abbreviated SHA (of a commit or an annotated tag), or None when it is not here.
    pub fn commit(&self, sha: &str) -> Result<Option<CommitId>, RepoError> {
        let repo = self.local();
        let object = if sha.len() == 40 {
            let Ok(id) = gix::ObjectId::from_hex(sha.to_ascii_lowercase().as_bytes()) else { return Ok(None) };
            repo.try_find_object(id).map_err(|e| self.corrupt(&e))?
        } else {
            match gix::hash::Prefix::from_hex(&sha.to_ascii_lowercase()) {
                Err(_) => None,
                Ok(prefix) => match repo.objects.lookup_prefix(prefix, None) {
                    Ok(Some(Ok(id))) => repo.try_find_object(id).map_err(|e| self.corrupt(&e))?,
                    Ok(Some(Err(()))) => {
                        return Err(RepoError::RevisionNotFound { revision: format!("{sha} (it is ambiguous)") });
                    }
                    Ok(None) => None,
                    Err(e) => return Err(RepoError::Corrupt { url: self.url.clone(), reason: e.to_string() }),
                },
            }
        };
        let Some(object) = object else { return Ok(None) };
        let commit = object.peel_to_commit().map_err(|_| RepoError::RevisionNotFound { revision: format!("{sha} (not a commit)") })?;
        let tree = commit.tree_id().map_err(|e| self.corrupt(&e))?.detach();
        let found = CommitId { commit: commit.id, tree };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(Some(found))
    }

    /// Author, date and message of a commit that is here. Tags come from the caller, who knows the remote's refs.
    pub fn metadata(&self, id: gix::ObjectId, tags: Vec<String>) -> Result<RevisionMetadata, RepoError> {
        let repo = self.local();
        let commit = repo.find_commit(id).map_err(|e| self.corrupt(&e))?;
        let author = commit.author().map_err(|e| self.corrupt(&e))?;
        let date = author.time().ok().map(|t| tiphys_api::meta::Time { seconds: t.seconds, nanos: 0 });
        let message = commit.message_raw().map_err(|e| self.corrupt(&e))?;
        Ok(RevisionMetadata {
            author: format!("{} <{}>", author.name.to_str_lossy(), author.email.to_str_lossy()),
            date,
            tags,
            message: message.to_str_lossy().trim().to_owned(),
            ..RevisionMetadata::default()
        })
    }
}
