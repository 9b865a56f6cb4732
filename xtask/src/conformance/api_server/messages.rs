//! Messages of the gRPC cases that are recorded as JSON only. Main function: [`encode`].

use anyhow::bail;
use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tiphys_api::rpc::{repocreds, repository};

/// A request message of a method in bytes.
pub fn encode(method: &str, message: &Value) -> anyhow::Result<Vec<u8>> {
    let name = method.rsplit('/').next().unwrap_or_default();
    match name {
        "Create" => bytes::<repository::RepoCreateRequest>(message),
        "Update" | "UpdateWriteRepository" => bytes::<repository::RepoUpdateRequest>(message),
        "GetWrite" | "DeleteWriteRepository" => bytes::<repository::RepoQuery>(message),
        "ValidateAccess" | "ValidateWriteAccess" => bytes::<repository::RepoAccessQuery>(message),
        "UpdateRepositoryCredentials" | "UpdateWriteRepositoryCredentials" => {
            bytes::<repocreds::RepoCredsUpdateRequest>(message)
        }
        "DeleteRepositoryCredentials" | "DeleteWriteRepositoryCredentials" => {
            bytes::<repocreds::RepoCredsDeleteRequest>(message)
        }
        _ => bail!("nobody knows the message of {method}"),
    }
}

fn bytes<M: Message + DeserializeOwned>(message: &Value) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::from_value::<M>(message.clone())?.encode_to_vec())
}
