//! Who may talk to remote repositories, and render, at the same time: a host or a project that is
//! slow takes its own share and nobody else's.
//!
//! Main type: [`Shares`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Contacts at a time with one host. What is slow does not count: many repositories of a host may
/// be out of order while others are not.
const OF_A_HOST: usize = 16;
/// Slow contacts with one host; more of them count as those that are not slow.
const SLOW_OF_A_HOST: usize = 48;
/// Contacts of one project at a time, and slow ones besides.
const OF_A_PROJECT: usize = 64;
const SLOW_OF_A_PROJECT: usize = 96;
/// Contacts at a time: each has a thread.
const IN_ALL: usize = 256;
/// A contact that takes longer is slow.
const SLOW: Duration = Duration::from_secs(3);

/// Semaphores by name, for as long as somebody holds one.
struct Named {
    size: usize,
    known: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Named {
    fn new(size: usize) -> Self {
        Self {
            size,
            known: Mutex::default(),
        }
    }

    fn of(&self, name: &str) -> Arc<Semaphore> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name).and_then(Weak::upgrade) {
            return found;
        }
        known.retain(|_, semaphore| semaphore.strong_count() > 0);
        let made = Arc::new(Semaphore::new(self.size));
        known.insert(name.to_owned(), Arc::downgrade(&made));
        made
    }
}

/// Shares of the contacts with remote repositories, and of renders.
pub(crate) struct Shares {
    hosts: Named,
    slow_of_hosts: Named,
    projects: Named,
    slow_of_projects: Named,
    all: Arc<Semaphore>,
    renders: Arc<Semaphore>,
    renders_of: Named,
}

/// The right to a contact, given back when it is dropped.
pub(crate) struct Contact {
    /// Of the project and of the host.
    places: Mutex<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    slow: (Arc<Semaphore>, Arc<Semaphore>),
    _place: OwnedSemaphorePermit,
}

/// The right to a render.
pub(crate) struct Render {
    _places: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Shares {
    /// `renders`: how many there may be at a time.
    pub fn new(renders: usize) -> Self {
        Self {
            hosts: Named::new(OF_A_HOST),
            slow_of_hosts: Named::new(SLOW_OF_A_HOST),
            projects: Named::new(OF_A_PROJECT),
            slow_of_projects: Named::new(SLOW_OF_A_PROJECT),
            all: Arc::new(Semaphore::new(IN_ALL)),
            renders: Arc::new(Semaphore::new(renders)),
            renders_of: Named::new(renders.div_ceil(2)),
        }
    }

    /// Waits for the right to a contact with `host` on behalf of a project. What all share comes
    /// last, so that nobody holds it while waiting.
    pub async fn contact(&self, host: &str, project: &str) -> Result<Contact, AcquireError> {
        let slow = (
            self.slow_of_projects.of(project),
            self.slow_of_hosts.of(host),
        );
        let of_project = self.projects.of(project).acquire_owned().await?;
        let of_host = self.hosts.of(host).acquire_owned().await?;
        let place = Arc::clone(&self.all).acquire_owned().await?;
        Ok(Contact {
            places: Mutex::new((of_project, of_host)),
            slow,
            _place: place,
        })
    }

    /// Waits for the right to a render on behalf of a project.
    pub async fn render(&self, project: &str) -> Result<Render, AcquireError> {
        let own = self.renders_of.of(project).acquire_owned().await?;
        Ok(Render {
            _places: (own, Arc::clone(&self.renders).acquire_owned().await?),
        })
    }
}

impl Contact {
    /// Lets others of the project and of the host go on once this contact has taken long.
    pub async fn slow_down(&self) {
        tokio::time::sleep(SLOW).await;
        let (of_project, of_host) = (
            Arc::clone(&self.slow.0).acquire_owned(),
            Arc::clone(&self.slow.1).acquire_owned(),
        );
        if let (Ok(of_project), Ok(of_host)) = (of_project.await, of_host.await) {
            // The places among the quick ones are given back.
            *self.places.lock().unwrap_or_else(PoisonError::into_inner) = (of_project, of_host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is there at once.
    async fn now<T>(future: impl Future<Output = Result<T, AcquireError>>) -> Option<T> {
        tokio::task::unconstrained(tokio::time::timeout(Duration::ZERO, future))
            .await
            .ok()
            .map(|permit| permit.expect("open"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_takes_its_share_only_and_slow_contacts_make_room() {
        let shares = Shares::new(4);
        let mut held = Vec::new();
        for _ in 0..OF_A_HOST {
            held.push(Arc::new(
                now(shares.contact("slow", "p")).await.expect("a share"),
            ));
        }
        assert!(now(shares.contact("slow", "p")).await.is_none());
        let other = now(shares.contact("other", "p"))
            .await
            .expect("a share of another host");
        for contact in &held {
            let contact = Arc::clone(contact);
            tokio::spawn(async move { contact.slow_down().await });
        }
        tokio::time::sleep(SLOW * 2).await;
        for _ in 0..OF_A_HOST {
            held.push(Arc::new(
                now(shares.contact("slow", "p"))
                    .await
                    .expect("a place of a slow one"),
            ));
        }
        assert!(now(shares.contact("slow", "p")).await.is_none());
        drop((held, other));
        assert!(now(shares.contact("slow", "p")).await.is_some());
        let known = |named: &Named| named.known.lock().expect("lock").len();
        assert!(known(&shares.hosts) <= 2, "what nobody holds is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_project_takes_its_share_only() {
        let shares = Shares::new(4);
        let mut held = Vec::new();
        for host in 0..OF_A_PROJECT {
            held.push(Arc::new(
                now(shares.contact(&host.to_string(), "greedy"))
                    .await
                    .expect("a share"),
            ));
        }
        assert!(now(shares.contact("another", "greedy")).await.is_none());
        assert!(now(shares.contact("another", "modest")).await.is_some());
        for contact in &held {
            let contact = Arc::clone(contact);
            tokio::spawn(async move { contact.slow_down().await });
        }
        tokio::time::sleep(SLOW * 2).await;
        assert!(
            now(shares.contact("another", "greedy")).await.is_some(),
            "slow ones make room"
        );

        let mut renders = vec![
            now(shares.render("greedy")).await.expect("a share"),
            now(shares.render("greedy")).await.expect("a share"),
        ];
        assert!(now(shares.render("greedy")).await.is_none());
        renders.extend([
            now(shares.render("a")).await.expect("a share"),
            now(shares.render("b")).await.expect("a share"),
        ]);
        assert!(now(shares.render("c")).await.is_none());
    }
}
