//! `proj`: projects, which define what Applications may use. Main type: [`ProjCommand`].
//!
//! Most verbs read a project, change it and write it back: [`change`] does that once for all, and
//! each verb is a function on the project, whose result is a [`Change`].

mod create;
mod edit;
mod integrity;
mod keys;
pub(super) mod options;
mod places;
mod resources;
mod role;
mod show;
mod tokens;
mod windows;

use super::{connect, prompt};
use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{self, sort::SortBy},
};
use tiphys_api::{
    project::{AppProject, AppProjectList},
    rpc::project::{DetailedProjectsResponse, EmptyResponse, ProjectQuery, ProjectUpdateRequest},
};

#[derive(clap::Subcommand)]
pub enum ProjCommand {
    /// List projects
    List {
        /// Output format. One of: json|yaml|wide|name
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Get project details
    Get {
        /// The project
        name: String,
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
    },
    /// Create a project
    Create(Box<create::Create>),
    /// Set project parameters
    Set(Box<create::Set>),
    /// Edit project
    Edit(edit::Edit),
    /// Delete project
    Delete {
        /// Names of projects
        #[arg(value_name = "PROJECT", required = true)]
        names: Vec<String>,
    },
    #[command(flatten)]
    Places(places::PlacesCommand),
    #[command(flatten)]
    Resources(resources::ResourcesCommand),
    #[command(flatten)]
    Keys(keys::KeysCommand),
    /// Manage a project's roles
    #[command(subcommand)]
    Role(role::RoleCommand),
    /// Manage a project's sync windows
    #[command(subcommand)]
    Windows(windows::WindowsCommand),
    /// Manage criteria for source integrity
    #[command(subcommand)]
    SourceIntegrity(integrity::IntegrityCommand),
}

impl ProjCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::List { output, sort_by } => {
                let mut list: AppProjectList = connect(args)
                    .await?
                    .unary("/project.ProjectService/List", ProjectQuery::default())
                    .await?;
                sort_by.sort(&mut list.items, show::FIELDS)?;
                output::print(&show::list(&list.items, &output)?);
                Ok(())
            }
            Self::Get { name, output } => {
                let query = ProjectQuery { name };
                let all: DetailedProjectsResponse = connect(args)
                    .await?
                    .unary("/project.ProjectService/GetDetailedProject", query)
                    .await?;
                output::print(&show::one(all, &output)?);
                Ok(())
            }
            Self::Create(c) => c.run(args).await,
            Self::Set(c) => c.run(args).await,
            Self::Edit(c) => c.run(args).await,
            Self::Delete { names } => delete(args, names).await,
            Self::Places(c) => c.run(args).await,
            Self::Resources(c) => c.run(args).await,
            Self::Keys(c) => c.run(args).await,
            Self::Role(c) => c.run(args).await,
            Self::Windows(c) => c.run(args).await,
            Self::SourceIntegrity(c) => c.run(args).await,
        }
    }
}

async fn delete(args: &ConnectArgs, names: Vec<String>) -> Result<(), Failure> {
    let asks = args.prompts()?;
    let client = connect(args).await?;
    for name in names {
        let question = format!("Are you sure you want to delete {name}? [y/n]");
        if asks && !prompt::proceed(&question)? {
            output::print(&format!("The command to delete {name} was cancelled.\n"));
            continue;
        }
        let query = ProjectQuery { name };
        let _: EmptyResponse = client
            .unary("/project.ProjectService/Delete", query)
            .await?;
    }
    Ok(())
}

/// What a verb has made of a project. Texts are printed as they are, with their line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// The project is to be saved; the text is printed then.
    Save(String),
    /// It is to be saved if the user agrees, who is asked only with prompts enabled.
    Confirm {
        question: String,
        done: String,
        cancelled: String,
    },
    /// There is nothing to save.
    Keep(String),
}

impl Change {
    /// Saved without a word.
    fn silent() -> Self {
        Self::Save(String::new())
    }
}

/// Reads a project, changes it, and writes it back unless there is nothing to save.
async fn change(
    args: &ConnectArgs,
    name: String,
    change: impl FnOnce(&mut AppProject) -> Result<Change, Failure>,
) -> Result<(), Failure> {
    let client = connect(args).await?;
    let mut project = get(&client, name).await?;
    let text = match change(&mut project)? {
        Change::Keep(text) => text,
        Change::Confirm {
            question,
            cancelled,
            ..
        } if args.prompts()? && !prompt::proceed(&question)? => cancelled,
        Change::Save(done) | Change::Confirm { done, .. } => {
            save(&client, project).await?;
            done
        }
    };
    output::print(&text);
    Ok(())
}

async fn get(client: &Client, name: String) -> Result<AppProject, Failure> {
    let query = ProjectQuery { name };
    Ok(client.unary("/project.ProjectService/Get", query).await?)
}

async fn save(client: &Client, project: AppProject) -> Result<AppProject, Failure> {
    let request = ProjectUpdateRequest {
        project: Some(project),
    };
    Ok(client
        .unary("/project.ProjectService/Update", request)
        .await?)
}

/// The number of an item, as Go's `strconv.Atoi` reads it.
fn number(text: &str) -> Result<usize, Failure> {
    let why = match text.parse::<i64>() {
        // Nothing has a negative number.
        Ok(n) => return Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        Err(e)
            if matches!(
                e.kind(),
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
            ) =>
        {
            "value out of range"
        }
        Err(_) => "invalid syntax",
    };
    Err(Failure::error(format!(
        "strconv.Atoi: parsing {text:?}: {why}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_items() {
        let read = |text| number(text).map_err(|e| (e.code, e.message));
        assert_eq!(read("2"), Ok(2));
        assert_eq!(read("+0"), Ok(0));
        assert_eq!(read("-1"), Ok(usize::MAX), "there is no such item");
        for (text, why) in [
            ("x", "invalid syntax"),
            ("", "invalid syntax"),
            ("1.0", "invalid syntax"),
            ("99999999999999999999", "value out of range"),
        ] {
            let message = format!("strconv.Atoi: parsing \"{text}\": {why}");
            assert_eq!(read(text), Err((20, message)));
        }
    }
}
