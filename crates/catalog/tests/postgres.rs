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

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_as_demanded() {
    let names = |host: &str| rcgen::generate_simple_self_signed([host.to_owned()]);
    let good = names("localhost").expect("a certificate");
    let other = names("localhost").expect("a certificate");
    let started = Postgres::start_encrypted(&good.cert.pem(), &good.signing_key.serialize_pem());
    let Some(postgres) = started else {
        tiphys_testkit::skip("postgres", "there is no PostgreSQL here");
        return;
    };
    let plain = Postgres::start().expect("there was one");
    let (good, other) = (good.cert.pem(), other.cert.pem());
    // `Some(true)`: it is encrypted; `None`: there is no connection.
    for (server, host, mode, authorities, wanted) in [
        (&postgres, "localhost", "disable", "", Some(false)),
        (&postgres, "localhost", "allow", "", Some(false)),
        (&postgres, "localhost", "", "", Some(true)),
        (&postgres, "127.0.0.1", "prefer", &*other, Some(true)),
        (&postgres, "127.0.0.1", "require", "", Some(true)),
        (&postgres, "127.0.0.1", "require", &*good, Some(true)),
        (&postgres, "localhost", "require", &*other, None),
        (&postgres, "127.0.0.1", "verify-ca", &*good, Some(true)),
        (&postgres, "localhost", "verify-ca", &*other, None),
        (&postgres, "localhost", "verify-full", &*good, Some(true)),
        (&postgres, "127.0.0.1", "verify-full", &*good, None),
        (&postgres, "localhost", "verify-full", &*other, None),
        (&postgres, "localhost", "verify-full", "", None),
        (&plain, "localhost", "allow", "", Some(false)),
        (&plain, "localhost", "prefer", "", Some(false)),
        (&plain, "localhost", "require", "", None),
        (&plain, "localhost", "verify-full", &*good, None),
    ] {
        let database = server.database();
        let options = PostgresOptions {
            host: host.to_owned(),
            port: server.port(),
            user: USER.to_owned(),
            database: database.clone(),
            ssl_mode: mode.parse().expect("a mode"),
            authorities: authorities.to_owned(),
            ..PostgresOptions::default()
        };
        let opened = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
        let opened = opened.expect("a thread");
        let why = opened.as_ref().err().map(ToString::to_string);
        assert_eq!(opened.is_ok(), wanted.is_some(), "{host} {mode:?}: {why:?}");
        let encrypted = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE s.ssl AND a.application_name = 'tiphys-catalog' AND a.datname = ";
        let encrypted = server.psql("postgres", &format!("{encrypted}'{database}'"));
        let is_encrypted = encrypted.trim() != "0";
        assert_eq!(is_encrypted, wanted == Some(true), "{host} {mode:?}");
        drop(opened);
    }
    let unknown = "sure"
        .parse::<tiphys_catalog::store::SslMode>()
        .expect_err("refused");
    assert!(
        unknown.to_string().contains("verify-ca, verify-full"),
        "{unknown}"
    );
}
