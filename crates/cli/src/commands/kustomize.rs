//! `kustomize build`: what kustomize's command of this name does, in process. Main type:
//! [`KustomizeCommand`].
//!
//! Flags, output and exit codes are those of kustomize 5.8.1. What it needs from elsewhere is
//! fetched; no program but `ssh` is run.

use super::{
    fetched::{Incomplete, complete},
    files::LocalFiles,
    helm,
};
use crate::client::{Failure as Exit, reason};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_api::access::without_passwords;
use tiphys_render::{
    Budget, Charts, RenderError, SourceFiles, SourceRef, SourceSet,
    helm::Sources,
    kustomize::{BuildOptions, Built, Top, build_at, named_by},
};
use tiphys_repo::{ManifestRequest, Obtained};

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

/// Build a kustomization and print its objects, as `kustomize build` does
///
/// Bases in other repositories, files of the web and charts (with --enable-helm) are fetched without
/// credentials; for ssh, its agent, default keys and known hosts are used.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Build {
    /// The folder with the kustomization, or its URL in a repository
    #[arg(value_name = "DIR", default_value = ".")]
    folder: String,
    /// Write the output to this file, or each object to a file in this folder
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

/// What is built.
struct Job<'b> {
    top: Top<'b>,
    options: &'b BuildOptions,
    files: LocalFiles,
}

impl Job<'_> {
    /// Calls a function with everything that is there.
    fn with<T>(&self, obtained: &Obtained, work: impl Fn(&SourceSet<'_>) -> T) -> T {
        let files = obtained.files();
        let mut fetched: BTreeMap<SourceRef, &dyn SourceFiles> = BTreeMap::new();
        for (needed, files) in &files {
            fetched.insert(needed.clone(), files.as_ref());
        }
        let sources = SourceSet {
            fetched,
            ..SourceSet::new(&self.files)
        };
        work(&sources)
    }

    fn attempt(&self, obtained: &Obtained) -> Result<Built, RenderError> {
        let budget = Budget::default();
        self.with(obtained, |sources| {
            build_at(sources, self.top, self.options, &Here, &budget)
        })
    }

    fn file_of(&self, obtained: &Obtained, needed: &SourceRef) -> Option<String> {
        let budget = Budget::default();
        let mut named = self.with(obtained, |sources| {
            named_by(sources, self.top, self.options, &Here, &budget)
        });
        named.remove(needed)
    }

    fn run(&self) -> Result<Built, String> {
        let needed = match self.attempt(&Obtained::default()) {
            Err(RenderError::Need(needed)) => needed,
            outcome => return outcome.map_err(|error| error.to_string()),
        };
        // Only now: most kustomizations need nothing, and are built in less time than threads start.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_stack_size(8 << 20)
            .build()
            .map_err(|error| format!("cannot start: {}", reason(&error)))?;
        let request = ManifestRequest::default();
        let built = threads.block_on(complete(
            &request,
            needed,
            |obtained| self.attempt(obtained),
            |obtained, needed| self.file_of(obtained, needed),
        ));
        threads.shutdown_background();
        built.map_err(|incomplete| told(&incomplete))
    }
}

fn told(incomplete: &Incomplete) -> String {
    match incomplete {
        Incomplete::Render(error) => error.to_string(),
        Incomplete::Missing(missing) => match &missing.file {
            Some(file) => format!("{file}: {}: {}", missing.needed, missing.error),
            None => format!("{}: {}", missing.needed, missing.error),
        },
        Incomplete::TooMuch(error) => error.to_string(),
        Incomplete::Folder(error) => {
            format!("open {}: {}", env::temp_dir().display(), reason(error))
        }
    }
}

impl Build {
    fn run(self) -> Result<(), Exit> {
        let failed = |message: String| {
            eprintln!("Error: {}", without_passwords(&message));
            Exit::exit(1)
        };
        let options = self.flags.options().map_err(failed)?;
        let built = built(&self.folder, &options).map_err(failed)?;
        self.write(&built).map_err(failed)
    }

    fn write(&self, built: &Built) -> Result<(), String> {
        let yaml = || built.yaml().map_err(|error| error.to_string());
        match &self.output {
            Some(folder) if folder.is_dir() => {
                let files = built.files().map_err(|error| error.to_string())?;
                files
                    .iter()
                    .try_for_each(|(name, yaml)| write(&folder.join(name), yaml))
            }
            Some(file) => write(file, &yaml()?),
            None => print(&yaml()?),
        }
    }
}

/// The objects of a kustomization, as `apply -k` reads them: built with the defaults.
pub fn objects(folder: &str) -> Result<String, String> {
    let options = BuildOptions::from_flags(["--reorder=legacy"])?;
    let text =
        built(folder, &options).and_then(|built| built.yaml().map_err(|error| error.to_string()));
    text.map_err(|message| without_passwords(&message))
}

fn built(folder: &str, options: &BuildOptions) -> Result<Built, String> {
    let local;
    let top = match Top::of_argument(folder) {
        Top::Folder(folder) => {
            local = Path::new(folder)
                .canonicalize()
                .map_err(|error| {
                    format!(
                        "must build at directory: not a valid directory: '{folder}': {}",
                        reason(&error)
                    )
                })?
                .to_string_lossy()
                .into_owned();
            Top::Folder(local.trim_start_matches('/'))
        }
        url @ Top::Url(_) => url,
    };
    let job = Job {
        top,
        options,
        // Bases may lie anywhere, so all that there is can be read.
        files: LocalFiles::new(Path::new("/")),
    };
    let built = job.run()?;
    built.warnings.iter().for_each(|line| eprintln!("{line}"));
    Ok(built)
}

fn write(file: &Path, yaml: &str) -> Result<(), String> {
    fs::write(file, yaml).map_err(|error| format!("open {}: {}", file.display(), reason(&error)))
}

/// A closed pipe (`| head`) is not an error.
fn print(yaml: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(yaml.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("write /dev/stdout: {}", reason(&error)))
        }
        _ => Ok(()),
    }
}
