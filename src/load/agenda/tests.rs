use super::*;

const START: Stamp = Stamp::from_millis(1000);

fn of(users: u32, shards: u32, shard: u32, units: u64) -> ClosedLoop {
    ClosedLoop {
        users,
        shards,
        shard,
        units,
        think: Duration::ZERO,
        spread: Duration::from_micros(50),
        ..ClosedLoop::of(users, units)
    }
}

fn paced(users: u32, shards: u32, shard: u32) -> ClosedLoop {
    let pace = Some(Duration::from_millis(100));
    ClosedLoop { pace, duration: Duration::from_secs(1), ..of(users, shards, shard, u64::MAX) }
}

fn begun(mut agenda: Agenda) -> Agenda {
    agenda.begin(START);
    agenda
}

/// Serves every request at once and collects the indices.
fn drain(agenda: &mut Agenda) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(at) = agenda.next() {
        let due = agenda.pop(at).unwrap();
        seen.push(due.index);
        agenda.on_done(due.user, at + Duration::from_millis(1), Duration::ZERO);
    }
    seen
}

#[test]
fn users_of_all_shards_send_each_index_once() {
    for shards in [1, 2, 5] {
        let mut all: Vec<u64> = (0..shards)
            .flat_map(|shard| drain(&mut begun(Agenda::closed(&of(5, shards, shard, 23)))))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..23).collect::<Vec<_>>());
    }
}

#[test]
fn first_sends_are_spread_and_later_ones_follow_the_answer() {
    let mut agenda = begun(Agenda::closed(&of(2, 1, 0, 100)));
    assert_eq!(agenda.pop(START).unwrap().index, 0);
    assert_eq!(agenda.pop(START), None);
    let second = agenda.next().unwrap();
    assert_eq!(second, START + Duration::from_micros(50));
    assert_eq!(
        agenda.pop(second).unwrap(),
        Due { index: 1, turn: 0, plan: second, ready: second, user: Some(1) }
    );
    let end = START + Duration::from_millis(7);
    agenda.on_done(Some(0), end, Duration::ZERO);
    assert_eq!(agenda.pop(end).unwrap(), Due { index: 2, turn: 0, plan: end, ready: end, user: Some(0) });
}

#[test]
fn paced_users_of_all_shards_plan_equal_gaps() {
    for shards in [1, 2, 3] {
        let mut all = Vec::new();
        for shard in 0..shards {
            let mut agenda = begun(Agenda::closed(&paced(4, shards, shard)));
            while let Some(at) = agenda.next() {
                let due = agenda.pop(at).unwrap();
                assert_eq!(due.plan, due.ready, "nobody waits");
                all.push((due.index, due.plan));
                agenda.on_done(due.user, at + Duration::from_millis(7), Duration::ZERO);
            }
        }
        all.sort_unstable();
        let expected = (0..40).map(|index| (index, START + Duration::from_millis(25 * index)));
        assert_eq!(all, expected.collect::<Vec<_>>(), "{shards} shards");
    }
}

#[test]
fn a_paced_user_that_waits_keeps_its_plan_and_sends_at_once_when_it_is_free() {
    let mut agenda = begun(Agenda::closed(&paced(1, 1, 0)));
    let ms = |ms| START + Duration::from_millis(ms);
    assert!(agenda.pop(START).is_some());
    agenda.on_done(Some(0), ms(250), Duration::ZERO);
    assert_eq!(agenda.pop(ms(249)), None);
    let second = Due { index: 1, turn: 0, plan: ms(100), ready: ms(250), user: Some(0) };
    assert_eq!(agenda.pop(ms(251)), Some(second), "its lateness is the server's until it is free");
    agenda.on_done(Some(0), ms(260), Duration::ZERO);
    assert_eq!(agenda.next(), Some(ms(260)), "what was planned for 200 is still to be sent");
    agenda.pop(ms(260)).unwrap();
    agenda.on_done(Some(0), ms(270), Duration::ZERO);
    assert_eq!(agenda.next(), Some(ms(300)), "back in step");
}

#[test]
fn what_paced_users_planned_in_time_is_sent_after_the_end_or_counted() {
    let ms = |ms| START + Duration::from_millis(ms);
    let mut agenda = begun(Agenda::closed(&paced(2, 1, 0)));
    let (first, second) = (agenda.pop(START).unwrap(), agenda.pop(ms(50)).unwrap());
    agenda.on_done(first.user, ms(1200), Duration::ZERO);
    let late = agenda.pop(ms(1200)).unwrap();
    assert_eq!((late.index, late.plan), (2, ms(100)), "planned in time, sent in the drain");
    // User 1 is still in flight with its first, user 0 with its second: 9 and 8 of ten each are left.
    let mut left = Vec::new();
    while let Some(due) = agenda.pop_unsent(ms(3000)) {
        left.push(due.index);
    }
    left.sort_unstable();
    assert_eq!(left, (3..20).collect::<Vec<_>>());
    assert!(agenda.is_empty());
    assert_eq!(second.index, 1);
    agenda.stop();
    assert_eq!(agenda.pop_unsent(Stamp::MAX), None);
}

fn reach(units: u64, length: Duration) -> Reach {
    Reach { units, length }
}

#[test]
fn an_open_loop_goes_on_with_its_schedule_when_the_end_is_moved() {
    let schedule: Schedule = Box::new((0..100u64).map(|i| (i, i * 1_000_000)));
    let mut agenda = begun(Agenda::open(schedule));
    agenda.set_reach(reach(30, Duration::MAX), START);
    let mut all = drain(&mut agenda);
    assert_eq!(all.len(), 30);
    agenda.set_reach(reach(60, Duration::from_millis(50)), START);
    all.extend(drain(&mut agenda));
    agenda.set_reach(reach(200, Duration::MAX), START);
    assert_eq!(agenda.pop(Stamp::MAX).unwrap().plan, START + Duration::from_millis(50));
    all.extend([50].into_iter().chain(drain(&mut agenda)));
    assert_eq!(all, (0..100).collect::<Vec<_>>());
}

#[test]
fn users_at_the_end_go_on_when_it_is_moved() {
    // Of five users the last two have no request at first.
    let mut agenda = begun(Agenda::closed(&of(5, 1, 0, 3)));
    assert_eq!(agenda.users(), 5);
    let mut all = drain(&mut agenda);
    assert_eq!(all, [0, 1, 2]);
    let later = START + Duration::from_secs(1);
    agenda.set_reach(reach(12, Duration::MAX), later);
    assert_eq!(agenda.next(), Some(later), "nobody was late: there was nothing to send before");
    all.extend(drain(&mut agenda));
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());
    agenda.set_reach(reach(12, Duration::MAX), later);
    assert!(agenda.is_empty());
}

#[test]
fn paced_users_keep_their_plans_when_the_end_is_moved() {
    let mut agenda = begun(Agenda::closed(&paced(2, 1, 0)));
    let all = drain(&mut agenda);
    assert_eq!(all.len(), 20);
    agenda.set_reach(reach(u64::MAX, Duration::from_secs(2)), START + Duration::from_millis(900));
    assert_eq!(agenda.pop(Stamp::MAX).unwrap().plan, START + Duration::from_secs(1));
}

#[test]
fn nothing_is_planned_at_or_after_the_end() {
    let limit = ClosedLoop { duration: Duration::from_millis(10), ..of(1, 1, 0, u64::MAX) };
    let mut agenda = begun(Agenda::closed(&limit));
    assert!(agenda.pop(START).is_some());
    agenda.on_done(Some(0), START + Duration::from_millis(10), Duration::ZERO);
    assert!(agenda.is_empty());
}

#[test]
fn an_open_loop_keeps_its_plan_when_it_is_late() {
    let schedule: Schedule = Box::new([(3, 0), (7, 2_000_000)].into_iter());
    let mut agenda = begun(Agenda::open(schedule));
    let late = START + Duration::from_secs(1);
    assert_eq!(agenda.pop(late), Some(Due { index: 3, turn: 0, plan: START, ready: START, user: None }));
    assert_eq!(agenda.pop(late).unwrap().plan, START + Duration::from_millis(2));
    assert!(agenda.is_empty());
}

#[test]
fn the_schedule_is_walked_ahead_without_losing_its_place() {
    let schedule: Schedule = Box::new((0..3000u64).map(|i| (2 * i, i * 1000)));
    let mut agenda = Agenda::open(schedule);
    let mut last = None;
    let mut ahead = 0;
    while let Some(index) = agenda.upcoming_after(last) {
        assert_eq!(index, 2 * ahead);
        last = Some(index);
        ahead += 1;
    }
    assert_eq!(ahead, AHEAD as u64);
    agenda.begin(START);
    assert_eq!(drain(&mut agenda), (0..3000).map(|i| 2 * i).collect::<Vec<u64>>());
}

#[test]
fn a_stopped_agenda_gives_nothing() {
    let mut agenda = begun(Agenda::closed(&of(1, 1, 0, 10)));
    agenda.stop();
    assert_eq!(agenda.pop(Stamp::MAX), None);
}

#[test]
fn users_of_all_shards_come_in_at_equal_gaps() {
    for shards in [1, 2, 3] {
        let mut first = Vec::new();
        for shard in 0..shards {
            let of = ClosedLoop { ramp: Some(Duration::from_millis(40)), ..of(5, shards, shard, 100) };
            let mut agenda = begun(Agenda::closed(&of));
            while let Some(at) = agenda.next() {
                let due = agenda.pop(at).unwrap();
                first.push((due.index, due.plan));
            }
        }
        first.sort_unstable();
        let expected: Vec<_> = (0..5).map(|user| (user, START + Duration::from_millis(10 * user))).collect();
        assert_eq!(first, expected, "{shards} shards");
    }
    // Who would come in after the end does not.
    let of = ClosedLoop {
        ramp: Some(Duration::from_millis(40)),
        duration: Duration::from_millis(25),
        ..of(5, 1, 0, 100)
    };
    let mut agenda = begun(Agenda::closed(&of));
    let came = std::iter::from_fn(|| agenda.pop(Stamp::MAX)).count();
    assert_eq!(came, 3);
}
