//! Numbers that were fields in older API versions. They are still fields of the internal form;
//! clients see them as annotations.
//!
//! Main functions: [`key`], [`read`] and [`keep`].

use tiphys_apimachinery::Object;
use tiphys_kube_schema::gotypes;

/// Counts the changes of a DaemonSet's template.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The revision to which a Deployment is to be rolled back.
pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// The annotation of a kind that is a number internally.
pub fn key(table: &str) -> Option<&'static str> {
    match table {
        "apps/daemonsets" => Some(TEMPLATE_GENERATION),
        "apps/deployments" => Some(ROLLBACK_TO),
        _ => None,
    }
}

/// Parses it as a number and writes it as Go does.
pub fn read(table: &str, object: &mut Object) -> Result<(), String> {
    let Some((key, text)) =
        key(table).and_then(|key| Some((key, object.annotation(key)?.to_owned())))
    else {
        return Ok(());
    };
    if key == ROLLBACK_TO && text.is_empty() {
        object.remove_annotation(key);
        return Ok(());
    }
    let number = gotypes::read_int(&text).map_err(|why| match key {
        ROLLBACK_TO => format!("failed to parse annotation[{key}]={text} as int64: {why}"),
        _ => why,
    })?;
    object.set_annotation(key, &number.to_string());
    Ok(())
}

/// Keeps it on status writes, because it belongs to the spec.
pub fn keep(table: &str, old: &Object, new: &mut Object) {
    let Some(key) = key(table) else { return };
    match old.annotation(key) {
        Some(number) => new.set_annotation(key, number),
        None => new.remove_annotation(key),
    }
}
