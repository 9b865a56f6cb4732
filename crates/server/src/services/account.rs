//! account.AccountService: the accounts of argocd-cm, their passwords and tokens.

use crate::{
    ApiError, Code,
    access::{Action, Guard, Question, Resource},
    auth::{ApiToken, Caller, Capability, Claims, LocalAccount, secret_key},
    settings::Settings,
    state::State,
};
use jiff::Timestamp;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::rpc::account::{
    Account, AccountsList, CanIRequest, CanIResponse, CreateTokenRequest, CreateTokenResponse,
    DeleteTokenRequest, EmptyResponse, GetAccountRequest, ListAccountRequest, Token,
    UpdatePasswordRequest, UpdatePasswordResponse,
};

const ACTIONS: [&str; 9] = [
    "get", "create", "update", "delete", "sync", "rollback", "override", "action", "invoke",
];

/// The name of an object of a project as policies have it: without this control plane's namespace.
fn own_name(resource: &str, name: &str, ours: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    match (resource, &parts[..]) {
        ("applications" | "applicationsets" | "logs" | "exec", [project, namespace, name]) => {
            tiphys_rbac::app_name(project, namespace, name, ours)
        }
        _ => name.to_owned(),
    }
}

pub async fn can_i(
    state: Arc<State>,
    caller: Caller,
    q: CanIRequest,
) -> Result<CanIResponse, ApiError> {
    let known: Vec<&str> = Resource::ALL.iter().map(|r| r.word()).collect();
    // An action may be followed by a path.
    let action = q.action.split('/').next().unwrap_or_default();
    for (known, asked, word) in [
        (&ACTIONS[..], &q.action, action),
        (&known[..], &q.resource, q.resource.as_str()),
    ] {
        if !known.contains(&word) {
            return Err(ApiError::invalid(format!(
                "[{}] does not contain {asked}",
                known.join(" ")
            )));
        }
    }
    // What decides about a rollback.
    let by_sync = q.action == "rollback" && !state.settings.fresh().await?.enforces_rollback()?;
    let action = if by_sync { "sync" } else { &q.action };
    let object = own_name(&q.resource, &q.subresource, &state.options.namespace);
    let yes = Resource::ALL
        .iter()
        .find(|r| r.word() == q.resource)
        .is_some_and(|resource| {
            let question = Question {
                resource: *resource,
                action,
                object: &object,
            };
            state.enforcer.permits(caller.claims.as_ref(), question)
        });
    let value = if yes { "yes" } else { "no" };
    Ok(CanIResponse {
        value: value.into(),
    })
}

fn shown(name: &str, account: &LocalAccount) -> Account {
    let mut tokens: Vec<_> = account.tokens.iter().collect();
    // The newest first.
    tokens.sort_by_key(|token| std::cmp::Reverse(token.iat));
    let tokens = tokens.into_iter().map(|token| Token {
        id: token.id.clone(),
        issued_at: token.iat,
        expires_at: token.exp,
    });
    Account {
        name: name.to_owned(),
        enabled: account.enabled,
        capabilities: account
            .capabilities
            .iter()
            .map(|capability| capability.word().to_owned())
            .collect(),
        tokens: tokens.collect(),
    }
}

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    _: ListAccountRequest,
) -> Result<AccountsList, ApiError> {
    let settings = state.settings.fresh().await?;
    let seen = settings
        .accounts
        .iter()
        .filter(|(name, _)| guard.ask_account(Action::Get, name).is_ok());
    Ok(AccountsList {
        items: seen.map(|(name, account)| shown(name, account)).collect(),
    })
}

/// The account, or Argo CD's words about one that is not there.
fn known<'a>(settings: &'a Settings, name: &str) -> Result<&'a LocalAccount, ApiError> {
    settings
        .accounts
        .get(name)
        .ok_or_else(|| ApiError::new(Code::NotFound, format!("account '{name}' does not exist")))
}

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: GetAccountRequest,
) -> Result<Account, ApiError> {
    guard.ask_account(Action::Get, &q.name)?;
    let settings = state.settings.fresh().await?;
    let account = known(&settings, &q.name)?;
    Ok(shown(&q.name, account))
}

pub async fn update_password(
    state: Arc<State>,
    guard: Guard,
    q: UpdatePasswordRequest,
) -> Result<UpdatePasswordResponse, ApiError> {
    let own = guard.caller().username();
    let name = if q.name.is_empty() { own } else { &q.name };
    let is_local = guard.caller().claims.as_ref().is_none_or(Claims::is_local);
    if name != own || !is_local || own.is_empty() {
        // A user of an identity provider has no account of that name.
        let asked = if is_local { name } else { &q.name };
        guard.ask_account(Action::Update, asked)?;
    }
    let settings = state.settings.fresh().await?;
    if name == own && name.starts_with("proj:") {
        let why = format!("password can only be changed for local users, not user {name:?}");
        return Err(ApiError::invalid(why));
    }
    let values = state
        .auth
        .change_password(
            guard.caller(),
            name,
            &q.current_password,
            &q.new_password,
            Timestamp::now(),
        )
        .await?;
    known(&settings, name)?;
    state.settings.store_account(&values).await?;
    state.auth.password_changed().await;
    tracing::info!(
        user = own,
        account = name,
        "the password of an account was changed"
    );
    Ok(UpdatePasswordResponse {})
}

pub async fn create_token(
    state: Arc<State>,
    guard: Guard,
    q: CreateTokenRequest,
) -> Result<CreateTokenResponse, ApiError> {
    guard.ask_account(Action::Update, &q.name)?;
    if q.expires_in < 0 {
        return Err(ApiError::invalid("expiresIn must not be negative"));
    }
    let id = if q.id.is_empty() {
        uuid::Uuid::new_v4().to_string()
    } else {
        q.id
    };
    let sub = format!("{}:{}", q.name, Capability::ApiKey.word());
    let claims = Claims::token(sub, id, q.expires_in, Timestamp::now());
    known(&*state.settings.fresh().await?, &q.name)?;
    let failed = |e: ApiError| e.within("failed to update account with new token");
    change_tokens(&state, &q.name, |account| {
        if account.tokens.iter().any(|token| token.id == claims.jti) {
            let message = format!("account already has token with id '{}'", claims.jti);
            return Err(ApiError::new(Code::Unknown, message));
        }
        if !account.can(Capability::ApiKey.word()) {
            let message = format!("account '{}' does not have apiKey capability", q.name);
            return Err(ApiError::new(Code::Unknown, message));
        }
        account.tokens.push(ApiToken {
            id: claims.jti.clone(),
            iat: claims.iat,
            exp: claims.exp,
        });
        Ok(())
    })
    .await
    .map_err(failed)?;
    let token = state.auth.sign_token(&claims).await?;
    Ok(CreateTokenResponse { token })
}

pub async fn delete_token(
    state: Arc<State>,
    guard: Guard,
    q: DeleteTokenRequest,
) -> Result<EmptyResponse, ApiError> {
    guard.ask_account(Action::Update, &q.name)?;
    known(&*state.settings.fresh().await?, &q.name)?;
    change_tokens(&state, &q.name, |account| {
        let before = account.tokens.len();
        account.tokens.retain(|token| token.id != q.id);
        if account.tokens.len() == before {
            let message = format!("token with id '{}' does not exist", q.id);
            return Err(ApiError::not_found(message));
        }
        Ok(())
    })
    .await
    .map_err(|e| e.context(&format!("failed to delete account {}", q.name)))?;
    // Streams of this token end.
    state.auth.password_changed().await;
    Ok(EmptyResponse {})
}

async fn change_tokens(
    state: &State,
    name: &str,
    change: impl FnOnce(&mut LocalAccount) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    // Two changes at the same time would lose a token, or keep one that was deleted.
    let _turn = state.account_changes.lock().await;
    let settings = state.settings.fresh().await?;
    let mut account = known(&settings, name)?.clone();
    change(&mut account)?;
    let tokens = serde_json::to_vec(&account.tokens)
        .map_err(|e| ApiError::internal(format!("cannot write the tokens: {e}")))?;
    let values = BTreeMap::from([(secret_key(name, "tokens"), tokens)]);
    state.settings.store_account(&values).await?;
    Ok(())
}
