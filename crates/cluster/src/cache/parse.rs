//! Parses one object into what the cache keeps of it.
//!
//! Main function: [`parse`]. For an object that is in no tree only names, versions and owners are
//! parsed; the rest is skipped.

use super::record::{Body, Details, Uid};
use crate::discovery::Kind;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use tiphys_apimachinery::Object;
use tiphys_engine::{
    customize::Customizations,
    track::{self, TrackingId},
    types::{Tracking, TrackingMethod},
};

/// A parsed object, before its names are interned.
pub(super) struct Parsed {
    pub namespace: String,
    pub name: String,
    pub uid: Uid,
    /// The uid as text if it is not a UUID.
    pub uid_text: Option<String>,
    pub version: u64,
    pub created: u32,
    pub deleting: bool,
    pub owners: Box<[Uid]>,
    pub app: Option<String>,
    pub details: Option<Arc<Details>>,
    pub body: Option<Arc<Body>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, default)]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Meta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    creation_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    deletion_timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    labels: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<Owner<'a>>>,
}

#[derive(Deserialize)]
struct Owner<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Marks<'a> {
    #[serde(borrow, default, rename = "argocd.argoproj.io/tracking-id")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "argocd.argoproj.io/installation-id")]
    installation: Option<Cow<'a, str>>,
}

/// Parses one object. `keep` returns whether the payload is wanted although no Application tracks
/// it.
pub(super) fn parse(
    raw: &str,
    kind: &Kind,
    tracking: &Tracking,
    customizations: &Customizations,
    keep: impl FnOnce(&str, &str) -> bool,
) -> Result<Parsed, serde_json::Error> {
    let head: Head<'_> = serde_json::from_str(raw)?;
    let m = head.metadata;
    let owners: Box<[Uid]> = m
        .owner_references
        .iter()
        .flatten()
        .filter(|o| !o.uid.is_empty())
        .map(|o| Uid::parse(&o.uid))
        .collect();
    // An object with an owner was created by a controller, whatever tracking metadata was copied
    // onto it.
    let app = if owners.is_empty() {
        mark(m.annotations, m.labels, tracking)
    } else {
        None
    };
    let namespace = m.namespace.unwrap_or_default().into_owned();
    let keep = app.is_some() || keep(&namespace, &m.name);
    let (details, body) = if keep || !owners.is_empty() {
        // It still counts as existing: a request for its payload returns the error.
        let unread = |error: &_| tracing::warn!(kind = %kind.gvk, name = &*m.name, namespace, %error, "the body of an object cannot be read");
        whole(raw, head.api_version.is_some(), kind)
            .inspect_err(unread)
            .map_or((None, None), |object| {
                let details = Details::of(&object, tracking, customizations);
                let details = (keep || details != Details::default()).then(|| Arc::new(details));
                (details, keep.then(|| Arc::new(Body::new(object))))
            })
    } else {
        (None, None)
    };
    let uid = m.uid.unwrap_or_default();
    Ok(Parsed {
        namespace,
        name: m.name.into_owned(),
        uid: if uid.is_empty() {
            Uid::NONE
        } else {
            Uid::parse(&uid)
        },
        uid_text: (!uid.is_empty() && !Uid::is_exact(&uid)).then(|| uid.into_owned()),
        version: m.resource_version.and_then(|v| v.parse().ok()).unwrap_or(0),
        created: m
            .creation_timestamp
            .and_then(|t| t.parse::<jiff::Timestamp>().ok())
            .and_then(|t| u32::try_from(t.as_second()).ok())
            .unwrap_or(0),
        deleting: m.deletion_timestamp.is_some_and(|d| d.get() != "null"),
        owners,
        app,
        details,
        body,
    })
}

/// The instance name in an object's tracking metadata. Most objects have none, which a byte search
/// finds without parsing.
fn mark(
    annotations: Option<&RawValue>,
    labels: Option<&RawValue>,
    tracking: &Tracking,
) -> Option<String> {
    let name = if tracking.method == TrackingMethod::Label {
        let labels = labels.filter(|l| contains(l.get(), &tracking.label_key))?;
        let labels: HashMap<Cow<'_, str>, Cow<'_, str>> =
            serde_json::from_str(labels.get()).ok()?;
        labels
            .get(tracking.label_key.as_str())?
            .clone()
            .into_owned()
    } else {
        let annotations = annotations.filter(|a| contains(a.get(), track::TRACKING_ID))?;
        let marks: Marks<'_> = serde_json::from_str(annotations.get()).ok()?;
        if !tracking.installation_id.is_empty()
            && marks.installation.as_deref() != Some(&tracking.installation_id)
        {
            return None;
        }
        TrackingId::parse(&marks.id?)?.app_name.to_owned()
    };
    (!name.is_empty()).then_some(name)
}

/// Whether the JSON text contains the key; `/` may be written as `\/`.
fn contains(json: &str, key: &str) -> bool {
    json.contains(key) || json.contains("\\")
}

/// The object with the apiVersion and kind that items of a typed list omit.
fn whole(raw: &str, complete: bool, kind: &Kind) -> Result<Object, serde_json::Error> {
    let mut object: Object = serde_json::from_str(raw)?;
    if !complete {
        object
            .0
            .insert("apiVersion".to_owned(), kind.gvk.api_version().into());
        object
            .0
            .insert("kind".to_owned(), kind.gvk.kind.clone().into());
    }
    Ok(object)
}

/// Converts it to the form in which the server returns single objects.
pub(super) fn parse_object(
    object: &Object,
    kind: &Kind,
    tracking: &Tracking,
    customizations: &Customizations,
    keep: impl FnOnce(&str, &str) -> bool,
) -> Result<Parsed, serde_json::Error> {
    parse(
        &serde_json::to_string(object)?,
        kind,
        tracking,
        customizations,
        keep,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_apimachinery::Gvk;

    fn kind() -> Kind {
        Kind {
            gvk: Gvk::new("", "v1", "Pod"),
            resource: "pods".into(),
            singular: "pod".into(),
            namespaced: true,
            verbs: Vec::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
        }
    }

    #[test]
    fn an_object_whose_body_cannot_be_read_is_there_all_the_same() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let meta =
            r#"{"name":"a","annotations":{"argocd.argoproj.io/tracking-id":"web:/Pod:ns/a"}}"#;
        let raw = format!(r#"{{"metadata":{meta},"spec":{deep}}}"#);
        let parsed = parse(
            &raw,
            &kind(),
            &Tracking::annotation(""),
            &Customizations::default(),
            |_, _| false,
        )
        .expect("it is there");
        assert_eq!(
            (parsed.app.as_deref(), parsed.body.is_some()),
            (Some("web"), false)
        );
    }

    #[test]
    fn marks_are_read_by_method_and_owned_objects_have_none() {
        let annotation = Tracking::annotation("");
        let label = Tracking {
            method: TrackingMethod::Label,
            ..annotation.clone()
        };
        let other = Tracking {
            installation_id: "two".into(),
            ..annotation.clone()
        };
        let id = r#""annotations":{"argocd.argoproj.io/tracking-id":"web:/Pod:ns/a"}"#;
        let instance = r#""labels":{"app.kubernetes.io/instance":"lab"}"#;
        let owner = r#""ownerReferences":[{"uid":"u"}]"#;
        let rows: [(&Tracking, Vec<&str>, Option<&str>); 6] = [
            (&annotation, vec![id], Some("web")),
            (&annotation, vec![instance], None),
            (&label, vec![id, instance], Some("lab")),
            (&other, vec![id], None),
            (&annotation, vec![id, owner], None),
            (&annotation, vec![], None),
        ];
        for (tracking, parts, want) in rows {
            let raw = format!(
                r#"{{"metadata":{{"name":"a","namespace":"ns","resourceVersion":"7","uid":"x"{}{}}}}}"#,
                if parts.is_empty() { "" } else { "," },
                parts.join(",")
            );
            let parsed = parse(
                &raw,
                &kind(),
                tracking,
                &Customizations::default(),
                |_, _| false,
            )
            .expect("valid");
            assert_eq!(parsed.app.as_deref(), want, "{raw}");
            assert_eq!(parsed.body.is_some(), want.is_some(), "{raw}");
            assert_eq!((parsed.version, parsed.uid_text.as_deref()), (7, Some("x")));
            if let Some(body) = parsed.body {
                assert_eq!(body.kept.object().gvk(), kind().gvk);
            }
        }
    }
}
