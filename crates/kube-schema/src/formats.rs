//! String formats: names, labels, keys, ports, addresses. Each function returns the errors in a
//! string with the API server's wording; none if it is valid. They know no fields.

use regex::Regex;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

/// The number of a percentage; a number that is too large saturates.
pub fn percentage(text: &str) -> Option<i64> {
    let digits = text
        .strip_suffix('%')
        .filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))?;
    Some(digits.parse().unwrap_or(i64::MAX))
}

/// A check of a string.
pub type Format = fn(&str) -> Vec<String>;

/// A format defined by a regular expression and a length.
struct Form {
    max: usize,
    unit: &'static str,
    regex: Regex,
    says: String,
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

impl Form {
    fn new(max: usize, unit: &'static str, what: &str, form: &str, examples: &[&str]) -> Self {
        let regex = Regex::new(&format!(r"\A(?:{form})\z"))
            .expect("the forms of this file are regular expressions");
        Self {
            max,
            unit,
            regex,
            says: regex_error(what, form, examples),
        }
    }

    fn check(&self, text: &str) -> Vec<String> {
        let too_long = (text.len() > self.max)
            .then(|| format!("must be no more than {} {}", self.max, self.unit));
        let other = (!self.regex.is_match(text)).then(|| self.says.clone());
        too_long.into_iter().chain(other).collect()
    }
}

/// The message that ends with a regular expression.
pub fn regex_error(what: &str, form: &str, examples: &[&str]) -> String {
    let list: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    match list.is_empty() {
        true => format!("{what} (regex used for validation is '{form}')"),
        false => format!(
            "{what} (e.g. {}regex used for validation is '{form}')",
            list.join(" or ")
        ),
    }
}

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident = $max:expr, $unit:literal, $what:literal, $form:expr, $examples:expr;)*) => {
        $($(#[$doc])* pub fn $name(text: &str) -> Vec<String> {
            static FORM: LazyLock<Form> = LazyLock::new(|| Form::new($max, $unit, $what, $form, &$examples));
            FORM.check(text)
        })*
    };
}

forms! {
    dns_subdomain = 253, "characters", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
        start and end with an alphanumeric character", SUBDOMAIN, ["example.com"];
    /// The same with the wording of newer checks.
    long_name = 253, "bytes", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
        start and end with an alphanumeric character", SUBDOMAIN, ["example.com"];
    dns_subdomain_underscore = 253, "characters", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' \
        or '.', and must start and end with an alphanumeric character",
        r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*", ["example.com"];
    simple_dns_label = 63, "characters", "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
        and end with an alphanumeric character", LABEL, ["my-name", "123-abc"];
    dns1035_label = 63, "characters", "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
        character, and end with an alphanumeric character", "[a-z]([-a-z0-9]*[a-z0-9])?", ["my-name", "abc-123"];
    wildcard_subdomain = 253, "characters", "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
        consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
        r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", ["*.example.com"];
    label_value = 63, "bytes", "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
        and end with an alphanumeric character", "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", ["MyValue", "my_value", "12345"];
    c_identifier = usize::MAX, "", "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
        characters or '_'", "[A-Za-z_][A-Za-z0-9_]*", ["my_name", "MY_NAME", "MyName"];
    percent = usize::MAX, "", "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", ["1%", "93%"];
    http_header_name = usize::MAX, "", "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+",
        ["X-Header-Name"];
    condition_reason = usize::MAX, "", "a condition reason must start with alphabetic character, optionally followed by a string of \
        alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'", "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
    plain_config_key = 253, "characters", "a valid config key must consist of alphanumeric characters, '-', '_' or '.'", "[-._a-zA-Z0-9]+",
        ["key.name", "KEY_NAME", "key-name"];
}

/// A DNS label; for a subdomain, the message says that dots are not allowed.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut problems = simple_dns_label(text);
    let dotted = text.contains('.')
        && text
            .split('.')
            .all(|part| problems_of_form_only(part).is_empty());
    if dotted && let Some(last) = problems.last_mut() {
        *last = "must not contain dots".to_owned();
    }
    problems
}

/// Checks a label except for its length.
fn problems_of_form_only(text: &str) -> Vec<String> {
    let mut problems = simple_dns_label(text);
    problems.retain(|p| !p.starts_with("must be no more"));
    problems
}

/// A key of labels, annotations and the like: a name with an optional prefix.
pub fn qualified_name(text: &str) -> Vec<String> {
    static NAME: LazyLock<Form> = LazyLock::new(|| {
        let what = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        Form::new(63, "bytes", what, KEY, &["MyName", "my.name", "123-abc"])
    });
    let mut problems = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        ["", name] => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            problems.extend(
                dns_subdomain(prefix)
                    .iter()
                    .map(|p| format!("prefix part {}", p.replace("253 characters", "253 bytes"))),
            );
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                NAME.says
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(NAME.check(name).iter().map(|p| format!("name part {p}")));
    problems
}

/// Names that would lead out of a folder.
fn parent_folder(text: &str) -> Option<String> {
    match text {
        "." | ".." => Some(format!("must not be '{text}'")),
        _ => text
            .starts_with("..")
            .then(|| "must not start with '..'".to_owned()),
    }
}

/// A key of a ConfigMap or Secret.
pub fn config_key(text: &str) -> Vec<String> {
    plain_config_key(text)
        .into_iter()
        .chain(parent_folder(text))
        .collect()
}

/// An environment variable's name: anything printable but `=`.
pub fn relaxed_env_var_name(text: &str) -> Vec<String> {
    let empty = text
        .is_empty()
        .then(|| "environment variable name must be non-empty".to_owned());
    let odd = text.chars().any(|c| !(' '..='~').contains(&c) || c == '=');
    let says = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    empty
        .into_iter()
        .chain(odd.then(|| says.to_owned()))
        .collect()
}

/// A part of a URL path.
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ['/', '%']
        .iter()
        .filter(|c| text.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// The name of a port.
pub fn port_name(text: &str) -> Vec<String> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let rules: [(bool, &str); 5] = [
        (text.len() > 15, "must be no more than 15 characters"),
        (
            text.is_empty() || !text.bytes().all(allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !text.bytes().any(|b| b.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (
            text.starts_with('-') || text.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    rules
        .into_iter()
        .filter(|(broken, _)| *broken)
        .map(|(_, says)| says.to_owned())
        .collect()
}

pub fn port_number(number: i64) -> Option<String> {
    in_range(number, 1, 65535)
}

pub fn in_range(number: i64, low: i64, high: i64) -> Option<String> {
    (!(low..=high).contains(&number))
        .then(|| format!("must be between {low} and {high}, inclusive"))
}

/// An IP address in canonical notation, as far as Go checks that.
pub fn ip(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Ok(_) => Vec::new(),
        Err(_) if sloppy_ipv4(text).is_some() => vec!["must not have leading 0s".to_owned()],
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// Whether it is an address, in any notation.
pub fn is_ip(text: &str) -> bool {
    lenient_ip(text).is_some()
}

/// An address in any notation; like Go, an IPv4-mapped IPv6 address counts as IPv4.
pub fn lenient_ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>()
        .ok()
        .or_else(|| sloppy_ipv4(text).map(IpAddr::V4))
        .map(|ip| ip.to_canonical())
}

/// Like [`ip`], and in canonical form.
pub fn canonical_ip(text: &str) -> Vec<String> {
    let problems = ip(text);
    match text.parse::<IpAddr>() {
        Ok(parsed) if problems.is_empty() && parsed.to_string() != text => {
            vec![format!("must be in canonical form (\"{parsed}\")")]
        }
        _ => problems,
    }
}

/// An IPv4 address with leading zeros, which old clients may write.
fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u8> = text
        .split('.')
        .map(|p| {
            p.parse()
                .ok()
                .filter(|_| p.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect::<Option<_>>()?;
    <[u8; 4]>::try_from(parts).ok().map(Ipv4Addr::from)
}

/// The address and the length of a prefix.
pub fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let ip = address
        .parse::<IpAddr>()
        .ok()
        .or_else(|| sloppy_ipv4(address).map(IpAddr::V4))?;
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    let length: u8 = length
        .parse()
        .ok()
        .filter(|n| *n <= bits && length.bytes().all(|b| b.is_ascii_digit()))?;
    Some((ip, length))
}

/// The first address of a network.
pub fn network(ip: IpAddr, length: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => IpAddr::V4(
            (v4.to_bits() & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)).into(),
        ),
        IpAddr::V6(v6) => IpAddr::V6(
            (v6.to_bits() & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)).into(),
        ),
    }
}

/// A network in canonical notation.
pub fn cidr(text: &str) -> Vec<String> {
    let Some((ip, length)) = parse_cidr(text) else {
        return vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()];
    };
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let problem = match ip {
        _ if address.parse::<IpAddr>().is_err() || (bits.len() > 1 && bits.starts_with('0')) => {
            "must not have leading 0s in IP or prefix length"
        }
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            "must not have an IPv4-mapped IPv6 address"
        }
        _ if network(ip, length) != ip => "must not have bits set beyond the prefix length",
        _ => return Vec::new(),
    };
    vec![problem.to_owned()]
}

/// Like [`cidr`], and in canonical form.
pub fn canonical_cidr(text: &str) -> Vec<String> {
    let problems = cidr(text);
    match parse_cidr(text).map(|(ip, length)| format!("{ip}/{length}")) {
        Some(canonical) if problems.is_empty() && canonical != text => {
            vec![format!("must be in canonical form (\"{canonical}\")")]
        }
        _ => problems,
    }
}

/// The address of an interface and the length of its network's prefix, in canonical form.
pub fn interface_address(text: &str) -> Vec<String> {
    let Some((ip, length)) = parse_cidr(text) else {
        return vec![
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned(),
        ];
    };
    let mapped = if let IpAddr::V6(v6) = ip {
        v6.to_ipv4_mapped()
    } else {
        None
    };
    let canonical = match mapped {
        Some(v4) if length > 32 => format!("{v4}/{}", length.saturating_sub(96)),
        Some(v4) => format!("{v4}/{length}"),
        None => format!("{ip}/{length}"),
    };
    if canonical == text {
        Vec::new()
    } else {
        vec![format!("must be in canonical form (\"{canonical}\")")]
    }
}

/// The server's warning about an address that is accepted but not in canonical notation.
pub fn ip_warning(field: &str, text: &str) -> Option<String> {
    let parsed = text.parse::<IpAddr>().ok();
    if let Some(v4) = parsed
        .and_then(|ip| {
            if let IpAddr::V6(v6) = ip {
                v6.to_ipv4_mapped()
            } else {
                None
            }
        })
        .or_else(|| match parsed {
            None => sloppy_ipv4(text),
            Some(_) => None,
        })
    {
        return Some(format!(
            "{field}: non-standard IP address \"{text}\" is invalid: use \"{v4}\""
        ));
    }
    let canonical = parsed.filter(|ip| ip.is_ipv6() && ip.to_string() != text)?;
    Some(format!(
        "{field}: IPv6 address \"{text}\" should be in RFC 5952 canonical format (\"{canonical}\")"
    ))
}

/// Like [`ip_warning`], for a network.
pub fn cidr_warning(field: &str, text: &str) -> Vec<String> {
    let Some((ip, length)) = parse_cidr(text) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let first = network(ip, length);
    if first != ip {
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        let choice = format!("(should be \"{first}/{length}\" or \"{ip}/{bits}\"?)");
        out.push(format!(
            "{field}: CIDR value \"{text}\" is ambiguous in this context {choice}"
        ));
    }
    let (address, digits) = text.split_once('/').unwrap_or((text, ""));
    let standard =
        address.parse::<IpAddr>().is_ok() && (digits.len() < 2 || !digits.starts_with('0'));
    if !standard {
        out.push(format!(
            "{field}: non-standard CIDR value \"{text}\" is invalid: use \"{first}/{length}\""
        ));
    } else if out.is_empty() && ip.is_ipv6() && format!("{ip}/{length}") != text {
        out.push(format!("{field}: IPv6 CIDR value \"{text}\" should be in RFC 5952 canonical format (\"{ip}/{length}\")"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_fit_or_are_told_why_not() {
        let table: &[(Format, &str, &[&str])] = &[
            (dns_label, "a-b", &[]),
            (dns_label, "a.b", &["must not contain dots"]),
            (qualified_name, "a.b/C", &[]),
            (qualified_name, "/C", &["prefix part must be non-empty"]),
            (config_key, "..a", &["must not start with '..'"]),
            (
                path_segment,
                "a/b%",
                &["may not contain '/'", "may not contain '%'"],
            ),
            (
                port_name,
                "1-",
                &[
                    "must contain at least one letter (a-z)",
                    "must not begin or end with a hyphen",
                ],
            ),
            (ip, "010.0.0.1", &["must not have leading 0s"]),
            (
                canonical_ip,
                "2001:DB8::1",
                &["must be in canonical form (\"2001:db8::1\")"],
            ),
            (
                cidr,
                "10.0.0.1/8",
                &["must not have bits set beyond the prefix length"],
            ),
            (cidr, "10.0.0.0/8", &[]),
            (
                canonical_cidr,
                "FD01::/112",
                &["must be in canonical form (\"fd01::/112\")"],
            ),
            (
                cidr,
                "10.0.0.0/33",
                &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"],
            ),
        ];
        for (format, text, problems) in table {
            assert_eq!(format(text), *problems, "{text}");
        }
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist of"));
    }
}
