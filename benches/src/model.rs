//! Computes which resources are needed for given numbers of sockets, tenants and changes, and which
//! limit is reached first.

pub(crate) mod arguments;
mod check;
pub(crate) mod cluster;
mod constants;
mod extra;
mod fit;
pub(crate) mod load;
mod nats;
mod needs;
mod report;

use std::process::ExitCode;

use crate::Result;
use arguments::ModelArguments;
use constants::Constants;
use needs::Needs;
use report::Report;

/// Prints the needs of a size, measures the constants, or checks them.
pub(crate) async fn run(arguments: &ModelArguments) -> Result<ExitCode> {
    if arguments.measure {
        let measured = fit::measure(arguments).await?;
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else if arguments.check {
        return check::run(arguments).await;
    } else {
        let constants = Constants::read(arguments.constants.as_deref())?;
        let report = report(arguments, &constants);
        if arguments.json {
            println!("{}", serde_json::to_string_pretty(&report.json())?);
        } else {
            print!("{}", report.text());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn report<'a>(arguments: &'a ModelArguments, constants: &'a Constants) -> Report<'a> {
    let (size, limits) = (&arguments.size, &arguments.limits);
    let nodes = needs::nodes(size, constants, limits);
    Report {
        size,
        limits,
        constants,
        nodes,
        with_bus: Needs::of(size, constants, (nodes, true)),
        without: Needs::of(size, constants, (nodes, false)),
    }
}
