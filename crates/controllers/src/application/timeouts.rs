//! How long a comparison stays good: `timeout.reconciliation`, its jitter, `timeout.hard.reconciliation`.

use jiff::SignedDuration;
use tiphys_cluster::records::Settings;
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

/// `share` between 0 and 1 says how much of the jitter this Application gets, so that many do not expire at once.
pub fn soft(settings: &Settings, share: f64) -> SignedDuration {
    let timeout = read(settings, "timeout.reconciliation", DEFAULT);
    if timeout.is_zero() { timeout } else { timeout + read(settings, "timeout.reconciliation.jitter", DEFAULT_JITTER).mul_f64(share) }
}

pub fn hard(settings: &Settings) -> SignedDuration {
    read(settings, "timeout.hard.reconciliation", SignedDuration::ZERO)
}
