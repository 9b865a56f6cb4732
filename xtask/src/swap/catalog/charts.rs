//! A generated chart repository that changes: an index as Helm writes it, archives and pictures.
//!
//! Main type: [`Repository`]. The same numbers give the same bytes.

use anyhow::Context as _;
use image::{ImageFormat, Rgba, RgbaImage};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::Cursor,
};
use tiphys_testkit::charts::{Answer, package};

/// The charts of one round of events; in half of the rounds they happen in the first change, in the
/// others in the second.
const ROUND: usize = 50;

/// What happens to a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Leaves,
    Comes,
    LosesAVersion,
    GetsAVersion,
    /// A version has other files.
    OtherArchive,
    DescribedAnew,
    /// At the same address.
    OtherPicture,
    NoPicture,
    Deprecated,
    NotDeprecated,
}

impl Event {
    fn of(number: usize) -> Option<Self> {
        Some(match number % ROUND {
            7 => Self::Leaves,
            9 => Self::LosesAVersion,
            11 => Self::OtherArchive,
            15 => Self::GetsAVersion,
            16 => Self::DescribedAnew,
            18 => Self::OtherPicture,
            19 => Self::Deprecated,
            21 => Self::Comes,
            22 => Self::NotDeprecated,
            24 => Self::NoPicture,
            _ => return None,
        })
    }
}

/// What is served below an address.
#[derive(Default)]
pub struct Repository {
    pub index: String,
    /// By path. Those of deprecated charts are not there: nobody needs them.
    pub archives: BTreeMap<String, Vec<u8>>,
    /// Archives that the index names and that are not there.
    pub missing: BTreeSet<String>,
    pub icons: BTreeMap<String, Answer>,
}

/// One chart at one time.
struct Chart {
    number: usize,
    name: String,
    event: Option<Event>,
    /// The event has happened.
    is_after: bool,
}

impl Repository {
    /// `address`: where it is served. `change`: how many changes there were, two at most. `note`: a
    /// comment of the index, which makes it another one with the same entries.
    ///
    /// # Errors
    /// A picture cannot be written.
    pub fn new(address: &str, charts: usize, change: usize, note: usize) -> anyhow::Result<Self> {
        let mut made = Self {
            index: format!("# {note}\napiVersion: v1\nentries:\n"),
            ..Self::default()
        };
        for number in 0..charts {
            let chart = Chart {
                number,
                name: name(number),
                event: Event::of(number),
                is_after: change > (number / ROUND) % 2,
            };
            if chart.is_there() {
                made.add(address, &chart)?;
            }
        }
        made.index.push_str("generated: \"2024-01-01T00:00:00Z\"\n");
        Ok(made)
    }

    fn add(&mut self, address: &str, chart: &Chart) -> anyhow::Result<()> {
        let number = chart.number;
        let picture = chart.picture()?;
        let icon = picture.map(|(path, answer)| {
            let url = format!("{address}/{path}");
            self.icons.extend(answer.map(|answer| (path, answer)));
            url
        });
        // Writing to a string does not fail.
        let _ = writeln!(self.index, "  {}:", chart.name);
        for version in chart.versions() {
            let archive = chart.archive(version);
            let path = format!("archives/{number:04}-{version}.tgz");
            let url = match number % 3 {
                0 => format!("{address}/{path}"),
                _ => path.clone(),
            };
            let digest = format!("{:x}", Sha256::digest(&archive));
            chart.entry(&mut self.index, (version, &url, &digest), icon.as_deref());
            if number % 40 == 13 && version == "1.0.0" {
                self.missing.insert(path);
            } else if !chart.is_deprecated() {
                self.archives.insert(path, archive);
            }
        }
        Ok(())
    }
}

fn name(number: usize) -> String {
    match number % ROUND {
        3 => format!("chart.{number:04}_x"),
        33 => format!("it's-{number:04}"),
        _ => format!("chart-{number:04}"),
    }
}

impl Chart {
    fn has(&self, event: Event) -> bool {
        self.is_after && self.event == Some(event)
    }

    fn is_there(&self) -> bool {
        let is_new = self.event == Some(Event::Comes);
        !self.has(Event::Leaves) && (self.is_after || !is_new)
    }

    fn is_deprecated(&self) -> bool {
        let was = self.event == Some(Event::NotDeprecated) && !self.is_after;
        was || self.has(Event::Deprecated) || self.number % 30 == 17
    }

    /// In the order of the index, which is not that of the numbers for every chart.
    fn versions(&self) -> Vec<&'static str> {
        let mut versions = vec!["1.0.0", "1.1.0", "1.2.0"];
        if self.number % 10 == 4 {
            versions.push("2.0.0-rc.1");
        }
        if self.has(Event::GetsAVersion) {
            versions.push("1.3.0");
        }
        if self.has(Event::LosesAVersion) {
            versions.remove(0);
        }
        if self.number % 4 != 1 {
            versions.reverse();
        }
        versions
    }

    fn archive(&self, version: &str) -> Vec<u8> {
        let Self { number, name, .. } = self;
        let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
        let words = match self.has(Event::OtherArchive) && version == "1.1.0" {
            true => "Other words. ",
            false => "Wörter <b>einer</b> README & more. ",
        };
        let readme = format!("# {name}\n\n{}\n", words.repeat(40));
        let values = format!("replicas: 1\nimage:\n  tag: \"{version}\"\n");
        let mut files = vec![("Chart.yaml", chart.as_str())];
        // Some charts lack one of them.
        let all = [
            ("README.md", readme.as_str()),
            ("values.yaml", values.as_str()),
            ("values.schema.json", "{\"type\": \"object\"}\n"),
            ("values-production.yaml", "replicas: 3\n"),
        ];
        let there = all.into_iter().enumerate();
        files.extend(there.filter_map(|(place, file)| (number % 6 != place).then_some(file)));
        package(name, &files)
    }

    fn entry(&self, out: &mut String, version: (&str, &str, &str), icon: Option<&str>) {
        let Self { number, name, .. } = self;
        let (version, url, digest) = version;
        let anew = match self.has(Event::DescribedAnew) {
            true => ", described anew",
            false => "",
        };
        let mut lines = vec![
            "apiVersion: v2".to_owned(),
            format!("appVersion: \"{version}\""),
            format!(
                "created: \"2024-01-0{}T00:00:00.123456789Z\"",
                1 + number % 9
            ),
            format!("description: \"Chart number {number}: <schön>{anew}\""),
            format!("digest: {digest}"),
            format!("name: {name}"),
            format!("urls:\n    - {url}"),
            format!("version: {version}"),
        ];
        let home = format!("home: https://charts.example/{number}");
        let sources = format!("sources:\n    - https://git.example/{number}");
        let keywords = format!("keywords:\n    - k{}\n    - Schlüssel", number % 13);
        let maintainer = number % 5;
        let maintainers = format!(
            "maintainers:\n    - name: m{maintainer}\n      email: m{maintainer}@example.com\n    \
             - name: other"
        );
        let categories = ["Database", "Storage", "Analytics"];
        let category = categories[number % categories.len()];
        let annotations = format!("annotations:\n      category: {category}");
        let optional = [
            (number % 5, home),
            (number % 7, keywords),
            (number % 8, maintainers),
            (number % 9, annotations),
            (number % 11, sources),
        ];
        let there = optional.into_iter().filter(|(rest, _)| *rest != 0);
        lines.extend(there.map(|(_, line)| line));
        lines.extend(icon.map(|icon| format!("icon: {icon}")));
        lines.extend(self.is_deprecated().then(|| "deprecated: true".to_owned()));
        // Writing to a string does not fail.
        let _ = writeln!(out, "  - {}", lines.join("\n    "));
    }

    /// Its path, and what that answers, if anything is there.
    fn picture(&self) -> anyhow::Result<Option<(String, Option<Answer>)>> {
        let number = self.number;
        if self.has(Event::NoPicture) {
            return Ok(None);
        }
        let seed = number + usize::from(self.has(Event::OtherPicture)) * 1_000;
        let (extension, content) = match number % 8 {
            0 | 1 => ("png", Some(png((40, 40), seed, 255)?)),
            // Larger than kubeapps keeps it, and half transparent.
            2 => ("png", Some(png((200, 120), seed, 90)?)),
            3 => ("png", Some(b"not a picture".to_vec())),
            4 => ("svg", Some(svg(seed))),
            5 => ("png", None),
            _ => return Ok(None),
        };
        let kind = match extension {
            "svg" => "image/svg+xml",
            _ => "image/png",
        };
        let answer = content.map(|body| {
            let mut headers = vec![format!("Content-Type: {kind}")];
            // Some hosts say that a picture did not change.
            if number % 16 < 8 {
                headers.push(format!("ETag: \"{:x}\"", Sha256::digest(&body)));
            }
            Answer {
                headers,
                ..Answer::from(body)
            }
        });
        Ok(Some((format!("icons/{number:04}.{extension}"), answer)))
    }
}

/// Stripes of one picture that differ from those of another.
fn png((width, height): (u32, u32), seed: usize, alpha: u8) -> anyhow::Result<Vec<u8>> {
    let byte = |value: usize| u8::try_from(value % 256).unwrap_or_default();
    let colour = |x: u32, y: u32| {
        let (x, y) = (x as usize, y as usize);
        let alpha = match (x / 8 + y / 8) % 2 {
            0 => alpha,
            _ => 255,
        };
        let red = byte(x * 7 + seed * 31);
        let green = byte(y * 5 + seed * 17);
        Rgba([red, green, byte((x + y) * 3), alpha])
    };
    let mut png = Cursor::new(Vec::new());
    RgbaImage::from_fn(width, height, colour)
        .write_to(&mut png, ImageFormat::Png)
        .context("a picture")?;
    Ok(png.into_inner())
}

fn svg(seed: usize) -> Vec<u8> {
    let (width, colour) = (10 + seed % 40, seed * 997 % 0x00ff_ffff);
    let drawn = format!(
        "<rect x=\"4\" y=\"6\" width=\"{width}\" height=\"30\" fill=\"#{colour:06x}\"/>\
         <circle cx=\"40\" cy=\"20\" r=\"12\" fill=\"#00ff80\"/>"
    );
    let text =
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 48\">{drawn}</svg>");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_catalog::{Form, index::Index};

    const ADDRESS: &str = "http://127.0.0.1/charts";

    fn sections(repository: &Repository) -> BTreeMap<String, String> {
        let index: &'static str = repository.index.clone().leak();
        let index = Index::read(std::io::Cursor::new(index), Form::Kubeapps).expect("an index");
        let sections = index.map(|section| section.expect("a section"));
        sections.map(|section| (section.key, section.sha)).collect()
    }

    #[test]
    fn each_event_is_in_one_change() {
        let made = |change, note| {
            let made = Repository::new(ADDRESS, 2 * ROUND, change, note);
            made.expect("a repository")
        };
        let (before, again) = (made(0, 0), made(0, 1));
        assert_ne!(before.index, again.index);
        assert_eq!(sections(&before), sections(&again));
        assert!(before.archives == again.archives);
        let mut old = before;
        for (change, first) in [(1, 0), (2, ROUND)] {
            let new = made(change, 0);
            let (was, is) = (sections(&old), sections(&new));
            let named = |number: usize| name(first + number);
            assert!(was.contains_key(&named(7)) && !is.contains_key(&named(7)));
            assert!(!was.contains_key(&named(21)) && is.contains_key(&named(21)));
            let differ = was.iter().filter(|(name, sha)| is.get(*name) != Some(*sha));
            let differ: BTreeSet<&String> = differ.map(|(name, _)| name).collect();
            // Of a picture only the address is in an index.
            let wanted = [7, 9, 11, 15, 16, 19, 22, 24].map(named);
            let wanted: BTreeSet<&String> = wanted.iter().collect();
            assert_eq!(differ, wanted);
            let start = format!("icons/{:04}.", first + 18);
            let picture = |of: &Repository| {
                let found = of.icons.iter().find(|(path, _)| path.starts_with(&start));
                found.expect("a picture").1.body.clone()
            };
            assert_ne!(picture(&old), picture(&new));
            old = new;
        }
    }
}
