//! Runs random operations, whose data must equal the result of plain SQL.

use std::fmt::Write as _;

use tidegate_catalog::model::{Cardinality, Relationship};
use tidegate_catalog::{Relation, RelationId};
use tidegate_values::Type;

use tidegate_testkit::Random;

use crate::fixture::Fixture;

/// The tables of `MUSIC` with random rows. Their keys have several columns, text, unusual widths,
/// and values that are equal although their bytes differ.
const SETUP: &str = r#"create table "Odd ""table" (a int2, b text, primary key (a, b), note text);
    create table artists (id int primary key, name text not null, country char(2));
    create table albums (id bigint primary key, artist_id int references artists, title text,
        price numeric(8, 2), released date, odd_a int8, odd_b varchar(9),
        foreign key (odd_a, odd_b) references "Odd ""table");
    create table genres (code text primary key, label text);
    create table tracks (id int primary key, album_id int references albums, genre text references genres,
        title text, hot bool);
    create table staff (id int primary key, name text, boss_id int references staff);
    create view loud as select id, upper(title) as title from tracks;
    create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    create table codes (id int primary key, code text collate nocase unique, n numeric unique);
    create table marks (id int primary key, code text collate nocase references codes (code), n numeric references codes (n));
    insert into codes values (1, 'Ab', 1.0), (2, 'cd', 2), (3, null, null), (4, 'EF', 3.50), (5, 'x', null);
    insert into marks select i, (array['aB', 'AB', 'CD', 'ef', null])[1 + i % 5], (array[1.00, 1, 2.000, 3.5, null, 1])[1 + i % 6]
        from generate_series(1, 40) i;
    insert into "Odd ""table" select i % 5, 'b' || i, case when i % 3 = 0 then 'n"ote' end from generate_series(1, 12) i;
    insert into artists select i, 'Artist ' || i % 7, (array['IS', 'FR', null])[1 + i % 3] from generate_series(1, 20) i;
    insert into albums select i, case when i % 6 > 0 then 1 + i * 7 % 20 end, (array['a', 'B', '\', null, 'ü'])[1 + i % 5],
        case when i % 4 > 0 then i % 9 + 0.5 end, case when i % 3 > 0 then date '2000-01-01' + i % 8 end,
        (select a from "Odd ""table" where b = 'b' || (i % 14)), case when i % 5 > 0 then 'b' || (i % 14) end
        from generate_series(1, 90) i where i % 14 between 1 and 12;
    insert into genres values ('rock', 'Rock'), ('"pop', null), ('', 'Empty'), ('NULL', 'Null');
    insert into tracks select i, (array[1, 2, 3, 5, 8, null])[1 + i % 6], (array['rock', '"pop', '', 'NULL', null])[1 + i % 5],
        't' || i % 11, case when i % 3 > 0 then i % 2 = 0 end from generate_series(1, 150) i;
    insert into staff select i, 's' || i % 4, case when i > 3 then 1 + i % 3 end from generate_series(1, 15) i"#;

/// Generates an operation, and the SQL for the same data.
struct Case<'s> {
    fixture: &'s Fixture,
    random: Random,
    operation: String,
    /// The number of lists that still must be generated below a short one. With `None` the
    /// structure is random.
    below: Option<usize>,
}

impl Case<'_> {
    fn relation(&self, id: RelationId) -> &'static Relation {
        // The schema is leaked, because it is needed until the test process ends.
        Box::leak(Box::new(self.fixture.schema[id].clone()))
    }

    /// Generates a root list; returns the SQL of its JSON text.
    fn root(&mut self) -> String {
        let all: Vec<_> = self.fixture.schema.relations().map(|(id, _)| id).collect();
        let id = all[self.random.below(all.len())];
        let _ = write!(self.operation, "`{}`", self.relation(id).name);
        self.list(id, "true", 0)
    }

    /// Generates the rest of a list after its name. `within` is the SQL condition that connects its
    /// rows, `x{depth}`, with the enclosing ones.
    fn list(&mut self, id: RelationId, within: &str, depth: usize) -> String {
        let relation = self.relation(id);
        let (filter, condition) = self.filter(relation, depth);
        let order: Vec<_> = relation
            .primary_key
            .as_ref()
            .map_or(&relation.columns[..1], |_| &[])
            .iter()
            .map(|column| (column.name.to_string(), ""))
            .chain(self.order(relation))
            .collect();
        let limit = match self.below {
            None => self.random.one_in(2).then(|| self.random.below(5)),
            Some(_) => (depth == 0).then(|| self.random.below(33)),
        };
        let paged = depth == 0 || self.below.is_none();
        let offset = (paged && self.random.one_in(3)).then(|| self.random.below(3));
        let mut arguments = vec![format!(r#""where": {filter}"#)];
        let options: Vec<_> = order
            .iter()
            .map(|(name, how)| format!("{:?}", format!("{name}{how}")))
            .collect();
        let paged = limit.is_some() || offset.is_some();
        // Without a limit the statement has only the order of the request, so that order must be
        // complete.
        let key = relation.primary_key.iter().flat_map(|key| &key.columns);
        let key: Vec<_> = key
            .map(|id| relation.column(*id).name.to_string())
            .collect();
        let mut asked = options.clone();
        if !paged {
            asked.extend(key.iter().map(|name| format!("{name:?}")));
        }
        arguments.push(format!(r#""order": [{}]"#, asked.join(",")));
        arguments.extend(limit.map(|limit| format!(r#""limit": {limit}"#)));
        arguments.extend(offset.map(|offset| format!(r#""offset": {offset}"#)));
        let _ = write!(self.operation, "({{{}}})", arguments.join(","));
        let object = self.object(relation, depth);
        let mut sort: Vec<_> = order
            .iter()
            .map(|(name, how)| format!("x{depth}.{name:?}{how}"))
            .collect();
        sort.extend(key.iter().map(|name| format!("x{depth}.{}", quoted(name))));
        let sort: Vec<_> = sort
            .into_iter()
            .map(|term| term.replace("\\\"", "\"\""))
            .collect();
        let sort = if sort.is_empty() {
            "1".to_owned()
        } else {
            sort.join(",")
        };
        format!(
            "(select '[' || coalesce(string_agg(o, ',' order by n), '') || ']' from (
                select {object} as o, row_number() over () as n from (
                    select * from public.{} x{depth} where {within} and {condition} order by {sort} limit {} offset {}) x{depth}) y)",
            quoted(&relation.name),
            limit.map_or("all".to_owned(), |limit| limit.to_string()),
            offset.unwrap_or(0),
        )
    }

    /// Generates an object for `x{depth}`; returns the SQL of its JSON text.
    fn object(&mut self, relation: &'static Relation, depth: usize) -> String {
        self.operation.push('{');
        let mut parts = Vec::new();
        for number in 0..=self.random.below(4) {
            let value = if let Some(relationship) = self.relationship(relation, depth) {
                let inner = depth + 1;
                let target = self.relation(relationship.target);
                let pairs = relationship
                    .columns
                    .iter()
                    .zip(&relationship.target_columns);
                let ties: Vec<_> = pairs
                    .map(|(here, there)| {
                        format!(
                            "x{inner}.{} = x{depth}.{}",
                            quoted(&target.column(*there).name),
                            quoted(&relation.column(*here).name),
                        )
                    })
                    .collect();
                let _ = write!(self.operation, " k{number}: `{}`", relationship.name);
                match relationship.cardinality {
                    Cardinality::Many => self.list(relationship.target, &ties.join(" and "), inner),
                    Cardinality::One => {
                        let object = self.object(target, inner);
                        format!(
                            "(select {object} from public.{} x{inner} where {})",
                            quoted(&target.name),
                            ties.join(" and ")
                        )
                    }
                }
            } else {
                let (id, column) = relation
                    .columns()
                    .nth(self.random.below(relation.columns.len()))
                    .unwrap();
                let _ = write!(self.operation, " k{number}: `{}`", column.name);
                let name = format!("x{depth}.{}", quoted(&column.name));
                let number = matches!(column.r#type, Type::INT2 | Type::INT4 | Type::BOOL);
                if number && !relation.is_key(id) {
                    format!("{name}::text")
                } else {
                    format!("to_json({name}::text)::text")
                }
            };
            parts.push(format!(r#"'"k{number}":' || coalesce({value}, 'null')"#));
        }
        self.operation.push('}');
        format!("'{{' || {} || '}}'", parts.join(" || ',' || "))
    }

    /// A random relationship, or `None`.
    fn relationship(
        &mut self,
        relation: &'static Relation,
        depth: usize,
    ) -> Option<&'static Relationship> {
        let all = relation.relationships.len();
        if depth == 3 || all == 0 || self.random.one_in(2) {
            return None;
        }
        let found = &relation.relationships[self.random.below(all)];
        if let (Cardinality::Many, Some(below)) = (found.cardinality, &mut self.below) {
            *below = below.checked_sub(1)?;
        }
        Some(found)
    }

    fn filter(&mut self, relation: &Relation, depth: usize) -> (String, String) {
        let column = &relation.columns[self.random.below(relation.columns.len())];
        let (field, name) = (
            format!("{:?}", column.field),
            format!("x{depth}.{}", quoted(&column.name)),
        );
        let number = self.random.below(9);
        match self.random.below(5) {
            0 => (format!("{{{field}: null}}"), format!("{name} is null")),
            1 => (
                format!(r#"{{"not": {{{field}: {{"isNull": true}}}}}}"#),
                format!("{name} is not null"),
            ),
            2 if column.r#type == Type::INT4 => (
                format!(
                    r#"{{"or": [{{{field}: {{"gt": {number}}}}}, {{{field}: {{"in": [1, {number}]}}}}]}}"#
                ),
                format!("({name} > {number} or {name} in (1, {number}))"),
            ),
            3 if column.r#type == Type::TEXT => (
                format!(r#"{{{field}: {{"neq": "t{number}"}}}}"#),
                format!("{name} <> 't{number}'"),
            ),
            _ => ("{}".to_owned(), "true".to_owned()),
        }
    }

    fn order(&mut self, relation: &Relation) -> Vec<(String, &'static str)> {
        if self.random.one_in(2) {
            return Vec::new();
        }
        let column = &relation.columns[self.random.below(relation.columns.len())];
        let how = ["", " desc", " nulls first", " desc nulls last"][self.random.below(4)];
        vec![(column.name.to_string(), how)]
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[tokio::test]
async fn random_operations_equal_plain_sql() {
    let fixture = Fixture::new("plan_random", SETUP).await;
    let mut nested = 0;
    for seed in 0..600 {
        let mut case = Case {
            fixture: &fixture,
            random: Random::new(seed),
            operation: String::new(),
            below: (seed >= 400).then_some(1),
        };
        let sql = case.root();
        let response = fixture.run(&case.operation).await;
        let response =
            response.unwrap_or_else(|error| panic!("{seed}: {}\n{error:?}", case.operation));
        let (_, data) = response.data.split_once("\":").unwrap();
        let expected = fixture.sql(&format!("select {sql}")).await;
        let (statement, operation) = (response.texts.join(";\n"), &case.operation);
        assert_eq!(
            data.strip_suffix('}').unwrap(),
            expected,
            "{seed}: {operation}\n{statement}"
        );
        assert!(response.truncated().is_empty());
        assert_eq!(
            (response.texts.len(), response.pipelines),
            (1, 1),
            "{operation}"
        );
        nested += usize::from(statement.starts_with("with "));
    }
    assert!(nested > 200, "deep enough: {nested}");
}
