//! The same statements on a real PostgreSQL.

use crate::world::{SVG, World, serve, serve_with_icon};
use std::{sync::Arc, time::Duration};
use tiphys_catalog::{
    Form, RepoId, Store,
    store::{PostgresOptions, Ssl, SslMode},
};
use tiphys_testkit::postgres::{Postgres, USER};

pub async fn open(postgres: &Postgres, database: &str) -> Arc<Store> {
    open_with(postgres, database, None).await
}

/// `answer`: how long it may take to answer.
pub async fn open_with(
    postgres: &Postgres,
    database: &str,
    answer: Option<Duration>,
) -> Arc<Store> {
    let options = PostgresOptions {
        host: "127.0.0.1".to_owned(),
        port: postgres.port(),
        user: USER.to_owned(),
        database: database.to_owned(),
        answer,
        ..PostgresOptions::default()
    };
    let opened = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
    Arc::new(opened.expect("a thread").expect("a database"))
}

pub async fn on<T: Send + 'static>(
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
        DROP TABLE tiphys_kept; DROP TABLE tiphys_archives;",
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
async fn an_icon_that_kubeapps_could_not_read_is_read_again() {
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    let database = postgres.database();
    let mut world = World::new();
    world.repository.form = Form::Kubeapps;
    world.store = open(&postgres, &database).await;
    serve_with_icon(&world, SVG, "a", 0);
    world.sync().await.expect("synced");
    let drawn = "SELECT count(*) FROM charts WHERE info->>'raw_icon' <> ''";
    assert_eq!(postgres.psql(&database, drawn).trim(), "1");
    // kubeapps reads another index while the host of the icon does not answer.
    postgres.psql(
        &database,
        r#"UPDATE charts SET info = info || '{"raw_icon": null, "icon_content_type": ""}';
        UPDATE repos SET checksum = 'of another index'"#,
    );
    assert_eq!(postgres.psql(&database, drawn).trim(), "0");
    world.sync().await.expect("synced");
    assert_eq!(postgres.psql(&database, drawn).trim(), "1");
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

/// Report 11: the table, and what else libpq does.
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
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (good, other) = (
        file("good.crt", &good.cert.pem()),
        file("other.crt", &other.cert.pem()),
    );
    // `Some(true)`: it is encrypted; `None`: there is no connection.
    for (server, host, mode, root, wanted) in [
        (&postgres, "localhost", "disable", "", Some(false)),
        (&postgres, "localhost", "disable", "/none", Some(false)),
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
        (&postgres, "localhost", "verify-full", "system", None),
        (&postgres, "localhost", "require", "/none", None),
        (&plain, "localhost", "allow", "", Some(false)),
        (&plain, "localhost", "prefer", "", Some(false)),
        (&plain, "localhost", "require", "", None),
        (&plain, "localhost", "require", &*good, None),
        (&plain, "localhost", "verify-ca", &*good, None),
        (&plain, "localhost", "verify-full", &*good, None),
    ] {
        let database = server.database();
        // In the URL; what is empty there is not set.
        let address = format!(
            "postgres://{USER}:hidden%40word@{host}:{}/{database}?sslmode={mode}&sslrootcert={root}",
            server.port()
        );
        let options = PostgresOptions::default().at(&address).expect(&address);
        let opened = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
        let opened = opened.expect("a thread");
        let why = opened.as_ref().err().map(ToString::to_string);
        assert_eq!(opened.is_ok(), wanted.is_some(), "{host} {mode:?}: {why:?}");
        assert!(!why.unwrap_or_default().contains("hidden"));
        let encrypted = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE s.ssl AND a.application_name = 'tiphys-catalog' AND a.datname = ";
        let encrypted = server.psql("postgres", &format!("{encrypted}'{database}'"));
        let is_encrypted = encrypted.trim() != "0";
        assert_eq!(is_encrypted, wanted == Some(true), "{host} {mode:?}");
        drop(opened);
    }
}

/// A self-signed certificate of a user and its key.
fn user(name: &str) -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut about = rcgen::CertificateParams::default();
    about
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    let certificate = about.self_signed(&key).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

/// Report 11: certificates of users, their keys, and files that change.
#[tokio::test(flavor = "multi_thread")]
async fn users_show_certificates() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
    let (certificate, key) = user("demanded");
    let (server_pem, server_key) = (server.cert.pem(), server.signing_key.serialize_pem());
    let Some(postgres) = Postgres::start_demanding(&server_pem, &server_key, &certificate) else {
        tiphys_testkit::skip("postgres", "there is no PostgreSQL here");
        return;
    };
    let database = postgres.database();
    postgres.psql(
        &database,
        &format!("CREATE ROLE demanded LOGIN; ALTER DATABASE {database} OWNER TO demanded"),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        path
    };
    let root = file("root.crt", &server_pem, 0o644);
    let certificate = file("user.crt", &certificate, 0o644);
    let key = file("user.key", &key, 0o600);
    let (foreign, foreign_key) = user("demanded");
    let foreign = file("foreign.crt", &foreign, 0o644);
    let foreign_key = file("foreign.key", &foreign_key, 0o600);
    let none = std::path::PathBuf::new();
    let options = |certificate: &std::path::Path, key: &std::path::Path| PostgresOptions {
        host: "localhost".to_owned(),
        port: postgres.port(),
        user: "demanded".to_owned(),
        database: database.clone(),
        ssl: Ssl::new("verify-full", &root, certificate, key).expect("settings"),
        ..PostgresOptions::default()
    };
    for (certificate, key, why) in [
        (&none, &none, "certificate"),
        (&foreign, &foreign_key, "ca"),
        (&certificate, &none, "sslcert needs sslkey"),
    ] {
        let options = options(certificate, key);
        let opened = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
        let refused = opened.expect("a thread").err().expect("it is refused");
        let refused = refused.to_string().to_lowercase();
        assert!(refused.contains(why), "{refused}");
    }
    for mode in [0o644, 0o610, 0o602] {
        file(
            "user.key",
            &std::fs::read_to_string(&key).expect("a key"),
            mode,
        );
        let options = options(&certificate, &key);
        let opened = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
        let why = opened.expect("a thread").err().expect("it is refused");
        assert!(why.to_string().contains("group or world access"), "{why}");
    }
    file(
        "user.key",
        &std::fs::read_to_string(&key).expect("a key"),
        0o600,
    );
    let options = options(&certificate, &key);
    let store = tokio::task::spawn_blocking(|| Store::postgres(options)).await;
    let store = Arc::new(store.expect("a thread").expect("it is let in"));
    // What is in the files counts for the next connection.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'demanded'";
    for (name, text, works) in [
        ("root.crt", &*user("localhost").0, false),
        ("root.crt", &*server_pem, true),
    ] {
        file(name, text, 0o644);
        postgres.psql("postgres", end);
        let listed = on(&store, |store| store.repos()).await;
        assert_eq!(listed.is_ok(), works, "{:?}", listed.err());
    }
}

#[test]
fn words_of_modes() {
    let unknown = "sure".parse::<SslMode>().expect_err("refused");
    assert!(
        unknown
            .to_string()
            .contains("disable, allow, prefer, require, verify-ca, verify-full"),
        "{unknown}"
    );
}
