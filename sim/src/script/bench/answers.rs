//! What leaves the bench's engine: shown line by line, and remembered where later lines need it.

use pinfold_core::catalog::Command;
use pinfold_core::engine::{Effect, Output, Reply, Request};
use pinfold_core::id::{CheckpointId, PinId};
use pinfold_core::outcome::{Outcome, Rejection};

use super::super::show::show_gauges;
use super::store::Delete;
use super::{Asked, Bench, Client};

impl Bench {
    /// Shows what leaves the engine.
    pub(super) fn let_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Effect(effect) => {
                    let shown = self.names.show_effect(&effect);
                    let Effect::Delete { by, checkpoint, objects } = effect;
                    let number = self.store.take_work(Delete { by, checkpoint, objects });
                    self.out.push(format!("d{number}: {shown}"));
                }
                Output::Reply(ticket, reply) => match self.waiting.remove(&ticket) {
                    Some(asked) => self.answered(&asked, &reply),
                    None => self.out.push("a reply that nobody waits for".into()),
                },
            }
        }
    }

    fn answered(&mut self, asked: &Asked, reply: &Reply) {
        match (&asked.request, reply) {
            (_, Reply::Command(answer)) => self.answered_one(asked, answer),
            (_, Reply::List(answers)) => {
                for (child, answer) in asked.children.iter().zip(answers) {
                    match answer {
                        Some(answer) => self.answered_one(child, answer),
                        None => self.out.push(format!("{} -> not tried", child.label)),
                    }
                }
            }
            (Request::Query(_), Reply::Gauges(gauges)) => {
                self.out.push(show_gauges(&asked.gauges, gauges));
            }
            (Request::Query(query), _) => self.out.extend(self.names.show_query(query, reply)),
            (Request::Register(_) | Request::Command(..) | Request::List(_), Reply::Poisoned) => {
                self.out.push(format!("{} -> poisoned", asked.label));
            }
            (Request::Register(_) | Request::Command(..) | Request::List(_), _) => {
                self.out.push(format!("{} -> the reply to a query: {reply:?}", asked.label));
            }
        }
    }

    fn answered_one(&mut self, asked: &Asked, answer: &Result<Outcome, Rejection>) {
        match answer {
            Ok(Outcome::Registered { incarnation }) => {
                let name = asked.label.clone();
                let known = self.clients.get(&name).map(|client| client.incarnation);
                if known != Some(*incarnation) {
                    self.clients.insert(name, Client { incarnation: *incarnation, next: 1 });
                }
            }
            Ok(
                Outcome::Prepared { pin, checkpoint }
                | Outcome::AlreadyPublished { pin, checkpoint },
            ) => {
                self.bind(asked, *pin, *checkpoint);
                if let Some((_, Command::Prepare(prepare))) = asked.command() {
                    self.shapes.entry(*checkpoint).or_insert_with(|| prepare.shape.clone());
                }
            }
            Ok(Outcome::Pinned(answers)) => {
                for (answer, place) in answers.iter().zip(0..) {
                    if let Some((op, _)) = asked.command() {
                        self.bind(asked, PinId { op, place }, answer.checkpoint);
                    }
                }
            }
            Ok(Outcome::Configured) => {
                if let Some((_, Command::Configure { policy, limits })) = asked.command() {
                    (self.job.policy, self.job.limits) = (*policy, *limits);
                }
            }
            Ok(_) | Err(_) => {}
        }
        let verb = asked.command().map(|(_, command)| format!("{command:?}"));
        let verb = variant_name(&verb.unwrap_or_else(|| "Register".into()));
        let name = match answer {
            Ok(outcome) => variant_name(&format!("{outcome:?}")),
            Err(rejection) => variant_name(&format!("{rejection:?}")),
        };
        self.answers.insert((verb, name, answer.is_err()));
        let op = asked.command().map(|(op, _)| op);
        self.out.push(format!("{} -> {}", asked.label, self.names.show_answer(op, answer)));
    }

    /// Remembers a checkpoint, and gives its pin the name that the line has for it.
    fn bind(&mut self, asked: &Asked, pin: PinId, checkpoint: CheckpointId) {
        self.names.see_checkpoint(checkpoint);
        if let Some(name) = asked.binds.get(usize::from(pin.place)) {
            self.names.bind_pin(name, pin);
        }
    }
}

/// The first word of a value's debug text: the name of its variant.
fn variant_name(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}
