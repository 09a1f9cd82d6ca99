//! What a tenant lets anonymous callers do with SQL of their own.

/// Whether a tenant runs raw SQL of whoever runs as its default user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnonymousSql {
    /// None.
    #[default]
    Off,
    /// One reading statement at a time, in a read-only transaction, with tight limits.
    Read,
    /// Everything that the default user's rights allow.
    On,
}

impl AnonymousSql {
    /// The names of all values, for error messages.
    pub const NAMES: &str = "off, read or on";

    /// The value of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "read" => Some(Self::Read),
            "on" => Some(Self::On),
            _ => None,
        }
    }

    /// The name of the value, as settings and requests have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::On => "on",
        }
    }
}
