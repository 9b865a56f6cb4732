//! version.VersionService.

use crate::{ApiError, auth::Caller, server::State};
use std::sync::Arc;
use tiphys_api::{meta::Empty, rpc::version::VersionMessage};

/// The version is public; build details are only for callers who are logged in.
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
    if caller.logged_in() {
        message.build_date.clone_from(&info.build_date);
        message.git_commit.clone_from(&info.git_commit);
        message.git_tree_state = if info.git_commit.is_empty() {
            String::new()
        } else {
            "clean".into()
        };
        message.platform.clone_from(&info.platform);
        message.compiler = "rustc".into();
        message.kubectl_version.clone_from(&info.kubectl_version);
    }
    Ok(message)
}
