//! Tests of who is the author of a method's text.

use std::sync::Arc;

use tidegate_methods::{MemoryMethodStore, Registry};

use crate::fixture::{plain, reef};
use crate::registry::{ANNA, OWNER, patch};

#[tokio::test]
async fn a_method_is_the_owners_while_the_owner_has_written_its_text() {
    let registry = Registry::new(Arc::new(MemoryMethodStore::new()));
    let of_owner = vec![plain("mine")];
    registry.create(&reef(), OWNER, of_owner).await.unwrap();
    let of_anna = vec![plain("hers")];
    registry.create(&reef(), ANNA, of_anna).await.unwrap();
    for (who, method, change, owners) in [
        (OWNER, "mine", r#"{"output_format":"csv"}"#, true),
        (OWNER, "mine", r#"{"q":"select 2"}"#, true),
        (OWNER, "hers", r#"{"output_format":"csv"}"#, false),
        (OWNER, "hers", r#"{"type_hints":{"x":"int"}}"#, false),
        (OWNER, "hers", r#"{"method":"hers"}"#, false),
        (OWNER, "hers", r#"{"q":"select 1"}"#, true),
        (ANNA, "hers", r#"{"type_formats":{"x":"Y"}}"#, true),
        (ANNA, "hers", r#"{"type_hints":{"x":"hers"}}"#, false),
        (OWNER, "hers", r#"{"type_hints":null}"#, false),
        (OWNER, "hers", r#"{"q":"select 1"}"#, true),
        (ANNA, "hers", r#"{"q":"select 1"}"#, false),
    ] {
        let (tenant, change) = (reef(), patch(change));
        registry
            .patch(&tenant, who, &[method], &change)
            .await
            .unwrap();
        let after = registry.lookup(&reef(), method).await.unwrap().unwrap();
        assert_eq!(after.record().by_owner, owners, "{method} {change:?}");
    }
}
