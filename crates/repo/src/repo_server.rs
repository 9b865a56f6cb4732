//! Manifests from a repo-server: a client of Argo CD's RepoServerService, for upstream Argo CD's
//! server or our own.
//!
//! Main type: [`RepoServer`]. The caller, who knows Applications, projects and settings, builds the
//! requests.

use crate::{
    Lacking, Manifests, RemoteVerdict, RepoError,
    ground::blocking,
    ground::{hex, weight},
    net::{self, Tls},
};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::{Uri, uri::PathAndQuery};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use std::{
    error::Error as _,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tiphys_api::rpc::{
    plugin::Nothing,
    repo_server::{
        GitDirectoriesRequest, GitDirectoriesResponse, GitFilesRequest, GitFilesResponse,
        ManifestFileChunk, ManifestFileMetadata, ManifestRequest, ManifestRequestWithFiles,
        ManifestResponse, ResolveRevisionRequest, ResolveRevisionResponse,
        UpdateRevisionForPathsRequest, UpdateRevisionForPathsResponse,
    },
    repository::PluginList,
    version::{COMPILER, VersionMessage},
};
use tiphys_apimachinery::{Kept, Object};
use tokio::io::AsyncReadExt as _;
use tonic::{Code, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;
use tracing::{Instrument as _, field};

/// Maximum size of a message in bytes; Argo CD's default.
const MAX_MESSAGE: usize = 100 << 20;
/// How often a call is tried if the server is unreachable or busy, and the delay between attempts.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of an archive in one message.
const CHUNK: usize = 64 << 10;
/// Cache size for parsed responses (estimated): a repeated response is not parsed again.
const KNOWN_BYTES: u64 = 256 << 20;

/// The address of a repo-server and how to connect.
#[derive(Clone, Debug)]
pub struct RepoServerOptions {
    /// `host:port`.
    pub address: String,
    /// Timeout of one call; 0 means no limit.
    pub timeout: Duration,
    pub plaintext: bool,
    /// Files with certificates to trust. Without any, every certificate is accepted, because Argo
    /// CD's repo-server generates its own.
    pub trusted: Vec<PathBuf>,
    /// Our client certificate and its key. They are read for each connection; missing files are
    /// ignored.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A cheap handle; clones share one connection, which is reopened when it breaks.
#[derive(Clone)]
pub struct RepoServer {
    channel: Channel,
    timeout: Duration,
    known: moka::sync::Cache<[u8; 32], Arc<[Arc<Kept>]>>,
    /// Returns the `traceparent` inside the span of a call.
    context: fn() -> Option<String>,
}

impl RepoServer {
    /// Connects on the first call. Must be called inside a tokio runtime.
    pub fn new(options: RepoServerOptions) -> Result<Self, RepoError> {
        let bad = |reason| RepoError::BadUrl {
            url: options.address.clone(),
            reason,
        };
        let endpoint = net::endpoint(&options.address, options.plaintext).map_err(bad)?;
        let timeout = options.timeout;
        let options = Arc::new(options);
        let channel = endpoint.connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
            let options = options.clone();
            async move {
                let tls = options.tls().await?;
                net::dial(&options.address, tls.as_ref(), "h2")
                    .await
                    .map(TokioIo::new)
            }
        }));
        let weigh = |_: &[u8; 32], objects: &Arc<[Arc<Kept>]>| {
            u32::try_from(
                objects
                    .iter()
                    .map(|o| 200 + weight(&o.object().0))
                    .sum::<usize>(),
            )
            .unwrap_or(u32::MAX)
        };
        let known = moka::sync::Cache::builder()
            .weigher(weigh)
            .max_capacity(KNOWN_BYTES)
            .build();
        Ok(Self {
            channel,
            timeout,
            known,
            context: || None,
        })
    }

    /// Sends the server the trace that its work belongs to (W3C `traceparent`).
    #[must_use]
    pub fn with_context(self, context: fn() -> Option<String>) -> Self {
        Self { context, ..self }
    }

    /// Renders a source. The objects already have the Application's tracking metadata.
    pub async fn manifests(&self, request: &ManifestRequest) -> Result<Arc<Manifests>, RepoError> {
        let answer: ManifestResponse = self
            .call("/repository.RepoServerService/GenerateManifest", request)
            .await?;
        self.read(answer).await
    }

    /// Renders the files of an archive (tar, packed with gzip) in place of those of the repository.
    /// `checksum`: its SHA-256 in hexadecimal. The call is not repeated.
    pub async fn manifests_of_files(
        &self,
        request: ManifestRequest,
        (archive, checksum): (File, &str),
    ) -> Result<Arc<Manifests>, RepoError> {
        let answer = self.send(messages(request, archive, checksum)).await;
        let answer = answer.map_err(|status| failed(&status))?;
        self.read(answer).await
    }

    async fn send(
        &self,
        messages: BoxStream<'static, ManifestRequestWithFiles>,
    ) -> Result<ManifestResponse, Status> {
        const METHOD: &str = "/repository.RepoServerService/GenerateManifestWithFiles";
        let work = async {
            let mut grpc = Grpc::new(self.channel.clone())
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE);
            grpc.ready().await.map_err(|e| unreached(&e))?;
            let codec = ProstCodec::<ManifestRequestWithFiles, ManifestResponse>::default();
            let request = tonic::Request::new(messages);
            let path = PathAndQuery::from_static(METHOD);
            let reply = grpc.client_streaming(request, path, codec).await;
            Ok(reply.map_err(of_reply)?.into_inner())
        };
        self.in_time(work).await
    }

    /// The objects of an answer, which may have a hundred megabytes.
    async fn read(&self, answer: ManifestResponse) -> Result<Arc<Manifests>, RepoError> {
        let known = self.known.clone();
        let read = move || {
            let key = key(&answer);
            let objects = match known.get(&key) {
                Some(objects) => objects,
                None => {
                    let objects = objects(&answer.manifests)?;
                    known.insert(key, objects.clone());
                    objects
                }
            };
            Ok(Arc::new(Manifests {
                revision: answer.revision,
                objects,
                errors: Arc::default(),
                warnings: Arc::default(),
                source_type: answer.source_type,
                digest: hex(&key),
                told: RemoteVerdict {
                    integrity: answer.source_integrity_result,
                    verify_result: answer.verify_result,
                },
                reads_others: false,
                basis: None,
            }))
        };
        blocking(read).await
    }

    pub async fn resolve(
        &self,
        request: &ResolveRevisionRequest,
    ) -> Result<ResolveRevisionResponse, RepoError> {
        self.call("/repository.RepoServerService/ResolveRevision", request)
            .await
    }

    /// The contents of the files of a repository that match a pattern.
    pub async fn git_files(
        &self,
        request: &GitFilesRequest,
    ) -> Result<GitFilesResponse, RepoError> {
        self.call("/repository.RepoServerService/GetGitFiles", request)
            .await
    }

    /// The folders of a repository.
    pub async fn git_directories(
        &self,
        request: &GitDirectoriesRequest,
    ) -> Result<GitDirectoriesResponse, RepoError> {
        self.call("/repository.RepoServerService/GetGitDirectories", request)
            .await
    }

    /// The names of the plugins beside the server.
    pub async fn plugins(&self) -> Result<Vec<String>, RepoError> {
        let list: PluginList = self
            .call("/repository.RepoServerService/ListPlugins", &Nothing {})
            .await?;
        Ok(list.items.into_iter().map(|plugin| plugin.name).collect())
    }

    /// Whether it is one of ours, and not Argo CD's. It is asked each time: another one may serve at
    /// the address by then.
    ///
    /// # Errors
    /// It does not say: it cannot be reached, for example.
    pub async fn is_ours(&self) -> Result<bool, RepoError> {
        let method = "/version.VersionService/Version";
        let told: Result<VersionMessage, Status> = self.tried(method, &Nothing {}).await;
        match told {
            Ok(told) => Ok(told.compiler == COMPILER),
            Err(status) if status.code() == Code::Unimplemented => Ok(false),
            Err(status) => Err(failed(&status)),
        }
    }

    /// Whether the files that matter differ between two revisions.
    pub async fn update_revision(
        &self,
        request: &UpdateRevisionForPathsRequest,
    ) -> Result<UpdateRevisionForPathsResponse, RepoError> {
        self.call(
            "/repository.RepoServerService/UpdateRevisionForPaths",
            request,
        )
        .await
    }

    pub(crate) async fn call<Q, R>(&self, method: &'static str, message: &Q) -> Result<R, RepoError>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        let answer = self.tried(method, message).await;
        answer.map_err(|status| failed(&status))
    }

    async fn tried<Q, R>(&self, method: &'static str, message: &Q) -> Result<R, Status>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        let mut tries = 1;
        loop {
            // On the heap: a call moved by value through the layers would otherwise occupy the
            // stack many times.
            let span = tracing::trace_span!(
                "call",
                "otel.kind" = "client",
                "otel.name" = method.trim_start_matches('/'),
                "rpc.system" = "grpc",
                error = field::Empty
            );
            let status = match Box::pin(self.once(method, Box::new(message.clone())))
                .instrument(span.clone())
                .await
            {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            span.record("error", status.message());
            if tries == TRIES
                || !matches!(status.code(), Code::Unavailable | Code::ResourceExhausted)
            {
                return Err(status);
            }
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once<Q, R>(&self, method: &'static str, message: Box<Q>) -> Result<R, Status>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let work = async {
            let mut grpc = Grpc::new(self.channel.clone())
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE);
            grpc.ready().await.map_err(|e| unreached(&e))?;
            let codec = ProstCodec::<Box<Q>, R>::default();
            let mut request = tonic::Request::new(message);
            if let Some(context) = (self.context)().and_then(|text| text.parse().ok()) {
                request.metadata_mut().insert("traceparent", context);
            }
            let reply = grpc
                .unary(request, PathAndQuery::from_static(method), codec)
                .await;
            Ok(reply.map_err(of_reply)?.into_inner())
        };
        self.in_time(work).await
    }

    async fn in_time<R>(&self, work: impl Future<Output = Result<R, Status>>) -> Result<R, Status> {
        if self.timeout.is_zero() {
            return work.await;
        }
        let late = || Status::deadline_exceeded("context deadline exceeded");
        tokio::time::timeout(self.timeout, work)
            .await
            .unwrap_or_else(|_| Err(late()))
    }
}

impl RepoServerOptions {
    /// Reads the current files, because they may have been renewed.
    async fn tls(&self) -> io::Result<Option<Tls>> {
        if self.plaintext {
            return Ok(None);
        }
        let mut trusted = Vec::new();
        for path in &self.trusted {
            trusted.append(&mut read(path).await?);
        }
        let identity = match &self.identity {
            Some((certificate, key)) if certificate.exists() => {
                Some((read(certificate).await?, read(key).await?))
            }
            _ => None,
        };
        Ok(Some(Tls {
            any: self.trusted.is_empty(),
            system: false,
            trusted,
            identity,
        }))
    }
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    tokio::fs::read(path)
        .await
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {}", path.display(), net::reason(&e))))
}

/// Without a connection there is no reply, only tonic's description of the failure.
fn of_reply(status: Status) -> Status {
    if status.source().is_some() {
        unreached(&status)
    } else {
        status
    }
}

/// The request, what is said of the archive, and the archive in chunks. If it cannot be read, the
/// stream ends early, and the checksum is wrong.
fn messages(
    request: ManifestRequest,
    archive: File,
    checksum: &str,
) -> BoxStream<'static, ManifestRequestWithFiles> {
    let first = ManifestRequestWithFiles {
        request: Some(request),
        ..ManifestRequestWithFiles::default()
    };
    let metadata = ManifestRequestWithFiles {
        metadata: Some(ManifestFileMetadata {
            checksum: checksum.to_owned(),
            size: 0,
        }),
        ..ManifestRequestWithFiles::default()
    };
    let archive = tokio::fs::File::from_std(archive);
    let chunks = stream::unfold(archive, |mut archive| async move {
        let mut chunk = vec![0; CHUNK];
        let read = archive.read(&mut chunk).await.unwrap_or_default();
        chunk.truncate(read);
        let message = ManifestRequestWithFiles {
            chunk: Some(ManifestFileChunk { chunk }),
            ..ManifestRequestWithFiles::default()
        };
        (read > 0).then_some((message, archive))
    });
    stream::iter([first, metadata]).chain(chunks).boxed()
}

/// The cause of tonic's "transport error", as Go's client words it.
fn unreached(e: &dyn std::error::Error) -> Status {
    let mut reason = e;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    Status::unavailable(format!(
        "connection error: desc = \"transport: Error while dialing: {reason}\""
    ))
}

/// Whether retrying later may help without any change.
fn is_of_moment(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Cancelled
    )
}

/// A key that is equal for equal objects.
fn key(answer: &ManifestResponse) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in &answer.manifests {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

fn objects(manifests: &[String]) -> Result<Arc<[Arc<Kept>]>, RepoError> {
    let read = |(i, text): (usize, &String)| {
        let failed = |e: String| RepoError::RepoServer {
            message: format!("manifest {} of {}: {e}", i + 1, manifests.len()),
            retryable: false,
            lacks: Lacking::Nothing,
        };
        let value = serde_json::from_str(text).map_err(|e| failed(e.to_string()))?;
        Ok(Arc::new(
            Object::from_value(value)
                .map_err(|e| failed(e.to_string()))?
                .into(),
        ))
    };
    manifests.iter().enumerate().map(read).collect()
}

fn failed(status: &Status) -> RepoError {
    RepoError::RepoServer {
        message: shown(status),
        retryable: is_of_moment(status.code()),
        lacks: lacking(status),
    }
}

/// Argo CD's repo-server has a code for values files only; a missing folder it tells in words, by
/// which its controller recognizes it too. They are read here, once.
fn lacking(status: &Status) -> Lacking {
    if status.code() == Code::NotFound {
        Lacking::ValuesFile
    } else if status.message().contains(PATH_MISSING) {
        Lacking::Path
    } else {
        Lacking::Nothing
    }
}

/// How the message of [`RenderError::PathMissing`](tiphys_render::RenderError::PathMissing) ends.
const PATH_MISSING: &str = "app path does not exist";

/// A status as Go's gRPC prints it.
pub fn shown(status: &Status) -> String {
    format!(
        "rpc error: code = {} desc = {}",
        name(status.code()),
        status.message()
    )
}

/// Go gRPC's names of the codes.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
