//! The place from which a kustomization reads: its folder, in the tree of the source or of another
//! repository.
//!
//! Main type: [`Loader`]. Files must be in or below the folder; referenced folders may be anywhere
//! in the tree, but must not contain a folder that is being built.

use super::Build;
use super::fault::{Fault, Res, fail};
use super::kustomization::NAMES;
use super::repospec::{Remote, RepoSpec, clean, is_http, remote};
use crate::{FileKind, SourceFiles, SourceRef, need::shown};
use std::rc::Rc;

/// Maximum nesting of kustomizations, safe on a small stack.
const DEEPEST: usize = 64;

pub(super) struct Loader<'a> {
    files: &'a dyn SourceFiles,
    /// The tree's number; 0 is the source's own.
    tree: usize,
    /// The folder in the tree.
    root: String,
    repository: Option<RepoSpec>,
    /// Files may lie anywhere in the tree.
    unrestricted: bool,
    depth: usize,
    parent: Option<Rc<Self>>,
}

impl<'a> Loader<'a> {
    pub fn new(files: &'a dyn SourceFiles, root: &str, unrestricted: bool) -> Self {
        files.expect(&[root.to_owned()], &NAMES);
        Self {
            files,
            tree: 0,
            root: resolved(files, root),
            repository: None,
            unrestricted,
            depth: 0,
            parent: None,
        }
    }

    /// The folder as shown in messages.
    pub fn shown(&self) -> String {
        format!("/{}", self.root)
    }

    /// A file of the folder as shown in messages, with the URL of the repository if it is another
    /// one.
    pub fn located(&self, file: &str) -> String {
        let path = format!("{}/{file}", self.shown().trim_end_matches('/'));
        match self.repository() {
            Some(spec) => format!("{path} of {}", shown(&spec.raw)),
            None => path,
        }
    }

    /// The last component of the folder's path.
    pub fn base_name(&self) -> &str {
        self.root.rsplit('/').next().unwrap_or_default()
    }

    pub fn files(&self) -> &'a dyn SourceFiles {
        self.files
    }

    /// Converts a path relative to the folder to one in the tree; `None` if it leaves the tree.
    pub fn path(&self, path: &str) -> Option<String> {
        inside(&self.root, path)
    }

    /// Announces what its kustomization names. What is fetched from elsewhere, and paths that lead
    /// nowhere, are left out.
    pub fn expect<'p>(&self, paths: impl IntoIterator<Item = &'p String>) {
        let local = |path: &&String| {
            // A patch may be in the place of a path.
            let is_path = !path.is_empty() && !path.contains(['\n', '\0', '{']);
            is_path && !path.starts_with('/') && !is_http(path) && remote(path).is_none()
        };
        let paths = paths.into_iter().filter(local);
        let paths: Vec<String> = paths.filter_map(|path| self.path(path)).collect();
        self.files.expect(&paths, &NAMES);
    }

    /// Whether a build begins here.
    pub fn is_top(&self) -> bool {
        self.parent.is_none()
    }

    /// A value that is unique per folder.
    pub fn place(&self) -> (usize, String) {
        (self.tree, self.root.clone())
    }

    /// Whether a URL refers to a file.
    pub fn is_remote_file(&self, path: &str) -> bool {
        matches!(remote(path), Some(Remote::File(_)))
    }

    /// Loads a remote file, which fails if it must be fetched first.
    pub fn load_if_remote(&self, build: &mut Build<'a>, path: &str) -> Res<()> {
        if is_http(path) {
            self.load(build, path)?;
        }
        Ok(())
    }

    /// The path of a file that is there, with links followed.
    fn real(&self, whole: &str) -> Res<String> {
        let real = self.files.resolved(whole)?;
        Ok(real.unwrap_or_else(|| whole.to_owned()))
    }

    fn is_below(&self, path: &str) -> bool {
        is_in(path, &self.root)
    }

    /// The content of a file.
    pub fn load(&self, build: &mut Build<'a>, path: &str) -> Res<Vec<u8>> {
        build.count_file()?;
        if is_http(path) {
            let url = path.to_owned();
            let files = build.fetched(&SourceRef::File { url })?;
            return match files.read(SourceRef::FILE)? {
                Some(content) => build.sized(path, content),
                None => fail!("HTTP Error: {path} has no content"),
            };
        }
        let inside = self.path(path).filter(|_| !path.starts_with('/'));
        let Some(whole) = inside else {
            let shown = if path.starts_with('/') {
                clean(path)
            } else {
                clean(&format!("{}/{path}", self.shown()))
            };
            return fail!(
                "security; file '{shown}' is not in or below '{}'",
                self.shown()
            );
        };
        let kind = match self.files.kind(&whole) {
            Ok(kind) => kind,
            Err(_) if whole.contains('\0') => None,
            Err(error) => return Err(error.into()),
        };
        match kind {
            None => fail!(
                "evalsymlink failure on '/{whole}' : lstat /{whole}: no such file or directory"
            ),
            Some(FileKind::Dir) => fail!("'/{whole}' must resolve to a file"),
            _ if !self.unrestricted && !self.is_below(&self.real(&whole)?) => fail!(
                "security; file '/{whole}' is not in or below '{}'",
                self.shown()
            ),
            _ => match self.files.read(&whole)? {
                Some(content) => build.sized(path, content),
                None => fail!("open /{whole}: no such file or directory"),
            },
        }
    }

    /// The loader of another folder.
    pub fn descend(self: &Rc<Self>, build: &mut Build<'a>, path: &str) -> Res<Rc<Self>> {
        if path.is_empty() {
            return fail!("new root cannot be empty");
        }
        if self.depth >= DEEPEST {
            return Err(Fault::over_budget(
                "the number of kustomizations inside of each other",
                DEEPEST,
            ));
        }
        build.count_file()?;
        match remote(path) {
            Some(Remote::Git(spec)) => return self.into_repository(build, spec),
            Some(Remote::File(url)) => return fail!("{url} is a file, and not a folder"),
            None => {}
        }
        if path.starts_with('/') {
            return fail!("new root '{path}' cannot be absolute");
        }
        let not_there = |shown: &str, why: &str| {
            Fault::new(format!(
                "must build at directory: not a valid directory: evalsymlink failure on '{shown}' : {why}"
            ))
        };
        let Some(root) = self.path(path) else {
            let shown = clean(&format!("{}/{path}", self.shown()));
            if self.repository().is_some() {
                return fail!(
                    "security; bases in kustomizations found in cloned git repos must be within the repo, but base '{shown}' is outside '/'"
                );
            }
            return Err(not_there(&shown, "it is outside of the source"));
        };
        match self.files.kind(&root)? {
            Some(FileKind::Dir) => {}
            Some(_) => {
                return fail!("must build at directory: '/{root}': file is not directory");
            }
            None => {
                let why = format!("lstat /{root}: no such file or directory");
                return Err(not_there(&format!("/{root}"), &why));
            }
        }
        let root = resolved(self.files, &root);
        self.refuse_cycle(&root)?;
        Ok(Rc::new(Self {
            files: self.files,
            tree: self.tree,
            root,
            repository: None,
            unrestricted: self.unrestricted,
            depth: self.depth + 1,
            parent: Some(self.clone()),
        }))
    }

    fn into_repository(self: &Rc<Self>, build: &mut Build<'a>, spec: RepoSpec) -> Res<Rc<Self>> {
        for loader in self.ancestors() {
            if let Some(before) = &loader.repository
                && before.raw.starts_with(&spec.raw)
            {
                return fail!(
                    "cycle detected: URI '{}' referenced by previous URI '{}'",
                    shown(&spec.raw),
                    shown(&before.raw)
                );
            }
        }
        Self::of_repository(build, spec, Some(self.clone())).map(Rc::new)
    }

    /// The loader of a folder in another repository. `parent`: whose kustomization names it.
    pub fn of_repository(
        build: &mut Build<'a>,
        spec: RepoSpec,
        parent: Option<Rc<Self>>,
    ) -> Res<Self> {
        let files = build.fetched(&SourceRef::Git {
            url: spec.clone.clone(),
            revision: spec.revision.clone(),
            submodules: spec.submodules,
        })?;
        let root = clean(&format!("/{}", spec.folder));
        let root = root.trim_start_matches('/').to_owned();
        files.expect(std::slice::from_ref(&root), &NAMES);
        match files.kind(&root)? {
            Some(FileKind::Dir) => {}
            Some(_) => {
                return fail!("'/{root}' refers to file '/{root}'; expecting directory");
            }
            None => {
                return fail!(
                    "lstat /{root} of {}: no such file or directory",
                    shown(&spec.clone)
                );
            }
        }
        Ok(Self {
            files,
            tree: build.next_tree(),
            root: resolved(files, &root),
            repository: Some(spec),
            unrestricted: false,
            depth: parent.as_ref().map_or(0, |parent| parent.depth + 1),
            parent,
        })
    }

    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |loader| loader.parent.as_deref())
    }

    fn repository(&self) -> Option<&RepoSpec> {
        self.ancestors()
            .find_map(|loader| loader.repository.as_ref())
    }

    fn refuse_cycle(&self, root: &str) -> Res<()> {
        let mut same = self.ancestors().filter(|loader| loader.tree == self.tree);
        match same.find(|loader| is_in(&loader.root, root)) {
            None => Ok(()),
            Some(visited) => fail!(
                "cycle detected: candidate root '/{root}' contains visited root '{}'",
                visited.shown()
            ),
        }
    }
}

/// Converts a path relative to a folder to one in the tree; `None` if it leaves the tree.
pub(super) fn inside(folder: &str, path: &str) -> Option<String> {
    let whole = if folder.is_empty() {
        clean(path.trim_start_matches('/'))
    } else {
        clean(&format!("{folder}/{path}"))
    };
    match whole.as_str() {
        "." => Some(String::new()),
        ".." => None,
        outside if outside.starts_with("../") => None,
        _ => Some(whole),
    }
}

/// The folder with links followed: what lies beside it lies beside their target. One that cannot be
/// followed, or leads out of the source, is looked up as it is.
fn resolved(files: &dyn SourceFiles, root: &str) -> String {
    match files.resolved(root) {
        Ok(Some(real)) if !real.starts_with("../") => real,
        _ => root.to_owned(),
    }
}

/// Whether a path is the folder or inside it.
fn is_in(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
