//! Writes all pages into a folder, where they can be viewed without a service.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = env::args_os()
        .nth(1)
        .map_or_else(env::temp_dir, PathBuf::from);
    let description = serde_json::json!({"paths": {}});
    for page in tidegate_docs::pages("", &description) {
        let name = match page.path.as_str() {
            "" => "index.html".to_owned(),
            path if page.media_type.starts_with("text/html") => format!("{path}.html"),
            path => path.to_owned(),
        };
        let file = folder.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, &page.bytes)?;
    }
    Ok(())
}
