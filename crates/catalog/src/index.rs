//! Reads the index of a repository chart by chart. Pure.
//!
//! Main types: [`Index`], whose [`Section`]s are the text of one chart each, and [`Parsed`]. Only
//! sections that changed need to be parsed, and only one is in memory as a tree at a time. An index
//! that cannot be divided is parsed as a whole.

use crate::{
    model::{Chart, ChartVersion, Maintainer, NEVER, RepoRef, storable},
    repository::{Form, Repository, sha256},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
};
use tiphys_gocompat::{
    semver::Version,
    yaml::{self, Duplicates},
};
use tiphys_repo::{index_limits, index_sections};

/// The charts of an index, not parsed yet.
pub struct Index<'t> {
    pub sections: Vec<Section<'t>>,
}

/// One chart of an index.
pub struct Section<'t> {
    /// The key in the index.
    pub key: String,
    /// Differs when anything about the chart differs.
    pub sha: String,
    body: Body<'t>,
}

enum Body<'t> {
    Text(&'t str),
    Tree(Value),
}

/// What a section says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// `None`: the section has no usable entry.
    pub chart: Option<Chart>,
    /// Whether the newest version is deprecated.
    pub deprecated: bool,
    pub notes: Vec<Note>,
}

/// An entry that is skipped, or of which another one is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// As far as the entry says.
    pub version: String,
    pub reason: String,
    /// The entry has a place in the catalogue all the same.
    pub is_shown: bool,
}

impl<'t> Index<'t> {
    /// Divides an index.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(content: &'t [u8], form: Form) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
        let divided = index_sections(text).and_then(|sections| divided(text, &sections, form));
        match divided {
            Some(index) => Ok(index),
            None => Self::read_whole(text, form),
        }
    }

    /// The same for an index in any style.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read_whole(text: &str, form: Form) -> Result<Self, String> {
        let parsed = yaml::parse_document(text, &index_limits(), Duplicates::LastWins);
        let entries = entries_of(parsed.map_err(|e| e.to_string())?, form)?;
        let section = |(key, value): (String, Value)| Section {
            key,
            sha: sha256(value.to_string().as_bytes()),
            body: Body::Tree(value),
        };
        let sections = entries.into_iter().map(section).collect();
        Ok(Self { sections })
    }
}

/// The sections, if all around them can be read. Of two with the same name the last one counts.
fn divided<'t>(text: &'t str, sections: &[(String, &'t str)], form: Form) -> Option<Index<'t>> {
    let around = match (sections.first(), sections.last()) {
        (Some((_, first)), Some((_, last))) => {
            let offset = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
            let (from, to) = (offset(first), offset(last) + last.len());
            format!("{}\n{}", text.get(..from)?, text.get(to..)?)
        }
        _ => text.to_owned(),
    };
    let around = yaml::parse_document(&around, &index_limits(), Duplicates::LastWins).ok()?;
    entries_of(around, form).ok()?;
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut kept: Vec<Section<'t>> = Vec::with_capacity(sections.len());
    for (key, text) in sections {
        let section = Section {
            key: key.clone(),
            sha: sha256(text.as_bytes()),
            body: Body::Text(text),
        };
        match places.get(key.as_str()) {
            Some(place) => kept[*place] = section,
            None => {
                places.insert(key, kept.len());
                kept.push(section);
            }
        }
    }
    Some(Index { sections: kept })
}

fn entries_of(index: Value, form: Form) -> Result<serde_json::Map<String, Value>, String> {
    let Value::Object(mut index) = index else {
        return Err("it is not a map".to_owned());
    };
    let version = index.get("apiVersion").and_then(Value::as_str);
    if form == Form::Helm && version.unwrap_or_default().is_empty() {
        return Err("no API version specified".to_owned());
    }
    match index.remove("entries") {
        Some(Value::Object(entries)) => Ok(entries),
        None | Some(Value::Null) => Ok(serde_json::Map::new()),
        Some(_) => Err("entries is not a map".to_owned()),
    }
}

impl Section<'_> {
    /// # Errors
    /// The section alone is no YAML: the index must be read as a whole.
    pub fn parse(&self, repository: &Repository) -> Result<Parsed, String> {
        let parsed;
        let entries = match &self.body {
            Body::Tree(entries) => Some(entries),
            Body::Text(text) => {
                parsed = yaml::parse_document(text, &index_limits(), Duplicates::LastWins)
                    .map_err(|e| e.to_string())?;
                let entries = parsed.as_object().and_then(|map| map.get(&self.key));
                // What follows the name is read otherwise than it was divided.
                Some(entries.ok_or_else(|| "the chart is not where it was found".to_owned())?)
            }
        };
        match entries {
            None | Some(Value::Null) => Ok(Parsed::default()),
            Some(Value::Array(entries)) => Ok(chart_of(entries, repository)),
            Some(_) => Ok(Parsed {
                notes: vec![Note {
                    version: String::new(),
                    reason: "its versions are not a list".to_owned(),
                    is_shown: false,
                }],
                ..Parsed::default()
            }),
        }
    }
}

/// The fields of an entry, with the types that Helm demands of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    name: Option<String>,
    version: Option<String>,
    description: Option<String>,
    home: Option<String>,
    icon: Option<String>,
    app_version: Option<String>,
    digest: Option<String>,
    created: Option<String>,
    deprecated: Option<bool>,
    urls: Option<Vec<Option<String>>>,
    keywords: Option<Vec<Option<String>>>,
    sources: Option<Vec<Option<String>>>,
    maintainers: Option<Vec<Option<Person>>>,
    annotations: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Person {
    name: Option<String>,
    email: Option<String>,
    url: Option<String>,
}

fn text(field: &Option<String>) -> String {
    storable(field.as_deref().unwrap_or_default())
}

fn texts(list: &Option<Vec<Option<String>>>) -> Option<Vec<String>> {
    list.as_ref()
        .map(|list| list.iter().map(text).collect::<Vec<String>>())
}

/// Checks an entry; `Err` is the reason to skip it.
fn entry_of(value: &Value, form: Form) -> Result<Entry, String> {
    if value.is_null() {
        return Err("empty entry".to_owned());
    }
    let mut entry = Entry::deserialize(value).map_err(|e| e.to_string())?;
    entry.created = match &entry.created {
        None => Some(NEVER.to_owned()),
        Some(written) => {
            let time = go_time(written);
            Some(time.ok_or_else(|| format!("created is no time: {written:?}"))?)
        }
    };
    if form == Form::Helm {
        let (name, version) = (text(&entry.name), text(&entry.version));
        if name.is_empty() {
            return Err("name is required".to_owned());
        }
        if version.is_empty() {
            return Err("version is required".to_owned());
        }
        if name.contains('/') || matches!(&*name, "." | "..") {
            return Err("name is invalid".to_owned());
        }
        if Version::parse(&version).is_err() {
            return Err("version is invalid".to_owned());
        }
    }
    Ok(entry)
}

fn chart_of(entries: &[Value], repository: &Repository) -> Parsed {
    let mut notes = Vec::new();
    let mut kept: Vec<(Option<Version>, Entry)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for value in entries {
        let version = value.get("version").and_then(Value::as_str);
        let version = storable(version.unwrap_or_default());
        let entry = match entry_of(value, repository.form) {
            Ok(entry) => entry,
            Err(reason) => {
                notes.push(Note {
                    version,
                    reason,
                    is_shown: false,
                });
                continue;
            }
        };
        // Helm takes the first or the last of several, depending on how many there are.
        if let Some(place) = places.get(&version) {
            let (first, this) = (digest_of(&kept[*place].1), digest_of(&entry));
            if first != this {
                let reason = format!("ambiguous: listed with the digests {first} and {this}");
                notes.push(Note {
                    version,
                    reason,
                    is_shown: true,
                });
            }
            continue;
        }
        places.insert(version.clone(), kept.len());
        kept.push((Version::parse(&version).ok(), entry));
    }
    // Helm leaves what is no version in the opposite order.
    let (mut good, bad): (Vec<_>, Vec<_>) = kept.into_iter().partition(|(v, _)| v.is_some());
    good.sort_by(|(a, _), (b, _)| newest_first(a.as_ref(), b.as_ref()));
    let kept: Vec<(Option<Version>, Entry)> =
        good.into_iter().chain(bad.into_iter().rev()).collect();
    let deprecated = kept.first().is_some_and(|e| e.1.deprecated == Some(true));
    Parsed {
        chart: document(&kept, repository),
        deprecated,
        notes,
    }
}

fn digest_of(entry: &Entry) -> String {
    plain_digest(entry.digest.as_deref().unwrap_or_default())
}

/// A digest without its algorithm's name.
pub(crate) fn plain_digest(digest: &str) -> String {
    let digest = digest.trim();
    digest
        .strip_prefix("sha256:")
        .unwrap_or(digest)
        .to_lowercase()
}

/// The order of versions; what is no version comes last.
pub(crate) fn newest_first(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.precedence(a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn document(versions: &[(Option<Version>, Entry)], repository: &Repository) -> Option<Chart> {
    let (_, newest) = versions.first()?;
    let name = text(&newest.name).replace('/', "%2F");
    let annotations = newest.annotations.as_ref();
    let category = annotations.and_then(|map| map.get("category"));
    let people = newest.maintainers.iter().flatten();
    let people = people.map(|person| {
        let person = person.as_ref().cloned().unwrap_or_default();
        Maintainer {
            name: text(&person.name),
            email: text(&person.email),
            url: text(&person.url),
        }
    });
    let version = |entry: &Entry| ChartVersion {
        version: text(&entry.version),
        app_version: text(&entry.app_version),
        created: text(&entry.created),
        digest: text(&entry.digest),
        urls: texts(&entry.urls),
        ..ChartVersion::default()
    };
    Some(Chart {
        id: format!("{}/{name}", repository.id.name),
        name,
        repo: RepoRef {
            namespace: repository.id.namespace.clone(),
            name: repository.id.name.clone(),
            url: repository.url.clone(),
            form: String::new(),
        },
        description: text(&newest.description),
        home: text(&newest.home),
        keywords: texts(&newest.keywords),
        maintainers: Some(people.collect()),
        sources: texts(&newest.sources),
        icon: text(&newest.icon),
        raw_icon: None,
        icon_content_type: String::new(),
        category: category.map(text).unwrap_or_default(),
        versions: versions.iter().map(|(_, entry)| version(entry)).collect(),
    })
}

/// A time of RFC 3339 as Go writes it again; `None` if Go could not read it.
fn go_time(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 20
        && bytes[10] == b'T'
        && [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')]
            .iter()
            .all(|(at, sign)| bytes[*at] == *sign);
    if !shaped {
        return None;
    }
    let (clock, rest) = (text.get(..19)?, text.get(19..)?);
    let zone = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone);
    let fraction = match fraction.strip_prefix(['.', ',']) {
        Some("") => return None,
        Some(digits) => digits,
        None if fraction.is_empty() => fraction,
        None => return None,
    };
    let is_time = format!("{clock}{zone}").parse::<jiff::Timestamp>().is_ok();
    if !is_time || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.get(..9).unwrap_or(fraction).trim_end_matches('0');
    let zone = if zone == "+00:00" { "Z" } else { zone };
    Some(if fraction.is_empty() {
        format!("{clock}{zone}")
    } else {
        format!("{clock}.{fraction}{zone}")
    })
}

#[cfg(test)]
mod tests;
