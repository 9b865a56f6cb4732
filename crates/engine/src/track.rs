//! Resource tracking: writes and reads the metadata that assigns an object to an Application.
//!
//! Main functions: [`set`] and [`owner`]. The tracking metadata is byte for byte Argo CD's, so that
//! either system recognizes what the other applied.

use crate::{
    base::{Tracking, TrackingMethod},
    marks,
};
use serde_json::Value;
use tiphys_apimachinery::Object;

pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";
/// Kinds that were originally in the group `extensions`.
const MOVED: [(&str, &str); 6] = [
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodSecurityPolicy"),
];
/// A label value may not be longer.
const LABEL_LIMIT: usize = 63;

/// A parsed tracking id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackingId<'a> {
    pub app_name: &'a str,
    pub group: &'a str,
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> TrackingId<'a> {
    /// Parses `<app>:<group>/<kind>:<namespace>/<name>`; `None` for anything else.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (app_name, gk, ns_name) = (parts.next()?, parts.next()?, parts.next()?);
        let pair = |text: &'a str| {
            text.split_once('/')
                .filter(|(_, second)| !second.contains('/'))
        };
        let ((group, kind), (namespace, name)) = (pair(gk)?, pair(ns_name)?);
        Some(Self {
            app_name,
            group,
            kind,
            namespace,
            name,
        })
    }

    /// Whether the id was written for this object and not copied from another. For cluster-scoped
    /// objects the id contains the destination's namespace, which cannot be compared.
    pub fn is_of(&self, object: &Object) -> bool {
        (object.namespace() == self.namespace || object.namespace().is_empty())
            && object.name() == self.name
            && object.group() == self.group
            && object.kind() == self.kind
    }
}

/// The tracking id of an object; `default_namespace` is used if it has none.
pub fn id(object: &Object, app_name: &str, default_namespace: &str) -> String {
    let namespace = if object.namespace().is_empty() {
        default_namespace
    } else {
        object.namespace()
    };
    format!(
        "{app_name}:{}/{}:{namespace}/{}",
        object.group(),
        object.kind(),
        object.name()
    )
}

/// Sets the tracking metadata of an object. CRDs are skipped, because they are often shared, and so
/// are objects with an [`obstacle`].
pub fn set(object: &mut Object, tracking: &Tracking, dest_namespace: &str) {
    if is_crd(object) || obstacle(object, tracking).is_some() {
        return;
    }
    if tracking.method != TrackingMethod::Label {
        let id = id(object, &tracking.app_name, dest_namespace);
        object.set_annotation(TRACKING_ID, &id);
        if tracking.installation_id.is_empty() {
            object.remove_annotation(INSTALLATION_ID);
        } else {
            object.set_annotation(INSTALLATION_ID, &tracking.installation_id);
        }
    }
    match tracking.method {
        TrackingMethod::Annotation => {}
        TrackingMethod::AnnotationAndLabel => {
            object.set_label(&tracking.label_key, truncate_label(&tracking.app_name))
        }
        // The label is the Application's name here, and a truncated name could be another
        // Application's. The API server's refusal is clearer.
        TrackingMethod::Label => object.set_label(&tracking.label_key, &tracking.app_name),
    }
}

/// Why an object cannot be tracked: its labels or annotations contain values that no API server
/// accepts, and overwriting them would hide that.
pub fn obstacle(object: &Object, tracking: &Tracking) -> Option<String> {
    let annotated = (tracking.method != TrackingMethod::Label).then_some("annotations");
    let labelled = (tracking.method != TrackingMethod::Annotation).then_some("labels");
    let (map, why) = [annotated, labelled]
        .into_iter()
        .flatten()
        .find_map(|map| Some((map, not_texts(object.metadata(map)?, map)?)))?;
    let (namespace, name) = (object.namespace(), object.name());
    Some(format!(
        "failed to get {map} from target object {} {namespace}/{name}: {why}",
        object.gvk()
    ))
}

/// The error in a metadata map whose values must be strings.
fn not_texts(value: &Value, map: &str) -> Option<String> {
    let at = format!(".metadata.{map} accessor error");
    match value {
        Value::Null => None,
        Value::Object(entries) => entries.iter().find(|(_, value)| !value.is_string()).map(|(key, value)| {
            let shown = shown(value);
            format!(
                "{at}: contains non-string value in the map under key {key:?}: {shown} is of the type {}, expected string",
                go_type(value)
            )
        }),
        other => Some(format!("{at}: {} is of the type {}, expected map[string]interface{{}}", shown(other), go_type(other))),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Go's name for the type of a value decoded from JSON.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The instance name of the Application that tracks an object.
pub fn owner(object: &Object, tracking: &Tracking) -> Option<String> {
    let name = match tracking.method {
        TrackingMethod::Label => object.label(&tracking.label_key)?,
        _ => mark(object, tracking)?.app_name,
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// The tracking id of an object, if it belongs to this installation.
pub fn mark<'a>(object: &'a Object, tracking: &Tracking) -> Option<TrackingId<'a>> {
    let installation = &tracking.installation_id;
    if !installation.is_empty() && object.annotation(INSTALLATION_ID) != Some(installation) {
        return None;
    }
    TrackingId::parse(object.annotation(TRACKING_ID)?)
}

/// Whether a live object's tracking metadata was written for it. A controller that copies
/// annotations from an object to those it creates copies the tracking metadata as well; such copies
/// are neither compared nor pruned.
pub fn is_marked_for_itself(live: &Object, desired: Option<&Object>, tracking: &Tracking) -> bool {
    if tracking.method == TrackingMethod::Label {
        return true;
    }
    match desired {
        // The desired object decides: its group may be newer than the one in the live tracking id
        // (extensions and networking.k8s.io).
        Some(desired) => {
            let (group, kind) = (desired.group(), desired.kind());
            TrackingId {
                app_name: "",
                group,
                kind,
                namespace: desired.namespace(),
                name: desired.name(),
            }
            .is_of(live)
        }
        None => mark(live, tracking).is_none_or(|id| id.is_of(live)),
    }
}

/// Whether a live object may be deleted with its Application: its tracking id names this object, so
/// it was applied and not created by copying the annotation. Label tracking cannot tell.
pub fn names(live: &Object, tracking: &Tracking) -> bool {
    if tracking.method == TrackingMethod::Label {
        return true;
    }
    // An object that was applied when its kind was in the group `extensions` is the same object in
    // its current group.
    let moved =
        |id: &TrackingId| id.group == "extensions" && MOVED.contains(&(live.group(), live.kind()));
    // A hook with only `generateName` was tracked before it got its name.
    let named_later = |id: &TrackingId| id.name.is_empty() && marks::is_hook(live);
    mark(live, tracking).is_some_and(|id| {
        let group = if moved(&id) { live.group() } else { id.group };
        let name = if named_later(&id) {
            live.name()
        } else {
            id.name
        };
        TrackingId {
            group,
            name,
            ..id.clone()
        }
        .is_of(live)
    })
}

/// Whether [`forgive_method_change`] may change something; it needs a copy of the live object.
pub fn needs_forgiveness(live: &Object, tracking: &Tracking) -> bool {
    let labelled = live
        .label(&tracking.label_key)
        .is_some_and(|l| !l.is_empty());
    tracking.method != TrackingMethod::Label && labelled && !is_crd(live)
}

/// Removes differences caused only by a change of the tracking method: an object applied under
/// label tracking has no annotation yet, and has a label that is no longer desired.
pub fn forgive_method_change(desired: &Object, live: &mut Object, tracking: &Tracking) {
    if !needs_forgiveness(live, tracking) {
        return;
    }
    if live.annotation(TRACKING_ID).is_none_or(str::is_empty) {
        live.set_annotation(TRACKING_ID, desired.annotation(TRACKING_ID).unwrap_or(""));
    }
    if desired.label(&tracking.label_key).is_none_or(str::is_empty) {
        remove_label(live, &tracking.label_key);
    }
}

/// The instance name for display: `<namespace>/<name>`.
pub fn display_name(instance: &str) -> String {
    instance.replace('_', "/")
}

pub fn is_crd(object: &Object) -> bool {
    object.group() == "apiextensions.k8s.io" && object.kind() == "CustomResourceDefinition"
}

fn remove_label(object: &mut Object, key: &str) {
    let metadata = object.metadata_mut();
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.remove(key);
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
}

/// A label value must end with a letter or a digit.
fn truncate_label(value: &str) -> &str {
    if value.len() <= LABEL_LIMIT {
        return value;
    }
    let end = (0..=LABEL_LIMIT)
        .rev()
        .find(|end| value.is_char_boundary(*end))
        .unwrap_or(0);
    value[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(namespace: &str) -> Object {
        let mut o = Object::from_value(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}),
        )
        .expect("a map");
        o.set_namespace(namespace);
        o
    }

    #[test]
    fn the_mark_is_what_argo_cd_writes() {
        let mut o = object("");
        set(&mut o, &Tracking::annotation("argocd_guestbook"), "prod");
        assert_eq!(
            o.annotation(TRACKING_ID),
            Some("argocd_guestbook:apps/Deployment:prod/web")
        );
        assert_eq!(
            owner(&o, &Tracking::annotation("other")).as_deref(),
            Some("argocd_guestbook")
        );
    }

    #[test]
    fn each_method_writes_its_own_marks() {
        let long = "a".repeat(62) + "-b";
        let mut tracking = Tracking {
            method: TrackingMethod::AnnotationAndLabel,
            ..Tracking::annotation(&long)
        };
        let mut o = object("prod");
        set(&mut o, &tracking, "prod");
        assert_eq!(
            o.label("app.kubernetes.io/instance"),
            Some("a".repeat(62).as_str())
        );
        assert_eq!(owner(&o, &tracking), Some(long.clone()));
        tracking.method = TrackingMethod::Label;
        let mut o = object("prod");
        set(&mut o, &tracking, "prod");
        assert_eq!(
            (
                o.annotation(TRACKING_ID),
                o.label("app.kubernetes.io/instance")
            ),
            (None, Some(long.as_str()))
        );
    }

    #[test]
    fn another_installation_is_another_owner() {
        let mine = Tracking {
            installation_id: "one".into(),
            ..Tracking::annotation("app")
        };
        let theirs = Tracking {
            installation_id: "two".into(),
            ..Tracking::annotation("app")
        };
        let mut o = object("prod");
        set(&mut o, &theirs, "prod");
        assert_eq!(
            (owner(&o, &mine), owner(&o, &theirs)),
            (None, Some("app".to_owned()))
        );
    }

    #[test]
    fn copied_marks_are_recognised() {
        let tracking = Tracking::annotation("app");
        let mut copy = object("prod");
        set(&mut copy, &tracking, "prod");
        assert!(is_marked_for_itself(&copy, None, &tracking));
        copy.set_name("web-copy");
        assert!(!is_marked_for_itself(&copy, None, &tracking));
        assert!(!is_marked_for_itself(
            &copy,
            Some(&object("prod")),
            &tracking
        ));
    }

    #[test]
    fn a_mark_names_one_object() {
        let tracking = Tracking::annotation("app");
        let marked = |id: &str, namespace: &str| {
            let mut o = object(namespace);
            o.set_annotation(TRACKING_ID, id);
            o.set_label(&tracking.label_key, "app");
            o
        };
        for (id, namespace, expected) in [
            ("app:apps/Deployment:prod/web", "prod", true),
            ("app:apps/Deployment:prod/web", "other", false),
            ("app:apps/Deployment:prod/else", "prod", false),
            ("app:apps/StatefulSet:prod/web", "prod", false),
            ("app:batch/Deployment:prod/web", "prod", false),
            ("app:extensions/Deployment:prod/web", "prod", true),
            ("app:extensions/Deployment:other/web", "prod", false),
            // At cluster scope the id contains the destination's namespace.
            ("app:apps/Deployment:prod/web", "", true),
            ("", "prod", false),
        ] {
            let live = marked(id, namespace);
            assert_eq!(names(&live, &tracking), expected, "{id} in {namespace:?}");
            let both = Tracking {
                method: TrackingMethod::AnnotationAndLabel,
                ..tracking.clone()
            };
            assert_eq!(names(&live, &both), expected, "the annotation decides");
            assert!(
                names(
                    &live,
                    &Tracking {
                        method: TrackingMethod::Label,
                        ..tracking.clone()
                    }
                ),
                "a label has no id"
            );
        }
    }

    #[test]
    fn the_mark_of_a_hook_with_a_generated_name_has_none() {
        let tracking = Tracking::annotation("app");
        let named = |id: &str, hook: Option<(&str, &str)>, namespace: &str| {
            let mut o = object(namespace);
            o.set_annotation(TRACKING_ID, id);
            if let Some((key, value)) = hook {
                o.set_annotation(key, value);
            }
            names(&o, &tracking)
        };
        let id = "app:apps/Deployment:prod/";
        for hook in ["Sync", "PreDelete", "PostDelete"] {
            assert!(
                named(id, Some(("argocd.argoproj.io/hook", hook)), "prod"),
                "{hook}"
            );
        }
        assert!(named(id, Some(("helm.sh/hook", "post-install")), "prod"));
        assert!(!named(id, None, "prod"), "it is no hook");
        let hook = Some(("argocd.argoproj.io/hook", "Sync"));
        assert!(
            !named(id, hook, "other") && !named("app:batch/Job:prod/", hook, "prod"),
            "of another namespace or kind"
        );
        assert!(
            !named("app:apps/Deployment:prod/else", hook, "prod"),
            "it was made for another one"
        );
    }

    #[test]
    fn broken_ids_are_nobody_s() {
        for text in [
            "",
            "app",
            "app:apps/Deployment",
            "app:apps:ns/name",
            "app:apps/Deployment:ns/na/me",
            "app:a/b/c:ns/name",
        ] {
            assert_eq!(TrackingId::parse(text), None, "{text}");
        }
        let id = TrackingId::parse("app:/Service:ns/name").expect("an id");
        assert_eq!(
            (id.group, id.kind, id.namespace, id.name),
            ("", "Service", "ns", "name")
        );
    }
}
