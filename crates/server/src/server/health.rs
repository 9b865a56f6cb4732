//! `/healthz`: whether clients should be sent here, and with `full=true` whether what the server
//! reads can be read.
//!
//! Main function: [`check`]. Anybody may ask, so it reads only what is in memory.

use crate::state::State;
use std::time::Duration;
use tiphys_rpc::Unhealthy;
use tokio::time::timeout;

/// Probes wait no longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// Whether the server is there, and, if the check is full, whether it can read the settings. A full
/// check is the liveness probe of Argo CD's manifests: while Kubernetes cannot be followed the log
/// says so, but to start the server again would only take away what it still knows.
pub(crate) async fn check(state: &State, is_full: bool) -> Result<(), Unhealthy> {
    // On another port than its own it may be asked before it serves.
    if state.stop.get().is_none_or(|stop| stop.is_cancelled()) {
        return Err(Unhealthy::Absent);
    }
    if !state.reach.is_ready() {
        let why = "the Applications are not listed yet";
        return Err(Unhealthy::Broken(why.to_owned()));
    }
    if !is_full {
        return Ok(());
    }
    let why = broken(state).await;
    let told = why.clone().or_else(|| state.reach.problem());
    state.told.tell(told.as_deref().unwrap_or_default());
    why.map_or(Ok(()), |why| Err(Unhealthy::Broken(why)))
}

/// What cannot be read.
async fn broken(state: &State) -> Option<String> {
    match timeout(PATIENCE, state.settings.get()).await {
        Ok(Ok(_)) => None,
        Ok(Err(e)) => Some(e.message),
        Err(_) => Some("the settings cannot be read in time".to_owned()),
    }
}
