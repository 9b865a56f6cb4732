//! Tokens for AKS with Entra ID, configured by `kubelogin`'s environment variables.
//!
//! Main function: [`token`]: workload identity, client secret, or managed identity
//! (`AAD_LOGIN_METHOD`).

use crate::{CloudError, Env, Grant, Token, read, web};

/// The application id of the AKS server, which is the same in every tenant.
const SERVER: &str = "6dae42f8-4368-4678-94ff-3960e28e3630";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// # Errors
/// The text has no secrets.
pub async fn token(env: &Env) -> Result<Token, CloudError> {
    let server = env
        .get("AAD_SERVER_APPLICATION_ID")
        .unwrap_or_else(|| SERVER.to_owned());
    let client = || {
        env.get("AZURE_CLIENT_ID")
            .or_else(|| env.get("AAD_SERVICE_PRINCIPAL_CLIENT_ID"))
            .ok_or_else(|| CloudError::settings("AZURE_CLIENT_ID is not set"))
    };
    let answer = match env
        .get("AAD_LOGIN_METHOD")
        .as_deref()
        .unwrap_or("workloadidentity")
    {
        "workloadidentity" => {
            let assertion = read(&env.need("AZURE_FEDERATED_TOKEN_FILE")?).await?;
            grant(
                env,
                &server,
                &client()?,
                &[
                    ("client_assertion_type", ASSERTION),
                    ("client_assertion", &assertion),
                ],
            )
            .await?
        }
        "spn"
            if env
                .get("AAD_IS_POP_TOKEN_ENABLED")
                .is_some_and(|v| v == "true") =>
        {
            return Err(CloudError::settings(
                "AAD_IS_POP_TOKEN_ENABLED is not supported; tokens are plain ones",
            ));
        }
        "spn" => {
            let secret = env
                .get("AZURE_CLIENT_SECRET")
                .or_else(|| env.get("AAD_SERVICE_PRINCIPAL_CLIENT_SECRET"));
            let secret = secret.ok_or_else(|| {
                CloudError::settings(
                    "AZURE_CLIENT_SECRET is not set; an application's certificate is not supported",
                )
            })?;
            grant(env, &server, &client()?, &[("client_secret", &secret)]).await?
        }
        "msi" => of_machine(env, &server).await?,
        other => {
            return Err(CloudError::settings(format!(
                "AAD_LOGIN_METHOD {other} is not supported; use workloadidentity, spn or msi"
            )));
        }
    };
    web::json::<Grant>(&answer)?.token()
}

/// A client credentials grant.
async fn grant(
    env: &Env,
    server: &str,
    client: &str,
    proof: &[(&str, &str)],
) -> Result<String, CloudError> {
    let scope = format!("{}/.default", server.trim_end_matches('/'));
    let mut fields = vec![
        ("grant_type", "client_credentials"),
        ("client_id", client),
        ("scope", &scope),
    ];
    fields.extend(proof);
    let url = format!(
        "{}/{}/oauth2/v2.0/token",
        authority(env).trim_end_matches('/'),
        env.need("AZURE_TENANT_ID")?
    );
    web::send(web::post(&url, &[], &fields)?).await
}

fn authority(env: &Env) -> String {
    env.get("AZURE_AUTHORITY_HOST").unwrap_or_else(|| {
        let host = match env
            .get("AAD_ENVIRONMENT_NAME")
            .unwrap_or_default()
            .to_uppercase()
            .as_str()
        {
            "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => "https://login.microsoftonline.us",
            "AZURECHINACLOUD" => "https://login.chinacloudapi.cn",
            _ => "https://login.microsoftonline.com",
        };
        host.to_owned()
    })
}

async fn of_machine(env: &Env, server: &str) -> Result<String, CloudError> {
    let host = env
        .get("AZURE_POD_IDENTITY_AUTHORITY_HOST")
        .unwrap_or_else(|| "http://169.254.169.254".to_owned());
    let mut fields = vec![
        ("api-version", "2018-02-01".to_owned()),
        ("resource", server.to_owned()),
    ];
    fields.extend(
        env.get("AZURE_CLIENT_ID")
            .map(|client| ("client_id", client)),
    );
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let url = format!(
        "{}/metadata/identity/oauth2/token?{}",
        host.trim_end_matches('/'),
        web::form(&fields)
    );
    web::send_here(web::get(&url, &[("metadata", "true")])?).await
}
