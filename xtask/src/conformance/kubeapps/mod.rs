//! Suite `kubeapps/asset_syncer`: what kubeapps' asset-syncer left in its tables.
//!
//! Main function: [`runner`]. Every scenario runs on SQLite, and on PostgreSQL where that is
//! installed. Compared are the exit code, the rows, and to which addresses credentials went. Where
//! kubeapps is wrong, the right rows are in the case or in [`right`].

pub mod controller;
mod right;
mod rows;
mod server;

pub use right::intended as excuse;

use super::{Difference, Runner};
use anyhow::{Context, bail};
use serde_json::Value;
use server::Servers;
use std::{path::Path, process::Command, sync::Arc};
use tiphys_catalog::{
    Store,
    asset_syncer::{Surroundings, run},
    store::PostgresOptions,
};
use tiphys_testkit::postgres::{Postgres, USER};

/// The database in the recorded arguments.
const DATABASE: &str = "127.0.0.1:18475";

struct Suite {
    servers: Servers,
    postgres: Option<Postgres>,
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
}

/// The runner for scenarios; `dir` is the folder of all cases.
pub fn runner(dir: &Path) -> anyhow::Result<Runner> {
    let folder = tempfile::tempdir()?;
    let fixtures = dir.join("kubeapps/fixtures");
    let made = folder.path().join("fixtures");
    let python = Command::new("python3")
        .arg(fixtures.join("gen.py"))
        .arg(&made)
        .output();
    let output = python.context("python3, which makes the fixtures")?;
    if !output.status.success() {
        bail!("gen.py: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::os::unix::fs::symlink(fixtures.join("real").canonicalize()?, made.join("real"))?;
    let suite = Suite {
        servers: Servers::start(&made)?,
        postgres: Postgres::start(),
        runtime: tokio::runtime::Runtime::new()?,
        folder,
    };
    Ok(Box::new(move |case| {
        let id = case["id"].as_str().unwrap_or_default();
        suite.case(case).map_err(|why| match right::intended(id) {
            Some(reason) => Difference::Intended(reason.to_owned()),
            None => why,
        })
    }))
}

/// The database of a scenario.
#[derive(Clone)]
enum Target {
    Sqlite(Arc<Store>),
    Postgres { port: u16, database: String },
}

impl Suite {
    fn case(&self, case: &Value) -> Result<(), Difference> {
        let store = Store::in_memory().map_err(|e| e.to_string())?;
        self.on(case, &Target::Sqlite(Arc::new(store)))
            .map_err(|why| format!("sqlite: {why}"))?;
        if let Some(postgres) = &self.postgres {
            let target = Target::Postgres {
                port: postgres.port(),
                database: postgres.database(),
            };
            self.on(case, &target)
                .map_err(|why| format!("postgres: {why}"))?;
        }
        Ok(())
    }

    fn on(&self, case: &Value, target: &Target) -> Result<(), String> {
        let steps = case["steps"].as_array().ok_or("no steps")?;
        let is_bug = !case["bug"].is_null();
        let mut before = Value::Null;
        let mut indexes: Vec<String> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let at = |why: String| format!("step {number}: {why}");
            let is_last = number + 1 == steps.len();
            let id = case["id"].as_str().unwrap_or_default();
            if id == "oci-new-tag" {
                self.push_late(number > 0).map_err(|e| at(e.to_string()))?;
            }
            self.servers.serve(step).map_err(|e| at(e.to_string()))?;
            let exit = self.step(step, target).map_err(at)?;
            let (requests, index) = self.servers.seen();
            let checksum = index.map(|index| rows::sha256(&index)).unwrap_or_default();
            let found = self.rows(target).map_err(at)?;
            let context = rows::Context {
                checksum: &checksum,
                earlier: &indexes,
            };
            if is_bug && is_last && case["right_rows"].is_null() {
                let right = right::of(id).ok_or("nobody wrote down what is right")?;
                return right.check(&exit, &found).map_err(at);
            }
            // What is wrong shows in every step where only the last one can be right.
            if is_bug
                && case["right_rows"].is_null()
                && right::of(id).is_some()
                && id.starts_with("oci-")
            {
                continue;
            }
            let is_right = is_bug && is_last;
            let wanted = match &step["rows"] {
                _ if is_right => &case["right_rows"],
                Value::String(same) if same == "same" => &before,
                rows => rows,
            };
            rows::compare(wanted, &found, &context).map_err(at)?;
            let recorded = if is_right {
                0
            } else {
                step["exit"].as_i64().unwrap_or(-1)
            };
            let code = i64::from(exit.is_err());
            if code != recorded {
                return Err(at(format!("exit {code} ({exit:?}), recorded {recorded}")));
            }
            rows::credentials(step, &requests, &self.servers).map_err(at)?;
            before = wanted.clone();
            indexes.push(checksum);
        }
        Ok(())
    }

    /// Runs the command of a step; the error is what it printed.
    fn step(&self, step: &Value, target: &Target) -> Result<Result<String, String>, String> {
        let words = step["args"].as_array().ok_or("no arguments")?;
        let mut words: Vec<String> = words
            .iter()
            .map(|word| self.servers.to_ours(word.as_str().unwrap_or_default()))
            .collect();
        let (address, database) = match target {
            Target::Sqlite(_) => ("127.0.0.1:1".to_owned(), "charts"),
            Target::Postgres { port, database } => (format!("127.0.0.1:{port}"), database.as_str()),
        };
        let flags = step["database_flags"].as_array().map_or_else(
            || {
                vec![
                    format!("--database-url={address}"),
                    format!("--database-user={USER}"),
                    format!("--database-name={database}"),
                ]
            },
            |flags| {
                let flags = flags.iter().filter_map(Value::as_str);
                flags.map(|flag| flag.replace(DATABASE, &address)).collect()
            },
        );
        // Another database than the one that is asked for can only be on a server.
        let is_other = step["database_flags"].to_string().contains("nothere");
        words.splice(1..1, flags);
        let env = |name: &str| step["env"][name].as_str().unwrap_or_default();
        let surroundings = Surroundings {
            database_password: "x".into(),
            authorization: env("AUTHORIZATION_HEADER").into(),
            docker_config: env("DOCKER_CONFIG_JSON").into(),
            ca_file: self.ca_file(step)?,
            proxy: self.proxy(step),
            version: "2.12.0".to_owned(),
            store: match target {
                Target::Sqlite(_) if is_other => return Ok(Err("no server".to_owned())),
                Target::Sqlite(store) => Some(Arc::clone(store)),
                Target::Postgres { .. } => None,
            },
            ..Surroundings::default()
        };
        let ended = self.runtime.block_on(run(&words, &surroundings));
        Ok(ended.map_err(|e| e.to_string()))
    }

    /// What was pushed between the steps of a scenario: a second version of a chart.
    fn push_late(&self, is_pushed: bool) -> std::io::Result<()> {
        let registry = self.folder.path().join("fixtures/registry");
        let (from, to) = (registry.join("charts/demo"), registry.join("late/demo"));
        for part in ["manifests", "blobs"] {
            for file in std::fs::read_dir(from.join(part))? {
                let file = file?;
                std::fs::copy(file.path(), to.join(part).join(file.file_name()))?;
            }
        }
        let tags: &[&str] = if is_pushed {
            &["1.0.0", "1.1.0"]
        } else {
            &["1.0.0"]
        };
        let list = serde_json::json!({"name": "late/demo", "tags": tags});
        std::fs::write(to.join("tags.json"), list.to_string())
    }

    /// The archives in the registry name icons at a recorded address: through a proxy they are
    /// found at ours.
    fn proxy(&self, step: &Value) -> String {
        let named = step["env"]["https_proxy"].as_str();
        let proxy = match named {
            None if step["registry"] == Value::Bool(true) => "http://127.0.0.1:18471",
            named => named.unwrap_or_default(),
        };
        self.servers.to_ours(proxy)
    }

    fn ca_file(&self, step: &Value) -> Result<std::path::PathBuf, String> {
        let path = self.folder.path().join("ca.crt");
        let text = match step["ca"].as_str() {
            Some("ca-right") => &self.servers.authorities[0],
            Some("ca-wrong") => &self.servers.authorities[1],
            Some(_) => "no certificate",
            None => return Ok(self.folder.path().join("none")),
        };
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        Ok(path)
    }

    fn rows(&self, target: &Target) -> Result<Value, String> {
        let target = target.clone();
        let rows = self.runtime.block_on(async move {
            tokio::task::spawn_blocking(move || match target {
                Target::Sqlite(store) => store.rows(),
                Target::Postgres { port, database } => {
                    let options = PostgresOptions {
                        host: "127.0.0.1".to_owned(),
                        port,
                        user: USER.to_owned(),
                        database,
                        ..PostgresOptions::default()
                    };
                    Store::postgres(options)?.rows()
                }
            })
            .await
        });
        let rows = rows
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())?;
        let text = self.servers.to_recorded(&rows.to_string());
        serde_json::from_str(&text).map_err(|e| e.to_string())
    }
}
