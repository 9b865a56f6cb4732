//! HTTP/2 from Go's gRPC clients on unix sockets. They name the path of the socket as the authority
//! of their requests, which is none by HTTP's rules, and our HTTP/2 refuses the request for it
//! before anybody sees it. So the authority is replaced on the way in.
//!
//! Main type: [`WithAuthority`], a connection between the socket and HTTP/2. It knows frames and
//! headers, and nothing about requests.

use loona_hpack::Decoder;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const AUTHORITY: &[u8] = b"localhost";
/// Length, type, flags and stream.
const HEAD: usize = 9;
/// Largest frame that is sent on: everybody accepts as much.
const MAX_FRAME: usize = 16_384;
/// Largest headers of a request, packed and unpacked.
const MAX_HEADERS: usize = 64 << 10;
/// The table that a client may count on, as long as it is told nothing else.
const TABLE: usize = 4096;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Replaces the authority in what is read; everything else passes as it is.
pub struct WithAuthority<S> {
    inner: S,
    rewrite: Rewrite,
    /// What was rewritten and not read yet, and how much of it was.
    ready: Vec<u8>,
    taken: usize,
    is_over: bool,
}

impl<S> WithAuthority<S> {
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            rewrite: Rewrite::new(),
            ready: Vec::new(),
            taken: 0,
            is_over: false,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithAuthority<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.taken == this.ready.len() && !this.is_over {
            this.ready.clear();
            this.taken = 0;
            let mut chunk = [0; 8192];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut read))?;
            this.is_over = read.filled().is_empty();
            this.rewrite.take(read.filled(), &mut this.ready)?;
        }
        let left = &this.ready[this.taken..];
        let now = left.len().min(out.remaining());
        out.put_slice(&left[..now]);
        this.taken += now;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithAuthority<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

enum At {
    Preface,
    /// Between frames; the head may be incomplete.
    Frame,
    /// Inside of a frame that passes.
    Passing(usize),
    /// Not HTTP/2: everything passes.
    Other,
}

struct Rewrite {
    at: At,
    /// What cannot be decided yet.
    held: Vec<u8>,
    decoder: Decoder<'static>,
    /// The headers of a request, until all parts are there: its flags, its stream, and the parts.
    open: Option<(u8, [u8; 4], Vec<u8>)>,
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Rewrite {
    fn new() -> Self {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE);
        Self {
            at: At::Preface,
            held: Vec::new(),
            decoder,
            open: None,
        }
    }

    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.at {
                At::Other => {
                    out.extend_from_slice(bytes);
                    return Ok(());
                }
                At::Passing(left) => {
                    let now = left.min(bytes.len());
                    out.extend_from_slice(&bytes[..now]);
                    bytes = &bytes[now..];
                    self.at = if now == left {
                        At::Frame
                    } else {
                        At::Passing(left - now)
                    };
                }
                At::Preface => {
                    self.hold(&mut bytes, PREFACE.len());
                    if !PREFACE.starts_with(&self.held) {
                        self.at = At::Other;
                    } else if self.held.len() == PREFACE.len() {
                        self.at = At::Frame;
                    } else {
                        continue;
                    }
                    out.append(&mut self.held);
                }
                At::Frame => self.frame(&mut bytes, out)?,
            }
        }
        Ok(())
    }

    /// Takes from the bytes until as many are held.
    fn hold(&mut self, bytes: &mut &[u8], wanted: usize) {
        let now = wanted.saturating_sub(self.held.len()).min(bytes.len());
        self.held.extend_from_slice(&bytes[..now]);
        *bytes = &bytes[now..];
    }

    fn frame(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.hold(bytes, HEAD);
        let Some((&[a, b, c, kind, flags, s, t, u, v], _)) = self.held.split_first_chunk::<HEAD>()
        else {
            return Ok(());
        };
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let of_headers = kind == HEADERS || kind == CONTINUATION && self.open.is_some();
        if !of_headers {
            out.append(&mut self.held);
            self.at = if length == 0 {
                At::Frame
            } else {
                At::Passing(length)
            };
            return Ok(());
        }
        if length > MAX_HEADERS {
            return Err(broken("the headers of a request are too large"));
        }
        self.hold(bytes, HEAD + length);
        if self.held.len() < HEAD + length {
            return Ok(());
        }
        let frame = std::mem::take(&mut self.held);
        let content = &frame[HEAD..];
        let (first, stream, mut all) = match (kind, self.open.take()) {
            (HEADERS, None) => (flags, [s, t, u, v], fragment(flags, content)?.to_vec()),
            (CONTINUATION, Some((first, stream, mut all))) => {
                all.extend_from_slice(content);
                (first, stream, all)
            }
            _ => return Err(broken("headers in the middle of others")),
        };
        if all.len() > MAX_HEADERS {
            return Err(broken("the headers of a request are too large"));
        }
        if flags & END_HEADERS == 0 {
            self.open = Some((first, stream, all));
            return Ok(());
        }
        all = self.rewritten(&all)?;
        send(first & END_STREAM, stream, &all, out);
        Ok(())
    }

    /// The same headers with another authority, without references to earlier ones.
    fn rewritten(&mut self, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::with_capacity(packed.len() * 2);
        let decoded = self.decoder.decode_with_cb(packed, |name, value| {
            if all.len() > MAX_HEADERS {
                return;
            }
            let is_authority = &*name == b":authority";
            literal(
                &name,
                if is_authority { AUTHORITY } else { &value },
                &mut all,
            );
        });
        decoded.map_err(|_| broken("the headers of a request cannot be read"))?;
        if all.len() > MAX_HEADERS {
            return Err(broken("the headers of a request are too large"));
        }
        Ok(all)
    }
}

/// The headers in a frame, without what may be around them.
fn fragment(flags: u8, content: &[u8]) -> io::Result<&[u8]> {
    let short = || broken("a frame is too short");
    let (padding, rest) = if flags & PADDED == 0 {
        (0, content)
    } else {
        let (padding, rest) = content.split_first().ok_or_else(short)?;
        (usize::from(*padding), rest)
    };
    let before = if flags & PRIORITY == 0 { 0 } else { 5 };
    let end = rest.len().checked_sub(padding).ok_or_else(short)?;
    rest.get(before..end).ok_or_else(short)
}

fn send(end_stream: u8, stream: [u8; 4], all: &[u8], out: &mut Vec<u8>) {
    let mut parts = all.chunks(MAX_FRAME).peekable();
    let mut kind = HEADERS;
    loop {
        let part = parts.next().unwrap_or_default();
        let is_last = parts.peek().is_none();
        let flags =
            if kind == HEADERS { end_stream } else { 0 } | if is_last { END_HEADERS } else { 0 };
        // It is at most MAX_FRAME.
        let length = u32::try_from(part.len()).unwrap_or_default().to_be_bytes();
        out.extend_from_slice(&length[1..]);
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&stream);
        out.extend_from_slice(part);
        if is_last {
            return;
        }
        kind = CONTINUATION;
    }
}

/// A header as it is, which nobody remembers.
fn literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    for text in [name, value] {
        let mut left = text.len();
        if left < 127 {
            out.push(u8::try_from(left).unwrap_or_default());
        } else {
            out.push(127);
            left -= 127;
            while left >= 128 {
                out.push(u8::try_from(left % 128).unwrap_or_default() | 128);
                left /= 128;
            }
            out.push(u8::try_from(left).unwrap_or_default());
        }
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    type Header = (Vec<u8>, Vec<u8>);

    fn frame(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).expect("short").to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], content].concat()
    }

    /// The frames of what comes out: type, flags and content.
    fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, Vec<u8>)> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let length = usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
            assert_eq!(bytes[5..HEAD], [0, 0, 0, 1]);
            all.push((bytes[3], bytes[4], bytes[HEAD..HEAD + length].to_vec()));
            bytes = &bytes[HEAD + length..];
        }
        all
    }

    fn rewritten(input: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let (mut rewrite, mut out) = (Rewrite::new(), Vec::new());
        for chunk in input.chunks(step) {
            rewrite.take(chunk, &mut out)?;
        }
        Ok(out)
    }

    fn headers(more: &str) -> Vec<Header> {
        [
            (":method", "POST"),
            (":authority", "%2Ftmp%2Fa.sock"),
            (":path", "/s/m"),
            ("x", more),
        ]
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .to_vec()
    }

    /// Literals that are remembered, in the order of the headers.
    fn packed(headers: &[Header]) -> Vec<u8> {
        let mut all = Vec::new();
        for (name, value) in headers {
            let at = all.len();
            literal(name, value, &mut all);
            all[at] = 0x40;
        }
        all
    }

    /// However the bytes arrive.
    #[test]
    fn only_the_authority_differs() {
        let long = "long".repeat(5000);
        let mut input = PREFACE.to_vec();
        input.extend(frame(4, 0, &[0, 2, 0, 0, 0, 0]));
        input.extend(frame(HEADERS, END_HEADERS, &packed(&headers("1"))));
        input.extend(frame(0, 0, &[HEADERS, 7, 7]));
        // The second time it is only a reference.
        let again = [0xc1, 0xc0, 0xbf, 0xbe];
        let padded = [&[3, 0, 0, 0, 0, 9][..], &again, &[0, 0, 0]].concat();
        let flags = END_HEADERS | END_STREAM | PADDED | PRIORITY;
        input.extend(frame(HEADERS, flags, &padded));
        let large = packed(&headers(&long));
        let (first, rest) = large.split_at(10);
        input.extend(frame(HEADERS, END_STREAM, first));
        input.extend(frame(CONTINUATION, END_HEADERS, rest));
        input.extend(frame(0, END_STREAM, b"data"));
        for step in [1, 7, 8192, input.len()] {
            let out = rewritten(&input, step).expect("HTTP/2");
            let out = out.strip_prefix(PREFACE).expect("it begins as before");
            let all = frames(out);
            let kinds: Vec<_> = all.iter().map(|(kind, flags, _)| (*kind, *flags)).collect();
            assert_eq!(
                kinds,
                [
                    (4, 0),
                    (HEADERS, END_HEADERS),
                    (0, 0),
                    (HEADERS, END_HEADERS | END_STREAM),
                    (HEADERS, END_STREAM),
                    (CONTINUATION, END_HEADERS),
                    (0, END_STREAM),
                ]
            );
            assert_eq!(
                (&all[2].2[..], &all[6].2[..]),
                (&[HEADERS, 7, 7][..], &b"data"[..])
            );
            let mut decoder = Decoder::new();
            let last = [&all[4].2[..], &all[5].2].concat();
            for (block, more) in [(&all[1].2, "1"), (&all[3].2, "1"), (&last, long.as_str())] {
                let mut want = headers(more);
                want[1].1 = AUTHORITY.to_vec();
                assert_eq!(decoder.decode(block).ok(), Some(want));
            }
        }
    }

    #[test]
    fn what_is_not_http_2_passes() {
        for input in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"PRI * HTTP/2.0\r\n\r\nother",
            b"P",
        ] {
            let out = rewritten(input, 3).expect("it passes");
            // The beginning of the preface is held until more is there.
            assert!(input.starts_with(&out) && (out == input || input == b"P"));
        }
    }

    #[test]
    fn too_much_and_nonsense_end_the_connection() {
        let with =
            |frames: &[Vec<u8>]| rewritten(&[PREFACE.to_vec(), frames.concat()].concat(), 100);
        let part = vec![0; 16_000];
        let many: Vec<_> = (0..9).map(|_| frame(CONTINUATION, 0, &part)).collect();
        let bomb = {
            // One long header, and many references to it.
            let header = (b"x".to_vec(), vec![b'y'; 3000]);
            [packed(&[header]), vec![0xbe; 1000]].concat()
        };
        for (frames, want) in [
            (vec![frame(HEADERS, END_HEADERS, &[0x80])], "cannot be read"),
            (
                vec![frame(HEADERS, END_HEADERS | PADDED, &[9, 0])],
                "too short",
            ),
            (
                vec![frame(HEADERS, END_HEADERS | PRIORITY, &[9, 0])],
                "too short",
            ),
            (
                vec![frame(HEADERS, 0, &[]), frame(HEADERS, 0, &[])],
                "in the middle",
            ),
            ([vec![frame(HEADERS, 0, &[])], many].concat(), "too large"),
            (vec![frame(HEADERS, END_HEADERS, &bomb)], "too large"),
        ] {
            let e = with(&frames).expect_err(want).to_string();
            assert!(e.contains(want), "{e}");
        }
        let mut random = 7u32;
        for _ in 0..2000 {
            let noise: Vec<u8> = (0..60)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (random >> 24).to_be_bytes()[3]
                })
                .collect();
            let _ = with(&[frame(HEADERS, END_HEADERS, &noise), noise]);
        }
    }
}
