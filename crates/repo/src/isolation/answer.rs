//! Rendered objects on their way from a worker: JSON, one object a line.

use super::json::{DEEPEST, Size};
use tiphys_apimachinery::Object;
use tiphys_render::RenderError;

/// Values in all objects of a render, as [`Size`] counts them.
const MAX_VALUES: usize = 10_000_000;

/// # Errors
/// They cannot be handed over: the owner would refuse them.
pub(super) fn write(objects: &[Object]) -> Result<Vec<u8>, RenderError> {
    write_within(objects, MAX_VALUES)
}

fn write_within(objects: &[Object], most: usize) -> Result<Vec<u8>, RenderError> {
    let mut text = Vec::new();
    let mut values = 0;
    for object in objects {
        let begun = text.len();
        let written = serde_json::to_writer(&mut text, object);
        written.map_err(|e| RenderError::Source(e.to_string()))?;
        let size = Size::of(text.get(begun..).unwrap_or_default());
        if size.depth > DEEPEST {
            let (kind, name) = (object.str_at("/kind"), object.str_at("/metadata/name"));
            return Err(over(format!("the nesting of {kind} {name:?}"), DEEPEST));
        }
        values += size.values;
        if values > most {
            return Err(over("the number of values in the result".to_owned(), most));
        }
        // No line break is left in JSON.
        text.push(b'\n');
    }
    Ok(text)
}

fn over(what: String, limit: usize) -> RenderError {
    RenderError::OverBudget {
        what,
        limit: limit as u64,
    }
}

/// # Errors
/// It is not what `count` objects are written as, or it would take too much memory.
pub(crate) fn read(text: &[u8], count: usize, most: usize) -> Result<Vec<Object>, String> {
    read_within(text, count, most, MAX_VALUES)
}

fn read_within(
    text: &[u8],
    count: usize,
    most: usize,
    values: usize,
) -> Result<Vec<Object>, String> {
    if count > most {
        return Err(format!("the result has more than {most} objects"));
    }
    if Size::may_exceed(text.len(), values) && Size::of(text).values > values {
        return Err(format!("the result has more than {values} values"));
    }
    let mut objects = Vec::new();
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    for line in lines.by_ref().take(count) {
        let object = serde_json::from_slice(line);
        objects.push(object.map_err(|e| format!("the result cannot be read: {e}"))?);
    }
    if objects.len() < count || lines.next().is_some() {
        return Err("the result is not whole".to_owned());
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn objects() -> Vec<Object> {
        let object = |text: &str| {
            let value = json!({
                "metadata": {"name": text}, "numbers": [0.1, -0.0, 1e300, u64::MAX, i64::MIN, null],
            });
            Object::from_value(value).expect("a map")
        };
        vec![object("one\n\"two\"\\\r\u{2028}"), object("")]
    }

    #[test]
    fn objects_come_back_as_they_were() {
        let text = write(&objects()).expect("text");
        assert_eq!(read(&text, 2, 2), Ok(objects()));
        assert_eq!(read(&[], 0, 0), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_be_read_is_not_written() {
        let nested = |levels: usize| {
            // The object and its list are two more.
            let inner = (2..levels).fold(json!([]), |inner, _| json!([inner]));
            let value = json!({"kind": "A", "metadata": {"name": "deep"}, "list": inner});
            vec![Object::from_value(value).expect("a map")]
        };
        let text = write(&nested(DEEPEST)).expect("it can be read");
        assert_eq!(read(&text, 1, 1), Ok(nested(DEEPEST)));
        let error = write(&nested(DEEPEST + 1)).expect_err("it cannot be read");
        assert_eq!(
            error.to_string(),
            "the nesting of A \"deep\" exceeds the limit of 127"
        );
        let error = write_within(&objects(), 10).expect_err("too many values");
        assert_eq!(
            error.to_string(),
            "the number of values in the result exceeds the limit of 10"
        );
    }

    #[test]
    fn what_is_not_whole_or_too_much_is_refused() {
        let text = write(&objects()).expect("text");
        let half = &text[..text.len() / 2 - 1];
        for (text, count) in [
            (&text[..], 1),
            (&text[..], 3),
            (half, 1),
            (&b"[]\n"[..], 1),
            (&b"\xff\n"[..], 1),
            (&b"\n\n"[..], 2),
        ] {
            assert!(read(text, count, 5).is_err(), "{count}");
        }
        assert!(read(&text, 2, 1).is_err(), "one object is allowed");
        let lists = format!("{{\"a\":[{}[]]}}\n", "[],".repeat(100));
        assert!(read_within(lists.as_bytes(), 1, 1, 1000).is_ok());
        assert!(read_within(lists.as_bytes(), 1, 1, 100).is_err());
        // A map takes more than a list.
        let maps = format!("{{\"a\":[{}{{}}]}}\n", "{},".repeat(100));
        assert!(read_within(maps.as_bytes(), 1, 1, 1000).is_ok());
        assert!(read_within(maps.as_bytes(), 1, 1, 500).is_err());
        // What looks like lists in a text is none.
        let text = format!("{{\"a\":\"{}\\\"[[\"}}\n", "[,".repeat(100));
        assert!(read_within(text.as_bytes(), 1, 1, 100).is_ok());
        let deep = format!("{{\"a\":{}{}}}\n", "[".repeat(10_000), "]".repeat(10_000));
        assert!(read(deep.as_bytes(), 1, 1).is_err());
    }
}
