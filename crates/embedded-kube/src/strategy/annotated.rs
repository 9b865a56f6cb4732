//! Numbers that were fields of older versions and are annotations of today's. Main function: [`read`].

use super::TEMPLATE_GENERATION;
use std::num::IntErrorKind;
use tiphys_apimachinery::Object;

/// To which revision of its template a Deployment is to go back.
pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// Reads them as numbers; they are written as Go writes numbers.
pub fn read(table: &str, object: &mut Object) -> Result<(), String> {
    let (key, keeps_empty) = match table {
        "apps/daemonsets" => (TEMPLATE_GENERATION, true),
        "apps/deployments" => (ROLLBACK_TO, false),
        _ => return Ok(()),
    };
    let Some(text) = object.annotation(key).map(str::to_owned) else { return Ok(()) };
    if text.is_empty() && !keeps_empty {
        object.remove_annotation(key);
        return Ok(());
    }
    let number = number(&text).map_err(|why| match table {
        "apps/deployments" => format!("failed to parse annotation[{key}]={text} as int64: {why}"),
        _ => why,
    })?;
    object.set_annotation(key, &number.to_string());
    Ok(())
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {problem}", crate::structural::gofmt::quoted(text))
    })
}
