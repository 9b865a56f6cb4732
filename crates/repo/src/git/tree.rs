//! The tree of a commit as files, read directly from the object database. Nothing is checked out.

mod ahead;

pub(crate) use ahead::Seen;

use super::{GitLimit, Store};
use crate::{
    RepoError,
    lfs::{self, Objects},
};
use gix::{ObjectId, bstr::ByteSlice, objs::tree::EntryKind};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tiphys_render::{FileEntry, FileError, FileKind, SourceFiles};

/// Links followed for one path.
const MAX_LINKS: usize = 40;
/// Largest file that is read.
pub(super) const MAX_FILE: u64 = 64 << 20;
/// Files of a folder among which other Git LFS pointers are looked for.
const MAX_BESIDE: usize = 500;
/// Longest target of a link.
pub(super) const MAX_LINK_TEXT: u64 = 4096;

/// Cache size for trees, per repository.
const TREE_BYTES: u64 = 4 << 20;

pub(super) struct Node {
    pub name: Box<str>,
    pub kind: EntryKind,
    pub id: ObjectId,
}

/// Parsed trees by object id: Applications of one repository mostly read the same folders.
pub(super) type Trees = moka::sync::Cache<ObjectId, Arc<[Node]>>;

pub(super) fn no_trees() -> Trees {
    let bytes = |nodes: &[Node]| {
        64 + nodes
            .iter()
            .map(|n| size_of::<Node>() + n.name.len())
            .sum::<usize>()
    };
    let weigher =
        move |_: &ObjectId, nodes: &Arc<[Node]>| u32::try_from(bytes(nodes)).unwrap_or(u32::MAX);
    moka::sync::Cache::builder()
        .weigher(weigher)
        .max_capacity(TREE_BYTES)
        .build()
}

/// Read-only files of one tree. Links are followed only inside the tree; submodules are neither
/// read nor entered, except where [`super::compose`] put their trees.
pub(crate) struct GitFiles {
    store: Store,
    /// One thread at a time: gix repositories are not shared. Opened at the first read that is not
    /// cached.
    repos: OnceLock<Mutex<Opened>>,
    root: ObjectId,
    /// Files in this folder need not be recorded, because the caller knows the folder's tree.
    base: Option<String>,
    /// The paths looked up elsewhere, or through links, and what was found.
    noted: Mutex<BTreeMap<String, Found>>,
    /// The trees that were read on the way, of a commit with submodules: one of them names what
    /// turns out to be missing.
    passed: Mutex<HashSet<ObjectId>>,
    /// Use only cached trees.
    in_memory: bool,
}

/// Whose object it was that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Own,
    /// That of a submodule, by its index.
    Submodule(usize),
    /// Nobody's: a tree names an object that is nowhere, and that may be a tree of any of them.
    Unknown,
}

/// The repositories of one reader.
struct Opened {
    own: gix::Repository,
    parts: Vec<gix::Repository>,
}

impl Opened {
    /// The repository that has an object, and which part that is; or else the first one, for its
    /// error.
    fn with(&self, id: ObjectId, store: &Store) -> (&gix::Repository, Part) {
        if self.parts.is_empty() || self.own.has_object(id) {
            return (&self.own, Part::Own);
        }
        let mut parts = self.parts.iter().enumerate();
        if let Some((n, part)) = parts.find(|(_, part)| part.has_object(id)) {
            return (part, Part::Submodule(n));
        }
        let composed = store.composed.as_ref();
        let is_own = composed.is_some_and(|composed| composed.own.contains(&id));
        let part = if is_own { Part::Own } else { Part::Unknown };
        (&self.own, part)
    }

    /// The same. If nobody has it, the part is the one with the tree that names it: a tree is not
    /// received without what it names.
    fn with_namer(
        &self,
        id: ObjectId,
        store: &Store,
        passed: &Mutex<HashSet<ObjectId>>,
    ) -> (&gix::Repository, Part) {
        let (repo, part) = self.with(id, store);
        if part != Part::Unknown {
            return (repo, part);
        }
        let passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        let namer = passed.iter().find_map(|tree| {
            let (of, part) = self.with(*tree, store);
            (part != Part::Unknown && names(of, *tree, id)).then_some(part)
        });
        (repo, namer.unwrap_or(Part::Unknown))
    }
}

/// Whether a tree of the repository has an entry with this id.
fn names(repo: &gix::Repository, tree: ObjectId, id: ObjectId) -> bool {
    let found = repo.find_object(tree).map(gix::Object::try_into_tree);
    let Ok(Ok(tree)) = found else {
        return false;
    };
    let mut entries = tree.iter().flatten();
    entries.any(|entry| entry.object_id() == id && entry.mode().kind() != EntryKind::Commit)
}

/// The target of a path with links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Dir(ObjectId),
    File(ObjectId),
    Other,
    Missing,
    /// The path cannot be followed.
    Bad,
    /// Only as noted: what a path that leads through links was found to be, and where. Equal
    /// content elsewhere has other neighbours, which a kustomization of it may name.
    Linked([u8; 32]),
}

impl Found {
    /// What is noted of a path that leads through this many links to another.
    fn noted(self, links: usize, whole: &str) -> Self {
        if links == 0 || matches!(self, Self::Missing | Self::Bad) {
            return self;
        }
        let mut hash = Sha256::new();
        hash.update(format!("{self:?} {whole}"));
        Self::Linked(hash.finalize().into())
    }
}

impl GitFiles {
    /// `base` is the folder whose tree the caller knows; None: every look-up is recorded.
    pub fn new(store: &Store, root: ObjectId, base: Option<&str>) -> Self {
        Self {
            store: store.clone(),
            repos: OnceLock::new(),
            root,
            base: base.map(str::to_owned),
            noted: Mutex::default(),
            passed: Mutex::default(),
            in_memory: false,
        }
    }

    /// Whether the render that reads them has met something torn; if it is not watched for that,
    /// whether anyone has in their repository: see [`Store::is_damaged`].
    pub fn is_damaged(&self) -> bool {
        match &self.store.torn {
            Some(torn) => torn.get().is_some(),
            None => self.store.is_damaged(),
        }
    }

    /// Whether a file that was read is to be downloaded first; `None`: such files are refused.
    pub fn misses_lfs(&self) -> Option<bool> {
        self.store
            .lfs
            .as_ref()
            .map(|objects| objects.is_any_missing())
    }

    /// Whose Git LFS objects the files are; `None`: nobody's.
    pub fn lfs_access(&self) -> Option<[u8; 32]> {
        self.store.lfs.as_ref().map(|objects| objects.access())
    }

    /// The same files, with records of its own.
    pub fn beside(&self, base: Option<&str>) -> Self {
        Self::new(&self.store, self.root, base)
    }

    /// Whether these paths have these contents, as far as that is cached.
    pub fn are(store: &Store, root: ObjectId, things: &[(String, Found)]) -> bool {
        let files = Self {
            in_memory: true,
            ..Self::new(store, root, Some(""))
        };
        things.iter().all(|(path, found)| {
            let mut links = 0;
            let there = files.follow(path, &mut links);
            there.is_ok_and(|(there, whole)| there.noted(links, &whole) == *found)
        })
    }

    /// The object at a path, as it is noted.
    pub fn look(&self, path: &str) -> Found {
        self.find_noted(path).1
    }

    fn noted_of(found: &Result<(Found, String), FileError>, links: usize) -> Found {
        match found {
            Ok((found, whole)) => found.noted(links, whole),
            Err(_) => Found::Bad,
        }
    }

    /// The look-ups outside of the base folder or through links, with their results. Together with
    /// the folder's tree this is everything that was read.
    pub fn noted(&self) -> BTreeMap<String, Found> {
        self.noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces what was recorded.
    pub fn note_only(&self, noted: BTreeMap<String, Found>) {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }

    /// Adds look-ups that others recorded for the same tree.
    pub fn note(&self, noted: BTreeMap<String, Found>) {
        self.noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(noted);
    }

    fn unreadable(path: &str, reason: impl ToString) -> FileError {
        FileError::Unreadable {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// # Errors
    /// A folder is deeper than the limit.
    pub(super) fn check_depth(&self, path: &str, depth: u64) -> Result<(), FileError> {
        if depth > self.store.limits.depth {
            return Err(self.over(path, GitLimit::Depth));
        }
        Ok(())
    }

    fn over(&self, path: &str, limit: GitLimit) -> FileError {
        Self::unreadable(path, self.store.limits.exceeded(limit, &*self.store.url))
    }

    /// A gix error, of the part that was read. An object that is too large was not read.
    fn failed(&self, path: &str, part: Part, e: &gix::Error) -> FileError {
        if e.is_resource_exhausted() {
            self.over(path, GitLimit::Object)
        } else {
            self.store.heed_of(e, part);
            Self::unreadable(path, super::error::text(e))
        }
    }

    /// A broken repository.
    pub(super) fn broken(&self, e: &FileError) -> RepoError {
        RepoError::Corrupt {
            url: self.store.url.to_string(),
            reason: e.to_string(),
        }
    }

    fn repos(&self, path: &str) -> Result<MutexGuard<'_, Opened>, FileError> {
        if self.in_memory {
            return Err(Self::unreadable(path, "it was not read before"));
        }
        let repos = self.repos.get_or_init(|| {
            let parts = self.store.composed.iter().flat_map(|c| &c.parts);
            Mutex::new(Opened {
                own: self.store.local(),
                parts: parts.map(Store::local).collect(),
            })
        });
        repos
            .lock()
            .map_err(|_| Self::unreadable(path, "an earlier read failed"))
    }

    pub(super) fn tree(&self, id: ObjectId, path: &str) -> Result<Arc<[Node]>, FileError> {
        if self.store.is_composed() {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            passed.insert(id);
        }
        if let Some(tree) = self.store.trees.get(&id) {
            return Ok(tree);
        }
        let composed = self.store.composed.as_ref();
        if let Some(tree) = composed.and_then(|composed| composed.trees.get(&id)) {
            return Ok(Arc::clone(tree));
        }
        let repos = self.repos(path)?;
        let (repo, part) = repos.with_namer(id, &self.store, &self.passed);
        let object = repo.find_object(id);
        let object = object.map_err(|e| self.failed(path, part, &e))?;
        // The tree that names it is wrong then, whoever has the object.
        let tree = object
            .try_into_tree()
            .map_err(|e| self.failed(path, Part::Unknown, &e))?;
        let mut nodes = Vec::new();
        for entry in tree.iter() {
            let entry = entry.map_err(|e| Self::unreadable(path, e))?;
            let name: Box<str> = entry.filename().to_str_lossy().into();
            // git refuses to check these out, but a hostile tree can contain them.
            if name.is_empty() || name.contains('/') || matches!(&*name, "." | "..") {
                continue;
            }
            if nodes.len() as u64 >= self.store.limits.tree_entries {
                return Err(self.over(path, GitLimit::TreeEntries));
            }
            nodes.push(Node {
                name,
                kind: entry.mode().kind(),
                id: entry.object_id(),
            });
        }
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let nodes: Arc<[Node]> = nodes.into();
        self.store.trees.insert(id, Arc::clone(&nodes));
        Ok(nodes)
    }

    pub(super) fn blob(&self, id: ObjectId, path: &str, limit: u64) -> Result<Vec<u8>, FileError> {
        let repos = self.repos(path)?;
        let (repo, part) = repos.with_namer(id, &self.store, &self.passed);
        let failed = |e: gix::Error| self.failed(path, part, &e);
        let header = repo.find_header(id).map_err(failed)?;
        if header.size() > limit {
            return Err(FileError::TooLarge {
                path: path.to_owned(),
                size: header.size(),
                limit,
            });
        }
        let mut object = repo.find_object(id).map_err(failed)?;
        Ok(std::mem::take(&mut object.data))
    }

    /// A path with dots may lead elsewhere.
    fn is_in_base(&self, path: &str) -> bool {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        if !path.is_empty() && !path.split('/').all(is_plain) {
            return false;
        }
        self.base.as_ref().is_some_and(|base| {
            base.is_empty()
                || path
                    .strip_prefix(base.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn find(&self, path: &str) -> Result<Found, FileError> {
        self.find_noted(path).0
    }

    /// What is at a path, and as what it is noted.
    fn find_noted(&self, path: &str) -> (Result<Found, FileError>, Found) {
        let mut links = 0;
        let found = self.follow(path, &mut links);
        let noted = Self::noted_of(&found, links);
        if links > 0 || !self.is_in_base(path) {
            self.note([(path.to_owned(), noted)].into());
        }
        (found.map(|(found, _)| found), noted)
    }

    /// Walks a path from the root, following links by prepending their target to the rest of the
    /// path.
    fn walk(&self, path: &str, links: &mut usize) -> Result<Found, FileError> {
        Ok(self.follow(path, links)?.0)
    }

    /// The same, with the path to which the links lead.
    fn follow(&self, path: &str, links: &mut usize) -> Result<(Found, String), FileError> {
        const NOWHERE: String = String::new();
        let whole = |stack: &[(String, ObjectId)], last: &str| -> String {
            let folders = stack.iter().map(|(name, _)| name.as_str());
            folders.chain([last]).collect::<Vec<_>>().join("/")
        };
        let mut todo: Vec<String> = path
            .split('/')
            .rev()
            .filter(|p| !p.is_empty())
            .map(str::to_owned)
            .collect();
        // The folders from the root to the current one, with their names.
        let mut stack: Vec<(String, ObjectId)> = Vec::new();
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    if stack.pop().is_none() {
                        return Err(FileError::OutsideLink(path.to_owned()));
                    }
                    continue;
                }
                _ => {}
            }
            let here = stack.last().map_or(self.root, |(_, id)| *id);
            let tree = self.tree(here, path)?;
            let Ok(index) = tree.binary_search_by(|n| (*n.name).cmp(&part)) else {
                return Ok((Found::Missing, NOWHERE));
            };
            let Some(node) = tree.get(index) else {
                return Ok((Found::Missing, NOWHERE));
            };
            match node.kind {
                EntryKind::Tree => {
                    stack.push((part, node.id));
                    if stack.len() as u64 > self.store.limits.depth {
                        return Err(self.over(path, GitLimit::Depth));
                    }
                }
                EntryKind::Link => {
                    *links += 1;
                    if *links > MAX_LINKS {
                        return Err(FileError::LinkLoop(path.to_owned()));
                    }
                    let target = self.blob(node.id, path, MAX_LINK_TEXT)?;
                    let Ok(target) = String::from_utf8(target) else {
                        return Ok((Found::Missing, NOWHERE));
                    };
                    if target.starts_with('/') || target.contains('\0') {
                        return Err(FileError::OutsideLink(path.to_owned()));
                    }
                    if todo.len() > 1000 {
                        return Err(FileError::LinkLoop(path.to_owned()));
                    }
                    todo.extend(target.split('/').rev().map(str::to_owned));
                }
                EntryKind::Commit => {
                    let found = if todo.is_empty() {
                        Found::Other
                    } else {
                        Found::Missing
                    };
                    return Ok((found, whole(&stack, &part)));
                }
                EntryKind::Blob | EntryKind::BlobExecutable => {
                    let only_dots = todo.iter().all(|p| p.is_empty() || p == ".");
                    let found = if only_dots {
                        Found::File(node.id)
                    } else {
                        Found::Missing
                    };
                    return Ok((found, whole(&stack, &part)));
                }
            }
        }
        let folder = Found::Dir(stack.last().map_or(self.root, |(_, id)| *id));
        let last = stack.pop().map_or(NOWHERE, |(name, _)| name);
        Ok((folder, whole(&stack, &last)))
    }

    /// Wants the other pointers in the folder of a file, too, so that they are not found out one by
    /// one.
    fn want_beside(&self, path: &str, objects: &Objects) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Ok(Found::Dir(id)) = self.walk(folder, &mut 0) else {
            return;
        };
        let Ok(tree) = self.tree(id, folder) else {
            return;
        };
        let is_file = |node: &&Node| {
            let is_blob = matches!(node.kind, EntryKind::Blob | EntryKind::BlobExecutable);
            is_blob && !is_document(&node.name)
        };
        for node in tree.iter().filter(is_file).take(MAX_BESIDE) {
            // A file that is too large or cannot be read is no pointer that matters.
            if let Ok(content) = self.blob(node.id, path, lfs::LARGEST_POINTER)
                && lfs::is_pointer(&content)
            {
                let beside = if folder.is_empty() {
                    node.name.to_string()
                } else {
                    format!("{folder}/{}", node.name)
                };
                objects.want(&beside, &content);
            }
        }
    }

    fn size(&self, id: ObjectId, path: &str) -> Result<u64, FileError> {
        let repos = self.repos(path)?;
        let (repo, part) = repos.with_namer(id, &self.store, &self.passed);
        let header = repo.find_header(id);
        Ok(header.map_err(|e| self.failed(path, part, &e))?.size())
    }
}

/// Images and the like: charts contain them, but they are not rendered.
fn is_document(path: &str) -> bool {
    const KINDS: [&str; 14] = [
        "png", "jpg", "jpeg", "gif", "svg", "ico", "webp", "bmp", "pdf", "mp4", "mov", "psd", "md",
        "drawio",
    ];
    path.rsplit_once('.')
        .is_some_and(|(_, kind)| KINDS.iter().any(|known| known.eq_ignore_ascii_case(kind)))
}

impl SourceFiles for GitFiles {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        Ok(match self.find(path)? {
            Found::Dir(_) => Some(FileKind::Dir),
            Found::File(id) => Some(FileKind::File {
                size: self.size(id, path)?,
            }),
            Found::Other => Some(FileKind::Other),
            Found::Missing | Found::Bad | Found::Linked(_) => None,
        })
    }

    fn resolved(&self, path: &str) -> Result<Option<String>, FileError> {
        let mut links = 0;
        let found = self.follow(path, &mut links);
        // Without links it is where it is, whatever it contains.
        if links > 0 {
            let noted = Self::noted_of(&found, links);
            self.note([(path.to_owned(), noted)].into());
        }
        Ok(match found? {
            (Found::Missing | Found::Bad, _) => None,
            (_, whole) => Some(whole),
        })
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        match self.find(path)? {
            Found::File(id) => {
                let content = self.blob(id, path, MAX_FILE)?;
                match &self.store.lfs {
                    _ if !lfs::is_pointer(&content) => Ok(Some(content)),
                    Some(objects) => {
                        let read = objects.read(path, &content);
                        if read.is_err() {
                            self.want_beside(path, objects);
                        }
                        read.map(Some)
                    }
                    None if is_document(path) => Ok(Some(content)),
                    None => Err(FileError::LfsPointer(path.to_owned())),
                }
            }
            _ => Ok(None),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        let Found::Dir(id) = self.find(path)? else {
            return Ok(None);
        };
        let tree = self.tree(id, path)?;
        let entry = |node: &Node| {
            let kind = match node.kind {
                EntryKind::Tree => FileKind::Dir,
                EntryKind::Link => FileKind::Symlink,
                EntryKind::Commit => FileKind::Other,
                // Getting the size would need a look-up in the object database; callers that need
                // it use `kind`.
                EntryKind::Blob | EntryKind::BlobExecutable => FileKind::File { size: 0 },
            };
            FileEntry {
                name: node.name.to_string(),
                kind,
            }
        };
        Ok(Some(tree.iter().map(entry).collect()))
    }
}
