//! The measured controllers: Tiphys, and with `--beside` others, each of which already works on its
//! own cluster, in the same run. Main type: [`Subject`].

use super::process;
use anyhow::{Context, anyhow};
use std::{path::PathBuf, str::FromStr};
use tiphys_testkit::{Api, Tiphys};

/// A controller, its cluster, and its processes.
pub struct Subject {
    pub name: String,
    pub kube: Api,
    ids: Vec<u32>,
}

/// One that is already running, in the form of `--beside`: `NAME=KUBECONFIG:ID[,ID…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    name: String,
    kubeconfig: PathBuf,
    ids: Vec<u32>,
}

impl FromStr for Beside {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            let (name, rest) = text.split_once('=')?;
            let (kubeconfig, ids) = rest.rsplit_once(':')?;
            let ids = ids
                .split(',')
                .map(|id| id.parse().ok())
                .collect::<Option<Vec<_>>>()?;
            (!name.is_empty() && !kubeconfig.is_empty()).then(|| Self {
                name: name.to_owned(),
                kubeconfig: kubeconfig.into(),
                ids,
            })
        };
        parts().ok_or_else(|| {
            "expected NAME=KUBECONFIG:ID[,ID…], as in argocd=/tmp/kubeconfig:4711,4712".to_owned()
        })
    }
}

impl Subject {
    pub fn ours(tiphys: &Tiphys, kube: Api) -> Self {
        Self {
            name: "tiphys".to_owned(),
            kube,
            ids: vec![tiphys.id()],
        }
    }

    /// Ours, followed by the others.
    ///
    /// # Errors
    /// If a kubeconfig cannot be read.
    pub fn all(tiphys: &Tiphys, kube: Api, beside: &[Beside]) -> anyhow::Result<Vec<Self>> {
        let other = |b: &Beside| {
            let kube = Api::kubeconfig(&b.kubeconfig)
                .map_err(|e| anyhow!(e))
                .with_context(|| b.kubeconfig.display().to_string())?;
            Ok(Self {
                name: b.name.clone(),
                kube,
                ids: b.ids.clone(),
            })
        };
        std::iter::once(Ok(Self::ours(tiphys, kube)))
            .chain(beside.iter().map(other))
            .collect()
    }

    /// CPU time of all its processes so far.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        self.ids.iter().map(|id| process::cpu_seconds(*id)).sum()
    }

    /// The sum of the peak memory of its processes, which may peak at different times.
    pub fn peak_mebibytes(&self) -> anyhow::Result<f64> {
        self.ids.iter().map(|id| process::peak_mebibytes(*id)).sum()
    }
}

/// The ratio of the second to the first, as text; empty if the first is zero.
pub fn times(ours: f64, theirs: f64) -> String {
    if ours > 0.0 {
        format!("{:.1}x", theirs / ours)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_beside_is_named_with_its_cluster_and_its_processes() {
        let beside = Beside {
            name: "argocd".to_owned(),
            kubeconfig: "/tmp/k:1/config".into(),
            ids: vec![47, 11],
        };
        assert_eq!("argocd=/tmp/k:1/config:47,11".parse(), Ok(beside));
        for bad in [
            "",
            "argocd",
            "argocd=",
            "argocd=/tmp/k",
            "argocd=/tmp/k:",
            "argocd=/tmp/k:a",
            "=/tmp/k:1",
            "argocd=:1",
        ] {
            assert!(bad.parse::<Beside>().is_err(), "{bad}");
        }
    }
}
