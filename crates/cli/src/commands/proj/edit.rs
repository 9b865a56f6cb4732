//! `proj edit`.

use super::{get, save};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{connect, edit},
    output,
};
use tiphys_api::project::AppProjectSpec;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

#[derive(clap::Args)]
pub struct Edit {
    /// The project
    #[arg(value_name = "PROJECT")]
    name: String,
}

impl Edit {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let text = output::yaml(&get(&client, self.name.clone()).await?.spec)?;
        edit::until_saved(&text, &self.name, async |text| {
            let spec = spec(&text)?;
            // Only the spec is the user's: the rest may have changed meanwhile.
            let mut project = get(&client, self.name.clone())
                .await
                .map_err(|e| format!("could not get project by project name: {e}"))?;
            project.spec = spec;
            let saved = save(&client, project).await;
            saved
                .map(drop)
                .map_err(|e| format!("failed to update project:\n{e}"))
        })
        .await
    }
}

fn spec(text: &str) -> Result<AppProjectSpec, String> {
    let value = yaml::parse_document(text.as_bytes(), &Limits::default(), Duplicates::LastWins)
        .map_err(|e| format!("error converting YAML to JSON: {e}"))?;
    if value.is_null() {
        return Ok(AppProjectSpec::default());
    }
    serde_json::from_value(value)
        .map_err(|e| format!("error unmarshaling input into project spec: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote() {
        assert_eq!(
            spec("description: d\n").map(|s| s.description),
            Ok("d".into())
        );
        assert_eq!(spec("\n"), Ok(AppProjectSpec::default()));
        let why = |text| spec(text).err().unwrap_or_default();
        assert!(why("a: [").starts_with("error converting YAML to JSON: "));
        assert!(why("sourceRepos: x").starts_with("error unmarshaling input into project spec: "));
    }
}
