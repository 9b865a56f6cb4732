//! Contains a panic in the reconcile of an Application: it is reported, its operation ends, and
//! other Applications continue. Main function: [`contain`].

use super::{
    Memo,
    context::{ReconcileContext, state},
    controller::Controller,
    ending,
};
use crate::runtime;
use tiphys_api::operation::OperationState;
use tiphys_cluster::app_state::AppKey;
use tiphys_engine::sync::OperationPhase;

/// Runs a reconcile. If it panics, the result is `None`, after a running operation has ended with
/// the panic's message.
pub async fn contain<T>(
    controller: &Controller,
    key: &AppKey,
    reconcile: impl Future<Output = T>,
) -> Option<T> {
    let text = match runtime::contain(reconcile).await {
        Ok(answer) => return Some(answer),
        Err(text) => text,
    };
    controller.metrics.panicked(key);
    tracing::error!(
        panic = text,
        "reconciling the Application panicked; it is tried again later"
    );
    // The same cause may make this panic, too. Boxed: it is as large as a reconcile.
    let reported = runtime::contain(Box::pin(report(controller, key, &text))).await;
    if !matches!(reported, Ok(Ok(()))) {
        tracing::error!("and its operation could not be ended");
    }
    None
}

async fn report(
    controller: &Controller,
    key: &AppKey,
    text: &str,
) -> Result<(), super::error::Error> {
    let Some(record) = controller
        .records
        .applications
        .get(&key.namespace, &key.name)
    else {
        return Ok(());
    };
    let mut memo = Memo::default();
    let mut ctx = ReconcileContext::new(controller, key, &mut memo, record)?;
    ctx.event(
        true,
        "InternalError",
        format!("reconciling the Application panicked: {text}"),
    );
    let Some(operation) = ctx.app.operation.as_deref().cloned() else {
        return Ok(());
    };
    let running = matches!(state(&ctx).phase.as_str(), "Running" | "Terminating");
    if !running {
        let state = OperationState {
            operation,
            phase: "Running".into(),
            started_at: Some(ctx.now.into()),
            ..OperationState::default()
        };
        ctx.app.status.operation_state = Some(state.into());
    }
    ending::finish(&mut ctx, OperationPhase::Error, text.to_owned(), None).await?;
    ctx.store().await
}
