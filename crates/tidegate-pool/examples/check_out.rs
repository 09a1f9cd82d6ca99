//! Checks out connections of two roles. The connector of this example opens nothing; the connector
//! of `tidegate-postgres` logs in to PostgreSQL.

#![expect(clippy::print_stdout, reason = "the example's output")]

use tidegate_pool::{Connector, OpenError, Pool, PoolKey, Recycle, ResetFailed, Settings};
use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, RoleUse};
use tidegate_wire::backoff::Jitter;

struct PrintNames;

impl Connector for PrintNames {
    type Connection = String;

    fn open<'a>(&'a self, key: &'a PoolKey, _: bool) -> BoxFuture<'a, Result<String, OpenError>> {
        println!("log in: {key}");
        Box::pin(std::future::ready(Ok(key.to_string())))
    }

    fn is_open(&self, _: &mut String) -> bool {
        true
    }

    fn recycle(&self, _: &mut String) -> Recycle {
        Recycle::Reuse
    }

    fn reset<'a>(&'a self, _: &'a mut String) -> BoxFuture<'a, Result<(), ResetFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::main]
async fn main() -> tidegate_sql::Result<()> {
    let pool = Pool::new(PrintNames, Settings::default(), Jitter::none());
    for role in ["shop/alice", "shop/bob", "shop/alice"] {
        let login = Login {
            database: DatabaseName::new("shop"),
            role: RoleName::new(role),
            role_use: RoleUse::User(1),
        };
        let connection = pool.acquire(&login).await?;
        println!("checked out: {}", *connection);
    }
    Ok(())
}
