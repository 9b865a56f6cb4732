//! AppRepositories of kubeapps: chart repositories of the catalogue, described in the cluster.
//!
//! Two drivers read them with one engine, `tiphys_catalog`: [`jobs`] makes CronJobs and Jobs, as
//! kubeapps' controller does; [`in_process`] reads them itself. [`programs`] runs those Jobs where
//! pods are only simulated. They must not know the Application controller.

mod collection;
mod events;
pub mod in_process;
pub mod jobs;
mod object;
pub mod programs;
mod status;

pub use status::{Facts, Phase};

use tiphys_catalog::RepoId;

/// An AppRepository, or another object, by namespace and name.
type Key = RepoId;
