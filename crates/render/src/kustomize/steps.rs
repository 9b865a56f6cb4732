//! The changes with their own fields in a kustomization, in kustomize's order.

use super::Build;
use super::config::{Config, FieldSpec, merge_specs};
use super::configured::{fields, patch_fields, shown_entry, trouble};
use super::fault::{Fault, Res, hidden};
use super::resmap::ResMap;
use super::target::{Accumulated, Target};
use super::transform::{self, Affix, Namespace, Subjects};
use super::{patch, replacement};
use serde_json::json;

impl<'a> Target<'a> {
    /// Runs the steps that have their own fields.
    pub(super) fn transform(&self, build: &mut Build<'a>, all: &mut Accumulated) -> Res<()> {
        self.transform_patches(build, all)?;
        let own = &self.own;
        let (map, config) = (&all.map, &all.config);
        if !own.namespace.is_empty() {
            let namespace = Namespace {
                name: own.namespace.clone(),
                specs: config.namespace.clone(),
                unset_only: false,
                subjects: Subjects::NamedDefault,
            };
            namespace.apply(&mut build.tree, map)?;
            self.note(build, map, "NamespaceTransformer")?;
        }
        for (affix, text, specs, kind) in [
            (
                Affix::Prefix,
                &own.name_prefix,
                &config.name_prefix,
                "PrefixTransformer",
            ),
            (
                Affix::Suffix,
                &own.name_suffix,
                &config.name_suffix,
                "SuffixTransformer",
            ),
        ] {
            if !text.is_empty() {
                transform::rename(&mut build.tree, map, affix, text, specs)?;
                self.note(build, map, kind)?;
            }
        }
        self.set_labels(build, map, config)?;
        if !own.common_annotations.is_empty() {
            let specs = &config.common_annotations;
            transform::set_texts(&mut build.tree, map, &own.common_annotations, specs)?;
            self.note(build, map, "AnnotationsTransformer")?;
        }
        for entry in &own.patches_json6902 {
            let loaded = patch::load_json(build, &self.loader, entry).map_err(|fault| {
                let config = json!({
                    "path": entry.path,
                    "jsonOp": hidden(&entry.patch),
                    "target": entry.target,
                });
                trouble("PatchJson6902Transformer", &fields(&config), fault)
            })?;
            patch::apply_json(build, map, &loaded)?;
            self.note(build, map, "PatchJson6902Transformer")?;
        }
        for replica in &own.replicas {
            transform::set_replicas(&mut build.tree, map, replica, &config.replicas)?;
            self.note(build, map, "ReplicaCountTransformer")?;
        }
        for image in &own.images {
            transform::set_image(&mut build.tree, map, image, &config.images)?;
            self.note(build, map, "ImageTagTransformer")?;
        }
        if !own.replacements.is_empty() {
            let loaded = replacement::load(build, &self.loader, &own.replacements);
            let replacements = loaded.map_err(|fault| {
                let mut shown = own.replacements.clone();
                let values = shown.iter_mut().filter_map(|r| r.source_value.as_mut());
                values.for_each(|value| *value = hidden(value).to_owned());
                let config = json!({ "Replacements": shown });
                trouble("ReplacementTransformer", &fields(&config), fault)
            })?;
            replacement::apply(build, map, &replacements)?;
            self.note(build, map, "ReplacementTransformer")?;
        }
        all.map.drop_gone(&build.tree);
        Ok(())
    }

    fn transform_patches(&self, build: &mut Build<'a>, all: &mut Accumulated) -> Res<()> {
        let own = &self.own;
        if !own.patches_strategic_merge.is_empty() {
            let paths = &own.patches_strategic_merge;
            let loaded = patch::load_strategic(build, &self.loader, paths);
            let patches = loaded.map_err(|fault| {
                let shown: Vec<&str> = paths.iter().map(|entry| shown_entry(entry)).collect();
                let config = json!({ "paths": shown });
                trouble("PatchStrategicMergeTransformer", &config, fault)
            })?;
            patch::apply_strategic(build, &mut all.map, &patches)?;
            self.note(build, &all.map, "PatchStrategicMergeTransformer")?;
            all.map.drop_gone(&build.tree);
        }
        // Read all of them before applying the first.
        let mut prepared = Vec::new();
        for entry in &own.patches {
            let read = patch::prepare(build, &self.loader, entry);
            prepared.push(
                read.map_err(|fault| trouble("PatchTransformer", &patch_fields(entry), fault))?,
            );
        }
        for entry in &prepared {
            patch::apply(build, &mut all.map, entry)?;
            self.note(build, &all.map, "PatchTransformer")?;
            all.map.drop_gone(&build.tree);
        }
        Ok(())
    }

    fn set_labels(&self, build: &mut Build<'a>, map: &ResMap, config: &Config) -> Res<()> {
        let own = &self.own;
        for label in &own.labels {
            let mut specs = label.fields.clone();
            let conflict = |fault: Fault| fault.within("failed to merge labels");
            let clock = &build.tree.clock;
            merge_specs(&mut specs, &config.labels, clock).map_err(conflict)?;
            if label.include_selectors {
                merge_specs(&mut specs, &config.common_labels, clock).map_err(conflict)?;
            } else {
                if label.include_templates {
                    merge_specs(&mut specs, &config.template_labels, clock)
                        .map_err(|fault| fault.within("failed to merge template fieldSpec"))?;
                }
                if label.include_volume_claim_templates {
                    let claims = FieldSpec {
                        group: "apps".to_owned(),
                        kind: "StatefulSet".to_owned(),
                        ..FieldSpec::created("spec/volumeClaimTemplates[]/metadata/labels")
                    };
                    merge_specs(&mut specs, &[claims], clock).map_err(conflict)?;
                }
                let metadata = FieldSpec::created("metadata/labels");
                merge_specs(&mut specs, &[metadata], clock).map_err(conflict)?;
            }
            transform::set_texts(&mut build.tree, map, &label.pairs, &specs)?;
            self.note(build, map, "LabelTransformer")?;
        }
        if !own.labels.is_empty() || !own.common_labels.is_empty() {
            let specs = &config.common_labels;
            transform::set_texts(&mut build.tree, map, &own.common_labels, specs)?;
            self.note(build, map, "LabelTransformer")?;
        }
        Ok(())
    }

    fn note(&self, build: &mut Build<'a>, map: &ResMap, kind: &str) -> Res<()> {
        match self.field_origin(kind) {
            Some(origin) => origin.note_change(&mut build.tree, map),
            None => Ok(()),
        }
    }
}
