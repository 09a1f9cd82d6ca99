//! The types of settings, and how they are parsed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use tidegate_wire::TlsMode;

/// The type of a setting in a TOML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TomlType {
    /// A string.
    Text,
    Integer,
    Boolean,
    /// An array of strings, or one string in which commas separate the elements.
    List,
}

/// A type that the value of a setting can have.
pub(crate) trait Kind: Sized {
    /// The type of the setting in a TOML file.
    const TOML_TYPE: TomlType;
    /// The expected form of a value, for error messages.
    const EXPECTED: &'static str;
    /// Parses the text; `None` if it is invalid.
    fn parse(text: &str) -> Option<Self>;
    /// The value of a setting without a default, if no source gives a value. `None` if a value is
    /// required.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Kind> Kind for Option<T> {
    const TOML_TYPE: TomlType = T::TOML_TYPE;
    const EXPECTED: &'static str = T::EXPECTED;
    fn parse(text: &str) -> Option<Self> {
        T::parse(text).map(Some)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Element> Kind for Vec<T> {
    const TOML_TYPE: TomlType = TomlType::List;
    const EXPECTED: &'static str = T::EXPECTED_LIST;
    fn parse(text: &str) -> Option<Self> {
        let items = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        items.map(T::parse).collect()
    }
    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

/// A type whose values may be in a list.
pub(crate) trait Element: Kind {
    /// The expected form of a list, for error messages.
    const EXPECTED_LIST: &'static str;
}

macro_rules! kind {
    ($kind:ty, $toml_type:ident, $expected:literal, |$text:ident| $parse:expr) => {
        impl Kind for $kind {
            const TOML_TYPE: TomlType = TomlType::$toml_type;
            const EXPECTED: &'static str = $expected;
            fn parse($text: &str) -> Option<Self> {
                $parse
            }
        }
    };
}

kind!(String, Text, "text", |text| Some(text.to_owned()));
kind!(PathBuf, Text, "a path", |text| Some(text.into()));
kind!(bool, Boolean, "true or false", |text| text.parse().ok());
kind!(u32, Integer, "a whole number from 1", |text| text
    .parse()
    .ok()
    .filter(|n| *n > 0));
kind!(
    SocketAddr,
    Text,
    "an address such as 127.0.0.1:8080",
    |text| {
        match text.strip_prefix("localhost:") {
            Some(port) => Some(([127, 0, 0, 1], port.parse().ok()?).into()),
            None => text.parse().ok(),
        }
    }
);

impl Element for SocketAddr {
    const EXPECTED_LIST: &'static str = "a list of addresses such as 127.0.0.1:8080";
}

/// A duration, which is written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

kind!(
    Span,
    Text,
    "a duration such as 500ms, 60s, 15m or 1h",
    |text| {
        let (number, unit) = split_unit(text)?;
        let scale = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        number
            .checked_mul(scale)
            .filter(|millis| *millis > 0)
            .map(Duration::from_millis)
            .map(Self)
    }
);

/// A number of bytes, which is written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

kind!(Size, Text, "a size such as 512KiB, 10MiB or 1GiB", |text| {
    let (number, unit) = split_unit(text)?;
    let scale = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number
        .checked_mul(scale)
        .filter(|bytes| *bytes > 0)
        .map(Self)
});

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

kind!(
    IpNet,
    Text,
    "an address or network such as 10.0.0.0/8",
    |text| {
        text.parse()
            .ok()
            .or_else(|| text.parse::<IpAddr>().ok().map(Self::from))
    }
);

impl Element for IpNet {
    const EXPECTED_LIST: &'static str = "a list of addresses or networks such as 10.0.0.0/8";
}

/// The origin of a browser application, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CorsOrigin(pub(crate) String);

kind!(
    CorsOrigin,
    Text,
    "an origin such as https://app.example.com, or *",
    |text| {
        let fits = text == "*" || path_of_web_url(text).is_some_and(str::is_empty);
        fits.then(|| Self(text.to_owned()))
    }
);

mod bus_url;
mod client_id;
mod database_url;

pub(crate) use bus_url::BusUrl;
pub(crate) use client_id::ClientId;
pub(crate) use database_url::DatabaseUrl;

impl Element for CorsOrigin {
    const EXPECTED_LIST: &'static str = "a list of origins such as https://app.example.com, or *";
}

/// The limits on GraphQL requests of one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleLimit {
    /// The name of the role in PostgreSQL.
    pub(crate) role: String,
    /// The limits on levels, on fields and on root fields, in this order.
    pub(crate) limits: [u32; 3],
}

kind!(
    RoleLimit,
    Text,
    "a role and its limits such as shop/guest=8/200/5",
    |text| {
        let (role, limits) = text.rsplit_once('=')?;
        let limits: Option<Vec<u32>> = limits.split('/').map(u32::parse).collect();
        Some(Self {
            role: (!role.is_empty()).then(|| role.to_owned())?,
            limits: limits?.try_into().ok()?,
        })
    }
);

impl Element for RoleLimit {
    const EXPECTED_LIST: &'static str =
        "a list of roles and their limits such as shop/guest=8/200/5";
}

/// The URL of a service, such as `https://api.example.com`, without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicUrl(pub(crate) String);

kind!(
    PublicUrl,
    Text,
    "an address such as https://api.example.com, without query",
    |text| {
        let text = text.trim_end_matches('/');
        let path = path_of_web_url(text)?;
        (!path.contains(['?', '#'])).then(|| Self(text.to_owned()))
    }
);

impl PublicUrl {
    /// Whether requests to this URL cross a network unencrypted: the scheme is `http`, and the host
    /// is neither a loopback address nor `localhost` (RFC 6761, section 6.3).
    pub(crate) fn is_insecure(&self) -> bool {
        let Some(rest) = self.0.strip_prefix("http://") else {
            return false;
        };
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let local = host == "localhost" || host.ends_with(".localhost");
        let address = host.parse::<IpAddr>();
        !local && !address.is_ok_and(|address| address.to_canonical().is_loopback())
    }
}

/// The path of a URL `http(s)://authority/path`, with its leading slash and its query. `None` for
/// other text.
fn path_of_web_url(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let plain = |c: char| c.is_ascii_graphic() && !"\\\"<>@`{|}^".contains(c);
    (!authority.is_empty() && text.chars().all(plain)).then_some(path)
}

/// The URL of an SMTP server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct MailUrl(pub(crate) String);

kind!(
    MailUrl,
    Text,
    "an address such as smtps://user@host",
    |text| {
        let known = text.starts_with("smtp://") || text.starts_with("smtps://");
        known.then(|| Self(text.to_owned()))
    }
);

impl fmt::Debug for MailUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MailUrl([redacted])")
    }
}

/// A secret, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

kind!(Secret, Text, "text", |text| Some(Self(text.to_owned())));

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// The token for `/metrics`. It is never shown, and must be long enough that it cannot be guessed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct MetricsToken(pub(crate) String);

kind!(
    MetricsToken,
    Text,
    "16 visible ASCII characters or more, without blanks",
    |text| {
        let fits = text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }
);

impl fmt::Debug for MetricsToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricsToken([redacted])")
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $expected:literal, { $($(#[$item_doc:meta])* $item:ident = $text:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$item_doc])* $item),+ }

        kind!($name, Text, $expected, |text| match text {
            $($text => Some(Self::$item),)+
            _ => None,
        });
    };
}

kind!(
    TlsMode,
    Text,
    "one of disable, prefer, require, verify-ca, verify-full",
    |text| text.parse().ok()
);

choice!(
    /// The source of change events.
    FeedSource, "one of logical, outbox", {
        /// PostgreSQL's WAL, by logical decoding.
        Logical = "logical",
        /// A table that triggers fill.
        Outbox = "outbox"
    }
);

choice!(
    /// The format of log lines.
    LogFormat, "one of text, json", {
        /// Lines of text that people can read.
        Text = "text",
        /// One JSON object on each line.
        Json = "json"
    }
);

choice!(
    /// The least severe level of events that are logged.
    LogLevel, "one of error, warn, info, debug, trace", {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace"
    }
);
