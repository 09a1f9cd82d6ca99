//! Finds the steps that are still necessary to make a database a tenant, so that an interrupted run
//! can be completed.

use std::fmt::Write as _;
use std::path::PathBuf;

use tidegate_admin::{Admin, Adoption, Script};
use tidegate_identity::{Secret, TenantName, UserKey};
use tidegate_sql::{DatabaseName, RoleName};

use crate::cli::PasswordSource;
use crate::cli_error::Result;
use crate::command::{owner_role, refuse_known, run_adoption};
use crate::ports;
use crate::service::Service;

/// The step that is still necessary to make a database a tenant.
pub(super) enum AdoptionStep {
    /// No step, because the database is a tenant.
    Nothing,
    /// Write the records, with a hash of the owner's password, and run the SQL of the adoption.
    Adopt(Planned),
    /// Run the SQL of the adoption and set the owner's password. An interrupted run has already
    /// written the records.
    Complete(Planned),
}

/// A planned adoption: the tenant's name, the owner's role and the SQL.
pub(super) struct Planned {
    name: TenantName,
    role: String,
    plan: Adoption,
}

impl AdoptionStep {
    /// Finds the necessary step. Changes nothing.
    pub(super) async fn plan(admin: &Admin, name: &TenantName, role: Option<&str>) -> Result<Self> {
        let tenants = admin.recorded_tenants().await?;
        let known = tenants.iter().find(|tenant| tenant.name == name.as_str());
        let role = match known {
            Some(known) => known.owner_role.clone(),
            None => owner_role(role.unwrap_or(name.as_str()).to_owned())?,
        };
        let owner = RoleName::new(&role);
        if known.is_some() && admin.has_role(&owner).await? {
            return Ok(Self::Nothing);
        }
        if known.is_none() {
            let existing = tenants.iter();
            let existing = existing.map(|tenant| (&*tenant.name, &*tenant.owner_role));
            refuse_known(existing, name.as_str(), &role)?;
        }
        let database = DatabaseName::new(name.as_str());
        let planned = Planned {
            name: name.clone(),
            plan: admin.plan_adoption(&database, &owner).await?,
            role,
        };
        Ok(match known {
            Some(_) => Self::Complete(planned),
            None => Self::Adopt(planned),
        })
    }

    /// The SQL that will run; `None` for [`AdoptionStep::Nothing`].
    pub(super) fn script(&self) -> Option<&Script> {
        match self {
            Self::Nothing => None,
            Self::Adopt(planned) | Self::Complete(planned) => Some(&planned.plan.script),
        }
    }

    /// Makes the database a tenant and sets the owner's password. Without a `password_file`,
    /// generates the password and returns it. Does nothing if the database is a tenant already.
    pub(super) async fn run(
        self,
        service: &Service,
        password_file: Option<PathBuf>,
    ) -> Result<Option<String>> {
        let (Self::Adopt(planned) | Self::Complete(planned)) = &self else {
            return Ok(None);
        };
        let name = planned.name.as_str();
        let (password, generated) = match password_file {
            None => {
                let password = generate();
                (Secret::new(&*password), Some(password))
            }
            password_file => (PasswordSource { password_file }.read(name)?, None),
        };
        let directory = service.users();
        if let Self::Complete(_) = &self {
            let database = DatabaseName::new(name);
            service.admin.adopt(&database, &planned.plan).await?;
            let owner = UserKey::new(name, name);
            directory.set_password(&owner, &password).await?;
        } else {
            let names = (&planned.name, &*planned.role);
            run_adoption(service, names, &planned.plan, password).await?;
        }
        Ok(generated)
    }
}

/// Generates a password with 80 random bits.
fn generate() -> String {
    let bytes: [u8; 10] = ports::bytes();
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
