//! Notes on commits, as `git notes` keeps them: files in the tree of a ref of their own, each named
//! by the commit; with many notes, in folders named by the first digits.

use super::{Additions, CommitId, write::Author};
use crate::RepoError;
use gix::{ObjectId, objs::tree::EntryKind};
use std::collections::BTreeMap;

/// Digits in the name of one folder.
const DIGITS: usize = 2;
/// Nesting of folders.
const MAX_FOLDERS: usize = 8;

impl Additions<'_> {
    /// The note on a commit. `notes`: the commit that the ref of the notes names.
    pub fn note(
        &self,
        notes: Option<CommitId>,
        on: ObjectId,
    ) -> Result<Option<Vec<u8>>, RepoError> {
        let Some(notes) = notes else {
            return Ok(None);
        };
        match self.path_of_note(notes, on)? {
            (_, Some(blob)) => self.content(blob).map(Some),
            (_, None) => Ok(None),
        }
    }

    /// A commit of the notes with this one, in place of one on the same commit.
    pub fn with_note(
        &mut self,
        notes: Option<CommitId>,
        on: ObjectId,
        text: &str,
        author: &Author,
    ) -> Result<CommitId, RepoError> {
        let path = match notes {
            Some(notes) => self.path_of_note(notes, on)?.0,
            None => on.to_string(),
        };
        let files = BTreeMap::from([(path, text.as_bytes().to_owned())]);
        // As `git notes` says it.
        self.commit(notes, &files, "Notes added by 'git notes add'\n", author)
    }

    /// Where the note on a commit is, or belongs, and its content.
    fn path_of_note(
        &self,
        notes: CommitId,
        on: ObjectId,
    ) -> Result<(String, Option<ObjectId>), RepoError> {
        let (mut tree, mut above, mut rest) = (notes.tree, String::new(), on.to_string());
        for _ in 0..MAX_FOLDERS {
            let entries = self.entries(tree)?;
            if let Some((mode, id)) = entries.get(rest.as_bytes())
                && mode.is_blob()
            {
                return Ok((above + &rest, Some(*id)));
            }
            let (folder, within) = rest.split_at(DIGITS);
            let below = entries.get(folder.as_bytes());
            let Some((_, id)) = below.filter(|(mode, _)| mode.kind() == EntryKind::Tree) else {
                break;
            };
            (above, tree) = (format!("{above}{folder}/"), *id);
            rest = within.to_owned();
        }
        Ok((above + &rest, None))
    }
}
