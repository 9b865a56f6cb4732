//! The metrics of notifications, under Argo CD's names. Main type: [`NotificationMetrics`].

use crate::metrics::{self, Labels};
use prometheus_client::metrics::{counter::Counter, family::Family};
use std::fmt;
use tiphys_notify::Event;

type Counters = Family<Labels, Counter>;

/// What was evaluated and delivered so far. Cheap to clone.
#[derive(Clone, Default)]
pub struct NotificationMetrics {
    deliveries: Counters,
    evaluations: Counters,
}

impl NotificationMetrics {
    /// A delivery that was tried; other events do not count.
    pub(super) fn happened(&self, event: &Event) {
        let (trigger, to, succeeded) = match event {
            Event::Sent { trigger, to } => (trigger, to, true),
            Event::Failed { trigger, to, .. } => (trigger, to, false),
            _ => return,
        };
        let labels = vec![
            ("trigger".into(), trigger.clone()),
            ("service".into(), to.service.clone()),
            ("succeeded".into(), succeeded.to_string()),
        ];
        self.deliveries.get_or_create(&labels).inc();
    }

    /// One condition of a trigger was evaluated.
    pub(super) fn evaluated(&self, trigger: &str, triggered: bool) {
        let labels = vec![
            ("name".into(), trigger.to_owned()),
            ("triggered".into(), triggered.to_string()),
        ];
        self.evaluations.get_or_create(&labels).inc();
    }

    /// In OpenMetrics format.
    ///
    /// # Errors
    /// If formatting fails, which does not happen.
    pub fn text(&self) -> Result<String, fmt::Error> {
        metrics::text(|registry| {
            // The format adds `_total`.
            registry.register(
                "argocd_notifications_deliveries",
                "Number of delivered notifications",
                self.deliveries.clone(),
            );
            registry.register(
                "argocd_notifications_trigger_eval",
                "Number of trigger evaluations",
                self.evaluations.clone(),
            );
        })
    }
}
