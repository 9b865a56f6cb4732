//! The classes of claims and ingresses: an object without a class gets the default one, and a claim
//! may only grow if its storage class allows expansion.
//!
//! Main functions: [`admit`] and [`check`].

use super::{Objects, Request, refusal, spec};
use crate::reader::Reader;
use crate::status::Status;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_apimachinery::{Gvr, Object};

/// How a kind refers to its class.
struct Classes {
    table: &'static str,
    field: &'static str,
    /// The legacy annotation, which takes precedence over the field.
    older: &'static str,
    group: &'static str,
    plural: &'static str,
    /// The annotations that mark a default class.
    marks: &'static [&'static str],
}

const KINDS: [Classes; 2] = [
    Classes {
        table: "/persistentvolumeclaims",
        field: "storageClassName",
        older: "volume.beta.kubernetes.io/storage-class",
        group: "storage.k8s.io",
        plural: "storageclasses",
        marks: &[
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ],
    },
    Classes {
        table: "networking.k8s.io/ingresses",
        field: "ingressClassName",
        older: "kubernetes.io/ingress.class",
        group: "networking.k8s.io",
        plural: "ingressclasses",
        marks: &["ingressclass.kubernetes.io/is-default-class"],
    },
];
const CLAIMS: &Classes = &KINDS[0];

impl Classes {
    fn gvr(&self) -> Gvr {
        Gvr::new(self.group, "v1", self.plural)
    }

    fn named<'o>(&self, object: &'o Object) -> Option<&'o str> {
        let field = || {
            object
                .pointer(&format!("/spec/{}", self.field))
                .and_then(Value::as_str)
        };
        object.annotation(self.older).or_else(field)
    }

    /// The default class; if there are several, the newest.
    fn default(&self, cluster: &dyn Reader) -> Option<Arc<Object>> {
        let classes = cluster.list(&self.gvr(), None).ok()?;
        let marked = classes.into_iter().filter(|class| {
            self.marks
                .iter()
                .any(|mark| class.annotation(mark) == Some("true"))
        });
        marked.min_by_key(|class| {
            (
                Reverse(class.str_at("/metadata/creationTimestamp").to_owned()),
                class.name().to_owned(),
            )
        })
    }
}

/// The storage class of a claim.
pub fn of_claim(claim: &Object) -> Option<&str> {
    CLAIMS.named(claim).filter(|name| !name.is_empty())
}

/// Sets the default class of a new object.
pub fn admit(cluster: &dyn Reader, table: &str, object: &mut Object) {
    let kind = KINDS
        .iter()
        .find(|kind| kind.table == table && kind.named(object).is_none());
    if let Some((kind, class)) = kind.and_then(|kind| Some((kind, kind.default(cluster)?))) {
        spec(object).insert(kind.field.into(), class.name().into());
    }
}

/// Rejects the growth of a claim that cannot be expanded.
pub fn check(request: &Request<'_>, objects: Objects<'_>) -> Result<(), Status> {
    let is_claim = request.resource.table == CLAIMS.table && request.subresource.is_empty();
    let (true, Some(new), Some(old)) = (is_claim, objects.new, objects.old) else {
        return Ok(());
    };
    let size = |claim: &Object| {
        claim
            .str_at("/spec/resources/requests/storage")
            .parse()
            .unwrap_or(Quantity::ZERO)
    };
    if size(new) <= size(old) {
        return Ok(());
    }
    let why = if old.str_at("/status/phase") != "Bound" {
        "Only bound persistent volume claims can be expanded"
    } else if !expands(request.cluster, new, old) {
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
    } else {
        return Ok(());
    };
    Err(refusal(request, objects, why))
}

fn expands(cluster: &dyn Reader, new: &Object, old: &Object) -> bool {
    let Some(name) = of_claim(new).filter(|name| of_claim(old) == Some(name)) else {
        return false;
    };
    cluster
        .get(&CLAIMS.gvr(), "", name)
        .is_ok_and(|class| class.0.get("allowVolumeExpansion") == Some(&Value::Bool(true)))
}
