//! Asks the controllers whether they have any work left for now, for tests that control the clock.
//!
//! Main types: [`Asker`] and [`Asked`]. A task answers a question once it has handled every change
//! made before it.

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

/// The channel for a task's answer: when it will have work if nothing changes.
pub type Answer = oneshot::Sender<Option<Timestamp>>;

/// The side that asks.
pub struct Asker(mpsc::UnboundedSender<Answer>);

/// The side of the task.
pub struct Asked {
    questions: mpsc::UnboundedReceiver<Answer>,
    waiting: Vec<Answer>,
}

pub fn channel() -> (Asker, Asked) {
    let (sender, questions) = mpsc::unbounded_channel();
    (
        Asker(sender),
        Asked {
            questions,
            waiting: Vec::new(),
        },
    )
}

impl Asker {
    /// `None` also when the task has ended.
    pub async fn ask(&self) -> Option<Timestamp> {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).ok()?;
        answered.await.ok().flatten()
    }
}

impl Asked {
    /// Waits for a question; never completes once all askers are gone. May be dropped before it is
    /// ready.
    pub async fn next(&mut self) {
        match self.questions.recv().await {
            Some(answer) => self.waiting.push(answer),
            None => std::future::pending().await,
        }
    }

    /// Answers all questions.
    pub fn answer(&mut self, next: Option<Timestamp>) {
        for answer in self.waiting.drain(..) {
            // The asker may have gone away.
            let _ = answer.send(next);
        }
    }
}
