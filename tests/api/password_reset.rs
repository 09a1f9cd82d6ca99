//! Tests forgotten passwords without SMTP. The tests with SMTP are in `tests/clients/mail`.

use crate::service::{Service, demo, demo_folder};

#[tokio::test]
async fn without_email_the_page_says_whom_to_ask() {
    let page = demo().client.get(format!("{}/reset", demo().url));
    let page = page.send().await.unwrap();
    assert_eq!(page.status(), 200);
    let text = page.text().await.unwrap();
    assert!(text.contains("Ask the owner of the database"), "{text}");
    assert!(!text.contains("<form"), "{text}");

    let folder = demo_folder();
    let contact = "--help-contact=the desk on <b>floor 2</b>";
    let demo = Service::start(folder.path().to_str().unwrap(), &[contact]);
    let page = demo.client.get(format!("{}/reset/", demo.url)).send().await;
    let text = page.unwrap().text().await.unwrap();
    assert!(
        text.contains("Ask for a new one: the desk on &lt;b&gt;floor 2"),
        "{text}"
    );
}

#[tokio::test]
async fn a_link_that_is_none_of_ours_leads_nowhere() {
    for path in [
        "/reset?token=made-up",
        "/signup/confirm?token=made-up",
        "/signup/confirm",
    ] {
        let page = demo().client.get(format!("{}{path}", demo().url));
        let page = page.send().await.unwrap();
        assert_eq!(page.status(), 400, "{path}");
        let text = page.text().await.unwrap();
        assert!(text.contains("too old or was used already"), "{text}");
    }
}
