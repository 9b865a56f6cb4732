//! The trace and span ids that are passed between programs in HTTP headers (W3C Trace Context).
//! Main type: [`TraceContext`].

use super::Open;
use std::fmt;
use tracing_subscriber::{Registry, registry::LookupSpan as _};

/// The content of `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    pub span: u64,
    pub sampled: bool,
}

impl TraceContext {
    /// `None`: invalid, to be ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.splitn(5, '-').collect();
        let (version, trace, span, flags) = match parts.as_slice() {
            [version, trace, span, flags] => (*version, *trace, *span, *flags),
            // Later versions may have more fields.
            [version, trace, span, flags, _] if *version != "00" => {
                (*version, *trace, *span, *flags)
            }
            _ => return None,
        };
        let hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        if version == "ff"
            || !hex(version, 2)
            || !hex(trace, 32)
            || !hex(span, 16)
            || !hex(flags, 2)
        {
            return None;
        }
        let (trace, span) = (
            u128::from_str_radix(trace, 16).ok()?,
            u64::from_str_radix(span, 16).ok()?,
        );
        let flags = u8::from_str_radix(flags, 16).ok()?;
        (trace != 0 && span != 0).then_some(Self {
            trace,
            span,
            sampled: flags & 1 == 1,
        })
    }

    /// The current span; `None` if tracing is off.
    pub fn here() -> Option<Self> {
        let found = tracing::Span::current().with_subscriber(|(id, dispatch)| {
            let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
            span.scope()
                .find_map(|span| span.extensions().get::<Open>().and_then(Self::of))
        });
        found.flatten()
    }

    /// An unsampled span has no id; the other program needs its trace and the information that it
    /// is not sampled.
    fn of(open: &Open) -> Option<Self> {
        let trace = u128::from_be_bytes(open.span.trace_id.as_slice().try_into().ok()?);
        let span = open
            .span
            .span_id
            .as_slice()
            .try_into()
            .map_or_else(|_| rand::random_range(1..=u64::MAX), u64::from_be_bytes);
        Some(Self {
            trace,
            span,
            sampled: open.sent,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace,
            self.span,
            u8::from(self.sampled)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says() {
        const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parsed = TraceContext::parse(SENT).expect("valid");
        assert_eq!(
            (parsed.span, parsed.sampled, parsed.to_string().as_str()),
            (0xb7ad_6b71_6920_3331, true, SENT)
        );
        assert!(
            TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
                .is_some_and(|c| !c.sampled)
        );
        assert!(
            TraceContext::parse(
                "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more-to-come"
            )
            .is_some_and(|c| c.sampled)
        );
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}
