//! Measures the service and the floor in one run on one machine. The floor is the rate that
//! PostgreSQL reaches without the service. `cargo run --release -p tidegate-bench` builds the
//! server, starts `tidegate demo`, and creates tables and users. For each case the program prints
//! the service's rate, latency and CPU beside the rate of pgbench with the same SQL on the same
//! PostgreSQL. Each file in `shapes` is a case.
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a program that prints rates: counts become floats on standard output"
)]

mod accounts;
mod arguments;
mod bus;
mod catalog;
mod claims_policy;
mod connection;
mod export;
mod feed;
mod floor;
mod foreign_token;
mod idle_roles;
mod load;
mod measure;
mod memory;
mod model;
mod node;
mod nodes;
mod oauth;
mod page_sign_up;
mod peer;
mod process;
mod service;
mod setup;
mod shape;
mod statistics;
mod subscribed_members;
mod table;
mod variant;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Command};
use crate::measure::Bench;
use crate::memory::MemoryOfUsers;
use crate::peer::Peer;
use crate::service::Service;
use crate::setup::People;
use crate::shape::Shape;
use crate::table::Table;
use crate::variant::Variant;

/// The result of all functions of the crate. An error is the reason why a measurement failed.
pub(crate) type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(Command::Model(model)) = &arguments.command {
        return model::run(model).await;
    }
    let peer = arguments.peer.as_deref().map(Peer::parse).transpose()?;
    let peer_name = peer.as_ref().map(|peer| &*peer.name);
    let shapes = Shape::read(&arguments.shapes, peer_name)?;
    let service = Service::start(&arguments, arguments.keep.as_deref()).await?;
    setup::tables(&service, &shapes).await?;
    println!(
        "load generator: raw HTTP/1.1 over loopback, keep-alive, {} connections, no TLS, {} \
         thread(s); floor: pgbench -M prepared, {} clients, {}",
        arguments.connections(),
        arguments.threads,
        arguments.connections(),
        service.floor_transport()
    );
    if !arguments.quick {
        memory::print(&service, "before the first request").await?;
    }
    let failed = compare(&service, &arguments, &shapes, peer.as_ref()).await?;
    claims_policy::run(&service, &arguments).await?;
    foreign_token::run(&arguments).await?;
    if !arguments.quick {
        cases_without_floor(&service, &arguments, &shapes).await?;
    }
    if arguments.page_sign_ups > 0 {
        let rows = arguments.judged_rows();
        page_sign_up::measure(&service, arguments.page_sign_ups, rows).await?;
    }
    if arguments.subscribed_members > 0 {
        let idle = arguments.idle();
        subscribed_members::measure(&service, arguments.subscribed_members, idle).await?;
    }
    if arguments.others > 0 {
        oauth::members::measure(&service, arguments.others).await?;
    }
    drop(service);
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Measures the shapes. Returns the number of shapes that failed.
async fn compare(
    service: &Service,
    arguments: &Arguments,
    shapes: &[Shape],
    peer: Option<&Peer>,
) -> Result<u32> {
    let cases: Vec<(&Shape, Vec<Variant>)> = shapes
        .iter()
        .map(|shape| (shape, variant::of(shape, arguments)))
        .filter(|(_, variants)| !variants.is_empty())
        .collect();
    if cases.is_empty() {
        return Ok(0);
    }
    let users = cases.iter().flat_map(|(_, variants)| variants);
    let users = users.map(|variant| variant.users).max().unwrap_or(0);
    let people = people(service, arguments, &cases, users).await?;
    if let Some(peer) = peer {
        let env = service.path.join("demo/demo.env");
        println!(
            "waiting for {}; PostgreSQL's address is in {}",
            peer.name,
            env.display()
        );
        peer.wait().await?;
    }
    let admin = service.client().await?;
    let table = Table {
        markdown: arguments.markdown,
        peer: peer.is_some(),
    };
    let bench = Bench {
        service,
        people: &people,
        arguments,
        peer,
        table,
        admin,
    };
    println!();
    table.head();
    let mut failed = 0;
    for (shape, variants) in &cases {
        if let Err(error) = bench.shape(shape, variants).await {
            println!("{} FAILED: {error}", shape.header.name);
            failed += 1;
        }
    }
    println!(
        "\nthe service's memory at its peak: {} MiB",
        process::peak(service.server)? >> 20
    );
    if !arguments.quick && users > 0 {
        memory::print(service, "after the cases").await?;
    }
    Ok(failed)
}

/// Creates the callers of the cases, and prints what the signed-in users add to the service's
/// memory.
async fn people(
    service: &Service,
    arguments: &Arguments,
    cases: &[(&Shape, Vec<Variant>)],
    users: u32,
) -> Result<People> {
    let Some(memory) = MemoryOfUsers::of(service, arguments, cases) else {
        return setup::people(service, users, arguments).await;
    };
    let one = setup::people(service, 1, arguments).await?;
    let one_signed_in = memory.measure(&one).await?;
    let people = setup::people(service, users, arguments).await?;
    let all_signed_in = memory.measure(&one).await?;
    let all_asked = memory.measure(&people).await?;
    memory.print([one_signed_in, all_signed_in, all_asked]);
    Ok(people)
}

/// Runs the cases without a floor.
async fn cases_without_floor(
    service: &Service,
    arguments: &Arguments,
    shapes: &[Shape],
) -> Result<()> {
    let only = arguments.only.as_deref();
    let time = arguments.slice() * arguments.slices();
    oauth::run(service, only, (arguments.connections(), time)).await?;
    feed::run(service, arguments).await?;
    catalog::run(service, only).await?;
    idle_roles::run(arguments).await?;
    bus::run(arguments).await?;
    nodes::run(service, arguments, shapes).await?;
    if arguments.export {
        export::compare(service).await?;
    }
    Ok(())
}
