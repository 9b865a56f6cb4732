//! Random functions, based on the caller's random bytes.
//!
//! Main functions: [`table`] and [`below`], a uniformly distributed number below a limit.

use super::args::{Out, fails, string};
use super::{Host, Sources};
use crate::template::{Call, Error, Function, INT, Type, Value};
use base64::{Engine, engine::general_purpose::STANDARD};

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const BOTH: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const PRINTABLE: &[u8] = b" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

pub(super) const fn table<H: Host>() -> [(&'static str, Function); 8] {
    [
        (
            "randAlpha",
            Function::new(&[INT], |call| text::<H>(call, LETTERS)),
        ),
        (
            "randAlphaNum",
            Function::new(&[INT], |call| text::<H>(call, BOTH)),
        ),
        (
            "randNumeric",
            Function::new(&[INT], |call| text::<H>(call, DIGITS)),
        ),
        (
            "randAscii",
            Function::new(&[INT], |call| text::<H>(call, PRINTABLE)),
        ),
        ("randBytes", Function::new(&[INT], bytes::<H>)),
        ("randInt", Function::new(&[INT, INT], number::<H>)),
        ("shuffle", Function::new(&[Type::String], shuffle::<H>)),
        ("uuidv4", Function::new(&[], uuid::<H>)),
    ]
}

/// A uniformly distributed number below a limit.
pub(super) fn below(sources: &mut Sources, limit: u64) -> u64 {
    let limit = limit.max(1);
    // Values above the last multiple of the limit would favour small numbers.
    let fair = u64::MAX - u64::MAX % limit;
    loop {
        let mut bytes = [0; 8];
        sources.fill(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < fair {
            return number % limit;
        }
    }
}

fn text<H: Host>(call: &mut Call<'_>, characters: &[u8]) -> Out {
    let count = usize::try_from(call.integer(0)?).unwrap_or(0);
    call.budget().memory(count)?;
    call.budget().steps(count as u64)?;
    let sources = call.host::<H>()?.sources();
    let text: Vec<u8> = (0..count)
        .map(|_| characters[below(sources, characters.len() as u64) as usize])
        .collect();
    Ok(Value::String(text.into()))
}

fn bytes<H: Host>(call: &mut Call<'_>) -> Out {
    let Ok(count) = usize::try_from(call.integer(0)?) else {
        return fails("runtime error: makeslice: len out of range");
    };
    call.budget().memory(count)?;
    let mut bytes = vec![0; count];
    call.host::<H>()?.sources().fill(&mut bytes);
    string(call.budget(), STANDARD.encode(bytes))
}

fn number<H: Host>(call: &mut Call<'_>) -> Out {
    let (least, limit) = (call.integer(0)?, call.integer(1)?);
    match u64::try_from(limit.wrapping_sub(least)) {
        Ok(size) if size > 0 => Ok(Value::int(
            least + below(call.host::<H>()?.sources(), size) as i64,
        )),
        _ => fails("invalid argument to Intn"),
    }
}

fn shuffle<H: Host>(call: &mut Call<'_>) -> Out {
    let mut runes: Vec<char> = call.text(0)?.chars().collect();
    call.budget().steps(runes.len() as u64)?;
    let sources = call.host::<H>()?.sources();
    for index in (1..runes.len()).rev() {
        runes.swap(index, below(sources, index as u64 + 1) as usize);
    }
    string(call.budget(), runes.into_iter().collect::<String>())
}

fn uuid<H: Host>(call: &mut Call<'_>) -> Result<Value, Error> {
    let mut bytes = [0; 16];
    call.host::<H>()?.sources().fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |range: std::ops::Range<usize>| {
        bytes[range]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    };
    Ok([hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)]
        .join("-")
        .into())
}
