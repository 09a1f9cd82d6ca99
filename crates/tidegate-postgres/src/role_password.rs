//! Passwords of login roles. They are derived from the master key and never stored.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

type HmacSha256 = Hmac<Sha256>;

/// The password of a login role: base64url of HMAC-SHA256 over the role's name and generation.
///
/// The password is derived whenever a connection is opened. Each generation has another password.
pub fn role_password(master: &[u8; 32], role: &str, generation: u32) -> String {
    let tag = hmac(
        master,
        &[
            b"tidegate role password\0",
            role.as_bytes(),
            b"\0",
            &generation.to_be_bytes(),
        ],
    );
    URL_SAFE_NO_PAD.encode(tag)
}

/// The SCRAM verifier of a password (PostgreSQL, `pg_authid.rolpassword`; RFC 5802 section 3) with
/// one iteration.
///
/// One iteration is enough, although 4,096 are usual. More iterations only slow down guessing, and
/// a password of [`role_password`] has 256 bits and cannot be guessed.
pub fn scram_verifier(password: &str, salt: &[u8; 16]) -> String {
    let salted = hmac(password.as_bytes(), &[salt, &1_u32.to_be_bytes()]);
    let client_key = hmac(&salted, &[b"Client Key"]);
    let stored_key = Sha256::digest(client_key);
    let server_key = hmac(&salted, &[b"Server Key"]);
    format!(
        "SCRAM-SHA-256$1:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored_key),
        STANDARD.encode(server_key)
    )
}

/// Whether `verifier`, made by [`scram_verifier`], was made from this password.
pub fn verifies(verifier: &str, password: &str) -> bool {
    let salt = verifier
        .strip_prefix("SCRAM-SHA-256$1:")
        .and_then(|rest| rest.split_once('$'))
        .and_then(|(salt, _)| STANDARD.decode(salt).ok())
        .and_then(|salt| <[u8; 16]>::try_from(salt).ok());
    salt.is_some_and(|salt| scram_verifier(password, &salt) == verifier)
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = HmacSha256::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_another_password_per_generation_and_master_key() {
        let one = role_password(&[1; 32], "demo/alice", 1);
        assert_eq!(one.len(), 43);
        assert_eq!(one, role_password(&[1; 32], "demo/alice", 1));
        assert_ne!(one, role_password(&[1; 32], "demo/alice", 2));
        assert_ne!(one, role_password(&[2; 32], "demo/alice", 1));
        assert_ne!(one, role_password(&[1; 32], "demo/alic", 1));
    }

    #[test]
    fn the_verifier_has_one_iteration_and_the_given_salt() {
        let verifier = scram_verifier("secret", &[7; 16]);
        assert!(
            verifier.starts_with("SCRAM-SHA-256$1:BwcHBwcHBwcHBwcHBwcHBw==$"),
            "{verifier}"
        );
        assert!(verifies(&verifier, "secret"));
        assert!(!verifies(&verifier, "secrets"));
        assert!(!verifies("md5d41d8cd98f00b204e9800998ecf8427e", "secret"));
    }
}
