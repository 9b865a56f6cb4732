//! The versions that kubeapps shows of a chart. Pure.

use std::collections::BTreeMap;
use tiphys_catalog::model::ChartVersion;
use tiphys_gocompat::semver::Version;

/// Of each: the three newest majors, their three newest minors, those's three newest patches.
const EACH: usize = 3;

/// The newest versions, the newest first. All of them where one is no semantic version.
pub(super) fn newest(all: &[ChartVersion]) -> Vec<&ChartVersion> {
    let parsed: Option<Vec<(Version, &ChartVersion)>> = all
        .iter()
        .map(|known| Some((Version::parse(&known.version).ok()?, known)))
        .collect();
    let Some(mut parsed) = parsed else {
        return all.iter().collect();
    };
    parsed.sort_by(|a, b| b.0.precedence(&a.0));
    let mut seen: BTreeMap<u64, BTreeMap<u64, usize>> = BTreeMap::new();
    let mut shown = Vec::new();
    for (version, known) in parsed {
        if seen.len() == EACH && !seen.contains_key(&version.major) {
            continue;
        }
        let minors = seen.entry(version.major).or_default();
        if minors.len() == EACH && !minors.contains_key(&version.minor) {
            continue;
        }
        let patches = minors.entry(version.minor).or_default();
        if *patches < EACH {
            *patches += 1;
            shown.push(known);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_each() {
        for (all, wanted) in [
            (
                "1.0.0 4.0.0 3.0.0 2.0.0 4.1.0 4.1.3 4.1.1 4.1.2 4.2.0 4.3.0",
                "4.3.0 4.2.0 4.1.3 4.1.2 4.1.1 3.0.0 2.0.0",
            ),
            ("1.0.0 junk 0.1.0", "1.0.0 junk 0.1.0"),
            ("", ""),
        ] {
            let all: Vec<ChartVersion> = all
                .split_whitespace()
                .map(|version| ChartVersion {
                    version: version.to_owned(),
                    ..ChartVersion::default()
                })
                .collect();
            let shown: Vec<&str> = newest(&all).iter().map(|known| &*known.version).collect();
            assert_eq!(shown.join(" "), wanted);
        }
    }
}
