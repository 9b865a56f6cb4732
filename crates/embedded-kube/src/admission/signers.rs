//! Certificate requests: who may approve and sign them, and which identities they must not request.
//! Main function: [`check`].

use super::{Objects, Request, refusal};
use crate::rbac::{Attributes, Policy};
use crate::status::Status;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tiphys_apimachinery::Object;

const GROUP: &str = "certificates.k8s.io";
const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";
/// The DER-encoded identifier of the organization name.
const ORGANIZATION: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x0a];

pub fn check(request: &Request<'_>, objects: Objects<'_>) -> Result<(), Status> {
    let Some(new) = objects
        .new
        .filter(|_| request.resource.is(GROUP, "certificatesigningrequests"))
    else {
        return Ok(());
    };
    let old = objects.old.unwrap_or(new);
    let signer = old.str_at("/spec/signerName");
    let changed = ["/status/certificate", "/status/conditions"]
        .iter()
        .any(|part| old.pointer(part) != new.pointer(part));
    let refuse = |why: String| Err(refusal(request, objects, &why));
    match request.subresource {
        "approval" if !may(request, "approve", signer) => refuse(format!(
            "user not permitted to approve requests with signerName {signer:?}"
        )),
        "status" if changed && !may(request, "sign", signer) => refuse(format!(
            "user not permitted to sign requests with signerName {signer:?}"
        )),
        "" if new.str_at("/spec/signerName") == API_CLIENT && is_of_masters(new) => refuse(
            format!("use of {API_CLIENT} signer with {MASTERS} group is not allowed"),
        ),
        _ => Ok(()),
    }
}

/// Whether the user may use this signer, or all signers of its domain.
fn may(request: &Request<'_>, verb: &str, signer: &str) -> bool {
    let policy = Policy::read(request.cluster, &Policy::default());
    let domain = signer.split('/').next().unwrap_or("");
    [signer.to_owned(), format!("{domain}/*")]
        .into_iter()
        .any(|name| {
            let (group, resource) = (GROUP.to_owned(), "signers".to_owned());
            let asked = Attributes {
                is_resource: true,
                verb: verb.to_owned(),
                group,
                resource,
                name,
                ..Attributes::default()
            };
            policy.authorize(&request.sender.user, &asked).0
        })
}

/// Whether the certificate request is for an organization that is the group with full access.
fn is_of_masters(object: &Object) -> bool {
    let text = STANDARD
        .decode(object.str_at("/spec/request"))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let body: String = text
        .lines()
        .filter(|line| !line.starts_with("-----") && !line.contains(':'))
        .map(str::trim)
        .collect();
    let request = STANDARD.decode(body).unwrap_or_default();
    // The name follows as a type, a length and that many characters.
    let is_name = |rest: &[u8]| {
        rest.get(1)
            .is_some_and(|n| rest.get(2..2 + usize::from(*n)) == Some(MASTERS.as_bytes()))
    };
    let mut places = request
        .windows(ORGANIZATION.len())
        .enumerate()
        .filter(|(_, window)| *window == ORGANIZATION);
    places.any(|(at, _)| is_name(&request[at + ORGANIZATION.len()..]))
}
