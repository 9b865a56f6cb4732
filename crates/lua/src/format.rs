//! `string.format`: C's directives as supported by Lua, and texts in the place of numbers as in Go,
//! which Argo CD's Lua is written in.
//!
//! Main function: [`format`].

use crate::{
    call::{Args, Fault},
    number as numbers,
};
use mlua::Value;

/// Longer widths and precisions are refused, as in Lua.
const WIDTH: usize = 99;

#[derive(Default)]
struct Directive {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

pub fn format(args: &Args<'_>) -> Result<Vec<u8>, Fault> {
    let pattern = args.bytes(1)?;
    let (mut out, mut rest, mut argument) = (Vec::new(), &pattern[..], 1);
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(b"%") {
            out.push(b'%');
            rest = after;
            continue;
        }
        let directive = Directive::parse(&mut rest)?;
        let Some((conversion, after)) = rest.split_first() else {
            return Err(invalid(b' '));
        };
        rest = after;
        argument += 1;
        let text = directive.convert(*conversion, args, argument)?;
        args.charge(text.len() as u64 / 16 + 1)?;
        out.extend_from_slice(&text);
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn invalid(conversion: u8) -> Fault {
    Fault::text(format!(
        "invalid option '%{}' to 'format'",
        char::from(conversion)
    ))
}

impl Directive {
    fn parse(rest: &mut &[u8]) -> Result<Self, Fault> {
        let mut directive = Self::default();
        while let Some((flag @ (b'-' | b'+' | b' ' | b'#' | b'0'), after)) = rest.split_first() {
            match flag {
                b'-' => directive.left = true,
                b'+' => directive.plus = true,
                b' ' => directive.space = true,
                b'#' => directive.alternate = true,
                _ => directive.zero = true,
            }
            *rest = after;
        }
        directive.width = number(rest)?.unwrap_or(0);
        if let Some(after) = rest.strip_prefix(b".") {
            *rest = after;
            directive.precision = Some(number(rest)?.unwrap_or(0));
        }
        Ok(directive)
    }

    fn convert(&self, conversion: u8, args: &Args<'_>, n: usize) -> Result<Vec<u8>, Fault> {
        if let Value::String(_) = args.get(n) {
            return self.convert_text(conversion, &args.bytes(n)?);
        }
        let whole = || Ok::<_, Fault>(args.number(n)? as i64);
        Ok(match conversion {
            b'd' | b'i' => self.decimal(whole()?),
            b'u' => self.integer("", (whole()? as u64).to_string()),
            b'o' => self.integer(self.prefix("0"), format!("{:o}", whole()?)),
            b'x' => self.integer(self.prefix("0x"), format!("{:x}", whole()?)),
            b'X' => self.integer(self.prefix("0X"), format!("{:X}", whole()?)),
            b'c' => self.pad_text(vec![whole()? as u8]),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => self.float(conversion, args.number(n)?),
            b's' => self.text(&args.bytes(n)?),
            b'q' => quoted(&args.bytes(n)?),
            other => return Err(invalid(other)),
        })
    }

    fn convert_text(&self, conversion: u8, text: &[u8]) -> Result<Vec<u8>, Fault> {
        Ok(match conversion {
            // A text that is a number is printed as it is, and any other as zero.
            b'd' | b'i' => match numbers::literal(text) {
                Some(_) => self.text(text),
                None => self.decimal(0),
            },
            b's' => self.text(text),
            b'x' | b'X' => self.hexadecimal(text, conversion == b'X'),
            b'q' => quoted(text),
            // Go does not fail; it prints what is wrong.
            b'c' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'o' | b'u' => {
                let mut out = vec![b'%', b'!', conversion];
                out.extend_from_slice(b"(string=");
                out.extend(self.text(text));
                out.push(b')');
                out
            }
            other => return Err(invalid(other)),
        })
    }

    /// A text as Go prints it: width and precision count characters, and zeros may pad it.
    fn text(&self, text: &[u8]) -> Vec<u8> {
        let kept = match self.precision {
            Some(most) => &text[..characters(text).take(most).sum::<usize>()],
            None => text,
        };
        self.fill(kept, characters(kept).take(self.width).count())
    }

    /// The bytes of a text as hexadecimal digits.
    fn hexadecimal(&self, text: &[u8], upper: bool) -> Vec<u8> {
        let (digits, prefix) = match upper {
            true => (b"0123456789ABCDEF", self.prefix("0X")),
            false => (b"0123456789abcdef", self.prefix("0x")),
        };
        let length = self.precision.unwrap_or(text.len()).min(text.len());
        let mut out = Vec::with_capacity(2 * length + prefix.len());
        for (at, byte) in text[..length].iter().enumerate() {
            if at > 0 && self.space {
                out.push(b' ');
            }
            if at == 0 || self.space {
                out.extend_from_slice(prefix.as_bytes());
            }
            out.extend([byte >> 4, byte & 15].map(|digit| digits[usize::from(digit)]));
        }
        self.fill(&out, out.len())
    }

    fn decimal(&self, value: i64) -> Vec<u8> {
        self.integer(self.sign(value < 0), value.unsigned_abs().to_string())
    }

    fn integer(&self, before: &str, digits: String) -> Vec<u8> {
        match self.precision {
            // Go prints nothing for it, not even a sign.
            Some(0) if digits == "0" => self.pad_text(Vec::new()),
            Some(least) => self.pad(before, format!("{digits:0>least$}"), false),
            None => self.pad(before, digits, true),
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn prefix(&self, prefix: &'static str) -> &'static str {
        if self.alternate { prefix } else { "" }
    }

    fn float(&self, conversion: u8, value: f64) -> Vec<u8> {
        let sign = self.sign(value.is_sign_negative());
        if !value.is_finite() {
            let word = if value.is_nan() { "nan" } else { "inf" };
            return self.pad(sign, word.to_owned(), false);
        }
        let (precision, value) = (self.precision.unwrap_or(6), value.abs());
        let text = match conversion.to_ascii_lowercase() {
            b'f' => format!("{value:.precision$}"),
            b'e' => exponent(value, precision),
            _ => general(value, precision.max(1), self.alternate),
        };
        self.pad(
            sign,
            if conversion.is_ascii_uppercase() {
                text.to_uppercase()
            } else {
                text
            },
            true,
        )
    }

    /// Pads the number; zeros go between the sign and the digits.
    fn pad(&self, sign: &str, digits: String, zeros: bool) -> Vec<u8> {
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        if self.zero && !self.left && zeros {
            return format!("{sign}{}{digits}", "0".repeat(missing)).into_bytes();
        }
        self.pad_text(format!("{sign}{digits}").into_bytes())
    }

    fn pad_text(&self, text: Vec<u8>) -> Vec<u8> {
        let padding = vec![b' '; self.width.saturating_sub(text.len())];
        if self.left {
            [text, padding].concat()
        } else {
            [padding, text].concat()
        }
    }

    /// Pads a text that is so wide.
    fn fill(&self, text: &[u8], width: usize) -> Vec<u8> {
        let missing = self.width.saturating_sub(width);
        let mut out = Vec::with_capacity(text.len() + missing);
        if self.left {
            out.extend_from_slice(text);
            out.resize(text.len() + missing, b' ');
        } else {
            out.resize(missing, if self.zero { b'0' } else { b' ' });
            out.extend_from_slice(text);
        }
        out
    }
}

/// The lengths of the characters of a text. As in Go, each byte of none counts as one.
fn characters(text: &[u8]) -> impl Iterator<Item = usize> {
    text.utf8_chunks().flat_map(|chunk| {
        let others = std::iter::repeat_n(1, chunk.invalid().len());
        chunk.valid().chars().map(char::len_utf8).chain(others)
    })
}

fn number(rest: &mut &[u8]) -> Result<Option<usize>, Fault> {
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
    *rest = &rest[digits..];
    if digits == 0 {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|n| *n <= WIDTH);
    number
        .map(Some)
        .ok_or_else(|| Fault::text("invalid format (width or precision too long)".into()))
}

/// Like C's `%e`: at least two digits of exponent.
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Like C's `%g`: the shorter of both forms, without trailing zeros.
fn general(value: f64, precision: usize, alternate: bool) -> String {
    let scientific = exponent(value, precision - 1);
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let trim = |digits: &str| match digits.contains('.') && !alternate {
        true => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => digits.to_owned(),
    };
    match usize::try_from(power) {
        Ok(large) if large >= precision => {
            format!("{}e{}", trim(digits), &scientific[digits.len() + 1..])
        }
        _ if power < -4 => format!("{}e{}", trim(digits), &scientific[digits.len() + 1..]),
        _ => {
            let decimals =
                usize::try_from(i32::try_from(precision).unwrap_or(i32::MAX) - 1 - power)
                    .unwrap_or(0);
            trim(&format!("{value:.decimals$}"))
        }
    }
}

/// Quotes a string so that Lua can read it back.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in text {
        match byte {
            b'"' | b'\\' | b'\n' => out.extend_from_slice(&[b'\\', *byte]),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.extend_from_slice(b"\\0"),
            other => out.push(*other),
        }
    }
    out.push(b'"');
    out
}
