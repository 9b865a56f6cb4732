//! What the transports leave in the statuses that they make, so that these are told from those of a
//! server, whatever their messages say.

use http::StatusCode;
use std::{error::Error as _, fmt::Display, sync::Arc};
use tonic::{Code, Status};

/// Something on the way to the server answered with this code of HTTP.
#[derive(Debug, thiserror::Error)]
#[error("status code {0}")]
struct Answered(StatusCode);

/// The connection ended before the answer did.
#[derive(Debug, thiserror::Error)]
#[error("the connection broke")]
struct Broken;

/// The answer broke off.
pub fn broken(why: impl Display) -> Status {
    let mut status = Status::unavailable(format!("error reading from server: {why}"));
    status.set_source(Arc::new(Broken));
    status
}

/// A proxy answered with `http` to a call, as `what` says.
pub fn answered(http: StatusCode, what: &str) -> Status {
    let message = format!("{what} failed with status code {}", http.as_u16());
    // A proxy before the server may want to know who asks; trying again changes nothing.
    let code = match http {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        _ => Code::Unknown,
    };
    let mut status = Status::new(code, message);
    status.set_source(Arc::new(Answered(http)));
    status
}

/// What a proxy answered.
pub fn answer_of_proxy(status: &Status) -> Option<StatusCode> {
    let answered = status.source()?.downcast_ref::<Answered>()?;
    Some(answered.0)
}

/// Whether the connection failed, as opposed to the server's handler, or a proxy.
pub fn is_of_connection(status: &Status) -> bool {
    status.source().is_some() && answer_of_proxy(status).is_none()
}
