//! Objects quoted in a message. Main function: [`managers_in_order`].

use serde_json::Value;

/// The text before the managers of a quoted object.
const MANAGERS: &str = r#"\"managedFields\":["#;

/// The message with the managers of a quoted object in an order that does not depend on time, if
/// they are in the correct order.
pub fn managers_in_order(text: &str) -> String {
    let Some((before, rest)) = text.split_once(MANAGERS) else {
        return text.to_owned();
    };
    let Some((list, after)) = entries(rest) else {
        return text.to_owned();
    };
    let read = |entry: &&str| {
        serde_json::from_str::<String>(&format!("\"{entry}\""))
            .ok()
            .and_then(|json| serde_json::from_str(&json).ok())
    };
    let Some(mut list) = list
        .into_iter()
        .map(|entry| Some((read(&entry)?, entry)))
        .collect::<Option<Vec<(Value, &str)>>>()
    else {
        return text.to_owned();
    };
    if list.is_sorted_by_key(|(entry, _)| key(entry, "time")) {
        list.sort_by_key(|(entry, _)| key(entry, ""));
    }
    let list: Vec<&str> = list.into_iter().map(|(_, entry)| entry).collect();
    format!(
        "{before}{MANAGERS}{}]{}",
        list.join(","),
        managers_in_order(after)
    )
}

/// The sort key of managers; `time` is the name of the field with the time, or empty.
pub fn key(entry: &Value, time: &str) -> [String; 5] {
    ["operation", time, "manager", "apiVersion", "subresource"]
        .map(|field| entry[field].as_str().unwrap_or("").to_owned())
}

/// The elements of a list of maps up to its end, and the text after it.
fn entries(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' | ']' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
                if c == ']' {
                    return Some((found, &text[start..]));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quoted_managers_are_compared_without_their_seconds() {
        let said = |list: [(&str, &str); 2]| {
            let entries = list
                .map(|(manager, time)| json!({"fieldsV1": {"k:{\"a\":1}": {}}, "manager": manager, "operation": "Update", "time": time}));
            let object = json!({"metadata": {"managedFields": entries, "name": "n"}}).to_string();
            managers_in_order(&format!("Invalid value: {}: no", json!(object)))
        };
        let names = |text: &str| {
            (
                text.find("m1").expect("there"),
                text.find("m2").expect("there"),
            )
        };
        for text in [
            said([
                ("m1", "2031-01-02T03:04:05Z"),
                ("m2", "2031-01-02T03:04:05Z"),
            ]),
            said([
                ("m2", "2031-01-02T03:04:05Z"),
                ("m1", "2031-01-02T03:04:06Z"),
            ]),
        ] {
            let (first, second) = names(&text);
            assert!(first < second && text.ends_with(": no"), "{text}");
        }
        let (first, second) = names(&said([
            ("m2", "2031-01-02T03:04:05Z"),
            ("m1", "2031-01-02T03:04:05Z"),
        ]));
        assert!(second < first);
        assert_eq!(
            managers_in_order(r#"x \"managedFields\":[ y"#),
            r#"x \"managedFields\":[ y"#
        );
    }
}
