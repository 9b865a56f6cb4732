//! Deprecated and removed API versions of built-in kinds.
//!
//! Main function: [`check`]. The table in deprecated.txt has one line for each: version, kind,
//! deprecated since, removed since, and replacement, as in k8s.io/api 0.36.1.

use crate::helm::KubeVersion;

const TABLE: &str = include_str!("deprecated.txt");

pub fn check(api_version: &str, kind: &str, kube: &KubeVersion) -> Result<(), String> {
    let Some(line) = TABLE
        .lines()
        .map(|line| line.splitn(5, ' ').collect::<Vec<_>>())
        .find(|l| l[0] == api_version && l[1] == kind)
    else {
        return Ok(());
    };
    let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
    let since = line[2]
        .split_once('.')
        .map_or((0, 0), |(major, minor)| (number(major), number(minor)));
    if since > (number(&kube.major), number(&kube.minor)) {
        return Ok(());
    }
    let mut text = format!("{api_version} {kind} is deprecated in v{}+", line[2]);
    if line[3] != "-" {
        text.push_str(&format!(", unavailable in v{}+", line[3]));
    }
    if let Some(instead) = line.get(4) {
        text.push_str(&format!("; use {instead}"));
    }
    Err(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_told() {
        let at = |version: &str| KubeVersion::parse(version).expect("a version");
        let told = check("extensions/v1beta1", "Ingress", &at("1.36")).expect_err("it is gone");
        assert_eq!(
            told,
            "extensions/v1beta1 Ingress is deprecated in v1.14+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress"
        );
        assert_eq!(check("extensions/v1beta1", "Ingress", &at("1.13")), Ok(()));
        assert_eq!(check("v1", "ConfigMap", &at("1.36")), Ok(()));
        assert!(TABLE.lines().all(|line| line.split(' ').count() >= 4));
    }
}
