//! Ports for tests: a mailbox, an identity provider that accepts every code, and roles.

use std::sync::{Arc, Mutex};

use tidegate_identity::{
    Accounts, Email, ExternalIdentity, GroupLock, IdentityProviders, LoginState, Mailer,
    OutboundFuture, ProviderName, RoleAdmin, RoleFuture, User,
};

use crate::fixture::{Api, eventually};

/// A mailer that stores every message.
#[derive(Clone, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Vec<Email>>>);

impl Mailer for Mailbox {
    fn send<'a>(&'a self, message: &'a Email) -> OutboundFuture<'a, ()> {
        self.0.lock().unwrap().push(message.clone());
        Box::pin(async { Ok(()) })
    }
}

impl Mailbox {
    /// The number of messages that were sent.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Waits until `count` messages were sent; returns them.
    pub(crate) async fn messages(&self, count: usize) -> Vec<Email> {
        eventually("messages came", async || self.len() >= count).await;
        let messages = self.0.lock().unwrap().clone();
        assert_eq!(messages.len(), count, "one message too many");
        messages
    }
}

/// An identity provider. The authorization codes that it accepts are the subjects of the people who
/// sign in.
pub(crate) struct TestProviders(Vec<ProviderName>);

impl IdentityProviders for TestProviders {
    fn names(&self) -> &[ProviderName] {
        &self.0
    }

    fn begin<'a>(
        &'a self,
        id: &'a str,
        login: &'a LoginState,
    ) -> OutboundFuture<'a, Option<String>> {
        let known = self.0.iter().any(|name| name.id == id);
        let address = format!("https://{id}.example/authorize?state={}", login.state);
        Box::pin(async move { Ok(known.then_some(address)) })
    }

    fn complete<'a>(
        &'a self,
        id: &'a str,
        code: &'a str,
        _: &'a LoginState,
    ) -> OutboundFuture<'a, ExternalIdentity> {
        Box::pin(async move {
            Ok(ExternalIdentity {
                issuer: format!("https://{id}.example"),
                subject: code.to_owned(),
                verified_email: Some(format!("{}@example.com", code.replace('@', "."))),
                name: Some(code.to_owned()),
            })
        })
    }
}

/// Roles whose changes always succeed.
struct Roles;

impl RoleAdmin for Roles {
    /// Lets other requests go on first, as PostgreSQL does.
    fn create_role<'a>(&'a self, _: &'a User) -> RoleFuture<'a, ()> {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(())
        })
    }

    fn lock_groups<'a>(&'a self, _: &'a str) -> RoleFuture<'a, GroupLock> {
        Box::pin(async { Ok(Box::new(()) as GroupLock) })
    }

    fn set_groups<'a>(&'a self, _: &'a User) -> RoleFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn provide_group<'a>(&'a self, _: &'a str, _: &'a str) -> RoleFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn limit_role<'a>(&'a self, _: &'a User) -> RoleFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn set_claims<'a>(&'a self, _: &'a User) -> RoleFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn check_drop_role<'a>(&'a self, _: &'a User, _: &'a str, _: bool) -> RoleFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn drop_role<'a>(&'a self, _: &'a User, _: &'a str, _: bool) -> RoleFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// An app with a mailer and two identity providers.
pub(crate) async fn connected() -> (Api, Mailbox) {
    let mailbox = Mailbox::default();
    let name = |id: &str, label: &str| ProviderName {
        id: id.to_owned(),
        label: label.to_owned(),
    };
    let providers = TestProviders(vec![name("one", "One ID"), name("two", "Two ID")]);
    let mail = mailbox.clone();
    let api = Api::over("http://127.0.0.1:8080", |builder, directory| {
        let accounts = Accounts::new(directory.clone(), Arc::new(Roles));
        builder
            .accounts(Arc::new(accounts))
            .mailer(Some(Arc::new(mail)))
            .providers(Some(Arc::new(providers)))
    });
    (api.await, mailbox)
}
