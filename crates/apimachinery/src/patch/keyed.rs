//! Lists whose items a strategic merge patch cannot distinguish, because its merge key (`port`) is
//! not what makes an item unique (`port` and `protocol`).
//!
//! Main function: [`complete`]. kubectl's patch replaces one of two such items by the other, or
//! keeps both when one left the configuration. Here these lists, and only these, are merged by the
//! keys that the API server itself uses for server-side apply, and are sent as a whole.

use super::{PatchError, strategic, three_way};
use crate::schema::{TypeKind, TypeRef};
use serde_json::{Map, Value, json};

const SET_ORDER: &str = "$setElementOrder/";

/// The three documents of a patch, at one path.
#[derive(Clone, Copy)]
struct Documents<'a> {
    original: &'a Map<String, Value>,
    modified: &'a Map<String, Value>,
    current: &'a Map<String, Value>,
}

/// Corrects the strategic merge patch that [`three_way::create`] computed from the same documents,
/// so that each item of the configuration exists and each item that left it is removed; items of
/// others stay.
pub fn complete(
    patch: &mut Value,
    original: &Value,
    modified: &Value,
    current: &Value,
    ty: TypeRef<'_>,
) -> Result<(), PatchError> {
    let none = Map::new();
    let (Value::Object(modified), Value::Object(current), Value::Object(patch)) =
        (modified, current, patch)
    else {
        return Ok(());
    };
    let documents = Documents {
        original: original.as_object().unwrap_or(&none),
        modified,
        current,
    };
    map(patch, documents, ty)
}

fn map(
    patch: &mut Map<String, Value>,
    documents: Documents<'_>,
    ty: TypeRef<'_>,
) -> Result<(), PatchError> {
    let none = Map::new();
    for (key, wanted) in documents.modified {
        let Some(field) = ty.field(key) else { continue };
        match (wanted, documents.current.get(key)) {
            (Value::Object(modified), Some(Value::Object(current))) if !replaces(field) => {
                let original = documents
                    .original
                    .get(key)
                    .and_then(Value::as_object)
                    .unwrap_or(&none);
                let mut inner = patch
                    .get(key)
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                if inner.contains_key("$patch") {
                    continue;
                }
                map(
                    &mut inner,
                    Documents {
                        original,
                        modified,
                        current,
                    },
                    field,
                )?;
                if !inner.is_empty() || patch.get(key).is_some_and(Value::is_object) {
                    patch.insert(key.clone(), inner.into());
                }
            }
            (Value::Array(modified), Some(Value::Array(current))) => {
                let original = documents
                    .original
                    .get(key)
                    .and_then(Value::as_array)
                    .map_or(&[][..], Vec::as_slice);
                if let Some(lists) = Lists::of(field, original, modified, current) {
                    lists.complete(patch, key)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn replaces(ty: TypeRef<'_>) -> bool {
    ty.patch_strategy()
        .is_some_and(|words| words.split(',').any(|word| word == "replace"))
}

/// A list of maps that is merged by key.
struct Lists<'a> {
    original: &'a [Value],
    modified: &'a [Value],
    current: &'a [Value],
    items: TypeRef<'a>,
    merge_key: &'a str,
    /// The fields that make an item unique.
    keys: Vec<&'a str>,
}

impl<'a> Lists<'a> {
    fn of(
        ty: TypeRef<'a>,
        original: &'a [Value],
        modified: &'a [Value],
        current: &'a [Value],
    ) -> Option<Self> {
        let items = ty
            .items()
            .filter(|items| items.kind() == TypeKind::Object)?;
        ty.patch_strategy()?
            .split(',')
            .find(|word| *word == "merge")?;
        let merge_key = ty.patch_merge_key()?;
        let keys: Vec<&str> = ty.list_map_keys().iter().map(|key| &**key).collect();
        let keys = if keys.is_empty() {
            vec![merge_key]
        } else {
            keys
        };
        Some(Self {
            original,
            modified,
            current,
            items,
            merge_key,
            keys,
        })
    }

    fn complete(&self, patch: &mut Map<String, Value>, key: &str) -> Result<(), PatchError> {
        if [self.original, self.modified, self.current]
            .iter()
            .all(|list| self.is_unique(list))
        {
            return self.complete_items(patch, key);
        }
        let merged = self.merged()?;
        patch.remove(key);
        patch.remove(&format!("{SET_ORDER}{key}"));
        if merged != self.current {
            let whole = std::iter::once(json!({"$patch": "replace"})).chain(merged);
            patch.insert(key.to_owned(), whole.collect());
        }
        Ok(())
    }

    fn is_unique(&self, list: &[Value]) -> bool {
        list.iter().enumerate().all(|(i, item)| {
            list[..i]
                .iter()
                .all(|before| before.get(self.merge_key) != item.get(self.merge_key))
        })
    }

    /// The lists inside the items.
    fn complete_items(&self, patch: &mut Map<String, Value>, key: &str) -> Result<(), PatchError> {
        let by_key = |list: &'a [Value], of: &Value| {
            list.iter()
                .find(|item| item.get(self.merge_key) == Some(of))
                .and_then(Value::as_object)
        };
        let none = Map::new();
        for modified in self.modified.iter().filter_map(Value::as_object) {
            let Some(known_by) = modified.get(self.merge_key) else {
                continue;
            };
            let Some(current) = by_key(self.current, known_by) else {
                continue;
            };
            let original = by_key(self.original, known_by).unwrap_or(&none);
            let sent = patch.get(key).and_then(Value::as_array).and_then(|l| {
                l.iter()
                    .position(|i| i.get(self.merge_key) == Some(known_by))
            });
            let before = sent.and_then(|at| patch[key][at].as_object().cloned());
            let mut item = before.clone().unwrap_or_default();
            map(
                &mut item,
                Documents {
                    original,
                    modified,
                    current,
                },
                self.items,
            )?;
            if item.is_empty() || Some(&item) == before.as_ref() {
                continue;
            }
            item.insert(self.merge_key.to_owned(), known_by.clone());
            let list = patch.entry(key).or_insert_with(|| json!([]));
            match (sent, list.as_array_mut()) {
                (Some(at), Some(list)) => list[at] = item.into(),
                (None, Some(list)) => list.push(item.into()),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// The items of the configuration in its order, each merged into its live item; items of others
    /// stay at their positions in between.
    fn merged(&self) -> Result<Vec<Value>, PatchError> {
        let mut taken = vec![false; self.current.len()];
        let mut ours: Vec<(Option<usize>, Value)> = Vec::with_capacity(self.modified.len());
        for (index, item) in self.modified.iter().enumerate() {
            let nth = self.modified[..index]
                .iter()
                .filter(|other| self.same(other, item))
                .count();
            let at = (0..self.current.len())
                .filter(|&i| self.same(&self.current[i], item))
                .nth(nth);
            let original = self
                .original
                .iter()
                .filter(|other| self.same(other, item))
                .nth(nth);
            let merged = match at {
                None => item.clone(),
                Some(at) => {
                    taken[at] = true;
                    self.laid_over(original.unwrap_or(&Value::Null), item, &self.current[at])?
                }
            };
            ours.push((at, merged));
        }
        // An item that was in the configuration before, or has the key of an item in it, is ours.
        let is_ours = |item: &Value| {
            self.original
                .iter()
                .chain(self.modified)
                .any(|other| self.same(other, item))
        };
        let others =
            (0..self.current.len()).filter(|&at| !taken[at] && !is_ours(&self.current[at]));
        let (mut ours, mut others) = (ours.into_iter().peekable(), others.peekable());
        let mut merged = Vec::new();
        while ours.peek().is_some() || others.peek().is_some() {
            let other = others.next_if(|&at| {
                ours.peek()
                    .is_none_or(|(place, _)| place.is_some_and(|place| at < place))
            });
            merged.extend(other.map_or_else(
                || ours.next().map(|(_, item)| item),
                |at| Some(self.current[at].clone()),
            ));
        }
        Ok(merged)
    }

    fn same(&self, a: &Value, b: &Value) -> bool {
        let value = |item: &'_ Value, key: &str| {
            item.get(key)
                .or_else(|| self.items.named_field(key)?.default())
                .cloned()
        };
        self.keys.iter().all(|key| value(a, key) == value(b, key))
    }

    fn laid_over(
        &self,
        original: &Value,
        item: &Value,
        current: &Value,
    ) -> Result<Value, PatchError> {
        let mut patch = three_way::create(original, item, current, Some(self.items), true)?;
        complete(&mut patch, original, item, current, self.items)?;
        strategic::apply(current, &patch, self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gvk, schema::builtin};

    /// The API server's result of the corrected patch.
    fn applied(kind: (&str, &str), [original, modified, current]: [&Value; 3]) -> Value {
        let ty = builtin()
            .type_for(&Gvk::new(kind.0, "v1", kind.1))
            .expect("a built-in kind");
        let mut patch =
            three_way::create(original, modified, current, Some(ty), true).expect("a patch");
        complete(&mut patch, original, modified, current, ty).expect("a patch");
        strategic::apply(current, &patch, ty).expect("an object")
    }

    #[test]
    fn ports_of_one_number_are_told_apart_by_their_protocol() {
        let service = |ports: Value| json!({"spec": {"ports": ports}});
        let (udp, tcp) = (
            json!({"name": "udp", "port": 53, "protocol": "UDP"}),
            json!({"name": "tcp", "port": 53}),
        );
        let with_node_port = |port: &Value, node: u64| {
            let mut port = port.clone();
            port["nodePort"] = node.into();
            port["protocol"] = port
                .get("protocol")
                .cloned()
                .unwrap_or_else(|| "TCP".into());
            port
        };
        let (live_udp, live_tcp) = (with_node_port(&udp, 30001), with_node_port(&tcp, 30002));
        let foreign = json!({"name": "other", "port": 53, "protocol": "SCTP"});
        let renamed = json!({"name": "dns", "port": 53, "protocol": "UDP"});
        let rows = [
            // (original, modified, current, result)
            (
                [json!([udp]), json!([udp, tcp]), json!([live_udp])],
                json!([live_udp, tcp]),
            ),
            (
                [json!([udp, tcp]), json!([udp]), json!([live_udp, live_tcp])],
                json!([live_udp]),
            ),
            (
                [json!([udp, tcp]), json!([tcp]), json!([live_udp, live_tcp])],
                json!([live_tcp]),
            ),
            (
                [
                    json!([udp, tcp]),
                    json!([udp, tcp]),
                    json!([live_udp, live_tcp]),
                ],
                json!([live_udp, live_tcp]),
            ),
            (
                [json!([udp, tcp]), json!([udp, tcp]), json!([live_tcp])],
                json!([udp, live_tcp]),
            ),
            // Changed in place, moved, and with one added by another manager.
            (
                [
                    json!([udp, tcp]),
                    json!([renamed, tcp]),
                    json!([live_udp, live_tcp]),
                ],
                json!([with_node_port(&renamed, 30001), live_tcp]),
            ),
            (
                [
                    json!([udp, tcp]),
                    json!([tcp, udp]),
                    json!([live_udp, live_tcp]),
                ],
                json!([live_tcp, live_udp]),
            ),
            (
                [json!([udp]), json!([udp]), json!([foreign, live_udp])],
                json!([foreign, live_udp]),
            ),
            (
                [
                    json!([udp, tcp]),
                    json!([udp]),
                    json!([foreign, live_udp, live_tcp]),
                ],
                json!([foreign, live_udp]),
            ),
            (
                [Value::Null, json!([udp, tcp]), json!([live_udp, live_tcp])],
                json!([live_udp, live_tcp]),
            ),
        ];
        for ([original, modified, current], want) in rows {
            let got = applied(
                ("", "Service"),
                [
                    &service(original),
                    &service(modified.clone()),
                    &service(current),
                ],
            );
            assert_eq!(got["spec"]["ports"], want, "{modified}");
        }
    }

    #[test]
    fn lists_within_items_of_lists_are_found() {
        let pod = |ports: Value, image: &str| json!({"spec": {"containers": [{"name": "side", "image": "s"}, {"name": "dns", "image": image, "ports": ports}]}});
        let (udp, tcp) = (
            json!({"containerPort": 53, "protocol": "UDP"}),
            json!({"containerPort": 53, "protocol": "TCP"}),
        );
        for (image, before) in [("a", "a"), ("b", "a")] {
            let both = pod(json!([udp, tcp]), image);
            assert_eq!(
                applied(
                    ("", "Pod"),
                    [
                        &pod(json!([udp]), before),
                        &both,
                        &pod(json!([udp]), before)
                    ]
                ),
                both
            );
            let one = pod(json!([tcp]), image);
            assert_eq!(
                applied(
                    ("", "Pod"),
                    [
                        &pod(json!([udp, tcp]), before),
                        &one,
                        &pod(json!([udp, tcp]), before)
                    ]
                ),
                one
            );
        }
    }

    /// Items that no key distinguishes are matched by index.
    #[test]
    fn items_that_are_there_twice_keep_their_number() {
        let pod = |env: Value| json!({"spec": {"containers": [{"name": "c", "env": env}]}});
        let (a, b, c) = (
            json!({"name": "A", "value": "1"}),
            json!({"name": "A", "value": "2"}),
            json!({"name": "A", "value": "3"}),
        );
        let twice = pod(json!([a, b]));
        for (original, modified, current) in [
            (pod(json!([a])), twice.clone(), pod(json!([a]))),
            (twice.clone(), twice.clone(), pod(json!([b]))),
            (twice.clone(), twice.clone(), twice.clone()),
            (twice.clone(), pod(json!([b])), twice.clone()),
            (twice.clone(), pod(json!([a, c])), twice.clone()),
        ] {
            assert_eq!(
                applied(("", "Pod"), [&original, &modified, &current]),
                modified,
                "{original} {current}"
            );
        }
    }

    #[test]
    fn other_patches_stay_as_they_are() {
        let ty = builtin()
            .type_for(&Gvk::new("", "v1", "Service"))
            .expect("a built-in kind");
        let service =
            |ports: Value| json!({"metadata": {"labels": {"a": "b"}}, "spec": {"ports": ports}});
        let original = service(json!([{"port": 80}]));
        let modified = service(json!([{"port": 80, "name": "web"}, {"port": 81}]));
        let current = service(json!([{"port": 80, "protocol": "TCP"}]));
        let patch =
            three_way::create(&original, &modified, &current, Some(ty), true).expect("a patch");
        let mut completed = patch.clone();
        complete(&mut completed, &original, &modified, &current, ty).expect("a patch");
        assert_eq!(completed, patch);
    }
}
