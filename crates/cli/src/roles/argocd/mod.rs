//! Argo CD's roles under their own names, so that a manifest works with only the image replaced:
//! the name that the program is started by selects the role. Main function: [`called`].

mod controller;
mod flags;
mod line;

pub use controller::run;
pub use line::{Line, read, usage};

/// The roles that are implemented, and those that are not.
pub const CONTROLLER: &str = "argocd-application-controller";
const CMP_SERVER: &str = super::cmp_server::NAME;
const ASK_PASS: &str = "argocd-git-ask-pass";
const OTHERS: [&str; 6] = [
    "argocd-server",
    "argocd-repo-server",
    "argocd-applicationset-controller",
    "argocd-notifications",
    "argocd-commit-server",
    "argocd-dex",
];

/// The role that the program was called by.
#[derive(Debug, PartialEq, Eq)]
pub enum Called<'a> {
    /// [`CONTROLLER`], with these arguments.
    Controller(&'a [String]),
    /// [`CMP_SERVER`].
    CmpServer(&'a [String]),
    /// [`ASK_PASS`].
    AskPass(&'a [String]),
    NotThere(&'static str),
}

/// The role that the program is called by: its own name, Argo CD's variable for it, or the first
/// argument, which contains the program path of a manifest if the image has an entry point.
pub fn called<'a>(words: &'a [String], variable: Option<&str>) -> Option<Called<'a>> {
    let role = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        [CONTROLLER, CMP_SERVER, ASK_PASS]
            .iter()
            .chain(&OTHERS)
            .copied()
            .find(|role| *role == name)
    };
    let own = variable
        .filter(|name| !name.is_empty())
        .or(words.first().map(String::as_str));
    let (role, rest) = match own.and_then(role) {
        Some(role) => (role, words.get(1..)?),
        None => (role(words.get(1)?)?, words.get(2..)?),
    };
    Some(match role {
        CONTROLLER => Called::Controller(rest),
        CMP_SERVER => Called::CmpServer(rest),
        ASK_PASS => Called::AskPass(rest),
        role => Called::NotThere(role),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_role() {
        let of = |words: &[&str], variable: Option<&str>| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            match called(&words, variable) {
                Some(Called::Controller(rest)) => format!("controller {}", rest.join(" ")),
                Some(Called::CmpServer(rest)) => format!("cmp-server {}", rest.join(" ")),
                Some(Called::AskPass(rest)) => format!("ask-pass {}", rest.join(" ")),
                Some(Called::NotThere(role)) => format!("no {role}"),
                None => "command line".to_owned(),
            }
        };
        for (words, variable, expected) in [
            (
                &[
                    "/usr/local/bin/argocd-application-controller",
                    "--redis",
                    "a",
                ][..],
                None,
                "controller --redis a",
            ),
            (&["argocd-application-controller"], Some(""), "controller "),
            (
                &["tiphys", "--redis", "a"],
                Some("argocd-application-controller"),
                "controller --redis a",
            ),
            (
                &[
                    "tiphys",
                    "/usr/local/bin/argocd-application-controller",
                    "--redis",
                    "a",
                ],
                None,
                "controller --redis a",
            ),
            (
                &["/var/run/argocd/argocd-cmp-server", "--loglevel", "debug"],
                None,
                "cmp-server --loglevel debug",
            ),
            // As git calls it for a plugin.
            (
                &["argocd", "Password for 'https://h': "],
                Some("argocd-git-ask-pass"),
                "ask-pass Password for 'https://h': ",
            ),
            (&["argocd-server"], None, "no argocd-server"),
            (&["tiphys", "app", "list"], None, "command line"),
            (&["argocd", "version"], Some("argocd"), "command line"),
            (&["tiphys"], None, "command line"),
            (&[], None, "command line"),
        ] {
            assert_eq!(of(words, variable), expected, "{words:?}");
        }
    }
}
