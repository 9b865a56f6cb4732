//! Node labels that were renamed after beta. Main function: [`same_affinity`].

use serde_json::Value;

const RENAMED: &[(&str, &str)] = &[
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
];

/// Whether a volume's affinity only changed by renaming labels to their current names. The real
/// server maps any other label to the empty one.
pub fn same_affinity(old: &Value, new: &Value) -> bool {
    let mut old = old.clone();
    let terms = old
        .pointer_mut("/required/nodeSelectorTerms")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for (n, term) in terms.enumerate() {
        for list in ["matchExpressions", "matchFields"] {
            let wanted = &new["required"]["nodeSelectorTerms"][n][list];
            for (n, requirement) in term
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
                .enumerate()
            {
                rename(requirement, &wanted[n]);
            }
        }
    }
    old == *new
}

fn rename(requirement: &mut Value, wanted: &Value) {
    let now = RENAMED
        .iter()
        .find(|(beta, _)| requirement["key"] == *beta)
        .map_or("", |(_, now)| now);
    let (Some(requirement), Some(wanted)) = (requirement.as_object_mut(), wanted.as_object())
    else {
        return;
    };
    match wanted.get("key") {
        Some(key) if key == now => drop(requirement.insert("key".into(), key.clone())),
        None if now.is_empty() => drop(requirement.remove("key")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_label_may_get_its_name_of_now() {
        let of = |key: &str, operator: &str| json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator}]}]}});
        let beta = of("beta.kubernetes.io/os", "Exists");
        assert!(same_affinity(&beta, &of("kubernetes.io/os", "Exists")));
        assert!(!same_affinity(
            &beta,
            &of("kubernetes.io/os", "DoesNotExist")
        ));
        assert!(
            !same_affinity(&beta, &of("kubernetes.io/arch", "Exists"))
                && !same_affinity(&beta, &of("", "Exists"))
        );
        assert!(
            same_affinity(&of("a", "Exists"), &of("", "Exists"))
                && !same_affinity(&of("a", "Exists"), &of("b", "Exists"))
        );
    }
}
