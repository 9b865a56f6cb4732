//! The audit log: one record for every call that changes something and for every refusal, in a file
//! of its own and as Kubernetes Events.
//!
//! Main types: [`Audit`], which surrounds calls, and [`AuditOptions`]. [`chain`] has the format and
//! how it is checked. What a call asks for and changes is gathered while it runs ([`Recorder`]):
//! guards tell the permissions, the ports the objects. Nothing is changed while the file cannot be
//! written.

pub mod chain;
mod difference;
mod log;
mod record;
mod refusals;
mod store;
mod work;

pub use log::AuditError;
pub use record::{Asked, Change, Difference, Record, Verdict, Who};

pub(crate) use difference::{between, names};
pub(crate) use store::{RecordedSets, RecordedStore};

use crate::{
    ApiError, Code,
    auth::Caller,
    policy::{Access, Action, Ask},
    ports::{EventRecord, Store},
};
use chain::Head;
use futures::future::BoxFuture;
use log::Log;
use refusals::Refusals;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tiphys_rpc::Reply;
use work::Work;

/// Most permissions and objects of one record.
const MAX_ASKED: usize = 32;
const MAX_CHANGES: usize = 100;
/// Bytes of a message.
const MAX_MESSAGE: usize = 2048;
/// Calls that need a permission to write, and change nothing.
const READING: [&str; 6] = [
    "/repository.RepositoryService/ValidateAccess",
    "/repository.RepositoryService/ValidateWriteAccess",
    "/repository.RepositoryService/ListApps",
    "/repository.RepositoryService/GetAppDetails",
    "/applicationset.ApplicationSetService/Generate",
    "/catalog.CatalogService/PreviewInstall",
];
/// Calls that need no permission, and change what a session is.
const SESSIONS: [&str; 2] = [
    "/session.SessionService/Create",
    "/session.SessionService/Delete",
];

/// Where records go; nowhere by default.
#[derive(Clone, Debug, Default)]
pub struct AuditOptions {
    /// The file that records are appended to.
    pub file: Option<PathBuf>,
    /// Whether each record is also an Event in the control plane's namespace.
    pub events: bool,
}

tokio::task_local! {
    static CALL: Arc<Recorder>;
}

/// What a call asked for and changed.
#[derive(Default)]
struct Recorder(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    user: Option<String>,
    asked: Vec<Asked>,
    changes: Vec<Change>,
}

impl Recorder {
    fn gather(&self, add: impl FnOnce(&mut Gathered)) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Notes a permission that a recorded call asks for. Only a refusal and what writes matter.
pub(crate) fn asked(ask: Ask, permitted: bool, asked: impl FnOnce() -> Asked) {
    if permitted && ask.1 == Action::Get {
        return;
    }
    // A stream and a list ask for each object, and are no calls that are recorded.
    let _ = CALL.try_with(|call| {
        call.gather(|gathered| {
            if gathered.asked.len() < MAX_ASKED {
                gathered.asked.push(asked());
            }
        });
    });
}

/// Notes a change that was made.
pub(crate) fn changed(change: impl FnOnce() -> Change) {
    let _ = CALL.try_with(|call| {
        call.gather(|gathered| {
            if gathered.changes.len() < MAX_CHANGES {
                gathered.changes.push(change());
            }
        });
    });
}

/// Notes the account that a call is for whose caller is not signed in yet.
pub(crate) fn named(user: &str) {
    let _ = CALL.try_with(|call| {
        call.gather(|gathered| gathered.user = Some(user.chars().take(64).collect()));
    });
}

/// Whether a call changes something, as far as its row tells.
pub(crate) fn changes(rpc: &str, access: &Access) -> bool {
    let writes = |asks: &[Ask]| asks.iter().any(|ask| ask.1 != Action::Get);
    let is_writing = match access {
        Access::Asks { always, sometimes } => writes(always) || writes(sometimes),
        Access::Public | Access::SignedIn | Access::Lists(_) => false,
    };
    (is_writing && !READING.contains(&rpc)) || SESSIONS.contains(&rpc)
}

/// Writes the records.
pub(crate) struct Audit {
    log: Option<Arc<Log>>,
    /// Where Events are written, and the control plane's namespace.
    events: Option<(Arc<dyn Store>, String)>,
    refusals: Refusals,
    failures: AtomicU64,
    /// What must not be cut off, also where nothing is recorded.
    pub work: Work,
}

impl Audit {
    /// # Errors
    /// The file cannot be opened, or continued.
    pub fn open(
        options: &AuditOptions,
        store: Arc<dyn Store>,
        namespace: &str,
    ) -> Result<Self, AuditError> {
        let log = match &options.file {
            Some(path) => Some(Arc::new(Log::open(path)?)),
            None => None,
        };
        Ok(Self {
            log,
            events: options.events.then(|| (store, namespace.to_owned())),
            refusals: Refusals::default(),
            failures: AtomicU64::new(0),
            work: Work::default(),
        })
    }

    pub fn is_on(&self) -> bool {
        self.log.is_some() || self.events.is_some()
    }

    /// Records that could not be written at once, or as Events.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Runs a call, and records it if it changed something or was refused.
    pub fn around(
        self: &Arc<Self>,
        rpc: &str,
        is_change: bool,
        caller: &Caller,
        answer: BoxFuture<'static, Result<Reply, ApiError>>,
    ) -> BoxFuture<'static, Result<Reply, ApiError>> {
        let answer = match is_change {
            true => until_cut_off(self.clone(), answer),
            false => answer,
        };
        if !self.is_on() {
            return answer;
        }
        let (audit, rpc, caller) = (self.clone(), rpc.to_owned(), caller.clone());
        Box::pin(async move {
            if is_change {
                audit.ready().await?;
            }
            let recorder = Arc::new(Recorder::default());
            let reply = CALL.scope(recorder.clone(), answer).await;
            let verdict = Verdict::of(reply.as_ref().err().map(|e| e.code));
            if !is_change && verdict != Verdict::Denied {
                return reply;
            }
            let who = Who::of(caller.claims.as_ref(), caller.source.to_string());
            let mut record = Record::new(who, &rpc, verdict);
            recorder.gather(|gathered| {
                if let Some(user) = gathered.user.take() {
                    record.who.user = user;
                    "password".clone_into(&mut record.who.how);
                }
                record.asked = std::mem::take(&mut gathered.asked);
                record.changes = std::mem::take(&mut gathered.changes);
            });
            let has_changed = is_change && (reply.is_ok() || !record.changes.is_empty());
            let error = reply.as_ref().err().cloned();
            match audit.recorded(record, error, caller.source).await {
                Err(e) if has_changed => Err(ApiError::internal(format!(
                    "what was asked for was done, but its record is not in the audit log yet: {e}"
                ))),
                _ => reply,
            }
        })
    }

    /// Records what a page, which is no call, is about to do or was refused. Nothing is done while
    /// that cannot be written.
    pub async fn page(
        self: &Arc<Self>,
        caller: &Caller,
        path: &str,
        outcome: Result<Change, &ApiError>,
    ) -> Result<(), ApiError> {
        if !self.is_on() {
            return Ok(());
        }
        let error = outcome.as_ref().err().copied().cloned();
        let who = Who::of(caller.claims.as_ref(), caller.source.to_string());
        let mut record = Record::new(who, path, Verdict::of(error.as_ref().map(|e| e.code)));
        record.changes.extend(outcome.ok());
        let written = self.recorded(record, error, caller.source).await;
        written.map_err(|e| {
            let why = format!("nothing is opened while there is no audit log: {e}");
            ApiError::new(Code::Unavailable, why)
        })
    }

    /// Records a request that no call was run for.
    pub async fn refused(self: &Arc<Self>, call: &str, source: IpAddr, error: &ApiError) {
        if self.is_on() && Verdict::of(Some(error.code)) == Verdict::Denied {
            let who = Who::of(None, source.to_string());
            let record = Record::new(who, call, Verdict::Denied);
            // The request is refused anyway.
            let _ = self.recorded(record, Some(error.clone()), source).await;
        }
    }

    /// A client that is refused must not keep that from being recorded by going away.
    async fn recorded(
        self: &Arc<Self>,
        record: Record,
        error: Option<ApiError>,
        source: IpAddr,
    ) -> Result<(), AuditError> {
        let audit = self.clone();
        let name = record.call.clone();
        let written = async move { audit.ended(record, error.as_ref(), source).await };
        self.work.unstopped(&name, written).await
    }

    async fn ended(
        &self,
        mut record: Record,
        error: Option<&ApiError>,
        source: IpAddr,
    ) -> Result<(), AuditError> {
        if let Some(e) = error {
            record.code = format!("{:?}", e.code);
            let end = e.message.floor_char_boundary(MAX_MESSAGE);
            e.message[..end].clone_into(&mut record.message);
        }
        if record.verdict == Verdict::Denied {
            match self.refusals.admit(source) {
                Some(suppressed) => record.suppressed = suppressed,
                None => return Ok(()),
            }
        }
        let (shown, verdict) = (summary(&record), record.verdict);
        let head = self.write(Some(record)).await?;
        self.tell(&shown, verdict, head).await;
        Ok(())
    }

    /// Fails while the file cannot be written: nothing may be changed then.
    async fn ready(&self) -> Result<(), ApiError> {
        self.write(None).await.map(drop).map_err(|e| {
            let why = format!("nothing is changed while there is no audit log: {e}");
            ApiError::new(Code::Unavailable, why)
        })
    }

    /// Writes what waits, and a record.
    async fn write(&self, record: Option<Record>) -> Result<Option<Head>, AuditError> {
        let Some(log) = self.log.clone() else {
            return Ok(None);
        };
        let path = || PathBuf::from("(the file)");
        // The disk may be slow.
        let written = tokio::task::spawn_blocking(move || log.write(record)).await;
        let written = written.unwrap_or_else(|e| {
            let why = std::io::Error::other(e);
            Err(AuditError::Write { path: path(), why })
        });
        written.map(Some).inspect_err(|error| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "AUDIT: records are not written, and nothing is changed");
        })
    }

    /// The record as an Event: a witness of the end of the chain besides the file.
    async fn tell(&self, summary: &str, verdict: Verdict, head: Option<Head>) {
        if let Some(Head { seq, hash }) = &head {
            tracing::info!(seq, hash, "audit: {summary}");
        }
        let Some((store, namespace)) = &self.events else {
            return;
        };
        let event = EventRecord {
            api_kind: EventRecord::CONFIG_MAP,
            name: "argocd-cm".to_owned(),
            namespace: namespace.clone(),
            uid: String::new(),
            resource_version: String::new(),
            reason: match verdict {
                Verdict::Allowed | Verdict::Opened => "AuditAllowed",
                Verdict::Denied => "AuditDenied",
                Verdict::Failed => "AuditFailed",
            },
            message: match &head {
                Some(Head { seq, hash }) => format!("{summary}; record {seq}:{hash}"),
                None => summary.to_owned(),
            },
            annotations: BTreeMap::new(),
        };
        if let Err(error) = store.record_event(event).await {
            self.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "AUDIT: a record is not there as an Event");
        }
    }
}

/// The answer, or that the server ends without it: then there is a record of it all the same.
fn until_cut_off(
    audit: Arc<Audit>,
    answer: BoxFuture<'static, Result<Reply, ApiError>>,
) -> BoxFuture<'static, Result<Reply, ApiError>> {
    Box::pin(async move {
        tokio::select! {
            biased;
            reply = answer => reply,
            () = audit.work.cut_off() => {
                let why = "the server ended before this was done, and it may be done in part";
                Err(ApiError::new(Code::Aborted, why))
            }
        }
    })
}

/// A record in one line.
fn summary(record: &Record) -> String {
    let user = match record.who.user.as_str() {
        "" => "nobody",
        user => user,
    };
    let asked = record.asked.iter().find(|a| !a.permitted);
    let asked = asked.or(record.asked.first()).map(|a| {
        let Asked {
            resource,
            action,
            object,
            ..
        } = a;
        format!(" ({resource}, {action}, {object})")
    });
    let verdict = match record.verdict {
        Verdict::Allowed | Verdict::Opened => "allowed",
        Verdict::Denied => "denied",
        Verdict::Failed => "failed",
    };
    format!(
        "{user} from {}: {}{} {verdict}",
        record.who.from,
        record.call,
        asked.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
