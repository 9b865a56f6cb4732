//! Helm's rules for merging values, on tables that are shared as Go's maps are: a write through one
//! reference is visible through the other, so globals of a subchart can reach its parent.
//!
//! Main type: [`Coalescing`].

use crate::helm::chart::Chart;
use crate::helm::{HelmError, Limits};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tiphys_gocompat::text::{float, quote};

/// Deepest nesting; only values that are imported into themselves reach it.
const MAX_DEPTH: usize = 1000;

#[derive(Clone)]
pub(super) enum Node {
    Table(Table),
    Leaf(Rc<Value>),
}

pub(super) type Table = Rc<RefCell<BTreeMap<String, Node>>>;

impl Node {
    fn is_null(&self) -> bool {
        matches!(self, Self::Leaf(value) if value.is_null())
    }

    pub fn table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            Self::Leaf(_) => None,
        }
    }

    fn null() -> Self {
        Self::Leaf(Rc::new(Value::Null))
    }
}

/// A snapshot of the pairs of a table.
fn pairs(table: &Table) -> Vec<(String, Node)> {
    table
        .borrow()
        .iter()
        .map(|(key, node)| (key.clone(), node.clone()))
        .collect()
}

fn get(table: &Table, key: &str) -> Option<Node> {
    table.borrow().get(key).cloned()
}

pub(super) fn put(table: &Table, key: &str, node: Node) {
    table.borrow_mut().insert(key.to_owned(), node);
}

/// The table at a path of names.
pub(super) fn find(table: &Table, path: &str) -> Result<Table, String> {
    path.split('.').try_fold(table.clone(), |table, name| {
        get(&table, name)
            .and_then(|node| node.table().cloned())
            .ok_or_else(|| format!("{} is not a table", quote(name)))
    })
}

/// The value at a path of names, if it is not a table.
pub(super) fn scalar(table: &Table, path: &str) -> Option<Rc<Value>> {
    let (table, name) = match path.rsplit_once('.') {
        Some((tables, name)) => (find(table, tables).ok()?, name),
        None => (table.clone(), path),
    };
    match get(&table, name)? {
        Node::Leaf(value) => Some(value),
        Node::Table(_) => None,
    }
}

pub(super) struct Coalescing<'a> {
    limits: &'a Limits,
    nodes: usize,
    pub warnings: Vec<String>,
}

impl<'a> Coalescing<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            nodes: limits.nodes,
            warnings: Vec::new(),
        }
    }

    fn spend(&mut self) -> Result<(), HelmError> {
        self.nodes = self
            .nodes
            .checked_sub(1)
            .ok_or_else(|| HelmError::over("putting the values together", self.limits.nodes))?;
        Ok(())
    }

    pub fn copy(&mut self, values: &Map<String, Value>) -> Result<Table, HelmError> {
        let mut table = BTreeMap::new();
        for (key, value) in values {
            self.spend()?;
            let node = match value {
                Value::Object(map) => Node::Table(self.copy(map)?),
                other => Node::Leaf(Rc::new(other.clone())),
            };
            table.insert(key.clone(), node);
        }
        Ok(Rc::new(RefCell::new(table)))
    }

    pub fn plain(&mut self, table: &Table) -> Result<Map<String, Value>, HelmError> {
        self.plain_at(table, 0)
    }

    fn plain_at(&mut self, table: &Table, depth: usize) -> Result<Map<String, Value>, HelmError> {
        self.guard(table, depth)?;
        let mut values = Map::new();
        for (key, node) in pairs(table) {
            self.spend()?;
            let value = match &node {
                Node::Table(table) => Value::Object(self.plain_at(table, depth + 1)?),
                Node::Leaf(value) => value.as_ref().clone(),
            };
            values.insert(key, value);
        }
        Ok(values)
    }

    /// Refuses values that contain themselves, and breaks the cycle so that they can be freed.
    fn guard(&self, table: &Table, depth: usize) -> Result<(), HelmError> {
        if depth > MAX_DEPTH {
            table.borrow_mut().clear();
            return Err(HelmError::over("the depth of the values", MAX_DEPTH));
        }
        Ok(())
    }

    /// Helm's CoalesceValues, or MergeValues, which keeps nulls.
    pub fn chart_values(
        &mut self,
        chart: &Chart,
        user: &Map<String, Value>,
        merge: bool,
    ) -> Result<Table, HelmError> {
        let table = self.copy(user)?;
        self.chart(chart, &table, "", merge)?;
        Ok(table)
    }

    fn chart(
        &mut self,
        chart: &Chart,
        into: &Table,
        prefix: &str,
        merge: bool,
    ) -> Result<(), HelmError> {
        let prefix = joined(prefix, chart.name());
        self.defaults(chart, into, &prefix, merge)?;
        for dependency in &chart.dependencies {
            let name = dependency.name();
            let inner = match get(into, name) {
                Some(Node::Table(table)) => table,
                None => {
                    let table = Table::default();
                    put(into, name, Node::Table(table.clone()));
                    table
                }
                Some(Node::Leaf(value)) => {
                    let shown = match *value {
                        Value::Null => "%!t(<nil>)".to_owned(),
                        _ => as_bool(&value),
                    };
                    return Err(HelmError::chart(format!(
                        "type mismatch on {name}: {shown}"
                    )));
                }
            };
            self.globals(&inner, into, &prefix)?;
            self.chart(dependency, &inner, &prefix, merge)?;
        }
        Ok(())
    }

    /// Adds the defaults of one chart where no value is set.
    fn defaults(
        &mut self,
        chart: &Chart,
        into: &Table,
        prefix: &str,
        merge: bool,
    ) -> Result<(), HelmError> {
        let defaults = self.copy(&chart.values)?;
        for (key, default) in defaults.take() {
            match get(into, &key) {
                Some(node) if node.is_null() && !merge => {
                    into.borrow_mut().remove(&key);
                }
                Some(Node::Leaf(_)) => {}
                Some(Node::Table(own)) => match &default {
                    Node::Leaf(value) if value.is_null() => {}
                    Node::Leaf(_) => self.warnings.push(format!(
                        "warning: skipped value for {prefix}.{key}: Not a table."
                    )),
                    Node::Table(default) => {
                        let merge = merge
                            || chart
                                .dependencies
                                .iter()
                                .any(|dependency| dependency.name() == key);
                        if !merge {
                            drop_nulls(default);
                        }
                        self.tables(&own, default, &joined(prefix, &key), merge, 0)?;
                    }
                },
                None => {
                    if !merge {
                        if default.is_null() {
                            continue;
                        }
                        default.table().into_iter().for_each(drop_nulls);
                    }
                    into.borrow_mut().insert(key, default);
                }
            }
        }
        Ok(())
    }

    fn globals(&mut self, into: &Table, from: &Table, prefix: &str) -> Result<(), HelmError> {
        let mut side = |table: &Table, name: &str| match get(table, "global") {
            None => Some(Table::default()),
            Some(Node::Table(table)) => Some(table),
            Some(Node::Leaf(_)) => {
                self.warnings.push(format!(
                    "warning: skipping globals because {name} global is not a table."
                ));
                None
            }
        };
        let Some(own) = side(into, "destination") else {
            return Ok(());
        };
        let Some(above) = side(from, "source") else {
            return Ok(());
        };
        for (key, node) in pairs(&above) {
            match (&node, get(&own, &key)) {
                (Node::Table(table), None) => put(&own, &key, Node::Table(shallow(table))),
                (Node::Table(table), Some(Node::Table(mine))) => {
                    let copy = shallow(table);
                    self.tables(&copy, &mine, &joined(prefix, &key), true, 0)?;
                    put(&own, &key, Node::Table(copy));
                }
                (Node::Table(_), Some(Node::Leaf(_))) => {
                    self.warnings.push(format!(
                        "Conflict: cannot merge map onto non-map for {}. Skipping.",
                        quote(&key)
                    ));
                }
                (Node::Leaf(_), Some(Node::Table(_))) => {
                    self.warnings.push(format!("key {key} is table. Skipping"))
                }
                (Node::Leaf(_), _) => put(&own, &key, node),
            }
        }
        put(into, "global", Node::Table(own));
        Ok(())
    }

    /// Helm's coalesceTablesFullKey: existing values in `into` win.
    pub fn tables(
        &mut self,
        into: &Table,
        from: &Table,
        prefix: &str,
        merge: bool,
        depth: usize,
    ) -> Result<(), HelmError> {
        self.guard(into, depth)?;
        let set: BTreeSet<String> = pairs(from)
            .into_iter()
            .filter(|(_, node)| !node.is_null())
            .map(|(key, _)| key)
            .collect();
        for (key, _) in pairs(into).into_iter().filter(|(_, node)| node.is_null()) {
            put(from, &key, Node::null());
        }
        for (key, node) in pairs(from) {
            self.spend()?;
            let full = joined(prefix, &key);
            match (get(into, &key), node) {
                (Some(own), _) if !merge && own.is_null() && set.contains(&key) => {
                    into.borrow_mut().remove(&key);
                }
                (None, node) => put(into, &key, node),
                (Some(Node::Table(own)), Node::Table(other)) => {
                    self.tables(&own, &other, &full, merge, depth + 1)?
                }
                (Some(Node::Leaf(_)), Node::Table(other)) => {
                    let shown = self.shown(&Node::Table(other), depth)?;
                    self.warnings.push(format!(
                        "warning: cannot overwrite table with non table for {full} ({shown})"
                    ));
                }
                (Some(Node::Table(_)), node) if !node.is_null() => {
                    let shown = self.shown(&node, depth)?;
                    self.warnings.push(format!("warning: destination for {full} is a table. Ignoring non-table value ({shown})"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn shown(&mut self, node: &Node, depth: usize) -> Result<String, HelmError> {
        Ok(match node {
            Node::Table(table) => printed(&Value::Object(self.plain_at(table, depth)?)),
            Node::Leaf(value) => printed(value),
        })
    }
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

fn shallow(table: &Table) -> Table {
    Rc::new(RefCell::new(table.borrow().clone()))
}

fn drop_nulls(table: &Table) {
    table.borrow_mut().retain(|_, node| !node.is_null());
    for (_, node) in pairs(table) {
        node.table().into_iter().for_each(drop_nulls);
    }
}

/// Go's `%v`.
pub(super) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n
            .as_f64()
            .filter(|_| n.is_f64())
            .map_or_else(|| n.to_string(), float),
        Value::String(s) => s.clone(),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(printed).collect::<Vec<_>>().join(" ")
        ),
        Value::Object(map) => format!(
            "map[{}]",
            map.iter()
                .map(|(k, v)| format!("{k}:{}", printed(v)))
                .collect::<Vec<_>>()
                .join(" ")
        ),
    }
}

/// Go's `%t`, as Helm prints a value that should be a table. A list is printed item by item.
fn as_bool(value: &Value) -> String {
    let kind = match value {
        Value::Null | Value::Bool(_) => return printed(value),
        Value::Array(items) => {
            return format!(
                "[{}]",
                items.iter().map(as_bool).collect::<Vec<_>>().join(" ")
            );
        }
        Value::Object(map) => {
            let shown = map
                .iter()
                .map(|(k, v)| format!("%!t(string={k}):{}", as_bool(v)));
            return format!("map[{}]", shown.collect::<Vec<_>>().join(" "));
        }
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
    };
    format!("%!t({kind}={})", printed(value))
}
