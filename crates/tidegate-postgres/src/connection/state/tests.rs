//! Tests the state of a session.

use super::*;

fn state() -> SessionState {
    SessionState::new("public", StatementCache::new(1))
}

#[test]
fn a_pure_read_leaves_a_connection_idle_and_another_session_needs_a_reset() {
    let mut state = state();
    state.open_pipeline();
    assert!(state.may_run() && state.is_pipeline_open());
    state.expect_responses(1);
    assert_eq!(state.state(true), ConnectionState::NeedsRecovery);
    state.ready_received(TransactionStatus::Idle);
    assert_eq!(state.state(true), ConnectionState::Idle);
    assert_eq!(state.state(false), ConnectionState::NeedsRecovery);
    assert_eq!(state.side_effects(), SideEffects::Reads);
    state.note_side_effects(SideEffects::Session);
    assert_eq!(state.state(true), ConnectionState::NeedsRecovery);
}

#[test]
fn a_reset_behind_a_statement_counts_once_the_statement_is_answered() {
    let mut state = state();
    state.open_pipeline();
    state.note_side_effects(SideEffects::Session);
    state.expect_responses(3);
    state.begin_reset(SideEffects::Session, 2);
    assert!(!state.is_resetting());
    state.ready_received(TransactionStatus::Idle);
    assert_eq!(state.state(true), ConnectionState::Resetting);
    state.ready_received(TransactionStatus::Idle);
    (0..CHECK_ROWS).for_each(|_| state.count_reset_row());
    state.ready_received(TransactionStatus::Idle);
    assert_eq!(state.state(true), ConnectionState::Resetting);
    state.end_reset(Instant::now());
    assert_eq!(
        (state.state(true), state.side_effects()),
        (ConnectionState::Idle, SideEffects::None)
    );
}

#[test]
fn a_soft_reset_that_finds_prepared_statements_is_followed_by_a_full_one() {
    for lost in [false, true] {
        let mut state = state();
        state.expect_responses(2);
        state.begin_reset(SideEffects::Session, 2);
        state.count_reset_row();
        if lost {
            state.note_check_deallocated();
        } else {
            (0..CHECK_ROWS).for_each(|_| state.count_reset_row());
        }
        (0..2).for_each(|_| state.ready_received(TransactionStatus::Idle));
        state.end_reset(Instant::now());
        assert_eq!(state.state(true), ConnectionState::NeedsRecovery);
        assert_eq!(state.side_effects(), SideEffects::Statements);
    }
}

#[test]
fn a_session_of_members_is_closed_unless_the_check_finds_nothing() {
    for (rows, is_clean) in [(1, false), (CHECK_ROWS, true), (CHECK_ROWS + 1, false)] {
        let mut state = state();
        state.begin_sealing();
        state.expect_responses(2);
        state.begin_reset(SideEffects::Session, 2);
        (0..rows).for_each(|_| state.count_reset_row());
        (0..2).for_each(|_| state.ready_received(TransactionStatus::Idle));
        state.end_reset(Instant::now());
        assert_eq!(state.is_closed(), !is_clean, "{rows}");
    }
}

#[test]
fn only_a_session_of_members_must_be_reset_after_a_while() {
    let mut state = state();
    let later = Instant::now() + LONGEST_WITHOUT_RESET;
    assert!(!state.is_periodic_reset_due(later));
    state.begin_sealing();
    assert!(state.is_periodic_reset_due(later));
    assert!(!state.is_periodic_reset_due(state.reset_at));
}

#[test]
fn what_no_reset_removes_costs_the_connection() {
    let mut state = state();
    state.note_side_effects(SideEffects::Permanent);
    state.expect_responses(2);
    state.begin_reset(SideEffects::Permanent, 2);
    (0..2).for_each(|_| state.ready_received(TransactionStatus::Idle));
    state.end_reset(Instant::now());
    assert_eq!(state.state(true), ConnectionState::Closed);
    assert!(!state.may_run());
}

#[test]
fn a_closed_connection_stays_closed() {
    let mut state = state();
    state.open_pipeline();
    state.close();
    state.expect_responses(1);
    state.ready_received(TransactionStatus::Idle);
    state.end_drain();
    assert_eq!(state.state(true), ConnectionState::Closed);
    assert!(state.may_run(), "PostgreSQL has not answered");
}

#[test]
fn a_pipeline_that_was_taken_back_was_never_there() {
    let mut state = state();
    state.open_pipeline();
    state.withdraw_pipeline();
    assert_eq!(state.state(true), ConnectionState::Idle);
    assert!(!state.may_run());
}
