//! Renders files that a client sent in place of those of the source's repository.
//!
//! Main function: [`Repos::manifests_of_files`].

use crate::{
    ManifestRequest, Manifests, RepoError, Repos,
    git::Commit,
    git::UnpackedFile,
    ground::blocking,
    oci::layer::{LayerError, LayerFile, LayerLimits, unpacked},
    unpacked::{Unpacked, UnpackedKey},
};
use flate2::bufread::MultiGzDecoder;
use std::{
    fs::File,
    io::{BufReader, Seek as _},
    path::PathBuf,
    sync::Arc,
};
use tokio::sync::Semaphore;

/// What stands for the revision of such files.
pub const STREAMED: &str = "streamed";

/// Archives that are unpacked at a time, in memory.
const AT_A_TIME: usize = 2;

/// What an archive may unpack to.
#[derive(Clone, Copy, Debug)]
pub struct UnpackLimits {
    pub bytes: u64,
    pub entries: usize,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            entries: 100_000,
        }
    }
}

/// The archives that clients sent.
pub(crate) struct Streamed {
    unpacked: Arc<Unpacked>,
    places: Semaphore,
}

impl Streamed {
    /// The folder is created when it is needed. Nothing else is kept in it: clients may send much.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            unpacked: Arc::new(Unpacked::new(folder)),
            places: Semaphore::new(AT_A_TIME),
        }
    }

    /// The files of an archive, as a commit of our own.
    async fn files(
        &self,
        archive: File,
        checksum: &str,
        limits: UnpackLimits,
    ) -> Result<Commit, RepoError> {
        let place = self.places.acquire().await;
        let _place = place.map_err(|e| RepoError::Internal(e.to_string()))?;
        let key = UnpackedKey::new(&[b"streamed", checksum.as_bytes()]);
        let unpacked = Arc::clone(&self.unpacked);
        blocking(move || match unpacked.get(&key)? {
            Some(known) => Ok(known),
            None => unpack(archive, limits, |files| unpacked.put(&[key], files)),
        })
        .await
    }
}

fn unpack(
    mut archive: File,
    limits: UnpackLimits,
    keep: impl FnOnce(Vec<UnpackedFile<'_>>) -> Result<Commit, RepoError>,
) -> Result<Commit, RepoError> {
    let unfit = |reason: String| RepoError::Artifact { reason };
    let limits = LayerLimits {
        bytes: limits.bytes,
        entries: limits.entries,
        rooted: false,
    };
    archive
        .rewind()
        .map_err(|e| unfit(format!("seek error: {e}")))?;
    let packed = MultiGzDecoder::new(BufReader::new(archive));
    let files = unpacked(packed, limits).map_err(|e| {
        unfit(match e {
            LayerError::Link(path) => {
                format!("streamed files contains out-of-bounds symlinks. file: {path}")
            }
            e => format!("error receiving manifest file stream: error decompressing tgz file: {e}"),
        })
    })?;
    let list = files.iter().map(|(path, file)| match file {
        LayerFile::File(content) => UnpackedFile::new(path, content),
        LayerFile::Link(target) => UnpackedFile::link(path, target),
    });
    keep(list.collect())
}

impl Repos {
    /// The objects of a source whose files a client sent, in an archive (tar, packed with gzip).
    /// `checksum`: of the archive, verified. The revision is [`STREAMED`].
    ///
    /// # Errors
    /// Among others [`RepoError::Artifact`]: the archive is broken, exceeds a limit, or something in
    /// it leads out.
    pub async fn manifests_of_files(
        &self,
        (archive, checksum): (File, &str),
        limits: UnpackLimits,
        request: ManifestRequest,
    ) -> Result<Arc<Manifests>, RepoError> {
        let files = self.streamed().files(archive, checksum, limits).await?;
        let request = ManifestRequest {
            sha: STREAMED.to_owned(),
            ..request
        };
        self.manifests_of(files, request).await
    }
}
