//! Checks whether the control database exists, and who may connect to it.

use super::super::script::identifier;
use super::super::session::Session;
use super::super::{Admin, Error, Result, role, tenant};
use super::Finding;

/// Checks whether the control database exists or can be created, whether it contains something
/// else, and whether others may connect to it.
pub(super) async fn control(admin: &Admin, home: &Session) -> Result<Vec<Finding>> {
    let name = admin.config.control_database.as_str();
    if let Err(occupied) = tenant::require_not_reserved(name) {
        return Ok(vec![Finding::missing(occupied.to_string(), None)]);
    }
    if !tenant::database_exists(home, name).await? {
        let may = super::may_create_databases(home).await?;
        let sql = super::control_database(name, &home.role).to_string();
        return Ok(vec![Finding::require(
            may,
            &format!("the control database {name} will be created"),
            &format!("the control database {name} does not exist and may not be created"),
            sql.trim_end().to_owned(),
        )]);
    }
    // If the database cannot be opened for lack of the privilege CONNECT, `rights` reports that.
    if let Ok(inside) = admin.open(name).await {
        match tenant::require_control(&inside, name).await {
            // The database is used for something else. No other finding is returned, because its
            // SQL would lock out the present users of the database.
            Err(occupied @ Error::Occupied { .. }) => {
                return Ok(vec![Finding::missing(occupied.to_string(), None)]);
            }
            looked => looked?,
        }
    }
    rights(home, name).await
}

/// Selects whether the administrator may connect and create schemas, whether PUBLIC may connect,
/// and which roles of Tidegate may connect. The roles of Tidegate are in two lists. The first has
/// the roles with a grant of their own. The second has the roles that may connect only through
/// another role or PUBLIC; an operator may have granted this access on purpose.
const RIGHTS: &str = "
    SELECT pg_catalog.has_database_privilege(current_user, d.oid, 'CONNECT')
           AND pg_catalog.has_database_privilege(current_user, d.oid, 'CREATE'),
           0 = ANY (l.grantees),
           ARRAY(SELECT r.rolname::text FROM ours r WHERE r.oid = ANY (l.grantees) ORDER BY 1),
           ARRAY(SELECT r.rolname::text FROM ours r
                 WHERE r.oid <> ALL (l.grantees)
                   AND pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT') ORDER BY 1)
    FROM pg_catalog.pg_database d
    CROSS JOIN LATERAL (
        SELECT ARRAY(SELECT a.grantee FROM pg_catalog.aclexplode(
                         coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a
                     WHERE a.privilege_type = 'CONNECT') AS grantees) l
    WHERE d.datname = $1";

async fn rights(home: &Session, name: &str) -> Result<Vec<Finding>> {
    let query = format!(
        "WITH ours AS (SELECT r.oid, r.rolname FROM pg_catalog.pg_roles r \
             WHERE pg_catalog.starts_with( \
                 pg_catalog.shobj_description(r.oid, 'pg_authid'), $2)) {RIGHTS}"
    );
    let row = home.client.query_one(&query, &[&name, &role::MARK]).await?;
    let database = identifier(name);
    let works = Finding::require(
        row.get(0),
        &format!("the control database {name} exists"),
        &format!("the administrator may not work in the control database {name}"),
        format!(
            "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {database} TO {};",
            identifier(&home.role)
        ),
    );
    let (everybody, named, by_others): (bool, Vec<String>, Vec<String>) =
        (row.get(1), row.get(2), row.get(3));
    if !everybody && named.is_empty() && !by_others.is_empty() {
        let text = format!(
            "the users {} may connect to the control database by other roles: take them out of \
             those, or CONNECT from those",
            by_others.join(", ")
        );
        return Ok(vec![works, Finding::advice(text, None)]);
    }
    let (who, from) = if everybody {
        ("everybody".to_owned(), "PUBLIC".to_owned())
    } else {
        let quoted: Vec<_> = named.iter().map(|user| identifier(user)).collect();
        (format!("the users {}", named.join(", ")), quoted.join(", "))
    };
    let closed = Finding::require(
        !everybody && named.is_empty(),
        "the control database is closed to users",
        &format!("{who} may connect to the control database"),
        format!("REVOKE ALL ON DATABASE {database} FROM {from};"),
    );
    Ok(vec![works, closed])
}
