//! Argo CD's format in Redis: names of keys, and encoding of values (JSON, gzip). Main type:
//! [`Format`].

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, Read as _, Write as _},
    time::Duration,
};
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff, ResourceNode},
};

/// The suffix of every key; another version of Argo CD with different values uses another one.
const VERSION: &str = "1.8.3";
/// Nodes per value of a tree.
const SHARD: usize = 100;
/// Most bytes of a value when it is unpacked.
const LARGEST: u64 = 256 << 20;
/// Most pieces of a tree.
const MOST_SHARDS: i64 = 10_000;
/// What the keys of the channels of Applications begin with.
const CHANNEL: &str = "app|managed-resources|";
/// Lifetime of a cluster's values.
const CLUSTER: Duration = Duration::from_secs(600);

/// One value with its key and lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub key: String,
    pub value: Vec<u8>,
    pub keep: Duration,
}

/// How keys and values are encoded.
#[derive(Clone, Debug)]
pub struct Format {
    /// The prefix of every key (`ARGOCD_REDIS_KEY_PREFIX`).
    pub prefix: String,
    pub compress: bool,
    /// Lifetime of an Application's values.
    pub keep: Duration,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            compress: true,
            keep: Duration::from_secs(3600),
        }
    }
}

impl Format {
    /// The values of an Application, by its instance name.
    pub fn application(
        &self,
        instance: &str,
        managed: &[ResourceDiff],
        tree: &ApplicationTree,
    ) -> Vec<Item> {
        let mut sorted: Vec<&ResourceDiff> = managed.iter().collect();
        sorted.sort_by_key(|d| (&d.group, &d.kind, &d.namespace, &d.name));
        let managed = self.item(&managed_name(instance), &sorted, self.keep);
        [managed]
            .into_iter()
            .chain(self.tree(instance, tree))
            .collect()
    }

    /// The values of its tree alone.
    pub fn tree(&self, instance: &str, tree: &ApplicationTree) -> Vec<Item> {
        let shards = shards(tree);
        let items = shards
            .iter()
            .enumerate()
            .map(|(number, shard)| self.item(&tree_name(instance, number), shard, self.keep));
        items.collect()
    }

    /// The keys to delete with an Application.
    pub fn gone(&self, instance: &str) -> [String; 2] {
        [managed_name(instance), tree_name(instance, 0)].map(|name| self.key(&name))
    }

    pub fn cluster(&self, server: &str, info: &ClusterInfo) -> Item {
        self.item(&cluster_name(server), info, CLUSTER)
    }

    pub(super) fn managed_key(&self, instance: &str) -> String {
        self.key(&managed_name(instance))
    }

    pub(super) fn tree_key(&self, instance: &str, shard: usize) -> String {
        self.key(&tree_name(instance, shard))
    }

    pub(super) fn cluster_key(&self, server: &str) -> String {
        self.key(&cluster_name(server))
    }

    /// A value as it was written. Unpacks as much as [`LARGEST`], so it may take a while.
    ///
    /// # Errors
    /// It is not in this format, or too large.
    pub(super) fn read<T: DeserializeOwned>(&self, value: &[u8]) -> io::Result<T> {
        let mut json = Vec::new();
        let bytes = if self.compress {
            GzDecoder::new(value)
                .take(LARGEST + 1)
                .read_to_end(&mut json)?;
            json.as_slice()
        } else {
            value
        };
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
            let too_large = format!("a value has more than {LARGEST} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, too_large));
        }
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The key of a value.
    pub(super) fn key(&self, name: &str) -> String {
        format!(
            "{}{name}|{VERSION}{}",
            self.prefix,
            if self.compress { ".gz" } else { "" }
        )
    }

    fn item(&self, name: &str, value: &impl Serialize, keep: Duration) -> Item {
        let mut json = serde_json::to_vec(value).expect("plain data can be written as JSON");
        json.push(b'\n');
        let value = if self.compress { gzip(&json) } else { json };
        Item {
            key: self.key(name),
            value,
            keep,
        }
    }
}

/// The channel that announces new values of an Application; prefix and compression do not affect
/// it.
pub fn channel(instance: &str) -> String {
    format!("{}|{VERSION}", managed_name(instance))
}

/// The channels of all Applications, as a pattern.
pub fn channels() -> String {
    channel("*")
}

/// The Application that a channel is of.
pub fn announced(channel: &str) -> Option<&str> {
    let rest = channel.strip_prefix(CHANNEL)?;
    rest.strip_suffix(VERSION)?.strip_suffix('|')
}

fn cluster_name(server: &str) -> String {
    format!("cluster|info|{server}")
}

fn managed_name(instance: &str) -> String {
    format!("{CHANNEL}{instance}")
}

fn tree_name(instance: &str, shard: usize) -> String {
    let first = format!("app|resources-tree|{instance}");
    if shard == 0 {
        first
    } else {
        format!("{first}|{shard}")
    }
}

/// The bytes, compressed.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("compressing into memory does not fail")
}

/// The bytes that were compressed, of which there may be so many.
pub(super) fn gunzip(packed: &[u8], largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(packed)
        .take(largest + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read <= largest) {
        return Ok(bytes);
    }
    Err(io::Error::other(format!(
        "it has more than {largest} bytes"
    )))
}

/// How many pieces a tree has, by its first one.
///
/// # Errors
/// It cannot have so many.
pub fn pieces(first: &ApplicationTree) -> io::Result<usize> {
    let count = first.shards_count.max(1);
    let count = usize::try_from(count).ok().filter(|_| count <= MOST_SHARDS);
    count.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a tree has too many pieces"))
}

/// The tree of these pieces.
pub fn joined(pieces: Vec<ApplicationTree>) -> ApplicationTree {
    let mut pieces = pieces.into_iter();
    let mut tree = pieces.next().unwrap_or_default();
    for piece in pieces {
        tree.nodes.extend(piece.nodes);
        tree.orphaned_nodes.extend(piece.orphaned_nodes);
        tree.hosts.extend(piece.hosts);
    }
    tree
}

/// A tree split into pieces; the first one contains their number.
fn shards(tree: &ApplicationTree) -> Vec<ApplicationTree> {
    let full = |n: &ResourceNode| {
        let r = &n.resource_ref;
        format!("{}/{}/{}/{}", r.group, r.kind, r.namespace, r.name)
    };
    let (mut nodes, mut orphans, mut hosts) = (
        tree.nodes.clone(),
        tree.orphaned_nodes.clone(),
        tree.hosts.clone(),
    );
    nodes.sort_by_cached_key(full);
    orphans.sort_by_cached_key(full);
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    let mut shards = vec![ApplicationTree {
        unreadable_kinds: tree.unreadable_kinds.clone(),
        ..ApplicationTree::default()
    }];
    let mut room = SHARD;
    let mut next = |shards: &mut Vec<ApplicationTree>| {
        if room == 0 {
            shards.push(ApplicationTree::default());
            room = SHARD;
        }
        room -= 1;
        shards.len() - 1
    };
    for node in nodes {
        let at = next(&mut shards);
        shards[at].nodes.push(node);
    }
    for node in orphans {
        let at = next(&mut shards);
        shards[at].orphaned_nodes.push(node);
    }
    for host in hosts {
        let at = next(&mut shards);
        shards[at].hosts.push(host);
    }
    let empty = shards.len() == 1 && shards[0] == ApplicationTree::default();
    shards[0].shards_count = if empty {
        0
    } else {
        i64::try_from(shards.len()).unwrap_or(i64::MAX)
    };
    shards
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tiphys_api::resource::UnreadableKind;

    fn read(item: &Item) -> Value {
        let mut text = String::new();
        GzDecoder::new(item.value.as_slice())
            .read_to_string(&mut text)
            .expect("gzip");
        assert!(text.ends_with('\n'));
        serde_json::from_str(&text).expect("JSON")
    }

    fn tree(nodes: usize) -> ApplicationTree {
        let node = |n: usize| json!({"kind": "Pod", "version": "v1", "namespace": "n", "name": format!("p{n:04}")});
        let nodes: Vec<Value> = (0..nodes).rev().map(node).collect();
        serde_json::from_value(
            json!({"nodes": nodes, "orphanedNodes": [node(9999)], "hosts": [{"name": "h"}]}),
        )
        .expect("a tree")
    }

    #[test]
    fn keys_and_values_are_argo_cds() {
        let diff = |name: &str| ResourceDiff {
            kind: "ConfigMap".into(),
            name: name.into(),
            ..Default::default()
        };
        let format = Format::default();
        let items = format.application("team_web", &[diff("b"), diff("a")], &tree(1));
        let alone = format.tree("team_web", &tree(1));
        let of_tree = items[1..].iter().map(|item| &item.key);
        assert!(alone.iter().map(|item| &item.key).eq(of_tree));
        assert_eq!(
            items.iter().map(|i| i.key.as_str()).collect::<Vec<_>>(),
            [
                "app|managed-resources|team_web|1.8.3.gz",
                "app|resources-tree|team_web|1.8.3.gz"
            ]
        );
        assert_eq!(
            read(&items[0]).pointer("/0/name"),
            Some(&json!("a")),
            "in the order of their names"
        );
        assert_eq!(
            (channel("web"), items[0].keep.as_secs()),
            ("app|managed-resources|web|1.8.3".to_owned(), 3600)
        );
        let plain = Format {
            prefix: "x:".into(),
            compress: false,
            ..Format::default()
        };
        let item = plain.cluster(
            "https://c",
            &ClusterInfo {
                server_version: "1.36".into(),
                ..Default::default()
            },
        );
        assert_eq!(
            (item.key.as_str(), item.keep.as_secs()),
            ("x:cluster|info|https://c|1.8.3", 600)
        );
        assert_eq!(
            serde_json::from_slice::<Value>(&item.value).expect("JSON")["serverVersion"],
            "1.36"
        );
        assert_eq!(
            plain.gone("web"),
            [
                "x:app|managed-resources|web|1.8.3",
                "x:app|resources-tree|web|1.8.3"
            ]
        );
    }

    #[test]
    fn a_value_unpacks_to_so_much_at_most() {
        let packed = gzip(&[b'x'; 1000]);
        assert_eq!(gunzip(&packed, 1000).expect("small").len(), 1000);
        assert!(gunzip(&packed, 999).is_err());
        assert!(gunzip(b"no gzip", 1000).is_err());
    }

    #[test]
    fn what_is_written_can_be_read() {
        for compress in [true, false] {
            let format = Format {
                compress,
                ..Format::default()
            };
            let items = format.application("web", &[], &tree(150));
            let read = items[1..]
                .iter()
                .map(|item| format.read(&item.value).expect("it can be read"));
            let read: Vec<ApplicationTree> = read.collect();
            assert_eq!(pieces(&read[0]).expect("a number"), read.len());
            let whole = joined(read);
            assert_eq!(
                (
                    whole.nodes.len(),
                    whole.orphaned_nodes.len(),
                    whole.hosts.len()
                ),
                (150, 1, 1)
            );
            assert!(format.read::<ApplicationTree>(b"no value").is_err());
        }
        let many = ApplicationTree {
            shards_count: i64::MAX,
            ..ApplicationTree::default()
        };
        assert!(pieces(&many).is_err());
        assert_eq!(announced(&channel("team_web")), Some("team_web"));
        assert_eq!(announced("app|managed-resources|web|1.0.0"), None);
    }

    #[test]
    fn what_could_not_be_read_is_kept() {
        let mut before = tree(200);
        before.unreadable_kinds = vec![UnreadableKind {
            kind: "Pod".into(),
            ..Default::default()
        }];
        let after = joined(shards(&before));
        assert_eq!(after.unreadable_kinds, before.unreadable_kinds);
    }

    #[test]
    fn large_trees_are_in_pieces() {
        for (nodes, pieces) in [(0, 1), (98, 1), (99, 2), (198, 2), (199, 3)] {
            let items = Format::default().application("web", &[], &tree(nodes));
            let trees = &items[1..];
            assert_eq!(trees.len(), pieces, "{nodes} nodes, an orphan and a host");
            assert_eq!(read(&trees[0])["shardsCount"], json!(pieces));
            let count = |value: Value| {
                ["nodes", "orphanedNodes", "hosts"]
                    .map(|f| value[f].as_array().map_or(0, Vec::len))
                    .iter()
                    .sum::<usize>()
            };
            assert_eq!(
                trees.iter().map(|t| count(read(t))).sum::<usize>(),
                nodes + 2
            );
        }
        let items = Format::default().application("web", &[], &tree(101));
        assert_eq!(items[2].key, "app|resources-tree|web|1|1.8.3.gz");
        let empty = Format::default().application("web", &[], &ApplicationTree::default());
        assert_eq!(
            (empty.len(), read(&empty[0]), read(&empty[1])),
            (2, json!([]), json!({}))
        );
    }
}
