//! An Ingress that names no class belongs to the default one. Main function: [`admit`].

use super::spec;
use crate::registry::Registry;
use std::cmp::Reverse;
use tiphys_apimachinery::{Gvr, Object};

const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
/// How a class was named before there was a field for it.
const NAMED: &str = "kubernetes.io/ingress.class";

/// Names the default class, of several the newest.
pub fn admit(registry: &Registry, ingress: &mut Object) {
    if ingress.pointer("/spec/ingressClassName").is_some_and(|name| !name.is_null()) || ingress.annotation(NAMED).is_some() {
        return;
    }
    let classes = registry.list(&Gvr::new("networking.k8s.io", "v1", "ingressclasses"), None).unwrap_or_default();
    let defaults = classes.iter().filter(|class| class.annotation(DEFAULT) == Some("true"));
    let newest = defaults.min_by_key(|class| (Reverse(class.str_at("/metadata/creationTimestamp").to_owned()), class.name().to_owned()));
    if let Some(class) = newest {
        spec(ingress).insert("ingressClassName".into(), class.name().into());
    }
}
