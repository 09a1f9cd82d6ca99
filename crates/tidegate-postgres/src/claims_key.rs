//! The key that seals the claims of members, and the values that are computed with it.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384};

/// Sets the claims of a member for the current transaction. The parameters are the token
/// ([`ClaimsKey::token`], `bytea`), the head ([`claims_head`], `text`) and the claims (`text`, a
/// JSON object).
///
/// The setting `tidegate.claims` begins with a seal: a hash of the token and of the start time of
/// the transaction. SQL that reads the settings can therefore not use them in another transaction.
pub const SET_CLAIMS: &str = "SELECT pg_catalog.set_config('tidegate.identity', $2::pg_catalog.text, true) IS NULL, \
     pg_catalog.set_config('tidegate.claims', pg_catalog.textcat(pg_catalog.encode(pg_catalog.sha256(\
     pg_catalog.byteacat($1::pg_catalog.bytea, pg_catalog.timestamptz_send(pg_catalog.now()))), 'hex'), \
     $3::pg_catalog.text), true) IS NULL";

/// Selects the generation of the key with which the functions of a database check claims, as
/// `integer`. Returns no row if the functions do not exist. Also returns no row if another role
/// owns one of the functions' schemas or a function in these schemas, because that role could
/// replace the code of the functions. If the current role is a superuser, objects of other
/// superusers count as its own.
pub const CLAIMS_GENERATION: &str = "SELECT pg_catalog.substring(p.prosrc, ', generation ([0-9]+)')::pg_catalog.int4 \
     FROM pg_catalog.pg_proc p \
     JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace \
     WHERE n.nspname OPERATOR(pg_catalog.=) 'tidegate' \
       AND p.proname OPERATOR(pg_catalog.=) 'user_id' AND p.pronargs OPERATOR(pg_catalog.=) 0 \
       AND NOT EXISTS ( \
           SELECT FROM pg_catalog.pg_namespace s \
           LEFT JOIN pg_catalog.pg_proc f ON f.pronamespace OPERATOR(pg_catalog.=) s.oid \
           JOIN pg_catalog.pg_roles r \
             ON r.oid OPERATOR(pg_catalog.=) ANY (ARRAY[s.nspowner, f.proowner]) \
           JOIN pg_catalog.pg_roles m ON m.rolname OPERATOR(pg_catalog.=) current_user \
           WHERE s.nspname OPERATOR(pg_catalog.=) \
                 ANY (ARRAY['tidegate', 'tidegate_private']::pg_catalog.name[]) \
             AND r.oid OPERATOR(pg_catalog.<>) m.oid AND NOT (m.rolsuper AND r.rolsuper))";

/// The message with which `tidegate.user_id()` and `tidegate.claims()` refuse claims that are
/// missing, forged or sealed with another key. The SQLSTATE of the error is 42501.
pub const CLAIMS_REFUSED: &str =
    "the claims of this transaction are missing or were not set by Tidegate";

/// The key with which the functions of a tenant's database check claims. The key is derived from
/// the master key. It is stored only in the database, where only the service's role can read it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClaimsKey([u8; 16]);

impl ClaimsKey {
    /// Derives the key of a database. Each generation has a different key.
    pub fn derive(master: &[u8; 32], database: &str, generation: i32) -> Self {
        let mut mac = keyed(master);
        mac.update(b"tidegate claims\0");
        mac.update(database.as_bytes());
        mac.update(b"\0");
        mac.update(&generation.to_be_bytes());
        let tag: [u8; 32] = mac.finalize().into_bytes().into();
        let mut key = [0; 16];
        key.copy_from_slice(&tag[..16]);
        Self(key)
    }

    /// The two halves of the key as PostgreSQL stores them: 8 bytes each, read as big endian, in
    /// the order in which they are hashed.
    pub fn halves(&self) -> [i64; 2] {
        let (first, second) = self.0.split_at(8);
        [first, second].map(|half| half.iter().fold(0, |all, byte| all << 8 | i64::from(*byte)))
    }

    /// The token of a member on one connection: the SHA-384 hash of the key, the backend's pid (4
    /// bytes, big endian) and the head.
    pub fn token(&self, backend_pid: i32, head: &str) -> [u8; 48] {
        let mut hash = Sha384::new();
        hash.update(self.0);
        hash.update(backend_pid.to_be_bytes());
        hash.update(head);
        hash.finalize().into()
    }
}

fn keyed(master: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(master).expect("HMAC takes a key of any length")
}

impl fmt::Debug for ClaimsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimsKey([redacted])")
    }
}

/// The head of a member: the SHA-256 hash of the claims in hex, followed by the member's id.
/// `claims` is the text that is passed to [`SET_CLAIMS`].
pub fn claims_head(user_id: &str, claims: &str) -> String {
    use fmt::Write as _;
    let mut head = String::with_capacity(64 + user_id.len());
    for byte in Sha256::digest(claims) {
        let _ = write!(head, "{byte:02x}");
    }
    head.push_str(user_id);
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_another_key_per_generation_and_master_key() {
        let key = |master, database, generation| {
            ClaimsKey::derive(&[master; 32], database, generation).halves()
        };
        let one = key(1, "shop", 1);
        assert_eq!(one, key(1, "shop", 1));
        for other in [key(2, "shop", 1), key(1, "shops", 1), key(1, "shop", 2)] {
            assert!(one[0] != other[0] && one[1] != other[1]);
        }
    }

    #[test]
    fn the_halves_are_the_bytes_in_their_order() {
        let key = ClaimsKey([0xff, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(key.halves(), [i64::MIN >> 7 | 1, 0x102]);
        let bytes: Vec<u8> = key
            .halves()
            .iter()
            .flat_map(|half| half.to_be_bytes())
            .collect();
        assert_eq!(bytes, key.0);
    }

    #[test]
    fn neither_key_is_shown() {
        let key = ClaimsKey([7; 16]);
        assert_eq!(format!("{key:?}"), "ClaimsKey([redacted])");
    }

    #[test]
    fn the_head_is_the_digest_of_the_claims_and_the_id() {
        let head = claims_head("ü", "{}");
        let digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(head, format!("{digest}ü"));
    }
}
