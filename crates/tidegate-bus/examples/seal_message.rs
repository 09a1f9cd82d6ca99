//! Seals a message of a bus, and hands out what is new in it.
//!
//! `cargo run -p tidegate-bus --example seal_message`
#![expect(clippy::print_stdout, reason = "the example's output")]

use tidegate_bus::chain::Chain;
use tidegate_bus::message::BusMessage;
use tidegate_bus::place::Place;
use tidegate_bus::seal::{Seal, SealedKind};
use tidegate_changelog::{LogIdentity, LogPosition};
use tidegate_sql::DatabaseName;
use zeroize::Zeroizing;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = DatabaseName::new("shop");
    let seal = Seal::new(Zeroizing::new([7; 32]), [1; 16]);
    let message = BusMessage {
        identity: LogIdentity(1),
        from: Place::at(LogPosition(10)),
        to: Place::at(LogPosition(20)),
        relations: Vec::new(),
        items: Vec::new(),
        ancestors: Vec::new(),
    };
    let sealed = seal.seal(&database, SealedKind::Event, &message.encode());
    let opened = BusMessage::decode(seal.open(&database, SealedKind::Event, &sealed)?)?;
    let mut chain = Chain::new(LogIdentity(1), LogPosition(15));
    let mut new = Vec::new();
    let offered = chain.offer(&opened, &mut new)?;
    println!("{} bytes, {offered:?}: {new:?}", sealed.len());
    Ok(())
}
