//! Field paths in definitions (`.spec.size`, `.spec['a-b']`). Main function: [`resolve`].

use crate::structural::Node;
use std::borrow::Cow;

/// The tokens of a path: `.`, `[`, `]`, quoted keys, names.
fn tokens(path: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let bytes = rest.as_bytes();
        let end = match bytes[0] {
            b'\'' => (1..bytes.len())
                .find(|i| bytes[*i] == b'\'' && bytes[*i - 1] != b'\\')
                .map_or(bytes.len(), |i| i + 1),
            b'.' | b'[' | b']' => 1,
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        found.push(&rest[..end]);
        rest = &rest[end..];
    }
    found
}

fn unescape(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains('\\') {
        return Ok(text.into());
    }
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') => '\\',
            other => {
                return Err(format!(
                    "invalid string literal: invalid escape char \\{}",
                    other.map(String::from).unwrap_or_default()
                ));
            }
        });
    }
    Ok(out.into())
}

/// The path as Kubernetes writes it (without a first dot), and the schema it leads to.
pub fn resolve<'a>(
    path: &str,
    root: &'a Node,
    brackets: bool,
) -> Result<(String, &'a Node), String> {
    let (mut node, mut resolved) = (root, String::new());
    let mut tokens = tokens(path).into_iter();
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".into()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|q| q.strip_suffix('\''))
                    .filter(|_| quoted.len() >= 2);
                unescape(
                    inner
                        .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?,
                )?
                .into_owned()
            }
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        const NOWHERE: &str = "does not refer to a valid field";
        if !node.properties.is_empty() {
            if !resolved.is_empty() {
                resolved.push('.');
            }
            resolved.push_str(&name);
            node = node.properties.get(&name).ok_or(NOWHERE)?;
        } else if node.additional.is_said() {
            resolved.push_str(&format!("[{name}]"));
            node = node.additional.schema().ok_or(NOWHERE)?;
        } else {
            return Err(NOWHERE.into());
        }
        if token == "[" {
            match tokens.next() {
                None => return Err(end()),
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
            }
        }
    }
    Ok((resolved, node))
}

/// The path in a rule, as messages show it.
pub fn shown(path: &str, node: &Node) -> Option<String> {
    resolve(path, node, true).ok().map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_schemas_or_say_why_not() {
        let node = Node::read(
            &json!({"properties": {"spec": {"properties": {"a-b": {"type": "string"},
            "m": {"additionalProperties": {"type": "integer"}}}}}}),
        );
        let found = |path: &str| resolve(path, &node, true).map(|(p, n)| format!("{p} {}", n.kind));
        assert_eq!(found(".spec['a-b']"), Ok("spec.a-b string".into()));
        assert_eq!(found(".spec.m['k']"), Ok("spec.m[k] integer".into()));
        assert_eq!(found("spec"), Err("expected [ or . but got: spec".into()));
        assert_eq!(
            found(".spec.x"),
            Err("does not refer to a valid field".into())
        );
        assert_eq!(found(".spec["), Err("unexpected end of JSON path".into()));
        assert_eq!(
            resolve(".spec['a-b']", &node, false).map(|f| f.0),
            Err("array notation is not allowed".into())
        );
    }
}
