//! Notifications to the other nodes about changes of cached data.

use std::fmt;

/// A change of the control schema. It is sent as a notification on the channel `tidegate` of the
/// control database. A node that receives it must read the named data again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sessions were ended.
    Sessions,
    /// Signing keys were added, promoted or deleted.
    Keys,
    /// The client with this id was added, changed or deleted.
    Client(String),
    /// Users of the tenant with this database were added, changed or deleted.
    Users(String),
    /// The tenant with this database was added or dropped.
    Tenant(String),
    /// Settings of the tenant with this database were changed.
    Settings(String),
    /// External issuers were added, changed or deleted.
    Issuers,
    /// A method was changed, renamed or deleted.
    Method {
        /// The tenant's database.
        database: String,
        /// The name of the method before the change.
        name: String,
    },
    /// All methods of the tenant with this database were deleted.
    Methods(String),
}

impl Change {
    /// Parses a notification; `None` for an unknown kind, which a newer version may have sent.
    pub fn parse(notification: &str) -> Option<Self> {
        let (kind, name) = notification.split_once(' ').unwrap_or((notification, ""));
        match kind {
            "sessions" => Some(Self::Sessions),
            "keys" => Some(Self::Keys),
            "issuers" => Some(Self::Issuers),
            "client" => Some(Self::Client(name.to_owned())),
            "users" => Some(Self::Users(name.to_owned())),
            "tenant" => Some(Self::Tenant(name.to_owned())),
            "settings" => Some(Self::Settings(name.to_owned())),
            "methods" => Some(Self::Methods(name.to_owned())),
            "method" => {
                // The name of the method comes first, because it contains no spaces. The name of
                // the database may contain spaces.
                let (name, database) = name.split_once(' ')?;
                Some(Self::Method {
                    database: database.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sessions => f.write_str("sessions"),
            Self::Keys => f.write_str("keys"),
            Self::Issuers => f.write_str("issuers"),
            Self::Client(id) => write!(f, "client {id}"),
            Self::Users(database) => write!(f, "users {database}"),
            Self::Tenant(database) => write!(f, "tenant {database}"),
            Self::Settings(database) => write!(f, "settings {database}"),
            Self::Method { database, name } => write!(f, "method {name} {database}"),
            Self::Methods(database) => write!(f, "methods {database}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_round_trip_through_text() {
        let changes = [
            Change::Sessions,
            Change::Keys,
            Change::Issuers,
            Change::Client("an app".to_owned()),
            Change::Users("shop".to_owned()),
            Change::Tenant("shop".to_owned()),
            Change::Settings("shop".to_owned()),
            Change::Method {
                database: "a shop".to_owned(),
                name: "get.date".to_owned(),
            },
            Change::Methods("a shop".to_owned()),
        ];
        for change in changes {
            assert_eq!(Change::parse(&change.to_string()), Some(change));
        }
        assert_eq!(Change::parse("weather shop"), None);
    }
}
