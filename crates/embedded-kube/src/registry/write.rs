//! Create, update, patch and delete.

use super::options::{DeleteOptions, Deleted, Part, Patch, WriteOptions, Written};
use super::{Registry, Stored};
use crate::catalog::Resource;
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

impl Registry {
    /// `namespace` is that of the URL; the object's own must be empty or the same.
    pub fn create(&self, gvr: &Gvr, namespace: &str, object: Object, options: &WriteOptions) -> Result<Written, Status> {
        let _ = (gvr, namespace, object, options);
        Err(Status::not_implemented("create"))
    }

    /// Replaces an object; a `resourceVersion` in it must be the current one. The status stays as it is.
    pub fn update(&self, gvr: &Gvr, namespace: &str, object: Object, options: &WriteOptions) -> Result<Written, Status> {
        self.update_part(gvr, namespace, object, Part::Main, options)
    }

    /// Replaces the status only.
    pub fn update_status(&self, gvr: &Gvr, namespace: &str, object: Object, options: &WriteOptions) -> Result<Written, Status> {
        self.update_part(gvr, namespace, object, Part::Status, options)
    }

    pub fn update_part(&self, gvr: &Gvr, namespace: &str, object: Object, part: Part, options: &WriteOptions) -> Result<Written, Status> {
        let _ = (gvr, namespace, object, part, options);
        Err(Status::not_implemented("update"))
    }

    pub fn patch(&self, gvr: &Gvr, at: (&str, &str), part: Part, patch: &Patch, options: &WriteOptions) -> Result<Written, Status> {
        let _ = (gvr, at, part, patch, options);
        Err(Status::not_implemented("patch"))
    }

    /// A pod that runs on a node is only marked: whoever plays the kubelet deletes it again with a grace period of 0.
    pub fn delete(&self, gvr: &Gvr, namespace: &str, name: &str, options: &DeleteOptions) -> Result<Deleted, Status> {
        let _ = (gvr, namespace, name, options);
        Err(Status::not_implemented("delete"))
    }
}
