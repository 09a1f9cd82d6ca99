//! The startup parameters of a session. Neither settings of the role nor statements can change them
//! permanently.

/// The settings in the startup packet. They take precedence over `ALTER ROLE … SET`, and `RESET`
/// restores them (PostgreSQL, "Parameter Interaction via the Configuration File" and "RESET").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartupParameters {
    /// The `search_path` configured for the role in the database; `None` for PostgreSQL's default.
    pub search_path: Option<String>,
    /// Additional settings, as pairs of name and value, for roles that anonymous callers or the
    /// members of a group share. They override settings of the role. The fixed settings of
    /// [`Self::settings`] take precedence over them.
    pub defaults: Vec<(String, String)>,
    /// The server's `server_version_num`; 0 if unknown. Settings that this version does not know
    /// are left out.
    pub server_version: u32,
}

impl StartupParameters {
    /// The `search_path` with which the session starts.
    pub fn search_path(&self) -> &str {
        self.search_path.as_deref().unwrap_or("\"$user\", public")
    }

    /// The settings in the startup packet, as pairs of name and value.
    pub fn settings(&self) -> Vec<(&str, &str)> {
        let mut settings: Vec<(&str, &str)> = vec![
            ("client_encoding", "UTF8"),
            ("application_name", "tidegate"),
            // With this setting, the event trigger immediately reports a changed definition to the
            // session that changed it.
            ("tidegate.session", "on"),
            ("search_path", self.search_path()),
            ("TimeZone", "UTC"),
            ("DateStyle", "ISO, MDY"),
            ("IntervalStyle", "postgres"),
            ("extra_float_digits", "1"),
            ("bytea_output", "hex"),
            // The service sends NULL elements in arrays.
            ("array_nulls", "on"),
            ("standard_conforming_strings", "on"),
            ("row_security", "on"),
            ("jit", "off"),
            // Without this value a role could set a library that does not exist, and could then no
            // longer log in.
            ("local_preload_libraries", ""),
            // `default_transaction_read_only` and `lock_timeout` are not set here, because the
            // operator decides about them.
            ("default_transaction_isolation", "read committed"),
            ("default_transaction_deferrable", "off"),
            // `statement_timeout` is not set here either, because the operator decides about it.
            // Tidegate does not rely on it but has a timer of its own: a statement can catch
            // PostgreSQL's timeout and continue.
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
