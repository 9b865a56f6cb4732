//! Converts between the versions of a custom resource, through the conversion webhook of its
//! definition if it has one.

use super::Registry;
use crate::base::Stored;
use crate::catalog::Resource;
use crate::catalog::crd::Conversion;
use crate::convert;
use crate::outbound::{self, Answer, Endpoint, Post};
use crate::status::Status;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tiphys_apimachinery::Object;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";
const TIMEOUT: Duration = Duration::from_secs(30);

fn webhook(resource: &Resource) -> Option<&Conversion> {
    resource
        .custom
        .as_ref()
        .and_then(|custom| custom.conversion.as_deref())
}

impl Registry {
    /// Converts the object to its storage version. Returns the form that a real server would store,
    /// if that has fewer fields.
    pub fn as_stored(
        &self,
        resource: &Resource,
        object: &mut Object,
    ) -> Result<Option<Object>, Status> {
        let bare = match webhook(resource) {
            Some(conversion) => {
                self.review(
                    conversion,
                    &resource.storage_api_version(),
                    std::slice::from_mut(object),
                )?;
                let node = resource.stored_as().and_then(|custom| custom.node.as_ref());
                node.and_then(|node| convert::fit(object, node, true))
            }
            None => convert::as_stored(resource, object),
        };
        // If the schema has changed since, its current defaults are filled in on every read.
        Ok(match bare {
            Some(bare) if convert::is_older(resource) => {
                *object = bare;
                None
            }
            bare => bare,
        })
    }

    /// A stored object in the version of the resource; unchanged if it already has that version.
    pub fn served(&self, resource: &Resource, stored: &Arc<Object>) -> Result<Arc<Object>, Status> {
        if webhook(resource).is_none()
            && !convert::is_older(resource)
            && stored.api_version() == resource.api_version()
        {
            return Ok(stored.clone());
        }
        let mut object = Object::clone(stored);
        self.from_storage(resource, &mut object)?;
        Ok(Arc::new(object))
    }

    /// Converts a stored object to the version of the resource.
    pub fn from_storage(&self, resource: &Resource, object: &mut Object) -> Result<(), Status> {
        if webhook(resource).is_none() {
            convert::from_storage(resource, object);
            return Ok(());
        }
        self.all_from_storage(resource, std::slice::from_mut(object))
    }

    /// Converts from one version of a kind to another.
    pub fn between(
        &self,
        from: &Resource,
        to: &Resource,
        object: &mut Object,
    ) -> Result<(), Status> {
        if webhook(to).is_none() {
            convert::to_storage(from, object);
        }
        self.from_storage(to, object)
    }

    fn all_from_storage(&self, resource: &Resource, objects: &mut [Object]) -> Result<(), Status> {
        let Some(conversion) = webhook(resource) else {
            return Ok(());
        };
        self.review(conversion, &resource.api_version(), objects)?;
        if let Some(node) = resource
            .custom
            .as_ref()
            .and_then(|custom| custom.node.as_ref())
        {
            for object in objects {
                convert::fit(object, node, false);
            }
        }
        Ok(())
    }

    /// Converts stored objects to the version of the resource. The webhook is called once for all
    /// of them.
    pub fn as_served(
        &self,
        resource: &Resource,
        stored: Vec<Arc<Stored>>,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        let version = resource.api_version();
        if webhook(resource).is_none() || stored.iter().all(|s| s.object().api_version() == version)
        {
            return Ok(stored);
        }
        let mut objects: Vec<Object> = stored.iter().map(|s| (*s.object()).clone()).collect();
        self.all_from_storage(resource, &mut objects)?;
        let served = |(object, before): (Object, &Arc<Stored>)| {
            Arc::new(Stored::new(&Arc::new(object), before.meta.revision))
        };
        Ok(objects.into_iter().zip(&stored).map(served).collect())
    }

    /// Sends the objects of another version to the webhook.
    fn review(
        &self,
        conversion: &Conversion,
        wanted: &str,
        objects: &mut [Object],
    ) -> Result<(), Status> {
        let others: Vec<&mut Object> = objects
            .iter_mut()
            .filter(|o| o.api_version() != wanted)
            .collect();
        let Some(first) = others.first().map(|o| o.gvk()) else {
            return Ok(());
        };
        let failed = |why: String| {
            let version = if first.group.is_empty() {
                first.version.clone()
            } else {
                format!("{}/{}", first.group, first.version)
            };
            Status::new(
                500,
                "",
                format!(
                    "conversion webhook for {version}, Kind={} {why}",
                    first.kind
                ),
            )
        };
        let call = |why: String| failed(format!("failed: {why}"));
        let known = conversion
            .versions
            .iter()
            .find(|v| matches!(v.as_str(), "v1" | "v1beta1"));
        let version =
            known.ok_or_else(|| Status::new(500, "", "no supported conversion review versions"))?;
        let uid = uuid::Uuid::new_v4().to_string();
        let sent: Vec<&Map<String, Value>> = others.iter().map(|o| &o.0).collect();
        let question = json!({"kind": KIND, "apiVersion": format!("{GROUP}/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": sent}});
        let endpoint = Endpoint::read(self, &conversion.config).map_err(call)?;
        let body = serde_json::to_vec(&question).expect("a JSON tree serialises");
        let answer = outbound::post_all(vec![Post {
            endpoint,
            timeout: TIMEOUT,
            body,
        }])
        .pop();
        let answer = answer
            .unwrap_or_else(|| Err("no answer".to_owned()))
            .map_err(call)?;
        let converted = read(answer, &uid, version).map_err(call)?;
        if converted.len() != others.len() {
            return Err(failed(format!(
                "returned {} objects, expected {}",
                converted.len(),
                others.len()
            )));
        }
        for (before, after) in others.into_iter().zip(converted) {
            *before = accepted(before, after, wanted).map_err(failed)?;
        }
        Ok(())
    }
}

/// The objects in a webhook response.
fn read((code, media, body): Answer, uid: &str, version: &str) -> Result<Vec<Value>, String> {
    let text = String::from_utf8_lossy(&body);
    if !(200..300).contains(&code) {
        return Err(outbound::refused(code, &media, text.trim()));
    }
    if body.is_empty() {
        return Err(format!(
            "0-length response with status code: {code} and content type: {media}"
        ));
    }
    let answer: Value = serde_json::from_slice(&body)
        .map_err(|e| format!("couldn't get version/kind; json parse error: {e}"))?;
    let (api_version, kind) = (
        answer["apiVersion"].as_str().unwrap_or(""),
        answer["kind"].as_str().unwrap_or(""),
    );
    if !kind.is_empty() && kind != KIND {
        return Err(format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
        ));
    }
    let wanted = format!("{GROUP}/{version}");
    let strict = version == "v1";
    if strict && (api_version != wanted || kind != KIND) {
        return Err(format!(
            "expected webhook response of {wanted}, Kind={KIND}, got {api_version}, Kind={kind}"
        ));
    }
    let response = &answer["response"];
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    let given = response["uid"].as_str().unwrap_or("");
    if strict && given != uid {
        return Err(format!("expected response.uid=\"{uid}\", got \"{given}\""));
    }
    let status = response["result"]["status"].as_str().unwrap_or("");
    if status != "Success" {
        return Err(match response["result"]["message"].as_str().unwrap_or("") {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    Ok(response["convertedObjects"]
        .as_array()
        .cloned()
        .unwrap_or_default())
}

/// The converted object, with the metadata that a webhook must not change taken from the original.
fn accepted(before: &Object, after: Value, wanted: &str) -> Result<Object, String> {
    let text = |field: &str| after[field].as_str().unwrap_or("").to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != wanted {
        return Err(format!(
            "returned invalid object at index 0: invalid groupVersion (expected {wanted}, received {version})"
        ));
    }
    if kind != before.kind() {
        return Err(format!(
            "returned invalid object at index 0: invalid kind (expected {}, received {kind})",
            before.kind()
        ));
    }
    let invalid = |why: String| format!("returned invalid object: {why}");
    for (field, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let old = before.metadata(field).and_then(Value::as_str).unwrap_or("");
        let new = after["metadata"][field].as_str().unwrap_or("");
        if old != new {
            return Err(invalid(format!(
                "must have the same {word}: {old} != {new}"
            )));
        }
    }
    let given = after["metadata"].clone();
    let mut object = Object::from_value(after).map_err(|e| invalid(e.to_string()))?;
    let mut metadata = before
        .0
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field).filter(|v| !v.is_null()) {
            None => metadata.remove(field),
            Some(Value::Object(map)) if map.values().all(Value::is_string) => {
                metadata.insert(field.into(), map.clone().into())
            }
            Some(_) => {
                return Err(format!(
                    "returned invalid metadata: invalid metadata.{field} in converted object"
                ));
            }
        };
    }
    object.0.insert("metadata".into(), metadata.into());
    Ok(object)
}
