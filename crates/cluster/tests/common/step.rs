//! Steps of a sync, for tests of the executor.

use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_engine::sync::{
    Step,
    step::{Action, Refused, SyncPhase},
};

/// A step that applies an object.
pub fn step(target: &Object) -> Step {
    Step {
        id: String::new(),
        phase: SyncPhase::Sync,
        wave: 0,
        action: Action::Apply,
        gvk: target.gvk(),
        key: target.key(),
        result_namespace: target.namespace().to_owned(),
        target: Some(Arc::new(target.clone())),
        uid: String::new(),
        replace: false,
        force: false,
        server_side: false,
        validate: true,
        skip_dry_run: false,
        unchanged: false,
        delete_policies: Vec::new(),
        images: Vec::new(),
        invalid: None,
        refused: Refused::default(),
    }
}
