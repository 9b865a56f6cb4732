//! `helm template`: renders a chart and prints its manifests. Main type: [`Template`].

use super::{
    excerpt, failed, kube_version, load, namespace, sources,
    unused::{OfCharts, OfHelm, OfInstall, deprecated},
    values::ValueArgs,
    warn,
};
use crate::{
    client::{Failure as Exit, reason},
    output,
};
use std::{
    collections::HashSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tiphys_gocompat::text::quote;
use tiphys_render::helm::{
    HelmError, Limits, ParsedChart, PrintOptions, RenderOptions, RenderedChart, chart::Chart,
    document, log, release_name,
};

/// Render chart templates locally and display the output, as `helm template` does
///
/// The chart is a folder or an archive. Nothing is fetched and no cluster is asked; `lookup` finds
/// nothing.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Template {
    /// Name of the release, and the chart; or the chart alone
    #[arg(value_name = "[NAME] CHART", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    values: ValueArgs,
    #[command(flatten)]
    render: RenderArgs,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    refused: Refused,
    #[command(flatten)]
    of_install: OfInstall,
    #[command(flatten)]
    of_charts: OfCharts,
    #[command(flatten)]
    of_helm: OfHelm,
}

#[derive(clap::Args)]
struct RenderArgs {
    /// Namespace of the release [env: HELM_NAMESPACE] [default: default]
    #[arg(long, short = 'n', value_name = "NAME")]
    namespace: Option<String>,
    /// Kubernetes version used for Capabilities.KubeVersion
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// Kubernetes API versions used for Capabilities.APIVersions (can specify multiple or separate
    /// them with commas)
    #[arg(long, short = 'a', value_name = "VERSION", value_delimiter = ',')]
    api_versions: Vec<String>,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long)]
    is_upgrade: bool,
    /// Template used to name the release
    #[arg(long, value_name = "TEMPLATE")]
    name_template: Option<String>,
    /// Generate the name (and omit the NAME parameter)
    #[arg(long, short = 'g')]
    generate_name: bool,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,
}

#[derive(clap::Args)]
struct PrintArgs {
    /// Include CRDs in the templated output
    #[arg(long)]
    include_crds: bool,
    /// Leave hooks out
    #[arg(long)]
    no_hooks: bool,
    /// Skip tests from templated output
    #[arg(long)]
    skip_tests: bool,
    /// Only show manifests rendered from the given templates
    #[arg(long, short = 's', value_name = "PATTERN")]
    show_only: Vec<String>,
    /// Write the executed templates to files in this folder instead of stdout
    #[arg(long, value_name = "DIR")]
    output_dir: Option<String>,
    /// Use the release name in the output-dir path
    #[arg(long)]
    release_name: bool,
    /// Helm's verbose output; here it leaves out the hint to it
    #[arg(long)]
    debug: bool,
}

/// What would need a cluster, the network or another program.
#[derive(clap::Args)]
struct Refused {
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "unset")]
    dry_run: Option<String>,
    #[arg(long, hide = true)]
    dependency_update: bool,
    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    verify: bool,
    #[arg(long, hide = true, value_name = "URL")]
    repo: Option<String>,
    #[arg(long, hide = true, value_name = "PLUGIN")]
    post_renderer: Option<String>,
}

impl Refused {
    fn check(&self) -> Result<(), String> {
        self.dry_run.as_deref().map_or(Ok(()), check_dry_run)?;
        let reason = match () {
            () if self.validate || self.dry_run.as_deref() == Some("server") => {
                let flag = if self.validate {
                    "--validate"
                } else {
                    "--dry-run=server"
                };
                return Err(format!(
                    "{flag} asks a cluster, which this command never does; give its output to `tiphys diff -f -` or `tiphys apply --dry-run=server -f -`"
                ));
            }
            () if self.dependency_update => "--dependency-update fetches charts",
            () if self.repo.is_some() => "--repo fetches charts",
            () if self.enable_dns => "--enable-dns asks name servers",
            () if self.verify => "--verify needs a keyring, and signatures are not checked",
            () if self.post_renderer.is_some() => "--post-renderer runs a program",
            () => return Ok(()),
        };
        Err(format!(
            "{reason}; this command only reads the chart that it is given"
        ))
    }
}

/// So many bytes of templates are worth another thread.
const WORTH_A_THREAD: usize = 64 << 10;

/// Renders, while another thread parses templates if there are many.
fn with_parser<T>(chart: &ParsedChart, render: impl FnOnce() -> T) -> T {
    if template_bytes(chart.chart()) < WORTH_A_THREAD {
        return render();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let parser = || chart.parse_ahead(&|| is_over.load(Ordering::Relaxed));
        // If there is none, the render parses everything.
        let parsing = thread::Builder::new().spawn_scoped(scope, parser);
        let rendered = render();
        is_over.store(true, Ordering::Relaxed);
        if let Ok(parsing) = parsing {
            // The scope would pass on a panic of the parser, which spoils nothing.
            let _ = parsing.join();
        }
        rendered
    })
}

fn template_bytes(chart: &Chart) -> usize {
    let own: usize = chart.templates.iter().map(|file| file.data.len()).sum();
    own + chart.dependencies.iter().map(template_bytes).sum::<usize>()
}

/// Values that Go parses as true.
fn is_yes(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// A template is always a dry run, and Helm refuses values that say otherwise; for an invalid value
/// its message differs.
fn check_dry_run(how: &str) -> Result<(), String> {
    let known = match how {
        "unset" | "client" | "server" => return Ok(()),
        how if is_yes(how) => return Ok(()),
        "none" | "0" | "f" | "F" | "false" | "FALSE" | "False" => r#""server" or "client""#,
        _ => r#""none", "server", or "client""#,
    };
    Err(format!(
        "invalid dry-run value ({}). Must be {known}",
        quote(how)
    ))
}

impl Template {
    pub fn run(self) -> Result<(), Exit> {
        let limits = Limits::default();
        self.told_of_flags()
            .iter()
            .for_each(|line| eprintln!("{line}"));
        self.refused.check().map_err(|why| failed(&why))?;
        let options = self.options()?;
        let path = Path::new(self.words.last().map_or("", |path| path.trim()));
        let located =
            locate(path).and_then(|()| self.values.read(&limits).map_err(|e| e.to_string()));
        let user = located.map_err(|why| failed(&why))?;
        let loaded = load(path, &limits).map_err(|e| {
            let exit = failed(&e.to_string());
            if let Some(excerpt) = excerpt::of_file(path, &e.to_string(), &limits) {
                eprint!("\n{excerpt}");
            }
            exit
        })?;
        warn(&loaded.warnings);
        let chart = ParsedChart::new(loaded.chart);
        let mut warnings = Vec::new();
        let rendered = with_parser(&chart, || {
            chart.render_telling(&user, &options, &limits, &mut warnings)
        });
        warn(&warnings);
        let rendered = rendered.map_err(|e| self.broken(chart.chart(), &e))?;
        if let Some(folder) = self.output_dir() {
            self.write(&rendered, folder, &options.release.name)?;
        }
        let text = self.text(&rendered).map_err(|e| failed(&e.to_string()))?;
        output::print(&text);
        // The process ends, so taking a large chart apart first would only take time.
        std::mem::forget((chart, rendered, text));
        Ok(())
    }

    fn options(&self) -> Result<RenderOptions, Exit> {
        let mut options = RenderOptions::new(Arc::new(sources));
        if let Some(version) = self
            .render
            .kube_version
            .as_deref()
            .filter(|version| !version.is_empty())
        {
            options.capabilities.kube_version = kube_version(version)?;
        }
        options.release.name = self.name().map_err(|why| failed(&why))?;
        options.release.namespace = namespace(self.render.namespace.as_deref());
        options.release.is_upgrade = self.render.is_upgrade;
        options
            .capabilities
            .api_versions
            .extend(self.render.api_versions.iter().cloned());
        options.skip_schema_validation = self.render.skip_schema_validation;
        Ok(options)
    }

    /// The output folder; an empty name counts as none.
    fn output_dir(&self) -> Option<&Path> {
        self.print
            .output_dir
            .as_deref()
            .filter(|name| !name.is_empty())
            .map(Path::new)
    }

    fn name_template(&self) -> Option<&str> {
        self.render
            .name_template
            .as_deref()
            .filter(|template| !template.is_empty())
    }

    /// Helm's warnings about deprecated flags.
    fn told_of_flags(&self) -> Vec<String> {
        let mut told = self.of_install.told();
        if self.refused.validate {
            told.push(deprecated("validate", "use '--dry-run=server' instead"));
        }
        match self.refused.dry_run.as_deref() {
            None | Some("none" | "client" | "server") => {}
            Some("unset") => told.push(log::line(
                "--dry-run is deprecated and should be replaced with '--dry-run=client'",
            )),
            Some(how) if is_yes(how) => {
                told.push(log::line("boolean '--dry-run=true' flag is deprecated and must be replaced with '--dry-run=client'"));
            }
            Some(_) => {}
        }
        told
    }

    /// The name of the release, determined as in Helm.
    fn name(&self) -> Result<String, String> {
        let unwanted = |flag: &str| Err(format!("cannot set {flag} and also specify a name"));
        match self.words.as_slice() {
            [_, _, more @ ..] if !more.is_empty() => Err(format!(
                "expected at most two arguments, unexpected arguments: {}",
                more.join(", ")
            )),
            [_, _] if self.render.generate_name => unwanted("--generate-name"),
            [_, _] if self.name_template().is_some() => unwanted("--name-template"),
            [name, _] => Ok(name.clone()),
            _ => match self.name_template() {
                Some(template) => release_name(template, sources()).map_err(|e| e.to_string()),
                None => Ok("release-name".to_owned()),
            },
        }
    }

    fn print_options(&self) -> PrintOptions {
        let PrintArgs {
            include_crds,
            no_hooks,
            skip_tests,
            show_only,
            ..
        } = &self.print;
        PrintOptions {
            include_crds: *include_crds,
            no_hooks: *no_hooks,
            skip_tests: *skip_tests,
            show_only: show_only.clone(),
        }
    }

    fn text(&self, rendered: &RenderedChart) -> Result<String, HelmError> {
        match self.output_dir() {
            None => rendered.print(&self.print_options()),
            Some(_) => RenderedChart::default().print(&self.print_options()),
        }
    }

    /// The error, Helm's hint, and the line.
    fn broken(&self, chart: &Chart, e: &HelmError) -> Exit {
        let hint = if e.while_rendering() && !self.print.debug {
            "\n\nUse --debug flag to render out invalid YAML"
        } else {
            ""
        };
        let exit = failed(&format!("{e}{hint}"));
        if let Some(excerpt) = excerpt::of(chart, e) {
            eprint!("\n{excerpt}");
        }
        exit
    }

    /// Writes the manifests to files; several of one template are appended.
    fn write(&self, rendered: &RenderedChart, folder: &Path, release: &str) -> Result<(), Exit> {
        let inner = if self.print.release_name {
            folder.join(release)
        } else {
            folder.to_owned()
        };
        let mut files = Files {
            written: HashSet::new(),
        };
        if self.print.include_crds {
            for (source, file) in &rendered.crds {
                files.write(folder, source, &String::from_utf8_lossy(&file.data))?;
            }
        }
        for manifest in &rendered.manifests {
            files.write(&inner, &manifest.source, &manifest.text)?;
        }
        for hook in rendered.shown_hooks(&self.print_options()) {
            files.write(&inner, &hook.source, &hook.text)?;
        }
        Ok(())
    }
}

/// Whether the path exists, with Helm's error in the cases where it would not search repositories.
fn locate(path: &Path) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let shown = quote(&path.to_string_lossy());
    if path.is_absolute() || path.starts_with(".") || path.starts_with("..") {
        return Err(format!("path {shown} not found"));
    }
    Err(format!(
        "path {shown} not found, and charts are not fetched from repositories"
    ))
}

struct Files {
    written: HashSet<PathBuf>,
}

impl Files {
    fn write(&mut self, folder: &Path, source: &str, text: &str) -> Result<(), Exit> {
        let path = folder.join(source);
        let broken =
            |e: std::io::Error| failed(&format!("open {}: {}", path.display(), reason(&e)));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(broken)?;
        }
        let append = self.written.contains(&path);
        let file = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .append(append)
            .truncate(!append)
            .open(&path);
        file.and_then(|mut file| file.write_all(document(source, text).as_bytes()))
            .map_err(broken)?;
        output::print(&format!("wrote {}\n", path.display()));
        self.written.insert(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        template: Template,
    }

    fn line(flags: &[&str]) -> Result<Template, String> {
        let words = ["template", "r", "chart"].iter().chain(flags);
        Line::try_parse_from(words)
            .map(|line| line.template)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_template_is_always_a_dry_run() {
        let check = |flag: &str| line(&[flag]).expect("it is a flag").refused.check();
        for fine in [
            "--dry-run",
            "--dry-run=client",
            "--dry-run=true",
            "--dry-run=1",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (flag, value) in [
            ("--dry-run=none", "none"),
            ("--dry-run=false", "false"),
            ("--dry-run=F", "F"),
        ] {
            assert_eq!(
                check(flag),
                Err(format!(
                    "invalid dry-run value (\"{value}\"). Must be \"server\" or \"client\""
                ))
            );
        }
        let wrong = r#"invalid dry-run value ("maybe"). Must be "none", "server", or "client""#;
        assert_eq!(check("--dry-run=maybe"), Err(wrong.to_owned()));
        assert!(
            check("--dry-run=server")
                .is_err_and(|why| why.starts_with("--dry-run=server asks a cluster"))
        );
    }

    #[test]
    fn old_flags_are_told_of() {
        let told = |flags: &[&str]| line(flags).expect("they are flags").told_of_flags();
        assert_eq!(
            told(&["--atomic"]),
            ["Flag --atomic has been deprecated, use --rollback-on-failure instead"]
        );
        assert_eq!(
            told(&["--force"]),
            ["Flag --force has been deprecated, use --force-replace instead"]
        );
        let helm5 = "this flag has no effect for 'helm template' and will be removed in Helm 5";
        assert_eq!(
            told(&["--hide-notes"]),
            [format!("Flag --hide-notes has been deprecated, {helm5}")]
        );
        let bare = "level=WARN msg=\"--dry-run is deprecated and should be replaced with '--dry-run=client'\"";
        assert_eq!(told(&["--dry-run"]), [bare]);
        let boolean = "level=WARN msg=\"boolean '--dry-run=true' flag is deprecated and must be replaced with '--dry-run=client'\"";
        assert_eq!(told(&["--dry-run=1"]), [boolean]);
        assert!(told(&["--dry-run=client", "--wait", "--rollback-on-failure"]).is_empty());
    }

    #[test]
    fn flags_without_effect_are_taken() {
        for flags in [
            &["--wait"][..],
            &["--wait=legacy", "--wait-for-jobs", "--timeout", "5m"],
            &[
                "--atomic",
                "--description",
                "-x",
                "--force",
                "--take-ownership",
                "-l",
                "a=b",
            ],
            &[
                "--rollback-on-failure",
                "--force-replace",
                "--force-conflicts",
            ],
            &[
                "--kube-version",
                "",
                "-f",
                "",
                "--output-dir",
                "",
                "--name-template",
                "",
            ],
            &[
                "--server-side=true",
                "--username",
                "u",
                "--password=p",
                "--plain-http",
                "--keyring",
                "k",
                "--post-renderer-args",
                "-x",
            ],
            &[
                "--kubeconfig=k",
                "--kube-token",
                "t",
                "--kube-as-group",
                "g",
                "--kube-as-group=h",
                "--qps=1.5",
                "--color",
                "never",
            ],
        ] {
            let template = line(flags).unwrap_or_else(|e| panic!("{flags:?}: {e}"));
            assert!(
                template.options().is_ok() && template.values.read(&Limits::default()).is_ok(),
                "{flags:?}"
            );
        }
        assert!(
            line(&["--timeout", "5"])
                .is_err_and(|e| e.contains("time: missing unit in duration \"5\""))
        );
        assert!(
            line(&["--wait=never"])
                .is_err_and(|e| e.contains("Valid inputs are watcher, hookOnly, and legacy"))
        );
    }
}
