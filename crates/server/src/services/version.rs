//! version.VersionService.

use crate::{ApiError, auth::Caller, state::State};
use std::sync::Arc;
use tiphys_api::{
    meta::Empty,
    rpc::version::{COMPILER, VersionMessage},
};

/// What the renderers of this program do as: the versions of the tools that they were compared with.
const HELM: &str = "v4.2.4";
const KUSTOMIZE: &str = "v5.8.1";
const JSONNET: &str = "v0.22.0";

/// The version is public; build details are only for callers who are logged in, or need not be.
pub async fn version(
    state: Arc<State>,
    caller: Caller,
    _: Empty,
) -> Result<VersionMessage, ApiError> {
    let info = &state.options.version;
    let mut message = VersionMessage {
        version: info.version.clone(),
        ..Default::default()
    };
    let anonymous = || async {
        let settings = state.settings.get().await;
        settings.is_ok_and(|settings| settings.value("users.anonymous.enabled") == "true")
    };
    if caller.logged_in() || state.options.auth_disabled || anonymous().await {
        message.build_date.clone_from(&info.build_date);
        message.git_commit.clone_from(&info.git_commit);
        message.git_tree_state = if info.git_commit.is_empty() {
            String::new()
        } else {
            "clean".into()
        };
        message.platform.clone_from(&info.platform);
        COMPILER.clone_into(&mut message.compiler);
        message.kubectl_version.clone_from(&info.kubectl_version);
        HELM.clone_into(&mut message.helm_version);
        KUSTOMIZE.clone_into(&mut message.kustomize_version);
        JSONNET.clone_into(&mut message.jsonnet_version);
    }
    Ok(message)
}
