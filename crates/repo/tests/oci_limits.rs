//! What artifacts and charts of registries may be, as the settings say, and what metrics are told of
//! the requests for them.

use crate::oci::{CONFIG_MAP, Here, access, chart_request, field, layer, request, sent};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tiphys_repo::{ContactKind, ContactWatch, RegistryRequest, RepoOptions, Since, SourceLimits};
use tiphys_testkit::{
    archive::{TarEntry, gzip, tar},
    charts::plain_chart,
    registry::{HELM_LAYER, Registry, TAR_GZIP_LAYER, TAR_LAYER, manifest},
};

fn within(sources: SourceLimits) -> Here {
    Here::with(RepoOptions {
        sources,
        ..RepoOptions::default()
    })
}

/// As `flux push artifact` makes it.
const FLUX_CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const FLUX_LAYER: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

#[tokio::test]
async fn what_flux_pushes_is_read_if_its_type_is_allowed() {
    let registry = Registry::start();
    let content = gzip(&layer("of flux"));
    registry.push_blob("team/app", &content);
    let text = manifest(FLUX_CONFIG, &[(FLUX_LAYER, &content)], &json!({}));
    let digest = registry.push_manifest("team/app", "1.0.0", &text);
    let plain = registry.push("team/app", "2.0.0", TAR_LAYER, &layer("plain"));
    let app = access(&format!("oci://{}/team/app", registry.host()));
    let refusal =
        |kind| format!("oci layer media type {kind} is not in the list of allowed media types");

    let usual = Here::new();
    let refused = usual.render(request(app.clone(), "app", &digest)).await;
    let refused = refused.expect_err("it is not usual");
    assert_eq!(refused.to_string(), refusal(FLUX_LAYER));

    let mut limits = SourceLimits::default();
    limits.layer_types.push(FLUX_LAYER.to_owned());
    let both = within(limits);
    for (digest, value) in [(&digest, "of flux"), (&plain, "plain")] {
        let made = both.render(request(app.clone(), "app", digest)).await;
        assert_eq!(field(&made.expect("it is allowed"), "v"), value);
    }

    let only = within(SourceLimits {
        layer_types: vec![FLUX_LAYER.to_owned()],
        ..SourceLimits::default()
    });
    let refused = only.render(request(app, "app", &plain)).await;
    let refused = refused.expect_err("it is not in the list");
    assert_eq!(refused.to_string(), refusal(TAR_LAYER));
}

#[tokio::test]
async fn an_artifact_has_the_size_that_is_allowed() {
    let registry = Registry::start();
    let large = "0".repeat(3 << 20);
    let files = [
        TarEntry::file("app/a.yaml", CONFIG_MAP),
        TarEntry::file("large.txt", &large),
    ];
    let digest = registry.push("team/app", "1", TAR_GZIP_LAYER, &gzip(&tar(&files)));
    let app = access(&format!("oci://{}/team/app", registry.host()));
    let limit = |artifact_bytes| {
        within(SourceLimits {
            artifact_bytes,
            ..SourceLimits::default()
        })
    };
    let wide = limit(u64::MAX);
    let made = wide.render(request(app.clone(), "app", &digest)).await;
    assert_eq!(field(&made.expect("it fits"), "v"), "one");

    let narrow = limit(1 << 20);
    let failure = async || {
        let made = narrow.render(request(app.clone(), "app", &digest)).await;
        made.expect_err("it is too large").to_string()
    };
    let refused = failure().await;
    let reason = "it unpacks to more than 1048576 bytes (raise the limit with --oci-manifest-max-extracted-size)";
    assert!(refused.ends_with(reason), "{refused}");
    sent(&registry.server);
    assert_eq!(failure().await, refused);
    assert_eq!(sent(&registry.server), [], "it is not downloaded again");

    // What is not packed is refused by its size, before it is downloaded.
    let plain = registry.push("team/app", "2", TAR_LAYER, &tar(&files));
    let refused = narrow.render(request(app.clone(), "app", &plain)).await;
    assert_eq!(
        refused.expect_err("it is too large").to_string(),
        format!(
            "repository {}/team/app is refused: it has a layer of more than 1048576 bytes",
            registry.host()
        )
    );
}

#[tokio::test]
async fn what_a_chart_unpacks_to_is_limited() {
    let registry = Registry::start();
    let notes = "0".repeat(2 << 20);
    let chart = plain_chart("demo", "1.0.0", &[("NOTES.md", &notes)]);
    registry.push("charts/demo", "1.0.0", HELM_LAYER, &chart);
    let charts = access(&format!("{}/charts", registry.host()));
    let asked = || chart_request(charts.clone(), "demo", "1.0.0");
    Here::new().render(asked()).await.expect("it fits");
    let narrow = within(SourceLimits {
        chart_bytes: 1 << 20,
        ..SourceLimits::default()
    });
    let refused = narrow.render(asked()).await.expect_err("it is too large");
    let reason = "decompressed chart is larger than the maximum size 1048576";
    assert!(refused.to_string().contains(reason), "{refused}");
}

type Told = Arc<Mutex<Vec<(RegistryRequest, String, String, bool)>>>;

#[tokio::test]
async fn requests_for_sources_are_told() {
    let (told, registry) = (Told::default(), Registry::start());
    let here = {
        let told = Arc::clone(&told);
        Here::with(RepoOptions {
            contacts: ContactWatch::new(move |contact| {
                if let ContactKind::Registry(request) = contact.kind {
                    let (repository, revision) = (contact.repository, contact.revision);
                    let one = (
                        request,
                        repository.to_owned(),
                        revision.to_owned(),
                        contact.is_failed,
                    );
                    told.lock().expect("one at a time").push(one);
                }
            }),
            ..RepoOptions::default()
        })
    };
    let heard = || {
        let all = std::mem::take(&mut *told.lock().expect("one at a time"));
        let at = format!("{}/team/app", registry.host());
        all.into_iter()
            .map(|(request, repository, revision, is_failed)| {
                assert_eq!(repository, at);
                (request, revision, is_failed)
            })
            .collect::<Vec<_>>()
    };
    let of = |request, revision: &str, is_failed| (request, revision.to_owned(), is_failed);
    let digest = registry.push("team/app", "1.0.0", TAR_LAYER, &layer("one"));
    let other = registry.push("team/app", "2.0.0", TAR_LAYER, &layer("other"));
    registry.tags("team/app", &["1.0.0"]);
    let app = access(&format!("oci://{}/team/app", registry.host()));

    here.resolved(&app, "", "1.0.0").await.expect("a digest");
    here.resolved(&app, "", &digest).await.expect("it is one");
    here.resolved(&app, "", "9.9.9").await.expect_err("no tag");
    here.resolved(&app, "", "1.x").await.expect("a range");
    assert_eq!(
        heard(),
        [
            of(RegistryRequest::ResolveRevision, "1.0.0", false),
            of(RegistryRequest::ResolveRevision, "9.9.9", true),
            of(RegistryRequest::GetTags, "", false),
            of(RegistryRequest::ResolveRevision, "1.x", false),
        ]
    );
    for _ in 0..2 {
        let made = here.render(request(app.clone(), "app", &digest)).await;
        made.expect("rendered");
    }
    // What was received for a render, or for the same question, is answered from memory.
    for digest in [&digest, &other, &other] {
        here.repos.oci_metadata(&app, digest).await.expect("said");
    }
    here.repos.oci_tags(&app).await.expect("tags");
    here.repos.test_registry(&app).await.expect_err("no answer");
    assert_eq!(
        heard(),
        [
            of(RegistryRequest::Extract, &digest, false),
            of(RegistryRequest::DigestMetadata, &other, false),
            of(RegistryRequest::GetTags, "", false),
            of(RegistryRequest::TestRepo, "", true),
        ]
    );
    // Recent tags and digests are, too, also for a range that is no tag.
    here.resolved(&app, "", "^1").await.expect("a range");
    assert_eq!(
        heard(),
        [
            of(RegistryRequest::GetTags, "", false),
            of(RegistryRequest::ResolveRevision, "^1", false),
        ]
    );
    let source = request(app.clone(), "app", "").source;
    for revision in ["1.0.0", "^1"] {
        let again = here
            .repos
            .resolve_source(&app, &source, revision, Since::Recently);
        assert_eq!(again.await.expect("known").sha, digest);
    }
    assert_eq!(heard(), []);
    // Charts are not counted, as in Argo CD.
    let chart = plain_chart("demo", "1.0.0", &[]);
    registry.push("charts/demo", "1.0.0", HELM_LAYER, &chart);
    let charts = access(&format!("{}/charts", registry.host()));
    let asked = chart_request(charts, "demo", "1.0.0");
    here.render(asked).await.expect("rendered");
    assert_eq!(heard(), []);
}
