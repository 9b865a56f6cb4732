//! `context`: which server the commands use.

use crate::{
    client::{ConnectArgs, Failure, LocalConfig, exit},
    output::{self, log, table},
};
use std::{fs, path::Path};

#[derive(clap::Args)]
pub struct ContextCommand {
    /// The context to switch to; `-` is the one before; without it all are listed
    context: Option<String>,
    /// Delete the context instead of switching to it
    #[arg(long, requires = "context")]
    delete: bool,
}

impl ContextCommand {
    pub fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let path = args.config_path()?;
        let changes = self.context.is_some() && path.exists();
        let _alone = changes.then(|| LocalConfig::lock(&path)).transpose()?;
        let Some(config) = LocalConfig::read(&path)? else {
            output::print("No local configuration found\n");
            return Err(Failure::exit(exit::FAILED));
        };
        match self.context {
            None => output::print(&list(&config)),
            Some(name) if self.delete => delete(config, &name, &path)?,
            Some(name) => switch(config, name, &path)?,
        }
        Ok(())
    }
}

fn list(config: &LocalConfig) -> String {
    let rows = config.contexts.iter().map(|reference| {
        let server = match config.resolve(&reference.name) {
            Ok(context) => context.server.server,
            Err(e) => {
                log::warn(&format!("Context '{}' had error: {e}", reference.name));
                String::new()
            }
        };
        let mark = if config.current_context == reference.name {
            "*"
        } else {
            " "
        };
        vec![mark.to_owned(), reference.name.clone(), server]
    });
    table::table(&["CURRENT", "NAME", "SERVER"], rows)
}

fn switch(mut config: LocalConfig, mut name: String, path: &Path) -> Result<(), Failure> {
    let previous = path.with_file_name(".prev-ctx");
    if name == "-" {
        let read = fs::read_to_string(&previous);
        name = read.map_err(|e| {
            Failure::file(&previous, &e).with_hint("there is no context before this one")
        })?;
    }
    if config.current_context == name {
        output::print(&format!("Already at context '{name}'\n"));
        return Ok(());
    }
    config.resolve(&name)?;
    let before = std::mem::replace(&mut config.current_context, name.clone());
    config.write(path)?;
    fs::write(&previous, before)
        .map_err(|e| Failure::error(format!("cannot write {}: {e}", previous.display())))?;
    output::print(&format!("Switched to context '{name}'\n"));
    Ok(())
}

fn delete(mut config: LocalConfig, name: &str, path: &Path) -> Result<(), Failure> {
    if !config.remove_context(name) {
        return Err(Failure::error(format!("context {name} does not exist")));
    }
    if config.servers.is_empty() {
        fs::remove_file(path)
            .map_err(|e| Failure::error(format!("cannot delete {}: {e}", path.display())))?;
    } else {
        config.write(path)?;
    }
    output::print(&format!("Context '{name}' deleted\n"));
    Ok(())
}
