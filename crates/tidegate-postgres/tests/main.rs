//! The crate's tests, in one binary.

#[cfg(test)]
mod cancellation;
#[cfg(test)]
mod client;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod members;
#[cfg(test)]
mod multiplex;
#[cfg(test)]
mod pipeline;
#[cfg(test)]
mod pool;
#[cfg(test)]
mod session;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod types;
