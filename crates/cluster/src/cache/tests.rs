//! Which Applications are affected by an update of an object.

use super::{
    feed::Scope,
    parse,
    store::{EventSource, Store},
};
use crate::discovery::Kind;
use hashbrown::HashSet;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::Gvk;
use tiphys_engine::{
    customize::{self, Customizations},
    types::Tracking,
};

fn kind(group: &str, kind: &str) -> Arc<Kind> {
    Arc::new(Kind {
        gvk: Gvk::new(group, "v1", kind),
        resource: format!("{}s", kind.to_lowercase()),
        singular: kind.to_lowercase(),
        namespaced: true,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
    })
}

fn customizations(key: &str, text: &str) -> Customizations {
    let config = BTreeMap::from([(key.to_owned(), text.to_owned())]);
    customize::read(&config, || jiff::Timestamp::UNIX_EPOCH).0
}

/// The Applications that are notified of each of several states of one object.
fn woken(
    store: &mut Store,
    kind: &Arc<Kind>,
    customizations: &Customizations,
    states: &[&str],
) -> Vec<String> {
    let slot = store.slot_for(kind);
    let wakes = |(version, state): (usize, &&str)| {
        let raw = state.replacen(
            '{',
            "{\"metadata\":{\"name\":\"a\",\"namespace\":\"prod\",\"uid\":\"u\",\"resourceVersion\":\"VERSION\"MARK},",
            1,
        );
        let raw = raw.replace("VERSION", &(version + 1).to_string());
        let mark = if state.contains("unmarked") {
            ""
        } else {
            ",\"annotations\":{\"argocd.argoproj.io/tracking-id\":\"app:/ConfigMap:prod/a\"}"
        };
        let parsed = parse::parse(
            &raw.replace("MARK", mark),
            kind,
            &Tracking::annotation(""),
            customizations,
            |_, _| false,
        )
        .expect("valid");
        let effect = store
            .upsert(slot, parsed, EventSource::Watch)
            .expect("it is newer");
        effect.apps.join(",")
    };
    states.iter().enumerate().map(wakes).collect()
}

#[test]
fn c101_an_update_of_ignored_fields_wakes_nobody() {
    let states = [
        r#"{"data":{"a":"1","b":"1"}}"#,
        r#"{"data":{"a":"2","b":"1"}}"#,
        r#"{"data":{"a":"2","b":"2"}}"#,
    ];
    let key = "resource.customizations.ignoreResourceUpdates.ConfigMap";
    let config_map = kind("", "ConfigMap");
    assert_eq!(
        woken(
            &mut Store::default(),
            &config_map,
            &customizations(key, "jsonPointers: [/data/a]"),
            &states
        ),
        ["app", "", "app"]
    );
    assert_eq!(
        woken(
            &mut Store::default(),
            &config_map,
            &customizations(key, ""),
            &states
        ),
        ["app", "app", "app"]
    );
}

#[test]
fn a_status_wakes_when_the_health_or_its_message_is_another() {
    let status = |phase: &str, ip: &str, message: &str| {
        format!(
            r#"{{"spec":{{"restartPolicy":"Never"}},"status":{{"phase":"{phase}","podIP":"{ip}","message":"{message}"}}}}"#
        )
    };
    let states = [
        ("Running", "1", "a"),
        ("Running", "2", "a"),
        ("Running", "2", "b"),
        ("Failed", "2", "b"),
        ("Failed", "3", "b"),
    ];
    let states = states.map(|(phase, ip, message)| status(phase, ip, message));
    let states: Vec<&str> = states.iter().map(String::as_str).collect();
    assert_eq!(
        woken(
            &mut Store::default(),
            &kind("", "Pod"),
            &customizations("", ""),
            &states
        ),
        ["app", "", "app", "app", ""]
    );
}

#[test]
fn c77_what_belongs_to_nobody_wakes_those_who_monitor_its_namespace() {
    let states = [
        r#"{"data":{"unmarked":"1"}}"#,
        r#"{"data":{"unmarked":"2"}}"#,
        r#"{"data":{}}"#,
        r#"{"data":{"a":"1"}}"#,
    ];
    let mut store = Store::default();
    store.monitor("other", Some("elsewhere"));
    store.monitor("other", Some("prod"));
    let config_map = kind("", "ConfigMap");
    assert_eq!(
        woken(&mut store, &config_map, &Customizations::default(), &states),
        ["other", "other", "app,other", "app"]
    );
    let mut store = Store::default();
    store.monitor("other", Some("prod"));
    store.monitor("other", None);
    assert_eq!(
        woken(
            &mut store,
            &config_map,
            &Customizations::default(),
            &states[..2]
        ),
        ["", ""]
    );
}

#[test]
fn a_list_of_one_namespace_says_nothing_of_others() {
    let (mut store, config_map) = (Store::default(), kind("", "ConfigMap"));
    woken(
        &mut store,
        &config_map,
        &Customizations::default(),
        &[r#"{"data":{}}"#],
    );
    let slot = store.slot_for(&config_map);
    let mut gone = |scope: Scope| store.retain_listed(slot, &scope, &HashSet::new(), 9).len();
    assert_eq!(gone(Scope::In("never-seen".into())), 0);
    assert_eq!(gone(Scope::AllBut(vec!["prod".into()])), 0);
    assert_eq!(gone(Scope::In("prod".into())), 1);
}

#[test]
fn how_far_a_collection_was_read_says_nothing_of_others() {
    let (mut store, config_map) = (Store::default(), kind("", "ConfigMap"));
    let id = store.slot_for(&config_map);
    let slot = store.slot_mut(id);
    slot.advance(&Scope::In("prod".into()), 7);
    slot.advance(&Scope::In("prod".into()), 5);
    slot.advance(&Scope::AllBut(vec!["prod".into(), "test".into()]), 9);
    let positions = ["prod", "test", "else"].map(|namespace| slot.position(namespace));
    assert_eq!(positions, [7, 0, 9]);
}

#[test]
fn owners_that_own_each_other_many_times_are_followed_once() {
    let (mut store, config_map) = (Store::default(), kind("", "ConfigMap"));
    let slot = store.slot_for(&config_map);
    let mut add = |name: &str, owners: &[&str], mark: &str| {
        let owners: Vec<String> = owners
            .iter()
            .map(|uid| format!("{{\"uid\":\"{uid}\"}}"))
            .collect();
        let raw = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"prod","uid":"{name}","resourceVersion":"1","ownerReferences":[{}],"annotations":{{{mark}}}}}}}"#,
            owners.join(",")
        );
        let parsed = parse::parse(
            &raw,
            &config_map,
            &Tracking::annotation(""),
            &customizations("", ""),
            |_, _| false,
        )
        .expect("valid");
        store
            .upsert(slot, parsed, EventSource::Watch)
            .expect("it is newer")
            .apps
            .join(",")
    };
    add(
        "root",
        &[],
        r#""argocd.argoproj.io/tracking-id":"app:/ConfigMap:prod/root""#,
    );
    // With a hundred references per level, there are 100^12 paths over twelve levels.
    let many = |uid: &'static str| {
        std::iter::repeat_n(uid, 100)
            .chain(["root"])
            .collect::<Vec<_>>()
    };
    add("a", &many("b"), "");
    assert_eq!(add("b", &many("a"), ""), "app");
}
