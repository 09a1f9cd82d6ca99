//! The shapes, which are the cases that are measured. Each has a file with the SQL of the floor and
//! files with GraphQL documents.

pub(crate) mod body;
pub(crate) mod header;
mod script;
pub(crate) mod template;
pub(crate) mod value;

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::Result;
use body::Body;
use header::{Endpoint, Header};
use template::split;

/// A shape. Its files are `STEM.sql`, `STEM.graphql` and `STEM.PEER.graphql`.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The header of the file.
    pub(crate) header: Header,
    stem: String,
    /// The statement of the floor; empty for a shape without a floor.
    statement: String,
    document: Option<String>,
    /// The document for the other server; `None` if there is no such document.
    pub(crate) peer: Option<String>,
}

impl Shape {
    /// Reads all shapes of a folder, ordered by file name.
    pub(crate) fn read(folder: &Path, peer: Option<&str>) -> Result<Vec<Self>> {
        let mut stems = Vec::new();
        for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            stems.extend(name.strip_suffix(".sql").map(str::to_owned));
        }
        stems.sort_unstable();
        let one = |stem: String| {
            let shape = Self::read_one(folder, &stem, peer);
            shape.map_err(|error| format!("{}/{stem}.sql: {error}", folder.display()).into())
        };
        stems.into_iter().map(one).collect()
    }

    fn read_one(folder: &Path, stem: &str, peer: Option<&str>) -> Result<Self> {
        let (header, statement) = Header::parse(&fs::read_to_string(file(folder, stem, "sql"))?)?;
        let beside = |ending: &str| fs::read_to_string(file(folder, stem, ending)).ok();
        let shape = Self {
            stem: stem.to_owned(),
            statement: statement.replace(":rows", header.rows.as_deref().unwrap_or(":rows")),
            document: beside("graphql"),
            peer: peer.and_then(|peer| beside(&format!("{peer}.graphql"))),
            header,
        };
        shape.check()?;
        Ok(shape)
    }

    fn check(&self) -> Result<()> {
        for asked in &self.header.variants {
            match asked.endpoint {
                Endpoint::GraphQl if self.document.is_none() => {
                    return Err(format!("expected a document in {}.graphql", self.stem).into());
                }
                Endpoint::GraphQl => {}
                _ if self.statement.is_empty() => {
                    return Err("expected a statement for `call`, `sql` and `pgbench`".into());
                }
                _ if self.statement.contains('\\') => {
                    return Err("expected one statement for `call`, `sql` and `pgbench`".into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The definition of the owner's method with the statement; `None` if no variant calls it.
    pub(crate) fn method(&self) -> Option<Json> {
        let mut asked = self.header.variants.iter();
        let called = asked.any(|asked| asked.endpoint == Endpoint::Call);
        called.then(|| json!({ "method": self.method_name(), "q": self.statement }))
    }

    fn method_name(&self) -> String {
        format!("bench.{}", self.stem)
    }

    /// The bodies of requests to an endpoint.
    pub(crate) fn body(&self, endpoint: Endpoint) -> Body {
        let text = |text: &str| Json::from(text).to_string();
        let (before, after) = match endpoint {
            Endpoint::GraphQl => return self.document_body(self.document.as_deref()),
            Endpoint::Call => {
                let method = text(&self.method_name());
                let before = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method},"params":"#);
                (before, "}")
            }
            Endpoint::Sql | Endpoint::Pgbench => {
                (format!(r#"{{"q":{},"params":"#, text(&self.statement)), "}")
            }
        };
        let values = self.header.parameters.iter().map(|(_, value)| *value);
        let values: Vec<_> = values.collect();
        let parts = self.variables();
        if self.header.sets > 1 {
            let (before, after) = (format!("{before}["), format!("]{after}"));
            return Body::new([before, after], parts, values).times(self.header.sets);
        }
        if self.header.batch > 1 {
            let call = [&*before, &self.variables_text(), after].concat();
            let parts = split(&call, &self.names());
            return Body::new(["[".into(), "]".into()], parts, values).times(self.header.batch);
        }
        Body::new([before, after.to_owned()], parts, values)
    }

    /// The bodies of requests with a document.
    pub(crate) fn document_body(&self, document: Option<&str>) -> Body {
        let document = Json::from(document.unwrap_or_default());
        let before = format!(r#"{{"query":{document},"variables":"#);
        let values = self.header.parameters.iter().map(|(_, value)| *value);
        Body::new([before, "}".to_owned()], self.variables(), values.collect())
    }

    fn names(&self) -> Vec<&str> {
        let names = self.header.parameters.iter().map(|(name, _)| &**name);
        names.collect()
    }

    fn variables(&self) -> Vec<template::TemplatePart> {
        split(&self.variables_text(), &self.names())
    }

    /// The JSON text of the variables. If the header has none, each parameter is a variable of the
    /// same name.
    fn variables_text(&self) -> String {
        let all = || {
            let names = self.names();
            let member = |name: &&str| format!("\"{name}\": :{name}");
            let members: Vec<_> = names.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        };
        let text = self.header.variables.clone().unwrap_or_else(all);
        text.replace(":rows", self.header.rows.as_deref().unwrap_or(":rows"))
    }
}

fn file(folder: &Path, stem: &str, ending: &str) -> std::path::PathBuf {
    folder.join(format!("{stem}.{ending}"))
}

#[cfg(test)]
mod tests {
    use super::Shape;
    use super::header::Endpoint;
    use super::value::Random;
    use crate::Result;

    /// The shape of an `.sql` file with this text and a document.
    fn shape(text: &str) -> Result<Shape> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("by-key.sql"), text)?;
        std::fs::write(folder.path().join("by-key.graphql"), "{ a }")?;
        let shape = Shape::read(folder.path(), None)?.pop();
        Ok(shape.ok_or("no shape")?)
    }

    fn body(shape: &Shape, endpoint: Endpoint) -> Result<String> {
        let mut body = Vec::new();
        let user = 2;
        shape
            .body(endpoint)
            .write(&mut Random::new(1), user, &mut body);
        Ok(String::from_utf8(body)?)
    }

    const BY_KEY: &str =
        "-- name: x\n-- set: id = own(1)\n-- call: owner\nselect a::text from t where id = :id;\n";

    #[test]
    fn a_shape_is_a_request_and_a_script() -> Result<()> {
        let shape = shape(BY_KEY)?;
        let sql = r#"{"q":"select a::text from t where id = :id","params":{"id": 3}}"#;
        assert_eq!(body(&shape, Endpoint::Sql)?, sql);
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"bench.by-key","params":{"id": 3}}"#;
        assert_eq!(body(&shape, Endpoint::Call)?, call);
        let document = r#"{"query":"{ a }","variables":{"id": 3}}"#;
        assert_eq!(body(&shape, Endpoint::GraphQl)?, document);
        let script = "\\set id random(1, 1)\nselect a::text from t where id = :id;\n";
        assert_eq!(shape.script().as_deref(), Some(script));
        Ok(())
    }

    #[test]
    fn a_batch_draws_its_values_for_each_call() -> Result<()> {
        let shape = shape(&BY_KEY.replace("-- call", "-- batch: 2\n-- call"))?;
        let calls: serde_json::Value = serde_json::from_str(&body(&shape, Endpoint::Call)?)?;
        assert_eq!(calls.as_array().map(Vec::len), Some(2));
        let script = "\\set id_0 random(1, 1)\n\\set id_1 random(1, 1)\n\\startpipeline\nbegin;\n\
            select a::text from t where id = :id_0;\nselect a::text from t where id = :id_1;\n\
            commit;\n\\endpipeline\n";
        assert_eq!(shape.script().as_deref(), Some(script));
        Ok(())
    }

    #[test]
    fn pgbench_sends_as_one_user_or_as_many() -> Result<()> {
        let shape = shape(BY_KEY)?;
        let script = "\\set id_0 random(1, 1)\n\\set id_1 random(1, 1)\n\\startpipeline\n\
            select a::text from t where id = :id_0;\nselect a::text from t where id = :id_1;\n\
            \\endpipeline\n";
        assert_eq!(shape.pipeline_script(2), script);
        let script = "\\if :switched\n\\else\n\\set switched 1\n\
            select set_config('role', 'u' || :client_id, false);\n\\endif\n\
            \\set id random(:client_id * 1 + 1, :client_id * 1 + 1)\n\
            select a::text from t where id = :id;\n";
        assert_eq!(shape.script_of_users("'u' || :client_id"), script);
        Ok(())
    }

    #[test]
    fn sets_are_one_statement_with_several_parameters() -> Result<()> {
        let shape = shape(&BY_KEY.replace("-- call", "-- sets: 2\n-- call"))?;
        assert!(body(&shape, Endpoint::Sql)?.ends_with(r#""params":[{"id": 3},{"id": 3}]}"#));
        Ok(())
    }

    #[test]
    fn the_shapes_of_the_folder_can_be_read() -> Result<()> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("shapes");
        let shapes = Shape::read(&folder, Some("postgraphile"))?;
        assert!(shapes.iter().filter(|shape| shape.peer.is_some()).count() > 10);
        for shape in shapes {
            for asked in &shape.header.variants {
                let sent = body(&shape, asked.endpoint)?;
                let json: Result<serde_json::Value, _> = serde_json::from_str(&sent);
                assert!(json.is_ok(), "{}: {sent}", shape.stem);
            }
        }
        Ok(())
    }

    #[test]
    fn a_shape_says_what_it_lacks() {
        let wrong = shape("-- name: x\n-- call: owner\n")
            .unwrap_err()
            .to_string();
        assert!(
            wrong.ends_with("by-key.sql: expected a statement for `call`, `sql` and `pgbench`"),
            "{wrong}"
        );
    }
}
