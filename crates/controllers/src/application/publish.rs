//! Publishes the result of a comparison to readers in the same process: resources with differences,
//! and the tree.

use super::{controller::Controller, known};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use tiphys_api::{
    Application,
    access::without_passwords,
    constants,
    resource::{ApplicationTree, ResourceDiff, ResourceNode, ResourceRef, UnreadableKind},
};
use tiphys_apimachinery::{Kept, Object, ResourceKey};
use tiphys_cluster::{
    Unreadable,
    app_state::AppKey,
    cache::{Live, LiveCache},
};
use tiphys_engine::{
    diff, tree,
    types::{CompareRules, Comparison, Entry},
};

/// At most this many kinds that could not be read are named in a tree.
const UNREADABLE: usize = 20;
/// The longest reason given for one, in characters.
const REASON: usize = 300;
const APPLICATION: (&str, &str) = ("argoproj.io", "Application");

impl Controller {
    /// Publishes resources and tree; unchanged resources are not written again.
    pub(super) fn publish(
        &self,
        key: &AppKey,
        comparison: &Comparison,
        published: Option<&Comparison>,
        tree: ApplicationTree,
    ) {
        if published.is_some_and(|before| comparison.has_entries_of(before)) {
            return self.publish_tree(key, tree);
        }
        let hidden = diff::hidden_annotations(
            self.records
                .settings()
                .get("resource.sensitive.mask.annotations"),
        );
        let managed: Vec<_> = comparison
            .entries
            .iter()
            .map(|e| resource_diff(e, &hidden))
            .collect();
        self.states.publish(key, &managed, tree);
    }

    /// Publishes only the tree, because an owned object has changed.
    pub(super) fn publish_tree(&self, key: &AppKey, tree: ApplicationTree) {
        self.states.publish_tree(key, tree);
    }

    /// Publishes that nothing is known about the Application's resources.
    pub(super) fn publish_unknown(&self, key: &AppKey) {
        self.states.publish(key, &[], ApplicationTree::default());
    }

    /// The current tree, with orphans if they are monitored, and whether these are complete. From
    /// then on changes of untracked objects in the namespace trigger a reconcile.
    pub(super) fn tree(
        &self,
        comparison: &Comparison,
        cache: &LiveCache,
    ) -> (ApplicationTree, bool) {
        let rules = &comparison.rules;
        let children = |uid: &str| cache.child_nodes(uid);
        let mut tree = tree::build(&comparison.entries, rules, &children);
        tree.unreadable_kinds = unreadable_kinds(cache);
        let namespace = Some(rules.dest_namespace.as_str())
            .filter(|n| !n.is_empty() && rules.project.orphans.is_some());
        cache.monitor(&rules.tracking.app_name, namespace);
        let mut complete = true;
        if let Some(namespace) = namespace {
            let (nobodys, readable) = self.nobodys(cache, namespace, &tree);
            complete = readable
                .inspect_err(
                    |error| tracing::warn!(namespace, %error, "orphans cannot all be told"),
                )
                .is_ok();
            tree.orphaned_nodes = tree::orphans::of(&comparison.entries, rules, nobodys, &children);
        }
        (tree, complete)
    }

    /// The tree of an Application that this process could not compare yet: the resources in its
    /// status, with what is below them as far as it can be read. Those that cannot be found, or
    /// that nobody tracks, have neither a uid nor a health. Those that another Application tracks
    /// are left out: who may see this Application may not see them.
    pub(super) fn known_tree(
        &self,
        app: &Application,
        rules: &CompareRules,
        cache: &LiveCache,
    ) -> ApplicationTree {
        let own = rules.tracking.app_name.as_str();
        let node = |resource_ref: ResourceRef| {
            let r = &resource_ref;
            let key = ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name);
            let live = cache.get(&key);
            match live.filter(|live| live.app.is_some()) {
                Some(live) => (live.app.as_deref() == Some(own)).then(|| live.node()),
                None => Some(ResourceNode {
                    resource_ref,
                    ..ResourceNode::default()
                }),
            }
        };
        let references = known::references(app).into_iter();
        let nodes = references.filter_map(node).collect();
        let mut tree = tree::below(nodes, rules, &|uid: &str| cache.child_nodes(uid));
        tree.unreadable_kinds = unreadable_kinds(cache);
        tree
    }

    /// Objects in a namespace that have no owner, no existing Application's tracking metadata, and
    /// are not in the tree.
    fn nobodys(
        &self,
        cache: &LiveCache,
        namespace: &str,
        tree: &ApplicationTree,
    ) -> (Vec<ResourceNode>, Result<(), Unreadable>) {
        let (objects, mut readable) = cache.namespace_objects(namespace);
        let in_tree = tree.nodes.iter().map(|n| n.resource_ref.uid.clone());
        // The claims of a StatefulSet have no owner reference.
        let sets = objects
            .iter()
            .filter(|o| o.key.group == "apps" && o.key.kind == "StatefulSet");
        let claims = sets
            .flat_map(|set| cache.children(&set.uid))
            .map(|claim| claim.uid);
        let owned: HashSet<String> = in_tree.chain(claims).collect();
        let exists = |instance: &Arc<str>| {
            let app = AppKey::from_instance(instance, &self.records.namespace);
            self.records
                .applications
                .get(&app.namespace, &app.name)
                .is_some()
        };
        if !self.records.applications.is_current() {
            // An object that names an unknown Application is an orphan only if all Applications are
            // known.
            readable = readable.and(Err(Unreadable::of(APPLICATION, "it cannot be followed")));
        }
        let certain = |o: &Live| match &readable {
            Ok(()) => true,
            // A claim may belong to a StatefulSet that cannot be read, an object with tracking
            // metadata to an Application that cannot be read.
            Err(_) => o.app.is_none() && o.key.kind != "PersistentVolumeClaim",
        };
        let nobodys = |o: &&Live| {
            o.owners.is_empty()
                && !owned.contains(&o.uid)
                && !o.app.as_ref().is_some_and(exists)
                && certain(o)
        };
        let nodes = objects.iter().filter(nobodys).map(Live::node).collect();
        (nodes, readable)
    }
}

/// The kinds of which objects may be missing from a tree.
fn unreadable_kinds(cache: &LiveCache) -> Vec<UnreadableKind> {
    let named = cache.incomplete().into_iter().take(UNREADABLE);
    let named = named.map(|(kind, why)| UnreadableKind {
        group: kind.group,
        kind: kind.kind,
        message: without_passwords(&why).chars().take(REASON).collect(),
    });
    named.collect()
}

fn resource_diff(entry: &Entry, hidden: &BTreeSet<String>) -> ResourceDiff {
    let (desired, live) = (entry.desired.as_deref(), entry.live.as_deref());
    let diff = [
        entry.diff.normalized_live.read(),
        entry.diff.predicted_live.read(),
    ];
    let states = if entry.gvk.group.is_empty() && entry.gvk.kind == "Secret" {
        let masked = |a: Option<&Object>, b: Option<&Object>| diff::mask_secret(a, b, hidden);
        let [desired, live] = [desired, live].map(|o| o.map(Kept::object));
        let (desired, live) = masked(desired.as_deref(), live.as_deref());
        let [normalized, predicted] = diff.map(|text| serde_json::from_str::<Object>(&text).ok());
        let (predicted, normalized) = masked(predicted.as_ref(), normalized.as_ref());
        [desired, live, normalized, predicted].map(|o| text(o.as_ref()))
    } else {
        let [normalized, predicted] = diff.map(Cow::into_owned);
        let json = |kept: Option<&Kept>| kept.map_or_else(|| "null".to_owned(), Kept::json);
        let states = [json(desired), json(live), normalized, predicted];
        match entry.gvk.group == constants::GROUP {
            // The URLs of our own records may have passwords.
            true => states.map(|state| without_passwords(&state)),
            false => states,
        }
    };
    let [
        target_state,
        live_state,
        normalized_live_state,
        predicted_live_state,
    ] = states;
    ResourceDiff {
        group: entry.gvk.group.clone(),
        kind: entry.gvk.kind.clone(),
        namespace: entry.key.namespace.clone(),
        name: entry.key.name.clone(),
        target_state,
        resource_version: live
            .map(|l| l.resource_version().to_owned())
            .unwrap_or_default(),
        live_state,
        diff: String::new(),
        hook: entry.hook,
        normalized_live_state,
        predicted_live_state,
        modified: entry.diff.modified,
    }
}

fn text(object: Option<&Object>) -> String {
    object.map_or_else(
        || "null".to_owned(),
        |o| serde_json::to_string(o).expect("a JSON map can be written as JSON"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tiphys_engine::types::Diff;

    const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";

    /// A Secret with a value and with three annotations, the last of which repeats all of it.
    fn secret(value: &str) -> Value {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"k": value},
            "metadata": {"name": "s", "namespace": "n", "annotations": {"token": value, "kept": "yes"}}});
        let last = secret.to_string();
        secret["metadata"]["annotations"][LAST] = last.into();
        secret
    }

    #[test]
    fn no_state_of_a_secret_is_published_as_it_is() {
        let [desired, live] = [secret("CANARY-1"), secret("CANARY-2")];
        let kept = |object: &Value| {
            let object: Object = serde_json::from_value(object.clone()).expect("an object");
            Some(Arc::new(Kept::from(object)))
        };
        let object: Object = serde_json::from_value(live.clone()).expect("an object");
        let mut entry = Entry::new(object.key(), object.gvk(), kept(&desired), kept(&live));
        entry.diff = Diff {
            modified: true,
            normalized_live: Arc::new(live.clone()),
            predicted_live: Arc::new(desired.clone()),
        }
        .into();
        let published = resource_diff(&entry, &diff::hidden_annotations("other, token"));
        let states = [
            &published.target_state,
            &published.live_state,
            &published.normalized_live_state,
            &published.predicted_live_state,
        ];
        let mut tokens = Vec::new();
        for state in states {
            assert!(!state.contains("CANARY"), "{state}");
            let state: Value = serde_json::from_str(state).expect("JSON");
            let annotations = &state["metadata"]["annotations"];
            assert_eq!(annotations["kept"], "yes");
            let last = annotations[LAST].as_str().expect("text");
            let last: Value = serde_json::from_str(last).expect("it stays JSON");
            tokens.push((
                annotations["token"].clone(),
                last["metadata"]["annotations"]["token"].clone(),
            ));
        }
        // Whether the values differ can be seen.
        assert_ne!(tokens[0], tokens[1]);
        assert_ne!(tokens[2], tokens[3]);
        assert_eq!(tokens[0].0, "++++++++");
        assert_eq!(tokens[0].0, tokens[0].1);
    }
}
