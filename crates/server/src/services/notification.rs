//! notification.NotificationService: the names in the configuration of notifications.

use crate::{ApiError, auth::Caller, state::State};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::rpc::notification::{ListRequest, Named, NamedList};

pub async fn triggers(state: Arc<State>, _: Caller, _: ListRequest) -> Result<NamedList, ApiError> {
    named(&state, "trigger.", |name| Some(name)).await
}

pub async fn templates(
    state: Arc<State>,
    _: Caller,
    _: ListRequest,
) -> Result<NamedList, ApiError> {
    named(&state, "template.", |name| Some(name)).await
}

pub async fn services(state: Arc<State>, _: Caller, _: ListRequest) -> Result<NamedList, ApiError> {
    named(&state, "service.", |key| match key.split_once('.') {
        None => Some(key),
        // The type is in front of a name of its own.
        Some((_, name)) => (!name.contains('.')).then_some(name),
    })
    .await
}

/// The entries with a prefix, sorted, those that do not work included.
async fn named(
    state: &State,
    prefix: &str,
    name: fn(&str) -> Option<&str>,
) -> Result<NamedList, ApiError> {
    let keys = state.reach.notification_keys().await?;
    let names: BTreeSet<&str> = keys
        .iter()
        .filter_map(|key| key.strip_prefix(prefix))
        .filter_map(name)
        .collect();
    let items = names.into_iter().map(|name| Named {
        name: name.to_owned(),
    });
    Ok(NamedList {
        items: items.collect(),
    })
}
