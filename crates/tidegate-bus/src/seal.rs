//! Encrypts and authenticates the messages between nodes.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use tidegate_sql::DatabaseName;
use zeroize::Zeroizing;

use crate::place::Malformed;

/// The first byte of each sealed message: the version of the format.
const VERSION: u8 = 1;
/// The length in bytes of what precedes the encrypted text: version, session and message number.
const HEAD: usize = 1 + SESSION + 8;
const SESSION: usize = 16;
/// The maximum number of session keys that are cached.
const MAX_KEYS: usize = 64;

/// Random bytes that identify a run of a process.
pub type SealSession = [u8; SESSION];

/// The kind of a sealed text. Opening a text as another kind fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedKind {
    /// A message of the reader.
    Event,
    /// A message to the reader: a question for its position, or the report that a node uses the
    /// database.
    Question,
}

/// Seals messages with keys that are derived from the master key.
///
/// Each session has a key of its own for each database. The key is derived by HKDF-SHA256 (RFC
/// 5869): the salt is the session, and the info contains the name of the database. A session
/// numbers its messages and uses the number as the nonce, so a nonce is never repeated. Random
/// nonces could repeat, which would limit the number of messages (RFC 8439, section 2.8).
pub struct Seal {
    /// The key of the bus, which is derived from the master key.
    bus_key: Zeroizing<[u8; 32]>,
    session: SealSession,
    number: AtomicU64,
    /// The cached keys of sessions, in the order of their first use.
    keys: Mutex<Vec<((DatabaseName, SealSession), LessSafeKey)>>,
}

impl Seal {
    /// Creates a seal. `session` must be random bytes.
    pub fn new(bus_key: Zeroizing<[u8; 32]>, session: SealSession) -> Self {
        Self {
            bus_key,
            session,
            number: AtomicU64::new(0),
            keys: Mutex::default(),
        }
    }

    /// A name derived from the master key and `purpose`. It reveals neither of them.
    pub fn name(&self, purpose: &str) -> String {
        let name = self.derive(b"name", purpose);
        let mut text = String::with_capacity(24);
        for byte in &name[..12] {
            write!(text, "{byte:02x}").expect("a String takes everything");
        }
        text
    }

    /// Encrypts and authenticates a text of a database. Only [`Self::open`] with the same database
    /// and kind accepts the result.
    ///
    /// # Panics
    ///
    /// If the text has more than 256 GiB.
    pub fn seal(&self, database: &DatabaseName, kind: SealedKind, text: &[u8]) -> Vec<u8> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let mut sealed = Vec::with_capacity(HEAD + text.len() + CHACHA20_POLY1305.tag_len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&self.session);
        sealed.extend_from_slice(&number.to_be_bytes());
        sealed.extend_from_slice(text);
        let key = self.key(database, self.session);
        let tag = key.seal_in_place_separate_tag(
            nonce(number),
            Aad::from(label(database, kind)),
            &mut sealed[HEAD..],
        );
        let tag = tag.expect("a message is shorter than 256 GiB");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// Decrypts a text that a node with the same master key has sealed for the same database and
    /// kind.
    ///
    /// # Errors
    ///
    /// If `sealed` is not such a text.
    pub fn open(
        &self,
        database: &DatabaseName,
        kind: SealedKind,
        sealed: &[u8],
    ) -> Result<Bytes, Malformed> {
        let (head, text) = sealed.split_at_checked(HEAD).ok_or(Malformed)?;
        let (&version, head) = head.split_first().ok_or(Malformed)?;
        let (session, number) = head.split_first_chunk::<SESSION>().ok_or(Malformed)?;
        let number = number.first_chunk::<8>().ok_or(Malformed)?;
        if version != VERSION {
            return Err(Malformed);
        }
        let key = self.key(database, *session);
        let mut text = text.to_vec();
        let nonce = nonce(u64::from_be_bytes(*number));
        let label = Aad::from(label(database, kind));
        let opened = key.open_in_place(nonce, label, &mut text);
        let length = opened.map_err(|_| Malformed)?.len();
        text.truncate(length);
        Ok(text.into())
    }

    fn key(&self, database: &DatabaseName, session: SealSession) -> LessSafeKey {
        let mut keys = self.keys.lock();
        let known = |((name, other), _): &&((DatabaseName, SealSession), _)| {
            *other == session && name == database
        };
        if let Some((_, key)) = keys.iter().find(known) {
            return key.clone();
        }
        let secret = self.derive(&session, database.as_str());
        let key = UnboundKey::new(&CHACHA20_POLY1305, secret.as_slice());
        let key = LessSafeKey::new(key.expect("ChaCha20-Poly1305 keys have 32 bytes"));
        if keys.len() >= MAX_KEYS {
            keys.remove(0);
        }
        keys.push(((database.clone(), session), key.clone()));
        key
    }

    fn derive(&self, salt: &[u8], purpose: &str) -> Zeroizing<[u8; 32]> {
        let mut derived = Zeroizing::new([0; 32]);
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, salt);
        let parts = [b"tidegate bus ".as_slice(), purpose.as_bytes()];
        let expanded = salt.extract(self.bus_key.as_slice());
        let filled = expanded
            .expand(&parts, hkdf::HKDF_SHA256)
            .and_then(|key| key.fill(derived.as_mut_slice()));
        filled.expect("32 bytes are within HKDF's limit");
        derived
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The associated data of a text, which is authenticated but not part of the sealed message.
fn label(database: &DatabaseName, kind: SealedKind) -> Vec<u8> {
    let kind = match kind {
        SealedKind::Event => b'e',
        SealedKind::Question => b'q',
    };
    let mut label = vec![kind];
    label.extend_from_slice(database.as_str().as_bytes());
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(master: u8, session: u8) -> Seal {
        Seal::new(Zeroizing::new([master; 32]), [session; 16])
    }

    #[test]
    fn another_session_of_the_same_key_reads_it() {
        let shop = DatabaseName::new("shop");
        let (one, other) = (seal(1, 1), seal(1, 2));
        for _ in 0..3 {
            let sealed = one.seal(&shop, SealedKind::Event, b"a secret row");
            let opened = other.open(&shop, SealedKind::Event, &sealed).unwrap();
            assert_eq!(opened, &b"a secret row"[..]);
            assert!(!sealed.windows(6).any(|part| part == b"secret"));
        }
    }

    #[test]
    fn what_was_changed_or_meant_for_something_else_is_refused() {
        let (shop, other) = (DatabaseName::new("shop"), DatabaseName::new("other"));
        let one = seal(1, 1);
        let sealed = one.seal(&shop, SealedKind::Event, b"text");
        assert!(one.open(&shop, SealedKind::Event, &sealed).is_ok());
        assert!(one.open(&shop, SealedKind::Question, &sealed).is_err());
        assert!(one.open(&other, SealedKind::Event, &sealed).is_err());
        assert!(seal(2, 1).open(&shop, SealedKind::Event, &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            let opened = one.open(&shop, SealedKind::Event, &changed);
            assert_eq!(opened, Err(Malformed), "byte {at}");
            assert!(one.open(&shop, SealedKind::Event, &sealed[..at]).is_err());
        }
    }

    #[test]
    fn a_session_never_repeats_a_nonce_and_names_reveal_nothing() {
        let one = seal(1, 1);
        let shop = DatabaseName::new("shop");
        let first = one.seal(&shop, SealedKind::Question, b"");
        let second = one.seal(&shop, SealedKind::Question, b"");
        assert_ne!(first[..HEAD], second[..HEAD]);
        assert_eq!(one.name("shop"), seal(1, 2).name("shop"));
        assert_ne!(one.name("shop"), seal(2, 1).name("shop"));
        assert_eq!(one.name("shop").len(), 24);
    }
}
