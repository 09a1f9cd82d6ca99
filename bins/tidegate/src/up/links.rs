//! The text that `tidegate up` prints when the database is served.

use std::fmt::Write as _;
use std::path::Path;

use crate::command::shell_word;

/// The values that the text contains.
pub(super) struct Links<'a> {
    /// The URL of the service.
    pub(super) url: &'a str,
    /// The link with which a browser can sign in to the console once; `None` if the console is
    /// switched off.
    pub(super) console: Option<&'a str>,
    /// The name of the tenant, which is also its owner's user name.
    pub(super) tenant: &'a str,
    /// The owner's password, if it was generated in this run.
    pub(super) password: Option<&'a str>,
    /// The id of the OAuth client for applications on this machine.
    pub(super) client: &'a str,
    /// The path of the settings file, which other commands can use.
    pub(super) settings: &'a Path,
    /// A notice that change events come from outboxes; `None` if the source was not chosen by this
    /// run.
    pub(super) notice: Option<&'a str>,
}

impl Links<'_> {
    pub(super) fn text(&self) -> String {
        let Self {
            url,
            tenant,
            client,
            ..
        } = self;
        let settings = shell_word(&self.settings.display().to_string());
        let word = shell_word(tenant);
        let mut text = format!("Tidegate serves the database {tenant} at {url}\n\n");
        if let Some(console) = self.console {
            let _ = writeln!(text, "  console  {console} (works once, for 15 minutes)");
            let _ = writeln!(text, "  docs     {url}/docs/");
        }
        let _ = writeln!(text, "  GraphQL  {url}/api/graphql/schema/public");
        let _ = match self.password {
            Some(password) => writeln!(text, "  owner    {tenant} / {password} (shown this once)"),
            None => writeln!(
                text,
                "  owner    {tenant} (new password: tidegate --config {settings} user password \
                 {word} {word})"
            ),
        };
        let _ = write!(
            text,
            "  client   {client} (public, for applications on localhost)\n  \
             more     tidegate --config {settings} user create {word} NAME\n           \
             tidegate --config {settings} serve\n\n"
        );
        if let Some(notice) = self.notice {
            let _ = writeln!(text, "{notice}\n");
        }
        text.push_str("Ctrl-C stops the service; run the command again to start it.\n");
        text
    }
}
