//! `/api/webhook`: a Git host or a registry announces a push or a pull request, and the affected
//! Applications and ApplicationSets are refreshed.
//!
//! Main function: [`handle`]. The sender is not logged in: a request is checked against the host's
//! secret before its content is parsed as JSON, and all requests held at a time share one memory
//! budget. Replies are the same as Argo CD's.

mod concern;
mod payload;
mod provider;
mod pull;
mod registry;
mod sets;

use crate::{
    services::application::read::refresh_request,
    settings::Settings,
    state::{State, Webhooks},
};
use concern::Watched;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use jiff::SignedDuration;
use payload::Event;
use provider::Provider;
use std::{sync::Arc, time::Duration};
use tiphys_api::Application;
use tiphys_rpc::{heavy, text};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::body::Body;

pub const PATH: &str = "/api/webhook";
const MAX_PAYLOAD: &str = "webhook.maxPayloadSizeMB";
const MAX_PAYLOAD_MB: usize = 50;
const JITTER: &str = "webhook.refresh.jitter";
const JITTER_THRESHOLD: &str = "webhook.refresh.jitter.threshold";
const JITTER_THRESHOLD_APPS: usize = 10;
/// Timeout for receiving a payload.
const SLOW: Duration = Duration::from_secs(30);
/// Argo CD's log level for a probable attack that had no effect.
const SECURITY_HIGH: u8 = 3;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Unknown,
    Method,
    /// Empty, truncated, too slow, too large, or not JSON where the JSON is checked first.
    Payload,
    /// The secret is wrong.
    Secret,
    /// The secret is wrong; the reply for registries.
    Unauthorized,
    Failed,
    Full,
}

/// Whom an event is passed on to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// ApplicationSets only, as Argo CD's controller of them does: events of GitHub, GitLab and
    /// Azure DevOps.
    Sets,
}

/// Answers a request.
pub async fn handle(state: Arc<State>, request: Request<Body>, scope: Scope) -> Response<Body> {
    let settings = match state.settings.get().await {
        Ok(settings) => settings,
        Err(e) => return text(e.code.http(), "The settings cannot be read\n"),
    };
    let megabytes = max_megabytes(&settings);
    match accept(&state, (&settings, scope), request, megabytes << 20).await {
        Ok(()) => Response::new(Body::empty()),
        Err(refusal) => refuse(refusal, megabytes),
    }
}

fn refuse(refusal: Refusal, megabytes: usize) -> Response<Body> {
    const FAILED: &str = "Webhook processing failed\n";
    match refusal {
        Refusal::Unknown => text(StatusCode::BAD_REQUEST, "Unknown webhook event\n"),
        Refusal::Method => text(StatusCode::METHOD_NOT_ALLOWED, FAILED),
        Refusal::Payload => {
            tracing::warn!(
                security = SECURITY_HIGH,
                "Webhook processing failed: payload too large or corrupted (limit {megabytes} MB)"
            );
            text(
                StatusCode::BAD_REQUEST,
                format!(
                    "Webhook processing failed: payload must be valid JSON under {megabytes} MB\n"
                ),
            )
        }
        Refusal::Secret | Refusal::Failed => text(StatusCode::BAD_REQUEST, FAILED),
        Refusal::Unauthorized => text(StatusCode::UNAUTHORIZED, "Unauthorized\n"),
        Refusal::Full => {
            tracing::info!("Queue is full, discarding webhook payload");
            text(
                StatusCode::SERVICE_UNAVAILABLE,
                "Queue is full, discarding webhook payload\n",
            )
        }
    }
}

fn max_megabytes(settings: &Settings) -> usize {
    settings
        .value(MAX_PAYLOAD)
        .parse()
        .unwrap_or(MAX_PAYLOAD_MB)
        .min(Webhooks::MEMORY >> 20)
}

/// Checks a request and starts the refreshes in the background.
async fn accept(
    state: &Arc<State>,
    (settings, scope): (&Settings, Scope),
    request: Request<Body>,
    limit: usize,
) -> Result<(), Refusal> {
    let (parts, body) = request.into_parts();
    let secrets = &settings.webhook_secrets;
    let provider = Provider::of(&parts.headers, secrets)
        .filter(|provider| scope == Scope::All || provider.is_for_sets())
        .ok_or(Refusal::Unknown)?;
    let audited = |e: Refusal| {
        if matches!(e, Refusal::Secret | Refusal::Unauthorized) {
            tracing::info!(
                security = SECURITY_HIGH,
                "{} webhook {} verification failed",
                provider.name(),
                provider.proof()
            );
        }
        e
    };
    provider
        .check_headers(&parts.headers, secrets)
        .map_err(audited)?;
    if parts.method != Method::POST {
        return Err(Refusal::Method);
    }
    if !provider.knows_event(&parts.headers) {
        return Err(Refusal::Failed);
    }
    let received = tokio::time::timeout(SLOW, read(body, limit, &state.webhooks.memory))
        .await
        .unwrap_or(Err(Refusal::Payload));
    // Only Git hosts get the limit in the reply.
    let (content, memory) = received.map_err(|e| {
        if e == Refusal::Payload && provider.is_registry() {
            Refusal::Failed
        } else {
            e
        }
    })?;
    provider
        .check_content(&parts.headers, &content, secrets)
        .map_err(audited)?;
    let headers = parts.headers;
    let Some(event) = heavy::run(move || payload::read(provider, &headers, &content)).await? else {
        return Ok(());
    };
    let place = state
        .webhooks
        .queue
        .clone()
        .try_acquire_owned()
        .map_err(|_| Refusal::Full)?;
    let (state, jitter) = (state.clone(), Jitter::of(settings));
    tokio::spawn(async move {
        match scope {
            Scope::All => refresh(&state, event, jitter).await,
            Scope::Sets => sets::refresh(&state, &event).await,
        }
        drop((place, memory));
    });
    Ok(())
}

/// Reads the whole body and takes its size from the shared memory budget.
async fn read(
    mut body: Body,
    limit: usize,
    memory: &Arc<Semaphore>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refusal> {
    let (mut content, mut held) = (Vec::new(), None::<OwnedSemaphorePermit>);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Refusal::Payload)?.into_data() else {
            continue;
        };
        if content.len() + data.len() > limit {
            return Err(Refusal::Payload);
        }
        let bytes = u32::try_from(data.len()).map_err(|_| Refusal::Payload)?;
        let more = memory
            .clone()
            .try_acquire_many_owned(bytes)
            .map_err(|_| Refusal::Full)?;
        match &mut held {
            Some(held) => held.merge(more),
            None => held = Some(more),
        }
        content.extend_from_slice(&data);
    }
    if content.is_empty() {
        Err(Refusal::Payload)
    } else {
        Ok((content, held))
    }
}

/// Random delays for the refreshes of a push that affects many Applications.
#[derive(Clone, Copy, Debug)]
struct Jitter {
    most: Duration,
    threshold: usize,
}

impl Jitter {
    const NONE: Self = Self {
        most: Duration::ZERO,
        threshold: usize::MAX,
    };

    fn of(settings: &Settings) -> Self {
        let most = settings
            .value(JITTER)
            .parse::<SignedDuration>()
            .ok()
            .and_then(|d| d.try_into().ok())
            .unwrap_or_default();
        Self {
            most,
            threshold: settings
                .value(JITTER_THRESHOLD)
                .parse()
                .unwrap_or(JITTER_THRESHOLD_APPS),
        }
    }

    fn delay(self, i: usize) -> Duration {
        if i < self.threshold {
            Duration::ZERO
        } else {
            self.most.mul_f64(rand::random::<f64>())
        }
    }
}

/// Requests a refresh of every Application and set affected by the event.
async fn refresh(state: &State, event: Event, jitter: Jitter) {
    let jitter = match &event {
        Event::Push(push) => {
            for url in &push.urls {
                let (revision, head) = (push.revisions.join(", "), push.head);
                tracing::info!(
                    "Received push event repo: {url}, revision: {revision}, touchedHead: {head}"
                );
            }
            jitter
        }
        Event::Pull(_) => Jitter::NONE,
        Event::Registry(pushed) => {
            let repo = format!("oci://{}", pushed.repository);
            tracing::info!(repo, tag = pushed.tag, "Received registry webhook event");
            Jitter::NONE
        }
    };
    state.reach.ready().await;
    let event = Arc::new(event);
    let sets = sets::refresh(state, &event);
    let mut apps = state.reach.apps_for_webhook();
    apps.retain(|app| state.reach.permits(&app.metadata.namespace));
    let event = Arc::clone(&event);
    // A payload can name a hundred thousand files, each of which is matched against the paths of
    // every Application.
    let applications = async {
        let concerned = heavy::run(move || concerned(&event, apps)).await;
        ask_all(state, concerned, jitter).await;
    };
    // What a set follows may have to be asked for elsewhere.
    tokio::join!(sets, applications);
}

fn concerned(event: &Event, mut apps: Vec<Arc<Application>>) -> Vec<Arc<Application>> {
    match event {
        Event::Push(push) => {
            let watched = Watched::new(push);
            apps.retain(|app| watched.concerns(app));
        }
        Event::Pull(_) => apps.clear(),
        Event::Registry(pushed) => apps.retain(|app| pushed.concerns(app)),
    }
    apps
}

async fn ask_all(state: &State, concerned: Vec<Arc<Application>>, jitter: Jitter) {
    let asked = concerned
        .into_iter()
        .enumerate()
        .map(|(i, app)| async move {
            let delay = jitter.delay(i);
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let _permit = state.webhooks.refreshes.acquire().await;
            ask(state, &app).await;
        });
    futures::stream::iter(asked)
        .for_each_concurrent(None, |asked| asked)
        .await;
}

async fn ask(state: &State, app: &Application) {
    let (namespace, name) = (&app.metadata.namespace, &app.metadata.name);
    match state
        .reach
        .refresh_for_webhook(app, &refresh_request("normal"))
        .await
    {
        Ok(_) => tracing::info!(
            application = name.as_str(),
            "app-namespace" = namespace.as_str(),
            "Requested app '{name}' refresh"
        ),
        Err(e) => tracing::warn!(
            application = name.as_str(),
            "app-namespace" = namespace.as_str(),
            "Failed to refresh app '{name}' for controller reprocessing: {e}"
        ),
    }
}
