//! The setting for SQL statements of anonymous callers.

/// The kinds of SQL that a tenant runs for anonymous callers. The SQL runs as the default user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnonymousSql {
    /// Run no SQL of anonymous callers.
    #[default]
    Off,
    /// Run one read-only statement in each request, in a read-only transaction and with tight
    /// limits.
    Read,
    /// Run all SQL that the default user's privileges allow.
    On,
}

impl AnonymousSql {
    /// The names of all values, as error messages list them.
    pub const NAMES: &str = "off, read or on";

    /// The value with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "read" => Some(Self::Read),
            "on" => Some(Self::On),
            _ => None,
        }
    }

    /// The name of the value in settings and requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::On => "on",
        }
    }
}
