//! Tests of the schema in the schema definition language.

use tidegate_testkit::assert_golden;

use crate::fixture::api;

#[test]
fn the_text_is_the_golden_one() {
    let sdl = String::from_utf8(api().sdl().into_bytes().unwrap().to_vec()).unwrap();
    assert_golden("tests/sdl/golden.graphql", &sdl);
}
