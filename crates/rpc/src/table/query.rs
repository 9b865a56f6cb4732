//! Converts the query and path of a REST request to fields of its message: `a.b=c` is a nested
//! field, and a repeated parameter is a list.
//!
//! Main function: [`read`]. Callers may be unauthenticated, so nothing here nests deeper than
//! [`MAX_DEPTH`].

use super::{
    Bindings, Fields, percent_decode,
    texts::{Given, Texts},
};
use crate::ApiError;
use serde_json::{Map, Value};

/// Maximum number of parts in a parameter's name or a path in `fields`. No message of the API is
/// nested that deeply.
pub const MAX_DEPTH: usize = 32;

/// Adds the query parameters to a message that may have come in a body, then the path variables,
/// which take precedence.
pub fn read(
    message: &mut Map<String, Value>,
    query: &str,
    bindings: Bindings,
) -> Result<(Option<Fields>, Texts), ApiError> {
    let (mut fields, mut texts) = (None, Texts::default());
    for (name, value) in query
        .split('&')
        .filter(|p| !p.is_empty())
        .map(|p| p.split_once('=').unwrap_or((p, "")))
    {
        if name.contains(';') || value.contains(';') {
            return Err(ApiError::invalid("invalid semicolon separator in query"));
        }
        match form_decode(name)?.as_str() {
            "fields" if fields.is_some() => {}
            "fields" => fields = Fields::parse(&form_decode(value)?)?,
            name => {
                add(message, name, form_decode(value)?)?;
                texts.add(&parts(name, PARAMETER)?, Given::Query);
            }
        }
    }
    for (name, value) in bindings {
        // The gateway of Argo CD does not find it: the name of an Application is that of the body.
        if name == APPLICATION {
            continue;
        }
        set(message, &name, value)?;
        texts.add(&parts(&name, PARAMETER)?, Given::Path);
    }
    Ok((fields, texts))
}

const APPLICATION: &str = "application.metadata.name";
/// What has too many parts.
const PARAMETER: &str = "the name of a query parameter";

/// The parts of a dotted name.
pub(super) fn parts<'a>(name: &'a str, what: &str) -> Result<Vec<&'a str>, ApiError> {
    let parts: Vec<&str> = name.split('.').take(MAX_DEPTH + 1).collect();
    if parts.len() > MAX_DEPTH {
        return Err(ApiError::invalid(format!(
            "{what} has more than {MAX_DEPTH} parts"
        )));
    }
    Ok(parts)
}

fn form_decode(text: &str) -> Result<String, ApiError> {
    if let Some(escape) = bad_escape(text) {
        let why = format!("invalid URL escape {escape:?}");
        return Err(ApiError::invalid(why));
    }
    Ok(percent_decode(&text.replace('+', " ")))
}

/// The first `%` without two digits, with what follows it.
fn bad_escape(text: &str) -> Option<String> {
    let mut after = text.split('%').skip(1);
    let is_bad = |rest: &&str| {
        let mut digits = rest.bytes().take(2);
        rest.len() < 2 || !digits.all(|b| b.is_ascii_hexdigit())
    };
    let at = after.position(|rest| is_bad(&rest))?;
    let start = text.match_indices('%').nth(at)?.0;
    let shown = text.as_bytes().iter().skip(start).take(3).copied();
    Some(String::from_utf8_lossy(&shown.collect::<Vec<_>>()).into_owned())
}

fn add(message: &mut Map<String, Value>, name: &str, value: String) -> Result<(), ApiError> {
    // Keep what the body has set.
    match field(message, name)? {
        Some(slot @ Value::Null) => *slot = Value::String(value),
        Some(Value::Array(items)) => items.push(Value::String(value)),
        Some(slot @ Value::String(_)) => {
            *slot = Value::Array(vec![slot.take(), Value::String(value)])
        }
        _ => {}
    }
    Ok(())
}

fn set(message: &mut Map<String, Value>, name: &str, value: String) -> Result<(), ApiError> {
    if let Some(slot) = field(message, name)? {
        *slot = Value::String(value);
    }
    Ok(())
}

/// The field's slot; `None` if a part of its name is not an object.
fn field<'a>(
    message: &'a mut Map<String, Value>,
    name: &str,
) -> Result<Option<&'a mut Value>, ApiError> {
    let parts = parts(name, PARAMETER)?;
    let Some((last, first)) = parts.split_last() else {
        return Ok(None);
    };
    let mut map = message;
    for part in first {
        match map
            .entry(*part)
            .or_insert_with(|| Value::Object(Map::new()))
        {
            Value::Object(inner) => map = inner,
            _ => return Ok(None),
        }
    }
    Ok(Some(map.entry(*last).or_insert(Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn query_and_path_build_the_message() {
        let mut message = Map::from_iter([
            ("flag".to_owned(), json!(true)),
            ("text".to_owned(), json!("t")),
        ]);
        let query = "projects=a&projects=b&source.repoURL=u&source.path=a+b%2Fc&flag=false&flag.x=1&&text=u";
        let (fields, _) = read(
            &mut message,
            query,
            vec![
                ("application.metadata.name".into(), "n".into()),
                ("id.value".into(), "v".into()),
            ],
        )
        .expect("it is read");
        assert!(fields.is_none());
        assert_eq!(
            Value::Object(message),
            json!({
                "projects": ["a", "b"], "source": {"repoURL": "u", "path": "a b/c"}, "flag": true, "text": ["t", "u"],
                "id": {"value": "v"},
            })
        );
    }

    #[test]
    fn a_query_that_is_not_escaped_is_refused() {
        for (query, why) in [
            ("name=%zz", "invalid URL escape \"%zz\""),
            ("a=b%20%", "invalid URL escape \"%\""),
            ("%4=b", "invalid URL escape \"%4\""),
            ("a=1;b=2", "invalid semicolon separator in query"),
        ] {
            let e = read(&mut Map::new(), query, Vec::new()).expect_err("it is refused");
            assert_eq!(e, ApiError::invalid(why), "{query}");
        }
    }

    #[test]
    fn a_name_has_a_limited_number_of_parts() {
        for (parts, fits) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false), (12_000, false)] {
            let name = vec!["a"; parts].join(".");
            for query in [
                format!("{name}=1"),
                format!("fields={name}"),
                format!("fields=b,-{name}"),
            ] {
                assert_eq!(
                    read(&mut Map::new(), &query, Vec::new()).is_ok(),
                    fits,
                    "{parts} {}",
                    &query[..8]
                );
            }
        }
    }
}
