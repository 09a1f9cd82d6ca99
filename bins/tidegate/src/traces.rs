//! Export of the spans of requests (feature `otlp`).

use std::pin::Pin;

use tidegate_server::AppBuilder;

use crate::cli_error::{CliError, Result};
use crate::settings::Settings;

/// The future that sends recorded spans to the collector while it is polled.
pub(crate) type Traces = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes the app record spans if the settings name a collector. The returned future sends them.
#[cfg(feature = "otlp")]
pub(crate) fn export(app: AppBuilder, settings: &Settings) -> Result<(AppBuilder, Traces)> {
    let Some(url) = &settings.otlp_url else {
        return Ok((app, Box::pin(std::future::ready(()))));
    };
    let clock = crate::ports::clock();
    let (exporter, work) = tidegate_server::Exporter::new(&url.0, "tidegate", clock)
        .map_err(|error| CliError::Usage(format!("the setting otlp_url: {error}")))?;
    Ok((app.spans(std::sync::Arc::new(exporter)), Box::pin(work)))
}

/// Fails if the setting is given, because this build cannot send spans.
#[cfg(not(feature = "otlp"))]
pub(crate) fn export(app: AppBuilder, settings: &Settings) -> Result<(AppBuilder, Traces)> {
    if settings.otlp_url.is_some() {
        return Err(CliError::Usage(
            "otlp_url is set, and this build cannot send spans; build with `--features otlp`"
                .to_owned(),
        ));
    }
    Ok((app, Box::pin(std::future::ready(()))))
}
