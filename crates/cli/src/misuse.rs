//! What is printed of words that are no command line. Main functions: [`told`] and [`usage`].
//!
//! For Argo CD's commands it is what the `argocd` command prints, on standard output.

use crate::{
    client::exit,
    commands::plugin,
    flags::{ARGO_CD, Line},
    output, program_name,
};
use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{any::TypeId, env, io::IsTerminal as _, process::ExitCode};

/// The name of the program that other programs know.
const ARGOCD: &str = "argocd";

/// Prints an error in the command line, or the requested help. `program` is the whole clap command.
pub fn told(e: &clap::Error, program: fn() -> Command) -> ExitCode {
    let words = words();
    let program = program();
    let line = Line::of(&words, &program);
    let path = line.path();
    let kind = e.kind();
    if kind == ErrorKind::InvalidSubcommand {
        let is_help = words.get(1).is_some_and(|word| word == "help");
        // Not a word after one of our commands.
        let is_verb = path.is_empty() && !is_help;
        if is_verb && let Some(ended) = plugin::run(env::args_os().skip(1)) {
            return ended;
        }
        if let Some(ContextValue::String(name)) = e.get(ContextKind::InvalidSubcommand)
            && is_called_argocd(&words)
            && is_verb
        {
            return unknown_command(name);
        }
    }
    let is_of_argo_cd = match path.first() {
        Some(command) => ARGO_CD.contains(command),
        None => is_called_argocd(&words),
    };
    if is_of_argo_cd && let Some(message) = flag_fault(e, &words, &line) {
        output::print(&format!("Error: {message}\n"));
        if std::io::stderr().is_terminal() {
            let meant = meant(e).map(|flag| format!("did you mean {flag}? "));
            eprintln!(
                "hint: {}`{} --help` lists the flags",
                meant.unwrap_or_default(),
                shown(&path)
            );
        }
        return ExitCode::from(code(&path, true));
    }
    if is_of_argo_cd && let Some(message) = lacking(e) {
        output::print(&format!("Error: {message}\n"));
        return ExitCode::from(code(&path, true));
    }
    // One of too many words is unknown, too.
    let is_misused = matches!(
        kind,
        ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument
    );
    // A group says on standard output how it is used, whatever follows its name.
    let is_group = matches!(
        kind,
        ErrorKind::InvalidSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_of_argo_cd && (is_misused || is_group) {
        output::print(&e.render().to_string());
    } else {
        let _ = e.print();
        if let Some(file) = file_without_flag(e, &path) {
            eprintln!("hint: -f names a file: `{} -f {file}`", shown(&path));
        }
    }
    let is_help = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // `argocd` and its group `admin` answer with their help, and no error.
    let answers = kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        && is_of_argo_cd
        && path.first().is_none_or(|command| *command == "admin");
    ExitCode::from(if is_help || answers {
        exit::DONE
    } else {
        code(&path, false)
    })
}

/// The exit code of a command that is written wrongly. `is_flag`: a flag of it is.
fn code(path: &[&str], is_flag: bool) -> u8 {
    match path {
        // 1 says that something differs.
        ["diff", ..] | ["appset", "plan"] => exit::MISUSED_DIFF,
        // For a wrong flag `argocd` ends with 1 here, too.
        ["app", "diff"] if !is_flag => exit::MISUSED_DIFF,
        _ => exit::FAILED,
    }
}

/// How the command of this process is used.
pub fn usage(program: fn() -> Command) -> String {
    let words = words();
    let mut program = program();
    let called = words.first().and_then(|word| word.rsplit('/').next());
    if let Some(name) = called {
        program = program.bin_name(name);
    }
    program.build();
    let path = Line::of(&words, &program).path();
    let mut command = &program;
    for name in path {
        let Some(next) = command.find_subcommand(name) else {
            break;
        };
        command = next;
    }
    command.clone().render_help().to_string()
}

fn words() -> Vec<String> {
    let words = env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
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
    let mut alike = alike(name).join("\n\t");
    if !alike.is_empty() {
        alike = format!("\nDid you mean this?\n\t{alike}\n\n");
    }
    output::print(&format!(
        "Error: unknown command \"{name}\" for \"{ARGOCD}\"\n{alike}Run '{ARGOCD} --help' for \
         usage.\n"
    ));
    ExitCode::from(exit::FAILED)
}

/// The commands that may have been meant by a word, as cobra proposes them.
fn alike(word: &str) -> Vec<&'static str> {
    const NEAR: usize = 2;
    let word = word.to_lowercase();
    let commands = ARGO_CD.into_iter();
    commands
        .filter(|name| name.starts_with(&word) || strsim::levenshtein(name, &word) <= NEAR)
        .collect()
}

fn shown(path: &[&str]) -> String {
    format!("{} {}", program_name(), path.join(" "))
        .trim_end()
        .to_owned()
}

/// What `apply` or `diff` was given without `-f`.
fn file_without_flag<'e>(e: &'e clap::Error, path: &[&str]) -> Option<&'e str> {
    if !matches!(path, ["apply"] | ["diff"]) {
        return None;
    }
    // `apply` has subcommands, and takes the word for one.
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let word = kinds.into_iter().find_map(|kind| match e.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    })?;
    (!word.starts_with('-')).then_some(word)
}

/// The flag that was probably meant by one that does not exist.
fn meant(e: &clap::Error) -> Option<String> {
    let name = e.get(ContextKind::SuggestedArg)?.to_string();
    Some(format!("--{}", name.trim_start_matches('-')))
}

/// What is wrong with a flag, in pflag's words; `None`: it is not about a flag.
fn flag_fault(e: &clap::Error, words: &[String], line: &Line<'_>) -> Option<String> {
    let shown = e.get(ContextKind::InvalidArg)?.to_string();
    // Such as `--timeout <SECONDS>`, or `--name=x`.
    let flag = shown.split([' ', '=', '[']).next()?.to_owned();
    if !flag.starts_with('-') {
        return None;
    }
    let arg = line.arg(flag.trim_start_matches('-'));
    match e.kind() {
        ErrorKind::UnknownArgument => Some(match letter(&flag) {
            Some(letter) => {
                let rest = rest_of_letters(letter, line);
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
                let short = arg.and_then(Arg::get_short);
                return Some(match short.filter(|_| last.is_some()) {
                    Some(short) => format!("flag needs an argument: '{short}' in -{short}"),
                    None => format!("flag needs an argument: {flag}"),
                });
            }
            let named = match arg.and_then(Arg::get_short) {
                Some(short) => format!("-{short}, {flag}"),
                None => flag,
            };
            let why = arg.and_then(|arg| why(arg, &value));
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
fn rest_of_letters(letter: char, line: &Line<'_>) -> String {
    let mut all = line.flags().iter().filter_map(|word| letters(word));
    let found = all.find_map(|letters| Some(letters.get(letters.find(letter)?..)?.to_owned()));
    found.unwrap_or_else(|| letter.to_string())
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
            // The letter of a value is no flag.
            ("app list -l -zx -za", "unknown shorthand flag: 'z' in -za"),
        ] {
            let words: Vec<String> = format!("argocd {line}")
                .split(' ')
                .map(str::to_owned)
                .collect();
            let e = program()
                .try_get_matches_from(&words)
                .expect_err("it is wrong");
            let program = program();
            let fault = flag_fault(&e, &words, &Line::of(&words, &program));
            assert_eq!(fault.as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn the_code_of_a_misuse_is_the_commands() {
        for (line, of_words, of_flags) in [
            ("app diff a", 2, 1),
            ("--nope x app diff", 2, 1),
            ("appset plan", 2, 2),
            ("diff -f app", 2, 2),
            ("app get diff", 1, 1),
            ("app list --selector diff", 1, 1),
            ("appset get plan", 1, 1),
            ("apply -f diff", 1, 1),
        ] {
            let words: Vec<String> = format!("tiphys {line}")
                .split(' ')
                .map(str::to_owned)
                .collect();
            let program = crate::flags::adapt(Program::command());
            let path = Line::of(&words, &program).path();
            let codes = (code(&path, false), code(&path, true));
            assert_eq!(codes, (of_words, of_flags), "{line}");
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
    fn commands_are_proposed_as_by_cobra() {
        for (word, expected) in [
            ("ap", "app appset gpg"),
            ("APP", "app appset gpg"),
            ("acc", "app account"),
            ("rep", "app repo repocreds"),
            ("projct", "proj"),
            ("verion", "version"),
            ("sync", ""),
            ("x", ""),
        ] {
            assert_eq!(alike(word).join(" "), expected, "{word}");
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
