//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod applicationset_deletions;
mod applicationset_dry_run;
mod applicationset_hosts;
mod applicationset_lease;
mod applicationset_meanwhile;
mod applicationset_reports;
mod applicationset_seeds;
mod applicationsets;
mod apprepositories;
mod apprepositories_made;
mod apprepository_cluster;
mod apprepository_jobs;
mod ground;
mod hydrator;
mod hydrator_seeds;
mod metrics;
mod notification_reports;
mod notification_seeds;
mod notifications;
mod redis;
mod replicas;
mod repository_faults;
mod restarts;
mod scripts;
mod tarpits;
