//! Suite `authz`: who may call what. Main function: [`runner`].

use super::{
    super::{Difference, Runner},
    client::{self, Received},
    intended, messages,
    normalise::differences,
    world::World,
};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{cell::RefCell, path::Path};

/// How many identities are named in the reason of a failure.
const NAMED: usize = 4;
/// The label of who may do everything.
const ADMIN: &str = "admin";

/// What one identity got.
struct Differs {
    label: String,
    places: Vec<String>,
    want: Value,
    got: Value,
}

impl Differs {
    fn text(&self) -> String {
        format!("{}: {}", self.label, self.places.join("; "))
    }
}

pub fn runner(dir: &Path) -> anyhow::Result<Runner> {
    let runtime = tokio::runtime::Runtime::new()?;
    let world = RefCell::new(runtime.block_on(World::start(dir))?);
    Ok(Box::new(move |case| {
        let ran = runtime.block_on(run(&mut world.borrow_mut(), case));
        let found = ran.map_err(|e| format!("{e:#}"))?;
        let reason = intended::reason(case["id"].as_str().unwrap_or_default());
        let explained = |differs: &Differs| {
            let explains = |reason| {
                let (want, got) = (&differs.want, &differs.got);
                intended::explains_outcome(reason, differs.label == ADMIN, want, got)
            };
            reason.is_some_and(explains)
        };
        let wrong: Vec<&Differs> = found.iter().filter(|found| !explained(found)).collect();
        match (wrong.as_slice(), reason) {
            ([], Some(reason)) if !found.is_empty() => Err(Difference::Intended(reason.to_owned())),
            ([], _) => Ok(()),
            _ => {
                let named = wrong.iter().take(NAMED).map(|differs| differs.text());
                let named: Vec<String> = named.collect();
                let more = wrong.len().saturating_sub(NAMED);
                let named = named.join("\n    ");
                Err(Difference::Wrong(format!("{named} ({more} more)")))
            }
        }
    }))
}

async fn run(world: &mut World, case: &Value) -> anyhow::Result<Vec<Differs>> {
    let mut found = Vec::new();
    let is_read = case["request"]["method"] == "GET";
    let answers = case["answers"].as_object().into_iter().flatten();
    let (default, own): (Vec<_>, Vec<_>) =
        answers.partition(|(label, _)| label.contains("policy.default role:readonly"));
    for (policy, identities) in [("", own), ("role:readonly", default)] {
        if identities.is_empty() {
            continue;
        }
        let over = json!({"argocd-rbac-cm": {"policy.default": policy}});
        if is_read {
            world.prepare(case, &[&over]).await?;
            let asked = identities
                .iter()
                .map(|(label, want)| ask(world, case, label, want));
            for differs in join_all(asked).await {
                found.extend(differs?);
            }
            continue;
        }
        for (label, want) in identities {
            world.prepare(case, &[&over]).await?;
            found.extend(ask(world, case, label, want).await?);
        }
    }
    Ok(found)
}

/// The name of an identity's token.
fn token<'a>(case: &'a Value, label: &str) -> Option<&'a str> {
    match case["tokens"].get(label) {
        Some(name) => name.as_str(),
        None if label.starts_with("acc") => Some("nobody"),
        None if label.contains("team-a") => Some("proj-deployer"),
        None if label.starts_with("pro") => Some("proj-other"),
        None => None,
    }
}

async fn ask(
    world: &World,
    case: &Value,
    label: &str,
    want: &Value,
) -> anyhow::Result<Option<Differs>> {
    let request = &case["request"];
    let token = token(case, label).map(|name| format!("<TOKEN:{name}>"));
    let mut got = if request["transport"] == "grpc" {
        let metadata = token.map(|token| ("token".to_owned(), world.with_tokens(&token)));
        let metadata: Vec<_> = metadata.into_iter().collect();
        let method = request["method"].as_str().unwrap_or_default();
        let message = messages::encode(method, &request["message"])?;
        let reply = client::grpc(world.address()?, method, &metadata, &[message]).await?;
        let message = world.normaliser.text(&reply.message);
        let message = (reply.code != Some(0)).then_some(message);
        json!({"status": null, "code": reply.code, "message": message})
    } else {
        let mut headers: Vec<_> = token
            .map(|token| ("Authorization".to_owned(), format!("Bearer {token}")))
            .into_iter()
            .collect();
        if request["method"] != "GET" {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        outcome(world, &world.http(request, headers).await?, want)
    };
    if let Some(fields) = got.as_object_mut() {
        fields.retain(|name, _| want.get(name).is_some());
    }
    let want: Value =
        got.as_object()
            .into_iter()
            .flatten()
            .fold(json!({}), |mut all, (name, _)| {
                all[name] = want[name].clone();
                all
            });
    let mut places = Vec::new();
    differences(&want, &got, "", &mut places);
    Ok((!places.is_empty()).then(|| Differs {
        label: label.to_owned(),
        places,
        want,
        got,
    }))
}

/// Status, code and message of an answer, and what else is recorded.
fn outcome(world: &World, received: &Received, want: &Value) -> Value {
    let text = String::from_utf8_lossy(&received.body);
    let mut got = json!({"status": received.status, "code": 0, "message": null});
    let gives_access = want["status"].is_null() && want["code"] == 0;
    let is_refusal = text.starts_with("{\"error\"");
    if gives_access && received.status == Some(200) && !is_refusal {
        // Access was given and there was nothing to send yet. We send headers at once, and the
        // state as it is.
        return want.clone();
    }
    if want["code"].is_null() && want["message"] == "" {
        // The refusal of a stream, of which only the status was recorded.
        return json!({"status": received.status});
    }
    let Ok(body) = serde_json::from_str::<Value>(text.trim()) else {
        if received.status.is_none() {
            got["message"] = want["message"].clone();
        } else if !text.trim().is_empty() {
            let text: String = world.normaliser.text(&text).chars().take(300).collect();
            got["message"] = text.into();
        }
        return got;
    };
    let message = |error: &Value| {
        world
            .normaliser
            .text(error["message"].as_str().unwrap_or(""))
    };
    if body["error"].is_object() {
        got["code"] = body["error"]["grpc_code"].clone();
        got["message"] = message(&body["error"]).into();
    } else if received.status.is_some_and(|status| status >= 400) {
        got["code"] = body["code"].clone();
        got["message"] = message(&body).into();
    } else if want.get("items").is_some() {
        got["items"] = items(&body);
    }
    if want.get("value").is_some() && got["code"] == 0 {
        got["value"] = want["value"].clone();
        if want["value"].is_string() {
            got["value"] = body["value"].clone();
        }
    }
    got
}

/// The names of what a list returned, in order.
fn items(body: &Value) -> Value {
    let fields = ["name", "repo", "url", "serverName", "server"];
    let name = |item: &Value| {
        let own = fields.iter().map(|field| &item[*field]);
        let names = std::iter::once(&item["metadata"]["name"]).chain(own);
        let mut names = names
            .filter_map(Value::as_str)
            .filter(|name| !name.is_empty());
        names.next().unwrap_or("?").to_owned()
    };
    let items = body["items"].as_array().into_iter().flatten();
    let mut names: Vec<String> = items.map(name).collect();
    names.sort();
    names.into()
}
