//! Shares connections to remote repositories, and renders, fairly: a slow host or project uses up
//! its own share and no one else's.
//!
//! Main type: [`Shares`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Concurrent connections to one host, not counting slow ones: some repositories of a host may be
/// out of order while others work.
const OF_A_HOST: usize = 16;
/// Slow connections to one host; beyond that they count as normal ones.
const SLOW_OF_A_HOST: usize = 48;
/// Concurrent connections for one project, and slow ones in addition.
const OF_A_PROJECT: usize = 64;
const SLOW_OF_A_PROJECT: usize = 96;
/// Concurrent connections in total; each has a thread.
const IN_ALL: usize = 256;
/// A connection that takes longer is slow.
const SLOW: Duration = Duration::from_secs(3);

/// Semaphores by name, as long as they are in use.
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

/// The shares of connections to remote repositories, and of renders.
pub(crate) struct Shares {
    hosts: Named,
    slow_of_hosts: Named,
    projects: Named,
    slow_of_projects: Named,
    all: Arc<Semaphore>,
    /// `None`: they are only limited together with all connections.
    look_ups: Option<Arc<Semaphore>>,
    renders: Arc<Semaphore>,
    renders_of: Named,
}

/// A permit for a connection, released on drop.
pub(crate) struct Contact {
    /// Those of the project and of the host.
    places: Mutex<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    slow: (Arc<Semaphore>, Arc<Semaphore>),
    _place: OwnedSemaphorePermit,
}

/// A permit for a render.
pub(crate) struct Render {
    _places: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Shares {
    /// `renders`: how many may run concurrently.
    pub fn new(renders: usize) -> Self {
        Self {
            hosts: Named::new(OF_A_HOST),
            slow_of_hosts: Named::new(SLOW_OF_A_HOST),
            projects: Named::new(OF_A_PROJECT),
            slow_of_projects: Named::new(SLOW_OF_A_PROJECT),
            all: Arc::new(Semaphore::new(IN_ALL)),
            look_ups: None,
            renders: Arc::new(Semaphore::new(renders)),
            renders_of: Named::new(renders.div_ceil(2)),
        }
    }

    /// Lets only so many look-ups of refs run concurrently; 0: as many as connections.
    pub fn with_look_ups(mut self, most: usize) -> Self {
        let permits = most.min(Semaphore::MAX_PERMITS);
        self.look_ups = (permits > 0).then(|| Arc::new(Semaphore::new(permits)));
        self
    }

    /// Waits for a permit to connect to `host` for a project. The global permit is acquired last,
    /// so that no one holds it while waiting.
    pub async fn contact(&self, host: &str, project: &str) -> Result<Contact, AcquireError> {
        let (contact, _) = self.contact_with(host, project, None).await?;
        Ok(contact)
    }

    /// Waits for a permit to connect and for one to look refs up, which is global, too; `None`: none
    /// is needed.
    pub async fn look_up(
        &self,
        host: &str,
        project: &str,
    ) -> Result<(Contact, Option<OwnedSemaphorePermit>), AcquireError> {
        self.contact_with(host, project, self.look_ups.as_ref())
            .await
    }

    async fn contact_with(
        &self,
        host: &str,
        project: &str,
        look_ups: Option<&Arc<Semaphore>>,
    ) -> Result<(Contact, Option<OwnedSemaphorePermit>), AcquireError> {
        let slow = (
            self.slow_of_projects.of(project),
            self.slow_of_hosts.of(host),
        );
        let of_project = self.projects.of(project).acquire_owned().await?;
        let of_host = self.hosts.of(host).acquire_owned().await?;
        let look_up = match look_ups {
            Some(look_ups) => Some(Arc::clone(look_ups).acquire_owned().await?),
            None => None,
        };
        let place = Arc::clone(&self.all).acquire_owned().await?;
        let contact = Contact {
            places: Mutex::new((of_project, of_host)),
            slow,
            _place: place,
        };
        Ok((contact, look_up))
    }

    /// Waits for a permit to render for a project.
    pub async fn render(&self, project: &str) -> Result<Render, AcquireError> {
        let own = self.renders_of.of(project).acquire_owned().await?;
        Ok(Render {
            _places: (own, Arc::clone(&self.renders).acquire_owned().await?),
        })
    }
}

impl Contact {
    /// Releases the normal permits of the project and the host once this connection is slow.
    pub async fn slow_down(&self) {
        tokio::time::sleep(SLOW).await;
        let (of_project, of_host) = (
            Arc::clone(&self.slow.0).acquire_owned(),
            Arc::clone(&self.slow.1).acquire_owned(),
        );
        if let (Ok(of_project), Ok(of_host)) = (of_project.await, of_host.await) {
            // The permits for normal connections are released.
            *self.places.lock().unwrap_or_else(PoisonError::into_inner) = (of_project, of_host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result if it is available immediately.
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
    async fn look_ups_are_limited_if_that_is_wanted() {
        let shares = Shares::new(1).with_look_ups(2);
        let held = [
            now(shares.look_up("a", "p")).await.expect("a permit"),
            now(shares.look_up("a", "p")).await.expect("a permit"),
        ];
        assert!(now(shares.look_up("b", "p")).await.is_none());
        assert!(now(shares.contact("b", "p")).await.is_some());
        drop(held);
        let (_, permit) = now(shares.look_up("b", "p")).await.expect("a permit");
        assert!(permit.is_some());
        let unlimited = Shares::new(1).with_look_ups(0);
        let (_, permit) = now(unlimited.look_up("a", "p")).await.expect("at once");
        assert!(permit.is_none());
    }

    /// R38 in docs/behaviours/sources.md.
    #[tokio::test(start_paused = true)]
    async fn the_limit_of_renders_is_for_renders_only() {
        let shares = Shares::new(1);
        let held = now(shares.render("p")).await.expect("a permit");
        assert!(now(shares.render("other")).await.is_none());
        assert!(now(shares.contact("a", "p")).await.is_some());
        assert!(now(shares.look_up("a", "p")).await.is_some());
        drop(held);
        assert!(now(shares.render("other")).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_host_lets_others_look_up() {
        let shares = Shares::new(1).with_look_ups(1);
        let mut held = Vec::new();
        for _ in 0..OF_A_HOST {
            held.push(now(shares.contact("dead", "p")).await.expect("a share"));
        }
        let mut waiting = std::pin::pin!(shares.look_up("dead", "p"));
        assert!(now(waiting.as_mut()).await.is_none());
        assert!(now(shares.look_up("other", "p")).await.is_some());
        drop(held);
        assert!(now(waiting).await.is_some());
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
