//! Bodies that track which side a connection waits for: [`Received`] for requests, which also ends
//! if its client is too slow, and [`Sent`] for responses.

use crate::{
    BoxError,
    table::{Place, Turn},
};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// The body of a request did not arrive in time.
#[derive(Debug, thiserror::Error)]
#[error("the body was not received within {} s", .0.as_secs_f64())]
pub struct TooSlow(pub Duration);

/// One request, until its response is sent or dropped.
pub(crate) struct Open {
    place: Arc<Place>,
    id: u64,
}

impl Open {
    fn new(place: Arc<Place>, turn: Turn) -> Self {
        let id = place.begin(turn);
        Self { place, id }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.place.finish(self.id);
    }
}

/// The body of a request.
pub struct Received {
    inner: Incoming,
    place: Arc<Place>,
    id: u64,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Received {
    pub(crate) fn new(inner: Incoming, place: &Arc<Place>, limit: Duration) -> (Self, Open) {
        let turn = if inner.is_end_stream() {
            Turn::Ours
        } else {
            Turn::Receiving
        };
        let open = Open::new(place.clone(), turn);
        (
            Self {
                inner,
                place: place.clone(),
                id: open.id,
                limit,
                deadline: None,
            },
            open,
        )
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            if !matches!(frame, Some(Ok(_))) || self.inner.is_end_stream() {
                self.place.set(self.id, Turn::Ours);
                self.deadline = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = self.limit;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Some(Err(TooSlow(limit).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response.
pub struct Sent<B> {
    inner: Pin<Box<B>>,
    open: Open,
}

impl<B> Sent<B> {
    pub(crate) fn new(inner: B, open: Open) -> Self {
        open.place.set(open.id, Turn::Ours);
        Self {
            inner: Box::pin(inner),
            open,
        }
    }
}

impl<B: Body> Body for Sent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        // The connection polls for more only if it has room for it.
        self.open.place.set(self.open.id, Turn::Ours);
        let frame = ready!(self.inner.as_mut().poll_frame(cx));
        if frame.is_some() {
            self.open.place.sending(self.open.id);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
