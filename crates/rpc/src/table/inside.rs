//! Types that are found by reading them from nothing: what such deserializers have in common. Main
//! macro: `looks_inside`.

/// The methods of a `Deserializer<'de>` that has no value: what may have others in it is looked
/// into, and a name is a text.
macro_rules! looks_inside {
    ($error:ty) => {
        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, $error> {
            visitor.visit_some(self)
        }

        fn deserialize_unit_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, $error> {
            self.deserialize_unit(visitor)
        }

        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, $error> {
            visitor.visit_newtype_struct(self)
        }

        fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, $error> {
            visitor.visit_seq(self)
        }

        fn deserialize_tuple<V: Visitor<'de>>(
            self,
            _: usize,
            visitor: V,
        ) -> Result<V::Value, $error> {
            visitor.visit_seq(self)
        }

        fn deserialize_tuple_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            _: usize,
            visitor: V,
        ) -> Result<V::Value, $error> {
            visitor.visit_seq(self)
        }

        fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, $error> {
            visitor.visit_map(self)
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _: &'static str,
            _: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, $error> {
            self.deserialize_str(visitor)
        }
    };
}

pub(super) use looks_inside;
