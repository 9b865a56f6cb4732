//! Limits on the data that a remote repository may send, enforced while it is received.
//!
//! Main types: [`GitLimits`], and [`Guard`], which counts every received byte. Data over a limit is
//! refused before it is in memory; otherwise anyone who can name a repository could exhaust this
//! process's memory.

use crate::RepoError;
use gix::{
    progress::{Count, Id, MessageLevel, NestedProgress, Progress, Step, StepShared, Unit},
    protocol::transport::{
        Protocol, Service,
        client::{
            self, Account, MessageKind, TransportWithoutIO, WriteMode,
            blocking_io::{
                ExtendedBufRead, HandleProgress, ReadlineBufRead, RequestWriter,
                SetServiceResponse, Transport,
                http::{GetResponse, Http, PostBodyDataKind, PostResponse, reqwest::Remote},
            },
        },
        packetline::PacketLineRef,
    },
};
use std::{
    any::Any,
    borrow::Cow,
    io::{self, BufRead, Read},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Limits for one repository. They apply to each repository and each connection separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitLimits {
    /// Refs that a remote may list.
    pub refs: u64,
    /// Bytes of the list of refs, with the server's capabilities.
    pub advertisement_bytes: u64,
    /// Bytes of one pack, as it is sent.
    pub pack_bytes: u64,
    /// Objects in one pack.
    pub objects: u64,
    /// Bytes of one unpacked object, and of the result of a delta.
    pub object_bytes: u64,
    /// Entries of one folder.
    pub tree_entries: u64,
    /// Nesting of folders.
    pub depth: u64,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitLimit {
    Refs,
    Advertisement,
    Pack,
    Objects,
    Object,
    TreeEntries,
    Depth,
}

impl GitLimit {
    /// The limited quantity, as worded in an error.
    fn what(self) -> &'static str {
        match self {
            Self::Refs => "refs",
            Self::Advertisement => "bytes in its list of refs",
            Self::Pack => "bytes in one pack",
            Self::Objects => "objects in one pack",
            Self::Object => "bytes in one object",
            Self::TreeEntries => "entries in one folder",
            Self::Depth => "nested folders",
        }
    }

    /// The command line flag for it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Refs => "--git-max-refs",
            Self::Advertisement => "--git-max-refs-bytes",
            Self::Pack => "--git-max-pack-bytes",
            Self::Objects => "--git-max-objects",
            Self::Object => "--git-max-object-bytes",
            Self::TreeEntries => "--git-max-folder-entries",
            Self::Depth => "--git-max-folder-depth",
        }
    }
}

impl GitLimits {
    pub const DEFAULT: Self = Self {
        refs: 500_000,
        advertisement_bytes: 32 << 20,
        pack_bytes: 1 << 30,
        objects: 1_000_000,
        object_bytes: 128 << 20,
        tree_entries: 100_000,
        depth: 200,
    };

    pub fn of(&self, limit: GitLimit) -> u64 {
        match limit {
            GitLimit::Refs => self.refs,
            GitLimit::Advertisement => self.advertisement_bytes,
            GitLimit::Pack => self.pack_bytes,
            GitLimit::Objects => self.objects,
            GitLimit::Object => self.object_bytes,
            GitLimit::TreeEntries => self.tree_entries,
            GitLimit::Depth => self.depth,
        }
    }

    /// The error for a repository over the limit.
    pub fn exceeded(&self, limit: GitLimit, url: impl Into<String>) -> RepoError {
        RepoError::OverLimit {
            url: url.into(),
            excess: self.text(limit),
        }
    }

    pub(super) fn text(&self, limit: GitLimit) -> String {
        format!(
            "more than {} {} (raise the limit with {})",
            self.of(limit),
            limit.what(),
            limit.flag()
        )
    }

    /// For gix, which checks the size before it allocates an object. Each thread that reads a pack
    /// may hold several.
    pub(super) fn config(&self) -> [String; 2] {
        [
            format!("gitoxide.objects.allocLimit={}", self.object_bytes),
            "pack.threads=2".to_owned(),
        ]
    }
}

/// Allowance for what is sent with an object: headers, packet lines, read-ahead.
const SLACK: u64 = 1 << 20;

/// Enforces the limits of one connection.
pub(crate) struct Guard {
    pub limits: GitLimits,
    /// Set from outside when the connection times out, and from here when a limit is exceeded.
    stop: Arc<AtomicBool>,
    packing: AtomicBool,
    read: AtomicU64,
    /// How much had been read when the last object of the pack was complete.
    complete: AtomicU64,
    exceeded: OnceLock<GitLimit>,
}

impl Guard {
    pub fn new(limits: GitLimits, stop: &Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            stop: Arc::clone(stop),
            packing: AtomicBool::new(false),
            read: AtomicU64::new(0),
            complete: AtomicU64::new(0),
            exceeded: OnceLock::new(),
        })
    }

    /// From now on a pack is received, not a list of refs.
    pub fn expect_pack(&self) {
        self.packing.store(true, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.complete.store(0, Ordering::Relaxed);
    }

    /// From now on the answer to a push is received, as short as a list of refs.
    pub fn expect_report(&self) {
        self.packing.store(false, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
    }

    pub fn exceeded(&self) -> Option<GitLimit> {
        self.exceeded.get().copied()
    }

    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    fn refuse(&self, limit: GitLimit) {
        self.exceeded.get_or_init(|| limit);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// An error if no more may be read.
    fn check(&self) -> io::Result<()> {
        match self.exceeded() {
            Some(limit) => Err(io::Error::other(self.limits.text(limit))),
            None if self.stop.load(Ordering::Relaxed) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the contact took too long",
            )),
            None => Ok(()),
        }
    }

    fn came(&self, bytes: usize) {
        let bytes = bytes as u64;
        let read = self.read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let incomplete = read.saturating_sub(self.complete.load(Ordering::Relaxed));
        if !self.packing.load(Ordering::Relaxed) {
            if read > self.limits.advertisement_bytes {
                self.refuse(GitLimit::Advertisement);
            }
        } else if read > self.limits.pack_bytes {
            self.refuse(GitLimit::Pack);
        } else if incomplete > self.limits.object_bytes.saturating_add(SLACK) {
            // It is buffered in memory until it is complete.
            self.refuse(GitLimit::Object);
        }
    }
}

/// A reader whose bytes are counted.
pub(super) struct Counted<R> {
    inner: R,
    guard: Arc<Guard>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.guard.check()?;
        let read = self.inner.read(buf)?;
        self.guard.came(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.guard.check()?;
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.guard.came(amount);
        self.inner.consume(amount);
    }
}

impl<R: ReadlineBufRead> ReadlineBufRead for Counted<R> {
    fn readline(&mut self) -> Option<io::Result<gix::Result<PacketLineRef<'_>>>> {
        if let Err(e) = self.guard.check() {
            return Some(Err(e));
        }
        let line = self.inner.readline();
        if let Some(Ok(Ok(PacketLineRef::Data(data)))) = &line {
            self.guard.came(data.len());
        }
        line
    }

    fn readline_str(&mut self, line: &mut String) -> io::Result<usize> {
        self.guard.check()?;
        let read = self.inner.readline_str(line)?;
        self.guard.came(read);
        Ok(read)
    }
}

impl<'a, R: ExtendedBufRead<'a>> ExtendedBufRead<'a> for Counted<R> {
    fn set_progress_handler(&mut self, handle_progress: Option<HandleProgress<'a>>) {
        self.inner.set_progress_handler(handle_progress);
    }

    fn peek_data_line(&mut self) -> Option<io::Result<Result<&[u8], client::Error>>> {
        if let Err(e) = self.guard.check() {
            return Some(Err(e));
        }
        self.inner.peek_data_line()
    }

    fn reset(&mut self, version: Protocol) {
        self.inner.reset(version);
    }

    fn stopped_at(&self) -> Option<MessageKind> {
        self.inner.stopped_at()
    }
}

/// gix's HTTP client, with counted responses.
pub(super) struct CountedHttp {
    inner: Remote,
    guard: Arc<Guard>,
}

impl CountedHttp {
    pub fn new(guard: &Arc<Guard>) -> Self {
        Self {
            inner: Remote::default(),
            guard: Arc::clone(guard),
        }
    }

    fn counted<R>(&self, inner: R) -> Counted<R> {
        Counted {
            inner,
            guard: Arc::clone(&self.guard),
        }
    }
}

impl Http for CountedHttp {
    type Headers = Counted<<Remote as Http>::Headers>;
    type ResponseBody = Counted<<Remote as Http>::ResponseBody>;
    type PostBody = <Remote as Http>::PostBody;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Self::Headers, Self::ResponseBody>> {
        let response = self.inner.get(url, base_url, headers)?;
        Ok(GetResponse {
            headers: self.counted(response.headers),
            body: self.counted(response.body),
        })
    }

    fn post(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        body: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Self::Headers, Self::ResponseBody, Self::PostBody>> {
        let response = self.inner.post(url, base_url, headers, body)?;
        let (headers, body) = (self.counted(response.headers), self.counted(response.body));
        Ok(PostResponse {
            post_body: response.post_body,
            headers,
            body,
        })
    }

    fn configure(&mut self, config: &dyn Any) -> gix::Result {
        self.inner.configure(config)
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.inner.redirected_base_url()
    }
}

/// A non-HTTP connection with counted responses.
pub(super) struct CountedTransport {
    pub inner: Box<dyn Transport + Send>,
    pub guard: Arc<Guard>,
}

impl TransportWithoutIO for CountedTransport {
    fn set_identity(&mut self, identity: Account) -> Result<(), client::Error> {
        self.inner.set_identity(identity)
    }

    fn to_url(&self) -> Cow<'_, gix::bstr::BStr> {
        self.inner.to_url()
    }

    fn supported_protocol_versions(&self) -> &[Protocol] {
        self.inner.supported_protocol_versions()
    }

    fn connection_persists_across_multiple_requests(&self) -> bool {
        self.inner.connection_persists_across_multiple_requests()
    }

    fn configure(&mut self, config: &dyn Any) -> gix::Result {
        self.inner.configure(config)
    }
}

impl Transport for CountedTransport {
    fn handshake<'a>(
        &mut self,
        service: Service,
        extra_parameters: &'a [(&'a str, Option<&'a str>)],
    ) -> Result<SetServiceResponse<'_>, client::Error> {
        let guard = Arc::clone(&self.guard);
        let response = self.inner.handshake(service, extra_parameters)?;
        let refs = response
            .refs
            .map(|inner| Box::new(Counted { inner, guard }) as Box<dyn ReadlineBufRead>);
        Ok(SetServiceResponse { refs, ..response })
    }

    fn request(
        &mut self,
        write_mode: WriteMode,
        on_into_read: MessageKind,
        trace: bool,
    ) -> Result<RequestWriter<'_>, client::Error> {
        let guard = Arc::clone(&self.guard);
        let (writer, inner) = self
            .inner
            .request(write_mode, on_into_read, trace)?
            .into_parts();
        Ok(RequestWriter::new_from_bufread(
            writer,
            Box::new(Counted { inner, guard }),
            write_mode,
            on_into_read,
            trace,
        ))
    }
}

/// gix's progress id for the number of objects in a pack.
const COUNTS_OBJECTS: Id = *b"IWIO";

/// Receives gix's progress while it indexes a pack.
#[derive(Clone)]
pub(super) struct Watch {
    guard: Arc<Guard>,
    id: Id,
    step: StepShared,
}

impl Watch {
    pub fn new(guard: &Arc<Guard>) -> Self {
        Self::part(guard, gix::progress::UNKNOWN)
    }

    fn part(guard: &Arc<Guard>, id: Id) -> Self {
        Self {
            guard: Arc::clone(guard),
            id,
            step: StepShared::default(),
        }
    }
}

impl Count for Watch {
    fn set(&self, step: Step) {
        self.step.store(step, Ordering::Relaxed);
    }

    fn step(&self) -> Step {
        self.step.load(Ordering::Relaxed)
    }

    fn inc_by(&self, step: Step) {
        let count = self.step.fetch_add(step, Ordering::Relaxed) + step;
        if self.id == COUNTS_OBJECTS {
            self.guard
                .complete
                .store(self.guard.read.load(Ordering::Relaxed), Ordering::Relaxed);
            if count as u64 > self.guard.limits.objects {
                self.guard.refuse(GitLimit::Objects);
            }
        }
    }

    fn counter(&self) -> StepShared {
        Arc::clone(&self.step)
    }
}

impl Progress for Watch {
    fn init(&mut self, max: Option<Step>, _: Option<Unit>) {
        // The pack header contains the number of objects.
        if self.id == COUNTS_OBJECTS
            && max.is_some_and(|max| max as u64 > self.guard.limits.objects)
        {
            self.guard.refuse(GitLimit::Objects);
        }
    }

    fn set_name(&mut self, _: String) {}

    fn name(&self) -> Option<String> {
        None
    }

    fn id(&self) -> Id {
        self.id
    }

    fn message(&self, _: MessageLevel, _: String) {}
}

impl NestedProgress for Watch {
    type SubProgress = Self;

    fn add_child(&mut self, _: impl Into<String>) -> Self {
        Self::part(&self.guard, gix::progress::UNKNOWN)
    }

    fn add_child_with_id(&mut self, _: impl Into<String>, id: Id) -> Self {
        Self::part(&self.guard, id)
    }
}
