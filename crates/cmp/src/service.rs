//! The calls of a plugin's server.
//!
//! Main type: [`Server`], a role of `rpc`.

use crate::{
    config::{Command, Config},
    discover::by_glob,
    output::documents,
    receive::{ReceiveLimits, receive},
    run::{Place, run},
};
use futures::stream::BoxStream;
use http::HeaderMap;
use std::{
    fs, io,
    net::IpAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_api::rpc::{
    plugin::{
        AppStreamRequest, CheckPluginConfigurationResponse, ManifestRequestMetadata,
        ManifestResponse, Nothing, ParametersAnnouncementResponse, RepositoryResponse,
    },
    repository::ParameterAnnouncement,
};
use tiphys_rpc::{
    ApiError, Call, Code, Role, Table,
    table::{client_stream, unary},
    unix,
};
use tokio::time::Instant;

/// How long before its caller stops waiting a command is ended, so that the reason still arrives.
const EARLIER: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub config: Config,
    /// The folder for sockets.
    pub sockets: PathBuf,
    /// The folder for what is received. It is emptied.
    pub work: PathBuf,
    pub limits: ReceiveLimits,
    /// Bytes of a message, and of what a command prints.
    pub max_message: usize,
}

/// Serves one plugin.
pub struct Server {
    table: Table<Self>,
    options: ServerOptions,
}

/// When the caller stops waiting.
#[derive(Clone, Copy)]
pub struct Caller {
    deadline: Option<Instant>,
}

impl Role for Server {
    type Caller = Caller;
    type Access = ();

    fn table(&self) -> &Table<Self> {
        &self.table
    }

    async fn caller(
        &self,
        _: IpAddr,
        headers: &HeaderMap,
        _: Option<&()>,
    ) -> Result<Caller, ApiError> {
        let timeout = headers
            .get("grpc-timeout")
            .and_then(|value| value.to_str().ok());
        let left = timeout.and_then(duration);
        Ok(Caller {
            deadline: left
                .and_then(|left| Instant::now().checked_add(left.saturating_sub(EARLIER))),
        })
    }

    fn max_request(&self, _: &Caller) -> usize {
        self.options.max_message
    }
}

/// A time as gRPC writes it.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.checked_mul(3600)?),
        "M" => Duration::from_secs(number.checked_mul(60)?),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

type Messages = BoxStream<'static, Result<AppStreamRequest, ApiError>>;

fn calls() -> Vec<Call<Server>> {
    const SERVICE: &str = "plugin.ConfigManagementPluginService";
    let name = |method: &str| format!("{SERVICE}/{method}");
    vec![
        unary(
            &name("CheckPluginConfiguration"),
            &[],
            (),
            |_| {},
            async |server: Arc<Server>, _, Nothing {}| Ok(server.configuration()),
        ),
        client_stream(
            &name("MatchRepository"),
            (),
            |_| {},
            async |server: Arc<Server>, caller, messages| server.matches(caller, messages).await,
        ),
        client_stream(
            &name("GenerateManifest"),
            (),
            |_| {},
            async |server: Arc<Server>, caller, messages| server.generate(caller, messages).await,
        ),
        client_stream(
            &name("GetParametersAnnouncement"),
            (),
            |_| {},
            async |server: Arc<Server>, caller, messages| server.announce(caller, messages).await,
        ),
    ]
}

/// The files of a call.
struct Received {
    place: Place,
    metadata: ManifestRequestMetadata,
}

impl Server {
    /// Empties the folder for what is received.
    pub fn new(options: ServerOptions) -> io::Result<Self> {
        match fs::remove_dir_all(&options.work) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut make = fs::DirBuilder::new();
        make.recursive(true).mode(0o700).create(&options.work)?;
        let options = ServerOptions {
            work: options.work.canonicalize()?,
            ..options
        };
        Ok(Self {
            table: Table::new(calls()),
            options,
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.options.config.socket(&self.options.sockets)
    }

    /// Serves until `stop` is done, then removes the socket.
    pub async fn serve(self: Arc<Self>, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let socket = self.socket();
        let listener = unix::bind(&socket)?;
        tracing::info!("serving on {}", socket.display());
        unix::serve(self, listener, stop).await;
        fs::remove_file(&socket)
    }

    fn configuration(&self) -> CheckPluginConfigurationResponse {
        CheckPluginConfigurationResponse {
            is_discovery_configured: self.options.config.discovers(),
            provide_git_creds: self.options.config.spec.provide_git_creds,
        }
    }

    async fn generate(
        self: Arc<Self>,
        caller: Caller,
        messages: Messages,
    ) -> Result<ManifestResponse, ApiError> {
        let received = self.receive(caller, messages, "generate manifest").await?;
        let place = self.folder_of(received)?;
        let spec = &self.options.config.spec;
        let failed = |e: String| unknown(format!("error generating manifests: {e}"));
        if !spec.init.command.is_empty() {
            run(&spec.init, &place).await.map_err(failed)?;
        }
        let out = run(&spec.generate, &place).await.map_err(failed)?;
        let split = tokio::task::spawn_blocking(move || documents(&out)).await;
        let manifests = split.map_err(|e| failed(e.to_string()))?.map_err(failed)?;
        Ok(ManifestResponse {
            manifests,
            source_type: String::new(),
        })
    }

    async fn matches(
        self: Arc<Self>,
        caller: Caller,
        messages: Messages,
    ) -> Result<RepositoryResponse, ApiError> {
        let received = self.receive(caller, messages, "match repository").await?;
        let answer = |is_supported| RepositoryResponse {
            is_supported,
            is_discovery_enabled: true,
        };
        let failed = |e: String| unknown(format!("match repository error: {e}"));
        let discover = &self.options.config.spec.discover;
        let (pattern, what) = if discover.file_name.is_empty() {
            (&discover.find.glob, "glob")
        } else {
            (&discover.file_name, "filename")
        };
        if !pattern.is_empty() {
            let (place, pattern) = (received.place, pattern.clone());
            let wrong = format!("error finding {what} match for pattern {pattern:?}");
            let found = tokio::task::spawn_blocking(move || {
                by_glob(place.root.path(), &place.folder, &pattern)
            });
            let found = found.await.map_err(|e| failed(e.to_string()))?;
            return found
                .map(answer)
                .map_err(|e| failed(format!("{wrong}: {e}")));
        }
        if !discover.find.command.command.is_empty() {
            let place = self.folder_of(received)?;
            let out = run(&discover.find.command, &place).await;
            let out = out.map_err(|e| failed(format!("error running find command: {e}")))?;
            return Ok(answer(!out.is_empty()));
        }
        Ok(RepositoryResponse::default())
    }

    async fn announce(
        self: Arc<Self>,
        caller: Caller,
        messages: Messages,
    ) -> Result<ParametersAnnouncementResponse, ApiError> {
        let received = self
            .receive(caller, messages, "parameters announcement")
            .await?;
        let place = self.folder_of(received)?;
        let parameters = &self.options.config.spec.parameters;
        let mut all = self
            .dynamic(&parameters.dynamic, &place)
            .await
            .map_err(|e| unknown(format!("get parameters announcement error: {e}")))?;
        // Those of the file come later, and so take precedence.
        all.extend(parameters.fixed.iter().cloned());
        Ok(ParametersAnnouncementResponse {
            parameter_announcements: all,
        })
    }

    async fn dynamic(
        &self,
        command: &Command,
        place: &Place,
    ) -> Result<Vec<ParameterAnnouncement>, String> {
        if command.command.is_empty() {
            return Ok(Vec::new());
        }
        let out = run(command, place)
            .await
            .map_err(|e| format!("error executing dynamic parameter output command: {e}"))?;
        let all: Option<Vec<ParameterAnnouncement>> = serde_json::from_slice(&out).map_err(|e| {
            format!("error unmarshaling dynamic parameter output into ParametersAnnouncementResponse: {e}")
        })?;
        Ok(all.unwrap_or_default())
    }

    async fn receive(
        &self,
        caller: Caller,
        messages: Messages,
        what: &str,
    ) -> Result<Received, ApiError> {
        let made = tempfile::Builder::new()
            .prefix("call-")
            .tempdir_in(&self.options.work);
        let root = made.map_err(|e| unknown(format!("error creating workdir for {what}: {e}")))?;
        let keep_modes = self.options.config.spec.preserve_file_mode;
        let received = receive(messages, root.path(), keep_modes, self.options.limits);
        let metadata = match caller.deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, received).await,
            None => Ok(received.await),
        };
        let metadata = metadata.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        let metadata =
            metadata.map_err(|e| unknown(format!("{what} error receiving stream: {e}")))?;
        let env = metadata
            .env
            .iter()
            .filter(|entry| is_variable(&entry.name, &entry.value));
        let env = env.map(|entry| (entry.name.clone(), entry.value.clone()));
        let place = Place {
            folder: folder(&root, &metadata.app_rel_path),
            root: Arc::new(root),
            env: env.collect(),
            deadline: caller.deadline,
            max_output: self.options.max_message,
        };
        Ok(Received { place, metadata })
    }

    /// The Application's folder with its links followed: it is below that of the call.
    fn folder_of(&self, received: Received) -> Result<Place, ApiError> {
        let Received { place, metadata } = received;
        let outside = || unknown("illegal appPath: out of workDir bound".to_owned());
        let root = place.root.path();
        let joined = root.join(metadata.app_rel_path.trim_start_matches('/'));
        let folder = joined
            .canonicalize()
            .map_err(|e| unknown(format!("chdir {}: {e}", metadata.app_rel_path)))?;
        if !folder.starts_with(root) {
            return Err(outside());
        }
        Ok(Place { folder, ..place })
    }
}

/// The Application's folder without leaving that of the call: `..` ends there.
fn folder(root: &TempDir, path: &str) -> PathBuf {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    root.path().join(Path::new(&parts.join("/")))
}

/// Whether a process can have such a variable.
fn is_variable(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}

fn unknown(message: String) -> ApiError {
    ApiError::new(Code::Unknown, message)
}
