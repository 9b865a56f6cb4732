//! The comparisons of filters, which are those of Go's templates. Main function: [`holds`].

use serde_json::Value;
use std::cmp::Ordering;

/// What can be compared.
enum Basic<'a> {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(&'a str),
}

fn basic(value: &Value) -> Result<Basic<'_>, String> {
    match value {
        Value::Bool(truth) => Ok(Basic::Bool(*truth)),
        Value::String(text) => Ok(Basic::Text(text)),
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from);
            Ok(match whole.or_else(|| number.as_u64().map(i128::from)) {
                Some(whole) => Basic::Int(whole),
                None => Basic::Float(number.as_f64().unwrap_or(f64::NAN)),
            })
        }
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err("invalid type for comparison".to_owned())
        }
    }
}

/// Whether a comparison is true.
pub fn holds(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let equality = matches!(operator, "==" | "!=");
    let order = match (basic(left)?, basic(right)?) {
        (Basic::Bool(left), Basic::Bool(right)) if equality => Some(left.cmp(&right)),
        (Basic::Bool(_), Basic::Bool(_)) => return Err("invalid type for comparison".to_owned()),
        (Basic::Int(left), Basic::Int(right)) => Some(left.cmp(&right)),
        (Basic::Float(left), Basic::Float(right)) => left.partial_cmp(&right),
        (Basic::Text(left), Basic::Text(right)) => Some(left.cmp(right)),
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    match operator {
        "==" => Ok(order == Some(Ordering::Equal)),
        "!=" => Ok(order != Some(Ordering::Equal)),
        "<" => Ok(order == Some(Ordering::Less)),
        "<=" => Ok(order.is_some_and(Ordering::is_le)),
        ">" => Ok(order == Some(Ordering::Greater)),
        ">=" => Ok(order.is_some_and(Ordering::is_ge)),
        other => Err(format!("unrecognized filter operator {other}")),
    }
}
