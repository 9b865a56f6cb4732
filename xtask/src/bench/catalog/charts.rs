//! Generated charts: an index as Helm writes it, and an archive of its own for every version.
//!
//! Main type: [`Charts`]. The same numbers give the same bytes.

use sha2::{Digest as _, Sha256};
use std::{collections::HashMap, fmt::Write as _};
use tiphys_testkit::charts::package;

const CATEGORIES: [&str; 6] = [
    "Database",
    "Storage",
    "Networking",
    "Observability",
    "Security",
    "Analytics",
];

/// A repository.
pub struct Charts {
    pub index: String,
    /// The same with one version more of one chart.
    pub changed: String,
    /// By `NAME/VERSION.tgz`.
    pub archives: HashMap<String, Vec<u8>>,
}

impl Charts {
    /// Charts from number `first` on, with so many versions each.
    pub fn new(first: usize, charts: usize, versions: usize) -> Self {
        let mut made = Self {
            index: head(),
            changed: head(),
            archives: HashMap::new(),
        };
        for number in first..first + charts {
            let name = format!("chart-{number:04}");
            let mut section = format!("  {name}:\n");
            let mut more = section.clone();
            if number == first + charts / 2 {
                made.entry(&mut more, number, &name, "2.0.0");
            }
            for version in (0..versions).rev() {
                let version = format!("1.{}.{}", version / 10, version % 10);
                let before = section.len();
                made.entry(&mut section, number, &name, &version);
                more.push_str(&section[before..]);
            }
            made.index.push_str(&section);
            made.changed.push_str(&more);
        }
        made.index.push_str(TAIL);
        made.changed.push_str(TAIL);
        made
    }

    fn entry(&mut self, out: &mut String, number: usize, name: &str, version: &str) {
        let archive = archive(name, version);
        let digest = Sha256::digest(&archive);
        let path = format!("{name}/{version}.tgz");
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "  - apiVersion: v2
    appVersion: {version}
    created: \"2024-01-01T00:00:00Z\"
    annotations:
      category: {}
    description: Synthetic chart number {number}
    digest: {digest:x}
    home: https://charts.example/{name}
    keywords:
    - k{}
    maintainers:
    - name: m{}
    name: {name}
    urls:
    - {path}
    version: {version}
",
            CATEGORIES[number % CATEGORIES.len()],
            number % 50,
            number % 100
        );
        self.archives.insert(path, archive);
    }
}

const TAIL: &str = "generated: \"2024-01-01T00:00:00Z\"\n";

fn head() -> String {
    "apiVersion: v1\nentries:\n".to_owned()
}

fn archive(name: &str, version: &str) -> Vec<u8> {
    let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let readme = format!("# {name}\n\n{}\n", "Some words of a readme. ".repeat(40));
    package(
        name,
        &[
            ("Chart.yaml", &chart),
            ("README.md", &readme),
            ("values.yaml", "replicas: 1\nimage:\n  tag: latest\n"),
            ("values.schema.json", "{\"type\":\"object\"}\n"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_catalog::{Form, index::Index};

    #[test]
    fn an_index_and_the_same_with_one_version_more() {
        let made = Charts::new(7, 3, 12);
        assert_eq!(made.archives.len(), 37);
        let read = |text: &'static str| {
            let index = Index::read(std::io::Cursor::new(text), Form::Helm).expect("an index");
            let sections = index.map(|section| section.expect("a section"));
            let pairs = sections.map(|section| (section.key, section.sha));
            pairs.collect::<Vec<_>>()
        };
        let before = read(made.index.clone().leak());
        let after = read(made.changed.clone().leak());
        let names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["chart-0007", "chart-0008", "chart-0009"]);
        let differ = before.iter().zip(&after).filter(|(a, b)| a != b);
        let differ: Vec<&str> = differ.map(|(a, _)| a.0.as_str()).collect();
        assert_eq!(differ, ["chart-0008"]);
        let archive = &made.archives["chart-0008/2.0.0.tgz"];
        assert!(
            made.changed
                .contains(&format!("{:x}", Sha256::digest(archive)))
        );
        let files = tiphys_catalog::files::extract(archive).expect("an archive");
        assert!(files.readme.starts_with("# chart-0008\n"));
    }
}
