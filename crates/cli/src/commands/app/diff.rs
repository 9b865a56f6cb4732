//! `app diff`: what a sync would change.

mod by_server;

pub use by_server::Batches;

use super::{
    AppRef, Refresh,
    local::{self, Local},
    manifests::{Revisions, managed, object, render},
    send,
};
use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{self, log},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use tiphys_api::{Application, resource::ResourceDiff, rpc::settings::Settings};
use tiphys_apimachinery::{Object, key::ResourceKey};
use tiphys_engine::{
    diff::{self, Options},
    marks,
    sync::hook,
    track,
    types::{Diff, IgnoreRule, Tracking, TrackingMethod},
};

#[derive(clap::Args)]
pub struct DiffCommand {
    /// The application
    app: String,
    #[command(flatten)]
    refresh: Refresh,
    /// Return non-zero exit code when there is a diff: 1 for a difference (--diff-exit-code), 20 for
    /// whatever failed [default: true]
    #[arg(long)]
    exit_code: Option<bool>,
    /// Return specified exit code when there is a diff
    #[arg(long, default_value_t = 1)]
    diff_exit_code: u8,
    /// Compare live app to a particular revision
    #[arg(long)]
    revision: Option<String>,
    #[command(flatten)]
    revisions: Revisions,
    /// Compare live app to a local manifests
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// Path to the repository root. Used together with --local allows setting the repository root
    #[arg(long, value_name = "DIR", default_value = "/")]
    local_repo_root: PathBuf,
    /// Used with --local, this will send your manifests to the server for diffing: the folder is in
    /// the place of the repository's root
    #[arg(long)]
    server_side_generate: bool,
    /// Used with --server-side-generate, specify patterns of filenames to send. Matching is based on
    /// filename and not path
    #[arg(
        long,
        value_name = "PATTERN",
        default_values = ["*.yaml", "*.yml", "*.json"]
    )]
    local_include: Vec<String>,
    /// Compare by the API server's own dry run, as with the option ServerSideDiff=true of the
    /// Application [default: as the Application says]
    #[arg(long)]
    server_side_diff: Option<bool>,
    #[command(flatten)]
    batches: Batches,
    /// Say of each field that differs who wrote it, and which ignoreDifferences entry would leave
    /// it out
    #[arg(long)]
    why: bool,
    /// (no effect: expressions are bounded by their work, not by time)
    #[arg(long, hide = true)]
    ignore_normalizer_jq_execution_timeout: Option<String>,
    /// Only render the difference in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

impl DiffCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let (tells, code) = (self.exit_code.unwrap_or(true), self.diff_exit_code);
        match self.differs(args).await {
            Ok(true) if tells => Err(Failure::exit(code)),
            Ok(_) => output::arrived().map_err(Failure::unlike_a_difference),
            Err(e) => Err(e.unlike_a_difference()),
        }
    }

    async fn differs(mut self, args: &ConnectArgs) -> Result<bool, Failure> {
        self.revisions.check()?;
        self.batches.check()?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let app = super::get(&client, &app_ref, self.refresh.kind()).await?;
        self.revisions.resolve(&client, &app_ref).await?;
        let judge = self.judge(&app)?;
        let target = match (
            &self.local,
            Target::of(self.revision.as_deref(), &self.revisions),
        ) {
            (Some(folder), Target::Known) if self.server_side_generate => Target::Sent {
                folder,
                patterns: &self.local_include,
            },
            (Some(folder), Target::Known) => Target::Local(Local {
                folder,
                root: &self.local_repo_root,
            }),
            (_, target) => target,
        };
        print(&client, &app, &app_ref, &target, judge, self.why).await
    }
}

impl DiffCommand {
    /// Who compares: the Application says it, unless the command line does.
    fn judge(&self, app: &Application) -> Result<Judge, Failure> {
        let of_app = Judge::of(app, self.batches);
        let by_server = Judge::Server(self.batches);
        let judge = match (self.server_side_diff, of_app) {
            (Some(true), Judge::Here) => {
                log::warn("Application does not have ServerSideDiff=true annotation.");
                by_server
            }
            (Some(true) | None, Judge::Server(_)) => by_server,
            (Some(false), _) | (None, Judge::Here) => Judge::Here,
        };
        let is_local = self.local.is_some() && !self.server_side_generate;
        if is_local && matches!(judge, Judge::Server(_)) {
            return Err(Failure::fatal(
                "--server-side-diff with --local requires --server-side-generate.",
            ));
        }
        Ok(judge)
    }
}

/// Who compares the objects.
#[derive(Clone, Copy)]
pub enum Judge {
    /// This program, by the last applied configuration.
    Here,
    /// The API server.
    Server(Batches),
}

impl Judge {
    /// As the Application is compared by the controller.
    pub fn of(app: &Application, batches: Batches) -> Self {
        if compares_by_server(app) {
            Self::Server(batches)
        } else {
            Self::Here
        }
    }
}

fn compares_by_server(app: &Application) -> bool {
    let options = app.metadata.annotations.get(marks::COMPARE_OPTIONS);
    let mut options = options.iter().flat_map(|o| o.split(','));
    options.any(|option| option.trim() == "ServerSideDiff=true")
}

/// The live object and its predicted state, without ignored fields.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    key: ResourceKey,
    live: Value,
    target: Value,
    /// The live object with its managed fields; null if there is none.
    managed: Value,
}

/// What the live state is compared with.
pub enum Target<'a> {
    /// The target that the server uses.
    Known,
    Revision(&'a str, &'a Revisions),
    Local(Local<'a>),
    /// What the server renders of the files in a folder.
    Sent {
        folder: &'a Path,
        patterns: &'a [String],
    },
}

impl<'a> Target<'a> {
    pub fn of(revision: Option<&'a str>, several: &'a Revisions) -> Self {
        let revision = revision.unwrap_or_default();
        if revision.is_empty() && several.revisions.is_empty() {
            Self::Known
        } else {
            Self::Revision(revision, several)
        }
    }
}

/// Prints the differences between the cluster and the target. True if there are any.
pub async fn print(
    client: &Client,
    app: &Application,
    app_ref: &AppRef,
    target: &Target<'_>,
    judge: Judge,
    why: bool,
) -> Result<bool, Failure> {
    let mut pairs = pairs(client, app, app_ref, target, judge).await?;
    pairs.sort_by_cached_key(|pair| pair.key.to_string());
    for pair in &pairs {
        output::print(&header(&pair.key));
        output::print(&difference(&pair.live, &pair.target)?);
        if why {
            output::print(&reasons(pair)?);
        }
    }
    Ok(!pairs.is_empty())
}

async fn pairs(
    client: &Client,
    app: &Application,
    app_ref: &AppRef,
    target: &Target<'_>,
    judge: Judge,
) -> Result<Vec<Pair>, Failure> {
    let mut resources = managed(client, app_ref).await?;
    // The controller compares as the Application says.
    let is_by_server = matches!(judge, Judge::Server(_));
    if matches!(target, Target::Known) && is_by_server == compares_by_server(app) {
        return known(&resources);
    }
    let tracking = tracking(app, &super::settings(client).await?);
    let objects = match target {
        Target::Known => targets(&resources)?,
        Target::Revision(revision, several) => {
            render(client, app_ref, revision, several, false).await?
        }
        Target::Sent { folder, patterns } => {
            send::manifests(client, app_ref, folder, patterns).await?
        }
        Target::Local(local) => {
            resources.retain(|r| !local::is_secret(&r.group, &r.kind));
            local.objects(client, app, &tracking).await?
        }
    };
    let (matched, mut pairs) = matched(app, &resources, objects, &tracking)?;
    pairs.extend(match judge {
        Judge::Here => compared(app, matched),
        Judge::Server(batches) => {
            by_server::differences(client, (app, app_ref), matched, batches).await?
        }
    });
    Ok(pairs)
}

fn header(key: &ResourceKey) -> String {
    format!(
        "\n===== {}/{} {}/{} ======\n",
        key.group, key.kind, key.namespace, key.name
    )
}

/// The comparison that the server already made.
fn known(resources: &[ResourceDiff]) -> Result<Vec<Pair>, Failure> {
    let mut pairs = Vec::new();
    for r in resources.iter().filter(|r| !r.hook) {
        let (live, target) = (
            object(&r.normalized_live_state)?,
            object(&r.predicted_live_state)?,
        );
        // Objects that require pruning have no target; the server predicts nothing for them.
        let target = if object(&r.target_state)?.is_null() {
            Value::Null
        } else {
            target
        };
        if (r.modified || live.is_null() || target.is_null()) && live != target {
            let key = ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name);
            pairs.push(Pair {
                key,
                live,
                target,
                managed: object(&r.live_state)?,
            });
        }
    }
    Ok(pairs)
}

/// How the Application tracks its objects; rendered objects do not show it yet.
pub fn tracking(app: &Application, settings: &Settings) -> Tracking {
    let m = &app.metadata;
    let is_elsewhere = !m.namespace.is_empty()
        && !settings.controller_namespace.is_empty()
        && m.namespace != settings.controller_namespace;
    Tracking {
        app_name: if is_elsewhere {
            format!("{}_{}", m.namespace, m.name)
        } else {
            m.name.clone()
        },
        method: match settings.tracking_method.as_str() {
            "label" => TrackingMethod::Label,
            "annotation+label" => TrackingMethod::AnnotationAndLabel,
            _ => TrackingMethod::Annotation,
        },
        label_key: settings.app_label_key.clone(),
        installation_id: settings.installation_id.clone(),
    }
}

/// What the server wants, as it knows it.
fn targets(resources: &[ResourceDiff]) -> Result<Vec<Value>, Failure> {
    let states = resources.iter().filter(|r| !r.hook);
    let mut targets = Vec::new();
    for state in states {
        let target = object(&state.target_state)?;
        if !target.is_null() {
            targets.push(target);
        }
    }
    Ok(targets)
}

/// A desired object beside the live one of the same key.
struct Matched {
    key: ResourceKey,
    target: Object,
    /// Without ignored fields.
    live: Option<Object>,
    /// The live object with its managed fields; null if there is none.
    managed: Value,
}

/// Rendered objects beside the live ones that the server knows, and the live ones without any.
fn matched(
    app: &Application,
    resources: &[ResourceDiff],
    rendered: Vec<Value>,
    tracking: &Tracking,
) -> Result<(Vec<Matched>, Vec<Pair>), Failure> {
    let parse = |value: Value| {
        Object::from_value(value)
            .map_err(|e| Failure::error(format!("the server sent a manifest: {e}")))
    };
    let (mut live, mut managed) = (BTreeMap::new(), BTreeMap::new());
    // Whether a kind is namespaced is taken from existing objects.
    let mut namespaced = BTreeMap::new();
    for r in resources {
        namespaced.insert((r.group.as_str(), r.kind.as_str()), !r.namespace.is_empty());
        let state = object(&r.normalized_live_state)?;
        if !r.hook && !state.is_null() {
            let parsed = parse(state)?;
            managed.insert(parsed.key(), object(&r.live_state)?);
            live.insert(parsed.key(), parsed);
        }
    }
    let namespace = &app.spec.destination.namespace;
    let mut all = Vec::new();
    for value in rendered {
        let mut object = parse(value)?;
        if hook::is_hook(&object) {
            continue;
        }
        match namespaced.get(&(object.group(), object.kind())) {
            Some(false) => object.set_namespace(""),
            _ if object.namespace().is_empty() => object.set_namespace(namespace),
            _ => {}
        }
        track::set(&mut object, tracking, namespace);
        let key = object.key();
        all.push(Matched {
            target: object,
            live: live.remove(&key),
            managed: managed.remove(&key).unwrap_or_default(),
            key,
        });
    }
    let extra = live.into_iter().map(|(key, object)| Pair {
        key,
        live: object.into_value(),
        target: Value::Null,
        managed: Value::Null,
    });
    Ok((all, extra.collect()))
}

/// The objects that differ.
fn compared(app: &Application, matched: Vec<Matched>) -> Vec<Pair> {
    let rules = app.spec.ignore_differences.iter();
    let rules: Vec<IgnoreRule> = rules.map(IgnoreRule::from).collect();
    let options = Options {
        ignore: &rules,
        ..Default::default()
    };
    let pair = |m: Matched| {
        let diff = diff::diff(Some(&m.target), m.live.as_ref(), &options);
        diff.modified.then(|| Pair {
            key: m.key,
            live: (*diff.normalized_live).clone(),
            target: (*diff.predicted_live).clone(),
            managed: m.managed,
        })
    };
    matched.into_iter().filter_map(pair).collect()
}

/// Why the pair differs, one paragraph per field.
fn reasons(pair: &Pair) -> Result<String, Failure> {
    match (&pair.live, &pair.target) {
        (Value::Null, _) => {
            return Ok("\nIt is in Git and not in the cluster: a sync creates it.\n".to_owned());
        }
        (_, Value::Null) => {
            return Ok(
                "\nIt is in the cluster and not in Git: a sync with --prune deletes it.\n"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let diff = Diff {
        modified: true,
        normalized_live: Arc::new(pair.live.clone()),
        predicted_live: Arc::new(pair.target.clone()),
    };
    let live = if pair.managed.is_null() {
        &pair.live
    } else {
        &pair.managed
    };
    let live = Object::from_value(live.clone())
        .map_err(|e| Failure::error(format!("the server sent a manifest: {e}")))?;
    let mut out = String::new();
    for reason in diff::why(&diff, &live) {
        let side = |value: &Option<Value>| {
            value
                .as_ref()
                .map_or("nothing".to_owned(), Value::to_string)
        };
        let _ = write!(
            out,
            "\n{}\n  cluster: {}\n  Git:     {}\n",
            reason.path,
            side(&reason.live),
            side(&reason.desired)
        );
        for owner in &reason.owners {
            let _ = writeln!(
                out,
                "  written by {} ({} {})",
                owner.manager, owner.operation, owner.time
            );
        }
        let rule = serde_json::to_value(&reason.ignore).unwrap_or_default();
        let _ = writeln!(
            out,
            "  to leave it out: spec.ignoreDifferences: [{}]",
            without_empty(rule)
        );
    }
    Ok(out)
}

fn without_empty(mut rule: Value) -> Value {
    if let Some(map) = rule.as_object_mut() {
        map.retain(|_, v| {
            !matches!(v, Value::Array(list) if list.is_empty()) && v.as_str() != Some("")
        });
    }
    rule
}

/// The difference, printed by the tool in `KUBECTL_EXTERNAL_DIFF` or in the format of `diff`.
pub(in crate::commands) fn difference(live: &Value, target: &Value) -> Result<String, Failure> {
    let yaml = |value: &Value| {
        if value.is_null() {
            Ok(String::new())
        } else {
            output::yaml(value)
        }
    };
    let (live, target) = (yaml(live)?, yaml(target)?);
    let Some(tool) = std::env::var("KUBECTL_EXTERNAL_DIFF")
        .ok()
        .filter(|t| !t.trim().is_empty())
    else {
        return Ok(output::diff::normal(&live, &target));
    };
    let run = || -> std::io::Result<String> {
        // Others may read and write in the folder of temporary files as well.
        let folder = tempfile::Builder::new()
            .prefix("tiphys-diff-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let (live_file, target_file) = (
            folder.path().join("live.yaml"),
            folder.path().join("target.yaml"),
        );
        fs::write(&live_file, live)?;
        fs::write(&target_file, target)?;
        let mut words = tool.split_whitespace();
        let out = Command::new(words.next().unwrap_or("diff"))
            .args(words)
            .arg(live_file)
            .arg(target_file)
            .output()?;
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    run().map_err(|e| Failure::error(format!("KUBECTL_EXTERNAL_DIFF {tool:?}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(name: &str, live: Value, target: Value, modified: bool) -> ResourceDiff {
        ResourceDiff {
            kind: "ConfigMap".into(),
            namespace: "n".into(),
            name: name.into(),
            target_state: target.to_string(),
            normalized_live_state: live.to_string(),
            predicted_live_state: target.to_string(),
            modified,
            ..Default::default()
        }
    }

    fn config_map(name: &str, value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"k": value}})
    }

    #[test]
    fn what_the_server_found() {
        let resources = [
            resource(
                "same",
                config_map("same", "1"),
                config_map("same", "1"),
                false,
            ),
            resource(
                "changed",
                config_map("changed", "1"),
                config_map("changed", "2"),
                true,
            ),
            resource("new", Value::Null, config_map("new", "1"), true),
            resource("gone", config_map("gone", "1"), Value::Null, false),
            ResourceDiff {
                hook: true,
                ..resource("hook", Value::Null, config_map("hook", "1"), true)
            },
        ];
        let pairs = known(&resources).expect("valid");
        let names: Vec<&str> = pairs.iter().map(|p| p.key.name.as_str()).collect();
        assert_eq!(names, ["changed", "new", "gone"]);
        assert_eq!(
            header(&pairs[0].key),
            "\n===== /ConfigMap n/changed ======\n"
        );
        assert_eq!(
            difference(&pairs[0].live, &pairs[0].target).expect("printed"),
            "3c3\n<   k: \"1\"\n---\n>   k: \"2\"\n"
        );
        let why = reasons(&pairs[0]).expect("said");
        assert!(
            why.starts_with("\n.data.k\n  cluster: \"1\"\n  Git:     \"2\"\n"),
            "{why}"
        );
        assert!(
            why.ends_with("[{\"jsonPointers\":[\"/data/k\"],\"kind\":\"ConfigMap\",\"name\":\"changed\",\"namespace\":\"n\"}]\n"),
            "{why}"
        );
        assert!(
            difference(&pairs[2].live, &pairs[2].target)
                .expect("printed")
                .starts_with("1,7d0\n< apiVersion: v1\n")
        );
    }

    #[test]
    fn another_revision() {
        let mut app = Application::default();
        app.metadata.name = "a".into();
        app.spec.destination.namespace = "n".into();
        let tracking = tracking(&app, &Settings::default());
        let marked = |name: &str, value: &str| {
            let mut object = Object::from_value(config_map(name, value)).expect("an object");
            track::set(&mut object, &tracking, "n");
            object.into_value()
        };
        let resources = [
            resource("same", marked("same", "1"), Value::Null, false),
            resource("changed", marked("changed", "1"), Value::Null, false),
            resource("gone", marked("gone", "1"), Value::Null, false),
        ];
        let without_namespace = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "same"}, "data": {"k": "1"}});
        let rendered = vec![
            without_namespace,
            config_map("changed", "2"),
            config_map("new", "1"),
        ];
        let (matched, extra) = matched(&app, &resources, rendered, &tracking).expect("valid");
        let pairs = [compared(&app, matched), extra].concat();
        let names: Vec<&str> = pairs.iter().map(|p| p.key.name.as_str()).collect();
        assert_eq!(names, ["changed", "new", "gone"]);
    }
}
