//! Reads the definitions of a database. The purity analysis derives the untrusted names from these
//! definitions.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{
    BoundStatement, DatabaseName, Error, Executor, Principal, QueryOptions, Result, Statement,
    TextRows,
};
use tidegate_values::Parameter;
use tokio::time::Instant;

/// Selects a text that changes whenever the rows of [`PurityQuery::definitions`] change. The query
/// qualifies all names with a schema and reads only catalogs that every role may read. So every
/// role gets the same text, whatever the settings of its session are.
pub(crate) const FINGERPRINT_SQL: &str = include_str!("fingerprint.sql");

static FINGERPRINT: LazyLock<Arc<Statement>> = LazyLock::new(|| statement(FINGERPRINT_SQL));
static DEFINITIONS: LazyLock<Arc<Statement>> =
    LazyLock::new(|| statement(include_str!("definitions.sql")));

/// Parses an internal statement.
pub(crate) fn statement(text: &str) -> Arc<Statement> {
    Arc::new(Statement::parse(text).expect("an internal statement can be parsed"))
}

/// Binds text values to the placeholders of an internal statement. `values` are pairs of
/// placeholder and value.
pub(crate) fn bind(statement: &Arc<Statement>, values: &[(&str, &str)]) -> Result<BoundStatement> {
    let names = statement.placeholders();
    let value = |name: &String| {
        let found = values.iter().find(|(known, _)| known == name);
        let found = found.map(|(_, value)| Parameter::Text((*value).into()));
        found.ok_or_else(|| Error::internal(format!("no value for :{name}")))
    };
    let values = names.iter().map(value).collect::<Result<_>>()?;
    Ok(BoundStatement::with_values(statement.clone(), values))
}

/// A row of `definitions.sql`.
#[derive(Clone, Debug, Default)]
pub(super) struct Definition {
    pub(super) kind: String,
    pub(super) oid: String,
    pub(super) name: String,
    pub(super) text: String,
}

/// Queries the definitions of one database as the service.
pub(super) struct PurityQuery<'a> {
    service: &'a dyn Executor,
    pub(super) database: &'a DatabaseName,
    options: QueryOptions,
}

impl<'a> PurityQuery<'a> {
    pub(super) fn new(
        service: &'a dyn Executor,
        database: &'a DatabaseName,
        deadline: Instant,
    ) -> Self {
        let options = QueryOptions {
            deadline: Some(deadline.into_std()),
            ..QueryOptions::default()
        };
        Self {
            service,
            database,
            options,
        }
    }

    /// The result of [`FINGERPRINT_SQL`].
    pub(super) async fn fingerprint(&self) -> Result<String> {
        let rows = self.rows(&FINGERPRINT).await?;
        Ok(rows.into_iter().flatten().next().unwrap_or_default())
    }

    /// The definitions of the code that a statement can run in addition to the code in its text.
    pub(super) async fn definitions(&self) -> Result<Vec<Definition>> {
        let rows = self.rows(&DEFINITIONS).await?;
        let definition = |row: Vec<String>| {
            let [kind, oid, name, text]: [String; 4] = row.try_into().unwrap_or_default();
            Definition {
                kind,
                oid,
                name,
                text,
            }
        };
        Ok(rows.into_iter().map(definition).collect())
    }

    async fn rows(&self, statement: &Arc<Statement>) -> Result<Vec<Vec<String>>> {
        let who = Principal::Catalog(self.database.clone());
        let bound = BoundStatement::without_values(statement)?;
        text_rows(self.service, &who, &bound, &self.options).await
    }
}

/// Runs a statement whose columns are text, and returns its rows. NULL becomes an empty string.
pub(crate) async fn text_rows(
    service: &dyn Executor,
    who: &Principal,
    bound: &BoundStatement,
    options: &QueryOptions,
) -> Result<Vec<Vec<String>>> {
    let mut text_rows = TextRows::default();
    service.query(who, bound, options, &mut text_rows).await?;
    Ok(text_rows.0)
}
