//! `format` in a schema: which formats there are and what each refuses, in the words of the schema
//! library that Helm uses.
//!
//! Main function: [`refused`]; main value: [`NAMES`].

use tiphys_gocompat::text::{quote, quote_rune};
use tiphys_gocompat::{netip, sprig, url::Url};

/// Every format that is checked. Any other one allows everything.
pub(super) const NAMES: &[&str] = &[
    "regex",
    "json-pointer",
    "relative-json-pointer",
    "uuid",
    "duration",
    "period",
    "ipv4",
    "ipv6",
    "hostname",
    "email",
    "date",
    "time",
    "date-time",
    "uri",
    "iri",
    "uri-reference",
    "iri-reference",
    "uri-template",
    "semver",
];

type Checked = Result<(), String>;

/// Why a text is not of the format, if it is not.
pub(super) fn refused(format: &str, text: &str) -> Option<String> {
    let checked = match format {
        "regex" => sprig::check_regexp(text),
        "json-pointer" => json_pointer(text),
        "relative-json-pointer" => relative_json_pointer(text),
        "uuid" => uuid(text),
        "duration" => duration(text),
        "period" => period(text),
        "ipv4" => ipv4(text),
        "ipv6" => ipv6(text),
        "hostname" => hostname(text),
        "email" => email(text),
        "date" => sprig::check_time("2006-01-02", text),
        "time" => time(text.as_bytes()),
        "date-time" => date_time(text),
        "uri" | "iri" => uri(text),
        "uri-reference" | "iri-reference" => uri_reference(text),
        "uri-template" => uri_template(text),
        "semver" => semver(text),
        _ => Ok(()),
    };
    checked.err()
}

fn ensure(fine: bool, why: &str) -> Checked {
    if fine { Ok(()) } else { Err(why.to_owned()) }
}

fn within(what: &str, checked: Checked) -> Checked {
    checked.map_err(|why| format!("invalid {what}: {why}"))
}

fn json_pointer(text: &str) -> Checked {
    if text.is_empty() {
        return Ok(());
    }
    ensure(text.starts_with('/'), "not starting with /")?;
    let escapes = text.split('/').flat_map(|token| token.split('~').skip(1));
    for after in escapes {
        ensure(
            after.starts_with(['0', '1']),
            "~ must be followed by 0 or 1",
        )?;
    }
    Ok(())
}

fn relative_json_pointer(text: &str) -> Checked {
    let digits = leading_digits(text.as_bytes());
    ensure(digits > 0, "must start with non-negative integer")?;
    ensure(digits == 1 || !text.starts_with('0'), "starts with zero")?;
    match &text[digits..] {
        "#" => Ok(()),
        pointer => json_pointer(pointer),
    }
}

fn leading_digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn uuid(text: &str) -> Checked {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    ensure(groups.len() == GROUPS.len(), "must have 5 elements")?;
    for (i, (group, len)) in groups.iter().zip(GROUPS).enumerate() {
        if group.len() != len {
            return Err(format!("element {} must be {len} characters long", i + 1));
        }
        if let Some(other) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(format!("non-hex character {}", quote_rune(other)));
        }
    }
    Ok(())
}

fn duration(text: &str) -> Checked {
    let Some(rest) = text.strip_prefix('P') else {
        return Err("must start with P".to_owned());
    };
    ensure(!rest.is_empty(), "nothing after P")?;
    if let Some(weeks) = rest.strip_suffix('W') {
        ensure(!weeks.is_empty(), "no number in week")?;
        let digits = leading_digits(weeks.as_bytes());
        return ensure(digits == weeks.len(), "invalid week");
    }
    const UNITS: [&str; 2] = ["YMD", "HMS"];
    for (i, part) in rest.split('T').enumerate() {
        ensure(i == 0 || !part.is_empty(), "no time elements")?;
        let Some(known) = UNITS.get(i) else {
            return Err("more than one T".to_owned());
        };
        units(part, known)?;
    }
    Ok(())
}

/// Numbers with units, which stand in the order of `known`.
fn units(mut part: &str, known: &str) -> Checked {
    let mut left = known;
    while !part.is_empty() {
        let digits = leading_digits(part.as_bytes());
        ensure(digits > 0, "missing number")?;
        // The library looks at one byte.
        let Some(unit) = part.as_bytes().get(digits).map(|b| char::from(*b)) else {
            return Err("missing unit".to_owned());
        };
        let Some(at) = left.find(unit) else {
            let unit_text = quote_rune(unit);
            return Err(if known.contains(unit) {
                format!("unit {unit_text} out of order")
            } else {
                format!("invalid unit {unit_text}")
            });
        };
        left = &left[at + 1..];
        part = &part[digits + 1..];
    }
    Ok(())
}

fn period(text: &str) -> Checked {
    let Some((start, end)) = text.split_once('/') else {
        return Err("missing slash".to_owned());
    };
    if start.starts_with('P') {
        within("start duration", duration(start))?;
        return within("end date-time", date_time(end));
    }
    within("start date-time", date_time(start))?;
    if end.starts_with('P') {
        within("end duration", duration(end))
    } else {
        within("end date-time", date_time(end))
    }
}

fn ipv4(text: &str) -> Checked {
    let groups: Vec<&str> = text.split('.').collect();
    ensure(groups.len() == 4, "expected four decimals")?;
    for group in groups {
        ensure(group.len() < 2 || !group.starts_with('0'), "leading zeros")?;
        let number = atoi(group)?;
        ensure(
            (0..=255).contains(&number),
            "decimal must be between 0 and 255",
        )?;
    }
    Ok(())
}

/// `strconv.Atoi`
fn atoi(text: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|e: std::num::ParseIntError| {
        let why = match e.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {why}", quote(text))
    })
}

fn ipv6(text: &str) -> Checked {
    ensure(text.contains(':'), "missing colon")?;
    let zone = netip::parse(text)?;
    ensure(!zone, "zone id is not a part of ipv6 address")
}

fn hostname(text: &str) -> Checked {
    let text = text.strip_suffix('.').unwrap_or(text);
    ensure(text.len() <= 253, "more than 253 characters long")?;
    for label in text.split('.') {
        ensure(
            (1..=63).contains(&label.len()),
            "label must be 1 to 63 characters long",
        )?;
        ensure(!label.starts_with('-'), "label starts with hyphen")?;
        ensure(!label.ends_with('-'), "label ends with hyphen")?;
        characters(label, "-")?;
    }
    Ok(())
}

/// Letters, digits and some others.
fn characters(text: &str, others: &str) -> Checked {
    let allowed = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("invalid character {}", quote_rune(c))),
        None => Ok(()),
    }
}

fn email(text: &str) -> Checked {
    ensure(text.len() <= 254, "more than 255 characters long")?;
    let Some((local, domain)) = text.rsplit_once('@') else {
        return Err("missing @".to_owned());
    };
    ensure(local.len() <= 64, "local part more than 64 characters long")?;
    if local.len() > 1 && local.starts_with('"') {
        // Whether it ends with a quote is not looked at.
        let mut inner = local.chars();
        inner.next();
        inner.next_back();
        ensure(
            !inner.as_str().contains(['\\', '"']),
            "backslash and quote are not allowed within quoted local part",
        )?;
    } else {
        ensure(!local.starts_with('.'), "starts with dot")?;
        ensure(!local.ends_with('.'), "ends with dot")?;
        ensure(!local.contains(".."), "consecutive dots")?;
        characters(local, ".!#$%&'*+-/=?^_`{|}~")?;
    }
    let address = domain
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match address.map(|address| (address, address.strip_prefix("IPv6:"))) {
        Some((_, Some(address))) => within("ipv6 address", ipv6(address)),
        Some((address, None)) => within("ipv4 address", ipv4(address)),
        None => within("domain", hostname(domain)),
    }
}

fn date_time(text: &str) -> Checked {
    let bytes = text.as_bytes();
    ensure(bytes.len() >= 20, "less than 20 characters long")?;
    ensure(
        matches!(bytes[10], b't' | b'T'),
        "11th character must be t or T",
    )?;
    let date = String::from_utf8_lossy(&bytes[..10]);
    within("date element", sprig::check_time("2006-01-02", &date))?;
    within("time element", time(&bytes[11..]))
}

fn time(text: &[u8]) -> Checked {
    ensure(text.len() >= 9, "less than 9 characters long")?;
    ensure(
        text[2] == b':' && text[5] == b':',
        "missing colon in correct place",
    )?;
    let numbers = numbers(&text[..8], 3, "hour/min/sec")?;
    let [hour, minute, second] = numbers[..] else {
        return Err("missing hour/min/sec".to_owned());
    };
    ensure(
        hour <= 23 && minute <= 59 && second <= 60,
        "hour/min/sec out of range",
    )?;
    let mut rest = &text[8..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = leading_digits(fraction);
        ensure(digits > 0, "no digits in second fraction")?;
        rest = &fraction[digits..];
    }
    let minutes = hour * 60 + minute;
    let minutes = match rest {
        b"z" | b"Z" => minutes,
        offset => in_utc(minutes, offset)?,
    };
    ensure(
        second < 60 || (minutes / 60, minutes % 60) == (23, 59),
        "invalid leap second",
    )
}

/// Minutes of the day in UTC, from those at an offset.
fn in_utc(minutes: i64, offset: &[u8]) -> Result<i64, String> {
    ensure(offset.len() == 6, "offset must be 6 characters long")?;
    let sign = match offset[0] {
        b'+' => -1,
        b'-' => 1,
        _ => return Err("offset must begin with plus/minus".to_owned()),
    };
    ensure(
        offset[3] == b':',
        "missing colon in offset in correct place",
    )?;
    let numbers = numbers(&offset[1..], 2, "hour/min in offset")?;
    let (hour, minute) = (numbers[0], numbers[1]);
    ensure(
        hour <= 23 && minute <= 59,
        "hour/min in offset out of range",
    )?;
    let minutes = minutes + sign * (hour * 60 + minute);
    Ok(if minutes < 0 {
        minutes + 24 * 60
    } else {
        minutes
    })
}

/// Numbers between colons; `what` they are.
fn numbers(text: &[u8], count: usize, what: &str) -> Result<Vec<i64>, String> {
    let mut numbers = Vec::with_capacity(count);
    for token in text.splitn(count, |b| *b == b':') {
        let number = std::str::from_utf8(token).ok().and_then(|t| atoi(t).ok());
        let number = number.ok_or_else(|| format!("invalid {what}"))?;
        ensure(number >= 0, &format!("non-positive {what}"))?;
        numbers.push(number);
    }
    Ok(numbers)
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.as_bytes())?;
    let host = String::from_utf8_lossy(url.hostname());
    if host.contains(':') {
        let whole = &url.host;
        ensure(
            whole.contains(&b'[') && whole.contains(&b']'),
            "ipv6 address not enclosed in brackets",
        )?;
        within("ipv6 address", ipv6(&host))?;
    }
    Ok(url)
}

fn uri(text: &str) -> Checked {
    ensure(!address(text)?.scheme.is_empty(), "relative url")
}

fn uri_reference(text: &str) -> Checked {
    ensure(!text.contains('\\'), "contains \\")?;
    address(text).map(drop)
}

fn uri_template(text: &str) -> Checked {
    let url = address(text)?;
    let path = text.split(['#', '?']).next().unwrap_or_default();
    // Only a path that is not written as Go would write it is looked at.
    if !url.opaque.is_empty() || !path.contains(['{', '}']) {
        return Ok(());
    }
    for token in path.split('/') {
        let mut open = false;
        for brace in token.chars().filter(|c| matches!(c, '{' | '}')) {
            ensure((brace == '{') != open, "nested curly braces")?;
            open = !open;
        }
        ensure(!open, "no matching closing brace")?;
    }
    Ok(())
}

fn semver(text: &str) -> Checked {
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    if let Some(build) = build {
        ensure(!build.is_empty(), "build is empty")?;
        for identifier in build.split('.') {
            identified(identifier, "build")?;
        }
    }
    let (core, before) = match text.split_once('-') {
        Some((core, before)) => (core, Some(before)),
        None => (text, None),
    };
    for identifier in before.into_iter().flat_map(|before| before.split('.')) {
        identified(identifier, "pre-release")?;
        let number = leading_digits(identifier.as_bytes()) == identifier.len();
        ensure(
            !number || identifier.len() == 1 || !identifier.starts_with('0'),
            "pre-release numeric identifier starts with zero",
        )?;
    }
    let numbers: Vec<&str> = core.split('.').collect();
    ensure(
        numbers.len() == 3,
        "versionCore must have 3 numbers separated by dot",
    )?;
    for (name, number) in ["major", "minor", "patch"].into_iter().zip(numbers) {
        let told = |fine: bool, why: &str| ensure(fine, &format!("{name} {why}"));
        told(!number.is_empty(), "is empty")?;
        told(
            number.len() == 1 || !number.starts_with('0'),
            "starts with zero",
        )?;
        let digits = leading_digits(number.as_bytes());
        told(digits == number.len(), "contains non-digit")?;
    }
    Ok(())
}

/// An identifier behind a version.
fn identified(identifier: &str, what: &str) -> Checked {
    ensure(
        !identifier.is_empty(),
        &format!("{what} identifier is empty"),
    )?;
    characters(identifier, "-").map_err(|why| format!("{why} in {what} identifier"))
}
