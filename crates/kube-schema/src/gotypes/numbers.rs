//! Numbers of a tree that is converted instead of being parsed from text. Main function:
//! [`cut_numbers`].

use super::read::field;
use super::{Struct, Type};
use serde_json::{Map, Value};

/// Truncates numbers to the size of their field, as Go does when it converts a tree instead of
/// parsing text.
pub fn cut_numbers(map: &mut Map<String, Value>, of: &'static Struct) {
    for (key, value) in map.iter_mut() {
        if let Some((field, _)) = field(of, key) {
            cut_numbers_in(value, &field.ty);
        }
    }
}

fn cut_numbers_in(value: &mut Value, ty: &Type) {
    match (ty, &mut *value) {
        (Type::Message(message), Value::Object(map)) => {
            if let Some(inner) = message.find() {
                cut_numbers(map, inner);
            }
        }
        (Type::List(item), Value::Array(list)) => list
            .iter_mut()
            .for_each(|element| cut_numbers_in(element, item)),
        (Type::Map(item), Value::Object(map)) => map
            .values_mut()
            .for_each(|element| cut_numbers_in(element, item)),
        (Type::Int32 | Type::Int64, Value::Number(n)) => {
            let whole = n
                .as_i64()
                .or_else(|| n.as_f64().filter(|n| n.trunc() == *n).map(to_int));
            match whole {
                Some(long) if matches!(ty, Type::Int32) => *value = (long as i32).into(),
                Some(long) => *value = long.into(),
                None => {}
            }
        }
        // These types parse the number in its text form.
        (Type::IntOrString, Value::Number(n)) if n.is_f64() => {
            let whole = n.as_f64().filter(|n| n.trunc() == *n && n.abs() < 1e18);
            whole.into_iter().for_each(|n| *value = to_int(n).into());
        }
        _ => {}
    }
}

/// The processor's conversion: numbers out of range become the smallest integer.
fn to_int(n: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&n) {
        n as i64
    } else {
        i64::MIN
    }
}
