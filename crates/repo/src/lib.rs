//! From a repository URL and a revision to manifests: combines git, caches and rendering.
//!
//! Main type: [`Repos`], a cheap handle used by everything else. The only crate that opens
//! repositories or starts a process (`ssh`); it also asks the servers of plugins and hosts of Git. It must not know of clusters, Application status or
//! the API server.

mod acceptances;
mod access;
mod busy;
mod chart;
mod charts;
mod commit_server;
mod common;
mod contacts;
mod copies;
mod disk_cache;
mod entry;
mod error;
mod git;
mod ground;
mod http;
mod hydrated;
mod isolation;
mod known_answers;
mod known_refs;
mod kustomize;
mod lfs;
mod listing;
mod manifests;
mod needs;
pub mod net;
mod obtained;
mod oci;
mod plugin;
mod proposed;
mod refusals;
pub mod repo_server;
mod repos;
pub mod revision;
mod room;
pub mod scm;
mod secret;
mod shares;
mod signatures;
mod source_limits;
mod spool;
mod streamed;
mod submodules;
mod tokens;
mod traced;
mod trailers;
mod unpacked;
mod url;
pub mod versions;
mod web;

pub use access::{RepoAccess, Trust};
pub use chart::RemoteOptions;
pub use charts::{
    ChartRemote, Divider, Fetched, Known, Place, Seekable, Spooled, Undivided, index_limits,
    whole_index,
};
#[doc(hidden)]
pub use charts::{index_versions, read_index};
pub use commit_server::CommitServer;
pub use contacts::{Contact, ContactKind, ContactWatch, RegistryRequest};
pub use disk_cache::{DiskCache, DiskCacheError};
pub use error::{ErrorKind, Lacking, RepoError};
pub use git::Signature;
pub use git::{GitLimit, GitLimits, Signatures};
pub use ground::Since;
pub use hydrated::{BadPath, commit_message, folder as hydrated_folder};
pub use isolation::{Isolation, restrict as restrict_process, work as work_in_isolation};
pub use kustomize::{KustomizeVersions, build_options as kustomize_build_options};
pub use listing::FilePattern;
#[doc(hidden)]
pub use manifests::read_worker;
pub use manifests::{ManifestRequest, Manifests, RefSource, RemoteVerdict};
pub use needs::{OtherRepository, Others, Reach};
pub use obtained::Obtained;
pub use oci::{OciChart, OciRemote, version_of_tag};
#[doc(hidden)]
pub use oci::{read_challenge, read_layer, read_manifest};
pub use plugin::{ASK_PASS_NONCE, ASK_PASS_SOCKET, ArchiveLimits, PluginSettings, ask_pass};
pub use proposed::{Proposal, Proposed};
pub use repo_server::{RepoServer, RepoServerOptions};
pub use repos::{Refs, RepoOptions, Repos, Resolved};
pub use secret::Secret;
pub use signatures::SignatureQuestion;
pub use source_limits::{Retry, SourceLimits};
pub use streamed::{STREAMED, UnpackLimits};
pub use tiphys_render::{
    ClusterFacts, Details, HelmDetails, ManifestError, RenderError, SourceKind,
};
pub use tokens::{Identity, Workload as AzureWorkload};
