//! `cargo xtask swap`: a genuine Argo CD on a real API server, one of whose programs is replaced by
//! ours, and put back. Nothing that its API shows of a fleet of Applications may differ: neither of
//! those that were there before, nor of others that are created, changed and healed meanwhile. The
//! controllers of ApplicationSets and notifications are compared by what they make and tell. The
//! genuine programs are built outside of this repository, and without them nothing is compared.
//! `cargo xtask swap catalog` is the same for kubeapps' asset-syncer.

mod apps;
mod catalog;
mod deliveries;
mod generators;
mod git;
mod roles;
mod sets;
mod state;

use anyhow::{Context, anyhow, ensure};
use apps::Fleet;
use roles::{Installation, Maker, Programs, Role};
use serde_json::{Value, json};
use state::{Shown, differences, shown};
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use tiphys_gocompat::yaml;
use tiphys_testkit::{Api, ControlPlane, apps_path, namespaced};

/// What `cargo xtask swap` takes.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Argo CD's program, which has all its roles
    #[arg(long, value_name = "FILE", required = true)]
    argocd: Option<PathBuf>,
    /// Ours
    #[arg(long, value_name = "FILE", default_value = "target/debug/tiphys")]
    program: PathBuf,
    #[arg(long, value_name = "FILE", default_value = "redis-server")]
    redis: PathBuf,
    /// The folder of helm and kustomize, which Argo CD's repo-server starts
    #[arg(long, value_name = "DIR", required = true)]
    tools: Option<PathBuf>,
    /// How many Applications a fleet has; there are 12 kinds
    #[arg(long, default_value_t = 24)]
    apps: usize,
    /// How many ApplicationSets there are; there are 24 kinds with five policies
    #[arg(long, default_value_t = 120)]
    sets: usize,
    /// How many changes of Applications notifications are played with
    #[arg(long, default_value_t = 200)]
    changes: usize,
    /// The programs that are replaced, one at a time
    #[arg(long, value_name = "ROLE", default_values_t = Role::SWAPPED)]
    role: Vec<Role>,
    /// How long to wait for anything, in seconds
    #[arg(long, default_value_t = 300)]
    patience: u64,
}

/// Programs that are not of Argo CD.
#[derive(clap::Subcommand)]
enum Other {
    /// kubeapps' asset-syncer and ours take turns in the same databases, and what one of them leaves
    /// is compared with what the other one does
    Catalog(catalog::Args),
}

/// One installation on one cluster.
struct World {
    kube: Api,
    installation: Installation,
    patience: Duration,
}

/// What the API showed of a fleet, after each step.
struct Story {
    fleet: Fleet,
    created: Shown,
    changed: Shown,
}

/// # Errors
/// If something differs, or does not come to rest.
pub fn run(root: &Path, args: &Args) -> anyhow::Result<()> {
    if let Some(Other::Catalog(args)) = &args.other {
        return catalog::run(args);
    }
    let programs = Programs {
        genuine: args.argocd.as_deref().context("--argocd")?,
        ours: &args.program,
        redis: &args.redis,
        tools: args.tools.as_deref().context("--tools")?,
    };
    let control_plane = ControlPlane::start(root);
    let mut world = World {
        kube: control_plane.api(),
        installation: Installation::new(&programs, &control_plane.kubeconfig)?,
        patience: Duration::from_secs(args.patience),
    };
    match world.all(root, args) {
        Ok(0) => Ok(()),
        Ok(found) => Err(anyhow!("{found} differences")),
        Err(e) => Err(e.context(world.installation.last_words())),
    }
}

impl World {
    /// Everything; returns how much differs.
    fn all(&mut self, root: &Path, args: &Args) -> anyhow::Result<usize> {
        self.prepare(root)?;
        let of_fleets = args.role.iter().filter(|role| role.has_fleet());
        let of_fleets: Vec<Role> = of_fleets.copied().collect();
        let mut found = 0;
        if !of_fleets.is_empty() {
            found += self.fleets(&of_fleets, args.apps)?;
            // Sets and notifications are compared by Applications that nobody else writes.
            self.installation.stop();
        }
        if args.role.contains(&Role::ApplicationsetController) {
            found += sets::swap(self, args.sets)?;
        }
        if args.role.contains(&Role::Notifications) {
            found += deliveries::swap(self, args.changes)?;
        }
        Ok(found)
    }

    fn fleets(&mut self, roles: &[Role], apps: usize) -> anyhow::Result<usize> {
        for role in Role::OF_FLEETS {
            self.installation.put(role, Maker::Genuine)?;
        }
        self.listening()?;
        let reference = self.play("-ga", apps)?;
        println!("{apps} Applications under genuine programs");
        let mut found = 0;
        for (role, mark) in roles.iter().zip(["-gb", "-gc", "-gd", "-ge"]) {
            found += self.swap(*role, mark, &reference)?;
        }
        Ok(found)
    }

    fn put(&mut self, role: Role, maker: Maker) -> anyhow::Result<()> {
        self.installation.put(role, maker)?;
        self.listening()
    }

    fn listening(&self) -> anyhow::Result<()> {
        self.wait("the programs listen", || {
            ensure!(self.installation.listens(), "one does not");
            Ok(())
        })
    }

    /// The definitions, the namespace and the settings of an installation.
    fn prepare(&self, root: &Path) -> anyhow::Result<()> {
        for name in ["application", "applicationset", "appproject"] {
            let file = root.join(format!("deploy/crds/{name}-crd.yaml"));
            let text = fs::read(&file).with_context(|| file.display().to_string())?;
            let object =
                yaml::parse_document(&text, &yaml::Limits::default(), yaml::Duplicates::Refuse)
                    .map_err(|e| anyhow!("{name}: {e}"))?;
            self.kube.create(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &object,
            );
        }
        self.kube.namespace("argocd");
        let labels = json!({"app.kubernetes.io/part-of": "argocd"});
        for name in [
            "argocd-cm",
            "argocd-rbac-cm",
            "argocd-cmd-params-cm",
            "argocd-ssh-known-hosts-cm",
            "argocd-tls-certs-cm",
            "argocd-gpg-keys-cm",
        ] {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "labels": labels}});
            self.kube
                .create(&namespaced("v1", "argocd", "configmaps"), &object);
        }
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "argocd-secret", "labels": labels},
            "stringData": {"server.secretkey": "a-key-of-this-run", "admin.password": "",
                "admin.passwordMtime": "2026-01-01T00:00:00Z"}});
        self.kube
            .create(&namespaced("v1", "argocd", "secrets"), &secret);
        self.served("appprojects")?;
        self.served("applications")?;
        self.served("applicationsets")?;
        let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "default"},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
        let path = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
        self.kube.create(&path, &project);
        Ok(())
    }

    fn served(&self, plural: &str) -> anyhow::Result<()> {
        let path = namespaced("argoproj.io/v1alpha1", "argocd", plural);
        self.wait(&format!("{plural} are served"), || {
            let answer = self.kube.get(&path).map_err(|e| anyhow!(e.0))?;
            ensure!(answer.is_success(), "{}", answer.status);
            Ok(())
        })
    }

    fn wait(&self, what: &str, mut ask: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let end = Instant::now() + self.patience;
        loop {
            match ask() {
                Ok(()) => return Ok(()),
                Err(e) if Instant::now() > end => return Err(e.context(format!("never: {what}"))),
                Err(_) => thread::sleep(Duration::from_millis(250)),
            }
        }
    }

    /// A fleet is created, changed by a commit, and damaged.
    fn play(&self, mark: &'static str, number: usize) -> anyhow::Result<Story> {
        let mut fleet = Fleet::new(mark, number)?;
        for app in &fleet.apps {
            if Fleet::has_namespace(app) {
                self.kube.namespace(&app.name);
            }
            self.kube.create(&apps_path(), &fleet.application(app));
        }
        let created = self.rest(&fleet)?;
        fleet.commit();
        self.refresh(&fleet, "normal")?;
        self.damage(&fleet);
        let changed = self.rest(&fleet)?;
        Ok(Story {
            fleet,
            created,
            changed,
        })
    }

    /// Somebody deletes and edits what is deployed.
    fn damage(&self, fleet: &Fleet) {
        for app in fleet
            .apps
            .iter()
            .filter(|app| app.name.starts_with("directory"))
        {
            let maps = namespaced("v1", &app.name, "configmaps");
            self.kube.delete(&format!("{maps}/settings"));
            let web = format!("{}/web", namespaced("apps/v1", &app.name, "deployments"));
            self.kube.patch(&web, &json!({"spec": {"replicas": 3}}));
        }
    }

    /// Waits until nothing more happens to a fleet; what the API shows then.
    fn rest(&self, fleet: &Fleet) -> anyhow::Result<Shown> {
        let head = fleet.revisions.last().context("a fleet has a commit")?;
        self.wait("everything is Synced and Healthy", || {
            for app in &fleet.apps {
                let path = format!("{}/{}", apps_path(), app.name);
                let found = self.kube.find(&path).context("it is there")?;
                is_at_rest(&found["status"], head, Fleet::is_sound(app))
                    .map_err(|why| anyhow!("{}: {why}", app.name))?;
            }
            Ok(())
        })?;
        self.refresh(fleet, "hard")?;
        let api = Api::plain(&self.installation.api());
        let mut before = None;
        let mut last = None;
        // Pods and endpoints come a little later than the health of their owner.
        self.wait("the API shows the same twice", || {
            thread::sleep(Duration::from_secs(1));
            let now = shown(&api, fleet)?;
            let moved = before.as_ref().map(|before| differences(before, &now));
            before = Some(now.clone());
            last = Some(now);
            let moved = moved.context("shown once")?;
            ensure!(moved.is_empty(), "{}", moved.join("\n"));
            Ok(())
        })?;
        last.context("it was shown")
    }

    fn refresh(&self, fleet: &Fleet, how: &str) -> anyhow::Result<()> {
        let key = "argocd.argoproj.io/refresh";
        let paths: Vec<_> = fleet
            .apps
            .iter()
            .map(|app| format!("{}/{}", apps_path(), app.name))
            .collect();
        for path in &paths {
            self.kube
                .patch(path, &json!({"metadata": {"annotations": {key: how}}}));
        }
        self.wait("everything is refreshed", || {
            for path in &paths {
                let found = self.kube.find(path).with_context(|| path.clone())?;
                ensure!(
                    found["metadata"]["annotations"][key].is_null(),
                    "{path} is not refreshed"
                );
            }
            Ok(())
        })
    }

    /// One program is replaced, and put back; returns how much differs.
    fn swap(&mut self, role: Role, mark: &'static str, before: &Story) -> anyhow::Result<usize> {
        let number = before.fleet.apps.len();
        self.put(role, Maker::Ours)?;
        let there = self.rest(&before.fleet)?;
        let mut found = report(role, "those that were there", &before.changed, &there);
        let new = self.play(mark, number)?;
        found += report(role, "created meanwhile", &before.created, &new.created);
        found += report(role, "changed meanwhile", &before.changed, &new.changed);
        self.put(role, Maker::Genuine)?;
        let back = self.rest(&before.fleet)?;
        found += report(role, "after it was put back", &there, &back);
        let back = self.rest(&new.fleet)?;
        found += report(
            role,
            "the new ones after it was put back",
            &new.changed,
            &back,
        );
        self.delete(&new.fleet)?;
        Ok(found)
    }

    /// Deletes a fleet, and waits until nothing of it is left.
    fn delete(&self, fleet: &Fleet) -> anyhow::Result<()> {
        let paths: Vec<_> = fleet
            .apps
            .iter()
            .map(|app| format!("{}/{}", apps_path(), app.name))
            .collect();
        paths.iter().for_each(|path| self.kube.delete(path));
        self.wait("everything is deleted", || {
            let left = paths.iter().find(|path| self.kube.find(path).is_some());
            ensure!(left.is_none(), "{left:?} is still there");
            Ok(())
        })
    }
}

fn is_at_rest(status: &Value, head: &str, is_sound: bool) -> Result<(), String> {
    if !is_sound {
        let conditions = status["conditions"].as_array();
        return match conditions.is_some_and(|c| c.iter().any(|c| c["type"] == "ComparisonError")) {
            true => Ok(()),
            false => Err("it has no condition yet".to_owned()),
        };
    }
    let sync = &status["sync"];
    let revisions = sync["revisions"].as_array();
    let is_new = sync["revision"] == head
        || revisions.is_some_and(|all| all.iter().any(|r| r == head))
        // A chart's version does not come with a commit.
        || sync["comparedTo"]["source"]["chart"].is_string();
    let is_well = sync["status"] == "Synced"
        && status["health"]["status"] == "Healthy"
        && status["operationState"]["phase"] == "Succeeded";
    match is_new && is_well {
        true => Ok(()),
        false => Err(format!(
            "{} {} {} at {}: {}",
            sync["status"],
            status["health"]["status"],
            status["operationState"]["phase"],
            sync["revision"],
            status["conditions"]
        )),
    }
}

fn report(role: Role, what: &str, before: &Shown, after: &Shown) -> usize {
    let lines = differences(before, after);
    println!(
        "{}, {what}: {} answers, {} differences",
        role.name(),
        after.len(),
        lines.len()
    );
    for line in lines.iter().take(200) {
        println!("  {line}");
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    #[test]
    fn its_arguments_are_those_of_argo_cd_or_of_the_catalogue() {
        for (words, is_known) in [
            ("--argocd a --tools t --role repo-server", true),
            ("catalog --genuine g --charts 200", true),
            ("--argocd a", false),
            ("", false),
            ("catalog", false),
            ("catalog --genuine g --charts 9", false),
            ("--argocd a --tools t catalog --genuine g", false),
        ] {
            let words = ["xtask", "swap"]
                .into_iter()
                .chain(words.split_whitespace());
            let parsed = crate::Args::try_parse_from(words.clone());
            let words: Vec<&str> = words.collect();
            assert_eq!(parsed.is_ok(), is_known, "{words:?}");
        }
    }
}
