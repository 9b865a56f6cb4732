//! In-process Kustomize: produces the output of `kustomize build` 5.8.1, byte for byte.
//!
//! Main functions: [`build`] and [`build_at`], and [`edit::edit`], which edits a kustomization as
//! Argo CD does. All files are read through [`SourceSet`]; sources that must be fetched from
//! elsewhere are returned in [`RenderError::Need`]. Programs, containers and plugins that kustomize
//! would run are refused. It must not know what the objects are used for.

mod clock;
mod config;
mod configured;
pub mod edit;
mod edit_fields;
mod edit_nodes;
mod fault;
mod fields;
mod flags;
mod generate;
mod helm;
mod ids;
mod individual;
mod kustomization;
mod loader;
mod merge;
mod mistyped;
mod nameref;
mod names;
mod needs;
mod origin;
mod patch;
mod path_match;
mod plugins;
mod read;
mod replacement;
mod repospec;
mod resmap;
mod resource;
mod schema;
mod selector;
mod sort;
mod steps;
mod target;
mod transform;
mod tree;
mod value_add;
mod values;
mod vars;

pub use sort::Order;

use crate::{Budget, Charts, RenderError, SourceFiles, SourceRef, SourceSet};
use clock::Clock;
use fault::{Cause, Fault, Res, fail};
use loader::Loader;
use resource::{ORIGIN, Resource, TRANSFORMATIONS};
use schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use target::{Accumulated, Target};
use tiphys_gocompat::yaml;
use tree::Tree;

/// The version of kustomize that this implements.
pub const VERSION: &str = "v5.8.1";

/// Maximum total size of the files that a build reads.
const MOST_BYTES: usize = 512 << 20;

/// The options of `kustomize build`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuildOptions {
    pub order: Order,
    /// `--enable-helm`.
    pub enable_helm: bool,
    /// `--load-restrictor LoadRestrictionsNone`.
    pub unrestricted: bool,
    /// `--enable-managedby-label`.
    pub managed_by_label: bool,
    /// `--helm-kube-version`.
    pub kube_version: String,
    /// `--helm-api-versions`.
    pub api_versions: Arc<[String]>,
    /// Replaces the content of the top kustomization's file.
    pub kustomization: Option<String>,
}

/// The objects of a kustomization.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Built {
    pub objects: Vec<Value>,
    pub warnings: Vec<String>,
}

impl Built {
    /// The objects as printed by `kustomize build`.
    pub fn yaml(&self) -> Result<String, RenderError> {
        let mut out = String::new();
        for object in &self.objects {
            if !out.is_empty() {
                out.push_str("---\n");
            }
            let text = yaml::marshal(object).map_err(|e| RenderError::Source(e.json_text()))?;
            out.push_str(&text);
        }
        Ok(out)
    }
}

/// Where the top kustomization of a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top<'p> {
    /// A folder of [`SourceSet::files`].
    Folder(&'p str),
    /// A URL of a folder in a Git repository, which is fetched.
    Url(&'p str),
}

impl<'p> Top<'p> {
    /// As `kustomize build` reads its argument: what can be the URL of a repository is one.
    pub fn of_argument(argument: &'p str) -> Self {
        match repospec::RepoSpec::parse(argument) {
            Ok(_) => Self::Url(argument),
            Err(_) => Self::Folder(argument),
        }
    }

    fn loader<'a>(self, build: &mut Build<'a>) -> Res<Rc<Loader<'a>>> {
        let loader = match self {
            Self::Folder(folder) => {
                Loader::new(build.sources.files, folder, build.options.unrestricted)
            }
            Self::Url(url) => {
                let spec = repospec::RepoSpec::parse(url)?;
                Loader::of_repository(build, spec, None)?
            }
        };
        Ok(Rc::new(loader))
    }
}

/// Builds the kustomization of a folder.
///
/// # Errors
/// kustomize's error, or the sources that must be fetched.
pub fn build(
    sources: &SourceSet<'_>,
    folder: &str,
    options: &BuildOptions,
    charts: &dyn Charts,
    budget: &Budget,
) -> Result<Built, RenderError> {
    build_at(sources, Top::Folder(folder), options, charts, budget)
}

/// Builds a kustomization.
///
/// # Errors
/// kustomize's error, or the sources that must be fetched.
pub fn build_at(
    sources: &SourceSet<'_>,
    top: Top<'_>,
    options: &BuildOptions,
    charts: &dyn Charts,
    budget: &Budget,
) -> Result<Built, RenderError> {
    let mut build = Build::new(sources, options, charts, budget);
    let loader = top.loader(&mut build)?;
    let fault = match build.run(loader.clone()) {
        Ok(built) => return Ok(built),
        Err(fault) => fault,
    };
    let Cause::Need(first) = &fault.cause else {
        return Err(fault.into());
    };
    build.files_left = budget.files;
    let gathered = needs::gather(&mut build, &loader);
    let mut needed: BTreeSet<SourceRef> = gathered.into_keys().collect();
    needed.extend(first.iter().cloned());
    Err(RenderError::Need(needed.into_iter().collect()))
}

/// What a kustomization needs that is not there, with the kustomization file that names it: for the
/// message about what cannot be fetched.
pub fn named_by(
    sources: &SourceSet<'_>,
    top: Top<'_>,
    options: &BuildOptions,
    charts: &dyn Charts,
    budget: &Budget,
) -> BTreeMap<SourceRef, String> {
    let mut build = Build::new(sources, options, charts, budget);
    match top.loader(&mut build) {
        Ok(loader) => needs::gather(&mut build, &loader),
        Err(_) => BTreeMap::new(),
    }
}

/// The state shared by all steps of a build.
struct Build<'a> {
    sources: SourceSet<'a>,
    options: &'a BuildOptions,
    charts: &'a dyn Charts,
    budget: &'a Budget,
    tree: Tree,
    schema: Arc<Schema>,
    schema_is_set: bool,
    /// Whether the built-in schema was used before another one was set, and therefore stays.
    schema_was_needed: bool,
    files_left: usize,
    bytes_left: usize,
    trees: usize,
    warnings: Vec<String>,
}

impl<'a> Build<'a> {
    fn new(
        sources: &SourceSet<'a>,
        options: &'a BuildOptions,
        charts: &'a dyn Charts,
        budget: &'a Budget,
    ) -> Self {
        Self {
            sources: sources.clone(),
            options,
            charts,
            budget,
            tree: Tree::new(budget.kustomize_bytes, Clock::until(charts.deadline())),
            schema: schema::builtin(),
            schema_is_set: false,
            schema_was_needed: false,
            files_left: budget.files,
            bytes_left: MOST_BYTES,
            trees: 0,
            warnings: Vec::new(),
        }
    }

    fn run(&mut self, loader: Rc<Loader<'a>>) -> Res<Built> {
        let mut target = Target::top(self, loader)?;
        let mut all = target.accumulate(self, Accumulated::default())?;
        let (tree, map) = (&mut self.tree, &mut all.map);
        resmap::add_hashes(tree, map)?;
        nameref::fix_references(tree, map, &all.config.name_reference)?;
        all.vars.resolve(tree, map, &all.config.var_reference)?;
        const LOCAL: &str = "config.kubernetes.io/local-config";
        let mut rest = std::mem::take(&mut map.list);
        // Patches and replacements may have taken what every object needs.
        for object in rest.iter().filter_map(Resource::object) {
            if !tree.is_empty(object.0) {
                resmap::check_identity(tree, object.0)?;
            }
        }
        rest.retain(|resource| {
            resource.object().is_some_and(|object| {
                let local = object.annotation(tree, LOCAL);
                local.is_none_or(|value| value == "false")
            })
        });
        // Patches may have given two objects the same name. kustomize panics here.
        map.changed();
        map.append_all(tree, rest)?;
        sort::sort(
            tree,
            map,
            target.own.sort_options.as_ref(),
            self.options.order,
        )?;
        let wants = |name: &str| target.own.build_metadata.iter().any(|own| own == name);
        if self.options.managed_by_label || wants("managedByLabel") {
            let label = format!("kustomize-{VERSION}");
            let labels = [("app.kubernetes.io/managed-by".to_owned(), label)].into();
            let spec = config::FieldSpec::created("metadata/labels");
            transform::set_texts(tree, map, &labels, &[spec])?;
        }
        let mut objects = Vec::with_capacity(map.list.len());
        for (_, object) in map.objects() {
            object.remove_build_annotations(tree)?;
            for (name, option) in [
                (ORIGIN, "originAnnotations"),
                (TRANSFORMATIONS, "transformerAnnotations"),
            ] {
                if !wants(option) {
                    object.remove_annotation(tree, name)?;
                }
            }
            objects.push(tree.json(object.0)?);
        }
        Ok(Built {
            objects,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn yaml_limits(&self) -> yaml::Limits {
        self.budget.yaml
    }

    /// The schema for a patch.
    fn schema(&mut self) -> Arc<Schema> {
        self.schema_was_needed = true;
        self.schema.clone()
    }

    /// Records the kinds that were read; some may be known only from a schema.
    fn saw(&mut self, kinds: impl IntoIterator<Item = ids::Gvk>) {
        let mut kinds = kinds.into_iter();
        self.schema_was_needed |= kinds.any(|gvk| !gvk.is_well_known());
    }

    /// Counts an accessed file or folder.
    fn count_file(&mut self) -> Res<()> {
        self.tree.clock.look()?;
        match self.files_left.checked_sub(1) {
            Some(left) => {
                self.files_left = left;
                Ok(())
            }
            None => Err(Fault::over_budget("the number of files", self.budget.files)),
        }
    }

    fn sized(&mut self, path: &str, content: Vec<u8>) -> Res<Vec<u8>> {
        if content.starts_with(b"version https://git-lfs.github.com/spec/v1\n") {
            return Err(crate::FileError::LfsPointer(path.to_owned()).into());
        }
        match self.bytes_left.checked_sub(content.len()) {
            Some(left) => {
                self.bytes_left = left;
                Ok(content)
            }
            None => Err(Fault::over_budget("the bytes of all files", MOST_BYTES)),
        }
    }

    fn check_objects(&self, count: usize) -> Res<()> {
        if count > self.budget.objects {
            return Err(Fault::over_budget(
                "the number of objects",
                self.budget.objects,
            ));
        }
        Ok(())
    }

    fn fetched(&self, reference: &SourceRef) -> Res<&'a dyn SourceFiles> {
        let found = self.sources.fetched.get(reference).copied();
        found.ok_or_else(|| Fault::need(reference.clone()))
    }

    /// Returns a number for a new tree.
    fn next_tree(&mut self) -> usize {
        self.trees += 1;
        self.trees
    }

    /// The content of a kustomization's file, with the edited text for the top one.
    fn edited(&self, loader: &Loader<'_>, content: Vec<u8>) -> Vec<u8> {
        match &self.options.kustomization {
            Some(edited) if loader.is_top() => edited.clone().into_bytes(),
            _ => content,
        }
    }

    /// Sets another schema for patches; only the first one in a build has an effect.
    fn set_schema(&mut self, version: Option<&str>, own: Option<&[u8]>) -> Res<()> {
        if self.schema_is_set {
            return Ok(());
        }
        match (version, own) {
            (None | Some(""), None) => {}
            (Some(_), Some(_)) => {
                return fail!("builtin version and custom schema provided, cannot use both");
            }
            (Some("v1.21.2"), None) => self.schema_is_set = true,
            (Some(_), None) => {
                return fail!("the specified OpenAPI version is not built in");
            }
            (None, Some(own)) => {
                let limits = self.yaml_limits();
                let document = yaml::parse_document(own, &limits, yaml::Duplicates::LastWins)
                    .map_err(|e| Fault::new(format!("invalid schema file: {}", e.json_text())))?;
                let known = if self.schema_was_needed {
                    Schema::clone(&self.schema)
                } else {
                    Schema::default()
                };
                self.schema = Arc::new(Schema::from_openapi(&document, known)?);
                self.schema_is_set = true;
            }
        }
        Ok(())
    }
}
