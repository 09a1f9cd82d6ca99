//! Settings: from a TOML file, the environment and flags, in rising order.

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
pub(crate) use kind::{DatabaseUrl, FeedSource, LogFormat, LogLevel, Origin, RoleLimit, Secret};
pub(crate) use show::described;
pub(crate) use table::Settings;
use table::{Setting, TABLE};

/// What the names of our environment variables begin with.
const PREFIX: &str = "TIDEGATE_";

/// Variables with our prefix that are no settings: the file's path, and what `demo.env` is for.
const OTHER_VARIABLES: [&str; 2] = ["TIDEGATE_CONFIG", "TIDEGATE_URL"];
/// What the names of variables for our tests begin with.
const TEST_PREFIX: &str = "TIDEGATE_TEST_";

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("the settings file {path} cannot be read: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{place}: invalid TOML: {problem}")]
    NotToml {
        /// File and line.
        place: String,
        /// What the reader said.
        problem: String,
    },
    /// A name that no setting has.
    #[error("{place}: there is no setting {name}{}", advice(.nearest.as_deref()))]
    Unknown {
        /// Where it stands.
        place: String,
        /// The name as given.
        name: String,
        /// The nearest name that there is.
        nearest: Option<String>,
    },
    /// A value that cannot be read.
    #[error("{place}: the setting {name} cannot be read; expected {expected}")]
    IllTyped {
        /// Where it stands.
        place: String,
        /// The setting.
        name: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A secret where others can see it.
    #[error("{place}: the setting {name} holds a secret that others could read here; {instead}")]
    Exposed {
        /// Where it stands.
        place: String,
        /// The setting.
        name: String,
        /// What to do instead.
        instead: String,
    },
}

fn advice(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}

/// Where a value came from; later ones win.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The table's default.
    Default,
    /// A line of the file.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
    /// The command decides it.
    Command,
}

impl fmt::Display for Source {
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

/// A setting's text and where it came from.
#[derive(Clone)]
pub(crate) struct Effective {
    setting: &'static Setting,
    text: Option<String>,
    source: Source,
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

/// A value given by somebody.
#[derive(Clone, Debug)]
struct Given {
    setting: &'static Setting,
    text: String,
    source: Source,
}

/// The settings with their sources.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    effective: Vec<Effective>,
}

impl Layers {
    /// Reads the file, the environment and the flags. The first error is returned.
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
        layers.apply(flags.given()?);
        Ok(layers)
    }

    fn defaults() -> Self {
        let default = |setting: &'static Setting| Effective {
            setting,
            text: setting.default.map(str::to_owned),
            source: Source::Default,
        };
        Self {
            effective: TABLE.iter().map(default).collect(),
        }
    }

    fn apply(&mut self, given: Vec<Given>) {
        for Given {
            setting,
            text,
            source,
        } in given
        {
            for entry in &mut self.effective {
                if entry.setting.name == setting.name {
                    entry.text = Some(text.clone());
                    entry.source = source.clone();
                }
            }
        }
    }

    /// Sets what a command decides; `None` removes a value.
    pub(crate) fn decide(&mut self, decisions: &[(&'static str, Option<String>)]) {
        for (name, text) in decisions {
            for entry in &mut self.effective {
                if entry.setting.name == *name {
                    entry.text.clone_from(text);
                    entry.source = Source::Command;
                }
            }
        }
    }

    /// Sets a default of the command's own.
    pub(crate) fn prefer(&mut self, name: &'static str, text: &str) {
        if !self.is_given(name) {
            self.decide(&[(name, Some(text.to_owned()))]);
        }
    }

    /// Whether a setting has a value that is not its default.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        let given =
            |entry: &Effective| entry.setting.name == name && entry.source != Source::Default;
        self.effective.iter().any(given)
    }

    /// The typed settings.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        Settings::read(&self.effective)
    }

    /// These settings as a settings file, without those that have their defaults.
    pub(crate) fn to_toml(&self, names: &[&str]) -> String {
        let mut text = String::new();
        for entry in &self.effective {
            let is_kept = names.contains(&entry.setting.name) && entry.source != Source::Default;
            if let Some(value) = entry.text.clone().filter(|_| is_kept) {
                let value = toml::Value::String(value);
                let _ = writeln!(text, "{} = {value}", entry.setting.name);
            }
        }
        text
    }

    /// The lines of `tidegate settings`: name, value and source, secrets redacted.
    pub(crate) fn shown(&self) -> String {
        show::lines(&self.effective)
    }
}

/// Takes our variables; an empty one counts as absent.
fn from_environment(
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Vec<Given>, Error> {
    let mut given = Vec::new();
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
            given.push(Given {
                setting,
                text,
                source: Source::Environment(variable),
            });
        }
    }
    Ok(given)
}
