//! Traces for an OpenTelemetry collector, over OTLP. Main types: [`TraceArgs`], with Argo CD's
//! flags and variables, and [`Traces`], which converts the program's existing spans to OTLP.
//!
//! Without a configured collector nothing is traced, and a span costs nothing. Spans that a
//! collector does not accept in time are dropped: nothing waits for it.

mod context;
mod export;
mod wire;

use anyhow::Context as _;
use clap::{ArgAction, Args};
pub use context::TraceContext;
use export::Exporter;
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};
use tiphys_cluster::Settings;
use tokio::sync::mpsc;
use tracing::{Metadata, Subscriber, field, span};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, filter_fn},
    layer::Context,
    registry::LookupSpan,
    reload,
};
use wire::{KeyValue, Kind, Span, Status, Value};

/// Maximum number of queued spans.
const WAITING: usize = 8192;
/// The service name for the collector's dashboards, unless an attribute sets another one.
const SERVICE: &str = "argocd-controller";
/// Maximum length of an attribute's text.
const LONGEST: usize = 1024;

#[derive(Args, Debug)]
pub struct TraceArgs {
    /// OpenTelemetry collector (host:port, gRPC) that traces are sent to [default: otlp.address of
    /// argocd-cmd-params-cm, or none]
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "ARGOCD_APPLICATION_CONTROLLER_OTLP_ADDRESS"
    )]
    otlp_address: Option<String>,
    /// Whether to speak to it without TLS [default: otlp.insecure of argocd-cmd-params-cm, or true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, env = "ARGOCD_APPLICATION_CONTROLLER_OTLP_INSECURE")]
    otlp_insecure: Option<bool>,
    /// Headers to send to it: name=value,...
    #[arg(
        long,
        value_name = "HEADERS",
        hide_env_values = true,
        env = "ARGOCD_APPLICATION_CONTROLLER_OTLP_HEADERS"
    )]
    otlp_headers: Option<String>,
    /// Attributes of everything sent to it: name:value,...
    #[arg(
        long,
        value_name = "ATTRIBUTES",
        env = "ARGOCD_APPLICATION_CONTROLLER_OTLP_ATTRS"
    )]
    otlp_attrs: Option<String>,
    /// Share of the traces that are sent, from 0.0 to 1.0 [default: otlp.sample.ratio of
    /// argocd-cmd-params-cm, or 1.0]
    #[arg(
        long,
        value_name = "SHARE",
        env = "ARGOCD_APPLICATION_CONTROLLER_OTLP_SAMPLE_RATIO"
    )]
    otlp_sample_ratio: Option<f64>,
}

/// The destination of traces, and their attributes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Target {
    address: String,
    insecure: bool,
    headers: Vec<(String, String)>,
    attributes: Vec<KeyValue>,
    ratio: f64,
}

impl TraceArgs {
    /// Starts tracing, if configured. Must be called inside a tokio runtime.
    pub fn start(&self, settings: &Settings, traces: &Traces) -> anyhow::Result<()> {
        match self.target(SERVICE, |key| settings.param(key).to_owned())? {
            Some(target) => traces.send_to(&target),
            None => Ok(()),
        }
    }

    /// The same for a role that reads no settings.
    pub fn begin(&self, service: &str, traces: &Traces) -> anyhow::Result<()> {
        match self.target(service, |_| String::new())? {
            Some(target) => traces.send_to(&target),
            None => Ok(()),
        }
    }

    fn target(
        &self,
        service: &str,
        param: impl Fn(&str) -> String,
    ) -> anyhow::Result<Option<Target>> {
        let or = |given: &Option<String>, key: &str| {
            given
                .clone()
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| param(key))
        };
        let address = or(&self.otlp_address, "otlp.address");
        if address.is_empty() {
            return Ok(None);
        }
        let insecure = self
            .otlp_insecure
            .unwrap_or_else(|| param("otlp.insecure") != "false");
        let ratio = self
            .otlp_sample_ratio
            .or_else(|| param("otlp.sample.ratio").parse().ok())
            .unwrap_or(1.0);
        anyhow::ensure!(
            (0.0..=1.0).contains(&ratio),
            "--otlp-sample-ratio: {ratio} is not between 0.0 and 1.0"
        );
        let listed = |text: String| {
            text.split(',')
                .map(|item| item.trim().to_owned())
                .filter(|item| !item.is_empty())
                .collect::<Vec<_>>()
        };
        let header = |item: &String| {
            let pair = item
                .split_once('=')
                .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()));
            pair.with_context(|| {
                format!(
                    "--otlp-headers: header {:?} must be name=value",
                    item.split('=').next().unwrap_or_default()
                )
            })
        };
        let headers = listed(or(&self.otlp_headers, "otlp.headers"))
            .iter()
            .map(header)
            .collect::<anyhow::Result<_>>()?;
        let mut attributes = BTreeMap::from([("service.name".to_owned(), service.to_owned())]);
        for item in listed(or(&self.otlp_attrs, "otlp.attrs")) {
            match item.split(':').collect::<Vec<_>>().as_slice() {
                [name, value] => drop(attributes.insert((*name).to_owned(), (*value).to_owned())),
                _ => tracing::warn!("OTLP attr '{item}' split with ':' length not 2"),
            }
        }
        let attributes = attributes
            .into_iter()
            .map(|(name, value)| KeyValue::new(name, Value::Text(value)))
            .collect();
        Ok(Some(Target {
            address,
            insecure,
            headers,
            attributes,
            ratio,
        }))
    }
}

type Wanted = FilterFn<fn(&Metadata<'_>) -> bool>;

/// Only our own spans; libraries have spans, too.
fn ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("tiphys")
}

fn nothing(_: &Metadata<'_>) -> bool {
    false
}

/// The spans of this process, and their destination.
#[derive(Clone)]
pub struct Traces {
    filter: reload::Handle<Wanted, Registry>,
    sink: Arc<OnceLock<Sink>>,
}

struct Sink {
    ratio: f64,
    spans: mpsc::Sender<Span>,
}

impl Traces {
    /// Returns the layer that creates spans once they are wanted, too.
    pub fn new() -> (Self, impl Layer<Registry> + Send + Sync) {
        let (filter, handle) = reload::Layer::new(filter_fn(nothing as fn(&Metadata<'_>) -> bool));
        let sink = Arc::new(OnceLock::new());
        (
            Self {
                filter: handle,
                sink: sink.clone(),
            },
            Spans(sink).with_filter(filter),
        )
    }

    fn send_to(&self, target: &Target) -> anyhow::Result<()> {
        let (sender, spans) = mpsc::channel(WAITING);
        tokio::spawn(Exporter::new(target)?.run(spans));
        // Set only once.
        let _ = self.sink.set(Sink {
            ratio: target.ratio,
            spans: sender,
        });
        self.filter
            .reload(filter_fn(ours as fn(&Metadata<'_>) -> bool))
            .context("the traces cannot be turned on")
    }
}

/// The field of a span that continues another program's trace.
const TRACEPARENT: &str = "traceparent";

/// The content of that field.
struct Remote(Option<TraceContext>);

impl field::Visit for Remote {
    fn record_str(&mut self, field: &field::Field, value: &str) {
        if field.name() == TRACEPARENT {
            self.0 = TraceContext::parse(value);
        }
    }

    fn record_debug(&mut self, _: &field::Field, _: &dyn fmt::Debug) {}
}

/// Creates OTLP spans.
struct Spans(Arc<OnceLock<Sink>>);

/// An open span. If its trace is not sampled, only the trace id matters.
#[derive(Clone)]
struct Open {
    sent: bool,
    span: Span,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, S>,
    ) {
        let (Some(sink), Some(span)) = (self.0.get(), context.span(id)) else {
            return;
        };
        let parent = || {
            span.parent().and_then(|parent| {
                parent
                    .extensions()
                    .get::<Open>()
                    .map(|p| (p.sent, p.span.clone_ids()))
            })
        };
        let mut remote = Remote(None);
        attributes.record(&mut remote);
        // The caller has decided whether the trace is sampled.
        let remote = remote.0.map(|c| {
            (
                c.sampled,
                (c.trace.to_be_bytes().into(), c.span.to_be_bytes().into()),
            )
        });
        let mut open = match remote.or_else(parent) {
            Some((sent, (trace_id, parent_span_id))) => Open {
                sent,
                span: Span {
                    trace_id,
                    parent_span_id,
                    ..Span::default()
                },
            },
            None => {
                let trace_id: u128 = rand::random();
                Open {
                    sent: sampled(trace_id, sink.ratio),
                    span: Span {
                        trace_id: trace_id.to_be_bytes().into(),
                        ..Span::default()
                    },
                }
            }
        };
        if open.sent {
            open.span.span_id = rand::random::<u64>().to_be_bytes().into();
            attributes.metadata().name().clone_into(&mut open.span.name);
            open.span.kind = Kind::Internal.into();
            open.span.start = now();
            attributes.record(&mut open);
        }
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
            && open.sent
        {
            values.record(open);
        }
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let (Some(sink), Some(span)) = (self.0.get(), context.span(&id)) else {
            return;
        };
        if let Some(Open {
            sent: true,
            mut span,
        }) = span.extensions_mut().remove::<Open>()
        {
            span.end = now();
            // A gap in a trace is better than a controller that waits.
            let _ = sink.spans.try_send(span);
        }
    }
}

impl Span {
    /// The ids of the trace and of this span.
    fn clone_ids(&self) -> (Vec<u8>, Vec<u8>) {
        (self.trace_id.clone(), self.span_id.clone())
    }
}

/// Samples the same traces everywhere, by their ids.
fn sampled(trace_id: u128, ratio: f64) -> bool {
    const ALL: f64 = 9_223_372_036_854_775_808.0;
    let number = u64::try_from(trace_id & u128::from(u64::MAX)).unwrap_or_default() >> 1;
    ratio >= 1.0 || number < bound(ratio * ALL)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bound(value: f64) -> u64 {
    value as u64
}

fn now() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default()
}

impl Open {
    fn set(&mut self, field: &field::Field, value: Value) {
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            _ => String::new(),
        };
        match field.name() {
            "otel.name" => self.span.name = text(&value),
            TRACEPARENT => {}
            "otel.kind" if text(&value) == "client" => self.span.kind = Kind::Client.into(),
            "otel.kind" if text(&value) == "server" => self.span.kind = Kind::Server.into(),
            "error" => {
                self.span.status = Some(Status {
                    code: 2,
                    message: text(&value),
                })
            }
            name => self.span.attributes.push(KeyValue::new(name, value)),
        }
    }
}

impl field::Visit for Open {
    fn record_str(&mut self, field: &field::Field, value: &str) {
        self.set(field, Value::Text(value.chars().take(LONGEST).collect()));
    }

    fn record_bool(&mut self, field: &field::Field, value: bool) {
        self.set(field, Value::Bool(value));
    }

    fn record_i64(&mut self, field: &field::Field, value: i64) {
        self.set(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &field::Field, value: u64) {
        self.set(field, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &field::Field, value: f64) {
        self.set(field, Value::Double(value));
    }

    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests;
