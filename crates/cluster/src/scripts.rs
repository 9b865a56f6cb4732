//! Users' scripts and the threads that serve many tasks: a script may take its second, and must not take it from the others.
//!
//! Main function: [`aside`].

use tiphys_engine::customize::Customizations;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Does work in which users' health scripts may run. When there are any, the other tasks of this thread are handed to another one first.
pub fn aside<T>(customizations: &Customizations, work: impl FnOnce() -> T) -> T {
    let shared = || Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if customizations.has_health_scripts() && shared() { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, time::Duration};

    fn customizations(config: &[(&str, &str)]) -> Customizations {
        let config: BTreeMap<String, String> = config.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        tiphys_engine::customize::read(&config, jiff::Timestamp::now).0
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_beside_a_script() {
        let scripts = customizations(&[("resource.customizations.health.example.com_Widget", "return {}")]);
        let (tell, told) = std::sync::mpsc::channel();
        // There is one worker, and the script waits for what another task of it does.
        let script = tokio::spawn(async move { aside(&scripts, || told.recv_timeout(Duration::from_secs(20))) });
        let other = tokio::spawn(async move { tell.send(()) });
        assert!(script.await.expect("no panic").is_ok(), "the other task was held up");
        assert!(other.await.expect("no panic").is_ok());
    }

    #[tokio::test]
    async fn it_works_on_a_thread_of_its_own_too() {
        let scripts = customizations(&[("resource.customizations.health.example.com_Widget", "return {}")]);
        assert_eq!((aside(&scripts, || 1), aside(&customizations(&[]), || 2)), (1, 2));
    }
}
