//! Suite `session`: logins, tokens, accounts and sign-in with an identity provider, step by step.
//! Main function: [`runner`].

use super::{
    super::{Difference, Runner},
    answer, intended,
    normalise::differences,
    world::World,
};
use anyhow::Context;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};
use std::{cell::RefCell, path::Path, time::Duration};

pub fn runner(dir: &Path) -> anyhow::Result<Runner> {
    let runtime = tokio::runtime::Runtime::new()?;
    let world = RefCell::new(runtime.block_on(World::start(dir))?);
    Ok(Box::new(move |case| {
        let ran = runtime.block_on(run(&mut world.borrow_mut(), case));
        ran.map_err(|e| format!("{e:#}"))?
    }))
}

/// Ends at the first step where something differs that is not intended.
async fn run(world: &mut World, case: &Value) -> anyhow::Result<Result<(), Difference>> {
    let reason = intended::reason(case["id"].as_str().unwrap_or_default());
    let mut intended = Ok(());
    world.spoil();
    world.prepare(case, &[]).await?;
    let mut changed = case["fixtures"]["settings"].clone();
    for (number, step) in case["steps"]
        .as_array()
        .context("no steps")?
        .iter()
        .enumerate()
    {
        let found = take(world, step, &mut changed).await?;
        match reason.filter(|reason| intended::explains_step(reason, &found)) {
            _ if found.is_empty() => {}
            Some(reason) => intended = Err(Difference::Intended(reason.to_owned())),
            None => {
                let found = found.iter();
                let found: Vec<String> = found
                    .map(|differs| format!("step {number}: {differs}"))
                    .collect();
                return Ok(Err(Difference::Wrong(found.join("\n    "))));
            }
        }
    }
    Ok(intended)
}

async fn take(world: &mut World, step: &Value, changed: &mut Value) -> anyhow::Result<Vec<String>> {
    match step["do"].as_str().unwrap_or_default() {
        "wait" => {
            let seconds = step["seconds"].as_f64().unwrap_or_default();
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
        "settings" => {
            for (name, data) in step["settings"].as_object().into_iter().flatten() {
                for (key, value) in data.as_object().into_iter().flatten() {
                    changed[name][key] = value.clone();
                }
            }
            world.settings(&[changed]).await?;
            // Settings are read again after three seconds.
            tokio::time::sleep(Duration::from_millis(3_500)).await;
        }
        "delete" => {
            world
                .delete(step["object"].as_str().unwrap_or_default())
                .await?
        }
        "can-i" => return can_i(world, step).await,
        "http" => return http(world, step).await,
        "flow" => return flow(world, step).await,
        other => return Ok(vec![format!("nothing can do a step {other:?} yet")]),
    }
    Ok(Vec::new())
}

async fn can_i(world: &World, step: &Value) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for question in step["answers"].as_array().into_iter().flatten() {
        let parts = (0..3).map(|at| encoded(question[at].as_str().unwrap_or_default()));
        let path = format!(
            "/api/v1/account/can-i/{}",
            parts.collect::<Vec<_>>().join("/")
        );
        let token = step["token"].as_str();
        let headers = token.map(|t| ("Authorization".to_owned(), format!("Bearer <TOKEN:{t}>")));
        let request = json!({"method": "GET", "path": path});
        let received = world.http(&request, headers.into_iter().collect()).await?;
        let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
        let got = match received.status {
            Some(200) => body["value"].clone(),
            status => {
                let message = body["message"].as_str().unwrap_or_default();
                let message = world.normaliser.text(message);
                json!({"status": status, "code": body["code"], "message": message})
            }
        };
        differences(&question[3], &got, &path, &mut found);
    }
    Ok(found)
}

fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let byte = |b: u8| {
        if plain(b) {
            char::from(b).to_string()
        } else {
            format!("%{b:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

/// A sign-in: the way to the provider, and back with a code.
async fn flow(world: &World, step: &Value) -> anyhow::Result<Vec<String>> {
    let (request, want) = (&step["request"], &step["response"]);
    let login = json!({"method": "GET", "path": request["login"]});
    let begun = world.http(&login, Vec::new()).await?;
    let header = |wanted: &str| {
        let found = begun.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    let state = header("location")
        .split(['?', '&'])
        .find_map(|pair| pair.strip_prefix("state="));
    let cookie = header("set-cookie").split(';').next().unwrap_or_default();
    let callback = request["callback"].as_str().unwrap_or_default();
    let callback = callback.replace("<STATE>", state.unwrap_or_default());
    let (path, query) = callback.split_once('?').unwrap_or((&callback, ""));
    let back = json!({"method": "GET", "path": path, "query": query});
    let mut headers = Vec::new();
    if request["with_state_cookie"] == true {
        headers.push(("Cookie".to_owned(), cookie.to_owned()));
    }
    let received = world.http(&back, headers).await?;
    Ok(answer::compare(
        (&back, want),
        &received,
        &world.normaliser,
        false,
    ))
}

async fn http(world: &mut World, step: &Value) -> anyhow::Result<Vec<String>> {
    let (request, want) = (&step["request"], &step["response"]);
    let received = world.http(request, answer::sent(request)).await?;
    if want["status"].is_null() && received.status == Some(200) {
        // There was nothing to send yet. We send headers at once.
        return Ok(Vec::new());
    }
    let is_loose = request["path"]
        .as_str()
        .is_some_and(|path| path.ends_with("/account"));
    let mut found = answer::compare((request, want), &received, &world.normaliser, is_loose);
    let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
    let cookies = received
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    let mut cookies = cookies.filter_map(|(_, value)| value.strip_prefix("argocd.token="));
    let renewed = cookies.find_map(|value| value.split(';').next().map(str::to_owned));
    let made = body["token"].as_str().map(str::to_owned);
    for (token, jwt) in [(&made, &step["jwt"]), (&renewed, &step["renewed_jwt"])] {
        if let (Some(token), false) = (token, jwt.is_null()) {
            differences(jwt, &decoded(world, token), "/jwt", &mut found);
        }
    }
    for (what, name) in step["save"].as_object().into_iter().flatten() {
        let token = if what == "token" { &made } else { &renewed };
        let name = name.as_str().unwrap_or_default().to_owned();
        let token = token.clone().unwrap_or_else(|| "missing".to_owned());
        world.normaliser.tokens.insert(name, token);
    }
    Ok(found)
}

/// A token's header and claims, in the recorded form.
fn decoded(world: &World, token: &str) -> Value {
    let mut parts = token.split('.').map(|part| {
        let bytes = BASE64.decode(part).unwrap_or_default();
        serde_json::from_slice::<Value>(&bytes).unwrap_or_default()
    });
    let (header, claims) = (parts.next(), parts.next().unwrap_or_default());
    let lifetime = claims["exp"]
        .as_i64()
        .zip(claims["iat"].as_i64())
        .map(|(e, i)| e - i);
    let shown = claims
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let value = match (name.as_str(), value) {
                ("iat" | "nbf" | "exp", _) => "<UNIXTIME>".into(),
                (_, Value::String(text)) => world.normaliser.text(text).into(),
                (_, value) => value.clone(),
            };
            (name.clone(), value)
        });
    let shown: serde_json::Map<_, _> = shown.collect();
    json!({"header": header, "claims": shown, "lifetime_seconds": lifetime})
}
