//! `apply`: the equivalent of `kubectl apply`, with `--show-patch`, which explains it. Main type:
//! [`ApplyCommand`].
//!
//! This module has the flags and the output; reading is in [`read`], and applying in
//! [`tiphys_cluster::apply`].

mod documents;
mod edit;
mod editor;
pub mod explain;
mod flags;
mod last_applied;
mod live;
mod print;
pub mod read;
pub mod source;

use crate::{
    client::Failure as Exit,
    kubectl::{
        failure::Trouble,
        kube::{KubeArgs, Target},
    },
};
use flags::ApplyFlags;
use print::Printer;
use read::Found;
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError},
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{
    apply::{Applied, Applier, Item, Scope, set::ApplySet},
    request::OnWarning,
};
use tiphys_gocompat::json;

/// Apply manifests to a cluster, as `kubectl apply` does
///
/// What the files say becomes so in the cluster; objects that are not there are created. Like
/// `kubectl apply` it remembers what was applied in an annotation, and computes from the file, this
/// memory and the live object what has to change. Both tools can be used on the same objects:
/// annotation, field managers (kubectl-client-side-apply, with --server-side kubectl), messages and
/// exit codes are kubectl's.
///
/// --show-patch tells for every object what changes and why.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ApplyCommand {
    #[command(subcommand)]
    last_applied: Option<last_applied::LastApplied>,
    #[command(flatten)]
    flags: ApplyFlags,
    #[command(flatten)]
    kube: KubeArgs,
}

impl ApplyCommand {
    pub async fn run(self) -> Result<(), Exit> {
        let result = match self.last_applied {
            Some(command) => command.run(&self.kube).await,
            None => run(&self.flags, &self.kube).await,
        };
        finish(result, 1)
    }
}

/// Reports the error, if there is one.
pub fn finish(result: Result<(), HintedError>, code: u8) -> Result<(), Exit> {
    let Err(told) = result else { return Ok(()) };
    eprint!("{}", told.trouble.report());
    told.hints.iter().for_each(|hint| eprintln!("{hint}"));
    Err(Exit::exit(code))
}

/// An error with hints.
pub struct HintedError {
    pub trouble: Trouble,
    pub hints: Vec<String>,
}

impl<T: Into<Trouble>> From<T> for HintedError {
    fn from(trouble: T) -> Self {
        Self {
            trouble: trouble.into(),
            hints: Vec::new(),
        }
    }
}

/// Prints every warning once, as kubectl does.
pub fn warnings() -> OnWarning {
    let seen = Mutex::new(HashSet::new());
    Arc::new(move |text: &str| {
        if seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(text.to_owned())
        {
            eprintln!("Warning: {text}");
        }
    })
}

/// The warning of pruning without a list of kinds.
pub const ALL_KINDS: &str = "Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used with the --namespace flag in a future \
                             release. To preserve the current behaviour, list the resources you want to target explicitly in the \
                             --prune-allowlist flag.";

/// Pruning with a selector, or with an ApplySet.
enum Prune {
    No,
    Selected(Scope),
    Set(Box<ApplySet>),
}

async fn run(flags: &ApplyFlags, kube: &KubeArgs) -> Result<(), HintedError> {
    let on_warning = warnings();
    let settings = flags.settings(on_warning.clone())?;
    let printer = Printer::new(&flags.print, settings.dry_run)?;
    flags.files.check()?;
    let target = kube.connect().await?;
    let applier = Applier::new(target.discovery.clone(), settings);
    let prune = prune(flags, kube, &target, &applier, &on_warning).await?;
    let found = read::read(&flags.files, &target, &flags.rules()?).await?;
    if found.items.is_empty() && found.trouble.is_none() {
        return Err(Trouble::text("no objects passed to apply").into());
    }
    Run {
        flags,
        applier,
        printer,
        target,
        seen: HashSet::new(),
        shown: Vec::new(),
        told: Vec::new(),
    }
    .all(found, prune)
    .await
}

async fn prune(
    flags: &ApplyFlags,
    kube: &KubeArgs,
    target: &Target,
    applier: &Applier,
    warn: &OnWarning,
) -> Result<Prune, HintedError> {
    if !flags.prune {
        return Ok(Prune::No);
    }
    if let Some(parent) = &flags.applyset {
        let set = ApplySet::new(&target.discovery, parent, kube.namespace()).await?;
        applier.check_set(&set).await?;
        return Ok(Prune::Set(Box::new(set)));
    }
    let scope = Scope::new(
        &target.discovery,
        &flags.prune_allowlist,
        flags.selector.as_deref().unwrap_or_default(),
    )
    .await?;
    if flags.prune_allowlist.is_empty() {
        warn(ALL_KINDS);
    }
    Ok(Prune::Selected(scope))
}

/// One run of the command.
struct Run<'a> {
    flags: &'a ApplyFlags,
    applier: Applier,
    printer: Printer,
    target: Target,
    /// Uids of applied objects; pruning skips them.
    seen: HashSet<String>,
    /// What `-o json` and `-o yaml` print at the end.
    shown: Vec<Object>,
    /// What `--show-patch -o json` prints at the end.
    told: Vec<Value>,
}

impl Run<'_> {
    async fn all(mut self, found: Found, mut prune: Prune) -> Result<(), HintedError> {
        let Found {
            mut items,
            trouble,
            hints,
        } = found;
        let mut troubles: Vec<Trouble> = trouble.into_iter().collect();
        if let Prune::Set(set) = &mut prune {
            for item in &mut items {
                set.label(&mut item.object)?;
            }
            self.applier.begin_set(set, &items).await?;
        }
        let mut namespaces: BTreeSet<String> = BTreeSet::new();
        if self.target.enforce {
            namespaces.insert(self.target.namespace.clone());
        }
        for item in &items {
            if item.kind.namespaced {
                namespaces.insert(item.object.namespace().to_owned());
            }
            match self.applier.apply(item).await {
                Ok(applied) => troubles.extend(self.done(applied).err()),
                Err(failure) => {
                    self.refused(item, &failure);
                    troubles.push(failure.into());
                }
            }
        }
        if self.flags.show_patch && self.printer.is_json() {
            let text = json::to_string_pretty(&serde_json::json!({ "objects": self.told }), "    ");
            crate::output::print(&format!("{text}\n"));
        }
        if !troubles.is_empty() {
            return Err(HintedError {
                trouble: Trouble::Many(troubles).flat(),
                hints,
            });
        }
        if self.printer.prints_objects() && !self.flags.show_patch {
            self.printer.objects(&self.shown)?;
        }
        self.prune(prune, namespaces).await
    }

    /// Prints a result; an error is one of printing.
    fn done(&mut self, applied: Applied) -> Result<(), Trouble> {
        let Applied {
            verb,
            live,
            explanation,
            ..
        } = applied;
        self.seen.insert(live.uid().to_owned());
        if !self.printer.prints_objects() {
            self.printer.line(&live, verb)?;
        }
        if let Some(explanation) = explanation {
            if self.printer.is_json() {
                self.told
                    .push(explain::json(&live, &self.printer.verb(verb), &explanation));
            } else {
                crate::output::print(&explain::text(&live, &explanation));
            }
        }
        if self.printer.prints_objects() {
            self.shown.push(live);
        }
        Ok(())
    }

    fn refused(&mut self, item: &Item, failure: &tiphys_cluster::apply::Failure) {
        if !self.flags.show_patch {
            return;
        }
        if self.printer.is_json() {
            self.told.push(explain::refused(&item.object, failure));
            return;
        }
        let conflicts = explain::conflicts(failure);
        if !conflicts.is_empty() {
            crate::output::print(&format!(
                "{} refused\n{conflicts}",
                print::print_name(&item.object)
            ));
        }
    }

    async fn prune(&self, prune: Prune, namespaces: BTreeSet<String>) -> Result<(), HintedError> {
        let mut unprinted = None;
        let mut pruned = |object: &Object| {
            let problem = self.printer.line(object, "pruned").err();
            unprinted = unprinted.take().or(problem);
        };
        match prune {
            Prune::No => {}
            Prune::Selected(mut scope) => {
                scope.namespaces = namespaces;
                self.applier.prune(&scope, &self.seen, &mut pruned).await?;
            }
            Prune::Set(set) => {
                self.applier
                    .finish_set(&set, &self.seen, &mut pruned)
                    .await?
            }
        }
        match unprinted {
            None => Ok(()),
            Some(trouble) => Err(trouble.into()),
        }
    }
}
