//! How long a client of REST waits for a call: the header `Grpc-Timeout`, as of the gateway of
//! Argo CD. Main functions: [`of`] and [`within`].

use crate::{ApiError, Code, table::Reply};
use futures::StreamExt as _;
use http::HeaderMap;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const HEADER: &str = "grpc-timeout";
/// Nobody waits longer, and timers cannot be set for any time.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// When the client stops waiting; `None`: never.
///
/// # Errors
/// The header is no number with a unit.
pub fn of(headers: &HeaderMap) -> Result<Option<Instant>, ApiError> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    if text.is_empty() {
        return Ok(None);
    }
    let timeout = parsed(&text);
    let timeout =
        timeout.ok_or_else(|| ApiError::invalid(format!("invalid grpc-timeout: {text}")))?;
    Ok(Instant::now().checked_add(timeout.min(LONGEST)))
}

fn parsed(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(count.saturating_mul(3600)),
        'M' => Duration::from_secs(count.saturating_mul(60)),
        'S' => Duration::from_secs(count),
        'm' => Duration::from_millis(count),
        'u' => Duration::from_micros(count),
        'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// What a call answers in time; a stream is cut off with an error, which `cut` is told.
pub async fn within(
    end: Option<Instant>,
    call: impl Future<Output = Result<Reply, ApiError>>,
    cut: impl FnOnce(&ApiError) + Send + 'static,
) -> Result<Reply, ApiError> {
    let Some(end) = end else {
        return call.await;
    };
    match timeout_at(end, call).await.map_err(|_| exceeded())?? {
        Reply::One(message) => Ok(Reply::One(message)),
        Reply::Stream(messages) => {
            let begin = Some((messages, cut));
            let messages = futures::stream::unfold(begin, move |state| async move {
                let (mut messages, cut) = state?;
                // A stream that always has a message would else never be asked for the time.
                let next = if Instant::now() < end {
                    timeout_at(end, messages.next()).await.ok()
                } else {
                    None
                };
                match next {
                    None => {
                        let error = exceeded();
                        // Before `messages` is dropped, which would be the end of a client.
                        cut(&error);
                        Some((Err(error), None))
                    }
                    Some(message) => Some((message?, Some((messages, cut)))),
                }
            });
            Ok(Reply::Stream(messages.boxed()))
        }
    }
}

fn exceeded() -> ApiError {
    ApiError::new(Code::DeadlineExceeded, "context deadline exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, want) in [
            ("300m", Some(Duration::from_millis(300))),
            ("2S", Some(Duration::from_secs(2))),
            ("1H", Some(Duration::from_secs(3600))),
            ("7n", Some(Duration::from_nanos(7))),
            ("5", None),
            ("S", None),
            ("-1S", None),
            ("5x", None),
            ("5é", None),
        ] {
            assert_eq!(parsed(text), want, "{text}");
        }
    }

    #[test]
    fn a_header_says_when_or_is_refused() {
        let of_value = |value: &[u8]| {
            let value = http::HeaderValue::from_bytes(value).expect("a header");
            of(&HeaderMap::from_iter([(
                http::HeaderName::from_static(HEADER),
                value,
            )]))
        };
        assert_eq!(of(&HeaderMap::new()), Ok(None));
        assert_eq!(of_value(b""), Ok(None));
        for wrong in [&b"5x"[..], b"\xff", b"5\xc3\xa9", b"5\xff"] {
            let code = of_value(wrong).map_err(|e| e.code);
            assert_eq!(code, Err(Code::InvalidArgument), "{wrong:?}");
        }
        // Timers cannot be set for the end of time.
        let end = of_value(b"18446744073709551615S");
        let latest = Instant::now().checked_add(LONGEST);
        assert!(end.is_ok_and(|end| end.is_some() && end <= latest));
    }

    #[tokio::test]
    async fn a_call_and_its_stream_end_in_time() {
        let end = Instant::now().checked_add(Duration::from_millis(20));
        let late = within(end, std::future::pending(), |_| {}).await;
        let late = late.err().map(|error| error.code);
        assert_eq!(late, Some(Code::DeadlineExceeded));

        let end = Instant::now().checked_add(Duration::from_millis(20));
        let first = futures::stream::iter([Ok(b"first".to_vec())]);
        let endless = first.chain(futures::stream::pending()).boxed();
        let (told, is_told) = std::sync::mpsc::channel();
        let call = std::future::ready(Ok(Reply::Stream(endless)));
        let cut = move |error: &ApiError| told.send(error.code).expect("it is listened to");
        let reply = within(end, call, cut).await;
        let Ok(Reply::Stream(messages)) = reply else {
            panic!("no stream");
        };
        let messages: Vec<_> = messages.collect().await;
        assert_eq!(messages, [Ok(b"first".to_vec()), Err(exceeded())]);
        assert_eq!(is_told.try_recv(), Ok(Code::DeadlineExceeded));

        // One that is never at a loss for messages, too.
        let busy = futures::stream::repeat(Ok(Vec::new())).take(3).boxed();
        let call = std::future::ready(Ok(Reply::Stream(busy)));
        let Ok(Reply::Stream(messages)) = within(Some(Instant::now()), call, |_| {}).await else {
            panic!("no stream");
        };
        let messages: Vec<_> = messages.collect().await;
        assert_eq!(messages, [Err(exceeded())]);

        let one = std::future::ready(Ok(Reply::One(crate::Parts::default())));
        let reply = within(None, one, |_| {}).await;
        assert!(matches!(reply, Ok(Reply::One(_))));
    }
}
