//! `kustomize build`: what kustomize's command of this name does, in process. Main type:
//! [`KustomizeCommand`].
//!
//! Flags, output and exit codes are those of kustomize 5.8.1; nothing is fetched and no program is
//! run.

use super::{files::LocalFiles, helm};
use crate::client::{Failure as Exit, reason};
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_render::{
    Budget, Charts, RenderError, SourceSet,
    helm::Sources,
    kustomize::{BuildOptions, build},
};

#[derive(clap::Subcommand)]
pub enum KustomizeCommand {
    Build(Box<Build>),
}

impl KustomizeCommand {
    pub fn run(self) -> Result<(), Exit> {
        match self {
            Self::Build(command) => command.run(),
        }
    }
}

/// Build a kustomization from a folder and print its objects, as `kustomize build` does
///
/// Nothing is fetched: remote bases and files, and charts that are not in the folder of charts, are
/// named and refused.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Build {
    /// The folder with the kustomization
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Write the output to this file
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(clap::Args)]
struct Flags {
    /// Render helmCharts
    #[arg(long)]
    enable_helm: bool,
    /// LoadRestrictionsNone: files may lie outside of the kustomization's folder
    #[arg(long, value_name = "HOW", default_value = "LoadRestrictionsRootOnly")]
    load_restrictor: String,
    /// none: objects come out as they were read
    #[arg(long, value_name = "HOW", default_value = "legacy")]
    reorder: String,
    /// Add the label app.kubernetes.io/managed-by
    #[arg(long)]
    enable_managedby_label: bool,
    /// Kubernetes version that charts see
    #[arg(long, value_name = "VERSION")]
    helm_kube_version: Option<String>,
    /// Kubernetes API versions that charts see
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    helm_api_versions: Vec<String>,
    #[arg(long, hide = true)]
    enable_alpha_plugins: bool,
    #[arg(long, hide = true)]
    enable_exec: bool,
    #[arg(long, hide = true, value_name = "PROGRAM")]
    helm_command: Option<String>,
    #[arg(long, hide = true)]
    helm_debug: bool,
    #[arg(long, hide = true)]
    network: bool,
    #[arg(long, hide = true)]
    as_current_user: bool,
    #[arg(long, hide = true)]
    mount: Vec<String>,
    #[arg(long, short = 'e', hide = true)]
    env: Vec<String>,
}

impl Flags {
    fn options(&self) -> Result<BuildOptions, String> {
        let mut words = vec![
            format!("--load-restrictor={}", self.load_restrictor),
            format!("--reorder={}", self.reorder),
        ];
        for (set, name) in [
            (self.enable_helm, "--enable-helm"),
            (self.enable_managedby_label, "--enable-managedby-label"),
            (self.enable_alpha_plugins, "--enable-alpha-plugins"),
            (self.enable_exec, "--enable-exec"),
            (self.network, "--network"),
            (self.helm_debug, "--helm-debug"),
            (self.as_current_user, "--as-current-user"),
        ] {
            if set {
                words.push(name.to_owned());
            }
        }
        let lists = [
            ("--helm-command", self.helm_command.as_slice()),
            ("--helm-kube-version", self.helm_kube_version.as_slice()),
            ("--helm-api-versions", &self.helm_api_versions),
            ("--mount", &self.mount),
            ("--env", &self.env),
        ];
        for (name, values) in lists {
            words.extend(values.iter().map(|value| format!("{name}={value}")));
        }
        BuildOptions::from_flags(words.iter().map(String::as_str))
    }
}

/// Charts with chance and time of this machine.
struct Here;

impl Charts for Here {
    fn sources(&self) -> Arc<dyn Fn() -> Sources + Send + Sync> {
        Arc::new(helm::sources)
    }
}

impl Build {
    fn run(self) -> Result<(), Exit> {
        let failed = |message: String| {
            eprintln!("Error: {message}");
            Exit::exit(1)
        };
        let options = self.flags.options().map_err(failed)?;
        let yaml = self
            .yaml(&options)
            .map_err(|error| failed(error.to_string()))?;
        let written = match &self.output {
            Some(path) => fs::write(path, yaml),
            None => std::io::stdout().write_all(yaml.as_bytes()),
        };
        written.map_err(|error| failed(reason(&error)))
    }

    fn yaml(&self, options: &BuildOptions) -> Result<String, RenderError> {
        let unreadable = |error| {
            let folder = self.folder.display();
            RenderError::Source(format!(
                "must build at directory: not a valid directory: '{folder}': {}",
                reason(&error)
            ))
        };
        // Bases may lie anywhere, so all that there is can be read.
        let folder = self.folder.canonicalize().map_err(unreadable)?;
        let files = LocalFiles::new(Path::new("/"));
        let sources = SourceSet::new(&files);
        let folder = folder.to_string_lossy();
        let built = build(
            &sources,
            folder.trim_start_matches('/'),
            options,
            &Here,
            &Budget::default(),
        )?;
        built.warnings.iter().for_each(|line| eprintln!("{line}"));
        built.yaml()
    }
}
