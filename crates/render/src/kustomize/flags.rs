//! The flags of `kustomize build` that are supported by the in-process build.
//!
//! Main function: [`BuildOptions::from_flags`].

use super::{BuildOptions, Order};
use std::sync::Arc;

impl BuildOptions {
    /// Reads flags such as `--enable-helm`.
    ///
    /// # Errors
    /// Flags that would run programs, and those that kustomize does not know.
    pub fn from_flags<'f>(flags: impl IntoIterator<Item = &'f str>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut api_versions = Vec::new();
        let mut flags = flags.into_iter();
        while let Some(word) = flags.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let on = match value {
                None | Some("true" | "1" | "t" | "T" | "TRUE" | "True") => true,
                Some("false" | "0" | "f" | "F" | "FALSE" | "False") => false,
                Some(_) => true,
            };
            let mut needed = || {
                let value = value.or_else(|| flags.next());
                value.ok_or_else(|| format!("flag needs an argument: {name}"))
            };
            match name {
                "--enable-helm" => options.enable_helm = on,
                "--enable-managedby-label" => options.managed_by_label = on,
                "--load-restrictor" => options.unrestricted = restrictor(needed()?)?,
                "--reorder" => options.order = order(needed()?)?,
                "--helm-kube-version" => options.kube_version = needed()?.to_owned(),
                "--helm-api-versions" => {
                    api_versions.extend(needed()?.split(',').map(str::to_owned));
                }
                "--helm-debug" | "--as-current-user" | "--network" => {}
                "--enable-alpha-plugins" | "--enable-exec" | "--enable-star" if !on => {}
                "--enable-alpha-plugins" | "--enable-exec" | "--enable-star" => {
                    return Err(format!("{name} is not supported: no programs are run here"));
                }
                "--helm-command" | "--mount" | "--env" | "-e" | "--network-name" => {
                    needed()?;
                    return Err(format!("{name} is not supported: no programs are run here"));
                }
                _ => return Err(format!("unknown flag: {name}")),
            }
        }
        options.api_versions = Arc::from(api_versions);
        Ok(options)
    }
}

fn restrictor(value: &str) -> Result<bool, String> {
    match value {
        "LoadRestrictionsNone" => Ok(true),
        "LoadRestrictionsRootOnly" => Ok(false),
        _ => Err(format!(
            "illegal flag value --load-restrictor {value}; legal values: [LoadRestrictionsRootOnly LoadRestrictionsNone]"
        )),
    }
}

fn order(value: &str) -> Result<Order, String> {
    match value {
        "legacy" => Ok(Order::Legacy),
        "none" => Ok(Order::None),
        _ => Err(format!(
            "illegal flag value --reorder {value}; legal values: [legacy none]"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let options = BuildOptions::from_flags(
            "--enable-helm --load-restrictor LoadRestrictionsNone --reorder=none --helm-api-versions v1"
                .split_whitespace(),
        )
        .expect("right");
        assert!(options.enable_helm && options.unrestricted);
        assert_eq!(
            (options.order, &options.api_versions[..]),
            (Order::None, &["v1".to_owned()][..])
        );
        for wrong in [
            "--enable-alpha-plugins",
            "--enable-exec",
            "--foo",
            "--reorder=x",
            "--mount x",
        ] {
            assert!(
                BuildOptions::from_flags(wrong.split(' ')).is_err(),
                "{wrong}"
            );
        }
    }
}
