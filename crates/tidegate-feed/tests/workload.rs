//! Random work on tables of many types, by several sessions at once.

use tokio_postgres::Client;

/// The columns: the name, the type, and values as SQL expressions.
pub(crate) const COLUMNS: &[(&str, &str, &[&str])] = &[
    (
        "Quoted \"\" name",
        "text",
        &[
            "'a'",
            "''",
            "'x \"y\" \\ ,()'",
            "E'tab\\tand\\nline'",
            "'é €'",
            "repeat('long', 3000)",
        ],
    ),
    (
        "n",
        "numeric",
        &["1.50", "'NaN'", "-0.000", "12345678901234567890.123456789"],
    ),
    ("n2", "numeric(8,3)", &["1", "99999.9994"]),
    ("f4", "float4", &["0.1", "'-Infinity'", "1e-30", "16777217"]),
    (
        "f8",
        "float8",
        &["0.1", "'NaN'", "1.7976931348623157e308", "-0.0"],
    ),
    ("i8", "bigint", &["9223372036854775807", "-1"]),
    ("b", "boolean", &["true", "false"]),
    ("c", "char(5)", &["'ab'", "''"]),
    ("v", "varchar(20)", &["'null'", "'NULL'"]),
    ("ch", "\"char\"", &["'x'", "''"]),
    (
        "d",
        "date",
        &["'2024-02-29'", "'infinity'", "'0044-03-15 BC'"],
    ),
    ("t", "time", &["'23:59:59.999999'", "'24:00'"]),
    ("tz", "timetz", &["'12:00+05:30'"]),
    (
        "ts",
        "timestamp",
        &["'2024-02-29 12:34:56.789'", "'-infinity'"],
    ),
    (
        "tstz",
        "timestamptz",
        &["'2024-02-29 12:34:56.789+09'", "'1900-01-01 00:00:00+00'"],
    ),
    (
        "iv",
        "interval",
        &["'1 year 2 mons -3 days 04:05:06.7'", "'-1 second'", "'0'"],
    ),
    ("ia", "int[]", &["'{1,NULL,3}'", "'{}'", "'[0:1]={7,8}'"]),
    (
        "ta",
        "text[]",
        &["'{{a,\"b c\"},{\"\",\"\\\"\"}}'", "array['NULL', NULL]"],
    ),
    (
        "tsa",
        "timestamptz[]",
        &["array['2024-02-29 12:00+00'::timestamptz, NULL]"],
    ),
    (
        "j",
        "json",
        &["'{\"b\" : 1, \"a\":[ ]}'", "'null'", "'\"x\"'"],
    ),
    (
        "jb",
        "jsonb",
        &["'{\"b\":1.50,\"a\":[null,\"é\"]}'", "'[]'"],
    ),
    ("by", "bytea", &["'\\x00ff5c'", "''"]),
    ("r", "int4range", &["'[1,5)'", "'empty'", "'(,3]'"]),
    ("tr", "tstzrange", &["'[2024-01-01 00:00+00,)'"]),
    ("e", "mood", &["'so so'", "'ok'"]),
    ("ea", "mood[]", &["'{ok,\"so so\"}'"]),
    ("dm", "positive", &["1", "42.0"]),
    (
        "cp",
        "pair",
        &["row(1, 'a \"b\", c')", "row(NULL, '')", "row(NULL, NULL)"],
    ),
    ("u", "uuid", &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    ("ip", "inet", &["'192.168.0.1/24'", "'::1'"]),
    ("ma", "macaddr", &["'08:00:2b:01:02:03'"]),
    ("bi", "bit(3)", &["B'101'"]),
    ("vb", "varbit", &["B''", "B'1'"]),
    ("pt", "point", &["'(1,2.5)'"]),
    ("tv", "tsvector", &["'a:1 ''b c'':2'"]),
    ("mo", "money", &["12.34::numeric::money"]),
    ("o", "regclass", &["'pg_class'", "'public.\"Odd Table\"'"]),
    ("x", "xml", &["'<a>1</a>'"]),
];

/// The names of the tables.
pub(crate) const TABLES: [&str; 3] = ["\"Odd Table\"", "keyless", "parted"];

/// Creates the tables. They have equal columns, so that each statement fits all of them.
pub(crate) fn definition() -> String {
    let columns = |from: usize| {
        let mut columns: Vec<_> = COLUMNS
            .iter()
            .map(|(name, kind, _)| format!("\"{name}\" {kind}"))
            .collect();
        columns.rotate_left(from);
        columns.join(", ")
    };
    format!(
        "CREATE TYPE mood AS ENUM ('ok', 'so so'); CREATE TYPE pair AS (a int, \"b c\" text); \
         CREATE DOMAIN positive AS numeric CHECK (VALUE > 0); \
         CREATE TABLE \"Odd Table\" (gone int, id int PRIMARY KEY, {plain}, \
             g int GENERATED ALWAYS AS (id * 2) STORED); \
         ALTER TABLE \"Odd Table\" DROP COLUMN gone; \
         CREATE TABLE keyless ({plain}, id int); \
         CREATE TABLE parted (id int PRIMARY KEY, {plain}) PARTITION BY HASH (id); \
         CREATE TABLE leaf1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
         CREATE TABLE leaf2 ({other}, id int NOT NULL); \
         ALTER TABLE parted ATTACH PARTITION leaf2 FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC",
        plain = columns(0),
        other = columns(7),
    )
}

/// Reproducible pseudo-random numbers (Knuth's MMIX generator).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn of<'a, T>(&mut self, choice: &'a [T]) -> &'a T {
        &choice[self.roll(choice.len())]
    }
}

/// A session that works on its own rows, so that no session waits for another.
pub(crate) struct WorkloadWriter {
    pub(crate) session: Client,
    /// The rows of this writer have an id that is this number modulo [`WRITERS`].
    pub(crate) number: usize,
    pub(crate) is_open: bool,
    has_savepoint: bool,
    next: usize,
}

pub(crate) const WRITERS: usize = 4;

impl WorkloadWriter {
    /// Creates a writer. Each session has other settings for the text form of values.
    pub(crate) async fn new(session: Client, number: usize) -> Self {
        let habits = [
            "SET DateStyle = 'German'; SET TimeZone = 'Asia/Tokyo'; SET bytea_output = 'escape'",
            "SET IntervalStyle = 'iso_8601'; SET extra_float_digits = -5",
            "SET DateStyle = 'SQL, DMY'; SET quote_all_identifiers = on; SET search_path = ''",
            "SET IntervalStyle = 'sql_standard'; SET session_replication_role = 'replica'",
        ];
        session.batch_execute(habits[number]).await.unwrap();
        Self {
            session,
            number,
            is_open: false,
            has_savepoint: false,
            next: 0,
        }
    }

    /// Runs a random statement.
    pub(crate) async fn step(&mut self, dice: &mut Dice) {
        let statement = match dice.roll(16) {
            0 if self.is_open => self.end("COMMIT"),
            1 if self.is_open => self.end("ROLLBACK"),
            2 | 3 if !self.is_open => {
                self.is_open = true;
                "BEGIN".to_owned()
            }
            4 if self.is_open && !self.has_savepoint => {
                self.has_savepoint = true;
                "SAVEPOINT s".to_owned()
            }
            5 if self.has_savepoint => "ROLLBACK TO s".to_owned(),
            6..=8 => self.update(dice),
            9 => self.delete(dice),
            _ => self.insert(dice),
        };
        let done = self.session.batch_execute(&statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }

    /// Commits or rolls back.
    pub(crate) fn end(&mut self, how: &str) -> String {
        self.is_open = false;
        self.has_savepoint = false;
        how.to_owned()
    }

    fn insert(&mut self, dice: &mut Dice) -> String {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, kind, choice) in COLUMNS {
            if dice.roll(3) > 0 {
                names.push(format!("\"{name}\""));
                values.push(format!("({})::{}", dice.of(choice), qualified(kind)));
            }
        }
        // A statement inserts one row or several.
        let rows = 1 + dice.roll(3);
        let first = self.next;
        self.next += rows;
        let (names, values) = (names.join(", "), values.join(", "));
        let comma = if names.is_empty() { "" } else { ", " };
        format!(
            "INSERT INTO public.{} (id{comma}{names}) \
             SELECT i * {WRITERS} + {}{comma}{values} FROM generate_series({first}, {}) i",
            dice.of(&TABLES),
            self.number,
            self.next - 1,
        )
    }

    fn update(&mut self, dice: &mut Dice) -> String {
        let (name, kind, choice) = dice.of(COLUMNS);
        let value = match dice.roll(4) {
            0 => "NULL".to_owned(),
            _ => format!("({})::{}", dice.of(choice), qualified(kind)),
        };
        format!(
            "UPDATE public.{} SET \"{name}\" = {value} WHERE {}",
            dice.of(&TABLES),
            self.some(dice)
        )
    }

    fn delete(&mut self, dice: &mut Dice) -> String {
        let table = dice.of(&TABLES);
        format!("DELETE FROM public.{table} WHERE {}", self.some(dice))
    }

    fn some(&mut self, dice: &mut Dice) -> String {
        let id = dice.roll(self.next.max(1)) * WRITERS + self.number;
        format!("id = {id}")
    }
}

/// A type name for a session with an empty `search_path`.
fn qualified(kind: &str) -> String {
    match kind {
        "mood" | "mood[]" | "positive" | "pair" => format!("public.{kind}"),
        _ => kind.to_owned(),
    }
}
