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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use tiphys_testkit::archive::{TarEntry, gzip, tar};
    use tokio::task::{spawn_blocking, yield_now};

    /// The work goes on without its client; if its place were free, others could begin beside it
    /// until all threads are taken.
    #[test]
    fn what_is_unpacked_keeps_its_place_when_its_client_leaves() {
        // What blocks waits for the one thread, so that the client leaves in the middle of the work.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let folder = tempfile::tempdir().expect("a folder");
            let streamed = Arc::new(Streamed::new(folder.path().join("streamed")));
            let (release, held) = std::sync::mpsc::channel::<()>();
            let busy = spawn_blocking(move || held.recv());

            let mut archive = tempfile::tempfile().expect("a file");
            let content = gzip(&tar(&[TarEntry::file("a.yaml", "a: 1\n")]));
            archive.write_all(&content).expect("it is written");
            let server = Arc::clone(&streamed);
            let limits = UnpackLimits::default();
            let client =
                tokio::spawn(async move { server.files(archive, "a checksum", limits).await });
            while streamed.places.available_permits() == AT_A_TIME {
                yield_now().await;
            }
            client.abort();
            assert!(client.await.is_err_and(|e| e.is_cancelled()));
            let free = streamed.places.available_permits();
            assert_eq!(free, AT_A_TIME - 1, "it is still unpacked");

            release.send(()).expect("the thread waits for it");
            busy.await.expect("it ends").expect("it was released");
            while streamed.places.available_permits() < AT_A_TIME {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            // It was unpacked to its end, so the archive is not read again.
            let nothing = tempfile::tempfile().expect("a file");
            let again = streamed.files(nothing, "a checksum", limits).await;
            again.expect("it is known");
        });
    }
}
