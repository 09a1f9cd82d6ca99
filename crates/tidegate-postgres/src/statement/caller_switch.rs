//! The command before a caller's statements that makes a shared connection act for the caller.
//!
//! The effect of the command ends with the transaction, so no connection keeps the identity of its
//! last caller. For a user the command switches to the user's role. For a member of a group the
//! command seals the member's claims (`docs/adr/0012-claims.md`): it sets the claims with a seal
//! that only this service can compute, and that is valid for one transaction of one backend.

use std::fmt;

use tidegate_sql::{DatabaseError, Member, RoleName};

use crate::claims_key::{CLAIMS_REFUSED, ClaimsKey, SET_CLAIMS, claims_head};

/// The command that makes a shared connection act for the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallerSwitch<'a> {
    /// Switches to the caller's role.
    Role {
        /// The caller's role.
        role: &'a RoleName,
        /// A `SELECT` that switches to the role in its only parameter until the transaction ends.
        /// If the `SELECT` fails, no statement after it runs.
        text: &'static str,
    },
    /// Seals the claims of a member.
    Claims(Seal<'a>),
}

/// The claims of a member, and the key that seals them.
#[derive(Clone, Copy)]
pub(crate) struct Seal<'a> {
    pub(crate) member: &'a Member,
    pub(crate) key: &'a ClaimsKey,
}

impl CallerSwitch<'_> {
    /// The text of the command.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Role { text, .. } => text,
            Self::Claims(_) => SET_CLAIMS,
        }
    }

    /// Passes the command's parameters, in binary format, to `take`, and returns its result.
    /// `backend` is the process id of the backend that will run the command.
    pub(crate) fn with_parameters<R>(&self, backend: i32, take: impl FnOnce(&[&[u8]]) -> R) -> R {
        match self {
            Self::Role { role, .. } => take(&[role.as_str().as_bytes()]),
            Self::Claims(Seal { member, key }) => {
                let head = claims_head(member.id(), member.claims());
                let token = key.token(backend, &head);
                take(&[&token, head.as_bytes(), member.claims().as_bytes()])
            }
        }
    }
}

impl fmt::Debug for Seal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.member, f)
    }
}

/// Whether an error says that the seal is missing or wrong. The message is never translated.
pub(crate) fn is_refused_seal(error: &DatabaseError) -> bool {
    error.sqlstate == "42501" && error.message == CLAIMS_REFUSED
}
