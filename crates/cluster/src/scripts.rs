//! Work whose length depends on what comes from outside, and the threads that serve many tasks: it
//! may take its time, and must not take it from the others.
//!
//! Main functions: [`heavy`], for what a project may ask for, and [`run_scripts_blocking`], for
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

/// How much heavy work there is at a time: each has a thread.
const HEAVY: usize = 16;
/// How much of it may be of one project.
const HEAVY_OF_A_PROJECT: usize = 8;

static PLACES: Semaphore = Semaphore::const_new(HEAVY);
/// Those of each project, as long as somebody has one or waits for it.
static OF_PROJECTS: LazyLock<Mutex<HashMap<String, Weak<Semaphore>>>> =
    LazyLock::new(Mutex::default);

/// Does work in which users' health scripts may run. When there are any, the other tasks of this
/// thread are handed to another one first.
pub fn run_scripts_blocking<T>(customizations: &Customizations, work: impl FnOnce() -> T) -> T {
    if customizations.has_health_scripts() {
        run_blocking(work)
    } else {
        work()
    }
}

/// Does work after the other tasks of this thread were handed to another one.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    let shared =
        Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if shared {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Does work that may take long on behalf of a project, beside the other tasks. There is never much
/// of it at a time, and never all of it is of one project.
pub async fn heavy<T>(project: &str, work: impl FnOnce() -> T) -> T {
    let of_project = places_of(project);
    // These semaphores are never closed: without a permit the work is done nevertheless.
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
        // There is one worker, and the script waits for what another task of it does.
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
        // There is one worker, and more work of this project than there may be. That of another is
        // done while all of it waits.
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
