//! The spans of requests, for those who build with the feature `otlp`.

use std::pin::Pin;

use tidegate_server::AppBuilder;

use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// What sends the spans, run beside the service.
pub(crate) type Traces = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Lets the app send its spans to the collector of the settings.
#[cfg(feature = "otlp")]
pub(crate) fn export(app: AppBuilder, settings: &Settings) -> Result<(AppBuilder, Traces)> {
    let Some(url) = &settings.otlp_url else {
        return Ok((app, Box::pin(std::future::ready(()))));
    };
    let clock = crate::ports::clock();
    let (exporter, work) = tidegate_server::Exporter::new(&url.0, "tidegate", clock)
        .map_err(|error| Failure::Usage(format!("the setting otlp_url: {error}")))?;
    Ok((app.spans(std::sync::Arc::new(exporter)), Box::pin(work)))
}

/// Says that this build cannot send spans, if it is to.
#[cfg(not(feature = "otlp"))]
pub(crate) fn export(app: AppBuilder, settings: &Settings) -> Result<(AppBuilder, Traces)> {
    if settings.otlp_url.is_some() {
        return Err(Failure::Usage(
            "otlp_url is set, and this build cannot send spans; build with `--features otlp`"
                .to_owned(),
        ));
    }
    Ok((app, Box::pin(std::future::ready(()))))
}
