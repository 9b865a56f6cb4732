//! Builds one kustomization: reading, generating and changing objects, step by step.
//!
//! Main type: [`Target`]. The steps, their order and their error messages are kustomize's.

use super::Build;
use super::config::{Config, FieldSpec};
use super::configured::{chart_fields, trouble};
use super::fault::{Cause, Fault, Res, fail};
use super::kustomization::{COMPONENT, GeneratorOptions, Kustomization, NAMES};
use super::loader::Loader;
use super::origin::Origin;
use super::repospec::{Remote, remote};
use super::resmap::ResMap;
use super::resource::{ORIGIN, Object};
use super::transform;
use super::vars::Vars;
use super::{generate, helm, patch, plugins};
use std::{rc::Rc, sync::Arc};

/// The objects read so far, and the configuration for changing them.
#[derive(Default)]
pub(super) struct Accumulated {
    pub map: ResMap,
    pub config: Arc<Config>,
    pub vars: Vars,
}

impl Accumulated {
    fn merge(&mut self, build: &Build<'_>, other: Self) -> Res<()> {
        self.map.append_all(&build.tree, other.map.list)?;
        let clock = &build.tree.clock;
        self.config = Config::together(self.config.clone(), &other.config, clock)?;
        self.vars.add_all(other.vars)
    }
}

pub(super) struct Target<'a> {
    pub own: Kustomization,
    pub(super) loader: Rc<Loader<'a>>,
    /// The name of the file.
    file: &'static str,
    /// Only set if requested.
    origin: Option<Origin>,
    /// The namespace for charts without one.
    helm_namespace: String,
}

/// Reads the kustomization of a folder and returns it with its file name.
pub(super) fn read<'a>(
    build: &mut Build<'a>,
    loader: &Loader<'a>,
) -> Res<(Kustomization, &'static str)> {
    let mut found = None;
    for name in NAMES {
        match loader.load(build, name) {
            Ok(_) if found.is_some() => {
                return fail!(
                    "Found multiple kustomization files under: {}\n",
                    loader.shown()
                );
            }
            Ok(content) => found = Some((content, name)),
            Err(fault) if matches!(fault.cause, Cause::Render(_)) => return Err(fault),
            Err(_) => {}
        }
    }
    let Some((content, name)) = found else {
        return fail!(
            "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '{}'",
            loader.shown()
        );
    };
    let content = build.edited(loader, content);
    let own = Kustomization::parse(&content, &build.yaml_limits())?;
    let wrong = own.check_kind();
    if !wrong.is_empty() {
        return fail!(
            "Failed to read kustomization file under {}:\n{}",
            loader.shown(),
            wrong.join("\n")
        );
    }
    loader.expect(&own.paths());
    Ok((own, name))
}

impl<'a> Target<'a> {
    /// The top kustomization of a build.
    pub fn top(build: &mut Build<'a>, loader: Rc<Loader<'a>>) -> Res<Self> {
        let (own, file) = read(build, &loader)?;
        let target = Self {
            origin: (!own.build_metadata.is_empty()).then(Origin::default),
            own,
            loader,
            file,
            helm_namespace: String::new(),
        };
        target.set_schema(build)?;
        Ok(target)
    }

    fn set_schema(&self, build: &mut Build<'a>) -> Res<()> {
        let path = self.own.openapi.get("path");
        let content = match path {
            Some(path) => Some(self.loader.load(build, path)?),
            None => None,
        };
        let version = self.own.openapi.get("version").map(String::as_str);
        build.set_schema(version, content.as_deref())
    }

    pub fn accumulate(&mut self, build: &mut Build<'a>, into: Accumulated) -> Res<Accumulated> {
        let resources = std::mem::take(&mut self.own.resources);
        let mut all = self
            .read_resources(build, into, &resources)
            .map_err(|fault| fault.within("accumulating resources"))?;
        let tables = plugins::configuration(build, &self.loader, &self.own.configurations)?;
        all.config = Config::together(all.config, &tables, &build.tree.clock)?;
        let of_crds = plugins::definitions(build, &self.loader, &self.own.crds)
            .map_err(|fault| fault.within(format!("loading CRDs [{}]", self.own.crds.join(" "))))?;
        all.config = Config::together(all.config, &of_crds, &build.tree.clock)?;
        self.generate(build, &mut all)?;
        let components = std::mem::take(&mut self.own.components);
        for path in &components {
            all = self
                .add_component(build, all, path)
                .map_err(|fault| fault.within("accumulating components"))?;
        }
        self.transform(build, &mut all)?;
        let transformers = self.own.transformers.clone();
        self.run_transformers(build, &mut all, &transformers)?;
        self.validate(build, &mut all)?;
        all.vars.add(&build.tree, &mut all.map, &self.own.vars)?;
        build.tree.check()?;
        build.check_objects(all.map.list.len())?;
        Ok(all)
    }

    /// Each path is a file, a folder or a repository.
    fn read_resources(
        &mut self,
        build: &mut Build<'a>,
        mut into: Accumulated,
        paths: &[String],
    ) -> Res<Accumulated> {
        for path in paths {
            let not_a_file = match self.read_file(build, &mut into, path) {
                Ok(()) => continue,
                Err(fault) if fault.is_final() => return Err(fault),
                Err(fault) => fault,
            };
            let loader = match self.loader.descend(build, path) {
                Ok(loader) => loader,
                Err(fault) if fault.is_final() => return Err(fault),
                Err(_) if not_a_file.cause == Cause::Malformed => return Err(not_a_file),
                Err(fault) => {
                    return Err(fault.within(format!("accumulation err='{}'", not_a_file.text)));
                }
            };
            into = self
                .read_folder(build, into, &loader, path, false)
                .map_err(|fault| fault.within(format!("accumulation err='{}'", not_a_file.text)))?;
        }
        Ok(into)
    }

    fn read_file(&self, build: &mut Build<'a>, into: &mut Accumulated, path: &str) -> Res<()> {
        let named = |fault: Fault| fault.within(format!("accumulating resources from '{path}'"));
        if let Some(Remote::Git(_)) = remote(path) {
            return Err(named(Fault::new("URL is a git repository")));
        }
        let content = self.loader.load(build, path).map_err(named)?;
        let objects =
            patch::objects(build, &content).map_err(|fault| named(patch::in_file(fault, path)))?;
        let map = ResMap::of(&build.tree, objects).map_err(named)?;
        if let Some(origin) = &self.origin {
            let text = origin.append(path).text();
            let texts = [(ORIGIN.to_owned(), text)].into();
            let spec = FieldSpec::created("metadata/annotations");
            transform::set_texts(&mut build.tree, &map, &texts, &[spec])?;
        }
        into.map
            .append_all(&build.tree, map.list)
            .map_err(|fault| fault.within(format!("merging resources from '{path}'")))
    }

    fn add_component(
        &mut self,
        build: &mut Build<'a>,
        into: Accumulated,
        path: &str,
    ) -> Res<Accumulated> {
        let loader = self
            .loader
            .descend(build, path)
            .map_err(|fault| fault.quoted("loader.New"))?;
        self.read_folder(build, into, &loader, path, true)
            .map_err(|fault| fault.quoted("accumulateDirectory:"))
    }

    fn read_folder(
        &self,
        build: &mut Build<'a>,
        into: Accumulated,
        loader: &Rc<Loader<'a>>,
        path: &str,
        component: bool,
    ) -> Res<Accumulated> {
        let shown = loader.shown();
        let (mut own, file) = read(build, loader)
            .map_err(|fault| fault.within(format!("couldn't make target for path '{shown}'")))?;
        own.build_metadata.clone_from(&self.own.build_metadata);
        let helm_namespace = if self.own.namespace.is_empty() {
            self.helm_namespace.clone()
        } else {
            self.own.namespace.clone()
        };
        let mut target = Self {
            own,
            loader: loader.clone(),
            file,
            origin: self.origin.as_ref().map(|origin| origin.append(path)),
            helm_namespace,
        };
        target.set_schema(build)?;
        let kind = &target.own.kind;
        match (component, kind == COMPONENT) {
            (true, false) => {
                return fail!("expected kind '{COMPONENT}' for path '{shown}' but got '{kind}'");
            }
            (false, true) => {
                return fail!("expected kind != '{COMPONENT}' for path '{shown}'");
            }
            _ => {}
        }
        // A component continues with its parent's objects; other bases start empty.
        let (mut into, begin) = if component {
            (Accumulated::default(), into)
        } else {
            (into, Accumulated::default())
        };
        let found = target
            .accumulate(build, begin)
            .map_err(|fault| fault.within(format!("recursed accumulation of path '{shown}'")))?;
        into.merge(build, found)
            .map_err(|fault| fault.within(format!("recursed merging from path '{shown}'")))?;
        Ok(into)
    }

    pub(super) fn field_origin(&self, kind: &str) -> Option<Origin> {
        let origin = self.origin.as_ref()?;
        Some(origin.of_field(self.file, kind))
    }

    fn generate(&mut self, build: &mut Build<'a>, all: &mut Accumulated) -> Res<()> {
        let global = self.own.generator_options.clone();
        for (kind, list) in [
            (
                "ConfigMap",
                std::mem::take(&mut self.own.config_map_generator),
            ),
            ("Secret", std::mem::take(&mut self.own.secret_generator)),
        ] {
            for mut args in list {
                args.options = GeneratorOptions::over(args.options, global.as_ref());
                let made = generate::make(build, &self.loader, &args, kind)?;
                let map = ResMap::of(&build.tree, vec![made.0])?;
                self.absorb(
                    build,
                    all,
                    map,
                    self.field_origin(&format!("{kind}Generator")),
                )?;
            }
        }
        let globals = self.own.helm_globals.clone().unwrap_or_default();
        for mut chart in std::mem::take(&mut self.own.helm_charts) {
            if chart.namespace.is_empty() {
                chart.namespace = if self.own.namespace.is_empty() {
                    self.helm_namespace.clone()
                } else {
                    self.own.namespace.clone()
                };
            }
            helm::check(build, &chart).map_err(|fault| {
                let config = chart_fields(&globals, &chart);
                trouble("HelmChartInflationGenerator", &config, fault)
            })?;
            let map = helm::inflate(build, &self.loader, &globals, &chart)?;
            let origin = self.field_origin("HelmChartInflationGenerator");
            self.absorb(build, all, map, origin)?;
        }
        let entries = std::mem::take(&mut self.own.generators);
        let objects = self
            .plugin_objects(build, &entries)
            .map_err(|fault| fault.within("loading generator plugins"))?;
        for object in objects {
            let origin = Origin::of_plugin(&build.tree, object);
            let loader = self.loader.clone();
            let map = plugins::generate(build, &loader, object)?;
            self.absorb(build, all, map, origin)?;
        }
        Ok(())
    }

    fn absorb(
        &self,
        build: &mut Build<'a>,
        all: &mut Accumulated,
        map: ResMap,
        origin: Option<Origin>,
    ) -> Res<()> {
        if let Some(origin) = origin {
            map.annotate_origin(&mut build.tree, &origin.text())?;
        }
        all.map
            .absorb_all(&mut build.tree, map)
            .map_err(|fault| fault.within("merging from generator"))
    }

    /// The objects in `generators` and similar fields; entries are inline objects or paths.
    fn plugin_objects(&mut self, build: &mut Build<'a>, entries: &[String]) -> Res<Vec<Object>> {
        let mut all = Accumulated::default();
        let mut paths = Vec::new();
        for entry in entries {
            let Some(objects) = plugins::inline(build, entry)? else {
                paths.push(entry.clone());
                continue;
            };
            let map = ResMap::of(&build.tree, objects)?;
            if let Some(origin) = &self.origin {
                let text = origin.append(self.file).text();
                map.annotate_origin(&mut build.tree, &text)?;
            }
            all.map.append_all(&build.tree, map.list)?;
        }
        let all = self.read_resources(build, all, &paths)?;
        Ok(all.map.objects().map(|(_, object)| object).collect())
    }

    fn run_transformers(
        &mut self,
        build: &mut Build<'a>,
        all: &mut Accumulated,
        entries: &[String],
    ) -> Res<()> {
        for object in self.plugin_objects(build, entries)? {
            build.tree.clock.look()?;
            let origin = Origin::of_plugin(&build.tree, object);
            let loader = self.loader.clone();
            plugins::transform(build, &loader, object, &mut all.map)?;
            all.map.changed();
            if let Some(origin) = origin {
                origin.note_change(&mut build.tree, &all.map)?;
            }
            all.map.drop_gone(&build.tree);
        }
        Ok(())
    }

    /// Validators are transformers that may only change one label.
    fn validate(&mut self, build: &mut Build<'a>, all: &mut Accumulated) -> Res<()> {
        let entries = std::mem::take(&mut self.own.validators);
        for object in self.plugin_objects(build, &entries)? {
            build.tree.clock.look()?;
            let before = shown(build, &all.map)?;
            let loader = self.loader.clone();
            plugins::transform(build, &loader, object, &mut all.map)?;
            if before != shown(build, &all.map)? {
                return fail!("validator shouldn't modify the resource map");
            }
        }
        Ok(())
    }
}

/// All objects, without the label that validators may set.
fn shown(build: &Build<'_>, map: &ResMap) -> Res<Vec<serde_json::Value>> {
    let mut all = Vec::new();
    for (_, object) in map.objects() {
        let mut json = build.tree.json(object.0)?;
        if let Some(labels) = json.pointer_mut("/metadata/labels")
            && let Some(labels) = labels.as_object_mut()
        {
            labels.remove("validated-by");
        }
        all.push(json);
    }
    Ok(all)
}
