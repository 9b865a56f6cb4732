//! The step `plugin`: the servers of plugins, beside the control plane.

use crate::scripts::{play::Play, steps::Said};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tiphys_cmp::{Config, ReceiveLimits, Server, ServerOptions};
use tokio::runtime::{Builder, Runtime};

/// Each has threads of its own, for which time passes.
#[derive(Default)]
pub struct PluginServers {
    running: BTreeMap<String, Runtime>,
    /// Of those that ran, too.
    sockets: BTreeSet<PathBuf>,
}

impl PluginServers {
    /// Leaves the socket behind, as a process that dies does.
    fn stop(&mut self, name: &str) {
        if let Some(runtime) = self.running.remove(name) {
            runtime.shutdown_background();
        }
    }

    fn start(&mut self, dir: &Path, name: &str, spec: &str) -> Result<(), String> {
        self.stop(name);
        let folder = dir.join(format!("of-{name}"));
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let spec = spec.replace('\n', "\n  ");
        let text =
            format!("kind: ConfigManagementPlugin\nmetadata: {{name: {name}}}\nspec:\n  {spec}\n");
        std::fs::write(folder.join("plugin.yaml"), text).map_err(|e| e.to_string())?;
        let options = ServerOptions {
            config: Config::read(&folder).map_err(|e| e.to_string())?,
            sockets: dir.to_owned(),
            work: folder.join("work"),
            limits: ReceiveLimits::default(),
            max_message: 100 << 20,
        };
        let server = Arc::new(Server::new(options).map_err(|e| e.to_string())?);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let (runtime, socket) = (runtime.map_err(|e| e.to_string())?, server.socket());
        let _ = std::fs::remove_file(&socket);
        self.sockets.insert(socket.clone());
        runtime.spawn(async move {
            let _ = server.serve(std::future::pending()).await;
        });
        while !socket.exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.running.insert(name.to_owned(), runtime);
        Ok(())
    }
}

impl Drop for PluginServers {
    fn drop(&mut self) {
        let names: Vec<String> = self.running.keys().cloned().collect();
        names.iter().for_each(|name| self.stop(name));
        // The next script on the same ground would be asked to wait for a plugin that is gone.
        for socket in &self.sockets {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Play<'_> {
    /// `plugin NAME` serves a plugin whose `spec` is the body, `plugin NAME away` ends that.
    pub fn plugin(&mut self, words: &[String], body: &str) -> Said {
        let dir = self.ground.plugins.path().to_owned();
        match words
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [name, "away"] => self.plugins.stop(name),
            [name] => self.plugins.start(&dir, name, body)?,
            _ => return Err("plugin NAME [away]".into()),
        }
        self.ground.network.store(true, Ordering::Relaxed);
        self.name("$PLUGINS", dir.display().to_string());
        Ok(Vec::new())
    }
}
