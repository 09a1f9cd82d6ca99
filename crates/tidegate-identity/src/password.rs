//! Password hashing with Argon2id. It runs on its own threads, so that many sign-ins do not slow
//! down requests.

mod cost;
mod imported;
mod pool;

use argon2::password_hash::{Output, PasswordHash as Phc, PasswordHasher as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

pub use cost::PasswordCost;
pub use imported::PasswordHash;

use crate::{Error, Result, Secret, SecureRandom};
use pool::Pool;

/// The allowed lengths of a password in bytes. There are no other rules, as NIST SP 800-63B
/// recommends.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=256;
/// The lengths in bytes of passwords that are verified. Short passwords are included, because an
/// imported hash may be the hash of a short password.
const VERIFIED_LENGTHS: std::ops::RangeInclusive<usize> = 1..=*LENGTHS.end();
const SALT_BYTES: usize = 16;

/// Hashes and verifies passwords, with bounded concurrency.
#[derive(Debug)]
pub struct PasswordHasher {
    pool: Pool,
    cost: PasswordCost,
    /// A hash that no password matches. Passwords of unknown users are verified against it, so that
    /// the response takes the same time.
    dummy_hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PasswordCheck {
    Wrong,
    Right {
        /// A new hash of the password to store, if the stored hash is not an Argon2id hash with the
        /// current cost parameters.
        rehashed: Option<String>,
    },
}

impl PasswordHasher {
    /// Starts `threads` hashing threads, which hash at `cost`.
    pub fn start(threads: usize, cost: PasswordCost, random: &dyn SecureRandom) -> Result<Self> {
        let salt = salt(random)?;
        let output = Output::new(&random.bytes::<{ Params::DEFAULT_OUTPUT_LEN }>()?);
        let dummy_hash = Phc {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: (&cost.params()?)
                .try_into()
                .map_err(|_| Error::HasherFailed)?,
            salt: Some(salt.as_salt()),
            hash: Some(output.map_err(|_| Error::HasherFailed)?),
        };
        let dummy_hash = dummy_hash.to_string();
        Ok(Self {
            pool: Pool::start(threads)?,
            cost,
            dummy_hash,
        })
    }

    /// The number of hashing threads for a machine with this many cores: half of them, at least
    /// one.
    pub fn threads_for(cores: usize) -> usize {
        (cores / 2).max(1)
    }

    /// The number of passwords hashed or verified so far.
    pub fn completed(&self) -> u64 {
        self.pool.completed()
    }

    /// The hash of a new password, in PHC form.
    ///
    /// Errors: [`Error::InvalidField`] unless the password has 8 to 256 bytes; [`Error::Busy`]
    /// when the queue is full.
    pub async fn hash(&self, password: &Secret, random: &dyn SecureRandom) -> Result<String> {
        self.pool.run(self.hashing(password, random)?).await?
    }

    /// Hashes the new passwords of several users. Returns each hash with the index of its user.
    /// Concurrent calls share a limit: at most one of their passwords per hashing thread is hashed
    /// or queued at a time. So the password of a sign-in waits only a short time.
    ///
    /// Errors: those of [`Self::hash`], with the index of the user.
    pub(crate) async fn hash_all(
        &self,
        passwords: &[(usize, &Secret)],
        random: &dyn SecureRandom,
    ) -> Result<Vec<(usize, String)>, (usize, Error)> {
        let mut responses = Vec::with_capacity(passwords.len());
        for &(index, password) in passwords {
            let hashing = self.hashing(password, random);
            let hashing = hashing.map_err(|error| (index, error))?;
            let response = self.pool.submit_in_turn(hashing).await;
            responses.push((index, response.map_err(|error| (index, error))?));
        }
        let mut hashes = Vec::with_capacity(responses.len());
        for (index, response) in responses {
            let hash = response.await.unwrap_or(Err(Error::HasherFailed));
            hashes.push((index, hash.map_err(|error| (index, error))?));
        }
        Ok(hashes)
    }

    /// The job that hashes a new password. Errors: [`Error::InvalidField`] for an invalid length.
    fn hashing(
        &self,
        password: &Secret,
        random: &dyn SecureRandom,
    ) -> Result<impl FnOnce() -> Result<String> + Send + use<>> {
        check_length(password)?;
        let (salt, cost, password) = (salt(random)?, self.cost, password.clone());
        Ok(move || hash(&password, &salt, cost))
    }

    /// Verifies a password against `known`, the user's stored hash. If `known` is `None`, verifies
    /// against the dummy hash, which takes the same time and always fails.
    pub(crate) async fn verify(
        &self,
        password: &Secret,
        known: Option<&str>,
        random: &dyn SecureRandom,
    ) -> Result<PasswordCheck> {
        let possible = VERIFIED_LENGTHS.contains(&password.expose().len());
        let known = known.filter(|_| possible);
        let hash = known.unwrap_or(&self.dummy_hash).to_owned();
        let (is_known, salt, cost) = (known.is_some(), salt(random)?, self.cost);
        let password = if possible {
            password.clone()
        } else {
            Secret::default()
        };
        self.pool
            .run(move || match verify(&password, &hash, cost)? {
                Some(fresh) if is_known => {
                    let rehashed = if fresh {
                        None
                    } else {
                        Some(self::hash(&password, &salt, cost)?)
                    };
                    Ok(PasswordCheck::Right { rehashed })
                }
                _ => Ok(PasswordCheck::Wrong),
            })
            .await?
    }
}

/// Checks the length of a new password; fails with [`Error::InvalidField`].
pub(crate) fn check_length(password: &Secret) -> Result<()> {
    if LENGTHS.contains(&password.expose().len()) {
        return Ok(());
    }
    Err(Error::InvalidField {
        field: "password",
        expected: "8 to 256 bytes",
    })
}

fn salt(random: &dyn SecureRandom) -> Result<SaltString> {
    let bytes: [u8; SALT_BYTES] = random.bytes()?;
    SaltString::encode_b64(&bytes).map_err(|_| Error::HasherFailed)
}

fn hash(password: &Secret, salt: &SaltString, cost: PasswordCost) -> Result<String> {
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, cost.params()?);
    let hash = hasher.hash_password(password.expose().as_bytes(), salt);
    hash.map(|hash| hash.to_string())
        .map_err(|_| Error::HasherFailed)
}

/// Verifies a password. Returns whether the hash is an Argon2id hash with the current cost
/// parameters; `None` when the password is wrong. A malformed hash is an error, because it means
/// that the store is damaged.
fn verify(password: &Secret, hash: &str, cost: PasswordCost) -> Result<Option<bool>> {
    if !imported::verify(password, hash)? {
        return Ok(None);
    }
    let hash = Phc::new(hash)
        .ok()
        .filter(|hash| hash.algorithm == Algorithm::Argon2id.ident());
    let params = hash.and_then(|hash| Params::try_from(&hash).ok());
    Ok(Some(params.is_some_and(|params| cost.equals(&params))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRandom;

    const CHEAP: PasswordCost = PasswordCost {
        memory_kib: 8,
        passes: 1,
        lanes: 1,
    };

    #[tokio::test]
    async fn the_dummy_hash_never_authenticates_even_with_its_password() {
        let random = SystemRandom::new();
        let mut hasher = PasswordHasher::start(1, CHEAP, &random).unwrap();
        let password = Secret::new("alice1234");
        hasher.dummy_hash = hasher.hash(&password, &random).await.unwrap();
        let known = hasher.dummy_hash.clone();
        let checked = hasher
            .verify(&password, Some(&known), &random)
            .await
            .unwrap();
        assert_eq!(checked, PasswordCheck::Right { rehashed: None });
        assert_eq!(
            hasher.verify(&password, None, &random).await.unwrap(),
            PasswordCheck::Wrong
        );
    }

    #[tokio::test]
    async fn the_dummy_hash_has_the_same_cost() {
        let random = SystemRandom::new();
        let hasher = PasswordHasher::start(1, PasswordCost::default(), &random).unwrap();
        let hash = Phc::new(&hasher.dummy_hash).unwrap();
        assert!(PasswordCost::default().equals(&Params::try_from(&hash).unwrap()));
    }

    #[tokio::test]
    async fn a_damaged_hash_is_an_internal_error() {
        let random = SystemRandom::new();
        let hasher = PasswordHasher::start(1, CHEAP, &random).unwrap();
        for damaged in ["", "plain text", "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ"] {
            let checked = hasher
                .verify(&Secret::new("alice1234"), Some(damaged), &random)
                .await;
            assert!(matches!(checked, Err(Error::HasherFailed)), "{damaged}");
        }
    }
}
