//! `metadata.managedFields`: reading, writing, order, and the limit on the number of updaters.
//!
//! Main type: [`Managers`].

use super::fieldset::FieldSet;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_gocompat::json::quote;

/// Further updaters are merged into one.
const MAX_UPDATERS: usize = 10;
/// The manager of merged updaters.
const OLD_UPDATERS: &str = "ancient-changes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What identifies a manager: an applier is the same in every version, an updater is not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub manager: String,
    pub operation: Operation,
    /// Empty for appliers.
    pub api_version: String,
    pub subresource: String,
}

impl Identity {
    pub(super) fn new(
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = if operation == Operation::Apply {
            ""
        } else {
            api_version
        };
        let manager = if manager.is_empty() {
            "unknown"
        } else {
            manager
        };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Sorts managers with equal times: their identity as JSON text, in which one with a
    /// subresource comes before one without.
    pub(super) fn sort_key(&self) -> String {
        let part = |name: &str, text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                format!(",{name:?}:{}", quote(text))
            }
        };
        let (version, subresource) = (
            part("apiVersion", &self.api_version),
            part("subresource", &self.subresource),
        );
        format!(
            "{}{}{version}{subresource}}}",
            part("manager", &self.manager),
            part("operation", self.operation.as_str())
        )
    }

    /// The manager of a managedFields entry; None if the entry has no operation.
    fn of(entry: &Value) -> Option<Self> {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or("");
        let operation = [Operation::Apply, Operation::Update]
            .into_iter()
            .find(|o| o.as_str() == text("operation"))?;
        Some(Self {
            manager: text("manager").to_owned(),
            ..Self::new("", operation, text("apiVersion"), text("subresource"))
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub fields: FieldSet,
    /// The version of the paths.
    pub api_version: String,
    pub time: Option<String>,
}

/// The managers and the fields that they own.
pub(super) type Managers = BTreeMap<Identity, Owned>;

/// Whether Go can decode this list as managedFields, so that the client counts as having sent some.
pub(super) fn are_readable(managed_fields: Option<&Value>) -> bool {
    let texts = [
        "manager",
        "operation",
        "apiVersion",
        "time",
        "fieldsType",
        "subresource",
    ];
    let fits = |value: Option<&Value>| value.is_none_or(|v| v.is_string() || v.is_null());
    let readable =
        |entry: &Value| entry.is_object() && texts.iter().all(|field| fits(entry.get(field)));
    managed_fields
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().all(readable))
}

/// Parses managedFields; the error names the entry.
pub(super) fn read(managed_fields: Option<&Value>) -> Result<Managers, String> {
    let mut managers = Managers::new();
    let list = match managed_fields {
        None | Some(Value::Null) => return Ok(managers),
        Some(Value::Array(list)) => list,
        Some(_) => return Err("metadata.managedFields must be a list".into()),
    };
    for (i, entry) in list.iter().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or("");
        let identity = Identity::of(entry).ok_or("operation must be `Apply` or `Update`")?;
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".into());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
            other => {
                return Err(format!(
                    "invalid fieldsType {other:?} in managed fields entry {i}"
                ));
            }
        }
        let fields = FieldSet::from_json(entry.get("fieldsV1").unwrap_or(&Value::Null))
            .map_err(|e| format!("managed fields entry {i}: {e}"))?;
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        managers.insert(
            identity,
            Owned {
                fields,
                api_version: text("apiVersion").to_owned(),
                time,
            },
        );
    }
    Ok(managers)
}

/// The list as the API server writes it: appliers first, then by time, manager, version and
/// subresource. None if empty.
pub(super) fn write(managers: Managers) -> Option<Value> {
    let mut all: Vec<(Identity, Owned)> = managers
        .into_iter()
        .filter(|(_, owned)| !owned.fields.is_empty())
        .collect();
    all.sort_by(|(a, ao), (b, bo)| {
        let of = |i: &'_ Identity, o: &'_ Owned| {
            (
                i.operation,
                o.time.clone(),
                i.manager.clone(),
                o.api_version.clone(),
                i.subresource.clone(),
            )
        };
        of(a, ao).cmp(&of(b, bo))
    });
    let entry = |(identity, owned): (Identity, Owned)| {
        let mut entry = Map::new();
        if !identity.manager.is_empty() {
            entry.insert("manager".into(), identity.manager.into());
        }
        entry.insert("operation".into(), identity.operation.as_str().into());
        entry.insert("apiVersion".into(), owned.api_version.into());
        if let Some(time) = owned.time {
            entry.insert("time".into(), time.into());
        }
        entry.insert("fieldsType".into(), json!("FieldsV1"));
        entry.insert("fieldsV1".into(), owned.fields.to_json());
        if !identity.subresource.is_empty() {
            entry.insert("subresource".into(), identity.subresource.into());
        }
        Value::Object(entry)
    };
    (!all.is_empty()).then(|| Value::Array(all.into_iter().map(entry).collect()))
}

/// Whether a write reduces the number of entries although it changes nothing else: of two entries
/// of one manager, as a write of the Scale subresource creates them, only the last is kept, and
/// excess updaters are merged.
pub(super) fn are_too_many(managed_fields: &[Value]) -> bool {
    let identities: BTreeSet<Identity> = managed_fields.iter().filter_map(Identity::of).collect();
    let updaters = identities
        .iter()
        .filter(|i| i.operation == Operation::Update)
        .count();
    identities.len() < managed_fields.len() || updaters > MAX_UPDATERS
}

/// Merges the oldest updaters of a version into one until the limit is met.
pub(super) fn cap_updaters(managers: &mut Managers) {
    let mut updaters: Vec<Identity> = managers
        .keys()
        .filter(|i| i.operation == Operation::Update)
        .cloned()
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort_by_cached_key(|identity| (managers[identity].time.clone(), identity.sort_key()));
    let mut first_of_version: BTreeMap<String, Identity> = BTreeMap::new();
    for identity in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let version = identity.api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, identity);
            continue;
        };
        let bucket = Identity::new(OLD_UPDATERS, Operation::Update, &version, "");
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(first)
        {
            managers.insert(bucket.clone(), owned);
        }
        // As in the API server, the merged entry itself is lost if another one of its version is
        // older.
        let Some(owned) = managers.remove(&identity) else {
            continue;
        };
        count -= 1;
        if let Some(all) = managers.get_mut(&bucket) {
            all.fields.extend(owned.fields);
            all.time = owned.time;
        }
    }
}
