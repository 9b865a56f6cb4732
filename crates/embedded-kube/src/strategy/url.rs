//! URLs as Go reads them, and what is wrong with that of a webhook. Main function: [`webhook_problems`].

use crate::structural::gofmt;

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong: with the part that is told, or, without one, because nothing could be read.
pub struct Problem {
    pub value: Option<String>,
    pub detail: String,
}

/// The parts of a URL that anybody here asks for.
struct Url<'t> {
    scheme: String,
    user: Option<&'t str>,
    host: &'t str,
    query: &'t str,
    fragment: &'t str,
}

pub fn webhook_problems(text: &str) -> Vec<Problem> {
    let url = match parse(text) {
        Ok(url) => url,
        Err(why) => {
            let detail = format!("url must be a valid URL: parse {}: {why}{FORM}", gofmt::quoted(text));
            return vec![Problem { value: None, detail }];
        }
    };
    let refused = [
        (url.scheme != "https", url.scheme.as_str(), format!("'https' is the only allowed URL scheme{FORM}")),
        (url.host.is_empty(), "", format!("host must be specified{FORM}")),
        (url.user.is_some(), url.user.unwrap_or(""), "user information is not permitted in the URL".to_owned()),
        (!url.fragment.is_empty(), url.fragment, "fragments are not permitted in the URL".to_owned()),
        (!url.query.is_empty(), url.query, "query parameters are not permitted in the URL".to_owned()),
    ];
    let there = refused.into_iter().filter(|(refused, ..)| *refused);
    there.map(|(_, value, detail)| Problem { value: Some(value.to_owned()), detail }).collect()
}

fn parse(text: &str) -> Result<Url<'_>, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    if rest.bytes().any(|b| b.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (scheme, rest) = scheme(rest)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url { scheme: scheme.to_ascii_lowercase(), user: None, host: "", query, fragment };
    if !rest.starts_with('/') && !scheme.is_empty() {
        return Ok(url);
    }
    if !rest.starts_with('/') && rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
        return Err("first path segment in URL cannot contain colon".to_owned());
    }
    let mut path = rest;
    if let Some(after) = rest.strip_prefix("//").filter(|after| !scheme.is_empty() || !after.starts_with('/')) {
        let end = after.find('/').unwrap_or(after.len());
        path = &after[end..];
        (url.user, url.host) = authority(&after[..end])?;
    }
    escapes(path, false)?;
    escapes(fragment, false)?;
    Ok(url)
}

/// The scheme, if there is one, and what comes after it.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn authority(text: &str) -> Result<(Option<&str>, &str), String> {
    let (user, host) = text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    let port = match host.starts_with('[') {
        true => host.rsplit_once(']').ok_or("missing ']' in host")?.1,
        false => host.find(':').map_or("", |at| &host[at..]),
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", gofmt::quoted(port)));
    }
    escapes(host, true)?;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if user.is_some_and(|user| !user.bytes().all(fits)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    escapes(user.unwrap_or(""), false)?;
    Ok((user, host))
}

/// Whether what is escaped can be read. In a host only what is no ASCII may be escaped, and little else may stand there.
fn escapes(text: &str, in_host: bool) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'%' {
            let digits = bytes.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            if digits.is_none_or(|digits| in_host && digits[0] < b'8' && digits != b"25") {
                let escape = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]);
                return Err(format!("invalid URL escape {}", gofmt::quoted(&escape)));
            }
        } else if in_host && byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"!$&'()*+,;=:[]<>\"-_.~".contains(byte) {
            return Err(format!("invalid character {} in host name", gofmt::quoted(&char::from(*byte).to_string())));
        }
    }
    Ok(())
}
