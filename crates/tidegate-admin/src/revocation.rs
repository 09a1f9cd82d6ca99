//! Dropping roles with the grants that hang on them, in one transaction.
//!
//! What a role granted on objects of others only it can take back, while it holds the right to
//! grant itself: not even a superuser can, except in its place (`SET ROLE`). Taking the grantor's
//! own right first does not do, because PostgreSQL leaves alone what somebody granted who keeps the
//! right to grant as a member of another role, also when that role loses it the next moment.

use std::collections::BTreeSet;

use Part::{Name, Quoted, Syntax};

use super::grants::{self, Grant, Lending, Object, Owner};
use super::script::{Part, Script};
use super::session::Session;
use super::{Result, group, handover, role};

/// Drops roles of ours, in the transaction of the caller. What they own in the session's database
/// goes to `heir` first; without `reassign` a role that owns something is refused.
pub(super) async fn drop_roles(
    session: &Session,
    roles: &[&str],
    heir: &str,
    reassign: bool,
) -> Result<()> {
    if reassign {
        let mut script = Script::default();
        for role in roles {
            script.push(&[
                Syntax("REASSIGN OWNED BY "),
                Name(role),
                Syntax(" TO "),
                Name(heir),
            ]);
        }
        let script = session.acting_for(heir, script).await?;
        let script = acting_for(session, roles, script).await?;
        script.run_each(session).await?;
        let given = (roles, heir);
        handover::require_data_only(session, given, handover::Moment::Reassigned).await?;
    }
    // They end with the roles; as long as they are there, PostgreSQL takes less back.
    let memberships = group::leave_all(session, roles).await?;
    memberships.run_each(session).await?;
    take_back(session, roles, heir).await?;
    if !reassign {
        // A session that came after the first look may have made something; it would be lost.
        for role in roles {
            role::require_nothing_owned(session, role).await?;
        }
    }
    let mut script = Script::default();
    for role in roles {
        script.push(&[Syntax("DROP OWNED BY "), Name(role)]);
    }
    let mut script = acting_for(session, roles, script).await?;
    for role in roles {
        script.push(&[Syntax("DROP ROLE "), Name(role)]);
    }
    script.run_each(session).await
}

async fn acting_for(session: &Session, roles: &[&str], mut script: Script) -> Result<Script> {
    for role in roles {
        script = session.acting_for(role, script).await?;
    }
    Ok(script)
}

/// Takes back what was granted to and by roles. What the administrator cannot take PostgreSQL
/// names when the role is dropped.
async fn take_back(session: &Session, roles: &[&str], heir: &str) -> Result<()> {
    let mut writer = Writer::of(session.superuser);
    let grants = grants::of_roles(session, roles).await?;
    for grant in &grants {
        if !grant.by_owner() {
            writer.as_grantor(grant);
        } else if session.superuser || !grant.grantor.reached {
            writer.as_administrator(grant, heir);
        } else {
            writer.as_grantor(grant);
        }
    }
    writer.act_as(None);
    let stands_for: Vec<_> = writer.stands_for.into_iter().collect();
    let script = acting_for(session, &stands_for, writer.script).await?;
    script.run_each(session).await
}

/// Writes who takes what back.
struct Writer<'a> {
    script: Script,
    superuser: bool,
    /// The roles that the administrator must be a member of.
    stands_for: BTreeSet<&'a str>,
    /// The role that the statements run as; the administrator when absent.
    role: Option<&'a str>,
}

impl<'a> Writer<'a> {
    fn of(superuser: bool) -> Self {
        Self {
            script: Script::default(),
            superuser,
            stands_for: BTreeSet::new(),
            role: None,
        }
    }

    fn act_as(&mut self, role: Option<&'a str>) {
        if self.role == role {
            return;
        }
        self.role = role;
        match role {
            Some(role) => {
                self.stands_for.insert(role);
                self.script.push(&[Syntax("SET LOCAL ROLE "), Name(role)]);
            }
            None => self.script.push(&[Syntax("RESET ROLE")]),
        }
    }

    /// A superuser is every owner, and sees what the owner may not see. Anybody else could be taken
    /// for another role that it is a member of.
    fn act_as_owner(&mut self, owner: &'a str) {
        self.act_as(Some(owner).filter(|_| !self.superuser));
    }

    fn as_administrator(&mut self, grant: &'a Grant, heir: &str) {
        if grant.grantor.role == heir {
            self.stands_for.insert(&grant.grantor.role);
        }
        self.act_as(None);
        let revoke = revoke(grant, grant.grantee.as_deref(), Whole::Right);
        self.script.push(&revoke);
    }

    /// A grantor that has lost what it needs for taking the grant back is lent it meanwhile.
    fn as_grantor(&mut self, grant: &'a Grant) {
        let grantor = &grant.grantor;
        let Some(loans) = loans(grant).filter(|_| grantor.reached) else {
            return;
        };
        for loan in &loans {
            self.act_as_owner(&loan.lender.role);
            self.script.push(&loan.give);
        }
        self.act_as(Some(&grantor.role));
        let revoke = revoke(grant, grant.grantee.as_deref(), Whole::Right);
        self.script.push(&revoke);
        for loan in loans.iter().rev() {
            self.act_as_owner(&loan.lender.role);
            self.script.push(&loan.take);
        }
    }
}

/// What a grantor lacks for taking a grant back.
struct Loan<'a> {
    lender: &'a Owner,
    give: Vec<Part<'a>>,
    take: Vec<Part<'a>>,
}

/// What the grantor must be lent; nothing when nobody can lend it, or somebody who stays would lose
/// something when it is taken back.
fn loans(grant: &Grant) -> Option<Vec<Loan<'_>>> {
    let mut loans = Vec::new();
    let grantor = grant.grantor.role.as_str();
    if let Some((schema, owner)) = grant.object.schema.as_ref().filter(|_| !grant.sees) {
        let on = [Syntax("USAGE ON SCHEMA "), Quoted(schema)];
        loans.push(Loan {
            lender: owner,
            give: [
                &[Syntax("GRANT ")],
                &on[..],
                &[Syntax(" TO "), Name(grantor)],
            ]
            .concat(),
            take: [
                &[Syntax("REVOKE ")],
                &on[..],
                &[Syntax(" FROM "), Name(grantor)],
            ]
            .concat(),
        });
    }
    if !grant.holds && !grant.by_owner() {
        let mut give = vec![Syntax("GRANT ")];
        give.extend(what(grant));
        give.extend([Syntax(" TO "), Name(grantor), Syntax(" WITH GRANT OPTION")]);
        let whole = match grant.loan {
            Lending::Right => Whole::Right,
            Lending::Option => Whole::Option,
            Lending::Harmful => return None,
        };
        loans.push(Loan {
            lender: &grant.object.owner,
            give,
            take: revoke(grant, Some(grantor), whole),
        });
    }
    loans
        .iter()
        .all(|loan| loan.lender.reached)
        .then_some(loans)
}

/// What is taken of a right.
#[derive(Clone, Copy)]
enum Whole {
    Right,
    /// Only that it may be granted on.
    Option,
}

fn revoke<'a>(grant: &'a Grant, from: Option<&'a str>, whole: Whole) -> Vec<Part<'a>> {
    let mut parts = vec![match whole {
        Whole::Right => Syntax("REVOKE "),
        Whole::Option => Syntax("REVOKE GRANT OPTION FOR "),
    }];
    parts.extend(what(grant));
    parts.push(Syntax(" FROM "));
    parts.push(from.map_or(Syntax("PUBLIC"), Name));
    parts.push(Syntax(" CASCADE"));
    parts
}

/// The privileges and the object.
fn what(grant: &Grant) -> Vec<Part<'_>> {
    let Object {
        kind, name, column, ..
    } = &grant.object;
    let mut parts = Vec::new();
    for privilege in &grant.privileges {
        if !parts.is_empty() {
            parts.push(Syntax(", "));
        }
        parts.push(Quoted(privilege));
        if let Some(column) = column {
            parts.extend([Syntax(" ("), Quoted(column), Syntax(")")]);
        }
    }
    parts.extend([Syntax(" ON "), Syntax(kind), Syntax(" "), Quoted(name)]);
    parts
}
