//! The files of a layer: a tar archive of which nothing leaves its root.
//!
//! Main function: [`files`]. What is made of their content is up to the caller, who gets it as a
//! stream. It must not know registries.

use crate::git::fits;
use flate2::bufread::MultiGzDecoder;
use std::{
    collections::BTreeMap,
    io::{BufRead, Read},
};
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

impl LayerLimits {
    /// The limits of an artifact that may unpack to so many bytes.
    pub fn of_artifact(bytes: u64) -> Self {
        Self {
            bytes,
            entries: 50_000,
            rooted: true,
        }
    }
}

/// A file, as it was kept, or a link to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LayerFile<T> {
    File(T),
    /// Relative to the folder that the link is in.
    Link(String),
}

/// Files by their paths.
pub(crate) type LayerFiles<T> = BTreeMap<String, LayerFile<T>>;

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
    /// Not the archive's fault.
    #[error("{0}")]
    NotKept(String),
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
/// folder, which is left out of their paths. `keep` gets the content of each, and its size.
pub(crate) fn files<T>(
    layer: impl BufRead,
    (is_packed, is_chart): (bool, bool),
    limits: LayerLimits,
    keep: impl FnMut(&mut dyn Read, u64) -> Result<T, String>,
) -> Result<LayerFiles<T>, LayerError> {
    let files = if is_packed {
        unpacked(MultiGzDecoder::new(layer), limits, keep)
    } else {
        unpacked(layer, limits, keep)
    }?;
    if is_chart {
        without_top(files)
    } else {
        Ok(files)
    }
}

pub(crate) fn unpacked<T>(
    input: impl Read,
    limits: LayerLimits,
    mut keep: impl FnMut(&mut dyn Read, u64) -> Result<T, String>,
) -> Result<LayerFiles<T>, LayerError> {
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
        // Git has no such folder in its trees, and nothing is rendered from it.
        let is_git = path
            .split('/')
            .any(|part| part.eq_ignore_ascii_case(".git"));
        let is_link = match entry.kind {
            Kind::File => Some(false),
            Kind::Symlink(_) => Some(true),
            _ => None,
        };
        // Other names that Git has not are refused before anything is kept under them.
        if let Some(is_link) = is_link
            && !path.is_empty()
            && !is_git
            && !fits(&path, is_link)
        {
            return Err(illegal());
        }
        let size = entry.size;
        let file = match entry.kind {
            Kind::File if !path.is_empty() && !is_git => {
                let kept = tar.stream(size, |content| keep(content, size))?;
                LayerFile::File(kept.map_err(LayerError::NotKept)?)
            }
            Kind::Symlink(target) if !path.is_empty() => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let leads = inside(&format!("{folder}/{target}"));
                if leads.is_none() || is_refused(&target) {
                    return Err(LayerError::Link(entry.name));
                }
                LayerFile::Link(target.trim_start_matches('/').to_owned())
            }
            _ => {
                tar.skip(size)?;
                continue;
            }
        };
        if !is_git {
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

fn without_top<T>(files: LayerFiles<T>) -> Result<LayerFiles<T>, LayerError> {
    let top = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let mut tops: Vec<String> = files.keys().map(|path| top(path)).collect();
    tops.dedup();
    let strip = |(path, file): (String, LayerFile<T>)| {
        let (_, rest) = path.split_once('/')?;
        Some((rest.to_owned(), file))
    };
    let number = tops.len();
    let stripped: Option<LayerFiles<T>> = files.into_iter().map(strip).collect();
    stripped
        .filter(|_| number == 1)
        .ok_or(LayerError::NotOneFolder(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_testkit::archive::{TarEntry, gzip, tar};

    const LIMITS: LayerLimits = LayerLimits {
        bytes: 1 << 20,
        entries: 10,
        rooted: true,
    };

    fn in_memory(content: &mut dyn Read, size: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = content.read_to_end(&mut bytes);
        assert_eq!(read.map_err(|e| e.to_string())? as u64, size);
        Ok(bytes)
    }

    fn read(entries: &[TarEntry<'_>]) -> Result<Vec<(String, String)>, String> {
        let archive = tar(entries);
        shown(files(archive.as_slice(), (false, false), LIMITS, in_memory))
    }

    fn shown(
        files: Result<LayerFiles<Vec<u8>>, LayerError>,
    ) -> Result<Vec<(String, String)>, String> {
        let text = |(path, file): (String, LayerFile<Vec<u8>>)| match file {
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
        // Names that Git would refuse at the end.
        for entry in [
            TarEntry::file("a/git~1/x", ""),
            TarEntry::file(".git./x", ""),
            TarEntry::file(".Git ", ""),
            TarEntry::file(".g\u{200c}it/x", ""),
            TarEntry::symlink("a/GIT~1", "x"),
            TarEntry::symlink(".gitmodules", "x"),
            TarEntry::symlink("a/gitmod~1", "x"),
        ] {
            let error = read(&[entry]).expect_err("it is refused");
            assert!(
                error.starts_with("illegal filepath in archive: "),
                "{error}"
            );
        }
        let usual = [".gitmodules", "aux", "b:c", "d.", "git~10"];
        let found = read(&usual.map(|name| TarEntry::file(name, "")));
        assert_eq!(found, of(&usual.map(|name| (name, ""))));
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
            let archive = gzip(&tar(entries));
            shown(files(archive.as_slice(), (true, true), LIMITS, in_memory))
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
        let failed = |archive: &[u8], is_packed: bool| {
            let found = files(archive, (is_packed, false), LIMITS, in_memory);
            found.expect_err("it is refused")
        };
        let large = "0".repeat(2 << 20);
        let bomb = gzip(&tar(&[TarEntry::file("x", &large)]));
        let error = failed(&bomb, true);
        assert_eq!(error.to_string(), "it unpacks to more than 1048576 bytes");
        let many: Vec<_> = (0..11).map(|_| TarEntry::file("x", "")).collect();
        let error = failed(&tar(&many), false);
        assert_eq!(error.to_string(), "it has more than 10 files");
        for broken in [&bomb[..20], b"no gzip".as_slice()] {
            let error = failed(broken, true);
            assert!(
                error
                    .to_string()
                    .starts_with("error while iterating on tar reader: "),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_not_kept_and_what_is_cut_off_are_told_apart() {
        let archive = tar(&[TarEntry::file("a", "one"), TarEntry::file("b", "two")]);
        let full = |_: &mut dyn Read, _: u64| Err::<(), _>("the disk is full".to_owned());
        let error = files(archive.as_slice(), (false, false), LIMITS, full);
        assert_eq!(
            error.expect_err("nothing is kept"),
            LayerError::NotKept("the disk is full".to_owned())
        );
        // Whatever is made of what could be read, it is not all of it.
        let glad = |content: &mut dyn Read, _: u64| {
            let _ = std::io::copy(content, &mut std::io::sink());
            Ok(())
        };
        let cut = tar(&[TarEntry::claiming("a", 1 << 19)]);
        let error = files(cut.as_slice(), (false, false), LIMITS, glad);
        assert_eq!(
            error.expect_err("it is cut off"),
            LayerError::Tar(TarFault::Truncated)
        );
        // What nobody reads is skipped.
        let lazy = |_: &mut dyn Read, size: u64| Ok(size);
        let found = files(archive.as_slice(), (false, false), LIMITS, lazy);
        let sizes: Vec<_> = found.expect("files").into_values().collect();
        assert_eq!(sizes, [LayerFile::File(3), LayerFile::File(3)]);
    }
}
