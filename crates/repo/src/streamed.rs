//! Renders files that a client sent in place of those of the source's repository.
//!
//! Main function: [`Repos::manifests_of_files`].

use crate::{
    ManifestRequest, Manifests, RepoError, Repos,
    git::Commit,
    ground::blocking,
    oci::{
        layer::{LayerError, LayerLimits},
        unpack,
    },
    unpacked::{Unpacked, UnpackedKey},
};
use std::{fs::File, path::PathBuf, sync::Arc};
use tokio::sync::Semaphore;

/// What stands for the revision of such files.
pub const STREAMED: &str = "streamed";

/// Archives that are unpacked at a time.
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
            bytes: 1_000_000_000,
            entries: 100_000,
        }
    }
}

impl UnpackLimits {
    fn of_layer(self) -> LayerLimits {
        LayerLimits {
            bytes: self.bytes,
            entries: self.entries,
            rooted: false,
        }
    }
}

/// The archives that clients sent.
pub(crate) struct Streamed {
    unpacked: Arc<Unpacked>,
    places: Arc<Semaphore>,
}

impl Streamed {
    /// The folder is created when it is needed. Nothing else is kept in it: clients may send much.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            unpacked: Arc::new(Unpacked::new(folder, UnpackLimits::default().bytes)),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    /// The files of an archive, as a commit of our own.
    async fn files(
        &self,
        archive: File,
        checksum: &str,
        limits: UnpackLimits,
    ) -> Result<Commit, RepoError> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|e| RepoError::Internal(e.to_string()))?;
        let key = UnpackedKey::new(&[b"streamed", checksum.as_bytes()]);
        let unpacked = Arc::clone(&self.unpacked);
        blocking(move || {
            // The work goes on although its client may have gone.
            let _place = place;
            match unpacked.get(&key)? {
                Some(known) => Ok(known),
                None => unpack::store(archive, (true, false), limits.of_layer(), &unpacked, key)?
                    .map_err(|e| unfit(&e)),
            }
        })
        .await
    }
}

fn unfit(e: &LayerError) -> RepoError {
    let reason = match e {
        LayerError::Link(path) => {
            format!("streamed files contains out-of-bounds symlinks. file: {path}")
        }
        e => format!("error receiving manifest file stream: error decompressing tgz file: {e}"),
    };
    RepoError::Artifact { reason }
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
