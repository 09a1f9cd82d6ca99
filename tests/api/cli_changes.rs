//! Tests commands that change clients and users; completions, manual page and help.

use crate::operator::{Operator, text, tidegate};

#[tokio::test]
async fn a_client_and_a_user_are_changed_in_what_is_named() {
    let operator = Operator::new().await;
    let owner = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&owner, "owner-password\n");
    let (first, second) = ("https://shop.example/a", "https://shop.example/b");
    let create = [
        "client",
        "create",
        "shop",
        "Till",
        "--id",
        "till",
        "--redirect-uri",
        first,
    ];
    operator.succeeds(&create, "");
    let change = |arguments: &[&str]| {
        operator.succeeds(&[&["client", "change", "till"][..], arguments].concat(), "")
    };
    let list = || operator.succeeds(&["client", "list", "shop"], "");
    assert!(!change(&["--name", "Desk", "--add-redirect-uri", second]).contains("secret"));
    let shown = list();
    for part in ["Desk", first, second, "confidential"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(change(&["--rotate-secret"]).contains("client_secret  "));
    change(&["--redirect-uri", second, "--public", "true"]);
    let shown = list();
    assert!(
        shown.contains("public") && !shown.contains(first),
        "{shown}"
    );
    let (code, printed) = operator.fails(&["client", "change", "other", "--name", "x"], "");
    assert_eq!(
        (code, printed.contains("there is no client other")),
        (1, true),
        "{printed}"
    );
    let (code, printed) = operator.fails(&["client", "change", "till", "--grants", "fly"], "");
    assert_eq!(
        (code, printed.contains("there is no grant fly")),
        (2, true),
        "{printed}"
    );

    operator.succeeds(&["user", "create", "shop", "ann", "--no-password"], "");
    let change = [
        "user",
        "change",
        "shop",
        "ann",
        "--email",
        "ann@shop.example",
    ];
    operator.succeeds(&[&change[..], &["--group", "sales,desk"]].concat(), "");
    let shown = operator.succeeds(&["user", "list", "shop"], "");
    assert!(shown.contains("ann@shop.example"), "{shown}");
    let members = "SELECT string_agg(g.rolname, ' ' ORDER BY g.rolname) FROM pg_auth_members m \
                   JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles u ON u.oid = m.member \
                   WHERE u.rolname = 'shop/ann' AND g.rolname LIKE '%s%' AND g.rolname !~ 'users'";
    assert!(operator.value(members).await.contains("sales"));
    operator.succeeds(
        &[
            "user", "change", "shop", "ann", "--email", "", "--group", "",
        ],
        "",
    );
    assert!(
        !operator
            .succeeds(&["user", "list", "shop"], "")
            .contains("ann@")
    );
    assert!(!operator.value(members).await.contains("sales"));
}

#[tokio::test]
async fn the_operator_sees_and_removes_how_a_user_signs_in() {
    let operator = Operator::new().await;
    let create = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&create, "owner-password\n");
    let add = "INSERT INTO tidegate.passkeys (id, database, user_name, name, record, created_at) \
               VALUES ('one', 'shop', 'shop', E'Key\\x1b[2J', '{}', now())";
    let control = operator.root("tidegate").await;
    control.batch_execute(add).await.unwrap();
    let credentials = |more: &[&str]| {
        let all = [&["user", "credentials", "shop", "shop"][..], more].concat();
        operator.succeeds(&all, "")
    };
    let shown = credentials(&[]);
    assert!(
        shown.contains("password") && shown.contains("passkeys  "),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let removed = credentials(&["--remove", "second-factor,passkeys"]);
    assert!(removed.contains("second_factor, passkeys"), "{removed}");
    assert!(!credentials(&[]).contains("passkeys"));
    let (code, printed) = operator.fails(
        &["user", "credentials", "shop", "zoe", "--remove", "passkeys"],
        "",
    );
    assert_eq!((code, printed.contains("user")), (1, true), "{printed}");
}

#[test]
fn settings_are_described_once_with_their_defaults() {
    let printed = |arguments: &[&str]| text(&tidegate(arguments).output().unwrap().stdout);
    let described = printed(&["help", "settings"]);
    for part in [
        "\nstatement_timeout  (default: 60s)\n",
        "\nmaster_key  (variable TIDEGATE_MASTER_KEY only)\n",
        "\npublic_url\n",
    ] {
        assert!(described.contains(part), "{part}: {described}");
    }
    let long = printed(&["key", "rotate", "--help"]);
    assert!(!long.contains("statement-timeout"), "{long}");
    assert!(printed(&["serve", "--help"]).contains("tidegate help settings"));
}

#[test]
fn completions_and_the_manual_page_know_commands_and_settings() {
    let printed = |arguments: &[&str]| text(&tidegate(arguments).output().unwrap().stdout);
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for part in ["adopt", "rotate-secret", "statement-timeout"] {
            assert!(script.contains(part), "{shell}: {part}");
        }
    }
    let program = tidegate(&[]).get_program().to_owned();
    let completed = |words: &str| {
        let run = format!(
            "source <(\"$0\" completions bash); COMP_WORDS=({words} ''); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _tidegate tidegate '' \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = std::process::Command::new("bash");
        text(
            &bash
                .arg("-c")
                .arg(run)
                .arg(&program)
                .output()
                .unwrap()
                .stdout,
        )
    };
    let offered = completed("tidegate client");
    assert!(
        offered.contains("create") && !offered.contains("--listen"),
        "{offered}"
    );
    let offered = completed("tidegate serve");
    assert!(offered.contains("--listen"), "{offered}");
    let page = printed(&["man"]);
    for part in [".TH", "tenant adopt", "statement_timeout", "client change"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
