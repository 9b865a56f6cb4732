//! Client-side apply: create with the last-applied annotation, or a three-way patch based on it.

use super::{Applied, Applier, DryRun, Explanation, Failure, Item, patch};
use crate::request::Call;
use http::Method;
use serde_json::Value;
use std::time::Duration;
use tiphys_apimachinery::{
    Object,
    patch::{PatchError, last_applied, three_way},
    schema::TypeRef,
};
use tiphys_gocompat::json;
use tokio::time::{Instant, sleep};

/// How often a patch is recomputed after a conflict, and how long kubectl waits from the second
/// attempt on.
const CONFLICTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// A failed patch: what was sent, and the error.
type Refused = (String, Failure);

/// A successful patch.
struct Done {
    live: Object,
    /// `None`: there was nothing to change.
    patch: Option<Value>,
    explanation: Option<Explanation>,
}

impl Applier {
    pub(super) async fn client_side(&self, item: &Item) -> Result<Applied, Failure> {
        let modified = if self.settings.compare {
            last_applied::without_annotation(&item.object)
        } else {
            last_applied::with_annotation(&item.object)
        };
        let live = match self.get(item).await {
            Ok(live) => live,
            Err(e) if e.is_not_found() => return self.create(item, modified).await,
            Err(e) => {
                return Err(e.when(
                    &format!(
                        "retrieving current configuration of:\n{}\nfrom server for:",
                        item.describe()
                    ),
                    &item.source,
                ));
            }
        };
        if live.annotation(last_applied::ANNOTATION).is_none() && !self.settings.compare {
            self.warn(&format!(
                "resource {}/{} is missing the {} annotation which is required by kubectl apply. kubectl apply should only be used on \
                 resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will \
                 be patched automatically.",
                item.kind.resource,
                item.object.name(),
                last_applied::ANNOTATION
            ));
        }
        let before = Some(live.clone());
        let done = self
            .patch(item, live, &modified)
            .await
            .map_err(|(sent, e)| {
                e.when(
                    &format!("applying patch:\n{sent}\nto:\n{}\nfor:", item.describe()),
                    &item.source,
                )
            })?;
        let verb = if done.patch.is_some() {
            "configured"
        } else {
            "unchanged"
        };
        Ok(Applied {
            verb,
            live: done.live,
            before,
            explanation: done.explanation,
        })
    }

    async fn create(&self, item: &Item, mut object: Object) -> Result<Applied, Failure> {
        object.0.retain(|_, v| !v.is_null());
        object.0.values_mut().for_each(prune_nulls);
        let explanation = self.settings.explain.then(|| Explanation::Created {
            object: object.clone(),
        });
        let live = match self.settings.dry_run {
            DryRun::Client => object,
            _ => self
                .post(item, &object)
                .await
                .map_err(|e| e.when("creating", &item.source))?,
        };
        Ok(Applied {
            verb: "created",
            live,
            before: None,
            explanation,
        })
    }

    async fn patch(
        &self,
        item: &Item,
        mut live: Object,
        modified: &Object,
    ) -> Result<Done, Refused> {
        let mut result = self.patch_once(item, &live, modified).await;
        for attempt in 1..=CONFLICTS {
            if !result.as_ref().is_err_and(|(_, e)| e.is("Conflict")) {
                break;
            }
            if attempt > 1 {
                sleep(PAUSE).await;
            }
            live = self.get(item).await.map_err(|e| (String::new(), e))?;
            result = self.patch_once(item, &live, modified).await;
        }
        match result {
            Err((_, e)) if self.settings.force && (e.is("Conflict") || e.is("Invalid")) => {
                let sent = || json::to_string(&Value::Object(modified.0.clone())) + "\n";
                let live = self
                    .delete_and_create(item, live, modified)
                    .await
                    .map_err(|e| (sent(), e))?;
                let explanation = self.settings.explain.then(|| Explanation::Recreated {
                    object: modified.clone(),
                });
                Ok(Done {
                    live,
                    patch: Some(Value::Null),
                    explanation,
                })
            }
            result => result.map_err(|(sent, e)| (sent, e.when("patching", &item.source))),
        }
    }

    async fn patch_once(
        &self,
        item: &Item,
        live: &Object,
        modified: &Object,
    ) -> Result<Done, Refused> {
        let source = self
            .types
            .of(&self.discovery, &item.kind, self.settings.published_types)
            .await;
        let ty = source.type_of(&item.kind.gvk);
        let three = patch::ThreeWay::new(live, modified)
            .map_err(|e| (String::new(), Failure::text(e.to_string())))?;
        let Some(patch) = three
            .patch(ty, self.settings.overwrite)
            .map_err(|e| (String::new(), self.cannot_create(&three, &e)))?
        else {
            let explanation = self
                .settings
                .explain
                .then(|| explanation(&three, &Value::Object(Default::default()), ty));
            return Ok(Done {
                live: live.clone(),
                patch: None,
                explanation,
            });
        };
        let explanation = self
            .settings
            .explain
            .then(|| explanation(&three, &patch, ty));
        let sent = json::to_string(&patch);
        let live = if self.settings.dry_run == DryRun::Client {
            let patched = three.apply_locally(&patch, ty).and_then(|v| {
                Object::from_value(v).map_err(|e| PatchError::Invalid(e.to_string()))
            });
            patched.map_err(|e| {
                (
                    String::new(),
                    Failure::text(format!("applying patch locally: {e}")),
                )
            })?
        } else {
            let path = self.path(item).map_err(|e| (String::new(), e))?;
            let call: Call = self.write(Method::PATCH, path, &self.settings.manager);
            let answer = self
                .http
                .json(&call.with_body(patch::content_type(ty), sent.clone()))
                .await;
            answer.map_err(|e| (sent, Failure::from(e)))?
        };
        Ok(Done {
            live,
            patch: Some(patch),
            explanation,
        })
    }

    fn cannot_create(&self, three: &patch::ThreeWay, error: &PatchError) -> Failure {
        let original = if three.original.is_null() {
            String::new()
        } else {
            json::to_string(&three.original) + "\n"
        };
        Failure::text(format!(
            "creating patch with:\noriginal:\n{original}\nmodified:\n{}\n\ncurrent:\n{}\n\nfor: {error}",
            json::to_string(&three.modified),
            json::to_string(&three.current)
        ))
    }

    /// Deletes and recreates an object that cannot be patched; if that fails, restores the old one.
    async fn delete_and_create(
        &self,
        item: &Item,
        live: Object,
        modified: &Object,
    ) -> Result<Object, Failure> {
        self.delete(&item.kind, item.namespace(), item.object.name())
            .await?;
        let deadline = Instant::now() + self.settings.timeout;
        while self.is_there(item).await? {
            if Instant::now() >= deadline {
                return Err(Failure::text("context deadline exceeded"));
            }
            sleep(PAUSE.min(deadline - Instant::now())).await;
        }
        let error = match self.post(item, modified).await {
            Ok(created) => return Ok(created),
            Err(error) => error,
        };
        match self.post(item, &live).await {
            Ok(_) => Err(error),
            Err(lost) => Err(Failure::text(format!(
                "An error occurred force-replacing the existing object with the newly provided one:\n\n{error}.\n\n\
                 Additionally, an error occurred attempting to restore the original object:\n\n{lost}"
            ))),
        }
    }

    async fn is_there(&self, item: &Item) -> Result<bool, Failure> {
        match self.get(item).await {
            Ok(_) => Ok(true),
            Err(e) if e.is_absent(item.object.name()) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

fn explanation(three: &patch::ThreeWay, patch: &Value, ty: Option<TypeRef<'_>>) -> Explanation {
    // If the patch cannot be explained, it has already been refused.
    let changes = three_way::explain(&three.original, &three.modified, &three.current, ty)
        .unwrap_or_default();
    Explanation::Patch {
        strategic: ty.is_some(),
        patch: patch.clone(),
        changes,
    }
}

/// Null fields are not sent when an object is created; a patch would not set them either.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(prune_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
