//! kubectl's JSONPath templates, as `-o jsonpath` prints objects with them. Main type:
//! [`JsonPath`].
//!
//! The maps of an object have no order in kubectl; here `*` and `..` go through them by key.

mod compare;
mod parse;

use parse::{Filter, Node, Slice, parse};
use serde_json::Value;
use std::borrow::Cow;
use tiphys_gocompat::{json, text};

/// A parsed template.
pub struct JsonPath {
    nodes: Vec<Node>,
    /// A field that is not there is nothing, not an error.
    allow_missing: bool,
    /// Every result is printed as JSON.
    as_json: bool,
}

type Found<'a> = Cow<'a, Value>;

impl JsonPath {
    pub fn parse(template: &str) -> Result<Self, String> {
        Ok(Self {
            nodes: parse(template)?,
            allow_missing: true,
            as_json: false,
        })
    }

    pub fn allow_missing_keys(self, allow: bool) -> Self {
        Self {
            allow_missing: allow,
            ..self
        }
    }

    pub fn with_json_output(self, as_json: bool) -> Self {
        Self { as_json, ..self }
    }

    /// The text for an object.
    pub fn print(&self, object: &Value) -> Result<String, String> {
        let mut run = Run {
            path: self,
            begins: false,
            open: 0,
            ends: false,
            last_end: 0,
        };
        let groups = run.groups(0, vec![Cow::Borrowed(object)])?;
        Ok(groups.iter().map(|group| self.shown(group)).collect())
    }

    fn shown(&self, group: &[Found<'_>]) -> String {
        if self.as_json {
            let all = group.iter().map(|v| v.as_ref().clone()).collect();
            return json::to_string_pretty(&Value::Array(all), "    ") + "\n";
        }
        let texts: Vec<String> = group.iter().map(|value| plain(value)).collect();
        texts.join(" ")
    }
}

/// As Go prints a value; maps and lists as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => text::float(float),
            _ => number.to_string(),
        },
        other => json::to_string(other),
    }
}

/// One execution.
struct Run<'p> {
    path: &'p JsonPath,
    /// `range` was just read.
    begins: bool,
    /// How many ranges are open.
    open: usize,
    /// `end` was just read.
    ends: bool,
    /// The part of the template after which the range that ended last goes on.
    last_end: usize,
}

impl Run<'_> {
    /// The results of each part of the template from one on, up to the end of its range.
    fn groups<'a>(
        &mut self,
        from: usize,
        start: Vec<Found<'a>>,
    ) -> Result<Vec<Vec<Found<'a>>>, String> {
        let path = self.path;
        let mut all = Vec::new();
        let mut at = from;
        while let Some(node) = path.nodes.get(at) {
            let results = self.walk(start.clone(), node)?;
            if std::mem::take(&mut self.ends) {
                self.last_end = at;
                break;
            }
            if std::mem::take(&mut self.begins) {
                self.open += 1;
                self.last_end = at;
                if results.is_empty() {
                    // What is in the range is read without being printed, to find its end.
                    self.groups(at + 1, Vec::new())?;
                }
                for value in results {
                    all.extend(self.groups(at + 1, vec![value])?);
                }
                self.open -= 1;
                at = self.last_end.max(at) + 1;
                continue;
            }
            all.push(results);
            at += 1;
        }
        Ok(all)
    }

    fn walk<'a>(&mut self, input: Vec<Found<'a>>, node: &Node) -> Result<Vec<Found<'a>>, String> {
        let each = |value: Value| Ok(vec![Cow::Owned(value); input.len()]);
        match node {
            Node::List(steps) => self.steps(input, steps),
            Node::Text(text) => Ok(vec![Cow::Owned(text.as_str().into())]),
            Node::Int(number) => each((*number).into()),
            Node::Float(number) => each((*number).into()),
            Node::Bool(truth) => each((*truth).into()),
            Node::Field(name) => self.field(&input, name),
            Node::Wildcard => Ok(input.iter().flat_map(children).collect()),
            Node::Recursive => {
                let mut all = Vec::new();
                input.iter().for_each(|value| descend(value, &mut all));
                Ok(all)
            }
            Node::Slice(slice) => {
                let mut all = Vec::new();
                for value in &input {
                    elements(value, slice, &mut all)?;
                }
                Ok(all)
            }
            Node::Union(parts) => {
                let mut all = Vec::new();
                for steps in parts {
                    all.extend(self.steps(input.clone(), steps)?);
                }
                Ok(all)
            }
            Node::Filter(filter) => self.filter(&input, filter),
            Node::Word(word) => match word.as_str() {
                "range" => {
                    self.begins = true;
                    Ok(input)
                }
                "end" if self.open > 0 => {
                    self.ends = true;
                    Ok(Vec::new())
                }
                "end" => Err("not in range, nothing to end".to_owned()),
                other => Err(format!("unrecognized identifier {other}")),
            },
        }
    }

    fn steps<'a>(
        &mut self,
        mut input: Vec<Found<'a>>,
        steps: &[Node],
    ) -> Result<Vec<Found<'a>>, String> {
        for step in steps {
            input = self.walk(input, step)?;
        }
        Ok(input)
    }

    fn field<'a>(&self, input: &[Found<'a>], name: &str) -> Result<Vec<Found<'a>>, String> {
        let found: Vec<Found<'a>> = input
            .iter()
            .filter_map(|value| member(value, name))
            .collect();
        if found.is_empty() && !input.is_empty() && !self.path.allow_missing {
            return Err(format!("{name} is not found"));
        }
        Ok(found)
    }

    fn filter<'a>(
        &mut self,
        input: &[Found<'a>],
        filter: &Filter,
    ) -> Result<Vec<Found<'a>>, String> {
        let mut kept = Vec::new();
        for value in input {
            if !value.is_array() {
                return Err(format!(
                    "{} is not array or slice and cannot be filtered",
                    plain(value)
                ));
            }
            for element in children(value) {
                let left = self.steps(vec![element.clone()], &filter.left);
                let Some((operator, right)) = &filter.comparison else {
                    // What fails is not there.
                    if left.is_ok_and(|found| !found.is_empty()) {
                        kept.push(element);
                    }
                    continue;
                };
                let left = single(left?)?;
                let right = match left {
                    None => None,
                    Some(_) => single(self.steps(vec![element.clone()], right)?)?,
                };
                if let (Some(left), Some(right)) = (left, right)
                    && compare::holds(&left, operator, &right)?
                {
                    kept.push(element);
                }
            }
        }
        Ok(kept)
    }
}

fn single(found: Vec<Found<'_>>) -> Result<Option<Found<'_>>, String> {
    if found.len() > 1 {
        return Err("can only compare one element at a time".to_owned());
    }
    Ok(found.into_iter().next())
}

fn member<'a>(value: &Found<'a>, name: &str) -> Option<Found<'a>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

/// The elements of a list, the values of a map, the bytes of a text.
fn children<'a>(value: &Found<'a>) -> Vec<Found<'a>> {
    match value {
        Cow::Borrowed(Value::Array(list)) => list.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(list)) => list.iter().cloned().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(map)) => map.values().cloned().map(Cow::Owned).collect(),
        Cow::Borrowed(Value::String(text)) | Cow::Owned(Value::String(text)) => {
            text.bytes().map(|byte| Cow::Owned(byte.into())).collect()
        }
        Cow::Borrowed(_) | Cow::Owned(_) => Vec::new(),
    }
}

/// A value that has something in it, and below it all that do.
fn descend<'a>(value: &Found<'a>, all: &mut Vec<Found<'a>>) {
    if value.is_string() {
        if value.as_str().is_some_and(|text| !text.is_empty()) {
            all.push(value.clone());
        }
        return;
    }
    let below = children(value);
    if !below.is_empty() {
        all.push(value.clone());
        below.iter().for_each(|child| descend(child, all));
    }
}

fn elements<'a>(value: &Found<'a>, slice: &Slice, all: &mut Vec<Found<'a>>) -> Result<(), String> {
    let list = match value.as_ref() {
        Value::Null => return Ok(()),
        Value::Array(_) => children(value),
        other => return Err(format!("{} is not array or slice", go_type(other))),
    };
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let mut start = slice.start.unwrap_or(0);
    if start < 0 {
        start += length;
    }
    let mut end = slice.end.unwrap_or(length);
    if end < 0 || (end == 0 && slice.derived) {
        end += length;
    }
    if start == end {
        return Ok(());
    }
    let outside = |index: i64| {
        Err(format!(
            "array index out of bounds: index {index}, length {length}"
        ))
    };
    if start < 0 || start >= length {
        return outside(start);
    }
    if end < 0 || end > length {
        return outside(end - 1);
    }
    if start > end {
        return Err(format!(
            "starting index {start} is greater than ending index {end}"
        ));
    }
    let step = slice.step.unwrap_or(1);
    if step <= 0 {
        return Err("step must be > 0".to_owned());
    }
    let whole = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let part = list.into_iter().take(whole(end)).skip(whole(start));
    all.extend(part.step_by(whole(step)));
    Ok(())
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object() -> Value {
        json!({
            "kind": "List",
            "items": [
                {"metadata": {"name": "a", "labels": {"x.y/z": "1"}}, "n": 1, "on": true},
                {"metadata": {"name": "b"}, "n": 2, "ports": [80, 81, 82]},
                {"metadata": {"name": "c"}, "n": 3, "half": 0.5, "none": null},
            ],
        })
    }

    fn printed(template: &str) -> Result<String, String> {
        JsonPath::parse(template)?.print(&object())
    }

    #[test]
    fn what_is_selected_is_printed() {
        for (template, expected) in [
            ("plain", "plain"),
            ("{.kind}", "List"),
            ("kind: {.kind}{\"\\n\"}", "kind: List\n"),
            ("{$.kind}-{@.kind}", "List-List"),
            ("{.items[*].metadata.name}", "a b c"),
            ("{.items..name}", "a b c"),
            (
                "{.items[0].metadata}",
                r#"{"labels":{"x.y/z":"1"},"name":"a"}"#,
            ),
            (r"{.items[0].metadata.labels.x\.y/z}", "1"),
            (r"{.items[0].metadata.labels['x\.y/z']}", "1"),
            ("{.items[-1].metadata.name}", "c"),
            ("{.items[-2:].metadata.name}", "b c"),
            ("{.items[0:3:2].metadata.name}", "a c"),
            ("{.items[0,2].metadata.name}", "a c"),
            ("{.items[1].ports[1:]}", "81 82"),
            ("{.items[1:1]}", ""),
            ("{.items[?(@.n>1)].metadata.name}", "b c"),
            ("{.items[?(@.on==true)].metadata.name}", "a"),
            ("{.items[?(@.metadata.name==\"b\")].n}", "2"),
            ("{.items[?(@.metadata.name!='b')].n}", "1 3"),
            ("{.items[?(@.ports)].n}", "2"),
            ("{.items[2].half} {.items[2].none} {.missing}", "0.5 null "),
            (
                "{range .items[*]}{.metadata.name}={.n};{end}.",
                "a=1;b=2;c=3;.",
            ),
            (
                "{range .items[*]}{.n}:{range .ports[*]}[{@}]{end};{end}",
                "1:;2:[80][81][82];3:;",
            ),
            ("{range .missing[*]}{.n}{end}after", "after"),
            ("{range .items[0:2]}{.n}", "12"),
        ] {
            assert_eq!(printed(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn json_is_printed_for_each_part() {
        let path = JsonPath::parse("{.items[1].ports[0:2]}{.kind}")
            .expect("a template")
            .with_json_output(true);
        assert_eq!(
            path.print(&object()).as_deref(),
            Ok("[\n    80,\n    81\n]\n[\n    \"List\"\n]\n")
        );
    }

    #[test]
    fn what_cannot_be_selected_is_an_error() {
        for (template, expected) in [
            (
                "{.items[3]}",
                "array index out of bounds: index 3, length 3",
            ),
            (
                "{.items[0:4]}",
                "array index out of bounds: index 3, length 3",
            ),
            (
                "{.items[2:1]}",
                "starting index 2 is greater than ending index 1",
            ),
            ("{.items[0:2:0]}", "step must be > 0"),
            ("{.kind[0]}", "string is not array or slice"),
            (
                "{.kind[?(@.a)]}",
                "List is not array or slice and cannot be filtered",
            ),
            (
                "{.items[?(@.n==\"1\")]}",
                "incompatible types for comparison",
            ),
            ("{.items[?(@.metadata==1)]}", "invalid type for comparison"),
            (
                "{.items[?(@..name==1)]}",
                "incompatible types for comparison",
            ),
            ("{end}", "not in range, nothing to end"),
            ("{other}", "unrecognized identifier other"),
        ] {
            assert_eq!(printed(template), Err(expected.to_owned()), "{template}");
        }
        let strict = JsonPath::parse("{.missing.more}")
            .expect("a template")
            .allow_missing_keys(false);
        assert_eq!(
            strict.print(&object()),
            Err("missing is not found".to_owned())
        );
    }
}
