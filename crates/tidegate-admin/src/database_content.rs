//! Inspects a database that is to be adopted.

use std::collections::BTreeSet;

use super::right::Right;
use super::session::Session;
use super::{Result, role};

/// The content of a database, except objects of PostgreSQL, of extensions and of Tidegate.
pub(super) struct DatabaseContent {
    pub(super) is_template: bool,
    pub(super) schemas: Vec<Schema>,
    /// The roles that own the database, a schema or an object in it.
    pub(super) owners: BTreeSet<String>,
    /// The privileges that an adoption revokes from PUBLIC, after it has granted them to the login
    /// roles that exist.
    pub(super) public_rights: Vec<Right>,
    logins: Vec<LoginRole>,
}

/// A schema with the objects on which the tenant's owner gets privileges.
pub(super) struct Schema {
    pub(super) name: String,
    /// Whether the schema already belongs to the tenant's owner.
    pub(super) owned: bool,
    pub(super) tables: Vec<Object>,
    pub(super) sequences: Vec<Object>,
    pub(super) routines: Vec<Object>,
}

/// An object on which privileges are granted.
pub(super) enum Object {
    /// A table, view or sequence, by its name within its schema.
    Relation(String),
    /// A function or procedure as PostgreSQL writes it: schema, name and arguments.
    Routine(String),
}

/// A role that can log in, is not a superuser and was not created by Tidegate.
struct LoginRole {
    role: String,
    rights: Vec<Right>,
}

const OBJECTS: &str = "
    SELECT n.nspname::text AS schema, o.kind, o.name, r.rolname::text AS owner
    FROM pg_catalog.pg_namespace n
    CROSS JOIN LATERAL (
        SELECT 's' AS kind, '' AS name, n.nspowner AS owner,
               'pg_catalog.pg_namespace'::pg_catalog.regclass AS class, n.oid AS object
        UNION ALL
        SELECT CASE c.relkind WHEN 'S' THEN 'q' ELSE 't' END, c.relname::text, c.relowner,
               'pg_catalog.pg_class'::pg_catalog.regclass, c.oid
        FROM pg_catalog.pg_class c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        UNION ALL
        SELECT 'f', pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                                      pg_catalog.oidvectortypes(p.proargtypes)),
               p.proowner, 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid
        FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid
    ) o
    JOIN pg_catalog.pg_roles r ON r.oid = o.owner
    WHERE n.nspname NOT IN ('information_schema', 'tidegate', 'tidegate_catalog',
                            'tidegate_private') AND n.nspname !~ '^pg_'
      AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = o.class AND d.objid = o.object AND d.deptype = 'e')
    ORDER BY n.nspname, o.kind, o.name";

const PUBLIC_RIGHTS: &str = "
    SELECT pg_catalog.lower(a.privilege_type) FROM pg_catalog.pg_database d,
           pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a
    WHERE d.datname = pg_catalog.current_database() AND a.grantee = 0
      AND a.privilege_type IN ('CONNECT', 'TEMPORARY')
    UNION
    SELECT 'create_in_public' FROM pg_catalog.pg_namespace n,
           pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) || '{}') a
    WHERE n.nspname = 'public' AND a.grantee = 0 AND a.privilege_type = 'CREATE'
    ORDER BY 1";

const LOGINS: &str = "
    SELECT r.rolname::text,
           ARRAY(
             SELECT pg_catalog.lower(a.privilege_type) FROM pg_catalog.pg_database d,
                    pg_catalog.aclexplode(
                        coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a
             WHERE d.datname = pg_catalog.current_database() AND a.grantee = r.oid
             UNION
             SELECT 'create_in_public' FROM pg_catalog.pg_namespace n,
                    pg_catalog.aclexplode(
                        coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) || '{}') a
             WHERE n.nspname = 'public' AND a.grantee = r.oid AND a.privilege_type = 'CREATE'
           )
    FROM pg_catalog.pg_roles r
    WHERE r.rolcanlogin AND NOT r.rolsuper
      AND coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), '')
          NOT LIKE ($1::text || '%')
    ORDER BY 1";

impl DatabaseContent {
    /// Inspects the session's database. Leaves out objects that already belong to `tenant_owner`,
    /// the role of the tenant's owner. There are such objects if a database is adopted again
    /// because its records were lost.
    pub(super) async fn inspect(session: &Session, tenant_owner: &str) -> Result<Self> {
        let row = session
            .client
            .query_one(
                "SELECT datistemplate FROM pg_catalog.pg_database \
                 WHERE datname = pg_catalog.current_database()",
                &[],
            )
            .await?;
        let mut content = Self {
            is_template: row.get(0),
            schemas: Vec::new(),
            owners: BTreeSet::from([Self::database_owner(session).await?]),
            public_rights: public_rights(session).await?,
            logins: logins(session).await?,
        };
        for row in session.client.query(OBJECTS, &[]).await? {
            content.add(
                tenant_owner,
                (row.get(0), row.get(1), row.get(2)),
                row.get(3),
            );
        }
        Ok(content)
    }

    fn add(&mut self, tenant_owner: &str, object: (String, &str, String), owner: String) {
        let (schema, kind, name) = object;
        let is_owned = owner == tenant_owner;
        if self.schemas.last().is_none_or(|last| last.name != schema) {
            let (tables, sequences, routines) = Default::default();
            self.schemas.push(Schema {
                name: schema,
                owned: false,
                tables,
                sequences,
                routines,
            });
        }
        let schema = self.schemas.last_mut().expect("a schema was pushed above");
        match kind {
            "s" => schema.owned = is_owned,
            _ if is_owned => {}
            "t" => schema.tables.push(Object::Relation(name)),
            "q" => schema.sequences.push(Object::Relation(name)),
            _ => schema.routines.push(Object::Routine(name)),
        }
        if !is_owned {
            self.owners.insert(owner);
        }
    }

    /// The roles that own the database or its objects. The tenant's owner gets privileges on the
    /// future objects of these roles. PostgreSQL's own roles are left out, because they create no
    /// objects.
    pub(super) fn object_creators(&self) -> impl Iterator<Item = &str> {
        self.owners
            .iter()
            .map(String::as_str)
            .filter(|owner| !owner.starts_with("pg_"))
    }

    /// The login roles to which the privilege is not granted directly.
    pub(super) fn logins_without(&self, right: Right) -> impl Iterator<Item = &str> {
        let without = self
            .logins
            .iter()
            .filter(move |login| !login.rights.contains(&right));
        without.map(|login| login.role.as_str())
    }

    pub(super) async fn database_owner(session: &Session) -> Result<String> {
        let row = session
            .client
            .query_one(
                "SELECT pg_catalog.pg_get_userbyid(datdba)::text FROM pg_catalog.pg_database \
                 WHERE datname = pg_catalog.current_database()",
                &[],
            )
            .await?;
        Ok(row.get(0))
    }

    /// The login roles that are not superusers and were not created by Tidegate.
    pub(super) async fn logins(session: &Session) -> Result<BTreeSet<String>> {
        Ok(logins(session)
            .await?
            .into_iter()
            .map(|login| login.role)
            .collect())
    }
}

async fn public_rights(session: &Session) -> Result<Vec<Right>> {
    let rows = session.client.query(PUBLIC_RIGHTS, &[]).await?;
    Ok(rows
        .iter()
        .filter_map(|row| Right::from_name(row.get(0)))
        .collect())
}

async fn logins(session: &Session) -> Result<Vec<LoginRole>> {
    let rows = session.client.query(LOGINS, &[&role::MARK]).await?;
    let login = |row: &tokio_postgres::Row| {
        let rights: Vec<&str> = row.get(1);
        LoginRole {
            role: row.get(0),
            rights: rights.into_iter().filter_map(Right::from_name).collect(),
        }
    };
    Ok(rows.iter().map(login).collect())
}
