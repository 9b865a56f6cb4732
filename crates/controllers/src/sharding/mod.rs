//! Assigns clusters to controller replicas: every cluster is in one shard, distributed as in Argo
//! CD.
//!
//! Main type: [`Distribution`]. Pure. Clusters are in the same shards as in Argo CD 3.6, so that
//! one of its replicas can be replaced by one of ours. It does not know which replica holds a
//! shard.

mod ring;

use ring::Ring;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use tiphys_cluster::leases::Weights;
use tiphys_gocompat::fnv::hash32a;

/// How clusters are distributed over shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// By a hash of the cluster's id: it never moves, but the shards may have very different sizes.
    #[default]
    Legacy,
    /// By rank among all ids: even, but a new cluster moves all later ones.
    RoundRobin,
    /// A hash ring on which a shard with too many Applications is skipped: nearly even, and few
    /// clusters move.
    ConsistentHashing,
    /// Tiphys's own: every Application separately, so that one large cluster is shared by several
    /// replicas.
    ByApplication,
}

impl Method {
    const ALL: [Self; 4] = [
        Self::Legacy,
        Self::RoundRobin,
        Self::ConsistentHashing,
        Self::ByApplication,
    ];

    /// `None`: unknown method.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::RoundRobin => "round-robin",
            Self::ConsistentHashing => "consistent-hashing",
            Self::ByApplication => "by-application",
        }
    }
}

/// The part of a cluster that determines its shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The UID of its Secret; empty for the cluster that we run in if it has none.
    pub id: String,
    pub server: String,
    /// The shard set in the Secret.
    pub shard: Option<i64>,
}

/// The shard of every cluster, by server, or of every Application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    shards: HashMap<String, usize>,
    /// The number of shards over which Applications are distributed, except those of the clusters
    /// above.
    apart: Option<Apart>,
}

/// How Applications are distributed separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    pub weights: Weights,
    /// The previous weights, which other replicas may still use: an Application that moved since
    /// belongs to no one for now.
    pub before: Option<Weights>,
}

impl Distribution {
    /// `applications`: the number of Applications per destination server.
    pub fn new(
        method: Method,
        shards: usize,
        members: &[Member],
        applications: &HashMap<String, u64>,
    ) -> Self {
        let shards = shards.max(1);
        // Several clusters with one id, such as those without a Secret, count as one.
        let by_id: BTreeMap<&str, &Member> = members.iter().map(|m| (m.id.as_str(), m)).collect();
        let spread: HashMap<&str, usize> = match method {
            Method::Legacy => by_id.keys().map(|id| (*id, legacy(id, shards))).collect(),
            Method::RoundRobin => by_id
                .keys()
                .enumerate()
                .map(|(rank, id)| (*id, rank % shards))
                .collect(),
            Method::ConsistentHashing => {
                let mut ring = Ring::new(shards);
                let load = |m: &Member| applications.get(&m.server).copied().unwrap_or_default();
                by_id
                    .values()
                    .map(|m| (m.id.as_str(), ring.take(&m.id, load(m))))
                    .collect()
            }
            Method::ByApplication => HashMap::new(),
        };
        let shard = |m: &Member| match m.shard {
            // A shard that does not exist is replaced by the first.
            Some(asked) => Some(
                usize::try_from(asked)
                    .ok()
                    .filter(|s| *s < shards)
                    .unwrap_or(0),
            ),
            None => spread.get(m.id.as_str()).copied(),
        };
        let shards_of = members
            .iter()
            .filter_map(|m| Some((m.server.clone(), shard(m)?)))
            .collect();
        let apart = || Apart {
            weights: Weights::equal(shards),
            before: None,
        };
        Self {
            shards: shards_of,
            apart: (method == Method::ByApplication).then(apart),
        }
    }

    /// With unequal weights, if Applications are distributed separately.
    pub fn weighted(self, apart: Apart) -> Self {
        Self {
            apart: self.apart.map(|_| apart),
            ..self
        }
    }

    /// The shard of an Application (`namespace/name`) in a cluster; `None` for a cluster that did
    /// not exist when this was computed.
    pub fn shard(&self, server: &str, application: &str) -> Option<usize> {
        self.shards
            .get(server)
            .copied()
            .or_else(|| self.apart.as_ref()?.shard(application))
    }
}

impl Apart {
    fn shard(&self, application: &str) -> Option<usize> {
        let hash = |shard: usize| {
            let digest = Sha256::digest(format!("{shard}\n{application}"));
            u64::from_be_bytes(std::array::from_fn(|i| digest[i]))
        };
        let shard = self.weights.pick(hash);
        self.before
            .as_ref()
            .is_none_or(|before| before.pick(hash) == shard)
            .then_some(shard)
    }
}

/// 32-bit FNV-1a of the id, modulo the number of shards.
fn legacy(id: &str, shards: usize) -> usize {
    if id.is_empty() {
        return 0;
    }
    hash32a(id.bytes()) as usize % shards
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, shard: Option<i64>) -> Member {
        Member {
            id: id.to_owned(),
            server: format!("https://{id}"),
            shard,
        }
    }

    fn shards(method: Method, count: usize, members: &[Member]) -> Vec<Option<usize>> {
        let distribution = Distribution::new(method, count, members, &HashMap::new());
        members
            .iter()
            .map(|m| distribution.shard(&m.server, "argocd/a"))
            .collect()
    }

    /// The shards in Argo CD 3.6.0: blocks of the number of replicas, clusters as
    /// `id=applications`, and the shard of each by method. Printed by its distribution functions,
    /// with golang.org/x/crypto's BLAKE2b instead of an assembly implementation of the hash.
    #[test]
    fn c96_clusters_land_where_argo_cd_puts_them() {
        let mut compared = 0;
        for block in include_str!("../../tests/sharding/argocd-3.6.txt")
            .split("\n\n")
            .filter(|b| !b.trim().is_empty())
        {
            let lines: HashMap<&str, &str> = block
                .lines()
                .filter_map(|line| line.rsplit_once(": "))
                .collect();
            let count = lines["replicas"].parse().expect("a number");
            let clusters: Vec<(&str, u64)> = lines["clusters"]
                .split(' ')
                .map(|c| c.split_once('=').expect("="))
                .map(|(id, n)| (id, n.parse().expect("a number")))
                .collect();
            let members: Vec<Member> = clusters.iter().map(|(id, _)| member(id, None)).collect();
            let loads: HashMap<String, u64> = clusters
                .iter()
                .map(|(id, n)| (format!("https://{id}"), *n))
                .collect();
            let runs = [
                ("legacy", Method::Legacy, &loads),
                ("round-robin", Method::RoundRobin, &loads),
                ("consistent-hashing", Method::ConsistentHashing, &loads),
                (
                    "without applications",
                    Method::ConsistentHashing,
                    &HashMap::new(),
                ),
            ];
            for (name, method, loads) in runs {
                let distribution = Distribution::new(method, count, &members, loads);
                let got: Vec<String> = members
                    .iter()
                    .map(|m| {
                        distribution
                            .shard(&m.server, "argocd/a")
                            .expect("a member")
                            .to_string()
                    })
                    .collect();
                assert_eq!(
                    got.join(" "),
                    lines[name],
                    "{name} of {} clusters over {count}",
                    members.len()
                );
                compared += got.len();
            }
        }
        assert!(compared > 3000, "{compared}");
    }

    #[test]
    fn c97_a_secrets_word_counts_where_there_is_such_a_shard() {
        // Ids and shards are those of Argo CD's tests of five replicas.
        let members = [
            member("1", None),
            member("2", None),
            member("3", None),
            member("4", Some(4)),
            member("5", Some(5)),
            member("6", Some(-1)),
        ];
        assert_eq!(
            shards(Method::Legacy, 5, &members),
            [4, 1, 2, 4, 0, 0].map(Some)
        );
        for method in [Method::RoundRobin, Method::ConsistentHashing] {
            assert_eq!(
                shards(method, 5, &members)[3..],
                [4, 0, 0].map(Some),
                "{method:?}"
            );
        }
        assert_eq!(shards(Method::RoundRobin, 1, &members), [0; 6].map(Some));
    }

    #[test]
    fn the_own_cluster_without_a_secret_is_first() {
        let own = Member {
            server: "https://kubernetes.default.svc".to_owned(),
            ..Member::default()
        };
        let members = [member("b", None), own, member("a", None)];
        assert_eq!(shards(Method::Legacy, 3, &members)[1], Some(0));
        assert_eq!(shards(Method::RoundRobin, 3, &members), [2, 0, 1].map(Some));
        assert_eq!(
            Distribution::new(Method::Legacy, 3, &members, &HashMap::new())
                .shard("https://other", "argocd/a"),
            None
        );
    }

    #[test]
    fn applications_are_spread_by_themselves_where_no_shard_is_told() {
        let members = [member("told", Some(1)), member("any", None)];
        let of = |shards: usize, server: &str| {
            let distribution =
                Distribution::new(Method::ByApplication, shards, &members, &HashMap::new());
            (0..4000)
                .map(|n| {
                    distribution
                        .shard(server, &format!("argocd/app-{n}"))
                        .expect("a shard")
                })
                .collect::<Vec<_>>()
        };
        assert!(of(4, "https://told").iter().all(|shard| *shard == 1));
        let (four, five) = (of(4, "https://any"), of(5, "https://any"));
        for shard in 0..4 {
            let count = four.iter().filter(|s| **s == shard).count();
            assert!(
                (900..1100).contains(&count),
                "shard {shard} has {count} of 4000"
            );
        }
        let moved = four
            .iter()
            .zip(&five)
            .filter(|(a, b)| a != b)
            .collect::<Vec<_>>();
        let (weights, before) = (
            Weights::parse("1 0.5 1 1", 4).expect("weights"),
            Some(Weights::equal(4)),
        );
        let shares = |before: Option<Weights>| {
            let apart = Apart {
                weights: weights.clone(),
                before,
            };
            let distribution =
                Distribution::new(Method::ByApplication, 4, &members, &HashMap::new())
                    .weighted(apart);
            (0..4000)
                .map(|n| distribution.shard("https://any", &format!("argocd/app-{n}")))
                .collect::<Vec<_>>()
        };
        let (now, settling) = (shares(None), shares(before));
        let second = now.iter().filter(|s| **s == Some(1)).count();
        assert!((500..650).contains(&second), "{second}");
        for ((old, new), meanwhile) in four.iter().zip(&now).zip(&settling) {
            assert_eq!(
                *meanwhile,
                new.filter(|new| new == old),
                "nobody's until all know"
            );
        }
        assert!(
            (700..900).contains(&moved.len()) && moved.iter().all(|(_, to)| **to == 4),
            "{} moved",
            moved.len()
        );
    }

    #[test]
    fn methods_have_argo_cds_names() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.as_str()), Some(method));
        }
        assert_eq!(Method::parse("Legacy"), None);
    }
}
