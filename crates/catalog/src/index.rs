//! Reads the index of a repository chart by chart. Pure.
//!
//! Main types: [`Index`], which gives one [`Section`] after the other, and [`Parsed`]. Only sections
//! that changed need to be parsed, and only one is in memory at a time. An index that cannot be
//! divided is parsed as a whole.

mod lines;
mod times;

use crate::{
    fields,
    model::{Chart, ChartVersion, Maintainer, NEVER, RepoRef, storable},
    repository::{Form, Repository, sha256},
};
use lines::Lines;
use serde::Deserialize;
use serde_json::Value;
use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    io::{Read, Seek, SeekFrom},
    vec,
};
use times::go_time;
use tiphys_gocompat::{
    semver::Version,
    yaml::{self, Duplicates},
};
use tiphys_repo::{Place, index_limits};

/// Why an index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexFault {
    #[error("{0}")]
    Content(String),
    /// What was read alone means something else in its place: the index must be read as a whole.
    #[error("{0}")]
    Undivided(String),
    /// Nothing is known about the index.
    #[error("{0}")]
    Unread(#[from] std::io::Error),
}

impl IndexFault {
    fn content(reason: impl ToString) -> Self {
        Self::Content(reason.to_string())
    }
}

/// The charts of an index by key, not parsed yet; of two with the same key the last.
pub struct Index<R> {
    source: R,
    charts: vec::IntoIter<(String, Source)>,
}

enum Source {
    Lines(Place),
    Tree(Value),
}

/// One chart of an index.
pub struct Section {
    /// The key in the index.
    pub key: String,
    /// Differs when anything about the chart differs.
    pub sha: String,
    body: Body,
}

enum Body {
    /// Below [`ABOVE`].
    Text(String),
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

impl<R: Read + Seek> Index<R> {
    /// Divides an index.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(mut source: R, form: Form) -> Result<Self, IndexFault> {
        match divided(&mut source, form)? {
            Some(places) => {
                let charts = places.into_iter();
                let charts = charts.map(|place| (place.key.clone(), Source::Lines(place)));
                Ok(Self::sorted(source, charts.collect()))
            }
            None => Self::read_whole(source, form),
        }
    }

    /// The same for an index in any style.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_whole(mut source: R, form: Form) -> Result<Self, IndexFault> {
        source.rewind()?;
        let mut content = Vec::new();
        source.read_to_end(&mut content)?;
        let entries = entries_of(parsed(&text_of(content)?)?, form)?;
        let charts = entries.into_iter();
        let charts = charts.map(|(key, value)| (key, Source::Tree(value)));
        Ok(Self::sorted(source, charts.collect()))
    }

    fn sorted(source: R, mut charts: Vec<(String, Source)>) -> Self {
        charts.sort_by(|a, b| a.0.cmp(&b.0));
        let charts = charts.into_iter();
        Self { source, charts }
    }

    fn section(&mut self, key: String, source: Source) -> Result<Section, IndexFault> {
        let (sha, body) = match source {
            Source::Tree(value) => (sha256(value.to_string().as_bytes()), Body::Tree(value)),
            Source::Lines(place) => {
                let text = text_of(bytes(&mut self.source, &place, ABOVE)?)?;
                (sha256(&text.as_bytes()[ABOVE.len()..]), Body::Text(text))
            }
        };
        Ok(Section { key, sha, body })
    }
}

impl<R: Read + Seek> Iterator for Index<R> {
    type Item = Result<Section, IndexFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, source) = self.charts.next()?;
        Some(self.section(key, source))
    }
}

/// The line above the charts. With it, what is indented is a document like most others, which are
/// parsed many times faster than one that begins with blanks.
const ABOVE: &str = "entries:\n";

/// The bytes at a place, with a text before them.
fn bytes(
    source: &mut (impl Read + Seek),
    place: &Place,
    before: &str,
) -> Result<Vec<u8>, std::io::Error> {
    source.seek(SeekFrom::Start(place.bytes.start))?;
    let mut content = before.as_bytes().to_vec();
    let length = place.bytes.end.saturating_sub(place.bytes.start);
    source.take(length).read_to_end(&mut content)?;
    Ok(content)
}

fn text_of(content: Vec<u8>) -> Result<String, IndexFault> {
    String::from_utf8(content).map_err(|_| IndexFault::content("it is not UTF-8"))
}

fn parsed(text: &str) -> Result<Value, IndexFault> {
    let parsed = yaml::parse_document(text, &index_limits(), Duplicates::LastWins);
    parsed.map_err(IndexFault::content)
}

/// The charts, if all around them can be read. Of two with the same key the last one counts.
fn divided(source: &mut (impl Read + Seek), form: Form) -> Result<Option<Vec<Place>>, IndexFault> {
    let Some(Lines { places, around }) = lines::read(source)? else {
        return Ok(None);
    };
    let around = parsed(&around).and_then(|around| entries_of(around, form));
    if around.is_err() {
        return Ok(None);
    }
    let last: HashMap<String, Place> = places
        .into_iter()
        .map(|place| (place.key.clone(), place))
        .collect();
    Ok(Some(last.into_values().collect()))
}

fn entries_of(index: Value, form: Form) -> Result<serde_json::Map<String, Value>, IndexFault> {
    let named = match fields::named(&index, fields::INDEX) {
        Cow::Owned(named) => Some(named),
        Cow::Borrowed(_) => None,
    };
    let mut index = match named.unwrap_or(index) {
        Value::Object(index) => index,
        // As kubeapps reads an empty file; nothing is removed then.
        Value::Null if form == Form::Kubeapps => return Ok(serde_json::Map::new()),
        _ => return Err(IndexFault::content("it is not a map")),
    };
    let version = index.get("apiVersion").and_then(Value::as_str);
    if form == Form::Helm && version.unwrap_or_default().is_empty() {
        return Err(IndexFault::content("no API version specified"));
    }
    match index.remove("entries") {
        Some(Value::Object(entries)) => Ok(entries),
        None | Some(Value::Null) => Ok(serde_json::Map::new()),
        Some(_) => Err(IndexFault::content("entries is not a map")),
    }
}

impl Section {
    /// # Errors
    /// [`IndexFault::Undivided`]
    pub fn parse(&self, repository: &Repository) -> Result<Parsed, IndexFault> {
        let whole;
        let entries = match &self.body {
            Body::Tree(entries) => Some(entries),
            Body::Text(text) => {
                let undivided = |e: IndexFault| IndexFault::Undivided(e.to_string());
                whole = parsed(text).map_err(undivided)?;
                let charts = whole.get("entries").and_then(Value::as_object);
                let entries = charts.and_then(|charts| charts.get(&self.key));
                // What follows the name is read otherwise than it was divided.
                let elsewhere = "the chart is not where it was found";
                Some(entries.ok_or_else(|| IndexFault::Undivided(elsewhere.to_owned()))?)
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

/// The longest name or version, so that a database can index it.
pub(crate) const NAME_BYTES: usize = 256;

/// Checks an entry; `Err` is the reason to skip it.
fn entry_of(value: &Value, form: Form) -> Result<Entry, String> {
    if value.is_null() {
        return Err("empty entry".to_owned());
    }
    let mut entry = Entry::deserialize(value).map_err(|e| e.to_string())?;
    for (field, text) in [("name", &entry.name), ("version", &entry.version)] {
        if text.as_ref().is_some_and(|text| text.len() > NAME_BYTES) {
            return Err(format!("{field} has more than {NAME_BYTES} bytes"));
        }
    }
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

/// Versions of one chart: each has files, and all of them are in one document.
const VERSIONS: usize = 10_000;

fn chart_of(entries: &[Value], repository: &Repository) -> Parsed {
    let mut notes = Vec::new();
    let mut kept: Vec<(Option<Version>, Entry)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for value in entries {
        let value = fields::entry(value);
        let version = value.get("version").and_then(Value::as_str);
        let version = storable(version.unwrap_or_default());
        let entry = match entry_of(&value, repository.form) {
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
    let mut kept: Vec<(Option<Version>, Entry)> =
        good.into_iter().chain(bad.into_iter().rev()).collect();
    if kept.len() > VERSIONS {
        let reason = format!(
            "it has {} versions: only the newest {VERSIONS} are in the catalogue",
            kept.len()
        );
        kept.truncate(VERSIONS);
        notes.push(Note {
            version: String::new(),
            reason,
            is_shown: false,
        });
    }
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

#[cfg(test)]
mod tests;
