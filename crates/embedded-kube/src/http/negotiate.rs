//! What form of answer the client wants. Main type: [`Form`].

use crate::catalog::Resource;
use crate::status::Status;
use http::HeaderMap;
use http::header::ACCEPT;

const MEDIA: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Refuses at once what no form of the answer could satisfy. `collection` is true for lists and watches.
pub fn check(headers: &HeaderMap, resource: &Resource, collection: bool) -> Result<(), Status> {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>().join(",");
    let known = |clause: &str| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        media.is_empty() || media == "*/*" || MEDIA.split(", ").any(|m| m == media)
    };
    if resource.custom.is_none() && !accept.is_empty() && !accept.split(',').any(known) {
        let streams = if collection { ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch" } else { "" };
        let text = format!("406: Not Acceptable\n\nAvailable representations: {MEDIA}{streams}");
        return Err(Status::new(406, "NotAcceptable", text).with_causes(Vec::new()));
    }
    form(headers).map(|_| ())
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
    clauses.iter().find_map(|clause| one(clause)).ok_or_else(|| Status::not_acceptable(MEDIA))
}

fn one(clause: &str) -> Option<Form> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next()?;
    if !matches!(media, "application/json" | "*/*" | "application/*") {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
    let get = |name: &str| parameters.iter().find(|(k, _)| *k == name).map(|(_, v)| *v);
    match get("as") {
        None => Some(Form::Object),
        // v1beta1 of these has another shape, so only v1 is answered.
        Some("Table") if get("v") == Some("v1") => Some(Form::Table),
        Some("PartialObjectMetadata") if get("v") == Some("v1") => Some(Form::Metadata),
        Some("PartialObjectMetadataList") if get("v") == Some("v1") => Some(Form::MetadataList),
        Some("APIGroupDiscoveryList") if get("v") == Some("v2") => Some(Form::GroupDiscovery),
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
        assert_eq!(of("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"), Ok(Form::Object));
        assert_eq!(of("application/vnd.kubernetes.protobuf,application/json"), Ok(Form::Object));
        assert_eq!(of("application/vnd.kubernetes.protobuf"), Err(406));
        assert_eq!(of("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"), Ok(Form::GroupDiscovery));
    }
}
