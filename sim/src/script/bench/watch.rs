//! The verbs of the store that watches: put, remove, show, and carrying out delete work.

use pinfold_core::catalog::Command;
use pinfold_core::id::{CheckpointId, ObjectId, OpId};
use pinfold_core::outcome::DeleteOutcome;

use super::super::reader::{Fault, Line};
use super::super::verbs::{Verbs, object, outcomes};
use super::Bench;

impl Bench {
    /// `put c1 [objects]`, `remove c1 [objects]` and `store`; false for any other verb.
    pub(super) fn watch(&mut self, line: &Line) -> Result<bool, Fault> {
        match line.words[0].as_str() {
            "put" | "remove" => {
                let checkpoint = self.checkpoint(line)?;
                for object in self.objects(line, checkpoint)? {
                    if line.words[0] == "put" {
                        self.store.put(checkpoint, object);
                    } else if !self.store.remove(checkpoint, object) {
                        self.out.push(format!("not in the store: {object}"));
                    }
                }
            }
            "store" => {
                let mut texts = Vec::new();
                for (checkpoint, object) in self.store.objects() {
                    texts.push(format!("{}/{object}", self.names.show_checkpoint(checkpoint)));
                }
                let texts = if texts.is_empty() { "empty".into() } else { texts.join(" ") };
                self.out.push(format!("store: {texts}"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts every object of a checkpoint.
    pub(super) fn put_all(&mut self, checkpoint: CheckpointId) {
        let Some(shape) = self.shapes.get(&checkpoint) else { return };
        for object in (0..shape.objects()).filter_map(|place| shape.object_at(place)) {
            self.store.put(checkpoint, object);
        }
    }

    fn checkpoint(&mut self, line: &Line) -> Result<CheckpointId, Fault> {
        Verbs { names: &mut self.names, job: &self.job }.checkpoint(line)
    }

    /// The objects that a line names behind its checkpoint; else all of the checkpoint's.
    fn objects(&self, line: &Line, checkpoint: CheckpointId) -> Result<Vec<ObjectId>, Fault> {
        if line.words.len() > 2 {
            return line.words[2..].iter().map(|text| object(line, text)).collect();
        }
        let unknown = || line.fault("its shape is not known: write SHARD/INDEX ...");
        let shape = self.shapes.get(&checkpoint).ok_or_else(unknown)?;
        Ok((0..shape.objects()).filter_map(|place| shape.object_at(place)).collect())
    }

    /// `delete 1 gone`, or `delete 1 0/0 gone 0/1 unknown`: carries out the work of this number,
    /// and makes the report, from the owner that asked or from `by`. What is gone leaves the store;
    /// with `applied=yes` what is unknown does too.
    pub(super) fn carry_out(&mut self, line: &Line) -> Result<(OpId, Command), Fault> {
        let work = self.store.work(line.number(1)?).cloned();
        let work = work.ok_or_else(|| line.fault("no work has this number: write the 1 of d1"))?;
        let outcomes = if line.words.len() == 3 {
            let words =
                work.objects.iter().flat_map(|object| [object.to_string(), line.words[2].clone()]);
            let spread = Line { words: words.collect(), ..line.clone() };
            outcomes(&spread, 0)?
        } else {
            outcomes(line, 2)?
        };
        for (object, outcome) in &outcomes {
            let applied = match outcome {
                DeleteOutcome::Gone => true,
                DeleteOutcome::Unknown => line.option("applied") == Some("yes"),
                DeleteOutcome::Refused => false,
            };
            if applied {
                self.store.remove(work.checkpoint, *object);
            }
        }
        let by = match line.option("by") {
            Some(by) => by.to_string(),
            None => self.names.show_owner(work.by.owner),
        };
        let op = self.sender(line, &by)?;
        Ok((op, Command::Deleted { checkpoint: work.checkpoint, outcomes }))
    }
}
