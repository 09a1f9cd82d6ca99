//! Finds the server binaries on the machine.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::version::{NEWEST, OLDEST, Version};

/// The programs that a directory must have. The directories of client packages lack some of them.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// The directories in which packages install the server. `{}` is replaced by the major version.
const PACKAGE_FOLDERS: [&str; 15] = [
    "/usr/lib/postgresql/{}/bin",                       // Debian, Ubuntu
    "/usr/pgsql-{}/bin",                                // PGDG on RHEL, Fedora
    "/usr/lib/postgresql{}/bin",                        // openSUSE
    "/usr/libexec/postgresql{}",                        // Alpine
    "/usr/lib64/postgresql-{}/bin",                     // Gentoo
    "/opt/homebrew/opt/postgresql@{}/bin",              // Homebrew on Apple silicon
    "/usr/local/opt/postgresql@{}/bin",                 // Homebrew on Intel
    "/home/linuxbrew/.linuxbrew/opt/postgresql@{}/bin", // Homebrew on Linux
    "/Applications/Postgres.app/Contents/Versions/{}/bin",
    "/Library/PostgreSQL/{}/bin",       // EDB on macOS
    "/opt/PostgreSQL/{}/bin",           // EDB on Linux
    "/opt/local/lib/postgresql{}/bin",  // MacPorts
    "/usr/local/pgsql-{}/bin",          // by hand, per version
    "/usr/local/lib/postgresql/{}/bin", // by hand, per version
    "/usr/local/postgresql-{}/bin",     // by hand, per version
];
/// Directories that are searched after the directories with a version.
const UNVERSIONED: [&str; 3] = ["/usr/local/pgsql/bin", "/usr/bin", "/usr/local/bin"];

/// The directory of a server's programs, and the version of the server.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    pub(crate) dir: PathBuf,
    pub(crate) version: Version,
}

/// Where to search for a server, and which version it must have.
#[derive(Debug)]
pub(crate) struct Lookup<'a> {
    /// The setting `bin_dir`. If it is given, nothing else is searched.
    pub(crate) bin_dir: Option<&'a Path>,
    /// Directories to search, in the form of `PATH`; `None` for no such directories.
    pub(crate) search_path: Option<&'a OsStr>,
    /// The directories in which packages install servers, and then the setting `fallback_dir`, in
    /// the order in which they are searched.
    pub(crate) usual: Vec<PathBuf>,
    /// The directory and the major version of an existing cluster. The server must have the same
    /// major version.
    pub(crate) existing: Option<(&'a Path, u16)>,
}

impl<'a> Lookup<'a> {
    /// A lookup on this machine according to the settings.
    pub(crate) fn new(settings: &'a Settings, existing: Option<(&'a Path, u16)>) -> Self {
        Self {
            bin_dir: settings.bin_dir.as_deref(),
            search_path: settings.search_path.as_deref(),
            usual: package_folders()
                .chain(settings.fallback_dir.clone())
                .collect(),
            existing,
        }
    }

    /// Finds the first suitable server. If `bin_dir` is set, only this directory is checked.
    /// Otherwise the order is: the directory that `pg_config` prints, the search path, and the
    /// directories in `usual`.
    pub(crate) fn find(&self) -> Result<Binaries> {
        if let Some(dir) = self.bin_dir {
            return self.in_setting(dir);
        }
        let mut passed_over = Vec::new();
        for dir in self.folders() {
            let Ok(found) = Binaries::probe(&dir) else {
                continue;
            };
            if self.fits(found.version) {
                return Ok(found);
            }
            passed_over.push(format!("{} in {}", found.version, found.dir.display()));
        }
        Err(match self.existing {
            Some((dir, major)) => Error::DataVersion {
                dir: dir.to_owned(),
                major,
                passed_over,
            },
            None => Error::NoBinaries { passed_over },
        })
    }

    fn in_setting(&self, dir: &Path) -> Result<Binaries> {
        let unusable = |problem| Error::BinDir {
            dir: dir.to_owned(),
            problem,
        };
        let found = Binaries::probe(dir).map_err(unusable)?;
        match self.existing {
            _ if self.fits(found.version) => Ok(found),
            Some((cluster, major)) => Err(Error::DataVersion {
                dir: cluster.to_owned(),
                major,
                passed_over: vec![format!("{} in {}", found.version, dir.display())],
            }),
            None => Err(unusable(format!(
                "PostgreSQL {} is not supported ({OLDEST} to {NEWEST} are)",
                found.version
            ))),
        }
    }

    fn fits(&self, version: Version) -> bool {
        let wanted = self
            .existing
            .is_none_or(|(_, major)| major == version.major);
        version.is_supported() && wanted
    }

    fn folders(&self) -> Vec<PathBuf> {
        let on_path: Vec<_> = self
            .search_path
            .map(|path| {
                std::env::split_paths(path)
                    .filter(|dir| dir.is_absolute())
                    .collect()
            })
            .unwrap_or_default();
        let mut folders: Vec<PathBuf> = configured_folder(&on_path).into_iter().collect();
        folders.extend(on_path);
        folders.extend(self.usual.iter().cloned());
        let mut seen = std::collections::HashSet::new();
        folders.retain(|dir| dir.canonicalize().is_ok_and(|real| seen.insert(real)));
        folders
    }
}

impl Binaries {
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Checks the programs in `dir` and reads their version. The error is the reason why the
    /// directory is not usable.
    fn probe(dir: &Path) -> Result<Self, String> {
        for name in PROGRAMS {
            if !is_executable(&dir.join(name)) {
                return Err(format!("there is no program \"{name}\" in it"));
            }
        }
        let program = dir.join("postgres");
        let output = run(&program, "--version").ok_or("its postgres does not run")?;
        let version = Version::parse(&output)
            .ok_or_else(|| format!("its postgres prints no version but \"{}\"", output.trim()))?;
        Ok(Self {
            dir: dir.to_owned(),
            version,
        })
    }
}

/// The usual directories of packages, from the newest version to the oldest, and then the
/// directories without a version.
fn package_folders() -> impl Iterator<Item = PathBuf> {
    (OLDEST..=NEWEST)
        .rev()
        .flat_map(|major| PACKAGE_FOLDERS.map(|folder| folder.replace("{}", &major.to_string())))
        .chain(UNVERSIONED.map(str::to_owned))
        .map(PathBuf::from)
}

/// The output of `pg_config --bindir`, for the first `pg_config` on the search path.
fn configured_folder(on_path: &[PathBuf]) -> Option<PathBuf> {
    let program = on_path
        .iter()
        .map(|dir| dir.join("pg_config"))
        .find(|it| is_executable(it))?;
    let folder = PathBuf::from(run(&program, "--bindir")?.trim_end());
    folder.is_absolute().then_some(folder)
}

fn run(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program)
        .arg(argument)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs::{self, Permissions};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// A directory with fake servers. It is removed on drop.
    struct FakeServers {
        root: PathBuf,
        /// Keeps other tests of this module from starting child processes. If a child is forked
        /// while a program is being written, it holds the open file until its exec. Until then the
        /// program cannot be run (ETXTBSY).
        _alone: MutexGuard<'static, ()>,
    }

    impl FakeServers {
        fn new() -> Self {
            static ALONE: Mutex<()> = Mutex::new(());
            let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            let name = crate::random::hex::<8>().unwrap();
            let root = std::env::temp_dir().join(format!("tidegate-binaries-{name}"));
            fs::create_dir(&root).unwrap();
            Self {
                root,
                _alone: alone,
            }
        }

        fn program(&self, folder: &str, name: &str, prints: &str) -> PathBuf {
            let dir = self.root.join(folder);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(name), format!("#!/bin/sh\necho '{prints}'\n")).unwrap();
            fs::set_permissions(dir.join(name), Permissions::from_mode(0o755)).unwrap();
            dir
        }

        fn server(&self, folder: &str, version: &str) -> PathBuf {
            self.program(folder, "initdb", "");
            self.program(folder, "pg_ctl", "");
            self.program(
                folder,
                "postgres",
                &format!("postgres (PostgreSQL) {version}"),
            )
        }
    }

    impl Drop for FakeServers {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.root).unwrap();
        }
    }

    fn lookup(usual: Vec<PathBuf>) -> Lookup<'static> {
        Lookup {
            bin_dir: None,
            search_path: None,
            usual,
            existing: None,
        }
    }

    #[test]
    fn the_setting_comes_before_everything_else() {
        let machine = FakeServers::new();
        let (mine, usual) = (
            machine.server("mine", "14.2"),
            machine.server("usual", "17.1"),
        );
        let found = Lookup {
            bin_dir: Some(&mine),
            ..lookup(vec![usual])
        }
        .find()
        .unwrap();
        assert_eq!(found.dir, mine);
    }

    #[test]
    fn pg_config_comes_before_the_path_and_the_path_before_the_usual_folders() {
        let machine = FakeServers::new();
        let [a, b, c] = [("a", "15.1"), ("b", "16.1"), ("c", "17.1")]
            .map(|(folder, version)| machine.server(folder, version));
        let path = |dirs: &[&Path]| std::env::join_paths(dirs).unwrap();
        let find = |path: &OsString| {
            Lookup {
                search_path: Some(path),
                ..lookup(vec![c.clone()])
            }
            .find()
            .unwrap()
            .dir
        };
        let client = machine.program("client", "pg_config", &a.display().to_string());
        assert_eq!(find(&path(&[&b, &client])), a);
        assert_eq!(find(&path(&[&b])), b);
        assert_eq!(find(&path(&[])), c);
    }

    #[test]
    fn a_folder_with_the_client_alone_is_skipped() {
        let machine = FakeServers::new();
        let client = machine.program("17", "psql", "psql (PostgreSQL) 17.1");
        machine.program("17", "initdb", "");
        let server = machine.server("15", "15.1");
        assert_eq!(
            lookup(vec![client, server.clone()]).find().unwrap().dir,
            server
        );
    }

    #[test]
    fn a_version_that_is_not_supported_is_passed_over_and_named() {
        let machine = FakeServers::new();
        let (old, new) = (
            machine.server("old", "12.9"),
            machine.server("new", "19devel"),
        );
        let text = lookup(vec![old, new]).find().unwrap_err().to_string();
        assert!(
            text.contains("12.9 in ") && text.contains("19.0 in "),
            "{text}"
        );
    }

    #[test]
    fn a_machine_without_a_server_gets_one_message_with_all_ways_out() {
        let text = lookup(Vec::new()).find().unwrap_err().to_string();
        for way in [
            "install postgresql\n",
            "postgresql-server",
            "brew install postgresql@17",
            "bin_dir",
        ] {
            assert!(text.contains(way), "{way} is missing in: {text}");
        }
    }

    #[test]
    fn an_existing_cluster_gets_the_binaries_of_its_version() {
        let machine = FakeServers::new();
        let folders = vec![machine.server("17", "17.1"), machine.server("15", "15.3")];
        let cluster = Path::new("/some/cluster");
        let find = |major| {
            Lookup {
                existing: Some((cluster, major)),
                ..lookup(folders.clone())
            }
            .find()
        };
        assert_eq!(
            find(15).unwrap().version,
            Version {
                major: 15,
                minor: 3
            }
        );
        let text = find(14).unwrap_err().to_string();
        assert!(
            text.starts_with("/some/cluster was made by PostgreSQL 14"),
            "{text}"
        );
        assert!(text.contains("17.1 in "), "{text}");
    }

    #[test]
    fn a_setting_that_names_no_server_is_not_replaced_by_a_guess() {
        let machine = FakeServers::new();
        let (empty, old) = (
            machine.program("empty", "psql", ""),
            machine.server("old", "9.6"),
        );
        let usual = vec![machine.server("17", "17.1")];
        let fails = |dir: &Path| {
            Lookup {
                bin_dir: Some(dir),
                ..lookup(usual.clone())
            }
            .find()
            .unwrap_err()
            .to_string()
        };
        assert!(
            fails(&empty).contains("there is no program \"initdb\""),
            "{}",
            fails(&empty)
        );
        assert!(
            fails(&old).contains("9.6 is not supported"),
            "{}",
            fails(&old)
        );
    }

    #[test]
    fn the_usual_folders_begin_with_the_newest_version() {
        let folders: Vec<_> = package_folders().collect();
        let place = |folder: &str| {
            folders
                .iter()
                .position(|it| it == Path::new(folder))
                .unwrap()
        };
        assert!(place("/usr/lib/postgresql/18/bin") < place("/usr/lib/postgresql/13/bin"));
        assert!(place("/opt/homebrew/opt/postgresql@17/bin") < place("/usr/pgsql-16/bin"));
        assert!(place("/usr/pgsql-13/bin") < place("/usr/bin"));
    }
}
