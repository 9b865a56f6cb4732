//! Metrics of the controller's clients: requests to API servers and to Redis, under Argo CD's
//! names.
//!
//! Main types: [`RedisRequests`], which counts, and [`Servers`], which reports the counters of
//! cluster connections.

use super::Labels;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder},
    metrics::{
        MetricType, counter::Counter, family::Family, histogram, histogram::Histogram as Observed,
    },
    registry::Registry,
};
use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};
use tiphys_cluster::traffic::{Counts, Histogram, Traffic};

/// Argo CD's name for the client.
const INITIATOR: &str = "argocd-application-controller";
const REDIS_SECONDS: [f64; 6] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Requests to Redis. Cheap to clone.
#[derive(Clone)]
pub struct RedisRequests {
    requests: Family<Labels, Counter>,
    seconds: Family<Labels, Observed, fn() -> Observed>,
}

impl Default for RedisRequests {
    fn default() -> Self {
        let histogram: fn() -> Observed = || histogram::Histogram::new(REDIS_SECONDS);
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
        }
    }
}

impl RedisRequests {
    /// Counts commands that were sent together.
    pub fn made(&self, commands: &[(&'static str, usize)], failed: bool, took: Duration) {
        for (command, times) in commands.iter().filter(|(_, times)| *times > 0) {
            let labels = vec![
                ("command".into(), (*command).to_owned()),
                ("failed".into(), failed.to_string()),
            ];
            self.requests
                .get_or_create(&by_us(labels))
                .inc_by(u64::try_from(*times).unwrap_or(u64::MAX));
        }
        self.seconds
            .get_or_create(&by_us(Labels::new()))
            .observe(took.as_secs_f64());
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Number of redis requests executed during application reconciliation";
        registry.register("argocd_redis_request", help, self.requests.clone());
        registry.register(
            "argocd_redis_request_duration",
            "Redis requests duration",
            self.seconds.clone(),
        );
    }
}

fn by_us(more: Labels) -> Labels {
    [
        (Cow::from("hostname"), hostname()),
        ("initiator".into(), INITIATOR.to_owned()),
    ]
    .into_iter()
    .chain(more)
    .collect()
}

/// The name of this machine or pod.
fn hostname() -> String {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .unwrap_or_default()
            .trim()
            .to_owned()
    })
    .clone()
}

/// The counters of each API server.
#[derive(Debug, Default)]
pub struct Servers(BTreeMap<String, Counts>);

impl Servers {
    /// Connections to the same server are combined.
    pub fn of<'a>(traffic: impl IntoIterator<Item = &'a Traffic>) -> Self {
        let mut servers = BTreeMap::<String, Counts>::new();
        for one in traffic {
            servers
                .entry(one.host().to_owned())
                .or_default()
                .add(&one.counts());
        }
        Self(servers)
    }

    /// One value per set of labels (in addition to the host).
    fn numbers<'a>(&'a self, of: impl Fn(&'a Counts) -> Vec<(Labels, u64)>) -> Vec<(Labels, u64)> {
        let rows = |(host, counts): (&'a String, &'a Counts)| {
            let host = host.clone();
            of(counts)
                .into_iter()
                .map(move |(labels, n)| (at(&host, labels), n))
        };
        self.0.iter().flat_map(rows).collect()
    }

    fn answers(
        &self,
        of: impl Fn(&Counts) -> &BTreeMap<(&'static str, String), u64>,
    ) -> Vec<(Labels, u64)> {
        self.numbers(|counts| {
            let row = |((method, code), n): (&(&'static str, String), &u64)| {
                (
                    vec![
                        ("method".into(), (*method).to_owned()),
                        ("code".into(), code.clone()),
                    ],
                    *n,
                )
            };
            of(counts).iter().map(row).collect()
        })
    }

    /// By command, over all servers.
    fn commands(&self, of: impl Fn(tiphys_cluster::traffic::Command) -> u64) -> Vec<(Labels, u64)> {
        let mut all = BTreeMap::<&'static str, u64>::new();
        for (name, command) in self.0.values().flat_map(|counts| &counts.commands) {
            *all.entry(name).or_default() += of(*command);
        }
        let labels = |name: &str| {
            vec![
                ("hostname".into(), hostname()),
                ("command".into(), name.to_owned()),
            ]
        };
        all.into_iter().map(|(name, n)| (labels(name), n)).collect()
    }
}

/// Name, help, label, and the histograms by its value.
type Shown = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Counts) -> &BTreeMap<&'static str, Histogram>,
);

fn at(host: &str, more: Labels) -> Labels {
    [(Cow::from("host"), host.to_owned())]
        .into_iter()
        .chain(more)
        .collect()
}

impl Collector for Servers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let out = &mut encoder;
        counter(
            out,
            "argocd_kubectl_requests",
            "Number of kubectl request results",
            &self.answers(|c| &c.answers),
        )?;
        counter(
            out,
            "argocd_kubectl_request_retries",
            "Number of kubectl request retries",
            &self.answers(|c| &c.retries),
        )?;
        counter(
            out,
            "argocd_kubectl_exec",
            "Number of kubectl executions",
            &self.commands(|c| c.begun),
        )?;
        gauge(
            out,
            "argocd_kubectl_exec_pending",
            "Number of pending kubectl executions",
            &self.commands(|c| c.running),
        )?;
        let connections = self.0.values().map(|c| c.made).sum();
        gauge(
            out,
            "argocd_kubectl_transport_cache_entries",
            "Number of kubectl transport cache entries",
            &[(Labels::new(), connections)],
        )?;
        let uses = [
            ("hit", self.0.values().map(|c| c.reused).sum()),
            ("miss", connections),
        ];
        let uses = uses.map(|(result, n)| (vec![("result".into(), result.to_owned())], n));
        counter(
            out,
            "argocd_kubectl_transport_create_calls",
            "Number of kubectl transport create calls",
            &uses,
        )?;
        let histograms: [Shown; 4] = [
            (
                "argocd_kubectl_request_duration_seconds",
                "Request latency in seconds",
                "verb",
                |c| &c.seconds,
            ),
            (
                "argocd_kubectl_rate_limiter_duration_seconds",
                "Kubectl rate limiter latency",
                "verb",
                |c| &c.waits,
            ),
            (
                "argocd_kubectl_request_size_bytes",
                "Size of kubectl requests",
                "method",
                |c| &c.sent,
            ),
            (
                "argocd_kubectl_response_size_bytes",
                "Size of kubectl responses",
                "method",
                |c| &c.received,
            ),
        ];
        for (name, help, label, of) in histograms {
            let rows = self.0.iter().flat_map(|(host, c)| {
                of(c)
                    .iter()
                    .map(move |(key, h)| (at(host, vec![(label.into(), (*key).to_owned())]), h))
            });
            histogram(out, name, help, rows)?;
        }
        Ok(())
    }
}

fn counter(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: &[(Labels, u64)],
) -> fmt::Result {
    let mut metric = described(out, name, help, MetricType::Counter)?;
    rows.iter().try_for_each(|(labels, n)| {
        metric
            .encode_family(labels)?
            .encode_counter::<Labels, u64, u64>(n, None)
    })
}

fn gauge(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: &[(Labels, u64)],
) -> fmt::Result {
    let mut metric = described(out, name, help, MetricType::Gauge)?;
    rows.iter()
        .try_for_each(|(labels, n)| metric.encode_family(labels)?.encode_gauge(n))
}

/// Histograms, each with its labels.
pub(super) fn histogram<'a>(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    mut rows: impl Iterator<Item = (Labels, &'a Histogram)>,
) -> fmt::Result {
    let mut metric = described(out, name, help, MetricType::Histogram)?;
    rows.try_for_each(|(labels, h)| {
        metric.encode_family(&labels)?.encode_histogram::<Labels>(
            h.sum,
            h.count(),
            &h.buckets(),
            None,
        )
    })
}

fn described<'a>(
    out: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
    kind: MetricType,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    // With a trailing full stop, which registered metrics get as well.
    out.encode_descriptor(name, &format!("{help}."), None, kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[test]
    fn requests_to_redis_are_counted() {
        let (requests, mut registry, mut text) =
            (RedisRequests::default(), Registry::default(), String::new());
        requests.made(
            &[("set", 2), ("publish", 1), ("del", 0)],
            false,
            Duration::from_millis(20),
        );
        requests.made(&[("set", 1)], true, Duration::from_secs(5));
        requests.register(&mut registry);
        encode(&mut text, &registry).expect("a text");
        let us = format!(
            "hostname=\"{}\",initiator=\"argocd-application-controller\"",
            hostname()
        );
        for line in [
            format!("argocd_redis_request_total{{{us},command=\"set\",failed=\"false\"}} 2\n"),
            format!("argocd_redis_request_total{{{us},command=\"set\",failed=\"true\"}} 1\n"),
            format!("argocd_redis_request_total{{{us},command=\"publish\",failed=\"false\"}} 1\n"),
            format!("argocd_redis_request_duration_bucket{{le=\"0.05\",{us}}} 1\n"),
            format!("argocd_redis_request_duration_count{{{us}}} 2\n"),
        ] {
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
        assert!(!text.contains("\"del\""));
    }
}
