//! The building blocks of checks: a value with its field path ([`At`]), and tables of rules for the
//! fields below it ([`Rule`]).
//!
//! A table is walked in order, and lists element by element, so that causes come in the order in
//! which the API server reports them. A check that does not fit a table is a function in it
//! ([`Rule::By`]). It knows no kind.

use crate::status::Cause;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats::Format;
use tiphys_kube_schema::gotypes;

/// A value, its field path, and its value before an update.
#[derive(Clone, Debug)]
pub struct At<'v> {
    pub value: &'v Value,
    pub old: Option<&'v Value>,
    pub path: String,
}

/// One line of a table.
#[derive(Clone, Copy)]
pub enum Rule {
    /// A field and the checks of its value, in order. A failed check ends the line.
    Field(&'static str, &'static [Check]),
    /// Rules of the parts of a field, if it is there.
    In(&'static str, &'static [Rule]),
    /// Any other check, with access to the whole value.
    By(fn(&At<'_>, &mut Vec<Cause>)),
}

/// A check of a single value. All but the first two apply only to values that are present and not
/// empty.
#[derive(Clone, Copy)]
pub enum Check {
    /// Present and not empty; with a detail.
    Required(&'static str),
    /// Unchanged by an update.
    Immutable,
    OneOf(&'static [&'static str]),
    Form(Format),
    AtLeast(i64),
    Between(i64, i64),
    MaxBytes(usize),
    MaxItems(usize),
    /// No duplicate elements; the cause's field is that of the element.
    Distinct,
}

static NULL: Value = Value::Null;

impl<'v> At<'v> {
    pub fn root(value: &'v Value, old: Option<&'v Value>) -> Self {
        Self {
            value,
            old,
            path: String::new(),
        }
    }

    /// A field of an object and of its old state.
    pub fn of(object: &'v Object, old: Option<&'v Object>, name: &str) -> Self {
        let field = |o: &'v Object| o.0.get(name).unwrap_or(&NULL);
        Self {
            value: field(object),
            old: old.map(field),
            path: name.to_owned(),
        }
    }

    /// A value with a path of its own.
    pub fn new(value: &'v Value, path: impl Into<String>) -> Self {
        Self {
            value,
            old: None,
            path: path.into(),
        }
    }

    /// A field; `a.b` descends two levels.
    pub fn get(&self, name: &str) -> At<'v> {
        let (mut value, mut old) = (self.value, self.old);
        for part in name.split('.') {
            value = value.get(part).unwrap_or(&NULL);
            old = old.map(|o| o.get(part).unwrap_or(&NULL));
        }
        // Built manually for speed: there is one for every field of every written object.
        let mut path = String::with_capacity(self.path.len() + 1 + name.len());
        path.push_str(&self.path);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        At { value, old, path }
    }

    /// An element of a map, or a field written in brackets.
    pub fn key(&self, key: &str) -> At<'v> {
        let old = self.old.map(|o| o.get(key).unwrap_or(&NULL));
        At {
            value: self.value.get(key).unwrap_or(&NULL),
            old,
            path: format!("{}[{key}]", self.path),
        }
    }

    /// The elements of a list. They have no `old`: lists are not compared by position.
    pub fn items(&self) -> Vec<At<'v>> {
        let list = self.value.as_array().into_iter().flatten().enumerate();
        list.map(|(i, value)| At {
            value,
            old: None,
            path: format!("{}[{i}]", self.path),
        })
        .collect()
    }

    /// The elements of a map and their keys.
    pub fn entries(&self) -> Vec<(&'v str, At<'v>)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(|(key, value)| {
            (
                key.as_str(),
                At {
                    value,
                    old: None,
                    path: format!("{}[{key}]", self.path),
                },
            )
        })
        .collect()
    }

    pub fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or("")
    }

    pub fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    pub fn len(&self) -> usize {
        match self.value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            Value::String(text) => text.len(),
            _ => 0,
        }
    }

    /// Whether the value is absent.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// Whether the value is absent, or Go's empty string, list or map.
    pub fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::Array(_) | Value::Object(_) | Value::String(_) => self.len() == 0,
            _ => false,
        }
    }

    /// Whether an update changes it.
    pub fn is_changed(&self) -> bool {
        self.old.is_some_and(|old| old != self.value)
    }

    pub fn required(&self, detail: &str) -> Cause {
        Cause::required(&self.path, detail)
    }

    /// The value as shown in a cause: an absent value is an empty string in Go.
    fn shown(&self) -> Value {
        if self.value.is_null() {
            Value::String(String::new())
        } else {
            self.value.clone()
        }
    }

    pub fn invalid(&self, detail: &str) -> Cause {
        Cause::invalid(&self.path, &self.shown(), detail)
    }

    /// With another value than the field's own.
    pub fn invalid_as(&self, value: impl Into<Value>, detail: &str) -> Cause {
        Cause::invalid(&self.path, &value.into(), detail)
    }

    /// The value as Go writes a struct of an internal type.
    pub fn invalid_struct(&self, of: &str, detail: &str) -> Cause {
        let message = format!(
            "Invalid value: {}: {detail}",
            gotypes::internal(self.value, of)
        );
        Cause {
            reason: "FieldValueInvalid",
            message,
            field: self.path.clone(),
        }
    }

    pub fn forbidden(&self, detail: &str) -> Cause {
        Cause::forbidden(&self.path, detail)
    }

    pub fn duplicate(&self) -> Cause {
        Cause::duplicate(&self.path, &self.shown())
    }

    /// `allowed` is in the order in which it is printed.
    pub fn not_supported(&self, allowed: &[&str]) -> Cause {
        Cause::not_supported(&self.path, &self.shown(), allowed)
    }

    pub fn not_found(&self) -> Cause {
        Cause {
            reason: "FieldValueNotFound",
            message: format!("Not found: {}", json!(self.text())),
            field: self.path.clone(),
        }
    }

    pub fn too_long(&self, max: usize) -> Cause {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {max} {unit}"),
            field: self.path.clone(),
        }
    }

    pub fn too_many(&self, max: usize) -> Cause {
        let unit = if max == 1 { "item" } else { "items" };
        let message = format!("Too many: {}: must have at most {max} {unit}", self.len());
        Cause {
            reason: "FieldValueTooMany",
            message,
            field: self.path.clone(),
        }
    }

    /// The errors of a format, one cause each.
    pub fn form(&self, format: Format, causes: &mut Vec<Cause>) {
        causes.extend(
            format(self.text())
                .iter()
                .map(|problem| self.invalid(problem)),
        );
    }

    /// Checks one value.
    pub fn check(&self, checks: &[Check], causes: &mut Vec<Cause>) {
        for check in checks {
            let before = causes.len();
            self.check_one(*check, causes);
            if causes.len() > before {
                return;
            }
        }
    }

    fn check_one(&self, check: Check, causes: &mut Vec<Cause>) {
        match check {
            Check::Required(detail) if self.is_empty() => causes.push(self.required(detail)),
            Check::Immutable if self.is_changed() => {
                causes.push(self.invalid("field is immutable"))
            }
            Check::Required(_) | Check::Immutable => {}
            _ if self.is_empty() => {}
            Check::OneOf(allowed) if !allowed.contains(&self.text()) => {
                causes.push(self.not_supported(allowed))
            }
            Check::Form(format) => self.form(format, causes),
            Check::AtLeast(min) if self.int().is_some_and(|n| n < min) => {
                causes.push(self.invalid(&format!("must be greater than or equal to {min}")));
            }
            Check::Between(low, high) => {
                let problem = self
                    .int()
                    .and_then(|n| tiphys_kube_schema::formats::in_range(n, low, high));
                causes.extend(problem.map(|p| self.invalid(&p)));
            }
            Check::MaxBytes(max) if self.len() > max => causes.push(self.too_long(max)),
            Check::MaxItems(max) if self.len() > max => causes.push(self.too_many(max)),
            Check::Distinct => {
                let items = self.items();
                let seen = |i: usize| items[..i].iter().any(|other| other.value == items[i].value);
                causes.extend(
                    (0..items.len())
                        .filter(|i| seen(*i))
                        .map(|i| items[i].duplicate()),
                );
            }
            _ => {}
        }
    }

    /// Walks a table.
    pub fn walk(&self, rules: &[Rule], causes: &mut Vec<Cause>) {
        for rule in rules {
            match rule {
                Rule::Field(name, checks) => self.get(name).check(checks, causes),
                Rule::In(name, rules) => {
                    let part = self.get(name);
                    if !part.is_null() {
                        part.walk(rules, causes);
                    }
                }
                Rule::By(check) => check(self, causes),
            }
        }
    }
}

/// A label selector, as most kinds check theirs.
pub fn label_selector(at: &At<'_>, causes: &mut Vec<Cause>) {
    labels(&at.get("matchLabels"), causes);
    for requirement in at.get("matchExpressions").items() {
        operator(&requirement, false, causes);
        requirement
            .get("key")
            .form(tiphys_kube_schema::formats::qualified_name, causes);
        requirement
            .get("values")
            .items()
            .iter()
            .for_each(|value| value.form(tiphys_kube_schema::formats::label_value, causes));
    }
}

/// The selectors of an access review, which may use operators of later servers.
pub fn selector_attributes(attributes: &At<'_>, causes: &mut Vec<Cause>) {
    for name in ["fieldSelector", "labelSelector"] {
        let selector = attributes.get(name);
        if selector.is_null() {
            continue;
        }
        let (raw, requirements) = (selector.get("rawSelector"), selector.get("requirements"));
        match (raw.is_empty(), requirements.is_empty()) {
            (false, false) => {
                causes.push(raw.invalid("may not specified at the same time as requirements"))
            }
            (true, true) => {
                causes.push(requirements.required(&format!(
                    "when {} is specified, requirements or rawSelector is required",
                    selector.path
                )));
            }
            _ => {}
        }
        for requirement in requirements.items() {
            let key = requirement.get("key");
            if name == "fieldSelector" && key.is_empty() {
                causes.push(key.required("must be specified"));
            }
            operator(&requirement, true, causes);
            if name == "labelSelector" {
                key.form(tiphys_kube_schema::formats::qualified_name, causes);
                requirement
                    .get("values")
                    .items()
                    .iter()
                    .for_each(|value| value.form(tiphys_kube_schema::formats::label_value, causes));
            }
        }
    }
}

/// Checks that a requirement has the values that its operator needs.
fn operator(requirement: &At<'_>, any: bool, causes: &mut Vec<Cause>) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            causes.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"))
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            causes.push(
                values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ),
            );
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ if any => {}
        _ => causes.push(operator.invalid("not a valid selector operator")),
    }
}

/// Keys and values of labels; causes name the map only.
pub fn labels(at: &At<'_>, causes: &mut Vec<Cause>) {
    for (key, value) in at.entries() {
        causes.extend(
            tiphys_kube_schema::formats::qualified_name(key)
                .iter()
                .map(|p| at.invalid_as(key, p)),
        );
        causes.extend(
            tiphys_kube_schema::formats::label_value(value.text())
                .iter()
                .map(|p| at.invalid_as(value.text(), p)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_kube_schema::formats;

    #[test]
    fn a_table_reports_field_by_field() {
        const TABLE: &[Rule] = &[
            Rule::Field(
                "kind",
                &[Check::Required("say what"), Check::OneOf(&["A", "B"])],
            ),
            Rule::In(
                "port",
                &[
                    Rule::Field("name", &[Check::Form(formats::port_name)]),
                    Rule::Field("number", &[Check::Between(1, 9)]),
                ],
            ),
            Rule::Field("fixed", &[Check::Immutable]),
        ];
        let (new, old) = (
            json!({"kind": "C", "port": {"name": "-a", "number": 0}, "fixed": 2}),
            json!({"fixed": 1}),
        );
        let mut causes = Vec::new();
        At::root(&new, Some(&old)).walk(TABLE, &mut causes);
        let found: Vec<String> = causes
            .iter()
            .map(|c| format!("{}: {}", c.field, c.message))
            .collect();
        assert_eq!(
            found,
            [
                "kind: Unsupported value: \"C\": supported values: \"A\", \"B\"",
                "port.name: Invalid value: \"-a\": must not begin or end with a hyphen",
                "port.number: Invalid value: 0: must be between 1 and 9, inclusive",
                "fixed: Invalid value: 2: field is immutable",
            ]
        );
    }
}
