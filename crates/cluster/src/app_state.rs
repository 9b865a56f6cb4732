//! What the controller publishes about each Application for readers in the same process: managed
//! resources with differences, and the resource tree.
//!
//! Main type: [`AppStates`]. The controller publishes; the server and the web UI read; neither
//! knows the other. Large texts are kept compressed, so that memory is bounded by what is shown,
//! not by what was compared.

use crate::FEED_LENGTH;
use hashbrown::{HashMap, HashSet};
use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};
use tiphys_api::resource::{ApplicationTree, ResourceDiff};
use tiphys_apimachinery::packed::PackedText;
use tokio::sync::{broadcast, watch};

/// An Application's own namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppKey {
    pub namespace: String,
    pub name: String,
}

impl AppKey {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Its instance name: its name, or `<namespace>_<name>` outside the control plane's namespace.
    pub fn instance(&self, control_plane: &str) -> String {
        if self.namespace == control_plane {
            self.name.clone()
        } else {
            format!("{}_{}", self.namespace, self.name)
        }
    }

    /// The Application with this instance name.
    pub fn from_instance(instance: &str, control_plane: &str) -> Self {
        let (namespace, name) = instance
            .split_once('_')
            .unwrap_or((control_plane, instance));
        Self::new(namespace, name)
    }
}

/// `<namespace>/<name>`
impl fmt::Display for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One published state. Immutable.
#[derive(Clone, Debug, Default)]
pub struct AppState {
    /// Increases with every publication for the same Application; 0 means nothing was published
    /// yet.
    pub generation: u64,
    /// A list as JSON; empty before the first publication.
    managed: PackedText,
    pub tree: Arc<ApplicationTree>,
}

impl AppState {
    /// Managed resources with their differences, decompressed on each call.
    pub fn managed(&self) -> Vec<ResourceDiff> {
        serde_json::from_str(&self.managed.read()).unwrap_or_default()
    }

    /// Whether resources were ever published. Without them there may be a tree, but nobody knows
    /// their differences: that is not "none".
    pub fn is_compared(&self) -> bool {
        self.managed.bytes_held() > 0
    }

    /// Bytes held for the managed resources.
    pub fn packed_bytes(&self) -> usize {
        self.managed.bytes_held()
    }
}

/// The published states of all Applications. Cheap to clone.
#[derive(Clone)]
pub struct AppStates {
    shared: Arc<Shared>,
}

struct Shared {
    apps: RwLock<HashMap<AppKey, watch::Sender<Arc<AppState>>>>,
    feed: broadcast::Sender<AppKey>,
    lasting: RwLock<HashSet<AppKey>>,
}

impl Default for AppStates {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                apps: RwLock::default(),
                feed: broadcast::Sender::new(FEED_LENGTH),
                lasting: RwLock::default(),
            }),
        }
    }
}

impl AppStates {
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the state of an Application and notifies its subscribers.
    pub fn publish(&self, app: &AppKey, managed: &[ResourceDiff], tree: ApplicationTree) {
        let json = serde_json::to_string(managed).expect("resource differences are plain data");
        self.put(app, Some(PackedText::new(&json)), tree);
    }

    /// Replaces only the tree, for example if only health changed.
    pub fn publish_tree(&self, app: &AppKey, tree: ApplicationTree) {
        self.put(app, None, tree);
    }

    fn put(&self, app: &AppKey, managed: Option<PackedText>, tree: ApplicationTree) {
        let tree = Arc::new(tree);
        self.sender(app).send_modify(|state| {
            let managed = managed.unwrap_or_else(|| state.managed.clone());
            *state = Arc::new(AppState {
                generation: state.generation + 1,
                managed,
                tree,
            });
        });
        self.tell(app);
    }

    fn tell(&self, app: &AppKey) {
        // An error only means that there are no receivers.
        let _ = self.shared.feed.send(app.clone());
    }

    fn sender(&self, app: &AppKey) -> watch::Sender<Arc<AppState>> {
        if let Some(sender) = self
            .shared
            .apps
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(app)
        {
            return sender.clone();
        }
        let mut apps = self
            .shared
            .apps
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        apps.entry_ref(app)
            .or_insert_with(|| watch::Sender::new(Arc::default()))
            .clone()
    }

    /// The last published state; `None` if there is none.
    pub fn get(&self, app: &AppKey) -> Option<Arc<AppState>> {
        let apps = self
            .shared
            .apps
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        apps.get(app)
            .map(|s| s.borrow().clone())
            .filter(|s| s.generation > 0)
    }

    /// The Applications with a published state.
    pub fn keys(&self) -> Vec<AppKey> {
        let apps = self
            .shared
            .apps
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        apps.iter()
            .filter(|(_, s)| s.borrow().generation > 0)
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Follows one Application; the first value is available immediately (generation 0: nothing
    /// yet). Ends when the Application is removed.
    pub fn subscribe(&self, app: &AppKey) -> watch::Receiver<Arc<AppState>> {
        self.sender(app).subscribe()
    }

    /// Records whether the Application's manifests cannot be rendered until someone changes
    /// something.
    pub fn set_lasting(&self, app: &AppKey, lasting: bool) {
        let mut known = self
            .shared
            .lasting
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match lasting {
            true => known.insert(app.clone()),
            false => known.remove(app),
        };
    }

    /// Whether the Application's manifests cannot become available by waiting.
    pub fn is_lasting(&self, app: &AppKey) -> bool {
        self.shared
            .lasting
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(app)
    }

    /// Removes a deleted Application.
    pub fn remove(&self, app: &AppKey) {
        self.set_lasting(app, false);
        if self
            .shared
            .apps
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(app)
            .is_some()
        {
            self.tell(app);
        }
    }

    /// The keys of Applications whose state is published or removed. A receiver that falls behind
    /// gets `Lagged`.
    pub fn changes(&self) -> broadcast::Receiver<AppKey> {
        self.shared.feed.subscribe()
    }

    /// Drops Applications that were requested but never published, if no one waits for them any
    /// more.
    pub fn tidy(&self) {
        let mut apps = self
            .shared
            .apps
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        apps.retain(|_, s| s.receiver_count() > 0 || s.borrow().generation > 0);
    }
}

impl From<&AppKey> for AppKey {
    fn from(key: &AppKey) -> Self {
        key.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readers_see_the_newest_publication_and_the_end() {
        let states = AppStates::new();
        let app = AppKey::new("argocd", "web");
        let mut one = states.subscribe(&app);
        assert!(states.get(&app).is_none());
        let other = AppKey::new("argocd", "other");
        states.publish_tree(&other, ApplicationTree::default());
        assert!(!states.get(&other).expect("published").is_compared());
        states.publish(&other, &[], ApplicationTree::default());
        assert!(states.get(&other).expect("published").is_compared());
        let mut all = states.changes();
        let diff = ResourceDiff {
            kind: "ConfigMap".into(),
            live_state: "x".repeat(10_000),
            ..ResourceDiff::default()
        };
        states.publish(
            &app,
            std::slice::from_ref(&diff),
            ApplicationTree::default(),
        );
        one.changed().await.expect("published");
        let state = one.borrow_and_update().clone();
        assert_eq!((state.generation, state.managed()), (1, vec![diff]));
        assert!(state.packed_bytes() < 500);
        states.publish_tree(&app, ApplicationTree::default());
        assert_eq!(states.get(&app).expect("published").managed().len(), 1);
        states.set_lasting(&app, true);
        assert!(states.is_lasting(&app));
        states.remove(&app);
        assert!(!states.is_lasting(&app));
        assert!(one.changed().await.is_ok(), "the tree");
        assert!(one.changed().await.is_err(), "removed");
        assert_eq!(all.recv().await.expect("told"), app);
    }

    #[test]
    fn instance_names_go_both_ways() {
        for (key, instance) in [
            (AppKey::new("argocd", "a"), "a"),
            (AppKey::new("team", "a"), "team_a"),
        ] {
            assert_eq!(key.instance("argocd"), instance);
            assert_eq!(AppKey::from_instance(instance, "argocd"), key);
        }
    }
}
