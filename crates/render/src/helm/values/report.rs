//! Reports schema violations in the order and with the indentation of the schema library that Helm
//! uses.
//!
//! Main function: [`lines`]. Our library returns a flat list of errors, each with the keywords that
//! led to it. [`Node`] arranges them in the tree of schemas in which Helm's library finds them, and
//! [`Entry`] is what that library prints for a schema: a line, and the lines below it.

use super::schema::{Below, held_again};
use super::words::{NO_ITEM, joined, message, number, quoted};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;
use std::cell::Cell;

/// One line per error, with its causes indented below it.
pub(super) fn lines(errors: &[ValidationError<'_>], schema: &Value, values: &Value) -> String {
    let about = About {
        schema,
        values,
        looks: Cell::new(0),
    };
    let mut out = String::new();
    let told = Node::of(errors, 0, "").entry(&about);
    told.into_iter()
        .flat_map(Entry::within)
        .for_each(|entry| entry.write(0, &mut out));
    out
}

/// The schema and values that the errors refer to.
struct About<'a> {
    schema: &'a Value,
    values: &'a Value,
    /// How many values were looked at again, since the library told too little of them.
    looks: Cell<u32>,
}

/// How many of them there may be: each takes the whole schema apart once more.
const LOOKS: u32 = 32;

struct Entry {
    place: String,
    message: String,
    causes: Vec<Entry>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Several errors of one schema.
    Group,
    /// The target of a reference. If it has a single cause, only that is printed.
    Reference,
    Plain,
}

impl Entry {
    fn new(place: &str, message: String, causes: Vec<Self>) -> Self {
        Self {
            place: place.to_owned(),
            message,
            causes,
            form: Form::Plain,
        }
    }

    fn failed(place: &str, causes: Vec<Self>, form: Form) -> Self {
        Self {
            form,
            ..Self::new(place, "validation failed".to_owned(), causes)
        }
    }

    /// What remains of a group when a parent line already names its location.
    fn within(self) -> Vec<Self> {
        if self.form == Form::Group {
            self.causes
        } else {
            vec![self]
        }
    }

    fn write(&self, depth: usize, out: &mut String) {
        let hidden = self.form == Form::Reference && self.causes.len() == 1;
        if !hidden {
            out.push_str(&format!(
                "{}- at {}: {}\n",
                "  ".repeat(depth),
                quoted(&self.place),
                self.message
            ));
        }
        self.causes
            .iter()
            .for_each(|cause| cause.write(depth + usize::from(!hidden), out));
    }

    /// The same for an error about the name of a property, which has no location in the values.
    fn of_a_name(mut self) -> Self {
        self.place.clear();
        self.causes = self.causes.into_iter().map(Self::of_a_name).collect();
        self
    }
}

/// A schema applied to a value, or a keyword with a list of schemas.
struct Node<'a, 'e> {
    /// The location in the values.
    place: String,
    parts: Vec<Part<'a, 'e>>,
}

struct Part<'a, 'e> {
    /// The keyword, what follows it, and where it leads in the value.
    key: Vec<String>,
    what: What<'a, 'e>,
}

enum What<'a, 'e> {
    Errors(Vec<&'a ValidationError<'e>>),
    Schema(Node<'a, 'e>),
}

/// How a path of keywords continues: over how many segments, and whether into the value. None if
/// the rest is the keyword of the error itself.
fn step(path: &[String], error: &ValidationError<'_>) -> Option<(usize, bool)> {
    let number = |at: usize| {
        path.get(at)
            .is_some_and(|segment| segment.parse::<usize>().is_ok())
    };
    let (width, descends) = match path.first()?.as_str() {
        "properties" | "patternProperties" | "prefixItems" => (2, true),
        "items" if number(1) => (2, true),
        "items"
        | "additionalProperties"
        | "additionalItems"
        | "unevaluatedProperties"
        | "unevaluatedItems" => (1, true),
        "dependentSchemas" | "dependencies" => (2, false),
        // The errors about a property name are inside this error.
        "propertyNames" => return None,
        _ => (1, false),
    };
    // The schema `false` has no keyword of its own, unless it forbids a property without naming it.
    let no_keyword = matches!(error.kind(), Kind::FalseSchema) && path != ["additionalProperties"];
    (path.len() > width || (no_keyword && path.len() == width)).then_some((width, descends))
}

impl<'a, 'e> Node<'a, 'e> {
    /// The errors of one schema; the first `from` segments of their paths are already processed.
    fn of(
        errors: impl IntoIterator<Item = &'a ValidationError<'e>>,
        from: usize,
        place: &str,
    ) -> Self
    where
        'e: 'a,
    {
        let mut node = Self {
            place: place.to_owned(),
            parts: Vec::new(),
        };
        let depth = place.matches('/').count();
        for error in errors {
            let (path, place) = (segments(error), error.instance_path().to_string());
            let inside: Vec<&str> = place.split('/').skip(1 + depth).collect();
            node.add(error, path.get(from..).unwrap_or_default(), &inside);
        }
        node
    }

    fn add(&mut self, error: &'a ValidationError<'e>, path: &[String], inside: &[&str]) {
        let Some((width, descends)) = step(path, error) else {
            let keyword = path.first().cloned().into_iter().collect();
            match self.part(keyword, || What::Errors(Vec::new())) {
                What::Errors(errors) => errors.push(error),
                What::Schema(_) => {}
            }
            return;
        };
        let into = inside.first().filter(|_| descends);
        let place = into.map_or_else(
            || self.place.clone(),
            |name| format!("{}/{name}", self.place),
        );
        let mut key = path[..width].to_vec();
        key.extend(into.map(|name| (*name).to_owned()));
        if let What::Schema(node) = self.part(key, || {
            What::Schema(Node {
                place,
                parts: Vec::new(),
            })
        }) {
            node.add(
                error,
                &path[width..],
                &inside[usize::from(into.is_some())..],
            );
        }
    }

    fn part(&mut self, key: Vec<String>, new: impl FnOnce() -> What<'a, 'e>) -> &mut What<'a, 'e> {
        let at = self
            .parts
            .iter()
            .position(|part| part.key == key)
            .unwrap_or_else(|| {
                self.parts.push(Part { key, what: new() });
                self.parts.len() - 1
            });
        &mut self.parts[at].what
    }

    /// The entry for this schema, if there is an error in it.
    fn entry(self, about: &About<'_>) -> Option<Entry> {
        let place = self.place.clone();
        let mut entries = self.entries(about);
        if entries.len() > 1 {
            Some(Entry::failed(&place, entries, Form::Group))
        } else {
            entries.pop()
        }
    }

    fn entries(mut self, about: &About<'_>) -> Vec<Entry> {
        self.parts.sort_by_key(Part::rank);
        // Helm's library stops evaluating a schema after one of these.
        let ends = self
            .parts
            .first()
            .is_some_and(|first| first.rank() < GOES_ON);
        self.parts.truncate(if ends { 1 } else { self.parts.len() });
        let place = self.place;
        self.parts
            .into_iter()
            .flat_map(|part| part.entries(&place, about))
            .collect()
    }
}

/// Rank in [`ORDER`]; a failed keyword with a lower rank ends the evaluation of its schema.
const GOES_ON: usize = 4;

/// The order in which Helm's library evaluates the keywords of a schema.
const ORDER: &[&[&str]] = &[
    &["type"],
    &["const"],
    &["enum"],
    &["format"],
    &["$ref"],
    &["minProperties", "minItems", "minLength", "minimum"],
    &["maxProperties", "maxItems", "maxLength", "maximum"],
    &["required", "uniqueItems", "pattern", "exclusiveMinimum"],
    &["exclusiveMaximum"],
    &["multipleOf"],
    &["dependencies"],
    &["properties", "patternProperties", "prefixItems"],
    &["items"],
    &["additionalProperties", "additionalItems"],
    &["propertyNames", "contains"],
    &["dependentSchemas"],
    &["dependentRequired"],
    &["$recursiveRef"],
    &["$dynamicRef"],
    &["not"],
    &["allOf"],
    &["anyOf"],
    &["oneOf"],
    &["then", "else"],
];

impl Part<'_, '_> {
    fn rank(&self) -> usize {
        let keyword = match &self.what {
            // Up to draft 6, `exclusiveMaximum` and the like are booleans next to the limit and are
            // not errors themselves.
            What::Errors(errors) => match errors.first().map(|error| error.kind()) {
                Some(Kind::ExclusiveMinimum { .. }) => "exclusiveMinimum",
                Some(Kind::ExclusiveMaximum { .. }) => "exclusiveMaximum",
                _ => self.keyword(),
            },
            What::Schema(_) => self.keyword(),
        };
        // Errors inside additional properties are listed with those inside `properties`, before the
        // list of properties that are not allowed.
        let schemas =
            usize::from(keyword == "additionalProperties" && matches!(self.what, What::Schema(_)));
        ORDER
            .iter()
            .position(|keywords| keywords.contains(&keyword))
            .unwrap_or(ORDER.len())
            - 2 * schemas
    }

    fn keyword(&self) -> &str {
        self.key.first().map_or("", String::as_str)
    }

    fn entries(self, place: &str, about: &About<'_>) -> Vec<Entry> {
        let keyword = self.keyword().to_owned();
        match (self.what, keyword.as_str()) {
            (What::Errors(errors), _) => told(&errors, &keyword, place, about),
            (What::Schema(node), "allOf") => vec![Entry::new(
                place,
                "'allOf' failed".to_owned(),
                node.entries(about),
            )],
            (What::Schema(node), "$ref" | "$dynamicRef" | "$recursiveRef") => {
                let causes = node.entry(about).map_or_else(Vec::new, Entry::within);
                vec![Entry::failed(place, causes, Form::Reference)]
            }
            (What::Schema(node), _) => node.entry(about).into_iter().collect(),
        }
    }
}

/// The entries for the errors of one keyword.
fn told(
    errors: &[&ValidationError<'_>],
    keyword: &str,
    place: &str,
    about: &About<'_>,
) -> Vec<Entry> {
    match errors.first().map(|error| error.kind()) {
        Some(Kind::Required { .. }) if keyword == "required" => {
            vec![Entry::new(place, missing(errors), Vec::new())]
        }
        Some(Kind::Required { .. }) => depending(errors[0], keyword, place, about),
        Some(Kind::PropertyNames { .. }) => names(errors, about),
        _ => errors
            .iter()
            .flat_map(|error| single(error, place, about))
            .collect(),
    }
}

fn missing(errors: &[&ValidationError<'_>]) -> String {
    let name = |error: &&'_ ValidationError<'_>| match error.kind() {
        Kind::Required { property } => property.as_str().map(str::to_owned),
        _ => None,
    };
    let names: Vec<String> = errors.iter().filter_map(name).collect();
    let list = joined(&names.iter().map(String::as_str).collect::<Vec<_>>());
    if names.len() == 1 {
        format!("missing property {list}")
    } else {
        format!("missing properties {list}")
    }
}

/// Dependent properties: the error contains only the name of one missing property; the one that
/// requires it is looked up in the schema.
fn depending(
    error: &ValidationError<'_>,
    keyword: &str,
    place: &str,
    about: &About<'_>,
) -> Vec<Entry> {
    let path = error.schema_path().to_string();
    let rules = path
        .rfind(keyword)
        .and_then(|at| about.schema.pointer(&path[..at + keyword.len()]))
        .and_then(Value::as_object);
    let object = about.values.pointer(place).and_then(Value::as_object);
    let (Some(rules), Some(object)) = (rules, object) else {
        return vec![Entry::new(place, error.to_string(), Vec::new())];
    };
    let mut entries = Vec::new();
    for (name, wanted) in rules.iter().filter(|(name, _)| object.contains_key(*name)) {
        let wanted = wanted
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let lacking: Vec<&str> = wanted.filter(|name| !object.contains_key(*name)).collect();
        if !lacking.is_empty() {
            let message = format!(
                "properties {} required, if {} exists",
                joined(&lacking),
                quoted(name)
            );
            entries.push(Entry::new(place, message, Vec::new()));
        }
    }
    entries
}

/// Property names that are not allowed, each with its causes.
fn names(errors: &[&ValidationError<'_>], about: &About<'_>) -> Vec<Entry> {
    let mut named: Vec<(String, Vec<&ValidationError<'static>>)> = Vec::new();
    for error in errors {
        let Kind::PropertyNames { error: why } = error.kind() else {
            continue;
        };
        let name = why.instance().as_str().unwrap_or_default();
        match named.iter_mut().find(|(known, _)| known == name) {
            Some((_, reasons)) => reasons.push(why),
            None => named.push((name.to_owned(), vec![why])),
        }
    }
    let entry = |(name, reasons): (String, Vec<&ValidationError<'static>>)| {
        let from = reasons.first().and_then(|why| {
            segments(why)
                .iter()
                .rposition(|segment| segment == "propertyNames")
        });
        let tree = Node::of(reasons, from.map_or(0, |at| at + 1), "").entry(about);
        let causes = tree
            .into_iter()
            .flat_map(Entry::within)
            .map(Entry::of_a_name)
            .collect();
        Entry::new(
            "",
            format!("invalid propertyName {}", quoted(&name)),
            causes,
        )
    };
    named.into_iter().map(entry).collect()
}

/// What is wrong below a place with the schema at a pointer, by the last segment of where. The
/// library does not tell it where something else is wrong because of it.
fn again(
    pointer: &str,
    place: &str,
    below: Below,
    about: &About<'_>,
) -> Option<Vec<(String, Entry)>> {
    if about.looks.replace(about.looks.get() + 1) >= LOOKS {
        return None;
    }
    let (errors, from) = held_again(about.schema, pointer, about.values, place, below)?;
    let depth = place.matches('/').count();
    let mut found: Vec<(String, Vec<&ValidationError<'static>>)> = Vec::new();
    for error in &errors {
        let inside = error.instance_path().to_string();
        let segment = inside.split('/').nth(depth + 1)?;
        match found.iter_mut().find(|(known, _)| known == segment) {
            Some((_, errors)) => errors.push(error),
            None => found.push((segment.to_owned(), vec![error])),
        }
    }
    let entries = found.into_iter().filter_map(|(segment, errors)| {
        let entry = Node::of(errors, from, &format!("{place}/{segment}")).entry(about)?;
        Some((segment, entry))
    });
    Some(entries.collect())
}

/// Too few or too many items that match, with what is wrong with the others.
fn containing(error: &ValidationError<'_>, place: &str, about: &About<'_>) -> Option<Vec<Entry>> {
    let path = error.schema_path().to_string();
    let (parent, _) = path.rsplit_once('/')?;
    let rules = about.schema.pointer(parent)?;
    let wrong = again(&format!("{parent}/contains"), place, Below::Items, about)?;
    let items = about.values.pointer(place)?.as_array()?.len();
    let matched: Vec<String> = (0..items)
        .map(|index| index.to_string())
        .filter(|index| !wrong.iter().any(|(known, _)| known == index))
        .collect();
    // Drafts before 2019 do not know the limits.
    let dialect = about.schema.get("$schema").and_then(Value::as_str);
    let limits = dialect.is_none_or(|dialect| dialect.contains("/draft/20"));
    let limit = |keyword: &str| {
        let limit = rules.get(keyword).filter(|_| limits);
        limit.and_then(Value::as_f64)
    };
    let told = |what: &str, limit: f64| {
        let matching = if matched.is_empty() {
            "none matched".to_owned()
        } else {
            let (count, at) = (number(matched.len() as f64), matched.join(" "));
            format!("matched {count} items at {at}")
        };
        let limit = number(limit);
        format!("{what} {limit} items required to match contains schema, but {matching}")
    };
    let too_few = match limit("minContains") {
        Some(limit) if (matched.len() as f64) < limit => Some(told("min", limit)),
        None if matched.is_empty() => Some(NO_ITEM.to_owned()),
        _ => None,
    };
    let too_many = limit("maxContains")
        .filter(|limit| matched.len() as f64 > *limit)
        .map(|limit| Entry::new(place, told("max", limit), Vec::new()));
    let causes = wrong.into_iter().map(|(_, entry)| entry).collect();
    let too_few = too_few.map(|message| Entry::new(place, message, causes));
    Some(too_few.into_iter().chain(too_many).collect())
}

/// What is wrong with properties and items that no other keyword has looked at.
fn unevaluated(
    error: &ValidationError<'_>,
    unexpected: &[String],
    place: &str,
    about: &About<'_>,
) -> Vec<Entry> {
    let pointer = error.schema_path().to_string();
    let (segments, below) = match about.values.pointer(place) {
        Some(Value::Array(items)) => {
            let indices = positions(items, unexpected);
            let segments = indices.iter().map(usize::to_string).collect();
            (segments, Below::Indices(indices))
        }
        _ => {
            let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
            let segments: Vec<String> = unexpected.iter().map(escaped).collect();
            (segments, Below::Members(unexpected.to_vec()))
        }
    };
    let forbidden = about.schema.pointer(&pointer) == Some(&Value::Bool(false));
    if !forbidden && let Some(wrong) = again(&pointer, place, below, about) {
        return wrong.into_iter().map(|(_, entry)| entry).collect();
    }
    segments
        .iter()
        .map(|segment| {
            let place = format!("{place}/{segment}");
            Entry::new(&place, "false schema".to_owned(), Vec::new())
        })
        .collect()
}

/// Where items are that are known by their texts only: they are the last ones of a list, as a rule.
fn positions(items: &[Value], texts: &[String]) -> Vec<usize> {
    let shown: Vec<String> = items.iter().map(Value::to_string).collect();
    let mut left = shown.len();
    let mut found: Vec<usize> = texts
        .iter()
        .rev()
        .filter_map(|text| {
            left = shown[..left].iter().rposition(|item| item == text)?;
            Some(left)
        })
        .collect();
    found.reverse();
    found
}

fn single(error: &ValidationError<'_>, place: &str, about: &About<'_>) -> Vec<Entry> {
    if matches!(error.kind(), Kind::Contains)
        && let Some(entries) = containing(error, place, about)
    {
        return entries;
    }
    let from = segments(error).len() + 1;
    let alternatives = |context: &[Vec<ValidationError<'static>>]| {
        context
            .iter()
            .filter_map(|errors| Node::of(errors, from, place).entry(about))
            .collect::<Vec<_>>()
    };
    let (message, causes) = match error.kind() {
        Kind::AnyOf { context } => ("'anyOf' failed".to_owned(), alternatives(context)),
        Kind::OneOfNotValid { context } => (
            "'oneOf' failed, none matched".to_owned(),
            alternatives(context),
        ),
        Kind::OneOfMultipleValid { context } => {
            let matched: Vec<String> = context
                .iter()
                .enumerate()
                .filter(|(_, e)| e.is_empty())
                .map(|(i, _)| i.to_string())
                .take(2)
                .collect();
            (
                format!("'oneOf' failed, subschemas {} matched", matched.join(", ")),
                Vec::new(),
            )
        }
        Kind::UnevaluatedProperties { unexpected } | Kind::UnevaluatedItems { unexpected } => {
            return unevaluated(error, unexpected, place, about);
        }
        // The object in which no property is allowed is known only by its location.
        Kind::FalseSchema
            if error
                .schema_path()
                .to_string()
                .ends_with("/additionalProperties") =>
        {
            let object = about.values.pointer(place).and_then(Value::as_object);
            let names: Vec<&str> = object
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            (
                format!("additional properties {} not allowed", joined(&names)),
                Vec::new(),
            )
        }
        kind => (message(kind, error), Vec::new()),
    };
    vec![Entry::new(place, message, causes)]
}

/// The keywords and indices on the path to the schema.
fn segments(error: &ValidationError<'_>) -> Vec<String> {
    let path = error.evaluation_path().to_string();
    path.split('/')
        .skip(1)
        .map(|s| s.replace("~1", "/").replace("~0", "~"))
        .collect()
}
