//! What renders of files outside of any repository need from elsewhere: the caller has the files,
//! such as those of a folder of this machine, and renders them; the rest is fetched here.
//!
//! Main type: [`Obtained`], which grows until nothing more is needed.

use crate::{
    ManifestRequest, RepoError, Repos,
    git::{Commit, GitFiles},
    needs::{Fetched, Got},
    repos::since,
};
use std::collections::BTreeMap;
use tiphys_render::{SourceFiles, SourceRef};

/// What was fetched for one render so far.
#[derive(Clone, Default)]
pub struct Obtained(Fetched);

impl Obtained {
    /// The files that each reference leads to, for [`tiphys_render::SourceSet::fetched`].
    pub fn files(&self) -> BTreeMap<SourceRef, Box<dyn SourceFiles>> {
        let files = |(needed, (store, id)): (&SourceRef, &Commit)| {
            let files: Box<dyn SourceFiles> = Box::new(GitFiles::new(store, id.tree, None));
            (needed.clone(), files)
        };
        self.0.commits().map(files).collect()
    }

    /// Why something could not be fetched, if that was tried.
    pub fn failure(&self, needed: &SourceRef) -> Option<&RepoError> {
        self.0.failure(needed)
    }
}

impl Repos {
    /// Fetches what a render of the caller's own files needs, and adds it to what was fetched
    /// before. Of `request`, only what says how something is reached is looked at.
    ///
    /// # Errors
    /// Something is still needed that an earlier call could not fetch, or it is too much.
    pub async fn obtain(
        &self,
        request: &ManifestRequest,
        before: &Obtained,
        needed: Vec<SourceRef>,
    ) -> Result<Obtained, RepoError> {
        let needed = before.0.next(needed)?;
        let since = since(request);
        let fetch = async |needed: &SourceRef| {
            let files = self.fetch(request, needed, since).await;
            files.map(|commit| Got::Files(Box::new(commit)))
        };
        let found = futures::future::join_all(needed.iter().map(fetch)).await;
        Ok(Obtained(before.0.with(needed.into_iter().zip(found))))
    }
}
