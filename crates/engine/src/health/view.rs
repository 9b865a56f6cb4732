//! Reads typed fields of an object, with the messages of a typed decoder if they have the wrong
//! type.

use crate::error::EngineError;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// A live object, of a kind that messages call `what`.
pub struct View<'a> {
    pub what: &'static str,
    pub object: &'a Object,
}

impl<'a> View<'a> {
    /// Refuses API versions whose fields are not known.
    pub fn new(
        what: &'static str,
        object: &'a Object,
        versions: &[&str],
    ) -> Result<Self, EngineError> {
        let gvk = object.gvk();
        if !versions.contains(&gvk.version.as_str()) {
            return Err(EngineError::UnsupportedVersion { what, gvk });
        }
        Ok(Self { what, object })
    }

    fn wrong(&self, go_type: &str) -> EngineError {
        EngineError::Convert {
            what: self.what,
            why: format!("unrecognized type: {go_type}"),
        }
    }

    fn get(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|v| !v.is_null())
    }

    fn number(&self, pointer: &str, go_type: &str) -> Result<Option<i64>, EngineError> {
        let Some(value) = self.get(pointer) else {
            return Ok(None);
        };
        value
            .as_i64()
            .or_else(|| value.as_f64().map(|f| f as i64))
            .map(Some)
            .ok_or_else(|| self.wrong(go_type))
    }

    /// A 32-bit integer that may be absent.
    pub fn int32_opt(&self, pointer: &str) -> Result<Option<i64>, EngineError> {
        self.number(pointer, "int32")
    }

    /// A 32-bit integer, zero when absent.
    pub fn int32(&self, pointer: &str) -> Result<i64, EngineError> {
        Ok(self.int32_opt(pointer)?.unwrap_or(0))
    }

    /// A 64-bit integer, zero when absent.
    pub fn int64(&self, pointer: &str) -> Result<i64, EngineError> {
        Ok(self.number(pointer, "int64")?.unwrap_or(0))
    }

    /// A string, empty when absent.
    pub fn text(&self, pointer: &str) -> Result<&'a str, EngineError> {
        self.get(pointer)
            .map_or(Ok(""), |v| v.as_str().ok_or_else(|| self.wrong("string")))
    }

    /// A boolean, false when absent.
    pub fn flag(&self, pointer: &str) -> Result<bool, EngineError> {
        self.get(pointer)
            .map_or(Ok(false), |v| v.as_bool().ok_or_else(|| self.wrong("bool")))
    }

    /// The entries of a list, none when absent.
    pub fn list(&self, pointer: &str) -> &'a [Value] {
        self.get(pointer)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// The entry of `status.conditions` with this type.
    pub fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.list("/status/conditions")
            .iter()
            .find(|c| text_of(c, "type") == kind)
    }
}

/// A string field of a JSON map, empty when absent.
pub fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}
