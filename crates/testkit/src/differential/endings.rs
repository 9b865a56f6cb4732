//! Watches that a server ends in the middle of a script. Main function: [`level`].

use super::{
    normalise::is_periodic,
    play::Reply,
    script::{Script, Step, Watch},
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

/// A real server ends the watches of a custom kind about a second after its CRD changed. How many
/// events come before that depends on how fast the script is played: only those that both servers
/// sent are kept.
pub fn level(script: &Script, one: &mut [Reply], other: &mut [Reply]) {
    for (index, step) in script.steps.iter().enumerate() {
        let Some(Watch::Drain(of)) = step.watch else {
            continue;
        };
        let Some((start, after)) = script.steps.get(of..index).and_then(<[Step]>::split_first)
        else {
            continue;
        };
        let (Some(one), Some(other)) = (one.get_mut(index), other.get_mut(index)) else {
            continue;
        };
        if after
            .iter()
            .any(|step| changes_definition(step, &start.path))
        {
            for reply in [&mut *one, &mut *other] {
                reply.events.retain(|event| !is_periodic(event));
            }
            let both = one.events.len().min(other.events.len());
            one.events.truncate(both);
            other.events.truncate(both);
        }
    }
}

/// Whether a step writes the CRD of the kind whose collection is at this path.
fn changes_definition(step: &Step, path: &str) -> bool {
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (Some(group), Some(plural)) = (words.get(1), words.last()) else {
        return false;
    };
    let written = step
        .path
        .strip_prefix(DEFINITIONS)
        .map(|rest| rest.split('/').next().unwrap_or_default());
    matches!(step.method.as_str(), "PUT" | "PATCH") && written == Some(&format!("{plural}.{group}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_watches_of_a_changed_kind_are_cut() {
        let step = |method: &str, path: &str, watch: Option<Watch>| Step {
            method: method.into(),
            path: path.into(),
            watch,
            ..Step::default()
        };
        let gizmos = "/apis/${ns}.example.com/v1/namespaces/${ns}/gizmos";
        let steps = vec![
            step("", gizmos, Some(Watch::Start)),
            step("", "/api/v1/pods", Some(Watch::Start)),
            step(
                "PATCH",
                &format!("{DEFINITIONS}gizmos.${{ns}}.example.com"),
                None,
            ),
            step("", gizmos, Some(Watch::Start)),
            step("", "", Some(Watch::Drain(0))),
            step("", "", Some(Watch::Drain(1))),
            step("", "", Some(Watch::Drain(3))),
        ];
        let script = Script {
            steps,
            ..Script::default()
        };
        let replies = |events: usize| {
            vec![
                Reply {
                    events: vec![json!({}); events],
                    ..Reply::default()
                };
                script.steps.len()
            ]
        };
        let (mut real, mut ours) = (replies(1), replies(2));
        real[4]
            .events
            .push(json!({"type": "BOOKMARK", "object": {}}));
        level(&script, &mut real, &mut ours);
        let left: Vec<usize> = ours.iter().map(|reply| reply.events.len()).collect();
        assert_eq!(left, [2, 2, 2, 2, 1, 2, 2]);
    }
}
