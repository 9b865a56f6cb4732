//! Commits and details of Applications, for the functions of `repo`.
//!
//! Main type: [`Repositories`].

use jiff::Timestamp;
use serde_json::Value;
use tiphys_notify::{CommitMetadata, Lookup, Unavailable};
use tiphys_sources::Sources;
use tokio::runtime::Handle;

/// Asks the repositories, from a thread that may wait.
pub(super) struct Repositories {
    pub sources: Sources,
    pub runtime: Handle,
}

impl Lookup for Repositories {
    fn commit(
        &self,
        repo_url: &str,
        sha: &str,
        project: &str,
    ) -> Result<CommitMetadata, Unavailable> {
        let repository = self.sources.repository(repo_url, project);
        let metadata = self
            .runtime
            .block_on(self.sources.metadata(&repository, sha))
            .map_err(|error| Unavailable(error.to_string()))?;
        let date = metadata.date.as_ref().map(|date| date.seconds);
        Ok(CommitMetadata {
            message: metadata.message,
            author: metadata.author,
            date: date
                .and_then(|seconds| Timestamp::from_second(seconds).ok())
                .unwrap_or_default(),
            tags: metadata.tags,
        })
    }

    fn details(&self, _: &Value) -> Result<Value, Unavailable> {
        Err(Unavailable(
            "the details of Applications can not be told in notifications yet".into(),
        ))
    }
}
