use super::*;

fn limit(per_role: usize, queue: usize) -> (Settings, Arc<CallerLimit>) {
    let settings = Settings {
        per_role,
        queue,
        ..Settings::default()
    };
    let limit = Arc::new(CallerLimit::new(&settings));
    (settings, limit)
}

fn user(database: &str, name: &str) -> LimitedCaller {
    let role = RoleName::new(format!("{database}/{name}"));
    LimitedCaller::user(&DatabaseName::new(database), &role)
}

fn is_empty(limit: &CallerLimit) -> bool {
    let state = limit.state.lock();
    state.callers.is_empty() && state.tenants.is_empty() && state.waiting == 0
}

#[tokio::test(start_paused = true)]
async fn one_user_waits_for_itself_only_and_leaves_nothing_behind() {
    let (settings, limit) = limit(2, 8);
    let [ann, bob] = ["ann", "bob"].map(|name| user("t", name));
    let acquire = |caller: &LimitedCaller, deadline| {
        let wait = WaitLimit::new(&settings, deadline);
        let (limit, caller) = (limit.clone(), caller.clone());
        async move { limit.acquire(caller, wait).await }
    };
    let first = acquire(&ann, None).await.unwrap();
    let second = acquire(&ann, None).await.unwrap();
    let began = Instant::now();
    let late = acquire(&ann, None).await;
    assert!(matches!(late, Err(Error::PoolTimeout { .. })));
    assert!(began.elapsed() >= settings.wait);
    let soon = Some(Instant::now() + Duration::from_millis(10));
    let late = acquire(&ann, soon).await;
    assert!(matches!(late, Err(Error::Deadline)));
    drop(acquire(&bob, None).await.unwrap());
    let (third, freed) = tokio::join!(acquire(&ann, None), async {
        tokio::task::yield_now().await;
        drop(first);
    });
    let () = freed;
    drop((second, third.unwrap()));
    assert!(is_empty(&limit));
}

#[test]
fn as_many_requests_wait_as_in_the_queue_of_the_pool() {
    let (_, limit) = limit(1, 8);
    let callers = [
        user("t", "ann"),
        user("t", "bob"),
        user("t", "eve"),
        user("s", "ann"),
        user("s", "bob"),
        user("r", "ann"),
    ];
    let permits: Vec<_> = callers
        .iter()
        .map(|caller| limit.enter(caller.clone()).1)
        .collect();
    let [ann, bob, eve, other, last, none] = &callers;
    let mut places = Vec::new();
    let mut may_wait = |caller| match limit.queue(caller) {
        Ok(place) => {
            places.push(place);
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::PoolTimeout { .. }));
            false
        }
    };
    // At most two requests of each user wait, four of each database, and eight in total.
    assert_eq!([ann, ann, ann].map(&mut may_wait), [true, true, false]);
    assert_eq!([bob, bob, eve].map(&mut may_wait), [true, true, false]);
    assert_eq!([other, other].map(&mut may_wait), [true, true]);
    assert_eq!([last, last, none].map(&mut may_wait), [true, true, false]);
    places.pop();
    let place = limit.queue(none).unwrap();
    drop((place, places, permits));
    assert!(is_empty(&limit));
}

#[test]
fn a_member_counts_by_its_id() {
    let database = DatabaseName::new("t");
    let of = |id, claims| LimitedCaller::member(&database, &Member::new(id, claims).unwrap());
    assert_eq!(of("m1", "{}"), of("m1", r#"{"org":"o1"}"#));
    assert_ne!(of("m1", "{}"), of("m2", "{}"));
    assert_ne!(of("t/ann", "{}"), user("t", "ann"));
}
