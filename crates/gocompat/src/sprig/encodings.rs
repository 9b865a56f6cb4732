//! base64, base32 and checksums.
//!
//! Main value: [`TABLE`]; [`base64_decoded`] decodes base64 as Go does, with its errors.

use super::args::{Out, string};
use crate::template::{Call, Function, Type};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256, Sha512};

const ONE: &[Type] = &[Type::String];
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "b64enc",
        Function::new(ONE, |call| {
            string(call.budget(), STANDARD.encode(call.string(0)?))
        }),
    ),
    (
        "b64dec",
        Function::new(ONE, |call| decoded(call, base64_decoded)),
    ),
    (
        "b32enc",
        Function::new(ONE, |call| {
            string(call.budget(), base32(call.string(0)?.as_bytes()))
        }),
    ),
    (
        "b32dec",
        Function::new(ONE, |call| decoded(call, base32_decoded)),
    ),
    (
        "sha1sum",
        Function::new(ONE, |call| {
            summed(call, |bytes| hexadecimal(&sha1::Sha1::digest(bytes)))
        }),
    ),
    (
        "sha256sum",
        Function::new(ONE, |call| {
            summed(call, |bytes| hexadecimal(&Sha256::digest(bytes)))
        }),
    ),
    (
        "sha512sum",
        Function::new(ONE, |call| {
            summed(call, |bytes| hexadecimal(&Sha512::digest(bytes)))
        }),
    ),
    (
        "adler32sum",
        Function::new(ONE, |call| summed(call, |bytes| adler32(bytes).to_string())),
    ),
];

/// The decoded text, or the text of the error.
fn decoded(call: &Call<'_>, decode: fn(&[u8]) -> Result<Vec<u8>, String>) -> Out {
    let bytes = decode(call.string(0)?.as_bytes()).unwrap_or_else(String::into_bytes);
    string(call.budget(), bytes)
}

fn summed(call: &Call<'_>, sum: fn(&[u8]) -> String) -> Out {
    let bytes = call.string(0)?.as_bytes();
    call.budget().steps(bytes.len() as u64 / 4)?;
    string(call.budget(), sum(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), b| {
        let low = (low + u32::from(*b)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}

/// Decodes base64 with padding. Line breaks are ignored, and so are leftover bits.
pub(super) fn base64_decoded(text: &[u8]) -> Result<Vec<u8>, String> {
    let illegal = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    let after_lines = |at: usize| {
        at + text[at..]
            .iter()
            .take_while(|b| matches!(b, b'\r' | b'\n'))
            .count()
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    let mut at = after_lines(0);
    while at < text.len() {
        let byte = text[at];
        at += 1;
        if byte == b'=' {
            match count {
                0 | 1 => return illegal(at - 1),
                2 => {
                    at = after_lines(at);
                    match text.get(at) {
                        None => return illegal(text.len()),
                        Some(b'=') => at += 1,
                        Some(_) => return illegal(at - 1),
                    }
                }
                _ => {}
            }
            at = after_lines(at);
            if at < text.len() {
                return illegal(at);
            }
            let whole = (bits << (6 * (4 - count))).to_be_bytes();
            out.extend_from_slice(&whole[1..count]);
            return Ok(out);
        }
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return illegal(at - 1),
        };
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
        at = after_lines(at);
    }
    if count > 0 {
        illegal(text.len() - count)
    } else {
        Ok(out)
    }
}

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for block in bytes.chunks(5) {
        let mut five = [0; 8];
        five[3..3 + block.len()].copy_from_slice(block);
        let bits = u64::from_be_bytes(five);
        let used = (block.len() * 8).div_ceil(5);
        out.extend((0..8).map(|i| {
            if i < used {
                char::from(BASE32[(bits >> (35 - 5 * i)) as usize & 31])
            } else {
                '='
            }
        }));
    }
    out
}

fn base32_decoded(text: &[u8]) -> Result<Vec<u8>, String> {
    let illegal = |at: usize| Err(format!("illegal base32 data at input byte {at}"));
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|b| !matches!(b, b'\r' | b'\n'))
        .collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    for (block, start) in text.chunks(8).zip((0..).step_by(8)) {
        let mut bits = 0_u64;
        let mut used = 8;
        for index in 0..8 {
            let Some(&byte) = block.get(index) else {
                return illegal(text.len() - index);
            };
            let left = text.len() - start - index - 1;
            if byte == b'=' && index >= 2 && left < 8 {
                if left + index < 7 {
                    return illegal(text.len());
                }
                if let Some(wrong) = block[index + 1..].iter().position(|b| *b != b'=') {
                    return illegal(start + index + wrong);
                }
                if matches!(index, 3 | 6) {
                    return illegal(start + index);
                }
                used = index;
                bits <<= 5 * (8 - index);
                break;
            }
            match BASE32.iter().position(|b| *b == byte) {
                Some(value) => bits = bits << 5 | value as u64,
                None => return illegal(start + index),
            }
        }
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + used * 5 / 8]);
        if used < 8 {
            break;
        }
    }
    Ok(out)
}
