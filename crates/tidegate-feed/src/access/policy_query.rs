//! Queries the policies of tables. Recognises policies that compare a column with the id or a claim
//! of the caller, and policies that do not depend on the caller.

use tidegate_sql::Statement;
use tidegate_sql::statement::Purity;

use crate::access::rls_policy::{CallerPart, ComparedType, PolicyClause, PolicyEquality};
use crate::catalog_query::{TextRow, is_true, text};

/// Selects each policy that applies to SELECT: its table, its OID, whether it is permissive, its
/// condition, and the columns that the condition reads. Some conditions only compare a column with
/// `(SELECT tidegate.user_id())` or `(SELECT tidegate.claim('name'))`. For such a condition, the
/// query also selects the column, the column's type and the name of the claim.
///
/// The last result column says on which objects the condition depends besides the policy's own
/// table and built-in objects: `0` for none, `1` for only the functions `tidegate.claim` and
/// `tidegate.claims`, `2` for any other object. PostgreSQL records these dependencies, including
/// those of implicit casts.
///
/// A condition that only compares is recognised by its text. PostgreSQL prints conditions in the
/// same way in all supported versions. With an empty `search_path` it writes the schema before
/// every function and operator that is not built in. The service compares the text forms of values.
/// This requires a column type for which equal values always have equal text forms, and conversely.
/// The functions and schemas of Tidegate must belong to the service's role, because another owner
/// could have replaced the functions.
pub(crate) const POLICIES: &str = "\
    WITH own AS (SELECT NOT EXISTS (\
        SELECT FROM pg_catalog.pg_namespace s \
        LEFT JOIN pg_catalog.pg_proc f ON f.pronamespace = s.oid \
        JOIN pg_catalog.pg_roles r ON r.oid IN (s.nspowner, f.proowner) \
        JOIN pg_catalog.pg_roles m ON m.rolname = current_user \
        WHERE s.nspname IN ('tidegate', 'tidegate_private') \
          AND r.oid <> m.oid AND NOT (m.rolsuper AND r.rolsuper)) AS functions) \
    SELECT p.polrelid::text, p.oid::text, p.polpermissive::text, e.condition, \
           (SELECT pg_catalog.string_agg(d.refobjsubid::text, ',') FROM pg_catalog.pg_depend d \
            WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND d.refobjid = p.polrelid), \
           q.name, q.type, \
           pg_catalog.replace(pg_catalog.substring(c.call, \
               'claim[(]''(.*)''::text[)]$'), '''''', ''''), \
           (SELECT COALESCE(pg_catalog.max(CASE \
                WHEN d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
                     AND d.refobjid = p.polrelid THEN 0 \
                WHEN own.functions AND n.nspname = 'tidegate' \
                     AND f.proname IN ('claim', 'claims') THEN 1 \
                ELSE 2 END), 0)::text FROM pg_catalog.pg_depend d \
            LEFT JOIN pg_catalog.pg_proc f ON f.oid = d.refobjid \
                AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass \
            LEFT JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace \
            WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid) \
    FROM own CROSS JOIN pg_catalog.pg_policy p \
    CROSS JOIN LATERAL (SELECT pg_catalog.pg_get_expr(p.polqual, p.polrelid)) AS e(condition) \
    CROSS JOIN LATERAL (SELECT pg_catalog.substring(e.condition, \
        'SELECT [(]?(tidegate[.](?:user_id[(][)]|claim[(]''(?:[^''\\\\]|'''')*''::text[)]))')) \
        AS c(call) \
    LEFT JOIN LATERAL (\
        SELECT a.attname::text, pg_catalog.format_type(a.atttypid, NULL) \
        FROM pg_catalog.pg_attribute a \
        LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation \
        CROSS JOIN LATERAL (SELECT CASE WHEN pg_catalog.strpos(c.call, 'user_id') = 10 \
                                   THEN 'user_id' ELSE 'claim' END) AS n(alias) \
        WHERE a.attrelid = p.polrelid AND a.attnum > 0 AND NOT a.attisdropped \
          AND COALESCE(o.collisdeterministic, true) \
          AND e.condition = ANY (CASE a.atttypid \
              WHEN 'pg_catalog.text'::pg_catalog.regtype THEN ARRAY[\
                  pg_catalog.format('(%I = ( SELECT %s AS %s))', a.attname, c.call, n.alias)] \
              WHEN 'pg_catalog.varchar'::pg_catalog.regtype THEN ARRAY[\
                  pg_catalog.format('((%I)::text = ( SELECT %s AS %s))', a.attname, c.call, n.alias)] \
              WHEN 'pg_catalog.uuid'::pg_catalog.regtype THEN ARRAY[\
                  pg_catalog.format('(%I = ( SELECT (%s)::uuid AS %s))', a.attname, c.call, n.alias), \
                  pg_catalog.format('(%I = (( SELECT %s AS %s))::uuid)', a.attname, c.call, n.alias)] \
              WHEN 'pg_catalog.int4'::pg_catalog.regtype THEN ARRAY[\
                  pg_catalog.format('(%I = ( SELECT (%s)::integer AS %s))', a.attname, c.call, n.alias), \
                  pg_catalog.format('(%I = (( SELECT %s AS %s))::integer)', a.attname, c.call, n.alias)] \
              WHEN 'pg_catalog.int8'::pg_catalog.regtype THEN ARRAY[\
                  pg_catalog.format('(%I = ( SELECT (%s)::bigint AS %s))', a.attname, c.call, n.alias), \
                  pg_catalog.format('(%I = (( SELECT %s AS %s))::bigint)', a.attname, c.call, n.alias)] \
              ELSE '{}'::text[] END)) AS q(name, type) ON own.functions \
    WHERE p.polrelid = ANY (:relations::oid[]) AND p.polcmd IN ('r', '*') \
    AND p.polqual IS NOT NULL ORDER BY p.polname";

/// The index of the table's OID in a row of [`POLICIES`]. The constants below are the indices of
/// the other values.
pub(crate) const RELATION: usize = 0;
pub(crate) const OID: usize = 1;
const PERMISSIVE: usize = 2;
const CONDITION: usize = 3;
const COLUMNS: usize = 4;
const EQUAL_COLUMN: usize = 5;
const EQUAL_TYPE: usize = 6;
const CLAIM: usize = 7;
const DEPENDS_ON: usize = 8;

/// The policy in a row of the result of [`POLICIES`].
pub(crate) fn clause(row: &TextRow) -> PolicyClause {
    let is_equality = row.get(EQUAL_COLUMN).is_some_and(Option::is_some);
    let claim = row.get(CLAIM).cloned().flatten();
    let condition = text(row, CONDITION);
    PolicyClause {
        permissive: is_true(row, PERMISSIVE),
        caller: caller_part(&text(row, DEPENDS_ON), &condition),
        condition,
        columns: text(row, COLUMNS),
        equality: is_equality.then(|| PolicyEquality {
            column: text(row, EQUAL_COLUMN),
            compared: compared(&text(row, EQUAL_TYPE)),
            claim: claim.map(Into::into),
        }),
    }
}

/// The part of the caller on which a condition depends; `depends_on` is the last result column of
/// [`POLICIES`]. Two ways to depend on the caller leave no entry in `pg_depend`:
/// `current_setting()`, and a view of the catalog, such as `pg_settings`, in a FROM clause. So the
/// result is [`CallerPart::Identity`] if the condition contains `from` or `current_setting`. The
/// result is the same if the condition calls a function that is not a usual built-in function.
fn caller_part(depends_on: &str, condition: &str) -> CallerPart {
    let lower = condition.to_ascii_lowercase();
    let reads_more = ["from", "current_setting"]
        .iter()
        .any(|word| lower.contains(word));
    let is_plain = |statement: Statement| statement.purity() == Purity::Stateless;
    if reads_more || !Statement::parse(&format!("SELECT {condition}")).is_ok_and(is_plain) {
        return CallerPart::Identity;
    }
    match depends_on {
        "0" => CallerPart::Nothing,
        "1" => CallerPart::Claims,
        _ => CallerPart::Identity,
    }
}

fn compared(name: &str) -> ComparedType {
    match name {
        "uuid" => ComparedType::Uuid,
        "integer" => ComparedType::Integer,
        "bigint" => ComparedType::Bigint,
        _ => ComparedType::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_may_read_settings_depends_on_the_caller() {
        let cases = [
            (
                "0",
                "(published AND (length(title) > 3))",
                CallerPart::Nothing,
            ),
            (
                "0",
                "((kind)::text = ANY ('{a,b}'::text[]))",
                CallerPart::Nothing,
            ),
            (
                "0",
                "(a = current_setting('tidegate.claims'::text, true))",
                CallerPart::Identity,
            ),
            (
                "0",
                "(a IN ( SELECT pg_settings.name FROM pg_settings))",
                CallerPart::Identity,
            ),
            (
                "0",
                "(query_to_xml(a, true, true, ''::text) IS NOT NULL)",
                CallerPart::Identity,
            ),
            (
                "1",
                "(lower(a) = ( SELECT tidegate.claim('org'::text) AS claim))",
                CallerPart::Claims,
            ),
            ("1", "(a = ( SELECT public.f() AS f))", CallerPart::Identity),
            (
                "2",
                "(a = ( SELECT tidegate.user_id() AS user_id))",
                CallerPart::Identity,
            ),
            ("", "true", CallerPart::Identity),
        ];
        for (depends_on, condition, expected) in cases {
            assert_eq!(caller_part(depends_on, condition), expected, "{condition}");
        }
    }
}
