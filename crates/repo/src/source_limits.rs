//! What sources may bring and how patiently servers are asked, as people know it from Argo CD's
//! repo-server.
//!
//! Main type: [`SourceLimits`]. The limits on Git repositories are [`GitLimits`](crate::GitLimits).

use std::time::Duration;
use tiphys_render::helm;

/// Argo CD's `1G`.
const GIGABYTE: u64 = 1_000_000_000;
/// Nobody waits longer between two attempts, whatever the settings multiply.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// Limits of downloads, and of contacts with servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    /// Media types that the layer with the content of an OCI source may have.
    pub layer_types: Vec<String>,
    /// Bytes that it may unpack to. It is unpacked on disk.
    pub artifact_bytes: u64,
    /// Bytes that the archive of a chart may unpack to. Charts are rendered in memory, so what Helm
    /// takes is the most in any case.
    pub chart_bytes: u64,
    /// Bytes of the index of a chart repository. It is kept on disk.
    pub index_bytes: u64,
    /// Git servers that are asked for their refs at a time; 0 means no limit beside that on all
    /// contacts.
    pub look_ups: usize,
    /// Timeout of one request for refs over http or https; `None`: that of every contact.
    pub look_up_timeout: Option<Duration>,
    /// How often refs are asked for.
    pub look_up_retry: Retry,
}

impl SourceLimits {
    /// The types of layers that are read unless something else is said.
    pub const LAYER_TYPES: [&str; 3] = [
        "application/vnd.oci.image.layer.v1.tar",
        "application/vnd.oci.image.layer.v1.tar+gzip",
        "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    ];

    /// The limits of a chart's archive.
    pub(crate) fn of_charts(&self) -> helm::Limits {
        let most = helm::Limits::default();
        helm::Limits {
            bytes: self.chart_bytes.min(most.bytes),
            ..most
        }
    }
}

impl Default for SourceLimits {
    fn default() -> Self {
        Self {
            layer_types: Self::LAYER_TYPES.map(str::to_owned).into(),
            artifact_bytes: GIGABYTE,
            chart_bytes: GIGABYTE,
            index_bytes: GIGABYTE,
            look_ups: 0,
            look_up_timeout: None,
            look_up_retry: Retry::default(),
        }
    }
}

/// How often something is tried, with ever longer pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The first one included.
    pub attempts: u32,
    pub pause: Duration,
    /// Each pause is as many times as long as the one before.
    pub factor: u32,
    /// No pause is longer; zero means that this does not matter.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 1,
            pause: Duration::from_millis(250),
            factor: 2,
            longest: Duration::from_secs(5),
        }
    }
}

impl Retry {
    /// The pause after an attempt, counted from 1; `None`: it was the last one.
    pub(crate) fn after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let longest = if self.longest.is_zero() {
            LONGEST_PAUSE
        } else {
            self.longest.min(LONGEST_PAUSE)
        };
        let factor = self.factor.saturating_pow(attempt.saturating_sub(1));
        Some(self.pause.saturating_mul(factor).min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_become_longer_up_to_a_limit() {
        let retry = Retry {
            attempts: 7,
            ..Retry::default()
        };
        let pauses: Vec<_> = (1..=7).map(|n| retry.after(n)).collect();
        let some = |millis| Some(Duration::from_millis(millis));
        assert_eq!(
            pauses,
            [
                some(250),
                some(500),
                some(1_000),
                some(2_000),
                some(4_000),
                some(5_000),
                None
            ]
        );
        assert_eq!(Retry::default().after(1), None, "one attempt is enough");
        let unbounded = Retry {
            attempts: u32::MAX,
            longest: Duration::ZERO,
            ..Retry::default()
        };
        assert_eq!(unbounded.after(1_000), Some(LONGEST_PAUSE));
        let steady = Retry {
            attempts: 9,
            factor: 1,
            ..Retry::default()
        };
        assert_eq!(steady.after(8), some(250));
    }
}
