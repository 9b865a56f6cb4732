//! Fuzz targets of what reaches the servers and the controllers from outside.

use super::targets::holds;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost::Message;
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use tiphys_api::{
    resource::ResourceNode,
    rpc::{
        application::{ApplicationCreateRequest, ApplicationSyncRequest},
        application_set::ApplicationSetGenerateRequest,
        repository::{ManifestRequest, ManifestRequestWithFiles},
    },
};
use tiphys_apimachinery::Object;
use tiphys_engine::{
    tree,
    types::{CompareRules, Entry, Tracking},
};
use tiphys_gocompat::expr::{self, Clock, Limits, Program};
use tiphys_render::{
    EvaluateJsonnet, InProcess, JsonnetFile, JsonnetLimits, JsonnetOptions, MemoryFiles,
};

/// A condition of a trigger, compiled and run.
pub fn run_expr(input: &[u8]) -> Result<(), String> {
    let Ok(program) = Program::compile(&String::from_utf8_lossy(input)) else {
        return Ok(());
    };
    let clock = Clock {
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: jiff::tz::TimeZone::UTC,
    };
    let small = Limits {
        steps: 200_000,
        elements: 100_000,
        bytes: 4 << 20,
    };
    if let Ok(value) = program.run(&expr::Value::Nil, &clock, small) {
        holds(
            expr::display(&value).len() <= 64 << 20,
            "the printed value is bounded",
        )?;
    }
    Ok(())
}

/// A Jsonnet file of a directory, with one beside it to import.
pub fn run_jsonnet(input: &[u8]) -> Result<(), String> {
    let files = MemoryFiles::new([("lib.libsonnet", "{ a: 1, f(x):: [x, x] }")]);
    let limits = JsonnetLimits {
        steps: 200_000,
        values: 100_000,
        result_bytes: 4 << 20,
        ..JsonnetLimits::default()
    };
    let file = JsonnetFile {
        folder: "",
        path: "main.jsonnet",
        content: input,
        options: &JsonnetOptions::default(),
        limits: &limits,
    };
    if let Ok(value) = InProcess.evaluate(&files, file) {
        holds(
            value.to_string().len() <= 8 << 20,
            "what it evaluates to is bounded",
        )?;
    }
    Ok(())
}

/// A gRPC message in base64, read as several requests; what can be read is written and read again
/// as the same.
pub fn run_grpc(input: &[u8]) -> Result<(), String> {
    fn read<M: Message + Default + PartialEq>(bytes: &[u8]) -> Result<(), String> {
        let Ok(message) = M::decode(bytes) else {
            return Ok(());
        };
        let again = M::decode(message.encode_to_vec().as_slice());
        // A NaN is not equal to itself.
        holds(
            again.is_ok_and(|again| again.encode_to_vec() == message.encode_to_vec()),
            "a message is read as it was written",
        )
    }
    let Ok(bytes) = STANDARD.decode(input) else {
        return Ok(());
    };
    read::<ApplicationCreateRequest>(&bytes)?;
    read::<ApplicationSyncRequest>(&bytes)?;
    read::<ApplicationSetGenerateRequest>(&bytes)?;
    read::<ManifestRequest>(&bytes)?;
    read::<ManifestRequestWithFiles>(&bytes)
}

/// A list of live objects: the first is an Application's, the others hang below their owners.
pub fn run_tree(input: &[u8]) -> Result<(), String> {
    let Ok(list) = serde_json::from_slice::<Vec<Value>>(input) else {
        return Ok(());
    };
    let objects: Vec<Object> = list
        .into_iter()
        .filter_map(|value| Object::from_value(value).ok())
        .collect();
    let Some(first) = objects.first() else {
        return Ok(());
    };
    let customizations = Default::default();
    let mut below: HashMap<String, Vec<ResourceNode>> = HashMap::new();
    for object in &objects {
        let node = tree::node(object, &customizations);
        for owner in object
            .metadata("ownerReferences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
            below.entry(uid).or_default().push(node.clone());
        }
    }
    let live = Arc::new(first.clone().into());
    let mut entry = Entry::new(first.key(), first.gvk(), None, Some(live));
    entry.node = tree::node(first, &customizations);
    let children = |uid: &str| below.get(uid).cloned().unwrap_or_default();
    let rules = CompareRules::new(
        Tracking::annotation("web"),
        "argocd",
        "web",
        "https://kubernetes.default.svc",
        "ns",
    );
    let built = tree::build(&[Arc::new(entry)], &rules, &children);
    // Every live object has a uid, but mutated ones may lack it.
    let mut uids: Vec<&str> = built
        .nodes
        .iter()
        .map(|node| node.resource_ref.uid.as_str())
        .filter(|uid| !uid.is_empty())
        .collect();
    let all = uids.len();
    uids.sort_unstable();
    uids.dedup();
    holds(uids.len() == all, "no object is in the tree twice")?;
    let _ = tree::summary_of(&built, &std::collections::BTreeMap::new());
    Ok(())
}

/// A chain of owners of this length, closed to a circle.
pub fn owners(levels: usize) -> String {
    let levels = levels.min(5_000);
    let object = |n: usize| {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": format!("o{n}"), "namespace": "ns",
            "uid": n.to_string(), "ownerReferences": [{"uid": n.checked_sub(1).unwrap_or(levels - 1).to_string()}]}})
    };
    Value::from((0..levels).map(object).collect::<Vec<_>>()).to_string()
}
