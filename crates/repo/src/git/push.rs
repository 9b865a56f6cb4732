//! Sends a commit to a remote and moves one of its refs there, with the protocol of `git push`.
//!
//! Main type: [`RefUpdate`]; main function: [`Remote::push`]. gix has the transports, and no push.

use super::{Remote, Store, http, pack::pack};
use crate::{RepoError, url::Location};
use gix::{
    ObjectId,
    credentials::helper::Action,
    protocol::transport::{
        Protocol, Service,
        client::{
            self, MessageKind, WriteMode,
            blocking_io::{ExtendedBufRead, Transport},
        },
        packetline::PacketLineRef,
    },
};
use std::{
    io::{ErrorKind, Read as _, Write as _},
    sync::{Arc, atomic::AtomicBool},
};

/// What a server may answer to one ref.
const MAX_REPORT: usize = 64 << 10;
/// How git's servers word that a ref is no longer where it was.
const MOVED: &[&str] = &[
    "fetch first",
    "non-fast-forward",
    "reference already exists",
    "incorrect old value",
    "failed to update ref",
    "cannot lock ref",
];

/// A ref to move, if it is still where it was.
#[derive(Clone, Debug)]
pub(crate) struct RefUpdate {
    /// `refs/heads/…`.
    pub name: String,
    /// `None`: it does not exist yet.
    pub old: Option<ObjectId>,
    pub new: ObjectId,
}

impl RefUpdate {
    fn command(&self) -> String {
        let null = ObjectId::null(gix::hash::Kind::Sha1);
        let (old, new, name) = (self.old.unwrap_or(null), self.new, &self.name);
        format!(
            "{old} {new} {name}\0report-status agent=tiphys/{}",
            env!("CARGO_PKG_VERSION")
        )
    }
}

impl Remote<'_> {
    /// Sends objects and moves a ref.
    ///
    /// # Errors
    /// [`RepoError::RefMoved`] if the ref is elsewhere: then nothing was changed.
    pub fn push(
        &self,
        store: &Store,
        update: &RefUpdate,
        objects: &[ObjectId],
        stop: &Arc<AtomicBool>,
    ) -> Result<(), RepoError> {
        let pack = pack(store, objects)?;
        let answer = self.transport(stop, Protocol::V1, |mut transport, guard| {
            if matches!(self.location, Location::Http { .. }) {
                transport.configure(&http::options(self.access, self.timeout))?;
            }
            self.handshake(&mut transport)?;
            guard.expect_report();
            send(&mut transport, update, &pack)
        })?;
        judge(&answer, update, self.location.shown())
    }

    /// Announces a push, with credentials once they are asked for. The refs are known already.
    fn handshake(&self, transport: &mut impl Transport) -> gix::Result<()> {
        let refused = match announce(transport) {
            Err(client::Error::Io(e)) if e.kind() == ErrorKind::PermissionDenied => e,
            other => return other.map_err(gix::Error::from_error),
        };
        let url = transport.to_url().into_owned();
        let context = gix::credentials::protocol::Context {
            url: Some(url),
            ..Default::default()
        };
        let Some(found) = self.credentials(Action::Get(context)) else {
            return Err(gix::Error::from_error(refused));
        };
        transport
            .set_identity(found.identity)
            .map_err(gix::Error::from_error)?;
        announce(transport).map_err(gix::Error::from_error)
    }
}

fn announce(transport: &mut impl Transport) -> Result<(), client::Error> {
    let answer = transport.handshake(Service::ReceivePack, &[])?;
    if let Some(mut refs) = answer.refs {
        refs.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn send(
    transport: &mut impl Transport,
    update: &RefUpdate,
    pack: &[u8],
) -> gix::Result<Vec<String>> {
    // With this mode an http request states its length, which some servers insist on.
    let mode = WriteMode::OneLfTerminatedLinePerWriteCall;
    let request = transport.request(mode, MessageKind::Flush, false);
    let mut request = request.map_err(gix::Error::from_error)?;
    let io = gix::Error::from_error;
    request.write_all(update.command().as_bytes()).map_err(io)?;
    request.write_message(MessageKind::Flush).map_err(io)?;
    let (mut writer, mut reader) = request.into_parts();
    writer.write_all(pack).map_err(io)?;
    writer.flush().map_err(io)?;
    // Over http this ends the request.
    drop(writer);
    reader.reset(Protocol::V1);
    let (mut lines, mut size) = (Vec::new(), 0);
    while let Some(line) = reader.readline() {
        let PacketLineRef::Data(data) = line.map_err(io)?? else {
            break;
        };
        size += data.len();
        if size > MAX_REPORT {
            break;
        }
        lines.push(String::from_utf8_lossy(data).trim_end().to_owned());
    }
    Ok(lines)
}

/// What the report says of the ref.
fn judge(report: &[String], update: &RefUpdate, url: String) -> Result<(), RepoError> {
    let of_ref = |verdict: &str| {
        let rest = report.iter().find_map(|line| {
            let rest = line.strip_prefix(verdict)?;
            rest.strip_prefix(update.name.as_str())
        });
        rest.map(|rest| rest.trim().to_owned())
    };
    let refused = |reason: String| RepoError::PushRefused {
        url: url.clone(),
        name: update.name.clone(),
        reason,
    };
    if let Some(reason) = of_ref("ng ") {
        if MOVED.iter().any(|said| reason.contains(said)) {
            let name = update.name.clone();
            return Err(RepoError::RefMoved { url, name });
        }
        return Err(refused(reason));
    }
    let unpacked = report.iter().find_map(|line| line.strip_prefix("unpack "));
    match (unpacked, of_ref("ok ")) {
        (Some("ok"), Some(_)) => Ok(()),
        (Some("ok") | None, _) => Err(refused("the server did not report the result".to_owned())),
        (Some(fault), _) => Err(refused(fault.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ok_for_the_ref_is_a_success() {
        let update = RefUpdate {
            name: "refs/heads/env/dev".to_owned(),
            old: None,
            new: ObjectId::null(gix::hash::Kind::Sha1),
        };
        let ng = |reason: &str| format!("ng refs/heads/env/dev {reason}");
        let cases: [(&[&str], &str); 7] = [
            (&["unpack ok", "ok refs/heads/env/dev"], "ok"),
            (&["unpack ok", &ng("pre-receive hook declined")], "refused"),
            (&["unpack ok", &ng("fetch first")], "moved"),
            (&["unpack ok", &ng("failed to update ref")], "moved"),
            (&["unpack index-pack abnormal exit"], "refused"),
            (&["unpack ok", "ok refs/heads/other"], "refused"),
            (&[], "refused"),
        ];
        for (report, expected) in cases {
            let report: Vec<String> = report.iter().map(|line| (*line).to_owned()).collect();
            let found = match judge(&report, &update, "https://git.example".to_owned()) {
                Ok(()) => "ok",
                Err(RepoError::RefMoved { .. }) => "moved",
                Err(_) => "refused",
            };
            assert_eq!(found, expected, "{report:?}");
        }
    }
}
