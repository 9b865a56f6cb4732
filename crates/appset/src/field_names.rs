//! Names of fields as Go's decoder of JSON takes them: in any case. Main function: [`spelled`].

use serde_json::{Map, Value as Json};
use tiphys_apimachinery::schema::{TypeKind, TypeRef};

/// The document with the names of fields as its type spells them. One that is there in several
/// spellings is decoded several times, each over what was there before.
pub fn spelled(json: Json, ty: TypeRef<'_>) -> Json {
    match json {
        Json::Object(members) if ty.kind() == TypeKind::Object => {
            let mut all = Map::new();
            for (key, value) in members {
                let Some((name, field)) = field(ty, &key) else {
                    all.insert(key, value);
                    continue;
                };
                let value = spelled(value, field);
                match all.get_mut(name) {
                    Some(old) => decode_over(old, value, field),
                    None => {
                        all.insert(name.to_owned(), value);
                    }
                }
            }
            Json::Object(all)
        }
        Json::Object(members) => match ty.values() {
            Some(values) => members
                .into_iter()
                .map(|(key, value)| (key, spelled(value, values)))
                .collect(),
            None => Json::Object(members),
        },
        Json::Array(items) => match ty.items() {
            Some(item) => items.into_iter().map(|json| spelled(json, item)).collect(),
            None => Json::Array(items),
        },
        other => other,
    }
}

/// The field that a key names; the exact name goes first.
fn field<'t>(ty: TypeRef<'t>, key: &str) -> Option<(&'t str, TypeRef<'t>)> {
    let exact = ty.fields().find(|(name, _)| *name == key);
    exact.or_else(|| ty.fields().find(|(name, _)| is_spelling(name, key)))
}

fn is_spelling(name: &str, key: &str) -> bool {
    let folded = |c: char| match c {
        // Unicode's other spellings of letters of ASCII.
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(folded).eq(key.chars().map(folded))
}

/// Fields and keys that the second one lacks keep their values; lists and opaque values are
/// replaced.
fn decode_over(old: &mut Json, new: Json, ty: TypeRef<'_>) {
    let is_opaque = ty.kind() == TypeKind::Any
        || ty
            .values()
            .is_some_and(|values| values.kind() == TypeKind::Any);
    match (old, new) {
        (_, Json::Null) => {}
        (Json::Object(old), Json::Object(new)) if !is_opaque => {
            for (key, value) in new {
                match (old.get_mut(&key), ty.named_field(&key)) {
                    (Some(old), Some(field)) => decode_over(old, value, field),
                    _ => {
                        old.insert(key, value);
                    }
                }
            }
        }
        (old, new) => *old = new,
    }
}
