//! `proj role create-token`, `list-tokens` and `delete-token`: the tokens of a project's role.

use super::role::{RoleArgs, find};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{claims::Claims, connect, lifetime, prompt},
    output::{self, table, time},
};
use jiff::Timestamp;
use tiphys_api::{
    project::{AppProject, JWTToken},
    rpc::project::{
        EmptyResponse, ProjectTokenCreateRequest, ProjectTokenDeleteRequest, ProjectTokenResponse,
    },
};

#[derive(clap::Subcommand)]
pub enum TokensCommand {
    /// Create a project token
    #[command(alias = "token-create")]
    CreateToken {
        #[command(flatten)]
        of: RoleArgs,
        /// Duration before the token will expire, e.g. "12h", "7d". (Default: No expiration)
        #[arg(long, short, value_name = "DURATION")]
        expires_in: Option<String>,
        /// Token unique identifier. (Default: Random UUID)
        #[arg(long, short, default_value = "", hide_default_value = true)]
        id: String,
        /// Output token only - for use in scripts.
        #[arg(long, short)]
        token_only: bool,
    },
    /// List tokens for a given role.
    #[command(aliases = ["list-token", "token-list"])]
    ListTokens {
        #[command(flatten)]
        of: RoleArgs,
        /// Print timestamps as Unix time instead of converting. Useful for piping into
        /// delete-token.
        #[arg(long, short)]
        unixtime: bool,
    },
    /// Delete a project token
    #[command(aliases = ["token-delete", "remove-token"])]
    DeleteToken {
        #[command(flatten)]
        of: RoleArgs,
        /// When the token was issued, in Unix time: see list-tokens
        #[arg(value_name = "ISSUED-AT")]
        issued_at: String,
    },
}

impl TokensCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::CreateToken {
                of,
                expires_in,
                id,
                token_only,
            } => {
                let lifetime = expires_in.filter(|text| !text.is_empty());
                let request = ProjectTokenCreateRequest {
                    project: of.project,
                    role: of.role,
                    expires_in: lifetime.map_or(Ok(0), |text| lifetime::seconds(&text))?,
                    id,
                    description: String::new(),
                };
                let answer: ProjectTokenResponse = connect(args)
                    .await?
                    .unary("/project.ProjectService/CreateToken", request)
                    .await?;
                output::print(&created(&answer.token, token_only)?);
                Ok(())
            }
            Self::ListTokens { of, unixtime } => {
                let project = super::get(&connect(args).await?, of.project).await?;
                output::print(&list(&project, &of.role, unixtime)?);
                Ok(())
            }
            Self::DeleteToken { of, issued_at } => delete(args, of, &issued_at).await,
        }
    }
}

async fn delete(args: &ConnectArgs, of: RoleArgs, issued_at: &str) -> Result<(), Failure> {
    let iat = issued_at.parse().map_err(|_| {
        Failure::error(format!(
            "strconv.ParseInt: parsing {issued_at:?}: invalid syntax"
        ))
    })?;
    let question = format!("Are you sure you want to delete '{issued_at}' project token? [y/n]");
    if args.prompts()? && !prompt::proceed(&question)? {
        output::print(&format!(
            "The command to delete project token '{issued_at}' was cancelled.\n"
        ));
        return Ok(());
    }
    let request = ProjectTokenDeleteRequest {
        project: of.project,
        role: of.role,
        iat,
        id: String::new(),
    };
    let _: EmptyResponse = connect(args)
        .await?
        .unary("/project.ProjectService/DeleteToken", request)
        .await?;
    Ok(())
}

/// The tokens of a role, the newest first. A server may list each of them twice: in the status and
/// in the spec.
pub(super) fn of(project: &AppProject, role: &str) -> Vec<JWTToken> {
    let mut tokens: Vec<JWTToken> = Vec::new();
    for token in tiphys_rbac::tokens(project, role) {
        if !tokens.contains(token) {
            tokens.push(token.clone());
        }
    }
    tokens.sort_by_key(|token| std::cmp::Reverse(token.iat));
    tokens
}

fn list(project: &AppProject, role: &str, unixtime: bool) -> Result<String, Failure> {
    find(project, role)?;
    let tokens = of(project, role);
    if tokens.is_empty() {
        return Ok(format!("No tokens for {}.{role}\n", project.metadata.name));
    }
    let shown = |second: i64| match unixtime {
        true => second.to_string(),
        false => at(second),
    };
    let mut text = "ID\tISSUED AT\tEXPIRES AT\n".to_owned();
    for token in tokens {
        text.push_str(&format!(
            "{}\t{}\t{}\n",
            token.id,
            shown(token.iat),
            shown(token.exp)
        ));
    }
    Ok(table::align_apart(&text, 4))
}

fn at(second: i64) -> String {
    match second {
        ..=0 => "Never".to_owned(),
        _ => Timestamp::from_second(second).map_or_else(|_| second.to_string(), time::rfc3339),
    }
}

fn created(token: &str, token_only: bool) -> Result<String, Failure> {
    if token_only {
        return Ok(format!("{token}\n"));
    }
    let claims = Claims::read(token).ok_or_else(|| Failure::error("received malformed token"))?;
    let at = |name| at(claims.second(name).unwrap_or_default());
    Ok(format!(
        "Create token succeeded for {}.\n  ID: {}\n  Issued At: {}\n  Expires At: {}\n  Token: {token}\n",
        claims.user(),
        claims.text("jti"),
        at("iat"),
        at("exp")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_token() {
        let claims = r#"{"sub":"proj:p:dev","jti":"first","iat":1700000000,"iss":"argocd"}"#;
        let token = crate::commands::claims::token(claims);
        let issued = at(1_700_000_000);
        assert_eq!(
            created(&token, false).ok(),
            Some(format!(
                "Create token succeeded for proj:p:dev.\n  ID: first\n  Issued At: {issued}\n  \
                 Expires At: Never\n  Token: {token}\n"
            ))
        );
        assert_eq!(created(&token, true).ok(), Some(format!("{token}\n")));
        assert_eq!(
            created("nonsense", false).map_err(|e| e.message),
            Err("received malformed token".to_owned())
        );
    }

    #[test]
    fn tokens_of_a_role_are_listed_once() {
        let token = |id: &str, iat: i64| json!({"id": id, "iat": iat, "exp": 0});
        let mut p: AppProject = serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"roles": [
                {"name": "dev", "jwtTokens": [token("old", 1), token("both", 2)]},
                {"name": "none"},
            ]},
            "status": {"jwtTokensByRole": {"dev": {"items": [token("both", 2), token("new", 3)]}}},
        }))
        .expect("a project");
        let ids: Vec<String> = of(&p, "dev").into_iter().map(|t| t.id).collect();
        assert_eq!(ids, ["new", "both", "old"]);
        let rows = "ID      ISSUED AT    EXPIRES AT\nnew     3            0\n\
                    both    2            0\nold     1            0\n";
        assert_eq!(list(&p, "dev", true).ok().as_deref(), Some(rows));
        let none = list(&p, "none", false).ok();
        assert_eq!(none.as_deref(), Some("No tokens for p.none\n"));
        let unknown = list(&p, "nope", false).map_err(|e| (e.code, e.message));
        let message = "role 'nope' does not exist in project 'p'";
        assert_eq!(unknown, Err((20, message.to_owned())));
        p.spec.roles.clear();
        assert!(list(&p, "dev", true).is_err(), "its role is gone");
    }
}
