//! Negotiates the form of a response from the request's `Accept` header. Main type: [`Form`].

use crate::catalog::{CRD_TABLE, Resource};
use crate::status::Status;
use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::Value;

pub const YAML: &str = "application/yaml";
const JSON: &str = "application/json";
const MEDIA: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Rejects a request early if no form of the response is acceptable. `collection` is true for lists
/// and watches.
pub fn check(headers: &HeaderMap, resource: &Resource, collection: bool) -> Result<(), Status> {
    let streams = if collection {
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        ""
    };
    if resource.custom.is_none() && !accepts(headers, MEDIA) {
        return Err(not_available(&format!("{MEDIA}{streams}")));
    }
    form(headers).map(|_| ())
}

/// The same for a log, which is text, while its errors are not.
pub fn check_text(headers: &HeaderMap) -> Result<(), Status> {
    let media = format!("text/plain, {MEDIA}");
    if !accepts(headers, &media) {
        return Err(not_available(&media));
    }
    form_but_table(headers).map(drop)
}

/// Whether one of these media types is accepted, ignoring the parameters.
fn accepts(headers: &HeaderMap, all: &str) -> bool {
    let accept = header(headers);
    let known = |clause: &str| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        media == "*/*" || all.split(", ").any(|m| m == media)
    };
    accept.is_empty() || accept.split(',').any(known)
}

fn header(headers: &HeaderMap) -> String {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .collect::<Vec<_>>()
        .join(",")
}

/// The error of a handler that offers only these media types.
pub fn not_available(media: &str) -> Status {
    Status::new(
        406,
        "NotAcceptable",
        format!("406: Not Acceptable\n\nAvailable representations: {media}"),
    )
    .with_causes(Vec::new())
}

/// Whether the first supported clause of `Accept` requests YAML.
pub fn is_yaml(headers: &HeaderMap) -> bool {
    first(headers, |_| true).is_some_and(|answer| answer.yaml)
}

/// Rejects YAML, which cannot be streamed.
pub fn check_stream(headers: &HeaderMap) -> Result<(), Status> {
    match is_yaml(headers) {
        true => Err(Status::not_acceptable(
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        )),
        false => Ok(()),
    }
}

/// The error for a list requested as a single object, or a single object as a list.
pub fn wrong_number(resource: &Resource, list: bool) -> Status {
    let package = if resource.custom.is_some() {
        "unstructured"
    } else {
        resource
            .group
            .split('.')
            .next()
            .filter(|g| !g.is_empty())
            .unwrap_or("core")
    };
    let package = if resource.group == "events.k8s.io" {
        "core"
    } else {
        package
    };
    let kind = match (&resource.custom, list) {
        (Some(_), true) => "UnstructuredList",
        (Some(_), false) => "Unstructured",
        (None, true) => &resource.list_kind,
        (None, false) => &resource.kind,
    };
    let text = if list {
        format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*{package}.{kind})"
        )
    } else {
        return no_list(&format!("{package}.{kind}"));
    };
    Status::new(406, "NotAcceptable", text)
}

/// The error for a Go type that is not a list.
pub fn no_list(of: &str) -> Status {
    Status::new(
        406,
        "NotAcceptable",
        format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list (*{of})"
        ),
    )
}

/// How objects are represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Object,
    /// `as=Table`
    Table,
    /// `as=PartialObjectMetadata`
    Metadata,
    /// `as=PartialObjectMetadataList`
    MetadataList,
    /// `as=APIGroupDiscoveryList`
    GroupDiscovery,
}

/// The form requested by a clause of `Accept`.
#[derive(Clone, Copy)]
struct Answer {
    form: Form,
    /// `meta.k8s.io/v1beta1`, which differs in its name only.
    beta: bool,
    yaml: bool,
}

/// Whether a resource or subresource can be shown as a table.
pub fn has_table(resource: &Resource, subresource: Option<&str>) -> bool {
    match subresource {
        Some(
            "approval"
            | "binding"
            | "ephemeralcontainers"
            | "eviction"
            | "finalize"
            | "log"
            | "resize"
            | "token",
        ) => false,
        Some("status") => !matches!(
            resource.table.as_str(),
            CRD_TABLE | "apiregistration.k8s.io/apiservices" | "resource.k8s.io/resourceclaims"
        ),
        _ => true,
    }
}

/// The form of the first supported clause of `Accept`.
pub fn form(headers: &HeaderMap) -> Result<Form, Status> {
    one_of(headers, |_| true)
}

/// The same for responses without a table form.
pub fn form_but_table(headers: &HeaderMap) -> Result<Form, Status> {
    one_of(headers, |form| form != Form::Table)
}

/// The same for the index of groups.
pub fn index_form(headers: &HeaderMap) -> Result<Form, Status> {
    one_of(headers, |form| {
        matches!(form, Form::Object | Form::GroupDiscovery)
    })
}

/// Rejects requests that accept a document in none of the forms used for objects.
pub fn check_document(headers: &HeaderMap) -> Result<(), Status> {
    if !accepts(headers, MEDIA) {
        return Err(not_available(MEDIA));
    }
    one_of(headers, |form| form == Form::Object).map(drop)
}

/// Rejects requests that do not accept JSON.
pub fn check_json(headers: &HeaderMap) -> Result<(), Status> {
    if accepts(headers, JSON) {
        Ok(())
    } else {
        Err(not_available(JSON))
    }
}

/// Whether tables and metadata are requested as `meta.k8s.io/v1beta1`.
pub fn is_beta(headers: &HeaderMap) -> bool {
    first(headers, |_| true).is_some_and(|answer| answer.beta)
}

fn one_of(headers: &HeaderMap, fits: impl Fn(Form) -> bool) -> Result<Form, Status> {
    first(headers, fits)
        .map(|answer| answer.form)
        .ok_or_else(|| Status::not_acceptable(MEDIA))
}

fn first(headers: &HeaderMap, fits: impl Fn(Form) -> bool) -> Option<Answer> {
    let accept = header(headers);
    if accept.is_empty() {
        return Some(Answer {
            form: Form::Object,
            beta: false,
            yaml: false,
        });
    }
    clauses(&accept)
        .iter()
        .filter_map(Clause::answer)
        .find(|answer| fits(answer.form))
}

/// A table, a metadata list or a single object's metadata, in the requested version.
pub fn in_version(beta: bool, mut value: Value) -> Value {
    if !beta {
        return value;
    }
    let rename = |value: &mut Value| {
        if value["apiVersion"] == "meta.k8s.io/v1" {
            value["apiVersion"] = "meta.k8s.io/v1beta1".into();
        }
    };
    rename(&mut value);
    value
        .get_mut("items")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .for_each(rename);
    let rows = value
        .get_mut("rows")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    rows.filter_map(|row| row.get_mut("object"))
        .filter(|object| object.is_object())
        .for_each(rename);
    value
}

struct Clause<'a> {
    media: (&'a str, &'a str),
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// The clauses of `Accept` in the order in which Go's library tries them: it sorts by insertion,
/// with a comparison that is not a consistent order.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut all: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    for end in 1..all.len() {
        let mut at = end;
        while at > 0 && all[at].goes_before(&all[at - 1]) {
            all.swap(at, at - 1);
            at -= 1;
        }
    }
    all
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = match parts.next()? {
            "*" => ("*", "*"),
            media => media.split_once('/')?,
        };
        let mut parameters: Vec<(&str, &str)> = parts
            .filter_map(|p| p.split_once('='))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let quality = parameters
            .iter()
            .rfind(|(key, _)| *key == "q")
            .map_or(1.0, |(_, q)| q.parse().unwrap_or(0.0));
        parameters.retain(|(key, _)| *key != "q");
        Some(Self {
            media,
            quality,
            parameters,
        })
    }

    fn goes_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.media.0 != "*" && other.media.0 == "*")
            || (self.media.1 != "*" && other.media.1 == "*")
    }

    fn answer(&self) -> Option<Answer> {
        let yaml = match self.media {
            ("application", "json" | "*") | ("*", "*") => false,
            ("application", "yaml") => true,
            _ => return None,
        };
        let get = |name: &str| {
            self.parameters
                .iter()
                .rfind(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        };
        let (kind, version) = (get("as"), get("v"));
        let form = match (kind, get("g"), version) {
            (None, None, None) => Form::Object,
            (Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => Form::Table,
            (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => {
                Form::Metadata
            }
            (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => {
                Form::MetadataList
            }
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => {
                Form::GroupDiscovery
            }
            _ => return None,
        };
        Some(Answer {
            form,
            beta: version == Some("v1beta1"),
            yaml,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Result<Form, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().expect("a header"));
        form(&headers).map_err(|s| s.code)
    }

    #[test]
    fn the_first_clause_that_can_be_answered_wins() {
        assert_eq!(
            of("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            Ok(Form::Table)
        );
        assert_eq!(
            of("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"),
            Ok(Form::Table)
        );
        assert_eq!(
            of("application/json;as=Table;v=v1alpha1;g=meta.k8s.io,application/json"),
            Ok(Form::Object)
        );
        assert_eq!(
            of("application/vnd.kubernetes.protobuf,application/json"),
            Ok(Form::Object)
        );
        assert_eq!(of("application/vnd.kubernetes.protobuf"), Err(406));
        assert_eq!(
            of("text/html, application/yaml;as=Table;v=v1;g=meta.k8s.io"),
            Ok(Form::Table)
        );
        assert_eq!(
            of(
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
            ),
            Ok(Form::GroupDiscovery)
        );
    }
}
