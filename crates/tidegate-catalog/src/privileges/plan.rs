//! From what is and what is wanted to statements: a function of values.

use super::{Access, Facts, Role, Sequence};
use crate::error::{Error, Result};

/// Statements that one role runs in one transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) role: String,
    pub(super) statements: Vec<String>,
}

/// The statements after which `grantee` has `access` and nothing else of the table.
pub(super) fn steps(facts: &Facts, grantee: &str, access: Access) -> Result<Vec<Step>> {
    let role = find(facts, grantee).ok_or(Error::Document)?;
    if facts.owner == grantee {
        return Err(Error::OwnsTable);
    }
    refuse_what_we_cannot_take(facts, role, access)?;
    let mut steps = revocations(facts, role, access);
    if access == Access::None {
        return Ok(steps);
    }
    if !role.usage {
        steps.push(usage(facts, role)?);
    }
    let grantor = grantor(facts, grantee, access)?;
    let mut statements = vec![format!(
        "GRANT {} ON TABLE {} TO {}",
        access.privileges().join(", "),
        facts.relation,
        role.quoted
    )];
    if access == Access::Write {
        // Those of others are theirs to give.
        let own = facts.sequences.iter().filter(|s| s.owner == grantor);
        statements.extend(own.map(|sequence| {
            format!(
                "GRANT USAGE, SELECT ON SEQUENCE {} TO {}",
                sequence.name, role.quoted
            )
        }));
    }
    steps.push(Step {
        role: grantor,
        statements,
    });
    Ok(steps)
}

/// What comes through a group, from everybody's rights or from a grantor whose login we do not
/// hold would stay whatever we do.
fn refuse_what_we_cannot_take(facts: &Facts, role: &Role, access: Access) -> Result<()> {
    let kept = access.privileges();
    let excess = role.grants.iter().filter(|grant| {
        // Writing may come with more.
        access != Access::Write && !kept.contains(&grant.privilege.as_str())
    });
    for grant in excess {
        let from = match &grant.through {
            Some(through) => format!("through {through}"),
            None if find(facts, &grant.grantor).is_none() => format!("from {}", grant.grantor),
            None => continue,
        };
        return Err(Error::GrantedElsewhere {
            privilege: grant.privilege.clone(),
            from,
        });
    }
    Ok(())
}

/// What each grantor takes back: all of it, or all but `SELECT`.
fn revocations(facts: &Facts, role: &Role, access: Access) -> Vec<Step> {
    let what = match access {
        Access::None => "ALL",
        Access::Read => "INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER",
        Access::Write => return Vec::new(),
    };
    let own = role.grants.iter().filter(|grant| grant.through.is_none());
    let mut grantors: Vec<&str> = own.map(|grant| grant.grantor.as_str()).collect();
    grantors.sort_unstable();
    grantors.dedup();
    let mut steps: Vec<Step> = grantors
        .into_iter()
        .map(|grantor| Step {
            role: grantor.to_owned(),
            statements: vec![format!(
                "REVOKE {what} ON TABLE {} FROM {}",
                facts.relation, role.quoted
            )],
        })
        .collect();
    let ours = |sequence: &&Sequence| find(facts, &sequence.owner).is_some();
    for sequence in facts.sequences.iter().filter(ours) {
        steps.push(Step {
            role: sequence.owner.clone(),
            statements: vec![format!(
                "REVOKE ALL ON SEQUENCE {} FROM {}",
                sequence.name, role.quoted
            )],
        });
    }
    steps
}

fn usage(facts: &Facts, role: &Role) -> Result<Step> {
    let gives = |role: &&Role| role.gives_usage;
    let owner = find(facts, &facts.schema_owner);
    let grantor = owner.or_else(|| facts.roles.iter().find(gives));
    let grantor = grantor.ok_or_else(|| Error::NobodyMayGrant {
        what: format!("USAGE on the schema {}", facts.schema),
        owner: facts.schema_owner.clone(),
    })?;
    Ok(Step {
        role: grantor.name.clone(),
        statements: vec![format!(
            "GRANT USAGE ON SCHEMA {} TO {}",
            facts.schema, role.quoted
        )],
    })
}

/// The table's owner, or somebody else who may pass on what is wanted.
fn grantor(facts: &Facts, grantee: &str, access: Access) -> Result<String> {
    let gives = |role: &&Role| {
        let mut wanted = access.privileges().iter();
        role.name != grantee && wanted.all(|wanted| role.gives.iter().any(|given| given == wanted))
    };
    let owner = find(facts, &facts.owner);
    let grantor = owner.or_else(|| facts.roles.iter().find(gives));
    let grantor = grantor.ok_or_else(|| Error::NobodyMayGrant {
        what: format!("{} on {}", access.privileges().join(", "), facts.relation),
        owner: facts.owner.clone(),
    })?;
    Ok(grantor.name.clone())
}

fn find<'f>(facts: &'f Facts, name: &str) -> Option<&'f Role> {
    facts.roles.iter().find(|role| role.name == name)
}
