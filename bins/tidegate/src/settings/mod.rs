//! Settings from a TOML file, environment variables and flags, in ascending order of precedence.

mod checksum;
mod file;
mod flags;
mod kind;
mod nearest;
mod show;
mod table;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

pub(crate) use flags::SettingFlags;
pub(crate) use kind::{
    CorsOrigin, DatabaseUrl, FeedSource, LogFormat, LogLevel, RoleLimit, Secret,
};
pub(crate) use show::describe_all;
pub(crate) use table::Settings;
use table::{Setting, TABLE};

/// The prefix of the environment variables of settings.
const PREFIX: &str = "TIDEGATE_";

/// Environment variables that begin with [`PREFIX`] but are not settings: the path of the settings
/// file, and a variable that `demo.env` defines for clients.
const OTHER_VARIABLES: [&str; 2] = ["TIDEGATE_CONFIG", "TIDEGATE_URL"];
/// The prefix of variables that only tests read.
const TEST_PREFIX: &str = "TIDEGATE_TEST_";

/// The reason why the settings are invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the settings file {path} cannot be read: {source}")]
    File {
        path: String,
        source: std::io::Error,
    },
    #[error("{place}: invalid TOML: {problem}")]
    NotToml {
        /// The file and the line.
        place: String,
        /// The parser's error.
        problem: String,
    },
    #[error("{place}: there is no setting {name}{}", advice(.nearest.as_deref()))]
    Unknown {
        /// The source in which the name occurs.
        place: String,
        name: String,
        /// The most similar name of a setting, if there is one.
        nearest: Option<String>,
    },
    #[error("{place}: the setting {name} cannot be read; expected {expected}")]
    IllTyped {
        /// The source in which the value occurs.
        place: String,
        name: String,
        expected: &'static str,
    },
    /// A secret was given in a source that other users may be able to read.
    #[error("{place}: the setting {name} holds a secret that others could read here; {instead}")]
    Exposed {
        /// The source in which the secret occurs.
        place: String,
        name: String,
        /// The advice on where to put the secret instead, as the end of the message.
        instead: String,
    },
}

fn advice(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}

/// The source of a setting's value. Later variants take precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingSource {
    /// No source gives the setting, so it has the default of the table, if there is one.
    Default,
    /// The path of the settings file, and the line in it, counted from 1.
    File(PathBuf, usize),
    /// An environment variable, by its name.
    Environment(String),
    /// A flag on the command line, by its name without the dashes.
    Flag(String),
    /// The command itself has set the value. For example, `demo` sets the URL of its PostgreSQL.
    Command,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(variable) => f.write_str(variable),
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::Command => f.write_str("command"),
        }
    }
}

/// The effective value of a setting as text, and the source of the value. The text is `None` if the
/// setting has no value.
#[derive(Clone)]
pub(crate) struct Effective {
    setting: &'static Setting,
    text: Option<String>,
    source: SettingSource,
}

impl fmt::Debug for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} = {} ({})",
            self.setting.name,
            show::shown(self),
            self.source
        )
    }
}

/// A value from a file, a variable or a flag.
#[derive(Clone, Debug)]
struct SettingValue {
    setting: &'static Setting,
    text: String,
    source: SettingSource,
}

/// All settings, each with its effective value and source.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    effective: Vec<Effective>,
}

impl Layers {
    /// Reads the file, the environment and the flags. The values are not parsed yet.
    ///
    /// # Errors
    ///
    /// The first problem that is found.
    pub(crate) fn read(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &SettingFlags,
    ) -> Result<Self, Error> {
        let mut layers = Self::defaults();
        if let Some(path) = file {
            layers.apply(file::read(path)?);
        }
        layers.apply(from_environment(environment)?);
        layers.apply(flags.values()?);
        Ok(layers)
    }

    fn defaults() -> Self {
        let default = |setting: &'static Setting| Effective {
            setting,
            text: setting.default.map(str::to_owned),
            source: SettingSource::Default,
        };
        Self {
            effective: TABLE.iter().map(default).collect(),
        }
    }

    fn apply(&mut self, values: Vec<SettingValue>) {
        for SettingValue {
            setting,
            text,
            source,
        } in values
        {
            for entry in &mut self.effective {
                if entry.setting.name == setting.name {
                    entry.text = Some(text.clone());
                    entry.source = source.clone();
                }
            }
        }
    }

    /// Sets values on behalf of the command. They take precedence over the values of all other
    /// sources. `None` removes a value.
    pub(crate) fn decide(&mut self, decisions: &[(&'static str, Option<String>)]) {
        for (name, text) in decisions {
            for entry in &mut self.effective {
                if entry.setting.name == *name {
                    entry.text.clone_from(text);
                    entry.source = SettingSource::Command;
                }
            }
        }
    }

    /// Sets a value that takes precedence only over the default of a setting.
    pub(crate) fn prefer(&mut self, name: &'static str, text: &str) {
        if !self.is_set(name) {
            self.decide(&[(name, Some(text.to_owned()))]);
        }
    }

    /// Whether a setting has a value that is not its default.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        let given = |entry: &Effective| {
            entry.setting.name == name && entry.source != SettingSource::Default
        };
        self.effective.iter().any(given)
    }

    /// Parses the effective values.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        Settings::read(&self.effective)
    }

    /// The text of a settings file with the named settings. Settings that have their default are
    /// left out.
    pub(crate) fn to_toml(&self, names: &[&str]) -> String {
        let mut text = String::new();
        for entry in &self.effective {
            let is_kept =
                names.contains(&entry.setting.name) && entry.source != SettingSource::Default;
            if let Some(value) = entry.text.clone().filter(|_| is_kept) {
                let value = toml::Value::String(value);
                let _ = writeln!(text, "{} = {value}", entry.setting.name);
            }
        }
        text
    }

    /// The output of `tidegate settings`: name, value and source, with secrets redacted.
    pub(crate) fn shown(&self) -> String {
        show::lines(&self.effective)
    }
}

/// Reads the environment variables of settings. An empty variable is ignored.
fn from_environment(
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Vec<SettingValue>, Error> {
    let mut values = Vec::new();
    for (variable, text) in environment {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        if OTHER_VARIABLES.contains(&variable.as_str()) || variable.starts_with(TEST_PREFIX) {
            continue;
        }
        let Some(setting) = TABLE.iter().find(|setting| setting.variable() == variable) else {
            let nearest = nearest::nearest(&name.to_ascii_lowercase());
            return Err(Error::Unknown {
                place: "environment".to_owned(),
                nearest: nearest.map(Setting::variable),
                name: variable,
            });
        };
        if !text.is_empty() {
            values.push(SettingValue {
                setting,
                text,
                source: SettingSource::Environment(variable),
            });
        }
    }
    Ok(values)
}
