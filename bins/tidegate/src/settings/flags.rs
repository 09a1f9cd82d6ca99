//! The settings as flags of all commands. The flags are derived from the table of settings.

use clap::{Arg, ArgMatches, Args, Command, Error as ClapError, FromArgMatches};

use super::kind::TomlType;
use super::table::{Exposure, TABLE};
use super::{Error, SettingSource, SettingValue};

/// The settings that were given as flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags(Vec<(&'static str, String)>);

impl SettingFlags {
    pub(super) fn values(&self) -> Result<Vec<SettingValue>, Error> {
        let values = self.0.iter().map(|(name, text)| {
            let setting =
                super::table::Setting::named(name).expect("flags are made from the table");
            let source = SettingSource::Flag(setting.flag());
            if setting.exposure == Exposure::Url && super::show::contains_password(text) {
                return Err(Error::Exposed {
                    place: source.to_string(),
                    name: setting.name.to_owned(),
                    instead: format!("use {} or the settings file", setting.variable()),
                });
            }
            Ok(SettingValue {
                setting,
                text: text.clone(),
                source,
            })
        });
        values.collect()
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let values = TABLE
            .iter()
            .filter(|setting| setting.exposure != Exposure::Secret);
        let values = values.filter_map(|setting| {
            let texts = matches.get_many::<String>(setting.name)?;
            Some((setting.name, texts.cloned().collect::<Vec<_>>().join(",")))
        });
        Ok(Self(values.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let open = TABLE
            .iter()
            .filter(|setting| setting.exposure != Exposure::Secret);
        open.fold(command, |command, setting| {
            let arg = Arg::new(setting.name)
                .long(setting.flag())
                .help(setting.doc)
                .value_name("VALUE")
                .help_heading("Settings")
                .global(true)
                .hide_short_help(true)
                // `--help` does not list these flags, because `tidegate help settings` describes
                // them.
                .hide_long_help(true);
            command.arg(match setting.toml_type {
                TomlType::Boolean => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
                TomlType::List => arg.action(clap::ArgAction::Append),
                TomlType::Text | TomlType::Integer => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
