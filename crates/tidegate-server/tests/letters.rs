//! Letters: who asks for one learns nothing, neither by text nor by what happens before the answer.

use tidegate_oauth::{UserChange, UserKey};

use crate::fixture::{Answer, Api};
use crate::outside::{Mailbox, connected};
use crate::page_forms::only_from_here;
use crate::pages::Browser;

async fn ask(api: &Api, name: &str) -> Answer {
    let mut browser = Browser::default();
    let page = browser.get(api, "/reset").await;
    let fields = [("username", name), ("database", "demo")];
    browser.post(api, (&page, "ask"), &fields).await
}

async fn give_alice_an_address(api: &Api) {
    let change = UserChange {
        email: Some(Some("alice@example.org".to_owned())),
        ..UserChange::default()
    };
    let alice = UserKey::new("demo", "alice");
    api.directory.change_user(&alice, change).await.unwrap();
}

/// The token of the link in the last letter.
async fn link(mailbox: &Mailbox, count: usize) -> String {
    let letter = mailbox.letters(count).await.pop().unwrap();
    let (_, token) = letter.text.split_once("/reset?token=").unwrap();
    token.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn asking_for_a_letter_says_and_does_the_same_for_every_name() {
    let (api, mailbox) = connected().await;
    give_alice_an_address(&api).await;
    let first = ask(&api, "alice").await;
    // One runtime thread: had the letter been written before the answer, it would be here.
    assert_eq!(mailbox.len(), 0, "nothing is looked for before the answer");
    assert_eq!(first.status, 200);
    mailbox.letters(1).await;
    for name in [
        "nobody",
        "demo",
        "guest",
        "nobody@example.org",
        "' or 1=1 --",
    ] {
        let answer = ask(&api, name).await;
        assert_eq!(answer.status, first.status, "{name}");
        assert_eq!(answer.text(), first.text(), "{name}");
    }
    // Nor does it tell that enough letters were sent to somebody.
    for _ in 0..8 {
        assert_eq!(ask(&api, "alice").await.text(), first.text());
    }
    let refused = loop {
        let answer = ask(&api, "nobody").await;
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(refused.status, 429, "by address: {}", refused.text());
    mailbox.letters(5).await;
}

#[tokio::test]
async fn a_new_password_is_chosen_from_our_own_page_only() {
    let (api, mailbox) = connected().await;
    give_alice_an_address(&api).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, "/reset").await;
    let more = "&username=alice&database=demo";
    only_from_here(&api, &browser, (&page, "ask"), more).await;
    assert_eq!(ask(&api, "alice").await.status, 200);
    let token = link(&mailbox, 1).await;
    let page = browser.get(&api, &format!("/reset?token={token}")).await;
    let more = "&password=taken-over-1";
    only_from_here(&api, &browser, (&page, "choose"), more).await;
    api.token("alice").await;
    let chosen = [("password", "alice-9876")];
    let done = browser.post(&api, (&page, "choose"), &chosen).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let dead = browser.get(&api, &format!("/reset?token={token}")).await;
    assert_eq!(dead.status, 400, "once");
}
