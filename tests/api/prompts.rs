//! Tests the questions of the command line before it drops something, and that secrets are neither
//! accepted as arguments nor shown.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::operator::{Operator, text, tidegate};
use crate::service::BINARY;

#[test]
fn no_password_stands_on_the_command_line() {
    for arguments in [
        &["tenant", "create", "shop", "--password", "topsecret"][..],
        &["tenant", "adopt", "shop", "--password", "topsecret"],
        &["user", "create", "shop", "ann", "--password", "topsecret"],
        &["user", "create", "shop", "ann", "topsecret"],
        &["user", "password", "shop", "ann", "--password=topsecret"],
        &["user", "password", "shop", "ann", "topsecret"],
    ] {
        let output = tidegate(arguments).stdin(Stdio::null()).output().unwrap();
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {printed}");
        assert!(
            printed.contains("unexpected argument"),
            "{arguments:?}: {printed}"
        );
    }
}

#[test]
fn a_master_key_that_cannot_be_used_is_refused_unseen_and_shown_where_it_comes_from() {
    let flaws = [
        (("topsecret", None), "TIDEGATE_MASTER_KEY is not 32 bytes"),
        (
            ("topsecret", Some("/master.key")),
            "both TIDEGATE_MASTER_KEY and master_key_file",
        ),
    ];
    for ((key, file), flaw) in flaws {
        let mut command = tidegate(&["settings"]);
        command.env("TIDEGATE_MASTER_KEY", key);
        command.envs(file.map(|file| ("TIDEGATE_MASTER_KEY_FILE", file)));
        let output = command.output().unwrap();
        let (shown, printed) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(flaw), "{printed}");
        assert!(shown.contains("# TIDEGATE_MASTER_KEY\n"), "{shown}");
        assert!(!shown.contains("topsecret"), "{shown}");
        let sources = "# TIDEGATE_MASTER_KEY_FILE\n";
        assert_eq!(shown.contains(sources), file.is_some(), "{shown}");
    }
}

#[tokio::test]
async fn an_address_without_a_password_gets_a_hint_where_it_belongs() {
    let mut operator = Operator::new().await;
    let port = operator.cluster.port();
    operator.admin_url = format!("postgresql://postgres@127.0.0.1:{port}/postgres");
    let (code, printed) = operator.fails(&["doctor"], "");
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("(TIDEGATE_ADMIN_URL)"), "{printed}");
}

/// Starts commands of the standard shell at a terminal, whatever shell the user has. The commands
/// are killed after some time.
#[cfg(target_os = "linux")]
fn terminal(operator: &Operator, commands: &str) -> std::process::Child {
    Command::new("timeout")
        .args(["120", "script", "-qec", commands, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TIDEGATE_ADMIN_URL", &operator.admin_url)
        .env(
            "TIDEGATE_MASTER_KEY_FILE",
            operator.folder.path().join("master.key"),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a command at a terminal with one line of input. Returns its exit code and output.
#[cfg(target_os = "linux")]
fn at_a_terminal(operator: &Operator, arguments: &str, typed: &str) -> (Option<i32>, String) {
    let mut child = terminal(operator, &format!("{BINARY} {arguments}"));
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(typed.as_bytes()).unwrap();
    drop(keyboard);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stdout))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_dropped_is_named_again() {
    let operator = Operator::new().await;
    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "owner-password\n",
    );
    operator.succeeds(&["user", "create", "shop", "ann", "--no-password"], "");
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    let create = ["client", "create", "shop", "Till", "--id", "till"];
    operator.succeeds(&[&create[..], &uri].concat(), "");
    for (drop, name, list) in [
        ("client drop till", "till", &["client", "list", "shop"][..]),
        ("user drop shop ann", "ann", &["user", "list", "shop"]),
        ("tenant drop shop", "shop", &["tenant", "list"]),
    ] {
        let (code, shown) = at_a_terminal(&operator, drop, "another\n");
        assert_eq!(code, Some(1), "{drop}: {shown}");
        assert!(shown.contains(&format!("Type {name} to go on")), "{shown}");
        assert!(shown.contains("nothing was dropped"), "{shown}");
        assert!(operator.succeeds(list, "").contains(name), "{drop}");
        let (code, shown) = at_a_terminal(&operator, drop, &format!("{name}\n"));
        assert_eq!(code, Some(0), "{drop}: {shown}");
        assert!(!operator.succeeds(list, "").contains(name), "{drop}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_password_is_asked_for_twice() {
    let operator = Operator::new().await;
    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "owner-password\n",
    );
    let list = ["user", "list", "shop"];
    for (name, typed, code, printed) in [
        ("bea", "topsecret12\nanother12345\n", 1, "differ"),
        (
            "ann",
            "topsecret12\ntopsecret12\n",
            0,
            "ann is a user of shop",
        ),
    ] {
        let (found, shown) = at_a_terminal(&operator, &format!("user create shop {name}"), typed);
        assert_eq!(found, Some(code), "{shown}");
        assert!(shown.contains(&format!("Password of {name}:")), "{shown}");
        assert!(shown.contains(printed), "{shown}");
        assert_eq!(operator.succeeds(&list, "").contains(name), code == 0);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_prompt_that_is_broken_off_leaves_the_terminal_as_it_was() {
    use std::io::{BufRead as _, BufReader, Read as _};

    let operator = Operator::new().await;
    let create = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&create, "owner-password\n");
    let user = format!("{BINARY} user create shop ann");
    // The shell receives the typed line too, and continues.
    let commands = format!("trap : INT QUIT; {user}; echo code $?; stty -a");
    for (signal, code) in [("\x03", 130), ("\x1c", 131)] {
        let mut child = terminal(&operator, &commands);
        let mut shown = BufReader::new(child.stdout.take().unwrap());
        let mut prompt = Vec::new();
        shown.read_until(b':', &mut prompt).unwrap();
        assert_eq!(text(&prompt), "Password of ann:");
        let mut keyboard = child.stdin.take().unwrap();
        keyboard
            .write_all(format!("secret{signal}").as_bytes())
            .unwrap();
        let mut rest = String::new();
        shown.read_to_string(&mut rest).unwrap();
        child.wait().unwrap();
        assert!(rest.contains(&format!("code {code}\r\n")), "{rest}");
        assert!(
            rest.contains(" echo ") && !rest.contains("-echo "),
            "{rest}"
        );
        assert!(!rest.contains("secret"), "{rest}");
    }
    assert!(
        !operator
            .succeeds(&["user", "list", "shop"], "")
            .contains("ann")
    );
}
