//! The back-off of self-heal. Main type: [`Backoff`].

use jiff::SignedDuration;

/// The back-off of self-heal (`controller.self.heal.backoff.*`).
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Delay before the first self-heal.
    pub first: SignedDuration,
    pub initial: SignedDuration,
    pub factor: u32,
    pub cap: SignedDuration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: SignedDuration::ZERO,
            initial: SignedDuration::from_secs(2),
            factor: 3,
            cap: SignedDuration::from_secs(300),
        }
    }
}

impl Backoff {
    /// The delay before attempt `n`, counted from zero.
    pub fn before(&self, attempt: i64) -> SignedDuration {
        if attempt <= 0 {
            return self.first;
        }
        let steps = u32::try_from(attempt - 1).unwrap_or(u32::MAX).min(20);
        let factor = i64::from(self.factor).saturating_pow(steps);
        let secs = self.initial.as_secs().saturating_mul(factor);
        SignedDuration::from_secs(secs).min(self.cap)
    }
}
