//! What every part of the crate uses. Main type: [`Since`].

use crate::RepoError;
use std::time::Instant;
use tiphys_render::helm::chart::Chart;

/// How old the result of a look-up may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// At most [`RepoOptions::refs_ttl`].
    Recently,
    /// Looked up at this time or later.
    At(Instant),
}

impl Since {
    /// Look-ups that start from now on.
    pub fn now() -> Self {
        Self::At(Instant::now())
    }
}

/// Runs blocking work; a panic in it fails only this request.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RepoError> + Send + 'static,
) -> Result<T, RepoError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| {
        Err(RepoError::Internal(format!(
            "a repository task stopped: {e}"
        )))
    })
}

/// The approximate memory of a map.
pub(crate) fn weight(map: &serde_json::Map<String, serde_json::Value>) -> usize {
    fn value(v: &serde_json::Value) -> usize {
        match v {
            serde_json::Value::String(s) => 32 + s.len(),
            serde_json::Value::Array(items) => 32 + items.iter().map(value).sum::<usize>(),
            serde_json::Value::Object(map) => weight(map),
            _ => 32,
        }
    }
    map.iter().map(|(k, v)| 64 + k.len() + value(v)).sum()
}

/// The approximate memory of a parsed chart.
pub(crate) fn chart_weight(chart: &Chart) -> u32 {
    fn bytes(chart: &Chart) -> usize {
        let own: usize = chart
            .templates
            .iter()
            .chain(&chart.files)
            .map(|f| 100 + f.data.len())
            .sum();
        // Parsed templates take several times the memory of their text; the values of the last
        // render are kept, too.
        1000 + 4 * own
            + 2 * weight(&chart.values)
            + chart.dependencies.iter().map(bytes).sum::<usize>()
    }
    u32::try_from(bytes(chart)).unwrap_or(u32::MAX)
}

/// As hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
