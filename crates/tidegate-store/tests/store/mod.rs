//! Tests of the behaviour that every store must have, with the memory store and with PostgreSQL.

mod attempts;
mod audit;
mod browsers;
mod clients;
mod codes;
mod consents;
mod identities;
mod keys;
mod members;
mod samples;
mod sessions;
mod users;

pub(crate) use samples::{NOW, client, key, session, user};

/// Makes two tests of each case: one with the memory store, and one with PostgreSQL.
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
