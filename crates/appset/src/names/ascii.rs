//! Characters outside ASCII, written in ASCII as gosimple/slug does. Main function: [`of`].
//!
//! What is not in a table here becomes `-`: Chinese, Japanese and Korean, for example.

/// What a character becomes in a slug: in lower case, with `-` for what no slug has.
pub fn of(character: char) -> &'static str {
    let code = u32::from(character);
    // Those beyond the first plane, such as emojis, vanish.
    if code > 0xffff {
        return "";
    }
    let in_block = |(first, texts): &(u32, &'static str)| {
        let index = usize::try_from(code.checked_sub(*first)?).ok()?;
        texts.split_ascii_whitespace().nth(index)
    };
    match BLOCKS.iter().find_map(in_block) {
        Some(".") => "",
        Some(text) => text,
        None => "-",
    }
}

/// Blocks of characters: the first one, and what each becomes; `.` stands for nothing.
const BLOCKS: [(u32, &str); 4] = [
    (0x80, LATIN),
    (0x370, GREEK_AND_CYRILLIC),
    (0x1e00, MORE_LATIN),
    (0x2010, PUNCTUATION),
];

/// U+0080 to U+024F.
const LATIN: &str = "\
    . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . - - c- ps - y- - ss - -c- a \
    - - . -r- - deg -- 2 3 - u p - - 1 o - 1-4 1-2 3-4 - a a a a a a ae c e e e e i i i i d n o \
    o o o o x o u u u u y th ss a a a a a a ae c e e e e i i i i d n o o o o o - o u u u u y th \
    y a a a a a a c c c c c c c c d d d d e e e e e e e e e e g g g g g g g g h h h h i i i i i \
    i i i i i ij ij j j k k k l l l l l l l l l l n n n n n n -n ng ng o o o o o o oe oe r r r \
    r r r s s s s s s s s t t t t t t u u u u u u u u u u u u w w y y y z z z z z z s b b b b 6 \
    6 o c c d d d d d 3 - e f f g g hv i i k k l l w n n o o o oi oi p p yr 2 2 sh sh t t t t u \
    u y v y y z z zh zh zh zh 2 5 5 ts w - - - - dz dz dz lj lj lj nj nj nj a a i i o o u u u u \
    u u u u u u - a a a a ae ae g g g g k k o o o o zh zh j dz dz dz g g hv w n n a a ae ae o o \
    a a a a e e e e i i i i o o o o r r r r u u u u s s t t y y h h n d ou ou z z a a e e o o o \
    o o o o o y y l n t j db qp a c c l t s z - - b u - e e j j q q r r y y";

/// U+0370 to U+052F.
const GREEK_AND_CYRILLIC: &str = "\
    - - - - - - - - - - . - - - - - - - - - . . a - e e i - o - u o i a b g d e z e th i k l m \
    n ks o p r - s t u ph kh ps o i u a e e i u a b g d e z e th i k l m n x o p r s s t u ph \
    kh ps o i u o u o - b th u u u ph p - - - st st w w q q sp sp sh sh f f kh kh h h g g ch ch \
    ti ti k r c j - - - - - - - - - - - . ie io dj gj ie dz i yi j lj nj tsh kj i u dzh a b v g \
    d e zh z i i k l m n o p r s t u f kh ts ch sh shch - y - e iu ia a b v g d e zh z i i k l \
    m n o p r s t u f kh ts ch sh shch - y - e iu ia ie io dj gj ie dz i yi j lj nj tsh kj i u \
    dzh o o e e ie ie e e ie ie o o io io ks ks ps ps f f y y y y u u o o o o ot ot q q -1000- \
    . . . . - -100-000- -1-000-000- - - - - r- r- g- g- g- g- g- g- zh- zh- z- z- k- k- k- k- \
    k- k- k- k- n- n- ng ng p- p- kh kh s- s- t- t- u u u- u- kh- kh- tts tts ch- ch- ch- ch- h \
    h ch ch ch- ch- - zh zh k- k- - - n- n- - - ch ch - - - a a a a ae ae ie ie - - - - zh zh z \
    z dz dz i i i i o o o o o o e e u u u u u u ch ch - - y y - - - - - . - - - - - - - - - - - \
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -";

/// U+1E00 to U+1EFF: Vietnamese, among others.
const MORE_LATIN: &str = "\
    a a b b b b b b c c d d d d d d d d d d e e e e e e e e e e f f g g h h h h h h h h h h i i \
    i i k k k k k k l l l l l l l l m m m m m m n n n n n n n n o o o o o o o o p p p p r r r r \
    r r r r s s s s s s s s s s t t t t t t t t u u u u u u u u u u v v v v w w w w w w w w w w \
    x x x x y y z z z z z z h t w y a s - - ss - a a a a a a a a a a a a a a a a a a a a a a a \
    a e e e e e e e e e e e e e e e e i i i i o o o o o o o o o o o o o o o o o o o o o o o o u \
    u u u u u u u u u u u u u y y y y y y y y - - - - - .";

/// U+2010 to U+205F.
const PUNCTUATION: &str = "\
    - - - - -- -- - _ - - - - - - - - - - - - - - - - - - . . . . . - -0 -00 - - - - - - - - - \
    - - - - _ - - - -- - -- -- - - - 7 pp - - - - - - - - - - - - - - - - - - - -";

#[cfg(test)]
mod tests {
    use super::{BLOCKS, of};

    #[test]
    fn letters_and_signs_are_written_in_ascii() {
        for (text, wanted) in [
            ("größeÉøłđÞ", "grosseeoldth"),
            ("Жщёйяю", "zhshchioiiaiu"),
            ("αΩθ", "aoth"),
            ("Việt", "Viet"),
            ("a–b…", "a-b-"),
            ("\u{1f680}x", "x"),
            ("\u{85}x", "x"),
            ("漢", "-"),
        ] {
            let made: String = text
                .chars()
                .map(|c| match c.is_ascii() {
                    true => c.to_string(),
                    false => of(c).to_owned(),
                })
                .collect();
            assert_eq!(made, wanted, "{text}");
        }
    }

    #[test]
    fn every_block_is_whole() {
        let lengths = BLOCKS.map(|(_, texts)| texts.split_ascii_whitespace().count());
        assert_eq!(lengths, [0x1d0, 0x1c0, 0x100, 0x50]);
    }
}
