//! A tenant with methods, and one caller.

use std::sync::Arc;

use tidegate_methods::{
    Caller, Definition, Limits as DefinitionLimits, MemoryMethodStore, Registry,
};
use tidegate_rpc::{Context, DispatchOutcome, Dispatcher, Limits, OutputBuffer, Payload};
use tidegate_sql::{DatabaseName, Login, Principal, QueryOptions, RoleName, RoleUse};

use crate::executor::Scripted;

/// The methods that the tests call. Their texts say what they do (see `executor`).
const METHODS: &[&str] = &[
    r#"{"method":"echo","q":"select echo :a, :b"}"#,
    r#"{"method":"nothing","q":"select nothing-here, 1"}"#,
    r#"{"method":"date","q":"select date","type_formats":{"d":"d.m.Y"}}"#,
    r#"{"method":"moment","q":"select moment","type_formats":{"t":"H:i"}}"#,
    r#"{"method":"csv","q":"select text","output_format":"csv"}"#,
    r#"{"method":"ndjson","q":"select text","output_format":"ndjson"}"#,
    r#"{"method":"insert","q":"insert :a"}"#,
    r#"{"method":"insert_csv","q":"insert :a","output_format":"csv"}"#,
    r#"{"method":"deferred","q":"insert deferred"}"#,
    r#"{"method":"lost","q":"insert lost"}"#,
    r#"{"method":"divide","q":"select refuse 22012"}"#,
    r#"{"method":"conflict","q":"select refuse 40001"}"#,
    r#"{"method":"conflict_once","q":"select conflict"}"#,
    r#"{"method":"unreadable","q":"select unreadable :a"}"#,
    r#"{"method":"invalid","q":"select invalid :a"}"#,
    r#"{"method":"misformatted","q":"select misformatted :a"}"#,
    r#"{"method":"syntax","q":"select syntax :a"}"#,
    r#"{"method":"deadline","q":"select deadline"}"#,
    r#"{"method":"pool","q":"select pool"}"#,
    r#"{"method":"unavailable","q":"select unavailable"}"#,
    r#"{"method":"nodatabase","q":"select nodatabase"}"#,
    r#"{"method":"internal","q":"select internal"}"#,
    r#"{"method":"unknownhint","q":"select unknownhint"}"#,
    r#"{"method":"unformatted","q":"select unformatted"}"#,
    r#"{"method":"letters","q":"select date","type_formats":{"nowhere":"Y"}}"#,
    r#"{"method":"hinted","q":"select echo :a, :b","type_hints":{"b":"varchar[]"}}"#,
    r#"{"method":"origin","q":"select origin"}"#,
];

pub(crate) const OWNER: Caller<'_> = Caller {
    user: "music",
    owner: true,
};

pub(crate) struct Fixture {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) registry: Arc<Registry>,
    pub(crate) executor: Scripted,
    pub(crate) who: Principal,
}

pub(crate) async fn fixture() -> Fixture {
    with(Scripted::default()).await
}

pub(crate) async fn with(executor: Scripted) -> Fixture {
    let registry = Arc::new(Registry::new(Arc::new(MemoryMethodStore::new())));
    let text = format!("[{}]", METHODS.join(","));
    let definitions = Definition::parse(text.as_bytes(), DefinitionLimits::default()).unwrap();
    registry
        .create(&tenant(), OWNER, definitions)
        .await
        .unwrap();
    Fixture {
        dispatcher: Dispatcher::new(Arc::clone(&registry), Arc::new(executor.clone())),
        registry,
        executor,
        who: principal("music"),
    }
}

pub(crate) fn tenant() -> DatabaseName {
    DatabaseName::new("music")
}

pub(crate) fn principal(database: &str) -> Principal {
    Principal::Role(Login {
        database: DatabaseName::new(database),
        role: RoleName::new(format!("{database}/alice")),
        role_use: RoleUse::User(1),
    })
}

impl Fixture {
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            principal: &self.who,
            options: QueryOptions::default(),
            timezone: None,
        }
    }

    /// The response to a message; empty if there is none.
    pub(crate) async fn response(&self, message: &str) -> String {
        self.outcome(message).await.0
    }

    /// The response, and the outcome of the dispatch.
    pub(crate) async fn outcome(&self, message: &str) -> (String, DispatchOutcome) {
        let payload = match Payload::parse(message.as_bytes(), Limits::default()) {
            Ok(payload) => payload,
            Err(reply) => {
                let text = String::from_utf8(reply.as_bytes().to_vec()).unwrap();
                return (text, DispatchOutcome::default());
            }
        };
        let mut out = OutputBuffer::new(1 << 20);
        let outcome = self
            .dispatcher
            .dispatch(&self.context(), &payload, &mut out)
            .await;
        let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
        assert_eq!(outcome.answered, !text.is_empty());
        (text, outcome)
    }

    pub(crate) async fn dry(&self, message: &str) -> String {
        let payload = Payload::parse(message.as_bytes(), Limits::default()).unwrap();
        let mut out = OutputBuffer::new(1 << 20);
        let outcome = self
            .dispatcher
            .dry_run(&self.context(), &payload, &mut out)
            .await;
        let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
        assert_eq!(outcome.answered, !text.is_empty());
        text
    }
}
