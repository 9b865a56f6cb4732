//! Files that are read next. Those that only may be are not recorded, and what is wrong with one is
//! only found out by whoever reads it.

use super::{Found, GitFiles};
use crate::lfs;
use gix::objs::tree::EntryKind;

/// Larger files are read one by one.
const MAX_FILE: u64 = 64 << 10;
/// Most bytes at once.
const MAX_BYTES: usize = 4 << 20;

/// What is at a path to which no link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    File(Vec<u8>),
    Folder,
    Nothing,
}

impl GitFiles {
    /// What is at a path, recorded as if it had been looked up. `None`: the path is not plain, leads
    /// through a link, or what is there is large or of another kind. Who wants it must look it up.
    pub fn seen(&self, path: &str) -> Option<Seen> {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        if !path.is_empty() && !path.split('/').all(is_plain) {
            return None;
        }
        let mut links = 0;
        let found = self.walk(path, &mut links).ok()?;
        if links > 0 {
            return None;
        }
        let seen = match found {
            Found::Dir(_) => Seen::Folder,
            Found::File(id) => Seen::File(self.peek(id, path)?),
            Found::Missing => Seen::Nothing,
            Found::Other | Found::Bad | Found::Linked(_) => return None,
        };
        if !self.is_in_base(path) {
            self.note([(path.to_owned(), found)].into());
        }
        Some(seen)
    }

    /// At most `most` small files of a folder whose tree the caller knows, beginning with the name
    /// `from`, in the order of a listing; after the last one come the first ones. Links are left
    /// out. Other folders have none: what is read there must be recorded.
    pub fn ahead(
        &self,
        folder: &str,
        from: &str,
        most: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut links = 0;
        if !self.is_in_base(folder) {
            return found;
        }
        let Ok(Found::Dir(id)) = self.walk(folder, &mut links) else {
            return found;
        };
        if links > 0 {
            return found;
        }
        let Ok(tree) = self.tree(id, folder) else {
            return found;
        };
        let first = tree.partition_point(|node| &*node.name < from);
        let (before, after) = tree.split_at(first);
        let mut bytes = 0;
        for node in after.iter().chain(before) {
            if found.len() >= most || bytes >= MAX_BYTES {
                break;
            }
            if !matches!(node.kind, EntryKind::Blob | EntryKind::BlobExecutable) {
                continue;
            }
            let path = if folder.is_empty() {
                node.name.to_string()
            } else {
                format!("{folder}/{}", node.name)
            };
            if !is_wanted(&path) {
                continue;
            }
            if let Some(content) = self.peek(node.id, &path) {
                bytes += content.len();
                found.push((path, content));
            }
        }
        found
    }

    /// The content of a small file that is there and is no Git LFS pointer.
    fn peek(&self, id: gix::ObjectId, path: &str) -> Option<Vec<u8>> {
        let repos = self.repos(path).ok()?;
        let (repo, _) = repos.with(id, &self.store);
        let is_small = repo.find_header(id).ok()?.size() <= MAX_FILE;
        let mut object = is_small.then(|| repo.find_object(id).ok())??;
        let content = std::mem::take(&mut object.data);
        (!lfs::is_pointer(&content)).then_some(content)
    }
}
