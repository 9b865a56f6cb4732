//! Formats integers, floats and strings with flags, width and precision.
//!
//! Main type: [`Plain`], the part of a printer that does not depend on values.

use super::super::unicode::{count, decode};
use super::float::format_float;
use super::quote::{can_backquote, quote, quote_rune};
use crate::printable::is_print;

/// The flags of one verb.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub width: Option<usize>,
    pub precision: Option<usize>,
    pub minus: bool,
    pub plus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    /// `%+v` and `%#v`, which are formats of their own.
    pub plus_v: bool,
    pub sharp_v: bool,
}

/// The output and the flags.
#[derive(Default)]
pub(super) struct Plain {
    pub out: Vec<u8>,
    pub flags: Flags,
}

impl Plain {
    pub fn write(&mut self, text: &str) {
        self.out.extend(text.bytes());
    }

    fn padding(&mut self, count: usize) {
        let fill = if self.flags.zero && !self.flags.minus {
            b'0'
        } else {
            b' '
        };
        self.out.extend(std::iter::repeat_n(fill, count));
    }

    /// Writes text, padded to the width.
    pub fn pad(&mut self, text: &[u8]) {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(count(text));
        if !self.flags.minus {
            self.padding(missing);
        }
        self.out.extend(text);
        if self.flags.minus {
            self.padding(missing);
        }
    }

    fn pad_without_zeros(&mut self, text: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    pub fn integer(&mut self, size: u64, negative: bool, base: u32, verb: char, upper: bool) {
        let mut wanted = self.flags.precision.unwrap_or(0);
        if self.flags.precision == Some(0) && size == 0 {
            let zero = std::mem::take(&mut self.flags.zero);
            self.padding(self.flags.width.unwrap_or(0));
            self.flags.zero = zero;
            return;
        }
        if let (None, true, false, Some(width)) = (
            self.flags.precision,
            self.flags.zero,
            self.flags.minus,
            self.flags.width,
        ) {
            let sign = negative || self.flags.plus || self.flags.space;
            wanted = width.saturating_sub(usize::from(sign));
        }
        let digits = match (base, upper) {
            (2, _) => format!("{size:b}"),
            (8, _) => format!("{size:o}"),
            (16, false) => format!("{size:x}"),
            (16, true) => format!("{size:X}"),
            _ => size.to_string(),
        };
        let digits = format!(
            "{}{digits}",
            "0".repeat(wanted.saturating_sub(digits.len()))
        );
        let mut prefix = match base {
            2 if self.flags.sharp => "0b",
            8 if self.flags.sharp && !digits.starts_with('0') => "0",
            16 if self.flags.sharp && upper => "0X",
            16 if self.flags.sharp => "0x",
            _ => "",
        }
        .to_owned();
        if verb == 'O' {
            prefix.insert_str(0, "0o");
        }
        let sign = self.sign(negative);
        self.pad_without_zeros(format!("{sign}{prefix}{digits}").as_bytes());
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    pub fn character(&mut self, code: u64) {
        self.pad(rune(code).encode_utf8(&mut [0; 4]).as_bytes());
    }

    pub fn quoted_character(&mut self, code: u64) {
        let text = quote_rune(rune(code), self.flags.plus);
        self.pad(&text);
    }

    pub fn unicode(&mut self, code: u64) {
        let digits = self.flags.precision.unwrap_or(4).max(4);
        let mut text = format!("U+{code:0digits$X}");
        if self.flags.sharp
            && let Some(c) = u32::try_from(code)
                .ok()
                .and_then(char::from_u32)
                .filter(|c| is_print(*c))
        {
            text.push_str(&format!(" '{c}'"));
        }
        self.pad_without_zeros(text.as_bytes());
    }

    pub fn float(&mut self, number: f64, verb: char, format: u8, precision: Option<usize>) {
        let precision = self.flags.precision.or(precision);
        let mut text = format_float(number, format, precision);
        if !text.starts_with(['-', '+']) {
            text.insert(0, '+');
        }
        if self.flags.space && text.starts_with('+') && !self.flags.plus {
            text.replace_range(..1, " ");
        }
        if number.is_nan() || number.is_infinite() {
            let bare = number.is_nan() && !self.flags.space && !self.flags.plus;
            self.pad_without_zeros(&text.as_bytes()[usize::from(bare)..]);
            return;
        }
        if self.flags.sharp && verb != 'b' {
            text = with_point(&text, format, precision);
        }
        if !self.flags.plus && text.starts_with('+') {
            self.pad(&text.as_bytes()[1..]);
            return;
        }
        let width = self.flags.width.unwrap_or(0);
        if self.flags.zero && !self.flags.minus && width > text.len() {
            self.out.extend(&text.as_bytes()[..1]);
            self.padding(width - text.len());
            self.out.extend(&text.as_bytes()[1..]);
            return;
        }
        self.pad(text.as_bytes());
    }

    /// A string for `%s`.
    pub fn string(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        self.pad(text);
    }

    fn truncated<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(most) = self.flags.precision else {
            return text;
        };
        let mut end = 0;
        for _ in 0..most {
            let (_, width) = decode(&text[end..]);
            end += width;
        }
        &text[..end]
    }

    pub fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        if self.flags.sharp && can_backquote(text) {
            let raw = [b"`", text, b"`"].concat();
            self.pad(&raw);
        } else {
            let text = quote(text, self.flags.plus);
            self.pad(&text);
        }
    }

    /// The bytes of a string in hexadecimal.
    pub fn hex(&mut self, text: &[u8], upper: bool) {
        let length = self
            .flags
            .precision
            .map_or(text.len(), |most| most.min(text.len()));
        if length == 0 {
            self.padding(self.flags.width.unwrap_or(0));
            return;
        }
        let prefix = match (self.flags.sharp, upper) {
            (true, true) => "0X",
            (true, false) => "0x",
            _ => "",
        };
        let mut encoded = prefix.to_owned();
        for (i, b) in text[..length].iter().enumerate() {
            if self.flags.space && i > 0 {
                encoded.push(' ');
                encoded.push_str(prefix);
            }
            encoded.push_str(&if upper {
                format!("{b:02X}")
            } else {
                format!("{b:02x}")
            });
        }
        self.pad(encoded.as_bytes());
    }
}

fn rune(code: u64) -> char {
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The effect of `#` on a float: always a point, and trailing zeros stay.
fn with_point(text: &str, format: u8, precision: Option<usize>) -> String {
    let tail_at = match format {
        b'x' | b'X' => text.find(['p', 'P']),
        _ => text.find(['e', 'E']),
    };
    let (number, tail) = text.split_at(tail_at.unwrap_or(text.len()));
    let mut wanted = match format {
        b'g' | b'G' | b'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let mut seen = false;
    for c in number.chars().skip(1).filter(|c| *c != '.') {
        seen |= c != '0';
        if seen {
            wanted = wanted.saturating_sub(1);
        }
    }
    let mut number = number.to_owned();
    if !number.contains('.') {
        if number.len() == 2 && number.ends_with('0') {
            wanted = wanted.saturating_sub(1);
        }
        number.push('.');
    }
    number.extend(std::iter::repeat_n('0', wanted));
    number + tail
}
