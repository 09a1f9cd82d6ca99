//! Parses the comment lines `-- key: value` at the beginning of a shape's `.sql` file.

use super::body::MAX_PARAMETERS;
use super::value::Value;
use crate::Result;

/// The endpoint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The document is sent to `/api/graphql/schema/public`.
    GraphQl,
    /// The statement is a method of the owner, called at `/api/v4/call`.
    Call,
    /// The statement is sent as text to `/api/v4/sql`.
    Sql,
    /// pgbench sends the statement to PostgreSQL, without the service. For one user, it sends
    /// pipelines on few connections. For many users, each user has one connection.
    Pgbench,
}

/// The callers of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// The tenant's owner.
    Owner,
    /// The tenant's default user.
    Guest,
    /// One sub-user.
    One,
    /// As many sub-users as `--users` says, chosen at random.
    Users,
    /// The same as `Users`, while other people sign up.
    UsersWithSignUps,
    /// This many sub-users, chosen at random.
    Some(u32),
    /// The three users of each tenant of `--tenants`, chosen at random.
    Tenants,
}

/// The specification of a variant in a header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VariantSpec {
    /// The endpoint.
    pub(crate) endpoint: Endpoint,
    /// The callers.
    pub(crate) callers: Callers,
    /// The smallest ratio that is good enough. It is the ratio to the rate of one user if many
    /// users are compared with one user, and otherwise the ratio to the floor.
    pub(crate) aim: Option<f64>,
}

/// The header of a shape.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// The name of the shape in the table.
    pub(crate) name: String,
    /// The parameters, by name. They are written `:name` in the statement and in `variables`.
    pub(crate) parameters: Vec<(String, Value)>,
    /// The variants.
    pub(crate) variants: Vec<VariantSpec>,
    /// The variables of the document, or the parameters of the statement, as JSON text with `:name`
    /// for values. By default, each parameter becomes a variable.
    pub(crate) variables: Option<String>,
    /// The number of calls in one request.
    pub(crate) batch: u32,
    /// The number of parameter sets of one statement.
    pub(crate) sets: u32,
    /// The number of connections; `None` if the shape uses the number on the command line.
    pub(crate) connections: Option<usize>,
    /// The media type in `Accept`.
    pub(crate) accept: String,
    /// A JSON array that replaces `:rows` in the statement and in `variables`.
    pub(crate) rows: Option<String>,
}

const KEYS: &str = "name, set, graphql, call, sql, pgbench, variables, batch, sets, connections, accept, \
    rows or note";

impl Header {
    /// Splits a file into its header and its statement. An error names the line.
    pub(crate) fn parse(text: &str) -> Result<(Self, String)> {
        let mut header = Self {
            name: String::new(),
            parameters: Vec::new(),
            variants: Vec::new(),
            variables: None,
            batch: 1,
            sets: 1,
            connections: None,
            accept: "application/json".to_owned(),
            rows: None,
        };
        let lines: Vec<&str> = text.lines().collect();
        let is_header = |line: &&str| line.starts_with("--");
        let end = lines.iter().take_while(|line| is_header(line)).count();
        for (number, line) in lines[..end].iter().enumerate() {
            let read = header.line(line.trim_start_matches('-').trim());
            read.map_err(|error| format!("line {}: {error}", number + 1))?;
        }
        if header.name.is_empty() || header.variants.is_empty() {
            return Err("expected a `name` and at least one of `graphql`, `call` and `sql`".into());
        }
        if header.parameters.len() > MAX_PARAMETERS {
            return Err(format!("expected at most {MAX_PARAMETERS} parameters").into());
        }
        if header.batch > 1 && header.sets > 1 {
            return Err("expected `batch` or `sets`, not both".into());
        }
        let statement = lines[end..]
            .join("\n")
            .trim()
            .trim_end_matches(';')
            .to_owned();
        Ok((header, statement))
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let unknown = || format!("`{line}`: expected `key: value` with the key {KEYS}");
        let (key, value) = line.split_once(':').ok_or_else(unknown)?;
        let value = value.trim();
        match key.trim() {
            "name" => value.clone_into(&mut self.name),
            "set" => self.parameters.push(parameter(value)?),
            "graphql" => self.variants(Endpoint::GraphQl, value)?,
            "call" => self.variants(Endpoint::Call, value)?,
            "sql" => self.variants(Endpoint::Sql, value)?,
            "pgbench" => self.variants(Endpoint::Pgbench, value)?,
            "variables" => self.variables = Some(value.to_owned()),
            "batch" => self.batch = number(value)?,
            "sets" => self.sets = number(value)?,
            "connections" => self.connections = Some(number(value)? as usize),
            "accept" => value.clone_into(&mut self.accept),
            "rows" => self.rows = Some(rows(value)?),
            "note" => {}
            _ => return Err(unknown().into()),
        }
        Ok(())
    }

    fn variants(&mut self, endpoint: Endpoint, value: &str) -> Result<()> {
        for callers in value.split(',') {
            let (callers, aim) = match callers.split_once(">=") {
                Some((callers, number)) => (callers, Some(aim(number.trim())?)),
                None => (callers, None),
            };
            let callers = Callers::parse(callers.trim())?;
            if endpoint == Endpoint::Pgbench && !matches!(callers, Callers::One | Callers::Some(_))
            {
                return Err("`pgbench`: expected one user, or a number such as `32 users`".into());
            }
            self.variants.push(VariantSpec {
                endpoint,
                callers,
                aim,
            });
        }
        Ok(())
    }
}

impl Callers {
    fn parse(text: &str) -> Result<Self> {
        let some = text
            .strip_suffix(" users")
            .and_then(|number| number.parse().ok());
        Ok(match text {
            "owner" => Self::Owner,
            "guest" => Self::Guest,
            "one user" => Self::One,
            "users" => Self::Users,
            "users with sign-ups" => Self::UsersWithSignUps,
            "tenants" => Self::Tenants,
            _ => Self::Some(some.filter(|number| *number > 0).ok_or_else(|| {
                format!(
                    "`{text}`: expected owner, guest, one user, users, users with sign-ups, a \
                     number such as `32 users`, or tenants"
                )
            })?),
        })
    }
}

fn number(text: &str) -> Result<u32> {
    let number = text.parse().ok().filter(|number| *number > 0);
    Ok(number.ok_or_else(|| format!("`{text}`: expected a number above 0"))?)
}

fn aim(text: &str) -> Result<f64> {
    let aim = text.parse().ok().filter(|aim| *aim > 0.0);
    Ok(aim.ok_or_else(|| format!("`{text}`: expected a ratio such as 0.6"))?)
}

/// Parses a parameter such as `id = random(1, 100)`.
fn parameter(text: &str) -> Result<(String, Value)> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}`: expected `name = random(LOW, HIGH)`"))?;
    Ok((name.trim().to_owned(), Value::parse(value)?))
}

/// Parses a number and a JSON object, such as `1000 {"name": "x"}`. Returns a JSON array with that
/// number of copies of the object.
fn rows(text: &str) -> Result<String> {
    let wrong = || format!("`{text}`: expected a number and a JSON object");
    let (count, object) = text.split_once(' ').ok_or_else(wrong)?;
    let object: serde_json::Value = serde_json::from_str(object).map_err(|_| wrong())?;
    let copies = vec![object; number(count)? as usize];
    Ok(serde_json::Value::Array(copies).to_string())
}

#[cfg(test)]
mod tests {
    use super::{Callers, Endpoint, Header, VariantSpec};
    use crate::shape::value::Value;

    fn asked(endpoint: Endpoint, callers: Callers, aim: Option<f64>) -> VariantSpec {
        VariantSpec {
            endpoint,
            callers,
            aim,
        }
    }

    #[test]
    fn a_header_is_read_and_the_rest_is_the_statement() -> crate::Result<()> {
        let text = "-- name: by key\n-- note: any: thing\n-- set: id = random(1, 9)\n\
            -- graphql: owner >= 0.6, 32 users\n-- sql: one user\n-- batch: 10\n\
            -- rows: 2 {\"a\":1}\n\nselect 1\nfrom t where id = :id;\n";
        let (header, statement) = Header::parse(text)?;
        assert_eq!(header.name, "by key");
        assert_eq!(header.parameters, [("id".to_owned(), Value::Random(1, 9))]);
        assert_eq!(
            header.variants,
            [
                asked(Endpoint::GraphQl, Callers::Owner, Some(0.6)),
                asked(Endpoint::GraphQl, Callers::Some(32), None),
                asked(Endpoint::Sql, Callers::One, None),
            ]
        );
        assert_eq!(header.batch, 10);
        assert_eq!(header.rows.as_deref(), Some(r#"[{"a":1},{"a":1}]"#));
        assert_eq!(statement, "select 1\nfrom t where id = :id");
        Ok(())
    }

    #[test]
    fn a_wrong_header_names_the_line_and_what_was_expected() {
        for (line, expected) in [
            ("nmae: x", "expected `key: value` with the key name"),
            ("graphql: everybody", "expected owner, guest"),
            ("graphql: 0 users", "expected owner, guest"),
            ("graphql: owner >= fast", "expected a ratio such as 0.6"),
            ("pgbench: owner", "expected one user"),
            ("batch: 0", "expected a number above 0"),
            ("set: id", "expected `name = random(LOW, HIGH)`"),
            ("rows: 5", "expected a number and a JSON object"),
        ] {
            let text = format!("-- name: x\n-- {line}\nselect 1");
            let error = Header::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with("line 2: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_shape_needs_a_name_and_an_endpoint() {
        for text in [
            "-- name: x\nselect 1",
            "-- sql: owner\nselect 1",
            "select 1",
        ] {
            let error = Header::parse(text).unwrap_err().to_string();
            assert!(error.contains("expected a `name`"), "{error}");
        }
    }
}
