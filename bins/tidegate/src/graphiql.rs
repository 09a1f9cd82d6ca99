//! Reads the GraphiQL build that the settings name.

use std::path::Path;

use tidegate_server::Graphiql;

use crate::cli_error::{CliError, Result};
use crate::ports;
use crate::settings::Settings;

/// The largest size of a build in bytes. A folder with more bytes is not a build of GraphiQL.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads the GraphiQL build from the folder in the settings; `None` if the settings name no folder.
pub(crate) fn read(settings: &Settings) -> Result<Option<Graphiql>> {
    let Some(folder) = &settings.graphiql_dir else {
        return Ok(None);
    };
    let files = files(folder)?;
    let built = Graphiql::new(files, ports::bytes).map_err(|error| {
        CliError::Usage(format!(
            "the setting graphiql_dir names {}, where {error}; `npm run build` in graphiql/ makes \
             such a folder",
            folder.display()
        ))
    })?;
    Ok(Some(built))
}

fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File {
            action: "read graphiql_dir",
            path,
            source,
        }
    };
    let (mut found, mut size) = (Vec::new(), 0);
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let about = std::fs::metadata(&path).map_err(failed(&path))?;
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|_| about.is_file()) else {
            continue;
        };
        size += about.len();
        if size > MAX_BYTES {
            return Err(CliError::Usage(format!(
                "the setting graphiql_dir names {}, which contains far more than GraphiQL",
                folder.display()
            )));
        }
        let bytes = std::fs::read(&path).map_err(failed(&path))?;
        found.push((name.to_owned(), bytes));
    }
    Ok(found)
}
