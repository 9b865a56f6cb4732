//! The files of a layer: a tar archive of which nothing leaves its root.
//!
//! Main function: [`files`]. It must not know registries.

use flate2::bufread::MultiGzDecoder;
use std::{collections::BTreeMap, io::Read};
use tiphys_render::tar::{Allowance, Kind, Tar, TarFault};

/// What a layer may unpack to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerLimits {
    pub bytes: u64,
    pub entries: usize,
    /// Paths and links that begin with a slash are below the root of the archive; else they are
    /// refused.
    pub rooted: bool,
}

impl Default for LayerLimits {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            entries: 50_000,
            rooted: true,
        }
    }
}

/// A file, or a link to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LayerFile {
    File(Vec<u8>),
    /// Relative to the folder that the link is in.
    Link(String),
}

/// Files by their paths.
pub(crate) type LayerFiles = BTreeMap<String, LayerFile>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LayerError {
    #[error("error while iterating on tar reader: {0}")]
    Tar(#[from] TarFault),
    #[error("illegal filepath in archive: {0}")]
    Path(String),
    #[error("illegal filepath in symlink: {0}")]
    Link(String),
    #[error("expected 1 directory, found {0}")]
    NotOneFolder(usize),
    #[error("it unpacks to more than {0} bytes")]
    Bytes(u64),
    #[error("it has more than {0} files")]
    Entries(usize),
}

struct Left {
    limits: LayerLimits,
    bytes: u64,
    entries: usize,
}

impl Allowance for Left {
    type Error = LayerError;

    fn entry(&mut self) -> Result<(), LayerError> {
        let left = self.entries.checked_sub(1);
        self.entries = left.ok_or(LayerError::Entries(self.limits.entries))?;
        Ok(())
    }

    fn bytes(&mut self, bytes: u64) -> Result<(), LayerError> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or(LayerError::Bytes(self.limits.bytes))?;
        Ok(())
    }
}

/// The files of a layer. `is_packed`: it is compressed with gzip; `is_chart`: the files are in one
/// folder, which is left out of their paths.
pub(crate) fn files(
    layer: &[u8],
    is_packed: bool,
    is_chart: bool,
    limits: LayerLimits,
) -> Result<LayerFiles, LayerError> {
    let files = if is_packed {
        unpacked(MultiGzDecoder::new(layer), limits)
    } else {
        unpacked(layer, limits)
    }?;
    if is_chart {
        without_top(files)
    } else {
        Ok(files)
    }
}

pub(crate) fn unpacked(input: impl Read, limits: LayerLimits) -> Result<LayerFiles, LayerError> {
    let is_refused = |path: &str| !limits.rooted && path.starts_with('/');
    let (bytes, entries) = (limits.bytes, limits.entries);
    let left = Left {
        limits,
        bytes,
        entries,
    };
    let mut tar = Tar::new(input, left);
    let mut files = LayerFiles::new();
    while let Some(entry) = tar.next()? {
        let illegal = || LayerError::Path(entry.name.clone());
        let path = inside(&entry.name).filter(|_| !is_refused(&entry.name));
        let path = path.ok_or_else(illegal)?;
        let file = match entry.kind {
            Kind::File if !path.is_empty() => LayerFile::File(tar.data(entry.size)?),
            Kind::Symlink(target) if !path.is_empty() => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let leads = inside(&format!("{folder}/{target}"));
                if leads.is_none() || is_refused(&target) {
                    return Err(LayerError::Link(entry.name));
                }
                LayerFile::Link(target.trim_start_matches('/').to_owned())
            }
            _ => {
                tar.skip(entry.size)?;
                continue;
            }
        };
        // Git has no such folder in its trees, and nothing is rendered from it.
        if !path
            .split('/')
            .any(|part| part.eq_ignore_ascii_case(".git"))
        {
            files.insert(path, file);
        }
    }
    // A file below a link would be written to wherever the link leads.
    let below_a_file = |path: &&String| {
        let slashes = path.match_indices('/');
        slashes
            .map(|(at, _)| path.get(..at).unwrap_or_default())
            .any(|folder| files.contains_key(folder))
    };
    match files.keys().find(below_a_file) {
        Some(path) => Err(LayerError::Path(path.clone())),
        None => Ok(files),
    }
}

/// The path without `.` and `..`, if it stays inside. A path that begins with a slash is below the
/// root of the archive.
fn inside(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let is_plain = |part: &str| !part.contains(['\\', '\0']);
    parts
        .iter()
        .all(|part| is_plain(part))
        .then(|| parts.join("/"))
}

fn without_top(files: LayerFiles) -> Result<LayerFiles, LayerError> {
    let top = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let mut tops: Vec<String> = files.keys().map(|path| top(path)).collect();
    tops.dedup();
    let strip = |(path, file): (String, LayerFile)| {
        let (_, rest) = path.split_once('/')?;
        Some((rest.to_owned(), file))
    };
    let number = tops.len();
    let stripped: Option<LayerFiles> = files.into_iter().map(strip).collect();
    stripped
        .filter(|_| number == 1)
        .ok_or(LayerError::NotOneFolder(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_testkit::archive::{TarEntry, gzip, tar};

    fn read(entries: &[TarEntry<'_>]) -> Result<Vec<(String, String)>, String> {
        shown(files(&tar(entries), false, false, LayerLimits::default()))
    }

    fn shown(files: Result<LayerFiles, LayerError>) -> Result<Vec<(String, String)>, String> {
        let text = |(path, file)| match file {
            LayerFile::File(content) => (path, String::from_utf8_lossy(&content).into_owned()),
            LayerFile::Link(target) => (path, format!("-> {target}")),
        };
        let files = files.map_err(|e| e.to_string())?;
        Ok(files.into_iter().map(text).collect())
    }

    fn of(files: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Ok(files.iter().map(owned).collect())
    }

    #[test]
    fn a_layer_has_files_and_links_inside() {
        let found = read(&[
            TarEntry::folder("./"),
            TarEntry::folder("app/"),
            TarEntry::file("./app/a.yaml", "a: 1"),
            TarEntry::file("/rooted.yaml", "r"),
            TarEntry::file("app/a.yaml", "a: 2"),
            TarEntry::file(".git/config", "x"),
            TarEntry::symlink("app/link", "../rooted.yaml"),
            TarEntry::hard_link("app/hard", "app/a.yaml"),
            TarEntry::other("app/fifo"),
        ]);
        let expected = of(&[
            ("app/a.yaml", "a: 2"),
            ("app/link", "-> ../rooted.yaml"),
            ("rooted.yaml", "r"),
        ]);
        assert_eq!(found, expected);
        assert_eq!(read(&[]), of(&[]));
    }

    #[test]
    fn nothing_leaves_the_archive() {
        for (entry, error) in [
            (
                TarEntry::file("../x", ""),
                "illegal filepath in archive: ../x",
            ),
            (
                TarEntry::file("a/../../x", ""),
                "illegal filepath in archive: a/../../x",
            ),
            (
                TarEntry::file("/../x", ""),
                "illegal filepath in archive: /../x",
            ),
            (TarEntry::folder("../"), "illegal filepath in archive: ../"),
            (
                TarEntry::file("..\\x", ""),
                "illegal filepath in archive: ..\\x",
            ),
            (
                TarEntry::symlink("a/l", "../../x"),
                "illegal filepath in symlink: a/l",
            ),
            (
                TarEntry::symlink("l", "/../x"),
                "illegal filepath in symlink: l",
            ),
        ] {
            assert_eq!(read(&[entry]), Err(error.to_owned()));
        }
        let through = [
            TarEntry::symlink("l", "a"),
            TarEntry::file("l/x", "through the link"),
        ];
        let error = "illegal filepath in archive: l/x".to_owned();
        assert_eq!(read(&through), Err(error));
    }

    #[test]
    fn a_chart_is_in_one_folder() {
        let chart = |entries: &[TarEntry<'_>]| {
            shown(files(
                &gzip(&tar(entries)),
                true,
                true,
                LayerLimits::default(),
            ))
        };
        let one = [
            TarEntry::file("demo/Chart.yaml", "c"),
            TarEntry::file("demo/templates/x", "x"),
        ];
        assert_eq!(
            chart(&one),
            of(&[("Chart.yaml", "c"), ("templates/x", "x")])
        );
        let two = [TarEntry::file("a/x", ""), TarEntry::file("b/x", "")];
        assert_eq!(chart(&two), Err("expected 1 directory, found 2".to_owned()));
        let file = [TarEntry::file("x", "")];
        assert_eq!(
            chart(&file),
            Err("expected 1 directory, found 1".to_owned())
        );
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let limits = LayerLimits {
            bytes: 1 << 20,
            entries: 10,
            rooted: true,
        };
        let large = "0".repeat(2 << 20);
        let bomb = gzip(&tar(&[TarEntry::file("x", &large)]));
        let error = files(&bomb, true, false, limits).expect_err("too many bytes");
        assert_eq!(error.to_string(), "it unpacks to more than 1048576 bytes");
        let many: Vec<_> = (0..11).map(|_| TarEntry::file("x", "")).collect();
        let error = files(&tar(&many), false, false, limits).expect_err("too many files");
        assert_eq!(error.to_string(), "it has more than 10 files");
        for broken in [&bomb[..20], b"no gzip".as_slice()] {
            let error = files(broken, true, false, limits).expect_err("it is broken");
            assert!(
                error
                    .to_string()
                    .starts_with("error while iterating on tar reader: "),
                "{error}"
            );
        }
    }
}
