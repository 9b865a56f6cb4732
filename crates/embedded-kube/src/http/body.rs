//! Request bodies: size, media type, JSON or YAML, duplicate keys. Main function: [`read_object`].

use super::tree::{Known, Tree};
use crate::catalog::Resource;
use crate::registry::{MAX_DEPTH, TYPE_META, meta};
use crate::status::Status;
use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeSeed;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::is_deeper_than;
use tiphys_gocompat::{json, yaml};
use tiphys_kube_schema::gotypes;
use tiphys_kube_schema::gotypes::Struct;

/// The same limit as kube-apiserver's.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// What the anchors and aliases of a YAML body may take: more than any object that can be stored.
const MAX_COPIED: usize = 32 << 20;
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The whole body, up to the limit.
pub async fn read(body: Body) -> Result<Bytes, Status> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Status::too_large())
        }
        Err(error) => Err(Status::bad_request(format!(
            "unable to read the request body: {error}"
        ))),
    }
}

/// The media type without parameters, lower case.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    value
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase()
}

/// Checks that the media type is accepted for objects.
pub fn check_media_type(headers: &HeaderMap) -> Result<(), Status> {
    match object_type(headers).as_str() {
        "" | "application/json" | "application/yaml" | "application/vnd.kubernetes.protobuf" => {
            Ok(())
        }
        _ => Err(Status::unsupported_media_type(ACCEPTED)),
    }
}

/// The media type of a patch, exactly as sent.
pub fn patch_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    value.split(';').next().unwrap_or("").to_owned()
}

/// Whether a list of media types has one of these.
pub fn names_one_of(headers: &HeaderMap, known: &[&str]) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    value
        .split(',')
        .any(|clause| known.contains(&clause.split(';').next().unwrap_or("").trim()))
}

/// The media type of an object body; empty if its parameters are invalid.
fn object_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let parameters: Vec<&str> = value.split(';').skip(1).map(str::trim).collect();
    let is_one = |text: &str| text.find('=').is_some_and(|at| at > 0);
    let ends = parameters.last().is_some_and(|last| last.is_empty());
    let all = &parameters[..parameters.len() - usize::from(ends)];
    if all.iter().all(|text| is_one(text)) {
        media_type(headers)
    } else {
        value.to_owned()
    }
}

/// A document, and its duplicate keys as findings.
pub fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<(Value, Vec<String>), Status> {
    match object_type(headers).as_str() {
        "" | "application/json" => parse_json(bytes),
        "application/yaml" => yaml(bytes)
            .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}"))),
        "application/vnd.kubernetes.protobuf" => {
            let refused =
                |why: String| Status::bad_request(format!("cannot read the protobuf body: {why}"));
            let value = gotypes::decode(bytes).map_err(|e| refused(e.to_string()))?;
            Ok((within_depth(value).map_err(refused)?, Vec::new()))
        }
        _ => Err(Status::unsupported_media_type(ACCEPTED)),
    }
}

/// A patch in JSON.
pub fn parse_patch(bytes: &[u8], known: Known) -> Result<(Value, Vec<String>), String> {
    json(bytes, known)
}

fn parse_json(bytes: &[u8]) -> Result<(Value, Vec<String>), Status> {
    json(bytes, Known::Nothing).map_err(|error| {
        Status::bad_request(format!("the object provided is unrecognized: {error}"))
    })
}

/// Bytes that are not UTF-8 and unpaired surrogates become replacement characters, as in Go. The
/// error is Go's, too.
fn json(bytes: &[u8], known: Known) -> Result<(Value, Vec<String>), String> {
    match decode_json(bytes, known) {
        Err(_) if std::str::from_utf8(bytes).is_err() => {
            decode_json(&replace_invalid(bytes), known)
        }
        Err(error) if error.contains("surrogate") || error.contains("hex escape") => {
            decode_json(&replace_surrogates(bytes), known)
        }
        other => other,
    }
}

/// A value that Go reads into a struct, which matters when a key appears twice.
fn json_of(bytes: &[u8], of: Option<&'static Struct>) -> Result<(Value, Vec<String>), String> {
    let found = json(bytes, Known::Nothing)?;
    match of {
        Some(of) if !found.1.is_empty() => json(bytes, Known::Struct(of)),
        _ => Ok(found),
    }
}

fn decode_json(bytes: &[u8], known: Known) -> Result<(Value, Vec<String>), String> {
    let mut findings = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Tree {
        path: String::new(),
        known,
        findings: &mut findings,
    };
    let value = seed
        .deserialize(&mut reader)
        .and_then(|v| reader.end().map(|()| v));
    match value {
        Ok(value) => Ok((within_depth(value)?, findings)),
        // Go would accept it, but it is nested too deeply to be worth the memory, or has a number
        // that no type can hold.
        Err(error) => Err(gotypes::syntax_error(bytes).unwrap_or_else(|| {
            if error.to_string().starts_with("recursion limit") {
                TOO_DEEP.to_owned()
            } else {
                error.to_string()
            }
        })),
    }
}

const TOO_DEEP: &str = "exceeded max depth";

fn within_depth(value: Value) -> Result<Value, String> {
    if is_deeper_than(&value, MAX_DEPTH) {
        Err(TOO_DEEP.to_owned())
    } else {
        Ok(value)
    }
}

/// Replaces every `\u` escape of an unpaired surrogate.
fn replace_surrogates(bytes: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = bytes
            .get(at..at + 6)
            .filter(|e| e.starts_with(b"\\u"))
            .and_then(|e| std::str::from_utf8(&e[2..]).ok())?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let step = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            _ if bytes[at] == b'\\' => 2,
            _ => 1,
        };
        let end = (at + step).min(bytes.len());
        out.extend_from_slice(&bytes[at..end]);
        at = end;
    }
    out
}

fn replace_invalid(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text.into_bytes()
}

/// A configuration for server-side apply.
pub fn parse_apply(bytes: &[u8]) -> Result<(Object, Vec<String>), Status> {
    let refused = |error: String| Status::bad_request(format!("error decoding YAML: {error}"));
    let (value, findings) =
        yaml(bytes).map_err(|error| refused(format!("error converting YAML to JSON: {error}")))?;
    match value {
        Value::Null => Ok((Object::default(), findings)),
        Value::Object(map) => Ok((Object(map), findings)),
        other => Err(refused(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json::kind(&other)
        ))),
    }
}

/// The first document of a YAML text. The error is Go's, as far as the wording of its parser is
/// known.
fn yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    // JSON is a subset of YAML, and clients send JSON as `application/apply-patch+yaml`; parsing it
    // as JSON is faster.
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
        && is_same_in_yaml(bytes)
        && let Ok(found) = json(bytes, Known::Nothing)
        && found.1.is_empty()
        && !has_fractions(&found.0)
    {
        return Ok(found);
    }
    let limits = yaml::Limits {
        bytes: MAX_BODY,
        depth: MAX_DEPTH,
        copied_bytes: MAX_COPIED,
        ..yaml::Limits::default()
    };
    let text = yaml::decode_text(bytes, &limits).map_err(|e| go_yaml(&e))?;
    if let Some(why) = incompatible(&text) {
        return Err(why);
    }
    let read = |duplicates| -> Result<Value, yaml::YamlError> {
        let mut documents = yaml::split_documents(&text, &limits)?.peekable();
        // Comments and directives before the first separator are not a document.
        if !text.starts_with("---")
            && documents
                .peek()
                .is_some_and(|d| d.as_ref().is_ok_and(|d| only_comments(&d.text)))
        {
            documents.next();
        }
        let Some(first) = documents.next() else {
            return Ok(Value::Null);
        };
        yaml::parse_chunk(&first?, &mut limits.clone(), duplicates).map(|(value, _)| value)
    };
    match read(yaml::Duplicates::Refuse) {
        Ok(value) => Ok((value, Vec::new())),
        Err(error) if error.is_repeated_key() => {
            let value = read(yaml::Duplicates::LastWins).map_err(|e| go_yaml(&e))?;
            Ok((
                value,
                vec![format!("line {}: {}", error.line, error.message)],
            ))
        }
        Err(error) => Err(go_yaml(&error)),
    }
}

/// Whether JSON contains none of the escapes and characters that the server's YAML parser rejects
/// or reads differently.
fn is_same_in_yaml(bytes: &[u8]) -> bool {
    let odd = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    let escapes = |pair: &[u8]| pair == b"\\/" || pair == b"\\u";
    !bytes.windows(2).any(escapes)
        && std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(odd))
}

/// Whether there are numbers like `80.0`, which end up as integers.
fn has_fractions(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(list) => list.iter().any(has_fractions),
        Value::Object(map) => map.values().any(has_fractions),
        _ => false,
    }
}

/// The error for a text that declares another version of YAML. Lines count from 0, and line 0 is
/// not mentioned.
fn incompatible(text: &str) -> Option<String> {
    let is_other = |line: &str| {
        line.strip_prefix("%YAML")
            .is_some_and(|said| said.split('#').next().unwrap_or("").trim() != "1.1")
    };
    let line = text
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(['#', '%']))
        .position(is_other)?;
    let place = if line == 0 {
        String::new()
    } else {
        format!("line {line}: ")
    };
    Some(format!("yaml: {place}found incompatible YAML document"))
}

fn only_comments(text: &str) -> bool {
    text.lines()
        .map(str::trim_start)
        .all(|line| line.is_empty() || line.starts_with(['#', '%']))
}

fn go_yaml(error: &yaml::YamlError) -> String {
    if error.is_not_json() {
        return error.message.clone();
    }
    if error.is_too_deep() {
        // The limits differ, but the message is about the same document.
        return format!("yaml: line {}: exceeded max depth of 10000", error.line);
    }
    format!("yaml: {}", error.go_text())
}

/// An object and the decoder's findings. `kind` is the kind of the request, and `of` its Go struct;
/// a null body counts as an empty one.
pub fn read_object(
    kind: &str,
    of: Option<&'static Struct>,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<(Object, Vec<String>), Status> {
    let refuse = |why: String| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(bytes)
        ))
    };
    read_typed(of, headers, bytes)?
        .map(|(map, findings)| (Object(map), findings))
        .map_err(refuse)
}

/// The decoded object and the decoder's findings.
type Found = (Map<String, Value>, Vec<String>);

/// A body that contains its own type; the inner error says why it cannot be decoded.
pub fn read_typed(
    of: Option<&'static Struct>,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<Result<Found, String>, Status> {
    let no_kind = |error: String| format!("couldn't get version/kind; json parse error: {error}");
    let read = match object_type(headers).as_str() {
        "" | "application/json" => json_of(bytes, of).map_err(no_kind),
        "application/yaml" => yaml(bytes),
        _ => Ok(parse(headers, bytes)?),
    };
    Ok(read.and_then(|(value, findings)| match value {
        Value::Null => Ok((Map::new(), findings)),
        Value::Object(map) => typed(&map)
            .map_err(no_kind)
            .and_then(|()| versioned(&map))
            .map(|()| (map, findings)),
        other => Err(no_kind(format!(
            "json: cannot unmarshal {} into Go value of type {TYPE_META}",
            json::kind(&other)
        ))),
    }))
}

/// Checks that kind and version are strings.
fn typed(map: &Map<String, Value>) -> Result<(), String> {
    let wrong = |field| {
        Some((
            field,
            map.get(field).filter(|v| !v.is_string() && !v.is_null())?,
        ))
    };
    match ["apiVersion", "kind"].into_iter().find_map(wrong) {
        Some((field, other)) => Err(format!(
            "json: cannot unmarshal {} into Go struct field .{field} of type string",
            json::kind(other)
        )),
        None => Ok(()),
    }
}

/// Checks that the version belongs to a group or to the core group.
fn versioned(map: &Map<String, Value>) -> Result<(), String> {
    map.get("apiVersion")
        .and_then(Value::as_str)
        .map_or(Ok(()), meta::group_version)
}

/// The error for a body without a kind.
pub fn without_kind(resource: &Resource, validated: bool, bytes: &[u8]) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    let why = format!(
        "Object 'Kind' is missing in '{}'",
        String::from_utf8_lossy(bytes)
    );
    // Only a decoder that validates fields does not know the type it decodes.
    Status::bad_request(if validated {
        format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(bytes)
        )
    } else {
        format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
    })
}

/// The error for a body with a group but no version.
pub fn without_version(resource: &Resource, kind: &str, bytes: &[u8]) -> Status {
    let why = format!(
        "Object 'apiVersion' is missing in '{}'",
        String::from_utf8_lossy(bytes)
    );
    Status::bad_request(format!(
        "{kind} in version \"\" cannot be handled as a {}: {why}",
        resource.kind
    ))
}

/// The beginning of a body, for messages: as text if it looks like an object, else in hexadecimal.
fn summary(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    let part = &bytes[..bytes.len().min(SHOWN)];
    let dots = if bytes.len() > SHOWN { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{dots}", String::from_utf8_lossy(part)),
        Some(_) => format!(
            "{}{dots}",
            part.iter().map(|b| format!("{b:02x}")).collect::<String>()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicate_keys_are_found_with_their_path_and_the_last_wins() {
        let (value, findings) =
            parse_json(br#"{"a":{"b":1,"b":2},"l":[{"x":1,"x":3}]}"#).expect("parses");
        assert_eq!(value, json!({"a": {"b": 2}, "l": [{"x": 3}]}));
        assert_eq!(
            findings,
            ["duplicate field \"a.b\"", "duplicate field \"l[0].x\""]
        );
        assert!(parse_json(b"{\"a\":1} x").is_err());
        let deep = "[".repeat(10_000);
        assert!(parse_json(deep.as_bytes()).is_err());
    }

    #[test]
    fn repeated_keys_of_yaml_are_findings_and_the_last_wins() {
        let (value, findings) = yaml(b"a: 1\nb: {c: 1, c: 2}\n").expect("parses");
        assert_eq!(value, json!({"a": 1, "b": {"c": 2}}));
        assert_eq!(findings, ["line 2: key \"c\" already set in map"]);
        assert_eq!(
            yaml(b"a: .nan\n").expect_err("not JSON"),
            "json: unsupported value: NaN"
        );
        let deep = format!("a: {}", "[".repeat(1000));
        assert_eq!(
            yaml(deep.as_bytes()).expect_err("too deep"),
            "yaml: line 1: exceeded max depth of 10000"
        );
    }

    #[test]
    fn aliases_of_a_long_text_cannot_fill_the_memory() {
        let long = "x".repeat(1 << 20);
        let body = |count: usize| format!("a: &a {long}\nb: [{}]\n", vec!["*a"; count].join(", "));
        let error = yaml(body(3000).as_bytes()).expect_err("gigabytes");
        assert_eq!(
            error,
            "yaml: line 2: anchors and aliases copy more than the 33554432 bytes that the input \
             has left for them"
        );
        let (value, _) = yaml(body(3).as_bytes()).expect("parses");
        assert_eq!(value["b"][2], json!(long));
    }
}
