//! The calls of the repo-server, and how it serves them.
//!
//! Main type: [`Server`], a role of `rpc`. Who may call is decided below it: by the network, or by
//! the certificates of clients.

use crate::{
    commits,
    metrics::{CommitMetrics, Pending},
    shared::Shared,
    trust::{TrustPaths, Trusted},
    written::{Written, nothing_written},
};
use http::HeaderMap;
use std::{io, net::IpAddr, sync::Arc};
use tiphys_api::{
    meta::Empty,
    rpc::{
        plugin::Nothing,
        version::{COMPILER, VersionMessage},
    },
};
use tiphys_listen::Connections;
use tiphys_repo::Repos;
use tiphys_rpc::{
    ApiError, Call, CallCounts, Role, Table, Tls,
    table::{Answer, Query, client_stream, unary},
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

/// Each of them may take a hundred megabytes of disk space; more wait.
const MAX_UPLOADS: usize = 8;
const SERVICE: &str = "repository.RepoServerService";

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Bytes of the archive.
    pub archive: u64,
    /// What it unpacks to.
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Bytes of a message.
    pub max_message: usize,
    pub trust: TrustPaths,
    /// As `version` tells it, with a `v`.
    pub version: String,
    /// What GenerateManifestWithFiles takes.
    pub streamed: StreamLimits,
    /// List folders whose names begin with a dot, too.
    pub hidden_folders: bool,
}

/// Serves from repositories.
pub struct Server {
    table: Table<Self>,
    pub(crate) repos: Repos,
    pub(crate) trust: Trusted,
    /// Archives that are received at a time.
    pub(crate) uploads: Semaphore,
    pub(crate) options: ServerOptions,
    calls: CallCounts,
    pub(crate) pending: Pending,
    pub(crate) commits: CommitMetrics,
    pub(crate) written: Written,
    pub(crate) shared: Option<Shared>,
}

impl Role for Server {
    type Caller = ();
    type Access = ();

    fn table(&self) -> &Table<Self> {
        &self.table
    }

    async fn caller(&self, _: IpAddr, _: &HeaderMap, _: Option<&()>) -> Result<(), ApiError> {
        Ok(())
    }

    fn max_request(&self, (): &()) -> usize {
        self.options.max_message
    }

    fn counts(&self) -> Option<&CallCounts> {
        Some(&self.calls)
    }

    fn logs_calls(&self) -> bool {
        true
    }
}

fn call<Q, R, F, Fut>(method: &str, f: F) -> Call<Server>
where
    Q: Query,
    R: Answer,
    F: Fn(Arc<Server>, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let name = format!("{SERVICE}/{method}");
    unary(
        &name,
        &[],
        (),
        |_| {},
        move |server, (), query| f(server, query),
    )
}

fn calls() -> Vec<Call<Server>> {
    vec![
        call("GenerateManifest", Server::generate),
        client_stream(
            &format!("{SERVICE}/GenerateManifestWithFiles"),
            (),
            |_| {},
            async |server: Arc<Server>, (), messages| server.generate_with_files(messages).await,
        ),
        call("TestRepository", Server::test),
        call("ResolveRevision", Server::resolve),
        call("ListRefs", Server::list_refs),
        call("ListOCITags", Server::list_oci_tags),
        call("ListApps", Server::list_apps),
        call("ListPlugins", |server, Nothing {}| server.list_plugins()),
        call("GetAppDetails", Server::app_details),
        call("GetRevisionMetadata", Server::metadata),
        call("GetOCIMetadata", Server::oci_metadata),
        call("GetRevisionChartDetails", Server::chart_details),
        call("GetHelmCharts", Server::charts),
        call("GetGitFiles", Server::git_files),
        call("GetGitDirectories", Server::git_directories),
        call("UpdateRevisionForPaths", Server::update_revision),
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
    pub fn new(repos: Repos, options: ServerOptions) -> Self {
        Self::with(calls(), repos, options)
    }

    /// A commit server.
    pub fn of_commits(repos: Repos, options: ServerOptions) -> Self {
        Self::with(commits::calls(), repos, options)
    }

    fn with(calls: Vec<Call<Self>>, repos: Repos, options: ServerOptions) -> Self {
        Self {
            table: Table::new(calls),
            trust: Trusted::new(options.trust.clone()),
            uploads: Semaphore::new(MAX_UPLOADS),
            repos,
            options,
            calls: CallCounts::default(),
            pending: Pending::default(),
            commits: CommitMetrics::default(),
            written: nothing_written(),
            shared: None,
        }
    }

    /// The same, which uses what others have rendered, and lets them use its own.
    #[must_use]
    pub fn sharing(mut self, shared: Shared) -> Self {
        self.shared = Some(shared);
        self
    }

    /// The same, whose metrics say how long calls take if `is_timing`.
    #[must_use]
    pub fn timing_calls(mut self, is_timing: bool) -> Self {
        self.calls = CallCounts::new(is_timing);
        self
    }

    /// Serves until `stop` is cancelled; then open calls may end.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        tls: Tls,
        connections: Connections,
        stop: CancellationToken,
    ) -> io::Result<()> {
        tiphys_rpc::serve(self, listener, tls, connections, stop).await
    }

    /// What the calls are, and how many wait for which repository, in Prometheus text format.
    pub fn metrics(&self) -> String {
        let mut out = String::new();
        self.calls.write(&mut out);
        self.pending.write(&mut out);
        out
    }

    /// What a commit server has done, under its own names.
    pub fn metrics_of_commits(&self) -> String {
        let mut out = String::new();
        self.calls.write(&mut out);
        self.commits.write(&mut out);
        self.pending.write_of_commits(&mut out);
        out
    }

    pub(crate) fn version(&self) -> VersionMessage {
        VersionMessage {
            version: self.options.version.clone(),
            compiler: COMPILER.to_owned(),
            ..VersionMessage::default()
        }
    }
}
