//! The resident memory of the service, and what signed-in users add to it.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::load::{self, Load};
use crate::service::Service;
use crate::setup::People;
use crate::shape::Shape;
use crate::shape::header::Callers;
use crate::variant::Variant;
use crate::{Result, process};

/// The timeout for the round in which every user sends one request.
const ONE_ROUND: Duration = Duration::from_mins(2);

/// Prints the resident memory of the idle service.
pub(crate) async fn print(service: &Service, when: &str) -> Result<()> {
    // Waits until the allocator has returned the memory of password hashes, which takes two seconds
    // after a sign-in.
    tokio::time::sleep(Duration::from_secs(4)).await;
    println!(
        "idle server {when}: {} MiB resident",
        process::resident(service.server)? >> 20
    );
    Ok(())
}

/// Measures the memory of the service three times: when one user has signed in, when all have, and
/// when all have sent requests. Before each measurement the same load runs, so the memory that any
/// load needs, such as buffers, plans and the allocator's pages, is in all three.
#[derive(Debug)]
pub(crate) struct MemoryOfUsers<'a> {
    service: &'a Service,
    shape: &'a Shape,
    variant: &'a Variant,
    load: Load,
    /// How long requests are sent at a low rate before the memory is read.
    calm: Duration,
}

impl<'a> MemoryOfUsers<'a> {
    /// The measurement for the case with the largest number of `--users`. `None` if no case has
    /// several users.
    pub(crate) fn of(
        service: &'a Service,
        arguments: &Arguments,
        cases: &'a [(&'a Shape, Vec<Variant>)],
    ) -> Option<Self> {
        let variants = cases
            .iter()
            .flat_map(|(shape, variants)| variants.iter().map(move |variant| (*shape, variant)))
            .filter(|(_, variant)| variant.callers == Callers::Users);
        // Of several cases with the same number of users, `min_by_key` returns the first.
        let (shape, variant) = variants.min_by_key(|(_, variant)| Reverse(variant.users))?;
        let load = Load {
            connections: arguments.connections(),
            threads: arguments.threads,
            time: arguments.slice(),
            interval: None,
            once: false,
        };
        let calm = Duration::from_secs(if arguments.quick { 0 } else { 5 });
        (variant.users > 1).then_some(Self {
            service,
            shape,
            variant,
            load,
            calm,
        })
    }

    /// Lets people send requests. Returns the resident memory afterwards, in bytes.
    pub(crate) async fn measure(&self, people: &People) -> Result<u64> {
        let callers = people.first_users(self.variant.users);
        let plan = Arc::new(self.variant.plan(self.shape, self.service, callers));
        let (once, time) = (true, ONE_ROUND);
        let rounds = [
            Load {
                time,
                once,
                ..self.load
            },
            self.load,
            // The allocator returns unused memory only while the service works, so an idle service
            // keeps the memory of the load. Few requests are enough.
            Load {
                connections: 4,
                time: self.calm,
                interval: Some(Duration::from_millis(50)),
                ..self.load
            },
        ];
        for load in rounds {
            let outcome = load::run(&plan, load).await?;
            if outcome.failures > 0 {
                return Err(format!("{} requests have failed", outcome.failures).into());
            }
        }
        process::resident(self.service.server)
    }

    /// Prints three results of [`Self::measure`], in bytes: with one user signed in, with all
    /// signed in, and after requests of all.
    pub(crate) fn print(&self, measured: [u64; 3]) {
        let [one, signed_in, asked] = measured.map(|bytes| bytes as f64 / f64::from(1 << 20));
        println!(
            "{} users, {}: {one:.1} MiB resident with one of them signed in, {signed_in:.1} with \
             all, {asked:.1} after requests of all: {:+.1}",
            self.variant.users,
            self.variant.endpoint.path(),
            asked - one
        );
    }
}
