//! Installs the functions `tidegate.user_id()`, `tidegate.claims()` and `tidegate.claim(text)`,
//! which policies call, in tenants' databases.

use std::fmt;

use tokio_postgres::types::Oid;
use tokio_postgres::{Client, GenericClient, Transaction};

/// The properties that the claims functions of a database must have: the key with which they check
/// the claims of members, and the generation of this key.
#[derive(Clone, Copy)]
pub struct ClaimsFunctions {
    /// The generation of the key.
    pub generation: i32,
    /// The key: two numbers of 64 random bits, in the order in which they are hashed.
    pub key: [i64; 2],
}

impl fmt::Debug for ClaimsFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimsFunctions")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// The state of the claims functions in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimsState {
    /// All objects exist in this version or a later version, with the expected key. Other roles
    /// have no forbidden privileges.
    Current,
    /// An object is missing or has an older version, the key is not the expected one, or other
    /// roles have forbidden privileges. [`install_claims`] corrects this.
    Outdated,
    /// The schemas do not exist, and the service may not create schemas in the database.
    NotAllowed,
    /// Another role owns an object in one of the schemas and could place code there. The text names
    /// the object and its owner.
    Foreign(String),
}

/// Creates the schemas, the table and the sequences. `{generation}` is replaced by the generation
/// of the key.
const SCHEMA: &str = include_str!("claims_schema.sql");

/// Creates or replaces the functions. `{generation}` is replaced by the generation of the key.
const FUNCTIONS: &str = include_str!("claims_functions.sql");

/// Revokes the privileges that other roles got by `ALTER DEFAULT PRIVILEGES`.
const PRIVILEGES: &str = include_str!("claims_privileges.sql");

/// Keeps the key, which is a parameter of a statement, out of the server's log for the rest of the
/// transaction. Only a superuser, or a role with the privilege to set `log_parameter_max_length`,
/// can keep it out. For other roles the key is logged if `log_statement` is `all`.
const LOG_NO_PARAMETERS: &str = "DO $log$ BEGIN \
    PERFORM pg_catalog.set_config('log_parameter_max_length', '0', true); \
    EXCEPTION WHEN insufficient_privilege THEN NULL; END $log$";

/// Selects the state of the objects. The version numbers in this query and in the functions must be
/// raised with every change of a function.
const STATE: &str = include_str!("claims_state.sql");

/// Reads the state of the claims functions in a database. `client` is a connection of the service
/// to the tenant's database.
///
/// # Errors
///
/// If a query or the connection fails.
pub async fn claims_state(
    client: &impl GenericClient,
    wanted: &ClaimsFunctions,
) -> Result<ClaimsState, tokio_postgres::Error> {
    let row = client.query_one(STATE, &[&wanted.generation]).await?;
    if let Some(object) = row.get("foreign_object") {
        return Ok(ClaimsState::Foreign(object));
    }
    if !row.get::<_, bool>("there") && !row.get::<_, bool>("may_make") {
        return Ok(ClaimsState::NotAllowed);
    }
    let sequences: [Option<Oid>; 2] = [row.get("key_a"), row.get("key_b")];
    let complete = row.get::<_, bool>("current") && !row.get::<_, bool>("is_open");
    if complete && has_key(client, sequences, wanted).await? {
        return Ok(ClaimsState::Current);
    }
    Ok(ClaimsState::Outdated)
}

async fn has_key(
    client: &impl GenericClient,
    sequences: [Option<Oid>; 2],
    wanted: &ClaimsFunctions,
) -> Result<bool, tokio_postgres::Error> {
    let [Some(first), Some(second)] = sequences else {
        return Ok(false);
    };
    let query = "SELECT pg_catalog.pg_sequence_last_value($1::pg_catalog.oid::pg_catalog.regclass), \
                        pg_catalog.pg_sequence_last_value($2::pg_catalog.oid::pg_catalog.regclass)";
    let row = client.query_one(query, &[&first, &second]).await?;
    let found: [Option<i64>; 2] = [row.get(0), row.get(1)];
    Ok(found == wanted.key.map(Some))
}

/// If the state is [`ClaimsState::Outdated`], creates or replaces the functions and the objects
/// that they use, in one transaction. The event trigger does not report these definitions. Only one
/// session may call this function for a database at a time. Returns the state afterwards. If this
/// state is not [`ClaimsState::Current`], nothing has changed.
///
/// # Errors
///
/// If PostgreSQL refuses a statement, or if the connection fails. After an error nothing has
/// changed.
pub async fn install_claims(
    client: &mut Client,
    wanted: &ClaimsFunctions,
) -> Result<ClaimsState, tokio_postgres::Error> {
    let state = claims_state(client, wanted).await?;
    if state != ClaimsState::Outdated {
        return Ok(state);
    }
    let transaction = client.transaction().await?;
    install(&transaction, wanted).await?;
    // Another role may have created a schema in the meantime.
    let state = claims_state(&transaction, wanted).await?;
    if state == ClaimsState::Current {
        transaction.commit().await?;
    }
    Ok(state)
}

async fn install(
    transaction: &Transaction<'_>,
    wanted: &ClaimsFunctions,
) -> Result<(), tokio_postgres::Error> {
    let generation = wanted.generation.to_string();
    let settings = "SET LOCAL tidegate.provisioning = 'on'; \
                    SET LOCAL search_path = pg_catalog, pg_temp";
    transaction.batch_execute(settings).await?;
    transaction.batch_execute(LOG_NO_PARAMETERS).await?;
    for sql in [SCHEMA, FUNCTIONS, PRIVILEGES] {
        let sql = sql.replace("{generation}", &generation);
        transaction.batch_execute(&sql).await?;
    }
    // The key is set after `PRIVILEGES` has run, so that no other role can read the sequences. It
    // is a parameter, and `LOG_NO_PARAMETERS` keeps parameters out of PostgreSQL's log.
    let set = "SELECT pg_catalog.setval(pg_catalog.to_regclass($1), $2) IS NULL";
    for (half, key) in ["a", "b"].into_iter().zip(wanted.key) {
        let sequence = format!("tidegate_private.key_{generation}_{half}");
        transaction.query_one(set, &[&sequence, &key]).await?;
    }
    transaction
        .batch_execute(&drop_old(wanted.generation))
        .await
}

/// The SQL that drops the sequences of old generations. The sequences of the previous generation
/// are not dropped, because running statements may still read them.
fn drop_old(generation: i32) -> String {
    let old = (1..generation.saturating_sub(1))
        .rev()
        .take(MAX_OLD_GENERATIONS);
    let drop = |old| {
        format!(
            "DROP SEQUENCE IF EXISTS tidegate_private.key_{old}_a, tidegate_private.key_{old}_b;"
        )
    };
    old.map(drop).collect()
}

/// The maximum number of old generations whose sequences one call of [`install`] drops. Usually
/// there is only one such generation, because the previous call dropped the sequences of older
/// ones.
const MAX_OLD_GENERATIONS: usize = 8;
