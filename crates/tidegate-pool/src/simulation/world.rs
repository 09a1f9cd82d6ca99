//! A model of clients, and of a PostgreSQL server with two cores, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, RoleUse};
use tidegate_wire::backoff::{Backoff, Jitter};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::circuit_breaker::CircuitBreaker;
use super::super::connector::{Connector, OpenError, PoolKey, Recycle, ResetFailed};
use super::super::pooled_connection::PoolEntry;
use super::super::role::Phase;
use super::super::settings::Settings;
use super::super::state::{Action, State};

const LOGIN: Duration = Duration::from_millis(8);
const READ: Duration = Duration::from_micros(100);
/// Results are counted only after this time.
const WARM_UP: Duration = Duration::from_secs(2);

/// A group of clients that behave in the same way.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) first_tenant: u32,
    pub(super) tenants: u32,
    /// The number of roles of each tenant.
    pub(super) users: u32,
    pub(super) clients: usize,
    /// How many requests for the same role a client sends at the same time.
    pub(super) burst: usize,
    /// The time between two bursts of a client.
    pub(super) pause: Duration,
    pub(super) work: Duration,
    /// Whether the work uses a core. If not, it only takes time.
    pub(super) cores: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            first_tenant: 0,
            tenants: 1,
            users: 1,
            clients: 1,
            burst: 1,
            pause: Duration::ZERO,
            work: READ,
            cores: true,
        }
    }
}

/// The results of a simulation. Fields with `others` in their names cover all tenants except the
/// first.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) served: u64,
    pub(super) logins: u64,
    pub(super) refused: u64,
    /// How many requests got no connection within the maximum wait.
    pub(super) timed_out: u64,
    pub(super) longest_wait: Duration,
    pub(super) served_others: u64,
    pub(super) logins_of_others: u64,
    pub(super) longest_wait_of_others: Duration,
}

impl Measured {
    pub(super) fn logins_per_request(&self) -> f64 {
        super::ratio(self.logins, self.served)
    }
}

pub(super) struct Fake;

impl Connector for Fake {
    type Connection = ();

    fn open<'a>(&'a self, _: &'a PoolKey, _: bool) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_open(&self, (): &mut ()) -> bool {
        true
    }

    fn recycle(&self, (): &mut ()) -> Recycle {
        Recycle::Reuse
    }

    fn reset<'a>(&'a self, (): &'a mut ()) -> BoxFuture<'a, Result<(), ResetFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[derive(Clone)]
struct Request {
    number: u64,
    client: usize,
    since: Instant,
    /// The number of the request in the queue of the pool.
    place: u64,
}

enum SimulatedEvent {
    Ask(usize),
    LoggedIn(PoolKey, u64),
    Done(Box<PoolEntry<Fake>>, Request),
    Recheck(u64, Duration),
    TimeOut(PoolKey, u64),
    Sweep,
}

struct Client {
    load: Load,
    /// How many requests of the client's burst are still running.
    open: usize,
}

pub(super) struct World {
    state: State<Fake>,
    now: Instant,
    begin: Instant,
    events: BTreeMap<(Instant, u64), SimulatedEvent>,
    numbers: u64,
    /// The time at which each core becomes free.
    cores: [Instant; 2],
    clients: Vec<Client>,
    queues: HashMap<PoolKey, VecDeque<Request>>,
    waiting: HashSet<u64>,
    random: u64,
    seen: Measured,
}

impl World {
    pub(super) fn new(capacity: usize) -> Self {
        let settings = Settings {
            capacity,
            per_role: 16,
            ..Settings::default()
        };
        let now = Instant::now();
        let breaker = CircuitBreaker::new(Backoff::new(Jitter::none()));
        Self {
            state: State::new(settings, breaker),
            now,
            begin: now,
            events: BTreeMap::new(),
            numbers: 0,
            cores: [now; 2],
            clients: Vec::new(),
            queues: HashMap::new(),
            waiting: HashSet::new(),
            random: 42,
            seen: Measured::default(),
        }
    }

    pub(super) fn run(mut self, loads: &[Load], time: Duration) -> Measured {
        for load in loads {
            for _ in 0..load.clients {
                let load = load.clone();
                self.clients.push(Client { load, open: 0 });
                self.later(Duration::ZERO, SimulatedEvent::Ask(self.clients.len() - 1));
            }
        }
        self.later(Duration::from_secs(1), SimulatedEvent::Sweep);
        while let Some(((now, _), event)) = self.events.pop_first() {
            if now > self.begin + WARM_UP + time {
                break;
            }
            self.now = now;
            self.happen(event);
        }
        self.seen
    }

    fn happen(&mut self, event: SimulatedEvent) {
        let mut actions = Vec::new();
        match event {
            SimulatedEvent::Ask(client) => return self.ask(client),
            SimulatedEvent::LoggedIn(key, serial) => self.logged_in(key, serial, &mut actions),
            SimulatedEvent::Done(entry, request) => {
                self.state
                    .put_back(entry, Phase::CheckedOut, self.now, &mut actions);
                self.completed(&request);
            }
            SimulatedEvent::Recheck(number, pause) => {
                if self.waiting.contains(&number) {
                    self.state.balance(self.now, &mut actions);
                    self.later(pause, SimulatedEvent::Recheck(number, pause * 2));
                }
            }
            SimulatedEvent::TimeOut(key, number) => {
                if self.waiting.contains(&number) {
                    self.time_out(&key, number);
                }
            }
            SimulatedEvent::Sweep => {
                self.state.expire(self.now, &mut actions);
                self.state.balance(self.now, &mut actions);
                self.later(Duration::from_secs(1), SimulatedEvent::Sweep);
            }
        }
        self.perform(actions);
    }

    fn logged_in(&mut self, key: PoolKey, serial: u64, actions: &mut Vec<Action<Fake>>) {
        let entry = Box::new(PoolEntry {
            connection: (),
            key,
            serial,
            opened: self.now,
            idle_since: self.now,
            session: None,
        });
        self.state
            .put_back(entry, Phase::Opening, self.now, actions);
    }

    fn ask(&mut self, client: usize) {
        let load = self.clients[client].load.clone();
        let tenant = load.first_tenant + self.below(load.tenants);
        let database = format!("t{tenant}");
        let role = format!("{database}/u{}", self.below(load.users));
        let login = Login {
            database: DatabaseName::new(database),
            role: RoleName::new(role),
            role_use: RoleUse::User(1),
        };
        self.clients[client].open = load.burst;
        for _ in 0..load.burst {
            self.request(client, &login);
        }
    }

    fn request(&mut self, client: usize, login: &Login) {
        self.numbers += 1;
        let request = Request {
            number: self.numbers,
            client,
            since: self.now,
            place: 0,
        };
        if let Some((entry, _)) = self.state.claim(login, self.now) {
            return self.serve(entry, request);
        }
        let key = PoolKey::from(login);
        let number = request.number;
        self.waiting.insert(number);
        self.queues
            .entry(key.clone())
            .or_default()
            .push_back(request);
        let (reply, _) = oneshot::channel();
        let mut actions = Vec::new();
        match self.state.enqueue(login, reply, self.now, &mut actions) {
            Ok(place) => self.queues.get_mut(&key).unwrap().back_mut().unwrap().place = place,
            Err(_) => self.refuse(&key),
        }
        self.perform(actions);
        self.later(
            self.state.settings.wait,
            SimulatedEvent::TimeOut(key, number),
        );
        let pause = self.state.login_time.get();
        self.later(pause, SimulatedEvent::Recheck(number, pause));
    }

    fn perform(&mut self, actions: Vec<Action<Fake>>) {
        for action in actions {
            match action {
                Action::Open(key, serial, _) => {
                    if self.counts() {
                        self.seen.logins += 1;
                        self.seen.logins_of_others += u64::from(is_other(&key));
                    }
                    let end = self.compute(LOGIN);
                    self.state.login_time.measured(end - self.now);
                    self.later(end - self.now, SimulatedEvent::LoggedIn(key, serial));
                }
                Action::CheckOut(_, entry, _) => {
                    let queue = self.queues.get_mut(&entry.key).unwrap();
                    let request = queue.pop_front().unwrap();
                    self.waiting.remove(&request.number);
                    self.serve(entry, request);
                }
                Action::Close(_) => {}
                Action::Refuse(..) => panic!("nothing is down here"),
            }
        }
    }

    fn refuse(&mut self, key: &PoolKey) {
        let request = self.queues.get_mut(key).unwrap().pop_back().unwrap();
        self.waiting.remove(&request.number);
        self.seen.refused += 1;
        self.completed(&request);
    }

    fn time_out(&mut self, key: &PoolKey, number: u64) {
        let queue = self.queues.get_mut(key).unwrap();
        let index = queue.iter().position(|r| r.number == number).unwrap();
        let request = queue.remove(index).unwrap();
        assert!(self.state.dequeue(key, request.place));
        self.waiting.remove(&number);
        self.seen.timed_out += 1;
        self.completed(&request);
    }

    fn serve(&mut self, entry: Box<PoolEntry<Fake>>, request: Request) {
        let wait = self.now - request.since;
        if self.counts() {
            self.seen.served += 1;
            self.seen.longest_wait = self.seen.longest_wait.max(wait);
            if is_other(&entry.key) {
                self.seen.served_others += 1;
                let longest = &mut self.seen.longest_wait_of_others;
                *longest = wait.max(*longest);
            }
        }
        let load = &self.clients[request.client].load;
        let (work, cores) = (load.work, load.cores);
        let end = if cores {
            self.compute(work)
        } else {
            self.now + work
        };
        self.later(end - self.now, SimulatedEvent::Done(entry, request));
    }

    fn completed(&mut self, request: &Request) {
        let client = &mut self.clients[request.client];
        client.open -= 1;
        if client.open == 0 {
            let pause = client.load.pause;
            self.later(pause, SimulatedEvent::Ask(request.client));
        }
    }

    /// Occupies the core that is free first, and returns the time at which the work ends.
    fn compute(&mut self, work: Duration) -> Instant {
        self.cores.sort_unstable_by_key(|at| Reverse(*at));
        let core = &mut self.cores[1];
        *core = self.now.max(*core) + work;
        *core
    }

    fn counts(&self) -> bool {
        self.now >= self.begin + WARM_UP
    }

    fn later(&mut self, after: Duration, event: SimulatedEvent) {
        self.numbers += 1;
        self.events.insert((self.now + after, self.numbers), event);
    }

    /// A random number below `bound`, from the generator of Knuth's MMIX.
    fn below(&mut self, bound: u32) -> u32 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.random >> 33).unwrap() % bound
    }
}

fn is_other(key: &PoolKey) -> bool {
    key.database.as_str() != "t0"
}
