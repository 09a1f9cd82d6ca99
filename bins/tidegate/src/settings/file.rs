//! The settings file: TOML with one key for each setting.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::TomlType;
use super::table::{Exposure, Setting};
use super::{Error, SettingSource, SettingValue, nearest};

/// Reads the settings file, without parsing the values of the settings.
pub(super) fn read(path: &Path) -> Result<Vec<SettingValue>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::File {
        path: path.display().to_string(),
        source,
    })?;
    parse(path, &text)
}

/// Parses the text of a file. `path` is used only for error messages.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<SettingValue>, Error> {
    let place = |offset: usize| SettingSource::File(path.to_owned(), line_of(text, offset));
    let table = DeTable::parse(text).map_err(|error| Error::NotToml {
        place: place(error.span().map_or(0, |span| span.start)).to_string(),
        problem: error.message().to_owned(),
    })?;
    let entries = table.into_inner().into_iter();
    entries
        .map(|(name, value)| entry(&name, &value, place(name.span().start)))
        .collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()
        .iter()
        .take(offset)
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn entry(
    name: &Spanned<impl AsRef<str>>,
    value: &Spanned<DeValue<'_>>,
    source: SettingSource,
) -> Result<SettingValue, Error> {
    let name = name.get_ref().as_ref();
    let Some(setting) = Setting::named(name) else {
        return Err(Error::Unknown {
            place: source.to_string(),
            name: name.to_owned(),
            nearest: nearest::nearest(name).map(|setting| setting.name.to_owned()),
        });
    };
    if setting.exposure == Exposure::Secret {
        return Err(Error::Exposed {
            place: source.to_string(),
            name: name.to_owned(),
            instead: format!("use the environment variable {}", setting.variable()),
        });
    }
    let text = text_of(setting.toml_type, value.get_ref()).ok_or_else(|| Error::IllTyped {
        place: source.to_string(),
        name: name.to_owned(),
        expected: setting.expected,
    })?;
    Ok(SettingValue {
        setting,
        text,
        source,
    })
}

/// Converts a TOML value to the text of a setting. `None` if the value has another type.
fn text_of(toml_type: TomlType, value: &DeValue<'_>) -> Option<String> {
    match (toml_type, value) {
        (TomlType::Text | TomlType::List, DeValue::String(text)) => Some(text.to_string()),
        (TomlType::Integer, DeValue::Integer(number)) if number.radix() == 10 => {
            Some(number.as_str().to_owned())
        }
        (TomlType::Boolean, DeValue::Boolean(flag)) => Some(flag.to_string()),
        (TomlType::List, DeValue::Array(items)) => {
            let items = items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned));
            items
                .collect::<Option<Vec<_>>>()
                .map(|items| items.join(","))
        }
        _ => None,
    }
}
