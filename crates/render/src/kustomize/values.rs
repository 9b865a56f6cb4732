//! Converts nodes to JSON values and back, as kustomize does by way of YAML text.
//!
//! Main functions: [`Tree::json`] and [`Tree::from_json`]. A scalar has the meaning that it would
//! have if it were printed and parsed again.

use super::fault::{Res, fail};
use super::tree::{DEEPEST, Id, Kind, Node, Tag, Tree, too_deep};
use serde_json::{Map, Number, Value};
use tiphys_gocompat::yaml::{
    self,
    tree::{Plain, Style, refolded, resolve_v3, style_v3},
};

impl Tree {
    /// A document as JSON.
    pub fn json(&self, id: Id) -> Res<Value> {
        if !matches!(self.kind(id), Kind::Map | Kind::List) && !self.is_null(id) {
            return fail!(
                "yaml: unmarshal errors:\n  line 1: cannot unmarshal {} into map[string]interface {{}}",
                self.at(id).tag.name()
            );
        }
        self.json_at(id, 0, true)
    }

    /// Any value as JSON.
    pub fn json_value(&self, id: Id) -> Res<Value> {
        self.json_at(id, 0, false)
    }

    fn json_at(&self, id: Id, depth: usize, root: bool) -> Res<Value> {
        if depth > DEEPEST {
            return Err(too_deep());
        }
        self.clock.spend(1)?;
        let node = self.at(id);
        match node.kind {
            Kind::None => Ok(Value::Null),
            Kind::Scalar => self.scalar_json(node),
            Kind::List => {
                let items = node
                    .content
                    .iter()
                    .map(|item| self.json_at(*item, depth + 1, false));
                Ok(Value::Array(items.collect::<Res<_>>()?))
            }
            Kind::Map => {
                let mut map = Map::new();
                for (key, value) in self.entries(id) {
                    let name = self.key(key, root)?;
                    if map.contains_key(&name) {
                        return fail!(
                            "yaml: unmarshal errors:\n  mapping key {name:?} already defined"
                        );
                    }
                    map.insert(name, self.json_at(value, depth + 1, false)?);
                }
                Ok(Value::Object(map))
            }
        }
    }

    /// Only the keys of the root map may be other than strings.
    fn key(&self, id: Id, root: bool) -> Res<String> {
        let node = self.at(id);
        if node.kind != Kind::Scalar {
            return fail!("yaml: invalid map key: {}", self.shown(id).trim_end());
        }
        if root || self.meaning(node)? == Plain::Text {
            return Ok(node.text.clone());
        }
        fail!("json: unsupported type: map[interface {{}}]interface {{}}")
    }

    fn scalar_json(&self, node: &Node) -> Res<Value> {
        Ok(match self.meaning(node)? {
            Plain::Null => Value::Null,
            Plain::Bool(value) => value.into(),
            Plain::Int(value) => value.into(),
            Plain::Uint(value) => value.into(),
            Plain::Float(value) => match Number::from_f64(value) {
                Some(number) => Value::Number(number),
                None => return fail!("json: unsupported value: {}", unsupported(value)),
            },
            Plain::Time(text) => Value::String(text),
            Plain::Text if node.tag == Tag::Other("!!binary".into()) => {
                Value::String(decoded(&node.text)?)
            }
            Plain::Text if node.style == Style::Folded => Value::String(refolded(&node.text)),
            Plain::Text => Value::String(node.text.clone()),
        })
    }

    /// The value of a scalar, considering its tag.
    fn meaning(&self, node: &Node) -> Res<Plain> {
        let quoted = node.style != Style::Plain;
        match &node.tag {
            Tag::Str => return Ok(Plain::Text),
            Tag::Open if quoted || node.text.contains('\n') => return Ok(Plain::Text),
            Tag::Open => return Ok(resolve_v3(&node.text)),
            Tag::Merge if node.text == "<<" => return Ok(Plain::Text),
            Tag::Other(name) if !name.starts_with("!!") => return Ok(Plain::Text),
            Tag::Other(name) if **name == *"!!binary" => return Ok(Plain::Text),
            _ => {}
        }
        let found = resolve_v3(&node.text);
        match (found, node.tag.name()) {
            // A value can get the quotes of the one it replaces. Printed in them, without the tag
            // that nobody wrote, it is a text.
            (found, tag) if found.tag() == tag && quoted && !node.tagged => Ok(Plain::Text),
            (found, tag) if found.tag() == tag => Ok(found),
            #[allow(clippy::cast_precision_loss)] // as Go does it
            (Plain::Int(value), "!!float") => Ok(Plain::Float(value as f64)),
            #[allow(clippy::cast_precision_loss)]
            (Plain::Uint(value), "!!float") => Ok(Plain::Float(value as f64)),
            (found, tag) => fail!(
                "yaml: cannot decode {} `{}` as a {tag}",
                found.tag(),
                node.text
            ),
        }
    }

    /// The node formatted for messages.
    pub fn shown(&self, id: Id) -> String {
        match self.json_value(id) {
            Ok(value) => yaml::to_string_v3(&(&value).into()),
            Err(_) => self.text(id).to_owned(),
        }
    }

    /// Creates nodes from JSON, with numbers formatted as Go prints floats.
    pub fn add_json(&mut self, value: &Value) -> Id {
        self.make(value, &|number| match number.as_f64() {
            Some(float) => yaml::shortest_float(float),
            None => number.to_string(),
        })
    }

    fn make(&mut self, value: &Value, number: &dyn Fn(&Number) -> String) -> Id {
        let node = match value {
            Value::Null => Node::scalar("null", Tag::Null),
            Value::Bool(value) => Node::scalar(value.to_string(), Tag::Bool),
            Value::Number(value) => {
                let text = number(value);
                let tag = match resolve_v3(&text) {
                    Plain::Float(_) => Tag::Float,
                    _ => Tag::Int,
                };
                Node::scalar(text, tag)
            }
            Value::String(text) => Node {
                style: style_v3(text),
                ..Node::scalar(text, Tag::Str)
            },
            Value::Array(items) => {
                let mut list = Node::new(Kind::List);
                list.tag = Tag::List;
                list.content = items.iter().map(|item| self.make(item, number)).collect();
                list
            }
            Value::Object(entries) => {
                let mut map = Node::new(Kind::Map);
                map.tag = Tag::Map;
                for (key, value) in entries {
                    let mut name = Node::scalar(key, Tag::Str);
                    name.style = style_v3(key);
                    let entry = [self.add(name), self.make(value, number)];
                    map.content.extend(entry);
                }
                map
            }
        };
        self.add(node)
    }
}

fn unsupported(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

fn decoded(text: &str) -> Res<String> {
    use base64::Engine as _;
    let text: String = text.split_whitespace().collect();
    match base64::engine::general_purpose::STANDARD.decode(text) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => fail!("yaml: !!binary value contains invalid base64 data"),
    }
}
