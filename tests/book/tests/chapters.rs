//! One test for each document with commands.

use crate::run::run;

/// A test for each document; its name is that of the document.
macro_rules! chapters {
    ($($name:ident => $path:literal,)*) => {
        /// The documents that are run.
        pub(crate) const RUN: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                run($path, |_| true);
            }
        )*
    };
}

chapters! {
    first_minutes => "docs/start/first-minutes.md",
    up => "docs/start/up.md",
    own_database => "docs/tutorials/own-database.md",
    todo => "docs/tutorials/todo.md",
    public_data => "docs/tutorials/public-data.md",
    users => "docs/how-to/users.md",
    row_level_security => "docs/how-to/row-level-security.md",
    claims => "docs/how-to/claims.md",
    external_issuers => "docs/how-to/external-issuers.md",
    members => "docs/how-to/members.md",
    passkeys => "docs/how-to/passkeys.md",
    service_tokens => "docs/how-to/service-tokens.md",
    react => "docs/how-to/react.md",
    authjs => "docs/how-to/authjs.md",
    next_js => "docs/how-to/nextjs.md",
    typescript => "docs/how-to/typescript.md",
    python => "docs/how-to/python.md",
    curl => "docs/how-to/curl.md",
    settings => "docs/how-to/settings.md",
    https => "docs/how-to/https.md",
    proxies => "docs/how-to/proxies.md",
    systemd => "docs/how-to/systemd.md",
    prometheus => "docs/how-to/prometheus.md",
    cluster => "docs/how-to/cluster.md",
    backup => "docs/how-to/backup.md",
    rate_limits => "docs/how-to/rate-limits.md",
    geo_data => "docs/how-to/geo-data.md",
    import_csv => "docs/how-to/import-csv.md",
    from_hasura => "docs/from/hasura.md",
    from_postgrest => "docs/from/postgrest.md",
    from_postgraphile => "docs/from/postgraphile.md",
    roles => "docs/explanation/roles.md",
    tokens => "docs/explanation/tokens.md",
    from_gc2 => "docs/from/gc2.md",
}

#[test]
fn api() {
    run("docs/API.md", |_| true);
}

#[test]
fn readme() {
    // The tests are run by the cargo commands themselves.
    run("README.md", |script| !script.contains("cargo "));
}
