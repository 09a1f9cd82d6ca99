//! URLs of NATS servers as settings.

use std::fmt;

use super::{Kind, TomlType};

/// The URLs of NATS servers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BusUrl(pub(crate) String);

kind!(
    BusUrl,
    Text,
    "addresses such as nats://user:password@host:4222 or tls://host, separated by commas",
    |text| {
        let known = |address: &str| {
            let rest = ["nats://", "tls://"]
                .iter()
                .find_map(|it| address.strip_prefix(it));
            let login = rest.and_then(|rest| rest.rsplit_once('@'));
            rest.is_some() && login.is_none_or(|(login, _)| login.contains(':'))
        };
        let known = text.split(',').map(str::trim).all(known);
        known.then(|| Self(text.to_owned()))
    }
);

impl fmt::Debug for BusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BusUrl([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_place_of_a_login_is_refused() {
        for accepted in [
            "nats://host",
            "tls://user:password@one:4222, tls://user:password@two",
        ] {
            assert!(BusUrl::parse(accepted).is_some(), "{accepted}");
        }
        // A token in place of a login is refused, because `tidegate settings` hides only passwords.
        for refused in [
            "",
            "host:4222",
            "ws://host",
            "nats://host,nats://token@host",
        ] {
            assert!(BusUrl::parse(refused).is_none(), "{refused}");
        }
    }
}
