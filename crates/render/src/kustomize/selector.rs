//! Selects the objects to which a patch or a replacement applies.
//!
//! Main type: [`Selector`]. Kinds, names and namespaces are regular expressions in Go's syntax that
//! must match the whole text.

use super::fault::{Res, fail};
use super::ids::{Gvk, ResId};
use serde::{Deserialize, Serialize};
use tiphys_gocompat::regex::Regex;

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Selector {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "annotationSelector")]
    pub annotation_selector: String,
    #[serde(rename = "labelSelector")]
    pub label_selector: String,
}

impl Selector {
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    pub fn id(&self) -> ResId {
        ResId {
            gvk: self.gvk(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
        }
    }

    /// Whether the selector gives no part of an id.
    pub fn is_empty_id(&self) -> bool {
        self.id() == ResId::default()
    }

    pub fn compile(&self) -> Res<Compiled> {
        Ok(Compiled {
            group: whole(&self.group)?,
            version: whole(&self.version)?,
            kind: whole(&self.kind)?,
            name: whole(&self.name)?,
            namespace: whole(&self.namespace)?,
        })
    }
}

/// `None` matches anything.
#[derive(Debug)]
pub(super) struct Compiled {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
}

fn whole(expression: &str) -> Res<Option<Regex>> {
    if expression.is_empty() {
        return Ok(None);
    }
    match Regex::new(&format!("^(?:{expression})$")) {
        Ok(regex) => Ok(Some(regex)),
        Err(error) => fail!("{error}"),
    }
}

fn fits(expression: Option<&Regex>, text: &str) -> bool {
    expression.is_none_or(|expression| expression.is_match(text))
}

impl Compiled {
    pub fn is_kind(&self, gvk: &Gvk) -> bool {
        fits(self.group.as_ref(), &gvk.group)
            && fits(self.version.as_ref(), &gvk.version)
            && fits(self.kind.as_ref(), &gvk.kind)
    }

    pub fn is_name(&self, name: &str) -> bool {
        fits(self.name.as_ref(), name)
    }

    pub fn is_namespace(&self, namespace: &str) -> bool {
        fits(self.namespace.as_ref(), namespace)
    }
}
