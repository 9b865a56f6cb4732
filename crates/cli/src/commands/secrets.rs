//! `account bcrypt` and `account session-token`, which ask no server.

use super::{claims::Claims, prompt};
use crate::{
    client::{ConnectArgs, Failure, LocalConfig},
    output::{self, time},
};
use jiff::Timestamp;
use serde::Serialize;

/// bcrypt reads no more of a password.
const LONGEST: usize = 72;
const ROUNDS: u32 = 10;

/// Prints the hash of a password, as argocd-secret has it; asks for it if there is none.
pub fn bcrypt(password: Option<String>) -> Result<(), Failure> {
    let password = match password.filter(|p| !p.is_empty()) {
        Some(password) => password,
        None => prompt::password()?,
    };
    output::print(&hash(&password, ROUNDS)?);
    Ok(())
}

fn hash(password: &str, rounds: u32) -> Result<String, Failure> {
    let failed = |why: String| Failure::fatal(format!("Failed to generate bcrypt hash: {why}"));
    if password.len() > LONGEST {
        return Err(failed(format!(
            "bcrypt: password length exceeds {LONGEST} bytes"
        )));
    }
    let parts = bcrypt::hash_with_result(password, rounds).map_err(|e| failed(e.to_string()))?;
    Ok(parts.format_for_version(bcrypt::Version::TwoA))
}

/// Prints the token of the current context.
pub fn session_token(args: &ConnectArgs, format: &str) -> Result<(), Failure> {
    // Without a server there is no session either.
    args.resolve()?;
    let config = LocalConfig::read(&args.config_path()?)?.ok_or_else(|| {
        Failure::fatal("No configuration found. Please login first with 'argocd login'")
    })?;
    let context = config.resolve(args.context_name())?;
    let now = Timestamp::now();
    let user = context.user;
    output::print(&shown(
        &user.auth_token,
        !user.refresh_token.is_empty(),
        format,
        now,
    )?);
    Ok(())
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    has_refresh_token: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_at: Option<String>,
    issuer: &'a str,
    token: &'a str,
    r#type: &'a str,
    username: &'a str,
}

fn shown(token: &str, has_refresh: bool, format: &str, now: Timestamp) -> Result<String, Failure> {
    if token.is_empty() {
        return Err(Failure::fatal(
            "No authentication token found. Please login first with 'argocd login'",
        ));
    }
    let claims = Claims::read(token)
        .ok_or_else(|| Failure::fatal("Invalid token format. Please run 'argocd relogin'"))?;
    let now = now.as_second();
    let is_over = claims.second("exp").is_some_and(|at| at <= now);
    let is_early = claims.second("nbf").is_some_and(|at| at > now);
    if is_over || is_early {
        return Err(Failure::fatal(
            "Token is invalid or expired. Please run 'argocd relogin'",
        ));
    }
    if format != "json" {
        return Ok(format!("{token}\n"));
    }
    let at = |name: &str| {
        let at = Timestamp::from_second(claims.second(name)?).ok()?;
        Some(time::rfc3339(at))
    };
    let issuer = claims.text("iss");
    output::json(&Shown {
        expires_at: at("exp"),
        has_refresh_token: has_refresh,
        issued_at: at("iat"),
        issuer,
        token,
        r#type: if issuer == "argocd" { "local" } else { "sso" },
        username: claims.user().split(':').next().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::claims::token;

    #[test]
    fn hashes_are_as_gos_are() {
        let made = hash("secret", 4).expect("it can be hashed");
        assert!(made.starts_with("$2a$04$") && made.len() == 60, "{made}");
        assert!(bcrypt::verify("secret", &made).expect("a hash"));
        let long = hash(&"x".repeat(73), 4).map_err(|e| (e.code, e.message));
        let why = "Failed to generate bcrypt hash: bcrypt: password length exceeds 72 bytes";
        assert_eq!(long, Err((1, why.to_owned())));
    }

    #[test]
    fn the_token_of_a_session() {
        let now = Timestamp::from_second(1_700_000_000).expect("a time");
        let show =
            |token: &str, format| shown(token, false, format, now).map_err(|e| (e.code, e.message));
        let good = token(r#"{"iss":"argocd","sub":"admin:login","iat":1699999000}"#);
        assert_eq!(show(&good, ""), Ok(format!("{good}\n")));
        let json = show(&good, "json").expect("a document");
        let expected = format!(
            "\"issuer\": \"argocd\",\n  \"token\": \"{good}\",\n  \"type\": \"local\",\n  \
             \"username\": \"admin\"\n}}\n"
        );
        assert!(json.ends_with(&expected), "{json}");
        assert!(json.starts_with("{\n  \"has_refresh_token\": false,\n  \"issued_at\": \"2023-"));
        for (token, message) in [
            (
                String::new(),
                "No authentication token found. Please login first with 'argocd login'",
            ),
            (
                "nonsense".to_owned(),
                "Invalid token format. Please run 'argocd relogin'",
            ),
            (
                token(r#"{"exp":1700000000}"#),
                "Token is invalid or expired. Please run 'argocd relogin'",
            ),
            (
                token(r#"{"nbf":1700000001}"#),
                "Token is invalid or expired. Please run 'argocd relogin'",
            ),
        ] {
            assert_eq!(show(&token, ""), Err((1, message.to_owned())));
        }
    }
}
