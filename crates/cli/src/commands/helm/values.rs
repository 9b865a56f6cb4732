//! The flags for values, which `template` and `lint` share. Main type: [`ValueArgs`].

use crate::client::reason;
use std::io::Read as _;
use tiphys_render::helm::{
    HelmError, Limits,
    values::{Settings, Values, user_values},
};

#[derive(clap::Args)]
#[command(next_help_heading = "Values")]
pub struct ValueArgs {
    /// Values in a YAML file, `-` for standard input (can specify multiple or separate them with
    /// commas)
    #[arg(long, short = 'f', value_name = "FILE", value_delimiter = ',')]
    values: Vec<String>,
    /// Set values (can specify multiple or separate values with commas: key1=val1,key2=val2)
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Set texts
    #[arg(long, value_name = "KEY=TEXT", allow_hyphen_values = true)]
    set_string: Vec<String>,
    /// Set values from files
    #[arg(long, value_name = "KEY=FILE", allow_hyphen_values = true)]
    set_file: Vec<String>,
    /// Set JSON values: key=json, or a whole object
    #[arg(long, value_name = "KEY=JSON", allow_hyphen_values = true)]
    set_json: Vec<String>,
    /// Set one text as it stands
    #[arg(long, value_name = "KEY=TEXT", allow_hyphen_values = true)]
    set_literal: Vec<String>,
}

impl ValueArgs {
    pub fn read(&self, limits: &Limits) -> Result<Values, HelmError> {
        let mut files = Vec::new();
        // An empty name is not a file.
        for name in self.values.iter().filter(|name| !name.is_empty()) {
            files.push((name.clone(), content(name).map_err(HelmError::Chart)?));
        }
        let settings = Settings {
            files,
            set_json: self.set_json.clone(),
            set: self.set.clone(),
            set_string: self.set_string.clone(),
            set_file: self.set_file.clone(),
            set_literal: self.set_literal.clone(),
        };
        let text =
            |name: &str| content(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        user_values(&settings, &text, limits)
    }
}

/// A file, or standard input.
fn content(name: &str) -> Result<Vec<u8>, String> {
    if name.trim() == "-" {
        let mut bytes = Vec::new();
        return std::io::stdin()
            .read_to_end(&mut bytes)
            .map(|_| bytes)
            .map_err(|e| reason(&e));
    }
    if name.starts_with("http://") || name.starts_with("https://") || name.starts_with("oci://") {
        return Err(format!(
            "{name}: values are not fetched; download them and give the file"
        ));
    }
    std::fs::read(name).map_err(|e| format!("open {name}: {}", reason(&e)))
}
