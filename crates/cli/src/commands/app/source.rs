//! Flags that describe a source and its rendering. Main type: [`SourceOptions`].

use crate::{
    client::Failure,
    commands::apply::source::{is_url, read_one, shown},
};
use std::fs;
use tiphys_api::{
    meta::{IntOrString, Json},
    source::{
        ApplicationSource, ApplicationSourceDirectory, ApplicationSourceHelm,
        ApplicationSourceKustomize, ApplicationSourcePlugin, EnvEntry, HelmFileParameter,
        HelmParameter, JsonnetVar, KustomizeReplica,
    },
};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct SourceOptions {
    /// Repository URL, ignored if a file is set
    #[arg(long)]
    repo: Option<String>,
    /// Path in repository to the app directory, ignored if a file is set
    #[arg(long)]
    path: Option<String>,
    /// The tracking source branch, tag, commit or Helm chart version the application will sync to
    #[arg(long)]
    revision: Option<String>,
    /// Filter git tags by this prefix before evaluating the revision as a semver constraint
    #[arg(long)]
    tag_prefix: Option<String>,
    /// Ref is reference to another source within sources field
    #[arg(long = "ref")]
    ref_: Option<String>,
    #[command(flatten)]
    directory: DirectoryOptions,
    #[command(flatten)]
    helm: HelmOptions,
    #[command(flatten)]
    kustomize: KustomizeOptions,
    /// Config management plugin name
    #[arg(long)]
    config_management_plugin: Option<String>,
    /// Additional plugin envs
    #[arg(long)]
    plugin_env: Vec<String>,
}

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
struct DirectoryOptions {
    /// Recurse directory
    #[arg(long)]
    directory_recurse: Option<bool>,
    /// Let include and exclude patterns match files with any extension
    #[arg(long)]
    directory_disable_extension_filter: Option<bool>,
    /// Glob expression used to exclude files from application source path
    #[arg(long)]
    directory_exclude: Option<String>,
    /// Glob expression used to include files from application source path
    #[arg(long)]
    directory_include: Option<String>,
    /// Jsonnet top level string arguments
    #[arg(long)]
    jsonnet_tla_str: Vec<String>,
    /// Jsonnet top level code arguments
    #[arg(long)]
    jsonnet_tla_code: Vec<String>,
    /// Jsonnet string ext var
    #[arg(long)]
    jsonnet_ext_var_str: Vec<String>,
    /// Jsonnet ext var
    #[arg(long)]
    jsonnet_ext_var_code: Vec<String>,
    /// Additional jsonnet libs (prefixed by repoRoot)
    #[arg(long)]
    jsonnet_libs: Vec<String>,
}

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
struct HelmOptions {
    /// Helm Chart name
    #[arg(long)]
    helm_chart: Option<String>,
    /// Helm values file(s) to use
    #[arg(long)]
    values: Vec<String>,
    /// Ignore locally missing valueFiles when setting helm template --values
    #[arg(long)]
    ignore_missing_value_files: Option<bool>,
    /// Filename or URL to import as a literal Helm values block
    #[arg(long, value_name = "FILE")]
    values_literal_file: Option<String>,
    /// The values, if they come from a URL and were fetched.
    #[arg(skip)]
    values_literal: Option<Vec<u8>>,
    /// Helm release-name
    #[arg(long)]
    release_name: Option<String>,
    /// Helm version
    #[arg(long)]
    helm_version: Option<String>,
    /// Pass credentials to all domain
    #[arg(long)]
    helm_pass_credentials: Option<bool>,
    /// Helm set values on the command line (can be repeated)
    #[arg(long)]
    helm_set: Vec<String>,
    /// Helm set STRING values on the command line (can be repeated)
    #[arg(long)]
    helm_set_string: Vec<String>,
    /// Helm set values from respective files (can be repeated)
    #[arg(long)]
    helm_set_file: Vec<String>,
    /// Skip helm crd installation step
    #[arg(long)]
    helm_skip_crds: Option<bool>,
    /// Skip helm schema validation step
    #[arg(long)]
    helm_skip_schema_validation: Option<bool>,
    /// Skip helm test manifests installation step
    #[arg(long)]
    helm_skip_tests: Option<bool>,
    /// Helm namespace to use when running helm template
    #[arg(long)]
    helm_namespace: Option<String>,
    /// Helm kube-version to use when running helm template
    #[arg(long)]
    helm_kube_version: Option<String>,
    /// Helm api-versions (in format [group/]version/kind) to use when running helm template (can be
    /// repeated)
    #[arg(long)]
    helm_api_versions: Vec<String>,
}

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
struct KustomizeOptions {
    /// Kustomize nameprefix
    #[arg(long)]
    nameprefix: Option<String>,
    /// Kustomize namesuffix
    #[arg(long)]
    namesuffix: Option<String>,
    /// Kustomize images (e.g. node:8.15.0)
    #[arg(long)]
    kustomize_image: Vec<String>,
    /// Kustomize replicas (e.g. my-deployment=2)
    #[arg(long)]
    kustomize_replica: Vec<String>,
    /// Kustomize version
    #[arg(long)]
    kustomize_version: Option<String>,
    /// Kustomize namespace
    #[arg(long)]
    kustomize_namespace: Option<String>,
    /// Set common labels in Kustomize
    #[arg(long)]
    kustomize_common_label: Vec<String>,
    /// Set common annotations in Kustomize
    #[arg(long)]
    kustomize_common_annotation: Vec<String>,
    /// Do not apply common label to selectors
    #[arg(long)]
    kustomize_label_without_selector: Option<bool>,
    /// Apply common label to resource templates
    #[arg(long)]
    kustomize_label_include_templates: Option<bool>,
    /// Force common labels in Kustomize
    #[arg(long)]
    kustomize_force_common_label: Option<bool>,
    /// Force common annotations in Kustomize
    #[arg(long)]
    kustomize_force_common_annotation: Option<bool>,
    /// Ignore locally missing component directories when setting Kustomize components
    #[arg(long)]
    ignore_missing_components: Option<bool>,
    /// Kubernetes version that charts of the kustomization are rendered for
    #[arg(long, value_name = "VERSION")]
    kustomize_kube_version: Option<String>,
    /// API versions that they see (can be repeated)
    #[arg(long, value_name = "VERSION")]
    kustomize_api_versions: Vec<String>,
}

fn set<T: Clone>(field: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}

/// `name=value`, or an error that says what was expected.
fn pair<'a>(text: &'a str, expected: &str) -> Result<(&'a str, &'a str), Failure> {
    text.split_once('=')
        .ok_or_else(|| Failure::fatal(format!("expected {expected} but received: {text}")))
}

/// Commas separate values in Helm, so commas inside a value are escaped; escaped ones stay.
fn escape_commas(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut before = None;
    for c in value.chars() {
        // As in upstream argocd, a comma at the beginning, or after another comma that was just
        // escaped, stays as it is.
        if c == ',' && before.is_some_and(|b| b != '\\') {
            out.push('\\');
            before = None;
        } else {
            before = Some(c);
        }
        out.push(c);
    }
    out
}

/// Replaces the parameter with the same name, or appends.
pub fn add_parameter(
    helm: &mut ApplicationSourceHelm,
    text: &str,
    force_string: bool,
) -> Result<(), Failure> {
    let (name, value) = pair(text, "helm parameter of the form param=value")?;
    let parameter = HelmParameter {
        name: name.to_owned(),
        value: escape_commas(value),
        force_string,
    };
    match helm
        .parameters
        .iter_mut()
        .find(|p| p.name == parameter.name)
    {
        Some(existing) => *existing = parameter,
        None => helm.parameters.push(parameter),
    }
    Ok(())
}

impl SourceOptions {
    /// Fetches the values, if a flag names them by URL.
    pub async fn download(&mut self) -> Result<(), Failure> {
        if let Some(url) = &self.helm.values_literal_file
            && is_url(url)
        {
            let text = read_one(url).await.map_err(Failure::error)?;
            self.helm.values_literal = Some(text);
        }
        Ok(())
    }

    pub fn apply(&self, source: &mut ApplicationSource) -> Result<(), Failure> {
        set(&mut source.repo_url, &self.repo);
        set(&mut source.path, &self.path);
        set(&mut source.chart, &self.helm.helm_chart);
        set(&mut source.target_revision, &self.revision);
        set(&mut source.tag_prefix, &self.tag_prefix);
        set(&mut source.ref_, &self.ref_);
        self.directory.apply(source);
        if self.helm != HelmOptions::default() {
            let mut helm = source.helm.take().unwrap_or_default();
            self.helm.apply(&mut helm)?;
            source.helm = Some(helm).filter(|h| **h != ApplicationSourceHelm::default());
        }
        if self.kustomize != KustomizeOptions::default() {
            let mut kustomize = source.kustomize.take().unwrap_or_default();
            self.kustomize.apply(&mut kustomize)?;
            source.kustomize =
                Some(kustomize).filter(|k| **k != ApplicationSourceKustomize::default());
        }
        if let Some(name) = &self.config_management_plugin {
            source.plugin = Some(
                ApplicationSourcePlugin {
                    name: name.clone(),
                    ..Default::default()
                }
                .into(),
            );
        }
        for text in &self.plugin_env {
            let (name, value) = pair(text, "env entry of the form: param=value")?;
            let entry = EnvEntry {
                name: name.to_owned(),
                value: value.to_owned(),
            };
            let env = &mut source.plugin.get_or_insert_default().env;
            match env.iter_mut().find(|e| e.name == entry.name) {
                Some(existing) => *existing = entry,
                None => env.push(entry),
            }
        }
        Ok(())
    }
}

impl DirectoryOptions {
    fn apply(&self, source: &mut ApplicationSource) {
        if *self == Self::default() {
            return;
        }
        let d: &mut ApplicationSourceDirectory = source.directory.get_or_insert_default();
        set(&mut d.recurse, &self.directory_recurse);
        set(
            &mut d.disable_extension_filter,
            &self.directory_disable_extension_filter,
        );
        set(&mut d.exclude, &self.directory_exclude);
        set(&mut d.include, &self.directory_include);
        let variables = |texts: &[String], code: bool| -> Vec<JsonnetVar> {
            let parse = |text: &String| {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                JsonnetVar {
                    name: name.to_owned(),
                    value: value.to_owned(),
                    code,
                }
            };
            texts.iter().map(parse).collect()
        };
        // In the order of the flags' names, as argocd adds them.
        d.jsonnet
            .tlas
            .extend(variables(&self.jsonnet_tla_code, true));
        d.jsonnet
            .tlas
            .extend(variables(&self.jsonnet_tla_str, false));
        d.jsonnet
            .ext_vars
            .extend(variables(&self.jsonnet_ext_var_code, true));
        d.jsonnet
            .ext_vars
            .extend(variables(&self.jsonnet_ext_var_str, false));
        d.jsonnet.libs.extend(self.jsonnet_libs.iter().cloned());
    }
}

impl HelmOptions {
    /// The text of the values block.
    fn values_text(&self, file: &str) -> Result<Vec<u8>, Failure> {
        match &self.values_literal {
            Some(text) => Ok(text.clone()),
            None => fs::read(file).map_err(|e| Failure::file(file, &e)),
        }
    }

    fn apply(&self, helm: &mut ApplicationSourceHelm) -> Result<(), Failure> {
        if !self.values.is_empty() {
            helm.value_files.clone_from(&self.values);
        }
        if let Some(file) = &self.values_literal_file {
            let text = self.values_text(file)?;
            let file = shown(file);
            // As an object, which is how Argo CD's command line stores it.
            let value = yaml::parse_document(&text, &Limits::default(), Duplicates::LastWins)
                .map_err(|e| Failure::error(format!("{file}: {e}")))?;
            if !value.is_object() && !value.is_null() {
                let text = format!("{file}: the values are not an object");
                return Err(Failure::error(text));
            }
            helm.values = String::new();
            helm.values_object = value.is_object().then(|| Json::from(&value));
        }
        if !self.helm_api_versions.is_empty() {
            helm.api_versions.clone_from(&self.helm_api_versions);
        }
        set(
            &mut helm.ignore_missing_value_files,
            &self.ignore_missing_value_files,
        );
        set(&mut helm.release_name, &self.release_name);
        set(&mut helm.version, &self.helm_version);
        set(&mut helm.pass_credentials, &self.helm_pass_credentials);
        set(&mut helm.skip_crds, &self.helm_skip_crds);
        set(
            &mut helm.skip_schema_validation,
            &self.helm_skip_schema_validation,
        );
        set(&mut helm.skip_tests, &self.helm_skip_tests);
        set(&mut helm.namespace, &self.helm_namespace);
        set(&mut helm.kube_version, &self.helm_kube_version);
        for text in &self.helm_set {
            add_parameter(helm, text, false)?;
        }
        for text in &self.helm_set_string {
            add_parameter(helm, text, true)?;
        }
        for text in &self.helm_set_file {
            let (name, path) = pair(text, "helm file parameter of the form param=path")?;
            let parameter = HelmFileParameter {
                name: name.to_owned(),
                path: escape_commas(path),
            };
            match helm
                .file_parameters
                .iter_mut()
                .find(|p| p.name == parameter.name)
            {
                Some(existing) => *existing = parameter,
                None => helm.file_parameters.push(parameter),
            }
        }
        Ok(())
    }
}

/// The name part of a Kustomize image, which the replacement refers to.
fn image_name<'a>(image: &'a str, like: &str) -> &'a str {
    let delimiter = ['=', ':', '@']
        .into_iter()
        .find(|d| like.contains(*d))
        .unwrap_or(':');
    image.split(delimiter).next().unwrap_or_default()
}

impl KustomizeOptions {
    fn apply(&self, k: &mut ApplicationSourceKustomize) -> Result<(), Failure> {
        set(&mut k.name_prefix, &self.nameprefix);
        set(&mut k.name_suffix, &self.namesuffix);
        set(&mut k.version, &self.kustomize_version);
        set(&mut k.namespace, &self.kustomize_namespace);
        set(&mut k.kube_version, &self.kustomize_kube_version);
        if !self.kustomize_api_versions.is_empty() {
            k.api_versions.clone_from(&self.kustomize_api_versions);
        }
        set(
            &mut k.label_without_selector,
            &self.kustomize_label_without_selector,
        );
        set(
            &mut k.label_include_templates,
            &self.kustomize_label_include_templates,
        );
        set(
            &mut k.force_common_labels,
            &self.kustomize_force_common_label,
        );
        set(
            &mut k.force_common_annotations,
            &self.kustomize_force_common_annotation,
        );
        set(
            &mut k.ignore_missing_components,
            &self.ignore_missing_components,
        );
        if !self.kustomize_common_label.is_empty() {
            k.common_labels = super::pairs(&self.kustomize_common_label)?;
        }
        if !self.kustomize_common_annotation.is_empty() {
            k.common_annotations = super::pairs(&self.kustomize_common_annotation)?;
        }
        for image in &self.kustomize_image {
            match k
                .images
                .iter_mut()
                .find(|i| image_name(i, image) == image_name(image, image))
            {
                Some(existing) => existing.clone_from(image),
                None => k.images.push(image.clone()),
            }
        }
        for text in &self.kustomize_replica {
            let (name, count) = text.split_once('=').ok_or_else(|| {
                Failure::fatal(format!(
                    "expected parameter of the form: name=count. Received: {text}"
                ))
            })?;
            let int_val = count.parse().map_err(|_| {
                Failure::fatal(format!(
                    "expected a number of replicas but received: {text}"
                ))
            })?;
            let replica = KustomizeReplica {
                name: name.to_owned(),
                count: IntOrString {
                    kind: 0,
                    int_val,
                    str_val: String::new(),
                },
            };
            match k.replicas.iter_mut().find(|r| r.name == replica.name) {
                Some(existing) => *existing = replica,
                None => k.replicas.push(replica),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_escaped_once() {
        for (value, expected) in [
            ("a", "a"),
            ("a,b", "a\\,b"),
            ("a\\,b", "a\\,b"),
            (",a", ",a"),
            ("a,,b", "a\\,,b"),
            ("a,b,c", "a\\,b\\,c"),
        ] {
            assert_eq!(escape_commas(value), expected, "{value}");
        }
    }

    #[test]
    fn flags_change_what_they_name() {
        let mut source = ApplicationSource {
            path: "old".into(),
            ..Default::default()
        };
        let options = SourceOptions {
            repo: Some("https://example.com/r".into()),
            directory: DirectoryOptions {
                directory_recurse: Some(true),
                ..Default::default()
            },
            helm: HelmOptions {
                helm_set: vec!["a=1".into(), "a=2".into()],
                ..Default::default()
            },
            kustomize: KustomizeOptions {
                kustomize_image: vec!["web:1".into(), "web:2".into(), "db=x:1".into()],
                ..Default::default()
            },
            ..Default::default()
        };
        options.apply(&mut source).expect("valid");
        assert_eq!(
            (source.repo_url.as_str(), source.path.as_str()),
            ("https://example.com/r", "old")
        );
        assert!(source.directory.is_some_and(|d| d.recurse));
        assert_eq!(
            source.helm.map(|h| h
                .parameters
                .iter()
                .map(|p| p.value.clone())
                .collect::<Vec<_>>()),
            Some(vec!["2".to_owned()])
        );
        assert_eq!(
            source.kustomize.map(|k| k.images),
            Some(vec!["web:2".to_owned(), "db=x:1".into()])
        );
    }

    #[test]
    fn jsonnet_variables_are_in_argo_cd_s_order() {
        let mut source = ApplicationSource::default();
        let options = SourceOptions {
            directory: DirectoryOptions {
                jsonnet_tla_str: vec!["a=b".into()],
                jsonnet_tla_code: vec!["c=1".into()],
                jsonnet_ext_var_str: vec!["d=e".into()],
                jsonnet_ext_var_code: vec!["f=2".into()],
                ..Default::default()
            },
            ..Default::default()
        };
        options.apply(&mut source).expect("valid");
        let directory = source.directory.expect("it has variables");
        let names = |variables: &[JsonnetVar]| -> Vec<String> {
            variables.iter().map(|v| v.name.clone()).collect()
        };
        assert_eq!(names(&directory.jsonnet.tlas), ["c", "a"]);
        assert_eq!(names(&directory.jsonnet.ext_vars), ["f", "d"]);
    }

    #[test]
    fn options_that_say_nothing_leave_nothing() {
        let mut source = ApplicationSource::default();
        SourceOptions::default().apply(&mut source).expect("valid");
        let options = SourceOptions {
            helm: HelmOptions {
                release_name: Some(String::new()),
                ..Default::default()
            },
            ..Default::default()
        };
        options.apply(&mut source).expect("valid");
        assert_eq!(source, ApplicationSource::default());
        let bad = SourceOptions {
            helm: HelmOptions {
                helm_set: vec!["a".into()],
                ..Default::default()
            },
            ..Default::default()
        };
        let message = bad.apply(&mut source).err().map(|e| e.message);
        assert_eq!(
            message.as_deref(),
            Some("expected helm parameter of the form param=value but received: a")
        );
    }
}
