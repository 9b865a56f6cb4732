//! A revision as a packed archive, as the servers of plugins receive it.
//!
//! Main type: [`Archives`], which packs each tree once while it is in use.

use crate::{
    RepoError,
    busy::Busy,
    git::{Commit, CommitId, GitFiles, Item, Store, Visitor, fits, walk},
    ground::blocking,
};
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tiphys_gocompat::path_match;
use tiphys_render::{FileError, RenderError, SourceFiles as _};

/// How many bytes of archives lie on the disk, and for how long after they were used last.
const KEPT_BYTES: u64 = 512 << 20;
const KEPT: Duration = Duration::from_secs(120);

/// What an archive may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    pub entries: u64,
    /// Before it is packed.
    pub bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            entries: 500_000,
            bytes: 1 << 30,
        }
    }
}

/// A file without a name, which is gone with its last reader.
pub(super) struct Archive {
    file: File,
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub checksum: String,
}

impl Archive {
    /// The bytes from here on, at most as many; empty at the end. Blocks.
    pub fn read(&self, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.size.saturating_sub(from)).unwrap_or(usize::MAX);
        let mut chunk = vec![0; most.min(left)];
        self.file.read_exact_at(&mut chunk, from)?;
        Ok(chunk)
    }
}

pub(super) struct Archives {
    /// Globs of paths that are left out.
    exclude: Arc<[String]>,
    limits: ArchiveLimits,
    /// By tree.
    kept: moka::sync::Cache<String, Arc<Archive>>,
    packing: Busy<String>,
}

impl Archives {
    pub fn new(exclude: &[String], limits: ArchiveLimits) -> Self {
        let size =
            |_: &String, archive: &Arc<Archive>| u32::try_from(archive.size).unwrap_or(u32::MAX);
        let kept = moka::sync::Cache::builder()
            .weigher(size)
            .max_capacity(KEPT_BYTES)
            .time_to_idle(KEPT)
            .build();
        Self {
            exclude: exclude.into(),
            limits,
            kept,
            packing: Busy::default(),
        }
    }

    /// All files of a revision.
    pub async fn of(&self, (store, id): &Commit) -> Result<Arc<Archive>, RepoError> {
        let tree = id.tree.to_string();
        if let Some(known) = self.kept.get(&tree) {
            return Ok(known);
        }
        let _alone = self.packing.wait(&tree).await;
        if let Some(known) = self.kept.get(&tree) {
            return Ok(known);
        }
        let (store, id) = (store.clone(), *id);
        let (exclude, limits) = (Arc::clone(&self.exclude), self.limits);
        let packed = blocking(move || pack(&store, id, &exclude, limits)).await?;
        let packed = Arc::new(packed);
        self.kept.insert(tree, Arc::clone(&packed));
        Ok(packed)
    }
}

/// Counts and hashes what goes through.
struct Counted {
    file: File,
    hash: Sha256,
    size: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

struct Packer<'a> {
    tar: tar::Builder<GzEncoder<Counted>>,
    exclude: &'a [String],
    /// The commit, to follow its links.
    tree: GitFiles,
    limits: ArchiveLimits,
    left: ArchiveLimits,
    /// Files, not folders.
    files: u64,
    modified: u64,
}

fn pack(
    store: &Store,
    id: CommitId,
    exclude: &[String],
    limits: ArchiveLimits,
) -> Result<Archive, RepoError> {
    let counted = Counted {
        file: tempfile::tempfile().map_err(failed)?,
        hash: Sha256::new(),
        size: 0,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut packer = Packer {
        tar: tar::Builder::new(GzEncoder::new(counted, Compression::fast())),
        exclude,
        tree: GitFiles::new(store, id.tree, None),
        limits,
        left: limits,
        files: 0,
        modified: now.unwrap_or_default().as_secs(),
    };
    walk(store, id, &mut packer)?;
    if packer.files == 0 {
        return Err(RepoError::Plugin {
            message: "no files to send".to_owned(),
            retryable: false,
        });
    }
    let counted = packer
        .tar
        .into_inner()
        .and_then(GzEncoder::finish)
        .map_err(failed)?;
    Ok(Archive {
        file: counted.file,
        size: counted.size,
        checksum: crate::ground::hex(&counted.hash.finalize()),
    })
}

fn failed(e: io::Error) -> RepoError {
    RepoError::Internal(format!("cannot pack files for a plugin: {e}"))
}

impl Packer<'_> {
    fn append(
        &mut self,
        path: &str,
        kind: tar::EntryType,
        mode: u32,
        content: &[u8],
    ) -> Result<(), RepoError> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(self.modified);
        header.set_size(content.len() as u64);
        self.tar
            .append_data(&mut header, path, content)
            .map_err(failed)
    }

    fn spend(&mut self, bytes: u64) -> Result<(), RepoError> {
        let over = |what: &str, limit| RenderError::OverBudget {
            what: format!("what is sent to a plugin, in {what},"),
            limit,
        };
        let entries = self.left.entries.checked_sub(1);
        self.left.entries = entries.ok_or_else(|| over("files", self.limits.entries))?;
        let left = self.left.bytes.checked_sub(bytes);
        self.left.bytes = left.ok_or_else(|| over("bytes", self.limits.bytes))?;
        Ok(())
    }
}

impl Visitor for Packer<'_> {
    type Error = RepoError;

    fn wants(&mut self, path: &str) -> Result<bool, RepoError> {
        for pattern in self.exclude {
            let found = path_match::matches(pattern, path).map_err(|e| {
                RepoError::Unsupported(format!(
                    "error verifying exclusion pattern {pattern:?}: {e}"
                ))
            })?;
            if found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, path: &str, item: Item) -> Result<(), RepoError> {
        // git checks nothing out that it could take for its own folder, with commands in it: a
        // plugin may call git where this is unpacked. The folders above were looked at before.
        let name = path.rsplit('/').next().unwrap_or(path);
        if !fits(name, matches!(item, Item::Link(_))) {
            return Err(RepoError::Plugin {
                message: format!("invalid path {path:?}: git checks out no such file"),
                retryable: false,
            });
        }
        match item {
            Item::Folder => {
                self.spend(0)?;
                self.append(path, tar::EntryType::Directory, 0o755, &[])
            }
            Item::File {
                content,
                executable,
            } => {
                self.spend(content.len() as u64)?;
                self.files += 1;
                let mode = if executable { 0o755 } else { 0o644 };
                self.append(path, tar::EntryType::Regular, mode, &content)
            }
            Item::Link(target) => {
                self.spend(target.len() as u64)?;
                // As it is written, too: what is unpacked may lack what another link leads to.
                let leaves = matches!(self.tree.resolved(path), Err(FileError::OutsideLink(_)));
                if leaves || !stays_inside(path, &target) {
                    return Err(RepoError::Plugin {
                        message: format!(
                            "repository contains out-of-bounds symlinks. file: {path}"
                        ),
                        retryable: false,
                    });
                }
                let mut header = tar::Header::new_gnu();
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_mode(0o777);
                header.set_mtime(self.modified);
                header.set_size(0);
                self.tar
                    .append_link(&mut header, path, &target)
                    .map_err(failed)
            }
        }
    }
}

/// Whether a link leads to a place in the same tree, as it is written.
fn stays_inside(path: &str, target: &str) -> bool {
    if target.starts_with('/') || target.is_empty() || target.contains('\0') {
        return false;
    }
    let mut depth = path.split('/').count() - 1;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return false,
            },
            _ => depth += 1,
        }
    }
    true
}

impl From<FileError> for RepoError {
    fn from(e: FileError) -> Self {
        Self::Render(RenderError::File(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{commit_files, init_bare};
    use std::{
        path::Path,
        process::{Command, Stdio},
    };

    /// Writes a tree as it is, which git's own commands for files would not.
    fn tree(repository: &Path, entry: &str) -> gix::ObjectId {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(repository).arg("mktree");
        let mut git = git
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git is installed");
        let mut input = git.stdin.take().expect("it is piped");
        input.write_all(entry.as_bytes()).expect("it is read");
        drop(input);
        let output = git.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{entry}");
        gix::ObjectId::from_hex(output.stdout.trim_ascii()).expect("an id")
    }

    /// Cases 22 and 84 of the hostile sources: git would run what a plugin finds in `.git`.
    #[test]
    fn what_git_does_not_check_out_is_not_sent() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("r");
        let store = init_bare(&path).expect("a repository");
        let files = [("app/a", Some(&b"a"[..]))];
        let sha = commit_files(&store, "main", &files, "A change", 0).expect("a commit");
        let id = store.commit(&sha).expect("readable").expect("there");
        let files = GitFiles::new(&store, id.tree, None);
        let blob = match files.look("app/a") {
            crate::git::Found::File(blob) => blob,
            other => panic!("{other:?}"),
        };
        let folder = tree(&path, &format!("100644 blob {blob}\tconfig\n"));
        let packed = |entry: &str| {
            let id = CommitId {
                tree: tree(&path, entry),
                ..id
            };
            pack(&store, id, &[], ArchiveLimits::default()).map(drop)
        };
        for name in [".git", ".GIT", "git~1", ".git ", ".g\u{200c}it"] {
            for entry in [
                format!("040000 tree {folder}\t{name}\n"),
                format!("100644 blob {blob}\t{name}\n"),
            ] {
                let refused = packed(&entry).expect_err(name).to_string();
                assert!(refused.contains("git checks out no such file"), "{refused}");
            }
        }
        let link = format!("120000 blob {blob}\t.gitmodules\n");
        packed(&link).expect_err("a link in place of a file of git");
        for name in [".github", ".gitignore", "git"] {
            let entry = format!("040000 tree {folder}\t{name}\n");
            packed(&entry).expect(name);
        }
    }

    /// R95: whoever looks for a plugin asks one after the other with the same files.
    #[tokio::test]
    async fn a_tree_is_packed_once_for_all_plugins() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = init_bare(&dir.path().join("r")).expect("a repository");
        let commit = |content: &str| {
            let files = [("a", Some(content.as_bytes()))];
            let sha = commit_files(&store, "main", &files, "A change", 0).expect("a commit");
            let id = store.commit(&sha).expect("readable").expect("there");
            (store.clone(), id)
        };
        let (one, other) = (commit("one"), commit("other"));
        let archives = Archives::new(&[], ArchiveLimits::default());
        let packed = archives.of(&one).await.expect("packed");
        let both = tokio::join!(archives.of(&one), archives.of(&one));
        for again in [both.0, both.1] {
            assert!(Arc::ptr_eq(&packed, &again.expect("packed")));
        }
        let changed = archives.of(&other).await.expect("packed");
        assert_ne!(changed.checksum, packed.checksum);
    }

    #[test]
    fn links_are_judged_as_they_are_written() {
        for (path, target, inside) in [
            ("a", "b", true),
            ("a/b", "../c", true),
            ("a/b", "../../c", false),
            ("a", "..", false),
            ("a/b/c", "../../x/../y", true),
            ("a", "b/../../c", false),
            ("a", "/etc/passwd", false),
            ("a", "", false),
        ] {
            assert_eq!(stays_inside(path, target), inside, "{path} -> {target}");
        }
    }
}
