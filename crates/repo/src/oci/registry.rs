//! Questions to registries: tags, manifests and blobs, with every credential where it belongs.
//!
//! Main type: [`Registry`]. Nothing that a registry answers is believed: a manifest or a blob is what
//! its digest says, every answer has a largest size, and another host that it redirects to receives
//! no credentials and cannot ask for any.

use super::{
    address::{Address, is_digest},
    auth::{self, Challenge, Trust},
    manifest::Descriptor,
};
use crate::{
    RepoAccess, RepoError, Secret,
    common::Common,
    http::{Clients, retry_after},
    room::{Room, Taken},
    spool::Spool,
};
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, HeaderMap, LINK, LOCATION, WWW_AUTHENTICATE},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

const MAX_REDIRECTS: usize = 5;
/// How often a registry that asks for it is waited for, for each request.
const MAX_WAITS: usize = 3;
/// In seconds: at a time, and for all the requests of a look-up or download together.
const LONGEST_WAIT: u64 = 5;
const ALL_WAITS: u64 = 15;
const MANIFEST_BYTES: u64 = 4 << 20;
const TAGS_BYTES: u64 = 4 << 20;
const TOKEN_BYTES: u64 = 256 << 10;
/// Tags of one repository, and the answers that they come in.
const MAX_TAGS: usize = 100_000;
const MAX_PAGES: usize = 1_000;
/// Repositories whose tokens are remembered.
const TOKENS: u64 = 10_000;
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, */*";
const ANY: &str = "*/*";
const WITHHELD: &str =
    " (its token service is in another domain, which is not sent the credentials)";

/// A repository of a registry, and how it is reached.
pub(crate) struct Place<'a> {
    pub access: &'a RepoAccess,
    pub address: Address,
    /// How many seconds it may still be waited for. Others wait meanwhile for what is looked up.
    patience: AtomicU64,
}

impl<'a> Place<'a> {
    pub fn of(access: &'a RepoAccess, chart: Option<&str>) -> Result<Self, RepoError> {
        let address = Address::of(access, chart)?;
        Ok(Self {
            access,
            address,
            patience: AtomicU64::new(ALL_WAITS),
        })
    }

    /// How long to wait before the registry is asked again, if it says that it wants to be asked a
    /// little later. `helm` does so, too.
    fn wait(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let seconds = retry_after(headers)
            .filter(|_| status == StatusCode::TOO_MANY_REQUESTS)
            .filter(|seconds| *seconds <= LONGEST_WAIT)?;
        // Also who is to ask again at once must not do so for ever.
        let spent = |left: u64| left.checked_sub(seconds.max(1));
        let order = Ordering::Relaxed;
        let spent = self.patience.fetch_update(order, order, spent);
        spent.ok().map(|_| Duration::from_secs(seconds))
    }

    fn has_password(&self) -> bool {
        !(self.access.username.is_empty() && self.access.password.is_empty())
    }

    fn key(&self) -> Key {
        (self.access.fingerprint(), self.address.repository.clone())
    }

    fn corrupt(&self, reason: String) -> RepoError {
        RepoError::Corrupt {
            url: self.address.shown.clone(),
            reason,
        }
    }

    fn refused(&self, hint: &'static str) -> RepoError {
        RepoError::AuthFailed {
            url: self.address.shown.clone(),
            hint,
        }
    }
}

/// What a request is signed with.
#[derive(Clone)]
enum Sign {
    Nothing,
    Password,
    Token(Secret),
}

/// The fingerprint of an access, and a repository.
type Key = ([u8; 32], String);

/// All registries.
pub(crate) struct Registry {
    clients: Clients,
    signs: moka::sync::Cache<Key, (Sign, Instant)>,
}

impl Registry {
    pub fn new(timeout: Duration, common: Arc<Common>) -> Self {
        Self {
            clients: Clients::new(timeout, common, 0),
            signs: moka::sync::Cache::new(TOKENS),
        }
    }

    /// Whether there is a registry that accepts the credentials.
    pub async fn ping(&self, place: &Place<'_>) -> Result<(), RepoError> {
        let answer = self.ask(place, Method::GET, String::new(), ANY).await;
        match answer.and_then(|answer| good(place, answer)) {
            // Some let nobody without credentials know more than that.
            Err(RepoError::AuthFailed { .. }) if !place.access.has_credentials() => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    /// All tags, in the registry's order.
    pub async fn tags(&self, place: &Place<'_>) -> Result<Vec<String>, RepoError> {
        let all = self.all_tags(place);
        // A registry that goes on answering must not be waited for longer than one that does not.
        let in_time = tokio::time::timeout(self.clients.timeout(), all).await;
        in_time.unwrap_or_else(|_| Err(self.clients.timed_out(&place.address.shown)))
    }

    async fn all_tags(&self, place: &Place<'_>) -> Result<Vec<String>, RepoError> {
        #[derive(Deserialize)]
        struct Page {
            tags: Option<Vec<String>>,
        }
        let first = format!("{}/tags/list", place.address.repository);
        let mut query = "n=1000".to_owned();
        let mut asked = BTreeSet::from([query.clone()]);
        let mut all = Vec::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{first}?{query}");
            let answer = good(place, self.ask(place, Method::GET, path, ANY).await?)?;
            let next = next_page(answer.headers());
            let shown = &place.address.shown;
            let body = self.clients.body(shown, TAGS_BYTES, answer).await?;
            let page: Page = serde_json::from_slice(&body)
                .map_err(|e| place.corrupt(format!("its list of tags cannot be read: {e}")))?;
            let page = page.tags.unwrap_or_default();
            let is_empty = page.is_empty();
            all.extend(page);
            if all.len() > MAX_TAGS {
                break;
            }
            match next {
                // The rest is of the same list, wherever the link says that it is. A page may be
                // empty before the last one: what is on it is not for everybody.
                Some(next) if asked.insert(next.clone()) => query = next,
                Some(_) if !is_empty => {
                    return Err(place.corrupt("its list of tags leads back to itself".to_owned()));
                }
                _ => return Ok(all),
            }
        }
        Err(RepoError::OverLimit {
            url: place.address.shown.clone(),
            excess: format!("more than {MAX_TAGS} tags, or more than {MAX_PAGES} pages of them"),
        })
    }

    /// The digest of the manifest that a tag names now; `None`: there is no such tag.
    pub async fn digest(&self, place: &Place<'_>, tag: &str) -> Result<Option<String>, RepoError> {
        let path = format!("{}/manifests/{tag}", place.address.repository);
        // Some registries count how often manifests are read, but not how often they are asked for.
        let answer = self
            .ask(place, Method::HEAD, path.clone(), MANIFEST_TYPES)
            .await?;
        match answer.status() {
            StatusCode::NOT_FOUND => return Ok(None),
            StatusCode::METHOD_NOT_ALLOWED => {}
            _ => {
                let answer = good(place, answer)?;
                let digest = answer.headers().get("docker-content-digest");
                let digest = digest.and_then(|digest| digest.to_str().ok());
                if let Some(digest) = digest.filter(|digest| is_digest(digest)) {
                    return Ok(Some(digest.to_owned()));
                }
            }
        }
        let answer = self.ask(place, Method::GET, path, MANIFEST_TYPES).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let (answer, shown) = (good(place, answer)?, &place.address.shown);
        let manifest = self.clients.body(shown, MANIFEST_BYTES, answer).await?;
        Ok(Some(digest_of(&manifest)))
    }

    /// The manifest with a digest; `None`: there is none.
    pub async fn manifest(
        &self,
        place: &Place<'_>,
        digest: &str,
    ) -> Result<Option<Vec<u8>>, RepoError> {
        let path = format!("{}/manifests/{digest}", place.address.repository);
        let answer = self.ask(place, Method::GET, path, MANIFEST_TYPES).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let (answer, shown) = (good(place, answer)?, &place.address.shown);
        let manifest = self.clients.body(shown, MANIFEST_BYTES, answer).await?;
        verify(place, "manifest", digest, &manifest)?;
        Ok(Some(manifest))
    }

    /// The content of a layer of at most so many bytes.
    pub async fn blob(
        &self,
        place: &Place<'_>,
        layer: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, RepoError> {
        is_acceptable(place, layer, limit)?;
        let path = blob_path(place, layer);
        let answer = good(place, self.ask(place, Method::GET, path, ANY).await?)?;
        // Not a byte more than was announced.
        let shown = &place.address.shown;
        let blob = self.clients.body(shown, layer.size, answer).await?;
        verify(place, "layer", &layer.digest, &blob)?;
        Ok(blob)
    }

    /// The same, written to a file, which is returned at its end.
    pub async fn blob_into(
        &self,
        place: &Place<'_>,
        layer: &Descriptor,
        (file, limit): (File, u64),
        room: &Room,
    ) -> Result<(File, Taken), RepoError> {
        is_acceptable(place, layer, limit)?;
        let request = Request::new(place, Method::GET, &blob_path(place, layer), ANY)?;
        let mut waits = 0;
        let (answer, taken) = loop {
            let taken = self.take(place, layer, room).await?;
            let answer = self.ask_once(place, &request).await?;
            let wait = (waits < MAX_WAITS).then(|| place.wait(answer.status(), answer.headers()));
            let Some(wait) = wait.flatten() else {
                break (good(place, answer)?, taken);
            };
            // Others may have the room meanwhile.
            drop((answer, taken));
            tokio::time::sleep(wait).await;
            waits += 1;
        };
        let mut spool = Spool::new(file);
        let shown = &place.address.shown;
        let received = self
            .clients
            .body_into(shown, layer.size, answer, &mut spool);
        received.await?;
        let (file, sha256) = spool.finish().await?;
        let found = format!("sha256:{sha256}");
        is_as_asked(place, "layer", &layer.digest, &found)?;
        Ok((file, taken))
    }

    /// Room on disk for a layer, before the registry is asked for it: it is not to blame for how long
    /// this takes.
    async fn take(
        &self,
        place: &Place<'_>,
        layer: &Descriptor,
        room: &Room,
    ) -> Result<Taken, RepoError> {
        let patience = self.clients.timeout();
        let taken = room.take_within(patience, layer.size).await?;
        taken.ok_or_else(|| RepoError::NoRoom {
            url: place.address.shown.clone(),
            seconds: patience.as_secs(),
        })
    }

    /// Asks, and asks again if the registry says that it wants to be asked a little later.
    async fn ask(
        &self,
        place: &Place<'_>,
        method: Method,
        path: String,
        accept: &'static str,
    ) -> Result<Response, RepoError> {
        let request = Request::new(place, method, &path, accept)?;
        for _ in 0..MAX_WAITS {
            let answer = self.ask_once(place, &request).await?;
            let Some(wait) = place.wait(answer.status(), answer.headers()) else {
                return Ok(answer);
            };
            drop(answer);
            tokio::time::sleep(wait).await;
        }
        self.ask_once(place, &request).await
    }

    /// Asks, signs if that is wanted, and asks once more.
    async fn ask_once(&self, place: &Place<'_>, request: &Request) -> Result<Response, RepoError> {
        let known = self.known(place);
        let (answer, is_own) = self.follow(place, request, &known).await?;
        if answer.status() != StatusCode::UNAUTHORIZED || !is_own {
            return Ok(answer);
        }
        let (sign, hint) = self
            .negotiate(place, answer.headers(), &request.url)
            .await?;
        let (answer, _) = self.follow(place, request, &sign).await?;
        match answer.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(place.refused(hint)),
            _ => Ok(answer),
        }
    }

    fn known(&self, place: &Place<'_>) -> Sign {
        if !place.access.bearer_token.is_empty() {
            return Sign::Token(place.access.bearer_token.clone());
        }
        match self.signs.get(&place.key()) {
            Some((sign, until)) if Instant::now() < until => sign,
            _ => Sign::Nothing,
        }
    }

    /// Follows redirects. Also returns whether the answer is the registry's own.
    async fn follow(
        &self,
        place: &Place<'_>,
        request: &Request,
        sign: &Sign,
    ) -> Result<(Response, bool), RepoError> {
        let (mut url, mut is_own) = (request.url.clone(), true);
        for _ in 0..=MAX_REDIRECTS {
            let _share = self.clients.contact(place.access, &url).await?;
            let client = self.clients.of(place.access, is_own)?;
            let asked = client
                .request(request.method.clone(), url.clone())
                .header(ACCEPT, request.accept);
            let asked = match sign {
                _ if !is_own => asked,
                Sign::Nothing => asked,
                Sign::Password => {
                    asked.basic_auth(&place.access.username, Some(place.access.password.expose()))
                }
                Sign::Token(token) => asked.bearer_auth(token.expose()),
            };
            let answer = asked.send().await;
            let answer = answer.map_err(|e| self.clients.failed(&place.address.shown, &e))?;
            let location = answer.headers().get(LOCATION);
            let location = location.filter(|_| answer.status().is_redirection());
            let Some(location) = location else {
                return Ok((answer, is_own));
            };
            let next = location.to_str().ok().and_then(|to| url.join(to).ok());
            let mut next = next.filter(|next| next.scheme() == "https" || stays_plain(&url, next));
            if let Some(next) = &mut next {
                // They would be sent as credentials of the registry's own making.
                let _ = next.set_username("");
                let _ = next.set_password(None);
            }
            let refused =
                || place.corrupt("it redirects to where nothing may be fetched".to_owned());
            let next = next.ok_or_else(refused)?;
            is_own = is_own && next.origin() == request.url.origin();
            url = next;
        }
        Err(place.corrupt(format!("it redirects more than {MAX_REDIRECTS} times")))
    }

    /// How the registry wants requests to be signed, and what to say if that does not help.
    async fn negotiate(
        &self,
        place: &Place<'_>,
        headers: &HeaderMap,
        asked: &Url,
    ) -> Result<(Sign, &'static str), RepoError> {
        let written = headers.get_all(WWW_AUTHENTICATE).iter();
        let challenge = auth::challenge(written.filter_map(|header| header.to_str().ok()));
        if !place.access.bearer_token.is_empty() {
            return Err(place.refused(""));
        }
        match challenge {
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => {
                let service = Service {
                    realm,
                    service,
                    scope,
                };
                self.token(place, &service, asked).await
            }
            Some(Challenge::Basic) if place.has_password() => {
                let until = Instant::now() + Duration::from_secs(3600);
                self.signs.insert(place.key(), (Sign::Password, until));
                Ok((Sign::Password, ""))
            }
            _ => Err(place.refused("")),
        }
    }

    async fn token(
        &self,
        place: &Place<'_>,
        service: &Service,
        asked: &Url,
    ) -> Result<(Sign, &'static str), RepoError> {
        let broken = |reason: &str| place.corrupt(format!("its token service {reason}"));
        let mut realm = Url::parse(&service.realm).map_err(|_| broken("has no valid address"))?;
        let _ = realm.set_username("");
        let _ = realm.set_password(None);
        let trust = auth::trust(asked, &realm);
        if trust == Trust::Refused {
            return Err(broken(
                "is not asked: it is neither https nor of a registry over http",
            ));
        }
        let is_signed = trust == Trust::Credentials && place.has_password();
        let withheld = trust == Trust::Nothing && place.has_password();
        let hint = if withheld { WITHHELD } else { "" };
        if !service.service.is_empty() {
            realm
                .query_pairs_mut()
                .append_pair("service", &service.service);
        }
        if let Some(scope) = auth::scope(&place.address, &service.scope) {
            realm.query_pairs_mut().append_pair("scope", &scope);
        }
        let _share = self.clients.contact(place.access, &realm).await?;
        let client = self.clients.of(place.access, trust == Trust::Credentials)?;
        let mut request = client.get(realm);
        if is_signed {
            request =
                request.basic_auth(&place.access.username, Some(place.access.password.expose()));
        }
        let answer = request.send().await;
        let answer = answer.map_err(|e| match self.clients.failed(&place.address.shown, &e) {
            RepoError::Unreachable {
                url,
                reason,
                is_away,
            } => RepoError::Unreachable {
                url,
                reason: format!("its token service: {reason}"),
                is_away,
            },
            e => e,
        })?;
        match answer.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(place.refused(hint)),
            status if !status.is_success() => {
                return Err(RepoError::Status {
                    url: format!("a token for {}", place.address.shown),
                    status: status.as_u16(),
                    retry_after: retry_after(answer.headers()),
                });
            }
            _ => {}
        }
        let shown = &place.address.shown;
        let body = self.clients.body(shown, TOKEN_BYTES, answer).await?;
        let (token, lasts) = auth::token(&body).ok_or_else(|| broken("answers without a token"))?;
        let sign = Sign::Token(token);
        let until = Instant::now() + lasts;
        self.signs.insert(place.key(), (sign.clone(), until));
        Ok((sign, hint))
    }
}

struct Request {
    method: Method,
    url: Url,
    accept: &'static str,
}

impl Request {
    fn new(
        place: &Place<'_>,
        method: Method,
        path: &str,
        accept: &'static str,
    ) -> Result<Self, RepoError> {
        let url = format!("{}/v2/{path}", place.address.origin);
        let url = Url::parse(&url).map_err(|e| place.corrupt(e.to_string()))?;
        Ok(Self {
            method,
            url,
            accept,
        })
    }
}

fn blob_path(place: &Place<'_>, layer: &Descriptor) -> String {
    format!("{}/blobs/{}", place.address.repository, layer.digest)
}

/// Where the registry says that tokens come from.
struct Service {
    realm: String,
    service: String,
    scope: String,
}

/// Whether a redirect leads from http to http: one from https must not lose its protection.
fn stays_plain(from: &Url, to: &Url) -> bool {
    from.scheme() == "http" && to.scheme() == "http"
}

fn good(place: &Place<'_>, answer: Response) -> Result<Response, RepoError> {
    match answer.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(place.refused("")),
        StatusCode::NOT_FOUND => Err(RepoError::NotFound {
            url: place.address.shown.clone(),
        }),
        status if !status.is_success() => Err(RepoError::Status {
            url: place.address.shown.clone(),
            status: status.as_u16(),
            retry_after: retry_after(answer.headers()),
        }),
        _ => Ok(answer),
    }
}

/// The query of the next page of a list.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all(LINK).iter();
    let next = links
        .filter_map(|links| links.to_str().ok())
        .find_map(next_of)?;
    let (_, query) = next.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    (!query.is_empty()).then(|| query.to_owned())
}

/// The target of the next page in `<target>; rel="next", <target>; …`.
fn next_of(links: &str) -> Option<&str> {
    let mut rest = links;
    while let Some((_, link)) = rest.split_once('<') {
        let (target, after) = link.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or_default();
        let is_next = |parameter: &str| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            let mut relations = value.trim().trim_matches('"').split_whitespace();
            name.trim().eq_ignore_ascii_case("rel") && relations.any(|relation| relation == "next")
        };
        if parameters.split([';', ',']).any(is_next) {
            return Some(target);
        }
        rest = after;
    }
    None
}

pub(crate) fn digest_of(content: &[u8]) -> String {
    format!("sha256:{}", crate::ground::hex(&Sha256::digest(content)))
}

fn verify(place: &Place<'_>, what: &str, digest: &str, content: &[u8]) -> Result<(), RepoError> {
    is_as_asked(place, what, digest, &digest_of(content))
}

fn is_as_asked(place: &Place<'_>, what: &str, digest: &str, found: &str) -> Result<(), RepoError> {
    if found == digest {
        return Ok(());
    }
    Err(place.corrupt(format!(
        "what it sends as the {what} {digest} has the digest {found}"
    )))
}

/// Whether a layer may be downloaded.
fn is_acceptable(place: &Place<'_>, layer: &Descriptor, limit: u64) -> Result<(), RepoError> {
    if !is_digest(&layer.digest) {
        return Err(RepoError::Artifact {
            reason: format!("a layer of {} has no sha256 digest", place.address.shown),
        });
    }
    if layer.size > limit {
        return Err(RepoError::OverLimit {
            url: place.address.shown.clone(),
            excess: format!("a layer of more than {limit} bytes"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderValue, RETRY_AFTER};

    /// Of however many requests it consists.
    #[test]
    fn a_look_up_waits_only_so_long() {
        let access = RepoAccess::public("oci://registry.example.com/team/app".to_owned());
        let waits = |seconds: &'static str| {
            let place = Place::of(&access, None).expect("an address");
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(seconds));
            assert_eq!(place.wait(StatusCode::OK, &headers), None);
            let waits = (0..MAX_PAGES).map_while(|_| {
                let status = StatusCode::TOO_MANY_REQUESTS;
                place.wait(status, &headers)
            });
            waits.map(|wait| wait.as_secs()).collect::<Vec<_>>()
        };
        assert_eq!(waits("5"), [5; 3]);
        assert_eq!(waits("4"), [4; 3]);
        assert_eq!(waits("0"), [0; 15]);
        assert!(waits("6").is_empty());
    }

    #[test]
    fn links_to_the_next_page() {
        for (link, query) in [
            (
                r#"</v2/a/tags/list?last=x&n=1000>; rel="next""#,
                Some("last=x&n=1000"),
            ),
            (
                "<https://evil.org/v2/secret/tags/list?last=y>; rel=next",
                Some("last=y"),
            ),
            (r#"</v2/a/tags/list?last=x>; rel="prev""#, None),
            (
                r#"</v2/a/tags/list?last=p>; rel="prev", </v2/a/tags/list?last=a,b>; rel="last next""#,
                Some("last=a,b"),
            ),
            ("</v2/a/tags/list>; rel=next", None),
            ("</v2/a?x; rel=next", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, HeaderValue::from_static(link));
            assert_eq!(next_page(&headers).as_deref(), query, "{link}");
        }
    }

    #[test]
    fn redirects_keep_their_protection() {
        for (from, to, may) in [
            ("http://h/a", "http://other/b", true),
            ("https://h/a", "http://h/a", false),
            ("http://h/a", "ftp://h/a", false),
        ] {
            let url = |text: &str| Url::parse(text).expect("a URL");
            assert_eq!(stays_plain(&url(from), &url(to)), may, "{to}");
        }
    }
}
