//! What is written of calls, how tampering is found, and what happens when a disk is full.

use super::{
    chain::{self, Fault, Head, VerifyError},
    log::Log,
    record::{Record, Verdict, Who},
    *,
};
use std::{
    fs,
    io::{BufReader, Write as _},
    path::Path,
};

fn record(user: &str) -> Record {
    let who = Who {
        user: user.to_owned(),
        how: "session".to_owned(),
        from: "192.0.2.1".to_owned(),
        ..Who::default()
    };
    Record::new(who, "/a.Service/Change", Verdict::Allowed)
}

/// A log of a record for its opening and one for each user.
fn written(path: &Path, users: &[&str]) -> Head {
    let log = Log::open(path).expect("a log");
    let mut head = Head::default();
    for user in users {
        head = log.write(Some(record(user))).expect("it is written");
    }
    head
}

fn verified(text: &str) -> Result<Vec<String>, (usize, Fault)> {
    let mut users = Vec::new();
    let head = chain::verify(BufReader::new(text.as_bytes()), |record, _| {
        users.push(record.who.user);
    });
    match head {
        Ok(_) => Ok(users),
        Err(VerifyError::Line { line, fault }) => Err((line, fault)),
        Err(VerifyError::Read(e)) => panic!("{e}"),
    }
}

#[test]
fn what_was_done_to_a_log_is_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    written(&path, &["ann", "bob", "eve"]);
    let text = fs::read_to_string(&path).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        verified(&text),
        Ok(["", "ann", "bob", "eve"].map(str::to_owned).to_vec())
    );
    let of = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let changed = lines[2].replace("bob", "ann");
    // With a hash of its own, as whoever changes a line would write it.
    let (content, _) = changed.rsplit_once(",\"hash\":\"").expect("a hash");
    let resealed = format!(
        "{content},\"hash\":\"{}\"}}",
        chain::sha256(content.as_bytes())
    );
    for (tampered, line, fault) in [
        (
            of(&[lines[0], lines[1], &changed, lines[3]]),
            3,
            Fault::Changed,
        ),
        (
            of(&[lines[0], lines[1], &resealed, lines[3]]),
            4,
            Fault::Link,
        ),
        (
            of(&[lines[0], lines[2], lines[3]]),
            2,
            Fault::Order {
                found: 3,
                wanted: 2,
            },
        ),
        (
            of(&lines[1..]),
            1,
            Fault::Order {
                found: 2,
                wanted: 1,
            },
        ),
        (
            of(&[lines[0], lines[2], lines[1]]),
            2,
            Fault::Order {
                found: 3,
                wanted: 2,
            },
        ),
        (
            of(&[lines[0], lines[1], lines[1]]),
            3,
            Fault::Order {
                found: 2,
                wanted: 3,
            },
        ),
        (of(&[lines[0], "nothing", lines[1]]), 2, Fault::Torn),
        (text[..text.len() - 9].to_owned(), 4, Fault::Torn),
    ] {
        assert_eq!(verified(&tampered), Err((line, fault)), "{tampered}");
    }
}

#[test]
fn the_head_shows_that_the_last_records_are_missing() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let head = written(&path, &["ann", "bob"]);
    let text = fs::read_to_string(&path).expect("a log");
    let shorter = text
        .lines()
        .take(2)
        .fold(String::new(), |all, line| all + line + "\n");
    let end = |text: &str| {
        chain::verify(BufReader::new(text.as_bytes()), |_, _| {}).expect("the chain holds")
    };
    assert_eq!(end(&text), head);
    assert_ne!(end(&shorter), head);
}

#[test]
fn a_log_goes_on_after_a_restart_and_after_half_a_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    written(&path, &["ann"]);
    written(&path, &["bob"]);
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("a log");
    file.write_all(b"{\"seq\":5,\"ti").expect("it is written");
    drop(file);
    written(&path, &["eve"]);
    let text = fs::read_to_string(&path).expect("a log");
    let users = ["", "ann", "", "bob", "", "eve"].map(str::to_owned);
    assert_eq!(verified(&text), Ok(users.to_vec()));
    // Whoever cuts a line off is no process that was killed.
    let cut = text.replacen("{\"seq\":5,\"ti\n", "{\"seq\":5,\n", 1);
    assert_eq!(verified(&cut), Err((5, Fault::Torn)));
}

#[test]
fn a_log_belongs_to_one_process_and_its_end_must_be_its_own() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let open = Log::open(&path).expect("a log");
    assert!(matches!(Log::open(&path), Err(AuditError::InUse(_))));
    drop(open);
    fs::write(&path, "something else\n").expect("it is written");
    assert!(matches!(Log::open(&path), Err(AuditError::End { .. })));
    let nowhere = dir.path().join("none/audit");
    assert!(matches!(Log::open(&nowhere), Err(AuditError::Open { .. })));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = Log::open(Path::new("/dev/full"));
    let why = full.expect_err("it is full").to_string();
    assert!(why.contains("No space left"), "{why}");
}

#[tokio::test]
async fn nothing_is_changed_while_the_disk_is_full_and_no_record_is_lost() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let log = Arc::new(Log::open(&path).expect("a log"));
    let audit = Audit {
        log: Some(log.clone()),
        events: None,
        refusals: Refusals::default(),
        failures: AtomicU64::new(0),
        work: Work::default(),
    };
    assert_eq!(audit.ready().await, Ok(()));
    let open = |path: &Path| {
        let mut options = fs::OpenOptions::new();
        options.append(true).open(path).expect("a file")
    };
    log.moved_to(open(Path::new("/dev/full")));
    let source = [192, 0, 2, 1].into();
    // It was under way when the disk became full.
    let ended = audit.ended(record("ann"), None, source).await;
    assert!(matches!(ended, Err(AuditError::Write { .. })), "{ended:?}");
    let refused = audit.ready().await.expect_err("the disk is full");
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.message.contains("No space left"), "{refused}");
    assert_eq!(audit.failures(), 2);
    log.moved_to(open(&path));
    assert_eq!(audit.ready().await, Ok(()));
    let text = fs::read_to_string(&path).expect("a log");
    assert_eq!(verified(&text), Ok(["", "ann"].map(str::to_owned).to_vec()));
}

/// Each row of the table that is recorded when it succeeds, so that none is forgotten.
#[test]
fn calls_that_change_something_are_known() {
    let table = crate::table::table();
    let mut names: Vec<&str> = table
        .calls()
        .iter()
        .filter(|call| changes(&call.rpc, &call.access))
        .map(|call| call.rpc.rsplit_once('.').map_or("", |(_, name)| name))
        .collect();
    names.sort_unstable();
    assert_eq!(names, CHANGING);
}

const CHANGING: [&str; 51] = [
    "AccountService/CreateToken",
    "AccountService/DeleteToken",
    "AccountService/UpdatePassword",
    "ApplicationService/Create",
    "ApplicationService/Delete",
    "ApplicationService/DeleteResource",
    "ApplicationService/Patch",
    "ApplicationService/PatchResource",
    "ApplicationService/Rollback",
    "ApplicationService/RunResourceAction",
    "ApplicationService/RunResourceActionV2",
    "ApplicationService/Sync",
    "ApplicationService/TerminateOperation",
    "ApplicationService/Update",
    "ApplicationService/UpdateSpec",
    "ApplicationSetService/Create",
    "ApplicationSetService/Delete",
    "CatalogService/AddRepository",
    "CatalogService/RemoveRepository",
    "CatalogService/SyncRepository",
    "CertificateService/CreateCertificate",
    "CertificateService/DeleteCertificate",
    "ClusterService/Create",
    "ClusterService/Delete",
    "ClusterService/InvalidateCache",
    "ClusterService/RotateAuth",
    "ClusterService/Update",
    "GPGKeyService/Create",
    "GPGKeyService/Delete",
    "ProjectService/Create",
    "ProjectService/CreateToken",
    "ProjectService/Delete",
    "ProjectService/DeleteToken",
    "ProjectService/Update",
    "RepoCredsService/CreateRepositoryCredentials",
    "RepoCredsService/CreateWriteRepositoryCredentials",
    "RepoCredsService/DeleteRepositoryCredentials",
    "RepoCredsService/DeleteWriteRepositoryCredentials",
    "RepoCredsService/UpdateRepositoryCredentials",
    "RepoCredsService/UpdateWriteRepositoryCredentials",
    "RepositoryService/Create",
    "RepositoryService/CreateRepository",
    "RepositoryService/CreateWriteRepository",
    "RepositoryService/Delete",
    "RepositoryService/DeleteRepository",
    "RepositoryService/DeleteWriteRepository",
    "RepositoryService/Update",
    "RepositoryService/UpdateRepository",
    "RepositoryService/UpdateWriteRepository",
    "SessionService/Create",
    "SessionService/Delete",
];
