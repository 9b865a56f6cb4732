//! The tags of one chart that were read before. Main type: [`Known`].

use crate::{
    index::Note,
    model::{Chart, ChartVersion},
    store::KnownTag,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use tiphys_gocompat::semver::Version;
use tiphys_repo::version_of_tag;

/// Tags of a chart that are asked for their digest again in one sync, those that were asked longest
/// ago first.
const LOOKS: usize = 20;

/// A tag that is a version.
pub(super) type Wanted = (Version, String);

/// What is known of a chart, by tag.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(pub BTreeMap<String, KnownTag>);

impl Known {
    /// Of the tags that the registry lists.
    pub fn new(before: BTreeMap<String, KnownTag>, chart: &Chart, listed: &[Wanted]) -> Self {
        let mut known = before;
        let digests: HashMap<&str, &str> = chart
            .versions
            .iter()
            .map(|v| (v.version.as_str(), v.digest.as_str()))
            .collect();
        // kubeapps keeps no tags: what it read is known by its version.
        for (_, tag) in listed {
            let version = version_of_tag(tag);
            if !known.contains_key(tag) && digests.contains_key(version.as_str()) {
                let read = KnownTag {
                    version,
                    ..KnownTag::default()
                };
                known.insert(tag.clone(), read);
            }
        }
        let listed: HashSet<&str> = listed.iter().map(|(_, tag)| tag.as_str()).collect();
        known.retain(|tag, _| listed.contains(tag.as_str()));
        for read in known.values_mut().filter(|read| read.digest.is_empty()) {
            let digest = digests.get(read.version.as_str());
            read.digest = digest.copied().unwrap_or_default().to_owned();
        }
        Self(known)
    }

    /// The tags that are asked for again.
    pub fn due(&self) -> Vec<String> {
        let mut due: Vec<(&String, &KnownTag)> = self.0.iter().collect();
        due.sort_by_key(|(_, read)| read.looked_at);
        let due = due.into_iter().take(LOOKS);
        due.map(|(tag, _)| tag.clone()).collect()
    }

    /// The version that was read under a digest, whatever tag it had.
    pub fn version_at(&self, digest: &str) -> Option<String> {
        let read = self.0.values().find(|read| read.digest == digest);
        read.map(|read| read.version.clone())
    }

    pub fn add(&mut self, tag: &str, version: String, digest: &str, now: i64) {
        let read = KnownTag {
            version,
            digest: digest.to_owned(),
            looked_at: now,
        };
        self.0.insert(tag.to_owned(), read);
    }

    /// Whether another tag stands for a version, and has another digest than `digest`: the one
    /// that was read first counts.
    pub fn is_taken(&self, chart: &Chart, tag: &str, (version, digest): (&str, &str)) -> bool {
        let shown = chart.versions.iter().find(|v| v.version == version);
        shown.is_some_and(|shown| {
            shown.digest != digest
                && self.0.iter().any(|(other, read)| {
                    other != tag && read.version == version && read.digest == shown.digest
                })
        })
    }

    /// Removes versions that no tag has any more, and lets the others be pulled by a tag that is
    /// there. `base`: the address of the chart, without a tag.
    pub fn keep(&self, chart: &mut Chart, base: Option<&str>) {
        let mut tags: HashMap<(&str, &str), Vec<&str>> = HashMap::new();
        let mut versions = HashSet::new();
        for (tag, read) in &self.0 {
            versions.insert(read.version.as_str());
            let of = tags.entry((&read.version, &read.digest)).or_default();
            of.push(tag);
        }
        chart
            .versions
            .retain(|v| versions.contains(v.version.as_str()));
        let Some(base) = base else { return };
        for version in &mut chart.versions {
            let Some(tags) = tags.get(&(version.version.as_str(), version.digest.as_str())) else {
                continue;
            };
            let mut addresses = tags.iter().map(|tag| format!("{base}:{tag}"));
            let is_there = |v: &ChartVersion| {
                let url = v.urls.iter().flatten().next();
                url.is_some_and(|url| addresses.clone().any(|address| address == *url))
            };
            if !is_there(version) {
                version.urls = addresses.next().map(|address| vec![address]);
            }
        }
    }

    /// Versions that several tags have with different digests.
    pub fn conflicts(&self) -> Vec<Note> {
        let mut by_version: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for (tag, read) in self.0.iter().filter(|(_, read)| !read.digest.is_empty()) {
            let digests = by_version.entry(&read.version).or_default();
            digests.entry(&read.digest).or_default().push(tag);
        }
        let several = by_version.into_iter().filter(|(_, of)| of.len() > 1);
        several
            .map(|(version, digests)| {
                let tags: Vec<&str> = digests.into_values().flatten().collect();
                Note {
                    version: version.to_owned(),
                    reason: format!("the tags {} have different charts", tags.join(", ")),
                    is_shown: true,
                }
            })
            .collect()
    }
}
