//! `helm template`: renders a chart and prints its manifests. Main type: [`Template`].

use super::{excerpt, failed, kube_version, load, namespace, sources, values::ValueArgs, warn};
use crate::{
    client::{Failure as Exit, reason},
    output,
};
use std::{
    collections::HashSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_gocompat::text::quote;
use tiphys_render::helm::{
    HelmError, Limits, ParsedChart, PrintOptions, RenderOptions, RenderedChart, chart::Chart, check_installable, document, release_name,
};

/// Render chart templates locally and display the output, as `helm template` does
///
/// The chart is a folder or an archive. Nothing is fetched and no cluster is asked; `lookup` finds nothing.
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
    without_effect: WithoutEffect,
}

#[derive(clap::Args)]
struct RenderArgs {
    /// Namespace of the release [env: HELM_NAMESPACE] [default: default]
    #[arg(long, short = 'n', value_name = "NAME")]
    namespace: Option<String>,
    /// Kubernetes version used for Capabilities.KubeVersion
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// Kubernetes API versions used for Capabilities.APIVersions (can specify multiple or separate them with commas)
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
    output_dir: Option<PathBuf>,
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
        let reason = match () {
            () if self.validate || self.dry_run.as_deref() == Some("server") => {
                let flag = if self.validate { "--validate" } else { "--dry-run=server" };
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
        Err(format!("{reason}; this command only reads the chart that it is given"))
    }
}

/// Helm takes these, too, and they change nothing of what it prints.
#[derive(clap::Args)]
struct WithoutEffect {
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    devel: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(long, hide = true, value_name = "VERSION")]
    version: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "NAME")]
    kube_context: Option<String>,
    #[arg(long, hide = true, value_name = "DURATION")]
    timeout: Option<String>,
}

impl Template {
    pub fn run(self) -> Result<(), Exit> {
        let limits = Limits::default();
        self.refused.check().map_err(|why| failed(&why))?;
        let options = self.options()?;
        let path = Path::new(self.words.last().map_or("", |path| path.trim()));
        let located = locate(path).and_then(|()| self.values.read(&limits).map_err(|e| e.to_string()));
        let user = located.map_err(|why| failed(&why))?;
        let loaded = load(path, &limits).map_err(|e| {
            let exit = failed(&e.to_string());
            if let Some(excerpt) = excerpt::of_file(path, &e.to_string(), &limits) {
                eprint!("\n{excerpt}");
            }
            exit
        })?;
        warn(&loaded.warnings);
        let chart = loaded.chart;
        check_installable(&chart).map_err(|e| failed(&e.to_string()))?;
        let chart = ParsedChart::new(chart);
        let mut warnings = Vec::new();
        let rendered = chart.render_telling(&user, &options, &limits, &mut warnings);
        warn(&warnings);
        let rendered = rendered.map_err(|e| self.broken(chart.chart(), &e))?;
        if let Some(folder) = &self.print.output_dir {
            self.write(&rendered, folder, &options.release.name)?;
        }
        let text = self.text(&rendered).map_err(|e| failed(&e.to_string()))?;
        output::print(&text);
        Ok(())
    }

    fn options(&self) -> Result<RenderOptions, Exit> {
        let mut options = RenderOptions::new(Arc::new(sources));
        if let Some(version) = &self.render.kube_version {
            options.capabilities.kube_version = kube_version(version)?;
        }
        options.release.name = self.name().map_err(|why| failed(&why))?;
        options.release.namespace = namespace(self.render.namespace.as_deref());
        options.release.is_upgrade = self.render.is_upgrade;
        options.capabilities.api_versions.extend(self.render.api_versions.iter().cloned());
        options.skip_schema_validation = self.render.skip_schema_validation;
        Ok(options)
    }

    /// The name of the release, as Helm finds it.
    fn name(&self) -> Result<String, String> {
        let unwanted = |flag: &str| Err(format!("cannot set {flag} and also specify a name"));
        match self.words.as_slice() {
            [_, _, more @ ..] if !more.is_empty() => {
                Err(format!("expected at most two arguments, unexpected arguments: {}", more.join(", ")))
            }
            [_, _] if self.render.generate_name => unwanted("--generate-name"),
            [_, _] if self.render.name_template.is_some() => unwanted("--name-template"),
            [name, _] => Ok(name.clone()),
            _ => match &self.render.name_template {
                Some(template) => release_name(template, sources()).map_err(|e| e.to_string()),
                None => Ok("release-name".to_owned()),
            },
        }
    }

    fn print_options(&self) -> PrintOptions {
        let PrintArgs { include_crds, no_hooks, skip_tests, show_only, .. } = &self.print;
        PrintOptions { include_crds: *include_crds, no_hooks: *no_hooks, skip_tests: *skip_tests, show_only: show_only.clone() }
    }

    fn text(&self, rendered: &RenderedChart) -> Result<String, HelmError> {
        match &self.print.output_dir {
            None => rendered.print(&self.print_options()),
            Some(_) => RenderedChart::default().print(&self.print_options()),
        }
    }

    /// What went wrong, Helm's hint, and the line.
    fn broken(&self, chart: &Chart, e: &HelmError) -> Exit {
        let hint = if e.while_rendering() && !self.print.debug { "\n\nUse --debug flag to render out invalid YAML" } else { "" };
        let exit = failed(&format!("{e}{hint}"));
        if let Some(excerpt) = excerpt::of(chart, e) {
            eprint!("\n{excerpt}");
        }
        exit
    }

    /// Writes the manifests to files, several of one template behind each other.
    fn write(&self, rendered: &RenderedChart, folder: &Path, release: &str) -> Result<(), Exit> {
        let inner = if self.print.release_name { folder.join(release) } else { folder.to_owned() };
        let mut files = Files { written: HashSet::new() };
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

/// Whether there is something at the path, in Helm's words where it would not go on to ask repositories.
fn locate(path: &Path) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let shown = quote(&path.to_string_lossy());
    if path.is_absolute() || path.starts_with(".") || path.starts_with("..") {
        return Err(format!("path {shown} not found"));
    }
    Err(format!("path {shown} not found, and charts are not fetched from repositories"))
}

struct Files {
    written: HashSet<PathBuf>,
}

impl Files {
    fn write(&mut self, folder: &Path, source: &str, text: &str) -> Result<(), Exit> {
        let path = folder.join(source);
        let broken = |e: std::io::Error| failed(&format!("open {}: {}", path.display(), reason(&e)));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(broken)?;
        }
        let append = self.written.contains(&path);
        let file = fs::OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(&path);
        file.and_then(|mut file| file.write_all(document(source, text).as_bytes())).map_err(broken)?;
        output::print(&format!("wrote {}\n", path.display()));
        self.written.insert(path);
        Ok(())
    }
}
