//! `app unset`: takes back what overrides the source's own parameters.

use super::{AppRef, source_position};
use crate::{
    client::{ConnectArgs, Failure},
    commands::prompt,
    output,
};
use tiphys_api::{
    application::ApplicationSpec,
    rpc::application::ApplicationUpdateSpecRequest,
    source::{ApplicationSource, ApplicationSourceHelm, ApplicationSourceKustomize},
};

#[derive(clap::Args)]
pub struct Unset {
    /// The application
    app: String,
    /// Unset application parameters in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Position of the source from the list of sources of the app. Counting starts at 1
    #[arg(long)]
    source_position: Option<i64>,
    /// Name of the source from the list of sources of the app
    #[arg(long)]
    source_name: Option<String>,
    #[command(flatten)]
    what: Parameters,
}

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
struct Parameters {
    /// Unset a parameter override (e.g. -p guestbook=image)
    #[arg(long, short)]
    parameter: Vec<String>,
    /// Unset one or more Helm values files
    #[arg(long)]
    values: Vec<String>,
    /// Unset literal Helm values block
    #[arg(long)]
    values_literal: bool,
    /// Unset the helm ignore-missing-value-files option (revert to false)
    #[arg(long)]
    ignore_missing_value_files: bool,
    /// Kustomize namesuffix
    #[arg(long)]
    namesuffix: bool,
    /// Kustomize nameprefix
    #[arg(long)]
    nameprefix: bool,
    /// Kustomize version
    #[arg(long)]
    kustomize_version: bool,
    /// Kustomize namespace
    #[arg(long)]
    kustomize_namespace: bool,
    /// Kustomize images name (e.g. --kustomize-image node --kustomize-image mysql)
    #[arg(long)]
    kustomize_image: Vec<String>,
    /// Kustomize replicas name (e.g. --kustomize-replica my-deployment --kustomize-replica
    /// my-statefulset)
    #[arg(long)]
    kustomize_replica: Vec<String>,
    /// Unset the kustomize ignore-missing-components option (revert to false)
    #[arg(long)]
    ignore_missing_components: bool,
    /// Unset plugin env variables (e.g --plugin-env name)
    #[arg(long)]
    plugin_env: Vec<String>,
    /// Unset passCredentials
    #[arg(long)]
    pass_credentials: bool,
    /// Unset ref on the source
    #[arg(long = "ref")]
    ref_: bool,
}

impl Unset {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        if self.source_position.is_some() && self.source_name.is_some() {
            return Err(Failure::error(
                "Only one of source-position and source-name can be specified.",
            ));
        }
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let mut app = super::get(&client, &app_ref, None).await?;
        let position = source_position(&app, self.source_position, self.source_name.as_deref())?;
        let source = match position {
            Some(at) => &mut app.spec.sources[at],
            None => app.spec.source.get_or_insert_default(),
        };
        match self.what.apply(source) {
            Outcome::Nothing => {
                return Err(Failure::fatal(
                    "name a parameter to unset that fits the source: see app unset --help",
                ));
            }
            Outcome::Same => return Ok(()),
            Outcome::Changed => {}
        }
        let question = "Are you sure you want to unset the parameters? [y/n]";
        if args.prompts()? && !prompt::proceed(question)? {
            output::print("The command to unset the parameters has been cancelled.\n");
            return Ok(());
        }
        let request = ApplicationUpdateSpecRequest {
            name: app_ref.name.clone(),
            spec: app.spec.into_inner(),
            validate: Some(false),
            app_namespace: app_ref.namespace(),
            project: None,
        };
        let _: ApplicationSpec = client
            .unary("/application.ApplicationService/UpdateSpec", request)
            .await?;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// No flag is for a source of this kind.
    Nothing,
    /// What the flags name is not set.
    Same,
    Changed,
}

/// Sets a value to its default; true if it had another one.
fn reset<T: Default + PartialEq>(field: &mut T, asked: bool) -> bool {
    let changes = asked && *field != T::default();
    if changes {
        *field = T::default();
    }
    changes
}

/// Removes the items that fit one of the names; true if there were any.
fn drop_named<T>(list: &mut Vec<T>, names: &[String], fits: impl Fn(&T, &str) -> bool) -> bool {
    let before = list.len();
    list.retain(|item| !names.iter().any(|name| fits(item, name)));
    list.len() != before
}

/// An image up to what replaces it: `name=…`, `name:tag` or `name@digest`.
fn is_image(known: &str, asked: &str) -> bool {
    let delimiter = ['=', ':', '@'].into_iter().find(|d| known.contains(*d));
    let delimiter = delimiter.unwrap_or(':');
    known.split(delimiter).next() == asked.split(delimiter).next()
}

impl Parameters {
    fn for_kustomize(&self) -> bool {
        self.nameprefix
            || self.namesuffix
            || self.kustomize_version
            || self.kustomize_namespace
            || self.ignore_missing_components
            || !self.kustomize_image.is_empty()
            || !self.kustomize_replica.is_empty()
    }

    fn for_helm(&self) -> bool {
        self.values_literal
            || self.ignore_missing_value_files
            || self.pass_credentials
            || !self.parameter.is_empty()
            || !self.values.is_empty()
    }

    fn apply(&self, source: &mut ApplicationSource) -> Outcome {
        let mut changed = reset(&mut source.ref_, self.ref_);
        let mut fits = changed;
        if let Some(kustomize) = source.kustomize.as_mut() {
            fits |= self.for_kustomize();
            changed |= self.unset_kustomize(kustomize);
        }
        if let Some(helm) = source.helm.as_mut() {
            fits |= self.for_helm();
            changed |= self.unset_helm(helm);
        }
        if let Some(plugin) = source.plugin.as_mut() {
            fits |= !self.plugin_env.is_empty();
            changed |= drop_named(&mut plugin.env, &self.plugin_env, |e, name| e.name == name);
        }
        let has_any =
            source.kustomize.is_some() || source.helm.is_some() || source.plugin.is_some();
        match (has_any && !fits, changed) {
            (true, _) => Outcome::Nothing,
            (false, true) => Outcome::Changed,
            (false, false) => Outcome::Same,
        }
    }

    fn unset_kustomize(&self, k: &mut ApplicationSourceKustomize) -> bool {
        let texts = [
            (&mut k.name_prefix, self.nameprefix),
            (&mut k.name_suffix, self.namesuffix),
            (&mut k.version, self.kustomize_version),
            (&mut k.namespace, self.kustomize_namespace),
        ];
        let mut changed = false;
        for (field, asked) in texts {
            changed |= reset(field, asked);
        }
        changed |= reset(
            &mut k.ignore_missing_components,
            self.ignore_missing_components,
        );
        changed |= drop_named(&mut k.images, &self.kustomize_image, |i, name| {
            is_image(i, name)
        });
        changed
            | drop_named(&mut k.replicas, &self.kustomize_replica, |r, name| {
                r.name == name
            })
    }

    fn unset_helm(&self, helm: &mut ApplicationSourceHelm) -> bool {
        let mut changed = drop_named(&mut helm.parameters, &self.parameter, |p, name| {
            p.name == name
        });
        changed |= drop_named(&mut helm.value_files, &self.values, |file, name| {
            file == name
        });
        changed |= reset(&mut helm.values, self.values_literal);
        changed |= reset(&mut helm.values_object, self.values_literal);
        changed |= reset(
            &mut helm.ignore_missing_value_files,
            self.ignore_missing_value_files,
        );
        changed | reset(&mut helm.pass_credentials, self.pass_credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn unset(source: Value, what: &Parameters) -> (Outcome, Value) {
        let mut source: ApplicationSource = serde_json::from_value(source).expect("a source");
        let outcome = what.apply(&mut source);
        (outcome, serde_json::to_value(source).expect("a value"))
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn helm() {
        let source = json!({"repoURL": "r", "helm": {
            "parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}],
            "valueFiles": ["x.yaml", "y.yaml"], "values": "a: 1", "passCredentials": true,
            "ignoreMissingValueFiles": true,
        }});
        let what = Parameters {
            parameter: names(&["a", "nope"]),
            values: names(&["y.yaml"]),
            values_literal: true,
            ignore_missing_value_files: true,
            pass_credentials: true,
            ..Default::default()
        };
        let left = json!({"repoURL": "r", "helm": {
            "parameters": [{"name": "b", "value": "2"}], "valueFiles": ["x.yaml"]}});
        assert_eq!(unset(source, &what), (Outcome::Changed, left.clone()));
        let other = Parameters {
            parameter: names(&["nope"]),
            ..Default::default()
        };
        assert_eq!(unset(left.clone(), &other), (Outcome::Same, left.clone()));
        let unfit = Parameters {
            nameprefix: true,
            ..Default::default()
        };
        assert_eq!(unset(left.clone(), &unfit), (Outcome::Nothing, left));
    }

    #[test]
    fn kustomize() {
        let source = json!({"repoURL": "r", "kustomize": {
            "namePrefix": "p-", "nameSuffix": "-s", "version": "v5", "namespace": "n",
            "images": ["node:1", "mysql=mine:2", "redis@sha256"],
            "replicas": [{"name": "a", "count": 1}, {"name": "b", "count": 2}],
            "ignoreMissingComponents": true,
        }});
        let what = Parameters {
            nameprefix: true,
            namesuffix: true,
            kustomize_version: true,
            kustomize_namespace: true,
            kustomize_image: names(&["mysql", "redis"]),
            kustomize_replica: names(&["a"]),
            ignore_missing_components: true,
            ..Default::default()
        };
        let left = json!({"repoURL": "r", "kustomize": {
            "images": ["node:1"], "replicas": [{"name": "b", "count": 2}]}});
        assert_eq!(unset(source, &what), (Outcome::Changed, left));
    }

    #[test]
    fn plugins_and_refs() {
        let source = json!({"repoURL": "r", "ref": "v", "plugin": {"name": "x",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}});
        let what = Parameters {
            plugin_env: names(&["A"]),
            ref_: true,
            ..Default::default()
        };
        let left = json!({"repoURL": "r",
            "plugin": {"name": "x", "env": [{"name": "B", "value": "2"}]}});
        assert_eq!(unset(source, &what), (Outcome::Changed, left.clone()));
        let again = Parameters {
            ref_: true,
            ..Default::default()
        };
        assert_eq!(unset(left.clone(), &again), (Outcome::Nothing, left));
        let plain = json!({"repoURL": "r"});
        assert_eq!(unset(plain.clone(), &again), (Outcome::Same, plain));
    }
}
