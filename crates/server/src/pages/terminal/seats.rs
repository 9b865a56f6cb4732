//! How many terminals may be open: they are connections that stay, to kubelets too. Main type:
//! [`Seat`].

use crate::auth::Caller;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

const ALL: usize = 100;
/// Of one user, who would otherwise take those of the others.
const OF_USER: usize = 10;

/// By user.
static OPEN: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

fn open() -> MutexGuard<'static, BTreeMap<String, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One terminal of a user, while this exists.
#[derive(Debug)]
pub(super) struct Seat {
    user: String,
}

impl Seat {
    pub fn take(caller: &Caller) -> Result<Self, &'static str> {
        let user = match &caller.claims {
            Some(claims) => format!("{} {}", claims.iss, claims.sub),
            None => caller.source.to_string(),
        };
        Self::of(user)
    }

    fn of(user: String) -> Result<Self, &'static str> {
        let mut open = open();
        if open.values().sum::<usize>() >= ALL {
            return Err("too many terminals are open");
        }
        let own = open.entry(user.clone()).or_default();
        if *own >= OF_USER {
            return Err("you have too many terminals open");
        }
        *own += 1;
        Ok(Self { user })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(own) = open.get_mut(&self.user) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_seats_of_others() {
        let take = |user: &str| Seat::of(user.to_owned());
        let mut seats: Vec<Seat> = (0..OF_USER).map(|_| take("ann").expect("a seat")).collect();
        assert_eq!(
            take("ann").expect_err("one too many"),
            "you have too many terminals open"
        );
        let others = (1..ALL / OF_USER).flat_map(|n| (0..OF_USER).map(move |_| format!("u{n}")));
        seats.extend(others.map(|user| take(&user).expect("a seat")));
        assert_eq!(
            take("bob").expect_err("none is left"),
            "too many terminals are open"
        );
        seats.remove(0);
        take("bob").expect("one is free");
        drop(seats);
        assert!(open().is_empty());
    }
}
