//! What a comparison depends on besides the objects themselves.
//!
//! Main type: [`CompareRules`]. Plain data: callers provide it, and its meaning is decided where it
//! is used.

use crate::{
    base::{
        ExclusionRule, IgnoreRule, IgnoreStatus, NamespaceMetadata, ProjectRules, ServerSideDiff,
        Tracking,
    },
    customize::Customizations,
};
use std::sync::Arc;

/// Everything a comparison depends on besides the objects themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareRules {
    pub tracking: Tracking,
    /// Namespace of the Application itself.
    pub app_namespace: String,
    /// Name of the Application itself (the instance name may include the namespace as well).
    pub app_name: String,
    /// Empty if unknown.
    pub app_uid: String,
    pub dest_server: String,
    /// Empty if the destination is given by its server.
    pub dest_name: String,
    pub dest_namespace: String,
    pub project: ProjectRules,
    pub ignore_differences: Vec<IgnoreRule>,
    /// Resource customizations; their `ignoreDifferences` are also contained in
    /// `ignore_differences`.
    pub customizations: Arc<Customizations>,
    pub exclusions: Arc<[ExclusionRule]>,
    pub inclusions: Arc<[ExclusionRule]>,
    pub ignore_status: IgnoreStatus,
    pub ignore_aggregated_roles: bool,
    /// Use Server-Side Diff; `None`: differences are predicted here.
    pub server_side_diff: Option<ServerSideDiff>,
    /// The Application's own sync options; `Prune=confirm` and `Delete=confirm` are shown in the
    /// entries.
    pub sync_options: Vec<String>,
    pub managed_namespace: Option<NamespaceMetadata>,
}

impl CompareRules {
    /// The defaults of a fresh installation for one Application.
    pub fn new(
        tracking: Tracking,
        app_namespace: &str,
        app_name: &str,
        dest_server: &str,
        dest_namespace: &str,
    ) -> Self {
        Self {
            tracking,
            app_namespace: app_namespace.to_owned(),
            app_name: app_name.to_owned(),
            app_uid: String::new(),
            dest_server: dest_server.to_owned(),
            dest_name: String::new(),
            dest_namespace: dest_namespace.to_owned(),
            project: ProjectRules::allow_all("default"),
            ignore_differences: Vec::new(),
            customizations: Arc::default(),
            exclusions: Arc::default(),
            inclusions: Arc::default(),
            ignore_status: IgnoreStatus::All,
            ignore_aggregated_roles: false,
            server_side_diff: None,
            sync_options: Vec::new(),
            managed_namespace: None,
        }
    }
}
