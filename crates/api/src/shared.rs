//! Parts of a record that are shared between its states.
//!
//! Main type: [`Shared`]. Most states of an Application differ from the previous one in a revision,
//! a time or an annotation; the unchanged parts are stored, copied and compared once.

use prost::{
    DecodeError, Message,
    bytes::{Buf, BufMut},
    encoding::{DecodeContext, WireType},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    borrow::Cow,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A copy-on-write value. It is encoded like the value itself.
#[derive(Default)]
pub struct Shared<T>(Arc<T>);

impl<T: Clone> Shared<T> {
    /// The value itself; a copy if it is shared.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

impl<T: Message + Clone> Message for Shared<T> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.0.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        (**self).merge_field(tag, wire_type, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn clear(&mut self) {
        (**self).clear();
    }
}

impl<T: JsonSchema> JsonSchema for Shared<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Application;
    use serde_json::json;

    #[test]
    fn a_copy_shares_until_it_is_changed() {
        let app: Application =
            serde_json::from_value(json!({"spec": {"project": "p"}, "status": {}}))
                .expect("an Application");
        let mut copy = app.clone();
        assert!(Arc::ptr_eq(&app.spec.0, &copy.spec.0) && app == copy);
        copy.spec.project.push('q');
        assert_eq!(
            (app.spec.project.as_str(), copy.spec.project.as_str()),
            ("p", "pq")
        );
        assert!(app != copy && Arc::ptr_eq(&app.status.0, &copy.status.0));
    }

    #[test]
    fn encoded_it_is_the_value() {
        let app: Application =
            serde_json::from_value(json!({"spec": {"project": "p"}})).expect("an Application");
        let bytes = app.encode_to_vec();
        assert_eq!(Application::decode(&*bytes).expect("a message"), app);
        assert_eq!(
            app.spec.encode_to_vec(),
            app.spec.clone().into_inner().encode_to_vec()
        );
        let again: Application = serde_json::from_value(serde_json::to_value(&app).expect("JSON"))
            .expect("an Application");
        assert_eq!(again, app);
    }
}
