//! Which workers render what: one project at a time, and none takes all of them.

use super::{in_seconds, kill, ours, repository, request_for, with_spare, workers};
use std::{collections::BTreeSet, time::Duration};

/// Whoever takes a worker over has only manifests of the project that it rendered for.
#[tokio::test(flavor = "multi_thread")]
async fn projects_share_no_worker() {
    let (repo, repos) = (repository(), ours(804, 1));
    let mut known = BTreeSet::new();
    let mut started = async |project: &str| {
        let request = request_for(&repo, "app", project);
        repos.manifests(request).await.expect("manifests");
        let now: BTreeSet<String> = workers(804).into_iter().map(|(id, _)| id).collect();
        let started = now.difference(&known).count();
        known.extend(now);
        started
    };
    for project in ["a", "b", "c"] {
        assert_eq!(started(project).await, 1, "{project} gets no other's");
    }
    // One that does not answer soon, as on a busy machine, is replaced.
    for project in ["a", "b", "c"] {
        let mut is_used_again = false;
        for _ in 0..20 {
            is_used_again |= started(project).await == 0;
        }
        assert!(is_used_again, "{project}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_workers_wait() {
    let (repo, repos) = (repository(), ours(805, 1));
    for project in 0..10 {
        let request = request_for(&repo, "app", &format!("p{project}"));
        repos.manifests(request).await.expect("manifests");
    }
    let waiting = workers(805).len();
    assert!((2..=8).contains(&waiting), "{waiting}");
}

/// Requests for details may name no project: what they render has nothing in common.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_project_no_worker_is_used_again() {
    let (repo, repos) = (repository(), ours(806, 2));
    for _ in 0..2 {
        let request = request_for(&repo, "app", "");
        repos.details(request.clone()).await.expect("details");
        assert!(workers(806).is_empty(), "it waits for the next one");
        repos.manifests(request).await.expect("manifests");
        assert!(workers(806).is_empty(), "it waits for the next one");
    }
}

/// Sources of one project that take all the time they may have leave half of the workers to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_project_takes_half_of_the_workers() {
    let (repo, repos) = (repository(), in_seconds(60, 807, 2));
    let greedy: Vec<_> = (0..3)
        .map(|_| {
            let request = request_for(&repo, "endless", "greedy");
            let repos = repos.clone();
            tokio::spawn(async move { repos.manifests(request).await.map(drop) })
        })
        .collect();
    while workers(807).is_empty() {
        assert!(!greedy.iter().any(|render| render.is_finished()));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..3 {
        let request = request_for(&repo, "app", "modest");
        let rendered = repos.manifests(request).await.expect("manifests");
        assert_eq!(rendered.objects.len(), 1);
    }
    let ended = greedy.iter().filter(|render| render.is_finished()).count();
    assert_eq!(ended, 0, "it was served before the others had ended");
    // What waits for its turn does not begin. What has begun ends with its worker.
    greedy.iter().for_each(tokio::task::JoinHandle::abort);
    for render in greedy {
        let _ = render.await;
    }
    for (id, _) in workers(807) {
        kill(&id);
    }
}

/// One worker is started before it is needed. The next render takes it, and another one is started;
/// so it is after all of them were killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_spare_worker_is_ready() {
    let (repo, repos) = (repository(), with_spare(809));
    let ids = || -> BTreeSet<String> { workers(809).into_iter().map(|(id, _)| id).collect() };
    let started = async || {
        for _ in 0..3000 {
            if let Some(id) = ids().pop_first() {
                return id;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("none is started");
    };
    for _ in 0..2 {
        let spare = started().await;
        let mut renders = 0;
        // Without a project a worker renders once. The first ones may be faster than the spare one
        // is ready.
        while ids().contains(&spare) {
            let request = request_for(&repo, "app", "");
            let made = repos.manifests(request).await.expect("manifests");
            assert_eq!(made.objects.len(), 1);
            renders += 1;
            assert!(renders < 1000, "it is never used");
        }
        started().await;
        for id in ids() {
            kill(&id);
        }
        // Nobody starts another one until a render needs one, which gets over that.
        let request = request_for(&repo, "app", "");
        repos.manifests(request).await.expect("manifests");
    }
}
