//! Asks questions at the terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use tidegate_identity::Secret;

use crate::cli::{Confirmation, PasswordSource};
use crate::cli_error::{CliError, FileContext, Result};
use crate::terminal::NoEcho;

impl PasswordSource {
    /// Reads the password from the file, or asks for it twice without echo. The question names the
    /// user `whose`.
    pub(crate) fn read(&self, whose: &str) -> Result<Secret> {
        match self.password_file.as_deref() {
            Some(path) if path == Path::new("-") => first_line(std::io::stdin().lock(), path),
            Some(path) => {
                let file = std::fs::File::open(path).on("read", path)?;
                first_line(std::io::BufReader::new(file), path)
            }
            None => ask(whose),
        }
    }
}

fn first_line(mut reader: impl BufRead, path: &Path) -> Result<Secret> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .on("read a password from", path)?;
    let secret = Secret::new(line.trim_end_matches(['\r', '\n']));
    if secret.is_empty() {
        let path = path.display();
        return Err(CliError::Usage(format!(
            "the first line of {path} is empty, not a password"
        )));
    }
    Ok(secret)
}

fn ask(whose: &str) -> Result<Secret> {
    let no_terminal = |_| {
        CliError::Usage(
            "there is no terminal to ask for the password; use --password-file FILE, or - for \
             the standard input"
                .to_owned(),
        )
    };
    let nothing_typed =
        |error| CliError::Refused(format!("no password was typed ({error}); nothing was done"));
    let mut terminal = NoEcho::open().map_err(no_terminal)?;
    let password = terminal
        .ask(&format!("Password of {whose}: "))
        .map_err(nothing_typed)?;
    let again = terminal.ask("The same again: ").map_err(nothing_typed)?;
    if password != again {
        return Err(CliError::Refused(
            "the two passwords differ; nothing was done".to_owned(),
        ));
    }
    Ok(password)
}

/// Asks a question at the terminal and checks that the answer is yes. Does not ask if `yes` is true
/// (flag `--yes`).
///
/// # Errors
///
/// If the answer is no, or there is no terminal.
pub(crate) fn agree(question: &str, yes: bool) -> Result {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Usage(
            "nothing was changed: run the command at a terminal, or with --yes".to_owned(),
        ));
    }
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::Refused("nothing was changed".to_owned())),
    }
}

impl Confirmation {
    /// Asks to type `name` again as a confirmation, unless the flag `--yes` was given. `what`
    /// describes the object that will be dropped.
    pub(crate) fn confirm(&self, what: &str, name: &str) -> Result {
        if self.yes {
            return Ok(());
        }
        let mut stderr = std::io::stderr().lock();
        if !std::io::stdin().is_terminal() {
            return Err(CliError::Usage(format!(
                "{what} is dropped only when its name is typed again or --yes is given"
            )));
        }
        write!(stderr, "This drops {what}. Type {name} to go on: ")?;
        stderr.flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        if line.trim_end_matches(['\r', '\n']) == name {
            return Ok(());
        }
        Err(CliError::Refused(
            "that is another name; nothing was dropped".to_owned(),
        ))
    }
}
