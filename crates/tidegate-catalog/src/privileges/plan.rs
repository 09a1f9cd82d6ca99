//! Computes the statements that change privileges, without I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::{Access, Role, Sequence, TablePrivileges};
use crate::error::{Error, Result};

/// The statements that one role runs in one transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoleStatements {
    pub(super) role: String,
    pub(super) statements: Vec<String>,
}

/// The statements that give `grantee` the level `access` on the table.
pub(super) fn steps(
    table: &TablePrivileges,
    grantee: &str,
    access: Access,
) -> Result<Vec<RoleStatements>> {
    let role = find(table, grantee).ok_or(Error::UnexpectedResult)?;
    if table.owner == grantee {
        return Err(Error::OwnsTable);
    }
    check_revocable(table, role, access)?;
    let mut steps = revocations(table, role, access);
    if access == Access::None {
        return Ok(steps);
    }
    if !role.usage {
        steps.push(usage(table, role)?);
    }
    let grantor = grantor(table, grantee, access)?;
    let mut statements = vec![format!(
        "GRANT {} ON TABLE {} TO {}",
        access.privileges().join(", "),
        table.relation,
        role.quoted
    )];
    if access == Access::Write {
        // Sequences of other owners are skipped, because the grantor may have no right to grant
        // privileges on them.
        let own = table.sequences.iter().filter(|s| s.owner == grantor);
        statements.extend(own.map(|sequence| {
            format!(
                "GRANT USAGE, SELECT ON SEQUENCE {} TO {}",
                sequence.name, role.quoted
            )
        }));
    }
    steps.push(RoleStatements {
        role: grantor,
        statements,
    });
    Ok(steps)
}

/// Rejects a change after which the role would keep privileges from groups, from PUBLIC, or from
/// grantors that the service cannot log in as.
fn check_revocable(table: &TablePrivileges, role: &Role, access: Access) -> Result<()> {
    let kept = access.privileges();
    let excess = role.grants.iter().filter(|grant| {
        // [`Access::Write`] does not revoke privileges that exceed it, so they may remain.
        access != Access::Write && !kept.contains(&grant.privilege.as_str())
    });
    for grant in excess {
        let from = match &grant.through {
            Some(through) => format!("through {through}"),
            None if find(table, &grant.grantor).is_none() => format!("from {}", grant.grantor),
            None => continue,
        };
        return Err(Error::NotRevocable {
            privilege: grant.privilege.clone(),
            from,
        });
    }
    Ok(())
}

/// The statements that revoke the table privileges that exceed `access`, and all privileges on the
/// sequences of the table. There are no statements for [`Access::Write`]. A table privilege is
/// revoked by its grantor. The privileges on a sequence are revoked by the owner of the sequence,
/// if the service can run as the owner. The table privileges come from the grants that PostgreSQL
/// reports and not from a fixed list. So they include privileges of newer versions of PostgreSQL.
fn revocations(table: &TablePrivileges, role: &Role, access: Access) -> Vec<RoleStatements> {
    if access == Access::Write {
        return Vec::new();
    }
    let kept = access.privileges();
    let mut excess: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for grant in role.grants.iter().filter(|grant| grant.through.is_none()) {
        if !kept.contains(&grant.privilege.as_str()) {
            let of_grantor = excess.entry(&grant.grantor).or_default();
            of_grantor.insert(&grant.privilege);
        }
    }
    let mut steps: Vec<RoleStatements> = excess
        .into_iter()
        .map(|(grantor, privileges)| RoleStatements {
            role: grantor.to_owned(),
            statements: vec![format!(
                "REVOKE {} ON TABLE {} FROM {}",
                privileges.into_iter().collect::<Vec<_>>().join(", "),
                table.relation,
                role.quoted
            )],
        })
        .collect();
    let ours = |sequence: &&Sequence| find(table, &sequence.owner).is_some();
    for sequence in table.sequences.iter().filter(ours) {
        steps.push(RoleStatements {
            role: sequence.owner.clone(),
            statements: vec![format!(
                "REVOKE ALL ON SEQUENCE {} FROM {}",
                sequence.name, role.quoted
            )],
        });
    }
    steps
}

fn usage(table: &TablePrivileges, role: &Role) -> Result<RoleStatements> {
    let gives = |role: &&Role| role.gives_usage;
    let owner = find(table, &table.schema_owner);
    let grantor = owner.or_else(|| table.roles.iter().find(gives));
    let grantor = grantor.ok_or_else(|| Error::NoGrantor {
        what: format!("USAGE on the schema {}", table.schema),
        owner: table.schema_owner.clone(),
    })?;
    Ok(RoleStatements {
        role: grantor.name.clone(),
        statements: vec![format!(
            "GRANT USAGE ON SCHEMA {} TO {}",
            table.schema, role.quoted
        )],
    })
}

/// The role that grants the privileges: the table's owner, or else a role with the grant option.
fn grantor(table: &TablePrivileges, grantee: &str, access: Access) -> Result<String> {
    let gives = |role: &&Role| {
        let mut wanted = access.privileges().iter();
        role.name != grantee && wanted.all(|wanted| role.gives.iter().any(|given| given == wanted))
    };
    let owner = find(table, &table.owner);
    let grantor = owner.or_else(|| table.roles.iter().find(gives));
    let grantor = grantor.ok_or_else(|| Error::NoGrantor {
        what: format!("{} on {}", access.privileges().join(", "), table.relation),
        owner: table.owner.clone(),
    })?;
    Ok(grantor.name.clone())
}

fn find<'f>(table: &'f TablePrivileges, name: &str) -> Option<&'f Role> {
    table.roles.iter().find(|role| role.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of `shop` on which `shop/ann` got privileges from `shop` and `shop/bob`.
    fn table() -> TablePrivileges {
        let grant = |grantor: &str, privilege: &str| serde_json::json!({"grantor": grantor, "through": null, "privilege": privilege});
        let role = |name: &str, grants: Vec<serde_json::Value>| {
            serde_json::json!({
                "role": name, "quoted": format!("\"{name}\""), "usage": true,
                "gives_usage": false, "privileges": [], "gives": [], "columns": [],
                "grants": grants,
            })
        };
        let anns = vec![
            grant("shop", "SELECT"),
            grant("shop", "TRUNCATE"),
            grant("shop", "REFERENCES"),
            grant("shop", "TRIGGER"),
            grant("shop", "MAINTAIN"),
            grant("shop/bob", "SELECT"),
            grant("shop/bob", "UPDATE"),
        ];
        let table = serde_json::json!({
            "relation": "public.orders", "schema": "public", "owner": "shop",
            "schema_owner": "shop", "sequences": [],
            "roles": [role("shop", vec![]), role("shop/ann", anns), role("shop/bob", vec![])],
        });
        serde_json::from_value(table).unwrap()
    }

    fn statements(access: Access) -> Vec<(String, Vec<String>)> {
        let steps = steps(&table(), "shop/ann", access).unwrap();
        let reported = steps.into_iter().map(|step| (step.role, step.statements));
        reported.collect()
    }

    #[test]
    fn read_takes_every_privilege_but_select() {
        let own = "ON TABLE public.orders FROM \"shop/ann\"";
        assert_eq!(
            statements(Access::Read),
            [
                (
                    "shop".to_owned(),
                    vec![format!(
                        "REVOKE MAINTAIN, REFERENCES, TRIGGER, TRUNCATE {own}"
                    )]
                ),
                ("shop/bob".to_owned(), vec![format!("REVOKE UPDATE {own}")]),
                (
                    "shop".to_owned(),
                    vec!["GRANT SELECT ON TABLE public.orders TO \"shop/ann\"".to_owned()]
                ),
            ]
        );
    }

    #[test]
    fn no_access_takes_select_too_and_write_takes_nothing() {
        let none = statements(Access::None);
        assert!(none[0].1[0].contains("SELECT") && none[1].1[0].contains("SELECT"));
        assert_eq!(none.len(), 2);
        assert_eq!(statements(Access::Write).len(), 1);
    }
}
