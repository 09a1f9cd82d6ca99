use std::sync::Arc;

use tidegate_identity::{AuditEvent, AuditKind, AuditSince, EndReason, SessionId, Timestamp};
use tidegate_oauth::{IssuerStore, PurgeBefore};

use super::samples::NOW;
use crate::fixture::Fixture;

super::cases!(
    events_are_appended_and_purged,
    a_tenant_reads_its_own_events_page_by_page
);

fn event(kind: AuditKind) -> AuditEvent {
    AuditEvent {
        at: NOW,
        kind,
        detail: None,
        database: Some("shop".to_owned()),
        user: Some("a\0\"lice\\ ü".to_owned()),
        client_id: None,
        session: Some(SessionId::from_bytes([0xfe; 16])),
        address: Some("2001:db8::1".parse().unwrap()),
        actor: None,
    }
}

async fn events_are_appended_and_purged(store: Arc<dyn IssuerStore>) {
    store.append_audit(&[]).await.unwrap();
    let bare = AuditEvent {
        at: Timestamp::from_millis(NOW.millis() + 1),
        database: None,
        user: None,
        session: None,
        address: None,
        ..event(AuditKind::KeyRotated)
    };
    let opened = event(AuditKind::SessionOpened("guest"));
    store.append_audit(&[opened, bare]).await.unwrap();
    let zero = Timestamp::from_millis(0);
    let before = |audit| PurgeBefore {
        sessions: zero,
        attempts: zero,
        audit,
        flows: zero,
    };
    assert_eq!(store.purge(before(NOW)).await.unwrap(), 0);
    assert_eq!(
        store
            .purge(before(Timestamp::from_millis(NOW.millis() + 1)))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        store
            .purge(before(Timestamp::from_millis(i64::MAX)))
            .await
            .unwrap(),
        1
    );
}

async fn a_tenant_reads_its_own_events_page_by_page(store: Arc<dyn IssuerStore>) {
    let later = |millis: i64| Timestamp::from_millis(NOW.millis() + millis);
    let mine = |millis| AuditEvent {
        at: later(millis),
        actor: Some("shop".to_owned()),
        ..event(AuditKind::SessionEnded(EndReason::Revoked))
    };
    let other = AuditEvent {
        database: Some("other".to_owned()),
        ..event(AuditKind::SignInFailed)
    };
    let reported = AuditEvent {
        detail: Some("https://id.example".to_owned()),
        at: later(2),
        ..event(AuditKind::IdentityLinked)
    };
    store
        .append_audit(&[mine(0), other, mine(1), reported])
        .await
        .unwrap();
    let from = |since, limit| store.audit("shop", since, limit);
    let first = from(AuditSince::Number(0), 2).await.unwrap();
    assert_eq!(first.entries.len(), 2);
    let entry = &first.entries[0];
    assert_eq!((entry.at, entry.event.as_str()), (NOW, "session_ended"));
    assert_eq!(entry.detail.as_deref(), Some("revoked"));
    assert_eq!(entry.actor.as_deref(), Some("shop"));
    assert_eq!(entry.session, Some(SessionId::from_bytes([0xfe; 16])));
    assert_eq!(entry.address, Some("2001:db8::1".parse().unwrap()));
    assert_eq!(first.next, first.entries[1].number);
    let rest = from(AuditSince::Number(first.next), 2).await.unwrap();
    assert_eq!(rest.entries.len(), 1);
    assert_eq!(rest.entries[0].at, later(2));
    let detail = rest.entries[0].detail.as_deref();
    assert_eq!(detail, Some("https://id.example"));
    let end = from(AuditSince::Number(rest.next), 2).await.unwrap();
    assert_eq!((end.entries, end.next), (vec![], rest.next));
    let beyond = from(AuditSince::Number(u64::MAX), 2).await.unwrap();
    assert_eq!(beyond.entries, []);
    let since = from(AuditSince::Time(later(1)), 9).await.unwrap();
    assert_eq!(since.entries.len(), 2);
    let none = from(AuditSince::Time(later(9)), 9).await.unwrap();
    assert_eq!((none.entries, none.next), (vec![], rest.next));
    let nowhere = store.audit("nowhere", AuditSince::Number(0), 9).await;
    assert_eq!(nowhere.unwrap().entries, []);
}

/// Numbers are assigned before their transactions commit, so a reader that does not wait could miss
/// an event.
#[tokio::test]
async fn a_reader_waits_for_events_being_written() {
    let fixture = Fixture::migrated("audit_pages").await;
    let store = fixture.store();
    let slow = "begin; select pg_advisory_xact_lock_shared(x'7469646561756474'::bigint); \
        insert into tidegate.audit_events (at, kind, database) values (now(), 'slow', 'shop')";
    fixture.beside.batch_execute(slow).await.unwrap();
    store
        .append_audit(&[event(AuditKind::SignInFailed)])
        .await
        .unwrap();
    let mut reader = Box::pin(store.audit("shop", AuditSince::Number(0), 9));
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut reader).await;
    assert!(early.is_err(), "it did not wait for the event under way");
    fixture.beside.batch_execute("commit").await.unwrap();
    let page = reader.await.unwrap();
    let names: Vec<_> = page.entries.into_iter().map(|e| e.event).collect();
    assert_eq!(names, ["slow", "sign_in_failed"]);
}

#[tokio::test]
async fn an_operator_can_read_the_log() {
    let fixture = Fixture::migrated("audit_log").await;
    let events = [
        event(AuditKind::SessionEnded(EndReason::RefreshReuse)),
        event(AuditKind::SignInFailed),
    ];
    fixture.store().append_audit(&events).await.unwrap();
    let query = "select concat_ws('|', at at time zone 'UTC', kind, detail, database, user_name, \
        session, address) from tidegate.audit_events order by number";
    let rows = fixture.beside.query(query, &[]).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        lines,
        [
            "2026-11-20 11:20:03.042|refresh_reuse|refresh_reuse|shop|a\u{fffd}\"lice\\ ü|\
             fefefefe-fefe-fefe-fefe-fefefefefefe|2001:db8::1",
            "2026-11-20 11:20:03.042|sign_in_failed|shop|a\u{fffd}\"lice\\ ü|\
             fefefefe-fefe-fefe-fefe-fefefefefefe|2001:db8::1",
        ]
    );
}
