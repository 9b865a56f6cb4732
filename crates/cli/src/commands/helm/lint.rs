//! `helm lint`: looks for what is wrong with charts. Main type: [`Lint`].

use super::{
    super::files::LocalFiles, excerpt, failed, kube_version, load, namespace, sources,
    unused::OfHelm, values::ValueArgs, warn,
};
use crate::{
    client::{Failure as Exit, reason},
    output,
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_render::{
    MemoryFiles, SourceFiles,
    helm::{
        KubeVersion, Limits,
        chart::archive_files,
        lint::{Finding, LintOptions, Severity, lint},
        values::Values,
    },
};

/// Examine charts for possible issues, as `helm lint` does
///
/// What will make the chart fail is an [ERROR], what breaks with a convention a [WARNING]. The exit
/// code is 1 when a chart has an error.
#[derive(clap::Args)]
pub struct Lint {
    /// Folders and archives of charts
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    values: ValueArgs,
    /// Fail on lint warnings
    #[arg(long)]
    strict: bool,
    /// Print only warnings and errors
    #[arg(long)]
    quiet: bool,
    /// Lint dependent charts, too
    #[arg(long)]
    with_subcharts: bool,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,
    /// Kubernetes version used for capabilities and deprecation checks
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// Namespace of the release [env: HELM_NAMESPACE] [default: default]
    #[arg(long, short = 'n', value_name = "NAME")]
    namespace: Option<String>,
    /// Helm's verbose output (no effect)
    #[arg(long, hide = true)]
    debug: bool,
    #[command(flatten)]
    of_helm: OfHelm,
}

/// The result for one chart.
struct Linted {
    findings: Vec<Finding>,
    /// Why it could not be linted.
    broken: Option<String>,
}

impl Linted {
    /// The lines of templates and files that errors refer to.
    fn excerpts(&self, path: &Path, limits: &Limits) -> Vec<String> {
        let errors: Vec<&Finding> = self
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .collect();
        if errors.is_empty() {
            return Vec::new();
        }
        let loaded = load(path, limits).ok();
        let excerpt = |finding: &&Finding| match &finding.place {
            Some(place) => excerpt::made(place),
            None => excerpt::named(&loaded.as_ref()?.chart, &finding.message),
        };
        errors.iter().filter_map(excerpt).collect()
    }
}

impl Lint {
    pub fn run(self) -> Result<(), Exit> {
        let limits = Limits::default();
        let kube = self
            .kube_version
            .as_deref()
            .filter(|version| !version.is_empty())
            .map(kube_version)
            .transpose()?;
        let mut paths = self.paths.clone();
        if self.with_subcharts {
            self.paths
                .iter()
                .for_each(|path| subcharts(&path.join("charts"), &mut paths));
        }
        let user = self
            .values
            .read(&limits)
            .map_err(|e| failed(&e.to_string()))?;
        let (mut text, mut excerpts, mut bad, mut told) = (String::new(), String::new(), 0, 0);
        let tolerated = if self.strict {
            Severity::Info
        } else {
            Severity::Warning
        };
        for path in &paths {
            let linted = self.one(path, kube.clone(), &user, &limits);
            let fails = linted.broken.is_some()
                || linted
                    .findings
                    .iter()
                    .any(|finding| finding.severity > tolerated);
            let tells = linted.broken.is_some()
                || linted
                    .findings
                    .iter()
                    .any(|finding| finding.severity > Severity::Info);
            bad += usize::from(fails);
            told += usize::from(tells);
            excerpts.extend(
                linted
                    .excerpts(path, &limits)
                    .iter()
                    .map(|excerpt| format!("\n{excerpt}")),
            );
            if !self.quiet || tells {
                text.push_str(&self.report(path, &linted));
            }
        }
        output::print(&text);
        let summary = format!("{} chart(s) linted, {bad} chart(s) failed", paths.len());
        if bad > 0 {
            let exit = failed(&summary);
            eprint!("{excerpts}");
            return Err(exit);
        }
        if !self.quiet || told > 0 {
            output::print(&format!("{summary}\n"));
        }
        Ok(())
    }

    fn report(&self, path: &Path, linted: &Linted) -> String {
        let mut text = format!("==> Linting {}\n", path.display());
        if let Some(why) = &linted.broken {
            text.push_str(&format!("Error {why}\n"));
        }
        let shown = linted
            .findings
            .iter()
            .filter(|finding| !self.quiet || finding.severity > Severity::Info);
        shown.for_each(|finding| text.push_str(&format!("{finding}\n")));
        text + "\n"
    }

    fn one(
        &self,
        path: &Path,
        kube_version: Option<KubeVersion>,
        user: &Values,
        limits: &Limits,
    ) -> Linted {
        let archived =
            path.to_string_lossy().ends_with(".tgz") || path.to_string_lossy().ends_with(".tar.gz");
        let shown = std::path::absolute(path)
            .unwrap_or_else(|_| path.to_owned())
            .display()
            .to_string();
        let options = LintOptions {
            namespace: namespace(self.namespace.as_deref()),
            kube_version,
            skip_schema_validation: self.skip_schema_validation,
            shown,
            sources: Arc::new(sources),
        };
        let look = |files: &dyn SourceFiles| {
            lint(files, "", user, &options, limits).map_err(|e| e.to_string())
        };
        let result = if archived {
            unpacked(path, limits).and_then(|files| look(&files))
        } else {
            is_chart(path).and_then(|()| look(&LocalFiles::new(path)))
        };
        match result {
            Ok(linted) => {
                warn(&linted.warnings);
                Linted {
                    findings: linted.findings,
                    broken: None,
                }
            }
            Err(why) => Linted {
                findings: Vec::new(),
                broken: Some(why),
            },
        }
    }
}

fn is_chart(path: &Path) -> Result<(), String> {
    let about = path.join("Chart.yaml");
    let missing = |e| {
        format!(
            "unable to check Chart.yaml file in chart: stat {}: {}",
            about.display(),
            reason(&e)
        )
    };
    fs::metadata(&about).map(|_| ()).map_err(missing)
}

fn unpacked(path: &Path, limits: &Limits) -> Result<MemoryFiles, String> {
    let bytes = fs::read(path).map_err(|e| {
        format!(
            "unable to open tarball: open {}: {}",
            path.display(),
            reason(&e)
        )
    })?;
    archive_files(&bytes, limits).map_err(|e| format!("unable to extract tarball: {e}"))
}

/// The charts inside a `charts/` folder, in the order in which Helm walks it.
fn subcharts(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            subcharts(&path, found);
        } else if name == "Chart.yaml" {
            found.push(folder.to_owned());
        } else if name.ends_with(".tgz") || name.ends_with(".tar.gz") {
            found.push(path);
        }
    }
}
