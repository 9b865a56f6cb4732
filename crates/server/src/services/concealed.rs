//! Puts stored passwords back where a client sends what it was shown: answers have [`HIDDEN`] in
//! their place. Where none is stored, the field is refused.
//!
//! Main functions: [`of_app`], [`of_set`], [`of_url`]. The other way is `shown`.

use crate::ApiError;
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    mem::discriminant,
};
use tiphys_api::{
    Application, ApplicationSet,
    access::{HIDDEN, has_hidden, hide_password, hide_passwords},
    application::ApplicationSpec,
    source::ApplicationSource,
};
use tiphys_rpc::heavy;

/// How many bytes of sent and stored elements are compared to find out which one is meant. Of more,
/// the fields are refused.
const MOST: usize = 64 << 20;
/// What a value counts besides its text.
const VALUE: usize = 32;

fn unknown(field: &str) -> ApiError {
    ApiError::invalid(format!(
        "{field}: {HIDDEN} stands for a password that is shown to nobody, and it is not known \
         which stored one is meant; give the URL with its password"
    ))
}

/// Whether an Application has the mark where a password would be.
pub(crate) fn is_in_app(app: &Application) -> bool {
    let spec = &app.spec;
    let hydrator = spec.source_hydrator.iter();
    let hydrator = hydrator.flat_map(|h| [&h.dry_source.repo_url, &h.sync_source.repo_url]);
    let sources = spec.source.iter().chain(&spec.sources);
    let mut urls = sources
        .flat_map(|source| source.urls())
        .chain(hydrator)
        .chain([&spec.destination.server])
        .chain(app.metadata.annotations.values());
    urls.any(|url| has_hidden(url))
}

/// The same for a set, which may have a URL in any text.
pub(crate) fn is_in_set(set: &ApplicationSet) -> Result<bool, ApiError> {
    let mut annotations = set.metadata.annotations.values();
    Ok(annotations.any(|text| has_hidden(text)) || is_in(&spec_of(set)?))
}

/// Puts the password of a stored URL into a new version of it.
pub(crate) fn of_url(field: &str, url: &mut String, stored: Option<&str>) -> Result<(), ApiError> {
    if !has_hidden(url) {
        return Ok(());
    }
    match stored {
        Some(original) if *original == **url => {}
        Some(original) if hide_password(original).as_ref() == Some(&*url) => {
            original.clone_into(url);
        }
        _ => return Err(unknown(field)),
    }
    Ok(())
}

/// Puts the passwords of the stored Application into a new version of it.
pub(crate) fn of_app(new: &mut Application, stored: Option<&Application>) -> Result<(), ApiError> {
    if !is_in_app(new) {
        return Ok(());
    }
    let mut known = stored.map(|app| ApplicationSpec::clone(&app.spec));
    let places = known.as_ref().map(|known| places(&new.spec, known));
    let places = places.unwrap_or_default();
    let known: BTreeMap<String, String> = known
        .iter_mut()
        .flat_map(urls_of)
        .map(|(field, url)| (field, url.clone()))
        .collect();
    for (field, url) in urls_of(&mut new.spec) {
        if !has_hidden(url) || known.get(&field) == Some(&*url) {
            continue;
        }
        let is_meant = |original: &&String| hide_password(original).as_ref() == Some(&*url);
        let in_place = places.iter().any(|place| field.starts_with(place));
        let of_field = known.get(&field).filter(|_| in_place).filter(is_meant);
        let original = of_field.or_else(|| only(known.values().filter(is_meant)));
        let original = original.ok_or_else(|| unknown(&field))?;
        original.clone_into(url);
    }
    let known = stored.map(|app| &app.metadata.annotations);
    annotations(&mut new.metadata.annotations, known)
}

/// What the fields begin with that are where they were. A source may have been moved, so only one
/// whose other fields are as they were counts.
fn places(new: &ApplicationSpec, known: &ApplicationSpec) -> Vec<String> {
    let stay =
        known.sources.len() == new.sources.len() && known.source.is_some() == new.source.is_some();
    if !stay {
        return Vec::new();
    }
    let alone = [
        "spec.source.repoURL",
        "spec.sourceHydrator.",
        "spec.destination.",
    ];
    let mut places: Vec<String> = alone.map(str::to_owned).into();
    let source = new.source.iter().zip(&known.source);
    let source = source.map(|pair| ("spec.source.".to_owned(), pair));
    let sources = new.sources.iter().zip(&known.sources).enumerate();
    let sources = sources.map(|(i, pair)| (format!("spec.sources[{i}]."), pair));
    let same = source
        .chain(sources)
        .filter(|(_, (new, known))| source_as_shown(new) == source_as_shown(known));
    places.extend(same.map(|(place, _)| place));
    places
}

fn source_as_shown(source: &ApplicationSource) -> ApplicationSource {
    let mut shown = source.clone();
    for url in shown.urls_mut() {
        if let Some(hidden) = hide_password(url) {
            *url = hidden;
        }
    }
    shown
}

/// Puts the passwords of the stored set into a new version of it.
pub(crate) async fn of_set(
    mut new: ApplicationSet,
    stored: Option<ApplicationSet>,
) -> Result<ApplicationSet, ApiError> {
    heavy::run(move || restore_set(&mut new, stored.as_ref()).map(|()| new)).await
}

fn restore_set(new: &mut ApplicationSet, stored: Option<&ApplicationSet>) -> Result<(), ApiError> {
    let mut spec = spec_of(new)?;
    if is_in(&spec) {
        let known = stored.map_or(Ok(Value::Null), spec_of)?;
        let mut rest = MOST;
        restore(&mut spec, &known, &mut rest);
        if let Some(field) = left(&spec, &known, "spec") {
            return Err(unknown(&field));
        }
        new.spec = serde_json::from_value(spec)
            .map_err(|e| ApiError::internal(format!("error reading the set's spec: {e}")))?;
    }
    let known = stored.map(|set| &set.metadata.annotations);
    annotations(&mut new.metadata.annotations, known)
}

fn spec_of(set: &ApplicationSet) -> Result<Value, ApiError> {
    serde_json::to_value(&set.spec)
        .map_err(|e| ApiError::internal(format!("error reading the set's spec: {e}")))
}

/// Everything in a spec that is shown without passwords, and the names of the fields.
fn urls_of(spec: &mut ApplicationSpec) -> Vec<(String, &mut String)> {
    let mut urls = Vec::new();
    if let Some(source) = &mut spec.source {
        let named = source.named_urls_mut().into_iter();
        urls.extend(named.map(|(field, url)| (format!("spec.source.{field}"), url)));
    }
    for (i, source) in spec.sources.iter_mut().enumerate() {
        let named = source.named_urls_mut().into_iter();
        urls.extend(named.map(|(field, url)| (format!("spec.sources[{i}].{field}"), url)));
    }
    if let Some(hydrator) = &mut spec.source_hydrator {
        let field = |name: &str| format!("spec.sourceHydrator.{name}.repoURL");
        urls.push((field("drySource"), &mut hydrator.dry_source.repo_url));
        urls.push((field("syncSource"), &mut hydrator.sync_source.repo_url));
    }
    let server = &mut spec.destination.server;
    urls.push(("spec.destination.server".to_owned(), server));
    urls
}

/// What all of them are; `None` if they differ: nobody can tell which one is meant.
fn only<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

fn annotations(
    new: &mut BTreeMap<String, String>,
    known: Option<&BTreeMap<String, String>>,
) -> Result<(), ApiError> {
    for (key, text) in new {
        if !has_hidden(text) {
            continue;
        }
        match known.and_then(|known| known.get(key)) {
            Some(original) if *original == *text => {}
            Some(original) if hide_passwords(original) == *text => original.clone_into(text),
            _ => return Err(unknown(&format!("metadata.annotations[{key}]"))),
        }
    }
    Ok(())
}

fn is_in(value: &Value) -> bool {
    match value {
        Value::String(text) => has_hidden(text),
        Value::Array(items) => items.iter().any(is_in),
        Value::Object(members) => members.values().any(is_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value as it is shown.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(hide_passwords(text)),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(key, member)| (key.clone(), shown(member)))
                .collect()
        }
        other => other.clone(),
    }
}

/// About how many bytes a value takes.
fn weight(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(k, v)| k.len() + weight(v)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE + content
}

/// Whether so much may still be compared; if not, nothing may any more.
fn spend(rest: &mut usize, bytes: usize) -> bool {
    let left = rest.checked_sub(bytes);
    *rest = left.unwrap_or_default();
    left.is_some()
}

/// Puts stored texts in place of how they are shown. `rest` is how much may still be compared.
fn restore(new: &mut Value, known: &Value, rest: &mut usize) {
    match (new, known) {
        (Value::String(text), Value::String(original))
            if has_hidden(text) && hide_passwords(original) == *text =>
        {
            original.clone_into(text);
        }
        (Value::Object(members), Value::Object(known)) => {
            for (key, member) in members {
                if let Some(known) = known.get(key) {
                    restore(member, known, rest);
                }
            }
        }
        (Value::Array(items), Value::Array(known)) => restore_items(items, known, rest),
        _ => {}
    }
}

/// Elements may have been added, removed or moved. The stored one is the one that was shown like
/// this: of several, that at its place. For an element that was changed, it is the one that has all
/// passwords it needs, if there is no other.
fn restore_items(items: &mut [Value], known: &[Value], rest: &mut usize) {
    if !items.iter().any(is_in) {
        return;
    }
    let weights: Vec<usize> = known.iter().map(weight).collect();
    let sent: usize = items.iter().map(weight).sum();
    if !spend(rest, weights.iter().sum::<usize>() + sent) {
        return;
    }
    let all_shown: Vec<Value> = known.iter().map(shown).collect();
    let mut by_look: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, shown) in all_shown.iter().enumerate() {
        by_look.entry(shown.to_string()).or_default().push(i);
    }
    let stays = items.len() == known.len();
    for (at, item) in items.iter_mut().enumerate().filter(|(_, item)| is_in(item)) {
        if let Some(same) = by_look.get(&item.to_string()) {
            let here = same.iter().find(|i| stays && **i == at);
            let here = here.map(|i| &known[*i]);
            if let Some(original) = here.or_else(|| only(same.iter().map(|i| &known[*i]))) {
                *item = original.clone();
            }
            continue;
        }
        let size = weight(item);
        let mut complete = Vec::new();
        for (i, known) in known.iter().enumerate() {
            // Without a password of its own it has none to give.
            if discriminant(known) != discriminant(&*item) || all_shown[i] == *known {
                continue;
            }
            if !spend(rest, size + weights[i]) {
                break;
            }
            let mut tried = item.clone();
            restore(&mut tried, known, rest);
            if !is_in(&tried) {
                complete.push(tried);
            }
        }
        // Else there may be others that were not compared.
        if *rest > 0
            && let Some(found) = only(complete.into_iter())
        {
            *item = found;
        }
    }
}

/// The first text that still has the mark and did not have it before.
fn left(new: &Value, known: &Value, field: &str) -> Option<String> {
    match new {
        Value::String(text) => (has_hidden(text) && new != known).then(|| field.to_owned()),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
            let known = known.get(i).unwrap_or(&Value::Null);
            left(item, known, &format!("{field}[{i}]"))
        }),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let known = known.get(key).unwrap_or(&Value::Null);
            left(member, known, &format!("{field}.{key}"))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn restored(new: &Value, known: &Value) -> Result<Value, String> {
        let (mut new, mut rest) = (new.clone(), MOST);
        restore(&mut new, known, &mut rest);
        match left(&new, known, "spec") {
            None => Ok(new),
            Some(field) => Err(field),
        }
    }

    #[test]
    fn an_element_finds_its_password_wherever_it_went() {
        let url = |password: &str| format!("https://u:{password}@h/r");
        let of = |env: &str, password: &str| json!({"env": env, "url": url(password)});
        let known = json!([of("dev", "A"), of("prod", "B")]);
        for (new, wanted) in [
            (
                json!([of("dev", HIDDEN), of("prod", HIDDEN)]),
                known.clone(),
            ),
            (
                json!([of("prod", HIDDEN), of("dev", HIDDEN)]),
                json!([of("prod", "B"), of("dev", "A")]),
            ),
            (json!([of("prod", HIDDEN)]), json!([of("prod", "B")])),
            (
                json!([of("dev", HIDDEN), of("prod", "C")]),
                json!([of("dev", "A"), of("prod", "C")]),
            ),
            (
                json!([of("new", "C"), of("dev", HIDDEN), of("prod", HIDDEN)]),
                json!([of("new", "C"), of("dev", "A"), of("prod", "B")]),
            ),
        ] {
            assert_eq!(restored(&new, &known), Ok(wanted), "{new}");
        }
        // Either password may be meant, or none. The place says nothing of a changed element.
        for new in [
            json!([of("test", HIDDEN)]),
            json!([of("test", HIDDEN), of("prod", "C")]),
        ] {
            assert_eq!(restored(&new, &known), Err("spec[0].url".to_owned()));
        }
        let new = json!([of("dev", HIDDEN), "https://u:******@other/r"]);
        assert_eq!(restored(&new, &known), Err("spec[1]".to_owned()));
    }

    #[test]
    fn of_too_much_nothing_is_guessed() {
        let url = |password: &str| format!("https://u:{password}@h/r");
        let known = json!([{"env": "dev", "url": url("A")}, {"env": "prod", "url": "x"}]);
        let new = json!([{"env": "test", "url": url(HIDDEN)}, {"env": "prod", "url": "x"}]);
        let whole = weight(&new) + weight(&known) - 2 * VALUE;
        // All of both lists, then all of the first elements.
        let tried = weight(&new[0]) + weight(&known[0]);
        for (rest, is_found) in [(whole - 1, false), (whole + tried, false), (MOST, true)] {
            let (mut tried, mut rest) = (new.clone(), rest);
            restore(&mut tried, &known, &mut rest);
            assert_eq!(tried != new, is_found, "{rest}");
        }
    }

    #[test]
    fn long_lists_are_compared_quickly() {
        let element = |n: usize, password: &str| json!({"name": n, "more": "x".repeat(500), "url": format!("https://u:{password}@h/r")});
        let all = |password: &dyn Fn(usize) -> String| {
            (0..2000)
                .map(|n| element(n, &password(n)))
                .collect::<Value>()
        };
        let known = all(&|n| format!("password-{n}"));
        let new = all(&|_| HIDDEN.to_owned());
        assert_eq!(restored(&new, &known), Ok(known.clone()));
        // Each of them was changed: that would be millions of pairs.
        let mut changed = new;
        for item in changed.as_array_mut().expect("a list") {
            item["more"] = "y".into();
        }
        assert_eq!(restored(&changed, &known), Err("spec[0].url".to_owned()));
    }
}
