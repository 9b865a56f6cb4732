//! What commands and roles have of kubectl: how a cluster is chosen, how errors are worded, and how
//! objects are printed. It must not know who uses it.

pub mod failure;
pub mod jsonpath;
pub mod kube;
pub mod template;
