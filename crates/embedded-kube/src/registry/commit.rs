//! Makes writes durable in batches: one thread, with one commit for all writes that arrived during
//! the previous one.
//!
//! Main type: [`Committer`]. It knows revisions and bytes, not objects.

use crate::store::{Store, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The last durable revision, or the reason why no more writes will become durable.
#[derive(Clone, Debug, Default)]
struct Progress {
    revision: u64,
    failure: Option<String>,
}

/// The commit thread of a durable store; no thread for the store in memory.
pub struct Committer {
    progress: Option<watch::Receiver<Progress>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    /// The sender takes writes in revision order; dropping it ends the thread after the last batch.
    pub fn start(store: Arc<dyn Store>, revision: u64) -> (Self, Option<mpsc::Sender<Write>>) {
        if !store.is_durable() {
            return (
                Self {
                    progress: None,
                    thread: Mutex::new(None),
                },
                None,
            );
        }
        let (sender, receiver) = mpsc::channel();
        let (done, progress) = watch::channel(Progress {
            revision,
            failure: None,
        });
        let thread = std::thread::Builder::new()
            .name("store-commit".into())
            .spawn(move || run(store.as_ref(), &receiver, &done));
        let thread = thread.expect("the system can start a thread at start-up");
        (
            Self {
                progress: Some(progress),
                thread: Mutex::new(Some(thread)),
            },
            Some(sender),
        )
    }

    /// Returns when every write up to `revision` survives a crash.
    pub async fn durable(&self, revision: u64) -> Result<(), String> {
        let Some(progress) = &self.progress else {
            return Ok(());
        };
        let mut progress = progress.clone();
        let state = progress
            .wait_for(|p| p.revision >= revision || p.failure.is_some())
            .await;
        match state {
            Ok(p) if p.revision >= revision => Ok(()),
            Ok(p) => Err(p.failure.clone().unwrap_or_default()),
            Err(_) => Err("the store was closed".to_owned()),
        }
    }

    /// Waits for the thread to end after the sender was dropped; then closes the store.
    pub fn join(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the commit thread panicked");
        }
    }
}

fn run(store: &dyn Store, receiver: &mpsc::Receiver<Write>, done: &watch::Sender<Progress>) {
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        batch.extend(receiver.try_iter());
        let revision = batch.last().map_or(0, |w| w.revision);
        match store.commit(&batch) {
            Ok(()) => done.send_modify(|p| p.revision = revision),
            Err(error) => {
                tracing::error!(%error, "the store refused a commit; nothing more will be acknowledged");
                done.send_modify(|p| p.failure = Some(error.to_string()));
                return;
            }
        }
    }
}
