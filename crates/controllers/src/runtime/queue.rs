//! A work queue of keys with reasons: a key is processed by one worker at a time, and reasons that
//! arrive meanwhile are merged.
//!
//! Main type: [`Queue`]. It knows nothing about the meaning of keys. Workers are woken only for
//! ready keys; [`Queue::keep_time`] handles delayed ones.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
    hash::Hash,
    sync::Mutex,
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long the first of many keys wait for each other, and the maximum in a continuous stream.
const FIRST_WINDOW: Duration = Duration::from_millis(50);
const LAST_WINDOW: Duration = Duration::from_millis(200);
/// This many in one window are a stream.
const MANY: usize = 2;

/// Reasons that can be merged into one.
pub trait Merge {
    fn merge(&mut self, other: Self);
}

struct State<K, R> {
    ready: VecDeque<K>,
    reasons: HashMap<K, R>,
    active: HashSet<K>,
    /// Delayed keys, earliest first, with the number that identifies their reason.
    delayed: BinaryHeap<Reverse<(Instant, u64)>>,
    waiting: HashMap<u64, (K, R)>,
    /// The numbers of the next visits.
    visits: HashMap<K, u64>,
    /// When keys are due that gather reasons, and the numbers of these.
    gathering: HashMap<K, (Instant, u64)>,
    next_number: u64,
    together: Option<Together>,
    closed: bool,
}

/// Keys that become ready at the same time.
struct Together {
    at: Instant,
    window: Duration,
    many: usize,
}

/// The queue. `take` returns a key that no other worker holds; `done` gives it back.
pub struct Queue<K, R> {
    state: Mutex<State<K, R>>,
    /// A key is ready.
    wake: Notify,
    /// A key is due before the previously earliest one.
    sooner: Notify,
}

impl<K: Clone + Eq + Hash, R: Merge> Default for Queue<K, R> {
    fn default() -> Self {
        let state = State {
            ready: VecDeque::new(),
            reasons: HashMap::new(),
            active: HashSet::new(),
            delayed: BinaryHeap::new(),
            waiting: HashMap::new(),
            visits: HashMap::new(),
            gathering: HashMap::new(),
            next_number: 0,
            together: None,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            wake: Notify::new(),
            sooner: Notify::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, R: Merge> Queue<K, R> {
    fn lock(&self) -> std::sync::MutexGuard<'_, State<K, R>> {
        // A panic while the lock was held leaves only plain, consistent collections behind.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes a key ready now, or as soon as the worker that holds it is done.
    pub fn add(&self, key: K, reason: R) {
        if self.lock().add(key, reason) {
            self.wake.notify_one();
        }
    }

    /// Makes a key ready after a delay.
    pub fn add_after(&self, key: K, reason: R, delay: Duration) {
        if delay.is_zero() {
            return self.add(key, reason);
        }
        if self.lock().add_at(Instant::now() + delay, key, reason) {
            self.sooner.notify_one();
        }
    }

    /// Makes a key ready after a delay, once for all such calls until then; the earliest time of
    /// theirs counts. For causes that come in bursts.
    pub fn gather(&self, key: K, mut reason: R, delay: Duration) {
        let at = Instant::now() + delay;
        let first = {
            let mut state = self.lock();
            if let Some((due, number)) = state.gathering.get(&key).copied() {
                if due <= at
                    && let Some((_, known)) = state.waiting.get_mut(&number)
                {
                    return known.merge(reason);
                }
                if let Some((_, known)) = state.waiting.remove(&number) {
                    reason.merge(known);
                }
            }
            let number = state.next_number;
            state.gathering.insert(key.clone(), (at, number));
            state.add_at(at, key, reason)
        };
        if first {
            self.sooner.notify_one();
        }
    }

    /// Makes a key ready after a delay, instead of at the time of an earlier call for it; `None`: not
    /// at all. For what each turn says anew: otherwise every turn that has another cause would begin
    /// one more series of visits, which never ends.
    pub fn visit_after(&self, key: &K, reason: R, delay: Option<Duration>) {
        let first = {
            let mut state = self.lock();
            if let Some(number) = state.visits.remove(key) {
                state.waiting.remove(&number);
            }
            let Some(delay) = delay else { return };
            let number = state.next_number;
            state.visits.insert(key.clone(), number);
            state.add_at(Instant::now() + delay, key.clone(), reason)
        };
        if first {
            self.sooner.notify_one();
        }
    }

    /// Makes a key ready now if it comes alone, and together with others if many come, because
    /// processing them in one go needs less CPU.
    pub fn add_together(&self, key: K, reason: R) {
        let now = Instant::now();
        let wait = self.lock().wait_for_others(now);
        self.add_after(key, reason, wait);
    }

    /// Makes delayed keys ready when they are due, until the queue is closed.
    pub async fn keep_time(&self) {
        loop {
            let sooner = self.sooner.notified();
            let next = {
                let mut state = self.lock();
                if state.closed {
                    return;
                }
                for _ in 0..state.ripen(Instant::now()) {
                    self.wake.notify_one();
                }
                state.delayed.peek().map(|Reverse((at, _))| *at)
            };
            match next {
                Some(at) => {
                    tokio::select! { () = sooner => {}, () = tokio::time::sleep_until(at) => {} }
                }
                None => sooner.await,
            }
        }
    }

    /// The next key and its reason. `None` once the queue is closed.
    pub async fn take(&self) -> Option<(K, R)> {
        loop {
            let notified = self.wake.notified();
            {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                if let Some(taken) = state.pop() {
                    if !state.ready.is_empty() {
                        self.wake.notify_one();
                    }
                    return Some(taken);
                }
            }
            notified.await;
        }
    }

    /// The worker has finished the key.
    pub fn done(&self, key: &K) {
        let again = {
            let mut state = self.lock();
            state.active.remove(key);
            let again = state.reasons.contains_key(key);
            if again {
                state.ready.push_back(key.clone());
            }
            again
        };
        if again {
            self.wake.notify_one();
        }
    }

    /// Makes every worker end.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_waiters();
        self.wake.notify_one();
        self.sooner.notify_one();
    }

    /// Keys that are ready or being processed.
    pub fn len(&self) -> usize {
        let state = self.lock();
        state.ready.len() + state.active.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Clone + Eq + Hash, R: Merge> State<K, R> {
    /// Whether there is another key for a worker to take.
    fn add(&mut self, key: K, reason: R) -> bool {
        if let Some(known) = self.reasons.get_mut(&key) {
            known.merge(reason);
            return false;
        }
        self.reasons.insert(key.clone(), reason);
        let free = !self.active.contains(&key);
        if free {
            self.ready.push_back(key);
        }
        free
    }

    /// Whether it is due before all others.
    fn add_at(&mut self, at: Instant, key: K, reason: R) -> bool {
        let number = self.next_number;
        self.next_number += 1;
        let first = self
            .delayed
            .peek()
            .is_none_or(|Reverse((next, _))| at < *next);
        self.delayed.push(Reverse((at, number)));
        self.waiting.insert(number, (key, reason));
        first
    }

    /// How long a key in a stream waits for others: the longer the stream lasts, the longer.
    fn wait_for_others(&mut self, now: Instant) -> Duration {
        if let Some(together) = self.together.as_mut().filter(|t| now < t.at) {
            together.many += 1;
            return together.at - now;
        }
        let stream = self
            .together
            .take()
            .filter(|t| t.many >= MANY && now < t.at + t.window);
        let window = stream.map_or(FIRST_WINDOW, |t| (t.window * 2).min(LAST_WINDOW));
        self.together = Some(Together {
            at: now + window,
            window,
            many: 0,
        });
        Duration::ZERO
    }

    /// Makes due keys ready; returns how many.
    fn ripen(&mut self, now: Instant) -> usize {
        let mut ready = 0;
        while let Some(Reverse((at, number))) = self.delayed.peek().copied() {
            if at > now {
                break;
            }
            self.delayed.pop();
            if let Some((key, reason)) = self.waiting.remove(&number) {
                if self.visits.get(&key) == Some(&number) {
                    self.visits.remove(&key);
                }
                let gathering = self.gathering.get(&key);
                if gathering.is_some_and(|(_, of)| *of == number) {
                    self.gathering.remove(&key);
                }
                ready += usize::from(self.add(key, reason));
            }
        }
        ready
    }

    fn pop(&mut self) -> Option<(K, R)> {
        let key = self.ready.pop_front()?;
        let reason = self.reasons.remove(&key)?;
        self.active.insert(key.clone());
        Some((key, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Debug, PartialEq)]
    struct Sum(u32);
    impl Merge for Sum {
        fn merge(&mut self, other: Self) {
            self.0 += other.0;
        }
    }

    #[tokio::test]
    async fn reasons_merge_and_a_held_key_waits_for_its_worker() {
        let queue = Queue::<&str, Sum>::default();
        queue.add("a", Sum(1));
        queue.add("a", Sum(2));
        assert_eq!(queue.take().await, Some(("a", Sum(3))));
        queue.add("a", Sum(4));
        queue.add("b", Sum(5));
        assert_eq!(
            queue.take().await,
            Some(("b", Sum(5))),
            "a is in a worker's hands"
        );
        queue.done(&"a");
        assert_eq!(queue.take().await, Some(("a", Sum(4))));
        queue.close();
        assert_eq!(queue.take().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_key_comes_when_it_is_due() {
        let queue = Arc::new(Queue::<&str, Sum>::default());
        let start = Instant::now();
        queue.add_after("late", Sum(1), Duration::from_secs(60));
        let time = tokio::spawn({
            let queue = queue.clone();
            async move { queue.keep_time().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.add_after("early", Sum(1), Duration::from_secs(4));
        queue.add_after("early", Sum(2), Duration::from_secs(4));
        assert_eq!(queue.take().await, Some(("early", Sum(3))));
        assert_eq!(start.elapsed().as_secs(), 5);
        assert_eq!(queue.take().await.map(|t| t.0), Some("late"));
        assert_eq!(start.elapsed().as_secs(), 60);
        queue.close();
        time.await.expect("it ends with the queue");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_gathers_comes_once_at_the_earliest_time() {
        let queue = Arc::new(Queue::<&str, Sum>::default());
        let time = queue.clone();
        tokio::spawn(async move { time.keep_time().await });
        let start = Instant::now();
        let seconds = Duration::from_secs;
        for delay in [10, 20, 15] {
            queue.gather("a", Sum(1), seconds(delay));
        }
        queue.gather("b", Sum(1), seconds(3));
        assert_eq!(queue.take().await, Some(("b", Sum(1))));
        queue.gather("a", Sum(1), seconds(2));
        assert_eq!(queue.take().await, Some(("a", Sum(4))));
        assert_eq!(start.elapsed().as_secs(), 5);
        // What comes while it is held, or later, makes it come again.
        queue.gather("a", Sum(1), seconds(1));
        queue.done(&"a");
        assert_eq!(queue.take().await, Some(("a", Sum(1))));
        assert_eq!(start.elapsed().as_secs(), 6);
        queue.add_after("last", Sum(1), seconds(60));
        assert_eq!(queue.take().await, Some(("last", Sum(1))));
        let state = queue.lock();
        assert_eq!((state.waiting.len(), state.gathering.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_has_one_next_visit() {
        let queue = Arc::new(Queue::<&str, Sum>::default());
        let time = queue.clone();
        tokio::spawn(async move { time.keep_time().await });
        let visit = |after| queue.visit_after(&"a", Sum(1), Some(Duration::from_secs(after)));
        visit(500);
        for _ in 0..10 {
            queue.add("a", Sum(10));
            assert_eq!(queue.take().await, Some(("a", Sum(10))));
            visit(180);
            queue.done(&"a");
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        queue.visit_after(&"b", Sum(1), Some(Duration::from_secs(1)));
        queue.visit_after(&"b", Sum(1), None);
        let start = Instant::now();
        for due in [170, 350] {
            assert_eq!(queue.take().await, Some(("a", Sum(1))));
            assert_eq!(start.elapsed().as_secs(), due);
            visit(180);
            queue.done(&"a");
        }
        let state = queue.lock();
        assert_eq!((state.waiting.len(), state.visits.len()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_of_a_stream_come_together_but_for_the_first() {
        let queue = Arc::new(Queue::<u32, Sum>::default());
        let (time, feed, start) = (queue.clone(), queue.clone(), Instant::now());
        tokio::spawn(async move { time.keep_time().await });
        tokio::spawn(async move {
            for key in 0..12 {
                feed.add_together(key, Sum(1));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            feed.add_together(12, Sum(1));
        });
        let mut came = Vec::new();
        for _ in 0..13 {
            came.push((
                queue.take().await.expect("open").0,
                start.elapsed().as_millis(),
            ));
        }
        let first = [(0, 0), (1, 50), (2, 50), (3, 60)];
        let later = [
            (4, 160),
            (5, 160),
            (6, 160),
            (7, 160),
            (8, 160),
            (9, 360),
            (10, 360),
            (11, 360),
            (12, 5240),
        ];
        assert_eq!(came, [&first[..], &later[..]].concat());
        queue.close();
    }

    #[tokio::test]
    async fn each_key_that_is_ready_has_a_worker_woken_for_it() {
        let queue = Arc::new(Queue::<usize, Sum>::default());
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let queue = queue.clone();
            workers.spawn(async move { queue.take().await });
        }
        tokio::task::yield_now().await;
        (0..4).for_each(|key| queue.add(key, Sum(1)));
        let mut taken: Vec<_> = workers
            .join_all()
            .await
            .into_iter()
            .flatten()
            .map(|t| t.0)
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3]);
    }
}
