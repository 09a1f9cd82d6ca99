//! Compares which types can be sorted and grouped with PostgreSQL.

use tidegate_filter::{is_groupable, is_sortable};

use crate::fixture;

const TYPES: &str =
    "create extension citext; create schema ext; create extension hstore schema ext;
    create type mood as enum ('sad', 'ok'); create domain positive as int check (value > 0);
    create type pair as (a int, b text); create type spot as (a int, p point);
    create type papers as (a int, j json); create type stamps as (a int, x xid);
    create domain paper as json; create domain papers_of_both as papers[];";

const COLUMNS: &str = "int4 numeric float8 bool text varchar(3) char(3) name citext mood positive uuid bytea \
    interval date time timetz timestamptz json jsonb xml jsonpath int4[] text[] json[] xml[] point[] mood[] \
    citext[] int4range numrange[] int4multirange pair spot papers stamps pair[] papers[] point line lseg box \
    path polygon circle inet cidr macaddr macaddr8 bit(3) varbit money oid regclass pg_lsn \"char\" \
    tsvector tsquery xid refcursor txid_snapshot aclitem tid int2vector oidvector ext.hstore paper \
    papers_of_both";

#[tokio::test]
async fn orders_and_groups_are_those_of_postgresql() {
    let names: Vec<_> = COLUMNS.split_whitespace().collect();
    let columns = names.iter().enumerate();
    let columns: Vec<_> = columns.map(|(at, name)| format!("c{at} {name}")).collect();
    let setup = format!("{TYPES} create table odd ({})", columns.join(", "));
    let client = fixture::database("filter_orders", &setup).await;
    let columns = fixture::columns(&client, "odd").await;
    let schema = fixture::schema("public", &[("odd", columns)], &[]);
    let odd = schema.relation(schema.find("odd").unwrap());
    for (at, name) in names.iter().enumerate() {
        let column = &odd.columns[at];
        // PostgreSQL compares elements only if there are two rows without NULL.
        let row = match *name {
            "spot" => "'(1,\"(1,2)\")'",
            "papers" | "stamps" => "'(1,1)'",
            "papers[]" | "papers_of_both" => "'{\"(1,1)\"}'",
            "json[]" | "xml[]" => "'{1}'",
            "point[]" => "'{\"(1,2)\"}'",
            _ => "null",
        };
        let fill = format!("truncate odd; insert into odd (c{at}) values ({row}), ({row})");
        client.batch_execute(&fill).await.unwrap();
        let order = format!("select 1 from odd order by c{at}");
        let ordered = client.batch_execute(&order).await;
        assert_eq!(is_sortable(column), ordered.is_ok(), "{name}: {ordered:?}");
        let group = format!("select 1 from odd group by c{at}");
        let grouped = client.batch_execute(&group).await;
        assert_eq!(is_groupable(column), grouped.is_ok(), "{name}: {grouped:?}");
    }
}
