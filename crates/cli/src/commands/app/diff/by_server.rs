//! Differences by the API server's own dry runs: many objects, sent in a few requests at a time.
//! Main function: [`differences`].

use super::{Matched, Pair, object};
use crate::{
    client::{Client, Failure},
    commands::app::AppRef,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tiphys_api::{
    Application,
    resource::ResourceDiff,
    rpc::application::{ApplicationServerSideDiffQuery, ApplicationServerSideDiffResponse},
};

/// How many requests there are, and how large they are.
#[derive(clap::Args, Clone, Copy)]
pub struct Batches {
    /// How many requests of a Server-Side Diff are open at a time, -1 for all
    #[arg(
        long = "server-side-diff-concurrency",
        value_name = "NUMBER",
        default_value_t = -1,
        allow_negative_numbers = true
    )]
    concurrency: i64,
    /// How many KB of manifests a request of a Server-Side Diff has; a larger object goes alone
    #[arg(
        long = "server-side-diff-max-batch-kb",
        value_name = "KB",
        default_value_t = 250
    )]
    kilobytes: usize,
}

impl Batches {
    pub fn check(&self) -> Result<(), Failure> {
        if self.concurrency == 0 {
            return Err(Failure::error(
                "invalid value for --server-side-diff-concurrency: 0 is not allowed (use -1 for unlimited, or a positive number to limit concurrency)",
            ));
        }
        Ok(())
    }
}

/// One object as it is sent.
struct Sent {
    matched: Matched,
    live: ResourceDiff,
    target: String,
}

impl Sent {
    fn new(matched: Matched) -> Self {
        let key = &matched.key;
        let live = ResourceDiff {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            live_state: if matched.managed.is_null() {
                String::new()
            } else {
                matched.managed.to_string()
            },
            ..ResourceDiff::default()
        };
        Self {
            live,
            target: matched.target.clone().into_value().to_string(),
            matched,
        }
    }

    fn size(&self) -> usize {
        self.live.live_state.len() + self.target.len()
    }
}

/// The objects that a sync would change.
pub async fn differences(
    client: &Client,
    (app, app_ref): (&Application, &AppRef),
    matched: Vec<Matched>,
    batches: Batches,
) -> Result<Vec<Pair>, Failure> {
    let asked = split(matched, batches.kilobytes.saturating_mul(1024))
        .into_iter()
        .map(|batch| ask(client, app, app_ref, batch));
    let at_a_time = usize::try_from(batches.concurrency).unwrap_or(usize::MAX);
    let found: Vec<Vec<Pair>> = stream::iter(asked)
        .buffered(at_a_time)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Each batch has at most this size, or one object.
fn split(matched: Vec<Matched>, size: usize) -> Vec<Vec<Sent>> {
    let (mut batches, mut filled) = (Vec::<Vec<Sent>>::new(), 0);
    for sent in matched.into_iter().map(Sent::new) {
        let own = sent.size();
        match batches.last_mut() {
            Some(batch) if filled + own <= size => {
                filled += own;
                batch.push(sent);
            }
            _ => {
                filled = own;
                batches.push(vec![sent]);
            }
        }
    }
    batches
}

async fn ask(
    client: &Client,
    app: &Application,
    app_ref: &AppRef,
    batch: Vec<Sent>,
) -> Result<Vec<Pair>, Failure> {
    let (mut all, mut live, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    for sent in batch {
        all.push(sent.matched);
        live.push(sent.live);
        targets.push(sent.target);
    }
    let query = ApplicationServerSideDiffQuery {
        app_name: app_ref.name.clone(),
        app_namespace: Some(app_ref.namespace.clone()).filter(|n| !n.is_empty()),
        project: Some(app.spec.project.clone()).filter(|project| !project.is_empty()),
        live_resources: live,
        target_manifests: targets,
    };
    let answer: ApplicationServerSideDiffResponse = client
        .unary("/application.ApplicationService/ServerSideDiff", query)
        .await?;
    if answer.items.len() != all.len() {
        return Err(Failure::error(format!(
            "the server compared {} of {} resources",
            answer.items.len(),
            all.len()
        )));
    }
    let mut pairs = Vec::new();
    for (item, matched) in answer.items.into_iter().zip(all) {
        if item.modified {
            pairs.push(Pair {
                live: object(&item.live_state)?,
                target: object(&item.target_state)?,
                key: matched.key,
                managed: matched.managed,
            });
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tiphys_apimachinery::{Object, key::ResourceKey};

    #[test]
    fn a_batch_is_full_or_has_one_object() {
        let matched = |length: usize| {
            let text = "x".repeat(length);
            let target = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": text}});
            Matched {
                key: ResourceKey::new("", "A", "", &text),
                target: Object::from_value(target).expect("a map"),
                live: None,
                managed: Value::Null,
            }
        };
        let own = Sent::new(matched(0)).size();
        let sizes = |lengths: &[usize], size: usize| -> Vec<usize> {
            let all = lengths.iter().map(|l| matched(*l)).collect();
            split(all, size).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[], 100), Vec::<usize>::new());
        assert_eq!(sizes(&[10, 10, 10], 2 * (own + 10)), [2, 1]);
        assert_eq!(sizes(&[10, 900, 10], 2 * (own + 10)), [1, 1, 1]);
        assert_eq!(sizes(&[1, 1, 1], 0), [1, 1, 1]);
    }
}
