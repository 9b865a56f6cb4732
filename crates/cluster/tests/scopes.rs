//! The scope of a kind when a step is executed: the project may permit another one.

use crate::step;

use serde_json::json;
use tiphys_apimachinery::Object;
use tiphys_cluster::{CacheOptions, Cluster, Discovery, Error, Executor, LiveCache};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_engine::sync::{
    Effect, Outcome, Propagation, Refused, Step,
    effect::{ApplyMode, Write},
    step::{Action, PruneRule},
};

const WHY: &str = "resource tiphys.test:Crew is not permitted in project p";

fn definition(scope: &str) -> Object {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let names =
        json!({"plural": "crews", "singular": "crew", "kind": "Crew", "listKind": "CrewList"});
    let spec =
        json!({"group": "tiphys.test", "scope": scope, "names": names, "versions": [version]});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crews.tiphys.test"}, "spec": spec});
    Object::from_value(crd).expect("a map")
}

/// As it is planned while its kind is unknown: in a namespace.
fn crew() -> Object {
    let metadata = json!({"name": "argo", "namespace": "default"});
    let crew = json!({"apiVersion": "tiphys.test/v1", "kind": "Crew", "metadata": metadata});
    Object::from_value(crew).expect("a map")
}

/// Permitted in one scope.
fn only(namespaced: bool) -> Refused {
    Refused::ask(|asked| {
        if asked == namespaced {
            Ok(())
        } else {
            Err(WHY.to_owned())
        }
    })
}

fn write(step: Step, mode: ApplyMode) -> Write {
    Write {
        step,
        mode,
        force: false,
        validate: true,
    }
}

fn said(outcome: &Outcome) -> &str {
    match &outcome.result {
        Ok(ok) => &ok.message,
        Err(e) => &e.message,
    }
}

/// Everything that changes an object is refused in this scope, and allowed in the other one.
async fn is_permitted_only_where_it_is_written(cluster: Cluster, scope: &str) {
    let is_namespaced = scope == "Namespaced";
    let discovery = Discovery::new(cluster).await.expect("discovery");
    let cache = LiveCache::start(discovery, CacheOptions::default());
    cache.wait_ready().await;
    let executor = Executor::new(cache);
    // The steps are made while nobody knows the kind.
    let planned = |permitted: bool| Step {
        skip_dry_run: true,
        refused: only(permitted),
        ..step::step(&crew())
    };
    let (refused, permitted) = (planned(!is_namespaced), planned(is_namespaced));
    let crd = write(step::step(&definition(scope)), ApplyMode::ClientSide);
    let made = executor.run(0, &Effect::Apply(crd)).await;
    assert!(made.result.is_ok(), "{}", said(&made));
    nothing_is_written(&executor, &refused).await;
    let read = Effect::Read {
        step: permitted.clone(),
    };
    let found = executor.run(0, &read).await;
    assert!(found.result.is_err(), "{scope}: it was written");

    let apply = Effect::Apply(write(permitted.clone(), ApplyMode::ClientSide));
    assert_eq!(
        said(&executor.run(0, &apply).await),
        "crew.tiphys.test/argo created",
        "{scope}"
    );
    let found = executor.run(0, &read).await.result.expect("it is there");
    let live = found.live.expect("the object");
    assert_eq!(!live.namespace().is_empty(), is_namespaced);

    let prune = |step: &Step| Effect::Prune {
        step: Step {
            action: Action::Prune(PruneRule::Delete),
            ..step.clone()
        },
        uid: live.uid().to_owned(),
        propagation: Propagation::Background,
    };
    let migrate = Effect::MigrateManagers {
        step: refused.clone(),
        uid: live.uid().to_owned(),
        manager: "kubectl-client-side-apply".to_owned(),
    };
    for effect in [migrate, prune(&refused)] {
        assert_eq!(
            said(&executor.run(0, &effect).await),
            WHY,
            "{scope}: {effect}"
        );
    }
    let found = executor.run(0, &read).await;
    assert!(found.result.is_ok(), "{scope}: it is gone");
    let pruned = executor.run(0, &prune(&permitted)).await;
    assert!(pruned.result.is_ok(), "{scope}: {}", said(&pruned));
}

async fn nothing_is_written(executor: &Executor, refused: &Step) {
    for mode in [
        ApplyMode::ClientSide,
        ApplyMode::ServerSide,
        ApplyMode::Replace,
        ApplyMode::Create,
        ApplyMode::Update,
    ] {
        let one = || write(refused.clone(), mode);
        for effect in [
            Effect::Apply(one()),
            Effect::RunHook(one()),
            Effect::DryRun(one()),
        ] {
            let outcome = executor.run(0, &effect).await;
            assert_eq!(said(&outcome), WHY, "{mode:?}: {effect}");
        }
    }
    let error = executor
        .create(&crew(), &refused.refused)
        .await
        .expect_err("a hook of a deletion");
    assert!(
        matches!(&error, Error::NotPermitted(why) if why == WHY),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scope_that_counts_is_the_one_that_an_object_is_written_in() {
    for scope in ["Cluster", "Namespaced"] {
        let server = EmbeddedKube::start(Options::default())
            .await
            .expect("the embedded server starts");
        let cluster =
            Cluster::connect_in_process(server.router(), "https://kubernetes.default.svc")
                .await
                .expect("it answers");
        is_permitted_only_where_it_is_written(cluster, scope).await;
        server.shutdown().await;
    }
}
