//! Calls to the server of one plugin, over its unix socket.
//!
//! Main type: [`Client`].

use super::archive::Archive;
use crate::repo_server::shown;
use futures::{Stream, StreamExt as _, stream};
use http::{Uri, uri::PathAndQuery};
use hyper_util::rt::TokioIo;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tiphys_api::rpc::plugin::{
    AppStreamRequest, CheckPluginConfigurationResponse, EnvEntry, File, ManifestRequestMetadata,
    ManifestResponse, Nothing, ParametersAnnouncementResponse, RepositoryResponse,
};
use tokio::net::UnixStream;
use tonic::{
    Code, Status,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

/// Maximum size of a message in bytes; Argo CD's default.
pub(super) const MAX_MESSAGE: usize = 100 << 20;
/// Bytes of the archive in one message. Argo CD sends 1024, which takes many times as long.
const CHUNK: usize = 64 << 10;
/// Archives that are read ahead.
const AHEAD: usize = 4;

/// Why a call failed.
#[derive(Debug)]
pub(super) enum CallError {
    /// Nobody answers on the socket.
    Unreachable(String),
    /// The plugin answered that it failed.
    Failed(Status),
    /// It did not answer in time.
    Late,
    /// The answer is larger than a message may be.
    TooLarge,
    /// The connection ended before the answer.
    Broken(Status),
}

impl CallError {
    /// As Go's client prints it.
    pub fn text(&self, plugin: &str, limit: Duration) -> String {
        match self {
            Self::Unreachable(reason) => reason.clone(),
            Self::Failed(status) | Self::Broken(status) => shown(status),
            Self::Late => format!(
                "plugin {plugin} did not answer within {} s (raise the limit with --render-timeout-seconds)",
                limit.as_secs_f32()
            ),
            Self::TooLarge => {
                format!("the answer of plugin {plugin} has more than {MAX_MESSAGE} bytes")
            }
        }
    }

    /// Whether the plugin itself said so; the same question has the same answer.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::TooLarge)
    }
}

/// What goes with the files.
pub(super) struct Sent {
    pub archive: Arc<Archive>,
    /// The Application's folder.
    pub folder: String,
    pub env: Vec<(String, String)>,
}

/// A connection to a plugin.
pub(super) struct Client {
    channel: Channel,
    limit: Duration,
}

impl Client {
    /// `limit`: the time for each call.
    pub async fn connect(socket: &Path, limit: Duration) -> Result<Self, CallError> {
        let unreachable = |e: &dyn std::fmt::Display| {
            CallError::Unreachable(format!("dial unix {}: {e}", socket.display()))
        };
        // Once by itself: what tonic says of a failure hides the reason.
        let stream = match tokio::time::timeout(limit, UnixStream::connect(socket)).await {
            Ok(connected) => connected
                .map_err(|e| unreachable(&format!("connect: {}", crate::net::reason(&e))))?,
            Err(_) => return Err(CallError::Late),
        };
        let (path, mut first) = (PathBuf::from(socket), Some(stream));
        let endpoint = Endpoint::from_static("http://plugin");
        let channel = endpoint.connect_with_connector(tower::service_fn(move |_: Uri| {
            let (ready, path) = (first.take(), path.clone());
            async move {
                let stream = match ready {
                    Some(stream) => stream,
                    None => UnixStream::connect(path).await?,
                };
                Ok::<_, io::Error>(TokioIo::new(stream))
            }
        }));
        let channel = match tokio::time::timeout(limit, channel).await {
            Ok(channel) => channel.map_err(|e| unreachable(&e))?,
            Err(_) => return Err(CallError::Late),
        };
        Ok(Self { channel, limit })
    }

    pub async fn check(&self) -> Result<CheckPluginConfigurationResponse, CallError> {
        let path = "/plugin.ConfigManagementPluginService/CheckPluginConfiguration";
        let call = async |mut grpc: Grpc<Channel>| {
            let codec = ProstCodec::<Nothing, CheckPluginConfigurationResponse>::default();
            let request = self.request(Nothing {});
            grpc.unary(request, PathAndQuery::from_static(path), codec)
                .await
        };
        self.within(call).await
    }

    pub async fn matches(&self, sent: &Sent) -> Result<RepositoryResponse, CallError> {
        self.send(
            "/plugin.ConfigManagementPluginService/MatchRepository",
            sent,
        )
        .await
    }

    pub async fn generate(&self, sent: &Sent) -> Result<ManifestResponse, CallError> {
        self.send(
            "/plugin.ConfigManagementPluginService/GenerateManifest",
            sent,
        )
        .await
    }

    pub async fn parameters(
        &self,
        sent: &Sent,
    ) -> Result<ParametersAnnouncementResponse, CallError> {
        let path = "/plugin.ConfigManagementPluginService/GetParametersAnnouncement";
        self.send(path, sent).await
    }

    async fn send<R: prost::Message + Default + 'static>(
        &self,
        path: &'static str,
        sent: &Sent,
    ) -> Result<R, CallError> {
        let call = async |mut grpc: Grpc<Channel>| {
            let codec = ProstCodec::<AppStreamRequest, R>::default();
            let request = self.request(messages(sent));
            grpc.client_streaming(request, PathAndQuery::from_static(path), codec)
                .await
        };
        self.within(call).await
    }

    /// The server stops its commands when the time is over.
    fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(self.limit);
        request
    }

    async fn within<R, F>(&self, call: impl FnOnce(Grpc<Channel>) -> F) -> Result<R, CallError>
    where
        F: Future<Output = Result<tonic::Response<R>, Status>>,
    {
        let work = async {
            let mut grpc = Grpc::new(self.channel.clone())
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE);
            grpc.ready()
                .await
                .map_err(|e| CallError::Broken(Status::unavailable(e.to_string())))?;
            call(grpc)
                .await
                .map(tonic::Response::into_inner)
                .map_err(sorted)
        };
        // On the heap: a call moved by value through the layers would occupy the stack many times.
        tokio::time::timeout(self.limit, Box::pin(work))
            .await
            .unwrap_or(Err(CallError::Late))
    }
}

fn sorted(status: Status) -> CallError {
    use std::error::Error as _;
    match status.code() {
        // Ours, of an answer that is too large to be read.
        Code::OutOfRange => CallError::TooLarge,
        Code::DeadlineExceeded => CallError::Late,
        // Ours, when the time is over that we told the server.
        Code::Cancelled if status.message() == "Timeout expired" => CallError::Late,
        Code::Cancelled => CallError::Broken(status),
        Code::Unavailable | Code::Internal if status.source().is_some() => {
            CallError::Broken(status)
        }
        Code::Unavailable => CallError::Broken(status),
        _ if status.source().is_some() => CallError::Broken(status),
        _ => CallError::Failed(status),
    }
}

/// The metadata, then the archive.
fn messages(sent: &Sent) -> impl Stream<Item = AppStreamRequest> + Send + 'static {
    let name = sent.folder.rsplit('/').next().unwrap_or_default();
    let env = sent.env.iter().map(|(name, value)| EnvEntry {
        name: name.clone(),
        value: value.clone(),
    });
    let metadata = ManifestRequestMetadata {
        app_name: name.to_owned(),
        app_rel_path: if sent.folder.is_empty() {
            ".".to_owned()
        } else {
            sent.folder.clone()
        },
        checksum: sent.archive.checksum.clone(),
        size: i64::try_from(sent.archive.size).unwrap_or(i64::MAX),
        env: env.collect(),
    };
    let first = AppStreamRequest {
        metadata: Some(metadata),
        file: None,
    };
    let (give, take) = tokio::sync::mpsc::channel(AHEAD);
    let archive = Arc::clone(&sent.archive);
    tokio::task::spawn_blocking(move || {
        let mut from = 0;
        // The receiver counts the bytes and knows their sum: what cannot be read is missed.
        while let Ok(chunk) = archive.read(from, CHUNK) {
            from += chunk.len() as u64;
            if chunk.is_empty() || give.blocking_send(chunk).is_err() {
                break;
            }
        }
    });
    let chunks = stream::unfold(take, async |mut take| {
        let chunk = take.recv().await?;
        let message = AppStreamRequest {
            metadata: None,
            file: Some(File { chunk }),
        };
        Some((message, take))
    });
    stream::once(std::future::ready(first)).chain(chunks)
}
