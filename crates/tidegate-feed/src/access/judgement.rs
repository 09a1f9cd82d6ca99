//! Asks PostgreSQL which row images one caller may see, in one round trip.
//!
//! Statements for several callers run at the same time ([`crate::access::rls_evaluators`]). The
//! executor sends the statements for the members of a group together, each in a transaction of its
//! own. Claims are sealed for one transaction, so code that a policy runs for one member cannot act
//! as the next member. If a policy may run code that is not built in, the session is reset after
//! each transaction.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use tidegate_sql::{
    Commit, ConnectionLimit, Error, Executor, InputError, Login, Mode, Pipeline, PipelineStep,
    Principal, QueryOptions, Result, Statement,
};

use crate::catalog_query::{ARE_VISIBLE, TextRows, bind_statement, oid_array, options, quoted};

/// Sets an empty `search_path` until the end of the transaction. PostgreSQL printed the conditions
/// of the policies under an empty `search_path`, so it must also parse them under an empty one.
static EMPTY_PATH: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let text = "SELECT pg_catalog.set_config('search_path', '', true)";
    Arc::new(Statement::around(text, "true").expect("the statement is one of Tidegate's"))
});

/// The statement that judges row images. `:transactions` are the ids of the transactions that wrote
/// the rows, `:table` and `:columns` are the quoted name and the column names of the table, and
/// `:rows` is a JSON array of row images. The statement selects the numbers (from 1) of the images
/// that pass the policies, separated by commas. It selects NULL if a transaction is not visible
/// yet. It also selects NULL if the table now has other columns, because otherwise values would get
/// into the wrong columns. In both cases the calling function tries again. After a change of
/// columns, an attempt succeeds only after the policies have been read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    text: String,
    /// The part of the text that combines the conditions of the policies.
    condition: String,
    statement: Arc<Statement>,
    table: String,
    /// The names of the columns, as an array in its text form.
    columns: String,
}

/// A caller for whom row images of a table are judged.
#[derive(Clone, Copy)]
pub(super) struct JudgedCaller<'a> {
    pub(super) executor: &'a dyn Executor,
    pub(super) login: &'a Login,
    /// The OID of the table.
    pub(super) table: u32,
}

impl Judgement {
    /// The statement for a table, given as its schema and name. `numbered_columns` contains the
    /// number (`attnum`) and the name of each column. Returns `None` if the condition cannot be
    /// parsed.
    ///
    /// The text contains the fingerprint of the table, so that a changed table gets a new prepared
    /// statement. This is needed because PostgreSQL does not plan a prepared statement again when
    /// the row type of the table changes.
    pub(super) fn new(
        table: (&str, &str),
        fingerprint: &str,
        numbered_columns: &[(Box<str>, Box<str>)],
        condition: String,
    ) -> Option<Self> {
        let text = format!(
            "/* {fingerprint} */ {}",
            text(table, numbered_columns, &condition)
        );
        let statement = Arc::new(Statement::around(&text, &condition).ok()?);
        let columns = numbered_columns.iter().map(|(_, name)| &**name);
        Some(Self {
            text,
            condition,
            statement,
            table: format!("{}.{}", quoted(table.0), quoted(table.1)),
            columns: text_array(columns),
        })
    }

    /// The same statement with a new text, so that no connection has it prepared yet.
    fn unprepared(&self) -> Result<Arc<Statement>, InputError> {
        static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
        let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        let text = format!("/* attempt {attempt} */ {}", self.text);
        Statement::around(&text, &self.condition).map(Arc::new)
    }

    /// Judges row images (a JSON array) for a caller. `transactions` contains the lower 32 bits of
    /// the ids of the transactions that wrote the rows. Returns the numbers, from 1, of the images
    /// that the caller may see. Returns `None` if one of the transactions is not visible yet, or if
    /// the table now has other columns.
    pub(super) async fn run(
        &self,
        caller: JudgedCaller<'_>,
        transactions: &[u32],
        images: &str,
    ) -> Result<Option<Vec<usize>>> {
        let values = [
            &*oid_array(transactions),
            &self.table,
            &self.columns,
            images,
        ];
        match run(caller, &self.statement, &values).await {
            // The row type may have changed after the fingerprint was read. PostgreSQL then reports
            // an error of class 42 (PostgreSQL, "Error Codes"), and the statement must be prepared
            // again.
            Err(Error::Rejected(rejection)) if rejection.sqlstate.starts_with("42") => {
                run(caller, &self.unprepared()?, &values).await
            }
            ran => ran,
        }
    }
}

/// The text of the statement. The alias of the rows is the table's name, because conditions may
/// refer to the table by name.
fn text(
    (schema, name): (&str, &str),
    numbered_columns: &[(Box<str>, Box<str>)],
    condition: &str,
) -> String {
    let (schema, name) = (quoted(schema), quoted(name));
    let mut columns = String::new();
    let mut number = String::from("number of the row");
    for (_, column) in numbered_columns {
        // The result column for the row number needs a name that no column of the table has. If a
        // column's name starts with the chosen name, the column's name with an underscore appended
        // is chosen instead.
        if column.starts_with(&*number) {
            number = format!("{column}_");
        }
        write!(columns, "{}, ", quoted(column)).expect("writing to a String cannot fail");
    }
    let number = quoted(&number);
    format!(
        "SELECT CASE WHEN {ARE_VISIBLE} IS NOT FALSE AND ARRAY(\
         SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a \
         WHERE a.attrelid OPERATOR(pg_catalog.=) \
         :table::pg_catalog.text::pg_catalog.regclass::pg_catalog.oid \
         AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped ORDER BY a.attnum\
         ) OPERATOR(pg_catalog.=) :columns::pg_catalog.text[] THEN COALESCE((\
         SELECT pg_catalog.string_agg({name}.{number}::pg_catalog.text, ',') \
         FROM ROWS FROM (pg_catalog.jsonb_populate_recordset(\
         NULL::{schema}.{name}, :rows::pg_catalog.jsonb)) WITH ORDINALITY \
         AS {name}({columns}{number}) WHERE {condition}), '') END"
    )
}

/// Writes texts as an array (PostgreSQL, "Array Input and Output Syntax").
fn text_array<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
    let texts: Vec<_> = texts.map(quoted).collect();
    format!("{{{}}}", texts.join(","))
}

async fn run(
    caller: JudgedCaller<'_>,
    statement: &Arc<Statement>,
    values: &[&str],
) -> Result<Option<Vec<usize>>> {
    let options = QueryOptions {
        limit: ConnectionLimit::Subscriptions(caller.table),
        ..options()
    };
    let path = bind_statement(EMPTY_PATH.clone(), &[])?;
    let judgement = bind_statement(statement.clone(), values)?;
    let (mut nothing, mut rows) = (TextRows::default(), TextRows::default());
    let steps = vec![
        PipelineStep {
            statement: &path,
            sink: &mut nothing,
        },
        PipelineStep {
            statement: &judgement,
            sink: &mut rows,
        },
    ];
    let pipeline = Pipeline {
        mode: Mode::Snapshot,
        steps,
        commit: Commit::Together,
    };
    let principal = Principal::Role(caller.login.clone());
    let ran = caller
        .executor
        .pipeline(&principal, pipeline, &options)
        .await;
    ran.map_err(|failed| failed.error)?;
    let row = rows.0.into_iter().next();
    let row = row.ok_or_else(|| Error::internal("the judgement has no row"))?;
    let numbers = row.into_iter().next().flatten();
    numbers.as_deref().map(numbers_of).transpose()
}

fn numbers_of(text: &str) -> Result<Vec<usize>> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    let numbers: std::result::Result<_, _> = numbers.map(str::parse).collect();
    numbers.map_err(Error::internal)
}
