//! Finds the server binaries on the machine.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::version::{NEWEST, OLDEST, Version};

/// What a folder needs; packages of the client alone lack them.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// Where packages put the server; `{}` stands for the major version.
const USUAL: [&str; 15] = [
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
/// Looked at after the versioned ones.
const UNVERSIONED: [&str; 3] = ["/usr/local/pgsql/bin", "/usr/bin", "/usr/local/bin"];

/// A folder with the programs of one server.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    pub(crate) dir: PathBuf,
    pub(crate) version: Version,
}

/// The folders to look at, and what the server must be.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    /// The setting; when given, nothing else is looked at.
    pub(crate) bin_dir: Option<&'a Path>,
    /// The caller's `PATH`.
    pub(crate) search_path: Option<&'a OsStr>,
    /// Where packages put servers, best first.
    pub(crate) usual: Vec<PathBuf>,
    /// An existing cluster (directory and major version), which binds the choice.
    pub(crate) existing: Option<(&'a Path, u16)>,
}

impl<'a> Search<'a> {
    /// As the settings say, on this machine.
    pub(crate) fn new(settings: &'a Settings, existing: Option<(&'a Path, u16)>) -> Self {
        Self {
            bin_dir: settings.bin_dir.as_deref(),
            search_path: settings.search_path.as_deref(),
            usual: usual_folders(),
            existing,
        }
    }

    /// The first server that fits: the setting's, `pg_config`'s, one on the search path, one in
    /// the usual folders from the newest down.
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
    /// A program of this server.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether `dir` has a server, and which; else what it lacks.
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

/// The newest version's folders first.
fn usual_folders() -> Vec<PathBuf> {
    (OLDEST..=NEWEST)
        .rev()
        .flat_map(|major| USUAL.map(|folder| folder.replace("{}", &major.to_string())))
        .chain(UNVERSIONED.map(str::to_owned))
        .map(PathBuf::from)
        .collect()
}

/// What the first `pg_config` on the path says.
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
