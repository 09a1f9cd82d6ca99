//! Tests `tidegate user convert` (docs/OPERATIONS.md, "Groups"): several users at once.

use crate::operator::{Operator, text};

/// The exit code, the output and the error of a conversion of users of the tenant `shop`.
fn convert(operator: &Operator, arguments: &[&str], input: &str) -> (i32, String, String) {
    let all = [&["user", "convert", "shop"][..], arguments].concat();
    let output = operator.run(&all, input);
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

/// The names of the members of the tenant.
fn members(operator: &Operator) -> Vec<String> {
    let listed = operator.succeeds(&["user", "list", "shop"], "");
    let members = listed.lines().filter(|line| line.contains(" member "));
    let name = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    members.map(name).collect()
}

async fn shop(users: &[&str]) -> Operator {
    let operator = Operator::new().await;
    let owner = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&owner, "owner-password\n");
    for name in users {
        operator.succeeds(&["user", "create", "shop", name, "--no-password"], "");
    }
    operator
}

#[tokio::test]
async fn none_is_converted_if_one_would_be_refused() {
    let operator = shop(&["ann", "bea", "cal"]).await;
    let inside = operator.root("shop").await;
    let owned = "CREATE TABLE bottles (id int); ALTER TABLE bottles OWNER TO \"shop/bea\"";
    inside.batch_execute(owned).await.unwrap();
    let to_member = ["--to", "member", "--group", "customers"];
    let names = ["ann", "bea", "zoe", "cal"];
    let (code, printed, error) = convert(&operator, &[&names[..], &to_member].concat(), "");
    assert_eq!((code, &*printed), (1, ""), "{error}");
    let lines: Vec<_> = error.lines().collect();
    for (line, part) in lines
        .iter()
        .zip(["bea: the user owns 1 ", "zoe: ", "no user is converted"])
    {
        assert!(line.contains(part), "{part}: {error}");
    }
    assert_eq!(lines.len(), 3, "{error}");
    assert!(members(&operator).is_empty());

    let all = ["ann", "--names-file", "-", "--reassign"];
    let (code, printed, error) =
        convert(&operator, &[&all[..], &to_member].concat(), "bea\n\nann\n");
    assert_eq!(code, 0, "{error}");
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert_eq!(members(&operator), ["ann", "bea"]);
}

#[tokio::test]
async fn a_conversion_that_fails_names_the_users_that_are_not_converted() {
    let operator = shop(&["ann", "bea", "cal"]).await;
    let control = operator.root("tidegate").await;
    let fault = "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN RAISE EXCEPTION ''the disk is full''; END'; \
        CREATE TRIGGER refuse BEFORE UPDATE ON tidegate.users FOR EACH ROW \
        WHEN (old.name = 'bea') EXECUTE FUNCTION public.refuse()";
    control.batch_execute(fault).await.unwrap();
    let all = [
        "ann",
        "bea",
        "cal",
        "--to",
        "member",
        "--group",
        "customers",
    ];
    let (code, printed, error) = convert(&operator, &all, "");
    assert_eq!(code, 1, "{error}");
    assert_eq!(printed, "ann is a member now; its sessions have ended.\n");
    assert!(
        error.contains("bea: ") && error.contains("the disk is full"),
        "{error}"
    );
    assert!(error.ends_with("not converted: bea, cal\n"), "{error}");
    assert_eq!(members(&operator), ["ann"]);
    let remedy = "DROP TRIGGER refuse ON tidegate.users";
    control.batch_execute(remedy).await.unwrap();
    let (code, printed, error) = convert(&operator, &all, "");
    assert_eq!(code, 0, "{error}");
    assert!(
        printed.starts_with("ann is a member already.\nbea is a member now;"),
        "{printed}"
    );
    assert_eq!(members(&operator), ["ann", "bea", "cal"]);
}
