//! GenerateManifestWithFiles: renders files that the client sends, as it does for local changes that
//! are not in a repository yet.

use crate::{
    access::repository,
    errors::of_repo,
    manifests::{Refs, render_request, since, source},
    server::Server,
};
use futures::{StreamExt as _, stream::BoxStream};
use std::{collections::BTreeMap, fs::File, sync::Arc};
use tiphys_api::rpc::repo_server::{ManifestRequest, ManifestRequestWithFiles, ManifestResponse};
use tiphys_repo::UnpackLimits;
use tiphys_rpc::{ApiError, upload};

type Messages = BoxStream<'static, Result<ManifestRequestWithFiles, ApiError>>;

/// What was sent.
struct Received {
    request: ManifestRequest,
    archive: File,
    checksum: String,
}

/// The next message before the chunks.
async fn header(messages: &mut Messages) -> Result<ManifestRequestWithFiles, String> {
    let next = messages.next().await;
    let next = next.unwrap_or_else(|| Err(ApiError::plain("EOF")));
    next.map_err(|e| format!("failed to receive header: {}", e.message))
}

async fn receive(mut messages: Messages, limit: u64) -> Result<Received, String> {
    let request = header(&mut messages).await?.request;
    let request = request.ok_or("error getting stream request: request is nil")?;
    let metadata = header(&mut messages).await?.metadata;
    let metadata = metadata.ok_or("error getting stream metadata: metadata is nil")?;
    let chunks = messages.map(|message| {
        let message = message.map_err(|e| format!("stream Recv error: {}", e.message))?;
        let chunk = message.chunk.ok_or("stream request chunk is nil")?;
        Ok(chunk.chunk)
    });
    let archive = upload::receive(chunks, &metadata.checksum, limit).await;
    Ok(Received {
        request,
        archive: archive.map_err(|e| format!("error receiving tgz file: {e}"))?,
        checksum: metadata.checksum,
    })
}

impl Server {
    pub(crate) async fn generate_with_files(
        self: Arc<Self>,
        messages: Messages,
    ) -> Result<ManifestResponse, ApiError> {
        let place = self.uploads.acquire().await;
        let _place = place.map_err(|e| ApiError::internal(e.to_string()))?;
        let limits = self.options.streamed;
        let received = receive(messages, limits.archive).await;
        let Received {
            request,
            archive,
            checksum,
        } = received
            .map_err(|e| ApiError::plain(format!("error receiving manifest file stream: {e}")))?;
        let repo = repository(request.repo.clone())?;
        let source = source(request.application_source.clone(), &repo)?;
        let servers = self.trust.servers().await?;
        let access = servers.access(&repo, &request.project_name);
        let refs = if request.has_multiple_sources {
            let refs = Refs {
                targets: &request.ref_sources,
                project: &request.project_name,
                since: since(request.no_cache || request.no_revision_cache),
            };
            self.refs(&source, &refs, &servers).await?
        } else {
            BTreeMap::new()
        };
        let render = render_request(&request, (access, &source), refs, &servers);
        let unpacked = UnpackLimits {
            bytes: limits.bytes,
            ..UnpackLimits::default()
        };
        let files = (archive, checksum.as_str());
        let manifests = self.repos.manifests_of_files(files, unpacked, render).await;
        self.respond(manifests.map_err(of_repo)?, request).await
    }
}
