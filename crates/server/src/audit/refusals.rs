//! How many refusals of one client are recorded: strangers must not be able to fill a disk.
//! Main type: [`Refusals`].

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Refusals of a client that are recorded in a window.
const MAX: u64 = 60;
const WINDOW: Duration = Duration::from_secs(60);
const CLIENTS: usize = 10_000;

/// Counts refusals by client.
#[derive(Default)]
pub(super) struct Refusals(Mutex<HashMap<IpAddr, Window>>);

struct Window {
    began: Instant,
    count: u64,
}

impl Refusals {
    /// Whether a refusal is recorded, and how many of the client were not since the last record of
    /// an earlier window.
    pub fn admit(&self, client: IpAddr) -> Option<u64> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, window| window.began.elapsed() < WINDOW);
            if clients.len() >= CLIENTS {
                return None;
            }
        }
        let window = clients.entry(client).or_insert_with(|| Window {
            began: Instant::now(),
            count: 0,
        });
        let mut suppressed = 0;
        if window.began.elapsed() >= WINDOW {
            suppressed = window.count.saturating_sub(MAX);
            *window = Window {
                began: Instant::now(),
                count: 0,
            };
        }
        window.count += 1;
        (window.count <= MAX).then_some(suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let refusals = Refusals::default();
        let [one, other]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let admitted = (0..1000).filter(|_| refusals.admit(one).is_some()).count();
        assert_eq!(admitted as u64, MAX);
        assert_eq!(refusals.admit(other), Some(0));
        let mut clients = refusals.0.lock().expect("no test panicked");
        let window = clients.get_mut(&one).expect("it is counted");
        window.began = Instant::now().checked_sub(WINDOW).expect("a time before");
        drop(clients);
        assert_eq!(refusals.admit(one), Some(1000 - MAX));
    }
}
