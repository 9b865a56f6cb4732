//! Host names and addresses in a pod.

use super::super::rules::{At, Check};
use crate::status::Cause;
use tiphys_kube_schema::formats::{dns_subdomain, dns_subdomain_underscore, ip};

/// `dnsPolicy` and `dnsConfig`.
pub fn dns(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let (config, servers) = (spec.get("dnsConfig"), spec.get("dnsConfig.nameservers"));
    if spec.get("dnsPolicy").text() == "None" {
        if config.is_null() {
            causes.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            causes.push(
                servers
                    .required("must provide at least one DNS nameserver when `dnsPolicy` is None"),
            );
            return;
        }
    }
    if servers.len() > 3 {
        causes.push(servers.invalid("must not have more than 3 nameservers"));
    }
    servers
        .items()
        .iter()
        .for_each(|server| server.form(ip, causes));
    let searches = config.get("searches");
    if searches.len() > 32 {
        causes.push(searches.invalid("must not have more than 32 search paths"));
    }
    let items = searches.items();
    let length = items
        .iter()
        .map(|s| s.len() + 1)
        .sum::<usize>()
        .saturating_sub(1);
    if length > 2048 {
        causes.push(searches.invalid(
            "must not have more than 2048 characters (including spaces) in the search list",
        ));
    }
    for search in items.iter().filter(|s| s.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        causes.extend(
            dns_subdomain_underscore(name)
                .iter()
                .map(|p| search.invalid_as(name, p)),
        );
    }
    for option in config.get("options").items() {
        causes.extend(
            option
                .get("name")
                .is_empty()
                .then(|| option.required("must not be empty")),
        );
    }
}

/// `hostnameOverride`.
pub fn host_name(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let name = spec.get("hostnameOverride");
    if name.is_null() {
        return;
    }
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.get(other).is_true() {
            causes.push(name.forbidden(&format!("may not be specified when {other} is true")));
        }
    }
    name.check(&[Check::MaxBytes(64)], causes);
    name.form(dns_subdomain, causes);
}

/// `hostAliases`.
pub fn host_aliases(spec: &At<'_>, causes: &mut Vec<Cause>) {
    for alias in spec.get("hostAliases").items() {
        alias.get("ip").form(ip, causes);
        alias
            .get("hostnames")
            .items()
            .iter()
            .for_each(|name| name.form(dns_subdomain, causes));
    }
}
