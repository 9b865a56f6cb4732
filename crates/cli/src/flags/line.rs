//! What the words of a command line are, even of one that is written wrongly. Main function:
//! [`Line::of`].

use super::has_value;
use clap::{Arg, Command};

/// A command line, whose words are told apart as clap does it.
pub struct Line<'a> {
    /// The program, and the commands that are named one after the other.
    commands: Vec<&'a Command>,
    /// The words that are flags, without the values that follow them.
    flags: Vec<&'a str>,
}

impl<'a> Line<'a> {
    /// `words` begin with the program's name.
    pub fn of(words: &'a [String], program: &'a Command) -> Self {
        let mut line = Self {
            commands: vec![program],
            flags: Vec::new(),
        };
        // A word that names no command is an argument, and so are all after it.
        let mut may_be_command = true;
        let mut words = words.iter().skip(1).map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if is_flag(word) {
                line.flags.push(word);
                let takes_next = line.takes_next(word).unwrap_or_else(|| {
                    // Nobody knows this flag: what follows may be its value, if it has none yet.
                    let next = words.peek().filter(|_| !word.contains('='));
                    next.is_some_and(|next| !is_flag(next) && line.named(next).is_none())
                });
                if takes_next {
                    words.next();
                }
                continue;
            }
            match line.named(word).filter(|_| may_be_command) {
                Some(command) => line.commands.push(command),
                None => may_be_command = false,
            }
        }
        line
    }

    /// The names of the commands, without the program's. Aliases are not among them.
    pub fn path(&self) -> Vec<&'a str> {
        let commands = self.commands.iter().skip(1);
        commands.map(|command| command.get_name()).collect()
    }

    pub fn flags(&self) -> &[&'a str] {
        &self.flags
    }

    /// The flag of the command with this name, which may belong to one of the commands above it.
    pub fn arg(&self, name: &str) -> Option<&'a Arg> {
        self.find(|arg| {
            let mut aliases = arg.get_all_aliases().unwrap_or_default().into_iter();
            arg.get_long() == Some(name) || aliases.any(|alias| alias == name)
        })
    }

    fn find(&self, is_it: impl Fn(&Arg) -> bool) -> Option<&'a Arg> {
        let mut args = self
            .commands
            .iter()
            .rev()
            .flat_map(|command| command.get_arguments());
        args.find(|arg| is_it(arg))
    }

    /// The command below the last one that a word names.
    fn named(&self, word: &str) -> Option<&'a Command> {
        self.commands.last()?.find_subcommand(word)
    }

    /// Whether the word after a flag is its value; `None`: there is no such flag.
    fn takes_next(&self, flag: &str) -> Option<bool> {
        if let Some(long) = flag.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            return Some(has_value(self.arg(name)?) && !long.contains('='));
        }
        // In `-ab` each letter is a flag, up to the first one with a value: the rest is the value.
        for (at, letter) in flag.char_indices().skip(1) {
            let arg = self.find(|arg| arg.get_short() == Some(letter))?;
            if has_value(arg) {
                return Some(at + letter.len_utf8() == flag.len());
            }
        }
        Some(false)
    }
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        _command: crate::commands::ClientCommand,
        #[arg(long = "server", global = true)]
        _server: Option<String>,
        #[arg(long = "plaintext", global = true)]
        _plaintext: bool,
    }

    #[test]
    fn the_command_is_the_one_that_is_meant() {
        let program = crate::flags::adapt(Program::command());
        for (text, path, flags) in [
            ("app diff a --nope", "app diff", "--nope"),
            // Flags of all commands may stand before them.
            ("--server app appset plan", "appset plan", "--server"),
            (
                "--server=x --plaintext app diff",
                "app diff",
                "--server=x --plaintext",
            ),
            // Values, and what is no command, name none.
            (
                "app manifests a --revision diff",
                "app manifests",
                "--revision",
            ),
            ("app x diff -o list", "app", "-o"),
            ("app get -ojson diff", "app get", "-ojson"),
            ("diff -f app", "diff", "-f"),
            ("helm template app . --nope", "helm template", "--nope"),
            ("app -- diff", "app", ""),
            // Unknown flags may have a value.
            ("--nope x app diff", "app diff", "--nope"),
            ("--nope app diff", "app diff", "--nope"),
            ("app --nope a diff", "app diff", "--nope"),
            ("app --nope=x a diff", "app", "--nope=x"),
            ("app -z diff a", "app diff", "-z"),
            // Aliases.
            ("project list-token", "proj", ""),
            ("project role token-list a", "proj role list-tokens", ""),
            ("", "", ""),
        ] {
            let words: Vec<String> = format!("tiphys {text}")
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            let line = Line::of(&words, &program);
            assert_eq!(line.path().join(" "), path, "{text}");
            assert_eq!(line.flags().join(" "), flags, "{text}");
        }
    }
}
