//! The calls of the commit server. Main function: [`calls`].

use crate::Server;
use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};
use tiphys_api::{
    access::without_passwords,
    meta::Empty,
    rpc::commit::{CommitHydratedManifestsRequest, CommitHydratedManifestsResponse},
};
use tiphys_rpc::{ApiError, Call, table::unary};

/// What a commit server serves, in place of the calls of a repo-server.
pub fn calls() -> Vec<Call<Server>> {
    vec![
        unary(
            "CommitService/CommitHydratedManifests",
            &[],
            (),
            |_| {},
            async |server: Arc<Server>, (), request| server.push(request).await,
        ),
        unary(
            "version.VersionService/Version",
            &[],
            (),
            |_| {},
            async |server: Arc<Server>, (), _: Empty| Ok(server.version()),
        ),
    ]
}

impl Server {
    async fn push(
        self: Arc<Self>,
        request: CommitHydratedManifestsRequest,
    ) -> Result<CommitHydratedManifestsResponse, ApiError> {
        let repository = request.repo.clone().unwrap_or_default();
        let trusted = self.trust.servers().await?;
        let access = trusted.access(&repository, &repository.project);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since.map_or(0, |since| {
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        });
        let url = without_passwords(&repository.repo);
        let (_pending, began) = (self.pending.begin(&url), Instant::now());
        let commit = self.repos.commit_hydrated(&access, request, now).await;
        self.commits.add(&url, commit.is_err(), began.elapsed());
        // None of its clients decides by a code.
        let hydrated_sha = commit.map_err(|e| ApiError::plain(e.to_string()))?;
        Ok(CommitHydratedManifestsResponse { hydrated_sha })
    }
}
