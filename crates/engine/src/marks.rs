//! The annotations on resources that control Tiphys: hooks, waves, options.
//!
//! It only reads the annotations: what a hook means is decided in `sync`, what an option does where
//! it is used.

use tiphys_apimachinery::Object;

pub const HOOK: &str = "argocd.argoproj.io/hook";
pub const HELM_HOOK: &str = "helm.sh/hook";
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
pub const IGNORE_HEALTHCHECK: &str = "argocd.argoproj.io/ignore-healthcheck";

/// The values of a comma-separated annotation, trimmed, without empty and repeated ones.
pub fn csv<'a>(object: &'a Object, key: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for value in object
        .annotation(key)
        .unwrap_or("")
        .split(',')
        .map(str::trim)
    {
        if !value.is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Whether a comma-separated annotation contains this value, such as `ServerSideApply=true`.
pub fn has_option(object: &Object, key: &str, option: &str) -> bool {
    csv(object, key).contains(&option)
}

/// The value of `name=value` in a comma-separated annotation.
pub fn option_value<'a>(object: &'a Object, key: &str, name: &str) -> Option<&'a str> {
    csv(object, key)
        .into_iter()
        .find_map(|item| item.strip_prefix(name)?.strip_prefix('='))
}

/// The value of a sync option for an object: its own annotation takes precedence over the
/// Application's options.
pub fn sync_option<'a>(object: &'a Object, of_app: &'a [String], name: &str) -> Option<&'a str> {
    let of_app = || {
        of_app
            .iter()
            .find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    };
    option_value(object, SYNC_OPTIONS, name).or_else(of_app)
}

/// Whether pruning or deleting an object requires confirmation.
pub fn needs_confirmation(object: &Object, of_app: &[String]) -> bool {
    ["Delete", "Prune"]
        .into_iter()
        .any(|name| sync_option(object, of_app, name) == Some("confirm"))
}

/// The phases in which a hook runs (`PreSync`, `Sync`, `PostSync`, `SyncFail`) and `Skip`. Helm's
/// hook annotation is translated, and used only if Argo CD's contains none of these.
pub fn hook_types(object: &Object) -> Vec<&str> {
    let known = |t: &&str| matches!(*t, "PreSync" | "Sync" | "PostSync" | "SyncFail" | "Skip");
    let types: Vec<&str> = csv(object, HOOK).into_iter().filter(known).collect();
    if !types.is_empty() {
        return types;
    }
    let translate = |t: &str| match t {
        "pre-install" | "pre-upgrade" => Some("PreSync"),
        "post-install" | "post-upgrade" => Some("PostSync"),
        _ => None,
    };
    csv(object, HELM_HOOK)
        .into_iter()
        .filter_map(translate)
        .collect()
}

/// `argocd.argoproj.io/hook: Skip` and nothing else: the object is neither applied nor compared.
pub fn is_skipped(object: &Object) -> bool {
    hook_types(object) == ["Skip"]
}

/// A hook with Argo CD's annotation (of any type except only `Skip`) or with Helm's.
pub fn is_sync_hook(object: &Object) -> bool {
    if object.annotation(HOOK).is_some() {
        return !is_skipped(object);
    }
    object
        .annotation(HELM_HOOK)
        .is_some_and(|v| v != "crd-install")
}

/// Any hook, including those that run when the Application is deleted.
pub fn is_hook(object: &Object) -> bool {
    is_sync_hook(object) || is_pre_delete_hook(object) || is_post_delete_hook(object)
}

pub fn is_pre_delete_hook(object: &Object) -> bool {
    has_option(object, HOOK, "PreDelete") || has_option(object, HELM_HOOK, "pre-delete")
}

pub fn is_post_delete_hook(object: &Object) -> bool {
    has_option(object, HOOK, "PostDelete") || has_option(object, HELM_HOOK, "post-delete")
}

/// A hook of no known type: it is ignored entirely.
pub fn is_ignored(object: &Object) -> bool {
    is_sync_hook(object) && hook_types(object).is_empty()
}

/// Whether some phase of a sync would run this object.
pub fn runs_in_sync(object: &Object) -> bool {
    hook_types(object).iter().any(|t| *t != "Skip")
}

pub fn has_hook_finalizer(object: &Object) -> bool {
    object.finalizers().iter().any(|f| f == HOOK_FINALIZER)
}

/// The wave an object is applied in: the annotation, else Helm's hook weight, else zero.
pub fn wave(object: &Object) -> i64 {
    let number = |key| object.annotation(key).and_then(|text| text.parse().ok());
    number(SYNC_WAVE)
        .or_else(|| number(HELM_HOOK_WEIGHT))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Annotations<'a> = &'a [(&'a str, &'a str)];

    fn with(annotations: Annotations<'_>) -> Object {
        let mut object = Object::default();
        for (key, value) in annotations {
            object.set_annotation(key, value);
        }
        object
    }

    #[test]
    fn hooks_are_told_from_ordinary_objects() {
        // (annotations, sync hook, any hook, skipped, ignored)
        let table: &[(Annotations<'_>, bool, bool, bool, bool)] = &[
            (&[], false, false, false, false),
            (&[(HOOK, "Sync")], true, true, false, false),
            (&[(HOOK, "Skip")], false, false, true, false),
            (&[(HOOK, "Skip,PreSync")], true, true, false, false),
            (&[(HOOK, "garbage")], true, true, false, true),
            (&[(HOOK, "PreDelete")], true, true, false, true),
            (&[(HELM_HOOK, "pre-install")], true, true, false, false),
            (&[(HELM_HOOK, "crd-install")], false, false, false, false),
            (&[(HELM_HOOK, "post-delete")], true, true, false, true),
            (
                &[(HOOK, "Skip"), (HELM_HOOK, "pre-install")],
                false,
                false,
                true,
                false,
            ),
        ];
        for (annotations, sync, any, skipped, ignored) in table {
            let object = with(annotations);
            let got = (
                is_sync_hook(&object),
                is_hook(&object),
                is_skipped(&object),
                is_ignored(&object),
            );
            assert_eq!(got, (*sync, *any, *skipped, *ignored), "{annotations:?}");
        }
    }

    #[test]
    fn waves_fall_back_to_helm_weights() {
        assert_eq!(
            wave(&with(&[(SYNC_WAVE, "-3"), (HELM_HOOK_WEIGHT, "7")])),
            -3
        );
        assert_eq!(
            wave(&with(&[(SYNC_WAVE, "soon"), (HELM_HOOK_WEIGHT, "7")])),
            7
        );
        assert_eq!(wave(&with(&[])), 0);
    }

    #[test]
    fn options_are_read_from_lists() {
        let object = with(&[(SYNC_OPTIONS, "Prune=confirm, Delete=false,,Prune=confirm")]);
        assert_eq!(
            csv(&object, SYNC_OPTIONS),
            ["Prune=confirm", "Delete=false"]
        );
        assert_eq!(option_value(&object, SYNC_OPTIONS, "Delete"), Some("false"));
        assert_eq!(option_value(&object, SYNC_OPTIONS, "Del"), None);
        assert!(has_option(&object, SYNC_OPTIONS, "Prune=confirm"));
    }

    #[test]
    fn an_objects_own_option_counts_before_that_of_the_application() {
        let of_app = ["Prune=confirm".to_owned(), "Delete=false".to_owned()];
        let own = |options| with(&[(SYNC_OPTIONS, options)]);
        let delete = |options| sync_option(&own(options), &of_app, "Delete").map(str::to_owned);
        assert_eq!(
            ["", "Delete=true", "Deleted=x"].map(delete),
            ["false", "true", "false"].map(|value| Some(value.to_owned()))
        );
        let confirm = |options| needs_confirmation(&own(options), &of_app);
        assert_eq!(
            ["", "Prune=true", "Prune=true,Delete=confirm"].map(confirm),
            [true, false, true]
        );
        assert!(!needs_confirmation(&own("Prune=false"), &[]));
    }
}
