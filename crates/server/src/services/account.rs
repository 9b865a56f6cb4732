//! account.AccountService. Only `admin` exists, and may do everything.

use crate::{
    ApiError, Code,
    auth::{ADMIN, Caller},
    server::State,
};
use std::sync::Arc;
use tiphys_api::rpc::account::{
    Account, AccountsList, CanIRequest, CanIResponse, GetAccountRequest, ListAccountRequest,
    UpdatePasswordRequest, UpdatePasswordResponse,
};

const RESOURCES: [&str; 12] = [
    "clusters",
    "projects",
    "applications",
    "applicationsets",
    "repositories",
    "write-repositories",
    "certificates",
    "accounts",
    "gpgkeys",
    "logs",
    "exec",
    "extensions",
];
const ACTIONS: [&str; 9] = [
    "get", "create", "update", "delete", "sync", "override", "action", "invoke", "rollback",
];

pub async fn can_i(
    _: Arc<State>,
    caller: Caller,
    q: CanIRequest,
) -> Result<CanIResponse, ApiError> {
    for (known, asked) in [(&ACTIONS[..], &q.action), (&RESOURCES[..], &q.resource)] {
        if !known.contains(&asked.as_str()) {
            return Err(ApiError::invalid(format!(
                "[{}] does not contain {asked}",
                known.join(" ")
            )));
        }
    }
    let value = if caller.username() == ADMIN {
        "yes"
    } else {
        "no"
    };
    Ok(CanIResponse {
        value: value.into(),
    })
}

async fn admin(state: &State) -> Result<Account, ApiError> {
    let settings = state.settings.get().await?;
    Ok(Account {
        name: ADMIN.into(),
        enabled: settings.admin_enabled,
        capabilities: vec!["login".into()],
        tokens: Vec::new(),
    })
}

pub async fn list(
    state: Arc<State>,
    _: Caller,
    _: ListAccountRequest,
) -> Result<AccountsList, ApiError> {
    Ok(AccountsList {
        items: vec![admin(&state).await?],
    })
}

pub async fn get(state: Arc<State>, _: Caller, q: GetAccountRequest) -> Result<Account, ApiError> {
    if q.name != ADMIN {
        let e = ApiError::new(
            Code::NotFound,
            format!("account '{}' does not exist", q.name),
        );
        return Err(e.context(&format!("failed to get account {}", q.name)));
    }
    admin(&state).await
}

pub async fn update_password(
    state: Arc<State>,
    caller: Caller,
    q: UpdatePasswordRequest,
) -> Result<UpdatePasswordResponse, ApiError> {
    if !q.name.is_empty() && q.name != ADMIN {
        return Err(ApiError::not_found(format!(
            "account '{}' does not exist",
            q.name
        )));
    }
    let values = state
        .auth
        .change_password(
            &caller,
            &q.current_password,
            &q.new_password,
            jiff::Timestamp::now(),
        )
        .await?;
    state
        .store
        .set_in_secret(crate::settings::SECRET, &values)
        .await?;
    state.auth.password_changed().await;
    tracing::info!(
        user = caller.username(),
        "the password of admin was changed"
    );
    Ok(UpdatePasswordResponse {})
}
