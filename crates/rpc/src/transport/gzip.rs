//! Compresses responses for clients that accept gzip. Main function: [`compressed`].

use crate::heavy;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use std::io::{self, Write as _};
use tonic::{Status, body::Body};

type Encoder = GzEncoder<Vec<u8>>;

/// Whether a client accepts gzip.
pub fn is_accepted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut values = values.filter_map(|value| value.to_str().ok());
    values.any(|value| {
        value.split(',').any(|coding| {
            let (name, rest) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim() == "gzip" && rest.replace(' ', "") != "q=0"
        })
    })
}

/// The response with a compressed body. What a stream has sent can be read at once.
pub fn compressed(response: Response<Body>) -> Response<Body> {
    if response.headers().contains_key(header::CONTENT_ENCODING) || response.body().is_end_stream()
    {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let coding = HeaderValue::from_static("gzip");
    parts.headers.insert(header::CONTENT_ENCODING, coding);
    parts.headers.remove(header::CONTENT_LENGTH);
    let encoder = Encoder::new(Vec::new(), Compression::fast());
    let frames = futures::stream::unfold(Some((body, encoder)), |state| async move {
        let (mut body, encoder) = state?;
        let data = match body.frame().await {
            None => return Some((encoder.finish().map_err(failed).map(data), None)),
            Some(Err(e)) => return Some((Err(e), None)),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        let packed = match data.len() {
            ..heavy::LARGE => pack(encoder, &data),
            _ => heavy::run(move || pack(encoder, &data)).await,
        };
        match packed {
            Ok((encoder, bytes)) => Some((Ok(bytes), Some((body, encoder)))),
            Err(e) => Some((Err(failed(e)), None)),
        }
    });
    Response::from_parts(parts, Body::new(StreamBody::new(frames.boxed())))
}

fn data(bytes: Vec<u8>) -> Frame<Bytes> {
    Frame::data(bytes.into())
}

fn failed(e: io::Error) -> Status {
    Status::internal(e.to_string())
}

/// Compresses a part, to the end.
fn pack(mut encoder: Encoder, part: &[u8]) -> io::Result<(Encoder, Frame<Bytes>)> {
    encoder.write_all(part)?;
    encoder.flush()?;
    let bytes = std::mem::take(encoder.get_mut());
    Ok((encoder, data(bytes)))
}
