//! Repositories whose configuration, names or objects are not what git would write.

use super::{Here, on_disk, value, walk};
use crate::local::{self, cm, git};
use flate2::{Compression, write::ZlibEncoder};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tiphys_api::source::ApplicationSourceHelm;
use tiphys_repo::{ErrorKind, Manifests, RepoAccess, RepoError, Repos, Since};
use tiphys_testkit::git_server::{Server, Setup, Spoil};

/// What a repository's own configuration would have git do.
#[tokio::test]
async fn case_87_configuration_and_hooks() {
    let here = Here::new();
    let text = cm("a", "1");
    let files = [
        ("app/a.yaml", text.as_str()),
        (".gitattributes", "* filter=evil diff=evil\n"),
    ];
    let (path, sha) = here.repository(&files);
    let canary = here.dir.path().join("canary");
    let run = format!("touch {}", canary.display());
    // Whoever reads it cannot read the configuration.
    let broken = here.dir.path().join("broken");
    fs::write(&broken, "[broken\n").expect("written");
    let (broken, hooks) = (broken.display(), here.dir.path().join("hooks"));
    let config = format!(
        "[core]\n\tfsmonitor = {run}\n\thooksPath = {}\n\tsshCommand = {run}\n\taskPass = {run}\n\tgitProxy = {run}\n\t\
         pager = {run}\n\teditor = {run}\n\talternateRefsCommand = {run}\n[include]\n\tpath = {broken}\n[includeIf \"gitdir:/\"]\n\t\
         path = {broken}\n[filter \"evil\"]\n\tclean = {run}\n\tsmudge = {run}\n\tprocess = {run}\n\trequired = true\n\
         [diff \"evil\"]\n\tcommand = {run}\n\ttextconv = {run}\n[credential]\n\thelper = !{run}\n[uploadpack]\n\t\
         packObjectsHook = {run}\n[gpg]\n\tprogram = {run}\n[commit]\n\tgpgSign = true\n",
        hooks.display()
    );
    let own = fs::read_to_string(path.join("config")).expect("a configuration");
    fs::write(path.join("config"), format!("{own}{config}")).expect("written");
    for folder in [path.join("hooks"), hooks] {
        fs::create_dir_all(&folder).expect("made");
        for hook in [
            "reference-transaction",
            "pre-commit",
            "post-commit",
            "update",
            "post-update",
            "post-checkout",
        ] {
            let hook = folder.join(hook);
            fs::write(&hook, format!("#!/bin/sh\n{run}\n")).expect("written");
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a program");
        }
    }
    let access = on_disk(&path);
    let head = here.repos.resolve(&access, "HEAD", Since::now()).await;
    assert_eq!(head.expect("HEAD").sha, sha);
    let made = here.render(&access, &sha).await.expect("rendered");
    assert_eq!(value(&made), "1");
    let changed = cm("a", "2");
    let next = Repos::commit_files(&path, "main", &[("app/a.yaml", Some(&changed))], "2");
    let made = here.render(&access, &next.expect("a commit")).await;
    assert_eq!(value(&made.expect("rendered")), "2");
    assert!(!canary.exists(), "a program was run");
}

/// Names that lead elsewhere, look like options, or are shown as something else.
const NAMES: [&str; 9] = [
    "refs/heads/../../../../../evil",
    "refs/heads/..",
    "refs/tags/../../evil",
    "/evil",
    "refs/heads/evil.lock",
    "refs/heads/-oProxyCommand=evil",
    "refs/heads/$(evil)",
    "refs/heads/a\u{1b}[31m\u{202e}evil",
    "refs/heads//evil",
];

/// A server that lists them, with the commit of its first ref.
fn with_names() -> Spoil {
    Arc::new(|command: &str, content: &mut Vec<u8>| {
        let first = content.get(4..44).map(<[u8]>::to_vec);
        let (Some(first), "ls-refs") = (first, command) else {
            return;
        };
        let sha = String::from_utf8_lossy(&first).into_owned();
        // The packet that ends the list.
        content.truncate(content.len() - 4);
        for name in NAMES {
            let line = format!("{sha} {name}\n");
            content.extend(format!("{:04x}{line}", line.len() + 4).into_bytes());
        }
        content.extend(b"0000");
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_88_names_that_a_server_lists() {
    let here = Here::new();
    let text = cm("a", "1");
    let (path, first) = here.repository(&[("app/a.yaml", &text)]);
    let changed = cm("a", "2");
    let second = Repos::commit_files(&path, "main", &[("app/a.yaml", Some(&changed))], "2");
    let second = second.expect("a commit");
    let setup = Setup {
        spoil: Some(with_names()),
        ..Setup::default()
    };
    let server = Server::start(here.dir.path(), setup);
    let access = RepoAccess::public(server.url("/r.git"));
    let refs = here.repos.refs(&access, Since::now()).await.expect("refs");
    assert!(refs.branches.iter().any(|name| name == "main"), "{refs:?}");
    let main = here.repos.resolve(&access, "main", Since::Recently).await;
    assert_eq!(main.expect("main").sha, second);
    let made = here.render(&access, &second).await.expect("rendered");
    assert_eq!(value(&made), "2");
    for name in NAMES {
        // It is the name of a commit, or of none.
        match here.repos.resolve(&access, name, Since::Recently).await {
            Ok(found) => assert_eq!(found.sha, second, "{name:?}"),
            Err(e) => assert_eq!(e.kind(), ErrorKind::User, "{name:?}: {e}"),
        }
    }
    // No ref has this commit, so the history is fetched, with a ref of our own for each of the names.
    match here.render(&access, &first[..10]).await {
        Ok(made) => assert_eq!(value(&made), "1"),
        Err(e) => assert_ne!(e.kind(), ErrorKind::Internal, "{e}"),
    }
    let mut written = here.named("evil");
    written.retain(|path| !path.to_string_lossy().contains("/refs/tiphys/"));
    assert_eq!(written, Vec::<PathBuf>::new());
}

#[tokio::test]
async fn case_88_names_on_disk() {
    for (file, text) in [
        (
            "packed-refs",
            "# pack-refs with: peeled fully-peeled sorted \nSHA refs/heads/../../../evil\nSHA refs/heads/z\n",
        ),
        ("refs/heads/symbolic", "ref: ../../../evil\n"),
        ("refs/heads/itself", "ref: refs/heads/itself\n"),
        ("refs/heads/x.lock", "SHA\n"),
        ("refs/heads/@{evil}", "SHA\n"),
        ("refs/heads/-evil", "SHA\n"),
        ("refs/heads/zeros", "\0\0\0\0"),
    ] {
        let here = Here::new();
        let content = cm("a", "1");
        let (path, sha) = here.repository(&[("app/a.yaml", &content)]);
        fs::write(path.join(file), text.replace("SHA", &sha)).expect("written");
        let access = on_disk(&path);
        // A ref that cannot be read counts for nothing, or its repository is refused.
        match here.repos.resolve(&access, "main", Since::now()).await {
            Ok(main) => assert_eq!(main.sha, sha, "{file}"),
            Err(e) => assert_ne!(e.kind(), ErrorKind::Internal, "{file}: {e}"),
        }
        let made = here.render(&access, &sha).await.expect(file);
        assert_eq!(value(&made), "1", "{file}");
        let outside = here.repos.resolve(&access, "../../../evil", Since::now());
        let refused = outside.await.expect_err(file);
        assert_ne!(refused.kind(), ErrorKind::Internal, "{file}: {refused}");
    }
}

type Change = fn(&mut Vec<u8>);

/// Changes a file, which git made read-only.
fn replace(path: &Path, change: Change) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::remove_file(path).expect("removed");
    fs::write(path, bytes).expect("written");
}

/// Renders a repository with something broken in it.
async fn assert_refused(dir: &Path, sha: &str, what: &str) {
    let rendered = local::manifests(&local::repos(), dir, sha, local::source("app")).await;
    let refused = rendered.expect_err(what);
    // What panics on our side is an internal error.
    assert_ne!(refused.kind(), ErrorKind::Internal, "{what}: {refused}");
}

#[tokio::test]
async fn case_90_packs_on_disk() {
    let cases: [(&str, &str, Change); 9] = [
        ("its end is missing", "pack", |b| b.truncate(40)),
        ("it is empty", "pack", Vec::clear),
        ("no version that there is", "pack", |b| b[7] = 9),
        ("zeros in place of objects", "pack", |b| b[12..].fill(0)),
        ("half of it", "idx", |b| b.truncate(b.len() / 2)),
        ("it is empty", "idx", Vec::clear),
        ("no version that there is", "idx", |b| b[7] = 9),
        ("counts that fall", "idx", |b| b[8..12].fill(0xff)),
        ("objects behind the end of the pack", "idx", |b| {
            // Before the two checksums is the place of each object; the last count is of all.
            let count = u32::from_be_bytes([b[1028], b[1029], b[1030], b[1031]]);
            let end = b.len() - 40;
            let all = 4 * usize::try_from(count).expect("few");
            b[end - all..end].fill(0x7f);
        }),
    ];
    for (what, kind, change) in cases {
        let (dir, sha) = local::repository();
        git(dir.path(), &["repack", "-adq"]);
        let mut files = walk(&dir.path().join(".git/objects"));
        files.retain(|path| path.extension().is_some_and(|end| end == kind));
        assert_eq!(files.len(), 1, "{files:?}");
        replace(&files[0], change);
        assert_refused(dir.path(), &sha, &format!("{kind}: {what}")).await;
    }
}

#[tokio::test]
async fn case_92_objects_on_disk() {
    let changes: [(&str, Change); 3] = [
        ("its end is missing", |b| b.truncate(b.len() / 2)),
        ("it is empty", Vec::clear),
        ("another byte", |b| {
            let middle = b.len() / 2;
            b[middle] ^= 0xff;
        }),
    ];
    for object in ["HEAD:app/a.yaml", "HEAD:app", "HEAD^{tree}", "HEAD"] {
        for (what, change) in changes {
            let (dir, sha) = local::repository();
            replace(&loose(dir.path(), object), change);
            assert_refused(dir.path(), &sha, &format!("{object}: {what}")).await;
        }
        let (dir, sha) = local::repository();
        fs::remove_file(loose(dir.path(), object)).expect("removed");
        assert_refused(dir.path(), &sha, &format!("{object}: it is missing")).await;
    }
}

/// What cannot be read is not the same as what is not there.
#[tokio::test]
async fn case_92_a_link_to_values() {
    let dir = tempfile::tempdir().expect("a folder");
    // No two renders of it are equal.
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {v: '{{ .Values.v }}', r: '{{ randAlphaNum 20 }}'}\n";
    for (path, text) in [
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        ("app/templates/m.yaml", template),
        ("more/a.yaml", "v: 1\n"),
    ] {
        local::write(dir.path(), path, text);
    }
    fs::create_dir(dir.path().join("values")).expect("a folder");
    std::os::unix::fs::symlink("../more", dir.path().join("values/link")).expect("a link");
    git(dir.path(), &["init", "-q"]);
    let sha = local::commit(dir.path(), "First");
    let repos = local::repos();
    let render = async || {
        let helm = ApplicationSourceHelm {
            value_files: vec!["/values/*/a.yaml".to_owned()],
            ignore_missing_value_files: true,
            release_name: "r".to_owned(),
            ..ApplicationSourceHelm::default()
        };
        let mut source = local::source("app");
        source.helm = Some(Box::new(helm));
        local::manifests(&repos, dir.path(), &sha, source).await
    };
    let link = loose(dir.path(), "HEAD:values/link");
    let content = fs::read(&link).expect("an object");
    fs::remove_file(&link).expect("removed");
    for _ in 0..2 {
        let torn = render().await.expect_err("nobody knows where it leads");
        assert!(matches!(torn, RepoError::Corrupt { .. }), "{torn}");
    }
    // Someone mends it: from then on it counts as any other.
    fs::write(&link, content).expect("written");
    let (first, second) = (render().await, render().await);
    let (first, second) = (first.expect("mended"), second.expect("mended"));
    let of = |made: &Manifests, key: &str| made.objects[0].object().str_at(key).to_owned();
    assert_eq!(of(&first, "/data/v"), "1");
    assert_eq!(of(&first, "/data/r"), of(&second, "/data/r"));
}

/// The file of an object that is in no pack.
fn loose(dir: &Path, object: &str) -> PathBuf {
    let id = git(dir, &["rev-parse", object]);
    let objects = git(dir, &["rev-parse", "--git-path", "objects"]);
    dir.join(objects).join(&id[..2]).join(&id[2..])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_90_packs_of_a_server() {
    // Each gets the content, and where in it the pack begins.
    type Change = fn(&mut Vec<u8>, usize);
    let cases: [(&str, Change); 4] = [
        ("an object that cannot be unpacked", |b, at| {
            b[at + 14] ^= 0xff
        }),
        ("fewer objects than there are", |b, at| b[at + 11] = 1),
        ("no version that there is", |b, at| b[at + 7] = 9),
        ("its end is missing", |b, at| b.truncate(at + 40)),
    ];
    for (what, change) in cases {
        let here = Here::new();
        let text = cm("a", "1");
        let (_, sha) = here.repository(&[("app/a.yaml", &text)]);
        let is_whole = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_whole);
        let spoil: Spoil = Arc::new(move |command: &str, content: &mut Vec<u8>| {
            let pack = content.windows(4).position(|four| four == b"PACK");
            if let ("fetch", Some(at), false) = (command, pack, seen.load(Ordering::Relaxed)) {
                change(content, at);
            }
        });
        let setup = Setup {
            spoil: Some(spoil),
            ..Setup::default()
        };
        let server = Server::start(here.dir.path(), setup);
        let access = RepoAccess::public(server.url("/r.git"));
        let refused = here.render(&access, &sha).await.expect_err(what);
        assert!(refused.retryable(), "{what}: {refused}");
        assert_eq!(here.named(".pack"), Vec::<PathBuf>::new(), "{what}");
        // Nothing of it is kept, so it does not matter any more when the server is well again.
        is_whole.store(true, Ordering::Relaxed);
        let made = here.render(&access, &sha).await.expect(what);
        assert_eq!(value(&made), "1", "{what}");
    }
}

/// A server whose database has something else under the name of a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_92_another_object_of_a_server() {
    let here = Here::new();
    let text = cm("a", "1");
    let (path, sha) = here.repository(&[("app/a.yaml", &text)]);
    let forged = cm("forged", "2");
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    write!(packed, "blob {}\0{forged}", forged.len()).expect("memory");
    let packed = packed.finish().expect("memory");
    let object = loose(&path, "main:app/a.yaml");
    fs::remove_file(&object).expect("removed");
    fs::write(&object, packed).expect("written");
    let server = Server::start(here.dir.path(), Setup::default());
    let access = RepoAccess::public(server.url("/r.git"));
    let refused = here.render(&access, &sha).await.expect_err("another file");
    assert_ne!(refused.kind(), ErrorKind::Internal, "{refused}");
    assert!(!refused.to_string().contains("forged"), "{refused}");
}
