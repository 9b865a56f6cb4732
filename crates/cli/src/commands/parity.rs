//! Compares our commands and flags with those of Argo CD's command line.

use super::ClientCommand;
use crate::{client::ConnectArgs, flags::adapt};
use clap::{Command, CommandFactory as _, Parser};
use std::collections::BTreeSet;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    _connect: ConnectArgs,
    /// As in the program itself.
    #[arg(long, global = true)]
    loglevel: Option<String>,
    #[command(subcommand)]
    _command: ClientCommand,
}

/// A command of `argocd` on each line, and the flags of its own; those of all commands on the line
/// of `*`.
const ARGO_CD: &str = include_str!("argocd-verbs.txt");

/// What selects the cluster of `--core`.
const OF_KUBECTL: &[&str] = &[
    "cluster",
    "context",
    "insecure-skip-tls-verify",
    "kubeconfig",
    "namespace",
    "password",
    "proxy-url",
    "request-timeout",
    "token",
    "user",
    "username",
];
const BY_VARIABLE: &str =
    "it asks no cluster; with --core, KUBECONFIG and --kube-context select it";

/// Flags that are not here, and why. `*`: of every command.
const ABSENT: &[(&str, &[&str], &str)] = &[
    (
        "*",
        &["as-uid"],
        "the library for Kubernetes cannot impersonate an UID, and a request as somebody else is \
         worse than none",
    ),
    ("configure", OF_KUBECTL, BY_VARIABLE),
    ("version", OF_KUBECTL, BY_VARIABLE),
];

fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = ARGO_CD.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(verb, flags)| {
            let flags = flags.split_whitespace();
            (verb, flags.collect())
        })
}

fn find<'a>(program: &'a Command, verb: &str) -> Option<&'a Command> {
    let mut words = verb.split(' ');
    words.try_fold(program, |command, word| command.find_subcommand(word))
}

fn flags(command: &Command) -> BTreeSet<String> {
    let args = command.get_arguments();
    args.flat_map(|arg| arg.get_long_and_visible_aliases().unwrap_or_default())
        .chain(
            command
                .get_arguments()
                .flat_map(|arg| arg.get_all_aliases().unwrap_or_default()),
        )
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_verb_and_every_flag_of_argo_cd_is_here() {
    let mut program = adapt(Program::command());
    program.build();
    let (_, common) = rows()
        .find(|(verb, _)| *verb == "*")
        .expect("the line of all");
    let (mut missing, mut verbs) = (Vec::new(), 0);
    for (verb, own) in rows().filter(|(verb, _)| *verb != "*") {
        verbs += 1;
        let Some(command) = find(&program, verb) else {
            missing.push(verb.to_owned());
            continue;
        };
        let ours = flags(command);
        let is_absent =
            |flag: &str| absent().any(|(of, name, _)| (of == "*" || of == verb) && name == flag);
        let wanted = own.iter().chain(&common);
        let lacking = wanted.filter(|flag| !ours.contains(**flag) && !is_absent(flag));
        missing.extend(lacking.map(|flag| format!("{verb} --{flag}")));
    }
    assert!(verbs >= 140, "{verbs} lines");
    assert!(
        missing.is_empty(),
        "{} are missing:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

#[test]
fn the_reasons_are_of_flags_that_are_really_absent() {
    let mut program = adapt(Program::command());
    program.build();
    for (verb, flag, why) in absent() {
        let is_there = |of: &str| find(&program, of).is_some_and(|c| flags(c).contains(flag));
        let found = match verb {
            "*" => rows().any(|(of, _)| is_there(of)),
            verb => is_there(verb),
        };
        assert!(!found, "{verb} --{flag} exists");
        assert!(why.len() > 20, "{verb} --{flag} has no reason");
    }
}

fn absent() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let of = |(verb, flags, why): &(&'static str, &'static [&'static str], &'static str)| {
        let (verb, why) = (*verb, *why);
        flags.iter().map(move |flag| (verb, *flag, why))
    };
    ABSENT.iter().flat_map(of)
}
