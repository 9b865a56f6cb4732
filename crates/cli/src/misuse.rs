//! What is printed of words that are no command line. Main functions: [`told`] and [`usage`].
//!
//! For Argo CD's commands it is what the `argocd` command prints, on standard output.

use crate::{client::exit, commands::plugin, flags::ARGO_CD, output, program_name};
use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue, ErrorKind},
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
    // Its exit code 1 says that something differs.
    let is_diff_of_files = verbs(&words, &program())
        .first()
        .is_some_and(|verb| verb == "diff");
    let is_of_argo_cd =
        !is_diff_of_files && words.iter().any(|word| ARGO_CD.contains(&word.as_str()));
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
    if is_of_argo_cd && let Some(message) = lacking(e) {
        output::print(&format!("Error: {message}\n"));
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
    // A group says on standard output how it is used, whatever follows its name.
    let is_group = matches!(
        kind,
        ErrorKind::InvalidSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_group && is_of_argo_cd {
        output::print(&e.render().to_string());
    } else {
        let _ = e.print();
    }
    let is_help = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // The group `admin` answers with its help, and no error.
    let is_admin = kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        && words.get(1).is_some_and(|word| word == "admin");
    ExitCode::from(if is_help || is_admin {
        exit::DONE
    } else if is_diff_of_files {
        exit::MISUSED_DIFF
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
        ErrorKind::UnknownArgument => Some(match letter(&flag) {
            Some(letter) => {
                let rest = rest_of_letters(letter, words);
                format!("unknown shorthand flag: '{letter}' in -{rest}")
            }
            None => format!("unknown flag: {flag}"),
        }),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => {
            let value = e
                .get(ContextKind::InvalidValue)
                .map(ToString::to_string)
                .unwrap_or_default();
            if value.is_empty() {
                let last = words.last().filter(|word| letters(word).is_some());
                let short = arg.as_ref().and_then(Arg::get_short);
                return Some(match short.filter(|_| last.is_some()) {
                    Some(short) => format!("flag needs an argument: '{short}' in -{short}"),
                    None => format!("flag needs an argument: {flag}"),
                });
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

/// The flags that are required and were not given, in cobra's words; `None`: that is not the fault.
fn lacking(e: &clap::Error) -> Option<String> {
    if e.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let Some(ContextValue::Strings(missing)) = e.get(ContextKind::InvalidArg) else {
        return None;
    };
    // Such as `--kind <KIND>`; words without a name are missed by the command, not before it.
    let flags = missing.iter().filter_map(|shown| shown.strip_prefix("--"));
    let mut names: Vec<&str> = flags
        .filter_map(|flag| flag.split([' ', '=']).next())
        .collect();
    names.sort_unstable();
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    (!quoted.is_empty()).then(|| format!("required flag(s) {} not set", quoted.join(", ")))
}

/// The letter of a flag such as `-z`.
fn letter(flag: &str) -> Option<char> {
    let mut letters = letters(flag)?.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The letters of a word such as `-abc`.
fn letters(word: &str) -> Option<&str> {
    let letters = word.strip_prefix('-')?;
    (!letters.is_empty() && !letters.starts_with('-')).then_some(letters)
}

/// What is left of the letters of a word when this one is reached.
fn rest_of_letters(letter: char, words: &[String]) -> String {
    let mut all = words.iter().skip(1).filter_map(|word| letters(word));
    let found = all.find_map(|letters| Some(letters.get(letters.find(letter)?..)?.to_owned()));
    found.unwrap_or_else(|| letter.to_string())
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
            (
                "app set a --sync-retry-backoff-duration bad",
                "invalid argument \"bad\" for \"--sync-retry-backoff-duration\" flag: time: \
                 invalid duration \"bad\"",
            ),
            ("app list --nope", "unknown flag: --nope"),
            ("app list -z", "unknown shorthand flag: 'z' in -z"),
            ("app list -zab", "unknown shorthand flag: 'z' in -zab"),
            ("app list -o", "flag needs an argument: 'o' in -o"),
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
    fn flags_that_are_required_are_named_in_cobras_words() {
        for (line, expected) in [
            (
                "app patch-resource a",
                Some("required flag(s) \"kind\", \"patch\" not set"),
            ),
            (
                "app get-resource",
                Some("required flag(s) \"kind\" not set"),
            ),
            ("app get", None),
            ("app list --nope", None),
        ] {
            let words = format!("argocd {line}");
            let e = crate::flags::adapt(Program::command())
                .try_get_matches_from(words.split(' '))
                .expect_err("it is wrong");
            assert_eq!(lacking(&e).as_deref(), expected, "{line}");
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
