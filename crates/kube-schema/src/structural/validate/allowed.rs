//! Checks a value against the `enum` of a schema. Main function: [`is`].

use serde_json::Value;

/// The real server converts the value to the type of the allowed one if Go can do so: that
/// truncates a fraction to an integer, and turns a number into a character.
pub fn is(value: &Value, allowed: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(allowed), Value::Number(n)) => match allowed.as_i64() {
            Some(allowed) => n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)) == Some(allowed),
            None => allowed.as_f64() == n.as_f64(),
        },
        (Value::String(allowed), Value::Number(n)) => {
            let letter = n
                .as_i64()
                .and_then(|n| u32::try_from(n).ok())
                .and_then(char::from_u32);
            letter.is_some_and(|letter| allowed.chars().eq([letter]))
        }
        _ => allowed == value,
    }
}
