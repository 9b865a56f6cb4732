//! Users' actions, and what the built-in ones refuse. The results of the built-in ones are in the
//! recorded cases (`cargo xtask conformance`).

use super::{ActionError, Operation, discover, run};
use crate::customize::{Customizations, read};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

fn customizations(key: &str, actions: &str) -> Customizations {
    let config = [(
        format!("resource.customizations.actions.{key}"),
        actions.to_owned(),
    )]
    .into();
    read(&config, || Timestamp::UNIX_EPOCH).0
}

fn deployment() -> Object {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {}},
        "spec": {"replicas": 1, "template": {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}}}});
    Object::from_value(object).expect("a map")
}

fn names(live: &Object, c: &Customizations) -> Vec<String> {
    discover(live, c)
        .expect("they can be found")
        .into_iter()
        .map(|a| a.name)
        .collect()
}

const ACTIONS: &str = "\
discovery.lua: |
  return {restart = {disabled = true, iconClass = 'mine', params = {{name = 'p'}}}, plain = {}}
definitions:
- name: plain
  action.lua: |
    obj.spec.replicas = obj.spec.replicas + 1
    return obj
- name: clone
  action.lua: |
    local new = {apiVersion = 'v1', kind = 'ConfigMap', metadata = {name = obj.metadata.name .. '-' .. actionParams['p']}}
    return {{operation = 'create', resource = new}, {operation = 'patch', resource = obj}}
- name: strange
  action.lua: return {{operation = 'delete', resource = obj}}
- name: text
  action.lua: return 'x'
- name: endless
  action.lua: while true do end
";

#[test]
fn users_actions_replace_or_join_what_is_built_in() {
    let alone = customizations("apps_Deployment", ACTIONS);
    let mut found = names(&deployment(), &alone);
    found.sort();
    assert_eq!(found, ["plain", "restart"]);
    let merged = customizations(
        "apps_Deployment",
        &format!("mergeBuiltinActions: true\n{ACTIONS}"),
    );
    let mut found = names(&deployment(), &merged);
    found.sort();
    assert_eq!(found, ["pause", "plain", "restart", "resume", "scale"]);
    let restart = discover(&deployment(), &merged)
        .expect("found")
        .into_iter()
        .find(|a| a.name == "restart")
        .expect("it is there");
    assert!(restart.disabled && restart.icon_class == "mine" && restart.params.len() == 1);
    assert_eq!(
        names(&deployment(), &Customizations::default()),
        ["restart", "pause", "resume", "scale"]
    );
}

#[test]
fn scripts_patch_and_create() {
    let c = customizations("apps_Deployment", ACTIONS);
    let run = |action: &str| {
        run(
            &deployment(),
            action,
            &[("p".into(), "v".into())],
            &c,
            Timestamp::UNIX_EPOCH,
        )
    };
    let patched = run("plain").expect("it runs");
    let mut expected = Value::Object(deployment().0);
    expected["spec"]["replicas"] = 2.into();
    assert_eq!(
        (
            patched[0].operation,
            Value::Object(patched[0].object.0.clone())
        ),
        (Operation::Patch, expected),
        "empty maps stay maps"
    );
    let cloned = run("clone").expect("it runs");
    assert_eq!(
        (cloned[0].operation, cloned[0].object.name()),
        (Operation::Create, "d-v")
    );
    assert_eq!(
        (cloned[1].operation, &cloned[1].object),
        (Operation::Patch, &deployment())
    );
    for (action, words) in [
        ("strange", "unsupported operation: \"delete\""),
        ("text", "expect table output from Lua script, not string"),
        ("endless", "the script was stopped: it takes too many steps"),
        ("none", "built-in script does not exist"),
    ] {
        assert_eq!(run(action).expect_err("it is refused").to_string(), words);
    }
    let broken = customizations("apps_Deployment", "definitions: 3");
    assert!(matches!(
        discover(&deployment(), &broken),
        Err(ActionError::Refused(_))
    ));
}

#[test]
fn parameters_are_looked_at() {
    let scale = |value: &str| {
        run(
            &deployment(),
            "scale",
            &[("replicas".into(), value.into())],
            &Customizations::default(),
            Timestamp::UNIX_EPOCH,
        )
    };
    for (text, replicas) in [
        ("5", json!(5)),
        (" 7\t", json!(7)),
        ("+3", json!(3)),
        ("010", json!(10)),
        ("0x10", json!(16)),
        ("3.0", json!(3)),
        ("1.5", json!(1.5)),
        ("1.5e1", json!(15)),
    ] {
        let impacts = scale(text).expect("a number");
        assert_eq!(impacts[0].object.0["spec"]["replicas"], replicas, "{text}");
    }
    for text in [
        "many",
        "",
        "1e3",
        "inf",
        "nan",
        "1_000",
        "99999999999999999999",
        "1.0e999",
        "0x-5",
        "0x+5",
    ] {
        let error = scale(text).expect_err("no number").to_string();
        assert_eq!(error, format!("invalid number: {text}"));
    }
    let unknown =
        Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap"})).expect("a map");
    assert_eq!(
        discover(&unknown, &Customizations::default()),
        Ok(Vec::new())
    );
}
