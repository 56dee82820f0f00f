//! The script language, as text: pure, and every error names its line.
//!
//! A script is a text file. Its first line is a comment that says which rule it shows. Lines that
//! begin with `job` set the job up: policy, limits, and `owners=op,w1` that are registered then.
//! Then come blocks: command lines, a line `----`, the observed outputs, and a blank line. A
//! command line is `[names =] verb words... key=value...`; a verb of an owner stands behind its
//! sender, as in `w1 collect 4`. Lines that are indented belong to the command line above them.
//! `#` begins a comment line outside of outputs.

/// A whole script.
#[derive(Debug)]
pub(crate) struct Script {
    /// What its first comment line says.
    pub(crate) about: String,
    /// The options of its `job` lines.
    pub(crate) job: Vec<(String, String)>,
    /// Its blocks, in order.
    pub(crate) blocks: Vec<Block>,
    /// The source, line by line.
    lines: Vec<String>,
}

/// Command lines, and what is to be observed of them.
#[derive(Debug)]
pub(crate) struct Block {
    /// The commands, in order.
    pub(crate) commands: Vec<Line>,
    /// The expected outputs.
    pub(crate) expected: Vec<String>,
    /// The line number of the first expected output.
    pub(crate) expected_at: usize,
}

/// One command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    /// Names for the pins that its answer brings.
    pub(crate) binds: Vec<String>,
    /// The words that are no options.
    pub(crate) words: Vec<String>,
    /// The options, `key=value`.
    pub(crate) options: Vec<(String, String)>,
    /// The indented lines below it.
    pub(crate) children: Vec<Self>,
}

/// A fault of a script, with the line that it is on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line's number, from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
}

impl Fault {
    /// A fault on a line.
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl Line {
    /// One command line from its text.
    ///
    /// # Errors
    /// The fault names the line.
    pub(crate) fn read(number: usize, text: &str) -> Result<Self, Fault> {
        let mut line = Self {
            number,
            binds: Vec::new(),
            words: Vec::new(),
            options: Vec::new(),
            children: Vec::new(),
        };
        for token in text.split_whitespace() {
            match token.split_once('=') {
                Some(("", "")) => line.binds = core::mem::take(&mut line.words),
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    line.options.push((key.to_string(), value.to_string()));
                }
                Some(_) => return Err(Fault::new(number, format!("half an option: {token}"))),
                None => line.words.push(token.to_string()),
            }
        }
        if line.words.is_empty() {
            return Err(Fault::new(number, "no verb"));
        }
        Ok(line)
    }

    /// A fault on this line.
    pub(crate) fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::new(self.number, what)
    }

    /// The word at a place behind the verb, from 1.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn word(&self, place: usize) -> Result<&str, Fault> {
        let missing = || self.fault(format!("{}: word {place} is missing", self.words[0]));
        self.words.get(place).map(String::as_str).ok_or_else(missing)
    }

    /// The value of an option.
    pub(crate) fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(there, _)| there == key).map(|(_, value)| value.as_str())
    }

    /// The word at a place as a number.
    ///
    /// # Errors
    /// There is none, or it is no number.
    pub(crate) fn number<T: core::str::FromStr>(&self, place: usize) -> Result<T, Fault> {
        self.parse(self.word(place)?)
    }

    /// A text of this line as a number.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn parse<T: core::str::FromStr>(&self, text: &str) -> Result<T, Fault> {
        text.parse().map_err(|_| self.fault(format!("no number of the right size: {text}")))
    }
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The fault names the line.
    pub(crate) fn read(text: &str) -> Result<Self, Fault> {
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let about = lines.first().and_then(|line| line.strip_prefix("# "));
        let about = about.ok_or_else(|| Fault::new(1, "the first line says which rule: # ..."))?;
        let about = about.to_string();
        let mut script = Self { about, job: Vec::new(), blocks: Vec::new(), lines };
        let mut commands = Vec::new();
        let mut place = 0;
        while let Some(text) = script.lines.get(place).map(String::as_str) {
            let number = place + 1;
            place += 1;
            if text == "----" {
                place = script.read_outputs(place, core::mem::take(&mut commands))?;
            } else if text.starts_with(' ') && !text.trim().is_empty() {
                let child = Line::read(number, text)?;
                let parent: &mut Line =
                    commands.last_mut().ok_or_else(|| Fault::new(number, "nothing above"))?;
                parent.children.push(child);
            } else if !text.trim().is_empty() && !text.starts_with('#') {
                let line = Line::read(number, text)?;
                if line.words[0] == "job" && !line.options.is_empty() {
                    script.take_job(line)?;
                } else {
                    commands.push(line);
                }
            }
        }
        if let Some(line) = commands.first() {
            return Err(line.fault("these commands observe nothing: a line ---- is missing"));
        }
        if script.blocks.is_empty() {
            return Err(Fault::new(1, "the script observes nothing"));
        }
        Ok(script)
    }

    fn take_job(&mut self, line: Line) -> Result<(), Fault> {
        if !self.blocks.is_empty() {
            return Err(line.fault("a job is set up before the first block"));
        }
        self.job.extend(line.options);
        Ok(())
    }

    /// Reads the outputs from a place on; gives the place behind them.
    fn read_outputs(&mut self, place: usize, commands: Vec<Line>) -> Result<usize, Fault> {
        if commands.is_empty() {
            return Err(Fault::new(place, "outputs of no command"));
        }
        let outputs = self.lines[place..].iter().take_while(|line| !line.is_empty());
        let expected: Vec<String> = outputs.cloned().collect();
        let end = place + expected.len();
        self.blocks.push(Block { commands, expected, expected_at: place + 1 });
        Ok(end)
    }

    /// The source with these outputs in place of the expected ones, block by block.
    pub(crate) fn with_outputs(&self, outputs: &[Vec<String>]) -> String {
        let mut lines = Vec::new();
        let mut from = 0;
        for (block, observed) in self.blocks.iter().zip(outputs) {
            let begin = block.expected_at - 1;
            lines.extend_from_slice(&self.lines[from..begin]);
            lines.extend_from_slice(observed);
            from = begin + block.expected.len();
        }
        lines.extend_from_slice(&self.lines[from..]);
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A rule.\njob turns=2\n\n# Why.\np1 = w1 prepare A1 shape=2x100\nlist\n  \
                        w1 release p1\n----\nw1#1 -> prepared p1\n\nsync\n----\n";

    #[test]
    fn blocks_hold_commands_options_and_outputs() {
        let script = Script::read(TEXT).unwrap();
        assert_eq!(script.about, "A rule.");
        assert_eq!(script.job, [("turns".to_string(), "2".to_string())]);
        let [first, second] = script.blocks.as_slice() else { panic!("two blocks") };
        assert_eq!(first.commands[0].binds, ["p1"]);
        assert_eq!(first.commands[0].words, ["w1", "prepare", "A1"]);
        assert_eq!(first.commands[0].option("shape"), Some("2x100"));
        assert_eq!(first.commands[1].children[0].number, 7);
        assert_eq!(first.expected, ["w1#1 -> prepared p1"]);
        assert_eq!(first.expected_at, 9);
        assert!(second.expected.is_empty());
    }

    #[test]
    fn outputs_are_rewritten_in_place() {
        let script = Script::read(TEXT).unwrap();
        let same = [vec!["w1#1 -> prepared p1".to_string()], vec![]];
        assert_eq!(script.with_outputs(&same), TEXT);
        let other = [vec!["a".to_string(), "b".to_string()], vec!["c".to_string()]];
        let rewritten = script.with_outputs(&other);
        assert_eq!(rewritten, TEXT.replace("w1#1 -> prepared p1", "a\nb") + "c\n");
    }

    #[test]
    fn faults_name_their_line() {
        let fault = |text: &str| Script::read(text).unwrap_err().line;
        assert_eq!(fault("w1 collect 1\n----\n"), 1);
        assert_eq!(fault("# A rule.\nw1 collect 1\n"), 2);
        assert_eq!(fault("# A rule.\n----\nx\n"), 2);
        assert_eq!(fault("# A rule.\nw1 collect limit=\n----\n"), 2);
        assert_eq!(fault("# A rule.\n  w1 collect 1\n----\n"), 2);
        assert_eq!(fault("# A rule.\nsync\n----\n\njob turns=1\n"), 5);
        assert_eq!(fault("# A rule.\n"), 1);
    }
}
