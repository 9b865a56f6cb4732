//! What a worker and its owner say to each other: frames of a JSON header and a body of bytes.
//!
//! Main types: [`Order`], [`Report`]. Files have numbers: first those of the source, then those of
//! the sources that it refers to, then what was fetched, in the order of the [`Task`].

use super::json::{DEEPEST, Size};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{Error, ErrorKind, Read, Result, Write},
    time::Duration,
};
use tiphys_render::{
    Budget, FileEntry, FileError, FileKind, HelmDetails, ManifestError, Prepared, RenderError,
    RenderParams, SourceRef,
};

/// Limits on the frames of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Longest {
    /// Bytes.
    pub header: usize,
    pub body: usize,
    /// In a header.
    pub values: usize,
    /// What they are to a user: the header, and the body.
    pub named: [&'static str; 2],
}

/// The owner's frames: headers have the values of an Application, bodies files.
pub(crate) const FROM_OWNER: Longest = Longest {
    header: 64 << 20,
    body: 512 << 20,
    values: usize::MAX,
    named: ["the source's options", "the source's files"],
};
/// A worker's frames: headers have messages and paths, bodies rendered objects. What reads them may
/// have been taken over by the content, so this bounds the owner's memory.
pub(crate) const FROM_WORKER: Longest = Longest {
    header: 16 << 20,
    body: 256 << 20,
    values: 500_000,
    named: ["the messages about the result", "the result"],
};

/// What is wrong with a frame that is not sent, or not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} exceeds the limit of {limit}")]
pub(crate) struct TooLarge {
    what: String,
    limit: usize,
}

impl TooLarge {
    /// The cause of `error`.
    pub fn cause(error: &Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Self>().cloned()
    }
}

impl From<TooLarge> for Error {
    fn from(cause: TooLarge) -> Self {
        Self::new(ErrorKind::InvalidData, cause)
    }
}

impl From<TooLarge> for RenderError {
    fn from(cause: TooLarge) -> Self {
        Self::OverBudget {
            what: cause.what,
            limit: cause.limit as u64,
        }
    }
}

const SIZE: &str = "the size of";

/// `what`: [`SIZE`], for example.
fn check(number: usize, limit: usize, what: &str, named: &str) -> Result<()> {
    if number > limit {
        let what = format!("{what} {named}");
        return Err(TooLarge { what, limit }.into());
    }
    Ok(())
}

impl Longest {
    /// Before it is parsed.
    fn check_header(&self, header: &[u8]) -> Result<()> {
        let (size, [named, _]) = (Size::of(header), self.named);
        check(size.values, self.values, "the number of values in", named)?;
        check(size.depth, DEEPEST, "the nesting of", named)
    }
}

/// Paths and names of one [`Report::Expect`], and the bytes of a path about which one answer says
/// something. Both sides keep to them: a worker asks for the rest path by path.
pub(crate) const MOST_EXPECTED: usize = 1000;
pub(crate) const MOST_INSIDE: usize = 8;
pub(crate) const LONGEST_EXPECTED: usize = 4096;

/// Names a parsed chart by all that it was made from.
pub(crate) type ChartKey = [u8; 32];

/// From the owner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Say [`Report::Ready`].
    Check,
    Render(Box<Task>),
    /// To [`Report::Ask`] and [`Report::Expect`]. The body has `content` bytes of the file that was
    /// asked for, and then the files that are expected, or are probably asked for next.
    Answer {
        answer: Answer,
        content: usize,
        ahead: Vec<Ahead>,
    },
    /// To [`Report::Chart`]: use the chart of this key if it is there, else load it.
    Load(Option<ChartKey>),
    /// To [`Report::Loaded`] and [`Report::NotLoaded`]: keep the chart under this key.
    Keep(Option<ChartKey>),
}

/// A render.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub what: What,
    pub refs: Vec<String>,
    pub fetched: Vec<SourceRef>,
    pub several: bool,
    pub budget: Budget,
    /// How long a render may take, and what is left of it.
    pub limit: Duration,
    pub left: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum What {
    Manifests(Box<Prepared>),
    Details(Box<RenderParams>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Kind(Option<FileKind>),
    File {
        exists: bool,
    },
    Entries(Option<Vec<FileEntry>>),
    Path(Option<String>),
    /// To [`Report::Expect`]: all that is known comes ahead.
    Expected,
    Failed(FileError),
}

/// What is at a path that was not asked for by itself, and to which no link leads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ahead {
    pub path: String,
    pub known: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Known {
    /// So many bytes of the body.
    File {
        size: usize,
    },
    Folder,
    Nothing,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It waits for orders. `why_open`: why the kernel does not restrict it.
    Ready {
        why_open: Option<String>,
    },
    Ask {
        files: usize,
        question: Question,
        path: String,
    },
    /// It is about to ask for these paths, and for these names in those that are folders.
    Expect {
        files: usize,
        paths: Vec<String>,
        inside: Vec<String>,
    },
    /// It needs the chart of a folder.
    Chart {
        files: usize,
        folder: String,
    },
    /// The same of the source, with the dependencies that are fetched.
    CompleteChart {
        folder: String,
    },
    /// The chart of the last [`Order::Load`] is there.
    Loaded,
    NotLoaded,
    /// The body has the objects, one a line.
    Manifests {
        objects: usize,
        errors: Vec<ManifestError>,
        warnings: Vec<String>,
    },
    Details {
        helm: Option<HelmDetails>,
        images: Vec<String>,
    },
    Failed(RenderError),
}

/// About a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Question {
    Kind,
    Read,
    List,
    Resolved,
}

/// # Errors
/// [`TooLarge`] is the cause: nothing was sent.
pub(super) fn send(
    to: &mut impl Write,
    header: &impl Serialize,
    body: &[u8],
    longest: Longest,
) -> Result<()> {
    let header = serde_json::to_vec(header)?;
    let [of_header, of_body] = longest.named;
    check(header.len(), longest.header, SIZE, of_header)?;
    check(body.len(), longest.body, SIZE, of_body)?;
    longest.check_header(&header)?;
    let mut frame = Vec::with_capacity(8 + header.len() + body.len());
    for part in [&header[..], body] {
        let length = u32::try_from(part.len()).map_err(|_| ErrorKind::InvalidInput)?;
        frame.extend(length.to_le_bytes());
    }
    frame.extend(&header);
    frame.extend(body);
    to.write_all(&frame)
}

/// The next frame, or `None` if the other side has ended.
pub(super) fn receive<T: DeserializeOwned>(
    from: &mut impl Read,
    longest: Longest,
) -> Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; 8];
    match from.read_exact(&mut lengths) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let (header, body) = lengths.split_at(4);
    let [of_header, of_body] = longest.named;
    let header = part(from, header, (longest.header, of_header))?;
    let body = part(from, body, (longest.body, of_body))?;
    longest.check_header(&header)?;
    Ok(Some((serde_json::from_slice(&header)?, body)))
}

/// Grows with what arrives: a length alone takes no memory.
fn part(from: &mut impl Read, length: &[u8], (limit, named): (usize, &str)) -> Result<Vec<u8>> {
    let length = length.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b));
    check(length, limit, SIZE, named)?;
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SMALL: Longest = Longest {
        header: 40,
        body: 10,
        values: 12,
        named: ["the header", "the body"],
    };

    fn received(mut bytes: &[u8]) -> Result<Option<(Report, Vec<u8>)>> {
        receive(&mut bytes, SMALL)
    }

    fn frame(header: &[u8], body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        for part in [header, body] {
            let length = u32::try_from(part.len()).expect("short");
            frame.extend(length.to_le_bytes());
        }
        [&frame[..], header, body].concat()
    }

    #[test]
    fn frames_arrive_whole_or_not_at_all() {
        let mut sent = Vec::new();
        send(&mut sent, &Report::Loaded, b"body", SMALL).expect("sent");
        let (report, body) = received(&sent).expect("received").expect("a frame");
        assert!(matches!(report, Report::Loaded));
        assert_eq!(body, b"body");
        assert!(received(&[]).expect("the end").is_none());
        for end in 8..sent.len() {
            assert!(received(&sent[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        let long = format!("\"{}\"", "x".repeat(40));
        let many = format!("[{}1]", "1,".repeat(12));
        for (header, body) in [
            (many.as_str(), ""),
            ("", ""),
            ("{", ""),
            ("\"Other\"", ""),
            ("\u{1}", ""),
            ("{\"Chart\":{\"files\":-1,\"folder\":\"\"}}", ""),
            ("\"Loaded\"", "eleven bytes"),
            (long.as_str(), ""),
        ] {
            let got = received(&frame(header.as_bytes(), body.as_bytes()));
            assert!(got.is_err(), "{header:?}");
        }
        assert!(received(&frame(b"\xff\xfe", b"")).is_err());
        // A length that nothing follows.
        assert!(received(&[0xff; 8]).is_err());
        let mut nothing = Vec::new();
        let nested = (0..DEEPEST).fold(json!([]), |inner, _| json!([inner]));
        let (long, many) = (json!("x".repeat(40)), json!(vec![1; 13]));
        let wide = Longest {
            header: 1000,
            values: 1000,
            ..SMALL
        };
        for (header, body, longest, want) in [
            (json!("Loaded"), 11, SMALL, "the size of the body / 10"),
            (long, 0, SMALL, "the size of the header / 40"),
            (many, 0, SMALL, "the number of values in the header / 12"),
            (nested, 0, wide, "the nesting of the header / 127"),
        ] {
            let error = send(&mut nothing, &header, &vec![0; body], longest);
            let error = error.expect_err("it is too large");
            let cause = TooLarge::cause(&error).expect("a cause");
            assert_eq!(format!("{} / {}", cause.what, cause.limit), want);
            assert!(nothing.is_empty());
        }
    }
}
