//! `app add-source` and `app remove-source`, for Applications with a list of sources.

use super::{AppRef, positions, spec::AppOptions};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::prompt,
    output::{self, summary},
};
use tiphys_api::{
    Application, application::ApplicationSpec, rpc::application::ApplicationUpdateSpecRequest,
    source::ApplicationSource,
};

#[derive(clap::Args)]
pub struct AddSource {
    /// The application
    app: String,
    /// Namespace of the target application where the source will be appended
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    #[command(flatten)]
    options: AppOptions,
}

#[derive(clap::Args)]
pub struct RemoveSource {
    /// The application
    app: String,
    /// Namespace of the target application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Position of the source from the list of sources of the app. Counting starts at 1
    #[arg(long, allow_negative_numbers = true)]
    source_position: Option<i64>,
    /// Name of the source from the list of sources of the app
    #[arg(long)]
    source_name: Option<String>,
}

impl AddSource {
    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        self.options.download().await?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let mut app = super::get(&client, &app_ref, None).await?;
        add(&mut app, &self.options, &app_ref.name)?;
        let validate = self.options.validate.unwrap_or(true);
        save(&client, &app_ref, app, validate).await
    }
}

fn add(app: &mut Application, options: &AppOptions, name: &str) -> Result<(), Failure> {
    if app.spec.sources.is_empty() {
        return Err(Failure::error(format!(
            "Cannot add source: application {name} does not have spec.sources defined"
        )));
    }
    let at = app.spec.sources.len();
    app.spec.sources.push(ApplicationSource {
        name: options.source_name.clone().unwrap_or_default(),
        ..Default::default()
    });
    options.apply_source(app, Some(at))
}

impl RemoveSource {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let name = self.source_name.as_deref().filter(|name| !name.is_empty());
        if name.is_none() && self.source_position.unwrap_or(-1) <= 0 {
            return Err(Failure::error(
                "Value of source-position must be greater than 0",
            ));
        }
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let mut app = super::get(&client, &app_ref, None).await?;
        remove(&mut app, self.source_position, name)?;
        let question = "Are you sure you want to delete the source? [y/n]";
        if args.prompts()? && !prompt::proceed(question)? {
            output::print("The command to delete the source was cancelled\n");
            return Ok(());
        }
        save(&client, &app_ref, app, true).await
    }
}

fn remove(app: &mut Application, position: Option<i64>, name: Option<&str>) -> Result<(), Failure> {
    let position = match (position, name) {
        (Some(_), Some(_)) => {
            return Err(Failure::error(
                "Only one of source-position and source-name can be specified.",
            ));
        }
        (position, None) => position.unwrap_or_default(),
        (None, Some(name)) => positions(app, &[name.to_owned()])?[0],
    };
    if !summary::has_many_sources(app) {
        return Err(Failure::error(
            "Application does not have multiple sources configured",
        ));
    }
    if app.spec.sources.len() == 1 {
        return Err(Failure::error(
            "Cannot remove the only source remaining in the app",
        ));
    }
    let index = usize::try_from(position - 1).ok();
    let index = index.filter(|index| *index < app.spec.sources.len());
    let index = index.ok_or_else(|| {
        Failure::error(format!("Application does not have source at {position}\n"))
    })?;
    app.spec.sources.remove(index);
    Ok(())
}

async fn save(
    client: &Client,
    app_ref: &AppRef,
    app: Application,
    validate: bool,
) -> Result<(), Failure> {
    let request = ApplicationUpdateSpecRequest {
        name: app_ref.name.clone(),
        spec: app.spec.into_inner(),
        validate: Some(validate),
        app_namespace: app_ref.namespace(),
        project: None,
    };
    let _: ApplicationSpec = client
        .unary("/application.ApplicationService/UpdateSpec", request)
        .await?;
    output::print(&format!(
        "Application '{}' updated successfully\n",
        app_ref.name
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};
    use serde_json::{Value, json};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        add: AddSource,
    }

    fn app(spec: Value) -> Application {
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec}))
            .expect("an Application")
    }

    fn two() -> Application {
        app(json!({"sources": [
            {"repoURL": "r", "path": "a"}, {"repoURL": "r", "path": "b", "name": "h"}]}))
    }

    fn paths(app: &Application) -> Vec<&str> {
        let sources = app.spec.sources.iter();
        sources.map(|s| s.path.as_str()).collect()
    }

    fn refused(result: Result<(), Failure>) -> Option<(u8, String)> {
        result.err().map(|e| (e.code, e.message))
    }

    #[test]
    fn sources_are_appended() {
        let words = [
            "add",
            "web",
            "--repo",
            "r",
            "--path",
            "c",
            "--source-name",
            "n",
            "--helm-set",
            "k=v",
            "-p",
            "x=y",
        ];
        let matches = crate::flags::adapt(Program::command())
            .try_get_matches_from(words)
            .expect("valid flags");
        let options = Program::from_arg_matches(&matches)
            .expect("valid")
            .add
            .options;
        let mut many = two();
        add(&mut many, &options, "web").expect("there is a list");
        assert_eq!(paths(&many), ["a", "b", "c"]);
        let new = serde_json::to_value(&many.spec.sources[2]).expect("a value");
        let parameters = json!([{"name": "k", "value": "v"}, {"name": "x", "value": "y"}]);
        assert_eq!(
            new,
            json!({"repoURL": "r", "path": "c", "name": "n",
                "helm": {"parameters": parameters}})
        );
        let mut single = app(json!({"source": {"repoURL": "r"}}));
        let message = "Cannot add source: application web does not have spec.sources defined";
        let result = refused(add(&mut single, &options, "web"));
        assert_eq!(result, Some((20, message.to_owned())));
    }

    #[test]
    fn sources_are_removed_by_position_or_name() {
        let mut many = two();
        assert_eq!(refused(remove(&mut many, None, Some("h"))), None);
        assert_eq!(paths(&many), ["a"]);
        let mut many = two();
        assert_eq!(refused(remove(&mut many, Some(1), None)), None);
        assert_eq!(paths(&many), ["b"]);
        let error = |message: &str| Some((20, message.to_owned()));
        let only = error("Cannot remove the only source remaining in the app");
        assert_eq!(refused(remove(&mut many, Some(9), None)), only);
        let mut many = two();
        let unknown = Some((1, "Unknown source name 'x'".to_owned()));
        assert_eq!(refused(remove(&mut many, None, Some("x"))), unknown);
        let far = error("Application does not have source at 3\n");
        assert_eq!(refused(remove(&mut many, Some(3), None)), far);
        let both = error("Only one of source-position and source-name can be specified.");
        assert_eq!(refused(remove(&mut many, Some(1), Some("h"))), both);
        let mut single = app(json!({"source": {"repoURL": "r"}}));
        let one = error("Application does not have multiple sources configured");
        assert_eq!(refused(remove(&mut single, Some(1), None)), one);
        assert_eq!(paths(&many), ["a", "b"]);
    }
}
