//! Label and field selectors of lists, watches and collection deletes. Main type: [`Filter`].

use crate::base::Stored;
use crate::catalog::Resource;
use crate::route::Query;
use crate::status::{Cause, Status};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::selector::{FieldSelector, FieldTerm, LabelSelector, field_text};

/// Fields of built-in kinds that can be selected, besides name and namespace.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "/pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "spec.host",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    ("/secrets", &["type"]),
    ("/services", &["spec.clusterIP", "spec.type"]),
    ("/namespaces", &["status.phase"]),
    ("/nodes", &["spec.unschedulable"]),
    (
        "/events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    (
        "events.k8s.io/events",
        &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
    ),
    ("/replicationcontrollers", &["status.replicas"]),
    ("batch/jobs", &["status.successful"]),
    (
        "certificates.k8s.io/certificatesigningrequests",
        &["spec.signerName"],
    ),
    (
        "resource.k8s.io/resourceslices",
        &["spec.driver", "spec.nodeName"],
    ),
];

/// The selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

impl Filter {
    /// The selectors of a list (or watch). The options are checked in this order: whether they can
    /// be parsed, whether they can be combined, which `problems` says, and whether the fields can
    /// be selected.
    pub fn from_query(
        query: &Query,
        resource: &Resource,
        problems: &[Cause],
    ) -> Result<Self, Status> {
        for number in ["timeoutSeconds", "limit"] {
            query.number(number)?;
        }
        let labels = query
            .get("labelSelector")
            .map(LabelSelector::parse)
            .transpose();
        let labels = labels.map_err(|e| Status::bad_request(e.reason))?;
        let fields = query
            .get("fieldSelector")
            .map(FieldSelector::parse)
            .transpose();
        let fields = fields.map_err(|e| Status::bad_request(e.reason))?;
        if !problems.is_empty() {
            return Err(Status::invalid(
                "meta.k8s.io",
                "ListOptions",
                "",
                problems.to_vec(),
            ));
        }
        for term in fields.iter().flat_map(|f| &f.terms) {
            if !is_selectable(resource, &term.path) {
                return Err(Status::bad_request(unknown_field(resource, &term.path)));
            }
        }
        Ok(Self {
            labels: labels.filter(|l| !l.is_everything()),
            fields: fields.filter(|f| !f.is_everything()),
        })
    }

    /// The same for the single object in the path; the selector must not name another.
    pub fn named(mut self, name: Option<&str>) -> Result<Self, Status> {
        let Some(name) = name else { return Ok(self) };
        if self.fields.is_some() && self.name() != Some(name) {
            return Err(Status::bad_request(
                "fieldSelector metadata.name doesn't match requested name",
            ));
        }
        let only = || FieldSelector {
            terms: vec![FieldTerm {
                path: "metadata.name".into(),
                equal: true,
                value: name.to_owned(),
            }],
        };
        self.fields.get_or_insert_with(only);
        Ok(self)
    }

    pub fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// The single name that the filter allows, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.fields
            .as_ref()
            .and_then(|f| f.required("metadata.name"))
    }

    pub fn matches(&self, stored: &Stored) -> bool {
        if self
            .labels
            .as_ref()
            .is_some_and(|l| !l.matches(&stored.meta.labels))
        {
            return false;
        }
        let Some(fields) = &self.fields else {
            return true;
        };
        // Name and namespace are known without parsing the object.
        let cheap = fields
            .terms
            .iter()
            .try_fold(true, |_, term| match term.path.as_str() {
                "metadata.name" => {
                    Some((stored.meta.name == term.value) == term.equal).filter(|ok| *ok)
                }
                "metadata.namespace" => {
                    Some((stored.meta.namespace == term.value) == term.equal).filter(|ok| *ok)
                }
                _ => Some(true),
            });
        let only_cheap = fields.terms.iter().all(|t| t.path.starts_with("metadata."));
        cheap.is_some() && (only_cheap || is_selected(fields, &stored.object()))
    }
}

fn is_selected(fields: &FieldSelector, object: &Object) -> bool {
    fields.matches_as(|path| text_of(object, path))
}

/// The value of a field for selectors, which is not always at the path of its name.
fn text_of(object: &Object, path: &str) -> String {
    let text = |path: &str| field_text(object, path);
    let or = |text: String, default: &str| {
        if text.is_empty() {
            default.to_owned()
        } else {
            text
        }
    };
    match (object.api_version(), object.kind(), path) {
        ("v1", "Pod", "spec.host") => text("spec.nodeName"),
        // Selectable, but always empty for pods.
        ("v1", "Pod", "status.podIPs") => String::new(),
        ("v1", "Pod", "spec.hostNetwork") | ("v1", "Node", "spec.unschedulable") => {
            or(text(path), "false")
        }
        ("v1", "Event", "source") => or(text("source.component"), &text("reportingComponent")),
        ("v1", "Event", "reportingController") => text("reportingComponent"),
        ("v1", "Event", path) if path.starts_with("regarding.") => {
            text(&path.replacen("regarding", "involvedObject", 1))
        }
        ("v1", "ReplicationController", "status.replicas") => or(text(path), "0"),
        ("batch/v1", "Job", "status.successful") => or(text("status.succeeded"), "0"),
        _ => text(path),
    }
}

/// The selectable fields of a kind, if it has its own.
fn fields_of(resource: &Resource) -> Option<&'static [&'static str]> {
    let table = if resource.is("events.k8s.io", "events") {
        "events.k8s.io/events"
    } else {
        resource.table.as_str()
    };
    FIELDS
        .iter()
        .find(|(of, _)| *of == table)
        .map(|(_, fields)| *fields)
}

fn unknown_field(resource: &Resource, path: &str) -> String {
    if resource.is("batch", "jobs") {
        return format!("field label {path:?} not supported for Job");
    }
    if resource.is("resource.k8s.io", "resourceslices") {
        return format!(
            "field label not supported for resource.k8s.io/{}, Kind=ResourceSlice: {path}",
            resource.version
        );
    }
    if resource.custom.is_some() || fields_of(resource).is_some() {
        return format!("field label not supported: {path}");
    }
    format!(
        "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    )
}

fn is_selectable(resource: &Resource, path: &str) -> bool {
    if path == "metadata.name" || (path == "metadata.namespace" && resource.namespaced) {
        return true;
    }
    match &resource.custom {
        Some(custom) => custom
            .selectable_fields
            .iter()
            .any(|f| f.trim_start_matches('.') == path),
        None => match fields_of(resource) {
            Some(fields) => fields.contains(&path),
            // The rule for kinds without selectable fields of their own ignores whether they are
            // namespaced.
            None => path == "metadata.namespace",
        },
    }
}
