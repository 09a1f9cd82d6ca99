//! Settings of an identity provider.

use std::fmt;

/// The settings of one provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The id of the provider in URLs: lower-case letters and digits.
    pub id: String,
    /// The display name of the provider.
    pub label: String,
    /// The protocol of the provider.
    pub kind: ProviderKind,
    /// The `client_id` that the provider issued to this service.
    pub client_id: String,
    /// The client secret that the provider issued to this service.
    pub client_secret: String,
}

/// The protocol of a provider.
#[derive(Clone, Debug)]
pub enum ProviderKind {
    /// OpenID Connect. The value is the issuer's URL. The URL of the discovery document begins with
    /// it.
    OpenId(String),
    /// The OAuth and REST APIs of GitHub.
    GitHub {
        /// The URL of the site on which people sign in, such as `https://github.com`.
        site: String,
        /// The URL of the REST API, such as `https://api.github.com`.
        api: String,
    },
}

impl ProviderSettings {
    /// The settings for GitHub or a GitHub Enterprise Server, with the URLs of the site and of the
    /// REST API.
    pub fn github((site, api): (&str, &str), client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::GitHub {
            site: site.to_owned(),
            api: api.to_owned(),
        };
        Self::new("github", "GitHub", kind, (client_id, client_secret))
    }

    /// The settings for Google.
    pub fn google(client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::OpenId("https://accounts.google.com".to_owned());
        Self::new("google", "Google", kind, (client_id, client_secret))
    }

    /// The settings for GitLab, at gitlab.com or self-managed.
    pub fn gitlab(issuer: &str, client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::OpenId(issuer.to_owned());
        Self::new("gitlab", "GitLab", kind, (client_id, client_secret))
    }

    /// The settings for any other OpenID Connect provider.
    pub fn openid(label: &str, issuer: &str, client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::OpenId(issuer.to_owned());
        Self::new("openid", label, kind, (client_id, client_secret))
    }

    fn new(id: &str, label: &str, kind: ProviderKind, (client, secret): (&str, &str)) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            kind,
            client_id: client.to_owned(),
            client_secret: secret.to_owned(),
        }
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl ProviderKind {
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::OpenId(issuer) => (issuer, None),
            Self::GitHub { site, api } => (site, Some(api)),
        };
        std::iter::once(first).chain(second).map(String::as_str)
    }

    pub(crate) fn scopes(&self) -> &'static [&'static str] {
        match self {
            Self::OpenId(_) => &["openid", "email", "profile"],
            Self::GitHub { .. } => &["read:user", "user:email"],
        }
    }
}
