//! Which words are one token each: found by asking whoever has the vocabulary, before the run.
//!
//! Owns the questions. Whom they are put to, a tokenizer in this process or a server, is handed in, and so is how many
//! may be asked. What is found is put to the test: texts of all lengths are put together as the run would and counted
//! whole, and words that do not add up are left out.

use std::collections::HashSet;
use std::fmt;

use super::pieces::{Pieces, WORDS_MIN};
use super::prompts::WARMUP;
use super::words::WORDS;
use crate::plan::{Begins, Found};
use crate::rng::Purpose;

/// Gives the tokens of a text, without any that mark its beginning or end; an error says in words why it cannot.
pub type Ask<'a> = dyn FnMut(&str) -> Result<Vec<u32>, String> + 'a;

/// How the search is made.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Words beyond the list that may stand in for those of it, the likeliest first.
    pub further: &'a [String],
    /// Prompts go into a template, which may cut off blanks before them.
    pub in_template: bool,
    /// Prompts are to be lists of ids.
    pub ids: bool,
    /// How many questions may be asked, about.
    pub questions: usize,
}

/// Why no words were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Nobody answers.
    Unanswered(String),
    /// So many of the words are one token each, which is too few.
    TooFew(usize),
    /// Words that are one token each are not when they stand together, whichever are left out.
    NotAdditive,
}

/// Finds words that are one token each.
///
/// # Errors
/// [`Unfit`].
pub fn measure(ask: &mut Ask<'_>, wish: &Wish<'_>) -> Result<Found, Unfit> {
    let mut search = Search { ask, left: wish.questions, anchor: 0 };
    search.anchor = search.count(ANCHOR)?;
    let listed: Vec<&str> = std::iter::once(WARMUP).chain(WORDS).collect();
    let mut single = search.singles(&listed, " ")?;
    let mut further = Vec::new();
    if single.len() < ENOUGH {
        let new: Vec<&str> = wish
            .further
            .iter()
            .map(String::as_str)
            .filter(|word| !listed.contains(word))
            .take(FURTHER_MAX)
            .collect();
        further = search.singles(&new, " ")?;
        single.extend_from_slice(&further);
    }
    if single.len() <= WORDS_MIN {
        return Err(Unfit::TooFew(single.len()));
    }
    let mut begins = search.begins(&single)?;
    if wish.in_template && !wish.ids && begins == Begins::Spaced {
        // A template that cuts blanks off leaves the first word bare, after the end of a line as a rule.
        let bare = search.singles(&single, "\n")?;
        if bare.len() > WORDS_MIN && bare.len() * 2 >= single.len() {
            (single, begins) = (bare, Begins::Bare);
        }
    }
    search.tested(Sorted { listed, further, single }, begins, wish)
}

/// Words by what they are.
struct Sorted<'a> {
    listed: Vec<&'a str>,
    further: Vec<&'a str>,
    single: Vec<&'a str>,
}

impl Sorted<'_> {
    fn found(&self, begins: Begins) -> Found {
        let single: HashSet<&str> = self.single.iter().copied().collect();
        let owned = |words: &[&str], kept: bool| {
            let chosen = words.iter().filter(|word| single.contains(**word) == kept);
            chosen.map(|word| (*word).to_owned()).collect()
        };
        Found {
            begins: Some(begins),
            left_out: owned(&self.listed, false),
            further: owned(&self.further, true),
            ..Found::on_average(1.0)
        }
    }
}

struct Search<'a, 'b> {
    ask: &'a mut Ask<'b>,
    /// Questions that may still be asked.
    left: usize,
    /// Tokens of the text before the words that are counted.
    anchor: usize,
}

impl Search<'_, '_> {
    fn tokens(&mut self, text: &str) -> Result<Vec<u32>, Unfit> {
        self.left = self.left.saturating_sub(1);
        (self.ask)(text).map_err(Unfit::Unanswered)
    }

    fn count(&mut self, text: &str) -> Result<usize, Unfit> {
        self.tokens(text).map(|tokens| tokens.len())
    }

    /// Tokens of words after others.
    fn count_of(&mut self, words: &[&str], joint: &str) -> Result<usize, Unfit> {
        let text: String =
            std::iter::once(ANCHOR).chain(words.iter().flat_map(|word| [joint, word])).collect();
        Ok(self.count(&text)?.saturating_sub(self.anchor))
    }

    /// The words that are one token each after others, or after the end of a line, which is another token then. Groups
    /// are halved until all of one are, or one word is left; where there are no questions left, groups are left out whole.
    fn singles<'w>(&mut self, words: &[&'w str], joint: &str) -> Result<Vec<&'w str>, Unfit> {
        let per_word = if joint == " " { 1 } else { 2 };
        let mut single: Vec<&str> = Vec::new();
        let mut groups = std::collections::VecDeque::from([words]);
        while let Some(group) = groups.pop_front() {
            if self.left <= TESTS || group.is_empty() {
                continue;
            }
            if self.count_of(group, joint)? == per_word * group.len() {
                single.extend_from_slice(group);
            } else if group.len() > 1 {
                let (before, behind) = group.split_at(group.len() / 2);
                groups.extend([before, behind]);
            }
        }
        let kept: HashSet<&str> = single.into_iter().collect();
        Ok(words.iter().copied().filter(|word| kept.contains(word)).collect())
    }

    /// How a word begins a text as the token that it is within one.
    fn begins(&mut self, single: &[&str]) -> Result<Begins, Unfit> {
        let mut can = [(Begins::Bare, "", true), (Begins::Spaced, " ", true)];
        let step = single.len().div_ceil(SAMPLES).max(1);
        for word in single.iter().step_by(step) {
            let within = self.tokens(&format!("{ANCHOR} {word}"))?.last().copied();
            for (_, blank, holds) in can.iter_mut().filter(|(.., holds)| *holds) {
                let first = self.tokens(&format!("{blank}{word}"))?;
                *holds = first.len() == 1 && first.last().copied() == within;
            }
        }
        can.into_iter().find(|(.., holds)| *holds).map(|(begins, ..)| begins).ok_or(Unfit::NotAdditive)
    }

    /// What is found once texts put together as in a run have as many tokens as words.
    fn tested(&mut self, mut sorted: Sorted<'_>, begins: Begins, wish: &Wish<'_>) -> Result<Found, Unfit> {
        for _ in 0..ROUNDS {
            let found = sorted.found(begins);
            let pieces = Pieces::new(&found).ok_or(Unfit::TooFew(sorted.single.len()))?;
            let Some(culprits) = self.culprits(&pieces, begins, wish.questions)? else {
                if !wish.ids {
                    return Ok(found);
                }
                let ids = self.ids(&pieces)?;
                return Ok(Found { ids, ..found });
            };
            let before = sorted.single.len();
            sorted.single.retain(|word| !culprits.contains(*word));
            if sorted.single.len() == before {
                break;
            }
        }
        Err(Unfit::NotAdditive)
    }

    /// Words that make texts of another length than theirs; `None` if all texts are as long as they should be.
    fn culprits(
        &mut self,
        pieces: &Pieces,
        begins: Begins,
        questions: usize,
    ) -> Result<Option<HashSet<String>>, Unfit> {
        let pairs = if questions == usize::MAX { PAIRS_WITHIN } else { PAIRS_ASKED };
        let lengths = LENGTHS.into_iter().chain(std::iter::repeat_n(PAIRS_TOKENS, pairs));
        let mut culprits = HashSet::new();
        for (index, tokens) in lengths.enumerate() {
            let mut text = String::new();
            // The seed is any; the indices reach beyond one digit.
            pieces.write_prompt(&mut text, (1, Purpose::Prompt, 600 * index as u64), tokens, true);
            if self.count(&text)? == tokens as usize {
                continue;
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            self.blame(&words, &mut culprits)?;
            if culprits.is_empty() {
                // Within a text they add up: it is the beginning.
                culprits.extend(words.first().map(|word| (*word).to_owned()));
                let blank = if begins == Begins::Spaced { " " } else { "" };
                if self.count(&format!("{blank}{}", words[0]))? == 1 {
                    return Err(Unfit::NotAdditive);
                }
            }
        }
        Ok((!culprits.is_empty()).then_some(culprits))
    }

    /// Finds the words of a text that do not add up, by halves that share a word.
    fn blame(&mut self, words: &[&str], culprits: &mut HashSet<String>) -> Result<(), Unfit> {
        let mut parts = vec![words];
        while let Some(part) = parts.pop() {
            if culprits.len() >= CULPRITS_MAX || self.count_of(part, " ")? == part.len() {
                continue;
            }
            if part.len() <= 2 {
                culprits.extend(part.last().map(|word| (*word).to_owned()));
                continue;
            }
            let middle = part.len() / 2;
            parts.extend([&part[..=middle], &part[middle..]]);
        }
        Ok(())
    }

    /// The ids of the words that prompts are made of.
    fn ids(&mut self, pieces: &Pieces) -> Result<Vec<u32>, Unfit> {
        let words = pieces.words();
        let text: String = std::iter::once(ANCHOR).chain(words.iter().flat_map(|word| [" ", word])).collect();
        let ids = self.tokens(&text)?.split_off(self.anchor);
        if ids.len() == words.len() { Ok(ids) } else { Err(Unfit::NotAdditive) }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unanswered(why) => f.write_str(why),
            Unfit::TooFew(count) => {
                write!(
                    f,
                    "{count} of the words of prompts are one token each, and {} are needed",
                    WORDS_MIN + 1
                )
            }
            Unfit::NotAdditive => {
                f.write_str("words that are one token each are more or fewer where they stand together")
            }
        }
    }
}

impl std::error::Error for Unfit {}

/// What stands before words that are counted: they are looked at within a text.
const ANCHOR: &str = "the";
/// With so many words of the list no further ones are looked for.
const ENOUGH: usize = 257;
/// Most further words that are looked at.
const FURTHER_MAX: usize = 2048;
/// Words by which it is seen how a text begins.
const SAMPLES: usize = 12;
/// Questions that are kept for that and for the test of what was found.
const TESTS: usize = 96;
/// Texts that are counted whole: their lengths, and more of one length, in which words meet at random.
const LENGTHS: [u32; 7] = [1, 2, 3, 17, 128, 512, 4000];
const PAIRS_TOKENS: u32 = 1024;
const PAIRS_ASKED: usize = 16;
const PAIRS_WITHIN: usize = 64;
/// Rounds of leaving out, and most words that one finds.
const ROUNDS: usize = 8;
const CULPRITS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: usize = 400;

    fn wish() -> Wish<'static> {
        Wish { further: &[], in_template: false, ids: false, questions: SERVER }
    }

    /// A vocabulary in which a word after a blank is one token, by its place in the list, unless it is `odd`: then it is
    /// its letters. A bare word is its letters, if `spaced`. Two `fused` words beside each other are one token.
    struct Toy {
        spaced: bool,
        odd: fn(&str) -> bool,
        fused: Option<(&'static str, &'static str)>,
        asked: usize,
    }

    impl Toy {
        fn new(spaced: bool, odd: fn(&str) -> bool) -> Toy {
            Toy { spaced, odd, fused: None, asked: 0 }
        }

        fn tokens(&mut self, text: &str) -> Vec<u32> {
            self.asked += 1;
            let mut tokens = Vec::new();
            let mut last = "";
            for (line, part) in text.split('\n').enumerate() {
                tokens.extend((line > 0).then_some(10));
                for (place, word) in part.split(' ').enumerate() {
                    if word.is_empty() {
                        continue;
                    }
                    let is_bare = place == 0 && self.spaced;
                    if self.fused == Some((last, word)) {
                        // One with the token before.
                    } else if is_bare || (self.odd)(word) {
                        tokens.extend(word.bytes().map(u32::from));
                    } else {
                        tokens.push(id_of(word));
                    }
                    last = word;
                }
            }
            tokens
        }
    }

    fn id_of(word: &str) -> u32 {
        word.bytes().fold(1000, |id, byte| id * 31 % 1_000_003 + u32::from(byte))
    }

    fn measured(toy: &mut Toy, wish: &Wish<'_>) -> Result<Found, Unfit> {
        let mut ask = |text: &str| Ok(toy.tokens(text));
        measure(&mut ask, wish)
    }

    fn assert_exact(toy: &mut Toy, found: &Found) {
        let pieces = Pieces::new(found).unwrap();
        for (index, tokens) in [1, 5, 17, 512, 4000].into_iter().enumerate() {
            let mut text = String::new();
            pieces.write_prompt(&mut text, (9, Purpose::Prompt, index as u64), tokens, true);
            assert_eq!(toy.tokens(&text).len(), tokens as usize);
        }
    }

    #[test]
    fn a_vocabulary_that_has_all_words_takes_few_questions() {
        for (spaced, begins) in [(true, Begins::Spaced), (false, Begins::Bare)] {
            let mut toy = Toy::new(spaced, |_| false);
            let found = measured(&mut toy, &wish()).unwrap();
            assert_eq!(found, Found { begins: Some(begins), ..Found::on_average(1.0) });
            assert!(toy.asked < 64, "{}", toy.asked);
            assert_exact(&mut toy, &found);
        }
    }

    #[test]
    fn words_that_are_more_than_one_token_are_left_out() {
        let mut toy = Toy::new(true, |word| word.starts_with("st") || word == "warm");
        let found = measured(&mut toy, &Wish { questions: usize::MAX, ..wish() }).unwrap();
        let odd = WORDS.iter().filter(|word| word.starts_with("st")).count();
        assert_eq!(found.left_out.len(), odd + 1);
        assert_exact(&mut toy, &found);
        // Few questions leave out more, never less.
        let mut toy = Toy { asked: 0, ..toy };
        let found = measured(&mut toy, &wish()).unwrap();
        assert!(found.left_out.len() >= odd && toy.asked <= SERVER + TESTS, "{}", toy.asked);
        assert_exact(&mut toy, &found);
    }

    #[test]
    fn words_that_fuse_are_found_by_the_whole_texts_and_left_out() {
        // In the order of the list they never meet; in 64 * 1024 draws of 1024 words any two do with 6 %, so all of a
        // word do.
        let mut toy = Toy::new(true, |_| false);
        let mut text = String::new();
        Pieces::new(&Found { begins: Some(Begins::Spaced), ..Found::on_average(1.0) }).unwrap().write_prompt(
            &mut text,
            (1, Purpose::Prompt, 600 * 6),
            4000,
            true,
        );
        let words: Vec<&'static str> = text
            .split_whitespace()
            .map(|word| *WORDS.iter().find(|listed| **listed == word).unwrap())
            .collect();
        toy.fused = Some((words[2000], words[2001]));
        let found = measured(&mut toy, &Wish { questions: usize::MAX, ..wish() }).unwrap();
        assert_eq!(found.left_out, [words[2001]]);
        assert_exact(&mut toy, &found);
    }

    #[test]
    fn a_template_that_may_cut_blanks_gets_words_that_are_one_token_either_way() {
        // Bare words are no tokens: then a blank is what is left, template or not.
        let mut toy = Toy::new(true, |_| false);
        let found = measured(&mut toy, &Wish { in_template: true, ..wish() }).unwrap();
        assert_eq!(found.begins, Some(Begins::Spaced));
        // One word in three is one token only after a blank.
        let bare = |word: &str| word.len() != 4;
        let mut ask = |text: &str| {
            let mut tokens = Vec::new();
            for (line, part) in text.split('\n').enumerate() {
                tokens.extend((line > 0).then_some(10));
                for (place, word) in part.split(' ').enumerate().filter(|(_, word)| !word.is_empty()) {
                    let first = place == 0;
                    if first && !bare(word) && word != ANCHOR {
                        tokens.extend(word.bytes().map(u32::from));
                    } else {
                        tokens.push(id_of(word) + u32::from(first));
                    }
                }
            }
            Ok(tokens)
        };
        let wish = Wish { in_template: true, questions: usize::MAX, ..wish() };
        let found = measure(&mut ask, &wish).unwrap();
        assert_eq!(found.begins, Some(Begins::Bare));
        assert!(found.left_out.iter().all(|word| word.len() == 4));
    }

    #[test]
    fn a_vocabulary_of_other_words_gives_its_own() {
        let mut toy = Toy::new(false, |word| !word.starts_with("zu"));
        let further: Vec<String> = (b'a'..=b'z')
            .flat_map(|a| (b'a'..=b'c').map(move |b| format!("zu{}{}", a as char, b as char)))
            .collect();
        let found = measured(&mut toy, &Wish { further: &further, questions: usize::MAX, ..wish() }).unwrap();
        assert_eq!(found.further, further);
        assert_exact(&mut toy, &found);
        assert_eq!(measured(&mut toy, &wish()), Err(Unfit::TooFew(0)));
    }

    #[test]
    fn ids_are_those_of_the_words() {
        let mut toy = Toy::new(true, |_| false);
        let found = measured(&mut toy, &Wish { ids: true, ..wish() }).unwrap();
        let pieces = Pieces::new(&found).unwrap();
        let expected: Vec<u32> = pieces.words().into_iter().map(id_of).collect();
        assert_eq!(found.ids, expected);
    }

    #[test]
    fn nobody_who_answers_is_an_error() {
        let mut ask = |_: &str| Err("HTTP 500".to_owned());
        assert_eq!(measure(&mut ask, &wish()), Err(Unfit::Unanswered("HTTP 500".to_owned())));
    }
}
