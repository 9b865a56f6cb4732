//! Watching one Application through streams that end or break: a proxy cuts those on which nothing
//! comes, and a server restarts.
//!
//! Main functions: [`watch`], [`present`] and [`until_deleted`].

use super::AppRef;
use crate::client::{Client, Failure};
use futures::{StreamExt as _, stream::BoxStream};
use std::time::Duration;
use tiphys_api::{
    Application,
    application::ApplicationWatchEvent,
    rpc::application::{ApplicationQuery, ApplicationResponse},
};
use tokio::time::sleep;
use tonic::{Code, Status};

/// Between a stream that broke and the next one.
pub const PAUSE: Duration = Duration::from_secs(1);

/// Whether the server may be back soon.
pub fn may_pass(code: Code) -> bool {
    use Code::{Aborted, Internal, ResourceExhausted, Unavailable, Unknown};
    matches!(
        code,
        Aborted | Internal | ResourceExhausted | Unavailable | Unknown
    )
}

pub type Events = BoxStream<'static, Result<ApplicationWatchEvent, Status>>;

/// What changes after a version.
pub async fn watch(client: &Client, app: &AppRef, version: &str) -> Result<Events, Status> {
    let query = ApplicationQuery {
        resource_version: Some(version.to_owned()),
        ..app.query()
    };
    client
        .stream("/application.ApplicationService/Watch", query)
        .await
}

/// The present state; `None`: it was deleted. It was in `project`: with a project, the server tells
/// what is gone from what one may not see any more.
pub async fn present(
    client: &Client,
    app: &AppRef,
    project: &str,
) -> Result<Option<Application>, Failure> {
    let query = ApplicationQuery {
        project: vec![project.to_owned()],
        projects: vec![project.to_owned()],
        ..app.query()
    };
    let path = "/application.ApplicationService/Get";
    let found: Result<Application, Status> = client.unary(path, query).await;
    match found.map_err(Failure::from) {
        Ok(app) => return Ok(Some(app)),
        Err(e) if e.status == Some(Code::NotFound) => {}
        Err(e) => return Err(e),
    }
    // It may be in another project now.
    match super::get(client, app, None).await {
        Ok(app) => Ok(Some(app)),
        Err(e) if is_gone(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Without a project, the server answers about what does not exist as about what is forbidden.
fn is_gone(e: &Failure) -> bool {
    matches!(e.status, Some(Code::NotFound | Code::PermissionDenied))
}

/// An error is no answer: what is wrong for longer is met by the stream, too.
async fn is_deleted(client: &Client, app: &AppRef) -> bool {
    let found = super::get(client, app, None).await;
    found.is_err_and(|e| is_gone(&e))
}

/// Starts watching before the deletion, so that its end is not missed.
pub async fn until_deleted<F>(client: &Client, app: &AppRef, delete: F) -> Result<(), Failure>
where
    F: Future<Output = Result<ApplicationResponse, Status>>,
{
    let mut events = watch(client, app, "").await?;
    delete.await?;
    loop {
        while let Some(Ok(event)) = events.next().await {
            if event.type_ == "DELETED" {
                return Ok(());
            }
        }
        // Opened before the state is read, so that the end is not missed between them.
        events = loop {
            sleep(PAUSE).await;
            // Argo CD's server opens no stream for what does not exist.
            if is_deleted(client, app).await {
                return Ok(());
            }
            match watch(client, app, "").await {
                Ok(events) => break events,
                Err(e) if may_pass(e.code()) => {}
                Err(e) => return Err(e.into()),
            }
        };
        if is_deleted(client, app).await {
            return Ok(());
        }
    }
}
