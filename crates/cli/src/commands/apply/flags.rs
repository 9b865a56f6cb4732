//! The flags of `apply`, which are kubectl's, and their combined meaning. Main type:
//! [`ApplyFlags`].

use super::{print::PrintArgs, read::Rules, source::FileArgs};
use crate::kubectl::failure::Trouble;
use std::time::Duration;
use tiphys_cluster::{
    apply::{CLIENT_SIDE_MANAGER, DryRun, SERVER_SIDE_MANAGER, Settings},
    request::OnWarning,
};
use tiphys_gocompat::duration;

#[derive(clap::Args)]
pub struct ApplyFlags {
    #[command(flatten)]
    pub files: FileArgs,
    /// Only objects of the files with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Tell for every object what the patch changes and why: difference, deletion or list order;
    /// with -o json for programs
    #[arg(long)]
    pub show_patch: bool,
    #[command(flatten)]
    pub print: PrintArgs,
    /// none; client: print what would be sent; server: let the server try without storing
    #[arg(long, value_name = "STRATEGY", num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "unchanged")]
    pub dry_run: String,
    /// What the server does with unknown and duplicate fields: strict (or true) refuses, warn
    /// warns, ignore (or false) drops them
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_value = "strict", default_missing_value = "strict")]
    pub validate: String,
    /// Let the server merge, by the ownership of fields
    #[arg(long)]
    pub server_side: bool,
    /// Take over fields that other managers own; with --server-side
    #[arg(long)]
    pub force_conflicts: bool,
    /// Name under which fields are owned [default: kubectl-client-side-apply; with --server-side:
    /// kubectl], so that kubectl can go on
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Apply to this subresource; with --server-side
    #[arg(long, value_name = "NAME")]
    pub subresource: Option<String>,
    /// Use the file's value where the live object was changed too; =false refuses [default: true]
    #[arg(long)]
    pub overwrite: Option<bool>,
    /// Take the merge rules from the cluster's OpenAPI document where they are not built in
    /// [default: true]
    #[arg(long)]
    pub openapi_patch: Option<bool>,
    /// Delete and create objects that cannot be patched
    #[arg(long)]
    pub force: bool,
    /// What happens to dependents of deleted objects: background, foreground or orphan
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "background", default_missing_value = "background")]
    pub cascade: String,
    /// Seconds for deleted objects to end; negative: as long as they want
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_hyphen_values = true)]
    pub grace_period: i64,
    /// How long --force waits until an object is gone
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub timeout: String,
    /// Accepted as kubectl does (no effect: --force always waits)
    #[arg(long)]
    pub wait: bool,
    /// Delete what was applied before and is no longer in the files; with -l, --all or --applyset
    #[arg(long)]
    pub prune: bool,
    /// Look at all objects when pruning
    #[arg(long)]
    pub all: bool,
    /// Kinds to prune, as group/version/kind (can be repeated) [default: kubectl's list]
    #[arg(long, value_name = "KIND")]
    pub prune_allowlist: Vec<String>,
    /// The object that remembers the members of the set to prune, as [RESOURCE][.GROUP]/NAME; a
    /// Secret without a resource
    #[arg(long, value_name = "PARENT")]
    pub applyset: Option<String>,
}

impl ApplyFlags {
    /// Checks which flags exclude each other, with kubectl's messages.
    pub fn settings(&self, on_warning: OnWarning) -> Result<Settings, Trouble> {
        let dry_run = dry_run(&self.dry_run, &on_warning)?;
        if let Some(problem) = self.contradiction(dry_run) {
            return Err(Trouble::text(problem));
        }
        let nanos = duration::parse(&self.timeout).map_err(|e| {
            Trouble::text(format!(
                "invalid argument {:?} for \"--timeout\": {e}",
                self.timeout
            ))
        })?;
        let default_manager = if self.server_side {
            SERVER_SIDE_MANAGER
        } else {
            CLIENT_SIDE_MANAGER
        };
        Ok(Settings {
            manager: self
                .field_manager
                .clone()
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| default_manager.to_owned()),
            server_side: self.server_side,
            force_conflicts: self.force_conflicts,
            subresource: self.subresource.clone().unwrap_or_default(),
            dry_run,
            field_validation: field_validation(&self.validate)?,
            overwrite: self.overwrite.unwrap_or(true),
            published_types: self.openapi_patch.unwrap_or(true),
            force: self.force,
            grace_period: (self.grace_period >= 0).then_some(self.grace_period),
            timeout: Duration::from_nanos(u64::try_from(nanos).unwrap_or_default()),
            propagation: propagation(&self.cascade)?,
            explain: self.show_patch,
            compare: false,
            on_warning,
        })
    }

    pub fn rules(&self) -> Result<Rules, Trouble> {
        let validate = field_validation(&self.validate)? != "Ignore";
        Ok(Rules {
            validate,
            selector: self.selector.clone().unwrap_or_default(),
        })
    }

    fn contradiction(&self, dry_run: DryRun) -> Option<&'static str> {
        let selects = self.selector.as_ref().is_some_and(|s| !s.is_empty());
        let set = self.applyset.is_some();
        let rows = [
            (
                self.force_conflicts && !self.server_side,
                "--force-conflicts only works with --server-side",
            ),
            (
                dry_run == DryRun::Client && self.server_side,
                "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
            ),
            (
                self.server_side && self.force,
                "--force cannot be used with --server-side",
            ),
            (
                dry_run == DryRun::Server && self.force,
                "--dry-run=server cannot be used with --force",
            ),
            (
                self.all && selects,
                "cannot set --all and --selector at the same time",
            ),
            (set && !self.prune, "--applyset requires --prune"),
            (
                self.prune && self.force,
                "--force cannot be used with --prune",
            ),
            (
                self.prune && set && self.all,
                "--all is incompatible with --applyset",
            ),
            (
                self.prune && set && selects,
                "--selector is incompatible with --applyset",
            ),
            (
                self.prune && set && !self.prune_allowlist.is_empty(),
                "--prune-allowlist is incompatible with --applyset",
            ),
            (
                self.prune && !set && !self.all && !selects,
                "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you \
                 did not mean to prune all resources, specify a label selector",
            ),
            (
                self.prune && !set && self.server_side,
                "--prune is in alpha and doesn't currently work on objects created by server-side apply",
            ),
            (
                self.subresource.is_some() && !self.server_side,
                "--subresource can only be specified for --server-side",
            ),
        ];
        rows.iter()
            .find(|(wrong, _)| *wrong)
            .map(|(_, problem)| *problem)
    }
}

/// What `strconv.ParseBool` reads.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Reads `--dry-run`, with kubectl's messages.
pub fn dry_run(text: &str, warn: &OnWarning) -> Result<DryRun, Trouble> {
    if let Some(yes) = go_bool(text) {
        let instead = if yes { "client" } else { "none" };
        warn(&format!(
            "--dry-run={text} is deprecated (boolean value) and can be replaced with --dry-run={instead}."
        ));
        return Ok(if yes { DryRun::Client } else { DryRun::None });
    }
    match text {
        "none" => Ok(DryRun::None),
        "client" => Ok(DryRun::Client),
        "server" => Ok(DryRun::Server),
        "unchanged" => {
            warn("--dry-run is deprecated and can be replaced with --dry-run=client.");
            Ok(DryRun::Client)
        }
        _ => Err(Trouble::text(format!(
            "Invalid dry-run value ({text}). Must be \"none\", \"server\", or \"client\"."
        ))),
    }
}

fn field_validation(text: &str) -> Result<&'static str, Trouble> {
    match (go_bool(text), text) {
        (Some(true), _) | (_, "strict") => Ok("Strict"),
        (Some(false), _) | (_, "ignore") => Ok("Ignore"),
        (_, "warn") => Ok("Warn"),
        _ => Err(Trouble::text(format!(
            "invalid - validate option {text:?}; must be one of: strict (or true), warn, ignore (or false)"
        ))),
    }
}

fn propagation(text: &str) -> Result<&'static str, Trouble> {
    if let Some(yes) = go_bool(text) {
        let instead = if yes { "background" } else { "orphan" };
        // This is the only warning of kubectl with a different format.
        eprintln!(
            "warning: --cascade={text} is deprecated (boolean value) and can be replaced with --cascade={instead}."
        );
        return Ok(if yes { "Background" } else { "Orphan" });
    }
    match text {
        "background" => Ok("Background"),
        "foreground" => Ok("Foreground"),
        "orphan" => Ok("Orphan"),
        _ => Err(Trouble::text(format!(
            "invalid cascade value ({text}). Must be \"background\", \"foreground\", or \"orphan\""
        ))),
    }
}
