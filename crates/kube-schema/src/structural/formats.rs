//! The string formats that Kubernetes validates. Main function: [`matches`].

use base64::Engine;
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

/// Formats of strings, without dashes.
const STRINGS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Whether a format is known for a type (`*` when several types are allowed). An empty format is
/// not one.
pub fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" | "*" => STRINGS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether a known format is one of strings.
pub fn is_of_strings(format: &str) -> bool {
    STRINGS.contains(&format.replace('-', "").as_str())
}

/// (format, expression) of the formats defined by a regular expression.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("bsonobjectid", "^[0-9a-fA-F]{24}$"),
    (
        "uuid",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    ),
    (
        "uuid3",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    ),
    (
        "uuid4",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    ),
    (
        "uuid5",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    ),
    ("ssn", r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
    ("hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "rgbcolor",
        r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$",
    ),
    ("k8sshortname", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    (
        "k8slongname",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
    (
        "creditcard",
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14})$",
    ),
    (
        "hostname",
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([-a-zA-Z0-9\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    ),
    (
        "datetime",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]+)?(([+-][0-9]{2}:[0-9]{2})|[Zz])?$",
    ),
];

fn expression(format: &str) -> Option<&'static Regex> {
    static COMPILED: OnceLock<Vec<Option<Regex>>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        EXPRESSIONS
            .iter()
            .map(|(_, e)| Regex::new(e).ok())
            .collect()
    });
    let at = EXPRESSIONS.iter().position(|(name, _)| *name == format)?;
    compiled.get(at)?.as_ref()
}

/// Whether a text has a format; true for unknown formats.
pub fn matches(format: &str, text: &str) -> bool {
    let normal = format.replace('-', "");
    let by_expression = |name: &str| expression(name).is_none_or(|e| e.is_match(text));
    match normal.as_str() {
        "uri" => is_request_uri(text),
        "email" => is_email(text),
        "hostname" => {
            by_expression("hostname")
                && text.len() <= 255
                && text.split('.').all(|part| part.len() <= 63)
        }
        "ipv4" => {
            sloppy_ipv4(text).is_some() || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok())
        }
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "isbn" => is_isbn(text, 10) || is_isbn(text, 13),
        "isbn10" => is_isbn(text, 10),
        "isbn13" => is_isbn(text, 13),
        "creditcard" => is_credit_card(text),
        "byte" => is_base64(text),
        "date" => parse_date(text),
        "duration" => parse_duration(text).is_some(),
        "datetime" => is_date_time(text),
        "k8sshortname" => text.len() <= 63 && by_expression("k8sshortname"),
        "k8slongname" => text.len() <= 253 && by_expression("k8slongname"),
        other => by_expression(other),
    }
}

fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let good = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    good && !rest.is_empty() && !rest.contains("%zz")
}

/// `name@domain`, alone or as `Name <name@domain>`.
fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.ends_with('>')) {
        (Some(at), true) => &text[at + 1..text.len() - 1],
        _ => text.trim(),
    };
    let atom = |c: char| {
        c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || (c as u32) > 0x7f
    };
    let dotted =
        |s: &str| !s.is_empty() && s.split('.').all(|p| !p.is_empty() && p.chars().all(atom));
    match address.rsplit_once('@') {
        Some((name, domain)) => {
            let quoted = name.len() >= 2 && name.starts_with('"') && name.ends_with('"');
            let literal = domain.starts_with('[') && domain.ends_with(']');
            (quoted || dotted(name)) && (literal || dotted(domain))
        }
        None => false,
    }
}

/// Leading zeros are accepted.
fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let trimmed = part.trim_start_matches('0');
        *octet = if trimmed.is_empty() {
            0
        } else {
            trimmed.parse().ok()?
        };
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let plain = !bits.is_empty() && bits.len() <= 4 && bits.bytes().all(|b| b.is_ascii_digit());
    let bits: u32 = bits.parse().unwrap_or(u32::MAX);
    let max = if sloppy_ipv4(address).is_some() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    plain && bits <= max
}

fn is_mac(text: &str) -> bool {
    let hex = |parts: Vec<&str>, width: usize, counts: &[usize]| {
        counts.contains(&parts.len())
            && parts
                .iter()
                .all(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    hex(text.split(':').collect(), 2, &[6, 8, 20])
        || hex(text.split('-').collect(), 2, &[6, 8, 20])
        || hex(text.split('.').collect(), 4, &[3, 4, 10])
}

fn is_isbn(text: &str, length: usize) -> bool {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .enumerate()
        .map(|(i, c)| match c {
            'X' if length == 10 && i == 9 => 10,
            c => c.to_digit(10).unwrap_or(99),
        })
        .collect();
    if digits.len() != length || digits.contains(&99) {
        return false;
    }
    if length == 10 {
        let sum: u32 = digits.iter().zip(1..).map(|(d, n)| d * n).sum();
        return sum.is_multiple_of(11);
    }
    let sum: u32 = digits
        .iter()
        .enumerate()
        .map(|(i, d)| d * if i % 2 == 0 { 1 } else { 3 })
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !expression("creditcard").is_some_and(|e| e.is_match(&digits)) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let d = u32::from(b - b'0') * if i % 2 == 1 { 2 } else { 1 };
            if d > 9 { d - 9 } else { d }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_base64(text: &str) -> bool {
    !text.is_empty()
        && base64::engine::general_purpose::STANDARD
            .decode(text)
            .is_ok()
}

fn parse_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    if text.len() < 4 || !expression("datetime").is_some_and(|e| e.is_match(text)) {
        return false;
    }
    let date = text.get(..10).unwrap_or("");
    let number = |range: std::ops::Range<usize>| {
        text.get(range)
            .and_then(|t| t.parse::<u32>().ok())
            .unwrap_or(99)
    };
    parse_date(date) && number(11..13) <= 23 && number(14..16) <= 59 && number(17..19) <= 59
}

/// Parses Go's durations, or `12 days` and the like. In nanoseconds.
pub fn parse_duration(text: &str) -> Option<i64> {
    const UNITS: &[(&[&str], i64)] = &[
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], 1_000_000_000),
        (&["m", "min"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];
    if let Ok(nanos) = tiphys_gocompat::duration::parse(text) {
        return Some(nanos);
    }
    static PARTS: OnceLock<Option<Regex>> = OnceLock::new();
    let parts = PARTS
        .get_or_init(|| Regex::new(r"([0-9]+)\s*([A-Za-zµ]+)").ok())
        .as_ref()?;
    let mut total = None;
    for found in parts.captures_iter(text) {
        let factor: i64 = found[1].parse().ok()?;
        let unit = found[2].to_lowercase();
        for (variants, nanos) in UNITS {
            let (last, exact) = variants.split_last()?;
            if exact.contains(&unit.as_str()) || unit.starts_with(last) {
                total = Some(i64::wrapping_add(
                    total.unwrap_or(0),
                    factor.wrapping_mul(*nanos),
                ));
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_take_and_refuse() {
        let cases = [
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
            ("date-time", "2024-01-01T00:00:00Z", "yesterday"),
            ("date", "2024-02-29", "2023-02-29"),
            ("duration", "1h30m", "long"),
            ("byte", "YWJj", "a*"),
            ("hostname", "a.example.com", "-a"),
            ("email", "a@b.c", "a.b.c"),
            ("uri", "http://a/b", "a b"),
            ("mac", "00:00:5e:00:53:01", "00:00"),
            ("isbn", "978-3-16-148410-0", "978-3-16-148410-1"),
            ("hexcolor", "#fff", "#ff"),
            ("k8s-short-name", "a-b", "A"),
            ("k8s-long-name", "a.b-c", "a..b"),
        ];
        for (format, good, bad) in cases {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
        assert!(matches("nonsense", "x") && !is_known("string", "nonsense"));
    }
}
