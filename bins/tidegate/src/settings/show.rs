//! The output of `tidegate settings` and `tidegate help settings`.

use std::fmt::Write as _;

use super::Effective;
use super::table::{Exposure, TABLE};

/// One line for each setting, with its name, value and source.
pub(super) fn lines(effective: &[Effective]) -> String {
    let name_width = effective
        .iter()
        .map(|entry| entry.setting.name.len())
        .max()
        .unwrap_or(0);
    let mut lines = String::new();
    for entry in effective {
        let name = entry.setting.name;
        let value = shown(entry);
        let _ = writeln!(lines, "{name:name_width$} = {value:30} # {}", entry.source);
    }
    lines
}

/// A description of all settings with their defaults, for `tidegate help settings`.
pub(crate) fn describe_all() -> String {
    let mut text = "Settings come from a TOML file (--config FILE or TIDEGATE_CONFIG), from variables \
                    TIDEGATE_… and from flags; a later one wins.\nFor the setting statement_timeout \
                    these are statement_timeout = \"5s\", TIDEGATE_STATEMENT_TIMEOUT and \
                    --statement-timeout.\n`tidegate settings` prints the values in effect.\n"
        .to_owned();
    for setting in TABLE {
        let _ = write!(text, "\n{}", setting.name);
        let _ = match setting.exposure {
            Exposure::Secret => write!(text, "  (variable {} only)", setting.variable()),
            Exposure::Open | Exposure::Url => Ok(()),
        };
        let _ = match setting.default {
            Some(default) => writeln!(text, "  (default: {default})"),
            None => writeln!(text),
        };
        let _ = writeln!(text, "    {}", setting.doc);
    }
    text
}

/// The value of a setting as it may be shown. A secret value or a password in a URL is redacted.
pub(super) fn shown(entry: &Effective) -> String {
    match (&entry.text, entry.setting.exposure) {
        (None, _) => "(not set)".to_owned(),
        (Some(_), Exposure::Secret) => "[redacted]".to_owned(),
        (Some(text), Exposure::Url) => without_password(text),
        (Some(text), Exposure::Open) => text.clone(),
    }
}

/// Whether a URL contains a password, in its authority or its query.
pub(super) fn contains_password(url: &str) -> bool {
    without_password(url) != url
}

/// The URL, or the list of URLs, with the passwords redacted.
fn without_password(text: &str) -> String {
    // A comma also separates the hosts of one URL. A part without `://` therefore belongs to the
    // URL before it.
    let mut urls: Vec<String> = Vec::new();
    for part in text.split(',') {
        match urls.last_mut() {
            Some(url) if !part.contains("://") => url.extend([",", part]),
            _ => urls.push(part.to_owned()),
        }
    }
    let shown: Vec<_> = urls.iter().map(|url| url_without_password(url)).collect();
    shown.join(",")
}

fn url_without_password(url: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut shown = match address.rsplit_once('@').and_then(|(login, rest)| {
        let (scheme, login) = login.split_once("://")?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:[redacted]@{rest}"))
    }) {
        Some(redacted) => redacted,
        None => address.to_owned(),
    };
    for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if name.eq_ignore_ascii_case("password") => {
                shown.push_str("password=[redacted]");
            }
            _ => shown.push_str(pair),
        }
    }
    shown
}

/// The row of a setting in the table of `docs/OPERATIONS.md`.
#[cfg(test)]
pub(super) fn row(setting: &super::table::Setting) -> String {
    let flag = match setting.exposure {
        Exposure::Secret => "environment only".to_owned(),
        Exposure::Open | Exposure::Url => format!("`--{}`", setting.flag()),
    };
    let default = setting
        .default
        .map_or("–".to_owned(), |text| format!("`{text}`"));
    format!(
        "| `{}` | {flag} | {default} | {} |",
        setting.name, setting.doc
    )
}
