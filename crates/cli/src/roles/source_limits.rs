//! What sources may bring and how patiently Git servers are asked, with Argo CD's names: flags, their
//! variables and, for a process that renders without a repo-server, keys of argocd-cmd-params-cm.
//!
//! Main type: [`SourceLimitArgs`].

use clap::Args;
use std::time::Duration;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_cluster::Settings;
use tiphys_gocompat::duration;
use tiphys_repo::{RepoOptions, Retry, SourceLimits};

/// `None` is what nobody said.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceLimitArgs {
    /// Types that the layer with the content of an OCI source may have [default: those of images,
    /// packed or not, and of charts]
    #[arg(
        long,
        value_name = "TYPE",
        value_delimiter = ',',
        env = "ARGOCD_REPO_SERVER_OCI_LAYER_MEDIA_TYPES"
    )]
    oci_layer_media_types: Vec<String>,
    /// Most bytes that the content of an OCI source may unpack to, on disk [default: 1G]
    #[arg(
        long,
        value_name = "QUANTITY",
        value_parser = bytes,
        env = "ARGOCD_REPO_SERVER_OCI_MANIFEST_MAX_EXTRACTED_SIZE"
    )]
    oci_manifest_max_extracted_size: Option<u64>,
    /// Let it unpack to any size
    #[arg(
        long,
        value_parser = clap::builder::BoolishValueParser::new(),
        env = "ARGOCD_REPO_SERVER_DISABLE_OCI_MANIFEST_MAX_EXTRACTED_SIZE"
    )]
    disable_oci_manifest_max_extracted_size: bool,
    /// Most bytes that the archive of a chart may unpack to; in any case no more than Helm takes,
    /// 100 MiB [default: 1G]
    #[arg(
        long,
        value_name = "QUANTITY",
        value_parser = bytes,
        env = "ARGOCD_REPO_SERVER_HELM_MANIFEST_MAX_EXTRACTED_SIZE"
    )]
    helm_manifest_max_extracted_size: Option<u64>,
    /// Let it unpack to what Helm takes
    #[arg(
        long,
        value_parser = clap::builder::BoolishValueParser::new(),
        env = "ARGOCD_REPO_SERVER_DISABLE_HELM_MANIFEST_MAX_EXTRACTED_SIZE"
    )]
    disable_helm_manifest_max_extracted_size: bool,
    /// Most bytes of the index of a chart repository [default: 1G]
    #[arg(
        long,
        value_name = "QUANTITY",
        value_parser = bytes,
        env = "ARGOCD_REPO_SERVER_HELM_MANIFEST_MAX_INDEX_SIZE"
    )]
    helm_registry_max_index_size: Option<u64>,
    /// Longest time for one request for the refs of a repository over http or https [default: that
    /// for every contact]
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = time,
        env = "ARGOCD_GIT_REQUEST_TIMEOUT"
    )]
    git_request_timeout: Option<Duration>,
    /// Most repositories whose refs are asked for at a time; 0: as many as contacts [default: 0]
    #[arg(long, value_name = "N", env = "ARGOCD_GIT_LS_REMOTE_PARALLELISM_LIMIT")]
    git_lsremote_parallelism_limit: Option<usize>,
    /// How often refs are asked for before that has failed [default: 1]
    #[arg(long, value_name = "N", env = "ARGOCD_GIT_ATTEMPTS_COUNT")]
    git_attempts_count: Option<u32>,
    /// The pause after the first of these attempts [default: 250ms]
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = time,
        env = "ARGOCD_GIT_RETRY_DURATION"
    )]
    git_retry_duration: Option<Duration>,
    /// Each further pause is so many times as long [default: 2]
    #[arg(long, value_name = "N", env = "ARGOCD_GIT_RETRY_FACTOR")]
    git_retry_factor: Option<u32>,
    /// The longest of these pauses [default: 5s]
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = time,
        env = "ARGOCD_GIT_RETRY_MAX_DURATION"
    )]
    git_retry_max_duration: Option<Duration>,
}

impl SourceLimitArgs {
    pub fn limits(&self) -> SourceLimits {
        let (usual, retry) = (SourceLimits::default(), Retry::default());
        let types = self.oci_layer_media_types.iter().map(|kind| kind.trim());
        let types = types.filter(|kind| !kind.is_empty()).map(str::to_owned);
        let most = |said: Option<u64>, is_off: bool, usual: u64| match is_off {
            true => u64::MAX,
            false => said.unwrap_or(usual),
        };
        SourceLimits {
            layer_types: Some(types.collect())
                .filter(|types: &Vec<String>| !types.is_empty())
                .unwrap_or(usual.layer_types),
            artifact_bytes: most(
                self.oci_manifest_max_extracted_size,
                self.disable_oci_manifest_max_extracted_size,
                usual.artifact_bytes,
            ),
            chart_bytes: most(
                self.helm_manifest_max_extracted_size,
                self.disable_helm_manifest_max_extracted_size,
                usual.chart_bytes,
            ),
            index_bytes: self
                .helm_registry_max_index_size
                .unwrap_or(usual.index_bytes),
            look_ups: self
                .git_lsremote_parallelism_limit
                .unwrap_or(usual.look_ups),
            look_up_timeout: self.git_request_timeout,
            look_up_retry: Retry {
                attempts: self.git_attempts_count.unwrap_or(retry.attempts),
                pause: self.git_retry_duration.unwrap_or(retry.pause),
                factor: self.git_retry_factor.unwrap_or(retry.factor),
                longest: self.git_retry_max_duration.unwrap_or(retry.longest),
            },
        }
    }

    /// The options with what the keys `reposerver.*` say and no flag does. They are read when the
    /// process starts, as in Argo CD.
    pub fn with_params(&self, options: RepoOptions, settings: &Settings) -> RepoOptions {
        let mut options = RepoOptions {
            sources: self.or_params(settings).limits(),
            ..options
        };
        if options.parallelism == 0 {
            let said = param(settings, "reposerver.parallelism.limit", number);
            options.parallelism = said.unwrap_or_default();
        }
        let key = "reposerver.max.combined.directory.manifests.size";
        if let Some(said) = param(settings, key, bytes) {
            options.budget.combined_bytes = said;
        }
        if options.plugins.exclude.is_empty() {
            let said = settings.param("reposerver.plugin.tar.exclusions");
            options.plugins.exclude = list(said, ';');
        }
        options
    }

    fn or_params(&self, settings: &Settings) -> Self {
        let mut all = self.clone();
        if all.oci_layer_media_types.is_empty() {
            let said = settings.param("reposerver.oci.layer.media.types");
            all.oci_layer_media_types = list(said, ',');
        }
        let size = |(bytes, is_off): (&mut Option<u64>, &mut bool), kind: &str| {
            if bytes.is_none() && !*is_off {
                let key = format!("{kind}.manifest.max.extracted.size");
                *bytes = param(settings, &format!("reposerver.{key}"), self::bytes);
                let off = settings.param(&format!("reposerver.disable.{key}"));
                *is_off = off.trim().eq_ignore_ascii_case("true");
            }
        };
        size(
            (
                &mut all.oci_manifest_max_extracted_size,
                &mut all.disable_oci_manifest_max_extracted_size,
            ),
            "oci",
        );
        size(
            (
                &mut all.helm_manifest_max_extracted_size,
                &mut all.disable_helm_manifest_max_extracted_size,
            ),
            "helm",
        );
        if all.git_request_timeout.is_none() {
            all.git_request_timeout = param(settings, "reposerver.git.request.timeout", time);
        }
        if all.git_lsremote_parallelism_limit.is_none() {
            let key = "reposerver.git.lsremote.parallelism.limit";
            all.git_lsremote_parallelism_limit = param(settings, key, number);
        }
        all
    }
}

/// The value of a key, if there is a valid one: another must not keep everything from starting.
fn param<T>(
    settings: &Settings,
    key: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    let text = settings.param(key).trim();
    if text.is_empty() {
        return None;
    }
    let parsed = parse(text);
    let told = |why: &String| {
        tracing::warn!("argocd-cmd-params-cm: {key} is {text:?}: {why}; the default holds");
    };
    parsed.inspect_err(told).ok()
}

fn list(text: &str, separator: char) -> Vec<String> {
    let parts = text.split(separator).map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is no number".to_owned())
}

/// A size in bytes, as Kubernetes writes quantities.
pub fn bytes(text: &str) -> Result<u64, String> {
    let quantity = text.parse::<Quantity>().map_err(|e| e.to_string())?;
    u64::try_from(quantity.value()).map_err(|_| "it is negative".to_owned())
}

/// As Go writes durations; Argo CD takes days, too.
fn time(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d');
    if let Some(days) = days.and_then(|days| days.parse::<u64>().ok()) {
        return Ok(Duration::from_secs(86_400_u64.saturating_mul(days)));
    }
    let nanos = duration::parse(text).map_err(|e| e.to_string())?;
    let nanos = u64::try_from(nanos).map_err(|_| "it is negative".to_owned())?;
    Ok(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{ArgAction, CommandFactory as _, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SourceLimitArgs,
    }

    fn of(words: &[&str]) -> SourceLimitArgs {
        Line::parse_from([&["x"], words].concat()).args
    }

    fn settings(params: &[(&str, &str)]) -> Settings {
        let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Settings {
            params: params.iter().map(text).collect(),
            ..Settings::default()
        }
    }

    #[test]
    fn the_defaults_are_argo_cds() {
        assert_eq!(of(&[]).limits(), SourceLimits::default());
        assert_eq!(SourceLimits::default().artifact_bytes, 1_000_000_000);
        let options = RepoOptions::default();
        let combined = options.budget.combined_bytes;
        let options = of(&[]).with_params(options, &settings(&[]));
        assert_eq!(options.sources, SourceLimits::default());
        assert_eq!(
            (options.parallelism, options.budget.combined_bytes),
            (0, combined)
        );
    }

    #[test]
    fn flags_say_what_is_allowed() {
        let limits = of(&[
            "--oci-layer-media-types=a.tar, b.tar",
            "--oci-manifest-max-extracted-size=2Gi",
            "--helm-manifest-max-extracted-size",
            "10M",
            "--helm-registry-max-index-size=5k",
            "--git-request-timeout=1m",
            "--git-lsremote-parallelism-limit=4",
            "--git-attempts-count=3",
            "--git-retry-duration=100ms",
            "--git-retry-factor=3",
            "--git-retry-max-duration=1d",
        ])
        .limits();
        let expected = SourceLimits {
            layer_types: vec!["a.tar".to_owned(), "b.tar".to_owned()],
            artifact_bytes: 2 << 30,
            chart_bytes: 10_000_000,
            index_bytes: 5_000,
            look_ups: 4,
            look_up_timeout: Some(Duration::from_secs(60)),
            look_up_retry: Retry {
                attempts: 3,
                pause: Duration::from_millis(100),
                factor: 3,
                longest: Duration::from_secs(86_400),
            },
        };
        assert_eq!(limits, expected);
        let off = of(&[
            "--disable-oci-manifest-max-extracted-size",
            "--disable-helm-manifest-max-extracted-size",
            "--oci-manifest-max-extracted-size=1",
        ])
        .limits();
        assert_eq!((off.artifact_bytes, off.chart_bytes), (u64::MAX, u64::MAX));
        for word in [
            "--oci-manifest-max-extracted-size=much",
            "--oci-manifest-max-extracted-size=-1",
            "--git-request-timeout=soon",
            "--git-request-timeout=-1s",
        ] {
            assert!(Line::try_parse_from(["x", word]).is_err(), "{word}");
        }
    }

    #[test]
    fn variables_may_be_booleans_as_go_writes_them() {
        for flag in ["oci", "helm"] {
            let id = format!("disable_{flag}_manifest_max_extracted_size");
            for (text, expected) in [("True", true), ("1", true), ("FALSE", false), ("0", false)] {
                // A variable's value is parsed as one on the command line, if there may be one.
                let line = Line::command().mut_arg(&id, |arg| arg.action(ArgAction::Set));
                let word = format!("--{}={text}", id.replace('_', "-"));
                let found = line
                    .try_get_matches_from(["x", word.as_str()])
                    .expect("valid");
                assert_eq!(found.get_one::<bool>(&id), Some(&expected), "{word}");
            }
        }
    }

    #[test]
    fn keys_say_what_no_flag_does() {
        let settings = settings(&[
            ("reposerver.oci.layer.media.types", "a.tar,b.tar"),
            ("reposerver.oci.manifest.max.extracted.size", "3M"),
            (
                "reposerver.disable.helm.manifest.max.extracted.size",
                "true",
            ),
            ("reposerver.git.request.timeout", "20s"),
            ("reposerver.git.lsremote.parallelism.limit", "many"),
            ("reposerver.parallelism.limit", "7"),
            ("reposerver.max.combined.directory.manifests.size", "20M"),
            ("reposerver.plugin.tar.exclusions", "docs/*;.git"),
        ]);
        let options = of(&[]).with_params(RepoOptions::default(), &settings);
        let sources = &options.sources;
        assert_eq!(sources.layer_types, ["a.tar", "b.tar"]);
        assert_eq!(
            (sources.artifact_bytes, sources.chart_bytes),
            (3_000_000, u64::MAX)
        );
        assert_eq!(sources.look_up_timeout, Some(Duration::from_secs(20)));
        assert_eq!(sources.look_ups, 0, "what is no number does not count");
        assert_eq!(
            (options.parallelism, options.budget.combined_bytes),
            (7, 20_000_000)
        );
        assert_eq!(options.plugins.exclude, ["docs/*", ".git"]);

        let said = of(&[
            "--oci-layer-media-types=c.tar",
            "--oci-manifest-max-extracted-size=1M",
            "--helm-manifest-max-extracted-size=2M",
        ]);
        let options = RepoOptions {
            parallelism: 2,
            ..RepoOptions::default()
        };
        let options = said.with_params(options, &settings);
        let sources = &options.sources;
        assert_eq!(sources.layer_types, ["c.tar"]);
        assert_eq!(
            (sources.artifact_bytes, sources.chart_bytes),
            (1_000_000, 2_000_000)
        );
        assert_eq!(options.parallelism, 2);
    }
}
