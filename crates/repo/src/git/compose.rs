//! A commit with its submodules as one tree: the folders on the way to a submodule get a new tree in
//! memory, everything else stays in the object databases of the repositories it is from. The ids of
//! the new trees are those that git would give them, so what is rendered is known by its content.
//!
//! Main function: [`compose`].

use super::{Commit, CommitId, GitFiles, Store, tree::Node};
use crate::RepoError;
use gix::{
    ObjectId,
    objs::tree::{Entry, EntryKind},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// What a commit with submodules has besides its own repository.
#[derive(Default)]
pub(super) struct Composed {
    /// The trees that are in no repository.
    pub trees: HashMap<ObjectId, Arc<[Node]>>,
    /// What they name that its own repository should have.
    pub own: HashSet<ObjectId>,
    /// The repositories of the submodules.
    pub parts: Vec<Store>,
}

/// The submodules of one folder, and of the folders in it.
#[derive(Default)]
struct Mounts {
    here: BTreeMap<String, ObjectId>,
    folders: BTreeMap<String, Self>,
}

impl Mounts {
    fn add(&mut self, path: &str, tree: ObjectId) {
        match path.split_once('/') {
            None => {
                self.here.insert(path.to_owned(), tree);
            }
            Some((folder, rest)) => {
                let folder = self.folders.entry(folder.to_owned()).or_default();
                folder.add(rest, tree);
            }
        }
    }
}

/// The commit with other commits in place of its submodules, by path. Blocks.
pub(crate) fn compose(
    (store, id): &Commit,
    parts: &[(String, Commit)],
) -> Result<Commit, RepoError> {
    let mut mounts = Mounts::default();
    let mut composed = Composed::default();
    for (path, (part, at)) in parts {
        mounts.add(path, at.tree);
        if let Some(inner) = &part.composed {
            let trees = inner.trees.iter().map(|(id, tree)| (*id, Arc::clone(tree)));
            composed.trees.extend(trees);
            composed.parts.extend(inner.parts.iter().cloned());
        }
        composed.parts.push(Store {
            composed: None,
            torn: None,
            ..part.clone()
        });
    }
    let files = GitFiles::new(store, id.tree, Some(""));
    let tree = replace(&files, id.tree, &mounts, &mut composed)?;
    let whole = Store {
        // Its own: what others read from the repository alone must not be found here, nor the other
        // way round.
        trees: super::tree::no_trees(),
        last: Arc::default(),
        composed: Some(Arc::new(composed)),
        ..store.clone()
    };
    Ok((whole, CommitId { tree, ..*id }))
}

/// The id of a tree with everything mounted. The recursion is as deep as the path of a submodule,
/// which was found in a tree of limited depth.
fn replace(
    files: &GitFiles,
    tree: ObjectId,
    mounts: &Mounts,
    composed: &mut Composed,
) -> Result<ObjectId, RepoError> {
    let nodes = files
        .tree(tree, super::modules::FILE)
        .map_err(|e| files.broken(&e))?;
    let mut new = Vec::with_capacity(nodes.len());
    for node in nodes.iter() {
        let (mut kind, mut id) = (node.kind, node.id);
        if let (EntryKind::Commit, Some(mounted)) = (kind, mounts.here.get(&*node.name)) {
            (kind, id) = (EntryKind::Tree, *mounted);
        } else if let (EntryKind::Tree, Some(inner)) = (kind, mounts.folders.get(&*node.name)) {
            id = replace(files, id, inner, composed)?;
        } else if kind != EntryKind::Commit {
            composed.own.insert(id);
        }
        new.push(Node {
            name: node.name.clone(),
            kind,
            id,
        });
    }
    let mut entries: Vec<Entry> = new
        .iter()
        .map(|node| Entry {
            mode: node.kind.into(),
            filename: node.name.as_bytes().into(),
            oid: node.id,
        })
        .collect();
    entries.sort();
    let id =
        hash(entries).map_err(|reason| RepoError::Internal(format!("a tree's id: {reason}")))?;
    composed.trees.insert(id, new.into());
    Ok(id)
}

fn hash(entries: Vec<Entry>) -> Result<ObjectId, String> {
    use gix::objs::WriteTo as _;
    let mut bytes = Vec::new();
    gix::objs::Tree { entries }
        .write_to(&mut bytes)
        .map_err(|e| e.to_string())?;
    gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Tree, &bytes)
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{Torn, commit_files, init_bare};
    use std::{fs, path::Path};
    use tiphys_render::SourceFiles as _;

    fn commit(path: &Path, text: &str) -> Commit {
        let store = init_bare(path).expect("a repository");
        let files = [("a", Some(text.as_bytes()))];
        let sha = commit_files(&store, "main", &files, "A change", 0).expect("a commit");
        let id = store.commit(&sha).expect("readable").expect("there");
        (store, id)
    }

    fn remove_blob(path: &Path, content: &[u8]) {
        let kind = gix::objs::Kind::Blob;
        let blob = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, content);
        let blob = blob.expect("a hash").to_string();
        let (folder, file) = blob.split_at(2);
        let objects = path.join("objects");
        fs::remove_file(objects.join(folder).join(file)).expect("removed");
    }

    /// Otherwise whoever has a submodule could have the copy of its repository thrown away.
    #[test]
    fn what_is_torn_in_one_repository_is_no_fault_of_the_others() {
        let dir = tempfile::tempdir().expect("a folder");
        let outer = commit(&dir.path().join("outer"), "one");
        let part = commit(&dir.path().join("part"), "two");
        let mounted = [("sub".to_owned(), part.clone())];
        let (store, id) = compose(&outer, &mounted).expect("composed");
        remove_blob(&dir.path().join("outer"), b"one");

        let torn = Torn::default();
        let files = GitFiles::new(&store.watched(&torn), id.tree, None);
        files.read("a").expect_err("it is missing");
        assert!(torn.get().is_some(), "the render is told");
        assert!(outer.0.is_damaged());
        assert!(!part.0.is_damaged());
        assert!(files.is_damaged());
        let of = |store: &Store| GitFiles::new(store, outer.1.tree, None).is_damaged();
        assert!(!of(&outer.0.watched(&Torn::default())), "it met nothing");
        assert!(of(&outer.0));
    }

    /// Otherwise whoever is a submodule could do the same to the repository that has it.
    #[test]
    fn what_a_submodule_only_names_is_not_the_fault_of_the_repository_that_has_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (store, id) = commit(&dir.path().join("outer"), "one");
        let part = commit(&dir.path().join("part"), "two");
        let entries = vec![Entry {
            mode: EntryKind::Commit.into(),
            filename: "sub".into(),
            oid: part.1.commit,
        }];
        let tree = gix::objs::Tree { entries };
        let tree = store.local().write_object(&tree).expect("kept").detach();
        let outer = (store, CommitId { tree, ..id });
        let mounted = [("sub".to_owned(), part)];
        let (store, id) = compose(&outer, &mounted).expect("composed");
        remove_blob(&dir.path().join("part"), b"two");

        let torn = Torn::default();
        let files = GitFiles::new(&store.watched(&torn), id.tree, None);
        files.read("sub/a").expect_err("it is missing");
        assert!(torn.get().is_some(), "the render is told");
        assert!(!outer.0.is_damaged());
    }

    fn tree_of(store: &Store, name: &str, kind: EntryKind, oid: ObjectId) -> ObjectId {
        let entries = vec![Entry {
            mode: kind.into(),
            filename: name.into(),
            oid,
        }];
        let tree = gix::objs::Tree { entries };
        store.local().write_object(&tree).expect("kept").detach()
    }

    /// Otherwise that copy would never be fetched anew.
    #[test]
    fn what_is_missing_deep_inside_is_the_fault_of_whoever_has_its_folder() {
        for whose in ["outer", "part"] {
            let dir = tempfile::tempdir().expect("a folder");
            let made = ["outer", "part"].map(|name| {
                let (store, id) = commit(&dir.path().join(name), name);
                let (inner, folder) = (id.tree, EntryKind::Tree);
                let middle = tree_of(&store, "inner", folder, inner);
                let tree = tree_of(&store, "deep", folder, middle);
                (store, CommitId { tree, ..id })
            });
            let [outer, part] = made;
            // Beside the folder there is the submodule.
            let mut entries: Vec<Entry> = ["deep", "sub"]
                .map(|name| Entry {
                    mode: EntryKind::Tree.into(),
                    filename: name.into(),
                    oid: tree_of(&outer.0, "inner", EntryKind::Tree, outer.1.tree),
                })
                .into();
            entries[1].mode = EntryKind::Commit.into();
            let tree = gix::objs::Tree { entries };
            let tree = outer.0.local().write_object(&tree).expect("kept").detach();
            let outer = (outer.0, CommitId { tree, ..outer.1 });
            let mounted = [("sub".to_owned(), part.clone())];
            let (store, id) = compose(&outer, &mounted).expect("composed");
            remove_blob(&dir.path().join(whose), whose.as_bytes());

            let files = GitFiles::new(&store.watched(&Torn::default()), id.tree, None);
            for (name, path) in [
                ("outer", "deep/inner/deep/inner/a"),
                ("part", "sub/deep/inner/a"),
            ] {
                assert_eq!(files.read(path).is_err(), name == whose, "{path}");
            }
            assert_eq!(outer.0.is_damaged(), whose == "outer");
            assert_eq!(part.0.is_damaged(), whose == "part");
        }
    }
}
