//! `cargo xtask realrepos DIR…`: every Application and every chart of cloned repositories, rendered
//! in process.
//!
//! Main function: [`run`]. Nothing is fetched: a source, base or dependency is looked for among the
//! clones, by its address, at their HEAD. What is elsewhere is counted by itself. Charts are rendered
//! with their own values; the Applications among their objects count too.

mod clones;

use anyhow::bail;
use clones::Clone;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tiphys_api::{Application, repo_url::RepoUrl, source::ApplicationSource};
use tiphys_apimachinery::Object;
use tiphys_engine::spec;
use tiphys_repo::{
    ClusterFacts, ManifestRequest, OtherRepository, Others, Reach, RefSource, RepoAccess,
    RepoError, Repos,
};

#[derive(clap::Args)]
pub struct Args {
    /// Folders with clones, a few levels deep
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Print what needs something from elsewhere too
    #[arg(long)]
    all: bool,
    /// Options of kustomize, as in kustomize.buildOptions
    #[arg(long, default_value = "--enable-helm")]
    kustomize_build_options: String,
    /// Version that the cluster is said to have
    #[arg(long, default_value = "1.34.0")]
    kube_version: String,
}

/// What came of one thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Renders,
    /// A source, base or dependency is not among the clones.
    Elsewhere(String),
    /// Something must run: a plugin, or a function of Kustomize.
    NeedsProgram(String),
    /// It names a folder that its repository does not have.
    Stale(String),
    Fails(String),
}

#[derive(Default)]
struct Tally {
    renders: usize,
    elsewhere: usize,
    programs: usize,
    stale: usize,
    fails: usize,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Renders => &mut self.renders,
            Outcome::Elsewhere(_) => &mut self.elsewhere,
            Outcome::NeedsProgram(_) => &mut self.programs,
            Outcome::Stale(_) => &mut self.stale,
            Outcome::Fails(_) => &mut self.fails,
        } += 1;
    }

    fn shown(&self) -> String {
        let here = self.renders + self.fails;
        format!(
            "{} of {here} render ({:.1} %); {} need something from elsewhere, {} a \
             program, {} a folder that is not there",
            self.renders,
            100.0 * self.renders as f64 / here.max(1) as f64,
            self.elsewhere,
            self.programs,
            self.stale,
        )
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let report = survey(args)?;
    for line in &report.lines {
        println!("{line}");
    }
    println!(
        "{} repositories, {} with Applications",
        report.repositories, report.with_apps
    );
    println!("Applications: {}", report.apps.shown());
    println!("charts: {}", report.charts.shown());
    Ok(())
}

#[derive(Default)]
struct Report {
    lines: Vec<String>,
    repositories: usize,
    with_apps: usize,
    apps: Tally,
    charts: Tally,
}

impl Report {
    fn add(&mut self, repository: &str, what: &str, found: Outcomes, all: bool) {
        for (name, outcome) in found {
            let tally = match what {
                "chart" => &mut self.charts,
                _ => &mut self.apps,
            };
            tally.count(&outcome);
            let why = match outcome {
                Outcome::Renders => continue,
                Outcome::Fails(why) => why,
                _ if !all => continue,
                Outcome::Elsewhere(why) | Outcome::NeedsProgram(why) | Outcome::Stale(why) => why,
            };
            let line = format!("{repository}: {what} {name}: {}", line(&why));
            self.lines.push(line);
        }
    }
}

fn survey(args: &Args) -> anyhow::Result<Report> {
    let mut clones = Vec::new();
    for dir in &args.dirs {
        clones.extend(Clone::below(dir)?);
    }
    if clones.is_empty() {
        bail!("there is no Git repository below the folders");
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let cache = tempfile::tempdir()?;
    let world = World {
        clones: Arc::new(clones),
        repos: Repos::new(cache.path()),
        args,
    };
    let mut report = Report::default();
    for clone in world.clones.iter() {
        let (apps, charts) = runtime.block_on(world.repository(clone))?;
        report.repositories += 1;
        report.with_apps += usize::from(!apps.is_empty());
        report.add(&clone.name, "Application", apps, args.all);
        report.add(&clone.name, "chart", charts, args.all);
    }
    Ok(report)
}

/// As one line that can be read.
fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(1200).collect()
}

struct World<'a> {
    clones: Arc<Vec<Clone>>,
    repos: Repos,
    args: &'a Args,
}

type Outcomes = Vec<(String, Outcome)>;

impl World<'_> {
    /// What became of the Applications and of the charts of one clone.
    async fn repository(&self, clone: &Clone) -> anyhow::Result<(Outcomes, Outcomes)> {
        let files = clone.files()?;
        let mut found: BTreeMap<String, Application> = BTreeMap::new();
        let yaml: Vec<&str> = files
            .iter()
            .map(String::as_str)
            .filter(|path| path.ends_with(".yaml") || path.ends_with(".yml"))
            .collect();
        clone.objects(&yaml, |path, object| {
            if let Some(app) = application(object) {
                found.insert(format!("{} ({path})", app.metadata.name), app);
            }
        })?;
        let mut charts = Vec::new();
        for folder in chart_folders(&files) {
            let source = ApplicationSource {
                path: if folder.is_empty() {
                    ".".to_owned()
                } else {
                    folder.clone()
                },
                ..ApplicationSource::default()
            };
            let (outcome, objects) = self
                .source(clone, &installed(), &source, &BTreeMap::new())
                .await;
            charts.push((
                if folder.is_empty() {
                    ".".to_owned()
                } else {
                    folder.clone()
                },
                outcome,
            ));
            for app in objects.into_iter().filter_map(application) {
                found.insert(format!("{} (chart {folder})", app.metadata.name), app);
            }
        }
        let mut apps = Vec::new();
        for (name, app) in found {
            apps.push((name, self.application(&app).await));
        }
        Ok((apps, charts))
    }

    fn cloned(&self, url: &str) -> Option<&Clone> {
        cloned(&self.clones, url)
    }

    /// The worst of its sources.
    async fn application(&self, app: &Application) -> Outcome {
        let sources = spec::sources(&app.spec);
        let mut refs = BTreeMap::new();
        for source in &sources {
            let Some(clone) = self
                .cloned(&source.repo_url)
                .filter(|_| source.chart.is_empty())
            else {
                return Outcome::Elsewhere(format!("{} {}", source.repo_url, source.chart));
            };
            if !source.ref_.is_empty() {
                let at = RefSource {
                    access: access(clone),
                    sha: clone.head.clone(),
                };
                refs.insert(source.ref_.clone(), at);
            }
        }
        let mut worst = Outcome::Renders;
        for source in sources {
            if let Some(clone) = self.cloned(&source.repo_url) {
                worst = worst.max(self.source(clone, app, &source, &refs).await.0);
            }
        }
        worst
    }

    async fn source(
        &self,
        clone: &Clone,
        app: &Application,
        source: &ApplicationSource,
        refs: &BTreeMap<String, RefSource>,
    ) -> (Outcome, Vec<Object>) {
        if source.plugin.is_some() {
            return (Outcome::NeedsProgram("a plugin".to_owned()), Vec::new());
        }
        let elsewhere = Arc::new(AtomicBool::new(false));
        let request = ManifestRequest {
            access: access(clone),
            source: source.clone(),
            sha: clone.head.clone(),
            app_name: app.metadata.name.clone(),
            namespace: app.spec.destination.namespace.clone(),
            project: app.spec.project.clone(),
            cluster_facts: ClusterFacts {
                kube_version: self.args.kube_version.clone(),
                kustomize_build_options: self.args.kustomize_build_options.clone(),
                ..ClusterFacts::default()
            },
            refs: refs.clone(),
            several: !app.spec.sources.is_empty(),
            others: self.others(&elsewhere),
            ..ManifestRequest::default()
        };
        match self.repos.manifests(request).await {
            Ok(manifests) if manifests.errors.is_empty() => {
                let objects = manifests
                    .objects
                    .iter()
                    .map(|kept| (*kept.object()).clone());
                (Outcome::Renders, objects.collect())
            }
            Ok(manifests) => (Outcome::Fails(manifests.errors[0].to_string()), Vec::new()),
            Err(e) => (
                classed(&e.to_string(), elsewhere.load(Ordering::Relaxed)),
                Vec::new(),
            ),
        }
    }

    fn others(&self, elsewhere: &Arc<AtomicBool>) -> Others {
        let (clones, elsewhere) = (Arc::clone(&self.clones), Arc::clone(elsewhere));
        Others::new(move |wanted| {
            let url = match wanted {
                OtherRepository::Url(url) => url,
                OtherRepository::Named(name) => name,
            };
            match cloned(&clones, url) {
                Some(clone) => Ok(Reach {
                    access: access(clone),
                    permitted: true,
                }),
                None => {
                    elsewhere.store(true, Ordering::Relaxed);
                    Err(RepoError::NotFound {
                        url: url.to_owned(),
                    })
                }
            }
        })
    }
}

/// What needs a program is refused by Argo CD's kustomize as well, unless it is told otherwise.
fn classed(message: &str, elsewhere: bool) -> Outcome {
    const PROGRAMS: [&str; 3] = ["plugin", "ksops", "function"];
    if elsewhere {
        Outcome::Elsewhere(message.to_owned())
    } else if PROGRAMS.iter().any(|word| message.contains(word)) && message.contains("kustom") {
        Outcome::NeedsProgram(message.to_owned())
    } else if message.ends_with("app path does not exist") {
        Outcome::Stale(message.to_owned())
    } else {
        Outcome::Fails(message.to_owned())
    }
}

fn cloned<'a>(clones: &'a [Clone], url: &str) -> Option<&'a Clone> {
    let wanted = place(&RepoUrl::parse(url).ok()?);
    clones
        .iter()
        .find(|clone| clone.url.as_ref().map(place).as_ref() == Some(&wanted))
}

/// Host and path: a repository is cloned by ssh or https.
fn place(url: &RepoUrl) -> String {
    let url = url.canonical();
    let place = url.split_once("://").map_or(&url[..], |(_, place)| place);
    place
        .split_once('@')
        .map_or(place, |(_, place)| place)
        .to_owned()
}

fn access(clone: &Clone) -> RepoAccess {
    RepoAccess::public(clone.path.to_string_lossy())
}

/// A chart that somebody installs as it is.
fn installed() -> Application {
    let mut app = Application::default();
    app.metadata.name = "release".to_owned();
    app
}

/// An Application that is not a template for one.
fn application(object: Object) -> Option<Application> {
    if object.kind() != "Application" || object.group() != "argoproj.io" {
        return None;
    }
    let value = object.into_value();
    let text = value.to_string();
    let is_template = text.contains("{{") || text.contains("\"<") || text.contains("${");
    let app: Application = serde_json::from_value(value).ok()?;
    // What a test expects of one has no source.
    (!is_template && !spec::sources(&app.spec).is_empty()).then_some(app)
}

/// Folders with a Chart.yaml that are not inside of another chart's `charts` folder.
fn chart_folders(files: &[String]) -> BTreeSet<String> {
    files
        .iter()
        .filter_map(|path| path.strip_suffix("Chart.yaml"))
        .map(|folder| folder.trim_end_matches('/').to_owned())
        .filter(|folder| !folder.split('/').any(|part| part == "charts") || !inside(folder, files))
        .collect()
}

fn inside(folder: &str, files: &[String]) -> bool {
    let outer = folder.rsplit_once("/charts/").map(|(outer, _)| outer);
    outer.is_some_and(|outer| files.binary_search(&format!("{outer}/Chart.yaml")).is_ok())
}

#[cfg(test)]
mod tests;
