//! Times and browsers in words.

use std::time::Duration;

/// A duration in words, such as "3 days ago".
pub(crate) fn ago(since: Duration) -> String {
    let seconds = since.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

/// The names of the browser and of the operating system in a `User-Agent`.
pub(crate) fn agent(text: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        let found = known.iter().find(|(mark, _)| text.contains(mark));
        found.map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Firefox/", "Firefox"),
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("Windows", "Windows"),
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => "A browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_one_unit() {
        for (seconds, text) in [
            (0, "just now"),
            (60, "1 minute ago"),
            (7_200, "2 hours ago"),
            (86_400 * 3, "3 days ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_browser_is_named_without_its_version() {
        let chrome =
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36";
        assert_eq!(agent(chrome), "Chrome on Linux");
        assert_eq!(agent("<script>"), "A browser");
    }
}
