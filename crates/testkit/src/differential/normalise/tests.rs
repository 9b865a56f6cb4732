//! How generated values are compared.

use super::*;
use serde_json::json;

fn reply(body: Value) -> Reply {
    Reply {
        status: 200,
        body,
        ..Reply::default()
    }
}

#[test]
fn what_a_server_makes_up_becomes_the_place_of_its_first_appearance() {
    let uid = "0a1b2c3d-0000-4000-8000-000000000001";
    let object = json!({"metadata": {"uid": uid, "resourceVersion": "41", "creationTimestamp": "2031-01-02T03:04:05Z", "namespace": "d-1"}});
    let again = json!({"message": format!("uid {uid} in d-1"), "metadata": {"uid": uid, "resourceVersion": "42"}});
    let transcript = Transcript {
        namespace: "d-1".into(),
        replies: vec![reply(object), reply(again)],
    };
    let out = normalise(&Script::default(), &transcript);
    let metadata = &out[0].body["metadata"];
    assert_eq!(metadata["uid"], "{uid@0/metadata/uid}");
    assert_eq!(metadata["resourceVersion"], "{rv@0}");
    assert_eq!(metadata["creationTimestamp"], "{now.0}");
    assert_eq!(out[1].body["message"], "uid {uid@0/metadata/uid} in {ns}");
    assert_eq!(out[1].body["metadata"]["resourceVersion"], "{rv@1}");
}

#[test]
fn objects_with_made_up_names_are_listed_as_they_came() {
    let object = |end: &str, n: u8| json!({"metadata": {"generateName": "gen-", "name": format!("gen-{end}")}, "n": n});
    let listed = |ends: [&str; 2], order: [u8; 2]| {
        let object = |n: u8| object(ends[usize::from(n)], n);
        let list = json!({"items": [object(order[0]), object(order[1])]});
        let transcript = Transcript {
            namespace: "d-1".into(),
            replies: vec![reply(object(0)), reply(object(1)), reply(list)],
        };
        normalise(&Script::default(), &transcript)[2].body["items"][0]["n"].clone()
    };
    assert_eq!(
        (
            listed(["bbbbb", "zzzzz"], [0, 1]),
            listed(["zzzzz", "bbbbb"], [1, 0])
        ),
        (json!(0), json!(0))
    );
    // That is not sorted by name.
    assert_eq!(listed(["bbbbb", "zzzzz"], [1, 0]), json!(1));
}

#[test]
fn a_uid_as_name_stands_in_one_place_among_the_others() {
    let listed = |uid: &str| {
        let mut names = ["a", "c", uid];
        names.sort_unstable();
        let object = |name: &str| json!({"metadata": {"name": name, "namespace": "d-1"}});
        let list = json!({"items": names.map(object)});
        let transcript = Transcript {
            namespace: "d-1".into(),
            replies: vec![reply(object(uid)), reply(list)],
        };
        normalise(&Script::default(), &transcript)[1].clone()
    };
    assert_eq!(
        listed("0a1b2c3d-0000-4000-8000-000000000001"),
        listed("ba1b2c3d-0000-4000-8000-000000000001")
    );
}

#[test]
fn a_quoted_object_may_have_a_revision_that_nobody_told() {
    let said = |revision: &str| {
        let message =
            format!(r#"Invalid value: "{{\"metadata\":{{\"resourceVersion\":\"{revision}\"}}}}""#);
        normalise(
            &Script::default(),
            &Transcript {
                namespace: "d-1".into(),
                replies: vec![reply(json!({"message": message}))],
            },
        )
    };
    assert_eq!(said("20444"), said("142"));
    assert_ne!(said("20444"), said("none"));
}

#[test]
fn only_what_is_told_as_a_revision_is_one() {
    let made = reply(
        json!({"metadata": {"uid": "0a1b2c3d-0000-4000-8000-000000000001", "resourceVersion": "80"}}),
    );
    let said = |message: &str| {
        let replies = vec![made.clone(), reply(json!({"message": message}))];
        normalise(
            &Script::default(),
            &Transcript {
                namespace: "d-1".into(),
                replies,
            },
        )[1]
        .body["message"]
            .clone()
    };
    assert_eq!(
        said(r#"{\"resourceVersion\":\"80\"},\"port\":80"#),
        r#"{\"resourceVersion\":\"{rv@0}\"},\"port\":80"#
    );
    assert_eq!(
        said("too old resource version: 7 (80), not 80"),
        "too old resource version: {rv of a list} ({rv@0}), not 80"
    );
    let precondition = "ResourceVersion in precondition: 9, ResourceVersion in object meta: 80";
    assert_eq!(
        said(precondition),
        "ResourceVersion in precondition: 9, ResourceVersion in object meta: {rv@0}"
    );
}

#[test]
fn the_name_made_up_for_a_refused_object_is_not_compared() {
    let step = super::super::Step {
        body: Some(json!({"metadata": {"generateName": "${ns}-a-"}})),
        ..Default::default()
    };
    let script = Script {
        steps: vec![step],
        ..Script::default()
    };
    let refused = |end: &str| json!({"message": format!("Role \"d-1-a-{end}\" is invalid"), "details": {"name": format!("d-1-a-{end}")}});
    let said = |end| {
        normalise(
            &script,
            &Transcript {
                namespace: "d-1".into(),
                replies: vec![reply(refused(end))],
            },
        )[0]
        .body
        .clone()
    };
    assert_eq!(said("bcdfg"), said("xz456"));
    assert_ne!(said("bcdfg"), said("longer"));
}

#[test]
fn managers_are_compared_without_the_second_that_they_wrote_in() {
    let object = |list: [(&str, &str); 2]| {
        let entries = list.map(
            |(manager, time)| json!({"manager": manager, "operation": "Update", "time": time}),
        );
        json!({"metadata": {"managedFields": entries}})
    };
    let said = |list| {
        normalise(
            &Script::default(),
            &Transcript {
                namespace: "d-1".into(),
                replies: vec![reply(object(list))],
            },
        )
    };
    let (first, second) = ("2031-01-02T03:04:05Z", "2031-01-02T03:04:06Z");
    let one = said([("a", first), ("b", first)]);
    assert_eq!(one, said([("b", first), ("a", second)]));
    assert_ne!(one, said([("b", first), ("a", first)]));
}

#[test]
fn what_was_allocated_is_known_in_cells_and_refusals() {
    let step = super::super::Step {
        body: Some(json!({"range": "10.0.0.0/8"})),
        ..Default::default()
    };
    let script = Script {
        steps: vec![step],
        ..Script::default()
    };
    let said = |ip: &str, port: &str| {
        let cells = json!({"kind": "Table", "rows": [{"cells": ["a", ip, format!("80:{port}/TCP,81:{port}/TCP")]}]});
        let cause = json!({"field": "spec.ports[1].nodePort", "message": format!("Duplicate value: {port}")});
        let message = format!("spec.ports[1].nodePort: Duplicate value: {port}");
        let refused = json!({"details": {"causes": [cause]}, "message": message});
        let at_once = json!({"message": format!("duplicate nodePort: {{TCP {port}}}")});
        normalise(
            &script,
            &Transcript {
                namespace: "d-1".into(),
                replies: vec![reply(cells), reply(refused), reply(at_once)],
            },
        )
    };
    assert_eq!(said("10.0.0.0", "30001"), said("10.0.44.7", "31002"));
    assert_ne!(said("none", "30001"), said("10.0.44.7", "31002"));
}

#[test]
fn an_age_is_no_difference_and_the_number_before_it_is() {
    let said = |cell: &str| {
        let table = json!({"kind": "Table", "rows": [{"cells": ["a", cell]}]});
        normalise(
            &Script::default(),
            &Transcript {
                namespace: "d-1".into(),
                replies: vec![reply(table)],
            },
        )
    };
    assert_eq!(said("5s"), said("6y328d"));
    assert_eq!(said("3 (6y328d ago)"), said("3 (6y329d ago)"));
    assert_ne!(said("3 (6y328d ago)"), said("4 (6y328d ago)"));
    assert_ne!(said("3 (6y328d ago)"), said("3"));
}

#[test]
fn what_the_script_sent_stays() {
    let body =
        json!({"spec": {"clusterIP": "10.0.0.7", "renewTime": "2024-01-01T00:00:00.000000Z"}});
    let step = super::super::Step {
        body: Some(json!({"ip": "10.0.0.7", "t": "2024-01-01T00:00:00Z"})),
        ..Default::default()
    };
    let script = Script {
        steps: vec![step],
        ..Script::default()
    };
    let transcript = Transcript {
        namespace: "d-1".into(),
        replies: vec![reply(body.clone())],
    };
    assert_eq!(normalise(&script, &transcript)[0].body, body);
}
