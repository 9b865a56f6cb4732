//! The lines of a policy.
//!
//! Main function: [`read`].

/// Why a policy cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PolicyFault {
    /// The line in its text, from 1.
    pub number: usize,
    /// The line, trimmed.
    pub line: String,
    /// In Argo CD's words.
    pub message: String,
}

/// A line that decides something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Subject, resource, action, object, effect.
    Permission([String; 5]),
    /// A member and its role.
    Role(String, String),
}

/// The lines with their numbers, from 1.
///
/// # Errors
/// The first line that casbin refuses.
pub fn read(text: &str) -> Result<Vec<(usize, Line)>, PolicyFault> {
    let mut lines = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = |message: String| PolicyFault {
            number: index + 1,
            line: line.to_owned(),
            message,
        };
        let fields = record(line).map_err(|(column, reason)| {
            fault(format!(
                "error parsing policy line {line:?}: parse error on line 1, column {column}: {reason}"
            ))
        })?;
        let read = of(fields).ok_or_else(|| fault(format!("invalid RBAC policy: {line}")))?;
        lines.extend(read.map(|line| (index + 1, line)));
    }
    Ok(lines)
}

/// `None`: the line is invalid; an empty result: it is accepted and means nothing.
fn of(mut fields: Vec<String>) -> Option<Option<Line>> {
    match (fields.first().map(String::as_str), fields.len()) {
        (Some("p"), 6) => {
            fields.remove(0);
            Some(Some(Line::Permission(fields.try_into().ok()?)))
        }
        (Some("g"), 3) => {
            let role = fields.pop()?;
            Some(Some(Line::Role(fields.pop()?, role)))
        }
        // The sections of casbin's model.
        (Some("r" | "e" | "m"), _) => Some(None),
        _ => None,
    }
}

/// The fields of a CSV record as Go reads it, without white space before fields. The error has its
/// column, from 1, in bytes.
fn record(line: &str) -> Result<Vec<String>, (usize, &'static str)> {
    const BARE: &str = "bare \" in non-quoted field";
    const EXTRANEOUS: &str = "extraneous or missing \" in quoted-field";
    let mut fields = Vec::new();
    let mut rest = line;
    let column = |rest: &str| line.len() - rest.len() + 1;
    loop {
        rest = rest.trim_start();
        let Some(mut quoted) = rest.strip_prefix('"') else {
            let (field, after) = match rest.split_once(',') {
                Some((field, after)) => (field, Some(after)),
                None => (rest, None),
            };
            if let Some(at) = field.find('"') {
                return Err((column(rest) + at, BARE));
            }
            fields.push(field.to_owned());
            match after {
                Some(after) => rest = after,
                None => return Ok(fields),
            }
            continue;
        };
        let mut field = String::new();
        loop {
            let Some((text, after)) = quoted.split_once('"') else {
                return Err((line.len() + 1, EXTRANEOUS));
            };
            field.push_str(text);
            if let Some(after) = after.strip_prefix('"') {
                field.push('"');
                quoted = after;
                continue;
            }
            fields.push(field);
            if after.is_empty() {
                return Ok(fields);
            }
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => return Err((column(after), EXTRANEOUS)),
            }
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_gos() {
        let fields = |line| record(line).expect(line);
        assert_eq!(fields("p, alice , a"), ["p", "alice ", "a"]);
        assert_eq!(fields(r#"g, "a,b", "al""ice""#), ["g", "a,b", "al\"ice"]);
        assert_eq!(fields("p,,"), ["p", "", ""]);
        assert_eq!(record("p, a\"b").expect_err("bare").0, 5);
        for broken in ["p, \"a", "p, \"a\" b"] {
            assert!(record(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_fault_names_its_line() {
        let fault = read("p, a, b, c, d, allow\n\nnot, good\n").expect_err("a fault");
        assert_eq!((fault.number, fault.line.as_str()), (3, "not, good"));
        assert_eq!(fault.to_string(), "invalid RBAC policy: not, good");
    }
}
