//! `cargo xtask parity kustomize --random SEED`: made-up kustomizations. Main function: [`files`].
//!
//! A seed makes a base of some objects, and often an overlay of it and a component: with
//! transformers, generators, patches and replacements that mostly fit the objects.

use super::objects::{NAMES, Objects, object, scalar, value, workload};
use crate::parity::dice::Dice;
use std::collections::BTreeSet;
use tiphys_render::MemoryFiles;

/// Which kustomization is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    Base,
    Overlay,
    Component,
}

struct Maker {
    dice: Dice,
    namespaces: bool,
    /// The objects of the base, for patches.
    objects: Vec<String>,
}

/// The files of a seed, and the folder to build.
pub fn files(seed: u64) -> (MemoryFiles, String) {
    let mut maker = Maker::new(seed);
    let mut files = MemoryFiles::default();
    let mut put = |path: &str, text: String| {
        files.0.insert(path.to_owned(), text.into_bytes());
    };
    maker.make_objects();
    put("base/r.yaml", maker.objects.join("\n---\n") + "\n");
    let base = maker.kustomization(Layer::Base, &["r.yaml"], &[]);
    put("base/kustomization.yaml", base);
    if maker.dice.percent(45) {
        return (files, "base".to_owned());
    }
    let mut resources = vec!["../base"];
    if maker.dice.percent(40) {
        put("over/o.yaml", maker.object() + "\n");
        resources.push("o.yaml");
    }
    let mut components: &[&str] = &[];
    if maker.dice.percent(35) {
        let part = maker.kustomization(Layer::Component, &[], &[]);
        put("part/kustomization.yaml", part);
        components = &["../part"];
    }
    let over = maker.kustomization(Layer::Overlay, &resources, components);
    put("over/kustomization.yaml", over);
    (files, "over".to_owned())
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            namespaces: dice.percent(30),
            dice,
            objects: Vec::new(),
        }
    }

    fn object(&mut self) -> String {
        object(&mut Objects {
            dice: &mut self.dice,
            namespaces: self.namespaces,
        })
    }

    /// At most one of a kind and name.
    fn make_objects(&mut self) {
        let mut known = BTreeSet::new();
        for _ in 0..=self.dice.below(6) {
            let object = self.object();
            let of = |start: &str| {
                let found = object.lines().find(|line| line.starts_with(start));
                found.unwrap_or_default().to_owned()
            };
            if known.insert((of("kind: "), of("  name: "))) {
                self.objects.push(object.trim_end_matches('\n').to_owned());
            }
        }
    }

    fn kustomization(&mut self, layer: Layer, resources: &[&str], components: &[&str]) -> String {
        let mut out = String::new();
        if layer == Layer::Component {
            out.push_str("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n");
        }
        for (field, paths) in [("resources", resources), ("components", components)] {
            if !paths.is_empty() {
                let lines: String = paths.iter().map(|path| format!("- {path}\n")).collect();
                out.push_str(&format!("{field}:\n{lines}"));
            }
        }
        self.transformers(&mut out);
        self.generators(layer, &mut out);
        if self.dice.percent(60) {
            out.push_str("patches:\n");
            for _ in 0..=self.dice.below(3) {
                let patch = self.patch();
                out.push_str(&format!("{patch}\n"));
            }
        }
        if self.dice.percent(15) {
            let replacement = self.replacement();
            out.push_str(&replacement);
        }
        if layer != Layer::Component && self.dice.percent(10) {
            let order = self.dice.pick(&["legacy", "fifo"]);
            out.push_str(&format!("sortOptions:\n  order: {order}\n"));
        }
        if layer != Layer::Component && self.dice.percent(7) {
            out.push_str("buildMetadata: [managedByLabel, originAnnotations]\n");
        }
        out
    }

    fn transformers(&mut self, out: &mut String) {
        let dice = &mut self.dice;
        if dice.percent(25) {
            out.push_str(&format!("namespace: {}\n", dice.pick(&["prod", "ns1"])));
        }
        if dice.percent(30) {
            out.push_str(&format!("namePrefix: {}\n", dice.pick(&["p-", "a."])));
        }
        if dice.percent(20) {
            out.push_str("nameSuffix: -sfx\n");
        }
        if dice.percent(15) {
            out.push_str("commonLabels:\n  cl: \"1\"\n");
        }
        if dice.percent(20) {
            let selectors = dice.pick(&["true", "false"]);
            let templates = dice.pick(&["", "  includeTemplates: true\n"]);
            out.push_str(&format!(
                "labels:\n- pairs:\n    lb: x\n  includeSelectors: {selectors}\n{templates}"
            ));
        }
        if dice.percent(20) {
            let texts = ["x", "\"1\"", "\"a: b\"", "\"m\\nl\"", "\"yes\"", "'  '"];
            out.push_str(&format!(
                "commonAnnotations:\n  ca: {}\n",
                dice.pick(&texts)
            ));
        }
        if dice.percent(25) {
            let name = dice.pick(&["nginx", "reg:5000/x/y", "busybox", "a/b"]);
            let new = dice.pick(&[
                "newTag: \"9\"",
                "newName: n/m",
                "digest: sha256:fff",
                "newName: z\n  newTag: v1",
            ]);
            out.push_str(&format!("images:\n- name: {name}\n  {new}\n"));
        }
        if dice.percent(15) {
            out.push_str(&format!(
                "replicas:\n- name: {}\n  count: 4\n",
                dice.pick(NAMES)
            ));
        }
    }

    fn generators(&mut self, layer: Layer, out: &mut String) {
        let dice = &mut self.dice;
        let names: &[&str] = match layer {
            Layer::Base => &["gcfg", "gen"],
            Layer::Overlay => &["n1", "n2", "gen"],
            Layer::Component => &["n3", "gen"],
        };
        if dice.percent(25) {
            out.push_str("configMapGenerator:\n");
            for name in dice.some(names, 2) {
                out.push_str(&format!("- name: {name}\n"));
                if layer != Layer::Base && name == "gen" {
                    let behavior = dice.pick(&["merge", "replace", "create"]);
                    out.push_str(&format!("  behavior: {behavior}\n"));
                }
                out.push_str("  literals:\n");
                for key in dice.some(&["a", "b", "c"], 2) {
                    let text = dice.pick(&["1", "x", "a b", "true", "\"q\"", "=", "é"]);
                    out.push_str(&format!("  - {key}={text}\n"));
                }
                if dice.percent(20) {
                    out.push_str("  options:\n    disableNameSuffixHash: true\n");
                }
                if dice.percent(15) {
                    out.push_str("  namespace: ns1\n");
                }
            }
        }
        if dice.percent(20) {
            out.push_str("secretGenerator:\n- name: gsec\n  literals: [\"p=q w\"]\n");
            if layer != Layer::Base && dice.percent(30) {
                let behavior = dice.pick(&["merge", "replace"]);
                out.push_str(&format!("  behavior: {behavior}\n"));
            }
        }
        if dice.percent(15) {
            out.push_str("generatorOptions:\n  labels: {g: o}\n");
        }
    }

    fn replacement(&mut self) -> String {
        let dice = &mut self.dice;
        let source = dice.pick(&["ConfigMap", "Deployment", "Service", "Custom"]);
        let from = dice.pick(&["metadata.name", "data.a", "spec.a", "metadata.labels.app"]);
        let target = dice.pick(&["Deployment", "Custom", "Service", "ConfigMap"]);
        let to = dice.pick(&[
            "spec.a",
            "metadata.annotations.r",
            "spec.template.spec.containers.*.image",
            "spec.template.spec.containers.[name=c1].env.[name=A].value",
            "spec.b.c",
            "data.[a]",
        ]);
        let options = dice.pick(&[
            "",
            "    options:\n      create: true\n",
            "    options:\n      delimiter: \":\"\n      index: 1\n",
        ]);
        format!(
            "replacements:\n- source:\n    kind: {source}\n    fieldPath: {from}\n  targets:\n  - select:\n      \
             kind: {target}\n    fieldPaths:\n    - {to}\n{options}"
        )
    }

    fn patch(&mut self) -> String {
        if self.dice.percent(35) {
            return self.operations();
        }
        let mut body = match self.dice.below(self.objects.len() + 1) {
            0 if self.dice.percent(50) => self.object(),
            0 => {
                let name = self.dice.pick(NAMES);
                workload(
                    &mut Objects {
                        dice: &mut self.dice,
                        namespaces: self.namespaces,
                    },
                    name,
                )
            }
            at => self.objects.get(at - 1).cloned().unwrap_or_default(),
        };
        let dice = &mut self.dice;
        if dice.percent(70) {
            let is_kept = |line: &&str| !line.starts_with("  namespace: ");
            let lines: Vec<&str> = body.lines().filter(is_kept).collect();
            body = lines.join("\n");
        }
        if dice.percent(30) {
            let image = "\n        image: nginx\n";
            body = body.replacen(image, "\n        image: null\n", 1);
        }
        if dice.percent(25) {
            let item = "\n      - name: c2\n";
            body = body.replacen(item, &format!("{item}        $patch: delete\n"), 1);
        }
        for (list, directive) in [
            ("\n      containers:", "\n      - $patch: replace"),
            ("\n    spec:", "\n      $patch: replace"),
        ] {
            if dice.percent(10) {
                body = body.replacen(list, &format!("{list}{directive}"), 1);
            }
        }
        if dice.percent(5) {
            body.push_str("\n$patch: delete");
        }
        let mut out = format!("- patch: |-\n{}", under(&body));
        if dice.percent(30) {
            let kind = dice.pick(&["Deployment", "Custom", "ConfigMap", "Service"]);
            out.push_str(&format!("\n  target:\n    kind: {kind}"));
        }
        out
    }

    /// A JSON patch.
    fn operations(&mut self) -> String {
        let dice = &mut self.dice;
        let mut operations = Vec::new();
        for _ in 0..=dice.below(3) {
            operations.push(operation(dice));
        }
        let text = operations.join("\n");
        let of_workload = ["template", "replicas", "op: test"];
        let target = if text.contains("ports/1") {
            "kind: Service"
        } else if of_workload.iter().any(|part| text.contains(part)) {
            "kind: Deployment"
        } else if text.contains("/spec/") {
            "kind: Custom"
        } else {
            dice.pick(&[
                "kind: Deployment",
                "kind: Custom",
                "name: app",
                "kind: \"Deploy.*|StatefulSet\"",
                "labelSelector: app=a",
                "kind: Service",
                "namespace: ns1",
                "group: apps",
                "name: \"w.*\"",
                "annotationSelector: k",
                "version: v1",
            ])
        };
        format!("- target:\n    {target}\n  patch: |-\n{}", under(&text))
    }
}

fn operation(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => format!("- op: add\n  path: /metadata/labels\n  value:\n    z:{}", scalar(dice, 6)),
        1 => format!("- op: add\n  path: /metadata/annotations/n\n  value:{}", scalar(dice, 4)),
        2 => format!("- op: add\n  path: /spec/new\n  value:{}", value(dice, 4, 2)),
        _ => dice
            .pick(&[
                "- op: replace\n  path: /metadata/name\n  value: renamed",
                "- op: add\n  path: /spec/template/spec/containers/-\n  value:\n    name: side\n    image: s",
                "- op: add\n  path: /spec/template/spec/containers/0\n  value: {name: first}",
                "- op: remove\n  path: /spec/replicas",
                "- op: test\n  path: /kind\n  value: Deployment",
                "- {op: replace, path: /spec/template/spec/containers/0/image, value: q}",
                "- {op: copy, from: /metadata/name, path: /spec/copied}",
                "- {op: move, from: /spec/template, path: /spec/tmpl}",
                "- {op: add, path: /spec/ports/1, value: {port: 9}}",
            ])
            .to_owned(),
    }
}

/// A text as a block of a patch.
fn under(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line {
        "" => String::new(),
        line => format!("    {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::files;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_always_makes_the_same_and_others_make_others() {
        let made = |seed| {
            let (files, folder) = files(seed);
            (files.0, folder)
        };
        let all: BTreeSet<_> = (0..100).map(made).collect();
        assert_eq!(all.len(), 100);
        assert_eq!(made(7), made(7));
        let text: String = all
            .iter()
            .flat_map(|(files, _)| files.values())
            .map(|content| String::from_utf8_lossy(content).into_owned())
            .collect();
        for feature in [
            "kind: Component",
            "components:",
            "namePrefix:",
            "images:",
            "configMapGenerator:",
            "secretGenerator:",
            "replacements:",
            "- target:",
            "$patch: delete",
        ] {
            assert!(text.contains(feature), "{feature}");
        }
    }
}
