//! Which names of a database a read may not mention if it is to leave nothing in its session, and
//! how long that is believed.

mod belief;
mod callable;
mod find;
mod load;

pub(crate) use belief::{Belief, Redefinition, Verdict};
pub(crate) use load::{Texts, texts};
