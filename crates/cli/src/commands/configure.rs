//! `configure`: the settings of the config file that are not about servers.

use crate::{
    client::{ConnectArgs, Failure, LocalConfig, exit},
    output,
};

/// Its only setting is `--prompts-enabled`, a flag of all commands.
#[derive(clap::Args)]
pub struct Configure {}

impl Configure {
    pub fn run(args: &ConnectArgs) -> Result<(), Failure> {
        let path = args.config_path()?;
        let _alone = path
            .exists()
            .then(|| LocalConfig::lock(&path))
            .transpose()?;
        let Some(mut config) = LocalConfig::read(&path)? else {
            output::print("No local configuration found\n");
            return Err(Failure::exit(exit::FAILED));
        };
        config.prompts_enabled = args.prompts_flag().unwrap_or(config.prompts_enabled);
        config.write(&path)?;
        output::print(&format!(
            "Successfully updated the following configuration settings:\nprompts-enabled: {}\n",
            config.prompts_enabled
        ));
        Ok(())
    }
}
