//! Signing in through a real Dex, which `rundex` runs beside a server: on the page, on the command
//! line, and in another program that shares the Dex.

use crate::scenarios::{
    admin::Plane,
    dropin::Named,
    world::{World, program},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tiphys_testkit::{
    Api, Ended, PATIENCE,
    browser::{Browser, Page},
    dex, eventually, free_port, namespaced, output_of,
};

/// Who every mock connector of Dex says is there, and the groups that one of them adds.
const EMAIL: &str = "kilgore@kilgore.trout";
const GROUP: &str = "authors";
const POLICY: &str = "p, role:author, projects, get, default, allow\ng, authors, role:author\n";
/// Dex replaces variables in what connectors have, so the dollar signs of a secret must survive it.
const PASSWORD: &str = "a$HOME$b$";
const SETTINGS: &str = "
connectors:
- {type: mockCallback, id: mock, name: Mock}
- {type: mockPassword, id: corp, name: Corp, config: {username: ann, password: $dex.ann}}
staticClients:
- {id: reports, name: Reports, secret: $dex.reports, redirectURIs: [URL/reports]}
";
const HOST: &str = "127.0.0.1";

/// A server and a Dex beside it.
struct Installation {
    /// Ended before the folder with its files is removed.
    _running: (Plane, Plane),
    url: String,
    folder: TempDir,
    config: PathBuf,
    log_of_dex: Named,
}

/// Stands before Dex in `PATH`, because Argo CD's configurations name fixed ports on all addresses.
/// It ends Dex with its parent, so that a failed test leaves nothing running.
fn on_loopback(dex: &Path, port: u16) -> String {
    format!(
        "#!/usr/bin/env bash\n\
         sed -i.old 's/0.0.0.0:5556/{HOST}:{port}/; s/0.0.0.0:555[78]/{HOST}:0/' \"$2\"\n\
         '{}' \"$@\" &\n\
         trap 'kill $!; wait $!; exit 0' TERM\n\
         while kill -0 $PPID && kill -0 $!; do sleep 0.1; done 2> /dev/null\n\
         kill $!\n",
        dex.display()
    )
}

/// What both read.
fn install(world: &World, place: &str, url: &str) {
    let kube = &world.kube;
    kube.namespace(place);
    let settings = SETTINGS.replace("URL", url);
    let labels = json!({"app.kubernetes.io/part-of": "argocd"});
    let secret = json!({"server.secretkey": "of this test, and of no other", "dex.ann": PASSWORD,
        "dex.reports": "hush"});
    kube.create(
        &namespaced("v1", place, "secrets"),
        &json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "argocd-secret", "labels": labels}, "stringData": secret}),
    );
    for (name, data) in [
        ("argocd-cm", json!({"url": url, "dex.config": settings})),
        ("argocd-rbac-cm", json!({"policy.csv": POLICY})),
    ] {
        kube.create(
            &namespaced("v1", place, "configmaps"),
            &json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "labels": labels}, "data": data}),
        );
    }
    for name in ["default", "hidden"] {
        kube.create(
            &namespaced("argoproj.io/v1alpha1", place, "appprojects"),
            &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": name}, "spec": {}}),
        );
    }
}

impl Installation {
    fn start(world: &World, place: &str, dex: &Path) -> Self {
        let (port, port_of_dex) = (free_port(), free_port());
        let url = format!("http://{HOST}:{port}");
        install(world, place, &url);
        let folder = TempDir::new().expect("a folder");
        let stand_in = folder.path().join("dex");
        fs::write(&stand_in, on_loopback(dex, port_of_dex)).expect("written");
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("ours");

        // As in Argo CD's manifests, they speak TLS with a certificate that nobody has signed.
        let kubeconfig = world.kubeconfig();
        let at = folder.path().to_str().expect("plain").to_owned();
        let path = format!("{at}:{}", std::env::var("PATH").unwrap_or_default());
        let log_of_dex = Named::called("argocd-dex");
        let words = ["rundex", "--config-dir", &at, "-n", place];
        let variables = [("PATH", path.as_str())];
        let running_dex = log_of_dex.start(&kubeconfig, &words, &variables);
        let log = File::create(folder.path().join("server.log")).expect("a file");
        let mut server = Command::new(program());
        server
            .args(["server", "--insecure", "-n", place, "--address", HOST])
            .args(["--port", &port.to_string(), "--metrics-port"])
            .arg(free_port().to_string())
            .args(["--dex-server", &format!("{HOST}:{port_of_dex}")])
            .arg("--kubeconfig")
            .arg(&kubeconfig);
        let server = server
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn();
        let made = Self {
            url,
            config: folder.path().join("config"),
            folder,
            _running: (Plane(server.expect("it starts")), running_dex),
            log_of_dex,
        };
        let api = Api::plain(&made.url);
        eventually(PATIENCE, "Dex answers through the server", || {
            let answer = api.get("/api/dex/.well-known/openid-configuration");
            match answer.map_err(|e| e.0)? {
                answer if answer.is_success() => Ok(()),
                answer => Err(format!("{answer:?}\n{}", made.said())),
            }
        });
        made
    }

    /// The logs of both.
    fn said(&self) -> String {
        let server = fs::read_to_string(self.folder.path().join("server.log"));
        format!("{}{}", server.unwrap_or_default(), self.log_of_dex.said())
    }

    fn config(&self) -> &str {
        self.config.to_str().expect("plain")
    }

    fn cli(&self, words: &[&str]) -> Ended {
        output_of(&program(), &[words, &["--config", self.config()]].concat())
    }

    /// What a command that succeeds prints.
    #[track_caller]
    fn says(&self, words: &[&str]) -> String {
        let ended = self.cli(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}\n{}", self.said());
        ended.stdout
    }

    /// Runs `login --sso`; `browse` gets the address and does what a person does in a browser.
    fn log_in(&self, browse: impl FnOnce(&str) -> Page) {
        // The one that Dex's configuration names; it takes no other.
        let port = "8085";
        let address = self.url.trim_start_matches("http://");
        let child = Command::new(program())
            .args(["login", address, "--plaintext", "--sso"])
            .args(["--sso-launch-browser=false", "--config", self.config()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        // Ended with this function, too, if what follows fails.
        let mut child = Plane(child.expect("it starts"));
        let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let mut errors = child.0.stderr.take().expect("it is piped");
        let mut line = String::new();
        out.read_line(&mut line).expect("text");
        let url = line.split_once("flow login: ").map(|(_, url)| url.trim());
        let url = url.unwrap_or_else(|| panic!("no address: {line}"));
        let page = browse(url);
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.url.contains(&format!("localhost:{port}/")), "{page:?}");
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("text");
        let mut told = String::new();
        errors.read_to_string(&mut told).expect("text");
        let status = child.0.wait().expect("it ends");
        assert!(status.success(), "{rest}{told}");
        let done = format!("'{EMAIL}' logged in successfully");
        assert!(rest.contains(&done), "{rest}");
    }
}

/// The address of a sign-in with one of Dex's connectors, as its page has them.
fn with(connector: &str, url: &str) -> String {
    url.replacen("/api/dex/auth?", &format!("/api/dex/auth/{connector}?"), 1)
}

/// The page's way: a button, Dex's list of connectors, and back with a session, until the logout.
fn the_page(at: &Installation) {
    let mut browser = Browser::default();
    let url = &at.url;
    let list = browser.get(&format!("{url}/auth/login?return_url={url}/settings"));
    for connector in ["/api/dex/auth/mock?", "/api/dex/auth/corp?"] {
        assert!(list.text.contains(connector), "{list:?}\n{}", at.said());
    }
    let back = browser.get(&with("mock", &list.url));
    assert_eq!(
        back.url,
        format!("{url}/settings"),
        "{back:?}\n{}",
        at.said()
    );
    let user = browser.get(&format!("{url}/api/v1/session/userinfo"));
    let user: Value = serde_json::from_str(&user.text).expect("JSON");
    assert_eq!(user["username"], EMAIL);
    assert_eq!(user["groups"], json!([GROUP]));
    let token = browser.cookie(HOST, "argocd.token").expect("a session");
    let api = Api::plain(url).with_token(token);
    let projects = api.get("/api/v1/projects").expect("an answer");
    assert_eq!(projects.body["items"][0]["metadata"]["name"], "default");
    assert_eq!(projects.body["items"][1], Value::Null, "{projects:?}");
    browser.get(&format!("{url}/auth/logout"));
    assert_eq!(browser.cookie(HOST, "argocd.token"), None);
    let refused = api.get("/api/v1/projects").expect("an answer");
    assert_eq!(refused.status, 401, "{refused:?}");
}

/// The command line's way, with a password and the secret that the settings refer to.
fn the_command_line(at: &Installation) {
    let mut browser = Browser::default();
    at.log_in(|url| {
        let form = browser.get(&with("corp", url));
        assert!(form.text.contains("<form"), "{form:?}\n{}", at.said());
        let typed = |password| [("login", "ann"), ("password", password)];
        let again = browser.post(&form.url, &typed("a"));
        assert_eq!(again.status, 401, "{again:?}");
        browser.post(&form.url, &typed(PASSWORD))
    });
    // It is in no group.
    assert_eq!(at.says(&["proj", "list", "-o", "name"]), "");

    at.log_in(|url| Browser::default().get(&with("mock", url)));
    assert_eq!(at.says(&["proj", "list", "-o", "name"]), "default\n");
    let allowed = at.says(&["account", "can-i", "create", "projects", "x"]);
    assert_eq!(allowed, "no\n");

    // A token that is over is replaced with the refresh token, which Dex then replaces, too.
    let stored = || fs::read_to_string(&at.config).expect("it is there");
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.split_once(name));
        line.map(|(_, value)| value.trim().to_owned()).expect(name)
    };
    let before = stored();
    let token = field(&before, "auth-token:");
    let over = BASE64_URL_SAFE_NO_PAD.encode(json!({"exp": 1}).to_string());
    let over = format!("e30.{over}.e30");
    fs::write(&at.config, before.replace(&token, &over)).expect("written");
    assert_eq!(at.says(&["proj", "list", "-o", "name"]), "default\n");
    let after = stored();
    assert_ne!(field(&after, "auth-token:"), over);
    let refresh = "refresh-token:";
    assert_ne!(field(&after, refresh), field(&before, refresh));

    let address = at.url.trim_start_matches("http://");
    let ended = at.cli(&["logout", address]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let invalidated = "token successfully invalidated on server";
    assert!(ended.stderr.contains(invalidated), "{ended:?}");
    let ended = at.cli(&["proj", "list"]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
}

/// Another program that signs in with the same Dex, through the server: it has a secret of its own,
/// and asks who has signed in.
fn another_program(at: &Installation) {
    let url = &at.url;
    let code = |back: &str| {
        let asked = format!(
            "{url}/api/dex/auth/mock?client_id=reports&response_type=code\
             &scope=openid+email&state=s&redirect_uri={url}{back}"
        );
        Browser::default().get(&asked)
    };
    assert_eq!(code("/elsewhere").status, 400);
    let back = code("/reports");
    let code = back.url.split_once("?code=").map(|(_, rest)| rest);
    let code = code.and_then(|rest| rest.split('&').next());
    let code = code.unwrap_or_else(|| panic!("{back:?}\n{}", at.said()));
    let (token, redirect) = (format!("{url}/api/dex/token"), format!("{url}/reports"));
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", &redirect),
    ];
    let refused = Browser::default().post_as(("reports", "guess"), &token, &form);
    assert_eq!(refused.status, 401, "{refused:?}");
    let tokens = Browser::default().post_as(("reports", "hush"), &token, &form);
    assert_eq!(tokens.status, 200, "{tokens:?}");
    let tokens: Value = serde_json::from_str(&tokens.text).expect("JSON");
    let token = tokens["access_token"].as_str().expect("a token");
    let user = Api::plain(url).with_token(token);
    let user = user.get("/api/dex/userinfo").expect("an answer");
    assert_eq!(user.body["email"], EMAIL, "{user:?}");
}

pub fn users_sign_in_through_a_real_dex(world: &mut World) {
    let Some(dex) = dex::program_or_skip() else {
        return;
    };
    let place = format!("sso-{}", world.namespace);
    let at = Installation::start(world, &place, &dex);
    the_page(&at);
    the_command_line(&at);
    another_program(&at);
    let said = at.said();
    for secret in [PASSWORD, "hush"] {
        assert!(!said.contains(secret), "{said}");
    }
    drop(at);
    world.kube.delete(&format!("/api/v1/namespaces/{place}"));
}
