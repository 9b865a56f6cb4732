//! All files of a tree, one after the other, for those who hand a whole revision over.
//!
//! Main function: [`walk`].

use super::{
    CommitId, GitFiles, Store,
    tree::{MAX_FILE, MAX_LINK_TEXT},
};
use gix::{ObjectId, objs::tree::EntryKind};
use tiphys_render::FileError;

/// An entry of a tree, with its content.
pub(crate) enum Item {
    Folder,
    File {
        content: Vec<u8>,
        executable: bool,
    },
    /// With its target, as it is written.
    Link(String),
}

/// What decides about entries and takes them.
pub(crate) trait Visitor {
    type Error: From<FileError>;

    /// Whether an entry is wanted; a folder that is not is not entered. Called before anything of
    /// it is read.
    fn wants(&mut self, path: &str) -> Result<bool, Self::Error>;
    fn take(&mut self, path: &str, item: Item) -> Result<(), Self::Error>;
}

/// Visits the entries of a commit's tree in the order of their paths, a folder before what is in it.
/// Submodules are left out. The visitor counts: the same folder may be in a tree a million times.
pub(crate) fn walk<V: Visitor>(
    store: &Store,
    id: CommitId,
    visitor: &mut V,
) -> Result<(), V::Error> {
    let files = GitFiles::new(store, id.tree, Some(""));
    below(&files, id.tree, "", 0, visitor)
}

fn below<V: Visitor>(
    files: &GitFiles,
    tree: ObjectId,
    folder: &str,
    depth: u64,
    visitor: &mut V,
) -> Result<(), V::Error> {
    files.check_depth(folder, depth)?;
    for node in files.tree(tree, folder)?.iter() {
        let path = if folder.is_empty() {
            node.name.to_string()
        } else {
            format!("{folder}/{}", node.name)
        };
        if node.kind == EntryKind::Commit || !visitor.wants(&path)? {
            continue;
        }
        match node.kind {
            EntryKind::Tree => {
                visitor.take(&path, Item::Folder)?;
                below(files, node.id, &path, depth + 1, visitor)?;
            }
            EntryKind::Link => {
                let target = files.blob(node.id, &path, MAX_LINK_TEXT)?;
                let target = String::from_utf8_lossy(&target).into_owned();
                visitor.take(&path, Item::Link(target))?;
            }
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Commit => {
                let item = Item::File {
                    content: files.blob(node.id, &path, MAX_FILE)?,
                    executable: node.kind == EntryKind::BlobExecutable,
                };
                visitor.take(&path, item)?;
            }
        }
    }
    Ok(())
}
