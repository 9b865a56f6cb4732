//! Converts the results of a sync between the engine's types and those of the status.

use tiphys_api::operation::ResourceResult;
use tiphys_engine::sync::{self, OperationPhase};

pub fn to_wire(result: &sync::ResourceResult) -> ResourceResult {
    ResourceResult {
        group: result.group.clone(),
        version: result.version.clone(),
        kind: result.kind.clone(),
        namespace: result.namespace.clone(),
        name: result.name.clone(),
        status: result
            .status
            .map(|s| s.as_str().to_owned())
            .unwrap_or_default(),
        message: result.message.clone(),
        hook_type: result
            .hook_type
            .map(|p| p.as_str().to_owned())
            .unwrap_or_default(),
        hook_phase: result
            .hook_phase
            .map(|p| p.as_str().to_owned())
            .unwrap_or_default(),
        sync_phase: result
            .sync_phase
            .map(|p| p.as_str().to_owned())
            .unwrap_or_default(),
        images: result.images.clone(),
    }
}

pub fn from_wire(result: &ResourceResult) -> sync::ResourceResult {
    sync::ResourceResult {
        group: result.group.clone(),
        version: result.version.clone(),
        kind: result.kind.clone(),
        namespace: result.namespace.clone(),
        name: result.name.clone(),
        status: sync::ResultCode::parse(&result.status),
        message: result.message.clone(),
        hook_type: sync::SyncPhase::parse(&result.hook_type),
        hook_phase: OperationPhase::parse(&result.hook_phase),
        sync_phase: sync::SyncPhase::parse(&result.sync_phase),
        images: result.images.clone(),
    }
}
