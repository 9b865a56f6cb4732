//! What commands and roles have of kubectl: how a cluster is chosen, and how errors are worded. It
//! must not know who uses it.

pub mod failure;
pub mod kube;
