//! Creates small local repositories and commits, for `tiphys up` and for tests, and stores downloads
//! as commits.

use super::{CommitId, GitLimits, Store, error::text};
use crate::RepoError;
use gix::{
    ObjectId,
    objs::{Kind, Write as _, tree::EntryKind},
    refs::{
        Target,
        transaction::{Change, LogChange, PreviousValue, RefEdit},
    },
    validate::path::component::{Mode, Options},
};
use std::{io::Read, path::Path};

/// A file of a download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnpackedFile<'a> {
    pub path: &'a str,
    pub content: &'a [u8],
}

impl<'a> UnpackedFile<'a> {
    pub fn new(path: &'a str, content: &'a [u8]) -> Self {
        Self { path, content }
    }
}

/// Who commits, and when.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub name: String,
    pub email: String,
    /// Since 1970.
    pub seconds: i64,
}

impl Author {
    /// The program itself.
    pub fn own(seconds: i64) -> Self {
        Self {
            name: "Tiphys".to_owned(),
            email: "tiphys@localhost".to_owned(),
            seconds,
        }
    }

    /// Whether git would take the name: whether anything is left of it.
    pub fn has_name(&self) -> bool {
        !identity(&self.name).is_empty()
    }
}

pub(super) fn failed(what: &str, e: &gix::Error) -> RepoError {
    RepoError::Internal(format!("{what}: {}", text(e)))
}

/// Creates an empty bare repository whose HEAD is `main`. The folder must be empty or missing.
pub(crate) fn init_bare(path: &Path) -> Result<Store, RepoError> {
    std::fs::create_dir_all(path)
        .map_err(|e| RepoError::Internal(format!("cannot create {}: {e}", path.display())))?;
    let options = gix::open::Options::isolated();
    gix::ThreadSafeRepository::init_opts(
        path,
        gix::create::Kind::Bare,
        gix::create::Options::default(),
        options,
    )
    .map_err(|e| {
        failed(
            &format!("cannot make a repository in {}", path.display()),
            &e,
        )
    })?;
    std::fs::write(path.join("HEAD"), "ref: refs/heads/main\n").map_err(|e| {
        RepoError::Internal(format!("cannot write {}: {e}", path.join("HEAD").display()))
    })?;
    Store::open(path, &path.display().to_string(), GitLimits::default())
}

/// Commits changes (None removes a file) on top of a branch, which may be new. Returns the commit.
pub(crate) fn commit_files(
    store: &Store,
    branch: &str,
    changes: &[(&str, Option<&[u8]>)],
    message: &str,
    seconds: i64,
) -> Result<String, RepoError> {
    let repo = store.local();
    let name = format!("refs/heads/{branch}");
    let full_name: gix::refs::FullName = name
        .as_str()
        .try_into()
        .map_err(|e| RepoError::Internal(format!("{branch:?} is no branch name: {e}")))?;
    let parent: Option<ObjectId> = match repo
        .try_find_reference(name.as_str())
        .map_err(|e| failed("reading the branch", &e))?
    {
        Some(mut reference) => Some(
            reference
                .peel_to_id()
                .map_err(|e| failed("reading the branch", &e))?
                .detach(),
        ),
        None => None,
    };
    let base = match parent {
        Some(parent) => {
            let commit = repo
                .find_commit(parent)
                .map_err(|e| failed("reading the last commit", &e))?;
            commit
                .tree_id()
                .map_err(|e| failed("reading the last commit", &e))?
                .detach()
        }
        None => repo
            .write_object(gix::objs::Tree::empty())
            .map_err(|e| failed("writing a tree", &e))?
            .detach(),
    };
    let mut editor = repo
        .edit_tree(base)
        .map_err(|e| failed("editing the tree", &e))?;
    for (path, content) in changes {
        let edited = match content {
            Some(content) => {
                let blob = repo
                    .write_blob(content)
                    .map_err(|e| failed("writing a file", &e))?
                    .detach();
                editor.upsert(*path, EntryKind::Blob, blob).map(|_| ())
            }
            None => editor.remove(*path).map(|_| ()),
        };
        edited.map_err(|e| failed(&format!("changing {path}"), &e))?;
    }
    let tree = editor
        .write()
        .map_err(|e| failed("writing the tree", &e))?
        .detach();
    let id = write_commit(&repo, tree, parent, message, &Author::own(seconds))?;
    repo.edit_reference(edit(full_name, parent, id))
        .map_err(|e| failed("moving the branch", &e))?;
    Ok(id.to_string())
}

/// Moves a ref that is still where it was; `None`: it does not exist yet.
pub(super) fn edit(name: gix::refs::FullName, old: Option<ObjectId>, new: ObjectId) -> RefEdit {
    let expected = old.map_or(PreviousValue::MustNotExist, |old| {
        PreviousValue::MustExistAndMatch(Target::Object(old))
    });
    RefEdit {
        change: Change::Update {
            log: LogChange::default(),
            expected,
            new: Target::Object(new),
        },
        name,
        deref: false,
    }
}

pub(super) fn write_commit(
    repo: &gix::Repository,
    tree: ObjectId,
    parent: Option<ObjectId>,
    message: &str,
    author: &Author,
) -> Result<ObjectId, RepoError> {
    let who = gix::actor::Signature {
        name: identity(&author.name).into(),
        email: identity(&author.email).into(),
        time: gix::date::Time::new(author.seconds, 0),
    };
    let commit = gix::objs::Commit {
        tree,
        parents: parent.into_iter().collect(),
        author: who.clone(),
        committer: who,
        encoding: None,
        message: message.into(),
        extra_headers: Vec::new(),
    };
    let id = repo
        .write_object(&commit)
        .map_err(|e| failed("writing the commit", &e))?
        .detach();
    Ok(id)
}

/// A name or address as git writes it: without what separates the parts of a signature, and
/// without blanks and punctuation at either end.
fn identity(text: &str) -> String {
    let ends = |c: char| c <= ' ' || ".,:;<>\"\\'".contains(c);
    let separates = |c: char| c.is_control() || matches!(c, '<' | '>');
    text.trim_matches(ends).replace(separates, "")
}

/// Where downloads are named in a repository of our own.
const NAMESPACE: &str = "refs/unpacked/";

impl Store {
    /// The commit that [`Store::put`] stored under a name.
    pub fn named(&self, name: &str) -> Result<Option<CommitId>, RepoError> {
        let repo = self.local();
        let reference = repo
            .try_find_reference(format!("{NAMESPACE}{name}").as_str())
            .map_err(|e| self.misread(&e))?;
        let Some(mut reference) = reference else {
            return Ok(None);
        };
        let id = reference.peel_to_id().map_err(|e| self.misread(&e))?;
        self.commit(&id.to_string())
    }

    /// Takes a name away. The files stay until the repository goes.
    pub fn forget_name(&self, name: &str) -> Result<(), RepoError> {
        let repo = self.local();
        let reference = repo
            .try_find_reference(format!("{NAMESPACE}{name}").as_str())
            .map_err(|e| self.misread(&e))?;
        match reference {
            Some(reference) => reference.delete().map_err(|e| failed("forgetting", &e)),
            None => Ok(()),
        }
    }

    /// A name that we wrote is not what we wrote, unless the machine could not read it.
    fn misread(&self, e: &gix::Error) -> RepoError {
        let mut errors = e.iter_errors();
        if !errors.any(|cause| cause.downcast_ref::<std::io::Error>().is_some()) {
            self.blame(Some(self), e);
        }
        self.corrupt(e)
    }

    /// Stores files as a commit without a parent, under these names. Returns it, and how many bytes
    /// were stored, also where that failed.
    pub fn put<'a>(
        &self,
        names: &[String],
        files: impl IntoIterator<Item = UnpackedFile<'a>>,
    ) -> (Result<CommitId, RepoError>, u64) {
        let mut adding = self.adding();
        let mut added = Vec::new();
        for file in files {
            match adding.blob(EntryKind::Blob, file.content) {
                Ok(blob) => added.push((file.path, blob)),
                Err(e) => return (Err(e), adding.bytes()),
            }
        }
        (adding.finish(names, added), adding.bytes())
    }

    /// Begins to store files one after the other.
    pub fn adding(&self) -> Adding {
        Adding {
            repo: self.local(),
            bytes: 0,
        }
    }
}

/// Whether the parts of a path may be names in a tree. Git refuses those that some file system takes
/// for its own folder, such as `git~1`, and links in place of `.gitmodules`.
pub(crate) fn fits(path: &str, is_link: bool) -> bool {
    let options = Options {
        protect_windows: cfg!(windows),
        ..Options::default()
    };
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let mode = (is_link && is_last).then_some(Mode::Symlink);
        if gix::validate::path::component(part.into(), mode, options).is_err() {
            return false;
        }
    }
    true
}

/// A file or a link that was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    kind: EntryKind,
    id: ObjectId,
}

/// Files that are being stored. Until they are named, nobody finds them.
pub(crate) struct Adding {
    repo: gix::Repository,
    bytes: u64,
}

impl Adding {
    fn blob(&mut self, kind: EntryKind, content: &[u8]) -> Result<Added, RepoError> {
        let blob = self.repo.write_blob(content);
        let id = blob.map_err(|e| failed("writing a file", &e))?.detach();
        self.bytes = self.bytes.saturating_add(content.len() as u64);
        Ok(Added { kind, id })
    }

    /// Those of all files so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A file of so many bytes, which need not fit into memory.
    pub fn file(&mut self, content: &mut dyn Read, size: u64) -> Result<Added, RepoError> {
        let written = self.repo.objects.write_stream(Kind::Blob, size, content);
        let id = written.map_err(|e| failed("writing a file", &e))?;
        self.bytes = self.bytes.saturating_add(size);
        let kind = EntryKind::Blob;
        Ok(Added { kind, id })
    }

    /// A link to another file.
    pub fn link(&mut self, target: &str) -> Result<Added, RepoError> {
        self.blob(EntryKind::Link, target.as_bytes())
    }

    /// The files as a commit without a parent, under these names.
    pub fn finish<'a>(
        &self,
        names: &[String],
        files: impl IntoIterator<Item = (&'a str, Added)>,
    ) -> Result<CommitId, RepoError> {
        let mut editor = self
            .repo
            .edit_tree(ObjectId::empty_tree(self.repo.object_hash()))
            .map_err(|e| failed("editing the tree", &e))?;
        for (path, added) in files {
            editor
                .upsert(path, added.kind, added.id)
                .map_err(|e| failed(&format!("adding {path}"), &e))?;
        }
        let tree = editor
            .write()
            .map_err(|e| failed("writing the tree", &e))?
            .detach();
        // The same files have the same commit.
        let own = Author::own(0);
        let commit = write_commit(&self.repo, tree, None, "Unpack a download", &own)?;
        for name in names {
            let name = format!("{NAMESPACE}{name}");
            self.repo
                .reference(name, commit, PreviousValue::Any, "unpacked")
                .map_err(|e| failed("naming a download", &e))?;
        }
        Ok(CommitId { commit, tree })
    }
}
