//! The crate's tests, in one binary.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod authenticator;
#[cfg(test)]
mod claims;
