//! Comparing rows with recorded ones, which have signs for what differs from run to run.
//!
//! Main functions: [`compare`] and [`credentials`].

use super::server::{Request, Servers};
use crate::conformance::first_difference;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// How far a mean colour may be from the recorded one.
const TOLERANCE: u8 = 6;

/// What the signs stand for.
pub struct Context<'a> {
    /// Of the index in this step.
    pub checksum: &'a str,
    /// Of the indexes before.
    pub earlier: &'a [String],
}

pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The first difference between recorded rows and ours.
pub fn compare(wanted: &Value, found: &Value, context: &Context<'_>) -> Result<(), String> {
    for (table, key) in [
        ("repos", &["namespace", "name"][..]),
        ("charts", &["repo_namespace", "repo_name", "chart_id"][..]),
        (
            "files",
            &["repo_namespace", "repo_name", "chart_id", "chart_files_id"][..],
        ),
    ] {
        let by_key = |rows: &Value| -> BTreeMap<Vec<String>, Value> {
            // A table that was not made yet has no rows.
            let rows = rows.as_array().into_iter().flatten();
            rows.map(|row| {
                let key = key
                    .iter()
                    .map(|column| row[column].as_str().unwrap_or_default());
                (key.map(str::to_owned).collect(), row.clone())
            })
            .collect()
        };
        let (wanted, found) = (by_key(&wanted[table]), by_key(&found[table]));
        if !wanted.keys().eq(found.keys()) {
            return Err(format!(
                "{table}: recorded {:?}, got {:?}",
                wanted.keys().collect::<Vec<_>>(),
                found.keys().collect::<Vec<_>>()
            ));
        }
        for (key, wanted) in wanted {
            let row = found.get(&key).cloned().unwrap_or_default();
            let row = signed(&wanted, row, context)?;
            if wanted != row {
                return Err(format!(
                    "{table} {key:?}: {}",
                    first_difference(&wanted, &row, "")
                ));
            }
        }
    }
    Ok(())
}

/// Our value with the signs of the recorded one where they are true.
fn signed(wanted: &Value, found: Value, context: &Context<'_>) -> Result<Value, String> {
    Ok(match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let mut signs = serde_json::Map::new();
            for (key, value) in found {
                let sign = match (key.as_str(), wanted.get(&key)) {
                    ("checksum", Some(sign)) => checksum(sign, value, context),
                    ("raw_icon", Some(icon @ Value::Object(_))) => raw_icon(icon, &value)?,
                    (_, Some(wanted)) => signed(wanted, value, context)?,
                    (_, None) => value,
                };
                signs.insert(key, sign);
            }
            Value::Object(signs)
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found);
            let pairs = pairs.map(|(wanted, found)| signed(wanted, found, context));
            Value::Array(pairs.collect::<Result<_, _>>()?)
        }
        (Value::String(wanted), Value::String(found)) if wanted.starts_with("sha256:") => {
            let (hash, length) = (sha256(found.as_bytes()), found.len());
            let sign = format!("sha256:{hash} bytes:{length}");
            if sign == *wanted {
                sign.into()
            } else {
                found.into()
            }
        }
        (_, found) => found,
    })
}

fn checksum(sign: &Value, found: Value, context: &Context<'_>) -> Value {
    let text = found.as_str().unwrap_or_default();
    let is_true = match sign.as_str() {
        Some("=index") => text == context.checksum || context.checksum.is_empty(),
        Some("=earlier index") => context.earlier.iter().any(|earlier| earlier == text),
        Some("<random>") => !text.is_empty(),
        _ => false,
    };
    if is_true { sign.clone() } else { found }
}

/// The recorded picture, if ours looks like it.
fn raw_icon(wanted: &Value, found: &Value) -> Result<Value, String> {
    let Some(text) = found.as_str() else {
        return Ok(found.clone());
    };
    let bytes = STANDARD
        .decode(text)
        .map_err(|e| format!("raw_icon: {e}"))?;
    let picture = image::load_from_memory(&bytes).map_err(|e| format!("raw_icon: {e}"))?;
    let picture = picture.to_rgba8();
    let (width, height) = picture.dimensions();
    let mut cells = Vec::new();
    for (row, column) in (0..4).flat_map(|row| (0..4).map(move |column| (row, column))) {
        let from = |cell: u32, length: u32| (cell * length + 2) / 4;
        let (left, right) = (from(column, width), from(column + 1, width));
        let (top, bottom) = (from(row, height), from(row + 1, height));
        // Colours count as much as they are seen.
        let (mut sums, mut seen, mut count) = ([0_u64; 3], 0_u64, 0_u64);
        for y in top..bottom {
            for x in left..right {
                let [red, green, blue, alpha] = picture.get_pixel(x, y).0.map(u64::from);
                for (sum, value) in sums.iter_mut().zip([red, green, blue]) {
                    *sum += value * alpha;
                }
                seen += alpha;
                count += 1;
            }
        }
        let [red, green, blue] = sums.map(|sum| sum / seen.max(1));
        let cell = [red, green, blue, seen / count.max(1)];
        cells.push(cell.map(|value| u8::try_from(value).unwrap_or(u8::MAX)));
    }
    let hex = |cell: &[u8; 4]| {
        cell.iter()
            .map(|value| format!("{value:02x}"))
            .collect::<String>()
    };
    let ours: Vec<String> = cells.iter().map(hex).collect();
    let recorded = wanted["rgba4x4"].as_str().unwrap_or_default();
    let looks_alike = recorded.split(' ').zip(&cells).all(|(recorded, cell)| {
        let value = |place: usize| {
            let digits = recorded.get(place * 2..place * 2 + 2).unwrap_or_default();
            u8::from_str_radix(digits, 16).unwrap_or_default()
        };
        (0..4).all(|place| value(place).abs_diff(cell[place]) <= TOLERANCE)
    });
    let size = format!("{width}x{height}");
    if looks_alike && wanted["size"] == size.as_str() {
        Ok(wanted.clone())
    } else {
        Ok(
            json!({"format": "PNG", "size": size, "rgba4x4": ours.join(" "), "sha256": wanted["sha256"]}),
        )
    }
}

/// Whether credentials went where they were recorded to go, of the addresses that both asked.
pub fn credentials(step: &Value, requests: &[Request], servers: &Servers) -> Result<(), String> {
    let mut recorded: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in step["requests"].as_array().into_iter().flatten() {
        let line = line.as_str().unwrap_or_default();
        let mut words = line.split(' ');
        let (Some(listener), Some(_), Some(target)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let sent = line
            .split(" auth=")
            .nth(1)
            .and_then(|rest| rest.split(" ua=").next());
        let of = recorded.entry(format!("{listener} {target}")).or_default();
        of.push(sent.unwrap_or_default().to_owned());
    }
    for request in requests {
        let target = servers.to_recorded(&request.target);
        let key = format!("{} {target}", request.listener);
        if let Some(sent) = recorded.get(&key)
            && !sent.contains(&request.authorization)
            // A registry is asked before it says what it wants.
            && !(request.authorization.is_empty() && request.target.contains("/v2/"))
        {
            return Err(format!(
                "{key} got the credentials {:?}, recorded {sent:?}",
                request.authorization
            ));
        }
    }
    Ok(())
}
