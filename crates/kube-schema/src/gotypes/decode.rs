//! The binary request body of typed clients: `k8s\0`, an envelope, and the object in protobuf. Main
//! function: [`decode`].

use super::{Field, Struct, Type, find, of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Gvk;

/// The first bytes of every such body.
const MAGIC: &[u8] = b"k8s\0";
const MAX_DEPTH: usize = 100;

/// Why a body cannot be decoded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("the body is not in the Kubernetes protobuf format")]
    NoMagic,
    #[error("the body ends inside a field")]
    Truncated,
    #[error("the body is nested too deeply")]
    TooDeep,
    #[error("the kind {0} is not known in protobuf; send JSON")]
    UnknownKind(String),
    #[error("a string in the body is not UTF-8")]
    NotUtf8,
}

/// Decodes a body into the object's JSON.
pub fn decode(body: &[u8]) -> Result<Value, DecodeError> {
    let mut envelope = Reader(body.strip_prefix(MAGIC).ok_or(DecodeError::NoMagic)?);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some((number, wire)) = envelope.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => {
                let mut meta = Reader(bytes);
                while let Some((number, wire)) = meta.field()? {
                    match (number, wire) {
                        (1, Wire::Bytes(b)) => api_version = text(b)?,
                        (2, Wire::Bytes(b)) => kind = text(b)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let gvk = Gvk::from_api_version(&api_version, &kind);
    let special = (kind == "DeleteOptions")
        .then(|| find("meta/v1.DeleteOptions"))
        .flatten();
    let of = special
        .or_else(|| of(&gvk))
        .ok_or_else(|| DecodeError::UnknownKind(gvk.to_string()))?;
    let mut map = message(raw, of, 0)?;
    map.insert("apiVersion".into(), api_version.into());
    map.insert("kind".into(), kind.into());
    Ok(Value::Object(map))
}

enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.0.split_at_checked(n).ok_or(DecodeError::Truncated)?;
        self.0 = tail;
        Ok(head)
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Truncated)
    }

    fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, DecodeError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(
                self.take(8)?
                    .try_into()
                    .map_err(|_| DecodeError::Truncated)?,
            )),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| DecodeError::Truncated)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(
                self.take(4)?
                    .try_into()
                    .map_err(|_| DecodeError::Truncated)?,
            )),
            _ => return Err(DecodeError::Truncated),
        };
        Ok(Some((
            u32::try_from(key >> 3).map_err(|_| DecodeError::Truncated)?,
            wire,
        )))
    }
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| DecodeError::NotUtf8)
}

fn message(
    bytes: &[u8],
    of: &'static Struct,
    depth: usize,
) -> Result<Map<String, Value>, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::TooDeep);
    }
    let mut map = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let Some(field) = of.fields.iter().find(|f| f.number == number) {
            put(&mut map, field, &wire, depth)?;
        }
    }
    Ok(map)
}

fn put(
    map: &mut Map<String, Value>,
    field: &Field,
    wire: &Wire<'_>,
    depth: usize,
) -> Result<(), DecodeError> {
    match &field.ty {
        Type::Message(inner) if field.inline => {
            if let (Wire::Bytes(bytes), Some(inner)) = (wire, inner.find()) {
                map.extend(message(bytes, inner, depth + 1)?);
            }
        }
        Type::List(item) => {
            let value = value(item, wire, depth)?;
            match map.entry(field.name).or_insert_with(|| json!([])) {
                Value::Array(list) => list.push(value),
                _ => return Err(DecodeError::Truncated),
            }
        }
        Type::Map(item) => {
            let Wire::Bytes(bytes) = wire else {
                return Err(DecodeError::Truncated);
            };
            let (mut key, mut held) = (String::new(), Value::Null);
            let mut entry = Reader(bytes);
            while let Some((number, wire)) = entry.field()? {
                match (number, &wire) {
                    (1, Wire::Bytes(b)) => key = text(b)?,
                    (2, _) => held = value(item, &wire, depth)?,
                    _ => {}
                }
            }
            if let Value::Object(inner) = map.entry(field.name).or_insert_with(|| json!({})) {
                inner.insert(key, held);
            }
        }
        ty => {
            let value = value(ty, wire, depth)?;
            if !value.is_null() {
                map.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn value(ty: &Type, wire: &Wire<'_>, depth: usize) -> Result<Value, DecodeError> {
    Ok(match (ty, wire) {
        (Type::String, Wire::Bytes(b)) => text(b)?.into(),
        (Type::Bytes, Wire::Bytes(b)) => STANDARD.encode(b).into(),
        (Type::Bool, Wire::Varint(n)) => (*n != 0).into(),
        // Negative numbers are encoded as 64-bit two's complement.
        (Type::Int32 | Type::Int64, Wire::Varint(n)) => n.cast_signed().into(),
        (Type::Float, Wire::Fixed64(n)) => f64::from_bits(*n).into(),
        (Type::Float, Wire::Fixed32(n)) => f64::from(f32::from_bits(*n)).into(),
        (Type::Time | Type::MicroTime, Wire::Bytes(b)) => time(b, matches!(ty, Type::MicroTime))?,
        (Type::Duration, Wire::Bytes(b)) => {
            let nanos = numbers(b)?.0.unwrap_or(0);
            format!("{}s", nanos as f64 / 1e9).into()
        }
        (Type::Quantity, Wire::Bytes(b)) => first_string(b)?.into(),
        (Type::IntOrString, Wire::Bytes(b)) => int_or_string(b)?,
        (
            Type::Raw | Type::SchemaOrList | Type::SchemaOrBool | Type::SchemaOrTexts,
            Wire::Bytes(b),
        ) => {
            let inner = first_bytes(b)?;
            serde_json::from_slice(inner).unwrap_or(Value::Null)
        }
        (Type::Message(inner), Wire::Bytes(b)) => match inner.find() {
            Some(inner) => Value::Object(message(b, inner, depth + 1)?),
            None => Value::Null,
        },
        // A named list inside a map or list is a message with one repeated field.
        (Type::List(item), Wire::Bytes(b)) => {
            let mut list = Vec::new();
            let mut reader = Reader(b);
            while let Some((_, wire)) = reader.field()? {
                list.push(value(item, &wire, depth + 1)?);
            }
            list.into()
        }
        _ => return Err(DecodeError::Truncated),
    })
}

/// The first two number fields of a message.
fn numbers(bytes: &[u8]) -> Result<(Option<i64>, Option<i64>), DecodeError> {
    let mut found = (None, None);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint(n)) => found.0 = Some(n.cast_signed()),
            (2, Wire::Varint(n)) => found.1 = Some(n.cast_signed()),
            _ => {}
        }
    }
    Ok(found)
}

fn time(bytes: &[u8], micro: bool) -> Result<Value, DecodeError> {
    let (seconds, nanos) = numbers(bytes)?;
    if seconds.is_none() && nanos.is_none() {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos.unwrap_or(0)).map_err(|_| DecodeError::Truncated)?;
    let time =
        jiff::Timestamp::new(seconds.unwrap_or(0), nanos).map_err(|_| DecodeError::Truncated)?;
    let format = if micro {
        "%Y-%m-%dT%H:%M:%S%.6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(time.strftime(format).to_string().into())
}

fn first_bytes(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(b)) = (number, wire) {
            return Ok(b);
        }
    }
    Ok(&[])
}

fn first_string(bytes: &[u8]) -> Result<String, DecodeError> {
    text(first_bytes(bytes)?)
}

fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (kind, number) = numbers(bytes)?;
    if kind.unwrap_or(0) == 0 {
        return Ok(number.unwrap_or(0).into());
    }
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (3, Wire::Bytes(b)) = (number, wire) {
            return Ok(text(b)?.into());
        }
    }
    Ok("".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_as_kubectl_sends_it_is_read() {
        let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1b\x0a\x13\x0a\x03foo\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\
                     \x12\x00\x1a\x02\x0a\x00\x1a\x00\"\x00";
        let value = decode(body).expect("reads");
        assert_eq!(
            (
                &value["kind"],
                &value["apiVersion"],
                &value["metadata"]["name"]
            ),
            (&"Namespace".into(), &"v1".into(), &"foo".into())
        );
        for end in 0..body.len() {
            // No prefix makes it panic.
            let _ = decode(&body[..end]);
        }
    }
}
