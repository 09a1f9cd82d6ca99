//! Hashes that other systems made: their forms, the limits of their cost, and their verification.
//! At the first sign-in this service replaces an imported hash by a hash that it computes itself,
//! unless the imported hash is an Argon2id hash with the current cost parameters.

use std::num::NonZeroU32;

use argon2::password_hash::{self, PasswordHash as Phc, PasswordVerifier as _};
use argon2::{Argon2, Params};
use base64::Engine as _;
use base64::alphabet::{BCRYPT, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::pbkdf2;
use subtle::ConstantTimeEq as _;

use crate::{Error, Result, Secret};

/// The maximum length of the text of a hash, in bytes.
const MAX_LENGTH: usize = 512;
/// The allowed lengths of a digest in bytes. A shorter digest could be guessed.
const DIGEST: std::ops::RangeInclusive<usize> = 16..=64;
/// The limits of the cost of bcrypt. At the upper limit, a sign-in takes up to two seconds; the
/// limits of the other kinds of hashes are chosen in the same way.
const BCRYPT_COST: std::ops::RangeInclusive<u32> = 4..=14;
const MAX_PBKDF2_ITERATIONS: u32 = 2_000_000;
/// The minimum number of iterations of PBKDF2. A hash that costs less than the minimum does not
/// protect its password, and is probably the result of a wrong export.
const MIN_PBKDF2_ITERATIONS: u32 = 1_000;
/// The minimum of `N * r * p` of scrypt.
const MIN_SCRYPT_BLOCKS: u64 = 1_024;
/// The minimum product of the memory in KiB and the number of passes of Argon2.
const MIN_ARGON2_WORK: u64 = 128;
/// The maximum of `N * r * p` of scrypt. A block has 128 bytes, so the memory is at most 128 MiB.
const MAX_SCRYPT_BLOCKS: u64 = 1 << 20;
const MAX_ARGON2_MEMORY_KIB: u32 = 128 * 1024;
/// The maximum product of the memory in KiB and the number of passes of Argon2.
const MAX_ARGON2_WORK: u64 = 512 * 1024;
const MAX_ARGON2_LANES: u32 = 16;
/// The minimum length of a salt in base64, in characters. 8 bytes have 11 characters, and the
/// `argon2` crate requires 8 bytes.
const MIN_SALT_BASE64: usize = 11;
/// The number of bytes of a password that bcrypt uses.
const BCRYPT_BYTES: usize = 72;

/// bcrypt's variant of base64, which has another alphabet. The last character may contain unused
/// bits that are not zero.
const BCRYPT_BASE64: GeneralPurpose = GeneralPurpose::new(&BCRYPT, LENIENT);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// The hash of a user's password, in the form in which it is stored. `Debug` does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordHash(Secret);

impl PasswordHash {
    /// A hash that another system made: argon2id, argon2i, bcrypt, scrypt or PBKDF2 with SHA-256 or
    /// SHA-512, in PHC or crypt form, and PBKDF2 also in Django's form.
    ///
    /// Errors: [`Error::InvalidField`] for another form, for a cost that would make a sign-in too
    /// expensive, and for a cost that is too low to protect a password.
    pub fn imported(text: &str) -> Result<Self> {
        let scheme = Scheme::parse(text).map_err(invalid)?;
        scheme.check_strength().map_err(invalid)?;
        Ok(Self(Secret::new(text)))
    }

    /// A hash that this service computed.
    pub(crate) fn own(text: String) -> Self {
        Self(Secret::new(text))
    }

    pub(crate) fn into_text(self) -> String {
        self.0.expose().to_owned()
    }
}

fn invalid(expected: &'static str) -> Error {
    Error::InvalidField {
        field: "password_hash",
        expected,
    }
}

/// Whether a password has this hash; [`Error::HasherFailed`] for a text that is not a hash.
pub(super) fn verify(password: &Secret, hash: &str) -> Result<bool> {
    let scheme = Scheme::parse(hash).map_err(|_| Error::HasherFailed)?;
    scheme.verify(password.expose().as_bytes())
}

/// A parsed hash, whose cost is at most the maximum. [`Scheme::check_strength`] checks the minimum.
enum Scheme<'a> {
    Argon2(Phc<'a>),
    Bcrypt {
        cost: u32,
        salt: [u8; 16],
        digest: Vec<u8>,
    },
    Scrypt {
        params: scrypt::Params,
        salt: Vec<u8>,
        digest: Vec<u8>,
    },
    Pbkdf2 {
        algorithm: pbkdf2::Algorithm,
        iterations: NonZeroU32,
        salt: Vec<u8>,
        digest: Vec<u8>,
    },
}

const ITERATIONS: &str = "from 1000 to 2000000 iterations of PBKDF2";
/// The expected form, for the error about a text that is not a hash.
const FORM: &str = "a hash of argon2id, argon2i, bcrypt, scrypt, pbkdf2-sha256 or pbkdf2-sha512 in \
    PHC or crypt form";

impl<'a> Scheme<'a> {
    /// Parses a hash. The error describes the expected form or cost.
    fn parse(text: &'a str) -> Result<Self, &'static str> {
        if text.len() > MAX_LENGTH || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(FORM);
        }
        let parts: Vec<&str> = text.split('$').collect();
        match *parts.as_slice() {
            ["", "argon2id" | "argon2i", ..] => Self::argon2(text),
            ["", "2a" | "2b" | "2y", cost, rest] => Self::bcrypt(cost, rest),
            ["", "scrypt", params, salt, digest] => Self::scrypt(params, (salt, digest)),
            [
                "",
                name @ ("pbkdf2-sha256" | "pbkdf2-sha512"),
                params,
                salt,
                digest,
            ] => {
                let salt = base64(salt)?;
                Self::pbkdf2(name, iterations(params)?, (salt, digest))
            }
            // Django's form has the salt as plain text, and the algorithm's name with `_`.
            [
                name @ ("pbkdf2_sha256" | "pbkdf2_sha512"),
                count,
                salt,
                digest,
            ] => {
                let salt = salt.as_bytes().to_vec();
                Self::pbkdf2(name, number(count)?, (salt, digest))
            }
            _ => Err(FORM),
        }
    }

    fn argon2(text: &'a str) -> Result<Self, &'static str> {
        let hash = Phc::new(text).map_err(|_| FORM)?;
        let params = Params::try_from(&hash).map_err(|_| FORM)?;
        let salt = hash.salt.map_or(0, |salt| salt.as_str().len());
        let whole = salt >= MIN_SALT_BASE64
            && matches!(hash.version, Some(16 | 19))
            && hash.hash.is_some_and(|hash| DIGEST.contains(&hash.len()));
        if !whole || !params.keyid().is_empty() || !params.data().is_empty() {
            return Err(FORM);
        }
        let work = u64::from(params.m_cost()) * u64::from(params.t_cost());
        if params.m_cost() > MAX_ARGON2_MEMORY_KIB
            || work > MAX_ARGON2_WORK
            || params.p_cost() > MAX_ARGON2_LANES
        {
            return Err(
                "a cost of argon2 of at most m=131072 and p=16, where m times t is at most 524288",
            );
        }
        Ok(Self::Argon2(hash))
    }

    fn bcrypt(cost: &str, rest: &str) -> Result<Self, &'static str> {
        let cost: u32 = number(cost)?;
        if !BCRYPT_COST.contains(&cost) {
            return Err("a cost of bcrypt from 4 to 14");
        }
        let (salt, digest) = rest.split_at_checked(22).ok_or(FORM)?;
        let bytes = |text| BCRYPT_BASE64.decode(text).map_err(|_| FORM);
        let (salt, digest) = (bytes(salt)?.try_into(), bytes(digest)?);
        match salt {
            Ok(salt) if digest.len() == 23 => Ok(Self::Bcrypt { cost, salt, digest }),
            _ => Err(FORM),
        }
    }

    fn scrypt(params: &str, (salt, digest): (&str, &str)) -> Result<Self, &'static str> {
        let named = |name| params.split(',').find_map(|pair| pair.strip_prefix(name));
        let (Some(ln), Some(r), Some(p)) = (named("ln="), named("r="), named("p=")) else {
            return Err(FORM);
        };
        let (ln, r, p) = (number::<u8>(ln)?, number::<u32>(r)?, number::<u32>(p)?);
        let blocks = 1_u64
            .checked_shl(u32::from(ln))
            .and_then(|n| n.checked_mul(u64::from(r)))
            .and_then(|blocks| blocks.checked_mul(u64::from(p)));
        if ln == 0 {
            return Err(FORM);
        }
        if blocks.is_none_or(|blocks| blocks > MAX_SCRYPT_BLOCKS) {
            return Err("a cost of scrypt where N times r times p is at most 1048576");
        }
        let params = scrypt::Params::new(ln, r, p, scrypt::Params::RECOMMENDED_LEN);
        Ok(Self::Scrypt {
            params: params.map_err(|_| FORM)?,
            salt: base64(salt)?,
            digest: sized(digest)?,
        })
    }

    fn pbkdf2(
        name: &str,
        iterations: u32,
        (salt, digest): (Vec<u8>, &str),
    ) -> Result<Self, &'static str> {
        let algorithm = if name.ends_with("sha512") {
            pbkdf2::PBKDF2_HMAC_SHA512
        } else {
            pbkdf2::PBKDF2_HMAC_SHA256
        };
        let iterations = NonZeroU32::new(iterations).filter(|n| n.get() <= MAX_PBKDF2_ITERATIONS);
        Ok(Self::Pbkdf2 {
            algorithm,
            iterations: iterations.ok_or(ITERATIONS)?,
            salt,
            digest: sized(digest)?,
        })
    }

    /// Refuses a hash that is too cheap to protect a password. The error describes the expected
    /// cost.
    fn check_strength(&self) -> Result<(), &'static str> {
        let (is_strong, expected) = match self {
            Self::Argon2(hash) => {
                let params = Params::try_from(hash).map_err(|_| FORM)?;
                let work = u64::from(params.m_cost()) * u64::from(params.t_cost());
                let expected = "a cost of argon2 where m times t is at least 128";
                (work >= MIN_ARGON2_WORK, expected)
            }
            // The parser has checked `BCRYPT_COST`, which begins at the minimum of bcrypt itself.
            Self::Bcrypt { .. } => (true, ""),
            Self::Scrypt { params, .. } => {
                let blocks = (u64::from(params.r()) * u64::from(params.p())) << params.log_n();
                let expected = "a cost of scrypt where N times r times p is at least 1024";
                (blocks >= MIN_SCRYPT_BLOCKS, expected)
            }
            Self::Pbkdf2 { iterations, .. } => {
                (iterations.get() >= MIN_PBKDF2_ITERATIONS, ITERATIONS)
            }
        };
        is_strong.then_some(()).ok_or(expected)
    }

    fn verify(&self, password: &[u8]) -> Result<bool> {
        match self {
            Self::Argon2(hash) => matches(Argon2::default().verify_password(password, hash)),
            Self::Bcrypt { cost, salt, digest } => {
                // bcrypt hashes the password together with a zero byte at its end.
                let mut key = [password, &[0]].concat();
                key.truncate(BCRYPT_BYTES);
                let made = bcrypt::bcrypt(*cost, *salt, &key);
                Ok(made[..23].ct_eq(digest).into())
            }
            Self::Scrypt {
                params,
                salt,
                digest,
            } => {
                let mut made = vec![0; digest.len()];
                scrypt::scrypt(password, salt, params, &mut made)
                    .map_err(|_| Error::HasherFailed)?;
                Ok(made.ct_eq(digest).into())
            }
            Self::Pbkdf2 {
                algorithm,
                iterations,
                salt,
                digest,
            } => Ok(pbkdf2::verify(*algorithm, *iterations, salt, password, digest).is_ok()),
        }
    }
}

/// Parses the iterations of PBKDF2: `i=1000,l=32` in PHC form, only a number in passlib's form.
fn iterations(params: &str) -> Result<u32, &'static str> {
    let count = params.split(',').find_map(|pair| pair.strip_prefix("i="));
    number(count.unwrap_or(params))
}

/// A number that is written with digits only.
fn number<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(FORM)
}

/// The bytes of a salt or digest in base64. passlib writes `.` for `+`.
fn base64(text: &str) -> Result<Vec<u8>, &'static str> {
    BASE64.decode(text.replace('.', "+")).map_err(|_| FORM)
}

fn sized(digest: &str) -> Result<Vec<u8>, &'static str> {
    let bytes = base64(digest)?;
    let fits = DIGEST.contains(&bytes.len());
    fits.then_some(bytes)
        .ok_or("a hash whose digest has 16 to 64 bytes")
}

/// The result of a verification: whether the password is right.
fn matches(verified: password_hash::Result<()>) -> Result<bool> {
    match verified {
        Ok(()) => Ok(true),
        Err(password_hash::Error::Password) => Ok(false),
        Err(_) => Err(Error::HasherFailed),
    }
}
