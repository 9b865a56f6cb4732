//! Deleted sets, kept in Secrets for a time together with their Applications, so that both can be
//! restored.
//!
//! Main type: [`DeletedSet`]. A set cannot keep its own annotation once it is gone, and it must not
//! get a finalizer for that: a set with a finalizer that nobody removes could not be deleted after
//! Argo CD's controller has taken over. It is a Secret and no ConfigMap, since more people may read
//! ConfigMaps than Applications.

use crate::reconcile::Settings;
use crate::tombstone::{self, TombstoneError};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::time::Duration;
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::constants::{
    API_VERSION, APPLICATION_SET_REFRESH, APPLICATION_SET_REFRESH_TIMESTAMP, DELETED_APPLICATIONS,
    OWN_SECRET_TYPE_LABEL,
};
use tiphys_api::meta::Time;

/// The label of the Secrets.
pub const LABEL: &str = OWN_SECRET_TYPE_LABEL;
/// Its value.
pub const LABEL_VALUE: &str = "deleted-applicationset";
/// Annotations of the Secrets: of which set each is, and when that was deleted.
const NAMESPACE: &str = "tiphys.dev/applicationset-namespace";
const NAME: &str = "tiphys.dev/applicationset-name";
const DELETED_AT: &str = "tiphys.dev/deleted-at";
const KEY: &str = "set";
/// The most bytes of what is kept of one set: Kubernetes accepts 1 MiB in a Secret.
const MOST: usize = 700 << 10;
/// Finalizers of Kubernetes, which only say how the set was deleted.
const OF_DELETION: [&str; 2] = ["foregroundDeletion", "orphan"];

/// One deleted set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedSet {
    pub uid: String,
    pub deleted_at: Time,
    /// Without status and what the API server adds. Its annotation has its deleted Applications,
    /// those among them that were deleted with it.
    pub set: ApplicationSet,
    /// How many of the Applications that were deleted with it are not kept, for lack of room.
    #[serde(default)]
    pub missing: usize,
}

impl DeletedSet {
    /// A set that is deleted with these Applications. `before` is what is kept of the same set so
    /// far: only Applications are added to it, and none once some had no room, or each reconcile
    /// would put others in their place. `None`: nothing is kept at all.
    pub fn new(
        set: &ApplicationSet,
        before: Option<&Self>,
        lost: &[&Application],
        settings: &Settings,
        now: Time,
    ) -> Option<Self> {
        if settings.keep_deleted.is_zero() {
            return None;
        }
        if let Some(before) = before.filter(|before| before.missing > 0) {
            return Some(before.clone());
        }
        let mut all = match before {
            Some(before) => before.set.clone(),
            None => without_state(set.clone()),
        };
        let mut missing = 0;
        let names = lost.iter().map(|app| app.metadata.name.as_str()).collect();
        let keep = settings.keep_deleted;
        if let Some(written) = tombstone::written(&all, &names, lost, keep, now) {
            missing = written.missing;
            let annotations = &mut all.metadata.annotations;
            match written.value {
                Some(value) => annotations.insert(DELETED_APPLICATIONS.to_owned(), value),
                None => annotations.remove(DELETED_APPLICATIONS),
            };
        }
        Some(Self {
            uid: set.metadata.uid.clone(),
            deleted_at: before.map_or(now, |before| before.deleted_at),
            set: all,
            missing,
        })
    }

    /// The name of the Secret: several sets of one name may have been deleted.
    pub fn secret_name(uid: &str) -> String {
        format!("tiphys-deleted-applicationset-{uid}")
    }

    /// Whether it was kept long enough.
    pub fn is_over(&self, keep: Duration, now: Time) -> bool {
        is_over(self.deleted_at, keep, now)
    }

    /// The Secret in the control plane's namespace.
    ///
    /// # Errors
    /// If the set alone is too large for one.
    pub fn to_secret(&self, namespace: &str) -> Result<Json, TombstoneError> {
        let mut packed = tombstone::pack(self);
        if packed.len() > MOST {
            let mut alone = self.clone();
            alone.missing += tombstone::read(&self.set).map_or(0, |stones| stones.len());
            alone.set.metadata.annotations.remove(DELETED_APPLICATIONS);
            packed = tombstone::pack(&alone);
        }
        if packed.len() > MOST {
            return Err(TombstoneError::new("the set is too large for a Secret"));
        }
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": Self::secret_name(&self.uid), "namespace": namespace,
                "labels": {LABEL: LABEL_VALUE},
                "annotations": {
                    NAMESPACE: self.set.metadata.namespace,
                    NAME: self.set.metadata.name,
                    DELETED_AT: self.deleted_at,
                },
            },
            // It is base64 already.
            "data": {KEY: packed},
        }))
    }

    /// What a Secret with the label keeps.
    ///
    /// # Errors
    /// If it is none of ours.
    pub fn from_secret(secret: &Json) -> Result<Self, TombstoneError> {
        let text = secret["data"][KEY].as_str();
        tombstone::unpack(text.ok_or_else(|| TombstoneError::new("it has no field for a set"))?)
    }

    /// The Secret of the last deleted set of this name. None of them is unpacked for that.
    pub fn newest(
        secrets: impl IntoIterator<Item = Json>,
        namespace: &str,
        name: &str,
    ) -> Option<Json> {
        let named = secrets.into_iter().filter_map(|secret| {
            let described = described(&secret)?;
            let is_it = described.namespace == namespace && described.name == name;
            let at = described.deleted_at;
            is_it.then_some(((at.seconds, at.nanos), secret))
        });
        let newest = named.max_by_key(|(at, _)| *at);
        newest.map(|(_, secret)| secret)
    }
}

/// What the metadata of a Secret say of the set in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub deleted_at: Time,
}

impl Described<'_> {
    /// Whether it was kept long enough.
    pub fn is_over(&self, keep: Duration, now: Time) -> bool {
        is_over(self.deleted_at, keep, now)
    }
}

fn is_over(at: Time, keep: Duration, now: Time) -> bool {
    let keep = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
    now.seconds.saturating_sub(at.seconds) >= keep
}

/// Reads the metadata of a Secret with the label; `None`: it is none of ours.
pub fn described(secret: &Json) -> Option<Described<'_>> {
    let annotations = &secret["metadata"]["annotations"];
    Some(Described {
        namespace: annotations[NAMESPACE].as_str()?,
        name: annotations[NAME].as_str()?,
        deleted_at: Time::deserialize(&annotations[DELETED_AT]).ok()?,
    })
}

fn without_state(mut set: ApplicationSet) -> ApplicationSet {
    let mut kept = ApplicationSet {
        api_version: API_VERSION.to_owned(),
        kind: "ApplicationSet".to_owned(),
        spec: set.spec,
        ..ApplicationSet::default()
    };
    let from = &mut set.metadata;
    from.annotations.remove(APPLICATION_SET_REFRESH);
    from.annotations.remove(APPLICATION_SET_REFRESH_TIMESTAMP);
    from.finalizers
        .retain(|finalizer| !OF_DELETION.contains(&finalizer.as_str()));
    let to = &mut kept.metadata;
    to.name = std::mem::take(&mut from.name);
    to.namespace = std::mem::take(&mut from.namespace);
    to.labels = std::mem::take(&mut from.labels);
    to.annotations = std::mem::take(&mut from.annotations);
    to.finalizers = std::mem::take(&mut from.finalizers);
    kept
}
