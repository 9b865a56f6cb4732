//! The fields that the definitions of Argo CD require, and what they require of values: with the
//! same definitions, what one accepts the other accepts too. Main function: [`constrain`].

use serde_json::{Value, json};

/// The last parts of a path in the schema, with the fields that are required there. `[]` stands for
/// the items of a list. A rule is for objects that have all of the fields.
const REQUIRED: [(&str, &[&str]); 70] = [
    // Applications, and the templates of ApplicationSets.
    ("spec", &["destination", "project"]),
    ("source", &["repoURL"]),
    ("sources[]", &["repoURL"]),
    ("jsonnet.extVars[]", &["name", "value"]),
    ("jsonnet.tlas[]", &["name", "value"]),
    ("kustomize.replicas[]", &["count", "name"]),
    ("plugin.env[]", &["name", "value"]),
    ("ignoreDifferences[]", &["kind"]),
    ("info[]", &["name", "value"]),
    ("sourceHydrator", &["drySource", "syncSource"]),
    ("drySource", &["path", "repoURL", "targetRevision"]),
    ("hydrateTo", &["targetBranch"]),
    ("syncSource", &["path", "targetBranch"]),
    ("sync.resources[]", &["kind", "name"]),
    // What controllers write.
    ("status.conditions[]", &["message", "type"]),
    (
        "status.conditions[]",
        &["message", "reason", "status", "type"],
    ),
    ("history[]", &["deployedAt", "id"]),
    ("operationState", &["operation", "phase", "startedAt"]),
    ("syncResult", &["revision"]),
    (
        "syncResult.resources[]",
        &["group", "kind", "name", "namespace", "version"],
    ),
    ("currentOperation", &["message", "phase"]),
    ("status.sync", &["status"]),
    ("comparedTo", &["destination"]),
    (
        "applicationStatus[]",
        &[
            "application",
            "message",
            "status",
            "step",
            "targetRevisions",
        ],
    ),
    // Projects.
    ("clusterResourceBlacklist[]", &["group", "kind"]),
    ("clusterResourceWhitelist[]", &["group", "kind"]),
    ("namespaceResourceBlacklist[]", &["group", "kind"]),
    ("namespaceResourceWhitelist[]", &["group", "kind"]),
    (
        "destinationServiceAccounts[]",
        &["defaultServiceAccount", "server"],
    ),
    ("roles[]", &["name"]),
    ("jwtTokens[]", &["iat"]),
    ("jwtTokensByRole.*.items[]", &["iat"]),
    ("signatureKeys[]", &["keyID"]),
    ("sourceIntegrity", &["git"]),
    ("sourceIntegrity.git", &["policies"]),
    ("git.policies[]", &["gpg", "repos"]),
    ("policies[].gpg", &["keys", "mode"]),
    ("policies[].repos[]", &["url"]),
    // ApplicationSets.
    ("spec", &["generators", "template"]),
    ("spec.template", &["metadata", "spec"]),
    ("selector.matchExpressions[]", &["key", "operator"]),
    ("labelSelector.matchExpressions[]", &["key", "operator"]),
    ("clusterDecisionResource", &["configMapRef"]),
    ("git", &["repoURL", "revision"]),
    ("git.directories[]", &["path"]),
    ("git.files[]", &["path"]),
    ("matrix", &["generators"]),
    ("merge", &["generators", "mergeKeys"]),
    ("plugin", &["configMapRef"]),
    ("plugin.configMapRef", &["name"]),
    ("tokenRef", &["key", "secretName"]),
    ("passwordRef", &["key", "secretName"]),
    ("accessTokenRef", &["key", "secretName"]),
    ("appPasswordRef", &["key", "secretName"]),
    ("caRef", &["configMapName", "key"]),
    ("basicAuth", &["passwordRef", "username"]),
    ("bearerToken", &["tokenRef"]),
    (
        "pullRequest.azuredevops",
        &["organization", "project", "repo"],
    ),
    ("pullRequest.bitbucket", &["owner", "repo"]),
    ("pullRequest.bitbucketServer", &["api", "project", "repo"]),
    ("pullRequest.gitea", &["api", "owner", "repo"]),
    ("pullRequest.github", &["owner", "repo"]),
    ("pullRequest.gitlab", &["project"]),
    ("awsCodeCommit.tagFilters[]", &["key"]),
    (
        "scmProvider.azureDevOps",
        &["accessTokenRef", "organization", "teamProject"],
    ),
    (
        "scmProvider.bitbucket",
        &["appPasswordRef", "owner", "user"],
    ),
    ("scmProvider.bitbucketServer", &["api", "project"]),
    ("scmProvider.gitea", &["api", "owner"]),
    ("scmProvider.github", &["organization"]),
    ("scmProvider.gitlab", &["group"]),
];

/// Adds the rules to the schema of Argo CD's kinds.
pub fn constrain(schema: &mut Value) {
    at(schema, "");
}

fn at(schema: &mut Value, path: &str) {
    if let Some(fields) = required(schema, path) {
        schema["required"] = json!(fields);
    }
    values(schema, path);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            at(property, &format!("{path}.{name}"));
        }
    }
    for (word, part) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(inner) = schema.get_mut(word) {
            at(inner, &format!("{path}{part}"));
        }
    }
}

/// Of the rules for a path, the one with the most fields holds.
fn required(schema: &Value, path: &str) -> Option<&'static [&'static str]> {
    let properties = schema["properties"].as_object()?;
    let holds = |(tail, fields): &&(&str, &'static [&'static str])| {
        ends_with(path, tail) && fields.iter().all(|field| properties.contains_key(*field))
    };
    let rules = REQUIRED.iter().filter(holds);
    let rule = rules.max_by_key(|(_, fields)| fields.len());
    rule.map(|(_, fields)| *fields)
}

/// Whether the path ends with these parts, as whole ones.
fn ends_with(path: &str, tail: &str) -> bool {
    path.strip_suffix(tail)
        .is_some_and(|before| before.ends_with('.'))
}

/// What values have to be.
fn values(schema: &mut Value, path: &str) {
    let is = |tail: &str| ends_with(path, tail);
    let rules = if is("syncSource.path") {
        // Neither the folder itself nor the one above it.
        json!({"minLength": 1, "pattern": r"^.{2,}|[^./]$"})
    } else if is("currentOperation.phase") {
        json!({"enum": ["Hydrating", "Failed", "Hydrated"]})
    } else if is("syncPolicy.applicationsSync") {
        json!({"enum": ["create-only", "create-update", "create-delete", "sync"]})
    } else if is("spec.description") {
        json!({"maxLength": 255})
    } else if is("helm.valuesObject") {
        json!({"type": "object"})
    } else {
        return;
    };
    if let (Some(schema), Value::Object(rules)) = (schema.as_object_mut(), rules) {
        schema.extend(rules);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_whole_parts_of_a_path() {
        assert!(ends_with(".spec.source", "source"));
        assert!(ends_with(".spec.sources[]", "sources[]"));
        assert!(!ends_with(".spec.dataSource", "source"));
        assert!(!ends_with(".spec.drysource", "source"));
    }
}
