// The torture texts: what tokenizers get wrong, each kind of it under a name. Scripts, cases, marks,
// joiners, digits, spaces, line ends, code, every byte that UTF-8 can hold, and texts that look like
// special tokens. (Bytes that are no UTF-8 cannot be asked here, a JavaScript string has none: the
// unit tests have them.)

const kScripts = {
  latin: "The quick brown Fox, doesn't it? ÀÉÎÕÜ naïve façade Übergröße ĲsselMEER Straße ŁÓDŹ",
  cyrillic: "Съешь же ещё этих мягких французских булок, да выпей чаю. ПРИВЕТ МИР ДружБа",
  greek: "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΑΘΗΝΑ ὦ ἄνδρες Ἀθηναῖοι ᾼ",
  arabic: "السلام عليكم ورحمة الله، كيف حالك؟ ١٢٣٤٥ لُغَةٌ عَرَبِيَّة",
  hebrew: "שָׁלוֹם עולם, מה שלומך? בְּרֵאשִׁית 123 אבג״ד",
  devanagari: "नमस्ते दुनिया, आप कैसे हैं? क्षत्रिय १२३४५ हिन्दी।",
  bengali: "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি। ১২৩",
  tamil: "வணக்கம் உலகம், எப்படி இருக்கிறீர்கள்? ௧௨௩",
  thai: "สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง ๑๒๓๔ กำลัง",
  chinese: "你好，世界！今天天气很好。一二三四五六七八九十，２０２６年。龥鿿㐀𠀀",
  japanese: "こんにちは世界。カタカナとひらがな、漢字ー々ゝヽ「括弧」１２３ｶﾀｶﾅ",
  korean: "안녕하세요 세계! 한국어 텍스트입니다. ㄱㄴㄷ 가나다라 힣",
  georgian: "გამარჯობა მსოფლიო ᲒᲐᲛᲐᲠᲯᲝᲑᲐ Ⴂ",
  armenian: "Բարեւ աշխարհ, ԲԱՐԵՒ ինչպե՞ս ես",
  ethiopic: "ሰላም ለዓለም። ፩፪፫ አማርኛ",
  khmer: "សួស្តី​ពិភពលោក ១២៣ ភាសាខ្មែរ",
  cherokee: "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꭰꭱꭲ",
  mixed_scripts: "abcабвαβγ漢字かなカナ한글אבגदेव123abc日本語English中文РусскийX日",
};

const kUnicode = {
  emoji: "😀😃🎉 👍🏽👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ ☺︎ #️⃣ 1️⃣ 👨🏿‍🚀text🚀text",
  combining_marks:
    "e\u0301a\u0300\u0323 n\u0303o\u0308\u0304 \u0301leading a\u20dd Z\u0351\u036b\u0343a\u0316l\u0321g\u0325o\u0347 x\u0301y\u0302Z\u0303",
  marks_alone: "\u0301\u0300\u0302 \u0903\u093f . \u0e31\u0e4e",
  format_characters:
    "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u202ah\u202ci\u061cj\u180ek\u180e l",
  title_and_modifier_letters: "ǅ ǈa ǲB ʰʱʲ ˀˁ ªº ꟸꟹ ㆝ ⁿi ᵃb Aʰb aʰB ǅungla ῼα ŉ",
  symbols: "€£¥₿ ©®™ ±×÷≠≤≥∞∑∫√ ←→⇒ ①②③ ½¾⅓ ²³¹ ⅠⅡⅢ ⅷ ℃℉Ωℵ ♠♥♦♣ ░▒▓█ ▁▂▃ `´¨^~",
  punctuation:
    "«quoted» “double” ‘single’ „low‟ …—–‐‑ ¿qué? ¡sí! 、。「」『』【】 ‽⁂ ；：！？ ﹏_‿ ؟،؛ ।॥ ・",
  full_width: "ＡＢＣａｂｃ１２３！＂＃＄％＆（）＊＋，－．／：；＜＝＞？＠［＼］＾＿｀｛｜｝～",
  astral: "𝐀𝐁𝐜𝟏𝟐𝟑 𐐀𐐨𐑄 𐒰𐓘 𞤀𞤢 𝓗𝓮𝓵𝓵𝓸 𓀀𓂀 𒀀𒁀 🀄🂡 𠮷野家 𑢠𑣀",
  private_and_noncharacters:
    "\ue000\uf8ff\u{f0000}\u{10fffd} \ufffe\uffff\ufdd0 \ufffd \u0378\u0379",
};

const kDigits = {
  digits:
    "1 12 123 1234 12345 123456 1234567 12345678901234567890 3.14159 1,000,000.00 0x1F 1e-10 v2.0.1 2026-08-22 12:34:56 1st 2nd a1b2c3 007 ½1 1½ ²2 x²y³ 1٣2 १2३",
  digits_and_letters: "abc123def456 GPT4o H2O CO2e B2B 3D 4th1st 12ab34cd R2D2 2x4",
  digits_and_punctuation: "$100 100% #1 (123) [456] 1/2 3-4 5_6 7*8 9=9 1'234 '99 12'34",
};

const kContractions = {
  contractions:
    "I'm you're he's we'll they've I'd don't can't it's I'M YOU'RE HE'S WE'LL THEY'VE I'D DON'T 'Re 'vE 'lL 's 't 'em 'cause",
  long_s: "it'ſo it'ſo it'ſo it'ſo it'ſo it'ſo",
  contractions_after_all_kinds:
    "1's 2'll ä's Ж'd 日's )'s  's \n's's''s'''s 'sx 'S'T'RE'VE'M'LL'D don’t ’s x'sy X'SY A'lla",
};

const kSpaces = {
  spaces: "a b  c   d    e     f      g       h        i                                 j",
  leading_and_trailing_spaces: "   three before and two behind  ",
  only_spaces: "          ",
  one_space: " ",
  tabs: "\ta\t\tb\t \tc \t d\t\n\te\n\t\tf  \t  g\t",
  line_ends: "a\nb\n\nc\n\n\nd\r\ne\r\n\r\nf\rg\r\rh\n\r\n\ri \nj\n k\n  l  \n  m\r\n  n",
  trailing_line_ends: "text\n\n\n",
  leading_line_ends: "\n\n\ntext",
  only_line_ends: "\n\n\r\n\r\n\n",
  spaces_before_line_ends: "a   \n  b \t \r\n\t c\n   \n   \n   d",
  other_spaces:
    "a\u00a0b\u00a0\u00a0c\u2003d\u2003 e\u3000f\u3000\u3000g\u2028h\u2029i\u0085j\u0085\u0085k\u1680l\u202fm\u205fn\u000bo\u000cp \u00a0 q\u00a0\nr",
  spaces_around_punctuation:
    " . , !  ?   ;    : ( ) [ ] { } - -- --- = == === / // /// \\ | & * # @ ~ ` ' \" < > <<<>>>  ...  ",
  long_spaces: `x${" ".repeat(700)}y${"\t".repeat(90)}z${"\n".repeat(130)}w${" \n".repeat(60)}v${"\u3000".repeat(40)}`,
};

const kCode = {
  c: '#include <stdio.h>\nint main(int argc, char **argv) {\n\tfor (int i = 0; i < 10; ++i) {\n\t\tprintf("%d\\n", i);\n\t}\n\treturn x->y ? a[i] : b::c(); // done\n}\n',
  python:
    'def f(x: int) -> str:\n    """Doc."""\n    if x != 0 and x**2 >= 4:\n        return f"{x!r}\\t{x:>8.3f}"\n    raise ValueError(\'bad: %s\' % x)  # TODO\n\n\n@decorator\nclass A(B):\n    pass\n',
  json: '{"key": [1, 2.5, -3e8, true, null], "nested": {"a\\"b": "\\u00e9", "": []}}\n',
  html: '<!DOCTYPE html>\n<a href="https://example.org/x?y=1&z=2#f">link</a><br/>\n<!-- comment -->\n',
  shell:
    "for f in *.txt; do cat \"$f\" | grep -E '^[0-9]+$' >> /tmp/out 2>&1; done && rm -rf ./x\r\n",
  identifiers:
    "camelCaseName PascalCaseName snake_case_name SCREAMING_CASE kebab-case XMLHttpRequest iPhone eBay McDonald getHTTPResponse2XX ÉtéÀLaPlage ПриветМир aBcDeF AbCdEf",
  slashes: "/usr/local/bin/ C:\\Users\\x\\ http://a.b/c//d ./.. a/b\n/c /\n// \n/*\n*/ !/\r\n?/",
  latex:
    "\\frac{\\alpha}{\\beta} $x^2 + y_{i+1} \\leq \\sum_{n=0}^\\infty \\frac{1}{n!}$ \\begin{align*}",
  cjk_and_code: '函数foo(参数bar)返回值123。print("你好，World！")＃注释',
};

const kRepeated = {
  letters_without_spaces: "abcdefghijklmnopqrstuvwxyz".repeat(20),
  capitals_without_spaces: "AbCDefGHIjklMNOP".repeat(30),
  punctuation_without_spaces: "!?.,;:-_=+*/\\|()[]{}<>@#$%^&~`'\"".repeat(12),
  cjk_without_spaces: "天地玄黄宇宙洪荒".repeat(40),
  one_letter: "a".repeat(600),
  one_digit: "7".repeat(301),
};

// Every byte that can occur in UTF-8: all code points up to U+00FF, then for each first byte the
// least and the greatest character, and ones that go through all last bytes.
function every_byte() {
  const points = Array.from({ length: 256 }, (_, i) => i);
  for (let lead = 0xc4; lead < 0xe0; ++lead) points.push((lead & 31) << 6, ((lead & 31) << 6) | 63);
  for (let lead = 0xe0; lead < 0xf0; ++lead) {
    if (lead === 0xed) points.push(0xd000, 0xd7ff);
    else points.push(Math.max((lead & 15) << 12, 0x800), ((lead & 15) << 12) | 0xfff);
  }
  for (let lead = 0xf0; lead < 0xf5; ++lead)
    points.push(
      Math.max((lead & 7) << 18, 0x10000),
      Math.min(((lead & 7) << 18) | 0x3ffff, 0x10ffff),
    );
  for (let last = 0; last < 64; ++last) points.push(0x400 + last, 0x4e00 + last, 0x1f600 + last);
  return points.map((point) => String.fromCodePoint(point)).join("");
}

const kBytes = {
  every_byte: every_byte(),
  control_characters:
    Array.from({ length: 32 }, (_, i) => `a${String.fromCharCode(i)}`).join("") + "\x7fz\x80\x9f",
};

// Asked with and without the special tokens (of tokenizer_vocabulary.mjs) being read.
export const kSpecialTexts = {
  chat: "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\nHi there!<|im_end|>\n<|im_start|>assistant\n",
  specials_without_space: "a<|im_start|>b<|im_end|><|im_end|>c<|endoftext|>",
  specials_with_spaces: " <|im_start|>  x \n<|im_end|> <|im_end|>  ",
  half_specials:
    "<|im_start <|im_end| im_start|> <|im_<|im_end|>start|> <|IM_END|> < |im_end|> <||im_end||>",
  user_defined:
    '<tool_call>{"name": 1}</tool_call> x<tool_call><tool_call>  <tool_call> </tool_call>',
  // Longest first, wherever it stands: "=>>>" before "==>", though that begins further left.
  overlapping: "==>>> ==>> ==> =>>> ===>>>> ==>=>>> =>>>=> <tool_call</tool_call>",
  nested: "<|im_start|><tool_call><|im_end|>==><|im_start|>=>>><|endoftext|>",
  only_a_special: "<|im_end|>",
  unknown_and_sentence: "<unk> <s> </s> <s></s> a<s>b </s>c [INST] hi [/INST]",
};

export const kPlainTexts = {
  ...kScripts,
  ...kUnicode,
  ...kDigits,
  ...kContractions,
  ...kSpaces,
  ...kCode,
  ...kRepeated,
  ...kBytes,
};
