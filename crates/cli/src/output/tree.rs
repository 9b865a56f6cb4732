//! Resource trees in tables. Main types: [`Nodes`], which knows parents and children, and
//! [`branch`], the lines before a name.

use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::resource::ResourceNode;

/// Deeper nodes are not shown. Our own trees are never that deep.
const MAX_DEPTH: usize = 64;

/// Nodes by parent, in the order they were given.
pub struct Nodes<'a> {
    roots: Vec<&'a ResourceNode>,
    children: BTreeMap<&'a str, Vec<&'a ResourceNode>>,
}

impl<'a> Nodes<'a> {
    pub fn new(nodes: &'a [ResourceNode]) -> Self {
        let mut this = Self {
            roots: Vec::new(),
            children: BTreeMap::new(),
        };
        for node in nodes {
            match node.parent_refs.first() {
                Some(parent) => this.children.entry(&parent.uid).or_default().push(node),
                None => this.roots.push(node),
            }
        }
        this
    }

    /// Calls `visit` for each node below a root, parents first, with the lines before its name.
    pub fn walk(&self, mut visit: impl FnMut(&str, &ResourceNode)) {
        let mut seen = BTreeSet::new();
        for root in &self.roots {
            self.descend(root, &mut Vec::new(), &mut seen, &mut visit);
        }
    }

    fn descend(
        &self,
        node: &'a ResourceNode,
        last: &mut Vec<bool>,
        seen: &mut BTreeSet<&'a str>,
        visit: &mut impl FnMut(&str, &ResourceNode),
    ) {
        visit(&branch(last), node);
        let uid = node.resource_ref.uid.as_str();
        // Owner references can form a cycle, and a server may send trees of any depth; a node
        // without uid has no children.
        if uid.is_empty() || last.len() >= MAX_DEPTH || !seen.insert(uid) {
            return;
        }
        let children = self.children.get(uid).map_or(&[][..], Vec::as_slice);
        for (n, child) in children.iter().enumerate() {
            last.push(n + 1 == children.len());
            self.descend(child, last, seen, visit);
            last.pop();
        }
    }
}

/// For each level, whether it is the last of its siblings.
fn branch(last: &[bool]) -> String {
    let Some((own, above)) = last.split_last() else {
        return String::new();
    };
    let above: String = above
        .iter()
        .map(|last| if *last { "  " } else { "│ " })
        .collect();
    above + if *own { "└─" } else { "├─" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_api::resource::ResourceRef;

    fn node(uid: &str, parent: &str) -> ResourceNode {
        let resource_ref = ResourceRef {
            uid: uid.into(),
            name: uid.into(),
            ..Default::default()
        };
        let parent_refs = match parent {
            "" => Vec::new(),
            p => vec![ResourceRef {
                uid: p.into(),
                ..Default::default()
            }],
        };
        ResourceNode {
            resource_ref,
            parent_refs,
            ..Default::default()
        }
    }

    #[test]
    fn lines_join_siblings() {
        let nodes = [
            node("a", ""),
            node("b", "a"),
            node("c", "a"),
            node("d", "b"),
            node("e", "c"),
            node("f", ""),
        ];
        let mut text = String::new();
        Nodes::new(&nodes)
            .walk(|branch, node| text.push_str(&format!("{branch}{}\n", node.resource_ref.name)));
        assert_eq!(text, "a\n├─b\n│ └─d\n└─c\n  └─e\nf\n");
    }

    #[test]
    fn a_circle_ends() {
        let nodes = [
            node("a", ""),
            node("b", "a"),
            ResourceNode {
                parent_refs: vec![node("b", "").resource_ref],
                ..node("a", "")
            },
        ];
        let mut count = 0;
        Nodes::new(&nodes).walk(|_, _| count += 1);
        assert_eq!(count, 3);
    }

    #[test]
    fn a_chain_without_end_is_cut() {
        let names: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let nodes: Vec<ResourceNode> = names
            .iter()
            .enumerate()
            .map(|(n, name)| node(name, if n == 0 { "" } else { &names[n - 1] }))
            .collect();
        let mut shown = 0;
        Nodes::new(&nodes).walk(|_, _| shown += 1);
        assert_eq!(shown, MAX_DEPTH + 1);
    }
}
