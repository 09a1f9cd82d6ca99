//! What every store must do, run against the one in memory and the one in PostgreSQL.

mod attempts;
mod audit;
mod clients;
mod flows;
mod identities;
mod keys;
mod samples;
mod sessions;
mod users;

pub(crate) use samples::{client, key, session, user};

/// Makes of each case two tests: one for the store in memory, one for the one in PostgreSQL.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        mod memory {
            use std::sync::Arc;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(Arc::new(tidegate_oauth::MemoryStore::new())).await;
                }
            )*
        }

        mod postgresql {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let module = module_path!().rsplit("::").nth(1).unwrap();
                    let name = format!("{module}_{:.50}", stringify!($case));
                    let fixture = crate::fixture::Fixture::migrated(&name).await;
                    super::$case(fixture.store()).await;
                }
            )*
        }
    };
}

pub(crate) use cases;
