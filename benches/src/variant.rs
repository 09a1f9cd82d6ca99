//! A variant of a shape sends its requests to one endpoint, with the tokens of one kind of callers.

use std::sync::Arc;

use crate::accounts::name;
use crate::arguments::Arguments;
use crate::load::{Caller, Plan};
use crate::service::Service;
use crate::shape::Shape;
use crate::shape::header::{Callers, Endpoint, VariantSpec};

/// One row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// The name of the variant in the table.
    pub(crate) name: String,
    /// The endpoint of the requests.
    pub(crate) endpoint: Endpoint,
    /// The callers of the requests.
    pub(crate) callers: Callers,
    /// The number of sub-users that the variant needs.
    pub(crate) users: u32,
    /// The smallest ratio that is good enough (see [`VariantSpec::aim`]).
    pub(crate) aim: Option<f64>,
}

impl Variant {
    /// Whether the rate of this variant is shown as a ratio to that of `other`. This is so if this
    /// variant has many users and `other` is the same case with one user.
    pub(crate) fn is_compared_to(&self, other: &Self) -> bool {
        let many = self.users > 1 || self.callers == Callers::Tenants;
        many && self.endpoint == other.endpoint && other.callers == Callers::One
    }

    /// The requests of the variant, which `callers` send to the service.
    pub(crate) fn plan(&self, shape: &Shape, service: &Service, callers: Arc<[Caller]>) -> Plan {
        Plan {
            address: service.address,
            path: self.endpoint.path().to_owned(),
            accept: shape.header.accept.clone(),
            callers,
            body: shape.body(self.endpoint),
        }
    }
}

/// The selected variants of a shape, and the variants with which they are compared.
pub(crate) fn of(shape: &Shape, arguments: &Arguments) -> Vec<Variant> {
    let mut all = Vec::new();
    for &VariantSpec {
        endpoint,
        callers,
        aim,
    } in &shape.header.variants
    {
        // pgbench cannot send statements as a member, because members have no role.
        if endpoint == Endpoint::Pgbench && arguments.members {
            continue;
        }
        for users in numbers(callers, arguments) {
            let who = who(callers, users, arguments);
            let name = format!("{}, {}, {who}", shape.header.name, endpoint.name());
            all.push(Variant {
                name,
                endpoint,
                callers,
                users,
                aim,
            });
        }
    }
    let wanted = |variant: &Variant| arguments.wants(&variant.name);
    let compared: Vec<Variant> = all.iter().filter(|v| wanted(v)).cloned().collect();
    let compared = |one: &Variant| compared.iter().any(|many| many.is_compared_to(one));
    all.retain(|variant| wanted(variant) || compared(variant));
    let alone = all.iter().all(|variant| variant.callers == Callers::One);
    // A row for one user is left out if the shape has neither a floor nor a variant to compare
    // with.
    if alone && shape.script().is_none() {
        all.clear();
    }
    all
}

/// How many sub-users send the requests: one count for each row of the printed table.
fn numbers(callers: Callers, arguments: &Arguments) -> Vec<u32> {
    match callers {
        Callers::Tenants if arguments.tenants == 0 => vec![],
        Callers::Owner | Callers::Guest | Callers::Tenants => vec![0],
        Callers::One => vec![1],
        Callers::Some(number) => vec![number],
        Callers::Users | Callers::UsersWithSignUps => arguments.users(),
    }
}

fn who(callers: Callers, users: u32, arguments: &Arguments) -> String {
    match callers {
        Callers::Owner => "owner".to_owned(),
        Callers::Guest => "guest".to_owned(),
        Callers::One => "one user".to_owned(),
        Callers::UsersWithSignUps => format!("{users} users with sign-ups"),
        Callers::Users | Callers::Some(_) => format!("{users} users"),
        Callers::Tenants => match (arguments.active_tenants(), arguments.tenants) {
            (active, all) if active < all => format!("{active} of {all} tenants x 3"),
            (_, all) => format!("{all} tenants x 3"),
        },
    }
}

/// The role that runs the floor: the role of the first variant's callers. Members have no role of
/// their own. So for members the owner runs the floor, although no policies apply to the owner.
pub(crate) fn floor_role(variants: &[Variant], members: bool) -> String {
    match variants.first().map(|variant| variant.callers) {
        Some(Callers::Guest) => "demo/guest".to_owned(),
        Some(Callers::Owner) | None => "demo".to_owned(),
        Some(_) if members => "demo".to_owned(),
        Some(_) => format!("demo/{}", name(0)),
    }
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::GraphQl => "graphql",
            Self::Call => "call",
            Self::Sql => "sql",
            Self::Pgbench => "sql by pgbench",
        }
    }

    /// The path of the endpoint. pgbench uses none.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::GraphQl => "/api/graphql/schema/public",
            Self::Call => "/api/v4/call",
            Self::Sql | Self::Pgbench => "/api/v4/sql",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::of;
    use crate::Result;
    use crate::arguments::Arguments;
    use crate::shape::Shape;

    fn names(arguments: &[&str], file: &str) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("a.sql"), file)?;
        let arguments = ["tidegate-bench"].iter().chain(arguments);
        let arguments = Arguments::parse_from(arguments);
        let shapes = Shape::read(folder.path(), None)?;
        let variants = shapes.iter().flat_map(|shape| of(shape, &arguments));
        Ok(variants.map(|variant| variant.name).collect())
    }

    const FILE: &str = "-- name: x\n-- call: owner, one user, users, tenants\nselect 1";

    #[test]
    fn each_number_of_users_is_a_row() -> Result<()> {
        let names = names(&["--users", "9,3", "--tenants", "2"], FILE)?;
        let expected = [
            "x, call, owner",
            "x, call, one user",
            "x, call, 3 users",
            "x, call, 9 users",
            "x, call, 2 tenants x 3",
        ];
        assert_eq!(names, expected);
        Ok(())
    }

    #[test]
    fn many_users_bring_the_one_with_them() -> Result<()> {
        let names = names(&["--only", "300 users"], FILE)?;
        assert_eq!(names, ["x, call, one user", "x, call, 300 users"]);
        Ok(())
    }
}
