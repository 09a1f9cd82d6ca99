//! Session settings that neither roles nor statements can change for good.

/// What the startup packet pins: these values win over `ALTER ROLE … SET` and are what `RESET`
/// returns to (PostgreSQL, "Parameter Interaction via the Configuration File" and "RESET").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartupPins {
    /// The `search_path` configured for the role in the database; PostgreSQL's default when
    /// absent.
    pub search_path: Option<String>,
    /// Settings that the role must not decide either, where anonymous callers share it. The others
    /// take precedence.
    pub defaults: Vec<(String, String)>,
    /// `server_version_num`; 0 when unknown, then settings of newer versions are left out.
    pub server_version: u32,
}

impl StartupPins {
    /// The `search_path` of the session.
    pub fn search_path(&self) -> &str {
        self.search_path.as_deref().unwrap_or("\"$user\", public")
    }

    /// The settings, by name.
    pub fn settings(&self) -> Vec<(&str, &str)> {
        let mut settings: Vec<(&str, &str)> = vec![
            ("client_encoding", "UTF8"),
            ("application_name", "tidegate"),
            // By this the event trigger knows whose definitions it must tell at once.
            ("tidegate.session", "on"),
            ("search_path", self.search_path()),
            ("TimeZone", "UTC"),
            ("DateStyle", "ISO, MDY"),
            ("IntervalStyle", "postgres"),
            ("extra_float_digits", "1"),
            ("bytea_output", "hex"),
            // We write arrays with NULL in them.
            ("array_nulls", "on"),
            ("standard_conforming_strings", "on"),
            ("row_security", "on"),
            ("jit", "off"),
            // A role can set this to a library that does not exist, and so lock itself out.
            ("local_preload_libraries", ""),
            // Whether to write at all and how long to wait for locks are for the operator to say.
            ("default_transaction_isolation", "read committed"),
            ("default_transaction_deferrable", "off"),
            // statement_timeout is for the operator to say. Our own timer counts beside it, since a
            // statement can catch PostgreSQL's and run on.
            ("idle_in_transaction_session_timeout", "60s"),
            ("tcp_keepalives_idle", "15"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "3"),
        ];
        for setting in crate::version::startup_settings(self.server_version) {
            settings.push(setting);
        }
        for (name, value) in &self.defaults {
            if !settings
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
            {
                settings.push((name, value));
            }
        }
        settings
    }
}
