//! Whether a value is one of the few that a schema allows. Main function: [`is`].

use serde_json::Value;

/// The real server makes the value one of the type that is allowed if Go can do so: that cuts off
/// the fraction before a whole number, and makes a character of a number.
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
