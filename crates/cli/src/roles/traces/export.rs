//! Sends spans to a collector. Main type: [`Exporter`].

use super::{
    Target,
    wire::{
        EXPORT, ExportRequest, ExportResponse, Resource, ResourceSpans, Scope, ScopeSpans, Span,
    },
};
use anyhow::Context as _;
use http::{Uri, uri::PathAndQuery};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tiphys_repo::net::{self, Tls};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tonic::{
    Request, Status,
    client::Grpc,
    metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue},
    transport::Channel,
};
use tonic_prost::ProstCodec;

/// Spans per message.
const BATCH: usize = 512;
/// How long spans are collected before they are sent.
const GATHER: Duration = Duration::from_secs(1);
/// Timeout of the collector.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Exporter {
    channel: Channel,
    headers: MetadataMap,
    resource: Resource,
}

impl Exporter {
    /// Does not connect yet.
    pub fn new(target: &Target) -> anyhow::Result<Self> {
        let address = target.address.clone();
        let endpoint = net::endpoint(&address, target.insecure)
            .map_err(|e| anyhow::anyhow!("--otlp-address {address}: {e}"))?;
        let tls = (!target.insecure).then(|| Tls {
            system: true,
            ..Tls::default()
        });
        let channel = endpoint.connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
            let (address, tls) = (address.clone(), tls.clone());
            async move {
                net::dial(&address, tls.as_ref(), "h2")
                    .await
                    .map(TokioIo::new)
            }
        }));
        let mut headers = MetadataMap::new();
        for (name, value) in &target.headers {
            let key: MetadataKey<Ascii> = name
                .parse()
                .with_context(|| format!("--otlp-headers: {name:?} is not the name of a header"))?;
            let value: MetadataValue<Ascii> = value.parse().with_context(|| {
                format!("--otlp-headers: the value of {name} is not that of a header")
            })?;
            headers.insert(key, value);
        }
        Ok(Self {
            channel,
            headers,
            resource: Resource {
                attributes: target.attributes.clone(),
            },
        })
    }

    /// Runs as long as there is a sender of spans.
    pub async fn run(self, mut spans: mpsc::Receiver<Span>) {
        let (mut batch, mut lost) = (Vec::with_capacity(BATCH), 0_usize);
        while spans.recv_many(&mut batch, BATCH).await > 0 {
            if batch.len() < BATCH {
                sleep(GATHER).await;
                while batch.len() < BATCH
                    && let Ok(span) = spans.try_recv()
                {
                    batch.push(span);
                }
            }
            let count = batch.len();
            let sent = timeout(PATIENCE, self.send(std::mem::take(&mut batch))).await;
            match sent.unwrap_or_else(|_| Err(Status::deadline_exceeded("it does not answer"))) {
                Ok(()) if lost > 0 => {
                    tracing::info!(
                        "The collector of traces takes them again; {lost} spans were lost"
                    );
                    lost = 0;
                }
                Ok(()) => {}
                Err(status) => {
                    if lost == 0 {
                        tracing::warn!(
                            error = status.message(),
                            "The collector of traces does not take them; they are lost until it does"
                        );
                    }
                    lost += count;
                }
            }
        }
    }

    async fn send(&self, spans: Vec<Span>) -> Result<(), Status> {
        let scope = Some(Scope {
            name: "tiphys".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        });
        let resource_spans = vec![ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![ScopeSpans { scope, spans }],
        }];
        let mut request = Request::new(ExportRequest { resource_spans });
        request.metadata_mut().clone_from(&self.headers);
        let mut client = Grpc::new(self.channel.clone());
        client
            .ready()
            .await
            .map_err(|e| Status::unavailable(e.to_string()))?;
        let codec = ProstCodec::<ExportRequest, ExportResponse>::default();
        client
            .unary(request, PathAndQuery::from_static(EXPORT), codec)
            .await
            .map(drop)
    }
}
