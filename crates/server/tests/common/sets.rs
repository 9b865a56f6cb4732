//! An in-memory fake of the ApplicationSets.

use async_trait::async_trait;
use futures::{StreamExt as _, future::ready, stream::BoxStream};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tiphys_api::{Application, ApplicationSet, constants::APPLICATION_SET_REFRESH};
use tiphys_appset::{Answer, ClusterSecret, Facts, Need, NeedError, follows};
use tiphys_server::{
    ApiError,
    ports::{IsFollowed, SetEvent, Sets, StoreError, StoreResult},
};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;

/// ApplicationSets in memory, with one cluster `c1`. Generating answers with one Application for
/// each element of the lists of a set.
pub struct FakeSets {
    sets: Mutex<BTreeMap<String, ApplicationSet>>,
    changes: broadcast::Sender<Arc<ApplicationSet>>,
}

impl Default for FakeSets {
    fn default() -> Self {
        Self {
            sets: Mutex::default(),
            changes: broadcast::Sender::new(1024),
        }
    }
}

impl FakeSets {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ApplicationSet>> {
        self.sets.lock().expect("not poisoned")
    }

    fn store(&self, set: &ApplicationSet) -> ApplicationSet {
        let mut sets = self.lock();
        let mut set = set.clone();
        set.metadata.uid = format!("uid-{}", set.metadata.name);
        set.metadata.resource_version = (sets.len() + 1).to_string();
        sets.insert(set.metadata.name.clone(), set.clone());
        let _ = self.changes.send(Arc::new(set.clone()));
        set
    }
}

#[async_trait]
impl Sets for FakeSets {
    fn list(&self) -> (Vec<Arc<ApplicationSet>>, String) {
        let sets = self.lock();
        (sets.values().cloned().map(Arc::new).collect(), "7".into())
    }

    async fn get(&self, _: &str, name: &str) -> StoreResult<ApplicationSet> {
        let set = self.lock().get(name).cloned();
        set.ok_or_else(|| StoreError::NotFound(format!("{name} not found")))
    }

    /// Every set that ends in `-gone` was deleted.
    async fn deleted(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet> {
        if !name.ends_with("-gone") {
            return Err(StoreError::NotFound(format!("{name} is not kept")));
        }
        let set = serde_json::json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "generators": [{"list": {"elements": [{"name": "a"}]}}],
                "template": {
                    "metadata": {"name": "{{name}}"},
                    "spec": {
                        "project": "default",
                        "source": {"repoURL": "https://u:CANARY@example.com/r", "path": "."},
                        "destination": {"server": "https://kubernetes.default.svc"},
                    },
                },
            },
        });
        Ok(serde_json::from_value(set).expect("a set"))
    }

    async fn create(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet> {
        match self.lock().contains_key(&set.metadata.name) {
            true => Err(StoreError::AlreadyExists("it exists".into())),
            false => Ok(()),
        }?;
        Ok(self.store(set))
    }

    async fn update(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet> {
        Ok(self.store(set))
    }

    async fn delete(&self, _: &str, name: &str) -> StoreResult<()> {
        self.lock().remove(name);
        Ok(())
    }

    fn watch(&self) -> BoxStream<'static, SetEvent> {
        let changes = BroadcastStream::new(self.changes.subscribe());
        let event = |set: Arc<ApplicationSet>| SetEvent {
            change: "MODIFIED",
            set,
        };
        let event = move |set: Result<_, _>| ready(set.ok().map(event));
        changes.filter_map(event).boxed()
    }

    async fn refresh(&self, _: &str, name: &str) -> StoreResult<()> {
        let mut sets = self.lock();
        let set = sets.get_mut(name);
        let set = set.ok_or_else(|| StoreError::NotFound(format!("{name} not found")))?;
        let annotations = &mut set.metadata.annotations;
        annotations.insert(APPLICATION_SET_REFRESH.into(), "true".into());
        Ok(())
    }

    async fn follows(&self, set: &ApplicationSet, is_it: IsFollowed) -> bool {
        let mut facts = Facts::default();
        loop {
            let mut sources = tiphys_gocompat::sprig::Sources {
                random: Box::new(|bytes| bytes.fill(7)),
                now: Default::default(),
                zone: || unreachable!("no set needs a zone"),
            };
            let found = follows(set, &facts, &mut sources, &|followed| is_it(followed));
            let needs = facts.missing();
            if needs.is_empty() {
                return found.expect("the sets of tests are well-formed");
            }
            for need in needs {
                let answer = match &need {
                    Need::Clusters => Ok(Answer::Clusters(vec![ClusterSecret {
                        name: "c1".into(),
                        labels: [("fleet", "blue"), ("rev", "main")]
                            .map(|(key, value)| (key.to_owned(), value.to_owned()))
                            .into(),
                        ..ClusterSecret::default()
                    }])),
                    need => Err(NeedError::failed(format!("nobody answers {need:?}"))),
                };
                facts.add(need, answer);
            }
        }
    }

    async fn generate(&self, set: &ApplicationSet) -> Result<Vec<Application>, ApiError> {
        let lists = set.spec.generators.iter().filter_map(|g| g.list.as_ref());
        let elements = lists.flat_map(|list| &list.elements);
        let app = |element: &tiphys_api::meta::Json| {
            let mut app = Application::default();
            app.metadata.name = element.value()["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            app.spec = set.spec.template.spec.clone().into();
            app
        };
        Ok(elements.map(app).collect())
    }
}
