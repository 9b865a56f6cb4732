//! The port for Prometheus: `/metrics`, and `/healthz`. Main type: [`MetricsArgs`].

use anyhow::Context;
use axum::{
    Router,
    extract::RawQuery,
    response::IntoResponse,
    routing::{any, get},
};
use clap::Args;
use http::{StatusCode, header::CONTENT_TYPE};
use hyper_util::rt::TokioExecutor;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};
use tiphys_cluster::Records;
use tiphys_controllers::{
    applicationset::SetReport,
    metrics::report::{self, Choice, Report},
    notifications::NotificationMetrics,
};
use tiphys_listen::{Builder, Connections, Limits};
use tiphys_server::Server;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Prometheus' text format.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Args, Debug)]
pub struct MetricsArgs {
    /// Port of /metrics, without TLS; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 8082)]
    metrics_port: u16,
    /// Labels of Applications that the metric argocd_app_labels shows
    #[arg(
        long,
        value_name = "LABEL",
        value_delimiter = ',',
        env = "ARGOCD_APPLICATION_CONTROLLER_METRICS_APPLICATION_LABELS"
    )]
    metrics_application_labels: Vec<String>,
    /// Types of conditions that the metric argocd_app_condition counts
    #[arg(
        long,
        value_name = "TYPE",
        value_delimiter = ',',
        env = "ARGOCD_APPLICATION_CONTROLLER_METRICS_APPLICATION_CONDITIONS"
    )]
    metrics_application_conditions: Vec<String>,
    /// Labels of cluster Secrets that the metric argocd_cluster_labels shows
    #[arg(
        long,
        value_name = "LABEL",
        value_delimiter = ',',
        env = "ARGOCD_APPLICATION_CONTROLLER_METRICS_CLUSTER_LABELS"
    )]
    metrics_cluster_labels: Vec<String>,
}

impl MetricsArgs {
    pub fn choice(&self) -> Choice {
        Choice {
            app_labels: self.metrics_application_labels.clone(),
            app_conditions: self.metrics_application_conditions.clone(),
            cluster_labels: self.metrics_cluster_labels.clone(),
        }
    }

    /// Serves until stopped; the port is open when this returns.
    pub async fn start(
        &self,
        address: IpAddr,
        report: Report,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        if self.metrics_port == 0 {
            return Ok(());
        }
        let port = self.metrics_port;
        let listener = TcpListener::bind((address, port)).await.with_context(|| {
            format!(
                "port {port} cannot be opened; choose another with --metrics-port, or 0 for none"
            )
        })?;
        let report = Arc::new(report);
        let records = report.records.clone();
        let health = move || std::future::ready(health(&records));
        let router = Router::new()
            .route("/metrics", get(move || metrics(report.clone())))
            .route("/healthz", get(health));
        serve(listener, router, stop);
        Ok(())
    }
}

/// The API's metrics and health, and this process's requests to API servers, on a port of its own
/// as in Argo CD, until stopped.
pub async fn of_api(
    address: IpAddr,
    port: u16,
    server: Server,
    report: Report,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if port == 0 {
        return Ok(());
    }
    let listener = TcpListener::bind((address, port)).await.with_context(|| {
        format!(
            "port {port} cannot be opened; choose another with --api-metrics-port, or 0 for none"
        )
    })?;
    let asked = server.clone();
    let health = move |query: RawQuery| {
        let asked = asked.clone();
        async move { answer(asked.health(is_full(query)).await) }
    };
    let text = move || {
        let requests = report.requests().unwrap_or_else(|e| format!("# {e}\n"));
        std::future::ready(([(CONTENT_TYPE, PLAIN)], server.metrics() + &requests))
    };
    let router = Router::new()
        .route("/metrics", get(text))
        .route("/healthz", get(health));
    serve(listener, router, stop);
    Ok(())
}

/// Whether `/healthz` is asked for more than that the role is there: `full=true`.
fn is_full(RawQuery(query): RawQuery) -> bool {
    query.is_some_and(|query| query.split('&').any(|part| part == "full=true"))
}

/// What `/healthz` answers; the error is its text.
fn answer(health: Result<(), String>) -> (StatusCode, String) {
    match health {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

/// The metrics of ApplicationSets and this process's requests to API servers, until stopped.
pub async fn of_sets(
    address: SocketAddr,
    sets: SetReport,
    report: Report,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let text = move || {
        let commented = |e: std::fmt::Error| format!("# {e}\n");
        // Only the last text may have the line that ends the format.
        let requests = report.requests().unwrap_or_else(commented);
        let sets = sets.text().unwrap_or_else(commented);
        std::future::ready(([(CONTENT_TYPE, report::CONTENT_TYPE)], requests + &sets))
    };
    let router = Router::new().route("/metrics", get(text));
    serve(bound(address, "--metrics-addr").await?, router, stop);
    Ok(())
}

/// The metrics of notifications and this process's requests to API servers, until stopped. `flag`
/// chooses another port, of which 0 is none.
pub async fn of_notifications(
    (address, port, flag): (IpAddr, u16, &str),
    notifications: NotificationMetrics,
    report: Report,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if port == 0 {
        return Ok(());
    }
    let records = report.records.clone();
    let text = move || {
        let commented = |e: std::fmt::Error| format!("# {e}\n");
        let requests = report.requests().unwrap_or_else(commented);
        let text = requests + &notifications.text().unwrap_or_else(commented);
        std::future::ready(([(CONTENT_TYPE, report::CONTENT_TYPE)], text))
    };
    let router = Router::new().route("/metrics", get(text)).route(
        "/healthz",
        get(move || std::future::ready(health(&records))),
    );
    serve(bound((address, port).into(), flag).await?, router, stop);
    Ok(())
}

/// `/healthz` and `/readyz`, until stopped.
pub async fn probes(
    address: SocketAddr,
    records: Records,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let ready = move || std::future::ready(health(&records));
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready));
    serve(bound(address, "--probe-addr").await?, router, stop);
    Ok(())
}

/// The webhook of the controller of ApplicationSets, until stopped.
pub async fn webhook_of_sets(
    address: SocketAddr,
    server: Server,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let handle = move |request: axum::extract::Request| async move {
        let answer = server.webhook_of_sets(request).await;
        answer.map(axum::body::Body::new)
    };
    let router = Router::new().route("/api/webhook", any(handle));
    serve(bound(address, "--webhook-addr").await?, router, stop);
    Ok(())
}

async fn bound(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("{address} cannot be opened; choose another with {flag}"))
}

/// `/metrics` and `/healthz` of a repo-server until it has ended; from its stop on, `/healthz` says
/// that it ends. With `full=true` it says whether the port of the service takes connections.
pub async fn of_repo_server(
    (address, port): (IpAddr, u16),
    service: (IpAddr, u16),
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
    (stop, ended): (CancellationToken, CancellationToken),
) -> anyhow::Result<()> {
    if port == 0 {
        return Ok(());
    }
    let listener = TcpListener::bind((address, port)).await.with_context(|| {
        format!("port {port} cannot be opened; choose another with --metrics-port, or 0 for none")
    })?;
    let health = move |query: RawQuery| {
        let ends = stop.is_cancelled();
        async move {
            if ends {
                return answer(Err(String::new()));
            }
            let connected = if is_full(query) {
                let service = (reachable(service.0), service.1);
                TcpStream::connect(service).await.map(drop)
            } else {
                Ok(())
            };
            answer(connected.map_err(|e| format!("{e}\n")))
        }
    };
    let metrics = move || std::future::ready(([(CONTENT_TYPE, PLAIN)], text()));
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health));
    serve(listener, router, ended);
    Ok(())
}

/// Where something that listens on an address is reached.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Metrics are requested rarely, and from few addresses.
fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let connections = Connections::new(Limits {
        total: 100,
        per_peer: 50,
        ..Limits::default()
    });
    let builder = Builder::new(TokioExecutor::new());
    tokio::spawn(tiphys_listen::serve_router(
        listener,
        None,
        builder,
        router,
        connections,
        stop,
    ));
}

/// Ready as long as the watches of Applications and settings work.
fn health(records: &Records) -> (StatusCode, String) {
    let problem = records.problem();
    answer(problem.map_or(Ok(()), |why| Err(format!("{why}\n"))))
}

async fn metrics(report: Arc<Report>) -> impl IntoResponse {
    match report.text() {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, report::CONTENT_TYPE)], text),
        Err(e) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(CONTENT_TYPE, "text/plain")],
            e.to_string(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::up::bootstrap;
    use clap::Parser;
    use std::{collections::BTreeMap, time::Duration};
    use tiphys_api::constants::IN_CLUSTER;
    use tiphys_cluster::{AppStates, Cluster, RecordsOptions, clusters::Clusters};
    use tiphys_embedded_kube::{EmbeddedKube, Options};
    use tiphys_testkit::{PATIENCE, free_port};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::watch,
        time::{sleep, timeout},
    };
    use tower::Service as _;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        metrics: MetricsArgs,
    }

    /// How an API server answers about Applications.
    #[derive(Clone, Copy, PartialEq)]
    enum Api {
        NotYet,
        Broken,
        Good,
    }

    /// Status and text of a path.
    async fn get(port: u16, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("open");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        let (head, text) = answer.split_once("\r\n\r\n").expect("an answer");
        let code = head.split(' ').nth(1).expect("a status");
        (code.parse().expect("a number"), text.to_owned())
    }

    async fn becomes(port: u16, path: &str, code: u16, begins: &str) {
        let becomes = async {
            loop {
                let (status, text) = get(port, path).await;
                assert_eq!(status == 200, text == "ok\n", "{status} {text}");
                if status == code && text.starts_with(begins) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = timeout(PATIENCE, becomes).await;
        assert!(waited.is_ok(), "{path} is {:?}", get(port, path).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_controller_is_ready_while_it_can_read_the_records() {
        let kube = EmbeddedKube::start(Options::default())
            .await
            .expect("it starts");
        let router = kube.router();
        let own = Cluster::connect_in_process(router.clone(), IN_CLUSTER).await;
        bootstrap::run(&own.expect("it answers"), "argocd")
            .await
            .expect("made");
        let (turn, api) = watch::channel(Api::NotYet);
        let service = Router::new().fallback(move |request: axum::extract::Request| {
            let (mut router, mut api) = (router.clone(), api.clone());
            async move {
                if request.uri().path().ends_with("/applications") {
                    let known = api.wait_for(|api| *api != Api::NotYet).await;
                    if known.is_ok_and(|api| *api == Api::Broken) {
                        return StatusCode::SERVICE_UNAVAILABLE.into_response();
                    }
                }
                router.call(request).await.into_response()
            }
        });
        let cluster = Cluster::connect_in_process(service, IN_CLUSTER).await;
        let cluster = cluster.expect("it answers");
        let records = Records::start(cluster.clone(), RecordsOptions::new("argocd"));
        let report = Report {
            metrics: tiphys_controllers::metrics::Metrics::default(),
            records: records.clone(),
            clusters: Clusters::new(cluster, records.clone()),
            states: AppStates::new(),
            choice: Choice::default(),
            sets: Arc::default(),
            charts: tiphys_controllers::metrics::charts::ChartMetrics::default(),
        };
        let stop = CancellationToken::new();
        let (of_controller, of_sets) = (free_port(), free_port());
        let words = ["x".to_owned(), format!("--metrics-port={of_controller}")];
        let local = Ipv4Addr::LOCALHOST.into();
        let args = Line::parse_from(words).metrics;
        args.start(local, report, stop.clone()).await.expect("open");
        let address = SocketAddr::new(local, of_sets);
        probes(address, records.clone(), stop.clone())
            .await
            .expect("open");

        let paths = BTreeMap::from([(of_controller, "/healthz"), (of_sets, "/readyz")]);
        for (api, code, begins) in [
            (Api::NotYet, 503, "applications are not listed yet"),
            (Api::Broken, 503, "applications cannot be followed: "),
            (Api::Good, 200, "ok\n"),
        ] {
            turn.send(api).expect("it is asked");
            for (port, path) in &paths {
                becomes(*port, path, code, begins).await;
            }
        }
        assert_eq!(get(of_sets, "/healthz").await.0, 200);
        stop.cancel();
    }
}
