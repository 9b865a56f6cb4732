//! AppRepositories as kubeapps' controller turns them into CronJobs and Jobs: which objects a
//! repository wants. Pure; who writes them is not known here.
//!
//! Main types: [`Options`] (the controller's flags) and [`Wanted`].

mod names;
mod new;
mod objects;
mod options;
mod schedule;
mod source;

pub use names::{cleanup_prefix, cron_job_name, label, secret_copy};
pub use new::{NewObjects, NewRepository};
pub use objects::Wanted;
pub use options::{Options, OptionsError, USAGE};
pub use schedule::{Schedule, pause, schedule};
pub use source::{Credentials, open};

/// Keeps an AppRepository until its rows are gone.
pub const FINALIZER: &str = "apprepositories.kubeapps.com/apprepo-cleanup-finalizer";
/// On CronJobs and pods.
pub const REPO_NAME: &str = "apprepositories.kubeapps.com/repo-name";
pub const REPO_NAMESPACE: &str = "apprepositories.kubeapps.com/repo-namespace";

#[cfg(test)]
mod tests;
