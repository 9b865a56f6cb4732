//! Signed statements of an identity, by which it proves itself.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};

/// A JSON web token (RS256). `key` is the PEM text of an RSA key.
///
/// # Errors
/// What is wrong with the key, without its content.
pub(super) fn signed(claims: &Value, key_id: &str, key: &str) -> Result<String, String> {
    let found = rustls_pemfile::private_key(&mut key.as_bytes())
        .ok()
        .flatten();
    let pair = match &found {
        Some(PrivateKeyDer::Pkcs1(der)) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
        Some(PrivateKeyDer::Pkcs8(der)) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
        Some(_) => return Err("the private key is no RSA key".to_owned()),
        None => return Err("the private key is no PEM text".to_owned()),
    };
    let pair = pair.map_err(|e| format!("the private key cannot be used: {e}"))?;
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if !key_id.is_empty() {
        header["kid"] = json!(key_id);
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let content = format!("{}.{}", part(&header), part(claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        content.as_bytes(),
        &mut signature,
    )
    .map_err(|_| "the private key cannot sign".to_owned())?;
    Ok(format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
