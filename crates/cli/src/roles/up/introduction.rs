//! What is printed at every start, before anything is deployed: URLs, login, and commands to try.

use std::path::Path;

/// The values to print.
pub struct Introduction<'a> {
    /// How to call this program in a shell.
    pub program: &'a str,
    pub url: &'a str,
    /// The password of `admin`, if it is known to be valid.
    pub password: Option<&'a str>,
    pub kubeconfig: Option<&'a Path>,
    pub namespace: &'a str,
    /// It exits on its own: no one logs in.
    pub once: bool,
}

impl Introduction<'_> {
    pub fn text(&self) -> String {
        let kubeconfig = self.kubeconfig.map(|p| quoted(&p.display().to_string()));
        let place = kubeconfig
            .as_deref()
            .map(|p| format!(" --kubeconfig {p}"))
            .unwrap_or_default();
        let login = match self.password {
            Some(password) => format!("admin / {password}"),
            None => format!(
                "admin; its first password: {} admin initial-password -n {}{place}",
                self.program, self.namespace
            ),
        };
        let mut text = format!("\n  page        {}\n  login       {login}\n", self.url);
        if let Some(path) = &kubeconfig {
            text += &format!("  cluster     export KUBECONFIG={path}\n");
        }
        if self.once {
            return text + "\n";
        }
        let (address, tls) = match self.url.split_once("://") {
            // The certificate is self-signed.
            Some(("https", address)) => (address, "--insecure"),
            Some((_, address)) => (address, "--plaintext"),
            None => (self.url, "--plaintext"),
        };
        let program = self.program;
        text += &format!(
            "\nTry, in another terminal:\n  {program} login {address} {tls} --username admin\n  {program} app list\n  \
             kubectl get pods -A{place}\n\nCtrl-C stops.\n\n"
        );
        text
    }
}

/// Quoted as a single word for a shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, password: Option<&str>) -> String {
        let kubeconfig = Some(Path::new("/data of mine/kubeconfig"));
        Introduction {
            program: "target/debug/tiphys",
            url,
            password,
            kubeconfig,
            namespace: "argocd",
            once: false,
        }
        .text()
    }

    #[test]
    fn hints_work_as_printed() {
        let plain = of("http://127.0.0.1:8080", Some("secret"));
        assert!(plain.contains("login       admin / secret\n"), "{plain}");
        assert!(
            plain.contains(
                "  target/debug/tiphys login 127.0.0.1:8080 --plaintext --username admin\n"
            ),
            "{plain}"
        );
        assert!(
            plain.contains("export KUBECONFIG='/data of mine/kubeconfig'\n"),
            "{plain}"
        );
        let tls = of("https://127.0.0.1:8080", None);
        assert!(
            tls.contains("login 127.0.0.1:8080 --insecure") && !tls.contains("--plaintext"),
            "{tls}"
        );
        assert!(tls.contains("target/debug/tiphys admin initial-password -n argocd --kubeconfig '/data of mine/kubeconfig'\n"), "{tls}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(
            (
                quoted("target/debug/tiphys").as_str(),
                quoted("a b").as_str(),
                quoted("it's").as_str()
            ),
            ("target/debug/tiphys", "'a b'", r"'it'\''s'")
        );
    }
}
