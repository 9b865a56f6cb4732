//! The log of a role, on standard error: one line per event, as JSON or text, with the field names
//! of Argo CD's logs.
//!
//! Main type: [`Logs`]. Format and level come from the command line, else from Argo CD's variables,
//! else from the settings, whose changes are followed. Fields of the spans around an event (an
//! Application's name, namespace and project) become fields of the event.

use super::traces::Traces;
use crate::output::{escape_html, time};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fmt,
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tiphys_api::access::without_passwords;
use tiphys_cluster::Records;
use tracing::{Event, Level, Subscriber, field, span};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, layer::Context, prelude::*, registry::LookupSpan, reload,
};

/// Keys of argocd-cmd-params-cm.
const FORMAT: &str = "controller.log.format";
const LEVEL: &str = "controller.log.level";

/// The log of this process.
#[derive(Clone)]
pub struct Logs {
    format: Option<String>,
    level: Option<String>,
    as_text: Arc<AtomicBool>,
    filter: reload::Handle<EnvFilter, Registry>,
    /// Receives the spans, for trace exporters.
    pub traces: Traces,
}

impl Logs {
    /// Starts logging; what is neither given here nor in the variables may come from the settings.
    pub fn start(format: Option<String>, level: Option<String>) -> Self {
        let or = |given: Option<String>, name| {
            given
                .or_else(|| env::var(name).ok())
                .filter(|text| !text.is_empty())
        };
        let (format, level) = (
            or(format, "ARGOCD_LOG_FORMAT"),
            or(level, "ARGOCD_LOG_LEVEL"),
        );
        let as_text = Arc::new(AtomicBool::new(is_text(
            format.as_deref().unwrap_or_default(),
        )));
        let (filter, handle) = reload::Layer::new(filter_of(level.as_deref().unwrap_or_default()));
        let (traces, spans) = Traces::new();
        let lines = Lines {
            as_text: as_text.clone(),
        }
        .with_filter(filter);
        tracing_subscriber::registry()
            .with(vec![lines.boxed(), spans.boxed()])
            .init();
        Self {
            format,
            level,
            as_text,
            filter: handle,
            traces,
        }
    }

    /// Follows the settings from now on, for what was not set otherwise.
    pub fn follow(self, records: &Records) {
        let mut settings = records.watch_settings();
        tokio::spawn(async move {
            let mut known = String::new();
            loop {
                let now = settings.borrow_and_update().clone();
                if self.format.is_none() {
                    self.as_text
                        .store(is_text(now.param(FORMAT)), Ordering::Relaxed);
                }
                if self.level.is_none() && known != now.param(LEVEL) {
                    now.param(LEVEL).clone_into(&mut known);
                    // It fails only if there is no subscriber any more.
                    let _ = self.filter.reload(filter_of(&known));
                }
                if settings.changed().await.is_err() {
                    return;
                }
            }
        });
    }
}

/// JSON is the default.
fn is_text(format: &str) -> bool {
    format.eq_ignore_ascii_case("text")
}

/// A level by Argo CD's name, or any filter of `EnvFilter`; info if there is none, or an unknown
/// one.
fn filter_of(level: &str) -> EnvFilter {
    let level = match level.to_lowercase().as_str() {
        "" => "info".to_owned(),
        "warning" => "warn".to_owned(),
        "fatal" | "panic" => "error".to_owned(),
        other => other.to_owned(),
    };
    EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Writes one line per event.
struct Lines {
    as_text: Arc<AtomicBool>,
}

/// Fields sorted by name.
#[derive(Clone, Default)]
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn set(&mut self, field: &field::Field, value: Value) {
        let name = match field.name() {
            "message" => "msg",
            // These three are the line's own fields.
            "msg" => "fields.msg",
            "level" => "fields.level",
            "time" => "fields.time",
            name => name,
        };
        let value = match value {
            Value::String(text) => Value::String(without_passwords(&text)),
            other => other,
        };
        self.0.insert(name.to_owned(), value);
    }
}

impl field::Visit for Fields {
    fn record_str(&mut self, field: &field::Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &field::Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &field::Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &field::Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &field::Field, value: f64) {
        self.set(field, json!(value));
    }

    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.0.clone());
            }
        }
        event.record(&mut fields);
        let line = line(
            *event.metadata().level(),
            fields,
            &time::rfc3339(Timestamp::now()),
            self.as_text.load(Ordering::Relaxed),
        );
        // The reader may be gone; that is no reason to exit.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

fn line(level: Level, Fields(mut fields): Fields, time: &str, as_text: bool) -> String {
    let level = match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    if !as_text {
        fields.extend([
            ("level".to_owned(), level.into()),
            ("time".to_owned(), time.into()),
        ]);
        return escape_html(&json!(fields).to_string()) + "\n";
    }
    let message = fields.remove("msg").unwrap_or_else(|| "".into());
    let own = [
        ("time", json!(time)),
        ("level", json!(level)),
        ("msg", message),
    ];
    let all = own.into_iter().chain(
        fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    all.map(|(name, value)| format!("{name}={}", text(&value)))
        .collect::<Vec<_>>()
        .join(" ")
        + "\n"
}

/// A value in a text line: quoted unless it is a plain word.
fn text(value: &Value) -> String {
    match value {
        Value::String(s)
            if s.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._/@^+".contains(c)) =>
        {
            s.clone()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Stores what was recorded.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Fields>>>);

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().expect("no panic").push(fields);
        }
    }

    #[test]
    fn a_line_has_argo_cds_names() {
        let kept = Kept::default();
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(kept.clone()),
            || {
                tracing::warn!(application = "web", "app-namespace" = "argocd", level = 2, ok = true, error = ?"<b>", "it \"failed\"");
            },
        );
        let fields = kept.0.lock().expect("no panic").remove(0);
        let now = "2026-01-02T03:04:05Z";
        assert_eq!(
            line(Level::WARN, fields.clone(), now, false),
            "{\"app-namespace\":\"argocd\",\"application\":\"web\",\"error\":\"\\\"\\u003cb\\u003e\\\"\",\"fields.level\":2,\"level\":\"warning\",\
             \"msg\":\"it \\\"failed\\\"\",\"ok\":true,\"time\":\"2026-01-02T03:04:05Z\"}\n"
        );
        assert_eq!(
            line(Level::INFO, fields, now, true),
            "time=\"2026-01-02T03:04:05Z\" level=info msg=\"it \\\"failed\\\"\" app-namespace=argocd application=web error=\"\\\"<b>\\\"\" \
             fields.level=2 ok=true\n"
        );
    }

    #[test]
    fn levels_are_those_of_argo_cd() {
        for (level, expected) in [
            ("", "info"),
            ("warning", "warn"),
            ("WARN", "warn"),
            ("fatal", "error"),
            ("debug", "debug"),
            ("tiphys_cluster=trace", "tiphys_cluster=trace"),
        ] {
            assert_eq!(filter_of(level).to_string(), expected, "{level}");
        }
    }
}
