//! The operating system user that runs PostgreSQL. It is the current user, unless this process runs
//! as root. In that case an unprivileged user runs PostgreSQL, because PostgreSQL refuses to run as
//! root.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, IoContext, Result};
use crate::random;

/// The users to try, in this order, if the current user is root.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The user that owns the data and runs the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerUser {
    /// The user id of this process.
    own_uid: u32,
    /// The user that runs the server; `None` if it is the current user.
    account: Option<Account>,
}

/// The shutdown signals of PostgreSQL ("Shutting Down the Server").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Fast,
    Immediate,
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl ServerUser {
    /// Chooses the operating system user that runs PostgreSQL. A process that does not run as root
    /// uses its own user. A process that runs as root uses the first of these users that exists:
    ///
    /// - the owner of the directory `data`, unless the owner is root,
    /// - the user `postgres`,
    /// - the user `nobody`.
    pub(crate) fn choose(scratch: &Path, data: Option<&Path>) -> Result<Self> {
        let own_uid = effective_uid(scratch)?;
        if own_uid != 0 {
            let account = None;
            return Ok(Self { own_uid, account });
        }
        let passwd = Path::new("/etc/passwd");
        let accounts = accounts(&fs::read_to_string(passwd).context("read", passwd)?);
        let owner = data
            .and_then(|data| fs::metadata(data).ok())
            .filter(|owner| owner.uid() != 0);
        let account = match owner {
            Some(owner) => Some(owner_account(&accounts, &owner)),
            None => CANDIDATES.iter().find_map(|name| named(&accounts, name)),
        };
        let account = Some(account.ok_or(Error::NoServerUser)?);
        Ok(Self { own_uid, account })
    }

    /// Whether the server runs as another user than this process.
    pub(crate) fn is_other_user(&self) -> bool {
        self.account.is_some()
    }

    /// The user id of this process.
    pub(crate) fn own_uid(&self) -> u32 {
        self.own_uid
    }

    /// A command that runs `program` as the server user, with only `LC_ALL` and `PATH` in its
    /// environment, in a process group of its own.
    ///
    /// The program does not inherit the environment of this process. The environment may contain
    /// secrets, which every superuser of the cluster could read, and `PG…` variables, which would
    /// change what the program does. Because the program has a process group of its own, Ctrl-C
    /// does not reach it. So this process decides when the program ends.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(account) = &self.account {
            // If the current user is root, setting the uid also clears the supplementary groups.
            command.uid(account.uid).gid(account.gid);
        }
        command
    }

    /// Sends a signal to a process of this user. There is no error if the process does not exist.
    pub(crate) fn signal(&self, signal: Signal, pid: u32) -> Result<()> {
        let shell = Path::new("/bin/sh");
        let mut command = self.command(shell);
        command.args([
            "-c",
            "kill -s \"$1\" \"$2\"",
            "sh",
            signal.name(),
            &pid.to_string(),
        ]);
        command
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().context("run", shell).map(drop)
    }

    /// Makes this user the owner of `path`. Does nothing if this user is the current user.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        chown(path, Some(account.uid), Some(account.gid)).context("change the owner of", path)
    }

    /// Fails if this user may not enter a parent directory of `dir`. The error names the first such
    /// parent, counted from the root directory.
    pub(crate) fn require_entry(&self, dir: &Path) -> Result<()> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        let mut above: Vec<_> = dir.ancestors().skip(1).collect();
        above.reverse();
        // Missing parent directories will be created later with sufficient permissions.
        for folder in above.into_iter().filter(|it| it.exists()) {
            let metadata = fs::metadata(folder).context("read", folder)?;
            if !account.may_enter(&metadata) {
                let (dir, closed) = (PathBuf::from(dir), PathBuf::from(folder));
                return Err(Error::NotEnterable {
                    dir,
                    closed,
                    user: account.name.clone(),
                });
            }
        }
        Ok(())
    }
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Fast => "INT",
            Self::Immediate => "QUIT",
            Self::Kill => "KILL",
        }
    }
}

impl Account {
    fn may_enter(&self, folder: &Metadata) -> bool {
        let execute = match folder {
            _ if folder.uid() == self.uid => 0o100,
            _ if folder.gid() == self.gid => 0o010,
            _ => 0o001,
        };
        folder.mode() & execute != 0
    }
}

/// The user id of this process. The standard library does not provide it, so it is read from the
/// owner of a new file.
pub(crate) fn effective_uid(scratch: &Path) -> Result<u32> {
    let probe = scratch.join(format!("tidegate-{}", random::hex::<8>()?));
    let uid = File::create_new(&probe)
        .and_then(|file| file.metadata())
        .map(|made| made.uid());
    let removed = fs::remove_file(&probe);
    let uid = uid.context("create", &probe)?;
    removed.context("remove", &probe)?;
    Ok(uid)
}

fn accounts(passwd: &str) -> Vec<Account> {
    passwd.lines().filter_map(account).collect()
}

/// Parses `name:password:uid:gid:…` (passwd(5)).
fn account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(Account { name, uid, gid })
}

fn named(accounts: &[Account], name: &str) -> Option<Account> {
    accounts
        .iter()
        .find(|account| account.name == name && account.uid != 0)
        .cloned()
}

fn owner_account(accounts: &[Account], owner: &Metadata) -> Account {
    let known = accounts
        .iter()
        .find(|account| account.uid == owner.uid())
        .cloned();
    known.unwrap_or_else(|| Account {
        name: owner.uid().to_string(),
        uid: owner.uid(),
        gid: owner.gid(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n\
        broken line\n\
        postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn accounts_are_read_from_passwd_and_broken_lines_skipped() {
        let accounts = accounts(PASSWD);
        assert_eq!(accounts.len(), 3);
        let nobody = named(&accounts, "nobody").unwrap();
        assert_eq!((nobody.uid, nobody.gid), (65534, 65533));
        assert_eq!(named(&accounts, "somebody"), None);
    }

    #[test]
    fn root_is_never_the_server_user() {
        assert_eq!(
            named(&accounts("postgres:x:0:0::/:/bin/sh\n"), "postgres"),
            None
        );
    }
}
