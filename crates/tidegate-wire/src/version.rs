//! The differences between the supported versions of PostgreSQL, 13 to 18.

/// PostgreSQL 14, as `server_version_num`.
const V14: u32 = 140_000;
const V15: u32 = 150_000;
const V16: u32 = 160_000;
const V17: u32 = 170_000;

/// The startup settings that only some versions know. Settings that `version` does not know are
/// left out, because PostgreSQL refuses a connection with an unknown setting.
pub fn startup_settings(
    version: u32,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let since = |introduced, name, value| (version >= introduced).then_some((name, value));
    [
        // With this setting, a backend ends when its client has disappeared, even while a statement
        // runs.
        since(V14, "client_connection_check_interval", "2s"),
        since(V14, "idle_session_timeout", "0"),
        since(V17, "transaction_timeout", "0"),
    ]
    .into_iter()
    .flatten()
}

/// Whether the version has multiranges.
pub fn has_multiranges(version: u32) -> bool {
    version >= V14
}

/// The oldest supported major version.
pub const OLDEST: u32 = 13;
/// The newest tested major version.
pub const NEWEST: u32 = 18;

/// The end of the `GRANT role` statement that allows the administrator to act as a role that it has
/// created. From PostgreSQL 16 on, `CREATE ROLE` itself makes the creator a member of the new role,
/// but without the options INHERIT and SET.
pub fn membership(version: u32) -> &'static str {
    if version >= V16 {
        " TO CURRENT_USER WITH INHERIT TRUE, SET TRUE"
    } else {
        " TO CURRENT_USER"
    }
}

/// The privilege to switch to a role, as `pg_has_role` names it.
pub fn may_become(version: u32) -> &'static str {
    if version >= V16 { "SET" } else { "MEMBER" }
}

/// The options of `GRANT group TO user`. With them the user has the group's privileges but cannot
/// switch to the group. Before PostgreSQL 16 every member may `SET ROLE`. On such servers the reset
/// after the request undoes a switch to the group.
pub fn group_membership(version: u32) -> &'static str {
    if version >= V16 {
        " WITH INHERIT TRUE, SET FALSE"
    } else {
        ""
    }
}

/// The options of `GRANT user TO authenticator`. With them the authenticator can switch to the user
/// but does not inherit the user's privileges. Before PostgreSQL 16 the authenticator's attribute
/// NOINHERIT has this effect.
pub fn switch_membership(version: u32) -> &'static str {
    if version >= V16 {
        " WITH INHERIT FALSE, SET TRUE"
    } else {
        ""
    }
}

/// Whether CREATEROLE applies only to roles for which the administrator has the ADMIN OPTION.
pub fn roles_need_admin_option(version: u32) -> bool {
    version >= V16
}

/// Whether the schema `public` of a new database belongs to the owner of the database.
pub fn database_owner_owns_public(version: u32) -> bool {
    version >= V15
}

/// Whether the privilege to set a parameter can be granted.
pub fn has_parameter_privileges(version: u32) -> bool {
    version >= V15
}

/// Whether logical decoding has this bug: if a transaction is open while a publication changes,
/// decoding continues to use the old version of the publication after the transaction has ended.
/// `version` is `server_version_num`.
pub fn keeps_old_publications(version: u32) -> bool {
    let fixed_in = match version / 10_000 {
        13 => 21,
        14 => 18,
        15 => 13,
        16 => 9,
        17 => 5,
        _ => 0,
    };
    version % 10_000 < fixed_in
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_are_kept_by_minor_versions_before_the_fix() {
        for (version, keeps) in [
            (130_020, true),
            (130_021, false),
            (140_017, true),
            (150_012, true),
            (150_013, false),
            (160_008, true),
            (170_004, true),
            (170_005, false),
            (180_000, false),
        ] {
            assert_eq!(keeps_old_publications(version), keeps, "{version}");
        }
    }
}
