//! Profiles: `~/.aws/config` and `~/.aws/credentials`.
//!
//! Main type: [`Profiles`]. Sections and keys; keys indented below another key configure other
//! services and are ignored.

use crate::{CloudError, Env, read};
use std::{collections::BTreeMap, path::Path};

/// The keys of each profile; those in the credentials file take precedence.
#[derive(Default)]
pub struct Profiles(BTreeMap<String, BTreeMap<String, String>>);

impl Profiles {
    pub async fn read(env: &Env) -> Result<Self, CloudError> {
        let mut profiles = Self::default();
        for (name, default, prefixed) in [
            ("AWS_CONFIG_FILE", ".aws/config", true),
            ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false),
        ] {
            let path = env.get(name).unwrap_or_else(|| env.home(default));
            if Path::new(&path).exists() {
                profiles.add(&read(&path).await?, prefixed);
            }
        }
        Ok(profiles)
    }

    /// `prefixed`: sections are named `profile NAME`, except `default`.
    pub fn add(&mut self, text: &str, prefixed: bool) {
        let mut section = None;
        for line in text.lines() {
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            if let Some(name) = line
                .trim()
                .strip_prefix('[')
                .and_then(|l| l.split_once(']'))
                .map(|(name, _)| name.trim())
            {
                let named = name.strip_prefix("profile ").map(str::trim);
                section = match named {
                    Some(name) if prefixed => Some(name.to_owned()),
                    None if !prefixed || name == "default" => Some(name.to_owned()),
                    _ => None,
                };
                continue;
            }
            if let (Some(section), Some((key, value))) = (&section, line.split_once('=')) {
                let value = value.split(" #").next().unwrap_or_default().trim();
                self.0
                    .entry(section.clone())
                    .or_default()
                    .insert(key.trim().to_lowercase(), value.to_owned());
            }
        }
    }

    pub fn has(&self, profile: &str) -> bool {
        self.0.contains_key(profile)
    }

    /// A value that is not empty.
    pub fn value(&self, profile: &str, key: &str) -> Option<String> {
        self.0
            .get(profile)?
            .get(key)
            .filter(|v| !v.is_empty())
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_win_over_the_configuration() {
        let mut profiles = Profiles::default();
        profiles.add(
            "[default]\nregion = eu-west-1\n[profile dev]\nrole_arn=a # of them\ns3 =\n  max = 1\n[sso-session x]\nregion = none\n",
            true,
        );
        profiles.add("[dev]\naws_access_key_id = K\nrole_arn = b\n", false);
        let value = |profile, key| profiles.value(profile, key);
        assert_eq!(value("default", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(
            (
                value("dev", "role_arn").as_deref(),
                value("dev", "aws_access_key_id").as_deref()
            ),
            (Some("b"), Some("K"))
        );
        assert_eq!(
            (
                value("dev", "max"),
                value("dev", "s3"),
                profiles.has("sso-session x")
            ),
            (None, None, false)
        );
    }
}
