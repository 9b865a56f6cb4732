//! Links in repositories: where they may lead, and what is read through them.

use crate::local::{cm, commit, manifests, names, repos, repository, source, write};

#[tokio::test]
async fn links_stay_inside() {
    let (dir, _) = repository();
    let link = |name: &str, target: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        std::os::unix::fs::symlink(target, path).expect("symlink");
    };
    write(dir.path(), "secret.txt", "x");
    link("in/b.yaml", "../other/b.yaml");
    link("in/chain.yaml", "./b.yaml");
    link("in/gone.yaml", "nowhere.yaml");
    link("in/folder.yaml", "../other");
    link("linked", "other");
    for (folder, target) in [
        ("out", "../../etc/passwd"),
        ("abs", "/etc/passwd"),
        ("proc", "/proc/self/environ"),
        ("gitdir", "../../.git/config"),
        ("loop", "x.yaml"),
        ("chain", "../up/x.yaml"),
    ] {
        link(&format!("{folder}/x.yaml"), target);
    }
    link("up/x.yaml", "../../outside");
    let sha = commit(dir.path(), "Links");
    let repos = repos();
    let linked = manifests(&repos, dir.path(), &sha, source("in"))
        .await
        .expect("inside");
    assert_eq!(names(&linked), ["b", "b"]);
    assert_eq!(linked.warnings.len(), 2);
    assert_eq!(
        names(
            &manifests(&repos, dir.path(), &sha, source("linked"))
                .await
                .expect("a linked folder")
        ),
        ["b"]
    );
    for folder in ["out", "abs", "proc", "gitdir", "chain"] {
        let error = manifests(&repos, dir.path(), &sha, source(folder))
            .await
            .expect_err(folder);
        assert_eq!(
            error.to_string(),
            format!("illegal filepath in symlink at \"{folder}/x.yaml\"")
        );
    }
    let error = manifests(&repos, dir.path(), &sha, source("loop"))
        .await
        .expect_err("loop");
    assert_eq!(error.to_string(), "too many links at \"loop/x.yaml\"");
    // The target of a link outside of the folder affects the result.
    write(dir.path(), "other/b.yaml", &cm("changed", "1"));
    let sha = commit(dir.path(), "Change the target of a link");
    assert_eq!(
        names(
            &manifests(&repos, dir.path(), &sha, source("in"))
                .await
                .expect("inside")
        ),
        ["changed", "changed"]
    );
    assert_eq!(
        names(
            &manifests(&repos, dir.path(), &sha, source("linked"))
                .await
                .expect("linked")
        ),
        ["changed"]
    );
}

/// A kustomization names its neighbours, which are others beside another target, however equal the
/// targets are themselves.
#[tokio::test]
async fn a_link_that_leads_to_an_equal_folder_elsewhere_is_rendered_anew() {
    let (dir, _) = repository();
    let root = dir.path();
    write(root, "app/kustomization.yaml", "resources: [../link]\n");
    for (place, name) in [("one", "from-one"), ("two", "from-two")] {
        let file = |name: &str| format!("{place}/{name}");
        let base = "resources: [../common]\n";
        write(root, &file("base/kustomization.yaml"), base);
        let common = "resources: [map.yaml]\n";
        write(root, &file("common/kustomization.yaml"), common);
        write(root, &file("common/map.yaml"), &cm(name, "1"));
    }
    let repos = repos();
    for (place, name) in [("one", "from-one"), ("two", "from-two")] {
        let link = root.join("link");
        if link.is_symlink() {
            std::fs::remove_file(&link).expect("it was there");
        }
        std::os::unix::fs::symlink(format!("{place}/base"), &link).expect("symlink");
        let sha = commit(root, place);
        let rendered = manifests(&repos, root, &sha, source("app")).await;
        assert_eq!(names(&rendered.expect("inside")), [name]);
    }
}

#[tokio::test]
async fn kustomizations_read_no_file_outside_of_themselves() {
    let (dir, _) = repository();
    let of_file = |file: &str| {
        format!(
            "configMapGenerator:\n- name: made\n  files: [{file}]\n  options: {{disableNameSuffixHash: true}}\n"
        )
    };
    let kustomization = |folder: &str, text: &str| {
        let path = format!("{folder}/kustomization.yaml");
        write(dir.path(), &path, text);
    };
    let link = |name: &str, target: &str| {
        std::os::unix::fs::symlink(target, dir.path().join(name)).expect("symlink");
    };
    write(dir.path(), "secret.txt", "x");
    write(dir.path(), "k/within/real.txt", "x");
    for (folder, file) in [
        ("k/above", "../../secret.txt"),
        ("k/linked", "link.txt"),
        ("k/through", "folder/secret.txt"),
        ("k/within", "link.txt"),
        ("k/beside", "../../secret.txt"),
    ] {
        kustomization(folder, &of_file(file));
    }
    link("k/linked/link.txt", "../../secret.txt");
    link("k/through/folder", "../..");
    link("k/within/link.txt", "real.txt");
    // What lies beside a linked folder is what lies beside its target.
    kustomization("deep/er/app", "resources: [../base]\n");
    kustomization("deep/er/base", &of_file("a.txt"));
    write(dir.path(), "deep/er/base/a.txt", "x");
    link("short", "deep/er/app");
    let sha = commit(dir.path(), "Kustomizations");
    let repos = repos();
    for folder in ["k/above", "k/linked", "k/through", "k/beside"] {
        let refused = manifests(&repos, dir.path(), &sha, source(folder)).await;
        let refused = refused.expect_err(folder).to_string();
        let is_refused =
            refused.contains("security; file") && refused.contains("is not in or below");
        assert!(is_refused, "{folder}: {refused}");
    }
    for folder in ["k/within", "short"] {
        let built = manifests(&repos, dir.path(), &sha, source(folder)).await;
        assert_eq!(names(&built.expect(folder)), ["made"], "{folder}");
    }
}
