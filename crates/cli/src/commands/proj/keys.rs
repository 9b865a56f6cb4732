//! `proj add-signature-key` and `remove-signature-key`.

use super::Change;
use crate::client::{ConnectArgs, Failure};
use tiphys_api::project::SignatureKey;

#[derive(clap::Subcommand)]
pub enum KeysCommand {
    /// Add GnuPG signature key to project
    AddSignatureKey {
        /// The project
        #[arg(value_name = "PROJECT")]
        name: String,
        #[arg(value_name = "KEY-ID")]
        key: String,
    },
    /// Remove GnuPG signature key from project
    RemoveSignatureKey {
        /// The project
        #[arg(value_name = "PROJECT")]
        name: String,
        #[arg(value_name = "KEY-ID")]
        key: String,
    },
}

/// What Argo CD's command line says of these verbs.
const DEPRECATED: &str = "deprecated, Managing project signature keys through CLI is deprecated, migrate to Source Integrity defined in AppProject manifest";

impl KeysCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let verb = match &self {
            Self::AddSignatureKey { .. } => "add-signature-key",
            Self::RemoveSignatureKey { .. } => "remove-signature-key",
        };
        eprintln!("Command {verb:?} is {DEPRECATED}");
        match self {
            Self::AddSignatureKey { name, key } => {
                short_id(&key).map_err(Failure::fatal)?;
                super::change(args, name, |p| add(&mut p.spec.signature_keys, key)).await
            }
            Self::RemoveSignatureKey { name, key } => {
                super::change(args, name, |p| remove(&mut p.spec.signature_keys, key)).await
            }
        }
    }
}

/// The 16 digits of a key's id, given them or the fingerprint that ends with them.
pub(super) fn short_id(key: &str) -> Result<&str, String> {
    match key.len() {
        16 | 40 if key.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(&key[key.len() - 16..]),
        _ => Err(format!("'{key}' is not a valid GnuPG key ID")),
    }
}

fn add(keys: &mut Vec<SignatureKey>, key: String) -> Result<Change, Failure> {
    let key = Some(key);
    if keys.iter().any(|known| known.key_id == key) {
        return Err(Failure::fatal(
            "Specified signature key is already defined in project",
        ));
    }
    keys.push(SignatureKey { key_id: key });
    Ok(Change::silent())
}

fn remove(keys: &mut Vec<SignatureKey>, key: String) -> Result<Change, Failure> {
    let key = Some(key);
    let index = keys.iter().position(|known| known.key_id == key);
    let index = index
        .ok_or_else(|| Failure::fatal("Specified signature key is not configured for project"))?;
    keys.remove(index);
    Ok(Change::silent())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ABCDEF0123456789";

    #[test]
    fn keys_are_there_once() {
        let mut keys = Vec::new();
        assert_eq!(add(&mut keys, KEY.into()).ok(), Some(Change::silent()));
        let twice = add(&mut keys, KEY.into()).map_err(|e| (e.code, e.message));
        let message = "Specified signature key is already defined in project";
        assert_eq!(twice, Err((1, message.to_owned())));
        assert_eq!(remove(&mut keys, KEY.into()).ok(), Some(Change::silent()));
        let again = remove(&mut keys, KEY.into()).map_err(|e| (e.code, e.message));
        let message = "Specified signature key is not configured for project";
        assert_eq!(again, Err((1, message.to_owned())));
        assert!(keys.is_empty());
    }

    #[test]
    fn ids_and_fingerprints() {
        let fingerprint = format!("0123456789ABCDEF01234567{KEY}");
        assert_eq!(short_id(&fingerprint), Ok(KEY));
        assert_eq!(short_id(KEY), Ok(KEY));
        for wrong in ["bad", "", "ABCDEF012345678Z", "ÄBCDEF01234567ä"] {
            let message = format!("'{wrong}' is not a valid GnuPG key ID");
            assert_eq!(short_id(wrong), Err(message));
        }
    }
}
