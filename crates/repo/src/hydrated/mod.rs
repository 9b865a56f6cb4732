//! Hydrated manifests: rendered objects as files of a branch, committed and pushed.
//!
//! Main function: [`Repos::commit_hydrated`]. Only the files of the requested folders and two at
//! the root are written; what a folder needs is decided by its own manifest, so a folder that comes
//! later to a hydrated commit is written, too. Nothing is checked out. It must not know
//! Applications.

mod files;
mod message;
mod paths;

pub(crate) use message::cleaned;
pub use message::commit_message;
pub use paths::{BadPath, folder};

use crate::{
    RepoAccess, RepoError, Repos, Since,
    entry::Entry,
    git::{self, Additions, Author, CommitId, Place, RefUpdate, Store},
    ground::blocking,
    revision::Reference,
};
use futures::future::BoxFuture;
use gix::ObjectId;
use message::Metadata;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tiphys_api::rpc::commit::CommitHydratedManifestsRequest;

/// The ref of the notes that say which dry commit a hydrated one is of.
const NOTES: &str = "refs/notes/hydrator.metadata";
const AUTHOR: (&str, &str) = ("Argo CD", "argo-cd@example.com");
/// How often a ref that others move, too, is tried.
const TRIES: u32 = 6;
/// Before the second attempt; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(50);

impl Repos {
    /// Writes manifests into a branch and returns the commit that has them: a new one, or the
    /// branch's last one if it has them already. `access` is for pushing; `now` in seconds since
    /// 1970.
    ///
    /// # Errors
    /// The branch is as before, or has the commit but not yet its note.
    pub async fn commit_hydrated(
        &self,
        access: &RepoAccess,
        request: CommitHydratedManifestsRequest,
        now: i64,
    ) -> Result<String, RepoError> {
        required(&request)?;
        let entry = self.entry(access)?;
        let mut author = Author {
            name: request.author_name.clone(),
            email: request.author_email.clone(),
            seconds: now,
        };
        if author.name.is_empty() {
            AUTHOR.0.clone_into(&mut author.name);
        }
        if author.email.is_empty() {
            AUTHOR.1.clone_into(&mut author.email);
        }
        if !author.has_name() {
            return Err(RepoError::Unsupported(format!(
                "failed to commit and push: the author's name consists only of disallowed \
                 characters: {}",
                author.name
            )));
        }
        let request = Arc::new(request);
        let mut patience = Patience::default();
        let head = loop {
            let attempt: BoxFuture<'_, _> = Box::pin(branch(&entry, &request, &author));
            match attempt.await {
                Err(RepoError::RefMoved { .. }) if patience.goes_on().await => {}
                head => break head?,
            }
        };
        let mut patience = Patience::default();
        loop {
            let attempt: BoxFuture<'_, _> = Box::pin(note(&entry, head, &request.dry_sha, &author));
            match attempt.await {
                Err(RepoError::RefMoved { .. }) if patience.goes_on().await => {}
                noted => break noted?,
            }
        }
        Ok(head.to_string())
    }
}

fn required(request: &CommitHydratedManifestsRequest) -> Result<(), RepoError> {
    let missing = |what: &str| Err(RepoError::Unsupported(format!("{what} is required")));
    match &request.repo {
        None => return missing("repo"),
        Some(repo) if repo.repo.is_empty() => return missing("repo URL"),
        _ if request.target_branch.is_empty() => return missing("target branch"),
        _ if request.sync_branch.is_empty() => return missing("sync branch"),
        _ => {}
    }
    [&request.target_branch, &request.sync_branch]
        .iter()
        .try_for_each(|branch| git::check_name(&format!("refs/heads/{branch}")))
}

/// Attempts at a ref that others move, too.
#[derive(Default)]
struct Patience {
    tries: u32,
}

impl Patience {
    /// Waits for the next attempt; false: there is none.
    async fn goes_on(&mut self) -> bool {
        self.tries += 1;
        if self.tries >= TRIES {
            return false;
        }
        tokio::time::sleep(PAUSE * (1 << (self.tries - 1))).await;
        true
    }
}

/// The commit with the manifests: the last one of the target branch, or, if nothing is to be
/// written and there is no such branch, that of the sync branch.
async fn branch(
    entry: &Arc<Entry>,
    request: &Arc<CommitHydratedManifestsRequest>,
    author: &Author,
) -> Result<ObjectId, RepoError> {
    let refs = entry.refs(Since::now()).await?;
    let target = format!("refs/heads/{}", request.target_branch);
    let sync = format!("refs/heads/{}", request.sync_branch);
    let found = head(&refs, &target);
    let exists = found.is_some() || sync == target;
    let (store, base) = match head(&refs, &sync) {
        Some(synced) => entry.commit(&found.unwrap_or(synced)).await?,
        // The sync branch is made in any case: what is synced looks for it.
        None => {
            let begun = first(entry, &sync, &request.sync_branch, author).await?;
            match found {
                Some(sha) => entry.commit(&sha).await?,
                None => begun,
            }
        }
    };
    let old = exists.then_some(base.commit);
    let (what, who, on) = (Arc::clone(request), author.clone(), store.clone());
    let made = blocking(move || {
        let mut additions = Additions::new(&on);
        let Some(files) = changed(&additions, base, &what)? else {
            return Ok(None);
        };
        let message = message::cleaned(&what.commit_message)?;
        let commit = additions.commit(Some(base), &files, &message, &who)?;
        Ok(Some((commit.commit, additions.objects().to_vec())))
    })
    .await?;
    let Some((new, objects)) = made else {
        return Ok(base.commit);
    };
    let name = target;
    entry
        .push(store, RefUpdate { name, old, new }, objects)
        .await?;
    Ok(new)
}

/// The first commit of a branch, which has no files.
async fn first(
    entry: &Arc<Entry>,
    name: &str,
    branch: &str,
    author: &Author,
) -> Result<(Store, CommitId), RepoError> {
    let store = entry.store().await?;
    let message = format!("Initial commit for {branch}\n");
    let (on, author) = (store.clone(), author.clone());
    let (commit, objects) = blocking(move || {
        let mut additions = Additions::new(&on);
        let commit = additions.commit(None, &BTreeMap::new(), &message, &author)?;
        Ok((commit, additions.objects().to_vec()))
    })
    .await?;
    let update = RefUpdate {
        name: name.to_owned(),
        old: None,
        new: commit.commit,
    };
    entry.push(store.clone(), update, objects).await?;
    Ok((store, commit))
}

/// The files to write; `None`: every folder has its manifest.
fn changed(
    additions: &Additions<'_>,
    base: CommitId,
    request: &CommitHydratedManifestsRequest,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, RepoError> {
    let url = request.repo.as_ref().map_or("", |repo| repo.repo.as_str());
    let mut all = BTreeMap::new();
    for details in &request.paths {
        let folder = folder(&details.path).map_err(|e| RepoError::Unsupported(e.to_string()))?;
        let manifest = files::manifests(&details.manifests)?;
        let path = format!("{folder}/{}", files::MANIFEST);
        match place(additions, base, &path)? {
            Some(id) if id == additions.blob(&manifest)? => continue,
            _ => all.insert(path, manifest),
        };
        let metadata = Metadata::of_folder(url, &request.dry_sha, &details.commands);
        let readme = files::readme(&request.readme_message, &metadata)?;
        all.insert(format!("{folder}/{}", files::METADATA), metadata.file());
        all.insert(format!("{folder}/{}", files::README), readme);
    }
    if all.is_empty() {
        return Ok(None);
    }
    let whole = Metadata::new(url, &request.dry_sha, request.dry_commit_metadata.as_ref());
    all.insert(files::METADATA.to_owned(), whole.file());
    all.insert(files::ATTRIBUTES.0.to_owned(), files::ATTRIBUTES.1.into());
    for path in all.keys() {
        place(additions, base, path)?;
    }
    Ok(Some(all))
}

/// The file at a path, if there is one. A link is never followed or replaced.
fn place(
    additions: &Additions<'_>,
    base: CommitId,
    path: &str,
) -> Result<Option<ObjectId>, RepoError> {
    match additions.place(base, path)? {
        Place::Free => Ok(None),
        Place::File(id) => Ok(Some(id)),
        Place::Taken => Err(RepoError::Unsupported(format!(
            "failed to write manifests: {path} is taken by a link, a submodule or a folder"
        ))),
    }
}

/// Notes which dry commit a hydrated one is of.
async fn note(
    entry: &Arc<Entry>,
    on: ObjectId,
    dry_sha: &str,
    author: &Author,
) -> Result<(), RepoError> {
    let refs = entry.refs(Since::now()).await?;
    let (store, notes) = match head(&refs, NOTES) {
        Some(sha) => {
            let (store, notes) = entry.commit(&sha).await?;
            (store, Some(notes))
        }
        None => (entry.store().await?, None),
    };
    let text = format!("{}\n", serde_json::json!({"drySha": dry_sha}));
    let (at, who) = (store.clone(), author.clone());
    let made = blocking(move || {
        let mut additions = Additions::new(&at);
        if additions.note(notes, on)? == Some(text.clone().into_bytes()) {
            return Ok(None);
        }
        let commit = additions.with_note(notes, on, &text, &who)?;
        Ok(Some((commit.commit, additions.objects().to_vec())))
    })
    .await?;
    let Some((new, objects)) = made else {
        return Ok(());
    };
    let update = RefUpdate {
        name: NOTES.to_owned(),
        old: notes.map(|notes| notes.commit),
        new,
    };
    entry.push(store, update, objects).await
}

fn head(refs: &[Reference], name: &str) -> Option<String> {
    refs.iter().find(|r| r.name == name).map(|r| r.sha.clone())
}
