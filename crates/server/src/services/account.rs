//! account.AccountService. Only `admin` exists, and may do everything.

use crate::{
    ApiError, Code,
    access::{Action, Guard, Question, Resource},
    auth::{ADMIN, Caller},
    server::State,
};
use std::sync::Arc;
use tiphys_api::rpc::account::{
    Account, AccountsList, CanIRequest, CanIResponse, GetAccountRequest, ListAccountRequest,
    UpdatePasswordRequest, UpdatePasswordResponse,
};

const ACTIONS: [&str; 9] = [
    "get", "create", "update", "delete", "sync", "override", "action", "invoke", "rollback",
];

pub async fn can_i(
    state: Arc<State>,
    caller: Caller,
    q: CanIRequest,
) -> Result<CanIResponse, ApiError> {
    let known: Vec<&str> = Resource::ALL.iter().map(|r| r.word()).collect();
    for (known, asked) in [(&ACTIONS[..], &q.action), (&known[..], &q.resource)] {
        if !known.contains(&asked.as_str()) {
            return Err(ApiError::invalid(format!(
                "[{}] does not contain {asked}",
                known.join(" ")
            )));
        }
    }
    let yes = Resource::ALL
        .iter()
        .find(|r| r.word() == q.resource)
        .is_some_and(|resource| {
            let question = Question {
                resource: *resource,
                action: &q.action,
                object: &q.subresource,
            };
            state.enforcer.permits(caller.claims.as_ref(), question)
        });
    let value = if yes { "yes" } else { "no" };
    Ok(CanIResponse {
        value: value.into(),
    })
}

async fn admin(state: &State) -> Result<Account, ApiError> {
    let settings = state.settings.fresh().await?;
    Ok(Account {
        name: ADMIN.into(),
        enabled: settings.admin_enabled,
        capabilities: vec!["login".into()],
        tokens: Vec::new(),
    })
}

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    _: ListAccountRequest,
) -> Result<AccountsList, ApiError> {
    let mut items = vec![admin(&state).await?];
    items.retain(|account| guard.ask_account(Action::Get, &account.name).is_ok());
    Ok(AccountsList { items })
}

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: GetAccountRequest,
) -> Result<Account, ApiError> {
    guard.ask_account(Action::Get, &q.name).map_err(|e| {
        e.context(&format!(
            "permission denied for account {} with action get",
            q.name
        ))
    })?;
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
    guard: Guard,
    q: UpdatePasswordRequest,
) -> Result<UpdatePasswordResponse, ApiError> {
    if !q.name.is_empty() {
        guard
            .ask_account(Action::Update, &q.name)
            .map_err(|e| e.context("permission denied"))?;
    }
    if !q.name.is_empty() && q.name != ADMIN {
        return Err(ApiError::not_found(format!(
            "account '{}' does not exist",
            q.name
        )));
    }
    let values = state
        .auth
        .change_password(
            guard.caller(),
            &q.current_password,
            &q.new_password,
            jiff::Timestamp::now(),
        )
        .await?;
    state.settings.store_password(&values).await?;
    state.auth.password_changed().await;
    tracing::info!(
        user = guard.caller().username(),
        "the password of admin was changed"
    );
    Ok(UpdatePasswordResponse {})
}
