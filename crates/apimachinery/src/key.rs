//! The identity of an object in a cluster.

use crate::gvk::GroupKind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Group, kind, namespace (empty for cluster scope) and name: identifies one object independently
/// of its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceKey {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl ResourceKey {
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.group.clone(),
            kind: self.kind.clone(),
        }
    }

    /// The same key at cluster scope.
    pub fn without_namespace(&self) -> Self {
        Self {
            namespace: String::new(),
            ..self.clone()
        }
    }
}

/// `<group>/<kind>/<namespace>/<name>`, as messages print it.
impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.group, self.kind, self.namespace, self.name
        )
    }
}
