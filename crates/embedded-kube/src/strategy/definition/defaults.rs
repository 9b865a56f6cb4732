//! Checks that the defaults in a schema are valid against that schema. Main function: [`check`].

use super::spec::Problems;
use serde_json::Value;
use tiphys_kube_schema::cel::rules;
use tiphys_kube_schema::structural::problem::Problem;
use tiphys_kube_schema::structural::{Node, embedded, shape, validate};

const MAX_DEPTH: usize = 200;

pub fn check(node: &Node, path: &str) -> Problems {
    let mut problems = Vec::new();
    let mut budget = rules::Budget::default();
    walk(node, true, false, path, &mut problems, &mut budget, 0);
    problems
}

fn walk(
    node: &Node,
    root: bool,
    in_meta: bool,
    path: &str,
    problems: &mut Problems,
    budget: &mut rules::Budget,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let object = root || node.embedded;
    let in_meta = in_meta && !object;
    if let Some(default) = &node.default {
        one(
            node,
            default,
            (in_meta, object),
            &format!("{path}.default"),
            problems,
            budget,
        );
    }
    if let Some(items) = &node.items {
        walk(
            items,
            false,
            in_meta,
            &format!("{path}.items"),
            problems,
            budget,
            depth + 1,
        );
    }
    for (name, property) in &node.properties {
        let meta =
            in_meta || (object && matches!(name.as_str(), "metadata" | "apiVersion" | "kind"));
        walk(
            property,
            false,
            meta,
            &format!("{path}.properties[{name}]"),
            problems,
            budget,
            depth + 1,
        );
    }
}

fn one(
    node: &Node,
    default: &Value,
    (in_meta, object): (bool, bool),
    path: &str,
    problems: &mut Problems,
    budget: &mut rules::Budget,
) {
    if !in_meta {
        let mut pruned = default.clone();
        shape::prune_part(&mut pruned, node);
        if pruned != *default {
            problems.push(Problem::invalid(
                path,
                default,
                "must not have unknown fields",
            ));
        }
        let reading = embedded::Reading {
            metadata: &crate::strategy::read_metadata,
            keep_nulls: false,
        };
        if let Err(problem) = reading.of(node, &mut default.clone(), path) {
            problems.push(problem);
            return;
        }
        let bad = embedded::check(
            node,
            default,
            path,
            object,
            &crate::strategy::embedded_metadata,
        );
        if !bad.is_empty() {
            problems.extend(bad);
            return;
        }
    }
    let bad = validate::check(node, default, None, path);
    if !bad.is_empty() {
        problems.extend(bad);
        return;
    }
    if node.has_rules {
        let compiled = rules::Compiled::new(node, object);
        let found = compiled.check_with(node, path, default, Some(default), false, budget);
        let again = if found.problems.is_empty() {
            compiled
                .check_with(node, path, default, None, false, budget)
                .problems
        } else {
            Vec::new()
        };
        problems.extend(found.problems);
        problems.extend(again);
    }
}
