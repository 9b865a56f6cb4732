//! `admin app` and `admin proj`, and their commands `generate-spec`: manifests from flags, for a
//! repository.

use crate::{
    client::Failure,
    commands::{
        app::create::Create,
        proj::options::{ProjectOptions, project},
    },
    output,
};
use serde::Serialize;
use std::fs;

#[derive(clap::Subcommand)]
pub enum AppSpecCommand {
    GetReconcileResults(Box<super::reconcile::GetResults>),
    DiffReconcileResults(super::reconcile::DiffResults),
    /// Generate declarative config for an application
    GenerateSpec {
        #[command(flatten)]
        create: Box<Create>,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(clap::Subcommand)]
pub enum ProjSpecCommand {
    UpdateRolePolicy(Box<super::project_policies::UpdatePolicy>),
    GenerateAllowList(Box<super::project_policies::AllowList>),
    /// Generate declarative config for a project
    GenerateSpec {
        /// Name of the project
        #[arg(value_name = "PROJECT")]
        names: Vec<String>,
        /// Filename or URL to Kubernetes manifests for the project
        #[arg(long, short, value_name = "FILE")]
        file: Option<String>,
        #[command(flatten)]
        options: Box<ProjectOptions>,
        #[command(flatten)]
        target: Target,
    },
}

/// Where and how it is written.
#[derive(clap::Args)]
pub struct Target {
    /// Output format. One of: json|yaml
    #[arg(long, short, default_value = "yaml", value_name = "FORMAT")]
    output: String,
    /// If set then generated resource is written back to the file specified in --file flag
    #[arg(long, short)]
    inline: bool,
}

impl AppSpecCommand {
    pub async fn run(self) -> Result<(), Failure> {
        let (mut create, target) = match self {
            Self::GetReconcileResults(command) => return command.run().await,
            Self::DiffReconcileResults(command) => return command.run(),
            Self::GenerateSpec { create, target } => (create, target),
        };
        let apps = create.applications().await?;
        let [app] = apps.as_slice() else {
            return Err(Failure::error(
                "failed to generate spec, more than one application is not supported",
            ));
        };
        target.write(app, create.file())
    }
}

impl ProjSpecCommand {
    pub async fn run(self) -> Result<(), Failure> {
        let (names, file, options, target) = match self {
            Self::UpdateRolePolicy(command) => return command.run().await,
            Self::GenerateAllowList(command) => return command.run().await,
            Self::GenerateSpec {
                names,
                file,
                options,
                target,
            } => (names, file, options, target),
        };
        let project = project(&names, file.as_deref(), &options).await?;
        target.write(&project, file.as_deref())
    }
}

impl Target {
    fn write(&self, object: &impl Serialize, file: Option<&str>) -> Result<(), Failure> {
        let text = self.text(object)?;
        if !self.inline {
            output::print(&text);
            return Ok(());
        }
        let file = file
            .filter(|file| !file.is_empty())
            .ok_or_else(|| Failure::error("the file path must be specified using flag '--file'"))?;
        // What was there stays beside it.
        fs::rename(file, format!("{file}.back"))
            .and_then(|()| fs::write(file, text))
            .map_err(|e| Failure::file(file, &e))
    }

    fn text(&self, object: &impl Serialize) -> Result<String, Failure> {
        output::document(&output::declared(object)?, &self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};
    use serde_json::Value;
    use std::path::Path;

    #[derive(Parser)]
    enum Program {
        #[command(subcommand)]
        App(AppSpecCommand),
        #[command(subcommand)]
        Proj(ProjSpecCommand),
    }

    async fn run(words: &[&str]) -> Result<(), (u8, String)> {
        let matches = crate::flags::adapt(Program::command())
            .try_get_matches_from([&["admin"], words].concat())
            .expect("valid flags");
        let ended = match Program::from_arg_matches(&matches).expect("valid values") {
            Program::App(c) => c.run().await,
            Program::Proj(c) => c.run().await,
        };
        ended.map_err(|e| (e.code, e.message))
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("it is there")
    }

    #[tokio::test]
    async fn files_are_rewritten_and_kept() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = folder.path().join("p.yaml");
        let file = path.to_str().expect("a plain name");
        let before = "kind: AppProject\nmetadata: {name: q, namespace: argocd}\nspec: \
                      {description: old}\nstatus: {}\n";
        fs::write(&path, before).expect("it can be written");
        let words = [
            "proj",
            "generate-spec",
            "-f",
            file,
            "--description",
            "new",
            "-i",
        ];
        assert_eq!(run(&words).await, Ok(()));
        let expected = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata:\n  name: q\n\
                        spec:\n  description: new\n";
        assert_eq!(text(&path), expected);
        assert_eq!(text(&folder.path().join("p.yaml.back")), before);

        let app = "kind: Application\nmetadata: {name: web}\nspec: {project: p}\n";
        fs::write(&path, app).expect("it can be written");
        let words = [
            "app",
            "generate-spec",
            "-f",
            file,
            "--dest-namespace",
            "n",
            "-i",
            "-o",
            "json",
        ];
        assert_eq!(run(&words).await, Ok(()));
        let written: Value = serde_json::from_str(&text(&path)).expect("JSON");
        assert_eq!(written["spec"]["destination"]["namespace"], "n");
        assert_eq!(written["metadata"], serde_json::json!({"name": "web"}));
        assert!(written.get("status").is_none(), "{written}");
        fs::write(&path, format!("{app}---\n{app}")).expect("it can be written");
        let many = "failed to generate spec, more than one application is not supported";
        let refused = run(&["app", "generate-spec", "-f", file]).await;
        assert_eq!(refused, Err((20, many.to_owned())));
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_refused() {
        for (words, message) in [
            (
                &["proj", "generate-spec", "p", "--inline"][..],
                "the file path must be specified using flag '--file'",
            ),
            (
                &["app", "generate-spec", "web", "-o", "bad"],
                "unknown output format: bad",
            ),
        ] {
            assert_eq!(run(words).await, Err((20, message.to_owned())));
        }
        let nameless = run(&["proj", "generate-spec"]).await;
        assert_eq!(nameless.map_err(|e| e.0), Err(1));
    }
}
