//! The built-in OAuth clients: the client of the console, and those in the settings.

use tidegate_oauth::BuiltinClients;

use crate::settings::Settings;

/// The id of the client that the console uses.
const CONSOLE: &str = "tidegate";

/// The client ids of all built-in clients: those in the settings, and the console's.
pub(crate) fn ids(settings: &Settings) -> Vec<String> {
    let more = settings.builtin_client_ids.iter();
    let mut ids: Vec<_> = more.map(|id| id.0.clone()).collect();
    ids.push(CONSOLE.to_owned());
    ids
}

/// The built-in clients, and the pages of the console to which they may redirect. `issuer` is the
/// URL of the service.
pub(crate) fn of_service(settings: &Settings, issuer: &str) -> BuiltinClients {
    let page = |origin: &str| format!("{origin}/console/");
    let mut pages = Vec::new();
    if settings.console {
        pages.push(page(issuer));
        // The service can also be reached by the name `localhost`, so the console may redirect to
        // this name too.
        if let Some(rest) = issuer.strip_prefix("http://127.0.0.1") {
            pages.push(page(&format!("http://localhost{rest}")));
        }
    }
    BuiltinClients {
        ids: ids(settings),
        pages,
    }
}
