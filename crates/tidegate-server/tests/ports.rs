//! Ports for tests: a mailbox, an identity provider that accepts every code, and roles.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tidegate_identity::{
    Accounts, Email, ExternalIdentity, GroupLock, IdentityProviders, LoginState, Mailer,
    OutboundResult, ProviderName, RoleAdmin, RoleResult, User,
};

use crate::fixture::{Api, eventually};

/// A mailer that stores every message.
#[derive(Clone, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Vec<Email>>>);

#[async_trait]
impl Mailer for Mailbox {
    async fn send(&self, message: &Email) -> OutboundResult<()> {
        self.0.lock().unwrap().push(message.clone());
        Ok(())
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

#[async_trait]
impl IdentityProviders for TestProviders {
    fn names(&self) -> &[ProviderName] {
        &self.0
    }

    async fn begin(&self, id: &str, login: &LoginState) -> OutboundResult<Option<String>> {
        let known = self.0.iter().any(|name| name.id == id);
        let address = format!("https://{id}.example/authorize?state={}", login.state);
        Ok(known.then_some(address))
    }

    async fn complete(
        &self,
        id: &str,
        code: &str,
        _: &LoginState,
    ) -> OutboundResult<ExternalIdentity> {
        Ok(ExternalIdentity {
            issuer: format!("https://{id}.example"),
            subject: code.to_owned(),
            verified_email: Some(format!("{}@example.com", code.replace('@', "."))),
            name: Some(code.to_owned()),
        })
    }
}

/// Roles whose changes always succeed.
struct Roles;

#[async_trait]
impl RoleAdmin for Roles {
    /// Lets other requests go on first, as PostgreSQL does.
    async fn create_role(&self, _: &User) -> RoleResult<()> {
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn lock_groups(&self, _: &str) -> RoleResult<GroupLock> {
        Ok(Box::new(()))
    }

    async fn set_groups(&self, _: &User) -> RoleResult<()> {
        Ok(())
    }

    async fn provide_group(&self, _: &str, _: &str) -> RoleResult<()> {
        Ok(())
    }

    async fn limit_role(&self, _: &User) -> RoleResult<()> {
        Ok(())
    }

    async fn set_claims(&self, _: &User) -> RoleResult<()> {
        Ok(())
    }

    async fn check_drop_role(&self, _: &User, _: &str, _: bool) -> RoleResult<()> {
        Ok(())
    }

    async fn drop_role(&self, _: &User, _: &str, _: bool) -> RoleResult<()> {
        Ok(())
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
