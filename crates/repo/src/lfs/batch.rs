//! The batch API of LFS servers: where objects are, and their download. Main function:
//! [`download`].
//!
//! The server decides where objects are. Other hosts get the headers that it names for them, never
//! the credentials of the repository.

use super::Pointer;
use crate::{
    RepoAccess, RepoError,
    http::{Clients, signed},
    url::refuse,
};
use futures::{
    StreamExt as _, TryStreamExt as _,
    future::{BoxFuture, FutureExt as _},
};
use reqwest::{
    RequestBuilder, Response, StatusCode, Url,
    header::{
        ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
        HeaderValue, TRANSFER_ENCODING,
    },
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tiphys_api::access::shown_url;

const KIND: &str = "application/vnd.git-lfs+json";
/// Objects that are asked for in one request.
const BATCH: usize = 100;
/// Bytes of an answer to it.
const MAX_ANSWER: u64 = 4 << 20;
/// Headers of one download.
const MAX_HEADERS: usize = 30;
/// Downloads at a time.
const DOWNLOADS: usize = 4;

#[derive(Serialize)]
struct Question<'a> {
    operation: &'static str,
    transfers: [&'static str; 1],
    objects: Vec<Asked<'a>>,
    hash_algo: &'static str,
}

#[derive(Serialize)]
struct Asked<'a> {
    oid: &'a str,
    size: u64,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    transfer: Option<String>,
    objects: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    oid: String,
    actions: Option<Actions>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Actions {
    download: Option<Action>,
}

#[derive(Deserialize)]
struct Action {
    href: String,
    #[serde(default)]
    header: Option<HashMap<String, String>>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

/// The contents of objects, by their pointers.
///
/// # Errors
/// One cannot be had, or is not what its pointer says.
pub(super) async fn download(
    clients: &Clients,
    access: &RepoAccess,
    endpoint: &str,
    wanted: &BTreeMap<Pointer, String>,
) -> Result<Vec<(Pointer, Arc<[u8]>)>, RepoError> {
    let server = Server {
        clients,
        access,
        endpoint,
    };
    let all: Vec<(&Pointer, &String)> = wanted.iter().collect();
    let mut found = Vec::new();
    for some in all.chunks(BATCH) {
        let actions = server.ask(some).await?;
        // Boxed, since it has to be `Send` for every lifetime.
        let mut downloads: Vec<BoxFuture<'_, Result<Arc<[u8]>, RepoError>>> = Vec::new();
        for ((pointer, path), action) in some.iter().zip(actions) {
            downloads.push(server.object(pointer, path, action).boxed());
        }
        let contents: Vec<_> = futures::stream::iter(downloads)
            .buffered(DOWNLOADS)
            .try_collect()
            .await?;
        let pointers = some.iter().map(|(pointer, _)| (*pointer).clone());
        found.extend(pointers.zip(contents));
    }
    Ok(found)
}

struct Server<'a> {
    clients: &'a Clients,
    access: &'a RepoAccess,
    endpoint: &'a str,
}

impl Server<'_> {
    /// Where these objects are, in their order.
    async fn ask(&self, some: &[(&Pointer, &String)]) -> Result<Vec<Action>, RepoError> {
        let url = format!("{}/objects/batch", self.endpoint);
        let parsed = Url::parse(&url).map_err(|e| refuse(&url, &e.to_string()))?;
        let question = Question {
            operation: "download",
            transfers: ["basic"],
            objects: some
                .iter()
                .map(|(pointer, _)| Asked {
                    oid: &pointer.oid,
                    size: pointer.size,
                })
                .collect(),
            hash_algo: "sha256",
        };
        let body = serde_json::to_vec(&question).map_err(|e| RepoError::Internal(e.to_string()))?;
        let _contact = self.clients.contact(self.access, &parsed).await?;
        let request = self.clients.of(self.access, true)?.post(parsed);
        let request = signed(request, self.access)
            .header(ACCEPT, KIND)
            .header(CONTENT_TYPE, KIND)
            .body(body);
        let answer = self.send(&url, request).await?;
        let text = self.clients.body(&url, MAX_ANSWER, answer).await?;
        let answer: Answer = serde_json::from_slice(&text).map_err(|e| RepoError::Corrupt {
            url: shown_url(&url),
            reason: format!("what its Git LFS server answers cannot be read: {e}"),
        })?;
        if let Some(other) = answer.transfer.filter(|t| !t.is_empty() && t != "basic") {
            return Err(self.failed(&url, format!("its transfer {other:?} is not supported")));
        }
        let mut objects: HashMap<String, Object> = answer
            .objects
            .into_iter()
            .map(|object| (object.oid.clone(), object))
            .collect();
        let action = |(pointer, path): &(&Pointer, &String)| {
            let object = objects.remove(&pointer.oid);
            self.action(object, path)
        };
        some.iter().map(action).collect()
    }

    fn action(&self, object: Option<Object>, path: &str) -> Result<Action, RepoError> {
        let Some(object) = object else {
            return Err(self.failed(path, "the server does not answer for it"));
        };
        if let Some(refusal) = object.error {
            let text: String = refusal
                .message
                .chars()
                .filter(|c| !c.is_control())
                .take(300)
                .collect();
            return Err(self.failed(path, format!("{text} ({})", refusal.code)));
        }
        let download = object.actions.and_then(|actions| actions.download);
        download.ok_or_else(|| self.failed(path, "the server does not say where it is"))
    }

    async fn object(
        &self,
        pointer: &Pointer,
        path: &str,
        action: Action,
    ) -> Result<Arc<[u8]>, RepoError> {
        let url = Url::parse(&action.href)
            .map_err(|e| self.failed(path, format!("its address is refused: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(self.failed(path, "its address is neither http nor https"));
        }
        let endpoint = Url::parse(self.endpoint).ok();
        let is_own = endpoint.is_some_and(|own| own.origin() == url.origin());
        let headers = headers(action.header.unwrap_or_default());
        let _contact = self.clients.contact(self.access, &url).await?;
        let mut request = self.clients.of(self.access, is_own)?.get(url);
        if is_own && !headers.contains_key(AUTHORIZATION) {
            request = signed(request, self.access);
        }
        let answer = self.send(&action.href, request.headers(headers)).await?;
        let content = self
            .clients
            .body(&action.href, pointer.size, answer)
            .await?;
        if content.len() as u64 != pointer.size {
            let (got, size) = (content.len(), pointer.size);
            return Err(self.failed(path, format!("it has {got} bytes, not {size}")));
        }
        let digest = crate::ground::hex(&Sha256::digest(&content));
        if digest != pointer.oid {
            let oid = &pointer.oid;
            return Err(self.failed(path, format!("its digest is {digest}, not {oid}")));
        }
        Ok(content.into())
    }

    async fn send(&self, url: &str, request: RequestBuilder) -> Result<Response, RepoError> {
        let answer = request.send().await;
        let answer = answer.map_err(|e| self.clients.failed(url, &e))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(RepoError::AuthFailed {
                url: shown_url(url),
                hint: "",
            }),
            status => Err(RepoError::Status {
                url: shown_url(url),
                status: status.as_u16(),
                retry_after: None,
            }),
        }
    }

    fn failed(&self, path: &str, reason: impl Into<String>) -> RepoError {
        RepoError::Corrupt {
            url: shown_url(&self.access.url),
            reason: format!("Git LFS file {path}: {}", reason.into()),
        }
    }
}

/// The headers that a server wants for a download, without those that say how the request is sent.
fn headers(named: HashMap<String, String>) -> HeaderMap {
    let header = |(name, value): (String, String)| {
        let name = HeaderName::try_from(name).ok()?;
        let is_ours = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name);
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        (!is_ours).then_some((name, value))
    };
    named
        .into_iter()
        .filter_map(header)
        .take(MAX_HEADERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_say_how_a_request_is_sent_are_left_out() {
        let named = [
            ("Authorization", "RemoteAuth a"),
            ("Host", "other"),
            ("content-length", "1"),
            ("x-a", "b"),
            ("bad header", "c"),
        ];
        let named = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let found = headers(named.into());
        let mut names: Vec<&str> = found.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "x-a"]);
    }
}
