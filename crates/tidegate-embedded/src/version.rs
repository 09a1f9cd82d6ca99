//! Differences between the versions of PostgreSQL.

use std::fmt;

/// The oldest supported major version.
pub(crate) const OLDEST: u16 = 13;
/// The newest supported major version.
pub(crate) const NEWEST: u16 = 18;

/// A version of the PostgreSQL server, as `postgres --version` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The major version, such as 15. A data directory belongs to one major version.
    pub major: u16,
    /// The minor version; 0 for a beta or a development build.
    pub minor: u16,
}

impl Version {
    /// Parses `postgres (PostgreSQL) 15.18 (Debian …)`; `None` for other text.
    pub(crate) fn parse(printed: &str) -> Option<Self> {
        let number = printed.split_once("(PostgreSQL) ")?.1;
        let (major, rest) = digits(number)?;
        let minor = rest
            .strip_prefix('.')
            .and_then(digits)
            .map_or(0, |(minor, _)| minor);
        Some(Self { major, minor })
    }

    pub(crate) fn is_supported(self) -> bool {
        (OLDEST..=NEWEST).contains(&self.major)
    }

    /// The options of `initdb` for this version.
    ///
    /// A temporary cluster is created without data checksums, which version 18 enables by default.
    pub(crate) fn initdb_options(self, temporary: bool) -> Vec<&'static str> {
        let mut options = Vec::new();
        if self.major >= 14 {
            options.push("--no-instructions");
        }
        if self.major >= 18 && temporary {
            options.push("--no-data-checksums");
        }
        options
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

fn digits(text: &str) -> Option<(u16, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_distributions_print_them() {
        let read = |text| Version::parse(text).map(|version| version.to_string());
        assert_eq!(
            read("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)").unwrap(),
            "15.18"
        );
        assert_eq!(read("postgres (PostgreSQL) 17.4").unwrap(), "17.4");
        assert_eq!(read("postgres (PostgreSQL) 18beta1").unwrap(), "18.0");
        assert_eq!(read("postgres (PostgreSQL) 19devel").unwrap(), "19.0");
        assert_eq!(read("something else 15.2"), None);
    }

    #[test]
    fn an_option_is_given_only_to_versions_that_know_it() {
        let options = |major, temporary| Version { major, minor: 0 }.initdb_options(temporary);
        assert!(options(13, true).is_empty());
        assert_eq!(options(15, true), ["--no-instructions"]);
        assert_eq!(
            options(18, true),
            ["--no-instructions", "--no-data-checksums"]
        );
        assert_eq!(options(18, false), ["--no-instructions"]);
    }

    #[test]
    fn versions_outside_of_13_to_18_are_not_supported() {
        let supported = |major| Version { major, minor: 1 }.is_supported();
        assert!(!supported(12) && supported(13) && supported(18) && !supported(19));
    }
}
