//! `account`: who is logged in, and what accounts may do.

use super::connect;
use crate::{
    client::{ConnectArgs, Failure},
    output::{self, table},
};
use tiphys_api::rpc::{
    account::{AccountsList, CanIRequest, CanIResponse, ListAccountRequest},
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
    },
    /// Can I
    CanI {
        action: String,
        resource: String,
        /// What the action is on
        subresource: String,
    },
}

impl AccountCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let text = match self {
            Self::GetUserInfo { output } => user_info(
                &client
                    .unary("/session.SessionService/GetUserInfo", GetUserInfoRequest {})
                    .await?,
                &output,
            )?,
            Self::List { output } => {
                let list: AccountsList = client
                    .unary(
                        "/account.AccountService/ListAccounts",
                        ListAccountRequest {},
                    )
                    .await?;
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
        };
        output::print(&text);
        Ok(())
    }
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
