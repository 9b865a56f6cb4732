//! Charts and artifacts that are here already: what stands in while a registry is away, and what
//! does not when it refuses or a hard refresh asks.

use crate::oci::{Here, access, chart_request, field, layer, request};
use tiphys_repo::{ManifestRequest, Repos};
use tiphys_testkit::{
    charts::{Answer, plain_chart},
    registry::{HELM_LAYER, Registry, TAR_LAYER},
};

#[tokio::test]
async fn a_chart_outlives_an_outage_of_its_registry() {
    let (here, registry) = (Here::new(), Registry::start());
    registry.push(
        "charts/demo",
        "1.0.0",
        HELM_LAYER,
        &plain_chart("demo", "1.0.0", &[]),
    );
    let access = access(&format!("{}/charts", registry.host()));
    here.render(chart_request(access.clone(), "demo", "1.0.0"))
        .await
        .expect("rendered");
    let down = Answer {
        status: 503,
        ..Answer::default()
    };
    registry
        .server
        .serve("/v2/charts/demo/manifests/1.0.0", down);
    let restarted = Repos::new(here.dir.path().join("cache"));
    let made = restarted
        .manifests(chart_request(access.clone(), "demo", "1.0.0"))
        .await;
    assert_eq!(field(&made.expect("it is kept"), "version"), "1.0.0");
    let fresh = Repos::new(here.dir.path().join("other"));
    let failed = fresh
        .manifests(chart_request(access.clone(), "demo", "1.0.0"))
        .await;
    let failed = failed.expect_err("it was never there");
    assert_eq!(
        failed.to_string(),
        format!(
            "failed to fetch {}/demo: 503 Service Unavailable",
            access.url
        )
    );
    assert!(failed.retryable());
    // A hard refresh sees an archive that was replaced.
    let blue = plain_chart("demo", "1.0.0", &[("values.yaml", "colour: blue\n")]);
    registry.push("charts/demo", "1.0.0", HELM_LAYER, &blue);
    let hard = ManifestRequest {
        no_cache: true,
        ..chart_request(access, "demo", "1.0.0")
    };
    assert_eq!(
        field(&here.render(hard).await.expect("rendered"), "colour"),
        "blue"
    );
}

#[tokio::test]
async fn a_hard_refresh_wants_an_answer_of_the_registry() {
    let (here, registry) = (Here::new(), Registry::start());
    let chart = plain_chart("demo", "1.0.0", &[]);
    registry.push("charts/demo", "1.0.0", HELM_LAYER, &chart);
    let digest = registry.push("team/app", "main", TAR_LAYER, &layer("one"));
    let (charts, artifact) = (
        access(&format!("{}/charts", registry.host())),
        access(&format!("oci://{}/team/app", registry.host())),
    );
    let requests = [
        chart_request(charts, "demo", "1.0.0"),
        request(artifact, "app", &digest),
    ];
    for asked in &requests {
        here.render(asked.clone()).await.expect("rendered");
    }
    let paths = [
        "/v2/charts/demo/manifests/1.0.0".to_owned(),
        format!("/v2/team/app/manifests/{digest}"),
    ];
    for (status, is_away) in [(503, true), (403, false), (404, false)] {
        for path in &paths {
            let answer = Answer {
                status,
                ..Answer::default()
            };
            registry.server.serve(path, answer);
        }
        for asked in &requests {
            let hard = ManifestRequest {
                no_cache: true,
                ..asked.clone()
            };
            let restarted = Repos::new(here.dir.path().join("cache"));
            for repos in [&here.repos, &restarted] {
                let failed = repos.manifests(hard.clone()).await.map(|_| ());
                let failed = failed.expect_err("nobody knows what is there now");
                assert_eq!(failed.retryable(), is_away, "{status}: {failed}");
            }
            if is_away {
                let kept = restarted.manifests(asked.clone()).await;
                kept.expect("what was there before is enough");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_counts_for_what_a_registry_gave_before() {
    let (here, registry) = (Here::new(), Registry::start());
    let chart = plain_chart("demo", "1.0.0", &[]);
    let push_chart = || registry.push("charts/demo", "1.0.0", HELM_LAYER, &chart);
    let push_artifact = || registry.push("team/app", "main", TAR_LAYER, &layer("one"));
    push_chart();
    let digest = push_artifact();
    let (charts, artifact) = (
        access(&format!("{}/charts", registry.host())),
        access(&format!("oci://{}/team/app", registry.host())),
    );
    let cases = [
        (
            chart_request(charts, "demo", "1.0.0"),
            "/v2/charts/demo/manifests/1.0.0".to_owned(),
        ),
        (
            request(artifact, "app", &digest),
            format!("/v2/team/app/manifests/{digest}"),
        ),
    ];
    for (soft, path) in &cases {
        let answers = |status| {
            let answer = Answer {
                status,
                ..Answer::default()
            };
            registry.server.serve(path, answer);
        };
        let hard = ManifestRequest {
            no_cache: true,
            ..soft.clone()
        };
        let first = here.render(soft.clone()).await.expect("rendered");
        answers(503);
        let away = here.render(hard.clone()).await.map(|_| ());
        away.expect_err("nobody knows what is there now");
        let again = here.render(soft.clone()).await;
        again.expect("an outage says nothing");
        assert!(here.repos.unchanged(soft, &first).is_some());

        answers(403);
        let refused = here.render(hard).await.map(|_| ());
        refused.expect_err("it is refused");
        assert!(here.repos.unchanged(soft, &first).is_none());
        let refused = here.render(soft.clone()).await.map(|_| ());
        refused.expect_err("it is refused");
        // From then on an outage has nothing to hide.
        answers(503);
        let refused = here.render(soft.clone()).await.map(|_| ());
        refused.expect_err("it was refused");

        push_chart();
        push_artifact();
        here.render(soft.clone()).await.expect("accepted again");
        assert!(here.repos.unchanged(soft, &first).is_some());
    }
}

/// An account may be permitted to pull what it names, and not to list what there is.
#[tokio::test]
async fn a_refused_list_of_tags_says_nothing_of_an_artifact() {
    let (here, registry) = (Here::new(), Registry::start());
    let digest = registry.push("team/app", "main", TAR_LAYER, &layer("one"));
    let access = access(&format!("oci://{}/team/app", registry.host()));
    let soft = request(access.clone(), "app", &digest);
    here.render(soft.clone()).await.expect("rendered");
    let answers = |path: &str, status| {
        let answer = Answer {
            status,
            ..Answer::default()
        };
        registry.server.serve(path, answer);
    };
    let list = "/v2/team/app/tags/list?n=1000";
    answers(list, 403);
    let refused = here.repos.oci_tags(&access).await;
    refused.expect_err("it is refused");
    // The list goes on being refused in an outage, and the artifact does not.
    answers(list, 503);
    answers(&format!("/v2/team/app/manifests/{digest}"), 503);
    let refused = here.repos.oci_tags(&access).await;
    refused.expect_err("it was refused");
    let restarted = Repos::new(here.dir.path().join("cache"));
    for repos in [&here.repos, &restarted] {
        let kept = repos.manifests(soft.clone()).await;
        kept.expect("an outage says nothing");
    }
}
