//! `completion`: the script that lets a shell complete our commands and flags.

use crate::{client::Failure, output};
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    pub fn run(self, mut program: clap::Command) -> Result<(), Failure> {
        let name = program.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, name, &mut script);
        output::print(&String::from_utf8_lossy(&script));
        Ok(())
    }
}
