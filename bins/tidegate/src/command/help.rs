//! `tidegate help settings`, `tidegate completions` and `tidegate man`.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _, Subcommand as _};
use clap_complete::Shell;

use super::print;
use crate::cli::{self, Cli};
use crate::cli_error::Result;
use crate::settings;

pub(crate) fn settings() -> Result {
    print(settings::describe_all())
}

pub(crate) fn completions(shell: Shell) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut completed(), "tidegate", &mut script);
    print(String::from_utf8_lossy(&script))
}

/// The commands for which shells complete the flags of settings.
const WITH_SETTINGS: [&str; 5] = ["up", "serve", "demo", "settings", "doctor"];

/// The command line as shells complete it. Shells complete the flags of settings only for the
/// commands in [`WITH_SETTINGS`]. All other commands take these flags too, but the list of them
/// would hide the command's own flags.
fn completed() -> Command {
    let whole = Cli::command();
    let (settings, own): (Vec<Arg>, Vec<Arg>) =
        whole.get_arguments().cloned().partition(is_setting);
    let settings = settings.into_iter().map(|arg| arg.global(false));
    let settings: Vec<Arg> = settings.collect();
    let command = Command::new("tidegate")
        .version(env!("CARGO_PKG_VERSION"))
        .args(own);
    let command = cli::Command::augment_subcommands(command);
    WITH_SETTINGS.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |with| with.args(settings.clone()))
    })
}

fn is_setting(arg: &Arg) -> bool {
    arg.get_help_heading() == Some("Settings")
}

/// Prints a manual page with all commands and settings.
pub(crate) fn manual() -> Result {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(without_settings(&command)).render(&mut page)?;
    let mut text = String::from_utf8_lossy(&page).into_owned();
    text.push_str(".SH COMMANDS\n");
    describe(&command, "", &mut text);
    text.push_str(".SH SETTINGS\n.nf\n");
    for line in settings::describe_all().lines() {
        let _ = writeln!(text, "\\&{}", escaped(line));
    }
    text.push_str(".fi\n");
    print(text)
}

/// The command with the flags of settings hidden, because all commands have them.
fn without_settings(command: &Command) -> Command {
    command.clone().mut_args(|arg| {
        let hidden = is_setting(&arg);
        arg.hide(hidden)
    })
}

/// Describes the subcommands of a command, recursively.
fn describe(command: &Command, prefix: &str, text: &mut String) {
    for command in command.get_subcommands() {
        let name = format!("{prefix}{}", command.get_name());
        if command.is_hide_set() || command.get_name() == "help" {
            continue;
        }
        if command.has_subcommands() {
            describe(command, &format!("{name} "), text);
            continue;
        }
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let about = command.get_about().map(ToString::to_string);
        let _ = writeln!(text, ".TP\n.B {}", escaped(usage));
        let _ = writeln!(text, "{}", escaped(&about.unwrap_or_default()));
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
