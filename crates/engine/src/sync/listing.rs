//! A plan as text, for the CLI and the log.

use super::{
    plan::SyncPlan,
    step::{Action, PruneRule, Step},
};
use std::fmt;
use tiphys_apimachinery::ResourceKey;

impl fmt::Display for SyncPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dry_run { "dry run" } else { "sync" };
        let steps = self.steps().count();
        writeln!(
            f,
            "{what} of {}: {steps} {}",
            self.revision,
            if steps == 1 { "step" } else { "steps" }
        )?;
        for phase in &self.phases {
            writeln!(f, "{}", phase.phase)?;
            for wave in &phase.waves {
                let waits = if wave.waits_for.is_empty() {
                    String::new()
                } else {
                    format!(", after {}", wave.waits_for)
                };
                writeln!(f, "  wave {}{waits}", wave.wave)?;
                for step in &wave.steps {
                    writeln!(
                        f,
                        "    {:<10} {}{}",
                        verb(step),
                        name(&step.key),
                        remarks(step)
                    )?;
                }
            }
        }
        if !self.blocked.is_empty() {
            writeln!(f, "blocked")?;
        }
        for blocked in &self.blocked {
            writeln!(f, "    {}: {}", name(&blocked.key), blocked.reason)?;
        }
        Ok(())
    }
}

fn verb(step: &Step) -> &'static str {
    match step.action {
        _ if step.invalid.is_some() => "refuse",
        Action::RunHook => "run hook",
        Action::CreateNamespace { .. } => "create",
        Action::Prune(PruneRule::Delete) => "prune",
        Action::Prune(PruneRule::Unconfirmed) => "ask",
        Action::Prune(_) => "keep",
        Action::Apply if step.unchanged => "keep",
        Action::Apply if step.replace => "replace",
        Action::Apply => "apply",
    }
}

fn name(key: &ResourceKey) -> String {
    let kind = if key.group.is_empty() {
        key.kind.clone()
    } else {
        format!("{}/{}", key.group, key.kind)
    };
    if key.namespace.is_empty() {
        format!("{kind} {}", key.name)
    } else {
        format!("{kind} {}/{}", key.namespace, key.name)
    }
}

fn remarks(step: &Step) -> String {
    let mut list: Vec<&str> = Vec::new();
    if step.unchanged {
        list.push("in sync");
    }
    if step.server_side && !step.replace {
        list.push("server-side");
    }
    if step.force {
        list.push("force");
    }
    if step.skip_dry_run && step.invalid.is_none() {
        list.push("not checked before: its kind is not there yet");
    }
    if !step.validate {
        list.push("without validation");
    }
    if matches!(step.action, Action::CreateNamespace { always: false }) {
        list.push("if missing");
    }
    list.extend(step.delete_policies.iter().map(|p| p.as_str()));
    if list.is_empty() {
        String::new()
    } else {
        format!(" ({})", list.join(", "))
    }
}
