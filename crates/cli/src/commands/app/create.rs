//! `app create`: from flags, or from Applications in a file, of a URL or from standard input.

use super::{AppRef, pairs, spec::AppOptions};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::apply::source::{read_one, shown},
    output,
};
use std::collections::BTreeMap;
use tiphys_api::{
    Application,
    constants::{API_VERSION, RESOURCES_FINALIZER},
    rpc::application::{ApplicationCreateRequest, ApplicationQuery},
};
use tiphys_gocompat::yaml::{self, Limits};
use tonic::Code;

#[derive(clap::Args)]
pub struct Create {
    /// Name of the application
    app: Option<String>,
    /// A name for the app, ignored if a file is set (DEPRECATED)
    #[arg(long)]
    name: Option<String>,
    /// Filename or URL of Kubernetes manifests for the app, `-` for standard input
    #[arg(long, short)]
    file: Option<String>,
    /// Allows to override application with the same name even if supplied application spec is
    /// different from existing spec
    #[arg(long)]
    upsert: bool,
    /// Labels to apply to the app
    #[arg(long, short = 'l')]
    label: Vec<String>,
    /// Set metadata annotations (e.g. example=value)
    #[arg(long)]
    annotations: Vec<String>,
    /// Sets deletion finalizer on the application, application resources will be cascaded on
    /// deletion
    #[arg(long)]
    set_finalizer: bool,
    /// Namespace where the application will be created in
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    #[command(flatten)]
    options: AppOptions,
}

/// The Applications in the documents of a file.
fn parse(bytes: &[u8], file: &str) -> Result<Vec<Application>, Failure> {
    let failed = |e: String| Failure::error(format!("{file}: {e}"));
    let documents =
        yaml::parse_documents(bytes, &Limits::default()).map_err(|e| failed(e.to_string()))?;
    let documents = documents.into_iter().filter(|d| !d.value.is_null());
    let apps = documents.map(|d| {
        let kind = d.value["kind"].as_str().unwrap_or("Application").to_owned();
        if kind != "Application" {
            return Err(failed(format!(
                "line {}: the kind is {kind}, but must be Application",
                d.line
            )));
        }
        serde_json::from_value(d.value)
            .map_err(|e| failed(format!("line {}: not a valid Application: {e}", d.line)))
    });
    apps.collect()
}

impl Create {
    /// The file with Applications, if one is named.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The Applications to create.
    pub async fn applications(&mut self) -> Result<Vec<Application>, Failure> {
        self.options.download().await?;
        let mut apps = match self.file.as_deref().filter(|f| !f.is_empty()) {
            None => vec![self.of_flags()?],
            Some(file) => {
                let bytes = read_one(file).await.map_err(Failure::error)?;
                let mut apps = parse(&bytes, &shown(file))?;
                // Input from a pipe is complete.
                if file != "-" {
                    apps.iter_mut().try_for_each(|app| self.adjust(app))?;
                }
                apps
            }
        };
        for app in &mut apps {
            if let Some(namespace) = &self.app_namespace {
                app.metadata.namespace.clone_from(namespace);
            }
            if self.set_finalizer {
                app.metadata.finalizers.push(RESOURCES_FINALIZER.into());
            }
        }
        Ok(apps)
    }

    fn of_flags(&self) -> Result<Application, Failure> {
        let name = match (&self.app, &self.name) {
            (Some(app), Some(name)) if app != name => {
                return Err(Failure::error(format!(
                    "--name argument '{name}' does not match app name {app}"
                )));
            }
            (Some(name), _) | (None, Some(name)) => name,
            (None, None) => {
                return Err(Failure::misuse());
            }
        };
        let app_ref = AppRef::new(name, None);
        let mut app = Application {
            api_version: API_VERSION.into(),
            kind: "Application".into(),
            ..Default::default()
        };
        app.metadata.name = app_ref.name;
        app.metadata.namespace = app_ref.namespace;
        self.describe(&mut app)?;
        Ok(app)
    }

    /// Applies the flags to an Application from a file.
    fn adjust(&self, app: &mut Application) -> Result<(), Failure> {
        if let Some(name) = self.app.as_ref().filter(|name| **name != app.metadata.name) {
            return Err(Failure::error(format!(
                "app name '{name}' does not match app spec metadata.name '{}'",
                app.metadata.name
            )));
        }
        if let Some(name) = &self.name {
            app.metadata.name.clone_from(name);
        }
        if app.metadata.name.is_empty() {
            return Err(Failure::error(
                "app.Name is empty. --name argument can be used to provide app.Name",
            ));
        }
        self.describe(app)
    }

    fn describe(&self, app: &mut Application) -> Result<(), Failure> {
        app.metadata.labels.extend(pairs(&self.label)?);
        for annotation in &self.annotations {
            let (key, value) = annotation.split_once('=').unwrap_or((annotation, ""));
            app.metadata
                .annotations
                .insert(key.to_owned(), value.to_owned());
        }
        let several = app.spec.source_hydrator.is_none() && !app.spec.sources.is_empty();
        if self.file.is_some() && (several || self.options.is_empty()) {
            return Ok(());
        }
        self.options.apply(app, None)
    }

    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        let apps = self.applications().await?;
        let client = super::super::connect(args).await?;
        for app in apps {
            self.create(&client, app).await?;
        }
        Ok(())
    }

    async fn create(&self, client: &Client, app: Application) -> Result<(), Failure> {
        let query = ApplicationQuery {
            name: Some(app.metadata.name.clone()),
            app_namespace: Some(app.metadata.namespace.clone()),
            ..Default::default()
        };
        // A server reports a missing Application as a lack of permission.
        let existing: Option<Application> = match client
            .unary("/application.ApplicationService/Get", query)
            .await
        {
            Ok(app) => Some(app),
            Err(e) if matches!(e.code(), Code::NotFound | Code::PermissionDenied) => None,
            Err(e) => return Err(e.into()),
        };
        let validate = Some(self.options.validate.unwrap_or(true));
        let request = ApplicationCreateRequest {
            application: app,
            upsert: Some(self.upsert),
            validate,
        };
        let created: Application = client
            .unary("/application.ApplicationService/Create", request)
            .await?;
        let action = match existing {
            None => "created",
            Some(existing) if self.upsert && is_changed(&existing, &created) => "updated",
            Some(_) => "unchanged",
        };
        output::print(&format!(
            "application '{}' {action}\n",
            created.metadata.name
        ));
        Ok(())
    }
}

fn is_changed(before: &Application, after: &Application) -> bool {
    let mut spec = before.spec.clone();
    if spec.project.is_empty() {
        spec.project = "default".into();
    }
    let parts = |app: &Application| -> (
        BTreeMap<String, String>,
        BTreeMap<String, String>,
        Vec<String>,
    ) {
        let m = &app.metadata;
        (
            m.labels.clone(),
            m.annotations.clone(),
            m.finalizers.clone(),
        )
    };
    spec != after.spec || parts(before) != parts(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        create: Create,
    }

    async fn create(words: &[&str]) -> Result<Vec<Application>, Failure> {
        let mut program = Program::parse_from([&["create"], words].concat());
        program.create.applications().await
    }

    #[tokio::test]
    async fn from_flags() {
        let apps = create(&[
            "guestbook",
            "--repo",
            "https://example.com/r.git",
            "--path",
            "guestbook",
            "--dest-namespace",
            "demo",
            "--dest-server",
            "https://kubernetes.default.svc",
            "-l",
            "team=a",
            "--annotations",
            "note",
            "--set-finalizer",
        ])
        .await
        .expect("valid flags");
        let app = &apps[0];
        assert_eq!(
            (app.metadata.name.as_str(), app.kind.as_str()),
            ("guestbook", "Application")
        );
        assert_eq!(
            app.spec.source.as_ref().map(|s| s.path.as_str()),
            Some("guestbook")
        );
        assert_eq!(
            app.metadata.labels.get("team").map(String::as_str),
            Some("a")
        );
        assert_eq!(
            app.metadata.annotations.get("note").map(String::as_str),
            Some("")
        );
        assert_eq!(app.metadata.finalizers, [RESOURCES_FINALIZER]);
        assert!(app.spec.sync_policy.is_none());
        assert!(create(&["a", "--name", "b"]).await.is_err());
        assert!(create(&[]).await.is_err());
    }

    #[test]
    fn files_have_applications() {
        let text = b"kind: Application\nmetadata: {name: a}\n---\n---\nkind: Application\nmetadata: {name: b}\n";
        assert_eq!(parse(text, "f").expect("valid").len(), 2);
        let message = |text: &str| {
            parse(text.as_bytes(), "apps.yaml")
                .err()
                .map(|e| e.message)
                .unwrap_or_default()
        };
        assert_eq!(
            message("a: b\n---\nkind: ConfigMap\n"),
            "apps.yaml: line 3: the kind is ConfigMap, but must be Application"
        );
        assert!(message("spec: 1\n").starts_with("apps.yaml: line 1: not a valid Application: "));
        assert!(message("a: [\n").starts_with("apps.yaml: "));
    }
}
