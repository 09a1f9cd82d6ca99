//! Finds the grants that must be revoked before a role can be dropped.
//!
//! `DROP OWNED` alone is not enough, because it revokes only grants that the object's owner made.
//! If the administrator is not a superuser, `DROP OWNED` may even choose the dropped role itself as
//! the grantor.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use tidegate_wire::version;

use super::session::Session;
use super::{Result, role};

/// Selects the grants that some roles received or made, and all other grants on the same objects.
const GRANTS: &str = include_str!("grants.sql");

/// A role as which statements may have to run: the grantor of a grant, or the owner of an object or
/// of its schema.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ActingRole {
    pub(super) role: String,
    /// Whether the administrator can act as the role.
    pub(super) assumable: bool,
}

/// An object on which privileges are granted. `name` is quoted and qualified with the schema.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// The quoted column of a column privilege; `None` for a privilege on the whole object.
    pub(super) column: Option<String>,
    pub(super) owner: ActingRole,
    /// The schema and its owner; `None` for an object that is in no schema.
    pub(super) schema: Option<(String, ActingRole)>,
}

/// The privilege that is granted to a grantor temporarily. The grantor needs the GRANT OPTION to
/// revoke its own grant, but no longer has it. After the grantor has revoked its grant, the
/// temporary grant is revoked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TemporaryGrant {
    /// The privilege with GRANT OPTION.
    Privilege,
    /// Only the GRANT OPTION, because the grantor still has the privilege from the owner.
    GrantOptionOnly,
    /// No privilege can be granted temporarily, because the later REVOKE would do harm. If the
    /// grantor also granted the privilege to remaining roles, these roles would lose it. If the
    /// owner granted the privilege on columns to the grantor, the grantor would lose this column
    /// privilege.
    Harmful,
}

/// Privileges on one object that one role granted to another role.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ObjectGrant {
    pub(super) object: Object,
    pub(super) grantor: ActingRole,
    /// The role with the privileges; `None` for PUBLIC.
    pub(super) grantee: Option<String>,
    pub(super) privileges: Vec<String>,
    /// Whether the GRANT OPTION is still granted to the grantor itself. A GRANT OPTION that it has
    /// only through a membership does not count.
    pub(super) has_grant_option: bool,
    /// The privilege that can be granted temporarily to the grantor.
    pub(super) temporary: TemporaryGrant,
    /// Whether the grantor may use the schema of the object.
    pub(super) may_use_schema: bool,
}

impl ObjectGrant {
    pub(super) fn by_owner(&self) -> bool {
        self.grantor.role == self.object.owner.role
    }
}

/// One privilege that one role granted to another role or to PUBLIC: an edge of [`Graph`].
struct Edge {
    grant: ObjectGrant,
    /// Whether the grantee has the GRANT OPTION.
    grantable: bool,
    /// Whether one of the roles to be dropped made or received the grant.
    involves_dropped_role: bool,
}

impl Edge {
    fn of(row: &tokio_postgres::Row) -> Self {
        let acting_role = |name_column: &str, assumable_column: &str| -> Option<ActingRole> {
            Some(ActingRole {
                role: row.get::<_, Option<_>>(name_column)?,
                assumable: row.get(assumable_column),
            })
        };
        let required = |name_column, assumable_column| {
            acting_role(name_column, assumable_column).expect("the query joins it")
        };
        let schema: Option<String> = row.get("schema");
        Self {
            grant: ObjectGrant {
                object: Object {
                    kind: kind(row.get("kind")),
                    name: row.get("name"),
                    column: row.get("part"),
                    owner: required("owner", "owner_reached"),
                    schema: schema.zip(acting_role("schema_owner", "schema_reached")),
                },
                grantor: required("grantor", "reached"),
                grantee: row.get("grantee"),
                privileges: vec![row.get("privilege")],
                has_grant_option: false,
                temporary: TemporaryGrant::Privilege,
                may_use_schema: row.get("sees"),
            },
            grantable: row.get("is_grantable"),
            involves_dropped_role: row.get("touches"),
        }
    }

    /// The privilege that the grant is about, with its object. Grants of different privileges are
    /// independent.
    fn privilege_key(&self) -> PrivilegeKey<'_> {
        let object = &self.grant.object;
        (object.kind, &object.name, &self.grant.privileges[0])
    }
}

/// A privilege: the kind and the name of its object, and the privilege's name. A grant on a table
/// and a grant on one of its columns have the same key, because the column is not part of it.
type PrivilegeKey<'a> = (&'static str, &'a str, &'a str);

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

/// The grants that `roles` received or made in the session's database. A grant comes after all
/// grants that depend on it.
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
    for edge in edges.iter().filter(|edge| edge.involves_dropped_role) {
        let grantor = (edge.privilege_key(), edge.grant.grantor.role.as_str());
        let depth = graph.depth(grantor, &mut depths);
        // A REVOKE on an object in a schema needs USAGE on the schema, so grants on schemas are
        // revoked last.
        let place = (edge.grant.object.kind == "SCHEMA", Reverse(depth));
        merge(grants.entry(place).or_default(), graph.grant(edge));
    }
    Ok(grants.into_values().flatten().collect())
}

/// Adds `grant` to `grants`. If `grant` differs from the last element only in the privilege, adds
/// the privilege to this element instead.
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

/// The graph of grants: an edge leads from a grantor to a grantee.
struct Graph<'a> {
    /// For each privilege and role, the grants of the privilege to the role.
    edges: HashMap<(PrivilegeKey<'a>, &'a str), Vec<&'a Edge>>,
    /// The privileges and grantors of the grants that remain, because neither the grantor nor the
    /// grantee is to be dropped.
    kept: HashSet<(PrivilegeKey<'a>, &'a str)>,
}

impl<'a> Graph<'a> {
    fn of(edges: &'a [Edge]) -> Self {
        let mut to = HashMap::<_, Vec<_>>::new();
        for edge in edges {
            if let Some(grantee) = &edge.grant.grantee {
                let key = (edge.privilege_key(), grantee.as_str());
                to.entry(key).or_default().push(edge);
            }
        }
        let kept = edges.iter().filter(|edge| !edge.involves_dropped_role);
        let kept = kept.map(|edge| (edge.privilege_key(), edge.grant.grantor.role.as_str()));
        Self {
            edges: to,
            kept: kept.collect(),
        }
    }

    fn grants_to(&self, role: (PrivilegeKey<'a>, &'a str)) -> &[&'a Edge] {
        self.edges.get(&role).map_or(&[], Vec::as_slice)
    }

    /// The length of the longest chain of grants from the object's owner to a role.
    fn depth(
        &self,
        role: (PrivilegeKey<'a>, &'a str),
        known: &mut HashMap<(PrivilegeKey<'a>, &'a str), usize>,
    ) -> usize {
        if let Some(depth) = known.get(&role) {
            return *depth;
        }
        // PostgreSQL allows no circular grants. If there were a circle anyway, this entry would end
        // the recursion.
        known.insert(role, 0);
        let above = self.grants_to(role).iter().map(|edge| {
            let grantor = (role.0, edge.grant.grantor.role.as_str());
            self.depth(grantor, known) + 1
        });
        let depth = above.max().unwrap_or(0);
        known.insert(role, depth);
        depth
    }

    /// The grant of an edge. Sets [`ObjectGrant::has_grant_option`] and [`ObjectGrant::temporary`]
    /// according to the privileges that the grantor itself received.
    fn grant(&self, edge: &'a Edge) -> ObjectGrant {
        let mut grant = edge.grant.clone();
        let column = &grant.object.column;
        let from = (edge.privilege_key(), edge.grant.grantor.role.as_str());
        let (mut has, mut harms) = (false, self.kept.contains(&from));
        for above in self.grants_to(from) {
            let on = &above.grant.object.column;
            grant.has_grant_option |= above.grantable && (on.is_none() || on == column);
            has |= above.grant.by_owner() && on == column;
            harms |= above.grant.by_owner() && column.is_none() && on.is_some();
        }
        grant.temporary = match (harms, has) {
            (true, _) => TemporaryGrant::Harmful,
            (false, true) => TemporaryGrant::GrantOptionOnly,
            (false, false) => TemporaryGrant::Privilege,
        };
        grant
    }
}
