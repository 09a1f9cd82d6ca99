//! The schema in the schema definition language.

use crate::fixture::api;

#[test]
fn the_text_is_the_golden_one() {
    let sdl = String::from_utf8(api().sdl().to_vec()).unwrap();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdl/golden.graphql");
    if std::env::var_os("TIDEGATE_GOLDEN").is_some() {
        std::fs::write(golden, &sdl).unwrap();
    }
    assert_eq!(sdl, std::fs::read_to_string(golden).unwrap());
}
