//! `account`: who is logged in, what accounts may do, their passwords and tokens.

use super::{connect, lifetime, prompt, relogin, secrets};
use crate::{
    client::{Client, ConnectArgs, Failure, LocalConfig},
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use jiff::Timestamp;
use tiphys_api::rpc::{
    account::{
        Account, AccountsList, CanIRequest, CanIResponse, CreateTokenRequest, CreateTokenResponse,
        DeleteTokenRequest, EmptyResponse, GetAccountRequest, ListAccountRequest,
        UpdatePasswordRequest, UpdatePasswordResponse,
    },
    session::{GetUserInfoRequest, GetUserInfoResponse},
};

#[derive(clap::Subcommand)]
pub enum AccountCommand {
    /// Get user info
    #[command(visible_alias = "whoami")]
    GetUserInfo {
        /// Output format. One of: yaml, json
        #[arg(
            long,
            short,
            default_value = "",
            hide_default_value = true,
            value_name = "FORMAT"
        )]
        output: String,
    },
    /// List accounts
    List {
        /// Output format. One of: json|yaml|wide|name
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Can I
    CanI {
        action: String,
        resource: String,
        /// What the action is on
        subresource: String,
    },
    /// Get account details
    Get {
        /// Account name. Defaults to the current account
        #[arg(long, short, value_name = "NAME")]
        account: Option<String>,
        /// Output format. One of: yaml, json, name
        #[arg(
            long,
            short,
            default_value = "",
            hide_default_value = true,
            value_name = "FORMAT"
        )]
        output: String,
    },
    /// Update an account's password
    #[command(after_help = "Examples:
  # Update the current user's password
  tiphys account update-password

  # Update the password of the account `bar`, without questions
  tiphys account update-password --account bar --current-password OWN --new-password NEW")]
    UpdatePassword {
        /// An account name that should be updated. Defaults to the current account
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Password of the currently logged on user
        #[arg(long, value_name = "PASSWORD")]
        current_password: Option<String>,
        /// New password you want to update to
        #[arg(long, value_name = "PASSWORD")]
        new_password: Option<String>,
    },
    /// Generate account token
    #[command(after_help = "Examples:
  # A token of the account `ci` that is valid for a week
  tiphys account generate-token --account ci --expires-in 168h")]
    GenerateToken {
        /// Account name. Defaults to the current account
        #[arg(long, short, value_name = "NAME")]
        account: Option<String>,
        /// How long the token is valid; 0s: for ever
        #[arg(long, short, default_value = "0s", value_name = "DURATION")]
        expires_in: String,
        /// Optional token id; a random one if there is none
        #[arg(long, default_value = "", hide_default_value = true)]
        id: String,
    },
    /// Generate bcrypt hash for any password
    Bcrypt {
        /// Password for which bcrypt hash is generated; prompted for if missing
        #[arg(long)]
        password: Option<String>,
    },
    /// Display current session token
    SessionToken {
        /// Output format (json)
        #[arg(
            long,
            short,
            default_value = "",
            hide_default_value = true,
            value_name = "FORMAT"
        )]
        output: String,
    },
    /// Deletes account token
    DeleteToken {
        /// The token's id
        id: String,
        /// Account name. Defaults to the current account
        #[arg(long, short, value_name = "NAME")]
        account: Option<String>,
    },
}

impl AccountCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Bcrypt { password } => secrets::bcrypt(password),
            Self::SessionToken { output } => secrets::session_token(args, &output),
            other => other.ask(args).await,
        }
    }

    /// The verbs that ask a server.
    async fn ask(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let text = match self {
            Self::Bcrypt { .. } | Self::SessionToken { .. } => String::new(),
            Self::GetUserInfo { output } => user_info(
                &client
                    .unary("/session.SessionService/GetUserInfo", GetUserInfoRequest {})
                    .await?,
                &output,
            )?,
            Self::List { output, sort_by } => {
                let mut list: AccountsList = client
                    .unary(
                        "/account.AccountService/ListAccounts",
                        ListAccountRequest {},
                    )
                    .await?;
                sort_by.sort(&mut list.items, FIELDS)?;
                accounts(&list, &output)?
            }
            Self::CanI {
                action,
                resource,
                subresource,
            } => {
                let request = CanIRequest {
                    resource,
                    action,
                    subresource,
                };
                let answer: CanIResponse = client
                    .unary("/account.AccountService/CanI", request)
                    .await?;
                answer.value + "\n"
            }
            Self::Get { account, output } => {
                let name = name(&client, account).await?;
                let found: Account = client
                    .unary(
                        "/account.AccountService/GetAccount",
                        GetAccountRequest { name },
                    )
                    .await?;
                details(&found, &output)?
            }
            Self::UpdatePassword {
                account,
                current_password,
                new_password,
            } => {
                return update_password(args, &client, account, current_password, new_password)
                    .await;
            }
            Self::GenerateToken {
                account,
                expires_in,
                id,
            } => {
                let request = CreateTokenRequest {
                    expires_in: lifetime::seconds(&expires_in)?,
                    name: name(&client, account).await?,
                    id,
                };
                let answer: CreateTokenResponse = client
                    .unary("/account.AccountService/CreateToken", request)
                    .await?;
                answer.token + "\n"
            }
            Self::DeleteToken { id, account } => {
                let name = name(&client, account).await?;
                let question = format!("Are you sure you want to delete '{id}' token? [y/n]");
                if args.prompts()? && !prompt::proceed(&question)? {
                    format!("The command to delete '{id}' was cancelled.\n")
                } else {
                    let request = DeleteTokenRequest { name, id };
                    let _: EmptyResponse = client
                        .unary("/account.AccountService/DeleteToken", request)
                        .await?;
                    String::new()
                }
            }
        };
        output::print(&text);
        Ok(())
    }
}

async fn caller(client: &Client) -> Result<GetUserInfoResponse, Failure> {
    Ok(client
        .unary("/session.SessionService/GetUserInfo", GetUserInfoRequest {})
        .await?)
}

/// The account that is meant: the caller's own, unless one is named.
async fn name(client: &Client, named: Option<String>) -> Result<String, Failure> {
    match named {
        Some(name) => Ok(name),
        None => Ok(caller(client).await?.username),
    }
}

fn asked(given: Option<String>, label: &str) -> Result<String, Failure> {
    let given = given.filter(|given| !given.is_empty());
    given.map_or_else(|| prompt::secret(label), Ok)
}

/// Changes a password. Changing one's own ends the session, so a new one takes its place.
async fn update_password(
    args: &ConnectArgs,
    client: &Client,
    account: Option<String>,
    current: Option<String>,
    new: Option<String>,
) -> Result<(), Failure> {
    let caller = caller(client).await?;
    let name = account.unwrap_or_else(|| caller.username.clone());
    let is_own = name == caller.username && caller.iss == relogin::ISSUER;
    let current_label = format!(
        "*** Enter password of currently logged in user ({})",
        caller.username
    );
    let current_password = asked(current, &current_label)?;
    let new_password = asked(new, &format!("*** Enter new password for user {name}"))?;
    let request = UpdatePasswordRequest {
        name,
        current_password,
        new_password: new_password.clone(),
    };
    let _: UpdatePasswordResponse = client
        .unary("/account.AccountService/UpdatePassword", request)
        .await?;
    output::print("Password updated\n");
    if is_own && LocalConfig::read(&args.config_path()?)?.is_some() {
        relogin::renew(args, new_password).await?;
    }
    Ok(())
}

fn details(account: &Account, format: &str) -> Result<String, Failure> {
    match format {
        "yaml" | "json" => output::document(account, format),
        "name" => Ok(account.name.clone() + "\n"),
        "wide" | "" => {
            let mut text = String::new();
            for (label, value) in [
                ("Name:", account.name.clone()),
                ("Enabled:", account.enabled.to_string()),
                ("Capabilities:", account.capabilities.join(", ")),
            ] {
                text.push_str(&format!("{label:<20}{value}\n"));
            }
            text.push_str("\nTokens:\n");
            if account.tokens.is_empty() {
                return Ok(text + "NONE\n");
            }
            let now = Timestamp::now().as_second();
            let rows = account.tokens.iter().map(|token| {
                let expires = match token.expires_at {
                    0 => "never".to_owned(),
                    at if at < now => format!("{} (expired)", time(at)),
                    at => time(at),
                };
                vec![token.id.clone(), time(token.issued_at), expires]
            });
            Ok(text + &table::table(&["ID", "ISSUED AT", "EXPIRING AT"], rows))
        }
        other => Err(output::unknown_format(other)),
    }
}

fn time(second: i64) -> String {
    Timestamp::from_second(second).map_or_else(|_| second.to_string(), |at| at.to_string())
}

fn user_info(info: &GetUserInfoResponse, format: &str) -> Result<String, Failure> {
    match format {
        "" if !info.logged_in => Ok("Logged In: false\n".into()),
        "" => Ok(format!(
            "Logged In: true\nUsername: {}\nIssuer: {}\nGroups: {}\n",
            info.username,
            info.iss,
            info.groups.join(",")
        )),
        "yaml" => Ok(output::yaml(info)? + "\n"),
        "json" => output::json(info),
        other => Err(Failure::fatal(format!("Unknown output format: {other}"))),
    }
}

const FIELDS: &[Field<Account>] = &[
    ("name", |account| account.name.as_str().into()),
    ("enabled", |account| account.enabled.into()),
    ("capabilities", |account| {
        account.capabilities.join(", ").into()
    }),
];

fn accounts(list: &AccountsList, format: &str) -> Result<String, Failure> {
    match format {
        "yaml" | "json" => output::document(&list.items, format),
        "name" => Ok(list.items.iter().map(|a| a.name.clone() + "\n").collect()),
        "wide" | "" => {
            let rows = list.items.iter().map(|a| {
                vec![
                    a.name.clone(),
                    a.enabled.to_string(),
                    a.capabilities.join(", "),
                ]
            });
            Ok(table::table(&["NAME", "ENABLED", "CAPABILITIES"], rows))
        }
        other => Err(output::unknown_format(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_shown_in_the_formats_of_argocd() {
        let account = Account {
            name: "ann".to_owned(),
            enabled: true,
            ..Account::default()
        };
        let shown = |format: &str| details(&account, format).map_err(|e| e.message);
        assert_eq!(shown("wide"), shown(""));
        assert!(shown("wide").is_ok_and(|text| text.starts_with("Name:               ann\n")));
        assert_eq!(shown("name"), Ok("ann\n".to_owned()));
        assert_eq!(shown("nope"), Err("unknown output format: nope".to_owned()));
    }
}
