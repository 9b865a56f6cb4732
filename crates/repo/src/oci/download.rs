//! Manifests of artifacts and charts, and the layers that they name, until they are unpacked.
//!
//! Main functions: [`Oci::download`] and [`Oci::download_chart`]. Each takes what is here already,
//! and what was refused once is not downloaded again for a while.

use super::{
    LAYER_BYTES, Oci,
    address::is_digest,
    layer::{LayerError, LayerLimits},
    manifest::Manifest,
    place_key,
    registry::Place,
    unpack, unpacked_key,
};
use crate::{
    RepoError,
    git::{Commit, UnpackedFile},
    ground::blocking,
    refusals, spool,
    unpacked::UnpackedKey,
};
use std::sync::Arc;
use tiphys_render::helm::chart::archive_files;

impl Oci {
    pub(super) fn known_manifest(&self, place: &Place<'_>, digest: &str) -> Option<Arc<Manifest>> {
        let known = self.manifests.get(&place_key(place, digest));
        known.filter(|_| !self.is_refused(place))
    }

    pub(super) async fn manifest(
        &self,
        place: &Place<'_>,
        digest: &str,
    ) -> Result<Arc<Manifest>, RepoError> {
        if let Some(manifest) = self.known_manifest(place, digest) {
            return Ok(manifest);
        }
        let answer = self.registry.manifest(place, digest).await;
        if !matches!(answer, Ok(None)) {
            self.hear(place, refusals::verdict(&answer)).await;
        }
        let text = answer?.ok_or_else(|| no_manifest(place, digest))?;
        let manifest = Manifest::parse(&text).map_err(|e| RepoError::Artifact {
            reason: format!("error decoding oci manifest for digest {digest}: {e}"),
        })?;
        let manifest = Arc::new(manifest);
        self.manifests
            .insert(place_key(place, digest), Arc::clone(&manifest));
        Ok(manifest)
    }

    pub(super) async fn download(
        &self,
        place: &Place<'_>,
        digest: &str,
    ) -> Result<Commit, RepoError> {
        if !is_digest(digest) {
            return Err(RepoError::RevisionNotFound {
                revision: digest.chars().take(200).collect(),
            });
        }
        let key = place_key(place, digest);
        let _one = self.busy.wait(&key).await;
        let by_content = unpacked_key("oci source", place, digest);
        if let Some(kept) = self.unpacked.kept(by_content).await? {
            return Ok(kept);
        }
        if let Some(refusal) = self.refused.get(&key) {
            return Err(refusal);
        }
        let manifest = self.manifest(place, digest).await?;
        let unfit = |reason| RepoError::Artifact { reason };
        let content = manifest.content(&self.limits.layer_types).map_err(unfit)?;
        let is = (content.is_packed, content.is_chart);
        // Nothing is packed so that it becomes larger; what is not packed counts with its headers, as
        // in Argo CD.
        let limit = self.limits.artifact_bytes;
        let file = (spool::nameless(self.folder.clone()).await?, limit);
        let layer = content.layer;
        let received = self.registry.blob_into(place, layer, file, &self.room);
        let (layer, taken) = received.await?;
        let turn = Arc::clone(&self.places).acquire_owned().await;
        let turn = turn.map_err(|e| RepoError::Internal(e.to_string()))?;
        let unpacked = Arc::clone(&self.unpacked);
        let stored = blocking(move || {
            // Also while nobody waits for it any longer.
            let _until_done = (turn, taken);
            let limits = LayerLimits::of_artifact(limit);
            unpack::store(layer, is, limits, &unpacked, by_content)
        });
        stored.await?.map_err(|e| {
            let refusal = RepoError::Artifact {
                reason: format!(
                    "cannot extract contents of oci image with revision {digest}: could not \
                     decompress layer: {e}{}",
                    hint(&e)
                ),
            };
            self.refused.insert(key, refusal.clone());
            refusal
        })
    }

    pub(super) async fn download_chart(
        &self,
        place: &Place<'_>,
        digest: &str,
        by_name: &UnpackedKey,
    ) -> Result<Commit, RepoError> {
        let _one = self.busy.wait(&place_key(place, digest)).await;
        let by_content = unpacked_key("oci chart", place, digest);
        if let Some(kept) = self.unpacked.kept(by_content).await? {
            return Ok(kept);
        }
        let manifest = self.manifest(place, digest).await?;
        let unfit = |reason| RepoError::Artifact { reason };
        let layer = manifest.chart().map_err(unfit)?;
        let archive = self.registry.blob(place, layer, LAYER_BYTES).await?;
        let (unpacked, shown) = (Arc::clone(&self.unpacked), place.address.shown.clone());
        let (keys, limits) = ([by_content, *by_name], self.limits.of_charts());
        blocking(move || {
            let files = archive_files(&archive, &limits);
            let files = files.map_err(|e| RepoError::Corrupt {
                url: shown,
                reason: e.to_string(),
            })?;
            let list = files.0.iter();
            unpacked.put(
                &keys,
                list.map(|(path, content)| UnpackedFile::new(path, content)),
            )
        })
        .await
    }
}

pub(super) fn no_manifest(place: &Place<'_>, digest: &str) -> RepoError {
    RepoError::NoVersion {
        reason: format!(
            "error resolving oci manifest for digest {digest}: {}@{digest}: not found",
            place.address.shown
        ),
    }
}

/// How to have it read nevertheless.
fn hint(e: &LayerError) -> &'static str {
    match e {
        LayerError::Bytes(_) => " (raise the limit with --oci-manifest-max-extracted-size)",
        _ => "",
    }
}
