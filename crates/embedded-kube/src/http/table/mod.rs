//! Tables: the output of `kubectl get`. Main function: [`table`]. It only formats and knows no
//! HTTP.

mod age;
mod autoscaler;
pub mod cells;
mod cluster;
mod columns;
mod custom;
mod kinds;
mod pod;
mod storage;

use crate::base::Stored;
use crate::catalog::Resource;
use crate::convert;
use crate::status::Status;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// The key of the columns of a Scale, which is not stored.
pub const SCALES: &str = "autoscaling/scales";

/// The part of the object that a row includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub fn from_query(word: Option<&str>) -> Result<Self, Status> {
        match word {
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            None | Some("Metadata") => Ok(Self::Metadata),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// A `Table` of objects. `meta` is its list metadata.
pub fn table(
    resource: &Resource,
    items: &[Arc<Stored>],
    meta: Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = items
        .iter()
        .map(|stored| row(resource, &stored.object(), include, now))
        .collect();
    // The rows of kinds without their own columns are appended one by one in Go, so the field is
    // null if there are no objects.
    let plain = resource.custom.is_none() && columns::of(&resource.table).ends_with(":date");
    let rows = if plain && rows.is_empty() {
        Value::Null
    } else {
        rows.into()
    };
    with_rows(resource, meta, rows)
}

/// A `Table` of one object that is not stored.
pub fn of_object(
    resource: &Resource,
    object: &Object,
    meta: Value,
    include: Include,
    now: Timestamp,
) -> Value {
    with_rows(
        resource,
        meta,
        vec![row(resource, object, include, now)].into(),
    )
}

fn with_rows(resource: &Resource, meta: Value, rows: Value) -> Value {
    let definitions = definitions(resource);
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": definitions, "rows": rows})
}

fn row(resource: &Resource, stored: &Object, include: Include, now: Timestamp) -> Value {
    let converted = || {
        let mut object = stored.clone();
        convert::from_storage(resource, &mut object);
        object
    };
    // All versions of a built-in kind have the same cells.
    let cells = match &resource.custom {
        Some(custom) => custom::cells(custom, &converted(), now),
        None => kinds::cells(&resource.table, stored, now),
    };
    let object = match include {
        Include::None => Value::Null,
        Include::Metadata => super::object::metadata_only(resource, stored),
        Include::Object => converted().into_value(),
    };
    let mut row = json!({"cells": cells, "object": object});
    if let Some(conditions) = (resource.table == "/pods")
        .then(|| pod::conditions(stored))
        .flatten()
    {
        row["conditions"] = conditions;
    }
    row
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
        // Attachers are marked as names, too; the documentation does not mention handlers.
        let format = if matches!(name, "Name" | "Attacher") && resource.table != SCALES {
            "name"
        } else {
            ""
        };
        definition(
            name,
            kind,
            format,
            priority,
            if name == "Handler" { "" } else { name },
        )
    };
    columns::of(&resource.table).split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_as_many_cells_as_there_are_columns() {
        let now = Timestamp::UNIX_EPOCH;
        for resource in crate::catalog::Catalog::with_definitions(&[]).order.iter() {
            let object = Object::skeleton(&resource.gvk(), "ns", "x");
            let (columns, cells) = (
                definitions(resource),
                kinds::cells(&resource.table, &object, now),
            );
            let without_column = usize::from(resource.is("networking.k8s.io", "ipaddresses"));
            assert_eq!(
                columns.len() + without_column,
                cells.len(),
                "{}",
                resource.table
            );
        }
    }
}
