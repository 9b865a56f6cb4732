//! Timeouts and limits from the settings: comparisons (`timeout.reconciliation`, its jitter,
//! `timeout.hard.reconciliation` of argocd-cm), syncs, waves and self-heal, and how much a sync may
//! prune (`controller.*` of argocd-cmd-params-cm).

use super::auto_sync::Backoff;
use jiff::SignedDuration;
use tiphys_cluster::records::Settings;
use tiphys_engine::sync::{OnTimeout, Timeouts, large_prune, timeout};
use tiphys_gocompat::duration;

const DEFAULT: SignedDuration = SignedDuration::from_secs(120);
const DEFAULT_JITTER: SignedDuration = SignedDuration::from_secs(60);

fn read(settings: &Settings, key: &str, default: SignedDuration) -> SignedDuration {
    let text = settings.get(key);
    if text.is_empty() {
        return default;
    }
    match duration::parse(text) {
        Ok(nanos) => SignedDuration::from_nanos(nanos.max(0)),
        Err(error) => {
            tracing::warn!(key, %error, "argocd-cm has a duration that cannot be read; the default holds");
            default
        }
    }
}

/// `share`, between 0 and 1, is this Application's part of the jitter, so that comparisons do not
/// all expire at once.
pub fn soft(settings: &Settings, share: f64) -> SignedDuration {
    let timeout = read(settings, "timeout.reconciliation", DEFAULT);
    if timeout.is_zero() {
        timeout
    } else {
        timeout + read(settings, "timeout.reconciliation.jitter", DEFAULT_JITTER).mul_f64(share)
    }
}

pub fn hard(settings: &Settings) -> SignedDuration {
    read(
        settings,
        "timeout.hard.reconciliation",
        SignedDuration::ZERO,
    )
}

/// How long unavailable manifests are not reported: `controller.repo.error.grace.period.seconds`, a
/// number or a duration.
pub fn repo_error_grace(settings: &Settings) -> SignedDuration {
    const KEY: &str = "controller.repo.error.grace.period.seconds";
    let text = settings.param(KEY).trim();
    let parsed = text
        .parse::<u32>()
        .map(|seconds| SignedDuration::from_secs(seconds.into()))
        .ok();
    let parsed = parsed.or_else(|| {
        duration::parse(text)
            .ok()
            .map(|nanos| SignedDuration::from_nanos(nanos.max(0)))
    });
    if parsed.is_none() && !text.is_empty() {
        tracing::warn!(
            key = KEY,
            text,
            "argocd-cmd-params-cm has a time that cannot be read; the default holds"
        );
    }
    parsed.unwrap_or(DEFAULT + DEFAULT_JITTER)
}

/// A controller parameter in whole seconds; an invalid number counts as unset.
fn seconds(settings: &Settings, key: &str) -> Option<u32> {
    let text = settings.param(key);
    if text.is_empty() {
        return None;
    }
    let number = text.trim().parse().ok();
    if number.is_none() {
        tracing::warn!(
            key,
            text,
            "argocd-cmd-params-cm has a number of seconds that cannot be read; the default holds"
        );
    }
    number
}

/// Time limits of syncs and their waves, and what happens afterwards: from the settings, overridden
/// by the sync options.
///
/// # Errors
/// If an option is invalid; the message names it.
pub fn limits(settings: &Settings, options: &[String]) -> Result<Timeouts, String> {
    let default = Timeouts {
        wave_secs: seconds(settings, "tiphys.controller.sync.wave.timeout.seconds").unwrap_or(0),
        sync_secs: seconds(settings, "controller.sync.timeout.seconds").unwrap_or(0),
        then: word(
            settings,
            "tiphys.controller.sync.on.timeout",
            OnTimeout::parse,
        )
        .unwrap_or_default(),
    };
    default.with(options)
}

/// Whether a newer revision replaces a running sync.
///
/// # Errors
/// If the option is invalid; the message names it.
pub fn supersede(settings: &Settings, options: &[String]) -> Result<bool, String> {
    let default = || {
        word(settings, "tiphys.controller.sync.supersede", |w| {
            w.parse().ok()
        })
        .unwrap_or(false)
    };
    Ok(timeout::supersede(options)?.unwrap_or_else(default))
}

/// How many resources an automated sync may always prune; 0 means no limit.
///
/// # Errors
/// If the option is invalid; the message names it.
pub fn prune_limit(settings: &Settings, options: &[String]) -> Result<u32, String> {
    let default = || {
        word(settings, "tiphys.controller.sync.prune.limit", |w| {
            w.parse().ok()
        })
        .unwrap_or(large_prune::DEFAULT_LIMIT)
    };
    Ok(large_prune::limit(options)?.unwrap_or_else(default))
}

/// A controller parameter with fixed values; an unknown one counts as unset.
fn word<T>(settings: &Settings, key: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = settings.param(key);
    if text.is_empty() {
        return None;
    }
    let value = parse(text.trim());
    if value.is_none() {
        tracing::warn!(
            key,
            text,
            "argocd-cmd-params-cm has a word that is not known; the default holds"
        );
    }
    value
}

/// The delay after each wave: from the command line, else from the settings. Argo CD waits two
/// seconds; here the sync waits for health instead, unless a delay is set.
pub fn wave_delay(told: Option<u32>, settings: &Settings) -> u32 {
    told.or_else(|| seconds(settings, "controller.sync.wave.delay.seconds"))
        .unwrap_or(0)
}

/// The back-off of self-heal: increasing or, with a back-off of zero, constant.
pub fn self_heal(settings: &Settings) -> Backoff {
    let default = Backoff::default();
    let duration = |key, default: SignedDuration| {
        seconds(settings, key).map_or(default, |s| SignedDuration::from_secs(s.into()))
    };
    let pause = duration("controller.self.heal.timeout.seconds", SignedDuration::ZERO);
    if seconds(settings, "controller.self.heal.backoff.timeout.seconds") == Some(0) {
        return Backoff {
            first: pause,
            initial: pause,
            factor: 1,
            cap: pause,
        };
    }
    Backoff {
        first: SignedDuration::ZERO,
        initial: duration(
            "controller.self.heal.backoff.timeout.seconds",
            default.initial,
        ),
        factor: seconds(settings, "controller.self.heal.backoff.factor").unwrap_or(default.factor),
        cap: duration("controller.self.heal.backoff.cap.seconds", default.cap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c72_waves_pause_only_as_long_as_somebody_asks() {
        let mut settings = Settings::default();
        assert_eq!(
            (wave_delay(None, &settings), wave_delay(Some(3), &settings)),
            (0, 3)
        );
        settings
            .params
            .insert("controller.sync.wave.delay.seconds".into(), "2".into());
        assert_eq!(
            (
                wave_delay(None, &settings),
                wave_delay(Some(3), &settings),
                wave_delay(Some(0), &settings)
            ),
            (2, 3, 0)
        );
    }

    #[test]
    fn c9_errors_of_the_repository_have_three_minutes() {
        let mut settings = Settings::default();
        let mut grace = |text: &str| {
            settings.params.insert(
                "controller.repo.error.grace.period.seconds".into(),
                text.into(),
            );
            repo_error_grace(&settings).as_secs()
        };
        assert_eq!(
            [
                grace(""),
                grace("30"),
                grace("1m30s"),
                grace("0"),
                grace("soon")
            ],
            [180, 30, 90, 0, 180]
        );
    }

    #[test]
    fn parameters_of_the_controller() {
        let mut settings = Settings::default();
        assert_eq!(
            (limits(&settings, &[]), self_heal(&settings).factor),
            (Ok(Timeouts::default()), 3)
        );
        assert_eq!(
            (supersede(&settings, &[]), prune_limit(&settings, &[])),
            (Ok(false), Ok(10))
        );
        for (key, value) in [
            ("controller.sync.timeout.seconds", "90"),
            ("tiphys.controller.sync.wave.timeout.seconds", "30"),
            ("tiphys.controller.sync.on.timeout", "retry"),
            ("tiphys.controller.sync.supersede", "true"),
            ("tiphys.controller.sync.prune.limit", "100"),
            ("controller.self.heal.backoff.timeout.seconds", "5"),
            ("controller.self.heal.backoff.factor", "many"),
            ("controller.self.heal.backoff.cap.seconds", "60"),
        ] {
            settings.params.insert(key.into(), value.into());
        }
        let expected = Timeouts {
            wave_secs: 30,
            sync_secs: 90,
            then: OnTimeout::Retry,
        };
        assert_eq!(limits(&settings, &[]), Ok(expected));
        assert_eq!(
            limits(&settings, &["OnTimeout=fail".into()]),
            Ok(Timeouts {
                then: OnTimeout::Fail,
                ..expected
            })
        );
        assert_eq!(
            (
                supersede(&settings, &[]),
                supersede(&settings, &["Supersede=false".into()])
            ),
            (Ok(true), Ok(false))
        );
        assert_eq!(
            (
                prune_limit(&settings, &[]),
                prune_limit(&settings, &["PruneLimit=0".into()])
            ),
            (Ok(100), Ok(0))
        );
        settings
            .params
            .insert("tiphys.controller.sync.on.timeout".into(), "perhaps".into());
        assert_eq!(limits(&settings, &[]).map(|l| l.then), Ok(OnTimeout::Fail));
        let backoff = self_heal(&settings);
        assert_eq!(
            (
                backoff.initial.as_secs(),
                backoff.factor,
                backoff.cap.as_secs()
            ),
            (5, 3, 60)
        );
        settings
            .params
            .insert("controller.self.heal.timeout.seconds".into(), "7".into());
        assert_eq!(
            self_heal(&settings).before(0).as_secs(),
            0,
            "the backoff counts"
        );
        settings.params.insert(
            "controller.self.heal.backoff.timeout.seconds".into(),
            "0".into(),
        );
        assert_eq!(
            [0, 1, 9].map(|n| self_heal(&settings).before(n).as_secs()),
            [7; 3]
        );
    }
}
