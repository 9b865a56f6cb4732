//! Runs work whose duration depends on external input without blocking the threads that serve many
//! tasks.
//!
//! Main functions: [`heavy`], for work on behalf of a project, and [`run_scripts_blocking`], for
//! users' health scripts.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};
use tiphys_engine::customize::Customizations;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
};

/// Maximum number of concurrent heavy tasks; each has a thread.
const HEAVY: usize = 16;
/// How many of them one project may have.
const HEAVY_OF_A_PROJECT: usize = 8;

static PLACES: Semaphore = Semaphore::const_new(HEAVY);
/// The semaphores of projects, as long as a task holds one or waits for it.
static OF_PROJECTS: LazyLock<Mutex<HashMap<String, Weak<Semaphore>>>> =
    LazyLock::new(Mutex::default);

/// Runs work that may execute users' health scripts. If there are any, the other tasks of this
/// thread are moved to another one first.
pub fn run_scripts_blocking<T>(customizations: &Customizations, work: impl FnOnce() -> T) -> T {
    if customizations.has_health_scripts() {
        run_blocking(work)
    } else {
        work()
    }
}

/// Runs work after moving the other tasks of this thread to another one.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    let shared =
        Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if shared {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Runs long work on behalf of a project, next to other tasks. Its concurrency is limited, overall
/// and per project.
pub async fn heavy<T>(project: &str, work: impl FnOnce() -> T) -> T {
    let of_project = places_of(project);
    // These semaphores are never closed; without a permit the work would run anyway.
    let _own = of_project.acquire().await.ok();
    let _place = PLACES.acquire().await.ok();
    run_blocking(work)
}

fn places_of(project: &str) -> Arc<Semaphore> {
    let mut known = OF_PROJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(project).and_then(Weak::upgrade) {
        return found;
    }
    known.retain(|_, semaphore| semaphore.strong_count() > 0);
    let made = Arc::new(Semaphore::new(HEAVY_OF_A_PROJECT));
    known.insert(project.to_owned(), Arc::downgrade(&made));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, time::Duration};

    fn customizations(config: &[(&str, &str)]) -> Customizations {
        let config: BTreeMap<String, String> = config
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        tiphys_engine::customize::read(&config, jiff::Timestamp::now).0
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_beside_a_script() {
        let scripts = customizations(&[(
            "resource.customizations.health.example.com_Widget",
            "return {}",
        )]);
        let (tell, told) = std::sync::mpsc::channel();
        // There is one worker, and the script waits for another task of it.
        let script = tokio::spawn(async move {
            run_scripts_blocking(&scripts, || told.recv_timeout(Duration::from_secs(20)))
        });
        let other = tokio::spawn(async move { tell.send(()) });
        assert!(
            script.await.expect("no panic").is_ok(),
            "the other task was held up"
        );
        assert!(other.await.expect("no panic").is_ok());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_beside_heavy_work_and_a_project_has_its_share() {
        let (tell, told) = std::sync::mpsc::channel();
        let told = Arc::new(Mutex::new(told));
        let all: Vec<_> = (0..=HEAVY_OF_A_PROJECT)
            .map(|_| {
                let told = told.clone();
                tokio::spawn(async move {
                    heavy("greedy", || {
                        told.lock()
                            .expect("lock")
                            .recv_timeout(Duration::from_secs(20))
                    })
                    .await
                })
            })
            .collect();
        // There is one worker, and more work of this project than permitted. That of another
        // project runs while all of it waits.
        assert_eq!(
            tokio::spawn(async { heavy("modest", || 7).await })
                .await
                .expect("no panic"),
            7
        );
        all.iter()
            .for_each(|_| tell.send(()).expect("somebody waits"));
        for work in all {
            assert!(
                work.await.expect("no panic").is_ok(),
                "the other task was held up"
            );
        }
        assert_eq!(Arc::strong_count(&places_of("greedy")), 1);
        assert!(
            OF_PROJECTS.lock().expect("lock").len() <= 2,
            "nobody holds the others"
        );
    }

    #[tokio::test]
    async fn it_works_on_a_thread_of_its_own_too() {
        let scripts = customizations(&[(
            "resource.customizations.health.example.com_Widget",
            "return {}",
        )]);
        assert_eq!(
            (
                run_scripts_blocking(&scripts, || 1),
                run_scripts_blocking(&customizations(&[]), || 2)
            ),
            (1, 2)
        );
    }
}
