//! The same statements on a real PostgreSQL.

use crate::world::{World, serve};
use std::sync::Arc;
use tiphys_catalog::{Form, RepoId, Store, store::PostgresOptions};
use tiphys_testkit::postgres::{Postgres, USER};

async fn open(postgres: &Postgres, database: &str) -> Arc<Store> {
    let options = PostgresOptions {
        host: "127.0.0.1".to_owned(),
        port: postgres.port(),
        user: USER.to_owned(),
        database: database.to_owned(),
        ..PostgresOptions::default()
    };
    let opened = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
    Arc::new(opened.expect("a thread").expect("a database"))
}

async fn on<T: Send + 'static>(
    store: &Arc<Store>,
    work: impl FnOnce(&Store) -> T + Send + 'static,
) -> T {
    let store = Arc::clone(store);
    let done = tokio::task::spawn_blocking(move || work(&store)).await;
    done.expect("a thread")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_kubeapps_is_taken_over_and_given_back() {
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    let database = postgres.database();
    let mut world = World::new();
    world.repository.form = Form::Kubeapps;
    world.store = open(&postgres, &database).await;
    serve(
        &world,
        &[("alpha", "1.0.0"), ("alpha", "1.1.0"), ("it's", "0.1.0")],
    );
    world.sync().await.expect("synced");
    let rows = |table: &str| {
        let sql = format!("SELECT {table}.* FROM {table} ORDER BY {table}.id");
        postgres.psql(&database, &sql)
    };
    let (charts, files) = (rows("charts"), rows("files"));
    assert_eq!(files.lines().count(), 3);
    // As kubeapps left it: without our tables.
    postgres.psql(
        &database,
        "DROP TABLE tiphys_repos; DROP TABLE tiphys_charts; DROP TABLE tiphys_problems;
        DROP TABLE tiphys_schema; DROP TABLE tiphys_tags; DROP TABLE tiphys_leases;
        DROP TABLE tiphys_kept;",
    );
    world.store = open(&postgres, &database).await;
    world.asked();
    let report = world.sync().await.expect("synced");
    assert!(!report.unchanged);
    assert_eq!(
        world.asked(),
        ["/charts/index.yaml"],
        "no file is read again"
    );
    assert_eq!((rows("charts"), rows("files")), (charts, files));
    // What kubeapps does when its cache is to be read again.
    postgres.psql(&database, "DROP TABLE IF EXISTS repos, charts, files");
    world.store = open(&postgres, &database).await;
    world.sync().await.expect("synced");
    assert_eq!(rows("files").lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_opened_again_and_nothing_is_lost() {
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    let database = postgres.database();
    let store = open(&postgres, &database).await;
    let id = RepoId::new("n", "r");
    let key = id.clone();
    on(&store, move |store| store.put_spec(&key, "u", "s"))
        .await
        .expect("stored");
    postgres.psql(
        &database,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    let repos = on(&store, |store| store.repos()).await;
    let repos = repos.expect("the database");
    assert_eq!((repos.len(), &repos[0].id), (1, &id));
    assert!(
        on(&store, move |store| store.delete_repo(&id))
            .await
            .expect("deleted")
    );
}
