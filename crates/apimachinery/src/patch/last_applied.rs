//! The last-applied annotation of client-side apply.
//!
//! Main functions: [`read`], [`write`], [`with_annotation`]. They do not know how a patch is
//! computed.

use super::PatchError;
use crate::object::Object;
use serde_json::Value;

/// The annotation that kubectl and Argo CD use.
pub const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Kubernetes' limit on the total size of an object's annotations.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The last applied configuration, if there is an annotation.
pub fn read(object: &Object) -> Result<Option<Value>, PatchError> {
    let Some(text) = object.annotation(ANNOTATION).filter(|t| !t.is_empty()) else {
        return Ok(None);
    };
    let value = serde_json::from_str(text);
    value.map(Some).map_err(|e| {
        PatchError::invalid(format!(
            "annotation {ANNOTATION} of {} is not JSON: {e}",
            object.name()
        ))
    })
}

/// The annotation's value: the object without this annotation, as JSON with sorted keys and a final
/// newline, as kubectl writes it. An object without other annotations keeps an empty map of them.
pub fn text(object: &Object) -> String {
    tiphys_gocompat::json::to_string(&without_annotation(object).into_value()) + "\n"
}

/// Sets the annotation, or removes it if the annotations would become too large with it.
pub fn put(object: &mut Object, text: &str) {
    object.set_annotation(ANNOTATION, text);
    let annotations = object
        .metadata("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let size: usize = annotations
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MAX_ANNOTATIONS {
        crate::object::map_entry(object.metadata_mut(), "annotations").remove(ANNOTATION);
    }
}

/// Sets the object's own annotation to its current content.
pub fn write(object: &mut Object) {
    let text = text(object);
    object.set_annotation(ANNOTATION, &text);
}

/// A copy with its own annotation: the modified configuration of a three-way patch.
pub fn with_annotation(object: &Object) -> Object {
    let mut copy = object.clone();
    write(&mut copy);
    copy
}

/// A copy without the annotation: the modified configuration where nothing is to be remembered.
pub fn without_annotation(object: &Object) -> Object {
    let mut copy = object.clone();
    // kubectl keeps the empty map: our bytes match kubectl's, and a patch does not remove what
    // others annotated.
    crate::object::map_entry(copy.metadata_mut(), "annotations").remove(ANNOTATION);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read() {
        let mut o =
            Object::from_value(json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "x"}}))
                .expect("a map");
        assert_eq!(read(&o), Ok(None));
        write(&mut o);
        let first = o.annotation(ANNOTATION).map(str::to_owned);
        assert_eq!(
            first.as_deref(),
            Some(
                "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"annotations\":{},\"name\":\"x\"}}\n"
            )
        );
        write(&mut o);
        assert_eq!(o.annotation(ANNOTATION).map(str::to_owned), first);
        assert_eq!(
            read(&o),
            Ok(Some(
                json!({"apiVersion": "v1", "kind": "A", "metadata": {"annotations": {}, "name": "x"}})
            ))
        );
        o.set_annotation("a", "<b>");
        assert!(
            text(&o).contains(r#""a":"\u003cb\u003e""#),
            "kubectl escapes what means something in HTML"
        );
        o.set_annotation(ANNOTATION, "{");
        assert!(read(&o).is_err());
        put(&mut o, &"x".repeat(MAX_ANNOTATIONS));
        assert_eq!(
            (o.annotation(ANNOTATION), o.annotation("a")),
            (None, Some("<b>"))
        );
    }
}
