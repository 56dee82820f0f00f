use super::*;
use crate::outcome::Limit;

fn settled(step: Option<Step>) -> (Option<ShardIndex>, Evidence) {
    match step {
        Some(Step::Ask(Command::Settle { shard, evidence, .. })) => (shard, evidence),
        other => panic!("{other:?}"),
    }
}

/// A save whose puts and checks have all begun and are answered, but for those of `left`.
fn begun(rig: &mut Rig, owner: u128, save: &mut Transfer, left: &[ObjectName]) -> Vec<ObjectName> {
    let mut begun = vec![];
    while let Some(step) = rig.skip_asks(owner, save) {
        let object = object_of(&step);
        begun.push(object);
        if !left.contains(&object) {
            rig.perform(save, &step);
        }
    }
    begun
}

#[test]
fn prepare_comes_before_any_byte() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let Some(Step::Ask(Command::Prepare(prepare))) = save.next_step() else { panic!() };
    assert_eq!(save.next_step(), None);
    assert_eq!((prepare.digest, prepare.shards.clone()), (small().digest(), vec![S0]));
    let (op, answer) = rig.ask(1, Command::Prepare(prepare));
    save.answered(op, answer);
    assert!(matches!(save.next_step(), Some(Step::Put { .. })));
}

#[test]
fn whole_save_is_published_and_lets_go() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let steps = rig.drive(1, &mut save);
    let puts = steps.iter().filter(|step| matches!(step, Step::Put { .. }));
    assert_eq!(puts.count(), 4);
    assert_eq!(steps.len(), 8);
    let published = Published::Here { expired: None, follow_ups: false };
    let checkpoint = save.checkpoint().unwrap();
    assert_eq!(save.report(), Some(Ended::Saved { checkpoint, published }));
    assert_eq!(save.evidence(S0), Some(Evidence::QuiescedSuccess));
    assert_eq!((rig.pins(), rig.engine.catalog().gauges().turns), (0, 1));
}

/// Protocol 3: index 0 of each shard is that shard's last put, after the others are confirmed.
#[test]
fn manifest_object_is_put_last_of_its_shard() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&pair(), 1)).unwrap();
    let puts = rig.all_steps(1, &mut save);
    let last = |shard| puts.iter().any(|step| object_of(step) == private(shard, 0));
    assert_eq!((puts.len(), last(0), last(1)), (6, false, false));
    for step in &puts {
        rig.perform(&mut save, step);
    }
    let checks = rig.all_steps(1, &mut save);
    assert_eq!(checks.len(), 6);
    for step in &checks[..5] {
        rig.perform(&mut save, step);
    }
    let first: Vec<_> = rig.all_steps(1, &mut save).iter().map(object_of).collect();
    assert_eq!(first, [private(0, 0)]);
    rig.perform(&mut save, &checks[5]);
    let second: Vec<_> = rig.all_steps(1, &mut save).iter().map(object_of).collect();
    assert_eq!(second, [private(1, 0)]);
}

/// Protocol 3: confirmed means a clean answer to the one put, and then an equal size.
#[test]
fn anything_but_a_clean_confirmed_success_fails_the_shard() {
    let put = |answer| Completion::Put { answer, retired: true };
    let check = Completion::Checked;
    let bytes = small().private_objects(S0).nth(1).unwrap().stored_bytes() + 1;
    let cases = [
        (put(PutAnswer::Failed), Fault::Unknown),
        (put(PutAnswer::NotStarted), Fault::NotStarted),
        (check(CheckAnswer::Absent), Fault::Absent),
        (check(CheckAnswer::Unknown), Fault::Unknown),
        (check(CheckAnswer::Unreadable), Fault::Unreadable),
        (check(CheckAnswer::Present { bytes }), Fault::WrongSize { bytes }),
    ];
    for (completion, why) in cases {
        let mut rig = Rig::new();
        let mut save = Transfer::save(request(&small(), 1)).unwrap();
        let object = private(0, 1);
        while let Some(step) = rig.skip_asks(1, &mut save) {
            let is_put = matches!(step, Step::Put { .. });
            let spoils_put = matches!(completion, Completion::Put { .. });
            if object_of(&step) == object && is_put == spoils_put {
                save.completed(object, completion);
                break;
            }
            rig.perform(&mut save, &step);
        }
        assert_eq!(rig.all_steps(1, &mut save), [], "{completion:?}");
        let checkpoint = save.checkpoint().unwrap();
        assert_eq!(save.report(), Some(Ended::Failed { checkpoint, object, why }));
        assert_eq!(save.evidence(S0), Some(Evidence::QuiescedFailure));
        assert!(save.report().unwrap().needs_new_attempt());
        assert_eq!((rig.pins(), rig.put.contains(&(checkpoint, private(0, 0)))), (0, false));
    }
}

/// Protocol 5, I16: a failed shard is in doubt until everything that began is retired.
#[test]
fn failure_is_in_doubt_until_everything_begun_is_retired() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let puts: Vec<_> = rig.all_steps(1, &mut save).iter().map(object_of).collect();
    let [first, second, third] = puts[..] else { panic!("{puts:?}") };
    save.completed(first, put_failed(true));
    assert_eq!(save.evidence(S0), Some(Evidence::Quiescing));
    assert_eq!((save.next_step(), save.may_reuse_source(S0)), (None, false));
    save.completed(second, put_failed(false));
    assert_eq!(settled(rig.step(1, &mut save)), (Some(S0), Evidence::InDoubt));
    assert_eq!((save.next_step(), save.in_flight()), (None, 2));
    assert!(rig.engine.catalog().gauges().bytes_in_doubt > 0);
    save.completed(third, STORED);
    assert_eq!((save.next_step(), save.is_done()), (None, false));
    save.completed(second, Completion::Retired);
    assert!(save.may_reuse_source(S0));
    assert_eq!(settled(rig.step(1, &mut save)), (Some(S0), Evidence::QuiescedFailure));
    assert!(matches!(rig.step(1, &mut save), Some(Step::Ask(Command::Release { .. }))));
    assert!(matches!(save.report(), Some(Ended::Failed { why: Fault::Unknown, .. })));
    assert_eq!(rig.engine.catalog().gauges().bytes_in_doubt, 0);
}

#[test]
fn save_that_never_began_is_not_exposed() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let step = rig.skip_asks(1, &mut save).unwrap();
    let answer = PutAnswer::NotStarted;
    save.completed(object_of(&step), Completion::Put { answer, retired: false });
    assert_eq!(settled(rig.step(1, &mut save)), (Some(S0), Evidence::NotExposed));
    rig.drive(1, &mut save);
    assert!(matches!(save.report(), Some(Ended::Failed { why: Fault::NotStarted, .. })));
}

/// A retired put was begun, whatever a late answer says: final evidence stays what it is.
#[test]
fn final_evidence_absorbs() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let object = object_of(&rig.skip_asks(1, &mut save).unwrap());
    save.completed(object, Completion::Retired);
    save.cancel();
    assert_eq!(save.evidence(S0), Some(Evidence::QuiescedFailure));
    for answer in [PutAnswer::NotStarted, PutAnswer::Stored, PutAnswer::Failed] {
        let mut late = save.clone();
        late.completed(object, Completion::Put { answer, retired: false });
        assert_eq!(late.evidence(S0), Some(Evidence::QuiescedFailure));
    }
    let mut save = Transfer::save(request(&planned(&examples::convolutions(), 3), 2)).unwrap();
    let mut last = None;
    while let Some(step) = rig.skip_asks(1, &mut save) {
        match step {
            Step::Check { object, bytes } if object == private(0, 0) => last = Some(bytes),
            other => rig.perform(&mut save, &other),
        }
    }
    save.cancel();
    assert_eq!(save.evidence(S0), Some(Evidence::QuiescedFailure));
    save.completed(private(0, 0), present(last.unwrap()));
    assert_eq!(save.evidence(S0), Some(Evidence::QuiescedFailure));
}

#[test]
fn late_doubled_and_unknown_completions_change_nothing() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let object = object_of(&rig.skip_asks(1, &mut save).unwrap());
    let before = save.clone();
    save.completed(private(0, 7), STORED);
    save.completed(private(9, 0), put_failed(true));
    save.completed(private(0, 1), put_failed(true));
    save.completed(object, present(1));
    save.completed(object, arrived(object, 1));
    save.agreed(false);
    assert!(!save.choose(None) && !save.choose_longest());
    save.manifest_read(None);
    assert_eq!(save, before);
    let bytes = small().shared_objects().next().unwrap().payload_bytes;
    rig.do_put(&save, object, bytes);
    save.completed(object, STORED);
    let after = save.clone();
    assert_ne!(after, before);
    for late in [STORED, put_failed(false), put_failed(true), Completion::Retired] {
        save.completed(object, late);
        assert_eq!(save, after);
    }
    rig.drive(1, &mut save);
    let end = save.clone();
    save.completed(object, put_failed(false));
    save.cancel();
    save.proceed();
    save.published_elsewhere();
    assert_eq!((save.report(), save.next_step()), (end.report(), None));
    assert_eq!(save.evidence(S0), Some(Evidence::QuiescedSuccess));
}

/// Retirement may be known before the answer is.
#[test]
fn retirement_may_overtake_the_answer() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    while let Some(step) = rig.skip_asks(1, &mut save) {
        if let Step::Put { object, .. } = step {
            save.completed(object, Completion::Retired);
        }
        rig.perform(&mut save, &step);
    }
    assert!(matches!(save.report(), Some(Ended::Saved { .. })));
}

/// Success is completed and retired: a confirmed object whose source is still read is neither.
#[test]
fn success_waits_for_retirement() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    while let Some(step) = rig.skip_asks(1, &mut save) {
        if let Step::Put { object, bytes } = step {
            rig.do_put(&save, object, bytes);
            save.completed(object, Completion::Put { answer: PutAnswer::Stored, retired: false });
        } else {
            rig.perform(&mut save, &step);
        }
    }
    assert_eq!((save.evidence(S0), save.in_flight()), (Some(Evidence::Active), 4));
    let mut cancelled = save.clone();
    cancelled.cancel();
    assert_eq!(cancelled.evidence(S0), Some(Evidence::InDoubt));
    let objects: Vec<_> = rig.store.keys().map(|(_, object)| *object).collect();
    for object in objects {
        assert!(!save.may_reuse_source(S0));
        save.completed(object, Completion::Retired);
        cancelled.completed(object, Completion::Retired);
    }
    assert_eq!(cancelled.evidence(S0), Some(Evidence::QuiescedSuccess));
    rig.drive(1, &mut save);
    assert!(matches!(save.report(), Some(Ended::Saved { .. })));
}

fn ranks(manifest: &Arc<Manifest>, number: u128) -> [Transfer; 2] {
    [S0, S1].map(|shard| {
        let mut rank = request(manifest, number);
        rank.shards = vec![shard];
        rank.has_peers = true;
        if shard != S0 {
            rank.publication = Publication::Elsewhere;
        }
        Transfer::save(rank).unwrap()
    })
}

/// Two owners join one attempt; the one that publishes waits for the other's evidence.
#[test]
fn two_owners_save_one_checkpoint() {
    let mut rig = Rig::new();
    let [mut one, mut other] = ranks(&pair(), 1);
    let Some(Step::Agree { checkpoint }) = rig.skip_asks(1, &mut one) else { panic!() };
    assert_eq!(one.next_step(), None);
    assert_eq!(rig.skip_asks(2, &mut other), Some(Step::Agree { checkpoint }));
    one.agreed(true);
    other.agreed(true);
    let steps = rig.drive(1, &mut one);
    assert_eq!(steps.last(), Some(&Step::Wait));
    assert_eq!((one.is_done(), one.may_reuse_source(S0)), (false, true));
    rig.drive(2, &mut other);
    let published = Published::Elsewhere;
    assert_eq!(other.report(), Some(Ended::Saved { checkpoint, published }));
    assert_eq!(one.next_step(), None);
    one.proceed();
    rig.drive(1, &mut one);
    let published = Published::Here { expired: None, follow_ups: false };
    assert_eq!(one.report(), Some(Ended::Saved { checkpoint, published }));
    assert_eq!(rig.pins(), 0);
}

#[test]
fn wait_ends_when_another_rank_published_or_by_cancel() {
    for elsewhere in [true, false] {
        let mut rig = Rig::new();
        let [mut one, mut other] = ranks(&pair(), 1);
        rig.skip_asks(1, &mut one);
        rig.skip_asks(2, &mut other);
        one.agreed(true);
        rig.drive(1, &mut one);
        let published = if elsewhere {
            one.published_elsewhere();
            Published::Elsewhere
        } else {
            one.cancel();
            Published::Withheld
        };
        rig.drive(1, &mut one);
        let checkpoint = one.checkpoint().unwrap();
        assert_eq!(one.report(), Some(Ended::Saved { checkpoint, published }));
    }
}

/// Ranks compare the checkpoints of their answers before a byte moves.
#[test]
fn ranks_that_disagree_move_nothing_and_take_a_new_attempt() {
    let mut rig = Rig::new();
    let [mut one, _] = ranks(&pair(), 1);
    rig.skip_asks(1, &mut one);
    one.agreed(false);
    one.agreed(true);
    assert_eq!(settled(rig.step(1, &mut one)), (Some(S0), Evidence::NotExposed));
    assert_eq!(rig.drive(1, &mut one), []);
    let checkpoint = one.checkpoint().unwrap();
    assert_eq!(one.report(), Some(Ended::Disagreed { checkpoint }));
    assert!(one.report().unwrap().needs_new_attempt());
    assert_eq!((rig.pins(), rig.put.len()), (0, 0));
}

/// Protocol 4: publish first, then settle `NotExposed`, which ends the load pin.
#[test]
fn kept_position_is_published_first_and_then_let_go() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&small(), 1);
    let mut save = Transfer::save(request(&small(), 2)).unwrap();
    rig.step(1, &mut save);
    assert_eq!(save.evidence(S0), Some(Evidence::Active));
    assert!(matches!(rig.step(1, &mut save), Some(Step::Ask(Command::Publish { .. }))));
    assert_eq!(settled(rig.step(1, &mut save)), (None, Evidence::NotExposed));
    assert_eq!(save.next_step(), None);
    let published = Published::Here { expired: None, follow_ups: false };
    assert_eq!(save.report(), Some(Ended::AlreadyPublished { checkpoint, published }));
    assert_eq!(save.evidence(S0), Some(Evidence::NotExposed));
    assert_eq!((rig.pins(), rig.engine.catalog().gauges().turns), (0, 2));
}

#[test]
fn kept_position_is_let_go_when_ranks_disagree_or_it_is_cancelled() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&pair(), 1);
    let [mut one, mut other] = ranks(&pair(), 2);
    assert_eq!(rig.skip_asks(1, &mut one), Some(Step::Agree { checkpoint }));
    one.agreed(false);
    rig.drive(1, &mut one);
    assert_eq!(one.report(), Some(Ended::Disagreed { checkpoint }));
    rig.skip_asks(2, &mut other);
    other.cancel();
    rig.drive(2, &mut other);
    assert!(matches!(other.report(), Some(Ended::AlreadyPublished { .. })));
    assert_eq!(rig.pins(), 0);
}

/// Every refusal of a prepare ends the save; only a forgotten one may have left something.
#[test]
fn refused_prepare_ends_the_save() {
    let refusals = [
        Rejection::InFlight,
        Rejection::ShardTaken { shard: S0 },
        Rejection::AttemptFailed,
        Rejection::ManifestMismatch,
        Rejection::EndpointQuarantined,
        Rejection::LimitExceeded { limit: Limit::Pins, bound: 1, needed: 2 },
        Rejection::Fenced,
        Rejection::WrongEpoch,
        Rejection::OpConflict,
    ];
    for rejection in refusals {
        let mut rig = Rig::new();
        let mut save = Transfer::save(request(&small(), 1)).unwrap();
        assert!(save.next_step().is_some());
        let (op, _) = rig.ask(1, Command::Collect { limit: 1 });
        save.answered(op, Err(rejection));
        assert_eq!(save.report(), Some(Ended::Skipped(rejection)));
        assert_eq!((save.next_step(), save.may_reuse_source(S0)), (None, true));
    }
    let again = Ended::Skipped(Rejection::AttemptFailed);
    assert!(again.needs_new_attempt());
    assert!(!Ended::Skipped(Rejection::InFlight).needs_new_attempt());
}

#[test]
fn forgotten_prepare_is_cleaned_up() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let Some(Step::Ask(command)) = save.next_step() else { panic!() };
    let (op, answer) = rig.ask(1, command);
    assert!(answer.is_ok());
    save.answered(op, Err(Rejection::ReceiptForgotten));
    assert_eq!(rig.drive(1, &mut save), []);
    assert_eq!(save.report(), Some(Ended::Skipped(Rejection::ReceiptForgotten)));
    assert_eq!(rig.pins(), 0);
}

#[test]
fn in_flight_attempt_of_another_instance_is_skipped() {
    let mut rig = Rig::new();
    let mut one = Transfer::save(request(&small(), 1)).unwrap();
    rig.skip_asks(1, &mut one);
    let mut other = Transfer::save(request(&small(), 2)).unwrap();
    rig.drive(2, &mut other);
    assert_eq!(other.report(), Some(Ended::Skipped(Rejection::InFlight)));
    let mut twin = Transfer::save(request(&small(), 1)).unwrap();
    rig.drive(2, &mut twin);
    let taken = Rejection::ShardTaken { shard: S0 };
    assert_eq!(twin.report(), Some(Ended::Skipped(taken)));
}

#[test]
fn cancel_waits_for_what_began_and_lets_go() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&pair(), 1)).unwrap();
    let first = rig.skip_asks(1, &mut save).unwrap();
    save.cancel();
    let row = |save: &Transfer, shard| save.evidence(shard).unwrap();
    let rows = (row(&save, S0), row(&save, S1));
    assert!(rows == (Evidence::Quiescing, Evidence::NotExposed), "{rows:?}");
    assert_eq!(settled(rig.step(1, &mut save)), (Some(S1), Evidence::NotExposed));
    assert_eq!((save.next_step(), save.is_done()), (None, false));
    rig.perform(&mut save, &first);
    assert_eq!(settled(rig.step(1, &mut save)), (Some(S0), Evidence::QuiescedFailure));
    rig.drive(1, &mut save);
    let checkpoint = save.checkpoint();
    assert_eq!(save.report(), Some(Ended::Cancelled { checkpoint }));
    assert_eq!(rig.pins(), 0);
}

#[test]
fn cancel_of_doubt_stays_in_doubt_until_proof() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let object = object_of(&rig.skip_asks(1, &mut save).unwrap());
    save.completed(object, put_failed(false));
    rig.drive(1, &mut save);
    for _ in 0..3 {
        save.cancel();
        save.proceed();
        assert_eq!((save.next_step(), save.is_done()), (None, false));
        assert_eq!(save.evidence(S0), Some(Evidence::InDoubt));
    }
    assert_eq!(rig.pins(), 1);
    save.completed(object, Completion::Retired);
    rig.drive(1, &mut save);
    assert!(matches!(save.report(), Some(Ended::Failed { .. })));
}

#[test]
fn cancel_before_and_while_preparing() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let mut early = save.clone();
    early.cancel();
    assert_eq!(early.report(), Some(Ended::Cancelled { checkpoint: None }));
    assert_eq!(early.next_step(), None);
    let Some(Step::Ask(command)) = save.next_step() else { panic!() };
    save.cancel();
    assert_eq!((save.next_step(), save.is_done()), (None, false));
    let (op, answer) = rig.ask(1, command);
    save.answered(op, answer);
    assert_eq!(rig.drive(1, &mut save), []);
    assert!(matches!(save.report(), Some(Ended::Cancelled { checkpoint: Some(_) })));
    assert_eq!(rig.pins(), 0);
}

/// I12, I16: a fenced worker starts nothing more, and still waits for its own hardware.
#[test]
fn fenced_save_begins_nothing_and_ends_once_retired() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let reads = object_of(&rig.skip_asks(1, &mut save).unwrap());
    let (owner, incarnation) = (OwnerId::from_u128(1), rig.owners[&1].0);
    let fenced = rig.ask(OPERATOR, Command::Fence { owner, incarnation }).1;
    assert!(fenced.is_ok());
    save.completed(reads, put_failed(false));
    assert_eq!(rig.drive(1, &mut save), []);
    assert_eq!((save.is_done(), save.next_step()), (false, None));
    assert!(!save.may_reuse_source(S0));
    save.completed(reads, Completion::Retired);
    let checkpoint = save.checkpoint().unwrap();
    let why = Rejection::Fenced;
    assert_eq!(save.report(), Some(Ended::Barred { checkpoint, why }));
    assert!(save.may_reuse_source(S0));
}

#[test]
fn ended_pin_and_stale_incarnation_end_the_save() {
    for stale in [false, true] {
        let mut rig = Rig::new();
        let mut save = Transfer::save(request(&small(), 1)).unwrap();
        let first = rig.skip_asks(1, &mut save).unwrap();
        if stale {
            let sequence = rig.owners[&1];
            rig.register(1, Role::Worker);
            rig.owners.insert(1, sequence);
        } else {
            let Command::Settle { pin, .. } = ({
                let mut copy = save.clone();
                copy.cancel();
                copy.completed(object_of(&first), put_failed(true));
                match copy.next_step() {
                    Some(Step::Ask(command)) => command,
                    other => panic!("{other:?}"),
                }
            }) else {
                panic!()
            };
            let evidence = Evidence::QuiescedFailure;
            let settle = Command::Settle { pin, shard: None, evidence };
            rig.ask(OPERATOR, settle).1.unwrap();
            rig.ask(OPERATOR, Command::Release { pin }).1.unwrap();
        }
        rig.perform(&mut save, &first);
        rig.drive(1, &mut save);
        let Some(Ended::Barred { why, .. }) = save.report() else { panic!("{:?}", save.report()) };
        assert_eq!(why == Rejection::PinEnded, !stale, "{why:?}");
    }
}

/// What an operator settled stands, so such a save is never published.
#[test]
fn operators_evidence_stands() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let Some(Step::Ask(command)) = save.next_step() else { panic!() };
    let (op, answer) = rig.ask(1, command);
    save.answered(op, answer);
    let Ok(Outcome::Prepared { pin, checkpoint }) = answer else { panic!() };
    let stands = Evidence::QuiescedFailure;
    rig.ask(OPERATOR, Command::Settle { pin, shard: None, evidence: stands }).1.unwrap();
    rig.drive(1, &mut save);
    let overruled = Ended::Overruled { checkpoint, shard: S0, stands };
    assert_eq!(save.report(), Some(overruled));
    assert_eq!((rig.pins(), rig.engine.catalog().gauges().turns), (0, 0));
}

/// A repeated answer, and one that is none of the command's, changes nothing.
#[test]
fn stale_and_strange_answers_change_nothing() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let Some(Step::Ask(command)) = save.next_step() else { panic!() };
    let (op, answer) = rig.ask(1, command);
    let asked = save.clone();
    for strange in
        [Outcome::Released, Outcome::Lost, Outcome::Settled { evidence: Evidence::InDoubt }]
    {
        save.answered(op, Ok(strange));
        assert_eq!(save, asked);
    }
    save.answered(op, answer);
    let prepared = save.clone();
    save.answered(op, answer);
    save.answered(op, Err(Rejection::Fenced));
    assert_eq!(save, prepared);
    begun(&mut rig, 1, &mut save, &[private(0, 0)]);
    save.completed(private(0, 0), put_failed(true));
    let Some(Step::Ask(Command::Settle { .. })) = save.next_step() else { panic!() };
    let waiting = save.clone();
    save.answered(op, answer);
    save.answered(op, Err(Rejection::PinEnded));
    assert_eq!(save, waiting);
}

#[test]
fn conflicting_operation_is_asked_again_under_another() {
    let mut rig = Rig::new();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    let object = object_of(&rig.skip_asks(1, &mut save).unwrap());
    save.completed(object, put_failed(true));
    let Some(Step::Ask(command)) = save.next_step() else { panic!() };
    let (op, _) = rig.ask(1, Command::Collect { limit: 1 });
    save.answered(op, Err(Rejection::OpConflict));
    assert_eq!((save.next_step(), save.next_step()), (Some(Step::Wait), None));
    save.proceed();
    assert_eq!(save.next_step(), Some(Step::Ask(command)));
}

#[test]
fn refused_publication_lets_go_and_says_why() {
    let mut rig = Rig::new();
    let forget = Command::Forget { conversation: ConversationId::from_u128(1) };
    rig.ask(OPERATOR, forget).1.unwrap();
    let mut save = Transfer::save(request(&small(), 1)).unwrap();
    rig.drive(1, &mut save);
    let checkpoint = save.checkpoint().unwrap();
    let published = Published::Refused(Rejection::TurnExpired);
    assert_eq!(save.report(), Some(Ended::Saved { checkpoint, published }));
    assert_eq!(rig.pins(), 0);
}

#[test]
fn unscoped_save_sets_the_mark() {
    let mut rig = Rig::new();
    let publication = Publication::Unscoped;
    let mut save = Transfer::save(SaveRequest { publication, ..request(&small(), 1) }).unwrap();
    rig.drive(1, &mut save);
    assert!(matches!(save.report(), Some(Ended::Saved { .. })));
    assert!(rig.engine.catalog().gauges().bytes_unscoped > 0);
}

#[test]
fn one_owner_saves_many_shards_and_stops_all_when_one_fails() {
    let manifest = planned(&examples::latent_and_kda(), 2);
    let mut rig = Rig::new();
    rig.saved(&manifest, 1);
    let longer = planned(&examples::latent_and_kda(), 3);
    let mut save = Transfer::save(request(&longer, 2)).unwrap();
    let broken = private(5, 1);
    let object = loop {
        let step = rig.skip_asks(1, &mut save).unwrap();
        if object_of(&step) == broken {
            break broken;
        }
        rig.perform(&mut save, &step);
    };
    save.completed(object, put_failed(true));
    rig.drive(1, &mut save);
    assert!(matches!(save.report(), Some(Ended::Failed { .. })));
    let evidence = |shard| save.evidence(ShardIndex(shard)).unwrap();
    assert_eq!(evidence(5), Evidence::QuiescedFailure);
    assert_eq!(evidence(7), Evidence::NotExposed);
    assert_eq!((rig.pins(), save.evidence(ShardIndex(8))), (0, None));
}

#[test]
fn bad_requests_are_refused_by_name() {
    let save = |shards: &[u16]| {
        let shards = shards.iter().map(|shard| ShardIndex(*shard)).collect();
        Transfer::save(SaveRequest { shards, ..request(&pair(), 1) }).map(|_| ()).unwrap_err()
    };
    assert_eq!(save(&[]), TransferError::NoShard);
    assert_eq!(save(&[1, 0]), TransferError::Unordered { shard: S0 });
    assert_eq!(save(&[1, 1]), TransferError::Unordered { shard: S1 });
    assert_eq!(save(&[0, 2]), TransferError::UnknownShard { shard: ShardIndex(2) });
    let load = LoadRequest { candidates: vec![], ..wanted(&[&small()]) };
    assert_eq!(Transfer::load(load).map(|_| ()), Err(TransferError::NoCandidate));
    let load = LoadRequest { shards: vec![S1], ..wanted(&[&small()]) };
    let unknown = TransferError::UnknownShard { shard: S1 };
    assert_eq!(Transfer::load(load).map(|_| ()), Err(unknown));
}

/// Protocol 6: settle, publish and release go out in one list, which ends with its first refusal.
#[test]
fn a_save_ends_with_one_list() {
    let mut rig = Rig::new();
    let manifest = small();
    let mut save = Transfer::save(request(&manifest, 1)).unwrap();
    assert_eq!(save.next_in_list(), None, "nothing was asked");
    let Some(Step::Ask(prepare)) = save.next_step() else { panic!() };
    assert_eq!(save.next_in_list(), None, "nobody knows the pin yet");
    let (op, answer) = rig.ask(1, prepare);
    save.answered(op, answer);
    let list = last_list(&mut rig, &mut save);
    use Command::{Publish, Release, Settle};
    assert!(matches!(list[..], [Settle { .. }, Publish { .. }, Release { .. }]), "{list:?}");
    for command in list {
        assert_eq!(save.next_step(), None);
        let (op, answer) = rig.ask(1, command);
        save.answered(op, answer);
    }
    assert!(matches!(save.report(), Some(Ended::Saved { .. })), "{:?}", save.report());
    assert_eq!(rig.pins(), 0);

    // The same turn's successor is refused for good: its release is due again, alone.
    let mut save = Transfer::save(request(&planned(&examples::convolutions(), 3), 2)).unwrap();
    let list = last_list(&mut rig, &mut save);
    let (op, answer) = rig.ask(1, list[0].clone());
    save.answered(op, answer);
    save.answered(OpId { sequence: op.sequence + 1, ..op }, Err(Rejection::TurnExpired));
    let Some(Step::Ask(release)) = save.next_step() else { panic!() };
    assert!(matches!(release, Release { .. }), "{release:?}");
    assert_eq!(save.next_in_list(), None);
    rig.ask(1, Command::Collect { limit: 1 }).1.unwrap();
    let (op, answer) = rig.ask(1, release);
    save.answered(op, answer);
    let Some(Ended::Saved { published, .. }) = save.report() else { panic!() };
    assert_eq!(published, Published::Refused(Rejection::TurnExpired));
}

/// Drives a save up to the list with which it ends.
fn last_list(rig: &mut Rig, save: &mut Transfer) -> Vec<Command> {
    loop {
        match save.next_step() {
            Some(Step::Ask(command @ Command::Prepare(_))) => {
                let (op, answer) = rig.ask(1, command);
                save.answered(op, answer);
            }
            Some(Step::Ask(command)) => {
                let mut list = vec![command];
                list.extend(core::iter::from_fn(|| save.next_in_list()));
                return list;
            }
            Some(step) => rig.perform(save, &step),
            None => panic!("no list: {:?}", save.report()),
        }
    }
}
