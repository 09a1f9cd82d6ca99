//! Measures how many logins the rules of the pool cause, in a model with virtual time.
//!
//! [`World`] calls [`State`](super::state::State) as the pool does. Each client sends one request
//! after the other, for a role drawn at random. PostgreSQL has two cores, on which a login takes 8
//! ms and a read 0.1 ms. The results do not depend on the machine that runs the tests.

mod world;

use std::time::Duration;

use world::{Load, World};

const TIME: Duration = Duration::from_secs(2);

/// The load of 16 clients that send requests for `users` users of one database, drawn at random.
/// A node has a pool of 77 connections if `max_connections` is 100.
fn one_database(users: u32) -> Load {
    Load {
        tenants: 1,
        users,
        clients: 16,
        ..Load::default()
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    let number = |count| f64::from(u32::try_from(count).unwrap());
    number(a) / number(b)
}

#[test]
fn as_many_users_as_there_are_connections_cost_no_logins() {
    let one = World::new(77).run(&[one_database(1)], TIME);
    for users in [16, 32, 64, 70] {
        let many = World::new(77).run(&[one_database(users)], TIME);
        let rate = ratio(many.served, one.served);
        eprintln!("{users} users: {many:?}, rate {rate:.2}");
        assert!(rate > 0.9, "{users} users: {rate}");
        assert!(many.logins_per_request() < 0.001, "{users} users: {many:?}");
    }
}

/// With two nodes on one server, the pool of each node has half of the 77 connections.
#[test]
fn thirty_two_users_keep_their_rate_on_a_pool_of_thirty_eight() {
    let one = World::new(38).run(&[one_database(1)], TIME);
    let many = World::new(38).run(&[one_database(32)], TIME);
    let rate = ratio(many.served, one.served);
    assert!(rate > 0.9, "{rate}");
}

/// The probability that a request for a random role finds a connection of its role is at most the
/// number of connections divided by the number of roles.
#[test]
fn more_roles_than_connections_cost_the_logins_that_they_must() {
    for (tenants, users) in [(1, 100), (1, 300), (100, 1), (100, 3)] {
        let load = Load {
            tenants,
            users,
            clients: 16,
            ..Load::default()
        };
        let seen = World::new(77).run(&[load], TIME);
        let least = 1.0 - 77.0 / f64::from(tenants * users);
        eprintln!("{tenants} x {users}: {seen:?}, least {least:.2}");
        assert!(seen.logins_per_request() < least + 0.1, "{seen:?}");
        assert_eq!(seen.refused, 0);
    }
}

#[test]
fn a_thousand_databases_of_which_a_hundred_are_active_fit_a_larger_pool() {
    let load = Load {
        tenants: 100,
        users: 1,
        clients: 32,
        ..Load::default()
    };
    let seen = World::new(116).run(&[load], TIME);
    assert!(seen.logins_per_request() < 0.001, "{seen:?}");
}

/// Each client sends eight requests at the same time for a user drawn at random, as a web page
/// does.
#[test]
fn a_burst_of_a_user_opens_few_connections() {
    let load = Load {
        users: 200,
        clients: 4,
        burst: 8,
        pause: Duration::from_millis(200),
        ..Load::default()
    };
    let seen = World::new(77).run(&[load], TIME);
    let bursts = seen.served / 8;
    assert!(seen.logins < bursts, "{seen:?}");
}

#[test]
fn long_statements_of_one_role_run_side_by_side() {
    let load = Load {
        clients: 8,
        work: Duration::from_millis(500),
        cores: false,
        ..Load::default()
    };
    let seen = World::new(77).run(&[load], TIME);
    assert!(seen.served >= 8 * 2 * 2, "{seen:?}");
}

#[test]
fn a_flood_on_one_database_costs_the_others_no_logins() {
    let flood = Load {
        users: 300,
        clients: 64,
        ..Load::default()
    };
    let within_share = Load {
        first_tenant: 1,
        tenants: 10,
        users: 3,
        clients: 10,
        pause: Duration::from_millis(50),
        ..Load::default()
    };
    let seen = World::new(77).run(&[flood, within_share], TIME);
    assert!(seen.logins_of_others < seen.served_others / 50, "{seen:?}");
    assert!(
        seen.longest_wait_of_others < Duration::from_millis(500),
        "{seen:?}"
    );
}

/// There are more databases than connections, and more requests than connections.
#[test]
fn every_database_is_served_under_overload() {
    let load = Load {
        tenants: 100,
        users: 3,
        clients: 400,
        work: Duration::from_millis(5),
        ..Load::default()
    };
    let seen = World::new(77).run(&[load], TIME * 10);
    assert_eq!(seen.refused, 0);
    assert!(seen.timed_out < seen.served / 100, "{seen:?}");
}
