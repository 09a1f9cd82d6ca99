//! The files that are embedded in the crate.

/// A file of the repository's folder `docs`.
pub(crate) struct Embedded {
    /// The path of the file in the folder.
    pub path: &'static str,
    pub bytes: &'static [u8],
}

macro_rules! embedded {
    ($($path:literal,)*) => {
        &[$(Embedded {
            path: $path,
            bytes: include_bytes!(concat!("../book/", $path)),
        },)*]
    };
}

pub(crate) const SUMMARY: &str = include_str!("../book/SUMMARY.md");

/// The chapters, as Markdown.
pub(crate) const CHAPTERS: &[Embedded] = embedded! {
    "start/what-it-is.md",
    "start/first-minutes.md",
    "start/up.md",
    "tutorials/todo.md",
    "tutorials/public-data.md",
    "tutorials/own-database.md",
    "how-to/console.md",
    "how-to/users.md",
    "how-to/row-level-security.md",
    "how-to/claims.md",
    "how-to/react.md",
    "how-to/nextjs.md",
    "how-to/authjs.md",
    "how-to/typescript.md",
    "how-to/python.md",
    "how-to/curl.md",
    "how-to/service-tokens.md",
    "how-to/members.md",
    "how-to/passkeys.md",
    "how-to/external-issuers.md",
    "how-to/settings.md",
    "how-to/https.md",
    "how-to/proxies.md",
    "how-to/docker.md",
    "how-to/systemd.md",
    "how-to/prometheus.md",
    "how-to/cluster.md",
    "how-to/backup.md",
    "how-to/upgrade.md",
    "how-to/rate-limits.md",
    "how-to/geo-data.md",
    "how-to/import-csv.md",
    "from/hasura.md",
    "from/postgrest.md",
    "from/postgraphile.md",
    "from/gc2.md",
    "reference/README.md",
    "API.md",
    "reference/errors.md",
    "reference/openid-conformance.md",
    "OPERATIONS.md",
    "LOGS.md",
    "GLOSSARY.md",
    "CHANGELOG.md",
    "explanation/request-path.md",
    "explanation/roles.md",
    "explanation/change-feed.md",
    "explanation/tokens.md",
    "SECURITY.md",
    "PERFORMANCE.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "TESTING.md",
    "SPEC-NOTES.md",
    "adr/README.md",
    "adr/0001-embedded-postgresql.md",
    "adr/0002-tokens.md",
    "adr/0003-own-client.md",
    "adr/0004-roles-and-connections.md",
    "adr/0005-own-mechanisms.md",
    "adr/0006-change-feed.md",
    "adr/0007-graphql-engine.md",
    "adr/0008-graphql-page.md",
    "adr/0009-outbox.md",
    "adr/0010-multiplexing.md",
    "adr/0011-console.md",
    "adr/0012-claims.md",
    "adr/0013-openid.md",
    "adr/0014-failover.md",
    "adr/0015-nodes.md",
    "adr/0016-members.md",
    "adr/0017-passkeys.md",
    "adr/0018-bus.md",
    "adr/0019-replicas.md",
};

/// The files that chapters refer to.
pub(crate) const ASSETS: &[Embedded] = embedded! {
    "images/console.png",
    "prometheus/alerts.yml",
    "prometheus/dashboard.json",
};

/// The media type of a file, by its name.
pub(crate) fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md") => "text/markdown; charset=utf-8",
        Some("png") => "image/png",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}
