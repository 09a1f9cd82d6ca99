//! Cost parameters of password hashing.

use argon2::Params;

use crate::{Error, Result};

/// The cost parameters of Argon2id (RFC 9106, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordCost {
    /// The memory in KiB, at least 8 for each lane.
    pub memory_kib: u32,
    /// The number of passes over the memory.
    pub passes: u32,
    /// The number of lanes, the degree of parallelism.
    pub lanes: u32,
}

impl Default for PasswordCost {
    /// 19 MiB, two passes, one lane, as OWASP's "Password Storage Cheat Sheet" recommends.
    fn default() -> Self {
        Self {
            memory_kib: 19 * 1024,
            passes: 2,
            lanes: 1,
        }
    }
}

impl PasswordCost {
    pub(crate) fn params(self) -> Result<Params> {
        Params::new(self.memory_kib, self.passes, self.lanes, None).map_err(|_| {
            Error::InvalidField {
                field: "password cost",
                expected: "parameters of RFC 9106",
            }
        })
    }

    pub(crate) fn equals(self, params: &Params) -> bool {
        (self.memory_kib, self.passes, self.lanes)
            == (params.m_cost(), params.t_cost(), params.p_cost())
    }
}
