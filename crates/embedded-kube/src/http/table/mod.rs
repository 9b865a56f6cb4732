//! Tables: what `kubectl get` prints. Main function: [`table`]. It formats, and knows no HTTP.

mod age;
pub mod cells;
mod columns;
mod custom;
mod kinds;
mod pod;

use crate::catalog::Resource;
use crate::registry::Stored;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// What a row carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub fn from_query(word: Option<&str>) -> Self {
        match word {
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// A `Table` of objects. `meta` is its list metadata.
pub fn table(resource: &Resource, items: &[Arc<Stored>], meta: Value, include: Include, now: Timestamp) -> Value {
    let definitions = definitions(resource);
    let rows: Vec<Value> = items
        .iter()
        .map(|stored| {
            let mut object = (*stored.object()).clone();
            crate::registry::convert::from_storage(resource, &mut object);
            let cells = cells_of(resource, &object, now);
            match include {
                Include::None => json!({"cells": cells, "object": null}),
                Include::Metadata => json!({"cells": cells, "object": super::object::metadata_only(&object)}),
                Include::Object => json!({"cells": cells, "object": object.into_value()}),
            }
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": definitions, "rows": rows})
}

/// A bookmark of a watch of tables: the object is in a row without cells.
pub fn bookmark(metadata: &Value) -> Value {
    let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "columnDefinitions": null, "rows": [{"cells": [], "object": object}],
    })
}

fn definition(name: &str, kind: &str, format: &str, priority: i64, description: &str) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn definitions(resource: &Resource) -> Vec<Value> {
    if let Some(custom) = &resource.custom {
        return custom::definitions(custom);
    }
    let one = |spec: &str| {
        let (priority, rest) = spec.strip_prefix('*').map_or((0, spec), |rest| (1, rest));
        let (name, kind) = rest.split_once(':').unwrap_or((rest, "string"));
        definition(name, kind, if name == "Name" && priority == 0 { "name" } else { "" }, priority, name)
    };
    columns::of(&resource.table).split(',').map(one).collect()
}

fn cells_of(resource: &Resource, object: &Object, now: Timestamp) -> Vec<Value> {
    match &resource.custom {
        Some(custom) => custom::cells(custom, object, now),
        None => kinds::cells(&resource.table, object, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_as_many_cells_as_there_are_columns() {
        let now = Timestamp::UNIX_EPOCH;
        for resource in crate::catalog::Catalog::with_definitions(&[]).order.iter() {
            let object = Object::skeleton(&resource.gvk(), "ns", "x");
            let (columns, cells) = (definitions(resource), cells_of(resource, &object, now));
            assert_eq!(columns.len(), cells.len(), "{}", resource.table);
        }
    }
}
