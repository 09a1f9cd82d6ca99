//! Built-in clients: public clients of the service itself, which belong to no tenant.

use crate::{Client, ClientAuthentication, GrantKind, GrantSet, redirect};
use tidegate_identity::{SignUpUser, Timestamp};

/// The built-in clients. A user of any tenant signs in through them, by the authorization code
/// grant with PKCE or by the device grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltinClients {
    /// The ids of the built-in clients. No tenant can register a client with one of these ids.
    pub ids: Vec<String>,
    /// The pages of this service that may use the built-in clients, as complete URLs. Only the
    /// service itself can receive a code at these URLs, so the user is not asked for consent.
    pub pages: Vec<String>,
}

impl BuiltinClients {
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Client> {
        let name = match id {
            "tidegate" => "Tidegate",
            other => other,
        };
        self.contains(id).then(|| Client {
            id: id.to_owned(),
            database: None,
            name: name.to_owned(),
            redirect_uris: self.pages.clone(),
            homepage: None,
            description: None,
            authentication: ClientAuthentication::Public,
            confirm: true,
            two_factor: false,
            allow_signup: false,
            social_signup: false,
            signup: SignUpUser::default(),
            grants: GrantSet::Only(vec![
                GrantKind::AuthorizationCode,
                GrantKind::RefreshToken,
                GrantKind::DeviceCode,
            ]),
            service_user: None,
            created_at: Timestamp::from_seconds(0),
        })
    }

    pub(crate) fn is_page(&self, uri: &str) -> bool {
        self.pages.iter().any(|page| page == uri)
    }

    /// Returns the built-in client `client`, with `confirm` and `description` set for a redirect to
    /// `uri`; `None` if the client may not redirect to `uri`.
    ///
    /// A built-in client may redirect to a page of this service, and to any port of a loopback IP
    /// literal, where a program of the user listens (RFC 8252, section 7.3). Other programs could
    /// listen there too, so the user is asked for consent (section 8.6).
    pub(crate) fn redirecting(&self, client: Client, uri: &str) -> Option<Client> {
        if self.is_page(uri) {
            return Some(Client {
                confirm: false,
                ..client
            });
        }
        redirect::is_loopback_literal(uri).then(|| Client {
            description: Some("A program on this computer asks for access.".to_owned()),
            ..client
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin() -> BuiltinClients {
        BuiltinClients {
            ids: vec!["tidegate".to_owned(), "gc2-cli".to_owned()],
            pages: vec!["https://db.example/console/".to_owned()],
        }
    }

    #[test]
    fn consent_is_left_out_for_pages_of_the_service_only() {
        let clients = builtin();
        let client = || clients.find("gc2-cli").unwrap();
        let page = clients.redirecting(client(), "https://db.example/console/");
        assert!(!page.unwrap().confirm);
        for uri in [
            "http://127.0.0.1:5657/auth/callback",
            "http://[::1]:1/",
            "http://127.0.0.1/",
        ] {
            assert!(clients.redirecting(client(), uri).unwrap().confirm, "{uri}");
        }
    }

    #[test]
    fn no_other_address_gets_a_code() {
        let clients = builtin();
        for uri in [
            "https://db.example/console",
            "https://db.example/console/?x=1",
            "https://db.example/console/../elsewhere",
            "https://db.example:444/console/",
            "http://db.example/console/",
            "https://evil.example/console/",
            "https://db.example.evil.example/console/",
            "http://localhost:5657/auth/callback",
            "http://127.0.0.1.evil.example/",
            "http://127.0.0.1:1@evil.example/",
            "https://127.0.0.1:5657/",
            "http://127.0.0.1:99999/",
            "http://10.0.0.7:5657/",
            "com.example.app:/cb",
        ] {
            let client = clients.find("tidegate").unwrap();
            assert_eq!(clients.redirecting(client, uri), None, "{uri}");
        }
    }
}
