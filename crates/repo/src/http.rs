//! HTTP connections to repositories: what every client has in common, and bounded downloads.
//!
//! Main types: [`Downloads`], and [`Clients`] below it. Credentials are sent only to the origin that they belong to, unless
//! the caller says otherwise; a redirect to another host drops them.

use crate::{RepoAccess, RepoError, common::Common, net::late_roots, shares::Contact, url::refuse};
use reqwest::{
    StatusCode,
    header::{
        AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE,
        IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER,
    },
};
use sha2::{Digest as _, Sha256};
use std::{
    borrow::Cow,
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};
use tiphys_api::access::shown_url;

/// Clients with their idle connections that are kept.
const CLIENTS: u64 = 64;
const CLIENT_IDLE: Duration = Duration::from_secs(300);
/// After this, authorities that the system trusts meanwhile count.
const CLIENT_LIFE: Duration = Duration::from_secs(3_600);
const MAX_REDIRECTS: usize = 10;

/// Applies an access to a builder; the blocking and the asynchronous one have the same methods but
/// no common trait.
macro_rules! configured {
    ($builder:expr, $access:expr, $timeout:expr) => {{
        let access: &crate::RepoAccess = $access;
        let mut builder = $builder
            .connect_timeout(crate::http::CONNECT_TIMEOUT)
            .timeout($timeout);
        if !access.ca_data.is_empty() {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(
                access.ca_data.as_bytes(),
            )?);
        }
        if !access.tls_client_cert.is_empty() {
            let pem = format!(
                "{}\n{}",
                access.tls_client_cert,
                access.tls_client_key.expose()
            );
            builder = builder.identity(reqwest::Identity::from_pem(pem.as_bytes())?);
        }
        if access.insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        if !access.proxy.is_empty() {
            let except = reqwest::NoProxy::from_string(&access.no_proxy);
            builder = builder.proxy(reqwest::Proxy::all(&access.proxy)?.no_proxy(except));
        }
        builder
    }};
}
pub(crate) use configured;

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A downloaded document.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub content: Vec<u8>,
    pub about: About,
}

/// What a server said about a document.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// Its content type as the server names it, or empty.
    pub kind: String,
    /// What identifies this version of it.
    pub version: Validators,
}

/// What receives the content of an answer, part by part.
pub(crate) trait Sink: Send {
    /// How many bytes are announced; there may be fewer.
    fn announce(&mut self, _bytes: usize) {}

    fn receive(&mut self, part: &[u8]) -> impl Future<Output = Result<(), RepoError>> + Send;
}

impl Sink for Vec<u8> {
    fn announce(&mut self, bytes: usize) {
        self.reserve_exact(bytes);
    }

    async fn receive(&mut self, part: &[u8]) -> Result<(), RepoError> {
        self.extend_from_slice(part);
        Ok(())
    }
}

/// What a server said about the version of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl Validators {
    /// From [`Self::texts`]; what cannot be a header is left out.
    pub fn new(etag: &str, modified: &str) -> Self {
        let header = |text: &str| (!text.is_empty()).then(|| HeaderValue::from_str(text).ok());
        Self {
            etag: header(etag).flatten(),
            modified: header(modified).flatten(),
        }
    }

    /// The ETag and the time of the last modification; empty where the server named none.
    pub fn texts(&self) -> (String, String) {
        let text = |header: &Option<HeaderValue>| {
            let text = header.as_ref().and_then(|header| header.to_str().ok());
            text.unwrap_or_default().to_owned()
        };
        (text(&self.etag), text(&self.modified))
    }

    fn of(headers: &HeaderMap) -> Self {
        Self {
            etag: headers.get(ETAG).cloned(),
            modified: headers.get(LAST_MODIFIED).cloned(),
        }
    }
}

/// What to download.
pub(crate) struct Question<'a> {
    pub url: &'a str,
    /// Whether the credentials may be sent.
    pub with_credentials: bool,
    /// The largest document to accept.
    pub limit: u64,
    /// The version that is there already.
    pub known: Option<&'a Validators>,
}

/// The HTTP clients of many accesses, with their idle connections.
pub(crate) struct Clients {
    timeout: Duration,
    common: Arc<Common>,
    /// How many redirects a client follows itself.
    redirects: usize,
    /// What the clients call themselves.
    agent: String,
    clients: KeptClients,
    /// The last access with its key: mostly the next question comes with the same one.
    last: Mutex<Option<(RepoAccess, [u8; 32])>>,
}

/// Clients by all that makes them differ.
type KeptClients = moka::sync::Cache<[u8; 32], reqwest::Client>;

fn kept_clients() -> KeptClients {
    moka::sync::Cache::builder()
        .max_capacity(CLIENTS)
        .time_to_idle(CLIENT_IDLE)
        .time_to_live(CLIENT_LIFE)
        .build()
}

/// For those who ask seldom and keep nothing: making a client means to read all authorities that
/// the system trusts, which takes longer than a question.
static COMMON_CLIENTS: LazyLock<KeptClients> = LazyLock::new(kept_clients);

impl Clients {
    pub fn new(timeout: Duration, common: Arc<Common>, redirects: usize) -> Self {
        let clients = kept_clients();
        Self {
            timeout,
            common,
            redirects,
            agent: concat!("tiphys/", env!("CARGO_PKG_VERSION")).to_owned(),
            clients,
            last: Mutex::default(),
        }
    }

    /// Names the clients otherwise.
    pub fn named(mut self, agent: String) -> Self {
        self.agent = agent;
        self
    }

    /// Uses the clients that others of this process left, and leaves them its own.
    pub fn with_common_clients(mut self) -> Self {
        self.clients = COMMON_CLIENTS.clone();
        self
    }

    fn key(&self, access: &RepoAccess) -> [u8; 32] {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, key)) = &*last
            && known == access
        {
            return *key;
        }
        let mut hash = Sha256::new();
        hash.update(access.fingerprint());
        hash.update(self.timeout.as_nanos().to_le_bytes());
        hash.update(self.redirects.to_le_bytes());
        hash.update(&self.agent);
        let key = hash.finalize().into();
        *last = Some((access.clone(), key));
        key
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits for a share of the connections to the host of a URL, and checks where it is.
    pub async fn contact(
        &self,
        access: &RepoAccess,
        url: &reqwest::Url,
    ) -> Result<Contact, RepoError> {
        if is_of_cloud(url) {
            return Err(refuse(url.as_str(), OF_CLOUD));
        }
        let host = url.origin().ascii_serialization();
        let contact = self.common.shares.contact(&host, &access.project);
        match tokio::time::timeout(self.timeout, contact).await {
            Ok(contact) => contact.map_err(|e| RepoError::Internal(e.to_string())),
            Err(_) => Err(RepoError::Busy {
                url: shown_url(url.as_str()),
                seconds: self.timeout.as_secs(),
            }),
        }
    }

    /// Clients that never send credentials do not have the client certificate either.
    pub fn of(
        &self,
        access: &RepoAccess,
        with_credentials: bool,
    ) -> Result<reqwest::Client, RepoError> {
        let access = if with_credentials || access.tls_client_cert.is_empty() {
            Cow::Borrowed(access)
        } else {
            Cow::Owned(RepoAccess {
                tls_client_cert: String::new(),
                ..access.clone()
            })
        };
        let key = self.key(&access);
        if let Some(client) = self.clients.get(&key) {
            return Ok(client);
        }
        let late = is_plain(&access).then(late_roots).transpose();
        let late = late.map_err(|e| refuse(&access.url, &e.to_string()))?;
        let built = || {
            let redirects = match self.redirects {
                0 => reqwest::redirect::Policy::none(),
                most => reqwest::redirect::Policy::custom(move |attempt| {
                    if attempt.previous().len() > most {
                        attempt.error("too many redirects")
                    } else if is_of_cloud(attempt.url()) {
                        attempt.error(OF_CLOUD)
                    } else {
                        attempt.follow()
                    }
                }),
            };
            let builder = reqwest::Client::builder()
                .redirect(redirects)
                .dns_resolver(Arc::new(Names))
                .user_agent(&self.agent);
            let builder = configured!(builder, &access, self.timeout);
            match late {
                Some(tls) => builder.tls_backend_preconfigured(tls).build(),
                None => builder.build(),
            }
        };
        let client = built().map_err(|e| refuse(&access.url, &reason(&e)))?;
        self.clients.insert(key, client.clone());
        Ok(client)
    }

    /// The content of an answer, of at most so many bytes.
    pub async fn body(
        &self,
        url: &str,
        limit: u64,
        answer: reqwest::Response,
    ) -> Result<Vec<u8>, RepoError> {
        let mut content = Vec::new();
        self.body_into(url, limit, answer, &mut content).await?;
        Ok(content)
    }

    /// The same, part by part.
    pub async fn body_into(
        &self,
        url: &str,
        limit: u64,
        mut answer: reqwest::Response,
        sink: &mut impl Sink,
    ) -> Result<(), RepoError> {
        let over = || RepoError::OverLimit {
            url: shown_url(url),
            excess: format!("more than {limit} bytes"),
        };
        let announced = answer.content_length().unwrap_or_default();
        if announced > limit {
            return Err(over());
        }
        sink.announce(usize::try_from(announced).unwrap_or_default());
        let mut left = limit;
        while let Some(chunk) = answer.chunk().await.map_err(|e| self.failed(url, &e))? {
            left = left.checked_sub(chunk.len() as u64).ok_or_else(over)?;
            sink.receive(&chunk).await?;
        }
        Ok(())
    }

    pub fn failed(&self, url: &str, e: &reqwest::Error) -> RepoError {
        if e.is_timeout() {
            return self.timed_out(url);
        }
        RepoError::Unreachable {
            url: shown_url(url),
            reason: reason(e),
            is_away: true,
        }
    }

    pub fn timed_out(&self, url: &str) -> RepoError {
        RepoError::Timeout {
            url: shown_url(url),
            seconds: self.timeout.as_secs(),
        }
    }
}

/// Whether TLS is met only in a redirect or at an address elsewhere, with nothing of its own to trust
/// or to show.
fn is_plain(access: &RepoAccess) -> bool {
    let scheme = access.url.trim_start().get(..7);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
        && access.ca_data.is_empty()
        && access.tls_client_cert.is_empty()
        && !access.insecure
}

/// Downloads documents over http and https.
pub(crate) struct Downloads(Clients);

impl Downloads {
    pub fn new(timeout: Duration, common: Arc<Common>) -> Self {
        Self(Clients::new(timeout, common, MAX_REDIRECTS))
    }

    /// With another User-Agent.
    pub fn named(self, agent: String) -> Self {
        Self(self.0.named(agent))
    }

    /// With the clients that others of this process left.
    pub fn with_common_clients(self) -> Self {
        Self(self.0.with_common_clients())
    }

    /// A document; `None` if the server says that it is the known version.
    pub async fn get(
        &self,
        access: &RepoAccess,
        question: &Question<'_>,
    ) -> Result<Option<Document>, RepoError> {
        let mut content = Vec::new();
        let about = self.get_into(access, question, &mut content).await?;
        Ok(about.map(|about| Document { content, about }))
    }

    /// The same, part by part.
    pub async fn get_into(
        &self,
        access: &RepoAccess,
        question: &Question<'_>,
        sink: &mut impl Sink,
    ) -> Result<Option<About>, RepoError> {
        let url =
            reqwest::Url::parse(question.url).map_err(|e| refuse(question.url, &e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(question.url, "it is neither http nor https"));
        }
        let contact = self.0.contact(access, &url).await?;
        let mut answer = std::pin::pin!(self.ask(access, question, url, sink));
        tokio::select! {
            answer = &mut answer => return answer,
            () = contact.slow_down() => {}
        }
        answer.await
    }

    async fn ask(
        &self,
        access: &RepoAccess,
        question: &Question<'_>,
        url: reqwest::Url,
        sink: &mut impl Sink,
    ) -> Result<Option<About>, RepoError> {
        let client = self.0.of(access, question.with_credentials)?;
        let mut request = client.get(url);
        if question.with_credentials {
            request = signed(request, access);
        }
        if let Some(known) = question.known {
            if let Some(etag) = &known.etag {
                request = request.header(IF_NONE_MATCH, etag);
            } else if let Some(modified) = &known.modified {
                request = request.header(IF_MODIFIED_SINCE, modified);
            }
        }
        let answer = request.send().await;
        let answer = answer.map_err(|e| self.0.failed(question.url, &e))?;
        match answer.status() {
            StatusCode::NOT_MODIFIED if question.known.is_some() => return Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let withheld = !question.with_credentials && access.has_credentials();
                return Err(RepoError::AuthFailed {
                    url: shown_url(question.url),
                    hint: if withheld { WITHHELD } else { "" },
                });
            }
            status if !status.is_success() => {
                return Err(RepoError::Status {
                    url: shown_url(question.url),
                    status: status.as_u16(),
                    retry_after: retry_after(answer.headers()),
                });
            }
            _ => {}
        }
        let version = Validators::of(answer.headers());
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let (url, limit) = (question.url, question.limit);
        self.0.body_into(url, limit, answer, sink).await?;
        Ok(Some(About { kind, version }))
    }
}

const WITHHELD: &str = " (it is not on the server of the chart repository, whose credentials go nowhere else unless helm.passCredentials is set)";

pub(crate) const OF_CLOUD: &str =
    "its address is link-local or a cloud's own, where cloud providers serve credentials";

/// Where clouds answer their machines, besides link-local addresses: AWS, its Pod Identity and
/// Google over IPv6, Alibaba, Azure, Oracle.
const METADATA: [IpAddr; 6] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];

/// Whether the host is an address that only means something to this machine, such as that of a
/// cloud's metadata: nobody's charts are there, but whoever names a URL could read it.
fn is_of_cloud(url: &reqwest::Url) -> bool {
    is_host_of_cloud(url.host_str().unwrap_or_default())
}

pub(crate) fn is_host_of_cloud(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // The system reads a single number, or hexadecimal ones, as an address, and so do URLs.
    let of_numbers = || -> Option<IpAddr> {
        let url = reqwest::Url::parse(&format!("http://{host}/")).ok()?;
        url.host_str()?.parse().ok()
    };
    let address = host.parse::<IpAddr>().ok().or_else(of_numbers);
    address.is_some_and(is_address_of_cloud)
}

fn is_address_of_cloud(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || carried(address).is_some_and(|inner| is_address_of_cloud(inner.into()))
        }
    };
    is_link_local || METADATA.contains(&address)
}

/// The address of IPv4 that one of IPv6 stands for: mapped, compatible, that of a NAT64, also under
/// the prefix for those of a site, or of 6to4.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

/// Looks names up as the system does, without addresses of clouds.
pub(crate) struct Names;

impl reqwest::dns::Resolve for Names {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let usable: Vec<SocketAddr> = found
                .filter(|address| !is_address_of_cloud(address.ip()))
                .collect();
            if usable.is_empty() {
                return Err(OF_CLOUD.into());
            }
            let addresses: reqwest::dns::Addrs = Box::new(usable.into_iter());
            Ok(addresses)
        })
    }
}

pub(crate) fn signed(
    request: reqwest::RequestBuilder,
    access: &RepoAccess,
) -> reqwest::RequestBuilder {
    if !access.authorization.is_empty() {
        return request.header(AUTHORIZATION, access.authorization.expose());
    }
    if !access.bearer_token.is_empty() {
        return request.bearer_auth(access.bearer_token.expose());
    }
    if access.username.is_empty() && access.password.is_empty() {
        return request;
    }
    request.basic_auth(&access.username, Some(access.password.expose()))
}

/// The innermost cause, without the URL, which may hold a password.
pub(crate) fn reason(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// `Retry-After` in seconds, also where it is a date.
pub fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    u64::try_from(at.duration_since(jiff::Timestamp::now()).as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_read_early_where_they_are_met() {
        let plain = || RepoAccess::public(" HTTP://h/charts");
        assert!(is_plain(&plain()));
        for other in [
            RepoAccess::public("https://h/charts"),
            RepoAccess::public("oci://h/charts"),
            RepoAccess::public("http"),
            RepoAccess {
                ca_data: "PEM".to_owned(),
                ..plain()
            },
            RepoAccess {
                tls_client_cert: "PEM".to_owned(),
                ..plain()
            },
            RepoAccess {
                insecure: true,
                ..plain()
            },
        ] {
            assert!(!is_plain(&other), "{other:?}");
        }
    }

    /// Clients are found by all that makes them differ, whichever access was the last one.
    #[test]
    fn each_access_has_its_own_key() {
        let common = Arc::new(Common {
            shares: crate::shares::Shares::new(1),
            contacts: crate::ContactWatch::default(),
            look_ups: crate::common::no_look_ups(),
        });
        let clients = Clients::new(CONNECT_TIMEOUT, common, 1);
        let (one, other) = (
            RepoAccess::public("http://a"),
            RepoAccess::public("http://b"),
        );
        let key = clients.key(&one);
        assert_ne!(clients.key(&other), key);
        assert_eq!(clients.key(&one), key);
        assert_eq!(clients.key(&one), key);
    }

    #[test]
    fn what_only_this_machine_reaches_is_refused() {
        for (url, refused) in [
            ("http://169.254.169.254/latest/meta-data", true),
            ("http://[fe80::1]/", true),
            ("http://[::ffff:169.254.169.254]/", true),
            // As numbers, these are the same address.
            ("http://2852039166/", true),
            ("http://0xa9.0xfe.0xa9.0xfe/", true),
            ("http://[::169.254.169.254]/", true),
            ("http://[64:ff9b::a9fe:a9fe]/", true),
            ("http://[fd00:ec2::254]/latest/meta-data", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("http://[64:ff9b:1::a9fe:a9fe]/", true),
            ("http://[64:ff9b:1:2::a9fe:a9fe]/", true),
            ("http://[2002:a9fe:a9fe::]/", true),
            ("http://[2002:a9fe:a9fe:1::1]/", true),
            ("http://[fd20:ce::254]/", true),
            ("http://100.100.100.200/latest/meta-data", true),
            ("http://[::ffff:100.100.100.200]/", true),
            ("http://168.63.129.16/machine", true),
            ("http://192.0.0.192/opc/v2/", true),
            ("http://[fd00:ec2::253]/", false),
            ("http://[::1]/charts", false),
            ("http://[64:ff9b::10.0.0.1]/charts", false),
            ("http://[64:ff9b:1::10.0.0.1]/charts", false),
            ("http://[2002:a00:1::a9fe:a9fe]/charts", false),
            ("http://127.0.0.1:8080/charts", false),
            ("https://10.0.0.1/charts", false),
            ("https://charts.example.com/", false),
        ] {
            let parsed = reqwest::Url::parse(url).expect(url);
            assert_eq!(is_of_cloud(&parsed), refused, "{url}");
        }
    }

    /// What is not a URL, such as the host of an SSH address, comes as it was written.
    #[test]
    fn numbers_that_are_addresses_are_refused() {
        for (host, refused) in [
            ("2852039166", true),
            ("0xa9fea9fe", true),
            ("0xA9.0xFE.0251.254", true),
            ("169.16689662", true),
            ("169.254.169.254.", true),
            ("fe80::1", true),
            ("[fe80::1]", true),
            ("167772161", false),
            ("git.example.com", false),
            ("", false),
        ] {
            assert_eq!(is_host_of_cloud(host), refused, "{host}");
        }
    }

    /// Case 98 of the hostile sources: it does not matter what a name leads to at another time,
    /// because the address that was looked up is the one that is connected to.
    #[tokio::test]
    async fn names_do_not_lead_to_a_cloud() {
        use reqwest::dns::Resolve as _;
        let found = async |name: &str| {
            let name = name.parse().expect("a name");
            Names.resolve(name).await.map(Iterator::collect::<Vec<_>>)
        };
        // What the system finds for an address is the address.
        for name in ["169.254.169.254", "100.100.100.200"] {
            let refused = found(name).await.expect_err(name);
            assert_eq!(refused.to_string(), OF_CLOUD, "{name}");
        }
        let usable = found("127.0.0.1").await.expect("this machine");
        assert_eq!(usable, [SocketAddr::from(([127, 0, 0, 1], 0))]);
    }
}
