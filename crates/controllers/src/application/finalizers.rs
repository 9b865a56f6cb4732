//! The finalizers that keep an Application until its deletion hooks have run.
//!
//! Main function: [`align`].

use std::sync::Arc;
use tiphys_api::constants::{POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER};
use tiphys_apimachinery::{Kept, Object};
use tiphys_engine::{
    sync::hook::{self},
    types::Condition,
};

/// When a hook of the deletion runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

impl When {
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "PreDelete",
            Self::After => "PostDelete",
        }
    }

    /// Keeps the Application until the hooks have run.
    pub fn finalizer(self) -> &'static str {
        match self {
            Self::Before => PRE_DELETE_FINALIZER,
            Self::After => POST_DELETE_FINALIZER,
        }
    }

    /// Keeps the Application until the hooks are removed.
    pub fn cleanup_finalizer(self) -> String {
        format!("{}/cleanup", self.finalizer())
    }

    /// The prefix of errors when running its hooks.
    pub fn executing(self) -> &'static str {
        match self {
            Self::Before => "error executing pre-delete hooks: ",
            Self::After => "",
        }
    }

    /// The prefix of errors when removing its hooks.
    pub fn cleaning(self) -> &'static str {
        match self {
            Self::Before => "error cleaning up pre-delete hooks: ",
            Self::After => "",
        }
    }

    pub fn is(self, object: &Object) -> bool {
        match self {
            Self::Before => hook::is_pre_delete(object),
            Self::After => hook::is_post_delete(object),
        }
    }
}

/// Adds the finalizers for the hooks that an Application has, and removes those for hooks that it
/// no longer has. If manifests could not be read, none is removed.
pub fn align(finalizers: &mut Vec<String>, hooks: &[Arc<Kept>], conditions: &[Condition]) {
    let complete = !conditions.iter().any(Condition::is_error);
    for when in When::ALL {
        let wanted = hooks.iter().any(|o| when.is(&o.object()));
        for name in [when.finalizer().to_owned(), when.cleanup_finalizer()] {
            match finalizers.iter().position(|f| *f == name) {
                None if wanted => finalizers.push(name),
                Some(at) if !wanted && complete => drop(finalizers.remove(at)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_apimachinery::Object;
    use tiphys_engine::types::ConditionType;

    const BEFORE: [&str; 2] = [
        "pre-delete-finalizer.argocd.argoproj.io",
        "pre-delete-finalizer.argocd.argoproj.io/cleanup",
    ];
    const AFTER: [&str; 2] = [
        "post-delete-finalizer.argocd.argoproj.io",
        "post-delete-finalizer.argocd.argoproj.io/cleanup",
    ];

    fn hook(phase: &str) -> Arc<Kept> {
        let metadata = json!({"name": phase.to_lowercase(), "annotations": {"argocd.argoproj.io/hook": phase}});
        let object = Object::from_value(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
        );
        Arc::new(object.expect("an object").into())
    }

    #[test]
    fn c93_an_application_has_the_finalizers_of_the_hooks_that_it_has() {
        let (before, after, own) = (hook("PreDelete"), hook("PostDelete"), "example.org/own");
        let error = Condition::new(ConditionType::ComparisonError, "Git is away");
        let warning = Condition::new(ConditionType::SharedResourceWarning, "shared");
        let aligned = |had: &[&[&str]], hooks: &[&Arc<Kept>], conditions: &[&Condition]| {
            let mut finalizers: Vec<String> = had
                .iter()
                .flat_map(|f| f.iter())
                .map(|f| (*f).to_owned())
                .collect();
            let hooks: Vec<_> = hooks.iter().map(|h| Arc::clone(h)).collect();
            let conditions: Vec<_> = conditions.iter().map(|c| (*c).clone()).collect();
            align(&mut finalizers, &hooks, &conditions);
            finalizers
        };
        for (had, hooks, conditions, has) in [
            (&[][..], &[][..], &[][..], &[][..]),
            (&[&[own][..]], &[&before], &[], &[&[own][..], &BEFORE]),
            (&[], &[&after], &[], &[&AFTER]),
            (&[&AFTER], &[&after, &before], &[], &[&AFTER, &BEFORE]),
            (
                &[&BEFORE, &[own], &AFTER],
                &[&before, &after],
                &[],
                &[&BEFORE, &[own], &AFTER],
            ),
            (
                &[&BEFORE, &[own], &AFTER],
                &[&after],
                &[],
                &[&[own], &AFTER],
            ),
            (&[&BEFORE, &[own], &AFTER], &[], &[&warning], &[&[own]]),
            // If manifests could not be read, finalizers are added but none is removed.
            (
                &[&BEFORE, &AFTER],
                &[],
                &[&warning, &error],
                &[&BEFORE, &AFTER],
            ),
            (&[], &[&before], &[&error], &[&BEFORE]),
        ] {
            let has: Vec<&str> = has.iter().flat_map(|f| f.iter().copied()).collect();
            assert_eq!(
                aligned(had, hooks, conditions),
                has,
                "{had:?} {hooks:?} {conditions:?}"
            );
        }
    }

    #[test]
    fn c93_c94_an_error_says_which_hooks_it_is_of() {
        let texts = When::ALL.map(|when| [when.name(), when.executing(), when.cleaning()]);
        let of_before = [
            "PreDelete",
            "error executing pre-delete hooks: ",
            "error cleaning up pre-delete hooks: ",
        ];
        assert_eq!(texts, [of_before, ["PostDelete", "", ""]]);
    }
}
