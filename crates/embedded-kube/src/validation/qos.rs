//! The QoS class of a pod, which decides how it is treated when its node runs out of memory. Main
//! function: [`quality_of_service`].

use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::quantity::Quantity;

/// The resources that decide the class.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

type Amounts = BTreeMap<&'static str, Quantity>;

/// The QoS class of a pod: by its pod-level resources if it has any, else by those of all its
/// containers.
pub fn quality_of_service(pod: &Object) -> &'static str {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut guaranteed = true;
    match pod.pointer("/spec/resources") {
        Some(own) => {
            count(own, "requests", &mut requests);
            let limited = count(own, "limits", &mut limits);
            guaranteed = own["limits"]
                .as_object()
                .is_none_or(serde_json::Map::is_empty)
                || limited == COMPUTE.len();
        }
        None => {
            let lists = ["/spec/containers", "/spec/initContainers"];
            for container in lists
                .iter()
                .filter_map(|list| pod.pointer(list)?.as_array())
                .flatten()
            {
                count(&container["resources"], "requests", &mut requests);
                guaranteed &=
                    count(&container["resources"], "limits", &mut limits) == COMPUTE.len();
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the positive quantities; returns how many there were.
fn count(resources: &Value, kind: &str, to: &mut Amounts) -> usize {
    let amount = |name: &&'static str| {
        Some((
            *name,
            resources[kind]
                .get(*name)?
                .as_str()?
                .parse::<Quantity>()
                .ok()?,
        ))
    };
    let some: Vec<(&str, Quantity)> = COMPUTE
        .iter()
        .filter_map(amount)
        .filter(|(_, q)| q.as_f64() > 0.0)
        .collect();
    for (name, quantity) in &some {
        let sum = to.get(name).map_or(*quantity, |held| held.plus(quantity));
        to.insert(name, sum);
    }
    some.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class(spec: Value) -> &'static str {
        quality_of_service(&Object::from_value(json!({"spec": spec})).expect("an object"))
    }

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
        let of = |resources: Value| json!({"containers": [{"resources": resources}]});
        assert_eq!(class(of(json!({}))), "BestEffort");
        assert_eq!(
            class(of(
                json!({"requests": both("0", "0"), "limits": {"example.com/x": "1"}})
            )),
            "BestEffort"
        );
        assert_eq!(
            class(of(
                json!({"requests": both("1", "1Gi"), "limits": both("1000m", "1Gi")})
            )),
            "Guaranteed"
        );
        assert_eq!(
            class(of(
                json!({"requests": both("1", "1Gi"), "limits": both("2", "1Gi")})
            )),
            "Burstable"
        );
        assert_eq!(
            class(of(
                json!({"requests": both("1", "1Gi"), "limits": {"cpu": "1"}})
            )),
            "Burstable"
        );
        let halves =
            |a: Value, b: Value| json!({"containers": [{"resources": a}, {"resources": b}]});
        let whole = json!({"requests": both("1", "1Gi"), "limits": both("1", "1Gi")});
        assert_eq!(class(halves(whole.clone(), whole.clone())), "Guaranteed");
        assert_eq!(class(halves(whole.clone(), json!({}))), "Burstable");
        assert_eq!(
            class(json!({"containers": [{}], "resources": whole})),
            "Guaranteed"
        );
        assert_eq!(
            class(json!({"containers": [{"resources": whole}], "resources": {}})),
            "BestEffort"
        );
    }
}
