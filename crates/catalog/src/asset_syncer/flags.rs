//! The command line as kubeapps' program reads it: flags before, between and after arguments, in
//! Go's forms. Pure.
//!
//! Main type: [`Line`].

use super::AssetSyncerError;

/// What the command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Words that are no flags; the first is the command.
    pub words: Vec<String>,
    pub database_url: String,
    pub database_name: String,
    pub database_user: String,
    pub namespace: String,
    pub user_agent_comment: String,
    pub skip_tls: bool,
    pub filter_rules: String,
    pub pass_credentials: bool,
    pub global_namespace: String,
    pub oci_repositories: Vec<String>,
    pub help: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            database_url: "localhost:5432".to_owned(),
            database_name: "charts".to_owned(),
            database_user: String::new(),
            namespace: String::new(),
            user_agent_comment: String::new(),
            skip_tls: false,
            filter_rules: String::new(),
            pass_credentials: false,
            global_namespace: "kubeapps".to_owned(),
            oci_repositories: Vec::new(),
            help: false,
        }
    }
}

/// Flags of its logging library, which have no effect here.
const WITHOUT_EFFECT: [&str; 13] = [
    "add_dir_header",
    "alsologtostderr",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
    "stderrthreshold",
    "v",
    "vmodule",
];
const LOGGING_SWITCHES: [&str; 6] = [
    "add_dir_header",
    "alsologtostderr",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
];

impl Line {
    /// # Errors
    /// A flag is unknown, lacks its value, or has one that it cannot have.
    pub fn parse(words: &[String]) -> Result<Self, AssetSyncerError> {
        let mut line = Self::default();
        let is_sync = words
            .iter()
            .find(|word| !word.starts_with('-'))
            .is_some_and(|w| w == "sync");
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                line.words.extend(words.by_ref().cloned());
                break;
            }
            let Some(flag) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                line.words.push(word.clone());
                continue;
            };
            let Some(flag) = flag.strip_prefix('-') else {
                line.short(word, flag, &mut words)?;
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            line.long(name, value, is_sync, &mut words)?;
        }
        Ok(line)
    }

    fn short<'a>(
        &mut self,
        word: &str,
        flag: &str,
        words: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), AssetSyncerError> {
        match flag {
            "h" => self.help = true,
            "v" => drop(words.next()),
            _ if flag.starts_with('v') => {}
            _ => {
                let first = flag.chars().next().unwrap_or_default();
                let why = format!("unknown shorthand flag: {first:?} in {word}");
                return Err(AssetSyncerError::new(why));
            }
        }
        Ok(())
    }

    fn long<'a>(
        &mut self,
        name: &str,
        value: Option<String>,
        is_sync: bool,
        words: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), AssetSyncerError> {
        let switch = |value: &Option<String>| match value.as_deref() {
            None | Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Ok(true),
            Some("0" | "f" | "F" | "FALSE" | "false" | "False") => Ok(false),
            Some(other) => Err(AssetSyncerError::new(format!(
                "invalid argument {other:?} for \"--{name}\" flag: strconv.ParseBool: parsing {other:?}: invalid syntax"
            ))),
        };
        match name {
            "tls-insecure-skip-verify" => self.skip_tls = switch(&value)?,
            "pass-credentials" => self.pass_credentials = switch(&value)?,
            "debug" => drop(switch(&value)?),
            "help" => self.help = switch(&value)?,
            _ if LOGGING_SWITCHES.contains(&name) => drop(switch(&value)?),
            _ => {
                let target = match name {
                    "database-url" => Some(&mut self.database_url),
                    "database-name" => Some(&mut self.database_name),
                    "database-user" => Some(&mut self.database_user),
                    "namespace" => Some(&mut self.namespace),
                    "user-agent-comment" => Some(&mut self.user_agent_comment),
                    "filter-rules" => Some(&mut self.filter_rules),
                    "global-repos-namespace" => Some(&mut self.global_namespace),
                    "oci-repositories" if is_sync => None,
                    _ if WITHOUT_EFFECT.contains(&name) => None,
                    _ => return Err(AssetSyncerError::new(format!("unknown flag: --{name}"))),
                };
                let value = value.or_else(|| words.next().cloned()).ok_or_else(|| {
                    AssetSyncerError::new(format!("flag needs an argument: --{name}"))
                })?;
                match target {
                    Some(target) => *target = value,
                    None if name == "oci-repositories" && !value.is_empty() => {
                        self.oci_repositories
                            .extend(value.split(',').map(str::to_owned));
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Line, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Line::parse(&words).map_err(|e| e.to_string())
    }

    #[test]
    fn flags_may_stand_anywhere() {
        let line = parse("--namespace=a sync r --pass-credentials u helm --database-url h:1 --oci-repositories x,y --oci-repositories z -v 4 --debug=false").expect("a line");
        assert_eq!(line.words, ["sync", "r", "u", "helm"]);
        assert_eq!((&*line.namespace, &*line.database_url), ("a", "h:1"));
        assert!(line.pass_credentials && !line.skip_tls);
        assert_eq!(line.oci_repositories, ["x", "y", "z"]);
        assert_eq!(line.database_name, "charts");
        assert_eq!(parse("sync r  helm").expect("a line").words[2], "");
        assert_eq!(parse("sync -- --x").expect("a line").words, ["sync", "--x"]);
    }

    #[test]
    fn other_flags_are_refused() {
        for (line, why) in [
            ("sync --nope", "unknown flag: --nope"),
            (
                "delete r --oci-repositories x",
                "unknown flag: --oci-repositories",
            ),
            ("sync --namespace", "flag needs an argument: --namespace"),
            ("sync -x", "unknown shorthand flag: 'x' in -x"),
            (
                "sync --debug=maybe",
                "invalid argument \"maybe\" for \"--debug\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
        ] {
            assert_eq!(parse(line).err().as_deref(), Some(why));
        }
    }
}
