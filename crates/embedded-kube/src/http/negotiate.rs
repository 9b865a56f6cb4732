//! What form of answer the client wants. Main type: [`Form`].

use crate::catalog::Resource;
use crate::status::Status;
use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::Value;

pub const YAML: &str = "application/yaml";
const MEDIA: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Refuses at once what no form of the answer could satisfy. `collection` is true for lists and watches.
pub fn check(headers: &HeaderMap, resource: &Resource, collection: bool) -> Result<(), Status> {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>().join(",");
    let known = |clause: &str| {
        let media = media(clause);
        media.is_empty() || media == "*/*" || MEDIA.split(", ").any(|m| m == media)
    };
    if resource.custom.is_none() && !accept.is_empty() && !accept.split(',').any(known) {
        let streams = if collection { ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch" } else { "" };
        return Err(not_available(&format!("{MEDIA}{streams}")));
    }
    form(headers).map(|_| ())
}

/// What a handler says that has only these representations.
pub fn not_available(media: &str) -> Status {
    Status::new(406, "NotAcceptable", format!("406: Not Acceptable\n\nAvailable representations: {media}")).with_causes(Vec::new())
}

/// Whether the first clause of `Accept` that can be answered wants YAML.
pub fn is_yaml(headers: &HeaderMap) -> bool {
    let texts = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok());
    let mut clauses = texts.flat_map(|text| text.split(',').map(str::trim));
    clauses.find(|clause| one(clause).is_some()).is_some_and(|clause| media(clause) == YAML)
}

fn media(clause: &str) -> &str {
    clause.split(';').next().unwrap_or_default().trim()
}

/// Nothing streams YAML.
pub fn check_stream(headers: &HeaderMap) -> Result<(), Status> {
    match is_yaml(headers) {
        true => Err(Status::not_acceptable("application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")),
        false => Ok(()),
    }
}

/// A list cannot be shown as one object, nor one object as a list.
pub fn wrong_number(resource: &Resource, list: bool) -> Status {
    let package = if resource.custom.is_some() {
        "unstructured"
    } else {
        resource.group.split('.').next().filter(|g| !g.is_empty()).unwrap_or("core")
    };
    let package = if resource.group == "events.k8s.io" { "core" } else { package };
    let kind = match (&resource.custom, list) {
        (Some(_), true) => "UnstructuredList",
        (Some(_), false) => "Unstructured",
        (None, true) => &resource.list_kind,
        (None, false) => &resource.kind,
    };
    let text = if list {
        format!("you requested PartialObjectMetadata, but the requested object is a list (*{package}.{kind})")
    } else {
        format!("you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{kind})")
    };
    Status::new(406, "NotAcceptable", text)
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

/// The first clause of `Accept` that can be answered.
pub fn form(headers: &HeaderMap) -> Result<Form, Status> {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>().join(",");
    let clauses: Vec<&str> = accept.split(',').map(str::trim).filter(|c| !c.is_empty()).collect();
    if clauses.is_empty() {
        return Ok(Form::Object);
    }
    clauses.iter().find_map(|clause| one(clause)).map(|(form, _)| form).ok_or_else(|| Status::not_acceptable(MEDIA))
}

/// The same for what has no table.
pub fn form_but_table(headers: &HeaderMap) -> Result<Form, Status> {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>().join(",");
    let mut forms = accept.split(',').map(str::trim).filter_map(one).map(|(form, _)| form).filter(|form| *form != Form::Table);
    if accept.is_empty() { Ok(Form::Object) } else { forms.next().ok_or_else(|| Status::not_acceptable(MEDIA)) }
}

/// Refuses who wants a document in no form but that of objects.
pub fn check_document(headers: &HeaderMap) -> Result<(), Status> {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>().join(",");
    let mut clauses = accept.split(',').map(str::trim);
    let fits = accept.is_empty() || clauses.any(|clause| one(clause).is_some_and(|(form, _)| form == Form::Object));
    if fits { Ok(()) } else { Err(Status::not_acceptable(MEDIA)) }
}

/// Whether tables and metadata are wanted as `meta.k8s.io/v1beta1`, which differs in its name only.
pub fn is_beta(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>().join(",");
    accept.split(',').find_map(|clause| one(clause.trim())).is_some_and(|(_, beta)| beta)
}

/// A table, a list of metadata or one object's metadata in the version that was asked for.
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
    value.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().for_each(rename);
    let rows = value.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten();
    rows.filter_map(|row| row.get_mut("object")).filter(|object| object.is_object()).for_each(rename);
    value
}

/// A form, and whether it is of `v1beta1`.
fn one(clause: &str) -> Option<(Form, bool)> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next()?;
    if !matches!(media, "application/json" | YAML | "*/*" | "application/*") {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
    let get = |name: &str| parameters.iter().find(|(k, _)| *k == name).map(|(_, v)| *v);
    let version = get("v").unwrap_or_default();
    let beta = version == "v1beta1";
    match get("as") {
        None => Some((Form::Object, false)),
        Some("Table") if beta || version == "v1" => Some((Form::Table, beta)),
        Some("PartialObjectMetadata") if beta || version == "v1" => Some((Form::Metadata, beta)),
        Some("PartialObjectMetadataList") if beta || version == "v1" => Some((Form::MetadataList, beta)),
        Some("APIGroupDiscoveryList") if version == "v2" => Some((Form::GroupDiscovery, false)),
        Some(_) => None,
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
        assert_eq!(of("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), Ok(Form::Table));
        assert_eq!(of("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"), Ok(Form::Table));
        assert_eq!(of("application/json;as=Table;v=v1alpha1;g=meta.k8s.io,application/json"), Ok(Form::Object));
        assert_eq!(of("application/vnd.kubernetes.protobuf,application/json"), Ok(Form::Object));
        assert_eq!(of("application/vnd.kubernetes.protobuf"), Err(406));
        assert_eq!(of("text/html, application/yaml;as=Table;v=v1;g=meta.k8s.io"), Ok(Form::Table));
        assert_eq!(of("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"), Ok(Form::GroupDiscovery));
    }
}
