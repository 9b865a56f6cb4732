//! `completion`: prints the script for shell completion of commands and flags, which also asks the
//! server for names.

use crate::{client::Failure, output};
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Completion {
    /// The shell
    shell: Shell,
}

/// Replaces clap's function: names of Applications, projects, repositories and clusters are
/// requested when needed.
const BASH: &str = r#"
_tiphys_names() {
    local cur="${COMP_WORDS[COMP_CWORD]}" names=""
    if [[ "$cur" != -* && $COMP_CWORD -ge 3 ]]; then
        case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
            "app create" | "app list" | "app actions" | "repo add") ;;
            "app "*) names="$(tiphys app list -o name 2>/dev/null)" ;;
            "proj get") names="$(tiphys proj list -o name 2>/dev/null)" ;;
            "repo get" | "repo rm") names="$(tiphys repo list -o url 2>/dev/null)" ;;
            "cluster get") names="$(tiphys cluster list -o server 2>/dev/null)" ;;
        esac
    fi
    if [[ -n "$names" ]]; then
        COMPREPLY=($(compgen -W "$names" -- "$cur"))
    else
        _tiphys "$@"
    fi
}
complete -F _tiphys_names -o bashdefault -o default tiphys
"#;

const FISH: &str = r#"
complete -c tiphys -n "__fish_seen_subcommand_from app; and __fish_seen_subcommand_from get sync wait diff history manifests resources set delete patch terminate-op rollback" -f -a "(tiphys app list -o name 2>/dev/null)"
complete -c tiphys -n "__fish_seen_subcommand_from proj; and __fish_seen_subcommand_from get" -f -a "(tiphys proj list -o name 2>/dev/null)"
complete -c tiphys -n "__fish_seen_subcommand_from repo; and __fish_seen_subcommand_from get rm" -f -a "(tiphys repo list -o url 2>/dev/null)"
complete -c tiphys -n "__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from get" -f -a "(tiphys cluster list -o server 2>/dev/null)"
"#;

/// After the first line, which names the command for zsh.
const ZSH: &str = r#"
_tiphys_apps() {
    local -a names
    names=(${(f)"$(tiphys app list -o name 2>/dev/null)"})
    compadd -a names
}
"#;

impl Completion {
    pub fn run(self, mut program: clap::Command) -> Result<(), Failure> {
        let words = std::env::args().next().unwrap_or_default();
        let name = words.rsplit('/').next().filter(|name| *name == ARGOCD);
        output::print(&script(self.shell, &mut program, name.unwrap_or(OWN)));
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
            let asked = [
                " -- The application:_default",
                " -- The applications:_default",
            ];
            let script = asked.iter().fold(script, |text, old| {
                text.replace(old, &old.replace("_default", "_tiphys_apps"))
            });
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
    use crate::commands::{ClientCommand, adapt};
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    #[command(name = "tiphys")]
    struct Program {
        #[command(subcommand)]
        _command: ClientCommand,
    }

    fn of(shell: Shell) -> String {
        script(shell, &mut adapt(Program::command()), OWN)
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
        assert!(
            bash.contains("_tiphys() {") && bash.contains("$(tiphys app list -o name 2>/dev/null)")
        );
        assert!(of(Shell::Fish).contains("(tiphys app list -o name 2>/dev/null)"));
        let zsh = of(Shell::Zsh);
        assert!(
            zsh.starts_with("#compdef tiphys\n") && zsh.matches(":_tiphys_apps").count() > 5,
            "names are asked for in zsh"
        );
    }
}
