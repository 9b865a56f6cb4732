//! The cases with controllers: the program of this build, whole, with a cluster of its own. Main
//! type: [`Live`]. The applications of the cases have names of their own, so one server serves all.

use super::{
    super::program,
    answer,
    client::{self, Sent},
    normalise::Normaliser,
    world::{self, path},
};
use anyhow::{Context, bail, ensure};
use regex::Regex;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    thread::{self, sleep},
    time::{Duration, Instant},
};
use tiphys_testkit::{Api, Options, Tiphys};
use tokio::runtime::Runtime;

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Live {
    kube: Api,
    api: Api,
    token: String,
    address: SocketAddr,
    _server: Tiphys,
}

impl Live {
    pub fn start() -> anyhow::Result<Self> {
        let options = Options {
            program: program()?,
            ..Options::default()
        };
        let (server, kube) = Tiphys::ready(&options);
        let plain = Api::plain(&server.url);
        // It is printed a moment after the servers respond.
        let begun = Instant::now();
        while server.password().is_none() && begun.elapsed() < PATIENCE {
            sleep(Duration::from_millis(20));
        }
        let password = server.password().context("no password was printed")?;
        let login = json!({"username": "admin", "password": password});
        let session = plain.post("/api/v1/session", &login);
        let session = session.map_err(|e| anyhow::anyhow!("login: {}", e.0))?;
        let token = session.body["token"].as_str().context("no token")?;
        let address = server.url.trim_start_matches("http://").parse()?;
        Ok(Self {
            kube,
            api: plain.with_token(token),
            token: token.to_owned(),
            address,
            _server: server,
        })
    }

    /// How the answer to the case differs from the recorded one.
    pub fn run(
        &self,
        runtime: &Runtime,
        normaliser: &Normaliser,
        case: &Value,
    ) -> anyhow::Result<Vec<String>> {
        for object in case["fixtures"]["manifests"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.create(object)?;
        }
        for step in case["until"].as_array().into_iter().flatten() {
            self.step(step).with_context(|| step.to_string())?;
        }
        let (request, want) = (&case["request"], &case["response"]);
        let during = request["during"].as_array().cloned().unwrap_or_default();
        let mut received = thread::scope(|scope| {
            let steps = scope.spawn(|| during.iter().try_for_each(|step| self.step(step)));
            let received = runtime.block_on(client::http(self.address, self.sent(request)));
            steps
                .join()
                .map_err(|_| anyhow::anyhow!("a step panicked"))??;
            received
        })?;
        // A ReplicaSet's name ends with a hash that depends on how Go prints its template.
        let hash = Regex::new(r"\bguestbook-[0-9a-f]{8,10}\b")?;
        let hidden = |text: &str| hash.replace_all(text, "guestbook-<HASH>").into_owned();
        received.body = hidden(&String::from_utf8_lossy(&received.body)).into_bytes();
        let want = serde_json::from_str(&hidden(&want.to_string()))?;
        // The resources of a wave are applied side by side: there, their order is chance.
        let is_loose = ["sorted", "unordered"].iter().any(|how| case[how] == true)
            || case["id"] == "live-multi";
        Ok(answer::compare(
            (request, &want),
            &received,
            normaliser,
            is_loose,
        ))
    }

    fn create(&self, object: &Value) -> anyhow::Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
        let at = path(&kind, &text(&metadata["namespace"]), "")?;
        let made = self.kube.post(&at, object);
        let made = made.map_err(|e| anyhow::anyhow!("{kind}: {}", e.0))?;
        // Two cases share a set.
        ensure!(
            made.is_success() || made.status == 409,
            "{kind}: {}",
            made.body
        );
        Ok(())
    }

    /// A condition, or a request: a list whose first part says what.
    fn step(&self, step: &Value) -> anyhow::Result<()> {
        let text = |at: usize| step[at].as_str().unwrap_or_default();
        match text(0) {
            "seconds" => {
                sleep(Duration::from_secs_f64(
                    step[1].as_f64().unwrap_or_default(),
                ));
                Ok(())
            }
            method @ ("POST" | "DELETE") => {
                // The server insists on a type of content, and with it on content.
                let body: Value = serde_json::from_str(step[2].as_str().unwrap_or("{}"))?;
                let sent = self
                    .api
                    .send(method, text(1), "application/json", Some(&body));
                let answer = sent.map_err(|e| anyhow::anyhow!("{}", e.0))?;
                ensure!(answer.is_success(), "{}", answer.body);
                Ok(())
            }
            _ => {
                let begun = Instant::now();
                while let Err(why) = self.holds(step) {
                    if begun.elapsed() > PATIENCE {
                        bail!("in vain: {why:#}");
                    }
                    sleep(Duration::from_millis(50));
                }
                Ok(())
            }
        }
    }

    fn holds(&self, step: &Value) -> anyhow::Result<()> {
        let name = step[1].as_str().unwrap_or_default();
        let kind = match step[0].as_str() {
            Some("appset") => "ApplicationSet",
            _ => "Application",
        };
        let found = self.kube.find(&path(kind, "argocd", name)?);
        if step[0] == "gone" {
            ensure!(found.is_none(), "it is there");
            return Ok(());
        }
        let found = found.context("it is not there")?;
        let status = &found["status"];
        match step[0].as_str() {
            Some("exists") => Ok(()),
            Some("condition") => {
                let mut all = status["conditions"].as_array().into_iter().flatten();
                ensure!(
                    all.any(|c| c["type"] == step[2]),
                    "its conditions are others"
                );
                Ok(())
            }
            Some("appset") => {
                let count = status["resources"].as_array().map_or(0, Vec::len);
                ensure!(Some(count as u64) == step[2].as_u64(), "it has {count}");
                Ok(())
            }
            Some("app") => as_wanted(&found, &step[2]),
            _ => bail!("no such condition"),
        }
    }

    fn sent(&self, request: &Value) -> Sent {
        let token = |value: String| value.replace("<TOKEN:admin>", &self.token);
        let headers = answer::sent(request).into_iter();
        Sent {
            headers: headers.map(|(name, value)| (name, token(value))).collect(),
            ..world::unbodied(request)
        }
    }
}

fn as_wanted(app: &Value, wanted: &Value) -> anyhow::Result<()> {
    has_status(app, wanted)?;
    let is_idle = app["operation"].is_null();
    ensure!(wanted["idle"] != true || is_idle, "an operation is pending");
    Ok(())
}

/// Whether the status of an Application has what a step waits for, as far as it names it.
pub fn has_status(app: &Value, wanted: &Value) -> anyhow::Result<()> {
    let status = &app["status"];
    let fields = [
        ("sync", &status["sync"]["status"]),
        ("health", &status["health"]["status"]),
        ("phase", &status["operationState"]["phase"]),
        ("revision", &status["sync"]["revision"]),
    ];
    for (field, is) in fields {
        let wants = &wanted[field];
        ensure!(wants.is_null() || wants == is, "{field} is {is}");
    }
    Ok(())
}
