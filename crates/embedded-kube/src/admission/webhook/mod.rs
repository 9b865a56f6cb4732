//! Admission webhooks: an external server validates or changes a request. Main type: [`Hook`]; main
//! functions: [`validate`], [`mutate`].

mod review;

use super::matching::matches;
use super::policy::{Policy, Run};
use super::request::{Objects, Request};
use super::{Answers, settled};
use crate::catalog::Resource;
use crate::outbound::{self, Answer, Endpoint, Post};
use crate::status::{Status, patch_refused};
use review::{Review, WebhookResponse};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::patch::{self, PatchError};

/// One webhook of a configuration.
pub struct Hook {
    pub name: String,
    spec: Value,
    /// Only the match conditions are used.
    conditions: Policy,
}

/// Why there is no verdict: a failure that the failure policy may ignore, or a denial.
enum Failed {
    Call(String),
    Refused(Box<Status>),
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub fn of(configuration: &Object) -> Vec<Self> {
        let all = configuration
            .0
            .get("webhooks")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        all.map(|spec| {
            let text = |field: &str| spec[field].as_str().unwrap_or("").to_owned();
            let conditions = serde_json::json!({"metadata": {"name": text("name")},
                "spec": {"matchConditions": spec["matchConditions"], "failurePolicy": spec["failurePolicy"]}});
            let conditions = Policy::compile(&Object::from_value(conditions).unwrap_or_default());
            Self { name: text("name"), spec: spec.clone(), conditions }
        })
        .collect()
    }

    fn ignores_failures(&self) -> bool {
        self.spec["failurePolicy"] == "Ignore"
    }

    fn reinvokes(&self) -> bool {
        self.spec["reinvocationPolicy"] == "IfNeeded"
    }

    /// The resource with which the webhook wants to see the request, if it matches.
    fn wants(
        &self,
        request: &Request<'_>,
        objects: Objects<'_>,
    ) -> Result<Option<Arc<Resource>>, Status> {
        let Some(matched) =
            matches(request, objects, &self.spec, "rules").map_err(Status::internal)?
        else {
            return Ok(None);
        };
        let [new, old] = request.convert_all(objects, &matched)?;
        let seen = Objects {
            new: new.as_ref(),
            old: old.as_ref(),
        };
        let meant = Run::new(&self.conditions, request, seen, &matched, None).is_meant();
        let refused = |why: String| {
            Status::forbidden(
                &request.resource.group,
                &request.resource.resource,
                request.name,
                &why,
            )
        };
        Ok(meant.map_err(refused)?.then_some(matched))
    }

    fn prepare(
        &self,
        request: &Request<'_>,
        objects: Objects<'_>,
        matched: &Arc<Resource>,
    ) -> Result<(Review, Post), Failed> {
        if request.dry_run
            && !matches!(
                self.spec["sideEffects"].as_str(),
                Some("None" | "NoneOnDryRun")
            )
        {
            let why = format!(
                "admission webhook \"{}\" does not support dry run",
                self.name
            );
            return Err(Status::bad_request(why).into());
        }
        let review = Review::new(
            request,
            objects,
            matched,
            &self.spec["admissionReviewVersions"],
        )
        .map_err(Failed::Call)??;
        let endpoint = Endpoint::read(request.cluster, &self.spec["clientConfig"])
            .map_err(|why| Failed::Call(format!("could not get REST client: {why}")))?;
        let seconds = self.spec["timeoutSeconds"].as_u64().unwrap_or(10);
        let post = Post {
            endpoint,
            timeout: Duration::from_secs(seconds),
            body: review.body(),
        };
        Ok((review, post))
    }

    fn read(
        &self,
        review: &Review,
        answer: Result<Answer, String>,
        mutating: bool,
    ) -> Result<WebhookResponse, Failed> {
        let failed = |why: String| Failed::Call(format!("failed to call webhook: {why}"));
        let response = review.read(answer.map_err(failed)?).map_err(failed)?;
        review
            .verify(&response, mutating)
            .map_err(|why| Failed::Call(format!("received invalid webhook response: {why}")))
    }

    /// Applies the failure policy to a failure.
    fn settle<T>(&self, failed: Failed, ignored: T) -> Result<T, Status> {
        match failed {
            Failed::Refused(status) => Err(*status),
            Failed::Call(_) if self.ignores_failures() => Ok(ignored),
            Failed::Call(why) => Err(Status::internal(format!(
                "failed calling webhook \"{}\": {why}",
                self.name
            ))),
        }
    }
}

/// Calls all matching webhooks concurrently; the first denial in their order is returned.
pub fn validate(
    hooks: &[Hook],
    request: &Request<'_>,
    objects: Objects<'_>,
    answers: &mut Answers,
) -> Result<(), Status> {
    let (mut asked, mut posts) = (Vec::new(), Vec::new());
    for hook in hooks {
        let Some(matched) = hook.wants(request, objects)? else {
            continue;
        };
        match hook.prepare(request, objects, &matched) {
            Ok((review, post)) => {
                asked.push((hook, Ok(review)));
                posts.push(post);
            }
            Err(failed) => asked.push((hook, Err(failed))),
        }
    }
    let mut came = outbound::post_all(posts).into_iter();
    let mut first = Ok(());
    for (hook, review) in asked {
        let verdict = review.and_then(|review| {
            let answer = came.next().unwrap_or_else(|| Err("no answer".to_owned()));
            hook.read(&review, answer, false)
        });
        let outcome = match verdict {
            Err(failed) => hook.settle(failed, ()),
            Ok(verdict) => {
                verdict
                    .warnings
                    .iter()
                    .for_each(|text| answers.warn(text.clone()));
                if verdict.allowed {
                    Ok(())
                } else {
                    Err(verdict.refusal(&hook.name))
                }
            }
        };
        first = first.and(outcome);
    }
    first
}

/// The results of the first round of calls, for the second one.
#[derive(Default)]
pub struct Round {
    /// For each webhook: whether it was called, and whether it changed the object.
    called: Vec<(bool, bool)>,
}

impl Round {
    pub fn changed(&self) -> bool {
        self.called.iter().any(|(_, changed)| *changed)
    }

    /// Whether a webhook is called again: it has requested that, and the object has changed since.
    fn again(&self, i: usize, moved: bool) -> bool {
        self.called.get(i).is_some_and(|(called, _)| *called)
            && (moved || self.called.iter().skip(i + 1).any(|(_, changed)| *changed))
    }
}

/// Lets the webhooks change the object one after the other. `before` is the first round, and
/// whether the object has changed since.
pub fn mutate(
    hooks: &[Hook],
    request: &Request<'_>,
    object: &mut Option<&mut Object>,
    old: Option<&Object>,
    before: Option<(&Round, bool)>,
    answers: &mut Answers,
) -> Result<Round, Status> {
    let mut round = Round::default();
    for (i, hook) in hooks.iter().enumerate() {
        round.called.push((false, false));
        if before.is_some_and(|(first, moved)| !hook.reinvokes() || !first.again(i, moved)) {
            continue;
        }
        let objects = Objects {
            new: object.as_deref(),
            old,
        };
        let Some(matched) = hook.wants(request, objects)? else {
            continue;
        };
        let called = hook
            .prepare(request, objects, &matched)
            .and_then(|(review, post)| {
                let answer = outbound::post_all(vec![post])
                    .pop()
                    .unwrap_or_else(|| Err("no answer".to_owned()));
                hook.read(&review, answer, true)
            });
        let next = match called {
            Err(failed) => hook.settle(failed, None)?,
            Ok(verdict) => {
                verdict
                    .warnings
                    .iter()
                    .for_each(|text| answers.warn(text.clone()));
                if !verdict.allowed {
                    return Err(verdict.refusal(&hook.name));
                }
                hook.changed(&verdict, request, object.as_deref(), &matched)
                    .or_else(|failed| hook.settle(failed, None))?
            }
        };
        let mut changed = false;
        if let (Some(object), Some(next)) = (object.as_deref_mut(), next) {
            changed = *object != next;
            *object = next;
        }
        round.called[i] = (true, changed);
    }
    Ok(round)
}

impl Hook {
    /// The object with the patch of a webhook applied.
    fn changed(
        &self,
        verdict: &WebhookResponse,
        request: &Request<'_>,
        object: Option<&Object>,
        matched: &Arc<Resource>,
    ) -> Result<Option<Object>, Failed> {
        if verdict.patch.is_empty() {
            return Ok(None);
        }
        let undecodable = |why: String| {
            Failed::Call(format!(
                "received undecodable patch in webhook response: {why}"
            ))
        };
        let operations: Value = serde_json::from_slice(&verdict.patch)
            .map_err(|e| undecodable(review::go_error(&verdict.patch, &e)))?;
        if operations.as_array().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let Some(object) = object else {
            let why = "attempted to modify the object, which is not supported for this operation";
            return Err(
                Status::internal(format!("admission webhook \"{}\" {why}", self.name)).into(),
            );
        };
        if verdict.patch_type != "JSONPatch" {
            return Err(Failed::Call(format!(
                "unsupported patch type \"{}\"",
                verdict.patch_type
            )));
        }
        let seen = request.convert(object, matched)?;
        let told = |e: &PatchError| {
            let text = e.to_string();
            if text.is_empty() {
                patch_refused(e).message
            } else {
                text
            }
        };
        let patched = patch::json::apply(&seen.into_value(), &operations)
            .map_err(|e| Status::internal(told(&e)))?;
        let patched = Object::from_value(patched).map_err(|e| Status::internal(e.to_string()))?;
        let mut next = settled(request.cluster, &request.typed_as(matched), patched)?;
        request.convert_back(matched, &mut next)?;
        Ok(Some(next))
    }
}
