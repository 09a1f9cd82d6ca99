//! Passwords: Argon2id in a pool of its own, so that a storm of sign-ins cannot starve queries.

mod cost;
mod pool;

use argon2::password_hash::{
    self, Output, PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString,
};
use argon2::{Algorithm, Argon2, Params, Version};

pub use cost::PasswordCost;

use crate::{Error, Result, Secret, SecureRandom, random};
use pool::Pool;

/// The lengths of a password in bytes; no other rule makes passwords better.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=256;
const SALT_BYTES: usize = 16;

/// Hashes and checks passwords, a bounded number at a time.
#[derive(Debug)]
pub struct PasswordHasher {
    pool: Pool,
    cost: PasswordCost,
    /// The hash of a password that nobody knows. What a user's password would be checked against
    /// if there were such a user, so that the answer takes as long.
    stranger: String,
}

/// What became of checking a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Wrong,
    Right {
        /// The hash to keep from now on, when the one that is kept was made at another cost.
        rehashed: Option<String>,
    },
}

impl PasswordHasher {
    /// Starts a pool of `threads` hashers that hash at `cost`.
    pub fn start(threads: usize, cost: PasswordCost, random: &dyn SecureRandom) -> Result<Self> {
        let salt = salt(random)?;
        let output = Output::new(&random::bytes::<{ Params::DEFAULT_OUTPUT_LEN }>(random)?);
        let stranger = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: (&cost.params()?)
                .try_into()
                .map_err(|_| Error::HasherFailed)?,
            salt: Some(salt.as_salt()),
            hash: Some(output.map_err(|_| Error::HasherFailed)?),
        };
        let stranger = stranger.to_string();
        Ok(Self {
            pool: Pool::start(threads)?,
            cost,
            stranger,
        })
    }

    /// How many hashers a machine with this many cores gets: half of them, at least one.
    pub fn threads_for(cores: usize) -> usize {
        (cores / 2).max(1)
    }

    /// How many passwords were hashed or checked so far, right or wrong, of users that exist or not.
    pub fn completed(&self) -> u64 {
        self.pool.completed()
    }

    /// The hash of a new password, in PHC form.
    ///
    /// [`Error::InvalidMember`] unless it has 8 to 256 bytes; [`Error::Busy`] when the queue is full.
    pub async fn hash(&self, password: &Secret, random: &dyn SecureRandom) -> Result<String> {
        if !LENGTHS.contains(&password.expose().len()) {
            return Err(Error::InvalidMember {
                member: "password",
                expected: "8 to 256 bytes",
            });
        }
        let (salt, cost, password) = (salt(random)?, self.cost, password.clone());
        self.pool.run(move || hash(&password, &salt, cost)).await?
    }

    /// Checks a password against a user's hash, or against the stranger's hash when there is none;
    /// that is always wrong and takes as long.
    pub(crate) async fn check(
        &self,
        password: &Secret,
        known: Option<&str>,
        random: &dyn SecureRandom,
    ) -> Result<Checked> {
        let possible = LENGTHS.contains(&password.expose().len());
        let known = known.filter(|_| possible);
        let hash = known.unwrap_or(&self.stranger).to_owned();
        let (genuine, salt, cost) = (known.is_some(), salt(random)?, self.cost);
        let password = if possible {
            password.clone()
        } else {
            Secret::default()
        };
        self.pool
            .run(move || match verify(&password, &hash, cost)? {
                Some(fresh) if genuine => {
                    let rehashed = if fresh {
                        None
                    } else {
                        Some(self::hash(&password, &salt, cost)?)
                    };
                    Ok(Checked::Right { rehashed })
                }
                _ => Ok(Checked::Wrong),
            })
            .await?
    }
}

fn salt(random: &dyn SecureRandom) -> Result<SaltString> {
    let bytes: [u8; SALT_BYTES] = random::bytes(random)?;
    SaltString::encode_b64(&bytes).map_err(|_| Error::HasherFailed)
}

fn hash(password: &Secret, salt: &SaltString, cost: PasswordCost) -> Result<String> {
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, cost.params()?);
    let hash = hasher.hash_password(password.expose().as_bytes(), salt);
    hash.map(|hash| hash.to_string())
        .map_err(|_| Error::HasherFailed)
}

/// None when the password is wrong, else whether the hash has today's cost. A hash that is none is
/// not a wrong password: then the store is damaged.
fn verify(password: &Secret, hash: &str, cost: PasswordCost) -> Result<Option<bool>> {
    let hash = PasswordHash::new(hash)
        .ok()
        .filter(|hash| hash.hash.is_some());
    let hash = hash.ok_or(Error::HasherFailed)?;
    match Argon2::default().verify_password(password.expose().as_bytes(), &hash) {
        Ok(()) => {
            let same_cost = Params::try_from(&hash).is_ok_and(|params| cost.is_of(&params));
            Ok(Some(
                same_cost && hash.algorithm == Algorithm::Argon2id.ident(),
            ))
        }
        Err(password_hash::Error::Password) => Ok(None),
        Err(_) => Err(Error::HasherFailed),
    }
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
    async fn nobody_signs_in_as_the_stranger_even_with_the_strangers_password() {
        let random = SystemRandom::new();
        let mut hasher = PasswordHasher::start(1, CHEAP, &random).unwrap();
        let password = Secret::new("alice1234");
        hasher.stranger = hasher.hash(&password, &random).await.unwrap();
        let known = hasher.stranger.clone();
        let checked = hasher
            .check(&password, Some(&known), &random)
            .await
            .unwrap();
        assert_eq!(checked, Checked::Right { rehashed: None });
        assert_eq!(
            hasher.check(&password, None, &random).await.unwrap(),
            Checked::Wrong
        );
    }

    #[tokio::test]
    async fn the_stranger_has_a_hash_of_the_same_cost() {
        let random = SystemRandom::new();
        let hasher = PasswordHasher::start(1, PasswordCost::default(), &random).unwrap();
        let hash = PasswordHash::new(&hasher.stranger).unwrap();
        assert!(PasswordCost::default().is_of(&Params::try_from(&hash).unwrap()));
    }

    #[tokio::test]
    async fn a_damaged_hash_is_our_fault() {
        let random = SystemRandom::new();
        let hasher = PasswordHasher::start(1, CHEAP, &random).unwrap();
        for damaged in ["", "plain text", "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ"] {
            let checked = hasher
                .check(&Secret::new("alice1234"), Some(damaged), &random)
                .await;
            assert!(matches!(checked, Err(Error::HasherFailed)), "{damaged}");
        }
    }
}
