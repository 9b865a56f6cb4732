//! Calls over gRPC-web, that is over HTTP/1.1. [`WebTransport`] is the main type; it opens one
//! connection per call.

use super::{Connection, MAX_MESSAGE, cause, grpc, net};
use bytes::{Buf as _, Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt as _, try_unfold};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{error::Error as _, io, iter::successors, sync::Arc};
use tiphys_rpc::table::percent_decode;
use tonic::{Code, ConnectError, Status};

/// The bit that marks the last frame, which contains the status.
const TRAILERS: u8 = 0x80;

/// There is no connection on which anything could have been sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotDialed(String);

#[derive(Clone)]
pub struct WebTransport {
    connection: Arc<Connection>,
}

/// A message, or the end with the server's status.
enum Frame {
    Message(Bytes),
    End(Result<(), Status>),
}

impl WebTransport {
    pub fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    async fn post(&self, path: &str, message: &[u8]) -> Result<Response<Incoming>, Status> {
        let c = &self.connection;
        let root = c.root_path.trim_matches('/');
        let target = if root.is_empty() {
            path.to_owned()
        } else {
            format!("/{root}{path}")
        };
        let scheme = if c.plaintext { "http" } else { "https" };
        let text =
            |e: &dyn std::fmt::Display| format!("Post \"{scheme}://{}{target}\": {e}", c.server);
        // Its cause tells it from what a server answers.
        let unreached =
            |e: &dyn std::fmt::Display| Status::from_error(Box::new(io::Error::other(text(e))));
        let io = net::dial(c, "http/1.1")
            .await
            .map_err(|e| Status::from_error(Box::new(NotDialed(text(&e)))))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io))
            .await
            .map_err(|e| unreached(&e))?;
        tokio::spawn(connection);
        let mut request = Request::post(&target)
            .header("host", &c.server)
            .header("user-agent", concat!("tiphys/", env!("CARGO_PKG_VERSION")))
            .header("content-type", "application/grpc-web+proto")
            .header("accept", "application/grpc-web+proto");
        for (name, value) in grpc::headers(c) {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(frame(message)))
            .map_err(|e| Status::invalid_argument(format!("a header is not valid: {e}")))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|e| unreached(&e))?;
        if response.status() != StatusCode::OK {
            let what = format!("POST {scheme}://{}{target}", c.server);
            return Err(cause::answered(response.status(), &what));
        }
        // A call that failed immediately has its status in the headers.
        verdict(response.headers()).unwrap_or(Ok(()))?;
        Ok(response)
    }

    pub async fn unary<Q: prost::Message, R: prost::Message + Default>(
        &self,
        path: &str,
        message: &Q,
    ) -> Result<R, Status> {
        let mut body = Frames {
            body: self.post(path, &message.encode_to_vec()).await?.into_body(),
            buffer: BytesMut::new(),
        };
        let mut reply = None;
        loop {
            match body.next().await? {
                Frame::Message(bytes) => reply = Some(decode(bytes)?),
                Frame::End(verdict) => {
                    return verdict.and_then(|()| {
                        reply.ok_or_else(|| Status::internal("the server sent no message"))
                    });
                }
            }
        }
    }

    pub async fn stream<Q, R>(
        &self,
        path: &str,
        message: &Q,
    ) -> Result<BoxStream<'static, Result<R, Status>>, Status>
    where
        Q: prost::Message,
        R: prost::Message + Default + 'static,
    {
        let frames = Frames {
            body: self.post(path, &message.encode_to_vec()).await?.into_body(),
            buffer: BytesMut::new(),
        };
        let messages = try_unfold(frames, |mut frames| async move {
            match frames.next().await? {
                Frame::Message(bytes) => Ok(Some((decode(bytes)?, frames))),
                Frame::End(verdict) => verdict.map(|()| None),
            }
        });
        Ok(messages.boxed())
    }
}

/// Whether the other side does not speak gRPC-web.
pub fn is_of_transport(status: &Status) -> bool {
    grpc::is_of_transport(status)
        || (status.code() == Code::Unknown && cause::answer_of_proxy(status).is_some())
}

/// Whether the call was surely not sent, over gRPC or gRPC-web: there was no connection for it.
pub fn is_unsent(status: &Status) -> bool {
    successors(status.source(), |&cause| cause.source())
        .any(|cause| cause.is::<NotDialed>() || cause.is::<ConnectError>())
}

/// Whether a proxy says that there are too many requests, or that the server behind it is away. It
/// is what `argocd` tries again, too.
pub fn is_overloaded(status: &Status) -> bool {
    let may_pass = |code: StatusCode| {
        code == StatusCode::TOO_MANY_REQUESTS
            || (code.is_server_error() && code != StatusCode::NOT_IMPLEMENTED)
    };
    cause::answer_of_proxy(status).is_some_and(may_pass)
}

fn frame(message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 5);
    out.push(0);
    out.extend_from_slice(
        &u32::try_from(message.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes(),
    );
    out.extend_from_slice(message);
    out.into()
}

fn decode<R: prost::Message + Default>(bytes: Bytes) -> Result<R, Status> {
    R::decode(bytes)
        .map_err(|e| Status::internal(format!("the server's message is not valid: {e}")))
}

/// The status in headers or trailers; None if they contain none.
fn verdict(headers: &HeaderMap) -> Option<Result<(), Status>> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    let code: i32 = text("grpc-status")?.trim().parse().unwrap_or(2);
    let message = text("grpc-message")
        .map(|message| percent_decode(message.trim()))
        .unwrap_or_default();
    Some(if code == 0 {
        Ok(())
    } else {
        Err(Status::new(Code::from_i32(code), message))
    })
}

/// Splits a body into frames.
struct Frames {
    body: Incoming,
    buffer: BytesMut,
}

impl Frames {
    async fn next(&mut self) -> Result<Frame, Status> {
        loop {
            if let Some(frame) = cut(&mut self.buffer)? {
                return Ok(frame);
            }
            match self.body.frame().await {
                None => {
                    return Ok(Frame::End(Err(cause::broken(
                        "the stream ended without a status",
                    ))));
                }
                Some(Err(e)) => return Err(cause::broken(e)),
                Some(Ok(part)) => match part.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(part) => {
                        if let Some(verdict) = part.trailers_ref().and_then(verdict) {
                            return Ok(Frame::End(verdict));
                        }
                    }
                },
            }
        }
    }
}

/// The first complete frame in the buffer.
fn cut(buffer: &mut BytesMut) -> Result<Option<Frame>, Status> {
    let Some(header) = buffer.first_chunk::<5>() else {
        return Ok(None);
    };
    let [flags, length @ ..] = *header;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(Status::resource_exhausted(format!(
            "a message of {length} bytes is larger than the limit of {MAX_MESSAGE}"
        )));
    }
    if buffer.len() - 5 < length {
        return Ok(None);
    }
    buffer.advance(5);
    let data = buffer.split_to(length).freeze();
    match flags {
        0 => Ok(Some(Frame::Message(data))),
        TRAILERS => Ok(Some(Frame::End(verdict(&trailers(&data)).unwrap_or_else(
            || Err(Status::internal("the server sent no status")),
        )))),
        _ => Err(Status::internal(
            "the server sent a compressed message, which was not asked for",
        )),
    }
}

fn trailers(data: &[u8]) -> HeaderMap {
    let text = String::from_utf8_lossy(data);
    let mut headers = HeaderMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let name = http::HeaderName::try_from(name.trim().to_ascii_lowercase());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::try_from(value.trim())) {
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_with(flags: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = frame(data).to_vec();
        bytes[0] = flags;
        bytes
    }

    #[test]
    fn frames_are_cut_where_they_end() {
        let mut bytes = frame_with(0, b"one");
        bytes.extend(frame_with(
            TRAILERS,
            b"grpc-status:5\r\ngrpc-message:no%20such%20thing\r\n",
        ));
        let mut buffer = BytesMut::new();
        let mut frames = Vec::new();
        for byte in bytes {
            buffer.extend_from_slice(&[byte]);
            frames.extend(cut(&mut buffer).expect("valid frames"));
        }
        assert!(matches!(&frames[0], Frame::Message(m) if m.as_ref() == b"one"));
        assert!(
            matches!(&frames[1], Frame::End(Err(s)) if s.code() == Code::NotFound && s.message() == "no such thing")
        );
        assert_eq!(frames.len(), 2);
    }

    #[test]
    fn bad_frames() {
        assert!(
            cut(&mut BytesMut::from(&[1u8, 0, 0, 0, 0][..])).is_err(),
            "compressed"
        );
        assert!(
            cut(&mut BytesMut::from(&[0u8, 255, 255, 255, 255][..])).is_err(),
            "too long"
        );
        assert!(
            matches!(
                cut(&mut BytesMut::from(&frame_with(TRAILERS, b"x: y")[..])),
                Ok(Some(Frame::End(Err(_))))
            ),
            "no status"
        );
    }

    #[test]
    fn what_a_proxy_says_for_a_server_that_is_away() {
        for (code, expected) in [
            (429, true),
            (500, true),
            (503, true),
            (501, false),
            (404, false),
            (302, false),
        ] {
            let http = StatusCode::from_u16(code).expect("a code");
            let status = cause::answered(http, "POST http://a/b");
            assert_eq!(is_overloaded(&status), expected, "{code}");
            assert!(is_of_transport(&status) && !grpc::is_of_transport(&status));
            // A server that says the same of something else is there.
            let words = Status::new(status.code(), status.message());
            assert!(!is_overloaded(&words) && !is_of_transport(&words));
        }
        let who = cause::answered(StatusCode::UNAUTHORIZED, "POST http://a/b");
        assert_eq!(who.code(), Code::Unauthenticated);
        assert!(!is_of_transport(&who));
    }

    #[test]
    fn what_was_surely_not_sent() {
        let not_dialed = NotDialed("refused".to_owned());
        let not_dialed = Status::from_error(Box::new(not_dialed));
        assert!(is_unsent(&not_dialed) && is_of_transport(&not_dialed));
        let not_connected = ConnectError("refused".into());
        assert!(is_unsent(&Status::from_error(Box::new(not_connected))));
        let reset = io::Error::other("reset");
        assert!(!is_unsent(&Status::from_error(Box::new(reset))));
        assert!(!is_unsent(&Status::unavailable("refused")));
    }

    #[test]
    fn messages_are_decoded() {
        assert_eq!(percent_decode("100%25 \u{fc}%C3%BC%"), "100% \u{fc}\u{fc}%");
    }
}
