//! The name of a method.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A method's name: 1 to 128 characters of `[A-Za-z_][A-Za-z0-9_.-]*`, unique in its tenant.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodName(Arc<str>);

/// The text is not a valid method name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a method's name, expected 1 to 128 letters, digits, `_`, `.` and `-` that begin with a \
     letter or `_`"
)]
pub struct InvalidName;

impl MethodName {
    /// The largest number of characters in a name.
    pub const MAX_LENGTH: usize = 128;

    /// Checks a name. Its case is not folded.
    ///
    /// # Errors
    ///
    /// [`InvalidName`] for an invalid character or length.
    pub fn parse(name: &str) -> Result<Self, InvalidName> {
        let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
        let bytes = name.as_bytes();
        let valid = bytes.first().is_some_and(|first| begins(*first))
            && bytes.len() <= Self::MAX_LENGTH
            && bytes.iter().all(goes_on);
        valid.then(|| Self(Arc::from(name))).ok_or(InvalidName)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for MethodName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for MethodName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
