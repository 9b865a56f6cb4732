//! How soon the answers of the outside are to be asked again. Main function: [`after`].

use super::{Kind, kinds, unnested};
use std::time::Duration;
use tiphys_api::application_set::generators::{
    ApplicationSetGenerator, ApplicationSetNestedGenerator,
};

/// For Git and clusterDecisionResource, without a setting of the installation.
pub const DEFAULT: Duration = Duration::from_secs(180);
/// For pull requests, repositories and plugins.
const RARELY: Duration = Duration::from_secs(30 * 60);

/// The shortest time over generators; `None` if nothing has to be asked again by time.
pub(crate) fn after(entries: &[ApplicationSetGenerator], default: Duration) -> Option<Duration> {
    entries
        .iter()
        .filter_map(|entry| of_entry(entry, default))
        .min()
}

fn of_entry(entry: &ApplicationSetGenerator, default: Duration) -> Option<Duration> {
    let own = |seconds: Option<i64>, default: Duration| match seconds {
        None => Some(default),
        Some(seconds) => u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
    };
    let of_kind = |kind: Kind<'_>| match kind {
        Kind::List(_) | Kind::Clusters(_) => None,
        Kind::Git(g) => own(g.requeue_after_seconds, default),
        Kind::Decision(g) => own(g.requeue_after_seconds, default),
        Kind::Scm(g) => own(g.requeue_after_seconds, RARELY),
        Kind::PullRequest(g) => own(g.requeue_after_seconds, RARELY),
        Kind::Plugin(g) => own(g.requeue_after_seconds, RARELY),
        Kind::Matrix(g) => of_children(&g.generators, default),
        Kind::Merge(g) => of_children(&g.generators, default),
    };
    kinds(entry).into_iter().filter_map(of_kind).min()
}

fn of_children(children: &[ApplicationSetNestedGenerator], default: Duration) -> Option<Duration> {
    children
        .iter()
        .filter_map(|child| unnested(child).ok())
        .filter_map(|entry| of_entry(&entry, default))
        .min()
}
