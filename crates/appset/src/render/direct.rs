//! Reads a value from a template while its texts are rendered, without the rendered document in
//! between. Main function: [`read`].
//!
//! What it reads is what [`Filled::json`] makes and serde reads from that. What goes wrong is not
//! said here: the document is rendered to see it.

use super::{DEPTH, Filled, Path};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer as _, MapAccess,
    SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value as Json, map};
use std::slice;

/// `None`: the document cannot be rendered, or is not of this type.
pub(super) fn read<T: DeserializeOwned>(filled: &Filled<'_, '_>, document: &Json) -> Option<T> {
    let root = Node {
        filled,
        json: document,
        path: &Path::Root,
    };
    T::deserialize(root).ok()
}

fn failed() -> Error {
    Error::custom("the template cannot be read")
}

/// A part of a template.
#[derive(Clone, Copy)]
struct Node<'a, 'p, 's> {
    filled: &'a Filled<'p, 's>,
    json: &'a Json,
    path: &'a Path<'a>,
}

impl<'a> Node<'a, '_, '_> {
    /// Counts it as [`Filled::json`] does.
    fn enter(&self) -> Result<(), Error> {
        let charged = self.filled.renderer.charge(size_of::<Json>());
        match charged.is_ok() && self.path.depth() <= DEPTH {
            true => Ok(()),
            false => Err(failed()),
        }
    }

    /// The rendered part, which counts it.
    fn made(&self) -> Result<Json, Error> {
        let made = self.filled.json_at(self.json, self.path, &|_| false);
        made.map_err(|_| failed())
    }

    fn text<'de, V: Visitor<'de>>(self, text: &str, visitor: V) -> Result<V::Value, Error> {
        self.enter()?;
        visitor.visit_string(self.filled.text(text).map_err(|_| failed())?)
    }

    fn list<'de, V: Visitor<'de>>(self, items: &'a [Json], visitor: V) -> Result<V::Value, Error> {
        self.enter()?;
        let mut items = Items {
            list: self,
            rest: items.iter(),
            index: 0,
        };
        let value = visitor.visit_seq(&mut items)?;
        match items.rest.next() {
            Some(_) => Err(failed()),
            None => Ok(value),
        }
    }

    fn map<'de, V: Visitor<'de>>(
        self,
        members: &'a Map<String, Json>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.enter()?;
        let mut members = Members {
            map: self,
            rest: members.iter(),
            value: None,
        };
        let value = visitor.visit_map(&mut members)?;
        match members.value.or_else(|| members.next_member()) {
            Some(_) => Err(failed()),
            None => Ok(value),
        }
    }
}

impl<'de> Deserializer<'de> for Node<'_, '_, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.json {
            Json::String(text) => self.text(text, visitor),
            Json::Array(items) => self.list(items, visitor),
            // Rendered keys may be the same, or in another order.
            Json::Object(members) if !members.keys().any(|key| key.contains("{{")) => {
                self.map(members, visitor)
            }
            _ => self.made()?.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.json {
            Json::Null => self.made()?.deserialize_option(visitor),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.made()?.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.made()?.deserialize_enum(name, variants, visitor)
    }

    /// Also what nobody reads may not be rendered wrongly.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.made()?.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct Items<'a, 'p, 's> {
    list: Node<'a, 'p, 's>,
    rest: slice::Iter<'a, Json>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(json) = self.rest.next() else {
            return Ok(None);
        };
        let path = Path::Item(self.list.path, self.index);
        self.index += 1;
        let node = Node {
            filled: self.list.filled,
            json,
            path: &path,
        };
        seed.deserialize(node).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'a, 'p, 's> {
    map: Node<'a, 'p, 's>,
    rest: map::Iter<'a>,
    /// The member whose key was read last.
    value: Option<(&'a str, &'a Json)>,
}

impl<'a> Members<'a, '_, '_> {
    /// Members with null vanish.
    fn next_member(&mut self) -> Option<(&'a str, &'a Json)> {
        let (key, member) = self.rest.find(|(_, member)| !member.is_null())?;
        Some((key.as_str(), member))
    }
}

impl<'de> MapAccess<'de> for Members<'_, '_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.value = self.next_member();
        let Some((key, _)) = self.value else {
            return Ok(None);
        };
        let charged = self.map.filled.renderer.charge(key.len());
        charged.map_err(|_| failed())?;
        let key: StrDeserializer<'_, Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((key, json)) = self.value.take() else {
            return Err(failed());
        };
        let path = Path::Member(self.map.path, key);
        seed.deserialize(Node {
            filled: self.map.filled,
            json,
            path: &path,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::params::{Params, params_of};
    use crate::render::{Renderer, tests};
    use serde_json::{Value as Json, json};
    use tiphys_api::Application;

    fn params() -> Params {
        let params = json!({"name": "one", "team": "t", "n": 3, "nested": {"a": {"b": "deep"}}});
        params_of(params.as_object().expect("a map"))
    }

    /// A template with this part in the place of its own.
    fn template(pointer: &str, part: Json) -> Json {
        let mut template = json!({
            "metadata": {
                "name": "{{.name}}-{{.team}}", "namespace": null,
                "labels": {"team": "{{.team}}", "fixed": "x"}, "annotations": {}, "finalizers": [],
            },
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": "https://git.example.test/{{.team}}.git", "path": "deploy",
                    "helm": {"valuesObject": {
                        "name": "{{.name}}", "many": 9_007_199_254_740_993_i64,
                        "none": null, "list": [null, "{{.team}}", {"{{.name}}": 1}],
                    }},
                },
                "destination": {"server": "{{.name}}", "namespace": "{{.team}}"},
                "syncPolicy": {"automated": {"prune": true}, "retry": {"limit": 3}},
                "ignoreDifferences": [{"kind": "Deployment", "jsonPointers": ["/{{.name}}", "/b"]}],
                "info": null,
            },
            "unknown": {"a": ["{{.name}}"]},
        });
        if let Some(place) = template.pointer_mut(pointer) {
            *place = part;
        }
        template
    }

    #[test]
    fn what_is_read_directly_is_as_from_the_rendered_document() {
        let mut unreadable = 0;
        for (pointer, part) in [
            ("none", Json::Null),
            // Rendered keys, of which two may be the same.
            (
                "/metadata/labels",
                json!({"{{.name}}": "a", "one": "b", "z": "c"}),
            ),
            ("/metadata/labels", json!({"a{{": "b"})),
            (
                "/metadata",
                json!({"{{`name`}}": "a", "labels": {"a": "b"}}),
            ),
            ("/metadata/labels", json!({"team": 1})),
            ("/metadata/labels", json!(["a"])),
            ("/metadata/name", json!("{{.missing}}")),
            ("/metadata/name", json!("{{.name")),
            (
                "/metadata/name",
                json!("{{ set .nested \"a\" .n }}{{.nested}}"),
            ),
            ("/metadata/finalizers", json!([null])),
            ("/spec", json!("{{.name}}")),
            ("/spec", json!([])),
            (
                "/spec/source",
                json!(["https://git.example.test/{{.name}}"]),
            ),
            ("/spec/project", json!(null)),
            ("/spec/syncPolicy/retry/limit", json!("{{.n}}")),
            ("/spec/syncPolicy/retry/limit", json!(1.5)),
            (
                "/spec/source/helm",
                json!({"parameters": [{"name": "{{.name}}", "value": "1"}], "values": "{{.n}}"}),
            ),
            (
                "/spec/source/helm",
                json!({"valuesObject": {"$serde_json::private::RawValue": "[1]"}}),
            ),
            // Nobody reads it, but it cannot be rendered.
            ("/unknown", json!({"a": "{{.missing}}"})),
            ("/unknown", json!("{{ fail \"no\" }}")),
        ] {
            let template = template(pointer, part);
            for (is_go, options) in [
                (false, vec![]),
                (true, vec![]),
                (true, vec!["missingkey=error".to_owned()]),
                (true, vec!["missingkey=what".to_owned()]),
            ] {
                let (mut first, mut second) = (tests::sources(), tests::sources());
                let params = params();
                let renderer = Renderer::new(is_go, &options, &mut first);
                let read = renderer.with(&params).read::<Application>(&template);
                let left = tests::left(&renderer);
                let renderer = Renderer::new(is_go, &options, &mut second);
                let whole = renderer.with(&params).json(&template).ok();
                let whole = whole.and_then(|document| serde_json::from_value(document).ok());
                assert_eq!(read, whole, "{is_go} {options:?} {template}");
                if read.is_some() {
                    assert_eq!(left, tests::left(&renderer), "{template}");
                } else {
                    assert_eq!(left, crate::render::MOST_MADE, "nothing is counted");
                    unreadable += 1;
                }
            }
        }
        assert!(unreadable > 20, "{unreadable}");
    }

    #[test]
    fn documents_of_any_depth_and_size_are_bounded() {
        let mut deep = json!("x");
        for _ in 0..300 {
            deep = json!([deep]);
        }
        let template = template("/unknown", deep);
        let mut sources = tests::sources();
        let renderer = Renderer::new(true, &[], &mut sources);
        let params = params();
        assert_eq!(renderer.with(&params).read::<Application>(&template), None);
        let template = self::template("none", Json::Null);
        let all = crate::render::MOST_MADE - {
            let read = renderer.with(&params).read::<Application>(&template);
            assert!(read.is_some());
            tests::left(&renderer)
        };
        for (left, is_enough) in [(all, true), (all - 1, false)] {
            let mut sources = tests::sources();
            let renderer = Renderer::new(true, &[], &mut sources);
            renderer
                .charge(crate::render::MOST_MADE - left)
                .expect("most of it");
            let read = renderer.with(&params).read::<Application>(&template);
            assert_eq!(read.is_some(), is_enough, "{left}");
        }
    }
}
