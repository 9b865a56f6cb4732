//! Passwords and encryption.
//!
//! Main function: [`table`]. Each call is expensive and charged accordingly, so that a render can
//! make only a few hundred.

use super::args::{Out, fails, string};
use super::encodings::base64_decoded;
use super::{Host, Sources};
use crate::template::{Call, Error, Function, Type, UintKind};
use aes::Aes256;
use base64::{Engine, engine::general_purpose::STANDARD};
use cbc::cipher::{
    BlockDecryptMut, BlockEncryptMut, KeyIvInit, block_padding::NoPadding, block_padding::Pkcs7,
};
use hmac::{Hmac, Mac};
use sha2::Sha256;

const TWO: &[Type] = &[Type::String, Type::String];
/// The bcrypt cost: the binary logarithm of the number of rounds.
const COST: u32 = 10;
/// Steps charged for a deliberately slow hash.
const SLOW: u64 = 1_000_000;
const BLOCK: usize = 16;

pub(super) const fn table<H: Host>() -> [(&'static str, Function); 5] {
    const DERIVED: &[Type] = &[
        Type::Uint(UintKind::Uint32),
        Type::String,
        Type::String,
        Type::String,
        Type::String,
    ];
    [
        (
            "bcrypt",
            Function::new(&[Type::String], |call| Ok(hashed::<H>(call, 0)?.into())),
        ),
        ("htpasswd", Function::new(TWO, htpasswd::<H>)),
        ("encryptAES", Function::new(TWO, encrypt::<H>)),
        ("decryptAES", Function::new(TWO, decrypt)),
        ("derivePassword", Function::new(DERIVED, derive)),
    ]
}

/// The bcrypt hash of an argument, or Go's error.
fn hashed<H: Host>(call: &mut Call<'_>, index: usize) -> Result<String, Error> {
    call.budget().steps(SLOW)?;
    let password = call.string(index)?.clone();
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
                .to_owned(),
        );
    }
    let salt = sixteen(call.host::<H>()?.sources());
    match bcrypt::hash_with_salt(&password, COST, salt) {
        Ok(parts) => Ok(parts.format_for_version(bcrypt::Version::TwoA)),
        Err(e) => Ok(format!("failed to encrypt string with bcrypt: {e}")),
    }
}

fn sixteen(sources: &mut Sources) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    sources.fill(&mut bytes);
    bytes
}

fn htpasswd<H: Host>(call: &mut Call<'_>) -> Out {
    let name = call.text(0)?.into_owned();
    if name.contains(':') {
        return Ok(format!("invalid username: {name}").into());
    }
    Ok(format!("{name}:{}", hashed::<H>(call, 1)?).into())
}

/// The first 32 bytes of a password, padded with zeros.
fn key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    let len = password.len().min(32);
    key[..len].copy_from_slice(&password[..len]);
    key
}

fn encrypt<H: Host>(call: &mut Call<'_>) -> Out {
    let (key, text) = (key(call.string(0)?.as_bytes()), call.string(1)?.clone());
    if text.is_empty() {
        return Ok("".into());
    }
    call.budget().memory(text.len().saturating_mul(3))?;
    let iv = sixteen(call.host::<H>()?.sources());
    let sealed = cbc::Encryptor::<Aes256>::new(&key.into(), &iv.into())
        .encrypt_padded_vec_mut::<Pkcs7>(text.as_bytes());
    string(call.budget(), STANDARD.encode([&iv[..], &sealed].concat()))
}

fn decrypt(call: &mut Call<'_>) -> Out {
    let (key, text) = (key(call.string(0)?.as_bytes()), call.string(1)?);
    if text.is_empty() {
        return Ok("".into());
    }
    call.budget().memory(text.len())?;
    let sealed = base64_decoded(text.as_bytes()).map_err(Error::function)?;
    let Some((iv, sealed)) = sealed.split_first_chunk::<BLOCK>() else {
        return fails(format!(
            "runtime error: slice bounds out of range [:16] with capacity {}",
            text.len() / 4 * 3
        ));
    };
    let cipher = cbc::Decryptor::<Aes256>::new(&key.into(), iv.into());
    let Ok(mut opened) = cipher.decrypt_padded_vec_mut::<NoPadding>(sealed) else {
        return fails("crypto/cipher: input not full blocks");
    };
    let Some(padding) = opened.last().copied().map(usize::from) else {
        return fails("runtime error: index out of range [-1]");
    };
    let Some(len) = opened.len().checked_sub(padding) else {
        return fails(format!(
            "runtime error: slice bounds out of range [:{}]",
            opened.len() as i64 - padding as i64
        ));
    };
    opened.truncate(len);
    string(call.budget(), opened)
}

const SEED: &str = "com.lyndir.masterpassword";

/// The templates of a kind of password: each letter stands for one of a set of characters.
fn shapes(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(letter: u8) -> &'static [u8] {
    match letter {
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The scheme of masterpassword.app: derives a password from counter, kind, password, user and
/// site.
fn derive(call: &mut Call<'_>) -> Out {
    let crate::template::Value::Uint(_, counter) = *call.arg(0) else {
        return fails("the counter is no number");
    };
    let kind = call.text(1)?;
    let Some(shapes) = shapes(&kind) else {
        return Ok(format!("cannot find password template {kind}").into());
    };
    // Twice as slow, and it needs 32 MiB.
    call.budget().steps(2 * SLOW)?;
    let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    let (password, user, site) = (
        call.string(2)?.as_bytes(),
        call.string(3)?.as_bytes(),
        call.string(4)?.as_bytes(),
    );
    let salt = [SEED.as_bytes(), &length(user), user].concat();
    let mut key = [0; 64];
    let derived = scrypt::Params::new(15, 8, 2, key.len())
        .ok()
        .and_then(|p| scrypt::scrypt(password, &salt, &p, &mut key).ok());
    let mac = derived.and_then(|()| Hmac::<Sha256>::new_from_slice(&key).ok());
    let Some(mac) = mac else {
        return fails("failed to derive password");
    };
    let counter = u32::try_from(counter).unwrap_or(u32::MAX).to_be_bytes();
    let seed = mac
        .chain_update([SEED.as_bytes(), &length(site), site, &counter].concat())
        .finalize()
        .into_bytes();
    let shape = shapes[usize::from(seed[0]) % shapes.len()];
    let password: Vec<u8> = shape
        .bytes()
        .zip(&seed[1..])
        .map(|(letter, chance)| {
            let all = characters(letter);
            all[usize::from(*chance) % all.len()]
        })
        .collect();
    string(call.budget(), password)
}
