//! Files on top of a commit, without a work tree: the objects that they need, and the refs of a
//! local repository that name them.
//!
//! Main type: [`Additions`].

use super::{
    CommitId, RefUpdate, Store,
    write::{Author, edit, failed, write_commit},
};
use crate::RepoError;
use gix::{
    ObjectId, Repository,
    bstr::ByteSlice as _,
    objs::tree::{EntryKind, EntryMode},
};
use std::collections::BTreeMap;

/// Deepest folder whose new objects are collected: that of a path that was checked before.
const MAX_DEPTH: usize = 100;

/// What is at a path of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing, and the folders above it are folders, as far as they exist.
    Free,
    File(ObjectId),
    /// A link, a submodule or a folder, or one of these but a folder above it.
    Taken,
}

/// Objects that are added to a repository.
pub(crate) struct Additions<'a> {
    store: &'a Store,
    repo: Repository,
    objects: Vec<ObjectId>,
}

impl<'a> Additions<'a> {
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            repo: store.local(),
            objects: Vec::new(),
        }
    }

    /// The objects that a remote with the commits below does not have.
    pub fn objects(&self) -> &[ObjectId] {
        &self.objects
    }

    /// The id that a file with this content has.
    pub fn blob(&self, content: &[u8]) -> Result<ObjectId, RepoError> {
        let blob = self.repo.write_blob(content);
        Ok(blob.map_err(|e| failed("writing a file", &e))?.detach())
    }

    /// What is at a path of a commit.
    pub fn place(&self, base: CommitId, path: &str) -> Result<Place, RepoError> {
        Ok(self.found(base.tree, path)?.0)
    }

    /// The branch that `HEAD` names, whether or not it has a commit.
    pub fn head(&self) -> Option<String> {
        let name = self.repo.head_name().ok().flatten()?;
        let name = name.as_bstr().to_string();
        name.strip_prefix("refs/heads/").map(str::to_owned)
    }

    /// What is at a path of a tree, and of which kind.
    fn found(&self, mut tree: ObjectId, path: &str) -> Result<(Place, EntryKind), RepoError> {
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let found = self.entries(tree)?.remove(part.as_bytes());
            let is_last = parts.peek().is_none();
            match found.map(|(mode, id)| (mode.kind(), id)) {
                None => return Ok((Place::Free, EntryKind::Blob)),
                Some((EntryKind::Tree, id)) if !is_last => tree = id,
                Some((kind @ (EntryKind::Blob | EntryKind::BlobExecutable), id)) if is_last => {
                    return Ok((Place::File(id), kind));
                }
                Some((kind, _)) => return Ok((Place::Taken, kind)),
            }
        }
        Ok((Place::Taken, EntryKind::Tree))
    }

    /// A commit with these files, by path, in addition to those of `base`; without a base, the first
    /// one of a branch.
    pub fn commit(
        &mut self,
        base: Option<CommitId>,
        files: &BTreeMap<String, Vec<u8>>,
        message: &str,
        author: &Author,
    ) -> Result<CommitId, RepoError> {
        let empty = ObjectId::empty_tree(self.repo.object_hash());
        if base.is_none() {
            let tree = self.repo.write_object(gix::objs::Tree::empty());
            tree.map_err(|e| failed("writing a tree", &e))?;
        }
        let before = base.map_or(empty, |base| base.tree);
        let tree = self.tree(before, files)?;
        let parent = base.map(|base| base.commit);
        let commit = write_commit(&self.repo, tree, parent, message, author)?;
        self.objects.push(commit);
        match base {
            Some(base) => self.collect(Some(base.tree), tree, 0)?,
            None => self.collect(None, tree, 0)?,
        }
        Ok(CommitId { commit, tree })
    }

    fn tree(
        &self,
        before: ObjectId,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<ObjectId, RepoError> {
        let editor = self.repo.edit_tree(before);
        let mut editor = editor.map_err(|e| failed("editing the tree", &e))?;
        for (path, content) in files {
            let blob = self.blob(content)?;
            // A file stays executable: Argo CD makes its manifests so.
            let kind = match self.found(before, path)? {
                (Place::File(_), kind) => kind,
                _ => EntryKind::Blob,
            };
            editor
                .upsert(path.as_str(), kind, blob)
                .map_err(|e| failed(&format!("changing {path}"), &e))?;
        }
        let written = editor.write();
        Ok(written
            .map_err(|e| failed("writing the tree", &e))?
            .detach())
    }

    /// Adds what is in `tree` and not at the same place of `before`.
    fn collect(
        &mut self,
        before: Option<ObjectId>,
        tree: ObjectId,
        depth: usize,
    ) -> Result<(), RepoError> {
        if before == Some(tree) || depth > MAX_DEPTH {
            return Ok(());
        }
        self.objects.push(tree);
        let old = match before {
            Some(before) => self.entries(before)?,
            None => BTreeMap::new(),
        };
        for (name, (mode, id)) in self.entries(tree)? {
            let same = old.get(&name);
            if same.is_some_and(|(_, old)| *old == id) {
                continue;
            }
            match mode.kind() {
                EntryKind::Tree => {
                    let below = same.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| *id);
                    self.collect(below, id, depth + 1)?;
                }
                EntryKind::Commit => {}
                _ => self.objects.push(id),
            }
        }
        Ok(())
    }

    pub(super) fn entries(
        &self,
        tree: ObjectId,
    ) -> Result<BTreeMap<Vec<u8>, (EntryMode, ObjectId)>, RepoError> {
        if tree == ObjectId::empty_tree(self.repo.object_hash()) {
            return Ok(BTreeMap::new());
        }
        let corrupt = |e: &gix::Error| self.store.corrupt(e);
        let tree = self.repo.find_tree(tree).map_err(|e| corrupt(&e))?;
        let decoded = tree
            .decode()
            .map_err(|e| corrupt(&gix::Error::from_error(e)))?;
        let entry = |e: &gix::objs::tree::EntryRef<'_>| {
            (e.filename.as_bytes().to_owned(), (e.mode, e.oid.to_owned()))
        };
        Ok(decoded.entries.iter().map(entry).collect())
    }

    /// What a file contains.
    pub fn content(&self, blob: ObjectId) -> Result<Vec<u8>, RepoError> {
        let found = self
            .repo
            .find_blob(blob)
            .map_err(|e| self.store.corrupt(&e))?;
        Ok(found.data.clone())
    }

    /// Moves a ref of the repository itself, which must be local.
    pub fn move_ref(&self, update: &RefUpdate) -> Result<(), RepoError> {
        let name = full_name(&update.name)?;
        let mut repo = self.repo.clone();
        let is_head = || {
            let head = repo.head_name().ok().flatten();
            head.is_some_and(|head| head == name)
        };
        if !repo.is_bare() && is_head() {
            return Err(RepoError::Unsupported(format!(
                "{} is checked out in {}, where its files would not follow",
                update.name, self.store.url
            )));
        }
        // A repository with a work tree logs who moved a ref.
        let own = Author::own(0);
        repo.committer_or_set_fallback(&own.name, &own.email)
            .map_err(|e| failed("naming the committer", &gix::Error::from_error(e)))?;
        match repo.edit_reference(edit(name.clone(), update.old, update.new)) {
            Ok(_) => Ok(()),
            Err(_) if self.current(&name)? != update.old => Err(RepoError::RefMoved {
                url: self.store.url.to_string(),
                name: update.name.clone(),
            }),
            Err(e) => Err(failed("moving the branch", &e)),
        }
    }

    /// The commit that a ref names now; one that cannot be read is not one that was moved.
    fn current(&self, name: &gix::refs::FullName) -> Result<Option<ObjectId>, RepoError> {
        let found = self.repo.try_find_reference(name);
        let found = found.map_err(|e| failed("reading the branch", &gix::Error::from_error(e)))?;
        Ok(found.and_then(|found| found.try_id().map(gix::Id::detach)))
    }
}

/// Whether git accepts the name of a ref.
pub(crate) fn check_name(name: &str) -> Result<(), RepoError> {
    full_name(name).map(|_| ())
}

fn full_name(name: &str) -> Result<gix::refs::FullName, RepoError> {
    let parsed: Result<gix::refs::FullName, _> = name.try_into();
    parsed.map_err(|e| RepoError::Unsupported(format!("{name:?} is not the name of a ref: {e}")))
}
