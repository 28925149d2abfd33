//! Shares of the budget, and that what is held is given back.

use super::*;

/// What an account holds once it has taken all it can get, a little at a time.
fn fill(account: &MemoryAccount) -> MemoryReservation {
    let mut held = account.reservation();
    while held.try_grow(1).is_ok() {}
    held
}

#[test]
fn greedy_accounts_get_equal_shares_and_leave_one_free() {
    let budget = MemoryBudget::new(12_800);
    let one = fill(&budget.account());
    assert_eq!(one.bytes(), 6_000, "a half, without the spare part");
    let two = fill(&budget.account());
    assert_eq!(two.bytes(), 3_000, "as much as it leaves free");
    assert_eq!(budget.held(), 9_000);
    // The greediest is refused, a new one is not.
    assert_eq!(one.account().reserve(1).err(), Some(NoMemory::Share));
    assert!(budget.account().reserve(1_500).is_ok());
    drop(one);
    // What was given back can be held by the other.
    let mut two = two;
    while two.try_grow(1).is_ok() {}
    let one = fill(&budget.account());
    assert_eq!((two.bytes(), one.bytes()), (6_000, 3_000));
    drop((one, two));
    assert_eq!((budget.held(), budget.refused() > 0), (0, true));
}

#[test]
fn connections_of_one_client_count_together() {
    let budget = MemoryBudget::new(1_600);
    let client = budget.account();
    let held: Vec<_> = (0..5).map(|_| fill(&client.child())).collect();
    assert_eq!(client.held(), 750);
    assert_eq!(held.iter().map(MemoryReservation::bytes).sum::<usize>(), 750);
    assert!(!client.child().has_room(1));
    assert!(budget.account().has_room(750) && !budget.account().has_room(751));
}

#[test]
fn accounts_that_hold_little_have_a_part_that_others_leave_alone() {
    let budget = MemoryBudget::new(1 << 20);
    let (modest, log) = (budget.account(), budget.account_with_limit(1 << 20));
    let log = fill(&log);
    let crowd: Vec<_> = std::iter::from_fn(|| budget.account().open(1 << 10).ok()).collect();
    assert_eq!(budget.held(), 15 << 16, "the last sixteenth is free: {} {}", log.bytes(), crowd.len());
    let little = modest.reserve(4 << 10).unwrap();
    assert_eq!(modest.reserve(1).err(), Some(NoMemory::Share), "it is for those that hold little");
    assert!(budget.account().reserve(4 << 10).is_ok());
    drop((log, crowd, little));
    assert_eq!(budget.held(), 0);
}

#[test]
fn an_account_with_a_limit_ignores_its_share() {
    let budget = MemoryBudget::new(1_000);
    let log = budget.account_with_limit(900);
    assert_eq!(fill(&log).bytes(), 900);
    let log = log.reserve(900).unwrap();
    assert_eq!(log.account().reserve(1).err(), Some(NoMemory::Share));
    assert_eq!(budget.account().reserve(101).err(), Some(NoMemory::Total));
    drop(log);
    assert_eq!(budget.held(), 0);
}

#[test]
fn what_is_refused_leaves_no_trace() {
    let budget = MemoryBudget::new(100);
    let (client, mut held) = (budget.account(), budget.account().reservation());
    let child = client.child();
    assert_eq!(child.reserve(101).err(), Some(NoMemory::Total));
    held.grow(150);
    assert_eq!(child.reserve(1).err(), Some(NoMemory::Total));
    assert_eq!((child.held(), client.held(), budget.held()), (0, 0, 150));
    held.shrink(1_000);
    assert_eq!((held.bytes(), budget.held()), (0, 0));
    assert!(held.try_resize(47).is_ok() && held.try_resize(48).is_err() && held.try_resize(20).is_ok());
    assert_eq!(budget.held(), 20);
}

#[test]
fn a_message_is_held_until_its_last_clone_is_dropped() {
    let budget = MemoryBudget::new(1_000);
    let account = budget.account();
    let message = account.hold(vec![7; 300].into()).unwrap();
    let part = message.slice(10..20);
    drop(message);
    assert_eq!(budget.held(), 300);
    drop(part);
    assert_eq!(budget.held(), 0);
    assert_eq!(account.hold(vec![7; 1_001].into()), Err(NoMemory::Total));
}

#[test]
fn threads_take_and_give_exactly() {
    let budget = MemoryBudget::new(10_000);
    let client = budget.account();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let account = client.child();
                for bytes in 0..10_000 {
                    let _ = account.reserve(bytes % 3_000);
                    assert!(budget.held() <= 10_000 + 8 * 3_000);
                }
            });
        }
    });
    assert_eq!((budget.held(), client.held()), (0, 0));
}
