//! The body of a list, generated piece by piece while it is sent, so that a large list is never in
//! memory as a whole.
//!
//! Main type: [`ListBody`].

use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How many bytes are generated at a time.
const PIECE: usize = 64 * 1024;
const END: &[u8] = b"]}\n";

/// An object of a list, without kind and version, which the items of a typed list do not repeat.
pub struct Item {
    bytes: Bytes,
    /// The byte ranges that are left out.
    left_out: [Range<usize>; 2],
}

impl Item {
    pub fn new(bytes: Bytes, typed: bool) -> Self {
        let left_out = if typed {
            type_members(&bytes)
        } else {
            [0..0, 0..0]
        };
        Self { bytes, left_out }
    }

    fn len(&self) -> usize {
        self.bytes.len()
            - self
                .left_out
                .iter()
                .map(ExactSizeIterator::len)
                .sum::<usize>()
    }

    fn write(&self, out: &mut BytesMut) {
        let [first, second] = &self.left_out;
        out.put_slice(&self.bytes[..first.start]);
        out.put_slice(&self.bytes[first.end..second.start.max(first.end)]);
        out.put_slice(&self.bytes[second.end.max(first.end)..]);
    }
}

/// The ranges of the members `apiVersion` and `kind`, each with the comma after it. Members are
/// sorted, and `metadata` always follows these two.
fn type_members(bytes: &[u8]) -> [Range<usize>; 2] {
    let mut found = [0..0, 0..0];
    let mut start = 1;
    while start < bytes.len() {
        let member = &bytes[start..];
        let end = start + end_of_member(member);
        let with_comma = start..(end + 1).min(bytes.len() - 1);
        if member.starts_with(b"\"apiVersion\":") {
            found[0] = with_comma;
        } else if member.starts_with(b"\"kind\":") {
            found[1] = with_comma;
            break;
        }
        start = end + 1;
    }
    found
}

/// The position of the comma or bracket that ends a member.
fn end_of_member(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at + 1),
            b'{' | b'[' => depth += 1,
            b',' | b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The end of the string whose text begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        if bytes[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    bytes.len()
}

/// The body of a list while it is being sent.
pub struct ListBody {
    /// The part before the first object, until it has been sent.
    head: Option<String>,
    items: std::vec::IntoIter<Item>,
    /// Whether an object has been written, so that the next one needs a comma. The first object
    /// need not be in the first piece.
    begun: bool,
    /// How many bytes are left to send.
    left: u64,
}

impl ListBody {
    pub fn new(head: String, items: Vec<Item>) -> Self {
        let commas = items.len().saturating_sub(1);
        let left = head.len() + items.iter().map(Item::len).sum::<usize>() + commas + END.len();
        Self {
            head: Some(head),
            items: items.into_iter(),
            begun: false,
            left: left as u64,
        }
    }

    /// The next piece; empty once everything has been sent.
    fn piece(&mut self) -> Bytes {
        let mut out =
            BytesMut::with_capacity(PIECE.min(usize::try_from(self.left).unwrap_or(PIECE)));
        out.put_slice(self.head.take().unwrap_or_default().as_bytes());
        while let Some(item) = self.items.as_slice().first()
            && (out.is_empty() || out.len() + item.len() + 1 + END.len() <= PIECE)
        {
            if std::mem::replace(&mut self.begun, true) {
                out.put_u8(b',');
            }
            item.write(&mut out);
            self.items.next();
        }
        if self.items.len() == 0 {
            out.put_slice(END);
        }
        self.left = self.left.saturating_sub(out.len() as u64);
        out.freeze()
    }
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(self.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(head: &str, items: &[&str], typed: bool) -> String {
        let items = items
            .iter()
            .map(|item| Item::new(Bytes::copy_from_slice(item.as_bytes()), typed))
            .collect();
        let mut body = ListBody::new(head.to_owned(), items);
        let (said, mut out) = (body.left, Vec::new());
        while !body.is_end_stream() {
            out.extend(body.piece());
        }
        assert_eq!(out.len() as u64, said);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn only_the_type_at_the_top_is_left_out() {
        for (typed, wanted) in [
            (
                r#"{"apiVersion":"v1","data":{"kind":"a,b","x":"\"}"},"kind":"ConfigMap","metadata":{"apiVersion":[1,{}]}}"#,
                r#"{"data":{"kind":"a,b","x":"\"}"},"metadata":{"apiVersion":[1,{}]}}"#,
            ),
            (r#"{"apiVersion":"v1","kind":"A"}"#, "{}"),
            (
                r#"{"action":"x","apiVersion":"v1","kind":"A","z":1}"#,
                r#"{"action":"x","z":1}"#,
            ),
        ] {
            assert_eq!(whole("[", &[typed], true), format!("[{wanted}]}}\n"));
            assert_eq!(
                whole("[", &[typed, typed], false),
                format!("[{typed},{typed}]}}\n")
            );
        }
        assert_eq!(whole("[", &[], true), "[]}\n");
    }

    fn object(size: usize) -> String {
        let text = |name: &str| {
            format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{"name":"{name}"}}}}"#)
        };
        text(&"n".repeat(size.saturating_sub(text("").len())))
    }

    /// Checks the whole list for the given head and object sizes.
    fn check(head: &str, sizes: &[usize], typed: bool) {
        let texts: Vec<String> = sizes.iter().map(|size| object(*size)).collect();
        let all = whole(
            head,
            &texts.iter().map(String::as_str).collect::<Vec<_>>(),
            typed,
        );
        let wanted: Vec<String> = texts
            .iter()
            .map(|text| {
                if typed {
                    text.replace(r#""apiVersion":"v1","kind":"A","#, "")
                } else {
                    text.clone()
                }
            })
            .collect();
        assert!(
            all == format!("{head}{}]}}\n", wanted.join(",")),
            "objects of {sizes:?} bytes after {} bytes",
            head.len()
        );
        serde_json::from_str::<serde_json::Value>(&all)
            .unwrap_or_else(|e| panic!("objects of {sizes:?} bytes: {e}"));
    }

    const HEAD: &str = r#"{"items":["#;

    #[test]
    fn a_long_list_comes_in_pieces() {
        check(HEAD, &[1000; 200], false);
    }

    #[test]
    fn an_object_of_any_size_may_stand_anywhere() {
        let small = 100;
        // Every size at which the first, a later or the last object just fits into a piece, or just
        // does not.
        for large in (PIECE - 250..PIECE + 50).chain([2 * PIECE, 5 * PIECE + 1]) {
            check(HEAD, &[large], false);
            check(HEAD, &[large, small], false);
        }
        for large in (PIECE - 20..PIECE + 5).chain([3 * PIECE]) {
            check(HEAD, &[small, large, small], true);
            check(HEAD, &[small, small, large], false);
            check(HEAD, &[large, large, large], false);
        }
        check(
            &format!(
                r#"{{"metadata":{{"continue":"{}"}},"items":["#,
                "c".repeat(PIECE)
            ),
            &[small, small],
            false,
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn lists_of_any_sizes_are_json(sizes in proptest::collection::vec(proptest::prop_oneof![60_usize..500, PIECE - 300..PIECE + 20, 60..3 * PIECE], 0..8), typed in proptest::bool::ANY) {
            check(HEAD, &sizes, typed);
        }
    }
}
