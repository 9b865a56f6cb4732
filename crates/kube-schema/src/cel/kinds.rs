//! Values of Kubernetes-specific types: URLs, addresses, networks, quantities, versions, formats.
//!
//! Main type: [`Opaque`]; main function: [`call`].

use super::eval::{EvalError, Evaluated, failed};
use super::value::{Comparison, Key, Map, Value};
use crate::gofmt;
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tiphys_apimachinery::quantity::{Quantity, QuantityError};

#[derive(Clone, Debug)]
pub enum Opaque {
    Url(Url),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Quantity(Quantity),
    Semver(Semver),
    Format(String),
    Authz(super::authz::Asking),
    /// `Name{field: value}`
    Made(String, Map),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    scheme: String,
    host: String,
    path: String,
    query: String,
}

/// A version; pre-release parts affect the order, build parts do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    pre: Vec<String>,
    build: String,
}

impl Opaque {
    pub fn type_name(&self) -> &str {
        match self {
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authz(asking) => asking.type_name(),
            Self::Made(name, _) => name,
        }
    }

    pub fn equals(&self, other: &Self, comparison: &mut Comparison) -> bool {
        match (self, other) {
            (Self::Url(a), Self::Url(b)) => a.text == b.text,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a, n), Self::Cidr(b, m)) => a == b && n == m,
            (Self::Quantity(a), Self::Quantity(b)) => a.cmp(b) == Ordering::Equal,
            (Self::Semver(a), Self::Semver(b)) => a.order(b) == Ordering::Equal,
            (Self::Format(a), Self::Format(b)) => a == b,
            (Self::Made(a, x), Self::Made(b, y)) => a == b && comparison.maps(x, y),
            _ => false,
        }
    }

    pub fn text(&self) -> Option<String> {
        match self {
            Self::Ip(ip) => Some(ip.to_string()),
            Self::Cidr(ip, bits) => Some(format!("{ip}/{bits}")),
            _ => None,
        }
    }
}

fn url(text: &str) -> Result<Url, String> {
    let quoted = gofmt::quoted(text);
    let fail = |why: &str| {
        Err(format!(
            "URL parse error during conversion from string: parse {quoted}: {why}"
        ))
    };
    if text.is_empty() {
        return fail("empty url");
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        return fail("net/url: invalid control character in URL");
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest))
            if !scheme.is_empty()
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) =>
        {
            (scheme.to_ascii_lowercase(), rest)
        }
        Some(("", _)) => return fail("missing protocol scheme"),
        _ if text.starts_with('/') => (String::new(), text),
        _ => return fail("invalid URI for request"),
    };
    if !rest.starts_with('/') {
        return fail("invalid URI for request");
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = match rest.strip_prefix("//") {
        Some(tail) if !scheme.is_empty() => tail
            .find('/')
            .map_or((tail, ""), |at| (&tail[..at], &tail[at..])),
        _ => ("", rest),
    };
    let host = host.rsplit('@').next().unwrap_or("");
    if let Some(bad) = host
        .chars()
        .find(|c| *c == ' ' || *c == '<' || *c == '>' && *c != '"')
    {
        return fail(&format!(
            "invalid character {} in host name",
            gofmt::quoted(&bad.to_string())
        ));
    }
    if let Some((_, port)) = host.rsplit_once(':').filter(|(_, p)| !p.contains(']'))
        && !port.bytes().all(|b| b.is_ascii_digit())
    {
        return fail(&format!("invalid port \":{port}\" after host"));
    }
    Ok(Url {
        text: text.to_owned(),
        scheme,
        host: host.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
    })
}

impl Url {
    fn port(&self) -> &str {
        self.host
            .rsplit_once(':')
            .filter(|(_, port)| !port.contains(']'))
            .map_or("", |(_, port)| port)
    }

    fn hostname(&self) -> &str {
        let name = match self.port() {
            "" => self.host.strip_suffix(':').unwrap_or(&self.host),
            port => &self.host[..self.host.len() - port.len() - 1],
        };
        name.strip_prefix('[')
            .and_then(|n| n.strip_suffix(']'))
            .unwrap_or(name)
    }

    fn escaped_path(&self) -> String {
        let keep = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&b);
        self.path
            .bytes()
            .map(|b| {
                if keep(b) {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect()
    }

    fn query(&self) -> Value {
        let mut map: std::collections::BTreeMap<String, Vec<String>> = Default::default();
        for pair in self.query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            map.entry(unescape(key)).or_default().push(unescape(value));
        }
        Value::map(
            map.into_iter()
                .map(|(k, v)| (Key::String(k.into()), Value::strings(v)))
                .collect::<Map>(),
        )
    }
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = text
            .get(i + 1..i + 3)
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match (bytes[i], hex) {
            (b'%', Some(b)) => {
                out.push(b);
                i += 2;
            }
            (b'+', _) => out.push(b' '),
            (b, _) => out.push(b),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Go's error for a text that is not an address.
fn why_no_ip(text: &str) -> String {
    let at = |rest: &str, why: &str| format!("{why} (at {})", gofmt::quoted(rest));
    match text.find(['.', ':', '%']).map(|i| &text[i..=i]) {
        None => return "unable to parse IP".into(),
        Some("%") => return "missing IPv6 address".into(),
        Some(":") => return why_no_ipv6(text),
        _ => {}
    }
    let (mut fields, mut value, mut digits) = (0, 0u32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return "IPv4 field has octet with leading zero".into();
                }
                value = value * 10 + (c as u32 - '0' as u32);
                digits += 1;
                if value > 255 {
                    return "IPv4 field has value >255".into();
                }
            }
            '.' => {
                if i == 0 || i == text.len() - 1 || text.as_bytes()[i - 1] == b'.' {
                    return at(&text[i..], "IPv4 field must have at least one digit");
                }
                if fields == 3 {
                    return "IPv4 address too long".into();
                }
                (fields, value, digits) = (fields + 1, 0, 0);
            }
            _ => return at(&text[i..], "unexpected character"),
        }
    }
    "IPv4 address too short".into()
}

fn why_no_ipv6(text: &str) -> String {
    let at = |rest: &str, why: &str| format!("{why} (at {})", gofmt::quoted(rest));
    let mut rest = text.strip_prefix("::").unwrap_or(text);
    for _ in 0..8 {
        let end = rest
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len());
        if end == 0 {
            return at(
                rest,
                "each colon-separated field must have at least one digit",
            );
        }
        if end > 4 {
            return at(rest, "each group must have 4 or less digits");
        }
        rest = &rest[end..];
        if rest.is_empty() {
            return "address string too short".into();
        }
        if !rest.starts_with(':') {
            return at(rest, "unexpected character, want colon");
        }
        if rest == ":" {
            return at(rest, "colon must be followed by more characters");
        }
        rest = rest
            .strip_prefix("::")
            .or_else(|| rest.strip_prefix(':'))
            .unwrap_or(rest);
    }
    at(rest, "trailing garbage after address")
}

fn ip(text: &str) -> Result<IpAddr, String> {
    let quoted = gofmt::quoted(text);
    if text.contains('%')
        && text
            .split('%')
            .next()
            .is_some_and(|a| a.parse::<Ipv6Addr>().is_ok())
    {
        return Err(format!(
            "IP address {quoted} with zone value is not allowed"
        ));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"))
        }
        Ok(ip) => Ok(ip),
        Err(_) => Err(format!(
            "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): {}",
            why_no_ip(text)
        )),
    }
}

fn cidr(text: &str) -> Result<(IpAddr, u8), String> {
    let quoted = gofmt::quoted(text);
    let fail = |why: &str| {
        Err(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({quoted}): {why}"
        ))
    };
    let Some((address, bits)) = text.rsplit_once('/') else {
        return fail("no '/'");
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return fail(&format!(
            "ParseAddr({}): unable to parse IP",
            gofmt::quoted(address)
        ));
    };
    let max = if address.is_ipv4() { 32 } else { 128 };
    let plain = bits.bytes().all(|b| b.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    match bits.parse::<u8>() {
        Ok(bits) if bits <= max && plain => match address {
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
                Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"))
            }
            _ => Ok((address, bits)),
        },
        Ok(_) if plain => fail("prefix length out of range"),
        _ => fail(&format!("bad bits after slash: {}", gofmt::quoted(bits))),
    }
}

fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            Ipv4Addr::from(u32::from(v4) & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0))
                .into()
        }
        IpAddr::V6(v6) => Ipv6Addr::from(
            u128::from(v6) & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0),
        )
        .into(),
    }
}

fn contains(net: (IpAddr, u8), ip: IpAddr) -> bool {
    net.0.is_ipv4() == ip.is_ipv4() && masked(net.0, net.1) == masked(ip, net.1)
}

/// One of the three numbers of a version.
fn number(name: &str, text: &str) -> Result<u64, String> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {name} number {}",
            gofmt::quoted(text)
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        let title = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        return Err(format!(
            "{title} number must not contain leading zeroes {}",
            gofmt::quoted(text)
        ));
    }
    let why = if text.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", gofmt::quoted(text)))
}

impl Semver {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(tail)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".into());
        };
        let (rest, build) = tail
            .split_once('+')
            .map_or((tail, None), |(r, b)| (r, Some(b)));
        let (patch, pre) = rest
            .split_once('-')
            .map_or((rest, None), |(p, t)| (p, Some(t)));
        let numbers = [
            number("major", major)?,
            number("minor", minor)?,
            number("patch", patch)?,
        ];
        let pre: Vec<String> = pre
            .map(|p| p.split('.').map(str::to_owned).collect())
            .unwrap_or_default();
        let good = |p: &str| p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        for part in &pre {
            if part.is_empty() {
                return Err("Prerelease is empty".into());
            }
            if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    gofmt::quoted(part)
                ));
            }
            if !good(part) {
                return Err(format!(
                    "Invalid character(s) found in prerelease {}",
                    gofmt::quoted(part)
                ));
            }
        }
        for part in build.into_iter().flat_map(|b| b.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".into());
            }
            if !good(part) {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    gofmt::quoted(part)
                ));
            }
        }
        Ok(Self {
            numbers,
            pre,
            build: build.unwrap_or("").to_owned(),
        })
    }

    /// Allows a leading `v`, missing numbers, and leading zeros.
    fn normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (core, rest) = text.split_at(end);
        let mut parts: Vec<&str> = core.split('.').collect();
        if parts.len() < 3 && !rest.is_empty() {
            return Err("Short version cannot contain PreRelease/Build meta data".into());
        }
        while parts.len() < 3 {
            parts.push("0");
        }
        let plain: Vec<&str> = parts
            .iter()
            .map(|p| {
                let trimmed = p.trim_start_matches('0');
                if trimmed.is_empty() && !p.is_empty() {
                    "0"
                } else {
                    trimmed
                }
            })
            .collect();
        Self::parse(&format!("{}{rest}", plain.join(".")))
    }

    fn order(&self, other: &Self) -> Ordering {
        let part = |a: &str, b: &str| match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            _ => a.cmp(b),
        };
        let pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let first = self
                    .pre
                    .iter()
                    .zip(&other.pre)
                    .map(|(a, b)| part(a, b))
                    .find(|o| o.is_ne());
                first.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        };
        self.numbers.cmp(&other.numbers).then_with(pre)
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(s) => Some(s),
        _ => None,
    }
}

fn from_order(function: &str, order: Ordering) -> Value {
    match function {
        "isGreaterThan" => Value::Bool(order.is_gt()),
        "isLessThan" => Value::Bool(order.is_lt()),
        _ => Value::Int(order as i64),
    }
}

fn or_fail<T>(result: Result<T, String>) -> Result<T, EvalError> {
    result.map_err(EvalError::Failed)
}

/// Calls a function of these types; None for other functions.
pub fn call(function: &str, args: &[Value]) -> Option<Evaluated> {
    if let [Value::Opaque(of), rest @ ..] = args {
        return method(function, of, rest);
    }
    if let ([], Some(name)) = (args, function.strip_prefix("format.")) {
        return Some(Ok(Value::opaque(Opaque::Format(name.to_owned()))));
    }
    let text = text_of(args.first()?);
    let lax = matches!(args.get(1), Some(Value::Bool(true)));
    let semver = |text: &str| {
        if lax {
            Semver::normalized(text)
        } else {
            Semver::parse(text)
        }
    };
    let text = text?;
    Some(match function {
        "url" => or_fail(url(text)).map(|u| Value::opaque(Opaque::Url(u))),
        "isURL" => Ok(Value::Bool(url(text).is_ok())),
        "ip" => or_fail(ip(text)).map(|a| Value::opaque(Opaque::Ip(a))),
        "isIP" => Ok(Value::Bool(ip(text).is_ok())),
        "ip.isCanonical" => or_fail(ip(text)).map(|a| Value::Bool(a.to_string() == text)),
        "cidr" => or_fail(cidr(text)).map(|(a, n)| Value::opaque(Opaque::Cidr(a, n))),
        "isCIDR" => Ok(Value::Bool(cidr(text).is_ok())),
        "quantity" => or_fail(text.parse::<Quantity>().map_err(|e| match e {
            QuantityError::Numeric => QuantityError::Format.to_string(),
            other => other.to_string(),
        }))
        .map(|q| Value::opaque(Opaque::Quantity(q))),
        "isQuantity" => Ok(Value::Bool(text.parse::<Quantity>().is_ok())),
        "semver" => or_fail(semver(text)).map(|v| Value::opaque(Opaque::Semver(v))),
        "isSemver" => Ok(Value::Bool(semver(text).is_ok())),
        "format.named" => {
            let known = super::functions::FORMATS.contains(&text);
            Ok(Value::Optional(known.then(|| {
                Box::new(Value::opaque(Opaque::Format(text.to_owned())))
            })))
        }
        _ => return None,
    })
}

fn method(function: &str, of: &Opaque, rest: &[Value]) -> Option<Evaluated> {
    Some(match of {
        Opaque::Authz(_) | Opaque::Made(..) => return None,
        Opaque::Url(u) => Ok(match function {
            "getScheme" => u.scheme.as_str().into(),
            "getHost" => u.host.as_str().into(),
            "getHostname" => u.hostname().into(),
            "getPort" => u.port().into(),
            "getEscapedPath" => u.escaped_path().into(),
            "getQuery" => u.query(),
            _ => return None,
        }),
        Opaque::Ip(ip) => Ok(match function {
            "family" => Value::Int(if ip.is_ipv4() { 4 } else { 6 }),
            "string" => ip.to_string().into(),
            "isUnspecified" => Value::Bool(ip.is_unspecified()),
            "isLoopback" => Value::Bool(ip.is_loopback()),
            "isLinkLocalMulticast" => Value::Bool(link_local_multicast(ip)),
            "isLinkLocalUnicast" => Value::Bool(link_local(ip)),
            "isGlobalUnicast" => Value::Bool(
                !ip.is_unspecified()
                    && !ip.is_loopback()
                    && !ip.is_multicast()
                    && !link_local(ip)
                    && *ip != IpAddr::V4(Ipv4Addr::BROADCAST),
            ),
            _ => return None,
        }),
        Opaque::Cidr(ip, bits) => network(function, (*ip, *bits), rest)?,
        Opaque::Quantity(q) => quantity(function, q, rest)?,
        Opaque::Semver(v) => match (function, rest) {
            ("major" | "minor" | "patch", _) => {
                let i = ["major", "minor", "patch"]
                    .iter()
                    .position(|n| *n == function)
                    .unwrap_or(0);
                Ok(Value::Int(v.numbers[i] as i64))
            }
            ("isGreaterThan" | "isLessThan" | "compareTo", [Value::Opaque(o)]) => match &**o {
                Opaque::Semver(w) => Ok(from_order(function, v.order(w))),
                _ => failed("no such overload"),
            },
            _ => return None,
        },
        Opaque::Format(name) => match (function, rest) {
            ("validate", [Value::String(text)]) => {
                let problems = format_problems(name, text);
                Ok(Value::Optional(
                    (!problems.is_empty()).then(|| Box::new(Value::strings(problems))),
                ))
            }
            _ => return None,
        },
    })
}

fn link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0) == 0xfe80,
    }
}

fn link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => (v6.segments()[0] & 0xff0f) == 0xff02,
    }
}

fn network(function: &str, net: (IpAddr, u8), rest: &[Value]) -> Option<Evaluated> {
    let as_ip = |value: &Value| match value {
        Value::String(text) => ip(text).ok(),
        Value::Opaque(o) => match &**o {
            Opaque::Ip(ip) => Some(*ip),
            _ => None,
        },
        _ => None,
    };
    let as_net = |value: &Value| match value {
        Value::String(text) => cidr(text).ok(),
        Value::Opaque(o) => match &**o {
            Opaque::Cidr(ip, bits) => Some((*ip, *bits)),
            _ => None,
        },
        _ => None,
    };
    Some(match (function, rest) {
        ("ip", _) => Ok(Value::opaque(Opaque::Ip(net.0))),
        ("string", _) => Ok(format!("{}/{}", net.0, net.1).into()),
        ("masked", _) => Ok(Value::opaque(Opaque::Cidr(masked(net.0, net.1), net.1))),
        ("prefixLength", _) => Ok(Value::Int(i64::from(net.1))),
        ("containsIP", [arg]) => match as_ip(arg) {
            Some(ip) => Ok(Value::Bool(contains(net, ip))),
            None => failed("no such overload"),
        },
        ("containsCIDR", [arg]) => match as_net(arg) {
            Some(other) => Ok(Value::Bool(other.1 >= net.1 && contains(net, other.0))),
            None => failed("no such overload"),
        },
        _ => return None,
    })
}

fn quantity(function: &str, q: &Quantity, rest: &[Value]) -> Option<Evaluated> {
    let whole = || q.to_whole();
    let other = match rest {
        [Value::Opaque(o)] => match &**o {
            Opaque::Quantity(other) => Some(*other),
            _ => None,
        },
        [Value::Int(n)] => Some(n.to_string().parse::<Quantity>().ok()?),
        _ => None,
    };
    Some(Ok(match (function, other) {
        ("sign", _) => Value::Int(q.as_f64().partial_cmp(&0.0).map_or(0, |o| o as i64)),
        ("isInteger", _) => Value::Bool(whole().is_some()),
        ("asInteger", _) => match whole() {
            Some(n) => Value::Int(n),
            None => return Some(failed("cannot convert value to integer")),
        },
        ("asApproximateFloat", _) => Value::Double(q.as_f64()),
        ("isGreaterThan" | "isLessThan" | "compareTo", Some(other)) => {
            from_order(function, q.cmp(&other))
        }
        ("add", Some(other)) => Value::opaque(Opaque::Quantity(q.plus(&other))),
        ("sub", Some(other)) => Value::opaque(Opaque::Quantity(q.minus(&other))),
        _ => return None,
    }))
}

/// The errors in a text, by the name of a format of the `format` library.
fn format_problems(name: &str, text: &str) -> Vec<String> {
    use crate::formats;
    use crate::structural::formats as known;
    let prefix = |check: fn(&str) -> Vec<String>| {
        check(&format!("{}a", text.strip_suffix('-').unwrap_or(text)))
    };
    let by = |format: &str, says: &str| {
        if known::matches(format, text) {
            Vec::new()
        } else {
            vec![says.to_owned()]
        }
    };
    match name {
        "dns1123Label" => formats::dns_label(text),
        "dns1123Subdomain" => formats::dns_subdomain(text),
        "dns1035Label" => formats::dns1035_label(text),
        "qualifiedName" => formats::qualified_name(text),
        "dns1123LabelPrefix" => prefix(formats::dns_label),
        "dns1123SubdomainPrefix" => prefix(formats::dns_subdomain),
        "dns1035LabelPrefix" => prefix(formats::dns1035_label),
        "labelValue" => formats::label_value(text),
        "uri" => url(text)
            .err()
            .into_iter()
            .map(|e| e.replace("URL parse error during conversion from string: ", ""))
            .collect(),
        "uuid" => by("uuid", "does not match the UUID format"),
        "byte" => by("byte", "invalid base64"),
        "date" => by("date", "invalid date"),
        "datetime" => by("datetime", "invalid datetime"),
        _ => Vec::new(),
    }
}
