//! What is printed of words that are no command line. Main functions: [`told`] and [`usage`].
//!
//! For Argo CD's commands it is what the `argocd` command prints, on standard output.

use crate::{client::exit, commands::plugin, flags::ARGO_CD, output, program_name};
use clap::{
    Arg, Command,
    error::{ContextKind, ErrorKind},
};
use std::{any::TypeId, env, io::IsTerminal as _, process::ExitCode};

/// The name of the program that other programs know.
const ARGOCD: &str = "argocd";

/// Prints an error in the command line, or the requested help. `program` is the whole clap command.
pub fn told(e: &clap::Error, program: fn() -> Command) -> ExitCode {
    let words: Vec<String> = env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let kind = e.kind();
    if kind == ErrorKind::InvalidSubcommand {
        if let Some(ended) = plugin::run(env::args_os().skip(1)) {
            return ended;
        }
        if let [_, name, ..] = &words[..]
            && is_called_argocd(&words)
            && program().find_subcommand(name).is_none()
        {
            return unknown_command(name);
        }
    }
    let is_of_argo_cd = words.iter().any(|word| ARGO_CD.contains(&word.as_str()));
    if is_of_argo_cd && let Some(message) = flag_fault(e, &words, &program()) {
        output::print(&format!("Error: {message}\n"));
        if std::io::stderr().is_terminal() {
            let meant = meant(e).map(|flag| format!("did you mean {flag}? "));
            eprintln!(
                "hint: {}`{} --help` lists the flags",
                meant.unwrap_or_default(),
                path(&words, &program())
            );
        }
        return ExitCode::from(exit::FAILED);
    }
    // One of too many words is unknown, too.
    let is_misused = matches!(
        kind,
        ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument
    );
    if is_misused && is_of_argo_cd {
        output::print(&e.render().to_string());
        let is_diff = matches!(&words[..], [_, app, diff, ..] if app == "app" && diff == "diff");
        return ExitCode::from(if is_diff {
            exit::MISUSED_DIFF
        } else {
            exit::FAILED
        });
    }
    let _ = e.print();
    let is_help = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // The group `admin` answers with its help, and no error.
    let is_admin = kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        && words.get(1).is_some_and(|word| word == "admin");
    ExitCode::from(if is_help || is_admin {
        exit::DONE
    } else {
        exit::FAILED
    })
}

/// How the command of this process is used.
pub fn usage(program: fn() -> Command) -> String {
    let words: Vec<String> = env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut program = program();
    program.build();
    let path = verbs(&words, &program);
    let mut command = program;
    for word in path {
        let Some(next) = command.find_subcommand(&word).cloned() else {
            break;
        };
        command = next;
    }
    command.render_help().to_string()
}

fn is_called_argocd(words: &[String]) -> bool {
    let name = words.first().and_then(|word| word.rsplit('/').next());
    name == Some(ARGOCD)
}

fn unknown_command(name: &str) -> ExitCode {
    output::log::warn_as_text(&format!(
        "error looking for plugin '{ARGOCD}-{name}': exec: \"{ARGOCD}-{name}\": executable file \
         not found in $PATH"
    ));
    output::print(&format!(
        "Error: unknown command \"{name}\" for \"{ARGOCD}\"\nRun '{ARGOCD} --help' for usage.\n"
    ));
    ExitCode::from(exit::FAILED)
}

/// The words of the command line that are names of commands.
fn verbs(words: &[String], program: &Command) -> Vec<String> {
    let (mut command, mut path) = (program, Vec::new());
    for word in words.iter().skip(1) {
        if let Some(next) = command.find_subcommand(word) {
            path.push(word.clone());
            command = next;
        }
    }
    path
}

fn path(words: &[String], program: &Command) -> String {
    let mut path = vec![program_name()];
    path.extend(verbs(words, program));
    path.join(" ")
}

/// The flag that was probably meant by one that does not exist.
fn meant(e: &clap::Error) -> Option<String> {
    let name = e.get(ContextKind::SuggestedArg)?.to_string();
    Some(format!("--{}", name.trim_start_matches('-')))
}

/// What is wrong with a flag, in pflag's words; `None`: it is not about a flag.
fn flag_fault(e: &clap::Error, words: &[String], program: &Command) -> Option<String> {
    let shown = e.get(ContextKind::InvalidArg)?.to_string();
    // Such as `--timeout <SECONDS>`, or `--name=x`.
    let flag = shown.split([' ', '=', '[']).next()?.to_owned();
    if !flag.starts_with('-') {
        return None;
    }
    let arg = arg(&flag, words, program);
    match e.kind() {
        ErrorKind::UnknownArgument => Some(format!("unknown flag: {flag}")),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => {
            let value = e
                .get(ContextKind::InvalidValue)
                .map(ToString::to_string)
                .unwrap_or_default();
            if value.is_empty() {
                return Some(format!("flag needs an argument: {flag}"));
            }
            let named = match arg.as_ref().and_then(Arg::get_short) {
                Some(short) => format!("-{short}, {flag}"),
                None => flag,
            };
            let why = arg.as_ref().and_then(|arg| why(arg, &value));
            let why = why.or_else(|| Some(std::error::Error::source(e)?.to_string()))?;
            Some(format!(
                "invalid argument {value:?} for \"{named}\" flag: {why}"
            ))
        }
        _ => None,
    }
}

/// The flag of the command in the words.
fn arg(flag: &str, words: &[String], program: &Command) -> Option<Arg> {
    let name = flag.trim_start_matches('-');
    let mut found = None;
    let mut command = program;
    let mut path = verbs(words, program).into_iter();
    loop {
        let mut args = command.get_arguments();
        let own = args.find(|arg| arg.get_long() == Some(name));
        found = own.cloned().or(found);
        match path.next().and_then(|word| command.find_subcommand(word)) {
            Some(next) => command = next,
            None => return found,
        }
    }
}

/// The error of Go's function that reads a value of this type.
fn why(arg: &Arg, value: &str) -> Option<String> {
    let id = arg.get_value_parser().type_id();
    let is = |ids: &[TypeId]| ids.iter().any(|known| id == *known);
    let function = if is(&[TypeId::of::<bool>()]) {
        "ParseBool"
    } else if is(&[
        TypeId::of::<u64>(),
        TypeId::of::<u32>(),
        TypeId::of::<u16>(),
    ]) {
        "ParseUint"
    } else if is(&[TypeId::of::<i64>(), TypeId::of::<i32>(), TypeId::of::<u8>()]) {
        "ParseInt"
    } else {
        return None;
    };
    let digits = value.trim_start_matches(['-', '+']);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let why = if is_number && !(function == "ParseUint" && value.starts_with('-')) {
        "value out of range"
    } else {
        "invalid syntax"
    };
    Some(format!("strconv.{function}: parsing {value:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        _command: crate::commands::ClientCommand,
    }

    #[test]
    fn flags_are_faulted_in_gos_words() {
        let program = || crate::flags::adapt(Program::command());
        for (line, expected) in [
            (
                "app get a --timeout abc",
                "invalid argument \"abc\" for \"--timeout\" flag: strconv.ParseUint: parsing \
                 \"abc\": invalid syntax",
            ),
            (
                "app sync a --timeout -1",
                "invalid argument \"-1\" for \"--timeout\" flag: strconv.ParseUint: parsing \
                 \"-1\": invalid syntax",
            ),
            (
                "app create a --revision-history-limit x",
                "invalid argument \"x\" for \"--revision-history-limit\" flag: strconv.ParseInt: \
                 parsing \"x\": invalid syntax",
            ),
            (
                "app diff a --exit-code=maybe",
                "invalid argument \"maybe\" for \"--exit-code\" flag: strconv.ParseBool: parsing \
                 \"maybe\": invalid syntax",
            ),
            (
                "proj windows add default --duration",
                "flag needs an argument: --duration",
            ),
            ("app list --nope", "unknown flag: --nope"),
        ] {
            let words: Vec<String> = format!("argocd {line}")
                .split(' ')
                .map(str::to_owned)
                .collect();
            let e = program()
                .try_get_matches_from(&words)
                .expect_err("it is wrong");
            let fault = flag_fault(&e, &words, &program());
            assert_eq!(fault.as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_misspelt_flag_is_recognised() {
        for (line, expected) in [
            ("tiphys app get a --ouput json", Some("--output")),
            ("tiphys app sync a --prun", Some("--prune")),
            ("tiphys app list --zzzzzz", None),
        ] {
            let e = crate::flags::adapt(Program::command())
                .try_get_matches_from(line.split(' '))
                .expect_err("it is wrong");
            assert_eq!(meant(&e).as_deref(), expected, "{line}");
        }
    }
}
