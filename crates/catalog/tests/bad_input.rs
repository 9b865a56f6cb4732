//! What repositories, registries and databases do that nobody should build on: each is named, costs
//! a bounded amount, and keeps nothing else away.

use crate::{
    postgres::{on, open_with},
    world::{World, serve, sha},
};
use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_catalog::{CatalogError, search::Query};
use tiphys_testkit::{
    archive::{self, TarEntry},
    charts::{Answer, index, plain_chart},
    postgres::Postgres,
};

/// A server whose answers are no files.
struct Odd {
    port: u16,
    sent: Arc<AtomicUsize>,
}

/// The most that is ever sent of an endless archive.
const ENDLESS: usize = 256 << 20;

impl Odd {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of loopback");
        let port = listener.local_addr().expect("an address").port();
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        // Ends with the program: nothing else connects to this port.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || answer(&stream, &count));
            }
        });
        Self { port, sent }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

/// Until the client goes away, or what is to be sent is sent.
fn answer(mut stream: &TcpStream, sent: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok()?;
    }
    let start = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    match first.split(' ').nth(1)? {
        "/announced.tgz" => {
            let head = format!("{start}Content-Length: {}\r\n\r\n", 10_u64 << 30);
            stream.write_all(head.as_bytes()).ok()?;
            std::thread::sleep(Duration::from_secs(60));
        }
        "/endless.tgz" => {
            stream.write_all(format!("{start}\r\n").as_bytes()).ok()?;
            while sent.load(Ordering::Relaxed) < ENDLESS {
                stream.write_all(&[0x1f; 1 << 16]).ok()?;
                sent.fetch_add(1 << 16, Ordering::Relaxed);
            }
        }
        "/drops.tgz" => {
            stream.write_all(format!("{start}\r\n").as_bytes()).ok()?;
            for _ in 0..1_200 {
                stream.write_all(b"x").ok()?;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        "/silent.tgz" => std::thread::sleep(Duration::from_secs(60)),
        _ => stream.write_all(b"\x16\x03\x01 no HTTP").ok()?,
    }
    Some(())
}

/// Each chart of one index is bad in its own way; one is good.
#[tokio::test(flavor = "multi_thread")]
async fn archives() {
    let mut world = World::new();
    world.timeout = Duration::from_secs(2);
    let odd = Odd::start();
    let good = plain_chart("good", "1.0.0", &[("README.md", "fine\n")]);
    let bomb = archive::gzip(&archive::tar(&[TarEntry::claiming("bomb/big", 1 << 30)]));
    world.server.serve("/charts/good.tgz", good.clone());
    world.server.serve("/charts/bomb.tgz", bomb.clone());
    for (from, to) in [("a", "b"), ("b", "a")] {
        let redirect = Answer {
            status: 302,
            headers: vec![format!("Location: /charts/{to}.tgz")],
            ..Answer::default()
        };
        world.server.serve(&format!("/charts/{from}.tgz"), redirect);
    }
    let any = "ab".repeat(32);
    let cases = [
        (
            "announced",
            odd.url("announced.tgz"),
            "more than 67108864 bytes",
        ),
        (
            "bomb",
            "bomb.tgz".to_owned(),
            "more than 268435456 bytes unpacked",
        ),
        ("circle", "a.tgz".to_owned(), "too many redirects"),
        (
            "digest",
            "good.tgz".to_owned(),
            "digest differs: the index says abab",
        ),
        ("drops", odd.url("drops.tgz"), "2 s"),
        (
            "endless",
            odd.url("endless.tgz"),
            "more than 67108864 bytes",
        ),
        (
            "files",
            "file:///etc/passwd".to_owned(),
            "neither http nor https",
        ),
        ("garbage", odd.url("garbage.tgz"), "invalid HTTP"),
        (
            "inner",
            "http://169.254.169.254/latest".to_owned(),
            "169.254.169.254",
        ),
        ("silent", odd.url("silent.tgz"), "2 s"),
    ];
    let sums = [("bomb", sha(&bomb)), ("good", sha(&good))];
    let digest = |name: &str| {
        let sum = sums.iter().find(|(of, _)| *of == name);
        sum.map_or(any.clone(), |(_, sum)| sum.clone())
    };
    let digests: Vec<String> = cases.iter().map(|(name, ..)| digest(name)).collect();
    let mut entries: Vec<(&str, &str, &str, &str)> = cases
        .iter()
        .zip(&digests)
        .map(|((name, url, _), digest)| (*name, "1.0.0", url.as_str(), digest.as_str()))
        .collect();
    let of_good = digest("good");
    entries.push(("good", "1.0.0", "good.tgz", &of_good));
    world
        .server
        .serve("/charts/index.yaml", index(&entries).as_str());
    let report = world.sync().await.expect("synced");
    assert_eq!((report.files, report.failed_files), (1, cases.len()));
    assert_eq!(world.readme("good", "1.0.0").as_deref(), Some("fine\n"));
    let problems = world.store.problems(&world.repository.id);
    let problems = problems.expect("the database");
    for (name, _, wanted) in &cases {
        let of = |p: &&tiphys_catalog::store::Problem| p.chart_id == format!("r/{name}");
        let reason = &problems.iter().find(of).expect("a problem").reason;
        assert!(reason.contains(wanted), "{name}: {reason}");
    }
    let sent = odd.sent.load(Ordering::Relaxed);
    assert!(sent < 3 * ENDLESS / 4, "{sent} bytes of an endless archive");
}

/// Names and versions that are SQL, paths, patterns or no versions at all.
#[tokio::test(flavor = "multi_thread")]
async fn names() {
    let mut world = World::new();
    let names = [
        "a'; DROP TABLE charts; --",
        "$1",
        "100%_",
        "\u{202e}evil",
        "nul\\0",
        "good",
    ];
    let archive = plain_chart("good", "1.0.0", &[("README.md", "fine\n")]);
    let digest = sha(&archive);
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for name in names {
        let quoted = serde_json::to_string(name).expect("text");
        for version in ["1.0.0", "'; DELETE FROM files; --"] {
            let version = serde_json::to_string(version).expect("text");
            let _ = match text.contains(&format!("  {quoted}:\n")) {
                true => Ok(()),
                false => writeln!(text, "  {quoted}:"),
            };
            let _ = writeln!(
                text,
                "  - {{name: {quoted}, version: {version}, urls: [/x.tgz], digest: {digest}}}"
            );
        }
    }
    world.server.serve("/x.tgz", archive);
    world.server.serve("/charts/index.yaml", text.as_str());
    let mut stores = vec![Arc::clone(&world.store)];
    let postgres = Postgres::start_or_skip();
    if let Some(postgres) = &postgres {
        stores.push(open_with(postgres, &postgres.database(), None).await);
    }
    let mut found = Vec::new();
    for store in stores {
        world.store = Arc::clone(&store);
        world.sync().await.expect("synced");
        let id = world.repository.id.clone();
        let seen = on(&store, move |store| {
            let charts = store.search(&Query::default()).expect("the database");
            let charts: Vec<String> = charts.charts.into_iter().map(|c| c.name).collect();
            let problems = store.problems(&id).expect("the database");
            let problems: Vec<_> = problems
                .into_iter()
                .map(|p| (p.chart_id, p.version, p.reason))
                .collect();
            let exact = names.map(|name| {
                let query = Query {
                    text: name.to_owned(),
                    ..Query::default()
                };
                let found = store.search(&query).expect("the database").charts;
                found.into_iter().map(|c| c.name).collect::<Vec<_>>()
            });
            let files = store.files(&id, "r/good", "1.0.0").expect("the database");
            (charts, problems, exact, files.map(|files| files.readme))
        });
        found.push(seen.await);
    }
    let (charts, problems, exact, readme) = &found[0];
    assert!(found.iter().all(|other| other == &found[0]), "{found:#?}");
    assert_eq!(readme.as_deref(), Some("fine\n"));
    assert!(charts.contains(&"good".to_owned()), "{charts:?}");
    for (name, exact) in names.iter().zip(exact) {
        let is_there = charts.iter().any(|chart| chart == name);
        let is_named = problems.iter().any(|(id, ..)| id.contains(name));
        assert!(is_there || is_named, "{name} is neither there nor named");
        assert!(
            !is_there || exact.iter().any(|chart| chart == name),
            "{name}: {exact:?}"
        );
    }
}

/// A database that loses its connections all the time, and then hangs.
#[tokio::test(flavor = "multi_thread")]
async fn databases() {
    let Some(postgres) = Postgres::start_or_skip() else {
        return;
    };
    let database = postgres.database();
    let mut world = World::new();
    let limit = Duration::from_secs(2);
    world.store = open_with(&postgres, &database, Some(limit)).await;
    let names: Vec<String> = (0..300)
        .map(|number| format!("chart-{number:03}"))
        .collect();

    let mut failures = 0;
    let stop = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let cut = || {
            while stop.load(Ordering::Relaxed) == 0 {
                postgres.psql(
                    &database,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()",
                );
            }
        };
        scope.spawn(cut);
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            // Each time all is new, until syncs have met what this is about.
            for attempt in 0..30 {
                let version = format!("1.{attempt}.0");
                let charts: Vec<(&str, &str)> = names.iter().map(|n| (&**n, &*version)).collect();
                serve(&world, &charts);
                failures += usize::from(runtime.block_on(world.sync()).is_err());
                if failures == 3 {
                    break;
                }
            }
            stop.store(1, Ordering::Relaxed);
        });
    });
    let report = world.sync().await.expect("synced");
    assert_eq!(report.failed_files, 0);
    let count = |table: &str| postgres.psql(&database, &format!("SELECT count(*) FROM {table}"));
    assert_eq!(
        (count("charts").trim(), count("files").trim()),
        ("300", "300")
    );
    assert_ne!(
        failures, 0,
        "no sync met a lost connection: this shows nothing"
    );

    let search = || on(&world.store, |store| store.search(&Query::default()));
    assert!(search().await.is_ok());
    let frozen = postgres.freeze();
    let ended = tokio::time::timeout(tiphys_testkit::PATIENCE, async {
        (search().await, world.sync().await)
    });
    let (found, synced) = ended.await.expect("both end");
    drop(frozen);
    for error in [found.err(), synced.err()] {
        let error = error.expect("nothing answers");
        assert!(matches!(error, CatalogError::Database(_)), "{error}");
        assert!(
            error.to_string().contains("did not answer within"),
            "{error}"
        );
    }
    assert_eq!(search().await.expect("it answers again").charts.len(), 50);
    world.sync().await.expect("synced");
}
