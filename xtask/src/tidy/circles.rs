//! Top modules of a crate that import each other in a circle: they can only be read, moved or cut
//! out together. No crate may have any.

use super::{modules::imports, sources::walk};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut crates: Vec<_> = fs::read_dir(root.join("crates"))?.collect::<Result<_, _>>()?;
    crates.sort_by_key(fs::DirEntry::file_name);
    for folder in crates {
        let name = folder.file_name().to_string_lossy().into_owned();
        let src = folder.path().join("src");
        if src.is_dir() {
            findings.extend(judge(&name, &circular(&graph(&src)?)));
        }
    }
    Ok(findings)
}

/// A finding for each module that is in a circle.
fn judge(name: &str, circular: &BTreeSet<String>) -> Vec<String> {
    let finding = |module: &String| {
        format!(
            "crates/{name}: `{module}` imports modules that import it; what both need belongs into \
             a module of its own"
        )
    };
    circular.iter().map(finding).collect()
}

/// Which top module imports which. `lib.rs` stands above all.
fn graph(src: &Path) -> anyhow::Result<Graph> {
    let mut files = Vec::new();
    walk(src, &mut |path| files.push(path.to_owned()))?;
    let mut graph = Graph::new();
    for path in files {
        let file = path.strip_prefix(src)?.to_string_lossy().into_owned();
        let is_test = file.ends_with("tests.rs") || file.contains("/tests/");
        if !file.ends_with(".rs") || file == "lib.rs" || file == "main.rs" || is_test {
            continue;
        }
        let module = file.strip_suffix(".rs").unwrap_or(&file);
        let module = module.strip_suffix("/mod").unwrap_or(module);
        let own = module.split('/').next().unwrap_or_default().to_owned();
        let text = fs::read_to_string(&path)?;
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let depth = module.split('/').count();
        graph.entry(own).or_default().extend(imports(code, depth));
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (own, imported) in &mut graph {
        imported.retain(|name| name != own && modules.contains(name));
    }
    Ok(graph)
}

/// The modules that can be reached from themselves.
fn circular(graph: &Graph) -> BTreeSet<String> {
    let reaches_itself = |start: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(module) = next.pop() {
            for imported in graph.get(module).into_iter().flatten() {
                if imported == start {
                    return true;
                }
                if seen.insert(imported) {
                    next.push(imported);
                }
            }
        }
        false
    };
    graph
        .keys()
        .filter(|module| reaches_itself(module))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_import_each_other_are_found() {
        let graph: Graph = [("a", "b"), ("b", "c"), ("c", "b d"), ("d", "")]
            .map(|(own, imported)| {
                let imported = imported.split_whitespace().map(str::to_owned).collect();
                (own.to_owned(), imported)
            })
            .into();
        let found = circular(&graph);
        assert_eq!(found.iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(judge("none", &found).len(), 2);
        assert!(judge("none", &BTreeSet::new()).is_empty());
    }
}
