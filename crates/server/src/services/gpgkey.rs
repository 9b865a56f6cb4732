//! gpgkey.GPGKeyService: the public keys that commits are verified with.

use crate::{
    ApiError,
    access::{Create, Delete, Get, Guard, PublicKeys},
    ports::StoreError,
    state::State,
};
use jiff::Timestamp;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::rpc::gpgkey::{
    GnuPGPublicKey, GnuPGPublicKeyCreateRequest, GnuPGPublicKeyCreateResponse, GnuPGPublicKeyList,
    GnuPGPublicKeyQuery, GnuPGPublicKeyResponse,
};
use tiphys_signatures::{PublicKey, key_id, parse};

const ATTEMPTS: usize = 5;
/// gpg says so of keys that nobody has judged.
const TRUST: &str = "unknown";

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    _: GnuPGPublicKeyQuery,
) -> Result<GnuPGPublicKeyList, ApiError> {
    let keys = state.reach.public_keys::<Get>(&guard).await?;
    let without_data = |key: GnuPGPublicKey| GnuPGPublicKey {
        key_data: String::new(),
        ..key
    };
    Ok(list_of(configured(&keys)?.into_values().map(without_data)))
}

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: GnuPGPublicKeyQuery,
) -> Result<GnuPGPublicKey, ApiError> {
    let keys = state.reach.public_keys::<Get>(&guard).await?;
    let id = key_id(&q.key_id).map_err(|e| ApiError::plain(e.to_string()))?;
    let found = configured(&keys)?.remove(id);
    found.ok_or_else(|| ApiError::plain(format!("no such key: {id}")))
}

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: GnuPGPublicKeyCreateRequest,
) -> Result<GnuPGPublicKeyCreateResponse, ApiError> {
    let text = q.publickey.unwrap_or_default().key_data;
    let mut attempt = 1;
    loop {
        let keys = state.reach.public_keys::<Create>(&guard).await?;
        if text.trim().is_empty() {
            return Err(ApiError::plain("submitted key data is empty".to_owned()));
        }
        let given = parse(&text, now())
            .map_err(|e| ApiError::plain(format!("error validating PGP keys from input: {e}")))?;
        let (skipped, new): (Vec<_>, Vec<_>) = given
            .into_iter()
            .partition(|key| keys.texts().contains_key(&key.id));
        let change = new
            .iter()
            .map(|key| (key.id.clone(), Some(key.data.clone())));
        let change: BTreeMap<_, _> = change.collect();
        let written = match change.is_empty() {
            true => Ok(()),
            false => state.reach.change_public_keys(&keys, &change).await,
        };
        match written {
            Err(StoreError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            written => {
                written?;
                return Ok(GnuPGPublicKeyCreateResponse {
                    created: Some(list_of(new.into_iter().map(shown))),
                    skipped: skipped.into_iter().map(|key| key.id).collect(),
                });
            }
        }
    }
}

pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: GnuPGPublicKeyQuery,
) -> Result<GnuPGPublicKeyResponse, ApiError> {
    let mut attempt = 1;
    loop {
        let keys = state.reach.public_keys::<Delete>(&guard).await?;
        if !keys.texts().contains_key(&q.key_id) {
            return Err(ApiError::plain(format!(
                "no such key configured: {}",
                q.key_id
            )));
        }
        let change = BTreeMap::from([(q.key_id.clone(), None)]);
        match state.reach.change_public_keys(&keys, &change).await {
            Err(StoreError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            written => return Ok(written.map(|()| GnuPGPublicKeyResponse {})?),
        }
    }
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn list_of(items: impl Iterator<Item = GnuPGPublicKey>) -> GnuPGPublicKeyList {
    GnuPGPublicKeyList {
        items: items.collect(),
        ..GnuPGPublicKeyList::default()
    }
}

fn shown(key: PublicKey) -> GnuPGPublicKey {
    GnuPGPublicKey {
        key_id: key.id,
        fingerprint: key.fingerprint,
        owner: key.owner,
        trust: TRUST.to_owned(),
        sub_type: key.sub_type,
        key_data: key.data,
    }
}

/// The keys of the ConfigMap, with their texts as they are there. Each entry is one key, under its id.
fn configured(keys: &PublicKeys) -> Result<BTreeMap<String, GnuPGPublicKey>, ApiError> {
    let one = |(name, text): (&String, &String)| {
        let id = key_id(name).map_err(|e| {
            ApiError::plain(format!(
                "error validating key ID {name:?} in GPG keys configmap: {e}"
            ))
        })?;
        let wrong =
            |why: String| ApiError::plain(format!("error parsing GPG key for entry {id:?}: {why}"));
        let mut found =
            parse(text, now()).map_err(|e| wrong(format!("error validating PGP key: {e}")))?;
        let (Some(key), true) = (found.pop(), found.is_empty()) else {
            return Err(wrong("more than one key found in input data".to_owned()));
        };
        if key.id != id {
            return Err(ApiError::plain(format!(
                "key parsed for entry with key ID '{id}' had different key ID '{}'",
                key.id
            )));
        }
        let key = GnuPGPublicKey {
            key_data: text.clone(),
            ..shown(key)
        };
        Ok((key.key_id.clone(), key))
    };
    keys.texts().iter().map(one).collect()
}
