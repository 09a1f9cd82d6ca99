//! Compares the results of a pipeline with those of its statements one after the other.

use super::{Plan, by_key, fixture, write, write_returning};
use crate::fixture::{Rows, Sql};

/// Reproducible random numbers (Numerical Recipes, "ranqd1").
struct Numbers(u32);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % end
    }
}

fn statement(numbers: &mut Numbers) -> Sql {
    let id = numbers.below(30);
    let key = id.to_string();
    match numbers.below(9) {
        0 => write(id),
        1 => write_returning(id),
        2 => by_key(id),
        3 => Sql::new("delete from note where id > :id returning *").set([&key]),
        4 => Sql::new("select id, text from note where id < :id order by id").set([&key]),
        5 => Sql::new("update note set text = text || :t::text")
            .set([r#""y""#])
            .set([r#""z""#]),
        6 => Sql::new("select 60 / (:n::int - 3)").set([&key]),
        7 => {
            Sql::new("with w as (insert into note values (:id, null) returning id) select * from w")
                .set([&key])
        }
        _ => Sql::new("insert into note values (:id, 'x') on conflict do nothing")
            .set([&key])
            .set(["5"]),
    }
}

/// The rows as a sorted list, because their order in a table depends on vacuum.
fn shown(rows: &[Rows]) -> Vec<String> {
    let shown = |rows: &Rows| {
        let mut values = rows.values.clone();
        values.sort();
        format!("{values:?} {:?}", rows.affected)
    };
    rows.iter().map(shown).collect()
}

#[tokio::test]
async fn a_pipeline_does_what_its_statements_do_in_turn() {
    let (one, other) = (
        fixture("pipeline_alike").await,
        fixture("pipeline_in_turns").await,
    );
    let mut numbers = Numbers(7);
    let content = "select coalesce(string_agg(n::text, ',' order by id), '') from note n";
    for round in 0..400 {
        let count = 1 + numbers.below(6);
        let statements: Vec<_> = (0..count).map(|_| statement(&mut numbers)).collect();
        let mut plan = Plan::new(statements);
        if numbers.below(3) == 0 {
            plan = plan.together();
        }
        if numbers.below(5) == 0 {
            plan = plan.snapshot();
        }
        let at_once = plan.run(&one, &one.owner()).await;
        let in_turn = plan.run_in_turn(&other, &other.owner()).await;
        match (at_once, in_turn) {
            (Ok(one), Ok(other)) => assert_eq!(shown(&one), shown(&other), "{round}"),
            (Err(one), Err(other)) => {
                let told = |error: &tidegate_sql::PipelineError| {
                    (
                        error.step,
                        error.error.sqlstate().map(str::to_owned),
                        error.outcome,
                    )
                };
                assert_eq!(told(&one), told(&other), "{round}");
            }
            (one, other) => panic!("{round}: {one:?} {other:?}"),
        }
        assert_eq!(
            one.value(content).await,
            other.value(content).await,
            "{round}"
        );
    }
}
