//! The fields of a query that have failed (GraphQL, section 6.4.4).

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_plan::Place;

use crate::error::Error;

/// The fields of a query that have failed: each shows null. The errors of root fields have their
/// path; those of fields below are at every place of the response where the field stands.
pub(crate) type Lost = BTreeMap<Place, Error>;

/// Takes the errors of the fields below a root field.
pub(crate) struct Losses<'l> {
    /// None where null may not stand in place of a field: a mutation is all or nothing.
    lost: Option<&'l mut Lost>,
    /// The field that is being lowered.
    place: Place,
}

impl<'l> Losses<'l> {
    /// Takes errors below a root field.
    pub(crate) fn of(lost: &'l mut Lost, place: Place) -> Self {
        Self {
            lost: Some(lost),
            place,
        }
    }

    /// Takes no errors.
    pub(crate) fn none() -> Self {
        Self {
            lost: None,
            place: Place::root(0),
        }
    }

    /// What `lower` makes of a field below; `None` when the field has failed, now or before.
    ///
    /// # Errors
    ///
    /// Those of `lower`, where no errors are taken.
    pub(super) fn below<T>(
        &mut self,
        key: &Arc<str>,
        lower: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.place.below.push(Arc::clone(key));
        let place = &self.place;
        if self
            .lost
            .as_ref()
            .is_some_and(|lost| lost.contains_key(place))
        {
            self.place.below.pop();
            return Ok(None);
        }
        let lowered = lower(self);
        let place = self.place.clone();
        self.place.below.pop();
        match (lowered, &mut self.lost) {
            (Err(error), Some(lost)) => {
                lost.insert(place, error);
                Ok(None)
            }
            (lowered, _) => lowered.map(Some),
        }
    }
}
