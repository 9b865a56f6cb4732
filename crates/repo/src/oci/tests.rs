//! Tests of how artifacts are downloaded and kept.

use super::*;
use crate::{ContactWatch, common::no_look_ups, room::Taken, shares::Shares};
use futures::FutureExt as _;
use std::path::Path;
use tiphys_testkit::{
    archive::{TarEntry, tar},
    charts::Answer,
    registry::{Registry as Served, TAR_LAYER, digest as digest_of},
};

fn access(served: &Served) -> RepoAccess {
    RepoAccess {
        plain_http: true,
        ..RepoAccess::public(format!("oci://{}/team/app", served.host()))
    }
}

fn oci(folder: &Path) -> Oci {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let common = Arc::new(Common {
        shares: Shares::new(2),
        look_ups: no_look_ups(),
        contacts: ContactWatch::default(),
    });
    let unpacked = Arc::new(Unpacked::new(folder.join("unpacked"), 1 << 20));
    let folders = (unpacked, folder.join("downloads"));
    let limits = SourceLimits::default();
    Oci::new(Duration::from_secs(60), common, folders, &limits)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_waits_until_there_is_room_on_disk() {
    let served = Served::start();
    let layer = tar(&[TarEntry::file("a.yaml", "a: 1\n")]);
    let digest = served.push("team/app", "1", TAR_LAYER, &layer);
    let access = access(&served);
    let folder = tempfile::tempdir().expect("a folder");
    let oci = oci(folder.path());

    let mut all = Taken::default();
    let taken = oci.room.take(&mut all, u64::MAX).await;
    taken.expect("it is open");
    let place = Place::of(&access, None).expect("an address");
    let mut download = std::pin::pin!(oci.download(&place, &digest));
    let mut asked = Vec::new();
    let sent = async {
        let manifest = format!("/v2/team/app/manifests/{digest}");
        while !asked.contains(&manifest) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            asked.extend(served.server.paths());
        }
        // One that did not wait would be done.
        tokio::time::sleep(Duration::from_millis(200)).await;
        asked.extend(served.server.paths());
    };
    tokio::select! {
        biased;
        done = &mut download => panic!("it did not wait: {:?}", done.err()),
        () = sent => {}
    }
    let blob = format!("/v2/team/app/blobs/{}", digest_of(&layer));
    assert!(!asked.contains(&blob), "the registry would be waited for");
    drop(all);
    download.await.expect("there is room");
    let mut again = Taken::default();
    let taken = oci.room.take(&mut again, WAITING_BYTES).await;
    taken.expect("it is open");
    assert!(
        !again.is_beyond(),
        "what was unpacked has given its room back"
    );
}

/// While the registry does not want to be asked, others may have the room.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_registry_has_no_room_on_disk() {
    let served = Served::start();
    let layer = tar(&[TarEntry::file("a.yaml", "a: 1\n")]);
    let digest = served.push("team/app", "1", TAR_LAYER, &layer);
    let blob = format!("/v2/team/app/blobs/{}", digest_of(&layer));
    let later = Answer {
        status: 429,
        headers: vec!["Retry-After: 3".to_owned()],
        ..Answer::default()
    };
    served.server.serve(&blob, later);
    let access = access(&served);
    let folder = tempfile::tempdir().expect("a folder");
    let oci = oci(folder.path());
    let place = Place::of(&access, None).expect("an address");
    let mut download = std::pin::pin!(oci.download(&place, &digest));
    let has_all = || {
        let mut all = Taken::default();
        // It has thousands of steps, more than tokio allows a task in one go.
        let taken = tokio::task::unconstrained(oci.room.take(&mut all, WAITING_BYTES));
        let taken = taken.now_or_never();
        taken.is_some() && !all.is_beyond()
    };
    let free = async {
        let mut asked = Vec::new();
        while !asked.contains(&blob) || !has_all() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            asked.extend(served.server.paths());
        }
    };
    tokio::select! {
        biased;
        done = &mut download => panic!("the room was not free: {:?}", done.err()),
        () = free => {}
    }
    served.push_blob("team/app", &layer);
    download.await.expect("a little later");
}
