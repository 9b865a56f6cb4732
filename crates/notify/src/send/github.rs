//! GitHub, as an App: commit statuses, deployments, comments, check runs and dispatches.

use super::http::{Request, exchange, query, succeed};
use super::{SendError, Sent, World, config};
use crate::notification::Part;
use crate::typed::{TypeError, Typed};
use crate::{Notification, Service, urls};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use rsa::{
    RsaPrivateKey,
    pkcs1::DecodeRsaPrivateKey,
    pkcs1v15::SigningKey,
    pkcs8::DecodePrivateKey,
    sha2::Sha256,
    signature::{SignatureEncoding, Signer},
};
use serde_json::{Map, Value as Json, json};
use tiphys_gocompat::url::Url;

/// Longest description of a status.
const DESCRIPTION: usize = 140;
/// Longest comment.
const COMMENT: usize = 65_536;

/// # Errors
/// If the private key of the App is not one.
pub(crate) fn check(service: &Service) -> Typed<()> {
    key(service)
        .map(drop)
        .map_err(|error| TypeError(error.to_string()))
}

fn key(service: &Service) -> Result<RsaPrivateKey, SendError> {
    let pem = service.text("privateKey");
    RsaPrivateKey::from_pkcs1_pem(pem)
        .ok()
        .or_else(|| RsaPrivateKey::from_pkcs8_pem(pem).ok())
        .map_or_else(|| config("privateKey is not an RSA key in PEM"), Ok)
}

/// A conversation about one commit of one repository.
struct Talk<'t, 'w> {
    service: &'t Service,
    api: String,
    token: String,
    repo: String,
    revision: String,
    world: &'t mut World<'w>,
}

pub(super) fn send(service: &Service, notification: &Notification, world: &mut World<'_>) -> Sent {
    let Some(part) = notification.part("github") else {
        return config("config is empty");
    };
    let url = part.text("$repoURLPath");
    let name = urls::full_name(url).or_else(config)?;
    if !name.contains('/') {
        return config(format!("GitHub.repoURL ({url}) does not have a `/`"));
    }
    let api = match service.text("enterpriseBaseURL") {
        "" => "https://api.github.com".to_owned(),
        own => enterprise(own),
    };
    let token = token(service, &api, world)?;
    let mut talk = Talk {
        service,
        repo: format!("{api}/repos/{name}"),
        api,
        token,
        revision: part.text("$revisionPath").to_owned(),
        world,
    };
    let description = cut(&notification.message, DESCRIPTION);
    if let Some(status) = part.part("status") {
        talk.status(status, &description)?;
    }
    if let Some(deployment) = part.part("deployment") {
        talk.deployment(deployment, &description)?;
    }
    if let Some(comment) = part.part("pullRequestComment") {
        talk.comment(comment)?;
    }
    if let Some(run) = part.part("checkRun") {
        talk.check_run(run)?;
    }
    if let Some(dispatch) = part.part("repositoryDispatch") {
        talk.dispatch(dispatch)?;
    }
    Ok(())
}

/// The address of the API of a GitHub Enterprise server: below the one that is named, unless that is
/// it already.
fn enterprise(named: &str) -> String {
    let named = named.trim_end_matches('/');
    let host = Url::parse(named.as_bytes()).map(|url| url.host);
    let host = String::from_utf8(host.unwrap_or_default()).unwrap_or_default();
    let is_api = named.ends_with("/api/v3") || host.starts_with("api.") || host.contains(".api.");
    match is_api {
        true => named.to_owned(),
        false => format!("{named}/api/v3"),
    }
}

/// A token of the App's installation.
fn token(service: &Service, api: &str, world: &mut World<'_>) -> Result<String, SendError> {
    let now = world.now.as_second();
    let part = |value: &Json| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(&json!({"alg": "RS256", "typ": "JWT"}));
    let claims = part(&json!({
        "iat": now - 60,
        "exp": now + 120,
        "iss": service.integer("appID").to_string(),
    }));
    let signing = SigningKey::<Sha256>::new(key(service)?);
    let text = format!("{head}.{claims}");
    let signature = URL_SAFE_NO_PAD.encode(signing.sign(text.as_bytes()).to_bytes());
    let id = service.integer("installationID");
    let request = Request::post(format!("{api}/app/installations/{id}/access_tokens"))
        .header("Content-Type", "application/json")
        .bearer(&format!("{text}.{signature}"))
        .insecure(service.flag("insecureSkipVerify"))
        .body("null\n");
    let answer = succeed(world.transport, &request)?.json();
    match answer["token"].as_str() {
        Some(token) => Ok(token.to_owned()),
        None => super::upstream("GitHub's answer has no token"),
    }
}

/// At most so many characters, with dots at the end of what was longer.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 3).collect();
    format!("{start}...")
}

impl Talk<'_, '_> {
    fn request(&self, method: &str, url: String) -> Request {
        Request::new(method, url)
            .header("Authorization", format!("token {}", self.token))
            .header("X-Github-Api-Version", "2022-11-28")
            .insecure(self.service.flag("insecureSkipVerify"))
    }

    fn get(&mut self, path: &str) -> Result<Vec<Json>, SendError> {
        let request = self.request("GET", format!("{}/{path}", self.repo));
        let answer = succeed(self.world.transport, &request)?.json();
        match answer {
            Json::Array(items) => Ok(items),
            _ => super::upstream(format!("the answer of {} is not a list", self.api)),
        }
    }

    fn write(&mut self, method: &str, path: &str, body: &Json) -> Result<Json, SendError> {
        let url = format!("{}/{path}", self.repo);
        let request = self.request(method, url).json(body);
        Ok(succeed(self.world.transport, &request)?.json())
    }

    fn status(&mut self, part: Part<'_>, description: &str) -> Sent {
        let body = json!({
            "state": part.text("state"),
            "target_url": part.text("targetURL"),
            "description": description,
            "context": part.text("label"),
        });
        let url = format!("{}/statuses/{}", self.repo, self.revision);
        let request = self.request("POST", url).json(&body);
        let answer = exchange(self.world.transport, &request)?;
        if answer.status == 422 {
            return Err(SendError::TooMany(format!(
                "too many commit statuses for sha {} and context {}",
                self.revision,
                part.text("label")
            )));
        }
        if answer.is_success() {
            return Ok(());
        }
        super::upstream(super::http::failed(&request, &answer))
    }

    fn deployment(&mut self, part: Part<'_>, description: &str) -> Sent {
        let environment = part.text("environment");
        let mut fields = vec![("ref", self.revision.as_str())];
        if !environment.is_empty() {
            fields.push(("environment", environment));
        }
        let path = format!("deployments?{}", query(&fields));
        let known = self.get(&path)?;
        let deployment = match known.into_iter().next() {
            Some(deployment) => deployment,
            None => {
                let of = |name: &str| part.get(name).cloned().unwrap_or_default();
                let reference = match part.text("reference") {
                    "" => self.revision.clone(),
                    own => own.to_owned(),
                };
                let body = json!({
                    "ref": reference,
                    "environment": environment,
                    "required_contexts": of("requiredContexts"),
                    "auto_merge": of("autoMerge"),
                    "transient_environment": of("transientEnvironment"),
                });
                self.write("POST", "deployments", &body)?
            }
        };
        let Some(id) = deployment["id"].as_i64() else {
            return super::upstream("GitHub's deployment has no id");
        };
        let body = json!({
            "state": part.text("state"),
            "log_url": part.text("logURL"),
            "description": description,
            "environment": environment,
            "environment_url": part.text("environmentURL"),
        });
        self.write("POST", &format!("deployments/{id}/statuses"), &body)
            .map(drop)
    }

    /// Comments each pull request of the commit; a comment with the same tag is replaced.
    fn comment(&mut self, part: Part<'_>) -> Sent {
        let name = part.text("commentTag");
        let tag = format!("<!-- argocd-notifications {name} -->");
        let mut content = part.text("content").to_owned();
        if !name.is_empty() {
            content = format!("{content}\n{tag}");
        }
        let mut body = cut(&content, COMMENT);
        for pull in self.get(&format!("commits/{}/pulls", self.revision))? {
            let number = pull["number"].as_i64().unwrap_or_default();
            let comments = format!("issues/{number}/comments");
            if !name.is_empty() {
                let known = self.get(&comments)?;
                let own = known
                    .into_iter()
                    .find(|comment| comment["body"].as_str().is_some_and(|b| b.contains(&tag)));
                if let Some(mut own) = own {
                    own["body"] = format!("{body}\n{tag}").into();
                    let id = own["id"].as_i64().unwrap_or_default();
                    self.write("PATCH", &format!("issues/comments/{id}"), &own)?;
                    continue;
                }
                body = format!("{body}\n{tag}");
            }
            self.write("POST", &comments, &json!({"body": body}))?;
        }
        Ok(())
    }

    fn check_run(&mut self, part: Part<'_>) -> Sent {
        let conclusion = part.text("conclusion");
        let status = match part.text("status") {
            "" if !conclusion.is_empty() => "completed",
            own => own,
        };
        let completed = part.text("completed_at");
        if (status == "completed" || !completed.is_empty()) && conclusion.is_empty() {
            return config(
                "github checkrun: conclusion is required when status is completed or \
                 completed_at is set",
            );
        }
        let mut run = Map::new();
        run.insert("name".into(), part.text("name").into());
        run.insert("head_sha".into(), self.revision.as_str().into());
        run.insert("details_url".into(), part.text("details_url").into());
        run.insert("external_id".into(), "argocd-notifications".into());
        for (name, value) in [("status", status), ("conclusion", conclusion)] {
            if !value.is_empty() {
                run.insert(name.into(), value.into());
            }
        }
        for name in ["started_at", "completed_at"] {
            let text = part.text(name);
            if !text.is_empty() {
                if text.parse::<Timestamp>().is_err() {
                    return config(format!("{name} is not a time: {text}"));
                }
                run.insert(name.into(), text.into());
            }
        }
        if let Some(output) = part.part("output") {
            let of = |name: &str| output.text(name);
            let output = json!({
                "title": of("title"), "summary": of("summary"), "text": of("text"),
            });
            run.insert("output".into(), output);
        }
        self.write("POST", "check-runs", &run.into()).map(drop)
    }

    fn dispatch(&mut self, part: Part<'_>) -> Sent {
        let payload: Json = match serde_json::from_str(part.text("client_payload")) {
            Ok(payload) => payload,
            Err(error) => return config(format!("client_payload is not JSON: {error}")),
        };
        let body = json!({"event_type": part.text("event_type"), "client_payload": payload});
        self.write("POST", "dispatches", &body).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_of_an_enterprise_server_is_below_its_address() {
        for (named, api) in [
            (
                "https://ghe.example.test",
                "https://ghe.example.test/api/v3",
            ),
            (
                "https://ghe.example.test/",
                "https://ghe.example.test/api/v3",
            ),
            (
                "https://ghe.example.test/api/v3/",
                "https://ghe.example.test/api/v3",
            ),
            (
                "https://api.ghe.example.test",
                "https://api.ghe.example.test",
            ),
            (
                "https://acme.api.example.test",
                "https://acme.api.example.test",
            ),
        ] {
            assert_eq!(enterprise(named), api);
        }
    }
}
