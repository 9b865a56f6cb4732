//! The wave of an object: its position within a phase.

use tiphys_apimachinery::Object;

/// Annotation with the wave, an integer.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
const HELM_WEIGHT: &str = "helm.sh/hook-weight";

/// `sync-wave`, else Helm's hook weight, else 0. A value that is not an integer counts as missing.
pub fn of(object: &Object) -> i64 {
    let number = |annotation| {
        object
            .annotation(annotation)
            .and_then(|t| t.parse::<i64>().ok())
    };
    number(SYNC_WAVE)
        .or_else(|| number(HELM_WEIGHT))
        .unwrap_or(0)
}
