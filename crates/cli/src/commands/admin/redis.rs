//! `admin redis-initial-password`: makes the Secret with Redis' password, where there is none. Main
//! type: [`RedisInitialPassword`].

use crate::{client::Failure, commands::apply::HintedError, kubectl::kube::KubeArgs, output};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use rand::{Rng as _, distr::Alphanumeric};
use serde_json::{Value, json};
use tiphys_cluster::{Error, apply, request::Call};

const SECRET: &str = "argocd-redis";
const KEY: &str = "auth";
/// Letters of a new password.
const LENGTH: usize = 16;
const CONFLICT: u16 = 409;

/// Ensure the Redis password exists, creating a new one if necessary.
#[derive(clap::Args)]
pub struct RedisInitialPassword {
    #[command(flatten)]
    kube: KubeArgs,
}

impl RedisInitialPassword {
    pub async fn run(self) -> Result<(), Failure> {
        let target = super::connect(&self.kube).await;
        let target = target.map_err(|e| super::failed(&e))?;
        let namespace = super::backup::namespace(&self.kube, &target);
        output::print(&format!(
            "Checking for initial Redis password in secret {namespace}/{SECRET} at key {KEY}. \n"
        ));
        let failed = |e| super::failed(&HintedError::from(apply::Failure::from(e)));
        let http = target.discovery.cluster().http();
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let made: Result<Value, _> = http.json(&created(path.clone(), &password())).await;
        match made {
            Ok(_) => {}
            Err(Error::Api(e)) if e.code == CONFLICT => {}
            Err(e) => return Err(failed(e)),
        }
        output::print(&format!(
            "Argo CD Redis secret state confirmed: secret name {SECRET}.\n"
        ));
        let found: Result<Value, _> = http.json(&Call::get(format!("{path}/{SECRET}"))).await;
        if found.map_err(failed)?["data"][KEY].is_string() {
            output::print("Password secret is configured properly.\n");
            return Ok(());
        }
        Err(Failure::error(format!(
            "key {KEY} doesn't exist in secret {SECRET}. \n"
        )))
    }
}

fn password() -> String {
    let letters = rand::rng().sample_iter(Alphanumeric).take(LENGTH);
    letters.map(char::from).collect()
}

fn created(path: String, password: &str) -> Call {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": SECRET}, "data": {KEY: STANDARD.encode(password)},
    });
    Call::new(Method::POST, path).with_body("application/json", secret.to_string())
}
