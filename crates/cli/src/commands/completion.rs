//! `completion`: prints the script for shell completion of commands and flags, which also asks the
//! server for names.

mod names;

use crate::{
    client::{Failure, exit},
    output,
};
use clap::ValueEnum as _;
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Completion {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(required_unless_present = "names_for")]
    shell: Option<String>,

    /// For the scripts: print the rest of the command that prints the names which the last of the
    /// words may be, a word a line
    #[arg(long, hide = true, conflicts_with = "shell")]
    names_for: bool,

    /// What was typed so far: a line, or the words after the program's name
    #[arg(last = true, hide = true)]
    words: Vec<String>,
}

/// Replaces clap's function: names of Applications, projects, repositories and clusters are
/// requested when needed, and the program itself says which. bash splits words at `:` and `=` as
/// well, so the line is used, and what readline does not replace is taken off the names. They are
/// compared one by one and quoted: `compgen -W`, or who presses Enter, would run what stands in one.
const BASH: &str = r#"
_tiphys_names() {
    local line="${COMP_LINE:0:$COMP_POINT}" name full kept
    local -a asked=()
    while IFS= read -r name; do
        asked+=("$name")
    done < <(tiphys completion --names-for -- "$line" 2>/dev/null)
    if [[ ${#asked[@]} -eq 0 ]]; then
        _tiphys "$@"
        return
    fi
    full="${line##*[[:space:]]}"
    kept="${full%"${full##*[:=]}"}"
    [[ "$full" == --*=* ]] && full="${full#*=}" && kept=""
    COMPREPLY=()
    while IFS= read -r name; do
        [[ "$name" == "$full"* ]] && COMPREPLY+=("$(printf %q "${name#"$kept"}")")
    done < <(tiphys "${asked[@]}" 2>/dev/null)
}
complete -F _tiphys_names -o bashdefault -o default tiphys
"#;

/// `test -n` is true where a command says nothing. For the value of a flag, fish looks only at what is
/// about the flag.
const FISH: &str = r#"
function __tiphys_asked
    set -l words (commandline -opc) (commandline -ct)
    tiphys completion --names-for -- $words[2..-1] 2>/dev/null
end
function __tiphys_names
    set -l asked (__tiphys_asked)
    tiphys $asked 2>/dev/null
end
complete -c tiphys -n "__tiphys_asked | string length -q" -f -a "(__tiphys_names)"
complete -c tiphys -n "__tiphys_asked | string length -q" -s p -l project -x -a "(__tiphys_names)"
complete -c tiphys -n "__tiphys_asked | string length -q" -s c -l cluster -x -a "(__tiphys_names)"
complete -c tiphys -n "__tiphys_asked | string length -q" -l dest-server -x -a "(__tiphys_names)"
"#;

/// After the first line, which names the command for zsh. The functions that clap makes change
/// `words` on the way down; the first of them keeps what was typed.
const ZSH: &str = r#"
_tiphys_default() {
    local -a asked names
    asked=("${(@f)$(tiphys completion --names-for -- "${(@)_tiphys_words[2,-1]}" 2>/dev/null)}")
    if [[ -z "$asked[1]" ]]; then
        _default
        return
    fi
    names=("${(@f)$(tiphys "${asked[@]}" 2>/dev/null)}")
    compadd -a names
}
"#;

const ZSH_WORDS: &str = r#"_tiphys() {
    local -a _tiphys_words
    _tiphys_words=("${(@)words[1,$CURRENT]}")
"#;

impl Completion {
    pub fn run(self, mut program: clap::Command) -> Result<(), Failure> {
        if self.names_for {
            let words = match self.words.as_slice() {
                [line] => line.split(char::is_whitespace).map(str::to_owned).collect(),
                words => [&["".to_owned()], words].concat(),
            };
            let typed = words.get(1..).unwrap_or_default();
            if let Some(asked) = names::asked(&program, typed) {
                output::print(&(asked.join("\n") + "\n"));
            }
            return Ok(());
        }
        let Some(asked) = self.shell else {
            return Ok(());
        };
        let Ok(shell) = Shell::from_str(&asked, false) else {
            output::print(&format!(
                "Invalid shell '{asked}'. The supported shells are bash, zsh and fish.\n"
            ));
            return Err(Failure::exit(exit::FAILED));
        };
        let called = std::env::args().next().unwrap_or_default();
        let name = called.rsplit('/').next().filter(|name| *name == ARGOCD);
        output::print(&script(shell, &mut program, name.unwrap_or(OWN)));
        Ok(())
    }
}

/// The names under which the program is called.
const OWN: &str = "tiphys";
const ARGOCD: &str = "argocd";

/// The script for a program of this name.
fn script(shell: Shell, program: &mut clap::Command, name: &str) -> String {
    let text = own_script(shell, program);
    let text = match name {
        OWN => text,
        other => text.replace(OWN, other),
    };
    // As the first line that the `argocd` command prints.
    let title = |shell: &str| format!("# {shell} completion for {name:<37}-*- shell-script -*-\n");
    match shell {
        Shell::Bash => title("bash") + &text,
        Shell::Fish => title("fish") + &text,
        Shell::PowerShell => title("powershell") + &text,
        _ => text,
    }
}

fn own_script(shell: Shell, program: &mut clap::Command) -> String {
    let name = OWN.to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, program, name, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => {
            let script = script.replace(":_default'", ":_tiphys_default'").replacen(
                "_tiphys() {\n",
                ZSH_WORDS,
                1,
            );
            match script.split_once('\n') {
                Some((first, rest)) => format!("{first}\n{ZSH}{rest}"),
                None => script,
            }
        }
        _ => script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::ClientCommand, flags::adapt};
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    #[command(name = "tiphys")]
    struct Program {
        #[command(subcommand)]
        _command: ClientCommand,
    }

    pub fn program() -> clap::Command {
        adapt(Program::command())
    }

    fn of(shell: Shell) -> String {
        script(shell, &mut program(), OWN)
    }

    #[test]
    fn it_is_for_the_name_of_the_program() {
        let bash = script(Shell::Bash, &mut adapt(Program::command()), ARGOCD);
        let first =
            "# bash completion for argocd                               -*- shell-script -*-\n";
        assert!(bash.starts_with(first), "{:?}", bash.lines().next());
        assert!(bash.contains("complete -F _argocd_names") && !bash.contains(OWN));
    }

    #[test]
    fn names_come_from_the_server_when_they_are_wanted() {
        let bash = of(Shell::Bash);
        let last = bash
            .lines()
            .rev()
            .find(|line| line.starts_with("complete -F"));
        assert_eq!(
            last,
            Some("complete -F _tiphys_names -o bashdefault -o default tiphys"),
            "it takes the place of clap's"
        );
        assert!(bash.contains("_tiphys() {"), "clap's is called by ours");
        let zsh = of(Shell::Zsh);
        assert!(zsh.starts_with("#compdef tiphys\n"));
        assert!(zsh.contains("_tiphys_words=(") && !zsh.contains(":_default'"));
    }
}
