//! The grants that must be revoked to drop a role.
//!
//! `DROP OWNED` alone is not enough: it revokes only what the object's owner granted, and for an
//! administrator without superuser it may treat the role itself as the grantor.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use tidegate_wire::version;

use super::session::Session;
use super::{Result, role};

/// The grants to and by roles, and the other grants on the same objects.
const GRANTS: &str = include_str!("grants.sql");

/// The owner of an object or of its schema, and whether the administrator can act for it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) role: String,
    pub(super) reached: bool,
}

/// An object with privileges, as PostgreSQL writes it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// The column, for a column privilege.
    pub(super) column: Option<String>,
    pub(super) owner: Owner,
    pub(super) schema: Option<(String, Owner)>,
}

/// What can be granted temporarily to a grantor that can no longer revoke its grant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TemporaryGrant {
    /// The privilege with GRANT OPTION.
    Right,
    /// Only the GRANT OPTION: the owner has granted it the privilege.
    Option,
    /// Nothing: revoking it again would take something from roles that remain, to which the grantor
    /// granted it too, or from the grantor itself, to which the owner granted it on single columns.
    Harmful,
}

/// What one role granted to another on an object.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ObjectGrant {
    pub(super) object: Object,
    pub(super) grantor: Owner,
    /// `None` for PUBLIC.
    pub(super) grantee: Option<String>,
    pub(super) privileges: Vec<String>,
    /// Whether the grantor itself holds the GRANT OPTION.
    pub(super) holds: bool,
    /// What can be granted temporarily to the grantor.
    pub(super) temporary: TemporaryGrant,
    /// Whether the grantor may use the schema of the object.
    pub(super) sees: bool,
}

impl ObjectGrant {
    pub(super) fn by_owner(&self) -> bool {
        self.grantor.role == self.object.owner.role
    }
}

/// One privilege of a grant.
struct Edge {
    grant: ObjectGrant,
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
            grant: ObjectGrant {
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
                temporary: TemporaryGrant::Right,
                sees: row.get("sees"),
            },
            grantable: row.get("is_grantable"),
            touches: row.get("touches"),
        }
    }

    /// Identifies a privilege on an object; grants of different ones are independent.
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

/// The grants to and by `roles` in the session's database, ordered so that each comes after those
/// that depend on it.
pub(super) async fn of_roles(session: &Session, roles: &[&str]) -> Result<Vec<ObjectGrant>> {
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
    let mut grants = BTreeMap::<_, Vec<ObjectGrant>>::new();
    for edge in edges.iter().filter(|edge| edge.touches) {
        let grantor = (edge.right(), edge.grant.grantor.role.as_str());
        let depth = graph.depth(grantor, &mut depths);
        // Revoking something in a schema takes USAGE on the schema, so that comes last.
        let place = (edge.grant.object.kind == "SCHEMA", Reverse(depth));
        merge(grants.entry(place).or_default(), graph.grant(edge));
    }
    Ok(grants.into_values().flatten().collect())
}

/// Merges a grant into the previous one if it differs only in the privilege.
fn merge(grants: &mut Vec<ObjectGrant>, grant: ObjectGrant) {
    if let Some(last) = grants.last_mut() {
        let privileges = std::mem::take(&mut last.privileges);
        let same = ObjectGrant {
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

/// The graph of grants.
struct Graph<'a> {
    edges: HashMap<(Right<'a>, &'a str), Vec<&'a Edge>>,
    /// Privileges that a role granted to others, which remain.
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

    /// The length of the longest chain of grants from the object's owner to a role.
    fn depth(
        &self,
        role: (Right<'a>, &'a str),
        known: &mut HashMap<(Right<'a>, &'a str), usize>,
    ) -> usize {
        if let Some(depth) = known.get(&role) {
            return *depth;
        }
        // PostgreSQL allows no circles; this ends the recursion if there is one anyway.
        known.insert(role, 0);
        let above = self.to(role).iter().map(|edge| {
            let grantor = (role.0, edge.grant.grantor.role.as_str());
            self.depth(grantor, known) + 1
        });
        let depth = above.max().unwrap_or(0);
        known.insert(role, depth);
        depth
    }

    /// The grant of an edge, with what its grantor holds.
    fn grant(&self, edge: &'a Edge) -> ObjectGrant {
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
        grant.temporary = match (harms, has) {
            (true, _) => TemporaryGrant::Harmful,
            (false, true) => TemporaryGrant::Option,
            (false, false) => TemporaryGrant::Right,
        };
        grant
    }
}
