//! The command line in Go's form: flags as pflag reads them, and examples in the help. Main
//! function: [`adapt`]. It must not know what commands do.

mod examples;
mod line;

pub use line::Line;

use clap::{Arg, ArgAction, Command};
use std::any::TypeId;

/// The commands that are Argo CD's, in the order in which it proposes them.
pub const ARGO_CD: [&str; 17] = [
    "completion",
    "version",
    "cluster",
    "app",
    "appset",
    "login",
    "relogin",
    "repo",
    "repocreds",
    "context",
    "proj",
    "account",
    "logout",
    "cert",
    "gpg",
    "admin",
    "configure",
];
/// Those of them that refuse words which mean nothing to them. The others ignore them.
const STRICT: [&str; 4] = ["get-user-info", "relogin", "update-password", "validate"];

/// Accepts flags in Go's form (`--prune`, `--prune=true`, `--prune=false`; `--password -x`; the
/// last of a repeated flag counts), and adds examples to the help.
pub fn adapt(command: Command) -> Command {
    let command = adapt_flags(command).args_override_self(true);
    let command = command.mut_subcommands(|sub| {
        if ARGO_CD.contains(&sub.get_name()) {
            ignore_words(sub)
        } else {
            sub
        }
    });
    examples::add(command, "")
}

/// Lets commands without arguments ignore all words, as Go's do.
fn ignore_words(command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(ignore_words);
    }
    if STRICT.contains(&command.get_name()) || command.get_positionals().next().is_some() {
        return command;
    }
    command.arg(Arg::new("ignored").num_args(0..).hide(true))
}

fn adapt_flags(command: Command) -> Command {
    let global: Vec<Arg> = command
        .get_arguments()
        .filter(|a| a.is_global_set())
        .cloned()
        .collect();
    command
        .mut_args(adapt_flag)
        .mut_subcommands(|sub| match sub.get_name() {
            "up" => without(sub.mut_args(takes_any_value), &global).mut_args(|arg| {
                let is_shown = LOGGING.contains(&arg.get_id().as_str());
                if is_shown { arg.hide(false) } else { arg }
            }),
            "control-plane" => sub,
            "asset-syncer" | "apprepository-controller" => sub,
            "admin" | "apply" | "diff" | "helm" | "install" | "kustomize" | "server" => {
                without(adapt_flags(sub), &global)
            }
            _ => adapt_flags(sub),
        })
}

/// Those of the flags for all commands that mean something to `up`.
const LOGGING: [&str; 2] = ["logformat", "loglevel"];

/// Hides the flags for our API in commands that do not call it.
fn without(command: Command, global: &[Arg]) -> Command {
    let has = |arg: &Arg| command.get_arguments().any(|a| a.get_id() == arg.get_id());
    let hidden: Vec<Arg> = global
        .iter()
        .filter(|a| !has(a))
        .map(|a| adapt_flag(a.clone()).hide(true))
        .collect();
    command.args(hidden)
}

/// As in Go, a flag with a value takes the next word, whatever it begins with: `--password -x`.
fn takes_any_value(arg: Arg) -> Arg {
    if has_value(&arg) && !arg.is_positional() {
        arg.allow_hyphen_values(true)
    } else {
        arg
    }
}

/// Whether the next word is the value of this flag.
fn has_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
        && arg.get_num_args().is_none_or(|n| n.min_values() == 1)
}

fn adapt_flag(arg: Arg) -> Arg {
    if arg.get_value_parser().type_id() != TypeId::of::<bool>() {
        return takes_any_value(arg);
    }
    let has_default = matches!(arg.get_action(), ArgAction::SetTrue);
    let arg = arg
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .hide_possible_values(true);
    let arg = arg.value_parser(go_bool).value_name("BOOL");
    if has_default {
        arg.default_value("false").hide_default_value(true)
    } else {
        arg
    }
}

/// The values that `strconv.ParseBool` accepts.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false".into()),
    }
}
