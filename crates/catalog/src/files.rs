//! What people read of a chart, taken from its archive. Pure.
//!
//! Main function: [`extract`]. Only files directly in the chart's folder count. Everything else is
//! skipped without being kept, within limits on what is unpacked.

use crate::{
    gunzip::{Gunzip, Inflater},
    model::storable,
};
use std::collections::BTreeMap;
use tiphys_render::tar::{Allowance, Kind, Tar, TarFault};

/// All of an archive, unpacked.
const UNPACKED_BYTES: u64 = 256 << 20;
const ENTRIES: usize = 50_000;
/// What is kept of an archive.
const KEPT_BYTES: usize = 16 << 20;
/// Files with values besides the usual one.
const MORE_VALUES: usize = 100;
/// One file, as Helm limits it.
const FILE_BYTES: u64 = 5 << 20;

/// Files by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    pub readme: String,
    pub values: String,
    /// `values-<x>.yaml` by `values-<x>`.
    pub additional_values: BTreeMap<String, String>,
    pub schema: String,
    pub chart_yaml: String,
}

/// Why an archive gives no files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveFault {
    #[error("{0}")]
    Tar(#[from] TarFault),
    #[error("gzip: invalid header")]
    NotPacked,
    #[error("it has more than {UNPACKED_BYTES} bytes unpacked")]
    Large,
    #[error("it has more than {ENTRIES} entries")]
    Many,
    #[error("its README, values and schema have more than {KEPT_BYTES} bytes")]
    LargeTexts,
    #[error("it has more than {MORE_VALUES} files of values")]
    ManyValues,
    #[error("{0:?} has more than {FILE_BYTES} bytes")]
    LargeFile(String),
}

struct Left {
    bytes: u64,
    entries: usize,
}

impl Allowance for Left {
    type Error = ArchiveFault;

    fn entry(&mut self) -> Result<(), ArchiveFault> {
        self.entries = self.entries.checked_sub(1).ok_or(ArchiveFault::Many)?;
        Ok(())
    }

    fn bytes(&mut self, bytes: u64) -> Result<(), ArchiveFault> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ArchiveFault::Large)?;
        Ok(())
    }
}

/// Where a file of an archive goes.
enum Wanted {
    Readme,
    Values,
    Schema,
    ChartYaml,
    Additional(String),
}

/// # Errors
/// It is no archive, or exceeds a limit.
pub fn extract(archive: &[u8]) -> Result<Extracted, ArchiveFault> {
    extract_with(&mut Inflater::default(), archive)
}

/// The same for one of many archives.
pub(crate) fn extract_with(
    inflater: &mut Inflater,
    archive: &[u8],
) -> Result<Extracted, ArchiveFault> {
    if !archive.starts_with(&[0x1f, 0x8b]) {
        return Err(ArchiveFault::NotPacked);
    }
    let left = Left {
        bytes: UNPACKED_BYTES,
        entries: ENTRIES,
    };
    let mut tar = Tar::new(Gunzip::new(archive, inflater), left);
    let (mut found, mut room) = (Extracted::default(), KEPT_BYTES);
    while let Some(entry) = tar.next()? {
        let wanted = match entry.kind {
            Kind::File => wanted(&entry.name),
            _ => None,
        };
        let Some(wanted) = wanted else {
            tar.skip(entry.size)?;
            continue;
        };
        if entry.size > FILE_BYTES {
            return Err(ArchiveFault::LargeFile(entry.name));
        }
        let content = tar.data(entry.size)?;
        let content = text_of(content);
        room = room
            .checked_sub(content.len())
            .ok_or(ArchiveFault::LargeTexts)?;
        match wanted {
            Wanted::Readme => found.readme = content,
            Wanted::Values => found.values = content,
            Wanted::Schema => found.schema = content,
            Wanted::ChartYaml => found.chart_yaml = content,
            Wanted::Additional(key) => {
                found.additional_values.insert(key, content);
                if found.additional_values.len() > MORE_VALUES {
                    return Err(ArchiveFault::ManyValues);
                }
            }
        }
    }
    Ok(found)
}

/// Mostly it is a text already.
fn text_of(content: Vec<u8>) -> String {
    match String::from_utf8(content) {
        Ok(text) if !text.contains('\0') => text,
        Ok(text) => storable(&text),
        Err(e) => storable(&String::from_utf8_lossy(e.as_bytes())),
    }
}

fn wanted(path: &str) -> Option<Wanted> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut parts = path.split('/');
    let (first, second) = (parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let name = second.unwrap_or(first);
    match &*name.to_lowercase() {
        "readme.md" => return Some(Wanted::Readme),
        "values.yaml" => return Some(Wanted::Values),
        "values.schema.json" => return Some(Wanted::Schema),
        "chart.yaml" => return Some(Wanted::ChartYaml),
        _ => {}
    }
    let kind = name.strip_prefix("values-")?.strip_suffix(".yaml")?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (!kind.is_empty() && kind.chars().all(is_word))
        .then(|| Wanted::Additional(format!("values-{kind}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_testkit::archive::{self, TarEntry};

    #[test]
    fn what_of_an_archive_is_read() {
        for (path, read) in [
            ("demo/README.md", "readme"),
            ("demo/readme.MD", "readme"),
            ("./demo/README.md", "readme"),
            ("README.md", "readme"),
            ("demo/docs/README.md", ""),
            ("demo/charts/sub/README.md", ""),
            ("demo/values.yaml", "values"),
            ("demo/VALUES.yaml", "values"),
            ("demo/values.schema.json", "schema"),
            ("demo/values-prod.yaml", "values-prod"),
            ("demo/values-dev_1.yaml", "values-dev_1"),
            ("demo/values-a.b.yaml", ""),
            ("demo/values-.yaml", ""),
            ("demo/my-values-x.yaml", ""),
        ] {
            let found = match wanted(path) {
                None => String::new(),
                Some(Wanted::Readme) => "readme".to_owned(),
                Some(Wanted::Values) => "values".to_owned(),
                Some(Wanted::Schema) => "schema".to_owned(),
                Some(Wanted::ChartYaml) => "chart".to_owned(),
                Some(Wanted::Additional(key)) => key,
            };
            assert_eq!(found, read, "{path}");
        }
    }

    fn packed(name: &str, content: &str) -> Vec<u8> {
        archive::gzip(&archive::tar(&[TarEntry::file(name, content)]))
    }

    #[test]
    fn bytes_that_are_no_text_do_not_cost_the_file() {
        let found = extract(&packed("demo/README.md", "a\0b")).expect("an archive");
        assert_eq!(found.readme, "a\u{fffd}b");
    }

    #[test]
    fn limits_hold_for_what_is_unpacked() {
        let bomb = archive::gzip(&archive::tar(&[TarEntry::claiming("demo/big", 1 << 30)]));
        assert_eq!(extract(&bomb), Err(ArchiveFault::Large));
        let large = "x".repeat(usize::try_from(FILE_BYTES).expect("it fits") + 1);
        let large = packed("demo/README.md", &large);
        let name = "demo/README.md".to_owned();
        assert_eq!(extract(&large), Err(ArchiveFault::LargeFile(name)));
        assert_eq!(extract(b"plain"), Err(ArchiveFault::NotPacked));
        // Few bytes, of which each becomes three that would be kept.
        let many = |count: usize, content: &str| {
            let name = |n| format!("demo/values-{n}.yaml");
            let names: Vec<String> = (0..count).map(name).collect();
            let files: Vec<TarEntry> = names.iter().map(|n| TarEntry::file(n, content)).collect();
            extract(&archive::gzip(&archive::tar(&files)))
        };
        let zeros = "\0".repeat(1 << 20);
        assert_eq!(many(6, &zeros), Err(ArchiveFault::LargeTexts));
        assert_eq!(many(101, ""), Err(ArchiveFault::ManyValues));
        assert!(many(100, "a: b").is_ok());
        assert!(matches!(extract(&large[..40]), Err(ArchiveFault::Tar(_))));
    }
}
