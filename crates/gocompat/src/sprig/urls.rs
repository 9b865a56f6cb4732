//! `urlParse` and `urlJoin`. Main value: [`TABLE`].

use super::args::{NIL, Out, fails, kind, string};
use crate::template::{Call, Error, Function, MAP, Map, Str, Type, Value};
use crate::url::Url;

pub(super) const TABLE: &[(&str, Function)] = &[
    ("urlParse", Function::new(&[Type::String], parse)),
    ("urlJoin", Function::new(&[MAP], join)),
];

fn parse(call: &mut Call<'_>) -> Out {
    let text = call.string(0)?.as_bytes();
    call.budget()
        .memory(text.len().saturating_mul(2).saturating_add(1000))?;
    let url =
        Url::parse(text).map_err(|why| Error::function(format!("unable to parse url: {why}")))?;
    let entries = [
        ("scheme", &url.scheme[..]),
        ("host", &url.host),
        ("hostname", url.hostname()),
        ("path", &url.path),
        ("query", &url.query),
        ("opaque", &url.opaque),
        ("fragment", &url.fragment),
        ("userinfo", &url.userinfo()),
    ];
    Ok(Map::of(
        MAP,
        entries.map(|(key, text)| (Str::from(key), Value::String(Str::from(text)))),
    )
    .into())
}

fn join(call: &mut Call<'_>) -> Out {
    let map = call.map(0)?;
    let mut url = Url {
        scheme: text_entry(map, "scheme")?,
        host: text_entry(map, "host")?,
        path: text_entry(map, "path")?,
        query: text_entry(map, "query")?,
        opaque: text_entry(map, "opaque")?,
        fragment: text_entry(map, "fragment")?,
        user: None,
    };
    let userinfo = text_entry(map, "userinfo")?;
    if !userinfo.is_empty() {
        let parsed = Url::parse(&[b"proto://", &userinfo[..], b"@host"].concat());
        url.user = parsed
            .map_err(|why| Error::function(format!("unable to parse userinfo in dict: {why}")))?
            .user;
    }
    string(call.budget(), url.write())
}

/// The text of an entry that must be a string; empty if it is missing.
fn text_entry(map: &Map, key: &str) -> Result<Vec<u8>, Error> {
    match map.get(key) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Nil) => fails(NIL),
        Some(other) => fails(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            kind(&other)
        )),
    }
}
