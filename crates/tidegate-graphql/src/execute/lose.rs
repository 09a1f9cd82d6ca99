//! What is lost of a query when a field fails (GraphQL, section 6.4.4, "Handling Execution Errors").

use std::sync::Arc;

use tidegate_plan::{Place, Plan};

use super::Failure;
use crate::collect::{Collector, Group};
use crate::document::{Operation, OperationKind};
use crate::error::{Code, Error, Location};
use crate::lower::Lost;

/// So many fields below a root field may fail by themselves: all is read again for each.
const FAILURES: usize = 8;

/// An error, and the field at which it happened.
pub(super) struct Fault {
    pub(super) error: Error,
    pub(super) place: Option<Place>,
}

/// What the attempts at an operation have led to so far.
#[derive(Default)]
pub(super) struct Tries {
    pub(super) lost: Lost,
    /// The root field to begin with. Those behind one that failed come before those that were
    /// read, so that none is read in vain more than once as long as others fail.
    pub(super) first: usize,
    /// Whether each field has statements of its own, to learn which one fails.
    pub(super) apart: bool,
    /// Whether a definition has changed under an attempt.
    pub(super) redefined: bool,
    /// For each field that failed below a root field, the number of that.
    failures: Vec<usize>,
}

impl Fault {
    /// Whether the time of the whole operation is over.
    fn is_deadline(&self) -> bool {
        self.error.code == Code::Timeout && self.error.rejection.is_none()
    }
}

/// The fields of an operation.
#[derive(Clone, Copy)]
pub(super) struct Fields<'d> {
    pub(super) collect: Collector<'d>,
    pub(super) operation: &'d Operation,
}

impl<'d> Fields<'d> {
    fn roots(self) -> Vec<Group<'d>> {
        let groups = self.collect.fields(&self.operation.selection);
        groups.unwrap_or_default()
    }

    /// The root field with a response key.
    pub(super) fn root(self, key: &Arc<str>) -> Option<Place> {
        let mut groups = self.roots().into_iter();
        groups.position(|group| group.key() == key).map(Place::root)
    }

    /// Says at which field an error happened. One below a root field gets its path where the
    /// response shows the field; a mutation shows none.
    pub(super) fn locate(self, error: Error, place: Option<Place>) -> Fault {
        let root = place
            .as_ref()
            .and_then(|place| self.roots().into_iter().nth(place.root));
        let (Some(root), Some(known)) = (root, &place) else {
            return Fault { error, place: None };
        };
        let is_root = known.below.is_empty() || self.operation.kind != OperationKind::Query;
        let error = if is_root {
            error.within(root.key(), root.field.location)
        } else {
            let (key, location) = (Arc::clone(root.key()), root.field.location);
            match self.location(root, &known.below) {
                Some(location) => error.or_at(location),
                None => error.within(&key, location),
            }
        };
        Fault { error, place }
    }

    /// Where the field stands in the document to which response keys lead from a root field.
    fn location(self, root: Group<'d>, below: &[Arc<str>]) -> Option<Location> {
        let mut group = root;
        for key in below {
            let groups = self.collect.below(&group).ok()?;
            group = groups.into_iter().find(|group| group.key() == key)?;
        }
        Some(group.field.location)
    }
}

/// Takes a failure for that of a field of a query, which is then lost, where it is one. What else
/// has not been read is read again with all others, in one snapshot.
///
/// # Errors
///
/// [`Failure::Again`], and the failure itself where it is that of the whole operation.
pub(super) fn lose(
    failure: Failure,
    plan: &mut Plan<'_>,
    fields: Fields<'_>,
    tries: &mut Tries,
) -> Result<(), Failure> {
    let fault = match failure.for_good(tries) {
        Failure::Failed(fault) => fault,
        other => return Err(other),
    };
    if fields.operation.kind != OperationKind::Query {
        return Err(Failure::Failed(fault));
    }
    if fault.is_deadline() {
        give_up(&fault.error, plan, fields, &mut tries.lost);
        return Ok(());
    }
    if fault.place.is_none() {
        return Err(Failure::Failed(fault));
    }
    if plan.is_joined() && !tries.apart {
        tries.apart = true;
        return Err(Failure::Again);
    }
    let Some(place) = tries.lose(fault, fields) else {
        return Ok(());
    };
    let mut unfinished = plan.unfinished().into_iter();
    if unfinished.any(|other| !other.is_within(&place)) {
        return Err(Failure::Again);
    }
    plan.lose(&place);
    Ok(())
}

/// Loses all that has not been read: the time is over.
fn give_up(error: &Error, plan: &mut Plan<'_>, fields: Fields<'_>, lost: &mut Lost) {
    for place in plan.unfinished() {
        let is_lost = lost.keys().any(|known| place.is_within(known));
        plan.lose(&place);
        if !is_lost {
            let error = Error::new(error.code, error.message.clone());
            let fault = fields.locate(error, Some(place.clone()));
            lost.insert(place, fault.error);
        }
    }
}

impl Tries {
    /// Notes a field as lost and tells which: the root field, where too many below it have failed.
    fn lose(&mut self, fault: Fault, fields: Fields<'_>) -> Option<Place> {
        let mut place = fault.place?;
        let mut error = fault.error;
        self.first = place.root;
        if place.below.is_empty() {
            self.first += 1;
        } else {
            let failures = self.failures.iter().filter(|root| **root == place.root);
            if failures.count() >= FAILURES {
                place = Place::root(place.root);
                error = fields.locate(error, Some(place.clone())).error;
            }
            self.failures.push(place.root);
        }
        self.lost.insert(place.clone(), error);
        Some(place)
    }
}
