//! Estimates how much work a schema validation takes before running it: references and combinations
//! can multiply exponentially.
//!
//! Main function: [`affordable`].

use serde_json::Value;
use std::collections::HashMap;

/// Longest chain of nested schemas, references included.
const MAX_DEPTH: usize = 400;

/// Whether the values can be validated with at most `limit` schema evaluations.
pub(super) fn affordable(schema: &Value, values: &Value, limit: usize) -> bool {
    let mut count = Count {
        root: schema,
        seen: HashMap::new(),
        limit: limit as u64,
        over: false,
    };
    count.looks(schema, values, 0) <= limit as u64 && !count.over
}

struct Count<'a> {
    root: &'a Value,
    /// Costs by the addresses of a schema and a value. Zero while the cost is being computed,
    /// because a reference to itself is followed once.
    seen: HashMap<(*const Value, *const Value), u64>,
    limit: u64,
    over: bool,
}

impl<'a> Count<'a> {
    fn looks(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> u64 {
        let key = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.seen.get(&key) {
            return *known;
        }
        self.over |= depth > MAX_DEPTH || self.seen.len() as u64 >= self.limit;
        if self.over {
            return self.limit;
        }
        self.seen.insert(key, 0);
        let mut total: u64 = 1;
        for (keyword, inner) in schema.as_object().into_iter().flatten() {
            total = total.saturating_add(self.keyword(keyword, inner, value, depth + 1));
        }
        if schema
            .get("unevaluatedProperties")
            .or_else(|| schema.get("unevaluatedItems"))
            .is_some()
        {
            total = total.saturating_mul(2);
        }
        self.seen.insert(key, total);
        total
    }

    fn keyword(&mut self, keyword: &str, inner: &'a Value, value: &'a Value, depth: usize) -> u64 {
        let schemas: Vec<&'a Value> = match (keyword, inner) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(text)) => {
                vec![self.target(text)]
            }
            ("allOf" | "anyOf" | "oneOf" | "items" | "prefixItems", Value::Array(list)) => {
                list.iter().collect()
            }
            ("properties", Value::Object(map)) => {
                let pairs = map
                    .iter()
                    .filter_map(|(name, schema)| Some((schema, value.get(name)?)));
                return pairs.fold(0, |sum: u64, (schema, value)| {
                    sum.saturating_add(self.looks(schema, value, depth))
                });
            }
            ("dependentSchemas" | "dependencies" | "patternProperties", Value::Object(map)) => {
                map.values().collect()
            }
            _ => vec![inner],
        };
        let here = matches!(
            keyword,
            "$ref"
                | "$dynamicRef"
                | "$recursiveRef"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "then"
                | "else"
                | "dependentSchemas"
                | "dependencies"
        );
        let below = matches!(
            keyword,
            "items"
                | "prefixItems"
                | "additionalItems"
                | "contains"
                | "unevaluatedItems"
                | "patternProperties"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
        );
        let values: Vec<&'a Value> = match value {
            _ if here => vec![value],
            Value::Array(list) if below => list.iter().collect(),
            Value::Object(map) if below => map.values().collect(),
            _ => Vec::new(),
        };
        let mut total: u64 = 0;
        for schema in schemas {
            for value in &values {
                total = total.saturating_add(self.looks(schema, value, depth));
            }
        }
        total
    }

    /// The target of a reference. If it is not found, the whole schema.
    fn target(&self, text: &str) -> &'a Value {
        let pointer = text.split_once('#').map_or("", |(_, pointer)| pointer);
        self.root.pointer(pointer).unwrap_or(self.root)
    }
}
