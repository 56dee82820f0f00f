use super::*;
use crate::layout::Scope;
use crate::outcome::Loss;

fn two() -> (Arc<Manifest>, Arc<Manifest>) {
    let layout = examples::convolutions();
    (planned(&layout, 4), planned(&layout, 2))
}

fn settle_of(step: Option<Step>) -> (PinId, Evidence) {
    match step {
        Some(Step::Ask(Command::Settle { pin, shard: None, evidence })) => (pin, evidence),
        other => panic!("{other:?}"),
    }
}

/// A load of one saved checkpoint, pinned, with every check answered well.
fn checked(rig: &mut Rig, request: LoadRequest) -> (Transfer, Vec<Step>) {
    let mut load = Transfer::load(request).unwrap();
    for step in rig.all_steps(1, &mut load) {
        assert!(matches!(step, Step::Check { .. }), "{step:?}");
        rig.perform(&mut load, &step);
    }
    let gets = rig.all_steps(1, &mut load);
    (load, gets)
}

#[test]
fn longest_restorable_is_loaded_and_the_others_are_let_go() {
    let mut rig = Rig::new();
    let (long, short) = two();
    rig.saved(&short, 1);
    let checkpoint = rig.saved(&long, 2);
    let mut load = Transfer::load(wanted(&[&long, &short])).unwrap();
    let Some(Step::Ask(command)) = load.next_step() else { panic!() };
    assert!(matches!(command, Command::Pin { limit: 8, .. }));
    assert_eq!(load.next_step(), None);
    let (op, answer) = rig.ask(1, command);
    load.answered(op, answer);
    assert_eq!(load.pinned().len(), 2);
    assert_eq!(load.checkpoint(), Some(checkpoint));
    let other = PinId { op, place: 1 };
    assert_eq!(settle_of(rig.step(1, &mut load)), (other, Evidence::NotExposed));
    let steps = rig.drive(1, &mut load);
    assert_eq!(steps.last(), Some(&Step::Adopt { checkpoint }));
    // Two blocks more than the short one; the manifest's own object is only checked.
    let gets = steps.iter().filter(|step| matches!(step, Step::Get { .. }));
    assert_eq!((gets.count(), steps.len()), (5, 12));
    assert_eq!(load.report(), Some(Ended::Restored { checkpoint }));
    assert_eq!(load.evidence(S0), Some(Evidence::QuiescedSuccess));
    assert!(!load.may_reuse_destination());
    assert_eq!(rig.pins(), 0);
}

#[test]
fn nothing_pinned_and_a_refused_pin_are_misses() {
    let mut rig = Rig::new();
    let mut load = Transfer::load(wanted(&[&small()])).unwrap();
    assert_eq!(rig.drive(1, &mut load), []);
    assert_eq!(load.report(), Some(Ended::Missed(Miss::NothingPinned)));
    let mut load = Transfer::load(LoadRequest { limit: 9, ..wanted(&[&small()]) }).unwrap();
    rig.drive(1, &mut load);
    assert!(matches!(load.report(), Some(Ended::Missed(Miss::Refused(_)))));
    assert!(load.may_reuse_destination());
}

/// I15: no byte moves before every object was found, and none is adopted before all arrived.
#[test]
fn adoption_waits_for_every_verified_and_retired_object() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let (load, gets) = checked(&mut rig, wanted(&[&small()]));
    assert_eq!(gets.len(), 3);
    for late in &gets {
        let mut load = load.clone();
        for step in gets.iter().filter(|step| *step != late) {
            rig.perform(&mut load, step);
        }
        assert_eq!((load.next_step(), load.in_flight()), (None, 1));
        let Step::Get { object, bytes } = *late else { panic!() };
        let Completion::Got { answer, .. } = arrived(object, bytes) else { panic!() };
        load.completed(object, Completion::Got { answer, retired: false });
        assert_eq!(load.next_step(), None);
        load.completed(object, Completion::Retired);
        assert!(matches!(load.next_step(), Some(Step::Adopt { .. })));
    }
}

#[test]
fn gets_wait_until_every_object_was_found() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let mut load = Transfer::load(wanted(&[&small()])).unwrap();
    let checks = rig.all_steps(1, &mut load);
    assert_eq!(checks.len(), 4);
    for step in &checks[1..] {
        rig.perform(&mut load, step);
        assert_eq!(load.next_step(), None);
    }
    rig.perform(&mut load, &checks[0]);
    assert!(matches!(load.next_step(), Some(Step::Get { .. })));
}

/// Protocol 4: what is definitely absent or wrong is lost; an unknown outcome is a mere miss.
#[test]
fn only_definite_faults_are_reported_as_lost() {
    use GetAnswer::*;
    let got = |answer| Completion::Got { answer, retired: true };
    let check = Completion::Checked;
    let cases = [
        (check(CheckAnswer::Absent), Some(Loss::Absent)),
        (present(1), Some(Loss::WrongSize)),
        (check(CheckAnswer::Unreadable), Some(Loss::Unreadable)),
        (check(CheckAnswer::Unknown), None),
        (got(Absent), Some(Loss::Absent)),
        (got(WrongBytes), Some(Loss::WrongBytes)),
        (got(Unreadable), Some(Loss::Unreadable)),
        (got(Verified { bytes: 1 }), Some(Loss::WrongSize)),
        (got(Arrived { bytes: 1 }), None),
        (got(NotStarted), None),
        (got(Failed), None),
    ];
    for (completion, loss) in cases {
        let mut rig = Rig::new();
        rig.saved(&small(), 1);
        let mut load = Transfer::load(wanted(&[&small()])).unwrap();
        let object = private(0, 1);
        while let Some(step) = rig.skip_asks(1, &mut load) {
            let is_get = matches!(step, Step::Get { .. });
            if object_of(&step) == object && is_get == matches!(completion, Completion::Got { .. })
            {
                load.completed(object, completion);
                break;
            }
            rig.perform(&mut load, &step);
        }
        let before = rig.owners[&1].1;
        assert_eq!(rig.all_steps(1, &mut load), [], "{completion:?}");
        let asked = rig.owners[&1].1 - before;
        assert_eq!(asked, if loss.is_some() { 2 } else { 1 }, "{completion:?}");
        let Some(Ended::Missed(Miss::Object { why, .. })) = load.report() else { panic!() };
        assert_eq!(why.loss(), loss);
        assert!(load.may_reuse_destination());
        assert_eq!((load.evidence(S0), rig.pins()), (Some(Evidence::QuiescedFailure), 0));
        let mut again = Transfer::load(wanted(&[&small()])).unwrap();
        rig.drive(1, &mut again);
        let is_miss = again.report() == Some(Ended::Missed(Miss::NothingPinned));
        assert_eq!(is_miss, loss.is_some());
    }
}

/// A shared object is lost by its place in the manifest.
#[test]
fn lost_shared_object_is_named_by_its_place() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&pair(), 1);
    let lost = pair().shared_objects().nth(3).unwrap();
    rig.store.remove(&(None, ObjectName::Shared(lost.name)));
    let mut load = Transfer::load(wanted(&[&pair()])).unwrap();
    let mut said = None;
    while let Some(step) = rig.step(1, &mut load) {
        match step {
            Step::Ask(Command::Lost { checkpoint, object, why }) => {
                said = Some((checkpoint, object, why));
            }
            Step::Ask(_) => {}
            other => rig.perform(&mut load, &other),
        }
    }
    assert_eq!(said, Some((checkpoint, crate::outcome::LostObject::Shared(3), Loss::Absent)));
}

/// I16: a load that failed lets go only when nobody writes its memory any more.
#[test]
fn failed_load_stays_in_doubt_until_retired() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let (mut load, gets) = checked(&mut rig, wanted(&[&small()]));
    let [first, second, third] = &gets[..] else { panic!() };
    let answer = GetAnswer::Failed;
    load.completed(object_of(first), Completion::Got { answer, retired: false });
    assert_eq!(settle_of(rig.step(1, &mut load)).1, Evidence::InDoubt);
    load.cancel();
    load.decline();
    assert_eq!((load.next_step(), load.is_done()), (None, false));
    rig.perform(&mut load, second);
    load.completed(object_of(first), Completion::Retired);
    assert!(!load.may_reuse_destination());
    assert_eq!((load.next_step(), rig.pins()), (None, 1));
    rig.perform(&mut load, third);
    assert_eq!(settle_of(rig.step(1, &mut load)).1, Evidence::QuiescedFailure);
    assert!(matches!(load.report(), Some(Ended::Missed(Miss::Object { .. }))));
    assert!(load.may_reuse_destination());
}

#[test]
fn declined_load_is_not_exposed() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let mut load = Transfer::load(wanted(&[&small()])).unwrap();
    rig.skip_asks(1, &mut load);
    load.decline();
    assert_eq!(settle_of(rig.step(1, &mut load)).1, Evidence::NotExposed);
    assert_eq!(load.report(), Some(Ended::Missed(Miss::Declined)));
    assert_eq!((load.next_step(), rig.pins()), (None, 0));
}

#[test]
fn cancel_at_any_time_lets_go() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let load = Transfer::load(LoadRequest { has_peers: true, ..wanted(&[&small()]) }).unwrap();
    for taken in 0..12 {
        let mut load = load.clone();
        let mut steps = vec![];
        while steps.len() < taken
            && let Some(step) = rig.step(1, &mut load)
        {
            match &step {
                Step::Choose => assert!(load.choose_longest()),
                Step::Check { .. } => rig.perform(&mut load, &step),
                _ => {}
            }
            steps.push(step);
        }
        load.cancel();
        assert_eq!(rig.all_steps(1, &mut load), []);
        for step in steps.iter().filter(|step| matches!(step, Step::Get { .. })) {
            assert!(!load.is_done());
            rig.perform(&mut load, step);
        }
        assert_eq!(rig.all_steps(1, &mut load), []);
        assert_eq!(load.report(), Some(Ended::Missed(Miss::Cancelled)), "{taken}");
        assert_eq!((rig.pins(), load.may_reuse_destination()), (0, true));
    }
}

/// What was adopted stays so, and its pin is let go although the host waits with nothing more.
#[test]
fn cancel_ends_the_wait_of_an_adopted_load() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let (mut load, gets) = checked(&mut rig, wanted(&[&small()]));
    gets.iter().for_each(|step| rig.perform(&mut load, step));
    assert!(matches!(load.next_step(), Some(Step::Adopt { .. })));
    let Some(Step::Ask(command)) = load.next_step() else { panic!() };
    let (op, _) = rig.ask(1, Command::Collect { limit: 1 });
    load.answered(op, Err(Rejection::ReceiptForgotten));
    assert_eq!((load.next_step(), load.next_step()), (Some(Step::Wait), None));
    load.cancel();
    assert_eq!(load.next_step(), Some(Step::Ask(command.clone())));
    let (op, answer) = rig.ask(1, command);
    load.answered(op, answer);
    assert!(matches!(load.report(), Some(Ended::Restored { .. })));
    assert_eq!(rig.pins(), 0);
}

#[test]
fn cancel_while_pinning_waits_for_the_answer() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let mut load = Transfer::load(wanted(&[&small()])).unwrap();
    let Some(Step::Ask(command)) = load.next_step() else { panic!() };
    load.cancel();
    assert_eq!((load.is_done(), load.next_step()), (false, None));
    let (op, answer) = rig.ask(1, command);
    load.answered(op, answer);
    assert_eq!(settle_of(rig.step(1, &mut load)).1, Evidence::NotExposed);
    assert_eq!((load.report(), rig.pins()), (Some(Ended::Missed(Miss::Cancelled)), 0));
}

/// Ranks choose together, and adopt together or not at all.
#[test]
fn ranks_choose_together_and_adopt_only_together() {
    for all in [true, false] {
        let mut rig = Rig::new();
        let (long, short) = two();
        let checkpoint = rig.saved(&short, 1);
        rig.saved(&long, 2);
        let request = LoadRequest { has_peers: true, ..wanted(&[&long, &short]) };
        let mut load = Transfer::load(request).unwrap();
        assert_eq!(rig.skip_asks(1, &mut load), Some(Step::Choose));
        assert_eq!(load.next_step(), None);
        let unknown = CheckpointId { generation: Generation(9), ..checkpoint };
        assert!(!load.choose(Some(unknown)) && load.agrees(checkpoint));
        assert!(load.choose(Some(checkpoint)) && !load.choose(None));
        let mut steps = vec![];
        while let Some(step) = rig.skip_asks(1, &mut load) {
            if let Step::Agree { .. } = step {
                steps.push(step);
                break;
            }
            rig.perform(&mut load, &step);
        }
        assert_eq!((steps, load.next_step()), (vec![Step::Agree { checkpoint }], None));
        load.agreed(all);
        load.agreed(true);
        let adopted = rig.drive(1, &mut load);
        if all {
            assert_eq!(adopted, [Step::Adopt { checkpoint }]);
            assert_eq!(load.report(), Some(Ended::Restored { checkpoint }));
        } else {
            assert_eq!(adopted, []);
            assert_eq!(load.evidence(S0), Some(Evidence::QuiescedFailure));
            let missed = Miss::PeersMissed { checkpoint };
            assert_eq!(load.report(), Some(Ended::Missed(missed)));
        }
        assert_eq!(rig.pins(), 0);
    }
}

#[test]
fn choosing_none_lets_go_of_all() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let mut load = Transfer::load(LoadRequest { has_peers: true, ..wanted(&[&small()]) }).unwrap();
    rig.skip_asks(1, &mut load);
    assert!(load.choose(None));
    rig.drive(1, &mut load);
    assert_eq!(load.report(), Some(Ended::Missed(Miss::NothingChosen)));
    assert_eq!(rig.pins(), 0);
}

/// The same position with other geometry: the same endpoint and another digest.
fn other_geometry(manifest: &Manifest) -> Arc<Manifest> {
    let mut layout = manifest.layout().clone();
    for group in &mut layout.groups {
        group.members[0].bytes_per_page *= 2;
        assert_eq!(group.scope, Scope::PerShard);
    }
    planned(&layout, manifest.tokens() / u64::from(BLOCK))
}

#[test]
fn other_manifest_is_a_miss_that_can_be_explained() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&small(), 1);
    let own = other_geometry(&small());
    assert_eq!(own.endpoint(), small().endpoint());
    let missed = Some(Ended::Missed(Miss::ManifestMismatch { checkpoint }));
    let mut load = Transfer::load(wanted(&[&own])).unwrap();
    assert_eq!(rig.drive(1, &mut load), []);
    assert_eq!((load.report(), rig.pins(), load.differences()), (missed, 0, vec![]));

    let mut load = Transfer::load(LoadRequest { explains: true, ..wanted(&[&own]) }).unwrap();
    let object = ObjectId { shard: S0, index: 0 };
    assert_eq!(rig.skip_asks(1, &mut load), Some(Step::ReadManifest { checkpoint, object }));
    assert_eq!((load.next_step(), load.is_done(), rig.pins()), (None, false, 1));
    load.cancel();
    assert_eq!((load.next_step(), load.is_done()), (None, false));
    load.manifest_read(Some(small().encode()));
    assert_eq!(settle_of(rig.step(1, &mut load)).1, Evidence::QuiescedFailure);
    assert_eq!((load.report(), rig.pins()), (missed, 0));
    assert_eq!(load.differences(), own.explain(&small()));
    assert_eq!(load.differences().len(), 2);
}

#[test]
fn equal_digest_is_preferred_to_a_longer_position() {
    let mut rig = Rig::new();
    let (long, short) = two();
    let checkpoint = rig.saved(&short, 1);
    rig.saved(&long, 2);
    let mut load = Transfer::load(wanted(&[&other_geometry(&long), &short])).unwrap();
    rig.drive(1, &mut load);
    assert_eq!(load.report(), Some(Ended::Restored { checkpoint }));
}

#[test]
fn manifest_may_be_described_after_the_choice() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&small(), 1);
    let endpoint = small().endpoint().id();
    let candidates = vec![Candidate::described_later(endpoint)];
    let mut load = Transfer::load(LoadRequest { candidates, ..wanted(&[&small()]) }).unwrap();
    assert!(!load.described(&small()));
    assert_eq!(rig.skip_asks(1, &mut load), Some(Step::Describe { endpoint }));
    assert_eq!(load.next_step(), None);
    assert!(!load.described(&planned(&examples::convolutions(), 3)));
    assert!(load.described(&small()) && !load.described(&small()));
    rig.drive(1, &mut load);
    assert_eq!(load.report(), Some(Ended::Restored { checkpoint }));
}

/// I15: a position that turns out to be planned otherwise is a miss, and its pin is let go.
#[test]
fn described_with_another_geometry_is_a_miss() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&small(), 1);
    let endpoint = small().endpoint().id();
    let candidates = vec![Candidate::described_later(endpoint)];
    let mut load = Transfer::load(LoadRequest { candidates, ..wanted(&[&small()]) }).unwrap();
    assert_eq!(rig.skip_asks(1, &mut load), Some(Step::Describe { endpoint }));
    assert!(load.described(&other_geometry(&small())));
    rig.drive(1, &mut load);
    assert_eq!(load.report(), Some(Ended::Missed(Miss::ManifestMismatch { checkpoint })));
    assert_eq!(rig.engine.catalog().gauges().pins, 0);
}

/// A part stored once is read by every rank that holds it, and so are the manifests of both.
#[test]
fn replicated_part_is_read_by_every_holder() {
    let manifest = planned(&examples::latent_and_kda(), 2);
    let mut rig = Rig::new();
    rig.saved(&manifest, 1);
    let request = LoadRequest { shards: vec![ShardIndex(5)], ..wanted(&[&manifest]) };
    let (_, gets) = checked(&mut rig, request);
    let shared = gets.iter().filter(|step| matches!(object_of(step), ObjectName::Shared(_)));
    assert_eq!((gets.len(), shared.count()), (3, 2));
    assert_eq!(object_of(&gets[2]), private(5, 1));
}

/// I12, I15: a fenced load starts nothing more and adopts nothing.
#[test]
fn fenced_load_adopts_nothing_and_ends_once_retired() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let (mut load, gets) = checked(&mut rig, wanted(&[&small()]));
    let (owner, incarnation) = (OwnerId::from_u128(1), rig.owners[&1].0);
    rig.ask(OPERATOR, Command::Fence { owner, incarnation }).1.unwrap();
    let answer = GetAnswer::WrongBytes;
    load.completed(object_of(&gets[0]), Completion::Got { answer, retired: true });
    assert!(matches!(rig.step(1, &mut load), Some(Step::Ask(Command::Lost { .. }))));
    assert_eq!((load.next_step(), load.is_done()), (None, false));
    for step in &gets[1..] {
        assert!(!load.may_reuse_destination());
        rig.perform(&mut load, step);
    }
    assert_eq!(load.report(), Some(Ended::Missed(Miss::Barred(Rejection::Fenced))));
    assert_eq!((load.next_step(), load.may_reuse_destination()), (None, true));
}

/// A fenced load that is in doubt says nothing more, about no pin.
#[test]
fn fenced_load_asks_nothing_more() {
    let mut rig = Rig::new();
    let (long, short) = two();
    rig.saved(&short, 1);
    rig.saved(&long, 2);
    let mut load = Transfer::load(wanted(&[&long, &short])).unwrap();
    rig.step(1, &mut load);
    let Some(Step::Ask(command)) = load.next_step() else { panic!() };
    let mut gets = vec![];
    while let Some(step) = load.next_step() {
        match step {
            Step::Get { .. } => gets.push(step),
            other => rig.perform(&mut load, &other),
        }
    }
    let (owner, incarnation) = (OwnerId::from_u128(1), rig.owners[&1].0);
    rig.ask(OPERATOR, Command::Fence { owner, incarnation }).1.unwrap();
    let (op, answer) = rig.ask(1, command);
    load.answered(op, answer);
    for step in &gets {
        let answer = GetAnswer::Failed;
        load.completed(object_of(step), Completion::Got { answer, retired: false });
        assert_eq!((load.next_step(), load.is_done()), (None, false));
    }
    assert_eq!(load.evidence(S0), Some(Evidence::InDoubt));
    for step in &gets {
        load.completed(object_of(step), Completion::Retired);
        assert_eq!(load.next_step(), None);
    }
    assert_eq!(load.report(), Some(Ended::Missed(Miss::Barred(Rejection::Fenced))));
}

#[test]
fn what_was_adopted_stays_adopted() {
    let mut rig = Rig::new();
    let checkpoint = rig.saved(&small(), 1);
    let (mut load, gets) = checked(&mut rig, wanted(&[&small()]));
    for step in &gets {
        rig.perform(&mut load, step);
    }
    assert_eq!(load.next_step(), Some(Step::Adopt { checkpoint }));
    load.cancel();
    load.agreed(false);
    assert!(!load.may_reuse_destination());
    let Some(Step::Ask(Command::Settle { evidence, .. })) = load.next_step() else { panic!() };
    assert_eq!(evidence, Evidence::QuiescedSuccess);
    let (op, _) = rig.ask(1, Command::Collect { limit: 1 });
    load.answered(op, Err(Rejection::Fenced));
    assert_eq!(load.report(), Some(Ended::Restored { checkpoint }));
}

#[test]
fn forgotten_pin_is_cleaned_up() {
    let mut rig = Rig::new();
    let (long, short) = two();
    rig.saved(&short, 1);
    rig.saved(&long, 2);
    let mut load = Transfer::load(wanted(&[&long, &short])).unwrap();
    let Some(Step::Ask(command)) = load.next_step() else { panic!() };
    let (op, _) = rig.ask(1, command);
    assert_eq!(rig.pins(), 2);
    load.answered(op, Err(Rejection::ReceiptForgotten));
    assert_eq!(rig.drive(1, &mut load), []);
    let missed = Miss::Refused(Rejection::ReceiptForgotten);
    assert_eq!((load.report(), rig.pins()), (Some(Ended::Missed(missed)), 0));
}

#[test]
fn late_and_doubled_completions_of_a_load_change_nothing() {
    let mut rig = Rig::new();
    rig.saved(&small(), 1);
    let (mut load, gets) = checked(&mut rig, wanted(&[&small()]));
    let object = object_of(&gets[0]);
    let before = load.clone();
    load.completed(object, present(1));
    load.completed(object, STORED);
    load.completed(private(0, 0), arrived(private(0, 0), 1));
    load.completed(private(3, 1), Completion::Retired);
    load.agreed(false);
    load.proceed();
    load.published_elsewhere();
    assert_eq!(load, before);
    rig.perform(&mut load, &gets[0]);
    let after = load.clone();
    let answer = GetAnswer::WrongBytes;
    load.completed(object, Completion::Got { answer, retired: false });
    load.completed(object, Completion::Retired);
    assert_eq!(load, after);
}

/// The trailer decides: an unknown version may be right, everything else is wrong.
#[test]
fn trailer_is_judged() {
    let key = Key {
        namespace: "t".parse().unwrap(),
        epoch: Epoch::from_u128(1),
        checkpoint: CheckpointId::default(),
        object: ObjectId::default(),
    };
    let sum = Digest::of(b"state");
    let trailer: [u8; TRAILER_BYTES as usize] = object::seal(&key, 5, sum).try_into().unwrap();
    let bytes = 5 + u64::from(TRAILER_BYTES);
    assert_eq!(GetAnswer::judge(&key, 5, sum, &trailer), GetAnswer::Verified { bytes });
    assert_eq!(GetAnswer::judge(&key, 6, sum, &trailer), GetAnswer::WrongBytes);
    let mut newer = trailer;
    newer[8] = 2;
    assert_eq!(GetAnswer::judge(&key, 5, sum, &newer), GetAnswer::Failed);
}
