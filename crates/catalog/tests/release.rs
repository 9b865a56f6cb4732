//! Upgrades of what came from a chart: what becomes of values, and what is compared.

use crate::{
    reports::{json, report, text},
    world::{World, sha},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::{Application, source::ApplicationSource};
use tiphys_catalog::{
    CatalogError, RepoId, Repository, Store,
    release::{
        Chosen, Facts, Origin, annotations,
        merge::{Prefer, merge},
        parse_values,
        upgrade::{Plan, Wanted, plan},
    },
    sync::CatalogSync,
};
use tiphys_repo::{ChartRemote, RemoteOptions, RepoAccess};
use tiphys_testkit::charts::{FileServer, index, package};

const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n\
    data:\n  values: {{ omit .Values \"global\" | toJson | quote }}\n---\napiVersion: v1\n\
    kind: Secret\nmetadata: {name: s}\nstringData:\n  made: {{ randAlphaNum 9 }}\n  \
    kept: {{ .Values.colour }}\n";

fn chart(name: &str, version: &str, values: &str) -> Vec<u8> {
    let about = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let files = [
        ("Chart.yaml", about.as_str()),
        ("values.yaml", values),
        ("templates/all.yaml", TEMPLATE),
    ];
    package(name, &files)
}

/// Serves versions of chart `web` with these defaults.
fn publish(server: &FileServer, path: &str, versions: &[(&str, &str)]) {
    let mut entries = Vec::new();
    for (version, values) in versions {
        let archive = chart("web", version, values);
        let file = format!("web-{version}.tgz");
        entries.push((*version, file.clone(), sha(&archive)));
        server.serve(&format!("{path}/{file}"), archive);
    }
    let entries: Vec<_> = entries
        .iter()
        .map(|(version, file, digest)| ("web", *version, &**file, &**digest))
        .collect();
    server.serve(&format!("{path}/index.yaml"), index(&entries).as_str());
}

fn source(world: &World, helm: Value) -> ApplicationSource {
    serde_json::from_value(json!({
        "repoURL": world.repository.url, "chart": "web", "targetRevision": "1.0.0", "helm": helm,
    }))
    .expect("a source")
}

fn visitor(world: &World) -> CatalogSync {
    let options = RemoteOptions {
        pass_credentials: false,
        agent: String::new(),
        timeout: std::time::Duration::from_secs(30),
    };
    let remote = ChartRemote::new(world.access.clone(), options);
    CatalogSync::new(Arc::clone(&world.store), remote, world.repository.clone())
}

async fn planned(world: &World, wanted: Wanted) -> Result<Plan, CatalogError> {
    let origin = Origin::of(&world.store, &wanted.source).expect("the database");
    let origin = origin.expect("it is in the catalogue");
    let facts = Facts {
        name: "shop".to_owned(),
        namespace: "shop".to_owned(),
        ..Facts::default()
    };
    let wanted = Wanted {
        installed: "1.0.0".to_owned(),
        facts,
        ..wanted
    };
    plan(Arc::clone(&world.store), &visitor(world), &origin, wanted).await
}

/// Report 08: the four files.
#[test]
fn upgrade_values() {
    let Some(folder) = report("08-upgrade-values") else {
        return;
    };
    let read = |name: &str| parse_values(&text(&folder, name), name).expect(name);
    let (old, mine) = (read("old-defaults.yaml"), read("mine.yaml"));
    let merged = merge(&old, &mine, &read("new-defaults.yaml"), Prefer::Ours);
    let expected = read("expected-values.yaml");
    assert_eq!(merged.values, expected);
    let flags = json(&folder, "flags.json");
    let conflicts = merged.conflicts.into_iter().map(|conflict| conflict.path);
    for (flag, mut found) in [
        ("conflict", conflicts.collect()),
        ("removed_in_chart", merged.removed_in_chart),
        ("unknown_to_chart", merged.unknown_to_chart),
        ("taken_from_new", merged.taken_from_new),
        ("gone", merged.gone),
    ] {
        let mut wanted: Vec<String> =
            serde_json::from_value(flags[flag].clone()).expect("a list of paths");
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{flag}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_upgrade_changes() {
    let world = World::new();
    let old = "colour: red\nsize: 1\nimage: {tag: '1'}\n";
    let new = "colour: green\nsize: 2\nimage: {tag: '2'}\n";
    publish(&world.server, "/charts", &[("1.0.0", old), ("1.1.0", new)]);
    world.sync().await.expect("synced");
    let mine = "# Mine.\nsize: 3 # large\nimage:\n  tag: '1'\nown: x\n";
    let text = source(&world, json!({"values": mine}));
    let wanted = Wanted {
        source: text.clone(),
        ..Wanted::default()
    };
    let plan = planned(&world, wanted.clone()).await.expect("a plan");
    assert_eq!((&*plan.from, &*plan.to), ("1.0.0", "1.1.0"));
    assert_eq!(plan.source.target_revision, "1.1.0");
    assert_eq!(plan.digest, sha(&chart("web", "1.1.0", new)));
    let helm = plan.source.helm.clone().expect("values");
    assert_eq!(helm.values, "# Mine.\nsize: 3 # large\nown: x\n");
    assert_eq!(plan.merged.taken_from_new, ["colour", "image.tag"]);
    assert_eq!(plan.undecided.len(), 1);
    assert_eq!(plan.undecided[0].path, "size");
    let difference = plan.difference().expect("both render");
    assert!(
        difference.contains("=== ConfigMap shop (changed)"),
        "{difference}"
    );
    assert!(difference.contains(r#""colour":"green""#), "{difference}");
    // What is made anew each time does not differ, and a Secret's values are not shown.
    assert_eq!(difference.matches("hidden").count(), 3, "{difference}");
    assert!(difference.contains(" made: hidden"), "{difference}");

    let theirs = Wanted {
        prefer: Prefer::Theirs,
        ..wanted.clone()
    };
    let plan = planned(&world, theirs).await.expect("a plan");
    let values = plan.source.helm.expect("values").values;
    assert_eq!(values, "# Mine.\nown: x\n");
    let decided = Wanted {
        decided: parse_values("size: 9", "x").expect("YAML"),
        ..wanted.clone()
    };
    let plan = planned(&world, decided).await.expect("a plan");
    assert!(plan.undecided.is_empty());
    let values = plan.source.helm.expect("values").values;
    assert_eq!(values, "own: x\nsize: 9\n");

    // The object of values, and parameters, which stay.
    let helm = json!({
        "valuesObject": {"size": 1, "image": {"tag": "7"}},
        "parameters": [{"name": "colour", "value": "blue"}],
    });
    let wanted = Wanted {
        source: source(&world, helm),
        ..Wanted::default()
    };
    let plan = planned(&world, wanted).await.expect("a plan");
    let helm = plan.source.helm.expect("values");
    let object = helm.values_object.expect("values").value();
    assert_eq!(object, json!({"image": {"tag": "7"}}));
    assert_eq!(helm.parameters.len(), 1);
    assert!(
        plan.notes[0].contains("parameter colour"),
        "{:?}",
        plan.notes
    );

    // What the chart refuses is said before anything is written.
    let wanted = Wanted {
        source: source(&world, json!({"values": "a: [\n"})),
        ..Wanted::default()
    };
    assert!(planned(&world, wanted).await.is_err());
    let absent = Wanted {
        source: text,
        version: Some("7.0.0".to_owned()),
        ..Wanted::default()
    };
    let why = planned(&world, absent).await.expect_err("no such version");
    assert!(why.to_string().contains("7.0.0"), "{why}");
}

/// An archive that was replaced is neither installed nor merged.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_archives_are_named() {
    let world = World::new();
    let versions = [
        ("1.0.0", "a: 1\ncolour: x\n"),
        ("1.1.0", "a: 2\ncolour: x\n"),
    ];
    publish(&world.server, "/charts", &versions);
    world.sync().await.expect("synced");
    let wanted = Wanted {
        source: source(&world, json!({"values": "a: 1\n"})),
        digest: "ab".repeat(32),
        ..Wanted::default()
    };
    let plan = planned(&world, wanted.clone()).await.expect("a plan");
    assert!(
        plan.notes[0].contains("its digest differs"),
        "{:?}",
        plan.notes
    );
    assert!(plan.before.is_none() && plan.difference().is_none());
    // Not reset to the new defaults.
    assert_eq!(plan.source.helm.expect("values").values, "a: 1\n");

    let other = chart("web", "1.1.0", "a: 3\n");
    world.server.serve("/charts/web-1.1.0.tgz", other);
    let why = planned(&world, wanted).await.expect_err("another archive");
    assert!(why.to_string().contains("digest differs"), "{why}");
}

/// Report 07: what is installed left its index, and its repository the catalogue.
#[tokio::test(flavor = "multi_thread")]
async fn upgrade_without_current() {
    let mut world = World::new();
    let old = ("1.0.0", "replicas: 1\ncolour: red\n");
    let new = ("1.1.0", "replicas: 2\ncolour: blue\n");
    publish(&world.server, "/charts", &[old, new]);
    publish(&world.server, "/other", &[("9.0.0", "")]);
    world.sync().await.expect("synced");
    let other = World {
        server: FileServer::start(),
        store: Arc::clone(&world.store),
        repository: Repository {
            id: RepoId::new("team", "s"),
            url: format!("{}/other", world.server.url()),
            ..Repository::default()
        },
        access: RepoAccess::public(format!("{}/other", world.server.url())),
        timeout: world.timeout,
    };
    other.sync().await.expect("synced");
    let installed = source(&world, json!({"values": "replicas: 3\n"}));
    let origin = |store: &Store| Origin::of(store, &installed).expect("the database");
    let offered = |store: &Store| {
        let origin = origin(store)?;
        origin.newer("1.0.0")
    };
    // Whoever lists updates remembers the defaults.
    let known = origin(&world.store).expect("known");
    known.keep(&world.store, "1.0.0").expect("the database");

    publish(&world.server, "/charts", &[new]);
    world.sync().await.expect("synced");
    assert_eq!(offered(&world.store).as_deref(), Some("1.1.0"));
    let wanted = Wanted {
        source: installed.clone(),
        ..Wanted::default()
    };
    let plan = planned(&world, wanted.clone()).await.expect("a plan");
    assert_eq!(plan.merged.taken_from_new, ["colour"]);
    assert_eq!(plan.source.helm.expect("values").values, "replicas: 3\n");
    assert_eq!(plan.undecided[0].path, "replicas");

    let id = world.repository.id.clone();
    world.store.delete_repo(&id).expect("the database");
    assert_eq!(offered(&world.store), None, "its origin is gone");
    let mut app: Application = serde_json::from_value(json!({
        "metadata": {"name": "shop"}, "spec": {"source": installed.clone()},
    }))
    .expect("an Application");
    let came_from = |app: &Application| {
        let chosen = Chosen::one(app, None).expect("a chart");
        chosen.came_from()
    };
    assert_eq!(came_from(&app), None, "somebody else made it");
    app.metadata.annotations = annotations("team/r", "web", "1.0.0", "");
    assert_eq!(came_from(&app).as_deref(), Some("team/r/web"));
    let url = std::mem::replace(
        &mut world.repository.url,
        format!("{}/moved", world.server.url()),
    );
    publish(&world.server, "/moved", &[("2.0.0", "")]);
    world.access = RepoAccess::public(world.repository.url.clone());
    world.sync().await.expect("synced");
    assert_eq!(offered(&world.store), None, "another repository");
    world.store.delete_repo(&id).expect("the database");
    world.repository.url.clone_from(&url);
    world.access = RepoAccess::public(url);
    world.sync().await.expect("synced");
    assert_eq!(offered(&world.store).as_deref(), Some("1.1.0"));
}
