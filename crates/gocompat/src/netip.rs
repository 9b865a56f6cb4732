//! IP addresses as Go's net/netip reads them, with its error texts.
//!
//! Main function: [`parse`].

use crate::text::quote;

/// How many groups an IPv6 address has.
const GROUPS: usize = 8;

/// Whether the address in a text has a zone; why it is no address.
pub fn parse(text: &str) -> Result<bool, String> {
    let read = match text.chars().find(|c| matches!(c, '.' | ':' | '%')) {
        Some('.') => v4(text).map(|()| false),
        Some(':') => v6(text),
        Some(_) => Err(Fault::of("missing IPv6 address")),
        None => Err(Fault::of("unable to parse IP")),
    };
    read.map_err(|fault| {
        let at = match fault.at {
            "" => String::new(),
            at => format!(" (at {})", quote(at)),
        };
        format!("ParseAddr({}): {}{at}", quote(text), fault.why)
    })
}

struct Fault<'t> {
    why: &'static str,
    /// What was not read.
    at: &'t str,
}

impl<'t> Fault<'t> {
    fn of(why: &'static str) -> Self {
        Self { why, at: "" }
    }

    fn at(why: &'static str, at: &'t str) -> Self {
        Self { why, at }
    }
}

fn v4(text: &str) -> Result<(), Fault<'_>> {
    let bytes = text.as_bytes();
    let (mut value, mut digits, mut dots) = (0u32, 0, 0);
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits == 1 && value == 0 => {
                return Err(Fault::of("IPv4 field has octet with leading zero"));
            }
            b'0'..=b'9' => {
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(Fault::of("IPv4 field has value >255"));
                }
            }
            b'.' if i == 0 || i + 1 == bytes.len() || bytes[i - 1] == b'.' => {
                return Err(Fault::at(
                    "IPv4 field must have at least one digit",
                    &text[i..],
                ));
            }
            b'.' if dots == 3 => return Err(Fault::of("IPv4 address too long")),
            b'.' => (value, digits, dots) = (0, 0, dots + 1),
            _ => return Err(Fault::at("unexpected character", &text[i..])),
        }
    }
    if dots < 3 {
        return Err(Fault::of("IPv4 address too short"));
    }
    Ok(())
}

fn v6(text: &str) -> Result<bool, Fault<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(Fault::of("zone must be a non-empty string")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut shortened = false;
    if let Some(after) = rest.strip_prefix("::") {
        (shortened, rest) = (true, after);
        if rest.is_empty() {
            return Ok(zone);
        }
    }
    let mut groups = 0;
    while groups < GROUPS {
        let digits = group(rest)?;
        if rest[digits..].starts_with('.') {
            embedded(rest, groups, shortened)?;
            (groups, rest) = (groups + 2, "");
            break;
        }
        groups += 1;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(Fault::at("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(Fault::at("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if shortened {
                return Err(Fault::at("multiple :: in address", rest));
            }
            (shortened, rest) = (true, after);
            if rest.is_empty() {
                break;
            }
        }
    }
    match groups {
        _ if !rest.is_empty() => Err(Fault::at("trailing garbage after address", rest)),
        GROUPS if shortened => Err(Fault::of(
            "the :: must expand to at least one field of zeros",
        )),
        GROUPS => Ok(zone),
        _ if shortened => Ok(zone),
        _ => Err(Fault::of("address string too short")),
    }
}

/// How many digits the group has with which a text begins.
fn group(text: &str) -> Result<usize, Fault<'_>> {
    match text.bytes().take_while(u8::is_ascii_hexdigit).count() {
        0 => Err(Fault::at(
            "each colon-separated field must have at least one digit",
            text,
        )),
        5.. => Err(Fault::at("each group must have 4 or less digits", text)),
        digits => Ok(digits),
    }
}

/// The IPv4 address at the end of an IPv6 one.
fn embedded(text: &str, groups: usize, shortened: bool) -> Result<(), Fault<'_>> {
    if !shortened && groups != GROUPS - 2 {
        return Err(Fault::at(
            "embedded IPv4 address must replace the final 2 fields of the address",
            text,
        ));
    }
    if groups + 2 > GROUPS {
        return Err(Fault::at(
            "too many hex fields to fit an embedded IPv4 at the end of the address",
            text,
        ));
    }
    v4(text)
}
