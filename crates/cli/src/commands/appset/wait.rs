//! `--wait` of `appset create` and `appset delete`.

use super::{get, restore};
use crate::client::{Client, Failure};
use std::time::Duration;
use tiphys_api::{ApplicationSet, application_set::ApplicationSetCondition, constants};

/// The controller answers a change within some milliseconds.
const AGAIN: Duration = Duration::from_millis(250);
const HELD: &str = "DeletionsNotConfirmed";

/// Asks the controller to look at a set; it takes the annotation away when it has done so.
pub fn ask(set: &mut ApplicationSet) {
    let annotations = &mut set.metadata.annotations;
    let refresh = constants::APPLICATION_SET_REFRESH.to_owned();
    annotations.insert(refresh, "true".to_owned());
}

/// Waits until the Applications of a set are as it wants, for ever if there are errors, as in
/// `argocd`. Deletions that wait are approved, if that is `allowed`.
///
/// # Errors
/// If deletions wait for a confirmation, or the set is deleted.
pub async fn up_to_date(
    client: &Client,
    set: &ApplicationSet,
    allowed: bool,
) -> Result<(), Failure> {
    loop {
        let m = &set.metadata;
        let set = get(client, m.namespace.clone(), m.name.clone()).await?;
        let asked = &set.metadata.annotations;
        if !asked.contains_key(constants::APPLICATION_SET_REFRESH) {
            match judged(&set.status.conditions) {
                Judged::UpToDate => return Ok(()),
                Judged::Held(_) if allowed => drop(restore::confirm(client, set).await?),
                Judged::Held(message) => return Err(Failure::error(message)),
                Judged::Other => {}
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

#[derive(Debug, PartialEq)]
enum Judged {
    UpToDate,
    Held(String),
    Other,
}

fn judged(conditions: &[ApplicationSetCondition]) -> Judged {
    let holds = |type_: &str| {
        let mut found = conditions.iter();
        found.find(|c| c.type_ == type_ && c.status == "True")
    };
    if holds("ResourcesUpToDate").is_some() {
        return Judged::UpToDate;
    }
    match holds("ErrorOccurred").filter(|c| c.reason == HELD) {
        Some(held) => Judged::Held(held.message.clone()),
        None => Judged::Other,
    }
}

/// Waits until a set is gone.
pub async fn gone(client: &Client, namespace: &str, name: &str) -> Result<(), Failure> {
    loop {
        match get(client, namespace.to_owned(), name.to_owned()).await {
            Ok(_) => tokio::time::sleep(AGAIN).await,
            Err(e) if e.status == Some(tonic::Code::NotFound) => return Ok(()),
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_judged() {
        let condition = |type_: &str, status: &str, reason: &str| ApplicationSetCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "why".to_owned(),
            last_transition_time: None,
        };
        let cases = [
            (vec![], Judged::Other),
            (
                vec![condition("ResourcesUpToDate", "True", "x")],
                Judged::UpToDate,
            ),
            (
                vec![condition("ResourcesUpToDate", "False", "x")],
                Judged::Other,
            ),
            (
                vec![condition("ErrorOccurred", "True", HELD)],
                Judged::Held("why".to_owned()),
            ),
            (
                vec![condition("ErrorOccurred", "False", HELD)],
                Judged::Other,
            ),
            (vec![condition("ErrorOccurred", "True", "x")], Judged::Other),
        ];
        for (conditions, expected) in cases {
            assert_eq!(judged(&conditions), expected, "{conditions:?}");
        }
    }
}
