//! Sends the files of a local folder to the API server, which renders them in place of those of the
//! Application's repository (`--server-side-generate`).
//!
//! Main function: [`manifests`].

use super::{AppRef, manifests::object};
use crate::client::{Client, Failure};
use flate2::{Compression, write::GzEncoder};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Seek as _, Write},
    path::Path,
};
use tiphys_api::rpc::{
    application::{
        ApplicationManifestQueryWithFiles, ApplicationManifestQueryWithFilesWrapper, FileChunk,
    },
    repository::ManifestResponse,
};
use tiphys_gocompat::path_match;
use tokio::io::AsyncReadExt as _;

/// Bytes of the archive in one message.
const CHUNK: usize = 64 << 10;
/// Folders inside each other.
const MAX_DEPTH: usize = 100;

/// Files whose names match one of the patterns, packed.
struct Archive {
    file: File,
    checksum: String,
}

/// Hashes what passes.
struct Hashed {
    file: File,
    hash: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

type Builder = tar::Builder<GzEncoder<Hashed>>;

struct Packing<'a> {
    archive: Builder,
    patterns: &'a [String],
    files: usize,
}

impl Packing<'_> {
    /// Packs a folder; `inner` is its path in the archive.
    fn folder(&mut self, folder: &Path, inner: &str, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            let text = format!("{}: too many folders in each other", folder.display());
            return Err(io::Error::other(text));
        }
        let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| *name != ".git") else {
                continue;
            };
            let path = if inner.is_empty() {
                name.to_owned()
            } else {
                format!("{inner}/{name}")
            };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folder(&entry.path(), &path, depth + 1)?;
            } else if self.is_wanted(name) && (kind.is_file() || kind.is_symlink()) {
                // A link is sent as one: the server refuses those that lead out.
                self.archive.append_path_with_name(entry.path(), &path)?;
                self.files += 1;
            }
        }
        Ok(())
    }

    fn is_wanted(&self, name: &str) -> bool {
        let matches = |pattern: &String| path_match::matches(pattern, name).unwrap_or(false);
        self.patterns.iter().any(matches)
    }
}

fn pack(folder: &Path, patterns: &[String]) -> io::Result<Option<Archive>> {
    let hashed = Hashed {
        file: tempfile::tempfile()?,
        hash: Sha256::new(),
    };
    let mut archive = tar::Builder::new(GzEncoder::new(hashed, Compression::default()));
    archive.follow_symlinks(false);
    let mut packing = Packing {
        archive,
        patterns,
        files: 0,
    };
    packing.folder(folder, "", 0)?;
    if packing.files == 0 {
        return Ok(None);
    }
    let Hashed { mut file, hash } = packing.archive.into_inner()?.finish()?;
    file.rewind()?;
    let mut checksum = String::new();
    for byte in hash.finalize() {
        let _ = write!(checksum, "{byte:02x}");
    }
    Ok(Some(Archive { file, checksum }))
}

fn messages(
    app: &AppRef,
    archive: Archive,
) -> BoxStream<'static, ApplicationManifestQueryWithFilesWrapper> {
    let first = ApplicationManifestQueryWithFilesWrapper {
        query: Some(ApplicationManifestQueryWithFiles {
            name: app.name.clone(),
            checksum: archive.checksum,
            app_namespace: app.namespace(),
            project: None,
        }),
        chunk: None,
    };
    let file = tokio::fs::File::from_std(archive.file);
    let chunks = stream::unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK];
        // If it cannot be read, the stream ends early, and the checksum is wrong.
        let read = file.read(&mut chunk).await.unwrap_or_default();
        chunk.truncate(read);
        let message = ApplicationManifestQueryWithFilesWrapper {
            query: None,
            chunk: Some(FileChunk { chunk }),
        };
        (read > 0).then_some((message, file))
    });
    stream::iter([first]).chain(chunks).boxed()
}

/// What the server renders of the files below a folder whose names match one of the patterns. The
/// folder is in the place of the repository's root.
pub async fn manifests(
    client: &Client,
    app: &AppRef,
    folder: &Path,
    patterns: &[String],
) -> Result<Vec<Value>, Failure> {
    let packed = pack(folder, patterns).map_err(|e| Failure::file(folder, &e))?;
    let archive = packed.ok_or_else(|| Failure::fatal("no files to send"))?;
    let response: ManifestResponse = client
        .send(
            "/application.ApplicationService/GetManifestsWithFiles",
            messages(app, archive),
        )
        .await?;
    response.manifests.iter().map(|text| object(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, io::Read as _};

    #[test]
    fn only_files_with_these_names_are_sent() {
        let dir = tempfile::tempdir().expect("a folder");
        for (path, text) in [
            ("app/a.yaml", "a"),
            ("app/b.yml", "b"),
            ("app/Makefile", "all:"),
            (".git/config.yaml", "secret"),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        std::os::unix::fs::symlink("a.yaml", dir.path().join("app/c.yaml")).expect("linked");
        let patterns = ["*.yaml", "*.yml"].map(str::to_owned);
        let packed = pack(dir.path(), &patterns).expect("readable");
        let mut archive = packed.expect("there are files");
        let mut bytes = Vec::new();
        archive.file.read_to_end(&mut bytes).expect("readable");
        let mut checksum = String::new();
        for byte in Sha256::digest(&bytes) {
            let _ = write!(checksum, "{byte:02x}");
        }
        assert_eq!(archive.checksum, checksum);
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let entries = tar.entries().expect("an archive").map(|entry| {
            let entry = entry.expect("an entry");
            let path = entry.path().expect("a path").display().to_string();
            let link = entry.link_name().expect("readable");
            (path, link.map(|link| link.display().to_string()))
        });
        let entries: BTreeMap<String, Option<String>> = entries.collect();
        let expected = [
            ("app/a.yaml", None),
            ("app/b.yml", None),
            ("app/c.yaml", Some("a.yaml".to_owned())),
        ];
        assert_eq!(
            entries,
            expected.map(|(path, link)| (path.to_owned(), link)).into()
        );
        let nothing = pack(dir.path(), &["*.json".to_owned()]).expect("readable");
        assert!(nothing.is_none());
    }
}
