//! Labels of metrics.

/// Escapes the value of a label for the text format (Prometheus, "Exposition formats").
pub(crate) fn escape(value: &str) -> String {
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
    quoted.replace('\n', "\\n")
}
