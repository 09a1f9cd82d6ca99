//! The scripts for pgbench.

use super::Shape;
use super::template::{join, split};
use super::value::Value;

impl Shape {
    /// The script of the floor; `None` if the shape has no floor.
    pub(crate) fn script(&self) -> Option<String> {
        if self.statement.is_empty() {
            return None;
        }
        // The values of parameter sets are drawn once, because a thousand draws would slow pgbench
        // down.
        let [draws, statements] = match self.header.sets {
            1 => self.copies(self.header.batch),
            sets => {
                let [draws, statement] = self.copies(1);
                [draws, statement.repeat(sets as usize)]
            }
        };
        Some(if self.header.batch.max(self.header.sets) > 1 {
            format!("{draws}\\startpipeline\nbegin;\n{statements}commit;\n\\endpipeline\n")
        } else {
            draws + &statements
        })
    }

    /// The script of a client that sends `count` statements in one pipeline.
    pub(crate) fn pipeline_script(&self, count: u32) -> String {
        let [draws, statements] = self.copies(count);
        format!("{draws}\\startpipeline\n{statements}\\endpipeline\n")
    }

    /// The script for many users: each client of pgbench runs as the user with the client's number.
    /// Before its first statement, the client switches to the user's role. The SQL expression
    /// `role` computes the name of this role. The variable `switched` has to be 0 at the start.
    pub(crate) fn script_of_users(&self, role: &str) -> String {
        let parameters = self.header.parameters.iter();
        let draws =
            parameters.map(|(name, value)| format!("\\set {name} {}\n", value.pgbench_of_client()));
        format!(
            "\\if :switched\n\\else\n\\set switched 1\n\
             select set_config('role', {role}, false);\n\\endif\n{}{};\n",
            draws.collect::<String>(),
            self.statement
        )
    }

    /// The commands that draw values for `count` statements, and the statements.
    fn copies(&self, count: u32) -> [String; 2] {
        let parameters = &self.header.parameters;
        let parts = split(&self.statement, &self.names());
        let (mut draws, mut statements) = (String::new(), String::new());
        for copy in 0..count {
            let suffix = match count {
                1 => String::new(),
                _ => format!("_{copy}"),
            };
            let draw = |(name, value): &(String, Value)| {
                format!("\\set {name}{suffix} {}\n", value.pgbench())
            };
            draws.extend(parameters.iter().map(draw));
            let statement = join(&parts, |index| format!(":{}{suffix}", parameters[index].0));
            // A statement that contains pgbench commands already has its semicolons.
            let end = if statement.contains('\\') { "" } else { ";" };
            statements.extend([&*statement, end, "\n"]);
        }
        [draws, statements]
    }
}
