//! What a process that is started again knows from disk, and when it asks the repository all the
//! same.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    DiskCache, ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos, Secret, Since,
};
use tiphys_testkit::git_server::{Server, Setup};

const CHART: &str = "apiVersion: v2\nname: demo\nversion: 1.0.0\n";
/// No two renders of it are equal.
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  v: {{ randAlphaNum 20 | quote }}\n";
const AWAY: &str = "503 Service Unavailable";
const HOUR: Duration = Duration::from_secs(3_600);

/// A Git server with the repository `r.git`, and the folder of a process that is started again and
/// again.
struct Here {
    _root: TempDir,
    folder: TempDir,
    repository: PathBuf,
    head: String,
    instead: Arc<Mutex<Option<&'static str>>>,
    server: Server,
}

impl Here {
    fn new(user: Option<(&'static str, &'static str)>) -> Self {
        let (root, folder) = (
            TempDir::new().expect("one"),
            TempDir::new().expect("another"),
        );
        let repository = root.path().join("r.git");
        let files = [
            ("app/Chart.yaml", CHART),
            ("app/templates/m.yaml", TEMPLATE),
        ];
        let head = Repos::init_example(&repository, files).expect("a repository");
        let instead = Arc::new(Mutex::new(None));
        let setup = Setup {
            user,
            instead: Arc::clone(&instead),
            ..Setup::default()
        };
        let server = Server::start(root.path(), setup);
        Self {
            _root: root,
            folder,
            repository,
            head,
            instead,
            server,
        }
    }

    fn answers(&self, status: Option<&'static str>) {
        *self.instead.lock().expect("nobody failed") = status;
    }

    fn access(&self) -> RepoAccess {
        RepoAccess::public(self.server.url("/r.git"))
    }

    /// A process that has just begun, and uses what it looked up for so long.
    fn started(&self, refs_ttl: Duration) -> Repos {
        let cache = DiskCache::open(&self.folder.path().join("rendered"), 1 << 20);
        let options = RepoOptions {
            refs_ttl,
            disk_cache: Some(cache.expect("opened")),
            ..RepoOptions::default()
        };
        Repos::with_options(self.folder.path(), options)
    }
}

async fn head(repos: &Repos, access: &RepoAccess, since: Since) -> Result<String, RepoError> {
    let found = repos.resolve(access, "main", since).await;
    found.map(|found| found.sha)
}

fn request(access: &RepoAccess, sha: &str) -> ManifestRequest {
    ManifestRequest {
        access: access.clone(),
        source: ApplicationSource {
            path: "app".to_owned(),
            ..ApplicationSource::default()
        },
        sha: sha.to_owned(),
        app_name: "web".to_owned(),
        ..ManifestRequest::default()
    }
}

async fn render(repos: &Repos, request: &ManifestRequest) -> Result<String, RepoError> {
    let manifests = repos.manifests(request.clone()).await;
    manifests.map(|manifests| value(&manifests))
}

/// What chance made of it, with the digest.
fn value(manifests: &Manifests) -> String {
    let value = manifests.objects[0].object().str_at("/data/v").to_owned();
    format!("{value} {}", manifests.digest)
}

#[tokio::test]
async fn an_unchanged_source_is_neither_fetched_nor_rendered_after_a_restart() {
    let here = Here::new(None);
    let request = request(&here.access(), &here.head);
    let first = render(&here.started(HOUR), &request).await.expect("first");
    assert_eq!(here.server.count("fetch"), 1, "{:?}", here.server.log());
    for _ in 0..2 {
        let repos = here.started(HOUR);
        let again = render(&repos, &request).await.expect("from disk");
        assert_eq!(again, first);
    }
    assert_eq!(here.server.count("fetch"), 1, "{:?}", here.server.log());

    // Without a memory on disk it is another one, as this is what the template makes.
    let forgetful = Repos::new(here.folder.path());
    let other = render(&forgetful, &request).await.expect("rendered");
    assert_ne!(other, first);

    // A hard refresh renders again, for later processes, too.
    let hard = ManifestRequest {
        no_cache: true,
        ..request.clone()
    };
    let anew = render(&here.started(HOUR), &hard).await.expect("anew");
    assert_ne!(anew, first);
    let after = render(&here.started(HOUR), &request).await.expect("kept");
    assert_eq!(after, anew);

    // And so does another content.
    let file = ("app/values.yaml", Some("a: 1\n"));
    let next = Repos::commit_files(&here.repository, "main", &[file], "Next").expect("a commit");
    let next = self::request(&here.access(), &next);
    let changed = render(&here.started(HOUR), &next).await.expect("rendered");
    assert_ne!(changed, anew);
}

#[tokio::test]
async fn other_limits_render_again() {
    let here = Here::new(None);
    let request = request(&here.access(), &here.head);
    let first = render(&here.started(HOUR), &request).await.expect("first");
    let cache = DiskCache::open(&here.folder.path().join("rendered"), 1 << 20);
    let mut options = RepoOptions {
        disk_cache: Some(cache.expect("opened")),
        ..RepoOptions::default()
    };
    options.limits.depth -= 1;
    let narrow = Repos::with_options(here.folder.path(), options);
    assert_ne!(render(&narrow, &request).await.expect("anew"), first);
}

#[tokio::test]
async fn an_outage_changes_nothing_after_a_restart() {
    let here = Here::new(None);
    let (access, request) = (here.access(), request(&here.access(), &here.head));
    let repos = here.started(HOUR);
    let found = head(&repos, &access, Since::Recently).await.expect("asked");
    assert_eq!(found, here.head);
    let first = render(&repos, &request).await.expect("first");
    drop(repos);
    here.answers(Some(AWAY));

    let repos = here.started(HOUR);
    let found = head(&repos, &access, Since::Recently).await;
    assert_eq!(found.expect("as it was"), here.head);
    assert_eq!(render(&repos, &request).await.expect("as it was"), first);
    // Who wants to know what is there now is told that nobody knows.
    let refused = head(&repos, &access, Since::now()).await.expect_err("away");
    assert!(
        matches!(refused, RepoError::Unreachable { .. }),
        "{refused}"
    );

    // A process that went on would not believe this list any longer either. A commit stays what it
    // is.
    let repos = here.started(Duration::ZERO);
    let refused = head(&repos, &access, Since::Recently).await;
    let refused = refused.expect_err("it is too old");
    assert!(
        matches!(refused, RepoError::Unreachable { .. }),
        "{refused}"
    );
    assert_eq!(render(&repos, &request).await.expect("as it was"), first);

    // Without a memory on disk nobody knows whether this access was ever accepted.
    let forgetful = Repos::new(here.folder.path());
    let refused = render(&forgetful, &request).await.expect_err("away");
    assert!(
        matches!(refused, RepoError::Unreachable { .. }),
        "{refused}"
    );

    here.answers(None);
    let found = head(&repos, &access, Since::now()).await;
    assert_eq!(found.expect("it is back"), here.head);
}

#[tokio::test]
async fn what_one_access_was_told_is_not_told_to_another() {
    let here = Here::new(Some(("me", "s3cr3t")));
    let with = |user: &str, password: &str| RepoAccess {
        username: user.to_owned(),
        password: Secret::new(password),
        ..here.access()
    };
    let good = with("me", "s3cr3t");
    let repos = here.started(HOUR);
    head(&repos, &good, Since::now()).await.expect("accepted");
    let first = render(&repos, &request(&good, &here.head)).await;
    let first = first.expect("rendered");
    drop(repos);
    here.answers(Some(AWAY));

    let repos = here.started(HOUR);
    for other in [here.access(), with("me", "wr0ng"), with("you", "s3cr3t")] {
        let refused = head(&repos, &other, Since::Recently).await;
        let refused = refused.expect_err("it was never accepted");
        assert!(
            matches!(refused, RepoError::Unreachable { .. }),
            "{refused}"
        );
        let refused = render(&repos, &request(&other, &here.head)).await;
        let refused = refused.expect_err("it was never accepted");
        assert!(
            matches!(refused, RepoError::Unreachable { .. }),
            "{refused}"
        );
    }
    let again = render(&repos, &request(&good, &here.head)).await;
    assert_eq!(again.expect("it was accepted"), first);
    let files = std::fs::read_dir(here.folder.path().join("rendered")).expect("a folder");
    for file in files.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        assert_eq!(name.len(), 64, "{name}");
    }
}

#[tokio::test]
async fn an_answer_is_believed_whatever_is_on_disk() {
    for (status, is_refused) in [("401 Unauthorized", true), ("404 Not Found", false)] {
        let here = Here::new(None);
        let (access, request) = (here.access(), request(&here.access(), &here.head));
        let repos = here.started(HOUR);
        head(&repos, &access, Since::now()).await.expect("accepted");
        render(&repos, &request).await.expect("rendered");
        drop(repos);

        here.answers(Some(status));
        let repos = here.started(HOUR);
        let errors = [
            head(&repos, &access, Since::Recently).await,
            render(&repos, &request).await,
        ];
        for error in errors {
            let error = error.expect_err(status);
            let is_expected = match error {
                RepoError::AuthFailed { .. } => is_refused,
                RepoError::NotFound { .. } => !is_refused,
                _ => false,
            };
            assert!(is_expected, "{status}: {error}");
        }
        drop(repos);
        // From then on an outage has nothing to hide.
        here.answers(Some(AWAY));
        let error = render(&here.started(HOUR), &request).await;
        let error = error.expect_err("it was refused");
        assert!(matches!(error, RepoError::Unreachable { .. }), "{error}");
    }
}

/// Also for a commit, which is read without a question to the repository.
#[tokio::test]
async fn a_refusal_counts_for_what_is_here_already() {
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found"] {
        let here = Here::new(None);
        let (access, request) = (here.access(), request(&here.access(), &here.head));
        let repos = here.started(HOUR);
        head(&repos, &access, Since::now()).await.expect("accepted");
        let first = render(&repos, &request).await.expect("rendered");
        here.answers(Some(AWAY));
        head(&repos, &access, Since::now()).await.expect_err("away");
        let again = render(&repos, &request).await;
        assert_eq!(again.expect("an outage says nothing"), first);

        here.answers(Some(status));
        head(&repos, &access, Since::now()).await.expect_err(status);
        render(&repos, &request).await.expect_err(status);
        // From then on an outage has nothing to hide.
        here.answers(Some(AWAY));
        head(&repos, &access, Since::now()).await.expect_err("away");
        render(&repos, &request).await.expect_err("it was refused");

        here.answers(None);
        head(&repos, &access, Since::now()).await.expect("accepted");
        let again = render(&repos, &request).await;
        assert_eq!(again.expect("accepted again"), first, "{status}");
    }
}

/// The files below a folder with this ending.
fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path, ending));
        } else if path.extension().is_some_and(|end| end == ending) {
            found.push(path);
        }
    }
    found
}

/// As a machine leaves it that lost its power.
#[tokio::test]
async fn a_torn_pack_is_fetched_anew() {
    let torn: [fn(usize) -> usize; 3] = [|_| 40, |size| size / 2, |size| size - 24];
    for size_after in torn {
        let here = Here::new(None);
        let request = request(&here.access(), &here.head);
        let started = || Repos::new(here.folder.path());
        render(&started(), &request).await.expect("rendered");
        let packs = files_below(here.folder.path(), "pack");
        assert!(!packs.is_empty(), "something was fetched");
        for pack in packs {
            let content = std::fs::read(&pack).expect("a pack");
            let left = size_after(content.len());
            // Another file: packs cannot be written to.
            std::fs::remove_file(&pack).expect("removed");
            std::fs::write(&pack, &content[..left]).expect("written");
        }
        let repos = started();
        let made = render(&repos, &request).await;
        made.expect("it is fetched anew");
    }
}

/// One torn object must not cost the others what they have.
#[tokio::test]
async fn a_damaged_copy_serves_until_there_is_another() {
    let here = Here::new(None);
    let (access, request) = (here.access(), request(&here.access(), &here.head));
    let repos = here.started(HOUR);
    let first = render(&repos, &request).await.expect("rendered");
    let file = ("app/values.yaml", Some("a: 1\n"));
    let next = Repos::commit_files(&here.repository, "main", &[file], "Next").expect("a commit");
    // Of the next commit, half an object is there.
    let packs = files_below(here.folder.path(), "pack");
    let objects = packs[0].parent().and_then(Path::parent).expect("a folder");
    let (folder, name) = next.split_at(2);
    let object = here.repository.join("objects").join(folder).join(name);
    let whole = std::fs::read(object).expect("an object");
    std::fs::create_dir_all(objects.join(folder)).expect("a folder");
    let torn = objects.join(folder).join(name);
    std::fs::write(torn, &whole[..whole.len() / 2]).expect("written");

    here.answers(Some(AWAY));
    let next = self::request(&access, &next);
    let error = render(&repos, &next).await.expect_err("nobody has it");
    assert!(error.retryable(), "{error}");
    let again = render(&repos, &request).await;
    assert_eq!(again.expect("all of it is there"), first);
    drop(repos);

    here.answers(None);
    let repos = here.started(HOUR);
    render(&repos, &next).await.expect("it is fetched anew");
    render(&repos, &request).await.expect("and so is this");
}

#[tokio::test]
async fn a_refusal_of_a_fetch_counts_for_what_is_here_already() {
    let here = Here::new(None);
    let (access, request) = (here.access(), request(&here.access(), &here.head));
    let repos = here.started(HOUR);
    let first = render(&repos, &request).await.expect("rendered");
    let file = ("app/values.yaml", Some("a: 1\n"));
    let next = Repos::commit_files(&here.repository, "main", &[file], "Next").expect("a commit");
    let next = self::request(&access, &next);

    here.answers(Some("401 Unauthorized"));
    render(&repos, &next).await.expect_err("it is refused");
    // The refs were listed less than an hour ago, which does not count any more.
    here.answers(Some(AWAY));
    render(&repos, &request).await.expect_err("it was refused");
    here.answers(None);
    head(&repos, &access, Since::now()).await.expect("accepted");
    let again = render(&repos, &request).await;
    assert_eq!(again.expect("accepted again"), first);
}

#[tokio::test]
async fn a_changed_file_is_rendered_again() {
    let here = Here::new(None);
    let request = request(&here.access(), &here.head);
    let first = render(&here.started(HOUR), &request).await.expect("first");
    let files = std::fs::read_dir(here.folder.path().join("rendered")).expect("a folder");
    let mut changed = 0;
    for file in files.flatten() {
        let mut bytes = std::fs::read(file.path()).expect("a file");
        let half = bytes.len() / 2;
        bytes[half] ^= 1;
        std::fs::write(file.path(), bytes).expect("written");
        changed += 1;
    }
    assert!(changed >= 3, "the refs, a render and its places: {changed}");
    let anew = render(&here.started(HOUR), &request).await.expect("anew");
    assert_ne!(anew, first);
    let kept = render(&here.started(HOUR), &request).await.expect("kept");
    assert_eq!(kept, anew);
}
