//! A script as text: read into lines and blocks, and written again with other outputs.
//!
//! It is pure, keeps the source as it is, and every fault names its line. It never judges a verb.

/// A whole script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What its first comment line says.
    pub about: String,
    /// Where it runs.
    pub kind: Kind,
    /// Its header, for the options in it; without options where the script has none.
    pub header: Line,
    /// Its blocks, in order; at least one.
    pub blocks: Vec<Block>,
    /// The source, line by line.
    lines: Vec<String>,
}

/// Where a script runs, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Against one engine, without workers or network: `job`, or no header at all.
    Bench,
    /// In a World: `world`.
    World,
}

impl Kind {
    /// The first word of the header.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bench => "job",
            Self::World => "world",
        }
    }
}

/// Command lines, and what is to be observed of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The commands, in order; at least one.
    pub commands: Vec<Line>,
    /// The expected outputs.
    pub expected: Vec<String>,
    /// The line number of the first expected output, or where it would stand.
    pub expected_at: usize,
    /// There is no line `----` behind the commands: they end the script.
    is_open: bool,
}

/// One command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Names for the pins that its answer brings.
    pub binds: Vec<String>,
    /// The words that are no options; at least one.
    pub words: Vec<String>,
    /// The options, `key=value`.
    pub options: Vec<(String, String)>,
    /// The indented lines below it.
    pub children: Vec<Self>,
}

/// A fault of a script, with the line that it is on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Fault {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub what: String,
}

/// The most characters of a line, or of one of its words, that a message repeats.
const QUOTED: usize = 80;

impl Fault {
    /// A fault on a line. What it repeats of the line is cut where it is long.
    pub fn new(line: usize, what: impl Into<String>) -> Self {
        let what: String = what.into();
        let words: Vec<String> = what.split(' ').map(cut).collect();
        Self { line, what: words.join(" ") }
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

impl Line {
    /// One command line from its text.
    ///
    /// # Errors
    /// It has no verb, or half an option; the fault has the line's number.
    pub fn read(number: usize, text: &str) -> Result<Self, Fault> {
        let mut line = Self {
            number,
            binds: Vec::new(),
            words: Vec::new(),
            options: Vec::new(),
            children: Vec::new(),
        };
        let mut is_bound = false;
        for token in text.split_whitespace() {
            match token.split_once('=') {
                Some(("", "")) if is_bound || !line.options.is_empty() => {
                    return Err(Fault::new(
                        number,
                        "a second =, or one behind options: \
                        write names = verb words... key=value...",
                    ));
                }
                Some(("", "")) => {
                    is_bound = true;
                    line.binds = core::mem::take(&mut line.words);
                }
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    line.options.push((key.to_string(), value.to_string()));
                }
                Some(_) => {
                    let what = format!("half an option: {token}: write key=value, without spaces");
                    return Err(Fault::new(number, what));
                }
                None => line.words.push(token.to_string()),
            }
        }
        if line.words.is_empty() {
            return Err(Fault::new(number, "no verb: write [names =] verb words... key=value..."));
        }
        Ok(line)
    }

    /// A fault on this line.
    pub fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::new(self.number, what)
    }

    /// The word at a place; the verb is at 0.
    ///
    /// # Errors
    /// There is none.
    pub fn word(&self, place: usize) -> Result<&str, Fault> {
        let missing = || self.fault(format!("{}: word {place} is missing", self.quoted()));
        self.words.get(place).map(String::as_str).ok_or_else(missing)
    }

    /// Its words as a message repeats them: the beginning of a long line.
    #[must_use]
    pub fn quoted(&self) -> String {
        cut(&self.words.join(" "))
    }

    /// The value of an option.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(there, _)| there == key).map(|(_, value)| value.as_str())
    }

    /// The word at a place as a number.
    ///
    /// # Errors
    /// There is none, or it is no number of this size.
    pub fn number<T: core::str::FromStr>(&self, place: usize) -> Result<T, Fault> {
        self.parse(self.word(place)?)
    }

    /// A text of this line as a number.
    ///
    /// # Errors
    /// It is none of this size.
    pub fn parse<T: core::str::FromStr>(&self, text: &str) -> Result<T, Fault> {
        text.parse().map_err(|_| {
            self.fault(format!("{text} is no number of the right size: write it in digits"))
        })
    }

    /// The number of the last line that belongs to it.
    fn last_number(&self) -> usize {
        self.children.last().map_or(self.number, |child| child.number)
    }
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The fault names the line, and says what to write instead.
    pub fn read(text: &str) -> Result<Self, Fault> {
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let about = lines.first().and_then(|line| line.strip_prefix("# "));
        let about = about.ok_or_else(|| {
            Fault::new(1, "the first line does not say what the script shows: write # ...")
        })?;
        let about = about.to_string();
        let header = Line::read(1, Kind::Bench.word())?;
        let blocks = Vec::new();
        let mut script = Self { about, kind: Kind::Bench, header, blocks, lines };
        let mut commands: Vec<Line> = Vec::new();
        let mut place = 0;
        while let Some(text) = script.lines.get(place).map(String::as_str) {
            let number = place + 1;
            place += 1;
            if text == "----" {
                place = script.read_outputs(place, core::mem::take(&mut commands))?;
            } else if text.starts_with(' ') && !text.trim().is_empty() {
                let child = Line::read(number, text)?;
                let none = || Fault::new(number, "no command line is above: do not indent");
                commands.last_mut().ok_or_else(none)?.children.push(child);
            } else if !text.trim().is_empty() && !text.starts_with('#') {
                let line = Line::read(number, text)?;
                match header_kind(&line) {
                    Some(kind) => script.take_header(kind, line, commands.is_empty())?,
                    None => commands.push(line),
                }
            }
        }
        script.end(commands)?;
        Ok(script)
    }

    fn take_header(&mut self, kind: Kind, line: Line, is_first: bool) -> Result<(), Fault> {
        let is_first = is_first && self.blocks.is_empty() && self.header.options.is_empty();
        if !is_first || self.kind == Kind::World {
            let what = "a second header, or one behind a command: write all of its options once, \
                        before the first command";
            return Err(line.fault(what));
        }
        if line.words.len() > 1 || !line.binds.is_empty() {
            return Err(line.fault(format!("write {} key=value ... only", kind.word())));
        }
        self.kind = kind;
        self.header = line;
        Ok(())
    }

    /// Reads the outputs from a place on; gives the place behind them.
    fn read_outputs(&mut self, place: usize, commands: Vec<Line>) -> Result<usize, Fault> {
        if commands.is_empty() {
            return Err(Fault::new(place, "outputs of no command: write commands above the ----"));
        }
        let outputs = self.lines[place..].iter().take_while(|line| !line.is_empty());
        let expected: Vec<String> = outputs.cloned().collect();
        let end = place + expected.len();
        self.blocks.push(Block { commands, expected, expected_at: place + 1, is_open: false });
        Ok(end)
    }

    /// What stands behind the last outputs.
    fn end(&mut self, commands: Vec<Line>) -> Result<(), Fault> {
        if let (Some(first), Some(last)) = (commands.first(), commands.last()) {
            if self.kind == Kind::Bench {
                let what = "these commands observe nothing: write ---- behind them; a script of \
                            a World has a header before its first line: begin it with world ...";
                return Err(first.fault(what));
            }
            let expected_at = last.last_number() + 1;
            self.blocks.push(Block { commands, expected: Vec::new(), expected_at, is_open: true });
        }
        if self.blocks.is_empty() {
            return Err(Fault::new(1, "the script does nothing: write command lines"));
        }
        Ok(())
    }

    /// The source with these outputs in place of the expected ones, block by block.
    #[must_use]
    pub fn with_outputs(&self, outputs: &[Vec<String>]) -> String {
        let mut lines = Vec::new();
        let mut from = 0;
        for (block, observed) in self.blocks.iter().zip(outputs) {
            let begin = block.expected_at - 1;
            lines.extend_from_slice(&self.lines[from..begin]);
            from = begin + block.expected.len();
            let is_added = block.is_open && !observed.is_empty();
            if is_added {
                lines.push("----".to_string());
            }
            lines.extend_from_slice(observed);
            if is_added && self.lines.get(from).is_some_and(|next| !next.is_empty()) {
                lines.push(String::new());
            }
        }
        lines.extend_from_slice(&self.lines[from..]);
        lines.join("\n") + "\n"
    }
}

/// `job` without options is a query.
fn header_kind(line: &Line) -> Option<Kind> {
    match line.words[0].as_str() {
        "job" if !line.options.is_empty() => Some(Kind::Bench),
        "world" => Some(Kind::World),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A rule.\njob turns=2\n\n# Why.\np1 = w1 prepare A1 shape=2x100\nlist\n  \
                        w1 release p1\n----\nw1#1 -> prepared p1\n\nsync\n----\n";

    const WORLD: &str = "# A loss.\nworld workers=2 seed=7\n\nw1 save E1\n----\nw1#1 -> prepared\n\
                         \nlose reply\n----\n\nheal\n  slowly\n# The end.\n";

    #[test]
    fn blocks_hold_commands_options_and_outputs() {
        let script = Script::read(TEXT).unwrap();
        assert_eq!(script.about, "A rule.");
        assert_eq!(script.kind, Kind::Bench);
        assert_eq!(script.header.number, 2);
        assert_eq!(script.header.option("turns"), Some("2"));
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
    fn a_world_may_expect_nothing() {
        let script = Script::read(WORLD).unwrap();
        assert_eq!(script.kind, Kind::World);
        assert_eq!(script.header.option("seed"), Some("7"));
        let expected: Vec<_> = script.blocks.iter().map(|block| block.expected.len()).collect();
        assert_eq!(expected, [1, 0, 0]);
        assert_eq!(script.blocks[2].commands[0].words, ["heal"]);
        assert_eq!(Script::read("# A.\nworld\nheal\n").unwrap().kind, Kind::World);
    }

    #[test]
    fn a_script_without_a_header_runs_on_the_bench() {
        let script = Script::read("# A rule.\njob\n----\njob: turns=5\n").unwrap();
        assert_eq!((script.kind, script.header.options.len()), (Kind::Bench, 0));
        assert_eq!(script.blocks[0].commands[0].words, ["job"]);
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
    fn outputs_of_an_open_end_get_their_line() {
        let script = Script::read(WORLD).unwrap();
        let same = [vec!["w1#1 -> prepared".to_string()], vec![], vec![]];
        assert_eq!(script.with_outputs(&same), WORLD);
        let more = [same[0].clone(), vec![], vec!["I1 (oracle): a loss".to_string()]];
        let rewritten = script.with_outputs(&more);
        assert_eq!(Script::read(&rewritten).unwrap().blocks[2].expected, more[2]);
        assert_eq!(
            rewritten,
            WORLD.replace("  slowly\n", "  slowly\n----\nI1 (oracle): a loss\n\n")
        );
    }

    #[test]
    fn faults_name_their_line() {
        let fault = |text: &str| Script::read(text).unwrap_err().line;
        assert_eq!(fault("w1 collect 1\n----\n"), 1);
        assert_eq!(fault("# A rule.\nw1 collect 1\n"), 2);
        assert_eq!(fault("# A rule.\n----\nx\n"), 2);
        assert_eq!(fault("# A rule.\nw1 collect limit=\n----\n"), 2);
        assert_eq!(fault("# A rule.\n  w1 collect 1\n----\n"), 2);
        assert_eq!(fault("# A rule.\np1 = = w1 collect 1\n----\n"), 2);
        assert_eq!(fault("# A rule.\nsync\n----\n\njob turns=1\n"), 5);
        assert_eq!(fault("# A rule.\njob turns=1\njob turns=2\nsync\n----\n"), 3);
        assert_eq!(fault("# A rule.\nsync\nworld\n"), 3);
        assert_eq!(fault("# A rule.\nworld\nworld\n"), 3);
        assert_eq!(fault("# A rule.\njob now turns=1\nsync\n----\n"), 2);
        assert_eq!(fault("# A rule.\n"), 1);
        let shown = Script::read("# A rule.\nsync\n").unwrap_err().to_string();
        assert!(
            shown.starts_with("line 2: these commands observe nothing: write ---- "),
            "{shown}"
        );
        assert!(shown.ends_with("begin it with world ..."), "{shown}");
        let long = "x".repeat(1 << 20);
        let shown = Script::read(&format!("# A.\nw1 limit={long}= ={long}\n")).unwrap_err();
        assert!(shown.what.contains("xxx...") && shown.what.len() < 300, "{shown}");
        let line = Line::read(1, &"x ".repeat(1000)).unwrap();
        assert_eq!(line.word(1000).unwrap_err().what.chars().filter(|c| *c == 'x').count(), 40);
    }
}
