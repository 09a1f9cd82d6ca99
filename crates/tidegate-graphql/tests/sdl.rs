//! The schema in the schema definition language.

use crate::fixture::api;

#[test]
fn the_text_is_the_golden_one() {
    let sdl = String::from_utf8(api().sdl().into_bytes().unwrap().to_vec()).unwrap();
    let golden = include_str!("sdl/golden.graphql");
    // If the difference is intended, copy what is printed.
    assert!(sdl == golden, "{sdl}");
}
