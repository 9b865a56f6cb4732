//! One connection, from the handshake to its end. Main type: [`Setting`], the settings shared by
//! all connections of a server.

use crate::{
    BoxError, Builder, Limits, Tls,
    body::{Received, Sent},
    counted::Counted,
    redirect,
    table::{Place, Seat},
};
use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Time for a graceful shutdown: HTTP/2 clients are notified, and written data is sent.
const GOODBYE: Duration = Duration::from_secs(1);

pub struct Setting {
    builder: Builder,
    tls: Option<Tls>,
    limits: Limits,
    stop: CancellationToken,
}

impl Setting {
    pub fn new(
        mut builder: Builder,
        tls: Option<Tls>,
        limits: Limits,
        stop: CancellationToken,
    ) -> Self {
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.headers);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.ping)
            .keep_alive_timeout(limits.ping);
        Self {
            builder,
            tls,
            limits,
            stop,
        }
    }

    pub async fn run<F, Fut, B>(&self, stream: TcpStream, seat: Seat, answer: F)
    where
        F: Fn(Request<Received>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (place, peer) = (seat.place.clone(), seat.place.peer);
        let Some(tls) = &self.tls else {
            return self.speak(stream, &place, answer).await;
        };
        if tls.redirects {
            let first = timeout(self.limits.handshake, redirect::is_plain(&stream));
            let is_plain = tokio::select! {
                first = first => first,
                () = place.end.cancelled() => return,
                () = self.stop.cancelled() => return,
            };
            match is_plain {
                Ok(true) => return self.speak(stream, &place, redirect::answer).await,
                Ok(false) => {}
                Err(_) => return tracing::debug!(%peer, "a connection on which nothing was sent"),
            }
        }
        let handshake = timeout(self.limits.handshake, tls.acceptor.accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = place.end.cancelled() => return,
            () = self.stop.cancelled() => return,
        };
        match shaken {
            Ok(Ok(stream)) => self.speak(stream, &place, answer).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS handshake"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
        }
    }

    async fn speak<S, F, Fut, B>(&self, stream: S, place: &Arc<Place>, answer: F)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(Request<Received>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (of_requests, limit, peer) = (place.clone(), self.limits.body, place.peer);
        let service = service_fn(move |request: Request<Incoming>| {
            let mut open = None;
            let request = request.map(|body| {
                let (body, request) = Received::new(body, &of_requests, limit);
                open = Some(request);
                body
            });
            let answering = answer(request);
            async move {
                let response = answering.await;
                let open = open.expect("it was made with the body");
                Ok::<_, Infallible>(response.map(|body| Sent::new(body, open)))
            }
        });
        let io = TokioIo::new(Counted::new(stream, place.clone()));
        let mut connection = pin!(self.builder.serve_connection_with_upgrades(io, service));
        let mut goodbye: Option<Instant> = None;
        loop {
            let end = goodbye.unwrap_or_else(|| self.next_check(place));
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection ended");
                    }
                    return;
                }
                () = place.end.cancelled() => return,
                () = self.stop.cancelled(), if goodbye.is_none() => {
                    connection.as_mut().graceful_shutdown();
                    goodbye = Some(Instant::now() + self.limits.drain);
                }
                () = sleep_until(end) => {
                    if goodbye.is_some() {
                        return;
                    }
                    if place.deadline(&self.limits).is_some_and(|deadline| deadline <= Instant::now()) {
                        tracing::debug!(%peer, "a client kept a connection without using it");
                        connection.as_mut().graceful_shutdown();
                        goodbye = Some(Instant::now() + GOODBYE);
                    }
                }
            }
        }
    }

    /// Requests start and end without waking this task, so the deadline is checked again no later
    /// than after the shortest limit.
    fn next_check(&self, place: &Place) -> Instant {
        let limits = &self.limits;
        let again = Instant::now() + limits.idle.min(limits.stalled).min(limits.headers);
        place
            .deadline(limits)
            .map_or(again, |deadline| deadline.min(again))
    }
}
