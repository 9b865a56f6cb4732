//! URLs, parsed and printed as by Go's net/url. Main type: [`Url`].

use crate::template::format;

/// The position of a text in a URL, which determines what is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    User,
    Host,
    Zone,
    Fragment,
}

fn plain(byte: u8, place: Place) -> bool {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
        b'!' | b'(' | b')' | b'*' | b'\'' => {
            matches!(place, Place::Host | Place::Zone | Place::Fragment)
        }
        b'"' | b'<' | b'>' | b'[' | b']' => matches!(place, Place::Host | Place::Zone),
        b'$' | b'&' | b'+' | b'=' | b',' | b';' => true,
        b':' => place != Place::User,
        b'/' | b'?' | b'@' => place == Place::Fragment || (place == Place::Path && byte != b'?'),
        _ => false,
    }
}

fn escape(text: &[u8], place: Place) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for b in text {
        if plain(*b, place) {
            out.push(*b)
        } else {
            out.extend(format!("%{b:02X}").bytes())
        }
    }
    out
}

fn unescape(text: &[u8], place: Place) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            if matches!(place, Place::Host | Place::Zone) && byte.is_ascii() && !plain(byte, place)
            {
                return Err(format!(
                    "invalid character {} in host name",
                    quoted(&[byte])
                ));
            }
            out.push(byte);
            rest = after;
            continue;
        }
        let wrong = |len: usize| {
            Err(format!(
                "invalid URL escape {}",
                quoted(&rest[..rest.len().min(len)])
            ))
        };
        let digits = after
            .get(..2)
            .and_then(|d| std::str::from_utf8(d).ok())
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|d| u8::from_str_radix(d, 16).ok()) else {
            return wrong(3);
        };
        let percent = code == b'%';
        let refused = match place {
            Place::Host => code < 0x80 && !percent,
            Place::Zone => !percent && code != b' ' && !plain(code, Place::Host),
            _ => false,
        };
        if refused {
            return wrong(3);
        }
        out.push(code);
        rest = &after[2..];
    }
    Ok(out)
}

fn quoted(text: &[u8]) -> String {
    String::from_utf8_lossy(&format::quote::quote(text, false)).into_owned()
}

/// The text up to a separator, and the rest.
fn cut(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|b| *b == separator) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The parts of a URL, unescaped; the query is unchanged.
#[derive(Default)]
pub struct Url {
    pub scheme: Vec<u8>,
    pub opaque: Vec<u8>,
    /// Name and password.
    pub user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// With its port.
    pub host: Vec<u8>,
    pub path: Vec<u8>,
    pub query: Vec<u8>,
    pub fragment: Vec<u8>,
}

impl Url {
    /// Parses a URL; the error is Go's, with the text.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let (front, fragment) = cut(text, b'#');
        let words = |whole: &[u8], why: String| format!("parse {}: {why}", quoted(whole));
        let mut url = Self::without_fragment(front).map_err(|why| words(front, why))?;
        url.fragment = unescape(fragment.unwrap_or_default(), Place::Fragment)
            .map_err(|why| words(text, why))?;
        Ok(url)
    }

    fn without_fragment(text: &[u8]) -> Result<Self, String> {
        if text.iter().any(|b| *b < b' ' || *b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text == b"*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, rest) = scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = cut(rest, b'?');
        url.query = query.unwrap_or_default().to_vec();
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            if cut(rest, b'/').0.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if rest.starts_with(b"//") && (!url.scheme.is_empty() || !rest.starts_with(b"///")) {
            let end = rest[2..]
                .iter()
                .position(|b| *b == b'/')
                .map_or(rest.len(), |at| at + 2);
            url.authority(&rest[2..end])?;
            rest = &rest[end..];
        }
        url.path = unescape(rest, Place::Path)?;
        Ok(url)
    }

    fn authority(&mut self, text: &[u8]) -> Result<(), String> {
        let at = text.iter().rposition(|b| *b == b'@');
        self.host = host(&text[at.map_or(0, |at| at + 1)..], &self.scheme)?;
        let Some(user) = at.map(|at| &text[..at]) else {
            return Ok(());
        };
        if !user
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(b))
        {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = cut(user, b':');
        let password = password.map(|p| unescape(p, Place::User));
        self.user = Some((unescape(name, Place::User)?, password.transpose()?));
        Ok(())
    }

    /// Name and password as written before an `@`.
    pub fn userinfo(&self) -> Vec<u8> {
        let Some((name, password)) = &self.user else {
            return Vec::new();
        };
        let mut out = escape(name, Place::User);
        if let Some(password) = password {
            out.push(b':');
            out.extend(escape(password, Place::User));
        }
        out
    }

    /// The host without its port and brackets.
    pub fn hostname(&self) -> &[u8] {
        let host = match self.host.iter().rposition(|b| *b == b':') {
            Some(colon) if port(&self.host[colon..]) => &self.host[..colon],
            _ => &self.host,
        };
        host.strip_prefix(b"[")
            .and_then(|inner| inner.strip_suffix(b"]"))
            .unwrap_or(host)
    }

    /// The URL as text.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            self.write_hierarchy(&mut out);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(escape(&self.fragment, Place::Fragment));
        }
        out
    }

    fn write_hierarchy(&self, out: &mut Vec<u8>) {
        let named = !self.host.is_empty() || self.user.is_some();
        if named || (!self.scheme.is_empty() && !self.path.is_empty()) {
            out.extend_from_slice(b"//");
        }
        if self.user.is_some() {
            out.extend(self.userinfo());
            out.push(b'@');
        }
        out.extend(escape(&self.host, Place::Host));
        let path = if self.path == b"*" {
            self.path.clone()
        } else {
            escape(&self.path, Place::Path)
        };
        if !path.is_empty() && path[0] != b'/' && !self.host.is_empty() {
            out.push(b'/');
        }
        if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
            out.extend_from_slice(b"./");
        }
        out.extend(path);
    }
}

fn scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (index, b) in text.iter().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok((b"", text))
}

/// Empty, or a colon and digits.
fn port(text: &[u8]) -> bool {
    text.split_first()
        .is_none_or(|(colon, digits)| *colon == b':' && digits.iter().all(u8::is_ascii_digit))
}

fn checked_port(text: &[u8]) -> Result<(), String> {
    if port(text) {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", quoted(text)))
    }
}

fn host(text: &[u8], scheme: &[u8]) -> Result<Vec<u8>, String> {
    match text.iter().rposition(|b| *b == b'[') {
        Some(0) => return literal(text),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    let web = matches!(scheme, b"http" | b"https");
    let colon = text.iter().position(|b| *b == b':').map(|first| {
        match text.iter().rposition(|b| *b == b':') {
            Some(last) if !web => last,
            _ => first,
        }
    });
    checked_port(&text[colon.unwrap_or(text.len())..])?;
    unescape(text, Place::Host)
}

/// An address in brackets.
fn literal(text: &[u8]) -> Result<Vec<u8>, String> {
    let Some(close) = text.iter().rposition(|b| *b == b']') else {
        return Err("missing ']' in host".to_owned());
    };
    let (inner, after) = (&text[1..close], &text[close + 1..]);
    checked_port(after)?;
    let zone = inner
        .windows(3)
        .position(|w| w == b"%25")
        .unwrap_or(inner.len());
    let mut address = unescape(&inner[..zone], Place::Host)?;
    address.extend(unescape(&inner[zone..], Place::Zone)?);
    let shown = String::from_utf8_lossy(&address).into_owned();
    let plain = shown
        .split_once('%')
        .map_or(shown.as_str(), |(plain, _)| plain);
    crate::netip::parse(&shown).map_err(|why| format!("invalid host: {why}"))?;
    if !plain.contains(':') {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([&b"["[..], &address, b"]", &unescape(after, Place::Host)?].concat())
}
