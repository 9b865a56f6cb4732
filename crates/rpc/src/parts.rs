//! An encoded message in parts that nobody puts together: most of a long list is kept from earlier
//! ones, and copying it would take longer than encoding what has changed.
//!
//! Main type: [`Parts`].

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// A message, and the body of a response that has it. The parts are not empty.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Nearly all messages have only this one.
    first: Option<Bytes>,
    rest: VecDeque<Bytes>,
    len: usize,
}

impl Parts {
    /// Appends a part.
    pub fn push(&mut self, part: Bytes) {
        if part.is_empty() {
            return;
        }
        self.len += part.len();
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(part);
        } else {
            self.rest.push_back(part);
        }
    }

    /// The bytes of all parts together.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the next part.
    pub fn pop(&mut self) -> Option<Bytes> {
        let part = self.first.take().or_else(|| self.rest.pop_front())?;
        self.len -= part.len();
        Some(part)
    }

    /// The message in one piece.
    pub fn joined(mut self) -> Bytes {
        if self.rest.is_empty() {
            return self.first.unwrap_or_default();
        }
        let mut all = BytesMut::with_capacity(self.len);
        while let Some(part) = self.pop() {
            all.extend_from_slice(&part);
        }
        all.freeze()
    }
}

impl From<Vec<u8>> for Parts {
    fn from(message: Vec<u8>) -> Self {
        let mut parts = Self::default();
        parts.push(message.into());
        parts
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().pop().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    fn parts(texts: &[&'static str]) -> Parts {
        let mut parts = Parts::default();
        for text in texts {
            parts.push(Bytes::from_static(text.as_bytes()));
        }
        parts
    }

    #[tokio::test]
    async fn a_message_is_the_same_in_parts_and_in_one_piece() {
        let messages: [&[&'static str]; 4] = [&[], &[""], &["one"], &["", "a", "", "bc", "d"]];
        for texts in messages {
            let whole = texts.concat();
            let message = parts(texts);
            assert_eq!(message.len(), whole.len());
            assert_eq!(message.is_end_stream(), whole.is_empty());
            assert_eq!(message.size_hint().exact(), Some(whole.len() as u64));
            let sent = message.clone().collect().await;
            let sent = match sent {
                Ok(sent) => sent.to_bytes(),
                Err(never) => match never {},
            };
            assert_eq!(sent, whole);
            assert_eq!(message.joined(), whole);
        }
        assert_eq!(Parts::from(b"vec".to_vec()).joined(), "vec");
    }

    #[test]
    fn kept_parts_are_sent_without_a_copy() {
        let kept = Bytes::from(vec![7; 100]);
        let mut message = parts(&["["]);
        message.push(kept.clone());
        let sent: Vec<Bytes> = std::iter::from_fn(|| message.pop()).collect();
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[1].as_ptr(), kept.as_ptr());
        assert!(message.is_empty());
    }
}
