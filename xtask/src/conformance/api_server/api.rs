//! Suite `api`: single requests over REST, gRPC and gRPC-web, and plain HTTP. Main function:
//! [`runner`].

use super::{
    super::{Difference, Runner},
    answer,
    client::{self, Received},
    intended,
    live::Live,
    normalise::differences,
    world::World,
};
use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use serde_json::{Value, json};
use std::{
    cell::{OnceCell, RefCell},
    path::Path,
    time::Duration,
};

/// Lists whose order is not defined, by the beginnings of ids.
const UNORDERED: [&str; 6] = [
    "notifications",
    "account-list",
    "app-events-after",
    "project-events-after",
    "appset-events-after",
    "seq-creds",
];

pub fn runner(dir: &Path) -> anyhow::Result<Runner> {
    let runtime = tokio::runtime::Runtime::new()?;
    let world = RefCell::new(runtime.block_on(World::start(dir))?);
    let live: OnceCell<Live> = OnceCell::new();
    Ok(Box::new(move |case| {
        let ran = if case["fixtures"]["controllers"] == true {
            let live = match live.get() {
                Some(live) => Ok(live),
                None => Live::start().map(|started| live.get_or_init(|| started)),
            };
            live.and_then(|live| live.run(&runtime, &world.borrow().normaliser, case))
        } else {
            runtime.block_on(run(&mut world.borrow_mut(), case))
        };
        let found = ran.map_err(|e| format!("{e:#}"))?;
        match (
            found.is_empty(),
            intended::reason(case["id"].as_str().unwrap_or_default()),
        ) {
            (true, _) => Ok(()),
            (false, Some(reason)) => Err(Difference::Intended(reason.to_owned())),
            (false, None) => {
                let shown = found
                    .iter()
                    .take(4)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join("\n    ");
                Err(Difference::Wrong(format!(
                    "{shown} ({} places)",
                    found.len()
                )))
            }
        }
    }))
}

async fn run(world: &mut World, case: &Value) -> anyhow::Result<Vec<String>> {
    let (request, want) = (&case["request"], &case["response"]);
    world.prepare(case, &[]).await?;
    if request["transport"] == "grpc" {
        return grpc(world, request, want).await;
    }
    for before in case["before"].as_array().into_iter().flatten() {
        earlier(world, before).await?;
    }
    let headers = answer::sent(request);
    let (received, ()) = tokio::try_join!(world.http(request, headers), meanwhile(world, request))?;
    let id = case["id"].as_str().unwrap_or_default();
    let is_loose = [&case["unordered"], &case["sorted"]]
        .iter()
        .any(|is| is.as_bool() == Some(true))
        || UNORDERED.iter().any(|beginning| id.starts_with(beginning));
    let mut found = answer::compare((request, want), &received, &world.normaliser, is_loose);
    stored(world, case, &mut found).await?;
    Ok(found)
}

/// A request whose answer is not compared.
async fn earlier(world: &World, before: &Value) -> anyhow::Result<Received> {
    let target = before["target"].as_str().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let token = before["token"].as_str().unwrap_or_default();
    let request = json!({
        "method": before["method"], "path": path, "query": query, "body": before["body"],
    });
    let headers = vec![
        (
            "Authorization".to_owned(),
            format!("Bearer <TOKEN:{token}>"),
        ),
        ("Content-Type".to_owned(), "application/json".to_owned()),
    ];
    world.http(&request, headers).await
}

/// What happens while the request is open.
async fn meanwhile(world: &World, request: &Value) -> anyhow::Result<()> {
    for step in request["during"].as_array().into_iter().flatten() {
        let delay = step["delay"].as_f64().unwrap_or_default();
        tokio::time::sleep(Duration::from_secs_f64(delay)).await;
        if let Some(named) = step["patch"].as_str() {
            world.merge(named, &step["merge"]).await?;
        } else if let Some(named) = step["delete"].as_str() {
            world.delete(named).await?;
        } else if step["create"].is_object() {
            world.create(&step["create"]).await?;
        }
    }
    Ok(())
}

/// The objects after the request.
async fn stored(world: &World, case: &Value, found: &mut Vec<String>) -> anyhow::Result<()> {
    for (named, want) in case["stored"].as_object().into_iter().flatten() {
        let got = match world.object(named).await? {
            None => Value::Null,
            Some(object) => as_stored(world, object),
        };
        let (want, got) = (&read_alike(want), read_alike(&got));
        differences(want, &got, &format!("/stored/{named}"), found);
    }
    Ok(())
}

/// Without what says nothing where a controller writes: Go stores structures without content, which
/// read the same as absent ones.
fn read_alike(object: &Value) -> Value {
    let mut object = object.clone();
    for part in ["status", "operation"] {
        if let Some(fields) = object.as_object_mut()
            && let Some(value) = fields.remove(part)
            && let Some(value) = with_content(value)
        {
            fields.insert(part.to_owned(), value);
        }
    }
    object
}

fn with_content(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter();
            let kept = kept.filter_map(|(name, value)| Some((name, with_content(value)?)));
            let kept: serde_json::Map<_, _> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        // The places in a list have a meaning.
        Value::Array(items) => (!items.is_empty()).then(|| {
            let items = items.into_iter();
            items
                .map(|item| with_content(item).unwrap_or_default())
                .collect()
        }),
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        value => Some(value),
    }
}

/// An object in the form of the recorded ones.
fn as_stored(world: &World, mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "managedFields",
            "creationTimestamp",
        ] {
            metadata.remove(field);
        }
    }
    if object["kind"] == "Secret"
        && let Some(fields) = object.as_object_mut()
        && let Some(Value::Object(data)) = fields.remove("data")
    {
        let texts = data.into_iter().map(|(key, value)| {
            let bytes = BASE64
                .decode(value.as_str().unwrap_or_default())
                .unwrap_or_default();
            (
                key,
                Value::from(String::from_utf8_lossy(&bytes).into_owned()),
            )
        });
        fields.insert("stringData".to_owned(), Value::Object(texts.collect()));
    }
    world.normaliser.value(&object)
}

async fn grpc(world: &World, request: &Value, want: &Value) -> anyhow::Result<Vec<String>> {
    let method = request["method"].as_str().unwrap_or_default();
    let mut metadata: Vec<(String, String)> = request["metadata"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            (
                name.clone(),
                world.with_tokens(value.as_str().unwrap_or_default()),
            )
        })
        .collect();
    if let Some(agent) = request["user_agent"].as_str() {
        metadata.push(("user-agent".to_owned(), agent.to_owned()));
    }
    let messages = match request["message_base64"].as_str() {
        Some(bytes) => vec![BASE64.decode(bytes)?],
        None if request["messages"].is_array() => Vec::new(),
        None => vec![Vec::new()],
    };
    let reply = client::grpc(world.address()?, method, &metadata, &messages).await?;
    let mut found = Vec::new();
    if want["process_dies"] == true {
        // Any error will do.
        if reply.code.is_none_or(|code| code == 0) {
            found.push(format!("/code: wanted an error, got {:?}", reply.code));
        }
        return Ok(found);
    }
    let message = world.normaliser.text(&reply.message);
    // A watch that was open when its reader had enough was recorded as OK.
    let is_watch = method.ends_with("/Watch") || method.ends_with("/WatchResourceTree");
    let code = reply.code.or(is_watch.then_some(0));
    differences(&want["code"], &json!(code), "/code", &mut found);
    let wanted = want["message"].as_str().unwrap_or_default();
    differences(&wanted.into(), &message.into(), "/message", &mut found);
    if let Some(wanted) = want["messages"].as_array()
        && wanted.len() != reply.messages.len()
    {
        let (wanted, got) = (wanted.len(), reply.messages.len());
        found.push(format!("/messages: wanted {wanted}, got {got}"));
    }
    Ok(found)
}
