use std::sync::Arc;

use tidegate_oauth::{
    AuditEvent, AuditKind, EndReason, GrantKind, PurgeBefore, SessionId, Store, Timestamp,
};

use super::samples::NOW;
use crate::stage::Stage;

super::cases!(events_are_appended_and_purged);

fn event(kind: AuditKind) -> AuditEvent {
    AuditEvent {
        at: NOW,
        kind,
        database: Some("shop".to_owned()),
        user: Some("a\0\"lice\\ ü".to_owned()),
        client_id: None,
        session: Some(SessionId::from_bytes([0xfe; 16])),
        address: Some("2001:db8::1".parse().unwrap()),
    }
}

async fn events_are_appended_and_purged(store: Arc<dyn Store>) {
    store.append_audit(&[]).await.unwrap();
    let bare = AuditEvent {
        at: Timestamp::from_millis(NOW.millis() + 1),
        database: None,
        user: None,
        session: None,
        address: None,
        ..event(AuditKind::KeyRotated)
    };
    let opened = event(AuditKind::SessionOpened(GrantKind::Guest));
    store.append_audit(&[opened, bare]).await.unwrap();
    let zero = Timestamp::from_millis(0);
    let before = |audit| PurgeBefore {
        sessions: zero,
        attempts: zero,
        audit,
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

#[tokio::test]
async fn an_operator_can_read_the_log() {
    let stage = Stage::migrated("audit_log").await;
    let events = [
        event(AuditKind::SessionEnded(EndReason::RefreshReuse)),
        event(AuditKind::SignInFailed),
    ];
    stage.store().append_audit(&events).await.unwrap();
    let query = "select concat_ws('|', at at time zone 'UTC', kind, detail, database, user_name, \
        session, address) from tidegate.audit_events order by number";
    let rows = stage.beside.query(query, &[]).await.unwrap();
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
