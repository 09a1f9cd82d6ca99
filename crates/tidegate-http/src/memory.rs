//! The memory budget of all requests.
//!
//! A reservation of an anonymous caller succeeds only if `own <= free / 3 - all` is true after the
//! reservation. Here `free` is the number of bytes that are not reserved, `all` is the number that
//! all anonymous callers hold, and `own` is the number that the anonymous callers of the same
//! tenant hold. So if nothing else is reserved, all anonymous callers together hold at most a
//! quarter of the budget, and the anonymous callers of a single tenant hold at most a seventh.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_sql::DatabaseName;

/// The budget does not allow the reservation now. The reservation may succeed after other requests
/// have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all memory for large bodies and responses is in use")]
pub struct Exhausted;

/// The account that a reservation is charged to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The users of a tenant.
    Tenant(DatabaseName),
    /// The callers that run as the default user of a tenant; `None` for callers that have not
    /// authenticated yet.
    Anonymous(Option<DatabaseName>),
}

impl Holder {
    const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous(_))
    }
}

/// The memory budget of all requests. Clones refer to the same budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Mutex<BudgetState>>);

#[derive(Debug)]
struct BudgetState {
    /// The number of bytes that are not reserved.
    free: u64,
    /// The bytes that all anonymous callers together hold.
    anonymous: u64,
    /// The bytes that each holder has reserved. Holders without reserved bytes have no entry.
    holders: HashMap<Holder, u64>,
}

impl MemoryBudget {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(BudgetState {
            free: bytes,
            anonymous: 0,
            holders: HashMap::new(),
        })))
    }

    /// A reservation of 0 bytes for one request.
    pub fn reservation(&self, holder: Holder) -> Reservation {
        Reservation {
            memory: self.clone(),
            holder,
            reserved: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetState {
    fn take(&mut self, holder: &Holder, bytes: u64) -> Result<(), Exhausted> {
        let free = self.free.checked_sub(bytes).ok_or(Exhausted)?;
        let own = self.holders.get(holder).copied().unwrap_or_default() + bytes;
        let anonymous = self.anonymous + if holder.is_anonymous() { bytes } else { 0 };
        let fits = match holder {
            Holder::Tenant(_) => own <= free,
            Holder::Anonymous(_) => (free / 3)
                .checked_sub(anonymous)
                .is_some_and(|left| own <= left),
        };
        if !fits {
            return Err(Exhausted);
        }
        (self.free, self.anonymous) = (free, anonymous);
        match self.holders.get_mut(holder) {
            Some(reserved) => *reserved = own,
            None => {
                self.holders.insert(holder.clone(), own);
            }
        }
        Ok(())
    }

    fn release(&mut self, holder: &Holder, bytes: u64) {
        self.free += bytes;
        if holder.is_anonymous() {
            self.anonymous -= bytes;
        }
        if let Some(reserved) = self.holders.get_mut(holder) {
            *reserved -= bytes;
            if *reserved == 0 {
                self.holders.remove(holder);
            }
        }
    }
}

/// The memory that one request has reserved. Dropping the reservation frees the memory.
#[derive(Debug)]
pub struct Reservation {
    memory: MemoryBudget,
    holder: Holder,
    reserved: u64,
}

impl Reservation {
    /// Reserves more bytes.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if the holder may not reserve that many bytes now. In this case the call
    /// reserves nothing.
    pub fn take(&mut self, bytes: u64) -> Result<(), Exhausted> {
        self.memory.lock().take(&self.holder, bytes)?;
        self.reserved += bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.memory.lock().release(&self.holder, self.reserved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Holder {
        Holder::Tenant(DatabaseName::new(name))
    }

    fn anonymous(name: &str) -> Holder {
        Holder::Anonymous(Some(DatabaseName::new(name)))
    }

    /// Reserves single bytes until a reservation fails. Returns how many succeeded.
    fn fill(reservation: &mut Reservation) -> u64 {
        while reservation.take(1).is_ok() {}
        reservation.reserved
    }

    #[test]
    fn a_share_that_ends_gives_back_what_it_held() {
        let memory = MemoryBudget::new(20);
        let (mut one, mut two) = (
            memory.reservation(tenant("a")),
            memory.reservation(tenant("a")),
        );
        one.take(4).unwrap();
        one.take(4).unwrap();
        assert_eq!(two.take(3), Err(Exhausted));
        two.take(2).unwrap();
        drop(one);
        two.take(8).unwrap();
        assert_eq!(two.take(1), Err(Exhausted));
        drop(two);
        let reserved = memory.lock();
        assert_eq!((reserved.free, reserved.holders.len()), (20, 0));
    }

    #[test]
    fn a_tenant_leaves_something_for_every_other() {
        let memory = MemoryBudget::new(1_200);
        let mut shares: Vec<_> = ["a", "b", "c", "d"]
            .map(|name| memory.reservation(tenant(name)))
            .into();
        let taken: Vec<_> = shares.iter_mut().map(fill).collect();
        assert_eq!(taken, [600, 300, 150, 75]);
        let mut later = memory.reservation(anonymous("a"));
        assert!(fill(&mut later) > 0);
    }

    #[test]
    fn anonymous_callers_share_a_quarter_and_leave_the_rest_to_users() {
        let memory = MemoryBudget::new(1_200);
        let mut of_one = memory.reservation(anonymous("a"));
        assert_eq!(fill(&mut of_one), 171);
        let mut more = memory.reservation(anonymous("a"));
        assert_eq!(more.take(1), Err(Exhausted));
        let mut of_others: Vec<_> = (0..50)
            .map(|number| memory.reservation(anonymous(&number.to_string())))
            .collect();
        let others: u64 = of_others.iter_mut().map(fill).sum();
        assert!((270..=300).contains(&(171 + others)), "{others}");
        let mut user = memory.reservation(tenant("a"));
        assert!(fill(&mut user) >= 450);
        drop((of_one, of_others));
        assert_eq!(memory.lock().anonymous, 0);
    }
}
