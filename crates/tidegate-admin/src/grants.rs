//! The grants that go with a role.
//!
//! `DROP OWNED` alone does not do: it takes back only what the object's owner granted, and for an
//! administrator that is no superuser it may mistake the role itself for the grantor.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use tidegate_wire::version;

use super::session::Session;
use super::{Result, role};

/// The grants to and by roles, and the others on the same objects.
const GRANTS: &str = include_str!("grants.sql");

/// A role on an object or on what it stands in, and whether the administrator can act for it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) role: String,
    pub(super) reached: bool,
}

/// An object that rights are granted on, as PostgreSQL writes it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// The column, where the right is on that alone.
    pub(super) column: Option<String>,
    pub(super) owner: Owner,
    /// The schema and whose it is.
    pub(super) schema: Option<(String, Owner)>,
}

/// What a grantor can be lent that may not grant any more, and gives back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lending {
    /// The right, with that to grant it.
    Right,
    /// Only the right to grant it: the owner has granted it the other.
    Option,
    /// Nothing: somebody who stays would lose something with it, to whom it granted that too, or
    /// itself what the owner granted it on single columns.
    Harmful,
}

/// What one role granted to another on an object.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) object: Object,
    pub(super) grantor: Owner,
    /// Everybody when absent.
    pub(super) grantee: Option<String>,
    pub(super) privileges: Vec<String>,
    /// Whether the grantor itself has been granted the right to grant that.
    pub(super) holds: bool,
    /// What the grantor can be lent.
    pub(super) loan: Lending,
    /// Whether the grantor finds the object by its name.
    pub(super) sees: bool,
}

impl Grant {
    pub(super) fn by_owner(&self) -> bool {
        self.grantor.role == self.object.owner.role
    }
}

/// One privilege of a grant.
struct Edge {
    grant: Grant,
    grantable: bool,
    touches: bool,
}

impl Edge {
    fn of(row: &tokio_postgres::Row) -> Self {
        let owner = |role: &str, reached: &str| -> Option<Owner> {
            let (role, reached) = (row.get::<_, Option<_>>(role)?, row.get(reached));
            Some(Owner { role, reached })
        };
        let known = |role, reached| owner(role, reached).expect("the query joins it");
        let schema: Option<String> = row.get("schema");
        Self {
            grant: Grant {
                object: Object {
                    kind: kind(row.get("kind")),
                    name: row.get("name"),
                    column: row.get("part"),
                    owner: known("owner", "owner_reached"),
                    schema: schema.zip(owner("schema_owner", "schema_reached")),
                },
                grantor: known("grantor", "reached"),
                grantee: row.get("grantee"),
                privileges: vec![row.get("privilege")],
                holds: false,
                loan: Lending::Right,
                sees: row.get("sees"),
            },
            grantable: row.get("is_grantable"),
            touches: row.get("touches"),
        }
    }

    /// What no grant of another privilege or on another object has to do with.
    fn right(&self) -> Right<'_> {
        let object = &self.grant.object;
        (object.kind, &object.name, &self.grant.privileges[0])
    }
}

/// A privilege on an object with its columns.
type Right<'a> = (&'static str, &'a str, &'a str);

fn kind(name: &str) -> &'static str {
    const KINDS: [&str; 9] = [
        "ROUTINE",
        "TYPE",
        "SCHEMA",
        "DATABASE",
        "LARGE OBJECT",
        "LANGUAGE",
        "FOREIGN DATA WRAPPER",
        "FOREIGN SERVER",
        "TABLE",
    ];
    let known = KINDS.into_iter().find(|kind| *kind == name);
    known.unwrap_or("TABLE")
}

/// The grants to and by `roles` in the session's database, so ordered that no grant goes before
/// those that hang on it.
pub(super) async fn of_roles(session: &Session, roles: &[&str]) -> Result<Vec<Grant>> {
    let need_admin_option = version::roles_need_admin_option(session.version);
    let become_one = version::may_become(session.version);
    let rows = session
        .client
        .query(
            GRANTS,
            &[&roles, &role::MARK, &become_one, &need_admin_option],
        )
        .await?;
    let edges: Vec<_> = rows.iter().map(Edge::of).collect();
    let graph = Graph::of(&edges);
    let mut depths = HashMap::new();
    let mut grants = BTreeMap::<_, Vec<Grant>>::new();
    for edge in edges.iter().filter(|edge| edge.touches) {
        let grantor = (edge.right(), edge.grant.grantor.role.as_str());
        let depth = graph.depth(grantor, &mut depths);
        // Who takes back something in a schema must see it: that goes last.
        let place = (edge.grant.object.kind == "SCHEMA", Reverse(depth));
        merge(grants.entry(place).or_default(), graph.grant(edge));
    }
    Ok(grants.into_values().flatten().collect())
}

/// Adds a grant to the last one where it is only of another privilege.
fn merge(grants: &mut Vec<Grant>, grant: Grant) {
    if let Some(last) = grants.last_mut() {
        let privileges = std::mem::take(&mut last.privileges);
        let same = Grant {
            privileges: Vec::new(),
            ..grant.clone()
        } == *last;
        last.privileges = privileges;
        if same {
            last.privileges.extend(grant.privileges);
            return;
        }
    }
    grants.push(grant);
}

/// Who has what from whom.
struct Graph<'a> {
    edges: HashMap<(Right<'a>, &'a str), Vec<&'a Edge>>,
    /// What somebody granted to others, who stay.
    kept: HashSet<(Right<'a>, &'a str)>,
}

impl<'a> Graph<'a> {
    fn of(edges: &'a [Edge]) -> Self {
        let mut to = HashMap::<_, Vec<_>>::new();
        for edge in edges {
            if let Some(grantee) = &edge.grant.grantee {
                let key = (edge.right(), grantee.as_str());
                to.entry(key).or_default().push(edge);
            }
        }
        let kept = edges.iter().filter(|edge| !edge.touches);
        let kept = kept.map(|edge| (edge.right(), edge.grant.grantor.role.as_str()));
        Self {
            edges: to,
            kept: kept.collect(),
        }
    }

    fn to(&self, role: (Right<'a>, &'a str)) -> &[&'a Edge] {
        self.edges.get(&role).map_or(&[], Vec::as_slice)
    }

    /// How many grants lie between the object's owner and a role, on the longest way.
    fn depth(
        &self,
        role: (Right<'a>, &'a str),
        known: &mut HashMap<(Right<'a>, &'a str), usize>,
    ) -> usize {
        if let Some(depth) = known.get(&role) {
            return *depth;
        }
        // PostgreSQL makes no circles; should there be one, it ends here.
        known.insert(role, 0);
        let above = self.to(role).iter().map(|edge| {
            let grantor = (role.0, edge.grant.grantor.role.as_str());
            self.depth(grantor, known) + 1
        });
        let depth = above.max().unwrap_or(0);
        known.insert(role, depth);
        depth
    }

    /// The grant of an edge, with what its grantor has.
    fn grant(&self, edge: &'a Edge) -> Grant {
        let mut grant = edge.grant.clone();
        let column = &grant.object.column;
        let from = (edge.right(), edge.grant.grantor.role.as_str());
        let (mut has, mut harms) = (false, self.kept.contains(&from));
        for above in self.to(from) {
            let on = &above.grant.object.column;
            grant.holds |= above.grantable && (on.is_none() || on == column);
            has |= above.grant.by_owner() && on == column;
            harms |= above.grant.by_owner() && column.is_none() && on.is_some();
        }
        grant.loan = match (harms, has) {
            (true, _) => Lending::Harmful,
            (false, true) => Lending::Option,
            (false, false) => Lending::Right,
        };
        grant
    }
}
