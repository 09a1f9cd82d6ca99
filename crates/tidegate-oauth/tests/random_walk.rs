//! A long random sequence of events, compared with a model of a session.

use std::time::Duration;

use tidegate_identity::{Clock as _, Secret, Timestamp, UserKey};
use tidegate_oauth::TokenResponse;

use crate::fixture::{DAY, Fixture, HOUR, SeededRandom};

const LEEWAY: Duration = Duration::from_secs(30);

struct Model {
    presented: usize,
    ended: bool,
    closes: Timestamp,
    /// The refresh tokens and their expiry; token n is at index n - 1. Of several tokens with the
    /// same number, the last is kept.
    refresh: Vec<(Secret, Timestamp)>,
    access: Vec<(Secret, Timestamp)>,
}

struct Walk {
    api: Fixture,
    random: SeededRandom,
    sessions: Vec<Model>,
}

impl Walk {
    fn pick(&self, length: usize) -> usize {
        usize::try_from(self.random.below(u64::try_from(length).unwrap())).unwrap()
    }

    async fn sign_in(&mut self) {
        let response = self.api.alice().await;
        let closes = self.api.clock.now().plus(90 * DAY);
        let mut model = Model {
            presented: 0,
            ended: false,
            closes,
            refresh: vec![],
            access: vec![],
        };
        model.keep(1, response, self.api.clock.now());
        self.sessions.push(model);
    }

    async fn refresh(&mut self) {
        let now = self.api.clock.now();
        let which = self.pick(self.sessions.len());
        let number = self.pick(self.sessions[which].refresh.len()) + 1;
        let session = &mut self.sessions[which];
        let (token, expires) = session.refresh[number - 1].clone();
        let alive = !session.ended && now < expires && now < session.closes;
        let reply = self.api.refresh(&token).await;
        assert_eq!(
            reply.is_ok(),
            alive && number >= session.presented,
            "token {number}"
        );
        match reply {
            Ok(response) => {
                session.presented = number;
                session.keep(number + 1, response, now);
            }
            Err(error) => {
                assert_eq!(error.code(), "invalid_grant");
                session.ended |= alive;
            }
        }
    }

    async fn revoke(&mut self) {
        let which = self.pick(self.sessions.len());
        let session = &mut self.sessions[which];
        self.api.revoke(&session.refresh[0].0).await.unwrap();
        session.ended = true;
    }

    async fn change_password(&mut self) {
        let (key, password) = (UserKey::new("demo", "alice"), Secret::new("alice1234"));
        self.api
            .directory
            .set_password(&key, &password)
            .await
            .unwrap();
        self.api.issuer.refresh_denylist().await.unwrap();
        self.sessions
            .iter_mut()
            .for_each(|session| session.ended = true);
    }

    fn check_access(&self) {
        let now = self.api.clock.now();
        for session in &self.sessions {
            for (token, expires) in session.access.iter().rev().take(3) {
                let accepted = self.api.issuer.verify(token.expose()).is_ok();
                assert_eq!(accepted, !session.ended && now < expires.plus(LEEWAY));
            }
        }
    }

    async fn step(&mut self) {
        match self.random.below(20) {
            0..2 => self.sign_in().await,
            2..10 => self.refresh().await,
            10 => self.revoke().await,
            11 => self
                .api
                .clock
                .advance(Duration::from_hours(24 * self.random.below(20))),
            12..14 => self.api.clock.advance(HOUR / 2),
            14 => self
                .api
                .clock
                .advance(Duration::from_secs(self.random.below(90))),
            15 if self.random.below(5) == 0 => self.change_password().await,
            16 => self.api.issuer.maintain().await.unwrap(),
            17 => drop(self.api.issuer.rotate_keys().await),
            _ => self.check_access(),
        }
    }
}

impl Model {
    fn keep(&mut self, number: usize, response: TokenResponse, now: Timestamp) {
        let seconds = |time: Timestamp| Timestamp::from_seconds(time.seconds());
        self.refresh.truncate(number - 1);
        let idle = seconds(now.plus(30 * DAY).min(self.closes));
        self.refresh.push((response.refresh_token.unwrap(), idle));
        let end = seconds(now.plus(HOUR).min(self.closes));
        self.access.push((response.access_token, end));
    }
}

#[tokio::test]
async fn any_order_of_events_matches_the_model() {
    for seed in 0..12 {
        let api = Fixture::start().await;
        let mut walk = Walk {
            api,
            random: SeededRandom::new(seed),
            sessions: Vec::new(),
        };
        walk.sign_in().await;
        for _ in 0..250 {
            walk.step().await;
        }
        assert!(walk.sessions.len() > 5, "the walk went somewhere");
    }
}
