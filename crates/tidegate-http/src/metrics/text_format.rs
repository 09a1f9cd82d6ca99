//! Prometheus' text format (Prometheus, "Exposition formats").

use std::fmt::{self, Display, Write as _};

/// Begins a family of metrics with its `# HELP` and `# TYPE` lines. `kind` is the value of `# TYPE`.
pub fn begin_family(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Writes a family that consists of one metric without labels.
pub fn write_metric(
    text: &mut String,
    (name, kind): (&str, &str),
    help: &str,
    value: impl Display,
) -> fmt::Result {
    begin_family(text, name, kind, help)?;
    writeln!(text, "{name} {value}")
}

/// Escapes the value of a label.
pub fn escape(value: &str) -> String {
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
    quoted.replace('\n', "\\n")
}
