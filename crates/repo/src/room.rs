//! The disk space that downloads share until they are unpacked, however many there are.
//!
//! Main types: [`Room`], and [`Taken`], what one of them has of it.

use crate::RepoError;
use std::{sync::Arc, time::Duration};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// What is taken at once.
const BLOCK: u64 = 256 << 10;

/// Space for a number of bytes.
pub(crate) struct Room {
    blocks: Arc<Semaphore>,
    /// Downloads that have begun would wait for each other if each needed more than is left. One of
    /// them goes on beyond the room: with its layer, that is the most there ever is on disk.
    beyond: Arc<Semaphore>,
}

/// What a download has taken; it is given back when this is dropped.
#[derive(Default)]
pub(crate) struct Taken {
    received: u64,
    paid: u64,
    blocks: Option<OwnedSemaphorePermit>,
    beyond: Option<OwnedSemaphorePermit>,
}

#[cfg(test)]
impl Taken {
    /// Whether it has more than there was room for.
    pub fn is_beyond(&self) -> bool {
        self.beyond.is_some()
    }
}

impl Room {
    pub fn new(bytes: u64) -> Self {
        let blocks = usize::try_from(bytes / BLOCK).unwrap_or(usize::MAX);
        Self {
            blocks: Arc::new(Semaphore::new(blocks.min(Semaphore::MAX_PERMITS))),
            beyond: Arc::new(Semaphore::new(1)),
        }
    }

    /// Waits until there is room for this many more bytes.
    pub async fn take(&self, taken: &mut Taken, bytes: u64) -> Result<(), RepoError> {
        taken.received = taken.received.saturating_add(bytes);
        while taken.beyond.is_none() && taken.paid < taken.received {
            tokio::select! {
                biased;
                block = Arc::clone(&self.blocks).acquire_owned() => {
                    let block = block.map_err(|e| closed(&e))?;
                    taken.paid = taken.paid.saturating_add(BLOCK);
                    match &mut taken.blocks {
                        Some(blocks) => blocks.merge(block),
                        none => *none = Some(block),
                    }
                }
                beyond = Arc::clone(&self.beyond).acquire_owned() => {
                    taken.beyond = Some(beyond.map_err(|e| closed(&e))?);
                }
            }
        }
        Ok(())
    }

    /// Room for so many bytes; `None`: there was none in this time.
    pub async fn take_within(
        &self,
        time: Duration,
        bytes: u64,
    ) -> Result<Option<Taken>, RepoError> {
        let mut taken = Taken::default();
        match tokio::time::timeout(time, self.take(&mut taken, bytes)).await {
            Ok(done) => done.map(|()| Some(taken)),
            Err(_) => Ok(None),
        }
    }
}

fn closed(e: &AcquireError) -> RepoError {
    RepoError::Internal(e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    async fn taken(room: &Room, bytes: u64) -> Taken {
        let mut taken = Taken::default();
        room.take(&mut taken, bytes).await.expect("it is open");
        taken
    }

    /// Whether there is room at once.
    fn more(room: &Room, taken: &mut Taken, bytes: u64) -> bool {
        room.take(taken, bytes).now_or_never().is_some()
    }

    #[tokio::test]
    async fn what_is_taken_is_given_back() {
        let room = Room::new(4 * BLOCK);
        let mut first = taken(&room, BLOCK + 1).await;
        assert!(more(&room, &mut first, BLOCK - 1), "it has paid for two");
        let second = taken(&room, 2 * BLOCK).await;
        assert_eq!(room.blocks.available_permits(), 0);
        assert_eq!(room.beyond.available_permits(), 1, "nobody had to");
        drop(second);
        assert_eq!(room.blocks.available_permits(), 2);
        drop(first);
        assert_eq!(room.blocks.available_permits(), 4);
    }

    #[tokio::test]
    async fn of_those_that_need_more_than_is_left_one_goes_on() {
        let room = Room::new(2 * BLOCK);
        let (mut one, mut other) = (taken(&room, BLOCK).await, taken(&room, BLOCK).await);
        assert!(more(&room, &mut one, 100 * BLOCK), "one needs no room");
        assert!(!more(&room, &mut other, 1), "the other waits");
        let mut third = Taken::default();
        assert!(!more(&room, &mut third, 1), "as does who begins now");
        drop(one);
        assert!(more(&room, &mut other, 1));
        assert_eq!(room.blocks.available_permits(), 0);
    }

    #[tokio::test]
    async fn who_finds_no_room_in_time_leaves_what_there_is_to_others() {
        let room = Room::new(4 * BLOCK);
        let all = taken(&room, 3 * BLOCK).await;
        let beyond = taken(&room, 100 * BLOCK).await;
        assert!(beyond.is_beyond());
        drop(all);
        let mut next = Taken::default();
        assert!(more(&room, &mut next, BLOCK));
        let none = room.take_within(Duration::ZERO, 3 * BLOCK).await;
        assert!(none.expect("it is open").is_none());
        let some = room.take_within(Duration::ZERO, 2 * BLOCK).await;
        assert!(some.expect("it is open").is_some());
    }
}
