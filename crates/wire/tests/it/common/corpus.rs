//! The packets in `tests/corpus`.

/// A packet of the corpus.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub name: String,
    /// Made by hand; else by Linux.
    pub made: bool,
    /// Why it is refused, if it is.
    pub error: Option<String>,
    /// The algorithm of ESP, with the upper half of an extended number.
    pub keys: Option<String>,
    pub bytes: Vec<u8>,
}

/// All of them but those in ESP transport mode.
pub(crate) fn cases() -> Vec<Case> {
    of(&[(include_str!("../corpus/linux.hex"), false), (include_str!("../corpus/made.hex"), true)])
}

/// Those in ESP transport mode.
pub(crate) fn protected() -> Vec<Case> {
    of(&[(ESP, true)])
}

pub(crate) const ESP: &str = include_str!("../corpus/esp.hex");

fn of(files: &[(&str, bool)]) -> Vec<Case> {
    let lines = files.iter().flat_map(|(text, made)| text.lines().map(|line| (line.trim(), *made)));
    let mut cases = Vec::<Case>::new();
    for (line, made) in lines {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            cases.push(Case { name: name.to_owned(), made, ..Case::default() });
        } else if let (false, Some(case)) = (line.starts_with('#'), cases.last_mut()) {
            match line.split_at_checked(2) {
                Some(("! ", error)) => case.error = Some(error.to_owned()),
                Some(("@ ", keys)) => case.keys = Some(keys.to_owned()),
                _ => case.bytes.extend(hex(line)),
            }
        }
    }
    cases
}

fn hex(line: &str) -> impl Iterator<Item = u8> {
    line.as_bytes().chunks(2).map(|digits| {
        let digits = std::str::from_utf8(digits).expect("ASCII");
        u8::from_str_radix(digits, 16).expect("two hexadecimal digits")
    })
}
