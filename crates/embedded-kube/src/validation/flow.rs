//! API priority and fairness, and controller revisions.

use super::rules::{At, Check};
use crate::status::Cause;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
const MAX_BITS: u32 = 60;

pub fn schema(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (precedence, method, level) = (
        spec.get("matchingPrecedence"),
        spec.get("distinguisherMethod.type"),
        spec.get("priorityLevelConfiguration.name"),
    );
    match precedence.int().unwrap_or(0) {
        n if n <= 0 => causes.push(precedence.invalid_as(n, "must be a positive value")),
        n if n > MAX_PRECEDENCE => {
            causes.push(precedence.invalid(&format!("must not be greater than {MAX_PRECEDENCE}")))
        }
        1 if object.name() != "exempt" => {
            causes.push(
                precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1"),
            );
        }
        _ => {}
    }
    let whole = spec.get("distinguisherMethod");
    if !whole.is_null() && !matches!(method.text(), "ByNamespace" | "ByUser") {
        let shown = tiphys_kube_schema::gotypes::internal(
            whole.value,
            "flowcontrol/v1.FlowDistinguisherMethod",
        );
        let message =
            format!("Unsupported value: {shown}: supported values: \"ByNamespace\", \"ByUser\"");
        causes.push(Cause {
            reason: "FieldValueNotSupported",
            message,
            field: method.path.clone(),
        });
    }
    level.check(
        &[
            Check::Required("must reference a priority level"),
            Check::Form(formats::dns_subdomain),
        ],
        causes,
    );
    for rule in spec.get("rules").items() {
        let subjects = rule.get("subjects");
        subjects.check(
            &[Check::Required("subjects must contain at least one value")],
            causes,
        );
        subjects.items().iter().for_each(|one| subject(one, causes));
        let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
        if resources.is_empty() && others.is_empty() {
            causes.push(rule.required(
                "at least one of resourceRules and nonResourceRules has to be non-empty",
            ));
        }
        resources
            .items()
            .iter()
            .for_each(|one| resource_rule(one, causes));
        others
            .items()
            .iter()
            .for_each(|one| other_rule(one, causes));
    }
}

const SUBJECTS: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];

fn subject(subject: &At<'_>, causes: &mut Vec<Cause>) {
    let kind = subject.get("kind");
    let Some((name, field)) = SUBJECTS.iter().find(|(name, _)| *name == kind.text()) else {
        return causes.push(kind.not_supported(&["Group", "ServiceAccount", "User"]));
    };
    let own = subject.get(field);
    if own.is_null() {
        causes.push(own.required(&format!(
            "{field} is required when subject kind is '{name}'"
        )));
    } else {
        let (who, namespace) = (own.get("name"), own.get("namespace"));
        who.check(&[Check::Required("")], causes);
        if *field == "serviceAccount" {
            if who.text() != "*" {
                who.check(&[Check::Form(formats::dns_subdomain)], causes);
            }
            namespace.check(
                &[
                    Check::Required("must specify namespace for service account"),
                    Check::Form(formats::dns_label),
                ],
                causes,
            );
        }
    }
    let order = match *field {
        "serviceAccount" => ["user", "group"],
        "user" => ["serviceAccount", "group"],
        _ => ["serviceAccount", "user"],
    };
    for other in order
        .map(|f| (f, subject.get(f)))
        .iter()
        .filter(|(_, at)| !at.is_null())
    {
        let wanted = SUBJECTS
            .iter()
            .find(|(_, f)| *f == other.0)
            .map_or("", |(name, _)| name);
        causes.push(other.1.forbidden(&format!(
            "{} is forbidden when subject kind is not '{wanted}'",
            other.0
        )));
    }
}

/// Checks that a list is not empty, and that the star is its only element.
fn starred(list: &At<'_>, empty: &str, others: &str, causes: &mut Vec<Cause>) -> bool {
    let star = list.items().iter().any(|one| one.text() == "*");
    if list.is_empty() {
        causes.push(list.required(empty));
    } else if list.len() > 1 && star {
        causes.push(list.invalid(&format!(
            "if '*' is present, must not specify other {others}"
        )));
    }
    star
}

fn verbs(list: &At<'_>, causes: &mut Vec<Cause>) {
    let star = starred(
        list,
        "verbs must contain at least one value",
        "verbs",
        causes,
    );
    if !star
        && list
            .items()
            .iter()
            .any(|verb| !VERBS.contains(&verb.text()))
    {
        causes.push(list.not_supported(VERBS));
    }
}

fn resource_rule(rule: &At<'_>, causes: &mut Vec<Cause>) {
    let [groups, resources, namespaces] =
        ["apiGroups", "resources", "namespaces"].map(|f| rule.get(f));
    verbs(&rule.get("verbs"), causes);
    starred(
        &groups,
        "resource rules must supply at least one api group",
        "api groups",
        causes,
    );
    starred(
        &resources,
        "resource rules must supply at least one resource",
        "resources",
        causes,
    );
    if namespaces.is_empty() && !rule.get("clusterScope").is_true() {
        causes.push(namespaces.required(
            "resource rules that are not cluster scoped must supply at least one namespace",
        ));
    } else if !namespaces.is_empty() && !starred(&namespaces, "", "namespaces", causes) {
        for namespace in namespaces.items() {
            let problems = formats::dns_label(namespace.text());
            let intro = "each member of this list must be '*' or a DNS-1123 label; ";
            causes.extend(
                problems
                    .iter()
                    .map(|p| namespace.invalid(&format!("{intro}{p}"))),
            );
        }
    }
}

fn other_rule(rule: &At<'_>, causes: &mut Vec<Cause>) {
    verbs(&rule.get("verbs"), causes);
    let urls = rule.get("nonResourceURLs");
    if starred(
        &urls,
        "nonResourceURLs must contain at least one value",
        "non-resource URLs",
        causes,
    ) {
        return;
    }
    for url in urls.items() {
        let text = url.text();
        let problem = match text {
            "" => Some("must not be empty"),
            "/" => None,
            _ if !text.starts_with('/') => Some("must start with slash"),
            _ if text.contains(' ') => Some("must not contain white-space"),
            _ if text.contains("//") => Some("must not contain double slash"),
            _ if text.trim_end_matches('*').contains('*')
                || (text.ends_with('*') && !text.ends_with("/*")) =>
            {
                Some("wildcard can only do suffix matching")
            }
            _ => None,
        };
        causes.extend(problem.map(|detail| url.invalid(detail)));
    }
}

pub fn priority_level(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (object.name() == "exempt") != (kind.text() == "Exempt") {
        causes.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match kind.text() {
        "Exempt" => {
            causes.extend(
                (!limited.is_null())
                    .then(|| limited.forbidden("must be nil if the type is not Limited")),
            );
            if !exempt.is_null() {
                shares(&exempt, causes);
                percent(&exempt, causes);
            }
        }
        "Limited" => {
            causes.extend(
                (!exempt.is_null()).then(|| exempt.forbidden("must be nil if the type is Limited")),
            );
            match limited.is_null() {
                true => causes.push(limited.required("must not be empty when type is Limited")),
                false => self::limited(&limited, causes),
            }
        }
        "" => causes.push(kind.required("")),
        _ => causes.push(kind.not_supported(&["Exempt", "Limited"])),
    }
}

fn shares(at: &At<'_>, causes: &mut Vec<Cause>) {
    let shares = at.get("nominalConcurrencyShares");
    causes.extend(
        shares
            .int()
            .is_some_and(|n| n < 0)
            .then(|| shares.invalid("must be a non-negative integer")),
    );
}

fn percent(at: &At<'_>, causes: &mut Vec<Cause>) {
    at.get("lendablePercent")
        .check(&[Check::Between(0, 100)], causes);
}

fn limited(at: &At<'_>, causes: &mut Vec<Cause>) {
    shares(at, causes);
    let (kind, queuing) = (
        at.get("limitResponse.type"),
        at.get("limitResponse.queuing"),
    );
    match kind.text() {
        "Reject" if !queuing.is_null() => {
            causes.push(
                queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"),
            );
        }
        "Queue" if queuing.is_null() => causes
            .push(queuing.required("must not be empty if limited.limitResponse.type is Limited")),
        "Queue" => queues(&queuing, causes),
        "Reject" => {}
        "" => causes.push(kind.required("")),
        _ => causes.push(kind.not_supported(&["Queue", "Reject"])),
    }
    percent(at, causes);
    let borrowing = at.get("borrowingLimitPercent");
    causes.extend(
        borrowing
            .int()
            .is_some_and(|n| n < 0)
            .then(|| borrowing.invalid("if specified, must be a non-negative integer")),
    );
}

fn queues(at: &At<'_>, causes: &mut Vec<Cause>) {
    let (length, queues, hand) = (
        at.get("queueLengthLimit"),
        at.get("queues"),
        at.get("handSize"),
    );
    let [n_length, n_queues, n_hand] = [&length, &queues, &hand].map(|f| f.int().unwrap_or(0));
    causes.extend((n_length <= 0).then(|| length.invalid_as(n_length, "must be positive")));
    match n_queues {
        n if n <= 0 => causes.push(queues.invalid_as(n, "must be positive")),
        n if n > MAX_QUEUES => {
            causes.push(queues.invalid(&format!("must not be greater than {MAX_QUEUES}")))
        }
        _ => {}
    }
    let bits = entropy(n_queues, n_hand);
    if n_hand <= 0 {
        causes.push(hand.invalid_as(n_hand, "must be positive"));
    } else if n_hand > n_queues {
        causes.push(hand.invalid(&format!("should not be greater than queues ({n_queues})")));
    } else if bits > MAX_BITS {
        let detail = format!(
            "required entropy bits of deckSize {n_queues} and handSize {n_hand} should not be greater than {MAX_BITS}"
        );
        causes.push(hand.invalid(&detail));
    }
}

/// The number of bits needed to deal a hand of queues.
fn entropy(deck: i64, hand: i64) -> u32 {
    let bits = (deck as f64).log2() * hand as f64;
    if bits.is_finite() && bits > 0.0 {
        bits.ceil() as u32
    } else {
        0
    }
}

pub fn status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let items = At::of(object, old, "status").get("conditions").items();
    for (i, condition) in items.iter().enumerate() {
        let kind = condition.get("type");
        causes.extend(
            items[..i]
                .iter()
                .any(|before| before.get("type").value == kind.value)
                .then(|| kind.duplicate()),
        );
        kind.check(&[Check::Required("")], causes);
    }
}

pub fn controller_revision(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    At::of(object, old, "revision").check(&[Check::AtLeast(0)], causes);
    let data = At::of(object, old, "data");
    if old.is_none() && !data.value.is_object() {
        causes.push(data.required(if data.is_null() {
            "data is mandatory"
        } else {
            "data must be a valid JSON object"
        }));
    }
    causes.extend(
        data.is_changed()
            .then(|| data.invalid_as(data.value.clone(), "field is immutable")),
    );
}
