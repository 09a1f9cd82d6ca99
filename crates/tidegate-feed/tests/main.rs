//! The crate's tests, in one binary.

#[cfg(test)]
mod capture;
#[cfg(test)]
mod definition;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod live;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod order;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod values;
