//! Differences between two trees.
//!
//! Main function: [`any_changed`].

use super::{GitFiles, GitLimit, Store, tree::Node};
use crate::RepoError;
use gix::{ObjectId, objs::tree::EntryKind};
use std::collections::BTreeMap;

/// Whether `is_meant` is true for a file that differs between the trees. For a moved file both
/// paths count.
pub(crate) fn any_changed(
    store: &Store,
    from: ObjectId,
    to: ObjectId,
    is_meant: &dyn Fn(&str) -> bool,
) -> Result<bool, RepoError> {
    let unreadable = |e: tiphys_render::FileError| RepoError::Corrupt {
        url: store.url.to_string(),
        reason: e.to_string(),
    };
    let files = GitFiles::new(store, to, Some(""));
    let mut compared = 0;
    let mut todo = vec![(String::new(), Some(from), Some(to))];
    while let Some((folder, before, after)) = todo.pop() {
        if folder.split('/').count() as u64 > store.limits.depth {
            return Err(store.limits.exceeded(GitLimit::Depth, &*store.url));
        }
        let read = |id: Option<ObjectId>| {
            id.map(|id| files.tree(id, &folder))
                .transpose()
                .map_err(unreadable)
        };
        let (before, after) = (read(before)?, read(after)?);
        let mut pairs: BTreeMap<&str, [Option<&Node>; 2]> = BTreeMap::new();
        for (side, nodes) in [&before, &after].into_iter().enumerate() {
            for node in nodes.iter().flat_map(|nodes| nodes.iter()) {
                pairs.entry(&node.name).or_default()[side] = Some(node);
            }
        }
        compared += pairs.len() as u64;
        if compared > store.limits.objects {
            // The same folder can occur in a tree any number of times.
            return Err(store.limits.exceeded(GitLimit::Objects, &*store.url));
        }
        for (name, pair) in pairs {
            let path = if folder.is_empty() {
                name.to_owned()
            } else {
                format!("{folder}/{name}")
            };
            match pair.map(|node| node.map(|n| (n.kind, n.id))) {
                [a, b] if a == b => {}
                sides
                    if sides
                        .iter()
                        .flatten()
                        .any(|(kind, _)| *kind != EntryKind::Tree)
                        && is_meant(&path) =>
                {
                    return Ok(true);
                }
                sides => {
                    let [a, b] = sides.map(|side| {
                        side.filter(|(kind, _)| *kind == EntryKind::Tree)
                            .map(|(_, id)| id)
                    });
                    if a.or(b).is_some() {
                        todo.push((path, a, b));
                    }
                }
            }
        }
    }
    Ok(false)
}
