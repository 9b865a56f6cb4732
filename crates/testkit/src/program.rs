//! The program under test as a process. Main type: [`Tiphys`].

use crate::{Api, PATIENCE, eventually, free_port};
use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How to start the program.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The binary.
    pub program: PathBuf,
    /// The data folder; `None`: a temporary one.
    pub data: Option<PathBuf>,
    /// `--ephemeral` instead of a data folder.
    pub ephemeral: bool,
    /// A real cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Start with its own examples; otherwise with `--bare`.
    pub examples: bool,
    /// Further arguments.
    pub arguments: Vec<OsString>,
}

/// The result of a process that ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// `tiphys up` as a process. Killed on drop.
pub struct Tiphys {
    child: Child,
    logs: TempDir,
    /// A folder created for this process alone.
    own_data: Option<TempDir>,
    kubeconfig: Option<PathBuf>,
    /// URL of the API and the web UI.
    pub url: String,
}

impl Tiphys {
    /// Starts it; returns immediately.
    ///
    /// # Panics
    /// If the binary cannot be started.
    pub fn start(options: &Options) -> Self {
        let port = free_port();
        let logs = TempDir::new().expect("a temporary folder");
        let mut own = None;
        let mut command = Command::new(&options.program);
        command.arg("up").arg("--port").arg(port.to_string());
        let mut kubeconfig = options.kubeconfig.clone();
        if options.ephemeral {
            command.arg("--ephemeral");
        } else {
            let data = options.data.clone().unwrap_or_else(|| {
                own.insert(TempDir::new().expect("a temporary folder"))
                    .path()
                    .to_owned()
            });
            command.arg("--data").arg(&data);
            kubeconfig = kubeconfig.or_else(|| Some(data.join("kubeconfig")));
        }
        match &options.kubeconfig {
            Some(path) => command.arg("--kubeconfig").arg(path).arg("--yes"),
            None => command.arg("--kube-port").arg(free_port().to_string()),
        };
        if !options.examples {
            command.arg("--bare");
        }
        let log = |name: &str| Stdio::from(File::create(logs.path().join(name)).expect("a file"));
        command
            .args(&options.arguments)
            .env_remove("TIPHYS_LOG")
            .stdin(Stdio::null())
            .stdout(log("stdout"))
            .stderr(log("stderr"));
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{} does not start: {e}", options.program.display()));
        Self {
            child,
            logs,
            own_data: own,
            kubeconfig,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Starts it and waits until its API servers respond.
    pub fn ready(options: &Options) -> (Self, Api) {
        let mut tiphys = Self::start(options);
        let api = tiphys.wait_ready();
        (tiphys, api)
    }

    /// Waits until the Kubernetes API serves our kinds and our own API responds.
    ///
    /// # Panics
    /// If the process ends, or does not become ready in time.
    pub fn wait_ready(&mut self) -> Api {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(ended) = self.ended() {
                panic!(
                    "tiphys ended: {:?}\n{}{}",
                    ended.code, ended.stdout, ended.stderr
                );
            }
            let answer = self.try_ready();
            match answer {
                Ok(api) => return api,
                Err(why) if Instant::now() > deadline => panic!(
                    "tiphys is not ready: {why}\n{}{}",
                    self.stdout(),
                    self.stderr()
                ),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn try_ready(&self) -> Result<Api, String> {
        let printed = || self.printed("KUBECONFIG=").map(PathBuf::from);
        let path = self
            .kubeconfig
            .clone()
            .or_else(printed)
            .ok_or("no kubeconfig yet")?;
        let api = Api::kubeconfig(&path)?;
        let apps = api.get(&crate::apps_path()).map_err(|e| e.0)?;
        if apps.status != 200 {
            return Err(format!("applications: {} {}", apps.status, apps.body));
        }
        let version = Api::plain(&self.url).get("/api/version").map_err(|e| e.0)?;
        if version.status != 200 {
            return Err(format!("version: {} {}", version.status, version.body));
        }
        Ok(api)
    }

    /// Logs in to our own API with the admin password, which is printed once everything is ready;
    /// `None` if the password was generated at an earlier start.
    ///
    /// # Panics
    /// If the program does not print it in time, or the login fails.
    pub fn login(&mut self) -> Option<Api> {
        let line = eventually(PATIENCE, "tiphys introduces itself", || {
            if let Some(ended) = self.ended() {
                panic!("tiphys ended: {ended:?}");
            }
            self.printed("login  ")
                .ok_or_else(|| format!("{}{}", self.stdout(), self.stderr()))
        });
        let password = line.strip_prefix("admin / ")?.split_whitespace().next()?;
        let api = Api::plain(&self.url);
        let answer = api.post(
            "/api/v1/session",
            &serde_json::json!({"username": "admin", "password": password}),
        );
        let answer = answer.unwrap_or_else(|e| panic!("login: {}", e.0));
        let token = answer.body["token"]
            .as_str()
            .unwrap_or_else(|| panic!("login: {} {}", answer.status, answer.body));
        Some(api.with_token(token))
    }

    /// The admin's password, where it was printed: at the first start.
    pub fn password(&self) -> Option<String> {
        let login = self.printed("admin / ")?;
        login.split_whitespace().next().map(str::to_owned)
    }

    /// The rest of the first printed line that contains `before`.
    fn printed(&self, before: &str) -> Option<String> {
        self.stdout().lines().find_map(|l| {
            l.split_once(before)
                .map(|(_, after)| after.trim().to_owned())
        })
    }

    /// The kubeconfig of its cluster, if it was known at the start.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// The data folder, if it was made for this process.
    pub fn data(&self) -> Option<&Path> {
        self.own_data.as_ref().map(TempDir::path)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.log("stdout")
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.log("stderr")
    }

    fn log(&self, name: &str) -> String {
        fs::read(self.logs.path().join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Its result, if it has ended.
    pub fn ended(&mut self) -> Option<Ended> {
        let status = self.child.try_wait().expect("it is our child")?;
        Some(self.report(status))
    }

    fn report(&self, status: ExitStatus) -> Ended {
        Ended {
            code: status.code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }

    /// Waits until it ends.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn wait(mut self) -> Ended {
        eventually(PATIENCE, "tiphys ends", || {
            self.ended().ok_or_else(|| "it runs".to_owned())
        })
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.end();
    }

    /// SIGINT, as sent by Ctrl-C, and waits until it ends.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn interrupt(self) -> Ended {
        self.signal("-INT")
    }

    /// SIGTERM, as sent by a service manager, and waits until it ends.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn terminate(self) -> Ended {
        self.signal("-TERM")
    }

    fn signal(self, signal: &str) -> Ended {
        let done = Command::new("kill")
            .args([signal, &self.id().to_string()])
            .status()
            .expect("kill is installed");
        assert!(done.success(), "it ran");
        self.wait()
    }

    fn end(&mut self) {
        // It may already have ended; its status is collected either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Tiphys {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "--- tiphys {} said:\n{}{}",
                self.id(),
                self.stdout(),
                self.stderr()
            );
        }
        self.end();
    }
}

/// Runs a command of the program until it ends.
///
/// # Panics
/// If it cannot be started.
pub fn output_of(program: &Path, arguments: &[&str]) -> Ended {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}
