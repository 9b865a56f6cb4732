//! `-w`: what becomes of Applications, through streams that end or break. Main function: [`follow`],
//! which tells a [`Viewer`]. It must not know how anything is shown.

use super::{AppRef, read_list, watching};
use crate::{
    client::{Client, Failure},
    output::{log, reader},
};
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, LocalBoxStream},
};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::{
    Application, application::ApplicationWatchEvent, rpc::application::ApplicationQuery,
};
use tiphys_engine::spec;
use tokio::time::{sleep, timeout};
use tonic::Status;

const WATCH: &str = "/application.ApplicationService/Watch";

type Events = LocalBoxStream<'static, Result<ApplicationWatchEvent, Status>>;

/// Who is told. Its answers say whether it wants to hear more.
pub trait Viewer {
    /// What there is at first.
    fn first(&mut self, apps: &[Application]) -> Result<bool, Failure> {
        for app in apps {
            if !self.is(app)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An Application is new, or has changed.
    fn is(&mut self, app: &Application) -> Result<bool, Failure>;

    /// It was deleted; this was its last state.
    fn gone(&mut self, last: &Application) -> Result<bool, Failure>;
}

/// Which Applications are followed.
pub enum Scope<'a> {
    /// This one, until it is deleted.
    One(&'a AppRef),
    /// What the query selects, as far as the filter lets it through.
    Many(&'a ApplicationQuery, &'a dyn Fn(&Application) -> bool),
}

impl Scope<'_> {
    fn wants(&self, app: &Application) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(_, filter) => filter(app),
        }
    }
}

/// Follows until the viewer has heard enough, nobody reads what is printed, or somebody presses
/// Ctrl-C: that is how one ends it, and no failure. `seen` are the Applications at first, `version` is that of their list.
pub async fn follow(
    client: &Client,
    scope: Scope<'_>,
    seen: Vec<Application>,
    version: String,
    viewer: &mut impl Viewer,
) -> Result<(), Failure> {
    if !viewer.first(&seen)? {
        return Ok(());
    }
    let mut follower = Follower {
        client,
        scope,
        version,
        known: seen.into_iter().map(|app| (key(&app), app)).collect(),
    };
    tokio::select! {
        ended = follower.until_enough(viewer) => ended,
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
        () = reader::gone() => Ok(()),
    }
}

/// Namespace and name.
type Key = (String, String);

fn key(app: &Application) -> Key {
    (app.metadata.namespace.clone(), app.metadata.name.clone())
}

/// Versions are numbers in all known versions of Kubernetes; of others one can only say whether they
/// are the same.
fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
}

struct Follower<'a> {
    client: &'a Client,
    scope: Scope<'a>,
    /// Of the list that was read last.
    version: String,
    /// What the viewer was told of, and was not told that it is gone.
    known: BTreeMap<Key, Application>,
}

impl Follower<'_> {
    async fn until_enough(&mut self, viewer: &mut impl Viewer) -> Result<(), Failure> {
        let mut is_away = false;
        loop {
            match self.follow_one(viewer).await {
                Ok(true) => is_away = false,
                Ok(false) => return Ok(()),
                // While nothing new is shown, one wants to know why; once is enough.
                Err(e) if e.status.is_some_and(watching::may_pass) => {
                    if !std::mem::replace(&mut is_away, true) {
                        log::warn(&format!("{e}; trying again"));
                    }
                }
                Err(e) => return Err(e),
            }
            sleep(watching::PAUSE).await;
        }
    }

    /// Follows until the stream breaks. It is opened before the state is read, so that nothing
    /// between them is missed, a deletion included. False: the viewer has heard enough.
    async fn follow_one(&mut self, viewer: &mut impl Viewer) -> Result<bool, Failure> {
        let opened = self.open().await;
        if !self.catch_up(viewer).await? {
            return Ok(false);
        }
        // Only now: Argo CD's server opens no stream for what was deleted, which the state tells.
        let mut events = opened?;
        while let Some(Ok(event)) = events.next().await {
            if !self.take(event, viewer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What changes after the versions that are known.
    async fn open(&self) -> Result<Events, Status> {
        let query = self.query();
        let client = self.client.clone();
        let mut opening = Box::pin(async move {
            client
                .stream::<_, ApplicationWatchEvent>(WATCH, query)
                .await
        });
        match timeout(watching::PAUSE, &mut opening).await {
            Ok(events) => Ok(events?.boxed_local()),
            // Argo CD's server answers with its first event, which may take for ever; it listens
            // long before.
            Err(_) => Ok(stream::once(opening).try_flatten().boxed_local()),
        }
    }

    fn query(&self) -> ApplicationQuery {
        let (query, version) = match &self.scope {
            Scope::One(app) => {
                let known = self.known.values().next();
                let version = known.map(|known| known.metadata.resource_version.clone());
                (app.query(), version.unwrap_or_default())
            }
            Scope::Many(query, _) => (ApplicationQuery::clone(query), self.version.clone()),
        };
        ApplicationQuery {
            resource_version: Some(version),
            ..query
        }
    }

    /// Tells what has happened since the state was read last.
    async fn catch_up(&mut self, viewer: &mut impl Viewer) -> Result<bool, Failure> {
        let now = self.read().await?;
        let here: BTreeSet<Key> = now.iter().map(key).collect();
        for app in now {
            if !self.see(app, viewer)? {
                return Ok(false);
            }
        }
        let known = self.known.iter();
        let missing = known.filter(|(key, _)| !here.contains(*key));
        let missing: Vec<Application> = missing.map(|(_, app)| app.clone()).collect();
        for last in missing {
            if self.was_deleted(&last).await? {
                if !self.lose(&last, viewer)? {
                    return Ok(false);
                }
            } else {
                self.known.remove(&key(&last));
            }
        }
        Ok(true)
    }

    /// What there is now.
    async fn read(&mut self) -> Result<Vec<Application>, Failure> {
        let query = match &self.scope {
            // Not by a list, which has not the health of its resources.
            Scope::One(app) => {
                let known = self.known.values().next();
                let project = known.map_or("", spec::project_name);
                let now = watching::present(self.client, app, project).await?;
                return Ok(now.into_iter().collect());
            }
            Scope::Many(query, _) => ApplicationQuery::clone(query),
        };
        let list = read_list(self.client, query).await?;
        self.version = list.metadata.resource_version;
        let mut items = list.items;
        items.retain(|app| self.scope.wants(app));
        Ok(items)
    }

    /// Of what a list does not have any more: whether it was deleted. It may only be no longer among
    /// those that are asked for.
    async fn was_deleted(&self, last: &Application) -> Result<bool, Failure> {
        if matches!(self.scope, Scope::One(_)) {
            return Ok(true);
        }
        let (namespace, name) = key(last);
        let app = AppRef { name, namespace };
        let now = watching::present(self.client, &app, spec::project_name(last)).await?;
        Ok(now.is_none())
    }

    fn take(
        &mut self,
        event: ApplicationWatchEvent,
        viewer: &mut impl Viewer,
    ) -> Result<bool, Failure> {
        let app = event.application;
        let known = self.known.get(&key(&app));
        if event.type_ == "DELETED" {
            // Another of the same name may be there by now.
            let is_it = known.is_some_and(|known| known.metadata.uid == app.metadata.uid);
            return if is_it {
                self.lose(&app, viewer)
            } else {
                Ok(true)
            };
        }
        // What the list has not, although it is newer, is gone already.
        let is_past = known.is_none()
            && !self.version.is_empty()
            && !is_newer(&app.metadata.resource_version, &self.version);
        if is_past {
            return Ok(true);
        }
        self.see(app, viewer)
    }

    /// Tells of a state, if it is new.
    fn see(&mut self, app: Application, viewer: &mut impl Viewer) -> Result<bool, Failure> {
        let key = key(&app);
        if !self.scope.wants(&app) {
            self.known.remove(&key);
            return Ok(true);
        }
        let version = &app.metadata.resource_version;
        let is_old = self
            .known
            .get(&key)
            .is_some_and(|known| !is_newer(version, &known.metadata.resource_version));
        if is_old {
            return Ok(true);
        }
        let more = viewer.is(&app)?;
        self.known.insert(key, app);
        Ok(more)
    }

    /// Tells of a deletion. After that of the only one, there is nothing to follow.
    fn lose(&mut self, last: &Application, viewer: &mut impl Viewer) -> Result<bool, Failure> {
        self.known.remove(&key(last));
        let more = viewer.gone(last)?;
        Ok(more && matches!(self.scope, Scope::Many(..)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_version_is_newer() {
        for (version, than, expected) in [
            ("10", "9", true),
            ("9", "10", false),
            ("9", "9", false),
            ("b", "a", true),
            ("a", "a", false),
            ("", "", false),
        ] {
            assert_eq!(is_newer(version, than), expected, "{version} {than}");
        }
    }
}
