//! What is kept of a set that is deleted.

use crate::deletions::{NOW, app, apps, set, time};
use serde_json::json;
use std::time::Duration;
use tiphys_api::constants::APPLICATION_SET_REFRESH;
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::deleted_set::{DeletedSet, LABEL, LABEL_VALUE};
use tiphys_appset::reconcile::Settings;
use tiphys_appset::tombstone;

fn deleted(uid: &str) -> ApplicationSet {
    let mut set = set(json!({APPLICATION_SET_REFRESH: "true", "example.com/a": "b"}));
    set.metadata.uid = uid.to_owned();
    set.metadata.resource_version = "7".to_owned();
    set.metadata.finalizers = vec!["example.com/x".to_owned(), "foregroundDeletion".to_owned()];
    set
}

fn kept(
    set: &ApplicationSet,
    before: Option<&DeletedSet>,
    lost: &[Application],
    seconds: i64,
) -> DeletedSet {
    let lost: Vec<&Application> = lost.iter().collect();
    let kept = DeletedSet::new(set, before, &lost, &Settings::default(), time(seconds));
    kept.expect("something is kept")
}

fn names(kept: &DeletedSet) -> Vec<String> {
    let stones = tombstone::read(&kept.set).expect("readable");
    stones.iter().map(|stone| stone.name().to_owned()).collect()
}

#[test]
fn a_set_is_kept_with_its_applications() {
    let set = deleted("u1");
    let first = kept(&set, None, &apps("app", 2), NOW);
    assert_eq!(names(&first), ["app0", "app1"]);
    assert_eq!(first.set.spec, set.spec);
    let metadata = &first.set.metadata;
    assert_eq!(
        (metadata.uid.as_str(), metadata.resource_version.as_str()),
        ("", "")
    );
    assert_eq!(metadata.finalizers, ["example.com/x"]);
    assert_eq!(metadata.annotations.get(APPLICATION_SET_REFRESH), None);
    assert_eq!(metadata.annotations["example.com/a"], "b");

    let secret = first.to_secret("argocd").expect("it fits");
    assert_eq!(secret["metadata"]["name"], DeletedSet::secret_name("u1"));
    assert_eq!(secret["metadata"]["labels"][LABEL], LABEL_VALUE);
    assert_eq!(DeletedSet::from_secret(&secret), Ok(first.clone()));
    assert!(DeletedSet::from_secret(&json!({"data": {}})).is_err());

    // The last step of a deletion sees fewer Applications, and loses none of those before.
    let same = kept(&set, Some(&first), &apps("app", 1), NOW + 5);
    assert_eq!(same, first);
    let more = kept(&set, Some(&first), &[app("late", "x")], NOW + 5);
    assert_eq!(names(&more), ["late", "app0", "app1"]);
    assert_eq!(more.deleted_at, first.deleted_at);
}

#[test]
fn it_is_kept_for_a_time() {
    let kept = kept(&deleted("u1"), None, &[], NOW);
    assert_eq!(names(&kept), [""; 0]);
    let keep = Duration::from_secs(60);
    assert!(!kept.is_over(keep, time(NOW + 59)));
    assert!(kept.is_over(keep, time(NOW + 60)));
    let nothing = Settings {
        keep_deleted: Duration::ZERO,
        ..Settings::default()
    };
    assert_eq!(
        DeletedSet::new(&deleted("u1"), None, &[], &nothing, time(NOW)),
        None
    );
}

#[test]
fn the_last_one_of_a_name_counts() {
    let of = |uid: &str, seconds| kept(&deleted(uid), None, &[], seconds);
    let all = [of("u1", NOW), of("u3", NOW + 2), of("u2", NOW + 1)];
    let mut secrets = all.map(|kept| kept.to_secret("control").expect("it fits"));
    // It is found by its metadata alone.
    secrets[0]["data"] = json!({});
    let newest = |namespace, name| {
        let secret = DeletedSet::newest(secrets.clone(), namespace, name)?;
        Some(DeletedSet::from_secret(&secret).expect("readable").uid)
    };
    assert_eq!(newest("argocd", "set").as_deref(), Some("u3"));
    assert_eq!(newest("argocd", "other"), None);
    assert_eq!(newest("other", "set"), None);
}

/// A text that cannot be compressed much.
fn noise(rng: &mut tiphys_testkit::Rng, bytes: usize) -> String {
    (0..bytes)
        .map(|_| char::from(b'!' + u8::try_from(rng.below(90)).expect("small")))
        .collect()
}

#[test]
fn applications_that_do_not_fit_are_not_put_in_the_place_of_others_later() {
    let mut set = deleted("u1");
    let mut rng = tiphys_testkit::Rng::new(2);
    let lost: Vec<Application> = (0..300)
        .map(|n| app(&format!("app{n}"), &noise(&mut rng, 2000)))
        .collect();
    let first = kept(&set, None, &lost, NOW);
    let held = names(&first).len();
    assert!((1..300).contains(&held), "{held}");
    assert_eq!(first.missing, 300 - held);
    let secret = first.to_secret("argocd").expect("it fits");
    let read = DeletedSet::from_secret(&secret).expect("readable");
    // The next step of the deletion sees the same Applications and a set with fewer finalizers.
    set.metadata.finalizers.clear();
    assert_eq!(kept(&set, Some(&read), &lost, NOW + 5), read);
}

#[test]
fn a_set_that_is_too_large_with_its_applications_is_kept_alone() {
    let mut set = deleted("u1");
    let annotations = &mut set.metadata.annotations;
    // Random text: it cannot be compressed below what a Secret takes.
    let mut rng = tiphys_testkit::Rng::new(1);
    let mut noise = |bytes: usize| noise(&mut rng, bytes);
    annotations.insert("example.com/noise".to_owned(), noise(600 << 10));
    let large = kept(&set, None, &[app("app", &noise(90 << 10))], NOW);
    assert_eq!(names(&large), ["app"]);
    let secret = large.to_secret("argocd").expect("the set fits");
    let read = DeletedSet::from_secret(&secret).expect("readable");
    assert_eq!((names(&read), &read.set.spec), (Vec::new(), &set.spec));
    // Nothing is written again to say what did not fit.
    assert_eq!(read.missing, 1);
    let again = kept(&set, Some(&read), &[app("app", "x")], NOW + 5);
    assert_eq!(again, read);
    let annotations = &mut set.metadata.annotations;
    annotations.insert("example.com/more".to_owned(), noise(200 << 10));
    assert!(kept(&set, None, &[], NOW).to_secret("argocd").is_err());
}
