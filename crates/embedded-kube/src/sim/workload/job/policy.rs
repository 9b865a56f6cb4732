//! The policies of a Job: for failed pods (`podFailurePolicy`) and for successful indexes
//! (`successPolicy`).

use super::super::super::fields::text;
use super::indexes;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_apimachinery::Object;

/// The action for a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureAction {
    Count,
    Ignore,
    FailIndex,
    /// With the message for the Job's condition.
    FailJob(String),
}

/// The first rule of the policy that a failed pod matches decides.
pub fn judge(job: &Object, pod: &Object) -> FailureAction {
    let rules = job
        .pointer("/spec/podFailurePolicy/rules")
        .and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let Some(what) = matched(rule, pod) else {
            continue;
        };
        return match text(rule, "action") {
            "Ignore" => FailureAction::Ignore,
            "FailIndex" => FailureAction::FailIndex,
            "FailJob" => {
                FailureAction::FailJob(format!("{what} matching FailJob rule at index {index}"))
            }
            _ => FailureAction::Count,
        };
    }
    FailureAction::Count
}

/// The description of what a rule matches in a pod.
fn matched(rule: &Value, pod: &Object) -> Option<String> {
    let place = format!("{}/{}", pod.namespace(), pod.name());
    if let Some(codes) = rule.get("onExitCodes") {
        let (name, code) = ended(pod).find(|(name, code)| codes_match(codes, name, *code))?;
        return Some(format!(
            "Container {name} for pod {place} failed with exit code {code}"
        ));
    }
    let patterns: Vec<&Value> = rule.get("onPodConditions")?.as_array()?.iter().collect();
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    let same = |c: &&Value| {
        patterns
            .iter()
            .any(|p| text(p, "type") == text(c, "type") && text(p, "status") == text(c, "status"))
    };
    conditions
        .iter()
        .find(same)
        .map(|c| format!("Pod {place} has condition {}", text(c, "type")))
}

/// Names and exit codes of the containers that ended with an error.
fn ended(pod: &Object) -> impl Iterator<Item = (&str, i64)> {
    let lists = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let statuses = lists
        .into_iter()
        .filter_map(|l| pod.pointer(l)?.as_array())
        .flatten();
    let code = |s: &Value| {
        s.pointer("/state/terminated/exitCode")
            .and_then(Value::as_i64)
    };
    statuses
        .filter_map(move |s| Some((text(s, "name"), code(s)?)))
        .filter(|(_, code)| *code != 0)
}

fn codes_match(codes: &Value, name: &str, code: i64) -> bool {
    let named = text(codes, "containerName");
    let listed = codes
        .get("values")
        .and_then(Value::as_array)
        .is_some_and(|l| l.iter().any(|v| v.as_i64() == Some(code)));
    (named.is_empty() || named == name) && listed == (text(codes, "operator") == "In")
}

/// The message of the first rule of the success policy that the succeeded indexes satisfy.
pub fn success(job: &Object, succeeded: &BTreeSet<i64>) -> Option<String> {
    let rules = job.pointer("/spec/successPolicy/rules")?.as_array()?;
    let meets = |rule: &Value| {
        let wanted = rule
            .get("succeededIndexes")
            .and_then(Value::as_str)
            .map(indexes::parse);
        let have = wanted
            .as_ref()
            .map_or(succeeded.len(), |w| w.intersection(succeeded).count());
        let enough = rule
            .get("succeededCount")
            .and_then(Value::as_u64)
            .is_some_and(|n| have as u64 >= n);
        enough || wanted.is_some_and(|w| have == w.len())
    };
    rules
        .iter()
        .position(meets)
        .map(|index| format!("Matched rules at index {index}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let pod = object(
            json!({"metadata": {"namespace": "n", "name": "p"}, "status": {
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"terminated": {"exitCode": 3}}}],
            }}),
        );
        let exit = |operator: &str, values: Value, name: Value| json!({"onExitCodes": {"operator": operator, "values": values, "containerName": name}});
        let disrupted =
            json!({"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
        let verdict = |mut rule: Value, action: &str| {
            rule["action"] = action.into();
            judge(
                &object(json!({"spec": {"podFailurePolicy": {"rules": [rule]}}})),
                &pod,
            )
        };
        assert_eq!(
            verdict(exit("In", json!([3]), json!(null)), "Ignore"),
            FailureAction::Ignore
        );
        assert_eq!(
            verdict(exit("In", json!([3]), json!("a")), "Ignore"),
            FailureAction::Count
        );
        assert_eq!(
            verdict(exit("NotIn", json!([3]), json!(null)), "FailIndex"),
            FailureAction::Count
        );
        assert_eq!(
            verdict(exit("NotIn", json!([4]), json!("b")), "FailIndex"),
            FailureAction::FailIndex
        );
        let message = "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0";
        assert_eq!(
            verdict(disrupted, "FailJob"),
            FailureAction::FailJob(message.into())
        );
        let message =
            "Container b for pod n/p failed with exit code 3 matching FailJob rule at index 0";
        assert_eq!(
            verdict(exit("In", json!([3]), json!(null)), "FailJob"),
            FailureAction::FailJob(message.into())
        );
    }

    #[test]
    fn a_success_policy_wants_indexes_or_a_number_of_them() {
        for (rules, have, want) in [
            (json!([{"succeededCount": 2}]), "0,4", Some(0)),
            (json!([{"succeededCount": 3}]), "0,4", None),
            (json!([{"succeededIndexes": "0-2"}]), "0-2,7", Some(0)),
            (
                json!([{"succeededIndexes": "0-2"}, {"succeededIndexes": "1-2", "succeededCount": 1}]),
                "2",
                Some(1),
            ),
            (
                json!([{"succeededIndexes": "0-2", "succeededCount": 2}]),
                "2,5,6",
                None,
            ),
        ] {
            let job = object(json!({"spec": {"successPolicy": {"rules": rules}}}));
            let want = want.map(|i: usize| format!("Matched rules at index {i}"));
            assert_eq!(success(&job, &indexes::parse(have)), want, "{rules} {have}");
        }
    }
}
