//! Estimates the maximum cost of a rule, from the sizes that the schema allows. Main function:
//! [`cost`].
//!
//! It follows the estimates of the real server, so that a rule without bounds is rejected when its
//! definition is written.

use super::Program;
use super::ast::{ACCU, Expr, Fold, Kind, Literal};
use super::declare::{MAX_REQUEST, escaped};
use crate::structural::Node;

/// The root of a schema, and the maximum sizes of its parts.
pub struct Sizes<'n> {
    root: &'n Node,
    is_object: bool,
}

fn not_negative(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// The minimum size of a value in JSON.
fn least(node: &Node, root: bool) -> u64 {
    if node.int_or_string {
        return 1;
    }
    match node.kind.as_str() {
        "object" if node.additional.schema().is_some() => 2,
        "object" => {
            let needed = node
                .required
                .iter()
                .filter_map(|name| Some((name, node.properties.get(name)?)));
            let sum: u64 = needed
                .filter(|(_, p)| p.default.is_none())
                .map(|(name, p)| name.len() as u64 + least(p, p.embedded) + 4)
                .sum();
            // Metadata, kind and apiVersion count only if the schema requires them, which is rare.
            let _ = root;
            2 + sum
        }
        "string" => match node.format.as_str() {
            "duration" => 3,
            "date" => 12,
            "date-time" => 21,
            _ => 2,
        },
        "boolean" => 4,
        "integer" | "number" => 1,
        _ => 2,
    }
}

/// The maximum number of characters, elements or entries.
fn most(node: &Node) -> u64 {
    let text = || {
        node.max_length
            .map_or(MAX_REQUEST - 2, |n| not_negative(n) * 4)
    };
    if node.int_or_string {
        return text();
    }
    match node.kind.as_str() {
        "array" => match (node.max_items, &node.items) {
            (Some(n), _) => not_negative(n),
            (None, Some(items)) => (MAX_REQUEST - 2) / (least(items, items.embedded) + 1),
            (None, None) => 0,
        },
        "object" => match (node.additional.schema(), node.max_properties) {
            (Some(_), Some(n)) => not_negative(n),
            (Some(values), None) => (MAX_REQUEST - 2) / (least(values, values.embedded) + 6),
            (None, _) => 0,
        },
        "string" => match node.format.as_str() {
            "byte" => node.max_length.map_or(MAX_REQUEST - 2, not_negative),
            "duration" | "date-time" => 32,
            "date" => 12,
            _ if node.max_length.is_none() && !node.enum_values.is_empty() => node
                .enum_values
                .iter()
                .filter_map(|v| v.as_str())
                .map(|s| s.len() as u64)
                .max()
                .unwrap_or(0),
            _ => text(),
        },
        _ => 0,
    }
}

impl<'n> Sizes<'n> {
    pub fn new(root: &'n Node, is_object: bool) -> Self {
        Self { root, is_object }
    }

    /// How often data of this schema can occur in one object.
    pub fn occurrences(&self) -> u64 {
        MAX_REQUEST / (least(self.root, self.is_object) + 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Scalar,
    Text,
    List,
    Map,
    /// An address, a quantity or the like, which is compared in one step.
    Opaque,
    Other,
}

/// The origin of a value in the schema.
#[derive(Clone, Copy)]
enum Place<'n> {
    Unknown,
    Node(&'n Node, bool),
    /// A string without a length limit in the schema.
    FreeText,
    Metadata,
    MapKey,
}

type Range = (u64, u64);
const UNKNOWN: Range = (0, u64::MAX);

#[derive(Clone, Copy)]
struct Estimate<'n> {
    cost: u64,
    size: Option<Range>,
    /// The size of elements.
    entry: Option<Range>,
    place: Place<'n>,
    sort: Sort,
}

fn times(size: u64, factor: f64) -> u64 {
    let product = (size as f64 * factor).ceil();
    if product >= 18_446_744_073_709_551_616.0 {
        u64::MAX
    } else {
        product as u64
    }
}

fn of_place<'n>(place: Place<'n>) -> Estimate<'n> {
    let (size, sort) = match place {
        Place::Unknown => (None, Sort::Other),
        Place::FreeText => (Some((0, MAX_REQUEST - 2)), Sort::Text),
        Place::Metadata => (Some((0, 0)), Sort::Map),
        Place::MapKey => (Some((0, 0)), Sort::Text),
        Place::Node(node, _) => {
            let sort = match (node.int_or_string, node.kind.as_str(), node.format.as_str()) {
                (true, ..) => Sort::Other,
                (_, "array", _) => Sort::List,
                (_, "object", _) => Sort::Map,
                (_, "string", "date" | "date-time" | "duration") => Sort::Scalar,
                (_, "string", _) => Sort::Text,
                _ => Sort::Scalar,
            };
            (Some((0, most(node))), sort)
        }
    };
    Estimate {
        cost: 0,
        size,
        entry: None,
        place,
        sort,
    }
}

fn plain<'n>(cost: u64, size: Option<Range>, sort: Sort) -> Estimate<'n> {
    let size = size.or((sort == Sort::Scalar).then_some((1, 1)));
    Estimate {
        cost,
        size,
        entry: None,
        place: Place::Unknown,
        sort,
    }
}

impl<'n> Estimate<'n> {
    fn range(&self) -> Range {
        self.size.unwrap_or(UNKNOWN)
    }

    fn most(&self) -> u64 {
        self.range().1
    }

    /// The elements of a list (or, with `values`, the values of a map).
    fn inner(&self, values: bool) -> Estimate<'n> {
        let found = self.declared(values);
        Estimate {
            size: found.size.or(self.entry),
            ..found
        }
    }

    /// The same, according to the schema.
    fn declared(&self, values: bool) -> Estimate<'n> {
        let place = match self.place {
            Place::Node(node, _) => {
                match (node.kind.as_str(), &node.items, node.additional.schema()) {
                    ("array", Some(items), _) => Place::Node(items, items.embedded),
                    ("object", _, Some(of)) if values => Place::Node(of, of.embedded),
                    ("object", _, Some(_)) => Place::MapKey,
                    _ => Place::Unknown,
                }
            }
            _ => Place::Unknown,
        };
        of_place(place)
    }
}

/// The maximum cost of a program.
pub fn cost(program: &Program, sizes: &Sizes<'_>) -> u64 {
    let mut walker = Walker {
        sizes,
        scopes: Vec::new(),
    };
    walker.expr(&program.expr).cost
}

struct Walker<'a, 'n> {
    sizes: &'a Sizes<'n>,
    scopes: Vec<(String, Estimate<'n>)>,
}

impl<'n> Walker<'_, 'n> {
    fn expr(&mut self, expr: &Expr) -> Estimate<'n> {
        match &expr.kind {
            Kind::Literal(literal) => match literal {
                Literal::String(s) => plain(
                    0,
                    Some((s.chars().count() as u64, s.chars().count() as u64)),
                    Sort::Text,
                ),
                Literal::Bytes(b) => plain(0, Some((b.len() as u64, b.len() as u64)), Sort::Text),
                _ => plain(0, Some((1, 1)), Sort::Scalar),
            },
            Kind::Ident(name) => {
                let scoped = self
                    .scopes
                    .iter()
                    .rev()
                    .find(|(n, _)| n == name)
                    .map(|(_, e)| *e);
                let found = scoped.unwrap_or_else(|| match name.as_str() {
                    "self" | "oldSelf" => {
                        of_place(Place::Node(self.sizes.root, self.sizes.is_object))
                    }
                    // The real server treats an unknown name as the root.
                    _ => plain(0, Some((0, most(self.sizes.root))), Sort::Other),
                });
                Estimate { cost: 1, ..found }
            }
            Kind::Select {
                operand,
                field,
                optional,
                test,
            } => {
                let from = self.expr(operand);
                if *test {
                    return plain(from.cost, None, Sort::Scalar);
                }
                let found = if *optional {
                    plain(0, None, Sort::Other)
                } else {
                    self.field(&from, field)
                };
                let step = u64::from(from.sort == Sort::Map || *optional);
                Estimate {
                    cost: from.cost.saturating_add(step),
                    ..found
                }
            }
            Kind::Call {
                function,
                target,
                args,
            } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let (mut cost, mut entry): (u64, Option<Range>) = (10, None);
                for (item, _) in items {
                    let found = self.expr(item);
                    cost = cost.saturating_add(found.cost);
                    let range = found.range();
                    entry = Some(entry.map_or(range, |(a, b)| (a.min(range.0), b.max(range.1))));
                }
                let n = items.len() as u64;
                Estimate {
                    entry: Some(entry.unwrap_or((0, 0))),
                    ..plain(cost, Some((n, n)), Sort::List)
                }
            }
            Kind::Map(entries) => {
                let parts = entries
                    .iter()
                    .map(|(k, v, _)| self.expr(k).cost.saturating_add(self.expr(v).cost));
                let cost = parts.fold(30u64, u64::saturating_add);
                plain(
                    cost,
                    Some((entries.len() as u64, entries.len() as u64)),
                    Sort::Map,
                )
            }
            Kind::Struct(_, fields) => {
                let cost = fields
                    .iter()
                    .map(|field| self.expr(&field.value).cost)
                    .fold(40u64, u64::saturating_add);
                plain(cost, None, Sort::Map)
            }
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn field(&self, from: &Estimate<'n>, field: &str) -> Estimate<'n> {
        let place = match from.place {
            Place::Metadata => Place::FreeText,
            Place::Node(_, true) if field == "metadata" => Place::Metadata,
            Place::Node(_, true) if matches!(field, "kind" | "apiVersion") => Place::FreeText,
            Place::Node(node, _) if node.additional.schema().is_none() => node
                .properties
                .iter()
                .find(|(name, _)| escaped(name).as_deref() == Some(field))
                .map_or(Place::Unknown, |(_, p)| Place::Node(p, p.embedded)),
            _ => Place::Unknown,
        };
        of_place(place)
    }

    fn fold(&mut self, fold: &Fold) -> Estimate<'n> {
        let range = self.expr(&fold.range);
        let init = self.expr(&fold.init);
        let sum = range.cost.saturating_add(init.cost);
        let depth = self.scopes.len();
        let is_bind = fold.accu != ACCU;
        self.scopes.push((
            fold.accu.clone(),
            Estimate {
                place: if is_bind { init.place } else { Place::Unknown },
                ..init
            },
        ));
        if is_bind {
            let result = self.expr(&fold.result);
            self.scopes.truncate(depth);
            return Estimate {
                cost: sum.saturating_add(result.cost),
                ..result
            };
        }
        if let Some(second) = &fold.second {
            let key = if range.sort == Sort::List {
                plain(0, None, Sort::Scalar)
            } else {
                range.inner(false)
            };
            self.scopes.push((fold.var.clone(), key));
            self.scopes.push((second.clone(), range.inner(true)));
        } else {
            self.scopes.push((fold.var.clone(), range.inner(false)));
        }
        let condition = self.expr(&fold.condition);
        let step = self.expr(&fold.step);
        self.scopes.truncate(depth + 1);
        let result = self.expr(&fold.result);
        self.scopes.truncate(depth);
        let turns = range
            .most()
            .saturating_mul(step.cost.saturating_add(condition.cost));
        let cost = sum.saturating_add(result.cost).saturating_add(turns);
        match init.sort {
            Sort::List | Sort::Map => Estimate {
                entry: step.entry,
                ..plain(cost, Some(range.range()), init.sort)
            },
            sort => plain(cost, init.size, sort),
        }
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate<'n> {
        let mut values: Vec<Estimate<'n>> = Vec::new();
        for part in target.into_iter().chain(args) {
            values.push(self.expr(part));
        }
        let sum = values
            .iter()
            .map(|v| v.cost)
            .fold(0u64, u64::saturating_add);
        let result = match (function, values.as_slice()) {
            ("_?_:_", [condition, yes, no]) => {
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                let ((a, b), (c, d)) = (yes.range(), no.range());
                let entry = yes
                    .entry
                    .zip(no.entry)
                    .map(|((a, b), (c, d))| (a.min(c), b.max(d)));
                return Estimate {
                    entry,
                    ..plain(cost, Some((a.min(c), b.max(d))), yes.sort)
                };
            }
            ("_&&_" | "_||_", _) => plain(0, None, Sort::Scalar),
            ("_[_]", [of, _]) => Estimate {
                cost: 1,
                ..of.inner(true)
            },
            ("dyn", [of]) => Estimate { cost: 1, ..*of },
            _ => own(function, &values),
        };
        Estimate {
            cost: result.cost.saturating_add(sum),
            ..result
        }
    }
}

/// The values of a call; of a method, the first one is the target.
#[derive(Clone, Copy)]
struct Values<'v, 'n>(&'v [Estimate<'n>]);

impl<'n> Values<'_, 'n> {
    fn size(self, i: usize) -> u64 {
        self.0.get(i).map_or(u64::MAX, Estimate::most)
    }

    fn tenth(self, i: usize) -> u64 {
        times(self.size(i), 0.1)
    }

    fn range(self, i: usize) -> Range {
        self.0.get(i).map_or(UNKNOWN, Estimate::range)
    }

    fn sort(self) -> Sort {
        self.0.first().map_or(Sort::Other, |v| v.sort)
    }

    fn any_text(self) -> bool {
        self.0.iter().any(|v| v.sort == Sort::Text)
    }

    /// The schema's information about the elements of the first value.
    fn elements(self) -> Estimate<'n> {
        self.0[0].declared(true)
    }
}

fn scalar<'n>(cost: u64) -> Estimate<'n> {
    plain(cost, None, Sort::Scalar)
}

/// The cost of a call itself. Some names are functions of both lists and strings.
fn own<'n>(function: &str, values: &[Estimate<'n>]) -> Estimate<'n> {
    let values = Values(values);
    operator(function, values)
        .or_else(|| list_function(function, values))
        .or_else(|| text_function(function, values))
        .unwrap_or_else(|| other_function(function, values))
}

fn operator<'n>(function: &str, values: Values<'_, 'n>) -> Option<Estimate<'n>> {
    let size = |i: usize| values.size(i);
    Some(match function {
        "_==_" if !values.0.is_empty() && values.0.iter().all(|v| v.sort == Sort::Opaque) => {
            scalar(1)
        }
        "_==_" | "_!=_" => scalar(times(size(0).min(size(1)), 0.1)),
        "_<_" | "_<=_" | "_>_" | "_>=_" if values.any_text() => {
            scalar(times(size(0).min(size(1)), 0.1))
        }
        "@in" if values.0.get(1).is_some_and(|v| v.sort == Sort::List) => scalar(size(1)),
        "_+_" if matches!(values.sort(), Sort::Text | Sort::List) => {
            let ((a, b), (c, d)) = (values.range(0), values.range(1));
            let total = (a.saturating_add(c), b.saturating_add(d));
            let entries = values
                .0
                .first()
                .and_then(|v| v.entry)
                .zip(values.0.get(1).and_then(|v| v.entry));
            let entry = entries.map(|((a, b), (c, d))| (a.min(c), b.max(d)));
            let cost = if values.sort() == Sort::List {
                1
            } else {
                times(total.1, 0.1)
            };
            Estimate {
                entry,
                ..plain(cost, Some(total), values.sort())
            }
        }
        _ => return None,
    })
}

fn list_function<'n>(function: &str, values: Values<'_, 'n>) -> Option<Estimate<'n>> {
    let size = |i: usize| values.size(i);
    Some(match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf"
            if values.sort() == Sort::List =>
        {
            let inner = values.elements();
            let each = if inner.sort == Sort::Text {
                1 + times(inner.most(), 0.1)
            } else {
                1
            };
            plain(
                size(0).saturating_mul(each),
                None,
                if matches!(function, "max" | "min" | "sum") {
                    inner.sort
                } else {
                    Sort::Scalar
                },
            )
        }
        "join" => {
            let elements = values.elements().most();
            let total = size(0)
                .saturating_mul(elements)
                .saturating_add(match values.0.len() {
                    2 => size(1).saturating_mul(size(0).saturating_sub(1)),
                    _ => 0,
                });
            plain(times(total, 0.1), Some((0, total)), Sort::Text)
        }
        "sets.contains" | "sets.intersects" => {
            scalar(1u64.saturating_add(size(0).saturating_mul(size(1))))
        }
        "sets.equivalent" => {
            scalar(1u64.saturating_add(size(0).saturating_mul(size(1)).saturating_mul(2)))
        }
        "distinct" | "sort" | "@sortByAssociatedKeys" => {
            let cost = 10u64.saturating_add(size(0).saturating_mul(size(0)));
            plain(cost, Some(values.range(0)), Sort::List)
        }
        "lists.range" => plain(10u64.saturating_add(size(0)), None, Sort::List),
        "slice" | "reverse" => plain(
            10u64.saturating_add(size(0)),
            Some(values.range(0)),
            Sort::List,
        ),
        "flatten" => plain(10u64.saturating_add(size(0)), None, Sort::List),
        _ => return None,
    })
}

fn text_function<'n>(function: &str, values: Values<'_, 'n>) -> Option<Estimate<'n>> {
    let size = |i: usize| values.size(i);
    let tenth = |i: usize| values.tenth(i);
    let range = |i: usize| values.range(i);
    Some(match function {
        "startsWith" | "endsWith" => scalar(tenth(1)),
        "contains" => scalar(tenth(0).saturating_mul(tenth(1))),
        "matches" => {
            scalar(times(size(0).saturating_add(1), 0.1).saturating_mul(times(size(1), 0.25)))
        }
        "find" | "findAll" => {
            let cost = times(size(0).saturating_add(1), 0.1).saturating_mul(times(size(1), 0.25));
            plain(
                cost,
                Some((0, size(0))),
                if function == "find" {
                    Sort::Text
                } else {
                    Sort::List
                },
            )
        }
        "indexOf" | "lastIndexOf" => scalar(tenth(0)),
        "lowerAscii" | "upperAscii" | "substring" | "trim" | "url" | "strings.quote" => {
            plain(tenth(0), Some(range(0)), Sort::Text)
        }
        "replace" => plain(
            times(size(0), 0.2),
            Some((0, replaced(range(0), range(1), range(2)))),
            Sort::Text,
        ),
        "split" => plain(times(size(0), 0.2), Some((0, size(0))), Sort::List),
        "format" => plain(tenth(0), None, Sort::Text),
        "bytes" => plain(tenth(0), Some((0, size(0).saturating_mul(4))), Sort::Text),
        "string" if values.sort() == Sort::Text => plain(tenth(0), Some(range(0)), Sort::Text),
        "string" => plain(1, None, Sort::Text),
        _ => return None,
    })
}

/// Functions of addresses, quantities, URLs and optional values; any other costs 1.
fn other_function<'n>(function: &str, values: Values<'_, 'n>) -> Estimate<'n> {
    let of_text = || match values.any_text() {
        true => values.tenth(1),
        false => 0,
    };
    match function {
        "ip" if values.sort() == Sort::Opaque => plain(1, None, Sort::Opaque),
        "cidr" | "ip" | "quantity" | "semver" => plain(values.tenth(0), None, Sort::Opaque),
        "isIP" | "isCIDR" | "isQuantity" | "isSemver" => plain(values.tenth(0), None, Sort::Other),
        "ip.isCanonical" => scalar(times(values.size(0), 0.2)),
        "validate" => plain(times(values.tenth(1), 32.0), None, Sort::Other),
        "containsIP" => scalar(4u64.saturating_add(of_text())),
        "containsCIDR" => scalar(7u64.saturating_add(of_text())),
        "charAt" | "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" => {
            plain(1, None, Sort::Text)
        }
        "value"
        | "orValue"
        | "or"
        | "optional.of"
        | "optional.none"
        | "optional.ofNonZeroValue"
        | "first"
        | "last"
        | "_[?_]" => plain(1, None, Sort::Other),
        "type" | "getQuery" => plain(1, None, Sort::Other),
        _ => scalar(1),
    }
}

/// The maximum length of the text after a replacement.
fn replaced(text: Range, old: Range, new: Range) -> u64 {
    if old.0 == 0 {
        return text
            .1
            .saturating_add(1)
            .saturating_mul(new.1)
            .saturating_add(text.1);
    }
    if new.1 <= old.0 {
        text.1
    } else {
        text.1.div_ceil(old.0).saturating_mul(new.1)
    }
}
