//! Time limits for a sync and its waves, and what happens when they are exceeded.
//!
//! Main type: [`Timeouts`], read from our own sync options: `WaveTimeout=5m`, `SyncTimeout=1h`,
//! `OnTimeout=fail|retry|rollback`. Argo CD ignores them. This module must not know plans or
//! progress.

use serde::{Deserialize, Serialize};
use tiphys_gocompat::duration;

/// What happens when a sync or a wave exceeds its time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnTimeout {
    /// The operation fails, and is not retried.
    #[default]
    Fail,
    /// The attempt fails; the operation's retry strategy decides whether there is another.
    Retry,
    /// The operation fails; the last healthy deployment is synced.
    Rollback,
}

impl OnTimeout {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "fail" => Some(Self::Fail),
            "retry" => Some(Self::Retry),
            "rollback" => Some(Self::Rollback),
            _ => None,
        }
    }
}

/// Limits in seconds; 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeouts {
    /// From the time the sync begins to wait for a wave.
    pub wave_secs: u32,
    /// For one operation.
    pub sync_secs: u32,
    pub then: OnTimeout,
}

impl Timeouts {
    /// Overridden by an Application's sync options; if an option occurs several times, the last one
    /// wins.
    ///
    /// # Errors
    /// If a value is invalid; the message names the option.
    pub fn with<S: AsRef<str>>(mut self, options: &[S]) -> Result<Self, String> {
        for option in options.iter().map(AsRef::as_ref) {
            let wrong = |must: &str| format!("sync option \"{option}\": the value must be {must}");
            let seconds = |text: &str| {
                seconds(text).ok_or_else(|| {
                    wrong("a duration in whole seconds, such as 90s or 5m, or 0 for no limit")
                })
            };
            match option.split_once('=') {
                Some(("WaveTimeout", text)) => self.wave_secs = seconds(text)?,
                Some(("SyncTimeout", text)) => self.sync_secs = seconds(text)?,
                Some(("OnTimeout", word)) => {
                    self.then =
                        OnTimeout::parse(word).ok_or_else(|| wrong("fail, retry or rollback"))?
                }
                _ => {}
            }
        }
        Ok(self)
    }
}

fn seconds(text: &str) -> Option<u32> {
    const SECOND: i64 = 1_000_000_000;
    let nanos = duration::parse(text).ok().filter(|n| n % SECOND == 0)?;
    u32::try_from(nanos / SECOND).ok()
}

/// `Supersede=true|false`: whether a newer revision ends a running sync between two waves. `None`:
/// the option is not set.
///
/// # Errors
/// If the value is neither; the message names the option.
pub fn supersede<S: AsRef<str>>(options: &[S]) -> Result<Option<bool>, String> {
    let mut said = None;
    for option in options.iter().map(AsRef::as_ref) {
        if let Some(("Supersede", word)) = option.split_once('=') {
            let value = word.parse().map_err(|_| {
                format!("sync option \"{option}\": the value must be true or false")
            })?;
            said = Some(value);
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_count_before_defaults() {
        let default = Timeouts {
            wave_secs: 60,
            sync_secs: 0,
            then: OnTimeout::Retry,
        };
        let with = |options: &[&str]| default.with(options);
        assert_eq!(with(&["Prune=false", "Validate=false"]), Ok(default));
        assert_eq!(
            with(&["WaveTimeout=1m30s", "OnTimeout=rollback"]),
            Ok(Timeouts {
                wave_secs: 90,
                sync_secs: 0,
                then: OnTimeout::Rollback
            })
        );
        assert_eq!(
            with(&["WaveTimeout=0", "SyncTimeout=1h", "OnTimeout=fail"]),
            Ok(Timeouts {
                sync_secs: 3600,
                ..Timeouts::default()
            })
        );
        assert_eq!(
            Timeouts::default().with(&["OnTimeout=retry"]),
            Ok(Timeouts {
                then: OnTimeout::Retry,
                ..Timeouts::default()
            })
        );
        assert_eq!(
            (supersede(&["Supersede=true"]), supersede(&["Other=1"])),
            (Ok(Some(true)), Ok(None))
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |option: &str| Timeouts::default().with(&[option]).expect_err(option);
        assert_eq!(
            error("OnTimeout=maybe"),
            "sync option \"OnTimeout=maybe\": the value must be fail, retry or rollback"
        );
        for option in [
            "WaveTimeout=soon",
            "WaveTimeout=-5s",
            "WaveTimeout=10ms",
            "SyncTimeout=",
            "SyncTimeout=1200000h",
        ] {
            let expected = "the value must be a duration in whole seconds, such as 90s or 5m, or 0 for no limit";
            assert_eq!(
                error(option),
                format!("sync option \"{option}\": {expected}")
            );
        }
        assert_eq!(
            supersede(&["Supersede=yes"]),
            Err("sync option \"Supersede=yes\": the value must be true or false".to_owned())
        );
    }
}
