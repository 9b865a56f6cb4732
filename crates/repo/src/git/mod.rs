//! Everything that uses gix; nothing outside of this module depends on it.
//!
//! [`Store`] is an opened object database, [`GitFiles`] the tree of one commit as
//! [`tiphys_render::SourceFiles`]. All functions block.

mod additions;
mod changes;
mod compose;
mod error;
mod fetch;
mod http;
mod limits;
mod modules;
mod notes;
mod pack;
mod push;
mod refs;
mod signed;
mod ssh;
mod tree;
mod walk;
mod write;

pub(crate) use additions::{Additions, Place, check_name};
pub(crate) use changes::any_changed;
pub(crate) use compose::compose;
pub(crate) use fetch::{Remote, open_or_init, remove_stale_locks};
pub(crate) use limits::Guard;
pub use limits::{GitLimit, GitLimits};
pub(crate) use modules::{FILE as MODULES, Submodule, absolute, submodules};
pub(crate) use push::RefUpdate;
pub(crate) use signed::{NoAnswer, Question, Tag};
pub use signed::{Signature, Signatures};
pub(crate) use tree::{Found, GitFiles, Seen};
pub(crate) use walk::{Item, Visitor, walk};
pub(crate) use write::{Added, Adding, Author, UnpackedFile, commit_files, fits, init_bare};

use crate::{RepoError, lfs::Objects, trailers};
use gix::bstr::ByteSlice;
use std::{
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tiphys_api::repository::RevisionMetadata;

/// The first object that one render wanted and that is torn or missing, if there was one: what was
/// made without it must not be used.
pub(crate) type Torn = Arc<OnceLock<RepoError>>;

/// An opened repository, shared between threads.
#[derive(Clone)]
pub(crate) struct Store {
    repo: Arc<gix::ThreadSafeRepository>,
    /// For messages.
    url: Arc<str>,
    trees: tree::Trees,
    limits: GitLimits,
    /// The last commit found: after a push all callers ask for the same one.
    last: Arc<Mutex<Option<CommitId>>>,
    /// An object could not be read that should be there, whoever read it.
    damaged: Arc<AtomicBool>,
    /// The same, of the render that reads with this handle.
    torn: Option<Torn>,
    /// For a commit with its submodules.
    composed: Option<Arc<compose::Composed>>,
    /// What the files that are Git LFS pointers stand for. `None`: they are refused.
    lfs: Option<Arc<Objects>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// A commit that is in the object database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitId {
    pub commit: gix::ObjectId,
    pub tree: gix::ObjectId,
}

/// A commit in its repository.
pub(crate) type Commit = (Store, CommitId);

impl Store {
    /// Opens a repository (bare or not) without reading any configuration except its own, and
    /// without its hooks.
    pub fn open(path: &Path, url: &str, limits: GitLimits) -> Result<Self, RepoError> {
        if !path.exists() {
            return Err(RepoError::NotFound {
                url: url.to_owned(),
            });
        }
        Self::opened(path, url, limits).map_err(|e| RepoError::Corrupt {
            url: url.to_owned(),
            reason: format!("not a git repository: {}", error::text(&e)),
        })
    }

    /// The same, with the error as it is.
    fn opened(path: &Path, url: &str, limits: GitLimits) -> gix::Result<Self> {
        let repo = gix::open::Options::isolated()
            .config_overrides(limits.config())
            .open(path)?;
        Ok(Self {
            repo: Arc::new(repo),
            url: url.into(),
            trees: tree::no_trees(),
            limits,
            last: Arc::default(),
            damaged: Arc::default(),
            torn: None,
            composed: None,
            lfs: None,
        })
    }

    /// The same, with the objects of Git LFS that a render reads.
    pub fn with_lfs(&self, objects: Arc<Objects>) -> Self {
        Self {
            lfs: Some(objects),
            ..self.clone()
        }
    }

    /// The same, for one render that is told of what is torn.
    pub fn watched(&self, torn: &Torn) -> Self {
        Self {
            torn: Some(Arc::clone(torn)),
            ..self.clone()
        }
    }

    /// Whether it has the files of submodules, too.
    pub fn is_composed(&self) -> bool {
        self.composed.is_some()
    }

    /// Whether its files, and those of the repositories composed with it, have not been removed.
    pub fn is_there(&self) -> bool {
        let parts = self.composed.iter().flat_map(|composed| &composed.parts);
        std::iter::once(self)
            .chain(parts)
            .all(|store| store.repo.refs.git_dir().join("HEAD").exists())
    }

    pub(super) fn local(&self) -> gix::Repository {
        let mut repo = self.repo.to_thread_local();
        repo.object_cache_size_if_unset(4 << 20);
        repo
    }

    /// Whether a read has shown that an object is torn or missing, here or in a repository composed
    /// with it: a machine that lost its power may have written only a part of it.
    pub fn is_damaged(&self) -> bool {
        let parts = self.composed.iter().flat_map(|composed| &composed.parts);
        std::iter::once(self)
            .chain(parts)
            .any(|store| store.damaged.load(Ordering::Relaxed))
    }

    /// Remembers if the error of a read means that an object is torn or missing.
    pub(super) fn heed(&self, e: &gix::Error) {
        self.heed_of(e, tree::Part::Own);
    }

    /// The same of a read in one of the repositories composed with it. The others are not at fault:
    /// whoever has a submodule must not get the copy of its repository thrown away, nor whoever is a
    /// submodule that of the repository which has it.
    fn heed_of(&self, e: &gix::Error, part: tree::Part) {
        // One that ends within its header is called invalid.
        let is_torn = e.is_corrupted() || e.is_not_found() || e.is_validation();
        if is_torn && !e.is_resource_exhausted() {
            let composed = self.composed.as_ref();
            let store = match part {
                tree::Part::Own => Some(self),
                tree::Part::Submodule(n) => composed.and_then(|composed| composed.parts.get(n)),
                tree::Part::Unknown => None,
            };
            self.blame(store, e);
        }
    }

    /// The render is told in any case.
    fn blame(&self, store: Option<&Self>, e: &gix::Error) {
        if let Some(store) = store {
            store.damaged.store(true, Ordering::Relaxed);
        }
        if let Some(torn) = &self.torn {
            torn.get_or_init(|| RepoError::Corrupt {
                url: store.unwrap_or(self).url.to_string(),
                reason: error::text(e),
            });
        }
    }

    fn torn(&self, e: &gix::Error) -> RepoError {
        self.heed(e);
        self.corrupt(e)
    }

    fn corrupt(&self, e: &gix::Error) -> RepoError {
        if e.is_resource_exhausted() {
            return self.limits.exceeded(GitLimit::Object, &*self.url);
        }
        if e.is_corrupted() || e.is_not_found() {
            self.heed(e);
        }
        RepoError::Corrupt {
            url: self.url.to_string(),
            reason: error::text(e),
        }
    }

    /// A commit by its full SHA, if it was the last one requested.
    pub fn last(&self, sha: &str) -> Option<CommitId> {
        let sha = gix::ObjectId::from_hex(sha.as_bytes()).ok()?;
        self.found_last().filter(|last| last.commit == sha)
    }

    fn found_last(&self) -> Option<CommitId> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_is(&self, id: gix::ObjectId) -> bool {
        self.found_last().is_some_and(|last| last.commit == id)
    }

    /// The commit for a full or abbreviated SHA (of a commit or an annotated tag), or None if it is
    /// not in the copy.
    pub fn commit(&self, sha: &str) -> Result<Option<CommitId>, RepoError> {
        let repo = self.local();
        let object = if sha.len() == 40 {
            let Ok(id) = gix::ObjectId::from_hex(sha.to_ascii_lowercase().as_bytes()) else {
                return Ok(None);
            };
            repo.try_find_object(id).map_err(|e| self.torn(&e))?
        } else {
            match gix::hash::Prefix::from_hex(&sha.to_ascii_lowercase()) {
                Err(_) => None,
                Ok(prefix) => match repo.objects.lookup_prefix(prefix, None) {
                    Ok(Some(Ok(id))) => repo.try_find_object(id).map_err(|e| self.torn(&e))?,
                    Ok(Some(Err(()))) => {
                        return Err(RepoError::RevisionNotFound {
                            revision: format!("{sha} (it is ambiguous)"),
                        });
                    }
                    Ok(None) => None,
                    Err(e) => {
                        return Err(RepoError::Corrupt {
                            url: self.url.to_string(),
                            reason: e.to_string(),
                        });
                    }
                },
            }
        };
        let Some(object) = object else {
            return Ok(None);
        };
        let commit = object
            .peel_to_commit()
            .map_err(|e| match e.is_corrupted() {
                true => self.corrupt(&e),
                false => RepoError::RevisionNotFound {
                    revision: format!("{sha} (not a commit)"),
                },
            })?;
        let tree = commit.tree_id().map_err(|e| self.corrupt(&e))?.detach();
        let found = CommitId {
            commit: commit.id,
            tree,
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(Some(found))
    }

    /// Author, date and message of a commit in the copy, and the commit that its trailers refer to.
    /// Tags are added by the caller, who knows the remote's refs.
    pub fn metadata(
        &self,
        id: gix::ObjectId,
        tags: Vec<String>,
    ) -> Result<RevisionMetadata, RepoError> {
        let repo = self.local();
        let commit = repo.find_commit(id).map_err(|e| self.corrupt(&e))?;
        let author = commit.author().map_err(|e| self.corrupt(&e))?;
        let date = author.time().ok().map(|t| tiphys_api::meta::Time {
            seconds: t.seconds,
            nanos: 0,
        });
        let message = commit.message_raw().map_err(|e| self.corrupt(&e))?;
        let message = message.to_str_lossy().trim().to_owned();
        Ok(RevisionMetadata {
            author: format!(
                "{} <{}>",
                author.name.to_str_lossy(),
                author.email.to_str_lossy()
            ),
            date,
            tags,
            references: trailers::of_message(&message),
            message,
            ..RevisionMetadata::default()
        })
    }
}
