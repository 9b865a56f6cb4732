//! Compresses responses for clients that accept gzip or deflate. Main function: [`compressed`].

use crate::heavy;
use bytes::{Bytes, BytesMut};
use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder},
};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use std::io::{self, Write as _};
use tonic::{Status, body::Body};

/// How an answer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    /// Without the header and checksum of zlib, as Go's servers send it; clients read either.
    Deflate,
}

impl Coding {
    fn named(name: &str) -> Option<Self> {
        match name {
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    fn encoder(self) -> Encoder {
        match self {
            Self::Gzip => Encoder::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Self::Deflate => Encoder::Deflate(DeflateEncoder::new(Vec::new(), Compression::fast())),
        }
    }
}

enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Deflate(DeflateEncoder<Vec<u8>>),
}

impl Encoder {
    /// Compresses a part, so that all of it can be read from what is returned.
    fn pack(&mut self, part: &[u8]) -> io::Result<Vec<u8>> {
        Ok(match self {
            Self::Gzip(encoder) => {
                encoder.write_all(part)?;
                encoder.flush()?;
                std::mem::take(encoder.get_mut())
            }
            Self::Deflate(encoder) => {
                encoder.write_all(part)?;
                encoder.flush()?;
                std::mem::take(encoder.get_mut())
            }
        })
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Deflate(encoder) => encoder.finish(),
        }
    }
}

/// The first coding in a client's list that can be used, as Argo CD's server chooses it: by its
/// name alone. One with a weight is not used.
pub fn accepted(headers: &HeaderMap) -> Option<Coding> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut codings = values.flat_map(|value| value.split(','));
    codings.find_map(|coding| Coding::named(coding.trim()))
}

/// The response with a compressed body. What a stream has sent can be read at once.
pub fn compressed(coding: Coding, response: Response<Body>) -> Response<Body> {
    if response.headers().contains_key(header::CONTENT_ENCODING) || response.body().is_end_stream()
    {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let name = HeaderValue::from_static(coding.name());
    parts.headers.insert(header::CONTENT_ENCODING, name);
    parts.headers.remove(header::CONTENT_LENGTH);
    // The size of a stream is not known: each of its messages is sent when it comes.
    let at_once = match body.size_hint().exact() {
        Some(_) => heavy::LARGE,
        None => 0,
    };
    let begin = Some((Some(body), coding.encoder()));
    let frames = futures::stream::unfold(begin, move |state| async move {
        let (body, encoder) = state?;
        let (body, part) = match some(body, at_once).await {
            Ok((None, part)) if part.is_empty() => {
                return Some((encoder.finish().map_err(failed).map(data), None));
            }
            Ok(found) => found,
            Err(e) => return Some((Err(e), None)),
        };
        let packed = match part.len() {
            ..heavy::LARGE => pack(encoder, &part),
            _ => heavy::run(move || pack(encoder, &part)).await,
        };
        match packed {
            Ok((encoder, bytes)) => Some((Ok(bytes), Some((body, encoder)))),
            Err(e) => Some((Err(failed(e)), None)),
        }
    });
    Response::from_parts(parts, Body::new(StreamBody::new(frames.boxed())))
}

/// What a body has next, as many bytes as that, and the body unless it has ended: packed frame by
/// frame, the parts of a long list would hardly get smaller.
async fn some(body: Option<Body>, at_once: usize) -> Result<(Option<Body>, Bytes), Status> {
    let Some(mut body) = body else {
        return Ok((None, Bytes::new()));
    };
    let Some(first) = next(&mut body).await? else {
        return Ok((None, Bytes::new()));
    };
    if first.len() >= at_once {
        return Ok((Some(body), first));
    }
    let mut all = BytesMut::from(first);
    while all.len() < at_once {
        match next(&mut body).await? {
            Some(more) => all.extend_from_slice(&more),
            None => return Ok((None, all.freeze())),
        }
    }
    Ok((Some(body), all.freeze()))
}

async fn next(body: &mut Body) -> Result<Option<Bytes>, Status> {
    let frame = body.frame().await.transpose()?;
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

fn data(bytes: Vec<u8>) -> Frame<Bytes> {
    Frame::data(bytes.into())
}

fn failed(e: io::Error) -> Status {
    Status::internal(e.to_string())
}

/// Compresses a part, to the end.
fn pack(mut encoder: Encoder, part: &[u8]) -> io::Result<(Encoder, Frame<Bytes>)> {
    let packed = encoder.pack(part)?;
    Ok((encoder, data(packed)))
}

#[cfg(test)]
mod tests {
    use super::{Coding, accepted, compressed};
    use crate::Parts;
    use http::{HeaderMap, HeaderValue, Response, header};
    use http_body_util::{BodyExt as _, Full};
    use tonic::body::Body;

    #[tokio::test]
    async fn parts_are_compressed_as_well_as_the_whole() {
        let mut parts = Parts::default();
        for number in 0..1000 {
            let item = format!("{{\"name\":\"app-{number}\"}},");
            parts.push(item.into());
        }
        let whole = Body::new(Full::new(parts.clone().joined()));
        let mut packed = Vec::new();
        for body in [Body::new(parts), whole] {
            let response = compressed(Coding::Gzip, Response::new(body));
            let body = response.into_body().collect().await;
            packed.push(body.expect("a body").to_bytes());
        }
        assert_eq!(packed[0], packed[1]);
    }

    #[test]
    fn the_first_known_coding_is_used() {
        for (accepts, want) in [
            ("", None),
            ("br", None),
            ("gzip, deflate, br", Some(Coding::Gzip)),
            ("br, deflate;q=0.5, gzip", Some(Coding::Gzip)),
            ("gzip; q=0, deflate", Some(Coding::Deflate)),
            ("gzip;q=0.0", None),
            ("deflate;q=1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepts));
            assert_eq!(accepted(&headers), want, "{accepts}");
        }
    }
}
